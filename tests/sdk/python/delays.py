"""Start delays: what ends them, and what does not."""

import time
from datetime import timedelta

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import (
    CancelledError,
)

import expect
from acts import Act, Plan
from case import case
from history import lines, shape
from world import TASK_TIMEOUT, World


@case()
async def a_start_delay_holds_back_the_first_task(world: World) -> None:
    async with world.worker(Act):
        longer = await world.start(Act.run, Plan(), start_delay=timedelta(hours=1))
        options = {"start_delay": timedelta(seconds=2), "task_timeout": TASK_TIMEOUT}
        begun = time.monotonic()
        handle = await world.start(Act.run, Plan(), **options)
        await handle.result()
        expect.same_lines(
            await world.shape(longer), ["WorkflowExecutionStarted"], "the history during the delay"
        )
        expect.that(time.monotonic() - begun >= 1.95, "two seconds have passed")
    history = await world.history(handle)
    expect.equal(
        history.events[0].workflow_execution_started_event_attributes.first_workflow_task_backoff.seconds,
        2,
        "backoff",
    )
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           WorkflowExecutionCompleted"""
    )
    expect.same_lines(shape(history), expected, "the history")


@case()
async def a_signal_does_not_end_a_start_delay(world: World) -> None:
    async with world.worker(Act):
        longer = await world.start(Act.run, Plan("wait"), start_delay=timedelta(hours=1))
        await longer.signal(Act.proceed)
        begun = time.monotonic()
        handle = await world.start(Act.run, Plan("wait"), start_delay=timedelta(seconds=1))
        await handle.signal(Act.proceed)
        await handle.result()
        expect.that(time.monotonic() - begun >= 0.95, "a second has passed")
        expect.same_lines(
            await world.shape(longer),
            lines("WorkflowExecutionStarted WorkflowExecutionSignaled"),
            "still delayed",
        )


@case()
async def a_signal_with_start_ends_a_start_delay(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("wait"), start_delay=timedelta(hours=1))
        again = await world.start(Act.run, Plan("wait"), id=handle.id, start_signal="proceed")
        expect.equal(again.result_run_id, handle.result_run_id, "the same run")
        await handle.result()
    expected = lines(
        "WorkflowExecutionStarted WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted"
    )
    expect.same_lines((await world.shape(handle))[:4], expected, "the history")


@case()
async def a_signal_with_start_may_be_delayed(world: World) -> None:
    async with world.worker(Act):
        begun = time.monotonic()
        options = {"start_signal": "proceed", "start_delay": timedelta(seconds=1)}
        handle = await world.start(Act.run, Plan("wait", 3), **options)
        expect.equal(await handle.result(), 3, "the result")
        expect.that(time.monotonic() - begun >= 0.95, "a second has passed")


@case()
async def a_cancel_ends_a_start_delay(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("wait"), start_delay=timedelta(hours=1))
        await handle.cancel()
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(isinstance(error.cause, CancelledError), "its kind", error.cause)
    expected = lines("WorkflowExecutionStarted WorkflowExecutionCancelRequested WorkflowTaskScheduled")
    expect.same_lines((await world.shape(handle))[:3], expected, "the history")
