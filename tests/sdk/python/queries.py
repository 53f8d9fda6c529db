"""Queries: of open and closed runs, after signals, failing, refused, and with nobody to answer."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.client import (
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

import expect
import patience
from case import case
from gate import arrived, open_gate, stand_at_gate, wait_at_gate
from history import name_of
from world import NAMESPACE, ROUNDS, TASK_TIMEOUT, World


@workflow.defn
class Tally:
    """Adds up what it is sent until it is told to stop."""

    def __init__(self) -> None:
        self.total = 0
        self.stopped = ""

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: bool(self.stopped))
        if self.stopped == "fail":
            raise ApplicationError("told to")
        return self.total

    @workflow.signal
    def add(self, n: int) -> None:
        self.total += n

    @workflow.signal
    def stop(self, how: str) -> None:
        self.stopped = how

    @workflow.signal
    async def hold(self) -> None:
        await wait_at_gate()
        self.total += 1000

    @workflow.query
    def so_far(self) -> int:
        return self.total

    @workflow.query(name="times-plus")
    def times_plus(self, factor: int, more: dict[str, int]) -> dict[str, int]:
        return {"value": self.total * factor + more["plus"]}

    @workflow.query
    def broken(self) -> int:
        raise ApplicationError("cannot say", "because", type="Broken")


@workflow.defn
class Nap:
    """Sleeps for so many seconds."""

    def __init__(self) -> None:
        self.over = False

    @workflow.run
    async def run(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.over = True

    @workflow.query
    def is_over(self) -> bool:
        return self.over


async def closed(world: World, how: str) -> WorkflowHandle[Any, Any]:
    """A run that was told to stop in this way, closed."""
    handle = await world.start(Tally.run)
    await handle.signal(Tally.add, 5)
    await handle.signal(Tally.stop, how)
    try:
        await handle.result()
    except WorkflowFailureError:
        pass
    return handle


@case()
async def of_an_open_run(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        expect.equal(await handle.query(Tally.so_far), 0, "at the beginning")
        expect.equal(await handle.query("times-plus", args=[3, {"plus": 4}]), {"value": 4}, "with arguments")


@case()
async def sees_every_signal_sent_before_it(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        for n in range(1, 61):
            await handle.signal(Tally.add, 1)
            expect.equal(await handle.query(Tally.so_far), n, f"after signal {n}")


@case()
async def sees_every_signal_without_a_cache(world: World) -> None:
    async with world.worker(Tally, max_cached_workflows=0, max_concurrent_workflow_task_polls=1):
        handle = await world.start(Tally.run)
        for n in range(1, 21):
            await handle.signal(Tally.add, 1)
            expect.equal(await handle.query(Tally.so_far), n, f"after signal {n}")


@case()
async def during_a_task_waits_for_it(world: World) -> None:
    async with world.worker(Tally, activities=[stand_at_gate]):
        handle = await world.start(Tally.run, task_timeout=TASK_TIMEOUT)
        other = await world.start(Tally.run)
        await handle.signal(Tally.hold)
        await arrived(handle.id)
        answer = asyncio.create_task(handle.query(Tally.so_far))
        for _ in range(ROUNDS):
            expect.equal(await other.query(Tally.so_far), 0, "the answer of a run whose task does not run")
        expect.that(not answer.done(), "no answer while the task runs")
        open_gate(handle.id)
        expect.equal(await answer, 1000, "the answer knows what the task did")


@case()
async def twenty_at_once(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        await handle.signal(Tally.add, 7)
        await handle.query(Tally.so_far)
        answers = await asyncio.gather(*(handle.query(Tally.so_far) for _ in range(20)))
        expect.equal(answers, [7] * 20, "all answers")


@case()
async def leaves_no_event(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        await world.until_event(handle, "WorkflowTaskCompleted")
        before = await world.shape(handle)
        for _ in range(5):
            await handle.query(Tally.so_far)
        expect.same_lines(await world.shape(handle), before, "the history")


@case()
async def of_a_completed_run(world: World) -> None:
    async with world.worker(Tally):
        handle = await closed(world, "end")
        before = await world.shape(handle)
        expect.equal(await handle.query(Tally.so_far), 5, "the answer")
    async with world.worker(Tally):
        expect.equal(await handle.query(Tally.so_far), 5, "from a worker that never saw it")
    expect.same_lines(await world.shape(handle), before, "the history")


@case()
async def of_a_failed_and_a_terminated_run(world: World) -> None:
    async with world.worker(Tally):
        expect.equal(await (await closed(world, "fail")).query(Tally.so_far), 5, "of a failed one")
        handle = await world.start(Tally.run)
        await handle.signal(Tally.add, 9)
        await handle.query(Tally.so_far)
        await handle.terminate()
        expect.equal(await handle.query(Tally.so_far), 9, "of a terminated one")


@case()
async def is_rejected_by_its_condition(world: World) -> None:
    async with world.worker(Tally):
        completed, failed = await closed(world, "end"), await closed(world, "fail")
        opened = await world.start(Tally.run)
        not_open, clean = QueryRejectCondition.NOT_OPEN, QueryRejectCondition.NOT_COMPLETED_CLEANLY
        for handle, condition in [(completed, not_open), (failed, not_open), (failed, clean)]:
            query = handle.query(Tally.so_far, reject_condition=condition)
            error = await expect.fails(WorkflowQueryRejectedError, query)
            expect.that(error.status is not None, "the status is named")
        expect.equal(await completed.query(Tally.so_far, reject_condition=clean), 5, "a clean end is clean")
        expect.equal(await opened.query(Tally.so_far, reject_condition=not_open), 0, "an open one is open")


@case()
async def that_fails_says_why(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        error = await expect.fails(WorkflowQueryFailedError, handle.query(Tally.broken))
        expect.that("cannot say" in str(error), "the reason", error)
        error = await expect.fails(WorkflowQueryFailedError, handle.query("nothing-like-it"))
        expect.that("nothing-like-it" in str(error), "the name that nobody knows", error)
        expect.equal(await handle.query(Tally.so_far), 0, "the run is none the worse")
        finished = await closed(world, "end")
        await expect.fails(WorkflowQueryFailedError, finished.query(Tally.broken))


@case()
async def before_the_first_task_waits_for_a_worker(world: World) -> None:
    handle = await world.start(Tally.run)
    await handle.signal(Tally.add, 3)
    answer = asyncio.create_task(handle.query(Tally.so_far))
    await world.heard(handle)
    async with world.worker(Tally):
        expect.equal(await answer, 3, "the answer")


@case()
async def without_a_worker_runs_into_its_deadline(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        await handle.query(Tally.so_far)
    error = await expect.fails(RPCError, handle.query(Tally.so_far, rpc_timeout=timedelta(seconds=2)))
    expect.that(
        error.status in (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED), "the status", error.status
    )


@case(everlog_only=True)
async def that_waited_gets_no_news_of_its_own(world: World) -> None:
    """A worker would act on what no workflow task has brought yet, and its history would not show it.

    A Temporal server does give such news away: the run then does not fit its history any more.
    """
    for span_s in patience.spans_s("the worker is gone before the timer fires", 1):
        async with world.worker(Nap):
            handle = await world.start(Nap.run, span_s)
            await world.until_event(handle, "TimerStarted")
        if "TimerFired" not in await world.shape(handle):
            break
    answer = asyncio.create_task(handle.query(Nap.is_over))
    await world.until_event(handle, "TimerFired")
    request = PollWorkflowTaskQueueRequest(namespace=NAMESPACE, identity="looks and forgets")
    request.task_queue.name = world.queue
    for _ in range(2):
        task = await world.client.workflow_service.poll_workflow_task_queue(request)
        expect.that(task.task_token, "a task comes")
        if task.HasField("query"):
            names = [name_of(event) for event in task.history.events]
            expect.that("TimerFired" not in names, "a query of its own ends where the last task ended", names)
    await handle.terminate()
    answer.cancel()


@case()
async def of_what_is_not_there_is_refused(world: World) -> None:
    unknown = world.client.get_workflow_handle(world.id("unknown"))
    await expect.refused(RPCStatusCode.NOT_FOUND, unknown.query("so_far"))


@case()
async def of_the_stack_trace(world: World) -> None:
    async with world.worker(Tally):
        handle = await world.start(Tally.run)
        trace = await handle.query("__stack_trace")
        expect.that("in run" in trace, "it shows where the workflow waits", trace)
