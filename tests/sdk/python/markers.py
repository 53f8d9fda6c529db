"""What workflows record in markers: local activities, long ones too, and patched versions."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

import expect
import patience
from case import case
from history import events_named, lines, shape
from world import TASK_TIMEOUT, World

SEEN: defaultdict[str, list[Any]] = defaultdict(list)
# Longer than the tests go on: the SDK panics when it ends after its worker has.
LOCAL_TIMEOUT = timedelta(hours=1)


@activity.defn
async def note(word: str) -> str:
    SEEN[activity.info().workflow_id].append(word)
    return f"noted {word}"


# What ends a stay, by workflow id.
LEAVES: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


@activity.defn
async def stay() -> str:
    SEEN[activity.info().workflow_id].append(activity.info().attempt)
    await LEAVES[activity.info().workflow_id].wait()
    return "stayed"


@activity.defn
async def fail_until(attempt: int) -> int:
    SEEN[activity.info().workflow_id].append((activity.info().attempt, time.monotonic()))
    if activity.info().attempt < attempt:
        raise ApplicationError("not yet")
    return activity.info().attempt


@dataclass
class Local:
    activity: str
    arg: Any = None
    first_interval_s: float = 0.05
    attempts: int = 0
    threshold_s: float = 60


@workflow.defn
class CallLocal:
    @workflow.run
    async def run(self, call: Local) -> Any:
        return await workflow.execute_local_activity(
            call.activity,
            call.arg,
            start_to_close_timeout=LOCAL_TIMEOUT,
            local_retry_threshold=timedelta(seconds=call.threshold_s),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=call.first_interval_s),
                backoff_coefficient=1,
                maximum_attempts=call.attempts,
            ),
        )


@workflow.defn
class CallLocals:
    """Local ones beside each other and after each other, then a timer."""

    @workflow.run
    async def run(self, words: list[str]) -> list[str]:
        answers = await asyncio.gather(
            *(
                workflow.execute_local_activity(note, word, start_to_close_timeout=LOCAL_TIMEOUT)
                for word in words
            )
        )
        await asyncio.sleep(0.1)
        answers.append(
            await workflow.execute_local_activity(note, "last", start_to_close_timeout=LOCAL_TIMEOUT)
        )
        return answers


@workflow.defn
class StayLocally:
    """Stays in a local activity, and takes a signal meanwhile."""

    def __init__(self) -> None:
        self.heard = 0

    @workflow.run
    async def run(self) -> list[Any]:
        answer = await workflow.execute_local_activity(stay, start_to_close_timeout=LOCAL_TIMEOUT)
        return [answer, self.heard]

    @workflow.signal
    def hear(self) -> None:
        self.heard += 1

    @workflow.query
    def ears(self) -> int:
        return self.heard


class Waiting:
    """Says one word in an activity, and waits until it is told to go on."""

    def __init__(self) -> None:
        self.proceeding = False

    async def say(self, word: str) -> str:
        answer = await workflow.execute_activity(note, word, start_to_close_timeout=timedelta(seconds=10))
        await workflow.wait_condition(lambda: self.proceeding)
        return answer

    @workflow.signal
    def proceed(self) -> None:
        self.proceeding = True


@workflow.defn(name="Patchable")
class BeforePatch(Waiting):
    @workflow.run
    async def run(self) -> list[str]:
        return [await self.say("quiet")]


@workflow.defn(name="Patchable")
class WithPatch(Waiting):
    @workflow.run
    async def run(self) -> list[str]:
        path = [await self.say("loud" if workflow.patched("louder") else "quiet")]
        return [*path, "patched" if workflow.patched("louder") else "as before"]


@workflow.defn(name="Patchable")
class AfterPatch(Waiting):
    @workflow.run
    async def run(self) -> list[str]:
        workflow.deprecate_patch("louder")
        return [await self.say("loud")]


@workflow.defn
class Draw:
    """Draws from what must be the same in every replay."""

    @workflow.run
    async def run(self) -> list[Any]:
        drawn: list[Any] = [workflow.random().random(), str(workflow.uuid4()), workflow.time()]
        await asyncio.sleep(0.1)
        drawn += [workflow.random().randint(0, 10**9), str(workflow.uuid4()), workflow.time()]
        return drawn


@case()
async def a_local_activity_leaves_a_marker(world: World) -> None:
    async with world.worker(CallLocal, activities=[note]):
        handle = await world.start(CallLocal.run, Local("note", "one"))
        expect.equal(await handle.result(), "noted one", "the result")
    expected = lines(
        """WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted
           MarkerRecorded WorkflowExecutionCompleted"""
    )
    expect.same_lines(await world.shape(handle), expected, "the history")
    (marker,) = events_named(await world.history(handle), "MarkerRecorded")
    expect.equal(marker.marker_name, "core_local_activity", "its name")


@case()
async def local_activities_run_once_each(world: World) -> None:
    async with world.worker(
        CallLocals, activities=[note], max_cached_workflows=0, max_concurrent_workflow_task_polls=1
    ):
        handle = await world.start(CallLocals.run, ["a", "b", "c"], task_timeout=TASK_TIMEOUT)
        expect.equal(await handle.result(), ["noted a", "noted b", "noted c", "noted last"], "the results")
    expect.equal(sorted(SEEN[handle.id]), ["a", "b", "c", "last"], "not again in a replay")


@case()
async def a_local_activity_is_retried_in_its_task(world: World) -> None:
    async with world.worker(CallLocal, activities=[fail_until]):
        handle = await world.start(CallLocal.run, Local("fail_until", 3), task_timeout=TASK_TIMEOUT)
        expect.equal(await handle.result(), 3, "the attempt that succeeded")
    expect.equal((await world.shape(handle)).count("WorkflowTaskCompleted"), 1, "one task for all attempts")


@case()
async def a_local_activity_backs_off_with_a_timer(world: World) -> None:
    async with world.worker(CallLocal, activities=[fail_until]):
        handle = await world.start(CallLocal.run, Local("fail_until", 2, first_interval_s=1, threshold_s=0.5))
        expect.equal(await handle.result(), 2, "the attempt that succeeded")
    names = await world.shape(handle)
    expect.that(
        "TimerFired" in names and names.count("MarkerRecorded") == 2, "a timer between two markers", names
    )
    (_, first), (_, second) = SEEN[handle.id]
    expect.that(second - first >= 0.95, "not before its backoff", second - first)


@case()
async def a_local_activity_fails_at_its_last_attempt(world: World) -> None:
    async with world.worker(CallLocal, activities=[fail_until]):
        handle = await world.start(CallLocal.run, Local("fail_until", 99, attempts=2))
        error = await expect.fails(WorkflowFailureError, handle.result())
        failure = error.cause.cause or error.cause
        expect.equal((type(failure), failure.message), (ApplicationError, "not yet"), "the failure")
    expect.equal([attempt for attempt, _ in SEEN[handle.id]], [1, 2], "the attempts")


@case()
async def a_long_local_activity_keeps_its_task_alive(world: World) -> None:
    async with world.worker(StayLocally, activities=[stay]):
        for span_s in patience.spans_s("no task times out", 3):
            handle = await world.start(StayLocally.run, task_timeout=timedelta(seconds=span_s))
            await expect.eventually(lambda: begun(handle.id), "the activity begins")
            await handle.signal(StayLocally.hear)
            expect.equal(await handle.query(StayLocally.ears), 1, "a signal is seen meanwhile")
            # The server has the clock.
            await patience.pass_s(2 * span_s)
            LEAVES[handle.id].set()
            expect.equal(await handle.result(), ["stayed", 1], "the result")
            names = await world.shape(handle)
            # The SDK completes a task when four fifths of its time are over.
            if "WorkflowTaskTimedOut" not in names:
                break
    expect.that(names.count("WorkflowTaskCompleted") >= 3, "tasks follow each other as heartbeats", names)
    expect.equal(SEEN[handle.id], [1], "the activity ran once")


async def begun(workflow_id: str) -> bool:
    return bool(SEEN[workflow_id])


@case()
async def a_patch_leaves_old_runs_as_they_were(world: World) -> None:
    async with world.worker(BeforePatch, activities=[note]):
        old = await world.start("Patchable")
        await world.until_event(old, "ActivityTaskCompleted")
    async with world.worker(WithPatch, activities=[note]):
        new = await world.start("Patchable")
        await world.until_event(new, "ActivityTaskCompleted")
        for handle in (old, new):
            await handle.signal("proceed")
        # The old run comes to the second patched() live: it takes the same branch as at the first.
        expect.equal(await old.result(), ["noted quiet", "as before"], "the old run")
        expect.equal(await new.result(), ["noted loud", "patched"], "the new run")
    names = shape(await world.history(new))
    expect.equal(names.count("MarkerRecorded"), 1, "one marker for the patch")
    expect.that("UpsertWorkflowSearchAttributes" in names, "the change version is upserted", names)


@case()
async def a_patch_may_be_deprecated(world: World) -> None:
    async with world.worker(WithPatch, activities=[note]):
        patched = await world.start("Patchable")
        await world.until_event(patched, "ActivityTaskCompleted")
    async with world.worker(AfterPatch, activities=[note]):
        fresh = await world.start("Patchable")
        for handle in (patched, fresh):
            await handle.signal("proceed")
        expect.equal(await patched.result(), ["noted loud"], "a run of the patched code")
        expect.equal(await fresh.result(), ["noted loud"], "a run of the code without the old path")


@case()
async def random_numbers_are_the_same_in_every_replay(world: World) -> None:
    async with world.worker(Draw, max_cached_workflows=0, max_concurrent_workflow_task_polls=1):
        handles = [await world.start(Draw.run) for _ in range(3)]
        drawn = [await handle.result() for handle in handles]
    expect.equal(len({str(d) for d in drawn}), 3, "each run has its own")
    expect.that(all(d[0] != d[3] and d[1] != d[4] and d[2] < d[5] for d in drawn), "they go on", drawn)
