"""How runs are ended from outside: cancel, terminate, timeouts; and lost workflow tasks."""

import asyncio
import time
from datetime import timedelta

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
)
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import (
    CancelledError,
    TerminatedError,
    TimeoutError,
    TimeoutType,
)
from temporalio.service import RPCError, RPCStatusCode

import expect
import patience
from acts import Act, Plan, Stand, status
from case import case
from gate import arrived, open_gate, stand_at_gate
from history import events_named, lines, shape
from world import NAMESPACE, TASK_TIMEOUT, World


@case()
async def a_cancel_closes_a_run(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("wait"))
        await world.until_event(handle, "WorkflowTaskCompleted")
        await handle.cancel()
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(isinstance(error.cause, CancelledError), "its kind", error.cause)
    expect.equal(await status(world, handle), WorkflowExecutionStatus.CANCELED, "the status")
    expected = lines(
        "WorkflowExecutionCancelRequested WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted"
    )
    expect.same_lines((await world.shape(handle))[-5:-1], expected, "the end of the history")


@case()
async def a_cancel_counts_once(world: World) -> None:
    handle = await world.start(Act.run, Plan("wait"))
    for _ in range(3):
        await handle.cancel()
    expect.equal(
        (await world.shape(handle)).count("WorkflowExecutionCancelRequested"), 1, "requests in the history"
    )
    async with world.worker(Act):
        await expect.fails(WorkflowFailureError, handle.result())
    await handle.cancel()
    unknown = world.client.get_workflow_handle(world.id("unknown"))
    await expect.refused(RPCStatusCode.NOT_FOUND, unknown.cancel())


@case()
async def a_cancelled_run_may_tidy_up(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("tidy"))
        await world.until_event(handle, "TimerStarted")
        await handle.cancel()
        expect.equal(await handle.result(), "tidied up", "its own end")
    expect.equal(await status(world, handle), WorkflowExecutionStatus.COMPLETED, "the status")


@case()
async def a_terminate_closes_a_run_at_once(world: World) -> None:
    handle = await world.start(Act.run, Plan("wait"))
    await handle.terminate("one", 2, reason="enough")
    error = await expect.fails(WorkflowFailureError, handle.result())
    expect.that(isinstance(error.cause, TerminatedError), "its kind", error.cause)
    expect.equal(
        (error.cause.message, list(error.cause.details)), ("enough", ["one", 2]), "reason and details"
    )
    expect.equal(await status(world, handle), WorkflowExecutionStatus.TERMINATED, "the status")
    await expect.refused(RPCStatusCode.NOT_FOUND, handle.terminate())
    unknown = world.client.get_workflow_handle(world.id("unknown"))
    await expect.refused(RPCStatusCode.NOT_FOUND, unknown.terminate())


@case()
async def a_terminate_in_a_task_fails_the_task_first(world: World) -> None:
    async with world.worker(Stand, activities=[stand_at_gate]):
        handle = await world.start(Stand.run, task_timeout=TASK_TIMEOUT)
        await arrived(handle.id)
        await handle.signal(Stand.poke)
        await handle.terminate(reason="now")
        open_gate(handle.id)
    history = await world.history(handle)
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed
           WorkflowExecutionSignaled WorkflowExecutionTerminated"""
    )
    expect.same_lines(shape(history), expected, "the history")
    cause = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND
    expect.equal(events_named(history, "WorkflowTaskFailed")[0].cause, cause, "the cause")


@case()
async def a_run_timeout_closes_a_run(world: World) -> None:
    async with world.worker(Act):
        begun = time.monotonic()
        handle = await world.start(Act.run, Plan("wait"), run_timeout=timedelta(seconds=1))
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(time.monotonic() - begun >= 0.95, "not before its second is over")
    expect.that(isinstance(error.cause, TimeoutError), "its kind", error.cause)
    expect.equal(error.cause.type, TimeoutType.START_TO_CLOSE, "the timeout")
    expect.equal(await status(world, handle), WorkflowExecutionStatus.TIMED_OUT, "the status")


@case()
async def a_run_timeout_in_a_task_fails_the_task_first(world: World) -> None:
    async with world.worker(Stand, activities=[stand_at_gate]):
        for span_s in patience.spans_s("the task begins before its run is over", 2):
            options = {"run_timeout": timedelta(seconds=span_s), "task_timeout": TASK_TIMEOUT}
            handle = await world.start(Stand.run, **options)
            arrival = asyncio.create_task(arrived(handle.id))
            await expect.fails(WorkflowFailureError, handle.result())
            open_gate(handle.id)
            if arrival.done():
                break
            arrival.cancel()
    expected = lines("WorkflowTaskStarted WorkflowTaskFailed WorkflowExecutionTimedOut")
    expect.same_lines((await world.shape(handle))[-3:], expected, "the end of the history")


@case()
async def a_run_timeout_needs_no_worker(world: World) -> None:
    handle = await world.start(Act.run, Plan("wait"), run_timeout=timedelta(seconds=1))
    await expect.fails(WorkflowFailureError, handle.result())
    expected = lines("WorkflowExecutionStarted WorkflowTaskScheduled WorkflowExecutionTimedOut")
    expect.same_lines(await world.shape(handle), expected, "the history")


@case()
async def a_task_that_takes_too_long_is_given_again(world: World) -> None:
    handle = await world.start(Act.run, Plan("wait"), task_timeout=timedelta(seconds=5))
    taken = await take_task(world)
    expect.equal(taken.attempt, 1, "the attempt")
    await world.until_event(handle, "WorkflowTaskTimedOut")
    again = await take_task(world)
    expect.equal(again.attempt, 2, "the next attempt")
    expect.equal(again.started_event_id, 6, "its start, which is not written yet")
    async with world.worker(Act):
        await world.until_event(handle, "WorkflowTaskCompleted")
        await handle.signal(Act.proceed)
        await handle.result()
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskTimedOut
           WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionSignaled"""
    )
    expect.same_lines((await world.shape(handle))[:8], expected, "one event for both lost tasks")


@case()
async def a_signal_to_a_lost_task_is_kept(world: World) -> None:
    handle = await world.start(Act.run, Plan("wait"), task_timeout=timedelta(seconds=5))
    await take_task(world)
    await handle.signal(Act.proceed)
    async with world.worker(Act):
        await handle.result()
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskTimedOut
           WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")


async def take_task(world: World) -> PollWorkflowTaskQueueResponse:
    """A workflow task of the case's queue, taken and not answered."""
    request = PollWorkflowTaskQueueRequest(namespace=NAMESPACE, identity="takes and forgets")
    request.task_queue.name = world.queue
    while True:
        task = await world.client.workflow_service.poll_workflow_task_queue(request)
        if task.task_token:
            return task


@case()
async def a_run_that_is_deleted_is_forgotten(world: World) -> None:
    async def delete(workflow_id: str) -> None:
        request = DeleteWorkflowExecutionRequest(namespace=NAMESPACE)
        request.workflow_execution.workflow_id = workflow_id
        await world.client.workflow_service.delete_workflow_execution(request)

    async def is_gone(workflow_id: str) -> bool:
        try:
            await world.describe(workflow_id)
        except RPCError as error:
            return error.status == RPCStatusCode.NOT_FOUND
        return False

    async with world.worker(Act):
        # Not remembered by the case: there is no history to check afterwards.
        for plan in ["wait", "return"]:
            id = world.id()
            handle = await world.client.start_workflow(Act.run, Plan(plan), id=id, task_queue=world.queue)
            if plan == "return":
                await handle.result()
            await delete(id)
            await expect.eventually(lambda: is_gone(id), "the run is gone")
            await expect.refused(RPCStatusCode.NOT_FOUND, handle.fetch_history())
    await expect.refused(RPCStatusCode.NOT_FOUND, delete(world.id("unknown")))
