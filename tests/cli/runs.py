"""`temporal workflow` for one run: start, watch, message, end."""

import expect
from cli import Answer
from setting import COLOUR, WEIGHT, Setting, case
from shape import NUMBER, RUN, TEXT, TIME, matches

GREETING = """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
    ActivityTaskScheduled ActivityTaskStarted ActivityTaskCompleted
    WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionCompleted""".split()
BROKEN = """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
    WorkflowExecutionFailed""".split()
CONTINUED = [*BROKEN[:4], "WorkflowExecutionContinuedAsNew"]
COMPLETED = {"Status": "COMPLETED", "ResultEncoding": "json/plain"}


def events(answer: Answer) -> list[str]:
    """The types of the events that a command has shown."""
    return [row["Type"] for row in answer.table("Progress:")]


@case
async def a_start_prints_the_run(at: Setting) -> None:
    id = at.id()
    words = ["workflow", "start", "--type", "Register", "-t", at.queue, "-w", id]
    told = (await at.cli(*words)).properties("Running execution:")
    about = {"WorkflowId": id, "Type": "Register", "Namespace": "default", "TaskQueue": at.queue}
    matches(told, {"RunId": RUN} | about)
    again = await at.cli.json(*words)
    expected = {"workflowId": id, "runId": told["RunId"], "type": "Register", "namespace": "default"}
    expect.equal(again, expected | {"taskQueue": at.queue}, "an open run is used again")
    refusal = f"failed starting workflow: Workflow execution is already running. WorkflowId: {id}, RunId: {told['RunId']}."
    expect.equal(await at.cli.refused(*words, "--fail-existing"), refusal, "a second start")
    replaced = await at.cli.json(*words, "--id-conflict-policy", "TerminateExisting")
    expect.that(replaced["runId"] != told["RunId"], "it is another run")
    expect.equal(await at.status(id, told["RunId"]), "TERMINATED", "the run before")
    stranger = ["--search-attribute", f'{at.id("stranger")}="x"', "-w", at.id("other")]
    refusal = await at.cli.refused(*words[:-2], *stranger)
    expect.that("no mapping defined for search attribute" in refusal, "an attribute that is not there", refusal)


@case
async def an_execution_is_followed_to_its_end(at: Setting) -> None:
    words = ["workflow", "execute", "-t", at.queue, "--type"]
    shown = await at.cli(*words, "Greeting", "-w", at.id("text"), "-i", '"Ada"')
    expect.same_lines(events(shown), GREETING, "the events")
    expect.equal([row["ID"] for row in shown.table("Progress:")], [str(n + 1) for n in range(11)], "their ids")
    matches(shown.properties("Results:"), {"RunTime": TEXT, "Result": '"Hello, Ada!"'} | COMPLETED)
    id = at.id("json")
    told = await at.cli.json(*words, "Greeting", "-w", id, "-i", '"Ada"')
    about = {"workflowId": id, "runId": RUN, "type": "Greeting", "namespace": "default", "taskQueue": at.queue}
    close = {"eventId": "11", "eventTime": TIME, "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED", "taskId": NUMBER}
    result = {"result": ["Hello, Ada!"], "workflowTaskCompletedEventId": "10"}
    close |= {"workflowExecutionCompletedEventAttributes": result}
    end = {"status": "COMPLETED", "closeEvent": close, "result": "Hello, Ada!", "durationMillis": ...}
    matches(told, about | end)

    failed = await at.cli.runs(*words, "Broken", "-w", at.id("broken"))
    expect.equal([failed.code, failed.message()], [1, "workflow failed"], "a run that fails")
    expect.same_lines(events(failed), BROKEN, "its events")
    expect.that("Message: out of paper" in failed.text, "its failure", failed.text)

    relayed = await at.cli(*words, "Relay", "-w", at.id("relay"), "-i", "2")
    expect.same_lines(events(relayed), [*CONTINUED, *CONTINUED, *BROKEN[:4], GREETING[-1]], "over its continuations")
    matches(relayed.properties("Results:"), {"RunTime": TEXT, "Result": '"done"'} | COMPLETED)


@case
async def signals_queries_and_updates(at: Setting) -> None:
    id, _ = await at.start("Register", "run")
    (await at.cli("workflow", "signal", "-w", id, "--name", "put", "-i", "5")).says("Signal workflow succeeded")
    values = ["workflow", "query", "-w", id, "--name", "values"]
    expect.equal((await at.cli(*values)).properties("Query result:"), {"QueryResult": "[5]"}, "the answer")
    expect.equal(await at.cli.json(*values), {"queryResult": [[5]]}, "the answer in JSON")
    refusal = await at.cli.refused("workflow", "query", "-w", id, "--name", "nope")
    expected = "querying workflow failed: Query handler for 'nope' expected but not found"
    expect.that(refusal.startswith(expected), "an unknown query", refusal)

    add = ["--name", "add", "-w", id]
    told = (await at.cli("workflow", "update", "execute", *add, "-i", "6")).properties()
    matches(told, {"Name": "add", "UpdateID": RUN, "Result": "11"})
    told = await at.cli.json("workflow", "update", "execute", *add, "-i", "6", "--update-id", "first")
    expect.equal(told, {"name": "add", "updateId": "first", "result": 17}, "an update")
    told = await at.cli.json("workflow", "update", "execute", *add, "-i", "6", "--update-id", "first")
    expect.equal(told["result"], 17, "the same update again")
    refusal = await at.cli.refused("workflow", "update", "execute", *add, "-i", "-6")
    expect.equal(refusal, "unable to update workflow: no negative numbers (type: Negative, retryable: true)", "validated")
    start = ["workflow", "update", "start", *add, "--wait-for-stage", "accepted", "-i", "1", "--update-id", "second"]
    expect.equal(await at.cli.json(*start), {"name": "add", "updateId": "second"}, "an update that is accepted")
    second = ["-w", id, "--update-id", "second"]
    told = (await at.cli("workflow", "update", "result", *second)).properties()
    expect.equal(told, {"UpdateID": "second", "Result": "18"}, "its result")
    told = await at.cli.json("workflow", "update", "describe", *second)
    expect.equal(told, {"updateId": "second", "result": 18, "stage": "Completed"}, "its description")
    refusal = await at.cli.refused("workflow", "update", "result", "-w", id, "--update-id", "third")
    expect.that('update "third" not found' in refusal, "an unknown update", refusal)
    await at.cli("workflow", "signal", "-w", id, "--name", "finish")
    told = (await at.cli("workflow", "result", "-w", id)).properties("Results:")
    expect.equal(told, COMPLETED | {"Result": "[5,6,6,1]"}, "the result")
    refusal = await at.cli.refused("workflow", "signal", "-w", id, "--name", "put", "-i", "5")
    expect.equal(refusal, "failed signalling workflow: workflow execution already completed", "a late signal")
    expect.equal(await at.cli.json(*values), {"queryResult": [[5, 6, 6, 1]]}, "a query of a closed run")
    refusal = await at.cli.runs(*values, "--reject-condition", "not_open")
    expect.that("COMPLETED" in refusal.text.upper() + refusal.errors.upper(), "a rejected query", refusal)


@case
async def starts_carry_messages(at: Setting) -> None:
    run = ["-t", at.queue, "--type", "Register", "-w", at.id()]
    signal = ["workflow", "signal-with-start", *run, "--signal-name", "put", "--signal-input"]
    told = (await at.cli(*signal, "3")).properties("Running execution:")
    matches(told, {"WorkflowId": at.id(), "RunId": RUN, "Type": "Register", "Namespace": "default"})
    again = await at.cli.json(*signal, "4")
    expected = {"workflowId": at.id(), "runId": told["RunId"], "type": "Register", "namespace": "default"}
    expect.equal(again, expected, "the run that is there is signalled")
    update = ["--id-conflict-policy", "UseExisting", "--update-name", "add", "--update-input", "5"]
    told = (await at.cli("workflow", "execute-update-with-start", *run, *update)).properties("Running execution:")
    expect.equal([told["UpdateName"], told["UpdateResult"]], ["add", "12"], "an update with its start")
    later = [*update, "--update-wait-for-stage", "accepted", "--update-id", "one"]
    told = await at.cli.json("workflow", "start-update-with-start", *run, *later)
    expect.equal(told, expected | {"updateName": "add", "updateId": "one"}, "one that is accepted")


@case
async def a_description_is_of_all_that_is_there(at: Setting) -> None:
    carried = ["--search-attribute", f'{COLOUR}="red"', "--memo", 'note="kept"', "--static-summary", "a *run*"]
    id, run = await at.start("Register", "run", *carried, queue=at.idle)
    told = await at.cli.json("workflow", "describe", "-w", id)
    execution = {"workflowId": id, "runId": run}
    info = {
        "execution": execution,
        "type": {"name": "Register"},
        "startTime": TIME,
        "executionTime": TIME,
        "status": "WORKFLOW_EXECUTION_STATUS_RUNNING",
        "historyLength": "2",
        "historySizeBytes": NUMBER,
        "stateTransitionCount": NUMBER,
        "memo": {"fields": {"note": "kept"}},
        "searchAttributes": {"indexedFields": {COLOUR: {"metadata": ..., "data": "InJlZCI="}}},
        "taskQueue": at.idle,
        "rootExecution": execution,
        "firstRunId": run,
        ...: ...,
    }
    matches(told["workflowExecutionInfo"], info)
    # A Temporal server tells timeouts that were named as none; Everlog tells those that there are.
    named = {"workflowExecutionTimeout": "0s", "workflowRunTimeout": "0s"} if at.shared.reference else {}
    queue = {"name": at.idle, "kind": "TASK_QUEUE_KIND_NORMAL"}
    settings = {"taskQueue": queue, "defaultWorkflowTaskTimeout": "10s", **named, ...: ...}
    matches(told["executionConfig"], settings)
    matches(told["pendingWorkflowTask"], {"state": "PENDING_WORKFLOW_TASK_STATE_SCHEDULED", "attempt": 1, ...: ...})
    text = await at.cli("workflow", "describe", "-w", id)
    shown = text.properties("Execution Info:")
    expected = {"WorkflowId": id, "RunId": run, "Type": "Register", "Namespace": "default", "TaskQueue": at.idle}
    matches(shown, expected | {"HistoryLength": "2", "RootWorkflowId": id, "RootRunId": run, ...: ...})
    text.has("Pending Activities: 0")
    text.has("Pending Child Workflows: 0")
    refusal = await at.cli.refused("workflow", "describe", "-w", at.id("nobody"))
    expect.equal(refusal, f"failed describing workflow: workflow not found for ID: {at.id('nobody')}", "nobody")


@case
async def a_parent_is_shown_with_its_child(at: Setting) -> None:
    id, run = await at.start("Family", "parent")
    child = f"{id}-child"
    await at.has_child(id)
    await at.lists(f'ParentWorkflowId = "{id}"', [child])
    text = await at.cli("workflow", "describe", "-w", id)
    text.has("Pending Child Workflows: 1")
    told = await at.cli.json("workflow", "describe", "-w", id)
    pending = {"workflowId": child, "runId": RUN, "workflowTypeName": "Register", "initiatedId": "5"}
    matches(told["pendingChildren"], [pending | {"parentClosePolicy": "PARENT_CLOSE_POLICY_TERMINATE"}])
    await at.lists(f'RootWorkflowId = "{id}" AND RootRunId = "{run}"', [id, child])
    await at.cli("workflow", "signal", "-w", child, "--name", "put", "-i", "1")
    await at.cli("workflow", "signal", "-w", child, "--name", "finish")
    told = await at.cli.json("workflow", "result", "-w", id)
    matches(told, {"status": "COMPLETED", "result": [1], "closeEvent": {"eventId": "14", ...: ...}, ...: ...})
    shown = events(await at.cli("workflow", "show", "-w", id))
    expect.equal(shown[4:6], ["StartChildWorkflowExecutionInitiated", "ChildWorkflowExecutionStarted"], "the start")
    expect.equal([shown[9], shown[-1]], ["ChildWorkflowExecutionCompleted", GREETING[-1]], "the end")
    for options, wanted in ([], "execution folded"), (["--no-fold"], f"wfId: {child}"):
        traced = await at.cli("workflow", "trace", "-w", id, *options)
        for part in ("✓ Family", "✓ Register", wanted):
            expect.that(part in traced.text, part, traced.text)


@case
async def a_history_is_shown(at: Setting) -> None:
    id, run = await at.start("Greeting", "run", "-i", '"Ada"')
    followed = await at.cli("workflow", "show", "-w", id, "--follow")
    expect.same_lines(events(followed), GREETING, "to its end")
    expect.same_lines(events(await at.cli("workflow", "show", "-w", id, "-r", run)), GREETING, "of a closed run")
    shown = (await at.cli.json("workflow", "show", "-w", id))["events"]
    names = ["EVENT_TYPE_" + "".join(f"_{c}" if c.isupper() else c for c in name)[1:].upper() for name in GREETING]
    expect.same_lines([event["eventType"] for event in shown], names, "in JSON")
    first = {
        "workflowType": {"name": "Greeting"},
        "taskQueue": {"name": at.queue, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "input": {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "IkFkYSI="}]},
        "workflowTaskTimeout": "10s",
        "originalExecutionRunId": run,
        "firstExecutionRunId": run,
        "attempt": 1,
        "workflowId": id,
        ...: ...,
    }
    event = {"eventId": "1", "eventTime": TIME, "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED", "taskId": NUMBER}
    matches(shown[0], event | {"workflowExecutionStartedEventAttributes": first})
    detailed = await at.cli("workflow", "show", "-w", id, "--detailed")
    detailed.has("--------------- [5] ActivityTaskScheduled ---------------")
    detailed.has("activityType.name: Greet")
    whole = at.cli.home / f"{id}.json"
    whole.write_text((await at.cli("workflow", "show", "-w", id, "-o", "json")).text)
    fixed = (await at.cli("workflow", "fix-history-json", "-s", str(whole))).json()
    expect.equal(len(fixed["events"]), len(GREETING), "a history that was saved")


@case
async def a_run_tells_where_it_stands(at: Setting) -> None:
    id, _ = await at.start("Register", "run")
    (stack,) = (await at.cli.json("workflow", "stack", "-w", id))["queryResult"]
    expect.that("Register" in stack and "line" in stack, "its stack", stack)
    (told,) = (await at.cli.json("workflow", "metadata", "-w", id))["queryResult"]
    expect.equal([told["currentDetails"], told["definition"]["type"]], ["waits for numbers", "Register"], "its details")
    shown = await at.cli("workflow", "metadata", "-w", id)
    expect.that("the numbers in their order" in shown.text, "its queries", shown.text)


@case
async def a_run_is_cancelled_terminated_and_deleted(at: Setting) -> None:
    cancelled, _ = await at.start("Register", "cancelled")
    for _ in range(2):
        (await at.cli("workflow", "cancel", "-w", cancelled)).says("Canceled workflow")
    told = await at.cli.runs("workflow", "result", "-w", cancelled, "-o", "json")
    expect.equal([told.code, told.json()["status"]], [1, "CANCELED"], "a run that is cancelled")
    terminated, _ = await at.start("Register", "terminated")
    end = ["workflow", "terminate", "-w", terminated]
    (await at.cli(*end, "--reason", "enough")).says("Workflow terminated")
    refusal = await at.cli.refused(*end)
    expect.equal(refusal, "failed to terminate workflow: workflow execution already completed", "a second time")
    shown = (await at.cli.json("workflow", "show", "-w", terminated))["events"][-1]
    matches(shown["workflowExecutionTerminatedEventAttributes"], {"reason": "enough", "identity": TEXT})
    by_status = {"Canceled": cancelled, "Terminated": terminated}
    for status, id in by_status.items():
        await at.lists(f'{at.own} AND ExecutionStatus = "{status}"', [id])
    (await at.cli("workflow", "delete", "-w", terminated)).says("Delete workflow succeeded")
    await at.lists(at.own, [cancelled])
    for command in ("describe", "delete"):
        refusal = await at.cli.refused("workflow", command, "-w", terminated)
        expect.that(f"workflow not found for ID: {terminated}" in refusal, "what is deleted", refusal)


@case
async def a_run_is_reset(at: Setting) -> None:
    id, run = await at.start("Register", "run")
    await at.cli("workflow", "update", "execute", "-w", id, "--name", "add", "-i", "1")
    await at.cli("workflow", "signal", "-w", id, "--name", "put", "-i", "2")
    reset = ["workflow", "reset", "-w", id, "--reason", "once more"]
    again = await at.cli.json(*reset, "--type", "FirstWorkflowTask")
    matches(again, {"runId": RUN})
    values = ["workflow", "query", "-w", id, "--name", "values"]
    expect.equal(await at.cli.json(*values), {"queryResult": [[1, 2]]}, "what was told comes along")
    expect.equal(await at.status(id, run), "TERMINATED", "the run before")
    (await at.cli(*reset, "--event-id", "4", "--reapply-exclude", "Signal")).has(
        f"Resetting workflow {id} to event ID 4"
    )
    expect.equal(await at.cli.json(*values), {"queryResult": [[1]]}, "without signals")
    refusal = await at.cli.refused(*reset, "--event-id", "999")
    expect.that("Workflow task finish ID must be > 1 && <= workflow last event ID" in refusal, "beyond its end", refusal)
    points = await at.cli("workflow", "describe", "-w", id, "--reset-points")
    points.has("Auto Reset Points: 1")
    expect.equal(points.properties("Auto Reset Points: 1")["RunId"], await at.current(id), "where a build began")
    await at.lists(at.own, [id, id, id])
    await at.lists(f'{at.own} AND ExecutionStatus = "Running"', [id])
