"""Runs that an operator pauses, and gives other options."""

from datetime import timedelta
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import activity, workflow
from temporalio.api.common.v1 import Priority, WorkflowExecution
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsRequest,
    DescribeWorkflowExecutionResponse,
    PauseWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

import expect
from case import case
from history import events_named
from world import NAMESPACE, World

PAUSED = 8


@activity.defn
async def answer() -> str:
    return "answer"


@workflow.defn
class Gather:
    """Counts signals until one says enough; its activity is for another queue."""

    def __init__(self) -> None:
        self.signals: list[str] = []

    @workflow.run
    async def run(self, queue: str) -> tuple[list[str], str]:
        pending = workflow.start_activity(answer, task_queue=queue, start_to_close_timeout=timedelta(hours=1))
        await workflow.wait_condition(lambda: "enough" in self.signals)
        return self.signals, await pending

    @workflow.signal
    def take(self, word: str) -> None:
        self.signals.append(word)

    @workflow.update
    def change(self) -> str:
        return "changed"


class Operator:
    """Calls for one run."""

    def __init__(self, world: World, handle: WorkflowHandle[Any, Any]) -> None:
        self.world = world
        self.service = world.client.workflow_service
        self.workflow_id = handle.id
        self.named = {"namespace": NAMESPACE, "workflow_id": handle.id, "identity": "operator", "reason": "why"}

    async def pause(self, request_id: str = "one") -> None:
        request = PauseWorkflowExecutionRequest(**self.named, request_id=request_id)
        await self.service.pause_workflow_execution(request)

    async def unpause(self) -> None:
        await self.service.unpause_workflow_execution(UnpauseWorkflowExecutionRequest(**self.named))

    async def described(self) -> DescribeWorkflowExecutionResponse:
        return await self.world.describe(self.workflow_id)

    async def counted(self, status: str) -> int:
        query = f"WorkflowId = '{self.workflow_id}' AND ExecutionStatus = '{status}'"
        request = CountWorkflowExecutionsRequest(namespace=NAMESPACE, query=query)
        return (await self.service.count_workflow_executions(request)).count

    async def options(self, options: WorkflowExecutionOptions | None, *paths: str) -> WorkflowExecutionOptions:
        request = UpdateWorkflowExecutionOptionsRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(workflow_id=self.workflow_id),
            workflow_execution_options=options,
            update_mask=FieldMask(paths=list(paths)),
            identity="operator",
        )
        return (await self.service.update_workflow_execution_options(request)).workflow_execution_options


@case(everlog_only=True)
async def a_paused_run_takes_in_what_comes_and_goes_on_later(world: World) -> None:
    queue = world.id("queue")
    async with world.worker(Gather):
        handle = await world.start(Gather.run, queue)
        await world.until_event(handle, "ActivityTaskScheduled")
        operator = Operator(world, handle)
        await operator.pause()
        described = await operator.described()
        info, pause = described.workflow_execution_info, described.workflow_extended_info.pause_info
        expect.equal(info.status, PAUSED, "the status")
        expect.equal((pause.identity, pause.reason), ("operator", "why"), "who has paused it, and why")
        told = info.search_attributes.indexed_fields["TemporalPauseInfo"].data
        expect.equal(told, f'["Workflow:{handle.id}","Reason:why"]'.encode(), "the search attribute")
        expect.equal((await operator.counted("Paused"), await operator.counted("Running")), (1, 0), "the counts")
        await handle.signal(Gather.take, "one")
        await handle.signal(Gather.take, "enough")
        async with world.worker(task_queue=queue, activities=[answer]):

            async def tasks() -> tuple[int, int]:
                history = await world.history(handle)
                scheduled = len(events_named(history, "WorkflowTaskScheduled"))
                return scheduled, len((await operator.described()).pending_activities)

            await world.settles(tasks, (1, 1), "workflow tasks and pending activities while it is paused")
            refused = await expect.fails(RPCError, handle.execute_update(Gather.change))
            expect.equal(refused.status, RPCStatusCode.FAILED_PRECONDITION, "the status of an update")
            await operator.unpause()
            expect.equal(await handle.result(), (["one", "enough"], "answer"), "the result")
        history = await world.history(handle)
        for name in ["WorkflowExecutionPaused", "WorkflowExecutionUnpaused"]:
            expect.equal(len(events_named(history, name)), 1, name)


@case(everlog_only=True)
async def a_task_that_nobody_has_fails_with_the_pause(world: World) -> None:
    handle = await world.start(Gather.run, world.queue)
    operator = Operator(world, handle)
    await operator.pause()
    (failed,) = events_named(await world.history(handle), "WorkflowTaskFailed")
    expect.equal((failed.cause, failed.started_event_id), (39, 0), "the failure of the task")
    await operator.pause()
    again = await expect.fails(RPCError, operator.pause("two"))
    expect.equal(again.status, RPCStatusCode.FAILED_PRECONDITION, "the status of another pause")
    await operator.unpause()
    again = await expect.fails(RPCError, operator.unpause())
    expect.equal(again.status, RPCStatusCode.FAILED_PRECONDITION, "the status of another unpause")
    await operator.pause("three")
    await handle.terminate()
    await expect.refused(RPCStatusCode.NOT_FOUND, operator.pause("four"))


@case(everlog_only=True)
async def the_priority_of_a_run_changes(world: World) -> None:
    handle = await world.start(Gather.run, world.queue)
    operator = Operator(world, handle)
    changed = await operator.options(WorkflowExecutionOptions(priority=Priority(priority_key=1)), "priority")
    expect.equal(changed.priority.priority_key, 1, "the answer")
    key = Priority(fairness_key="tenant")
    changed = await operator.options(WorkflowExecutionOptions(priority=key), "priority.fairness_key")
    expect.equal((changed.priority.priority_key, changed.priority.fairness_key), (1, "tenant"), "a part of it")
    await operator.options(WorkflowExecutionOptions(priority=key), "priority.fairness_key")
    shown = (await operator.described()).workflow_execution_info.priority
    expect.equal((shown.priority_key, shown.fairness_key), (1, "tenant"), "what is shown")
    updated = events_named(await world.history(handle), "WorkflowExecutionOptionsUpdated")
    expect.equal(len(updated), 2, "events: a change that changes nothing is none")
    expect.equal((updated[0].identity, updated[0].priority.priority_key), ("operator", 1), "the first event")
    await expect.refused(
        RPCStatusCode.INVALID_ARGUMENT,
        operator.options(WorkflowExecutionOptions(priority=Priority(priority_key=-1)), "priority"),
    )
    await handle.terminate()


@case()
async def the_version_of_a_run_is_overridden(world: World) -> None:
    async with world.worker(Gather):
        handle = await world.start(Gather.run, world.id("nowhere"))
        await world.until_event(handle, "WorkflowTaskCompleted")
        operator = Operator(world, handle)
        auto = WorkflowExecutionOptions(versioning_override=VersioningOverride(auto_upgrade=True))
        changed = await operator.options(auto, "versioning_override")
        expect.that(changed.versioning_override.auto_upgrade, "the answer", changed)
        changed = await operator.options(WorkflowExecutionOptions(), "versioning_override")
        expect.that(not changed.HasField("versioning_override"), "it is unset", changed)
        set_event, unset_event = events_named(await world.history(handle), "WorkflowExecutionOptionsUpdated")
        expect.that(set_event.versioning_override.auto_upgrade, "the first event", set_event)
        expect.that(unset_event.unset_versioning_override, "the second event", unset_event)
        refusals = [
            operator.options(None, "versioning_override"),
            operator.options(auto, "versioning_override.behavior"),
            operator.options(auto, "nothing"),
        ]
        for refusal in refusals:
            await expect.refused(RPCStatusCode.INVALID_ARGUMENT, refusal)
        await handle.terminate()
        await expect.refused(RPCStatusCode.NOT_FOUND, operator.options(auto, "versioning_override"))
