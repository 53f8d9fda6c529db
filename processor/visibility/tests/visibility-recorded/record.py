#!/usr/bin/env python3
"""Records what a real Temporal server answers to queries, as data for tests/recorded.rs.

    go install github.com/temporalio/cli/cmd/temporal@v1.5.1
    python3 -m pip install temporalio
    python3 record.py PATH/TO/temporal recorded.jsonl

It starts `temporal server start-dev` with a database of its own, makes about twenty runs, and asks the queries of
queries.py. Lines of the output, in this order:

    {"runs": [{attribute: value}]}   what the server lists of each run; times in RFC 3339
    {"custom": {name: type}}         custom attributes, with the numbers of IndexedValueType
    {"list": query, "runs": [index]} in the order of the list; indexes into the first line
    {"count": query, "total": n, "groups": {value: n}}
    {"list" or "count": query, "code": gRPC's code, "text": its message}

The order of lines is that of queries.py; ids, times and lengths of histories are new in each recording.
"""

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from temporalio import workflow
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest, ListWorkflowExecutionsRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

sys.path.append(str(Path(__file__).parents[4] / "tests/patience"))
import patience  # noqa: E402
from queries import queries  # noqa: E402

QUEUE = "record"
ALL = "TemporalNamespaceDivision IS NULL OR TemporalNamespaceDivision IS NOT NULL"

CUSTOM = {
    "MyKeyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "My-Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "MyList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "MyText": IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
    "MyInt": IndexedValueType.INDEXED_VALUE_TYPE_INT,
    "MyDouble": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    "MyBool": IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
    "MyTime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}
KEYS = {
    "MyKeyword": SearchAttributeKey.for_keyword("MyKeyword"),
    "My-Keyword": SearchAttributeKey.for_keyword("My-Keyword"),
    "MyList": SearchAttributeKey.for_keyword_list("MyList"),
    "MyText": SearchAttributeKey.for_text("MyText"),
    "MyInt": SearchAttributeKey.for_int("MyInt"),
    "MyDouble": SearchAttributeKey.for_float("MyDouble"),
    "MyBool": SearchAttributeKey.for_bool("MyBool"),
    "MyTime": SearchAttributeKey.for_datetime("MyTime"),
    "TemporalNamespaceDivision": SearchAttributeKey.for_keyword("TemporalNamespaceDivision"),
    "BuildIds": SearchAttributeKey.for_keyword_list("BuildIds"),
}


@workflow.defn(name="Order")
class Order:
    @workflow.run
    async def run(self, what: str) -> str:
        if what == "fail":
            raise ApplicationError("as asked", non_retryable=True)
        if what == "again":
            workflow.continue_as_new("complete")
        if what == "parent":
            await workflow.execute_child_workflow("Order", "complete", id="child-1")
        if what == "wait":
            await workflow.wait_condition(lambda: False)
        return what


@workflow.defn(name="invoice")
class Invoice(Order):
    @workflow.run
    async def run(self, what: str) -> str:
        return await super().run(what)


MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
# Workflow Id, type, what it does, search attributes.
RUNS = [
    ("order-1", "Order", "wait", {"MyKeyword": "red", "MyInt": 1, "MyDouble": 1.5, "MyBool": True, "MyTime": MOMENT}),
    ("order-2", "Order", "complete", {"MyKeyword": "Rose", "MyInt": -7, "MyDouble": -0.25, "MyBool": False}),
    ("order-3", "Order", "fail", {"MyKeyword": "green", "MyInt": 5, "MyText": "A quick brown fox"}),
    ("order-4", "Order", "again", {"MyKeyword": "100%", "MyInt": 9007199254740992}),
    ("order-5", "Order", "parent", {"MyKeyword": "a_b", "MyText": "Order-4711 was shipped, can't wait"}),
    ("order-6", "Order", "cancel", {"MyKeyword": "a!b", "MyList": ["red", "green"]}),
    ("order-7", "Order", "terminate", {"MyKeyword": "it's \"so\"", "MyList": ["Blue", "dark blue"]}),
    ("order-8", "Order", "time out", {"MyKeyword": "", "MyList": ["x:y", "it's"]}),
    ("a:b", "invoice", "wait", {"MyKeyword": "5", "MyText": "4711 order"}),
    ("invoice/1", "invoice", "complete", {"MyKeyword": "1.5", "MyText": "café crème", "MyTime": MOMENT + timedelta(milliseconds=250)}),
    ("invoice-2", "invoice", "wait", {"My-Keyword": "dash", "MyDouble": 5.0, "MyInt": 0}),
    ("invoice-3", "invoice", "complete", {"MyKeyword": "ä", "MyTime": MOMENT - timedelta(days=400)}),
    ("temporal-sys-scheduler:daily", "Order", "complete", {}),
    ("inner-1", "Order", "complete", {"TemporalNamespaceDivision": "Inner"}),
    ("inner-2", "Order", "wait", {"TemporalNamespaceDivision": "TemporalBatcher", "MyKeyword": "red"}),
    ("delayed-1", "Order", "delay", {"MyKeyword": "green", "BuildIds": ["unversioned", "versioned:1.0"]}),
    ("plain-1", "Order", "wait", {}),
    ("plain-2", "invoice", "complete", {}),
]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def connect(port: int) -> Client:
    async def client():
        try:
            return await Client.connect(f"127.0.0.1:{port}")
        except RuntimeError:
            return None

    return await patience.until("the server answers", client)


async def make_runs(client: Client) -> None:
    for workflow_id, kind, what, attributes in RUNS:
        pairs = [SearchAttributePair(KEYS[name], value) for name, value in attributes.items()]
        waits = what in ("cancel", "terminate", "time out", "delay")
        handle = await client.start_workflow(
            kind,
            "wait" if waits else what,
            id=workflow_id,
            task_queue=QUEUE,
            search_attributes=TypedSearchAttributes(pairs),
            start_delay=timedelta(hours=1) if what == "delay" else None,
            run_timeout=timedelta(seconds=1) if what == "time out" else None,
        )
        if what == "cancel":
            await handle.cancel()
        if what == "terminate":
            await handle.terminate()
        if what not in ("wait", "delay"):
            try:
                await handle.result()
            except WorkflowFailureError:
                pass


async def listed(client: Client, query: str):
    request = ListWorkflowExecutionsRequest(namespace="default", query=query, page_size=1000)
    return (await client.workflow_service.list_workflow_executions(request)).executions


def shown(run) -> dict:
    """What the server lists of a run, by attribute."""
    known = MessageToDict(run)
    values = {
        "WorkflowId": run.execution.workflow_id,
        "RunId": run.execution.run_id,
        "WorkflowType": run.type.name,
        "TaskQueue": run.task_queue,
        "ExecutionStatus": run.status,
        "StartTime": known["startTime"],
        "ExecutionTime": known["executionTime"],
        "RootWorkflowId": run.root_execution.workflow_id,
        "RootRunId": run.root_execution.run_id,
    }
    if "closeTime" in known:
        values["CloseTime"] = known["closeTime"]
        values["ExecutionDuration"] = run.execution_duration.ToNanoseconds()
        values["HistoryLength"] = run.history_length
        values["HistorySizeBytes"] = run.history_size_bytes
        values["StateTransitionCount"] = run.state_transition_count
    if run.parent_execution.workflow_id:
        values["ParentWorkflowId"] = run.parent_execution.workflow_id
        values["ParentRunId"] = run.parent_execution.run_id
    for name, payload in run.search_attributes.indexed_fields.items():
        values[name] = json.loads(payload.data)
    return values


async def answer(client: Client, call: str, query: str, places: dict) -> dict:
    try:
        if call == "list":
            runs = await listed(client, query)
            return {"list": query, "runs": [places[run.execution.run_id] for run in runs]}
        request = CountWorkflowExecutionsRequest(namespace="default", query=query)
        counted = await client.workflow_service.count_workflow_executions(request)
        groups = {json.loads(group.group_values[0].data): group.count for group in counted.groups}
        return {"count": query, "total": counted.count, "groups": groups}
    except RPCError as error:
        if error.status.name == "RESOURCE_EXHAUSTED":
            raise
        return {call: query, "code": error.status.name, "text": error.message}


async def record(client: Client, output) -> None:
    types = {name: int(number) for name, number in CUSTOM.items()}
    request = AddSearchAttributesRequest(namespace="default", search_attributes=CUSTOM)
    await client.operator_service.add_search_attributes(request)

    async def are_known():
        try:
            return await listed(client, " AND ".join(f"`{name}` IS NULL" for name in CUSTOM)) is not None
        except RPCError:
            return False

    await patience.until("custom attributes are known", are_known)
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=QUEUE, workflows=[Order, Invoice], workflow_runner=runner):
        await make_runs(client)

        async def are_listed():
            runs = await listed(client, ALL)
            open_ids = {workflow_id for workflow_id, _, what, _ in RUNS if what in ("wait", "delay")}
            still_open = {run.execution.workflow_id for run in runs if run.status == 1}
            return len(runs) == len(RUNS) + 2 and still_open == open_ids

        await patience.until("all runs are listed", are_listed)
    runs = sorted(await listed(client, ALL), key=lambda run: (run.start_time.ToNanoseconds(), run.execution.run_id))
    places = {run.execution.run_id: place for place, run in enumerate(runs)}
    values = [shown(run) for run in runs]
    print(json.dumps({"runs": values}, ensure_ascii=False), file=output)
    print(json.dumps({"custom": types}), file=output)
    for call, query in queries(values):
        print(json.dumps(await answer(client, call, query, places), ensure_ascii=False), file=output)


async def main(temporal: str, path: str) -> None:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
        # The least rate of visibility calls is for people, not for a table.
        options += ["--dynamic-config-value", "frontend.namespaceRPS.visibility=1000000"]
        options += ["--db-filename", str(Path(folder) / "temporal.db")]
        # It logs the query that it panics at.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen([temporal, "server", "start-dev", *options], **quiet)
        try:
            client = await connect(port)
            with open(path, "w") as output:
                await record(client, output)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
