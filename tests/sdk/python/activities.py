"""Activities: retries, heartbeats, the four timeouts."""

import asyncio
import time
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

import expect
import patience
from activity_calls import ALL, SEEN, Call, CallActivity, CallMany, serving
from case import case
from history import event_named, events_named, shape
from world import World


async def failure_of(world: World, call: Call) -> tuple[Any, ActivityError]:
    handle = await world.start(CallActivity.run, call)
    error = await expect.fails(WorkflowFailureError, handle.result())
    expect.that(isinstance(error.cause, ActivityError), "an activity error is the cause", error.cause)
    return handle, error.cause


async def attempts(world: World, handle: WorkflowHandle[Any, Any]) -> int:
    """How often the activity was begun, by the one event of that."""
    started = events_named(await world.history(handle), "ActivityTaskStarted")
    return started[0].attempt if started else 0


def expect_timeout(error: ActivityError, kind: TimeoutType, state: RetryState) -> None:
    expect.that(isinstance(error.cause, TimeoutError), "a timeout is the cause", error.cause)
    expect.equal(error.cause.type, kind, "the timeout that struck")
    expect.equal(error.retry_state, state, "why there was no other attempt")


@case()
async def is_retried_until_it_succeeds(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("succeed_at", 3))
        expect.equal(await handle.result(), 3, "the result of the third attempt")
    history = await world.history(handle)
    expect.equal([attempt for attempt, _ in SEEN[handle.id]], [1, 2, 3], "the attempts")
    (started,) = events_named(history, "ActivityTaskStarted")
    expect.equal(started.attempt, 3, "the attempt of the one started event")
    expect.equal(started.last_failure.message, "attempt 2", "its last failure")
    expect.equal(started.last_failure.application_failure_info.type, "NotYet", "the type of its last failure")


@case()
async def shows_its_attempts_in_describe(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("succeed_at", 99, first_interval_s=0.3))

        async def probe() -> Any:
            described = await world.describe(handle.id)
            pending = described.pending_activities
            return pending[0] if pending and pending[0].attempt >= 2 else None

        pending = await expect.eventually(probe, "a pending activity at its second attempt")
        expect.equal(pending.activity_type.name, "succeed_at", "the type")
        expect.equal(pending.last_failure.application_failure_info.type, "NotYet", "the last failure")
        await handle.terminate()


@case()
async def waits_its_backoff(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("succeed_at", 3, first_interval_s=0.6))
        await handle.result()
    times = [at for _, at in SEEN[handle.id]]
    gaps = [b - a for a, b in zip(times, times[1:])]
    expect.that(min(gaps) >= 0.55, "no attempt comes before its backoff of 0.6 s", gaps)


@case()
async def ends_at_its_last_attempt(world: World) -> None:
    async with serving(world):
        handle, error = await failure_of(world, Call("fail_as", "Plain", attempts=3))
    expect.equal(SEEN[handle.id], [1, 2, 3], "the attempts")
    expect.equal(error.retry_state, RetryState.MAXIMUM_ATTEMPTS_REACHED, "why there was no other")
    expect.that(isinstance(error.cause, ApplicationError), "an application error", error.cause)
    expect.equal((error.cause.type, error.cause.message), ("Plain", "it failed"), "the failure")
    expect.equal(list(error.cause.details), ["detail", 7], "its details")


@case()
async def is_not_retried_for_a_listed_type(world: World) -> None:
    async with serving(world):
        handle, error = await failure_of(world, Call("fail_as", "Listed", final_types=["Other", "Listed"]))
    expect.equal(SEEN[handle.id], [1], "the attempts")
    expect.equal(error.retry_state, RetryState.NON_RETRYABLE_FAILURE, "why there was no other")


@case()
async def is_not_retried_when_the_error_says_so(world: World) -> None:
    async with serving(world):
        handle, error = await failure_of(world, Call("fail_as", "Marked"))
    expect.equal(SEEN[handle.id], [1], "the attempts")
    expect.equal(error.retry_state, RetryState.NON_RETRYABLE_FAILURE, "why there was no other")
    expect.that(error.cause.non_retryable, "the mark comes back to the workflow")


@case()
async def is_retried_after_the_delay_it_asked_for(world: World) -> None:
    async with serving(world):
        shorter = await world.start(CallActivity.run, Call("ask_for_delay", 0.2, first_interval_s=3600))
        longer = await world.start(CallActivity.run, Call("ask_for_delay", 1.5, first_interval_s=0.01))
        await asyncio.gather(shorter.result(), longer.result())
    first, second = SEEN[longer.id]
    expect.that(second - first >= 1.45, "the delay is longer than the policy's", second - first)


@case()
async def passes_heartbeat_details_to_the_next_attempt(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("report_and_stall", 4, heartbeat_s=1))
        # The SDK may hold back the last reports, never the first.
        details = await handle.result()
    expect.that(details[1:] == [4] and details[0] in range(4), "details of an attempt before", details)


@case()
async def start_to_close_timeout(world: World) -> None:
    async with serving(world):
        handle, error = await failure_of(world, Call("stall", start_to_close_s=0.5, attempts=2))
    expect_timeout(error, TimeoutType.START_TO_CLOSE, RetryState.MAXIMUM_ATTEMPTS_REACHED)
    expect.equal(await attempts(world, handle), 2, "it was tried again after the timeout")
    (timed_out,) = events_named(await world.history(handle), "ActivityTaskTimedOut")
    expect.equal(
        timed_out.failure.timeout_failure_info.timeout_type, int(TimeoutType.START_TO_CLOSE), "the event"
    )


@case()
async def heartbeat_timeout(world: World) -> None:
    async with serving(world):
        handle, error = await failure_of(world, Call("stall", heartbeat_s=0.5, attempts=2))
    expect_timeout(error, TimeoutType.HEARTBEAT, RetryState.MAXIMUM_ATTEMPTS_REACHED)
    expect.equal(await attempts(world, handle), 2, "it was tried again after the timeout")


@case()
async def schedule_to_start_timeout(world: World) -> None:
    async with serving(world):
        call = Call("double", 1, schedule_to_start_s=0.5, queue=world.id("nobody"))
        handle, error = await failure_of(world, call)
    expect.that(isinstance(error.cause, TimeoutError), "a timeout is the cause", error.cause)
    expect.equal(error.cause.type, TimeoutType.SCHEDULE_TO_START, "the timeout that struck")
    names = await world.shape(handle)
    expect.that("ActivityTaskStarted" not in names, "it never started", names)


@case()
async def schedule_to_close_timeout_of_the_second_attempt(world: World) -> None:
    async with serving(world):
        for span_s in patience.spans_s("the second attempt begins in time", 3):
            begun = time.monotonic()
            call = Call("fail_then_stall", schedule_to_close_s=span_s, first_interval_s=0.3)
            handle, error = await failure_of(world, call)
            if await attempts(world, handle) == 2:
                break
    expect.that(time.monotonic() - begun >= span_s - 0.05, "not before its time is over")
    expect_timeout(error, TimeoutType.SCHEDULE_TO_CLOSE, RetryState.NON_RETRYABLE_FAILURE)
    expect.equal(error.cause.cause.message, "not at first", "the failure of the first attempt is its cause")


@case()
async def is_not_retried_when_its_time_would_be_over(world: World) -> None:
    async with serving(world):
        # Whoever waited for the timeout would wait for an hour.
        call = Call("fail_as", "Plain", schedule_to_close_s=3600, first_interval_s=7200)
        handle, error = await failure_of(world, call)
    expect.equal(SEEN[handle.id], [1], "the attempts")
    expect.equal(error.retry_state, RetryState.TIMEOUT, "why there was no other attempt")


@case()
async def many_run_beside_each_other(world: World) -> None:
    async with serving(world, disable_eager_activity_execution=True):
        handle = await world.start(CallMany.run, 40)
        expect.equal(await handle.result(), [2 * n for n in range(40)], "each result at its place")
    names = await world.shape(handle)
    expect.equal(names.count("ActivityTaskCompleted"), 40, "one completion each")


@case()
async def runs_on_another_queue(world: World) -> None:
    elsewhere = world.id("elsewhere")
    async with (
        world.worker(CallActivity),
        world.worker(activities=ALL, task_queue=elsewhere),
    ):
        handle = await world.start(CallActivity.run, Call("double", 21, queue=elsewhere))
        expect.equal(await handle.result(), 42, "the result")
    scheduled = events_named(await world.history(handle), "ActivityTaskScheduled")[0]
    expect.equal(scheduled.task_queue.name, elsewhere, "the queue in the history")


@case()
async def is_scheduled_with_timeouts_and_policy_filled_in(world: World) -> None:
    async with serving(world):
        handle = await world.start(CallActivity.run, Call("double", 1, start_to_close_s=70, heartbeat_s=90))
        await handle.result()
        lasting = await world.start(
            CallActivity.run, Call("double", 1, start_to_close_s=0, schedule_to_close_s=60, heartbeat_s=90)
        )
        await lasting.result()
    scheduled = event_named(
        await world.history(handle), "ActivityTaskScheduled"
    ).activity_task_scheduled_event_attributes
    for name in [
        "schedule_to_close_timeout",
        "schedule_to_start_timeout",
        "start_to_close_timeout",
        "retry_policy",
    ]:
        expect.that(scheduled.HasField(name), f"{name} is there")
    expect.equal(scheduled.start_to_close_timeout.seconds, 70, "start-to-close as asked")
    expect.equal(scheduled.heartbeat_timeout.seconds, 70, "a heartbeat timeout is at most start-to-close")
    scheduled = event_named(
        await world.history(lasting), "ActivityTaskScheduled"
    ).activity_task_scheduled_event_attributes
    expect.equal(scheduled.schedule_to_start_timeout.seconds, 60, "schedule-to-start from schedule-to-close")
    expect.equal(scheduled.start_to_close_timeout.seconds, 60, "start-to-close from schedule-to-close")
    expect.equal(shape(await world.history(lasting))[-1], "WorkflowExecutionCompleted", "the end")
