"""Timers: in order, cancelled, firing while a task runs; that none is early is checked in every history."""

import asyncio
from datetime import timedelta

from temporalio import workflow

import expect
import patience
from case import case
from gate import arrived, open_gate, stand_at_gate, wait_at_gate
from history import events_named, lines, name_of, shape
from world import TASK_TIMEOUT, World


@workflow.defn
class SleepEach:
    """Sleeps these milliseconds beside each other; answers their indexes in the order in which they ended."""

    @workflow.run
    async def run(self, durations_ms: list[int]) -> list[int]:
        order: list[int] = []

        async def one(index: int, duration_ms: int) -> None:
            await workflow.sleep(timedelta(milliseconds=duration_ms))
            order.append(index)

        await asyncio.gather(*(one(i, d) for i, d in enumerate(durations_ms)))
        return order


@workflow.defn
class SleepInTurn:
    """Answers by how many seconds the workflow's clock moved in each sleep."""

    @workflow.run
    async def run(self, durations_ms: list[int]) -> list[float]:
        moved = []
        for duration_ms in durations_ms:
            before = workflow.now()
            await asyncio.sleep(duration_ms / 1000)
            moved.append((workflow.now() - before).total_seconds())
        return moved


@workflow.defn
class GiveUpWaiting:
    """Waits for a signal at most this long."""

    def __init__(self) -> None:
        self.heard = False

    @workflow.run
    async def run(self, patience_ms: int) -> str:
        try:
            await workflow.wait_condition(lambda: self.heard, timeout=timedelta(milliseconds=patience_ms))
        except TimeoutError:
            return "gave up"
        return "heard"

    @workflow.signal
    def hear(self) -> None:
        self.heard = True


@workflow.defn
class LetTimerFireInTask:
    """Starts a timer, and stands in a task of its own while the timer fires on the server."""

    def __init__(self) -> None:
        self.signalled = False

    @workflow.run
    async def run(self, cancel_it: bool, timer_s: float) -> str:
        timer = asyncio.create_task(asyncio.sleep(timer_s))
        await workflow.wait_condition(lambda: self.signalled)
        await wait_at_gate()
        if cancel_it:
            timer.cancel()
            return "cancelled"
        await timer
        return "fired"

    @workflow.signal
    def go(self) -> None:
        self.signalled = True


@case()
async def fires_and_not_too_early(world: World) -> None:
    durations_ms = [50, 1, 333, 1000]
    async with world.worker(SleepInTurn):
        handle = await world.start(SleepInTurn.run, durations_ms)
        moved = await handle.result()
    for duration_ms, seconds in zip(durations_ms, moved):
        expect.that(seconds >= duration_ms / 1000, f"{duration_ms} ms are not shorter", seconds)


@case()
async def sixty_fire_in_the_order_of_their_times(world: World) -> None:
    durations_ms = [200 + 40 * ((7 * n) % 60) for n in range(60)]
    async with world.worker(SleepEach):
        handle = await world.start(SleepEach.run, durations_ms)
        order = await handle.result()
    history = await world.history(handle)
    expected = sorted(range(60), key=lambda n: durations_ms[n])
    expect.equal(order, expected, "the order")
    expect.equal(shape(history).count("TimerFired"), 60, "each fires once")


@case()
async def is_cancelled_by_what_it_waited_for(world: World) -> None:
    async with world.worker(GiveUpWaiting):
        handle = await world.start(GiveUpWaiting.run, 3_600_000, task_timeout=TASK_TIMEOUT)
        await world.until_event(handle, "TimerStarted")
        await handle.signal(GiveUpWaiting.hear)
        expect.equal(await handle.result(), "heard", "the answer")
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           TimerStarted WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted
           WorkflowTaskCompleted TimerCanceled WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")


@case()
async def ends_a_wait(world: World) -> None:
    async with world.worker(GiveUpWaiting):
        handle = await world.start(GiveUpWaiting.run, 300)
        expect.equal(await handle.result(), "gave up", "the answer")


@case()
async def goes_on_without_a_worker(world: World) -> None:
    for span_s in patience.spans_s("the worker is gone before the timer fires", 1.5):
        async with world.worker(SleepInTurn):
            handle = await world.start(SleepInTurn.run, [round(1000 * span_s)])
            await world.until_event(handle, "TimerStarted")
        if "TimerFired" not in await world.shape(handle):
            break
    history = await world.until_event(handle, "TimerFired")
    expect.equal(shape(history)[-2:], ["TimerFired", "WorkflowTaskScheduled"], "it fired with nobody there")
    async with world.worker(SleepInTurn):
        expect.equal(len(await handle.result()), 1, "and the workflow goes on")


async def with_a_timer_that_fires_in_a_task(world: World, cancel_it: bool) -> list[str]:
    for span_s in patience.spans_s("a timer fires in a task, and keeps its time where it is written", 1.5):
        if found := await with_a_timer_of(world, cancel_it, span_s):
            return found


async def with_a_timer_of(world: World, cancel_it: bool, timer_s: float) -> list[str] | None:
    """The shape of the history; nothing where the timer fired before the task or, by its time, after it."""
    async with world.worker(LetTimerFireInTask, activities=[stand_at_gate]):
        handle = await world.start(LetTimerFireInTask.run, cancel_it, timer_s, task_timeout=TASK_TIMEOUT)
        await world.until_event(handle, "TimerStarted")
        await handle.signal(LetTimerFireInTask.go)
        await arrived(handle.id)
        is_too_slow = "TimerFired" in await world.shape(handle)
        if not is_too_slow:
            # The server has the clock.
            await patience.pass_s(1.3 * timer_s)
            expect.that("TimerFired" not in await world.shape(handle), "nothing is written while a task runs")
        open_gate(handle.id)
        answer = await handle.result()
    if is_too_slow:
        return None
    expect.equal(answer, "cancelled" if cancel_it else "fired", "the answer")
    history = await world.history(handle)
    if not cancel_it:
        fired, completed = (
            next(
                e.event_time.ToNanoseconds() for e in history.events if name_of(e) == name and e.event_id > 7
            )
            for name in ["TimerFired", "WorkflowTaskCompleted"]
        )
        if fired >= completed:
            return None
        (event,) = events_named(history, "TimerFired")
        expect.equal(event.started_event_id, 5, "it names its start")
    return shape(history)


@case()
async def that_fires_in_a_task_is_written_after_it(world: World) -> None:
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           TimerStarted WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted
           WorkflowTaskCompleted MarkerRecorded TimerFired WorkflowTaskScheduled WorkflowTaskStarted
    WorkflowTaskCompleted WorkflowExecutionCompleted"""
    )
    expect.same_lines(await with_a_timer_that_fires_in_a_task(world, False), expected, "the history")


@case()
async def that_fires_in_the_task_that_cancels_it_never_fired(world: World) -> None:
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           TimerStarted WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted
           WorkflowTaskCompleted MarkerRecorded TimerCanceled WorkflowExecutionCompleted"""
    )
    expect.same_lines(await with_a_timer_that_fires_in_a_task(world, True), expected, "the history")
