"""Activities that are cancelled: while they run, before they start, between attempts."""

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import (
    CancelledError,
)

import expect
from activity_calls import Call, CallActivity, CancelActivity, serving, until_seen
from case import case
from history import events_named, lines
from world import TASK_TIMEOUT, World


@case()
async def waits_for_the_cancelled_attempt(world: World) -> None:
    async with serving(world):
        call = Call("run_until_cancelled", 0.05, heartbeat_s=60)
        handle = await world.start(CancelActivity.run, call, "WAIT_CANCELLATION_COMPLETED")
        await until_seen(handle.id)
        await handle.signal(CancelActivity.cancel)
        expect.equal(await handle.result(), "CancelledError late", "after the activity's own end")
    names = await world.shape(handle)
    expect.that(
        "ActivityTaskCancelRequested" in names and "ActivityTaskCanceled" in names, "both events", names
    )
    canceled = events_named(await world.history(handle), "ActivityTaskCanceled")[0]
    expect.that(canceled.latest_cancel_requested_event_id > 0, "the event names the request")


@case()
async def does_not_wait_when_it_only_tries(world: World) -> None:
    async with serving(world):
        call = Call("run_until_cancelled", 0.05, heartbeat_s=60)
        handle = await world.start(CancelActivity.run, call, "TRY_CANCEL")
        await until_seen(handle.id)
        await handle.signal(CancelActivity.cancel)
        expect.equal(await handle.result(), "CancelledError early", "before the activity's own end")


@case()
async def is_left_alone_when_abandoned(world: World) -> None:
    async with serving(world):
        handle = await world.start(CancelActivity.run, Call("stall"), "ABANDON")
        await until_seen(handle.id)
        await handle.signal(CancelActivity.cancel)
        expect.that((await handle.result()).startswith("CancelledError"), "the workflow does not wait")
    names = await world.shape(handle)
    expect.that("ActivityTaskCancelRequested" not in names, "nothing is requested", names)


@case()
async def may_ignore_its_cancellation(world: World) -> None:
    async with serving(world):
        call = Call("ignore_cancellation", 0.05, heartbeat_s=60)
        handle = await world.start(CancelActivity.run, call, "WAIT_CANCELLATION_COMPLETED")
        await until_seen(handle.id)
        await handle.signal(CancelActivity.cancel)
        expect.equal(await handle.result(), "result finished all the same", "its result counts")


@case()
async def is_cancelled_at_once_before_it_starts(world: World) -> None:
    async with serving(world):
        call = Call("double", 1, queue=world.id("nobody"))
        options = {"task_timeout": TASK_TIMEOUT}
        handle = await world.start(CancelActivity.run, call, "WAIT_CANCELLATION_COMPLETED", **options)
        await world.until_event(handle, "ActivityTaskScheduled")
        await handle.signal(CancelActivity.cancel)
        expect.equal(await handle.result(), "CancelledError early", "no worker was needed")
    expected = lines(
        """WorkflowTaskCompleted ActivityTaskCancelRequested ActivityTaskCanceled
           WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionCompleted"""
    )
    expect.same_lines((await world.shape(handle))[-7:], expected, "the end of the history")


@case()
async def is_cancelled_at_once_between_attempts(world: World) -> None:
    async with serving(world):
        call = Call("fail_as", "Plain", first_interval_s=3600)
        handle = await world.start(CancelActivity.run, call, "WAIT_CANCELLATION_COMPLETED")
        await until_seen(handle.id)

        async def backs_off() -> bool:
            pending = (await world.describe(handle.id)).pending_activities
            return bool(pending) and pending[0].attempt == 2

        await expect.eventually(backs_off, "the second attempt waits")
        await handle.signal(CancelActivity.cancel)
        expect.that((await handle.result()).startswith("CancelledError"), "not after its backoff of an hour")


@case()
async def is_cancelled_with_its_workflow(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("run_until_cancelled", 0.05, heartbeat_s=60))
        await until_seen(handle.id)
        await handle.cancel()
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(isinstance(error.cause, CancelledError), "the workflow is cancelled", error.cause)
