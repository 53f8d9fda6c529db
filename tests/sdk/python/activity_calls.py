"""What the activity cases call: activities, the workflows that call them, and what was seen by them."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
)
from temporalio.workflow import ActivityCancellationType

import expect
from world import World


@dataclass
class Call:
    """One activity to be called; durations in seconds, 0 for none."""

    activity: str
    arg: Any = None
    start_to_close_s: float = 100
    schedule_to_close_s: float = 0
    schedule_to_start_s: float = 0
    heartbeat_s: float = 0
    queue: str = ""
    first_interval_s: float = 0.1
    attempts: int = 0
    final_types: list[str] = field(default_factory=list)

    def options(self) -> dict[str, Any]:
        def duration(seconds: float) -> timedelta | None:
            return timedelta(seconds=seconds) if seconds else None

        return {
            "start_to_close_timeout": duration(self.start_to_close_s),
            "schedule_to_close_timeout": duration(self.schedule_to_close_s),
            "schedule_to_start_timeout": duration(self.schedule_to_start_s),
            "heartbeat_timeout": duration(self.heartbeat_s),
            "task_queue": self.queue or None,
            "retry_policy": RetryPolicy(
                initial_interval=timedelta(seconds=self.first_interval_s),
                backoff_coefficient=1,
                maximum_attempts=self.attempts,
                non_retryable_error_types=self.final_types,
            ),
        }


@workflow.defn
class CallActivity:
    @workflow.run
    async def run(self, call: Call) -> Any:
        return await workflow.execute_activity(call.activity, call.arg, **call.options())


@workflow.defn
class CancelActivity:
    """Starts an activity, cancels it when told to, and says how it ended."""

    def __init__(self) -> None:
        self.told = False

    @workflow.run
    async def run(self, call: Call, how: str) -> str:
        started = workflow.start_activity(
            call.activity, call.arg, cancellation_type=ActivityCancellationType[how], **call.options()
        )
        await workflow.wait_condition(lambda: self.told)
        started.cancel()
        try:
            return f"result {await started}"
        except ActivityError as error:
            is_over = "over" in SEEN[workflow.info().workflow_id]
            return f"{type(error.cause).__name__} {'late' if is_over else 'early'}"

    @workflow.signal
    def cancel(self) -> None:
        self.told = True


@workflow.defn
class CallMany:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        calls = [
            workflow.execute_activity(double, n, start_to_close_timeout=timedelta(seconds=20))
            for n in range(count)
        ]
        return list(await asyncio.gather(*calls))


# What activities saw, by workflow id: they run in the tests' own process.
SEEN: defaultdict[str, list[Any]] = defaultdict(list)


def seen() -> list[Any]:
    return SEEN[activity.info().workflow_id]


@activity.defn
async def double(n: int) -> int:
    return 2 * n


@activity.defn
async def succeed_at(attempt: int) -> int:
    seen().append((activity.info().attempt, time.monotonic()))
    if activity.info().attempt < attempt:
        raise ApplicationError(
            f"attempt {activity.info().attempt}", {"at": activity.info().attempt}, type="NotYet"
        )
    return activity.info().attempt


@activity.defn
async def fail_as(type_name: str) -> None:
    seen().append(activity.info().attempt)
    non_retryable = type_name == "Marked"
    raise ApplicationError("it failed", "detail", 7, type=type_name, non_retryable=non_retryable)


@activity.defn
async def ask_for_delay(delay_s: float) -> None:
    seen().append(time.monotonic())
    if activity.info().attempt == 1:
        raise ApplicationError("later, please", next_retry_delay=timedelta(seconds=delay_s))


@activity.defn
async def report_and_stall(steps: int) -> list[int]:
    """Reports its steps and stalls; answers what an attempt before it reported, as soon as one has."""
    if activity.info().heartbeat_details:
        return list(activity.info().heartbeat_details)
    for step in range(steps):
        activity.heartbeat(step, steps)
    await asyncio.Event().wait()
    return []


@activity.defn
async def stall(_: Any) -> None:
    seen().append(activity.info().attempt)
    await asyncio.Event().wait()


@activity.defn
async def fail_then_stall(_: Any) -> None:
    if activity.info().attempt == 1:
        raise ApplicationError("not at first")
    await asyncio.Event().wait()


@activity.defn
async def run_until_cancelled(beat_s: float) -> str:
    seen().append("begun")
    try:
        while True:
            activity.heartbeat("alive")
            await asyncio.sleep(beat_s)
    except asyncio.CancelledError:
        await asyncio.sleep(0.3)
        seen().append("over")
        raise


@activity.defn
async def ignore_cancellation(beat_s: float) -> str:
    seen().append("begun")
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(beat_s)
    except asyncio.CancelledError:
        return "finished all the same"


@activity.defn
async def complete_later(_: Any) -> str:
    seen().append(activity.info())
    activity.raise_complete_async()


ALL = [
    double,
    succeed_at,
    fail_as,
    ask_for_delay,
    report_and_stall,
    stall,
    fail_then_stall,
    run_until_cancelled,
    ignore_cancellation,
    complete_later,
]


def serving(world: World, **options: Any):
    # Heartbeats tell of a cancellation however long their timeout is.
    options.setdefault("max_heartbeat_throttle_interval", timedelta(milliseconds=100))
    return world.worker(CallActivity, CancelActivity, CallMany, activities=ALL, **options)


async def until_seen(workflow_id: str, count: int = 1) -> list[Any]:
    async def probe() -> list[Any] | None:
        return SEEN[workflow_id] if len(SEEN[workflow_id]) >= count else None

    return await expect.eventually(probe, f"{count} things seen by an activity of {workflow_id}")
