"""Children: every end of theirs, every close policy, chains, clashes of ids; signals and cancels between workflows."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    TerminatedError,
    TimeoutError as TemporalTimeoutError,
    WorkflowAlreadyStartedError,
)
from temporalio.service import RPCStatusCode
from temporalio.workflow import ChildWorkflowCancellationType as CancellationType
from temporalio.workflow import ParentClosePolicy

import expect
from case import case
from history import event_named, events_named
from world import TASK_TIMEOUT, World


@workflow.defn
class Leaf:
    """Ends as it is told to; `wait`: not before it hears a signal."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self, how: str) -> Any:
        if how == "fail":
            raise ApplicationError("no leaf today", type="Autumn", non_retryable=True)
        if how == "wait":
            await workflow.wait_condition(lambda: bool(self.heard))
        if how == "continue":
            workflow.continue_as_new("return")
        info = workflow.info()
        if how == "fail once" and info.attempt == 1:
            raise ApplicationError("not yet", type="Spring")
        parent, root = info.parent, info.root
        return {
            "heard": self.heard,
            "attempt": info.attempt,
            "parent": parent.workflow_id if parent else None,
            "root": root.workflow_id if root else None,
        }

    @workflow.signal
    def hear(self, word: str) -> None:
        self.heard.append(word)


@workflow.defn
class Tree:
    """Starts a child of the given id and waits for it."""

    @workflow.run
    async def run(self, how: str, child: str) -> Any:
        if how == "grow":
            return await workflow.execute_child_workflow(Tree.run, args=["return", child + "-leaf"], id=child)
        options: dict[str, Any] = {"run_timeout": timedelta(seconds=1)} if how == "time out" else {}
        if how == "fail once":
            options["retry_policy"] = RetryPolicy(initial_interval=timedelta(milliseconds=100))
        if how == "each second":
            options["cron_schedule"] = "@every 1s"
        how = {"time out": "wait"}.get(how, how)
        return await workflow.execute_child_workflow(Leaf.run, how, id=child, **options)


@workflow.defn
class Talker:
    """Signals its child, then another workflow, and cancels that one."""

    @workflow.run
    async def run(self, child: str, other: str) -> Any:
        leaf = await workflow.start_child_workflow(Leaf.run, "wait", id=child)
        await leaf.signal(Leaf.hear, "from the tree")
        stranger = workflow.get_external_workflow_handle(other)
        await stranger.signal(Leaf.hear, "from a stranger")
        return await leaf


@workflow.defn
class Canceller:
    """Cancels its child, or another workflow, and tells what came of it."""

    @workflow.run
    async def run(self, whom: str, id: str) -> str:
        if whom == "other":
            try:
                await workflow.get_external_workflow_handle(id).cancel()
                return "cancelled"
            except ApplicationError as error:
                return error.message
        leaf = await workflow.start_child_workflow(
            Leaf.run, "wait", id=id, cancellation_type=CancellationType.WAIT_CANCELLATION_COMPLETED
        )
        leaf.cancel()
        try:
            await leaf
        except ChildWorkflowError as error:
            return type(error.cause).__name__
        return "it went on"


@workflow.defn
class Shouter:
    """Signals another workflow and tells what came of it."""

    @workflow.run
    async def run(self, other: str) -> str:
        try:
            await workflow.get_external_workflow_handle(other).signal(Leaf.hear, "shout")
        except ApplicationError as error:
            return error.message
        return "heard"


@workflow.defn
class Leaver:
    """Starts a child with a close policy and ends at once."""

    @workflow.run
    async def run(self, policy: int, child: str, again: bool) -> None:
        if again:
            return
        await workflow.start_child_workflow(
            Leaf.run, "wait", id=child, parent_close_policy=ParentClosePolicy(policy)
        )
        if policy == int(ParentClosePolicy.REQUEST_CANCEL):
            workflow.continue_as_new(args=[policy, child, True])


@workflow.defn
class Crowd:
    """Starts many children at once and adds up what they return."""

    @workflow.run
    async def run(self, count: int, prefix: str) -> int:
        leaves = [
            workflow.execute_child_workflow(Leaf.run, "return", id=f"{prefix}-{number}") for number in range(count)
        ]
        return len(await asyncio.gather(*leaves))


async def ended_by(world: World, how: str) -> tuple[BaseException | None, WorkflowHandle[Any, Any], str]:
    child = world.id("child")
    handle = await world.start(Tree.run, how, child)
    failure = await expect.fails(WorkflowFailureError, handle.result())
    expect.that(isinstance(failure.cause, ChildWorkflowError), "the failure is the child's", failure.cause)
    return failure.cause.cause, handle, child


@case()
async def a_child_returns_to_its_parent(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("child")
        handle = await world.start(Tree.run, "return", child, task_timeout=TASK_TIMEOUT)
        found = await handle.result()
    known = {"heard": [], "attempt": 1, "parent": handle.id, "root": handle.id}
    expect.equal(found, known, "what the child knows")
    expect.equal(
        await world.shape(handle),
        [
            "WorkflowExecutionStarted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "ChildWorkflowExecutionCompleted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "WorkflowExecutionCompleted",
        ],
        "the parent's history",
    )
    history = await world.history(handle)
    closed = event_named(history, "ChildWorkflowExecutionCompleted")
    attributes = closed.child_workflow_execution_completed_event_attributes
    expect.equal((attributes.initiated_event_id, attributes.started_event_id), (5, 6), "what it closes")
    expect.equal(attributes.workflow_execution.workflow_id, child, "the child")
    info = (await world.describe(child)).workflow_execution_info
    expect.equal(info.parent_execution.workflow_id, handle.id, "described with its parent")
    expect.equal(info.root_execution.workflow_id, handle.id, "and its root")


@case()
async def a_grandchild_knows_the_root(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("child")
        handle = await world.start(Tree.run, "grow", child)
        found = await handle.result()
    known = {"heard": [], "attempt": 1, "parent": child, "root": handle.id}
    expect.equal(found, known, "what the grandchild knows")


@case()
async def a_child_that_fails_fails_its_parent(world: World) -> None:
    async with world.worker(Tree, Leaf):
        cause, _, _ = await ended_by(world, "fail")
    expect.that(isinstance(cause, ApplicationError) and cause.type == "Autumn", "the child's own failure", cause)


@case()
async def a_child_that_times_out_fails_its_parent(world: World) -> None:
    async with world.worker(Tree, Leaf):
        cause, _, _ = await ended_by(world, "time out")
    expect.that(isinstance(cause, TemporalTimeoutError), "a timeout", cause)


@case()
async def a_child_that_is_terminated_fails_its_parent(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("child")
        handle = await world.start(Tree.run, "wait", child)
        await world.until_event(handle, "ChildWorkflowExecutionStarted")
        pending = (await world.describe(handle.id)).pending_children
        expect.equal([found.workflow_id for found in pending], [child], "the pending child")
        await world.client.get_workflow_handle(child).terminate()
        failure = await expect.fails(WorkflowFailureError, handle.result())
    expect.that(isinstance(failure.cause, ChildWorkflowError), "the failure is the child's", failure.cause)
    expect.that(isinstance(failure.cause.cause, TerminatedError), "it was terminated", failure.cause.cause)


@case()
async def only_the_last_run_of_a_chain_reports(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("child")
        handle = await world.start(Tree.run, "continue", child)
        found = await handle.result()
    expect.equal(found["parent"], handle.id, "the run that continues knows the parent too")
    closed = events_named(await world.history(handle), "ChildWorkflowExecutionCompleted")
    expect.equal(len(closed), 1, "reports")


@case()
async def a_child_that_fails_is_tried_again_by_its_policy(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("leaf")
        handle = await world.start(Tree.run, "fail once", child)
        expect.equal((await handle.result())["attempt"], 2, "the attempt that returned")
        history = await world.history(handle)
        expect.equal(len(events_named(history, "ChildWorkflowExecutionStarted")), 1, "it is one child")
        first = events_named(history, "ChildWorkflowExecutionStarted")[0].workflow_execution.run_id
        last = events_named(history, "ChildWorkflowExecutionCompleted")[0].workflow_execution.run_id
        expect.that(first != last, "its second run has returned", first)
        asked = events_named(history, "StartChildWorkflowExecutionInitiated")[0]
        expect.equal(asked.retry_policy.maximum_interval.ToMilliseconds(), 10_000, "the longest wait by itself")


@case()
async def a_child_with_a_schedule_comes_again_until_it_is_terminated(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("leaf")
        handle = await world.start(Tree.run, "each second", child)
        await world.until_event(handle, "ChildWorkflowExecutionStarted")
        leaf = world.client.get_workflow_handle(child)
        first = (await leaf.describe()).run_id

        async def has_come_again() -> bool:
            return (await leaf.describe()).run_id != first

        await expect.eventually(has_come_again, "a second run")
        await leaf.terminate("enough")
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(isinstance(error.cause, ChildWorkflowError), "its kind", error.cause)
        expect.that(isinstance(error.cause.cause, TerminatedError), "its cause", error.cause.cause)


@case()
async def an_id_that_is_taken_fails_the_start(world: World) -> None:
    async with world.worker(Tree, Leaf):
        taken = await world.start(Leaf.run, "wait")
        handle = await world.start(Tree.run, "return", taken.id)
        failure = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(
            isinstance(failure.cause, WorkflowAlreadyStartedError)
            or "already started" in str(failure.cause).lower(),
            "the id is taken",
            failure.cause,
        )
        await taken.signal(Leaf.hear, "go")
        await taken.result()


@case()
async def signals_reach_children_and_strangers(world: World) -> None:
    async with world.worker(Talker, Leaf):
        stranger = await world.start(Leaf.run, "wait")
        child = world.id("child")
        handle = await world.start(Talker.run, child, stranger.id)
        expect.equal((await handle.result())["heard"], ["from the tree"], "what the child heard")
        expect.equal((await stranger.result())["heard"], ["from a stranger"], "what the stranger heard")
    signaled = event_named(await world.history(stranger), "WorkflowExecutionSignaled")
    sender = signaled.workflow_execution_signaled_event_attributes.external_workflow_execution
    expect.equal((sender.workflow_id, sender.run_id), (handle.id, handle.result_run_id), "the sender")


@case()
async def signals_to_nobody_and_to_oneself_fail(world: World) -> None:
    async with world.worker(Shouter, Leaf):
        for other in [world.id("nobody"), "itself"]:
            id = world.id()
            handle = await world.start(Shouter.run, id if other == "itself" else other, id=id)
            expect.that("not found" in (await handle.result()).lower(), "nobody is there", other)


@case()
async def a_parent_cancels_its_child(world: World) -> None:
    async with world.worker(Canceller, Leaf):
        child = world.id("child")
        handle = await world.start(Canceller.run, "child", child)
        expect.equal(await handle.result(), CancelledError.__name__, "the child's end")
    history = await world.client.get_workflow_handle(child).fetch_history()
    asked = event_named(history, "WorkflowExecutionCancelRequested")
    attributes = asked.workflow_execution_cancel_requested_event_attributes
    expect.equal(attributes.external_workflow_execution.workflow_id, handle.id, "who asked")


@case()
async def a_workflow_cancels_another(world: World) -> None:
    async with world.worker(Canceller, Leaf):
        other = await world.start(Leaf.run, "wait")
        handle = await world.start(Canceller.run, "other", other.id)
        expect.equal(await handle.result(), "cancelled", "what the sender heard")
        failure = await expect.fails(WorkflowFailureError, other.result())
        expect.that(isinstance(failure.cause, CancelledError), "the other is canceled", failure.cause)
        # One that is closed counts as reached, one that never was does not.
        expect.equal(await world.execute(Canceller.run, "other", other.id), "cancelled", "closed")
        unknown = await world.execute(Canceller.run, "other", world.id("nobody"))
        expect.that("not found" in unknown.lower(), "unknown", unknown)


@case()
async def a_parent_that_closes_decides_on_its_children(world: World) -> None:
    async with world.worker(Leaver, Leaf):
        ends = {}
        for policy in [ParentClosePolicy.TERMINATE, ParentClosePolicy.ABANDON, ParentClosePolicy.REQUEST_CANCEL]:
            child = world.id(policy.name.lower())
            handle = await world.start(Leaver.run, int(policy), child, False)
            await handle.result()
            leaf = world.client.get_workflow_handle(child)
            if policy == ParentClosePolicy.ABANDON:
                await leaf.signal(Leaf.hear, "go")
                ends[policy.name] = (await leaf.result())["heard"]
            else:
                failure = await expect.fails(WorkflowFailureError, leaf.result())
                ends[policy.name] = type(failure.cause).__name__
    expected = {
        "TERMINATE": TerminatedError.__name__,
        "ABANDON": ["go"],
        "REQUEST_CANCEL": CancelledError.__name__,
    }
    expect.equal(ends, expected, "what became of them")


@case()
async def a_parent_that_is_terminated_takes_its_child_along(world: World) -> None:
    async with world.worker(Tree, Leaf):
        child = world.id("child")
        handle = await world.start(Tree.run, "wait", child)
        await world.until_event(handle, "ChildWorkflowExecutionStarted")
        await handle.terminate()
        leaf = world.client.get_workflow_handle(child)
        failure = await expect.fails(WorkflowFailureError, leaf.result())
    expect.that(isinstance(failure.cause, TerminatedError), "terminated", failure.cause)
    ended = event_named(await leaf.fetch_history(), "WorkflowExecutionTerminated")
    reason = ended.workflow_execution_terminated_event_attributes.reason
    expect.equal(reason, "by parent close policy", "why")


@case(slow=True)
async def a_hundred_children_at_once(world: World) -> None:
    async with world.worker(Crowd, Leaf):
        handle = await world.start(Crowd.run, 100, world.id("leaf"))
        expect.equal(await handle.result(), 100, "children that returned")
    expect.equal((await world.describe(handle.id)).pending_children[:], [], "none is pending")
