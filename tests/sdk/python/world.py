"""What a case works with: names of its own, workers, and starts that are remembered, to be replayed."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    PollWorkflowExecutionUpdateRequest,
)
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

import history
from expect import Unmet, equal, eventually
from history_rules import check_run
from logs import Run

Value = TypeVar("Value")

NAMESPACE = "default"
# The longest there is, for runs whose histories must not tell how quick a worker was.
TASK_TIMEOUT = timedelta(minutes=2)
# As many calls, one after the other, leave a call that was sent before them, and goes the same way, no reason to be under way.
ROUNDS = 10
# Sandboxed as by default, but the tests' own modules are not imported anew for each run.
RUNNER = SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_all_modules())
SEARCH_ATTRIBUTES = {
    "SdkTestKeyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "SdkTestInt": IndexedValueType.INDEXED_VALUE_TYPE_INT,
    "SdkTestDouble": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    "SdkTestBool": IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
    "SdkTestDatetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
    "SdkTestKeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}


@dataclass
class Connection:
    """A client of the server under test."""

    address: str
    client: Client
    # Of workers, perhaps at another node.
    workers_client: Client
    reference: bool

    @staticmethod
    async def open(address: str, workers_address: str, reference: bool) -> "Connection":
        client = await Client.connect(address, namespace=NAMESPACE)
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=NAMESPACE, search_attributes=SEARCH_ATTRIBUTES)
        )
        workers_client = client
        if workers_address != address:
            workers_client = await Client.connect(workers_address, namespace=NAMESPACE)
        return Connection(address, client, workers_client, reference)


class World:
    """One case's part of the server."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.address = connection.address
        self.client = connection.client
        self.workers_client = connection.workers_client
        self.reference = connection.reference
        # How much earlier than due a timer may fire: see check_run.
        self.grain_ms = 1 if connection.reference else 0
        self.name = name
        self.queue = self.id("queue")
        self.replayed = 0
        self.replayed_children = 0
        self.unreplayable: list[str] = []
        self.violations: list[str] = []
        # What a replay needs as the worker had it; a case with converters or interceptors of its own sets it.
        self.replay_options: dict[str, Any] = {}
        self._definitions: dict[str | None, type] = {}
        self._runs: dict[tuple[str, str], None] = {}

    def id(self, word: str = "run") -> str:
        return f"{self.name}-{word}-{uuid.uuid4()}"

    @asynccontextmanager
    async def worker(
        self, *workflows: type, client: Client | None = None, **options: Any
    ) -> AsyncIterator[Worker]:
        """A worker on the case's queue, or on the one named task_queue."""
        for definition in workflows:
            self.replays_with(definition)
        options.setdefault("task_queue", self.queue)
        options.setdefault("workflow_runner", RUNNER)
        async with Worker(client or self.workers_client, workflows=workflows, **options) as worker:
            yield worker

    def replays_with(self, definition: type) -> None:
        """The definition that the histories of its name are replayed with; the last one counts."""
        name = definition.__dict__["__temporal_workflow_definition"].name
        self._definitions[name] = definition

    async def start(
        self, run: str | Callable[..., Any], *args: Any, client: Client | None = None, **options: Any
    ) -> WorkflowHandle[Any, Any]:
        """Starts a workflow on the case's queue under an id of its own."""
        options.setdefault("id", self.id())
        options.setdefault("task_queue", self.queue)
        handle = await (client or self.client).start_workflow(run, args=args, **options)
        self.remember(handle.id, handle.result_run_id)
        return handle

    async def execute(self, run: str | Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await (await self.start(run, *args, **options)).result()

    def remember(self, workflow_id: str, run_id: str | None) -> None:
        """This run, those that continue it, and their children are ended and replayed when the case is over."""
        if run_id:
            self._runs[(workflow_id, run_id)] = None

    async def describe(self, workflow_id: str, run_id: str = "") -> DescribeWorkflowExecutionResponse:
        request = DescribeWorkflowExecutionRequest(namespace=NAMESPACE)
        request.execution.workflow_id = workflow_id
        request.execution.run_id = run_id
        return await self.client.workflow_service.describe_workflow_execution(request)

    async def history(self, handle: WorkflowHandle[Any, Any]) -> WorkflowHistory:
        return await history.fetch(self.client, handle.id, handle.result_run_id or handle.run_id)

    async def shape(self, handle: WorkflowHandle[Any, Any]) -> list[str]:
        return history.shape(await self.history(handle))

    async def until_event(
        self, handle: WorkflowHandle[Any, Any], name: str, count: int = 1
    ) -> WorkflowHistory:
        """The history as soon as it has this many events of this name."""

        async def probe() -> WorkflowHistory | None:
            found = await self.history(handle)
            return found if history.shape(found).count(name) >= count else None

        return await eventually(probe, f"{count} {name}")

    async def heard(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Returns when calls about this run that came later than those under way were answered: the server has those too."""
        for _ in range(ROUNDS):
            await self.describe(handle.id)

    async def until_admitted(self, handle: WorkflowHandle[Any, Any], update_id: str) -> None:
        """Returns once the server has an update, which a worker may not have seen."""
        request = PollWorkflowExecutionUpdateRequest(namespace=NAMESPACE)
        request.update_ref.workflow_execution.workflow_id = handle.id
        request.update_ref.update_id = update_id

        async def probe() -> bool:
            try:
                await self.client.workflow_service.poll_workflow_execution_update(request)
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
                return False
            return True

        await eventually(probe, f"update {update_id} is there")

    async def settles(self, look: Callable[[], Awaitable[Value]], expected: Value, what: str) -> None:
        """Claims that a list or a count is exact; at a Temporal server it becomes so."""
        last = await look()
        if self.reference:

            async def again() -> bool:
                nonlocal last
                last = await look()
                return last == expected

            try:
                await eventually(again, what)
            except Unmet:
                pass
        equal(last, expected, what)

    async def close(self) -> None:
        """Ends what is still open; checks and replays every history that the case has made."""
        histories = await self._histories()
        for found in histories:
            self.violations += map(
                str, check_run(Run(found.workflow_id, found.run_id, list(found.events)), self.grain_ms)
            )
        known = [h for h in histories if self._is_defined(h)]
        if known:
            await self._replay(known)

    async def _histories(self) -> list[WorkflowHistory]:
        """Of the runs that were remembered, of those that continue them, and of their children; all are ended."""
        by_run: dict[str, WorkflowHistory] = {}
        waiting = list(self._runs)
        # It grows meanwhile.
        for workflow_id, run_id in waiting:
            if run_id in by_run:
                continue
            await self._end(workflow_id)
            async for found in history.chain(self.client, workflow_id, run_id):
                by_run[found.run_id] = found
                waiting += history.children(found)
        return list(by_run.values())

    async def _end(self, workflow_id: str) -> None:
        try:
            await self.client.get_workflow_handle(workflow_id).terminate(reason="the case is over")
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise

    def _is_defined(self, found: WorkflowHistory) -> bool:
        """A run that no worker ever completed a task of has no definition and nothing to replay."""
        if not history.events_named(found, "WorkflowTaskCompleted"):
            return False
        started = found.events[0].workflow_execution_started_event_attributes
        if started.workflow_type.name in self._definitions or None in self._definitions:
            return True
        self.unreplayable.append(f"{found.workflow_id}: no definition of {started.workflow_type.name}")
        return False

    async def _replay(self, histories: list[WorkflowHistory]) -> None:
        options = {"workflow_runner": RUNNER, "debug_mode": False} | self.replay_options

        async def each() -> AsyncIterator[WorkflowHistory]:
            for found in histories:
                yield found

        replayer = Replayer(workflows=list(self._definitions.values()), **options)
        results = await replayer.replay_workflows(each(), raise_on_replay_failure=False)
        self.replayed += len(histories)
        self.replayed_children += sum(map(history.is_child, histories))
        failed = {h.run_id: h.workflow_id for h in histories if h.run_id in results.replay_failures}
        self.unreplayable += [f"{name}: {results.replay_failures[run]!r}" for run, name in failed.items()]
