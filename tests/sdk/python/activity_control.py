"""Activities that an operator pauses, unpauses, resets and gives other options."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import activity, workflow
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
    UpdateActivityOptionsRequest,
)
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCStatusCode

import expect
from case import case
from world import NAMESPACE, World

PAUSED = PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED
PAUSE_REQUESTED = PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED


@dataclass
class Work:
    """One activity; `queue` is where its workers are."""

    queue: str
    first_interval_s: float = 0.1
    attempts: int = 0


class Doing:
    """What the attempts at one run's activity do and see."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.found: list[list[Any]] = []
        self.heard: list[str] = []
        # What an attempt waits for, and whether it then fails.
        self.go = asyncio.Event()
        self.fails = True


DOING: defaultdict[str, Doing] = defaultdict(Doing)


@activity.defn
async def work() -> str:
    """Reports progress until it may go on, or hears that it shall end."""
    info = activity.info()
    doing = DOING[info.workflow_id]
    doing.attempts.append(info.attempt)
    doing.found.append(list(info.heartbeat_details))
    try:
        while not doing.go.is_set():
            activity.heartbeat(f"progress {info.attempt}")
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        paused = details is not None and details.paused
        doing.heard.append("paused" if paused else "reset" if details is not None and details.reset else "?")
        raise ApplicationError(f"attempt {info.attempt} was {doing.heard[-1]}") from None
    if doing.fails:
        raise ApplicationError(f"attempt {info.attempt}")
    return f"attempt {info.attempt}"


@workflow.defn
class DoWork:
    @workflow.run
    async def run(self, given: Work) -> str:
        return await workflow.execute_activity(
            work,
            activity_id="work",
            task_queue=given.queue,
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=timedelta(minutes=2),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=given.first_interval_s),
                backoff_coefficient=1,
                maximum_attempts=given.attempts,
            ),
        )


def serving(world: World):
    throttle = timedelta(milliseconds=100)
    return world.worker(DoWork, activities=[work], max_heartbeat_throttle_interval=throttle)


class Operator:
    """Calls for the activity of one run."""

    def __init__(self, world: World, handle: WorkflowHandle[Any, Any]) -> None:
        self.world = world
        self.service = world.client.workflow_service
        self.execution = WorkflowExecution(workflow_id=handle.id)
        self.named = {"namespace": NAMESPACE, "execution": self.execution, "id": "work", "identity": "operator"}

    async def pause(self, **fields: Any) -> None:
        await self.service.pause_activity(PauseActivityRequest(**{**self.named, "reason": "why", **fields}))

    async def unpause(self, **fields: Any) -> None:
        await self.service.unpause_activity(UnpauseActivityRequest(**{**self.named, **fields}))

    async def reset(self, **fields: Any) -> None:
        await self.service.reset_activity(ResetActivityRequest(**{**self.named, **fields}))

    async def options(self, **fields: Any) -> ActivityOptions:
        request = UpdateActivityOptionsRequest(**{**self.named, **fields})
        return (await self.service.update_activity_options(request)).activity_options

    async def pending(self) -> PendingActivityInfo | None:
        described = await self.world.describe(self.execution.workflow_id)
        return described.pending_activities[0] if described.pending_activities else None

    async def until(self, state: "PendingActivityState.ValueType", what: str) -> PendingActivityInfo:
        async def probe() -> PendingActivityInfo | None:
            pending = await self.pending()
            return pending if pending and pending.state == state else None

        found = await expect.eventually(probe, what)
        assert found is not None
        return found

    async def attribute(self) -> bytes:
        described = await self.world.describe(self.execution.workflow_id)
        fields = described.workflow_execution_info.search_attributes.indexed_fields
        return fields["TemporalPauseInfo"].data if "TemporalPauseInfo" in fields else b""


async def until_begun(doing: Doing, count: int) -> None:
    async def probe() -> bool:
        return len(doing.attempts) >= count

    await expect.eventually(probe, f"{count} attempts")


@case()
async def a_paused_activity_waits_for_its_operator(world: World) -> None:
    queue = world.id("queue")
    async with world.worker(DoWork):
        handle = await world.start(DoWork.run, Work(queue))
        operator = Operator(world, handle)
        await expect.eventually(operator.pending, "the activity")
        await operator.pause()
        pending = await operator.until(PAUSED, "the pause")
        expect.that(pending.paused, "it is shown as paused")
        info = pending.pause_info.manual
        expect.equal((info.identity, info.reason), ("operator", "why"), "who has paused it, and why")
        expect.equal(await operator.attribute(), b'["property:activityType=work"]', "the search attribute")
        doing = DOING[handle.id]
        doing.fails = False
        doing.go.set()
        async with world.worker(task_queue=queue, activities=[work]):
            await world.settles(operator.pending, pending, "the paused activity")
            expect.equal(doing.attempts, [], "the attempts while it is paused")
            await operator.unpause()
            expect.equal(await handle.result(), "attempt 1", "the result")
    expect.equal(await operator.attribute(), b"", "the search attribute afterwards")


@case()
async def a_worker_hears_that_its_activity_is_paused(world: World) -> None:
    async with serving(world):
        handle = await world.start(DoWork.run, Work(world.queue, attempts=1))
        operator, doing = Operator(world, handle), DOING[handle.id]
        await until_begun(doing, 1)
        await operator.pause()
        # The attempt ends by what it hears, and the only one that its policy allows was not the last.
        pending = await operator.until(PAUSED, "the end of the attempt")
        expect.equal(doing.heard, ["paused"], "what the attempt has heard")
        expect.equal((pending.attempt, pending.last_failure.message), (2, "attempt 1 was paused"), "what is shown")
        expect.that(pending.heartbeat_details.payloads, "the report is kept")
        doing.fails = False
        doing.go.set()
        await operator.unpause()
        expect.equal(await handle.result(), "attempt 2", "the result")
        expect.equal(doing.found[1], ["progress 1"], "what the second attempt finds")


@case()
async def a_worker_hears_that_its_activity_is_reset(world: World) -> None:
    async with serving(world):
        handle = await world.start(DoWork.run, Work(world.queue, attempts=3))
        operator, doing = Operator(world, handle), DOING[handle.id]
        await until_begun(doing, 1)
        await operator.reset()
        await until_begun(doing, 2)
        expect.equal(doing.heard, ["reset"], "what the attempt has heard")
        expect.equal(doing.attempts, [1, 2], "the attempts")
        expect.equal(doing.found[1], ["progress 1"], "what the second attempt finds")
        doing.fails = False
        doing.go.set()
        expect.equal(await handle.result(), "attempt 2", "the result")


@case()
async def a_reset_ends_the_wait_for_a_retry(world: World) -> None:
    async with serving(world):
        handle = await world.start(DoWork.run, Work(world.queue, first_interval_s=3600))
        operator, doing = Operator(world, handle), DOING[handle.id]
        doing.go.set()
        await until_begun(doing, 1)

        async def waits() -> bool:
            pending = await operator.pending()
            return pending is not None and pending.attempt == 2

        await expect.eventually(waits, "the wait for the second attempt")
        doing.fails = False
        await operator.reset(reset_heartbeat=True)
        expect.equal(await handle.result(), "attempt 1", "the result")


@case()
async def other_options_count_at_once_and_are_restored(world: World) -> None:
    queue = world.id("queue")
    async with world.worker(DoWork):
        handle = await world.start(DoWork.run, Work(world.id("nowhere"), attempts=5))
        operator, doing = Operator(world, handle), DOING[handle.id]
        first = await expect.eventually(operator.pending, "the activity")
        assert first is not None
        changed = await operator.options(
            activity_options=ActivityOptions(
                task_queue=TaskQueue(name=queue),
                heartbeat_timeout=Duration(seconds=30),
                priority=Priority(priority_key=2),
            ),
            update_mask=FieldMask(paths=["task_queue.name", "heartbeat_timeout"]),
        )
        expect.equal((changed.task_queue.name, changed.heartbeat_timeout.seconds), (queue, 30), "the answer")
        expect.equal(changed.retry_policy.maximum_attempts, 5, "what was not named")
        pending = await operator.pending()
        assert pending is not None
        expect.equal(pending.activity_options.task_queue.name, queue, "the queue that is shown")
        doing.fails = False
        doing.go.set()
        async with world.worker(task_queue=queue, activities=[work]):
            expect.equal(await handle.result(), "attempt 1", "the result, of the other queue")

        other = await world.start(DoWork.run, Work(queue, attempts=5))
        operator = Operator(world, other)
        await expect.eventually(operator.pending, "the activity")
        longer = ActivityOptions(start_to_close_timeout=Duration(seconds=7))
        mask = FieldMask(paths=["start_to_close_timeout"])
        changed = await operator.options(activity_options=longer, update_mask=mask)
        expect.equal(changed.start_to_close_timeout.seconds, 7, "the shorter timeout")
        # The CLI sends a mask without paths along.
        restored = await operator.options(restore_original=True, update_mask=FieldMask())
        expect.equal(restored.start_to_close_timeout.seconds, 3600, "the timeout of the workflow")
        await other.terminate()


@case()
async def calls_that_mean_nothing_are_refused(world: World) -> None:
    async with world.worker(DoWork):
        handle = await world.start(DoWork.run, Work(world.id("nowhere")))
        operator = Operator(world, handle)
        await expect.eventually(operator.pending, "the activity")
        service = world.client.workflow_service
        nobody = PauseActivityRequest(namespace=NAMESPACE, execution=operator.execution)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.pause_activity(nobody))
        await expect.refused(RPCStatusCode.NOT_FOUND, operator.pause(id="unknown"))
        await expect.refused(RPCStatusCode.NOT_FOUND, operator.unpause(id="unknown"))
        await expect.refused(RPCStatusCode.NOT_FOUND, operator.reset(id="unknown"))
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, operator.options())
        both = operator.options(update_mask=FieldMask(paths=["retry_policy"]), restore_original=True)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, both)
        nameless = operator.options(
            activity_options=ActivityOptions(task_queue=TaskQueue(name="")),
            update_mask=FieldMask(paths=["task_queue.name"]),
        )
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, nameless)
        await handle.terminate()
        await expect.refused(RPCStatusCode.NOT_FOUND, operator.pause())


@case()
async def a_closed_run_shows_what_was_paused(world: World) -> None:
    async with world.worker(DoWork):
        handle = await world.start(DoWork.run, Work(world.id("nowhere")))
        operator = Operator(world, handle)
        await expect.eventually(operator.pending, "the activity")
        await operator.pause()
        await handle.terminate()
        await expect.fails(WorkflowFailureError, handle.result())
        pending = await operator.pending()
        expect.that(pending is not None and pending.paused, "the paused activity is shown", pending)


@case(everlog_only=True)
async def all_activities_are_meant_at_once(world: World) -> None:
    async with world.worker(DoWork):
        handle = await world.start(DoWork.run, Work(world.id("nowhere")))
        operator = Operator(world, handle)
        await expect.eventually(operator.pending, "the activity")
        await operator.pause()
        service, named = world.client.workflow_service, {"namespace": NAMESPACE, "execution": operator.execution}
        await service.reset_activity(ResetActivityRequest(**named, match_all=True, keep_paused=True))
        await operator.until(PAUSED, "the pause")
        await service.unpause_activity(UnpauseActivityRequest(**named, unpause_all=True))
        pending = await operator.pending()
        expect.that(pending is not None and not pending.paused, "it is unpaused", pending)
        await handle.terminate()
