"""Workflow ids: reuse after the end, conflict with a running one, and starts that are repeated."""

import asyncio
import uuid
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy as RawConflict
from temporalio.api.enums.v1 import WorkflowIdReusePolicy as RawReuse
from temporalio.api.workflowservice.v1 import (
    SignalWithStartWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy as Conflict
from temporalio.common import WorkflowIDReusePolicy as Reuse
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCStatusCode

import expect
from case import case
from world import NAMESPACE, World


@workflow.defn
class EndAs:
    """Returns, fails, or waits for ever."""

    @workflow.run
    async def run(self, how: str) -> None:
        if how == "failed":
            raise ApplicationError("as asked")
        if how == "open":
            await asyncio.sleep(3600)


async def ended(world: World, how: str) -> WorkflowHandle[Any, Any]:
    """A run that ended in this way: completed, failed, canceled, terminated."""
    handle = await world.start(EndAs.run, how if how in ("completed", "failed") else "open")
    if how == "canceled":
        await handle.cancel()
    if how == "terminated":
        await handle.terminate()
    try:
        await handle.result()
    except WorkflowFailureError:
        pass
    return handle


async def may_follow(world: World, how: str, policy: Reuse) -> bool:
    """Whether a start with this policy is taken after a run that ended so."""
    first = await ended(world, how)
    try:
        second = await world.start(EndAs.run, "completed", id=first.id, id_reuse_policy=policy)
    except WorkflowAlreadyStartedError as error:
        expect.equal(error.run_id, first.result_run_id, "the refusal names the run")
        return False
    expect.that(second.result_run_id != first.result_run_id, "a new run")
    await second.result()
    return True


@case()
async def reuse_allows_duplicates(world: World) -> None:
    async with world.worker(EndAs):
        for how in ["completed", "failed", "canceled", "terminated"]:
            expect.that(await may_follow(world, how, Reuse.ALLOW_DUPLICATE), f"after {how}")


@case()
async def reuse_allows_duplicates_of_failures_only(world: World) -> None:
    async with world.worker(EndAs):
        for how, allowed in [
            ("completed", False),
            ("failed", True),
            ("canceled", True),
            ("terminated", True),
        ]:
            found = await may_follow(world, how, Reuse.ALLOW_DUPLICATE_FAILED_ONLY)
            expect.equal(found, allowed, f"after {how}")


@case()
async def reuse_rejects_duplicates(world: World) -> None:
    async with world.worker(EndAs):
        for how in ["completed", "failed", "canceled", "terminated"]:
            expect.that(not await may_follow(world, how, Reuse.REJECT_DUPLICATE), f"after {how}")


@case()
async def reuse_may_terminate_a_running_one(world: World) -> None:
    async with world.worker(EndAs):
        first = await world.start(EndAs.run, "open")
        second = await world.start(
            EndAs.run, "completed", id=first.id, id_reuse_policy=Reuse.TERMINATE_IF_RUNNING
        )
        await second.result()
        expect.that(second.result_run_id != first.result_run_id, "a new run")
    expect.equal((await world.shape(first))[-1], "WorkflowExecutionTerminated", "the old run's end")


@case()
async def conflict_fails_by_default(world: World) -> None:
    first = await world.start(EndAs.run, "open")
    for options in [{}, {"id_conflict_policy": Conflict.FAIL}, {"id_reuse_policy": Reuse.REJECT_DUPLICATE}]:
        again = world.start(EndAs.run, "open", id=first.id, **options)
        error = await expect.fails(WorkflowAlreadyStartedError, again)
        expect.equal(error.run_id, first.result_run_id, "the refusal names the run")


@case()
async def conflict_may_use_the_existing_one(world: World) -> None:
    first = await world.start(EndAs.run, "open")
    for _ in range(2):
        again = await world.start(EndAs.run, "open", id=first.id, id_conflict_policy=Conflict.USE_EXISTING)
        expect.equal(again.result_run_id, first.result_run_id, "the running one")
    expect.equal(
        (await world.shape(first))[:2], ["WorkflowExecutionStarted", "WorkflowTaskScheduled"], "its history"
    )


@case()
async def a_start_that_finds_a_run_may_leave_its_request_id_there(world: World) -> None:
    first = await world.start(EndAs.run, "open")
    start = world.client.workflow_service.start_workflow_execution
    conflict = RawConflict.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
    joining = raw_start(world, first.id, request_id="joining", workflow_id_conflict_policy=conflict)
    joining.on_conflict_options.attach_request_id = True
    for _ in range(2):
        found = await start(joining)
        expect.equal((found.run_id, found.started), (first.result_run_id, False), "the running one")
    described = await world.describe(first.id)
    infos = described.workflow_extended_info.request_id_infos
    expect.equal(infos["joining"].event_id, 3, "its event")
    names = await world.shape(first)
    expect.equal(names.count("WorkflowExecutionOptionsUpdated"), 1, "it is written once")
    await first.terminate()
    # Whatever the policy: the request is the same.
    again = raw_start(world, first.id, request_id="joining")
    found = await start(again)
    expect.equal((found.run_id, found.started), (first.result_run_id, False), "found after its end")
    other = raw_start(world, first.id, request_id="joining")
    other.on_conflict_options.attach_completion_callbacks = True
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, start(other))


@case()
async def conflict_may_terminate_the_existing_one(world: World) -> None:
    async with world.worker(EndAs):
        first = await world.start(EndAs.run, "open")
        second = await world.start(
            EndAs.run, "completed", id=first.id, id_conflict_policy=Conflict.TERMINATE_EXISTING
        )
        await second.result()
        expect.that(second.result_run_id != first.result_run_id, "a new run")
    described = await world.client.get_workflow_handle(first.id, run_id=first.result_run_id).describe()
    expect.equal(described.status, WorkflowExecutionStatus.TERMINATED, "the old run's status")


@case()
async def of_twenty_starts_one_wins(world: World) -> None:
    workflow_id = world.id()

    async def start() -> str | None:
        try:
            return (await world.start(EndAs.run, "open", id=workflow_id)).result_run_id
        except WorkflowAlreadyStartedError as error:
            return f"refused for {error.run_id}"

    answers = await asyncio.gather(*(start() for _ in range(20)))
    winners = [answer for answer in answers if not answer.startswith("refused")]
    expect.equal(len(winners), 1, "winners")
    losers = {answer for answer in answers if answer.startswith("refused")}
    expect.equal(losers, {f"refused for {winners[0]}"}, "what the others are told")


def raw_start(world: World, workflow_id: str, **fields: Any) -> StartWorkflowExecutionRequest:
    fields.setdefault("request_id", str(uuid.uuid4()))
    request = StartWorkflowExecutionRequest(namespace=NAMESPACE, workflow_id=workflow_id, **fields)
    request.workflow_type.name = "EndAs"
    request.task_queue.name = world.queue
    return request


@case()
async def a_start_repeated_with_its_request_id_is_the_same_start(world: World) -> None:
    service = world.client.workflow_service
    request = raw_start(world, world.id())
    answers = [await service.start_workflow_execution(request) for _ in range(3)]
    world.remember(request.workflow_id, answers[0].run_id)
    expect.equal(len({a.run_id for a in answers}), 1, "one run")
    expect.that(all(a.started for a in answers), "each is told that it started")
    # Also when the run has ended meanwhile, and whatever the policy says.
    await world.client.get_workflow_handle(request.workflow_id).terminate()
    again = await service.start_workflow_execution(request)
    expect.equal(again.run_id, answers[0].run_id, "the same run after its end")
    other = raw_start(
        world,
        request.workflow_id,
        workflow_id_reuse_policy=RawReuse.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
    )
    await expect.refused(RPCStatusCode.ALREADY_EXISTS, service.start_workflow_execution(other))


@case()
async def a_start_says_whether_it_started(world: World) -> None:
    service = world.client.workflow_service
    request = raw_start(world, world.id())
    first = await service.start_workflow_execution(request)
    world.remember(request.workflow_id, first.run_id)
    use = RawConflict.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
    second = await service.start_workflow_execution(
        raw_start(world, request.workflow_id, workflow_id_conflict_policy=use)
    )
    expect.equal((first.started, second.started), (True, False), "started")
    expect.equal(second.run_id, first.run_id, "the run")


@case()
async def impossible_pairs_of_policies_are_refused(world: World) -> None:
    pairs = [
        (
            RawReuse.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING,
            RawConflict.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        ),
        (
            RawReuse.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
            RawConflict.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
        ),
    ]
    for reuse, conflict in pairs:
        request = raw_start(
            world, world.id(), workflow_id_reuse_policy=reuse, workflow_id_conflict_policy=conflict
        )
        start = world.client.workflow_service.start_workflow_execution(request)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, start)
    request = SignalWithStartWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_id=world.id(),
        signal_name="any",
        workflow_id_conflict_policy=RawConflict.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
    )
    request.workflow_type.name = "EndAs"
    request.task_queue.name = world.queue
    signal = world.client.workflow_service.signal_with_start_workflow_execution(request)
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, signal)


@case()
async def a_handle_of_an_old_run_speaks_of_that_run(world: World) -> None:
    async with world.worker(EndAs):
        first = await world.start(EndAs.run, "completed")
        await first.result()
        second = await world.start(EndAs.run, "open", id=first.id)
        old = world.client.get_workflow_handle(first.id, run_id=first.result_run_id)
        current = world.client.get_workflow_handle(first.id)
        expect.equal((await old.describe()).status, WorkflowExecutionStatus.COMPLETED, "the old run")
        described = await current.describe()
        expect.equal(
            (described.run_id, described.status),
            (second.result_run_id, WorkflowExecutionStatus.RUNNING),
            "current",
        )
        pinned = world.client.get_workflow_handle(first.id, first_execution_run_id=first.result_run_id)
        await expect.refused(RPCStatusCode.NOT_FOUND, pinned.terminate())
        await current.terminate()
