"""Runs from start to end: results, failures, describe, and what their histories carry."""

import asyncio
from datetime import timedelta

from temporalio.api.enums.v1 import PendingWorkflowTaskState
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import (
    ApplicationError,
)
from temporalio.service import RPCStatusCode

import expect
import patience
from acts import Act, Plan, status
from case import case
from history import event_named, events_named
from world import NAMESPACE, ROUNDS, World


@case()
async def a_result_comes_back(world: World) -> None:
    value = {"text": "grüße", "list": [1, 2.5, None, True], "empty": {}}
    async with world.worker(Act):
        expect.equal(await world.execute(Act.run, Plan(value=value)), value, "the result")
        expect.equal(await world.execute(Act.run, Plan()), None, "nothing as a result")


@case()
async def a_result_is_waited_for(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("wait", "worth it"))
        waiting = [asyncio.create_task(handle.result()) for _ in range(5)]
        await others_end(world)
        expect.that(not any(w.done() for w in waiting), "nobody has an answer yet")
        await handle.signal(Act.proceed)
        expect.equal(await asyncio.gather(*waiting), ["worth it"] * 5, "all get it")


async def others_end(world: World) -> None:
    """Some runs, one after the other, and who waits for their results has them."""
    for _ in range(ROUNDS):
        await world.execute(Act.run, Plan())


@case(slow=True)
async def a_result_is_waited_for_longer_than_one_poll(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("wait", "at last"))
        waiting = asyncio.create_task(handle.result())
        # The server has the clock; it waits for 20 s at a time.
        await patience.pass_s(24)
        expect.that(not waiting.done(), "an empty answer is not an end")
        await handle.signal(Act.proceed)
        expect.equal(await waiting, "at last", "the result")


@case()
async def a_failure_comes_back(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("fail", {"code": 7}))
        error = await expect.fails(WorkflowFailureError, handle.result())
    failure = error.cause
    expect.that(isinstance(failure, ApplicationError), "its kind", failure)
    expect.equal(
        (failure.type, failure.message, list(failure.details)), ("Planned", "as planned", [{"code": 7}]), "it"
    )
    expect.equal((failure.cause.type, failure.cause.message), ("ValueError", "the root"), "its cause")
    expect.equal(await status(world, handle), WorkflowExecutionStatus.FAILED, "the status")


@case()
async def describe_follows_the_run(world: World) -> None:
    handle = await world.start(Act.run, Plan("wait"), memo={"who": "me"})
    described = await world.describe(handle.id)
    info = described.workflow_execution_info
    expect.equal(info.status, int(WorkflowExecutionStatus.RUNNING), "the status")
    expect.equal((info.type.name, info.task_queue), ("Act", world.queue), "type and queue")
    expect.equal(described.pending_workflow_task.attempt, 1, "the pending task's attempt")
    scheduled = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
    expect.equal(described.pending_workflow_task.state, scheduled, "the pending task's state")
    expect.equal(info.history_length, 2, "the events")
    async with world.worker(Act):
        await handle.signal(Act.proceed)
        await handle.result()
    described = await world.describe(handle.id, handle.result_run_id)
    info = described.workflow_execution_info
    expect.equal(info.status, int(WorkflowExecutionStatus.COMPLETED), "the status")
    expect.that(info.close_time.ToNanoseconds() >= info.start_time.ToNanoseconds() > 0, "the times")
    expect.equal(info.history_length, len((await world.history(handle)).events), "the events")
    expect.that(not described.HasField("pending_workflow_task"), "no task is pending")


async def has(seen: list[int], count: int) -> bool:
    return len(seen) >= count


@case()
async def a_history_is_followed_live(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan("wait"))
        seen: list[int] = []

        async def follow() -> None:
            async for event in handle.fetch_history_events(wait_new_event=True):
                seen.append(event.event_id)

        following = asyncio.create_task(follow())
        await world.until_event(handle, "WorkflowTaskCompleted")
        await patience.until("it has what there is", lambda: has(seen, 3))
        await others_end(world)
        expect.that(not following.done(), "it waits for more", seen)
        await handle.signal(Act.proceed)
        await following
    expect.equal(
        seen, list(range(1, len((await world.history(handle)).events) + 1)), "each event once, in order"
    )


@case()
async def a_history_of_what_is_not_there_is_refused(world: World) -> None:
    request = GetWorkflowExecutionHistoryRequest(namespace=NAMESPACE)
    request.execution.workflow_id = world.id("unknown")
    refusal = world.client.workflow_service.get_workflow_execution_history(request)
    await expect.refused(RPCStatusCode.NOT_FOUND, refusal)
    await expect.refused(RPCStatusCode.NOT_FOUND, world.describe(request.execution.workflow_id))


@case()
async def event_metadata_is_complete(world: World) -> None:
    async with world.worker(Act):
        handle = await world.start(Act.run, Plan(), execution_timeout=timedelta(seconds=99))
        await handle.result()
    history = await world.history(handle)
    tasks = [event.task_id for event in history.events]
    expect.that(tasks == sorted(tasks) and tasks[0] != 0, "task ids grow from event to event", tasks)
    started = event_named(history, "WorkflowExecutionStarted").workflow_execution_started_event_attributes
    expect.equal(
        (started.workflow_id, started.workflow_type.name, started.attempt), (handle.id, "Act", 1), "start"
    )
    expect.equal(started.first_execution_run_id, handle.result_run_id, "the first run")
    expect.equal(started.original_execution_run_id, handle.result_run_id, "the original run")
    expect.equal(started.identity, world.client.identity, "who started it")
    for name in ["workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout"]:
        expect.that(started.HasField(name), f"{name} is there")
    expect.equal(
        (started.workflow_execution_timeout.seconds, started.workflow_task_timeout.seconds),
        (99, 10),
        "timeouts",
    )
    completed = events_named(history, "WorkflowTaskCompleted")[0]
    expect.equal((completed.scheduled_event_id, completed.started_event_id), (2, 3), "the task's events")
    expect.equal(completed.sdk_metadata.sdk_name, "temporal-python", "the SDK's own data are kept")
    expect.that(
        events_named(history, "WorkflowTaskStarted")[0].history_size_bytes > 0, "the size of the history"
    )
