"""Activities that are completed from outside, by their token or their id."""

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError, WorkflowFailureError
from temporalio.exceptions import (
    ApplicationError,
)
from temporalio.service import RPCError, RPCStatusCode

import expect
from activity_calls import SEEN, Call, CallActivity, CancelActivity, serving, until_seen
from case import case
from history import events_named
from world import World


@case()
async def is_completed_by_token(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("complete_later", heartbeat_s=100))
        (info,) = await until_seen(handle.id)
        outside = world.client.get_async_activity_handle(task_token=info.task_token)
        await outside.heartbeat("half")
        await outside.complete("by token")
        expect.equal(await handle.result(), "by token", "the result from outside")
        await expect.refused(RPCStatusCode.NOT_FOUND, outside.complete("twice"))


@case()
async def is_completed_by_id(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("complete_later"))
        (info,) = await until_seen(handle.id)
        outside = world.client.get_async_activity_handle(
            workflow_id=handle.id, run_id=handle.result_run_id, activity_id=info.activity_id
        )
        await outside.complete("by id")
        expect.equal(await handle.result(), "by id", "the result from outside")


@case()
async def is_failed_from_outside(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("complete_later", attempts=1))
        (info,) = await until_seen(handle.id)
        outside = world.client.get_async_activity_handle(task_token=info.task_token)
        await outside.fail(ApplicationError("from outside", type="Outside"))
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.equal(error.cause.cause.type, "Outside", "the failure from outside")


@case()
async def learns_of_its_cancellation_outside(world: World) -> None:
    async with serving(world):
        call = Call("complete_later", heartbeat_s=100)
        handle = await world.start(CancelActivity.run, call, "WAIT_CANCELLATION_COMPLETED")
        (info,) = await until_seen(handle.id)
        outside = world.client.get_async_activity_handle(task_token=info.task_token)
        await outside.heartbeat()
        await handle.signal(CancelActivity.cancel)
        await world.until_event(handle, "ActivityTaskCancelRequested")
        await expect.fails(AsyncActivityCancelledError, outside.heartbeat())
        await outside.report_cancellation("gave up")
        expect.that((await handle.result()).startswith("CancelledError"), "the workflow learns of it")


@case()
async def result_of_a_timed_out_attempt_is_refused(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("complete_later", start_to_close_s=1))
        first, *_ = await until_seen(handle.id)
        await later_attempt(handle.id, first.attempt)
        late = world.client.get_async_activity_handle(task_token=first.task_token)
        await expect.refused(RPCStatusCode.NOT_FOUND, late.complete("late"))
        attempt = await complete_in_time(world, handle.id)
        expect.equal(await handle.result(), "in time", "the result")
    (started,) = events_named(await world.history(handle), "ActivityTaskStarted")
    expect.equal(started.attempt, attempt, "its attempt")


async def complete_in_time(world: World, workflow_id: str) -> int:
    """Completes an attempt after the first, the next one where this machine took longer than an attempt has: which one it was."""
    info = await later_attempt(workflow_id, 1)
    while True:
        try:
            await world.client.get_async_activity_handle(task_token=info.task_token).complete("in time")
            return info.attempt
        except RPCError as error:
            expect.equal(error.status, RPCStatusCode.NOT_FOUND, "the refusal of a result")
        info = await later_attempt(workflow_id, info.attempt)


async def later_attempt(workflow_id: str, attempt: int) -> activity.Info:
    async def probe() -> activity.Info | None:
        return next((info for info in reversed(SEEN[workflow_id]) if info.attempt > attempt), None)

    return await expect.eventually(probe, f"an attempt after {attempt}")
