"""Signals: before, during and after a workflow task, in order, once each, and with a start."""

import asyncio
import uuid
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import (
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
)
from temporalio.client import WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.converter import DataConverter
from temporalio.service import RPCStatusCode

import expect
from case import case
from gate import arrived, open_gate, stand_at_gate, wait_at_gate
from history import events_named, lines, shape
from world import NAMESPACE, TASK_TIMEOUT, World


@workflow.defn
class Collect:
    """Collects what it is sent until it has enough; answers it in the order in which it came."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    @workflow.run
    async def run(self, enough: int) -> list[Any]:
        await workflow.wait_condition(lambda: len(self.items) >= enough)
        return self.items

    @workflow.signal
    def add(self, item: Any) -> None:
        self.items.append(item)

    @workflow.signal(name="add-pair")
    async def add_pair(self, first: str, second: str) -> None:
        self.items.append(f"{first}+{second}")

    @workflow.query
    def count(self) -> int:
        return len(self.items)


@workflow.defn
class CollectAtGate:
    """Stands at a gate in its first task, then ends with what came in meanwhile."""

    def __init__(self) -> None:
        self.items: list[str] = []

    @workflow.run
    async def run(self, end_at_once: bool) -> list[str]:
        await wait_at_gate()
        if not end_at_once:
            await workflow.wait_condition(lambda: len(self.items) >= 2)
        return self.items

    @workflow.signal
    def add(self, item: str) -> None:
        self.items.append(item)


@workflow.defn(name="LateHandler")
class LateHandler:
    """Sets its handler only after a signal of that name has come."""

    @workflow.run
    async def run(self) -> list[str]:
        heard: list[str] = []
        await asyncio.sleep(0.5)
        workflow.set_signal_handler("unheard", heard.append)
        await workflow.wait_condition(lambda: bool(heard))
        return heard


async def payloads_of(value: Any) -> list[Any]:
    return list(await DataConverter.default.encode([value]))


@case()
async def before_the_first_task(world: World) -> None:
    handle = await world.start(Collect.run, 2, task_timeout=TASK_TIMEOUT)
    await handle.signal(Collect.add, "one")
    await handle.signal("add-pair", args=["two", "three"])
    async with world.worker(Collect):
        expect.equal(await handle.result(), ["one", "two+three"], "both in order")
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowExecutionSignaled WorkflowExecutionSignaled
           WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")


@case()
async def during_a_task(world: World) -> None:
    async with world.worker(CollectAtGate, activities=[stand_at_gate]):
        handle = await world.start(CollectAtGate.run, False, task_timeout=TASK_TIMEOUT)
        await arrived(handle.id)
        for item in ["one", "two"]:
            await handle.signal(CollectAtGate.add, item)
        expect.equal((await world.shape(handle))[-1], "WorkflowTaskStarted", "buffered, not written")
        open_gate(handle.id)
        expect.equal(await handle.result(), ["one", "two"], "both in order")
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           MarkerRecorded WorkflowExecutionSignaled WorkflowExecutionSignaled WorkflowTaskScheduled
           WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")


@case()
async def after_a_task(world: World) -> None:
    async with world.worker(Collect):
        handle = await world.start(Collect.run, 2, task_timeout=TASK_TIMEOUT)
        await world.until_event(handle, "WorkflowTaskCompleted")
        await handle.signal(Collect.add, "one")
        await world.until_event(handle, "WorkflowTaskCompleted", 2)
        await handle.signal(Collect.add, "two")
        expect.equal(await handle.result(), ["one", "two"], "both in order")
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")


@case()
async def in_the_last_task_is_not_lost(world: World) -> None:
    async with world.worker(CollectAtGate, activities=[stand_at_gate]):
        handle = await world.start(CollectAtGate.run, True, task_timeout=TASK_TIMEOUT)
        await arrived(handle.id)
        await handle.signal(CollectAtGate.add, "just in time")
        open_gate(handle.id)
        expect.equal(await handle.result(), ["just in time"], "the result has it")
    history = await world.history(handle)
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed
           WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           MarkerRecorded WorkflowExecutionCompleted"""
    )
    expect.same_lines(shape(history), expected, "the history")
    (failed,) = events_named(history, "WorkflowTaskFailed")
    expect.equal(
        failed.cause,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        "the cause of the failure",
    )


@case()
async def two_hundred_arrive_in_the_order_sent(world: World) -> None:
    async with world.worker(Collect):
        handle = await world.start(Collect.run, 200)
        for n in range(200):
            await handle.signal(Collect.add, n)
        expect.equal(await handle.result(), list(range(200)), "the order")


@case()
async def of_each_sender_arrive_in_its_order(world: World) -> None:
    async with world.worker(Collect):
        handle = await world.start(Collect.run, 150)

        async def send(sender: int) -> None:
            for n in range(15):
                await handle.signal(Collect.add, [sender, n])

        await asyncio.gather(*(send(sender) for sender in range(10)))
        items = await handle.result()
    for sender in range(10):
        expect.equal([n for s, n in items if s == sender], list(range(15)), f"the order of sender {sender}")


@case()
async def without_a_handler_waits_for_one(world: World) -> None:
    async with world.worker(LateHandler):
        handle = await world.start(LateHandler.run)
        await handle.signal("unheard", "hello")
        expect.equal(await handle.result(), ["hello"], "the handler gets it")


@case()
async def repeated_with_its_request_id_counts_once(world: World) -> None:
    handle = await world.start(Collect.run, 2)
    request = SignalWorkflowExecutionRequest(
        namespace=NAMESPACE, signal_name="add", identity="the client", request_id=str(uuid.uuid4())
    )
    request.workflow_execution.workflow_id = handle.id
    request.input.payloads.extend(await payloads_of("once"))
    for _ in range(3):
        await world.client.workflow_service.signal_workflow_execution(request)
    await handle.signal(Collect.add, "last")
    async with world.worker(Collect):
        expect.equal(await handle.result(), ["once", "last"], "one of three")
    signaled = events_named(await world.history(handle), "WorkflowExecutionSignaled")
    expect.equal(signaled[0].identity, "the client", "its sender stands in the event")
    expect.equal(signaled[0].signal_name, "add", "its name stands in the event")


@case()
async def to_what_is_not_there_is_refused(world: World) -> None:
    unknown = world.client.get_workflow_handle(world.id("unknown"))
    await expect.refused(RPCStatusCode.NOT_FOUND, unknown.signal("add", 1))
    async with world.worker(Collect):
        handle = await world.start(Collect.run, 0)
        await handle.result()
    await expect.refused(RPCStatusCode.NOT_FOUND, handle.signal(Collect.add, 1))
    other_run = world.client.get_workflow_handle(handle.id, run_id=str(uuid.uuid4()))
    await expect.refused(RPCStatusCode.NOT_FOUND, other_run.signal("add", 1))


async def signal_with_start(
    world: World, workflow_id: str, item: str, **options: Any
) -> WorkflowHandle[Any, Any]:
    return await world.start(
        Collect.run, 2, id=workflow_id, start_signal="add", start_signal_args=[item], **options
    )


@case()
async def with_start_starts(world: World) -> None:
    handle = await signal_with_start(world, world.id(), "one", task_timeout=TASK_TIMEOUT)
    await handle.signal(Collect.add, "two")
    async with world.worker(Collect):
        expect.equal(await handle.result(), ["one", "two"], "the first comes with the start")
    expected = lines(
        """WorkflowExecutionStarted WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowExecutionSignaled
           WorkflowTaskStarted WorkflowTaskCompleted WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")


@case()
async def with_start_signals_a_running_one(world: World) -> None:
    async with world.worker(Collect):
        first = await signal_with_start(world, world.id(), "one")
        second = await signal_with_start(world, first.id, "two")
        expect.equal(second.result_run_id, first.result_run_id, "the running one")
        expect.equal(await first.result(), ["one", "two"], "both")
        third = await signal_with_start(world, first.id, "three")
        expect.that(third.result_run_id != first.result_run_id, "a closed one is started again")
        await third.signal(Collect.add, "four")
        expect.equal(await third.result(), ["three", "four"], "with the new signals only")


@case()
async def with_start_may_replace_a_running_one(world: World) -> None:
    async with world.worker(Collect):
        first = await signal_with_start(world, world.id(), "one")
        second = await signal_with_start(
            world, first.id, "two", id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING
        )
        expect.that(second.result_run_id != first.result_run_id, "a new run")
        await second.signal(Collect.add, "three")
        expect.equal(await second.result(), ["two", "three"], "with the new signals only")
    expect.equal((await world.shape(first))[-1], "WorkflowExecutionTerminated", "the old one's end")


@case()
async def with_start_repeated_counts_once(world: World) -> None:
    request = SignalWithStartWorkflowExecutionRequest(
        namespace=NAMESPACE, workflow_id=world.id(), signal_name="add", request_id=str(uuid.uuid4())
    )
    request.workflow_type.name = "Collect"
    request.task_queue.name = world.queue
    request.input.payloads.extend(await payloads_of(2))
    request.signal_input.payloads.extend(await payloads_of("one"))
    service = world.client.workflow_service
    answers = [await service.signal_with_start_workflow_execution(request) for _ in range(3)]
    expect.equal(len({answer.run_id for answer in answers}), 1, "one run")
    world.remember(request.workflow_id, answers[0].run_id)
    handle = world.client.get_workflow_handle(request.workflow_id, run_id=answers[0].run_id)
    await handle.signal("add", "two")
    async with world.worker(Collect):
        expect.equal(await handle.result(), ["one", "two"], "one of three")


@case()
async def twenty_with_start_start_once(world: World) -> None:
    workflow_id = world.id()

    async def send(n: int) -> str | None:
        handle = await world.start(Collect.run, 20, id=workflow_id, start_signal="add", start_signal_args=[n])
        return handle.result_run_id

    async with world.worker(Collect):
        runs = await asyncio.gather(*(send(n) for n in range(20)))
        expect.equal(len(set(runs)), 1, "one run for all")
        items = await world.client.get_workflow_handle(workflow_id).result()
    expect.equal(sorted(items), list(range(20)), "every signal once")
