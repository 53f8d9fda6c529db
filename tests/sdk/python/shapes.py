"""Canonical histories: the exact events in their order, and what they say of each other."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityCancellationType

import expect
from case import case
from history import attributes_of, chain, lines, name_of, shape
from world import NAMESPACE, TASK_TIMEOUT, World

TIMEOUT = timedelta(minutes=2)


@activity.defn
async def greet(name: str) -> str:
    return f"hello {name}"


@workflow.defn
class Script:
    """Does one thing by its name."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self, script: str) -> Any:
        return await getattr(self, script)()

    async def nothing(self) -> None: ...

    async def one_activity(self) -> str:
        return await workflow.execute_activity(greet, "you", start_to_close_timeout=TIMEOUT)

    async def two_activities_at_once(self) -> list[str]:
        calls = [workflow.execute_activity(greet, name, start_to_close_timeout=TIMEOUT) for name in "ab"]
        return list(await asyncio.gather(*calls))

    async def one_timer(self) -> None:
        await asyncio.sleep(0.1)

    async def timer_and_activity(self) -> None:
        await asyncio.sleep(0.1)
        await workflow.execute_activity(greet, "you", start_to_close_timeout=TIMEOUT)

    async def one_signal(self) -> str:
        await workflow.wait_condition(lambda: bool(self.heard))
        return self.heard[0]

    async def cancelled_activity(self) -> str:
        started = workflow.start_activity(
            greet,
            "nobody",
            task_queue=f"{workflow.info().task_queue}-nobody",
            start_to_close_timeout=TIMEOUT,
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        await asyncio.sleep(0.1)
        started.cancel()
        try:
            return await started
        except ActivityError:
            return "cancelled"

    async def continue_once(self) -> None:
        workflow.continue_as_new("nothing")

    @workflow.signal
    def hear(self, word: str) -> None:
        self.heard.append(word)


BEGINNING = "WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted"
TASK = "WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted"
ACTIVITY = "ActivityTaskScheduled ActivityTaskStarted ActivityTaskCompleted"
SHAPES = {
    "nothing": f"{BEGINNING} WorkflowExecutionCompleted",
    "one_activity": f"{BEGINNING} {ACTIVITY} {TASK} WorkflowExecutionCompleted",
    "one_timer": f"{BEGINNING} TimerStarted TimerFired {TASK} WorkflowExecutionCompleted",
    "timer_and_activity": f"""{BEGINNING} TimerStarted TimerFired {TASK} {ACTIVITY} {TASK}
        WorkflowExecutionCompleted""",
    "cancelled_activity": f"""{BEGINNING} ActivityTaskScheduled TimerStarted TimerFired {TASK}
        ActivityTaskCancelRequested ActivityTaskCanceled {TASK} WorkflowExecutionCompleted""",
    "continue_once": f"{BEGINNING} WorkflowExecutionContinuedAsNew",
}


async def ran(world: World, script: str, **options: Any) -> tuple[WorkflowHandle[Any, Any], WorkflowHistory]:
    handle = await world.start(Script.run, script, task_timeout=TASK_TIMEOUT, **options)
    await handle.result()
    return handle, await world.history(handle)


def ids_of(history: WorkflowHistory, field: str) -> dict[int, int]:
    """Event id -> the value of this field, of the events that have it."""
    return {
        e.event_id: getattr(attributes_of(e), field)
        for e in history.events
        if hasattr(attributes_of(e), field)
    }


@case()
async def are_as_expected(world: World) -> None:
    async with world.worker(Script, activities=[greet]):
        for script, expected in SHAPES.items():
            _, history = await ran(world, script)
            expect.same_lines(shape(history), lines(expected), script)


@case()
async def are_the_same_without_eager_activities(world: World) -> None:
    async with world.worker(Script, activities=[greet], disable_eager_activity_execution=True):
        for script in ["one_activity", "timer_and_activity"]:
            _, history = await ran(world, script)
            expect.same_lines(shape(history), lines(SHAPES[script]), script)


@case()
async def are_the_same_without_a_cache(world: World) -> None:
    async with world.worker(
        Script, activities=[greet], max_cached_workflows=0, max_concurrent_workflow_task_polls=1
    ):
        for script, expected in SHAPES.items():
            _, history = await ran(world, script)
            expect.same_lines(shape(history), lines(expected), script)


@case()
async def of_an_activity_are_wired(world: World) -> None:
    async with world.worker(Script, activities=[greet]):
        _, history = await ran(world, "one_activity")
    scheduled = {3: 2, 4: 2, 6: 5, 7: 5, 9: 8, 10: 8}
    expect.equal(ids_of(history, "scheduled_event_id"), scheduled, "event -> what scheduled it")
    expect.equal(ids_of(history, "started_event_id"), {4: 3, 7: 6, 10: 9}, "event -> what started it")
    expect.equal(
        ids_of(history, "workflow_task_completed_event_id"), {5: 4, 11: 10}, "event -> the task that made it"
    )
    first, second = (
        attributes_of(e).task_queue for e in history.events if name_of(e) == "WorkflowTaskScheduled"
    )
    expect.equal(
        (first.name, first.kind),
        (world.queue, TaskQueueKind.TASK_QUEUE_KIND_NORMAL),
        "the first task's queue",
    )
    expect.equal(
        (second.normal_name, second.kind),
        (world.queue, TaskQueueKind.TASK_QUEUE_KIND_STICKY),
        "the second task's queue",
    )
    times = [event.event_time.ToNanoseconds() for event in history.events]
    expect.that(times == sorted(times) and times[0] > 0, "times do not go backwards here", times)


@case()
async def of_two_activities_pair_them(world: World) -> None:
    async with world.worker(Script, activities=[greet]):
        _, history = await ran(world, "two_activities_at_once")
    names = shape(history)
    expect.same_lines(names[:6], lines(f"{BEGINNING} 2*ActivityTaskScheduled"), "the beginning")
    expect.equal((names.count("ActivityTaskStarted"), names.count("ActivityTaskCompleted")), (2, 2), "pairs")


@case()
async def of_a_signal_after_the_first_task(world: World) -> None:
    async with world.worker(Script):
        handle = await world.start(Script.run, "one_signal", task_timeout=TASK_TIMEOUT)
        await world.until_event(handle, "WorkflowTaskCompleted")
        await handle.signal(Script.hear, "x")
        await handle.result()
    expected = f"{BEGINNING} WorkflowExecutionSignaled {TASK} WorkflowExecutionCompleted"
    expect.same_lines(await world.shape(handle), lines(expected), "the history")


@case()
async def of_a_signal_with_start(world: World) -> None:
    async with world.worker(Script):
        _, history = await ran(world, "one_signal", start_signal="hear", start_signal_args=["x"])
    expected = f"WorkflowExecutionStarted WorkflowExecutionSignaled {TASK} WorkflowExecutionCompleted"
    expect.same_lines(shape(history), lines(expected), "the history")


@case()
async def of_a_delayed_start(world: World) -> None:
    async with world.worker(Script):
        handle, history = await ran(world, "nothing", start_delay=timedelta(seconds=1))
    expect.same_lines(shape(history), lines(SHAPES["nothing"]), "the history")
    begun, scheduled = (event.event_time.ToNanoseconds() for event in history.events[:2])
    expect.that(scheduled - begun >= 10**9, "the task comes a second later", scheduled - begun)


@case()
async def of_an_eager_start(world: World) -> None:
    client = await Client.connect(world.address, namespace=NAMESPACE)
    async with world.worker(Script, client=client):
        _, history = await ran(world, "nothing", client=client, request_eager_start=True)
    expect.same_lines(shape(history), lines(SHAPES["nothing"]), "the history")


@case()
async def of_a_continued_run(world: World) -> None:
    async with world.worker(Script):
        handle = await world.start(Script.run, "continue_once", task_timeout=TASK_TIMEOUT)
        await handle.result()
    first, second = [run async for run in chain(world.client, handle.id, handle.result_run_id)]
    expect.same_lines(shape(first), lines(SHAPES["continue_once"]), "the first run")
    expect.same_lines(shape(second), lines(SHAPES["nothing"]), "the second run")
    continued = attributes_of(first.events[-1])
    expect.equal(continued.workflow_type.name, "Script", "the type")
    expect.equal(continued.task_queue.name, world.queue, "the queue")
    expect.equal(continued.new_execution_run_id, second.run_id, "the run that follows")


@case()
async def of_a_cancelled_run(world: World) -> None:
    handle = await world.start(Script.run, "one_signal", task_timeout=TASK_TIMEOUT)
    await handle.cancel()
    async with world.worker(Script):
        try:
            await handle.result()
        except Exception:
            pass
    expected = """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowExecutionCancelRequested
        WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionCanceled"""
    expect.same_lines(await world.shape(handle), lines(expected), "the history")


@case()
async def of_a_terminated_run(world: World) -> None:
    handle = await world.start(Script.run, "one_signal", task_timeout=TASK_TIMEOUT)
    await handle.terminate()
    expected = "WorkflowExecutionStarted WorkflowTaskScheduled WorkflowExecutionTerminated"
    expect.same_lines(await world.shape(handle), lines(expected), "the history")
