"""Activities that are completed from outside, by their token or their id."""

from temporalio.client import AsyncActivityCancelledError, WorkflowFailureError
from temporalio.exceptions import (
    ApplicationError,
)
from temporalio.service import RPCStatusCode

import expect
from activity_calls import Call, CallActivity, CancelActivity, serving, until_seen
from case import case
from history import events_named
from world import World


@case()
async def is_completed_by_token(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("complete_later", heartbeat_s=30))
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
        call = Call("complete_later", heartbeat_s=30)
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
        first, second = await until_seen(handle.id, 2)
        late = world.client.get_async_activity_handle(task_token=first.task_token)
        await expect.refused(RPCStatusCode.NOT_FOUND, late.complete("late"))
        await world.client.get_async_activity_handle(task_token=second.task_token).complete("in time")
        expect.equal(await handle.result(), "in time", "the result")
    expect.equal(
        events_named(await world.history(handle), "ActivityTaskStarted")[0].attempt, 2, "its attempt"
    )
