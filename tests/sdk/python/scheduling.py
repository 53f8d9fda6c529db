"""Schedules that end with their case, the workflow that they start, and what is waited for in their descriptions."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
)
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

import expect
import patience
from world import NAMESPACE, World

WORD = SearchAttributeKey.for_keyword("SdkTestKeyword")
NUMBER = SearchAttributeKey.for_int("SdkTestInt")
UTC = timezone.utc
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
YEAR = 365 * DAY
# What a calendar without a choice has: midnight.
MIDNIGHT = ScheduleCalendarSpec()


def attributes(word: str, number: int | None = None) -> TypedSearchAttributes:
    pairs: list[SearchAttributePair[Any]] = [SearchAttributePair(WORD, word)]
    return TypedSearchAttributes(pairs + ([SearchAttributePair(NUMBER, number)] if number is not None else []))


def at(hour: int, minute: int = 0, day: int = 1, month: int = 1, year: int = 2031, second: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


async def matching(world: World, id: str, after: datetime, until: datetime) -> list[datetime]:
    """The times of a schedule between these."""
    request = ListScheduleMatchingTimesRequest(namespace=NAMESPACE, schedule_id=id)
    request.start_time.FromDatetime(after)
    request.end_time.FromDatetime(until)
    answer = await world.client.workflow_service.list_schedule_matching_times(request)
    return [each.ToDatetime(UTC) for each in answer.start_time]


@workflow.defn(name="Scheduled")
class Scheduled:
    """Answers how many runs before it have completed, fails, or waits until it is told to finish."""

    def __init__(self) -> None:
        self.finished = False

    @workflow.run
    async def run(self, script: str) -> int:
        count = workflow.get_last_completion_result(int) or 0
        if script == "fail":
            raise ApplicationError("out of paper", non_retryable=True)
        if script == "wait":
            await workflow.wait_condition(lambda: self.finished)
        if script == "wait, then go on":
            await workflow.wait_condition(lambda: self.finished)
            workflow.continue_as_new("wait")
        return count + (100 if workflow.get_last_failure() else 1)

    @workflow.signal
    def finish(self) -> None:
        self.finished = True


def action(world: World, script: str = "count", **options: Any) -> ScheduleActionStartWorkflow:
    options.setdefault("task_queue", world.queue)
    options.setdefault("id", world.id())
    return ScheduleActionStartWorkflow(Scheduled.run, script, **options)


def plan(
    world: World,
    script: str = "count",
    *,
    spec: ScheduleSpec | None = None,
    overlap: ScheduleOverlapPolicy = ScheduleOverlapPolicy.SKIP,
    paused: bool = False,
    **options: Any,
) -> Schedule:
    """A schedule that acts when it is told to, unless its spec says when."""
    return Schedule(
        action=options.pop("action", None) or action(world, script),
        spec=spec or ScheduleSpec(),
        policy=options.pop("policy", None) or SchedulePolicy(overlap=overlap),
        state=options.pop("state", None) or ScheduleState(paused=paused),
    )


@asynccontextmanager
async def scheduled(world: World, schedule: Schedule, **options: Any) -> AsyncIterator[ScheduleHandle]:
    """A schedule that is deleted with the block. Its runs are replayed when the case is over."""
    handle = await world.client.create_schedule(options.pop("id", world.id("schedule")), schedule, **options)
    try:
        yield handle
    finally:
        try:
            for result in (await handle.describe()).info.recent_actions:
                world.remember(result.action.workflow_id, result.action.first_execution_run_id)
            await handle.delete()
        except RPCError as error:
            # Some cases delete their own.
            if error.status != RPCStatusCode.NOT_FOUND:
                raise


async def until(
    handle: ScheduleHandle, what: str, so: Callable[[ScheduleDescription], Any]
) -> ScheduleDescription:
    """The first description of which this is so."""

    async def look() -> ScheduleDescription | None:
        told = await handle.describe()
        return told if so(told) else None

    try:
        return await expect.eventually(look, what)
    except expect.Unmet as unmet:
        info = (await handle.describe()).raw_description.info
        raise expect.Unmet(f"{unmet}: {str(info)}") from unmet


async def until_acted(handle: ScheduleHandle, count: int) -> ScheduleDescription:
    """The description once there were so many actions; there are no more."""
    told = await until(handle, f"{count} actions", lambda d: d.info.num_actions >= count)
    expect.equal(told.info.num_actions, count, "actions")
    return told


async def until_ended(handle: ScheduleHandle, *statuses: str) -> ScheduleDescription:
    """The description once the recent actions have these statuses, the oldest first."""
    return await until(handle, f"runs that are {statuses}", lambda d: ends(d) == list(statuses))


def ends(told: ScheduleDescription) -> list[str]:
    """The statuses of the recent actions, the oldest first."""
    kinds = [each.start_workflow_status for each in told.raw_description.info.recent_actions]
    return [WorkflowExecutionStatus.Name(kind).removeprefix("WORKFLOW_EXECUTION_STATUS_") for kind in kinds]


def ran(told: ScheduleDescription) -> list[str]:
    """The workflow ids of the recent actions, the oldest first."""
    return [each.action.workflow_id for each in told.info.recent_actions]


def running(told: ScheduleDescription) -> list[str]:
    """The workflow ids of the runs that have not ended."""
    return [each.workflow_id for each in told.info.running_actions]


async def trigger(
    world: World, handle: ScheduleHandle, overlap: ScheduleOverlapPolicy | None = None
) -> ScheduleDescription:
    """Triggers an action; what is described next. At a Temporal server the ids of two in one second would be the same."""
    if world.reference:
        first = int(datetime.now(timezone.utc).timestamp())

        async def is_next() -> bool:
            return int(datetime.now(timezone.utc).timestamp()) > first

        await patience.until("the next second", is_next)
    await handle.trigger(overlap=overlap)
    return await handle.describe()
