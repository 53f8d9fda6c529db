"""What schedules start: triggers, times that come, backfills, overlaps, limits, pauses, and what a run is handed on."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from temporalio.api.workflowservice.v1 import CreateScheduleRequest, PatchScheduleRequest
from temporalio.client import (
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecutionStatus,
)
from temporalio.common import RetryPolicy, SearchAttributeKey

import expect
import history
from case import case
from scheduling import (
    HOUR,
    MINUTE,
    SECOND,
    Scheduled,
    action,
    at,
    attributes,
    ends,
    plan,
    ran,
    running,
    scheduled,
    trigger,
    until,
    until_acted,
    until_ended,
)
from world import NAMESPACE, World

Overlap = ScheduleOverlapPolicy
EVERY_SECOND = ScheduleSpec(intervals=[ScheduleIntervalSpec(SECOND)])
EVERY_MINUTE = ScheduleSpec(intervals=[ScheduleIntervalSpec(MINUTE)])
BY_ID = SearchAttributeKey.for_keyword("TemporalScheduledById")
START_TIME = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")


async def finish(world: World, id: str) -> Any:
    """Lets a run go on that waits; its result."""
    run = world.client.get_workflow_handle(id, result_type=int)
    await run.signal(Scheduled.finish)
    return await run.result()


async def result(world: World, id: str) -> int:
    return await world.client.get_workflow_handle(id, result_type=int).result()


async def status(world: World, id: str) -> WorkflowExecutionStatus | None:
    return (await world.client.get_workflow_handle(id).describe()).status


async def others_act(world: World, count: int = 2) -> datetime:
    """Returns once another schedule has acted at times that came meanwhile; the last of them."""
    state = ScheduleState(limited_actions=True, remaining_actions=count)
    async with scheduled(world, plan(world, spec=EVERY_SECOND, state=state, overlap=Overlap.ALLOW_ALL)) as handle:
        return (await until_acted(handle, count)).info.recent_actions[-1].scheduled_at


def instead(**changes: Any) -> Callable[[ScheduleUpdateInput], ScheduleUpdate]:
    """An update of fields of the action."""

    def change(given: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = given.description.schedule
        for name, value in changes.items():
            setattr(schedule.action, name, value)
        return ScheduleUpdate(schedule)

    return change


@case()
async def a_trigger_at_creation_is_described_at_once(world: World) -> None:
    for paused in (True, False):
        async with scheduled(world, plan(world, "wait", paused=paused), trigger_immediately=True) as handle:
            told = await handle.describe()
            expect.equal((told.info.num_actions, ends(told)), (1, ["RUNNING"]), "what it has started")
            (recent,) = told.info.recent_actions
            expect.equal(list(told.info.running_actions), [recent.action], "what is running")
            expect.that(recent.started_at >= recent.scheduled_at >= told.info.created_at, "when", recent)
            run = world.client.get_workflow_handle(recent.action.workflow_id)
            expect.equal((await run.describe()).run_id, recent.action.first_execution_run_id, "its run")


@case()
async def times_that_come_start_runs(world: World) -> None:
    start = ScheduleActionStartWorkflow(
        Scheduled.run,
        "count",
        id=world.id(),
        task_queue=world.queue,
        execution_timeout=3 * HOUR,
        run_timeout=2 * HOUR,
        task_timeout=7 * SECOND,
        retry_policy=RetryPolicy(maximum_attempts=3),
        memo={"of": "the run"},
        typed_search_attributes=attributes("of the run", 7),
        static_summary="a summary",
    )
    state = ScheduleState(limited_actions=True, remaining_actions=2)
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, action=start, spec=EVERY_SECOND, state=state)) as handle:
            told = await until_ended(handle, "COMPLETED", "COMPLETED")
            expect.equal(list(told.info.running_actions), [], "nothing is running")
            first, second = (each.scheduled_at for each in told.info.recent_actions)
            expect.that(second - first >= SECOND and first.microsecond == second.microsecond == 0, "their times", told.info)
            expect.equal(ran(told), [f"{start.id}-{time:%Y-%m-%dT%H:%M:%SZ}" for time in (first, second)], "their ids")
            expect.equal([await result(world, id) for id in ran(told)], [1, 2], "each has the last one's result")
    run = world.client.get_workflow_handle(ran(told)[1])
    described = await run.describe()
    found = described.typed_search_attributes
    expect.equal((found[BY_ID], found[START_TIME]), (handle.id, second), "what says who has started it")
    own = [pair for pair in found if pair.key.name.startswith("SdkTest")]
    expect.equal(own, sorted(attributes("of the run", 7), key=lambda pair: own.index(pair)), "its attributes")
    expect.equal(await described.memo(), {"of": "the run"}, "its memo")
    expect.equal(await described.static_summary(), "a summary", "its summary")
    began = history.attributes_of((await world.history(run)).events[0])
    timeouts = [began.workflow_execution_timeout, began.workflow_run_timeout, began.workflow_task_timeout]
    expect.equal([each.ToTimedelta() for each in timeouts], [3 * HOUR, 2 * HOUR, 7 * SECOND], "its timeouts")
    expect.equal(began.retry_policy.maximum_attempts, 3, "its retry policy")
    expect.equal(began.identity, f"temporal-scheduler-{NAMESPACE}-{handle.id}", "who has started it")
    expect.equal(began.last_completion_result.payloads[0].data, b"1", "what it was handed on")


@case()
async def limited_actions_run_out(world: World) -> None:
    state = ScheduleState(limited_actions=True, remaining_actions=2)
    made = plan(world, spec=EVERY_SECOND, state=state, overlap=Overlap.ALLOW_ALL)
    async with scheduled(world, made) as handle:
        told = await until_acted(handle, 2)
        expect.equal(told.schedule.state, ScheduleState(limited_actions=True), "none remains")
        expect.equal(list(told.info.next_action_times), [], "no more times")
        await others_act(world)
        expect.equal((await handle.describe()).info.num_actions, 2, "no more actions")
        told = await trigger(world, handle)
        told = await until_acted(handle, 3)
        expect.equal(told.schedule.state.remaining_actions, 0, "a trigger needs none")

        def one_more(given: ScheduleUpdateInput) -> ScheduleUpdate:
            given.description.schedule.state.remaining_actions = 1
            return ScheduleUpdate(given.description.schedule)

        await handle.update(one_more)
        await until_acted(handle, 4)


@case()
async def nothing_is_caught_up_after_a_pause(world: World) -> None:
    async with scheduled(world, plan(world, spec=EVERY_SECOND, overlap=Overlap.ALLOW_ALL)) as handle:
        await until(handle, "actions", lambda told: told.info.num_actions >= 2)
        await handle.pause()
        told = await handle.describe()
        before = told.info.num_actions
        expect.equal(len(told.info.next_action_times), 10, "times to come if it were not paused")
        last = await others_act(world)
        expect.equal((await handle.describe()).info.num_actions, before, "actions of one that is paused")
        await handle.unpause()
        told = await until(handle, "more actions", lambda told: told.info.num_actions > before)
        new = told.info.recent_actions[before - told.info.num_actions :]
        expect.that(all(each.scheduled_at > last for each in new), "times after the pause", (last, new))


@case()
async def a_run_that_is_on_is_not_overlapped_by_default(world: World) -> None:
    async with world.worker(Scheduled), scheduled(world, plan(world, "wait")) as handle:
        (first,) = ran(await trigger(world, handle))
        for count in (1, 2):
            await trigger(world, handle)
            told = await until(handle, "a skip", lambda told: told.info.num_actions_skipped_overlap == count)
            expect.equal((told.info.num_actions, running(told)), (1, [first]), "no other run")
        await finish(world, first)
        await until_ended(handle, "COMPLETED")
        await trigger(world, handle)
        told = await until_ended(handle, "COMPLETED", "RUNNING")
        expect.equal(running(told), ran(told)[1:], "another run, now")


@case()
async def one_start_waits_for_the_end(world: World) -> None:
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, "wait", overlap=Overlap.BUFFER_ONE)) as handle:
            (first,) = ran(await trigger(world, handle))
            for _ in range(3):
                await trigger(world, handle)
            told = await until(handle, "skips", lambda told: told.info.num_actions_skipped_overlap == 2)
            expect.equal(told.raw_description.info.buffer_size, 1, "what waits")
            await finish(world, first)
            told = await until_ended(handle, "COMPLETED", "RUNNING")
            await finish(world, ran(told)[1])
            told = await until_ended(handle, "COMPLETED", "COMPLETED")
            counts = [told.info.num_actions, told.info.num_actions_skipped_overlap]
            expect.equal(counts, [2, 2], "what was started, and what was not")


@case()
async def all_starts_wait_for_the_end(world: World) -> None:
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, "wait", overlap=Overlap.BUFFER_ALL)) as handle:
            for _ in range(4):
                await trigger(world, handle)
            await until(handle, "starts that wait", lambda told: told.raw_description.info.buffer_size == 3)
            for number in range(4):
                told = await until_ended(handle, *["COMPLETED"] * number, "RUNNING")
                expect.equal(running(told), ran(told)[number:], "one at a time")
                expect.equal(told.raw_description.info.buffer_size, 3 - number, "what waits")
                expect.equal(await finish(world, running(told)[0]), number + 1, "with the last one's result")
            told = await until_ended(handle, *["COMPLETED"] * 4)
            expect.equal(ran(told), sorted(ran(told)), "in the order of their times")
            expect.equal(told.info.num_actions_skipped_overlap, 0, "none is left out")


@case()
async def a_run_gives_way_to_the_next(world: World) -> None:
    ways = [
        (Overlap.CANCEL_OTHER, "CANCELED", "WorkflowExecutionCancelRequested", "cancelled"),
        (Overlap.TERMINATE_OTHER, "TERMINATED", "WorkflowExecutionTerminated", "terminated"),
    ]
    async with world.worker(Scheduled):
        for overlap, end, event, word in ways:
            async with scheduled(world, plan(world, "wait", overlap=overlap)) as handle:
                (first,) = ran(await trigger(world, handle))
                await until_ended(handle, "RUNNING")
                await trigger(world, handle)
                told = await until_ended(handle, end, "RUNNING")
                expect.equal(running(told), ran(told)[1:], "the next is running")
                (found,) = history.events_named(await world.history(world.client.get_workflow_handle(first)), event)
                reason = found.cause if end == "CANCELED" else found.reason
                expect.equal(reason, f"{word} by schedule overlap policy", "why")
                expect.equal(found.identity, f"temporal-scheduler-{NAMESPACE}-{handle.id}", "who")
                # One after the other, however many are asked for.
                for _ in range(2):
                    await trigger(world, handle)
                await until(handle, "the last one alone", lambda told: last_alone(told, end))
                await finish(world, running(await handle.describe())[0])


def last_alone(told: ScheduleDescription, end: str) -> bool:
    """All but the last run have ended so, and nothing waits."""
    *before, last = ends(told)
    waits = told.raw_description.info.buffer_size
    return set(before) == {end} and last == "RUNNING" and not waits and len(before) >= 2


@case()
async def all_run_beside_each_other(world: World) -> None:
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, "wait", overlap=Overlap.ALLOW_ALL)) as handle:
            for _ in range(5):
                await trigger(world, handle)
            told = await until_acted(handle, 5)
            ids = ran(told)
            expect.equal(len(set(ids)), 5, "ids")
            # A Temporal server knows nothing of these any more.
            if not world.reference:
                expect.equal(running(told), ids, "all are running")
            for id in ids:
                expect.equal(await status(world, id), WorkflowExecutionStatus.RUNNING, id)
            expect.equal([await finish(world, id) for id in ids], [1] * 5, "none has another's result")
            if not world.reference:
                await until_ended(handle, *["COMPLETED"] * 5)


@case()
async def a_trigger_may_have_a_policy_of_its_own(world: World) -> None:
    async with world.worker(Scheduled), scheduled(world, plan(world, "wait")) as handle:
        (first,) = ran(await trigger(world, handle))
        await trigger(world, handle, Overlap.ALLOW_ALL)
        told = await until_acted(handle, 2)
        expect.equal(await status(world, first), WorkflowExecutionStatus.RUNNING, "the first")
        beside = ran(told)[1]
        expect.equal(await status(world, beside), WorkflowExecutionStatus.RUNNING, "one beside it")
        await finish(world, beside)
        await trigger(world, handle, Overlap.BUFFER_ALL)
        await until(handle, "a start that waits", lambda told: told.raw_description.info.buffer_size == 1)
        await trigger(world, handle, Overlap.BUFFER_ONE)
        await trigger(world, handle, Overlap.SKIP)
        await until(handle, "skips", lambda told: told.info.num_actions_skipped_overlap >= 1)
        await trigger(world, handle, Overlap.TERMINATE_OTHER)

        async def is_over() -> bool:
            return await status(world, first) == WorkflowExecutionStatus.TERMINATED

        await expect.eventually(is_over, "the end of the first")


@case()
async def what_waits_starts_as_the_last_update_says(world: World) -> None:
    async with world.worker(Scheduled), scheduled(world, plan(world, "wait")) as handle:
        (first,) = ran(await trigger(world, handle))
        await trigger(world, handle, Overlap.BUFFER_ALL)
        await until(handle, "a start that waits", lambda told: told.raw_description.info.buffer_size == 1)
        await handle.update(instead(args=["count"]))
        expect.equal((await handle.describe()).raw_description.info.buffer_size, 1, "what an update keeps")
        await finish(world, first)
        told = await until_ended(handle, "COMPLETED", "COMPLETED")
        expect.equal(await result(world, ran(told)[1]), 2, "one that did not wait to be told")


@case()
async def results_and_failures_are_handed_on(world: World) -> None:
    async with world.worker(Scheduled), scheduled(world, plan(world)) as handle:
        expected = []
        for script, end in (("count", 1), ("fail", None), ("fail", None), ("count", 101), ("count", 102)):
            await handle.update(instead(args=[script]))
            await trigger(world, handle)
            expected.append("COMPLETED" if end else "FAILED")
            told = await until_ended(handle, *expected)
            if end:
                expect.equal(await result(world, ran(told)[-1]), end, f"after {expected}")
        began = history.attributes_of((await world.history(world.client.get_workflow_handle(ran(told)[3]))).events[0])
        expect.equal(began.continued_failure.message, "out of paper", "the last failure")


@case()
async def a_failure_pauses_where_it_is_asked_for(world: World) -> None:
    policy = SchedulePolicy(pause_on_failure=True)
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, "fail", policy=policy), trigger_immediately=True) as handle:
            told = await until(handle, "a pause", lambda told: told.schedule.state.paused)
            why = f"paused due to workflow failure: {ran(told)[0]}: out of paper"
            expect.equal((told.schedule.state.note, ends(told)), (why, ["FAILED"]), "why")
            await handle.unpause()
            await trigger(world, handle)
            await until(handle, "another pause", lambda told: told.schedule.state.paused)
        timed = plan(world, policy=policy, action=action(world, "wait", run_timeout=SECOND))
        async with scheduled(world, timed, trigger_immediately=True) as handle:
            told = await until(handle, "a pause", lambda told: told.schedule.state.paused)
            expect.equal(told.schedule.state.note, f"paused due to workflow timeout: {ran(told)[0]}", "why")
            expect.equal(ends(told), ["TIMED_OUT"], "the end of the run")
        async with scheduled(world, plan(world, "wait", policy=policy), trigger_immediately=True) as handle:
            (first,) = ran(await handle.describe())
            await world.client.get_workflow_handle(first).terminate()
            await until_ended(handle, "TERMINATED")
            await trigger(world, handle)
            told = await until_ended(handle, "TERMINATED", "RUNNING")
            await world.client.get_workflow_handle(ran(told)[1]).cancel()
            told = await until_ended(handle, "TERMINATED", "CANCELED")
            expect.equal(told.schedule.state.paused, False, "what is no failure")


@case()
async def a_chain_is_one_run(world: World) -> None:
    async with world.worker(Scheduled), scheduled(world, plan(world, "wait, then go on")) as handle:
        (first,) = (await trigger(world, handle)).info.recent_actions
        current = world.client.get_workflow_handle(first.action.workflow_id)
        await current.signal(Scheduled.finish)

        async def goes_on() -> bool:
            return (await current.describe()).run_id != first.action.first_execution_run_id

        await expect.eventually(goes_on, "the next run of the chain")
        await trigger(world, handle)
        told = await until(handle, "a skip", lambda told: told.info.num_actions_skipped_overlap == 1)
        expect.equal((ends(told), running(told)), (["RUNNING"], [current.id]), "it goes on")
        await finish(world, current.id)
        told = await until_ended(handle, "COMPLETED")
        expect.equal(list(told.info.running_actions), [], "its end")


@case()
async def backfills_start_what_would_have_been(world: World) -> None:
    ranges = [
        ScheduleBackfill(at(0, 1, year=2020), at(0, 4, year=2020), Overlap.ALLOW_ALL),
        ScheduleBackfill(at(1, 0, year=2020) + SECOND, at(1, 3, year=2020) - SECOND, Overlap.ALLOW_ALL),
    ]
    # Both ends are part of it, if they are times of the schedule.
    first = [at(0, minute, year=2020) for minute in (1, 2, 3, 4)]
    second = [at(1, minute, year=2020) for minute in (1, 2)]
    # Of a schedule that has no times to come.
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(MINUTE)], end_at=at(2, year=2020))

    def ids(of: str, times: list[datetime]) -> list[str]:
        return [f"{of}-{time:%Y-%m-%dT%H:%M:%SZ}" for time in times]

    async with world.worker(Scheduled):
        for paused in (False, True):
            made = plan(world, spec=spec, paused=paused)
            async with scheduled(world, made, backfill=ranges) as handle:
                told = await until_acted(handle, 6)
                expect.equal(ran(told), ids(made.action.id, first + second), "at creation")
            made = plan(world, spec=spec, paused=paused)
            async with scheduled(world, made) as handle:
                await handle.backfill(ranges[1], ranges[0])
                told = await until_acted(handle, 6)
                expect.equal(ran(told), ids(made.action.id, second + first), "in the order that is asked for")
                expect.equal([each.scheduled_at for each in told.info.recent_actions], second + first, "their times")
                state = told.schedule.state
                expect.equal(state, ScheduleState(paused=paused), "the state")
                await asyncio.gather(*(result(world, id) for id in ran(told)))
                # The same times again.
                await handle.backfill(ranges[1])
                told = await until_acted(handle, 8)
                expect.equal(ran(told)[6:], ids(made.action.id, second), "a second time")
        await expect.fails(ValueError, handle.backfill())


@case()
async def backfills_heed_their_policy(world: World) -> None:
    whole = at(0, 1, year=2020), at(0, 5, year=2020)
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, "wait", spec=EVERY_MINUTE, paused=True)) as handle:
            await handle.backfill(ScheduleBackfill(*whole))
            told = await until(handle, "skips", lambda told: told.info.num_actions_skipped_overlap == 4)
            expect.equal((told.info.num_actions, ends(told)), (1, ["RUNNING"]), "the first, and no other")
        async with scheduled(world, plan(world, spec=EVERY_MINUTE, paused=True)) as handle:
            await handle.backfill(ScheduleBackfill(*whole, overlap=Overlap.BUFFER_ALL))
            told = await until_ended(handle, *["COMPLETED"] * 5)
            results = [await result(world, id) for id in ran(told)]
            expect.equal(results, [1, 2, 3, 4, 5], "one after the other")
            expect.equal(ran(told), sorted(ran(told)), "in order")


@case()
async def runs_outlive_their_schedule(world: World) -> None:
    async with world.worker(Scheduled):
        async with scheduled(world, plan(world, "wait")) as handle:
            (first,) = (await trigger(world, handle)).info.recent_actions
            world.remember(first.action.workflow_id, first.action.first_execution_run_id)
            await trigger(world, handle, Overlap.BUFFER_ALL)
            await until(handle, "a start that waits", lambda told: told.raw_description.info.buffer_size == 1)
            await handle.delete()
            expect.equal(await status(world, first.action.workflow_id), WorkflowExecutionStatus.RUNNING, "its run")
            async with scheduled(world, plan(world), id=handle.id) as another:
                told = await another.describe()
                expect.equal((told.info.num_actions, list(told.info.running_actions)), (0, []), "another one")
                await finish(world, first.action.workflow_id)
                await trigger(world, another)
                told = await until_ended(another, "COMPLETED")
                expect.equal(await result(world, ran(told)[0]), 1, "it is handed nothing on")
                mine = [first.action.workflow_id, *ran(told)]
            await others_act(world)

    async def started() -> list[str]:
        query = f"TemporalScheduledById = '{handle.id}'"
        return sorted([each.id async for each in world.client.list_workflows(query)])

    await world.settles(started, sorted(mine), "no start that waited")


@case(everlog_only=True)
async def two_triggers_in_one_second_are_two(world: World) -> None:
    """A Temporal server drops the second one: its run would have the id of the first one's."""
    async with scheduled(world, plan(world, "wait", overlap=Overlap.ALLOW_ALL)) as handle:
        patch = PatchScheduleRequest(namespace=NAMESPACE, schedule_id=handle.id)
        patch.patch.trigger_immediately.scheduled_time.FromDatetime(at(0))
        for number in range(5):
            patch.request_id = f"{number}"
            await world.client.workflow_service.patch_schedule(patch)
        told = await until_acted(handle, 5)
        expect.equal(len(set(ran(told))), 5, "runs of one moment")
        await asyncio.gather(*(handle.trigger() for _ in range(5)))
        told = await until_acted(handle, 10)
        expect.equal(len(set(ran(told))), 10, "runs of ten triggers")


@case(everlog_only=True)
async def ids_are_kept_where_it_is_asked_for(world: World) -> None:
    """A Temporal server appends the time all the same."""
    request = CreateScheduleRequest(namespace=NAMESPACE, schedule_id=world.id("schedule"), request_id="x")
    made = plan(world)
    request.schedule.CopyFrom(await made._to_proto(world.client))
    request.schedule.policies.keep_original_workflow_id = True
    await world.client.workflow_service.create_schedule(request)
    handle = world.client.get_schedule_handle(request.schedule_id)
    async with world.worker(Scheduled):
        for count in (1, 2):
            await handle.trigger()
            told = await until_ended(handle, *["COMPLETED"] * count)
            expect.equal(ran(told), [made.action.id] * count, "the id that was given")
    expect.equal(told.raw_description.schedule.policies.keep_original_workflow_id, True, "what is described")
    for each in told.info.recent_actions:
        world.remember(each.action.workflow_id, each.action.first_execution_run_id)
    await handle.delete()
