"""Code that does not fit a run's history: the task fails, the run waits, and goes on with mended code."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.service import RPCStatusCode

import expect
import patience
from case import case
from history import events_named, lines, shape
from world import World

# Attempts after the first leave it to the server to see that they have failed.
TASK_TIMEOUT_S = 3


@activity.defn
async def work(n: int) -> int:
    return n + 1


class Told:
    def __init__(self) -> None:
        self.told = False

    @workflow.signal
    def proceed(self) -> None:
        self.told = True

    @workflow.query
    def ask(self) -> bool:
        return self.told

    async def act(self) -> int:
        return await workflow.execute_activity(work, 1, start_to_close_timeout=timedelta(seconds=10))


@workflow.defn(name="Changing")
class AsWritten(Told):
    @workflow.run
    async def run(self) -> int:
        answer = await self.act()
        await workflow.wait_condition(lambda: self.told)
        return answer


@workflow.defn(name="Changing")
class Changed(Told):
    """Sleeps where the history has an activity."""

    @workflow.run
    async def run(self) -> int:
        await asyncio.sleep(1)
        return await self.act()


@workflow.defn(name="Changing")
class Broken(Told):
    """Fails with an error that is not meant for the workflow."""

    @workflow.run
    async def run(self) -> int:
        await self.act()
        await workflow.wait_condition(lambda: self.told)
        raise RuntimeError("a bug")


async def waits_after_its_activity(world: World, task_timeout_s: float) -> WorkflowHandle:
    """A run of the code as written, that waits to be told to go on."""
    async with world.worker(AsWritten, activities=[work]):
        handle = await world.start("Changing", task_timeout=timedelta(seconds=task_timeout_s))
        await world.until_event(handle, "WorkflowTaskCompleted", 2)
    return handle


async def failed_task(world: World, handle: WorkflowHandle) -> WorkflowHistory | None:
    """The history once a task has failed; nothing where one took longer than it may."""

    async def probe() -> WorkflowHistory | None:
        found = await world.history(handle)
        return found if {"WorkflowTaskFailed", "WorkflowTaskTimedOut"} & set(shape(found)) else None

    history = await expect.eventually(probe, "a task fails")
    return None if "WorkflowTaskTimedOut" in shape(history) else history


def task_timeouts_s() -> Iterator[float]:
    return patience.spans_s("a task fails before its time is over", TASK_TIMEOUT_S)


async def until_attempt(world: World, handle: WorkflowHandle, attempt: int) -> None:
    async def probe() -> bool:
        return (await world.describe(handle.id)).pending_workflow_task.attempt >= attempt

    await expect.eventually(probe, f"attempt {attempt} of the workflow task")


@case(slow=True)
async def changed_code_fails_the_task_and_mended_code_goes_on(world: World) -> None:
    for task_timeout_s in task_timeouts_s():
        handle = await waits_after_its_activity(world, task_timeout_s)
        async with world.worker(Changed, activities=[work]):
            await handle.signal(AsWritten.proceed)
            if not (history := await failed_task(world, handle)):
                continue
            failed = events_named(history, "WorkflowTaskFailed")[0]
            cause = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
            expect.equal(failed.cause, cause, "the cause")
            expect.that("ondeterminism" in failed.failure.message, "the message", failed.failure.message)
            await until_attempt(world, handle, 3)
            names = await world.shape(handle)
            expect.equal(names.count("WorkflowTaskFailed"), 1, "further attempts leave no event")
            status = RPCStatusCode.FAILED_PRECONDITION
            await expect.refused(status, handle.query(AsWritten.ask))
        break
    async with world.worker(AsWritten, activities=[work]):
        expect.equal(await handle.result(), 2, "the result")
    expect.equal(
        (await world.shape(handle))[-2:], ["WorkflowTaskCompleted", "WorkflowExecutionCompleted"], "the end"
    )


@case(slow=True)
async def a_bug_fails_the_task_and_mended_code_goes_on(world: World) -> None:
    for task_timeout_s in task_timeouts_s():
        handle = await waits_after_its_activity(world, task_timeout_s)
        async with world.worker(Broken, activities=[work]):
            await handle.signal(AsWritten.proceed)
            if not (history := await failed_task(world, handle)):
                continue
            failed = events_named(history, "WorkflowTaskFailed")[0]
            cause = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE
            expect.equal(failed.cause, cause, "the cause")
            expect.equal(failed.failure.message, "a bug", "the message")
            await until_attempt(world, handle, 2)
        break
    async with world.worker(AsWritten, activities=[work]):
        expect.equal(await handle.result(), 2, "the result")
    history = await world.history(handle)
    last = [task for task in events_named(history, "WorkflowTaskScheduled")][-1]
    expect.that(last.attempt >= 1, "the attempt stands in the event", last.attempt)


@case(slow=True)
async def a_signal_to_a_failing_task_is_kept(world: World) -> None:
    for task_timeout_s in task_timeouts_s():
        async with world.worker(Broken, activities=[work]):
            handle = await world.start("Changing", task_timeout=timedelta(seconds=task_timeout_s))
            await handle.signal(AsWritten.proceed)
            if not await failed_task(world, handle):
                continue
            await until_attempt(world, handle, 2)
            await handle.signal(AsWritten.proceed)
            await handle.signal(AsWritten.proceed)
        break
    async with world.worker(AsWritten, activities=[work]):
        expect.equal(await handle.result(), 2, "the result")
    expect.equal((await world.shape(handle)).count("WorkflowExecutionSignaled"), 3, "all signals are there")


@case(slow=True)
async def an_unknown_workflow_type_waits_for_its_worker(world: World) -> None:
    for task_timeout_s in task_timeouts_s():
        async with world.worker(Other):
            handle = await world.start("Changing", task_timeout=timedelta(seconds=task_timeout_s))
            if not await failed_task(world, handle):
                continue
        break
    async with world.worker(AsWritten, activities=[work]):
        await handle.signal(AsWritten.proceed)
        expect.equal(await handle.result(), 2, "the result")


@workflow.defn
class Other:
    @workflow.run
    async def run(self) -> None: ...


@case()
async def a_bug_may_fail_the_run_instead(world: World) -> None:
    options = {"workflow_failure_exception_types": [RuntimeError]}
    world.replay_options |= options
    async with world.worker(Broken, activities=[work], **options):
        handle = await world.start("Changing")
        await handle.signal(AsWritten.proceed)
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.equal(error.cause.message, "a bug", "the failure")
    expected = lines("WorkflowTaskCompleted WorkflowExecutionFailed")
    expect.same_lines(shape(await world.history(handle))[-2:], expected, "the end of the history")
