"""`temporal operator`: search attributes, namespaces, the cluster."""

import expect
from setting import Setting, case
from shape import RUN, TEXT, matches

SYSTEM = {
    "BatcherUser": "Keyword",
    "BuildIds": "KeywordList",
    "CloseTime": "Datetime",
    "ExecutionDuration": "Int",
    "ExecutionStatus": "Keyword",
    "ExecutionTime": "Datetime",
    "HistoryLength": "Int",
    "HistorySizeBytes": "Int",
    "ParentRunId": "Keyword",
    "ParentWorkflowId": "Keyword",
    "RootRunId": "Keyword",
    "RootWorkflowId": "Keyword",
    "RunId": "Keyword",
    "StartTime": "Datetime",
    "StateTransitionCount": "Int",
    "TaskQueue": "Keyword",
    "TemporalChangeVersion": "KeywordList",
    "TemporalNamespaceDivision": "Keyword",
    "TemporalSchedulePaused": "Bool",
    "TemporalScheduledById": "Keyword",
    "TemporalScheduledStartTime": "Datetime",
    "WorkflowId": "Keyword",
    "WorkflowType": "Keyword",
}


@case
async def search_attributes_come_and_go(at: Setting) -> None:
    attribute = ["operator", "search-attribute"]
    tag = at.prefix.split("-")[1]
    word, list_of, moment = f"Word{tag}", f"List{tag}", f"Moment{tag}"
    added = "Search attributes have been added"
    create = [*attribute, "create", "--name"]
    (await at.cli(*create, word, "--type", "Keyword")).says(added)
    (await at.cli(*create, list_of, "--type", "KeywordList")).says(added)
    (await at.cli(*create, moment, "--type", "Datetime")).says(added)
    (await at.cli(*create, word, "--type", "Keyword")).says(added)
    refusal = await at.cli.refused(*create, word, "--type", "Int")
    expect.equal(refusal, f"search attribute {word} already exists and has different type Keyword", "another type")
    rows = {row["Name"]: row["Type"] for row in (await at.cli(*attribute, "list")).table()}
    custom = {word: "Keyword", list_of: "KeywordList", moment: "Datetime"}
    wanted = SYSTEM | custom
    expect.equal({name: rows.get(name) for name in wanted}, wanted, "the list")
    told = await at.cli.json(*attribute, "list")
    matches(told["customAttributes"], {word: "INDEXED_VALUE_TYPE_KEYWORD", ...: ...})
    matches(told["systemAttributes"], {"CloseTime": "INDEXED_VALUE_TYPE_DATETIME", ...: ...})

    values = [f'{word}="a"', f'{list_of}=["b", "c"]', f'{moment}="2026-01-02T03:04:05Z"']
    words = [part for value in values for part in ("--search-attribute", value)]
    start = ["workflow", "start", "--type", "Register", "-t", at.idle, "-w", at.id(), *words]
    if at.shared.reference:

        async def knows() -> bool:
            return not (await at.cli.runs(*start)).code

        await expect.eventually(knows, "a start with them")
    else:
        await at.cli(*start)
    for query in (f"{word} = 'a'", f"{list_of} = 'c'", f"{moment} > '2026-01-02T03:04:04.5Z'"):
        await at.lists(query, [at.id()])
    for query in (f"{word} = 'b'", f"{list_of} = 'a'", f"{moment} < '2026-01-02T03:04:05Z'"):
        await at.lists(query, [])
    await at.cli("workflow", "terminate", "-w", at.id())

    remove = [*attribute, "remove", "--name", word]
    refusal = await at.cli.runs(*remove, stdin="no\n")
    expect.equal(refusal.code, 1, "somebody who says no")
    answer = await at.cli(*remove, "--name", list_of, "--name", moment, "--yes")
    answer.has("Search attributes have been removed")
    rows = {row["Name"]: row["Type"] for row in (await at.cli(*attribute, "list")).table()}
    expect.equal([name for name in custom if name in rows], [], "what is left")

    async def refused() -> bool:
        answer = await at.cli.runs("workflow", "list", "-q", f"{word} = 'a'")
        return answer.code == 1 and f"column name '{word}' is not a valid search attribute" in answer.message()

    await at.settles(refused, True, "a name that is gone")


@case
async def namespaces_come_and_go(at: Setting) -> None:
    name = at.id("namespace")
    cli = at.cli.in_namespace(name)
    operator = ["operator", "namespace"]
    about = ["--description", "for a case", "--email", "who@example.com", "--data", "colour=red"]
    (await cli(*operator, "create", *about, "--retention", "48h")).says(f"Namespace {name} successfully registered.")
    refusal = await cli.refused(*operator, "create")
    expect.that(refusal.startswith(f"unable to create namespace {name}: ") and "already exists" in refusal, refusal)
    shown = (await cli(*operator, "describe")).properties()
    expected = {
        "NamespaceInfo.Name": name,
        "NamespaceInfo.Id": RUN,
        "NamespaceInfo.Description": "for a case",
        "NamespaceInfo.OwnerEmail": "who@example.com",
        "NamespaceInfo.State": "Registered",
        "NamespaceInfo.Data": "map[colour:red]",
        "Config.WorkflowExecutionRetentionTtl": "48h0m0s",
        "Config.HistoryArchivalState": "Disabled",
        ...: ...,
    }
    matches(shown, expected)
    changed = ["--description", "for this case", "--retention", "96h", "--data", "size=2"]
    (await cli(*operator, "update", *changed)).says(f"Namespace {name} update succeeded.")
    told = await cli.json(*operator, "describe")
    info = {"name": name, "state": "NAMESPACE_STATE_REGISTERED", "description": "for this case", "id": RUN}
    info |= {"ownerEmail": "who@example.com", "data": {"colour": "red", "size": "2"}, ...: ...}
    matches(told["namespaceInfo"], info)
    expect.equal(told["config"]["workflowExecutionRetentionTtl"], "345600s", "how long runs are kept")
    listed = await cli.json(*operator, "list")
    expect.that(name in [each["namespaceInfo"]["name"] for each in listed], "it is listed", listed)
    await a_namespace_lists_its_own(at, name)

    refusal = await cli.runs(*operator, "delete", stdin="another\n")
    expect.equal(refusal.code, 1, "somebody who types another name")
    (await cli(*operator, "delete", "--yes")).has(f"Namespace {name} has been deleted.")
    refusal = await cli.refused(*operator, "describe")
    expect.equal(refusal, f"unable to describe namespace {name}: Namespace {name} is not found.", "what is gone")
    listed = await cli.json(*operator, "list")
    expect.that(name not in [each["namespaceInfo"]["name"] for each in listed], "it is listed no more", listed)


async def a_namespace_lists_its_own(at: Setting, name: str) -> None:
    """Without a query, all of its runs and no others."""
    cli = at.cli.in_namespace(name)
    start = ["workflow", "start", "--type", "Register", "-t", at.idle, "-w"]
    if at.shared.reference:

        async def knows() -> bool:
            return not (await cli.runs(*start, "one")).code

        await expect.eventually(knows, "a start in a new namespace")
    else:
        await cli(*start, "one")
    await cli(*start, "two")

    async def ids() -> list[str]:
        return [each["execution"]["workflowId"] for each in await cli.json("workflow", "list")]

    await at.settles(ids, ["two", "one"], "a list without a query")
    (await cli("workflow", "count")).says("Total: 2")
    expect.equal(await cli.json("workflow", "count"), {"count": "2"}, "a count without a query")
    await cli("workflow", "terminate", "-w", "one")

    async def groups() -> dict[str, str]:
        told = await cli.json("workflow", "count", "-q", "GROUP BY ExecutionStatus")
        return {each["groupValues"][0]: each["count"] for each in told["groups"]}

    await at.settles(groups, {"Running": "1", "Terminated": "1"}, "counts by status")


@case
async def a_cluster_tells_of_itself(at: Setting) -> None:
    (await at.cli("operator", "cluster", "health")).says("SERVING")
    expect.equal(await at.cli.json("operator", "cluster", "health"), {"status": "SERVING"}, "its health")
    (row,) = (await at.cli("operator", "cluster", "describe")).table()
    expect.equal(sorted(row), ["ClusterName", "PersistenceStore", "VisibilityStore"], "what it is")
    told = await at.cli.json("operator", "cluster", "describe")
    known = {"serverVersion": TEXT, "clusterId": TEXT, "clusterName": TEXT, "historyShardCount": ...}
    clients = {"temporal-cli": "<2.0.0", "temporal-go": "<2.0.0", "temporal-java": "<2.0.0", "temporal-ui": "<3.0.0"}
    stores = {"persistenceStore": TEXT, "visibilityStore": TEXT, "supportedClients": clients | {...: ...}}
    matches(told, known | stores | {...: ...})
    expect.that("elasticsearch" not in told["visibilityStore"], "that word turns on what is not there", told)
    major, minor = (int(part) for part in told["serverVersion"].split(".")[:2])
    expect.that((major, minor) >= (1, 29), "the Web UI shows what a Temporal server of this version has", told)
    (row,) = (await at.cli("operator", "cluster", "list")).table()
    expect.equal(row["Name"], told["clusterName"], "the only cluster")
    expect.equal([row["InitialFailoverVersion"], row["IsConnectionEnabled"]], ["1", "true"], "how it is")
    (cluster,) = await at.cli.json("operator", "cluster", "list")
    same = {name: told[name] for name in ("clusterName", "clusterId", "historyShardCount")}
    known = {"address": TEXT, "initialFailoverVersion": "1", "isConnectionEnabled": True}
    matches(cluster, same | known | {...: ...})
    (row,) = (await at.cli("operator", "cluster", "describe", "--detail")).table()
    expect.that(row["HistoryShardCount"].isdigit(), "its details", row)
    (row,) = (await at.cli("operator", "cluster", "system")).table()
    expect.equal([row["UpsertMemo"], row["EagerWorkflowStart"]], ["true", "true"], "what it can do")
    expect.equal(row["ServerVersion"], told["serverVersion"], "its version")
    told = await at.cli.json("operator", "cluster", "system")
    able = ["upsertMemo", "eagerWorkflowStart", "sdkMetadata", "countGroupByExecutionStatus", "encodedFailureAttributes"]
    matches(told["capabilities"], {name: True for name in able} | {...: ...})
