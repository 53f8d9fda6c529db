"""What Everlog refuses for now, and how: named, at once, and without a trace. Not for a reference server."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import WorkflowTaskFailedCause as Cause
from temporalio.client import Schedule, ScheduleActionStartWorkflow, ScheduleSpec, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.service import RPCStatusCode

import expect
from case import case
from history import events_named
from world import World


@workflow.defn
class Idle:
    """Waits until it is told to stop."""

    def __init__(self) -> None:
        self.stopped = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self.stopped)

    @workflow.signal
    def stop(self) -> None:
        self.stopped = True

    @workflow.update
    def change(self) -> None: ...


@workflow.defn
class Reach:
    """Reaches for another workflow."""

    @workflow.run
    async def run(self, how: str, other: str) -> Any:
        if how == "child":
            return await workflow.execute_child_workflow(Idle.run, id=other)
        handle = workflow.get_external_workflow_handle(other)
        if how == "signal":
            return await handle.signal("stop")
        return await handle.cancel()


@case(everlog_only=True)
async def starts_with_a_cron_schedule(world: World) -> None:
    for options in [{}, {"start_signal": "stop"}]:
        start = world.start(Idle.run, cron_schedule="* * * * *", **options)
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, start)
        expect.that("cron_schedule" in error.message, "the field is named", error.message)


@case(everlog_only=True)
async def starts_with_a_retry_policy(world: World) -> None:
    for options in [{}, {"start_signal": "stop"}]:
        start = world.start(Idle.run, retry_policy=RetryPolicy(maximum_attempts=2), **options)
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, start)
        expect.that("retry_policy" in error.message, "the field is named", error.message)


async def expect_task_failure(world: World, how: str, cause: Cause.ValueType) -> None:
    async with world.worker(Reach, Idle):
        other = await world.start(Idle.run)
        target = other.id if how != "child" else world.id("child")
        handle: WorkflowHandle[Any, Any] = await world.start(
            Reach.run, how, target, task_timeout=timedelta(seconds=2)
        )
        history = await world.until_event(handle, "WorkflowTaskFailed")
        failed = events_named(history, "WorkflowTaskFailed")[0]
        expect.equal(Cause.Name(failed.cause), Cause.Name(cause), "the cause")
        expect.that(bool(failed.failure.message), "a message says more")
        if how == "child":
            unknown = world.client.get_workflow_handle(target)
            await expect.refused(RPCStatusCode.NOT_FOUND, unknown.describe())


@case(everlog_only=True)
async def children(world: World) -> None:
    await expect_task_failure(
        world, "child", Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES
    )


@case(everlog_only=True)
async def signals_to_another_workflow(world: World) -> None:
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES
    await expect_task_failure(world, "signal", cause)


@case(everlog_only=True)
async def cancels_of_another_workflow(world: World) -> None:
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES
    await expect_task_failure(world, "cancel", cause)


@case(everlog_only=True)
async def updates(world: World) -> None:
    async with world.worker(Idle):
        handle = await world.start(Idle.run)
        await expect.refused(RPCStatusCode.UNIMPLEMENTED, handle.execute_update(Idle.change))


@case(everlog_only=True)
async def schedules_and_lists(world: World) -> None:
    action = ScheduleActionStartWorkflow(Idle.run, id=world.id(), task_queue=world.queue)
    creation = world.client.create_schedule(
        world.id("schedule"), Schedule(action=action, spec=ScheduleSpec())
    )
    await expect.refused(RPCStatusCode.UNIMPLEMENTED, creation)

    async def listed() -> list[Any]:
        return [found async for found in world.client.list_workflows("")]

    await expect.refused(RPCStatusCode.UNIMPLEMENTED, listed())
