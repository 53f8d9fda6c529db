"""`temporal workflow list` and `count`."""

import expect
from setting import COLOUR, WEIGHT, Setting, case
from shape import NUMBER, RUN, SPAN, TIME, matches

PAGED = 23


@case
async def open_runs_come_before_closed_ones(at: Setting) -> None:
    older, _ = await at.start("Register", "older", queue=at.idle)
    closed, _ = await at.start("Register", "closed", queue=at.idle)
    newer, _ = await at.start("Greeting", "newer", "-i", '"x"', queue=at.idle)
    last, _ = await at.start("Register", "last", queue=at.idle)
    for id in (closed, last):
        await at.cli("workflow", "terminate", "-w", id)

    async def ids() -> list[str]:
        return await at.ids(at.own)

    order = [newer, older, last, closed]
    await at.settles(ids, order, "the order")
    rows = (await at.cli("workflow", "list", "-q", at.own)).table()
    shown = [[row["Status"], row["WorkflowId"], row["Type"]] for row in rows]
    types = ["Greeting", "Register", "Register", "Register"]
    states = ["Running", "Running", "Terminated", "Terminated"]
    expect.equal(shown, [list(row) for row in zip(states, order, types)], "the table")
    for size in ("1", "3", "1000"):
        expect.equal(await at.ids(at.own, "--page-size", size), order, f"in pages of {size}")
    expect.equal(await at.ids(at.own, "--page-size", "2", "--limit", "3"), order[:3], "at most three")
    lines = (await at.cli("workflow", "list", "-q", at.own, "-o", "jsonl")).lines()
    expect.equal([line["execution"]["workflowId"] for line in lines], order, "a line each")
    nothing = await at.cli("workflow", "list", "-q", f'WorkflowId = "{at.id("nobody")}"')
    expect.equal(nothing.table() if nothing.text.strip() else [], [], "nobody")
    for id in (newer, older):
        await at.cli("workflow", "terminate", "-w", id)


@case
async def a_listed_run_has_its_fields(at: Setting) -> None:
    carried = ["--search-attribute", f'{COLOUR}="red"', "--search-attribute", f"{WEIGHT}=7", "--memo", "note=[1]"]
    id, run = await at.start("Register", "run", *carried, queue=at.idle)
    execution = {"workflowId": id, "runId": run}
    attributes = {
        COLOUR: {"metadata": {"encoding": "anNvbi9wbGFpbg==", "type": "S2V5d29yZA=="}, "data": "InJlZCI="},
        WEIGHT: {"metadata": {"encoding": "anNvbi9wbGFpbg==", "type": "SW50"}, "data": "Nw=="},
    }
    info = {
        "execution": execution,
        "type": {"name": "Register"},
        "startTime": TIME,
        "executionTime": TIME,
        "memo": {"fields": {"note": [1]}},
        "searchAttributes": {"indexedFields": attributes},
        "taskQueue": at.idle,
        "rootExecution": execution,
    }
    await at.lists(at.own, [id])
    (found,) = await at.cli.json("workflow", "list", "-q", at.own)
    # Of an open run a server may know more than it must.
    matches(found, info | {"status": "WORKFLOW_EXECUTION_STATUS_RUNNING", ...: ...})
    expect.that("closeTime" not in found, "an open run has no close time", found)
    await at.cli("workflow", "terminate", "-w", id)
    await at.lists(f'{at.own} AND ExecutionStatus = "Terminated"', [id])
    (found,) = await at.cli.json("workflow", "list", "-q", at.own)
    lengths = {"historyLength": "3", "historySizeBytes": NUMBER, "stateTransitionCount": NUMBER}
    closed = {"status": "WORKFLOW_EXECUTION_STATUS_TERMINATED", "closeTime": TIME, "executionDuration": SPAN}
    matches(found, info | closed | lengths)
    child = await at.start("Family", "parent")
    await at.has_child(child[0])
    await at.lists(f'ParentWorkflowId = "{child[0]}"', [f"{child[0]}-child"])
    (found,) = await at.cli.json("workflow", "list", "-q", f'ParentWorkflowId = "{child[0]}"')
    parent = {"workflowId": child[0], "runId": child[1]}
    expect.equal([found["parentExecution"], found["rootExecution"]], [parent, parent], "whose child it is")
    await at.cli("workflow", "terminate", "-w", child[0])


@case
async def queries_choose_by_everything(at: Setting) -> None:
    red, red_run = await at.start("Register", "red", "--search-attribute", f'{COLOUR}="red"', queue=at.idle)
    blue, _ = await at.start("Greeting", "blue", "--search-attribute", f'{COLOUR}="blue"', "-i", "1", queue=at.idle)
    heavy, _ = await at.start("Register", "heavy", "--search-attribute", f"{WEIGHT}=900", queue=at.idle)
    light, _ = await at.start("Register", "light", "--search-attribute", f"{WEIGHT}=3", queue=at.idle)
    await at.cli("workflow", "terminate", "-w", light)
    await at.lists(f'{at.own} AND ExecutionStatus = "Terminated"', [light])
    rows = [
        (f"{COLOUR} = 'red'", [red]),
        (f'`{COLOUR}` = "red"', [red]),
        (f"{COLOUR} != 'red'", [blue]),
        (f"{COLOUR} IN ('red', 'blue')", [red, blue]),
        (f"{COLOUR} STARTS_WITH 'b'", [blue]),
        (f"{COLOUR} IS NULL", [heavy, light]),
        (f"{COLOUR} IS NOT NULL AND NOT {COLOUR} = 'red'", [blue]),
        (f"{WEIGHT} > 3", [heavy]),
        (f"{WEIGHT} BETWEEN 3 AND 900", [heavy, light]),
        ("WorkflowType = 'Greeting'", [blue]),
        (f"WorkflowType = 'Greeting' OR {WEIGHT} < 10", [blue, light]),
        (f"TaskQueue = '{at.idle}'", [red, blue, heavy, light]),
        ("ExecutionStatus = 'Running'", [red, blue, heavy]),
        ("ExecutionStatus IN ('Terminated', 'Failed')", [light]),
        ("ExecutionStatus != 'Running'", [light]),
        ("CloseTime IS NULL", [red, blue, heavy]),
        ("CloseTime IS NOT NULL", [light]),
        ("StartTime > '2020-01-01T00:00:00Z'", [red, blue, heavy, light]),
        ("StartTime < '2020-01-01T00:00:00Z'", []),
        ("ExecutionDuration < '1h'", [light]),
        (f"WorkflowId = '{heavy}'", [heavy]),
        (f"RunId = '{red_run}'", [red]),
    ]
    for query, expected in rows:
        await at.lists(f"{at.own} AND ({query})", expected)
    counted = await at.cli.json("workflow", "count", "-q", f"{at.own} GROUP BY ExecutionStatus")
    groups = {each["groupValues"][0]: each["count"] for each in counted["groups"]}
    expect.equal([counted["count"], groups], ["4", {"Running": "3", "Terminated": "1"}], "counts by status")
    counted = await at.cli("workflow", "count", "-q", f"{at.own} GROUP BY ExecutionStatus")
    lines = sorted(counted.text.splitlines())
    shown = ["Group total: 1, values: Terminated", "Group total: 3, values: Running", "Total: 4"]
    expect.equal(lines, shown, "as they are printed")
    for id in (red, blue, heavy):
        await at.cli("workflow", "terminate", "-w", id)


@case
async def many_come_in_pages_once_each(at: Setting) -> None:
    ids = await at.many(PAGED)
    for id in ids[:5]:
        await at.cli("workflow", "terminate", "-w", id)
    await at.lists(f"{at.own} AND ExecutionStatus = 'Terminated'", ids[:5])
    whole = await at.ids(at.own)
    expect.equal(sorted(whole), ids, "all of them")
    for size in ("1", "5", str(PAGED)):
        expect.equal(await at.ids(at.own, "--page-size", size), whole, f"in pages of {size}")


@case
async def what_no_query_is_is_refused(at: Setting) -> None:
    column = "invalid query: invalid expression: column name 'Nobody' is not a valid search attribute"
    rows = [
        ("Nobody = 1", column),
        ("ExecutionStatus =", "invalid query: malformed SQL query: syntax error at position"),
        ("ExecutionStatus = 'Asleep'", "invalid query: invalid expression: invalid ExecutionStatus value 'Asleep'"),
        ("StartTime > 'yesterday'", "invalid query: invalid expression: unable to parse datetime 'yesterday'"),
        ("WorkflowType LIKE 'G%'", "invalid query: "),
        ("WorkflowType = 'G' LIMIT 3", "invalid query: operation is not supported: 'limit' clause"),
    ]
    for query, why in rows:
        refusal = await at.cli.refused("workflow", "list", "-q", query)
        expect.that(refusal.startswith(f"failed listing workflows: {why}"), query, refusal)
        refusal = await at.cli.refused("workflow", "count", "-q", query)
        expect.that(why in refusal, query, refusal)
    refusal = await at.cli.refused("workflow", "list", "-q", "GROUP BY ExecutionStatus")
    expect.that("operation is not supported: 'group by' clause" in refusal, "groups in a list", refusal)
    refusal = await at.cli.refused("workflow", "list", "--archived")
    why = "failed listing workflows: Cluster is not configured for visibility archival."
    expect.equal(refusal, why, "archived runs")
