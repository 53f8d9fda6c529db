"""Runs that go back to one of their tasks: what is done again, what goes along, and what is told of it."""

import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

import expect
from case import case
from history import event_named, events_named, lines, shape
from world import NAMESPACE, World

SIGNAL, UPDATE = 1, 2


@activity.defn
async def count(name: str) -> str:
    return f"{name} counted"


@workflow.defn
class Basket:
    """Takes things until it is told to close; one of them is counted by an activity before anything else."""

    def __init__(self) -> None:
        self.things: list[str] = []
        self.closed = False

    @workflow.run
    async def run(self, child: str = "") -> list[str]:
        first = await workflow.execute_activity(count, "first", start_to_close_timeout=timedelta(seconds=10))
        if child:
            begun = await workflow.start_child_workflow(Basket.run, id=child)
            await workflow.sleep(0.1)
            self.things += await begun
        await workflow.wait_condition(lambda: self.closed)
        return [first, *self.things]

    @workflow.signal
    def put(self, thing: str) -> None:
        self.things.append(thing)

    @workflow.update
    async def add(self, thing: str) -> int:
        self.things.append(thing)
        return len(self.things)

    @workflow.signal
    def close(self) -> None:
        self.closed = True


async def reset(world: World, handle: WorkflowHandle, event_id: int, run_id: str = "", **options) -> WorkflowHandle:
    request = ResetWorkflowExecutionRequest(
        namespace=NAMESPACE,
        reason="once more",
        workflow_task_finish_event_id=event_id,
        request_id=options.pop("request_id", str(uuid.uuid4())),
        **options,
    )
    request.workflow_execution.workflow_id = handle.id
    request.workflow_execution.run_id = run_id
    made = await world.client.workflow_service.reset_workflow_execution(request)
    world.remember(handle.id, made.run_id)
    return world.client.get_workflow_handle(handle.id, run_id=made.run_id)


async def ended_tasks(world: World, handle: WorkflowHandle) -> list[int]:
    history = await world.history(handle)
    return [event.event_id for event in history.events if event.HasField("workflow_task_completed_event_attributes")]


async def filled(world: World, *things: str) -> WorkflowHandle:
    """A basket whose things were all put in behind the count."""
    handle = await world.start(Basket.run)
    await world.until_event(handle, "ActivityTaskCompleted")
    for thing in things:
        await handle.signal(Basket.put, thing)
    return handle


@case()
async def a_closed_run_is_done_again_with_its_signals(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world, "apple", "pear")
        await handle.signal(Basket.close)
        expect.equal(await handle.result(), ["first counted", "apple", "pear"], "the first time")
        again = await reset(world, handle, (await ended_tasks(world, handle))[0], handle.result_run_id)
        expect.equal(await again.result(), ["first counted", "apple", "pear"], "once more")
    history = await again.fetch_history()
    begun = lines(
        "WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed "
        "3*WorkflowExecutionSignaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted"
    )
    expect.equal(shape(history)[: len(begun)], begun, "how it begins")
    failed = event_named(history, "WorkflowTaskFailed").workflow_task_failed_event_attributes
    expect.equal((failed.base_run_id, failed.new_run_id), (handle.result_run_id, again.run_id), "which runs")
    expect.that(failed.failure.HasField("reset_workflow_failure_info"), "the kind of failure", failed.failure)
    expect.equal((failed.failure.message, failed.identity), ("once more", "history-service"), "why, and who")


@case()
async def an_open_run_gives_way(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world, "apple")
        again = await reset(world, handle, (await ended_tasks(world, handle))[0])
        await world.client.get_workflow_handle(handle.id).signal(Basket.put, "pear")
        await world.client.get_workflow_handle(handle.id).signal(Basket.close)
        expect.equal(await again.result(), ["first counted", "apple", "pear"], "all that was put in")
    old = await world.history(handle)
    ended = events_named(old, "WorkflowExecutionTerminated")
    expect.equal([(e.reason, e.identity) for e in ended], [("once more", "history-resetter")], "how it ended")


@case()
async def what_is_excluded_is_left_behind(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world, "apple")
        await handle.execute_update(Basket.add, "plum")
        first = (await ended_tasks(world, handle))[0]
        again = await reset(world, handle, first, reset_reapply_exclude_types=[SIGNAL])
        await again.signal(Basket.close)
        expect.equal(await again.result(), ["first counted", "plum"], "no signal")
        again = await reset(world, handle, first, handle.result_run_id, reset_reapply_exclude_types=[UPDATE])
        await again.signal(Basket.close)
        expect.equal(await again.result(), ["first counted", "apple"], "no update")


@case()
async def an_accepted_update_is_answered_anew(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world)
        expect.equal(await handle.execute_update(Basket.add, "plum", id="u"), 1, "the first answer")
        again = await reset(world, handle, (await ended_tasks(world, handle))[0])
        expect.equal(await again.get_update_handle("u").result(), 1, "the second answer")
        await again.signal(Basket.close)
        expect.equal(await again.result(), ["first counted", "plum"], "the result")
    names = shape(await again.fetch_history())
    expect.equal(names.count("WorkflowExecutionUpdateAdmitted"), 1, "it was brought over")


@case()
async def the_same_request_makes_one_run(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world)
        first = (await ended_tasks(world, handle))[0]
        once = await reset(world, handle, first, request_id="once")
        again = await reset(world, handle, first, request_id="once")
        expect.equal(again.run_id, once.run_id, "the run")
        await once.signal(Basket.close)
        await once.result()


@case()
async def a_child_goes_on_and_answers_the_new_run(world: World) -> None:
    child = world.id("child")
    async with world.worker(Basket, activities=[count]):
        handle = await world.start(Basket.run, child)
        await world.until_event(handle, "TimerFired")
        history = await world.history(handle)
        started = event_named(history, "ChildWorkflowExecutionStarted").event_id
        task = next(id for id in await ended_tasks(world, handle) if id > started)
        again = await reset(world, handle, task)
        described = await world.describe(handle.id)
        expect.equal([c.workflow_id for c in described.pending_children], [child], "the child")
        await world.client.get_workflow_handle(child).signal(Basket.close)
        await again.signal(Basket.close)
        expect.equal(await again.result(), ["first counted", "first counted"], "the result")


@case()
async def describe_tells_of_the_reset(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world)
        again = await reset(world, handle, (await ended_tasks(world, handle))[0])
        old = (await world.describe(handle.id, handle.result_run_id)).workflow_extended_info
        described = await world.describe(handle.id)
        new, info = described.workflow_extended_info, described.workflow_execution_info
        expect.equal((old.reset_run_id, new.reset_run_id), (again.run_id, ""), "the run that was made")
        expect.equal(info.first_run_id, handle.result_run_id, "the first run of the chain")
        expect.equal(new.original_start_time, old.original_start_time, "when it all began")
        expect.equal(new.last_reset_time, info.start_time, "when it began anew")
        await again.signal(Basket.close)
        await again.result()
        expect.equal((await again.describe()).status, WorkflowExecutionStatus.COMPLETED, "the end")


@case()
async def only_tasks_are_gone_back_to(world: World) -> None:
    async with world.worker(Basket, activities=[count]):
        handle = await filled(world)
        for event_id in [0, 1, 6, 1_000]:
            error = await expect.fails(RPCError, reset(world, handle, event_id))
            expect.equal(error.status, RPCStatusCode.INVALID_ARGUMENT, f"event {event_id}")
        error = await expect.fails(RPCError, reset(world, handle, 4, str(uuid.uuid4())))
        expect.equal(error.status, RPCStatusCode.NOT_FOUND, "an unknown run")
        await handle.signal(Basket.close)
        await handle.result()
