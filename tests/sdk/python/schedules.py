"""Workflows of a cron schedule: one run after another, with what the one before left."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import ContinueAsNewInitiator, RetryState
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.service import RPCStatusCode

import expect
import history as histories
from case import case
from history import events_named, is_closed, shape
from world import World

CRON = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE


@workflow.defn
class Tick:
    """Counts the runs before it; fails when it comes to a number."""

    @workflow.run
    async def run(self, fails_at: int) -> int:
        count = workflow.get_last_completion_result(int) or 0
        failure = workflow.get_last_failure()
        if failure is None and count == fails_at:
            raise ApplicationError(f"run {count}")
        return count + (100 if failure else 1)


@workflow.defn
class Wait:
    """Waits until it is canceled, or until its time is over."""

    @workflow.run
    async def run(self) -> None:
        await asyncio.sleep(3_600)


async def closed_runs(world: World, handle: Any, count: int) -> list[Any]:
    """The first runs of the chain, as soon as so many are over."""

    async def probe() -> list[Any] | None:
        runs = [run async for run in histories.chain(world.client, handle.id, handle.result_run_id)]
        return runs if sum(map(is_closed, runs)) >= count else None

    return await expect.eventually(probe, f"{count} runs that are over")


def started(run: Any) -> Any:
    return run.events[0].workflow_execution_started_event_attributes


@case()
async def runs_follow_one_another(world: World) -> None:
    async with world.worker(Tick):
        handle = await world.start(Tick.run, 2, cron_schedule="@every 1s")
        described = await world.describe(handle.id)
        info = described.workflow_execution_info
        waits_ms = info.execution_time.ToMilliseconds() - info.start_time.ToMilliseconds()
        expect.that(waits_ms > 0, "its first task is to wait", waits_ms)
        runs = await closed_runs(world, handle, 4)
        await world.client.get_workflow_handle(handle.id).terminate()
    for run, nth in zip(runs, range(4)):
        began = started(run)
        expect.equal((began.cron_schedule, began.initiator, began.attempt), ("@every 1s", CRON, 1), f"run {nth}")
        expect.equal(began.first_execution_run_id, handle.first_execution_run_id, "the first run")
        expect.that(began.first_workflow_task_backoff.ToMilliseconds() >= 0, "it waits")
    expect.equal(started(runs[0]).continued_execution_run_id, "", "nothing before the first")
    for before, after in zip(runs, runs[1:]):
        expect.equal(started(after).continued_execution_run_id, before.run_id, "the run before")
    results = [events_named(run, "WorkflowExecutionCompleted") for run in runs[:4]]
    texts = [found[0].result.payloads[0].data.decode() if found else "failed" for found in results]
    expect.equal(texts, ["1", "2", "failed", "102"], "each has the last result, and the last failure")
    failed = events_named(runs[2], "WorkflowExecutionFailed")[0]
    expect.equal(failed.retry_state, RetryState.RETRY_STATE_RETRY_POLICY_NOT_SET, "why it is not tried again")
    expect.equal(failed.new_execution_run_id, runs[3].run_id, "the next run")
    expect.equal(started(runs[3]).last_completion_result.payloads[0].data, b"2", "the last result")
    expect.equal(started(runs[3]).continued_failure.message, "run 2", "the failure")


@case()
async def a_result_is_that_of_the_run_that_ends_the_chain(world: World) -> None:
    async with world.worker(Wait):
        handle = await world.start(Wait.run, cron_schedule="@every 1s", run_timeout=timedelta(seconds=1))
        runs = await closed_runs(world, handle, 2)
        expect.equal(shape(runs[0])[-1], "WorkflowExecutionTimedOut", "the end of the first run")
        expect.equal(started(runs[1]).continued_failure.message, "workflow timeout", "what went wrong")
        current = world.client.get_workflow_handle(handle.id)
        result = asyncio.create_task(handle.result())

        async def is_over() -> bool:
            # A run whose time is over before its worker hears of the cancel is followed by another.
            await current.cancel()
            return result.done()

        await expect.eventually(is_over, "a run is canceled")
        error = await expect.fails(WorkflowFailureError, result)
        expect.that(isinstance(error.cause, CancelledError), "how it ends", error.cause)
        expect.equal((await current.describe()).status, WorkflowExecutionStatus.CANCELED, "nothing follows")


@case()
async def a_cancel_ends_the_wait_for_a_moment(world: World) -> None:
    async with world.worker(Wait):
        handle = await world.start(Wait.run, cron_schedule="0 0 29 2 *")
        expect.same_lines(await world.shape(handle), ["WorkflowExecutionStarted"], "it waits")
        await handle.cancel()
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(isinstance(error.cause, CancelledError), "its kind", error.cause)


@case()
async def schedules_are_read_as_everywhere(world: World) -> None:
    good = [
        "* * * * *",
        "0 12 * * MON-FRI",
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "TZ=UTC @daily",
        "@every 1h30m",
        "*/5 0-6,22 1 JAN ?",
    ]
    for schedule in good:
        handle = await world.start(Tick.run, 0, cron_schedule=schedule)
        began = started(await world.history(handle))
        expect.equal(began.cron_schedule, schedule, "the schedule")
        expect.that(began.first_workflow_task_backoff.ToMilliseconds() % 1_000 == 0, "whole seconds", schedule)
    for schedule in ["now and then", "* * * * * *", "60 * * * *", "@never", "CRON_TZ=Nowhere 0 0 * * *"]:
        error = await expect.refused(
            RPCStatusCode.INVALID_ARGUMENT, world.start(Tick.run, 0, cron_schedule=schedule)
        )
        expect.equal(error.message, "invalid CronSchedule.", schedule)
    error = await expect.refused(
        RPCStatusCode.INVALID_ARGUMENT, world.start(Tick.run, 0, cron_schedule="0 0 31 2 *")
    )
    why = "invalid CronSchedule, no time can be found to satisfy the schedule"
    expect.equal(error.message, why, "a day that never comes")
    options = {"cron_schedule": "@daily", "start_delay": timedelta(seconds=1)}
    error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, world.start(Tick.run, 0, **options))
    why = "CronSchedule and WorkflowStartDelay may not be used together."
    expect.equal(error.message, why, "a schedule and a delay")
