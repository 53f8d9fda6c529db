"""Schedules by the SDK's client: what is made, described, listed, updated and refused."""

import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.workflowservice.v1 import (
    CountSchedulesRequest,
    CreateScheduleRequest,
    DescribeScheduleRequest,
    ListScheduleMatchingTimesRequest,
    ListSchedulesRequest,
    PatchScheduleRequest,
    UpdateScheduleRequest,
)
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import (
    Priority,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.service import RPCStatusCode

import expect
from case import case
from scheduling import (
    DAY,
    HOUR,
    MIDNIGHT,
    MINUTE,
    SECOND,
    UTC,
    YEAR,
    Scheduled,
    action,
    at,
    attributes,
    matching,
    plan,
    scheduled,
)
from world import NAMESPACE, World

@case()
async def what_is_made_is_described(world: World) -> None:
    """Everything that a schedule may have comes back as it was given."""
    calendar = ScheduleCalendarSpec(
        second=[ScheduleRange(30)],
        minute=[ScheduleRange(0, 59, 15)],
        hour=[ScheduleRange(9, 17), ScheduleRange(20)],
        day_of_month=[ScheduleRange(1, 31, 2)],
        month=[ScheduleRange(1, 6)],
        year=[ScheduleRange(2030, 2040)],
        day_of_week=[ScheduleRange(1, 5)],
        comment="in the office",
    )
    spec = ScheduleSpec(
        calendars=[calendar, MIDNIGHT],
        intervals=[ScheduleIntervalSpec(every=10 * DAY, offset=2 * DAY), ScheduleIntervalSpec(every=HOUR)],
        cron_expressions=["0 12 * * MON", "@every 90m/5m"],
        skip=[ScheduleCalendarSpec(hour=[ScheduleRange(12)], comment="lunch")],
        start_at=at(1),
        end_at=at(1, year=2032),
        jitter=timedelta(seconds=80),
        time_zone_name="Europe/Berlin",
    )
    start = ScheduleActionStartWorkflow(
        Scheduled.run,
        "count",
        id=world.id(),
        task_queue=world.queue,
        execution_timeout=3 * HOUR,
        run_timeout=2 * HOUR,
        task_timeout=7 * SECOND,
        retry_policy=RetryPolicy(initial_interval=2 * SECOND, maximum_attempts=3),
        memo={"of": "the run"},
        typed_search_attributes=attributes("of the run", 7),
        static_summary="a summary",
        static_details="details",
        priority=Priority(priority_key=2),
    )
    overlap = ScheduleOverlapPolicy.BUFFER_ONE
    policy = SchedulePolicy(overlap=overlap, catchup_window=5 * MINUTE, pause_on_failure=True)
    state = ScheduleState(note="not yet", paused=True, limited_actions=True, remaining_actions=30)
    made = Schedule(action=start, spec=spec, policy=policy, state=state)
    given = {"memo": {"of": ["the", "schedule"]}, "search_attributes": attributes("of the schedule")}
    async with scheduled(world, made, **given) as handle:
        told = await handle.describe()
        raw = told.raw_description
        expect.equal(told.id, handle.id, "its id")
        expect.equal(await told.memo(), {"of": ["the", "schedule"]}, "its memo")
        expect.equal(told.typed_search_attributes, attributes("of the schedule"), "its search attributes")
        noon = ScheduleCalendarSpec(hour=[ScheduleRange(12)], day_of_week=[ScheduleRange(1)])
        expected = Schedule(told.schedule.action, ScheduleSpec(**vars(spec)), policy, state)
        # What stands in cron strings comes last.
        expected.spec.cron_expressions = []
        expected.spec.calendars = [calendar, MIDNIGHT, noon]
        every = ScheduleIntervalSpec(every=90 * MINUTE, offset=5 * MINUTE)
        expected.spec.intervals = [*spec.intervals, every]
        same_schedule(told.schedule, expected)

        await same_action(world, told, start)
        info = told.info
        counts = [info.num_actions, info.num_actions_missed_catchup_window, info.num_actions_skipped_overlap]
        expect.equal(counts, [0, 0, 0], "what it has done")
        expect.equal([list(info.running_actions), list(info.recent_actions)], [[], []], "its runs")
        expect.equal(len(info.next_action_times), 10, "times to come, of one that is paused")
        expect.that(info.created_at <= datetime.now(UTC) + MINUTE, "when it was made", info.created_at)
        expect.equal(info.last_updated_at, None, "when it was updated")
        expect.that(len(raw.conflict_token) > 0, "a token")
        expect.equal(list(raw.schedule.spec.cron_string), [], "no cron strings")


def same_schedule(actual: Schedule, expected: Schedule) -> None:
    """Two that are equal but for what is a list there and a tuple here."""
    for part in ("spec", "policy", "state"):
        for name, value in vars(getattr(expected, part)).items():
            found = getattr(getattr(actual, part), name)
            expect.equal(plainly(found), plainly(value), f"{name} of the {part}")


def plainly(value: Any) -> Any:
    if isinstance(value, ScheduleCalendarSpec):
        return {name: plainly(each) for name, each in vars(value).items()}
    if value is None or isinstance(value, (str, datetime, timedelta, int, ScheduleIntervalSpec, ScheduleRange)):
        return value
    return [plainly(each) for each in value]


async def same_action(world: World, told: ScheduleDescription, expected: ScheduleActionStartWorkflow) -> None:
    found = told.schedule.action
    expect.that(isinstance(found, ScheduleActionStartWorkflow), "its action", found)
    for name in ("id", "task_queue", "execution_timeout", "run_timeout", "task_timeout", "priority"):
        expect.equal(getattr(found, name), getattr(expected, name), name)
    expect.equal(found.workflow, "Scheduled", "the workflow")
    expect.equal(found.typed_search_attributes, expected.typed_search_attributes, "attributes of its runs")
    retries = found.retry_policy
    said = [retries.initial_interval, retries.backoff_coefficient, retries.maximum_interval, retries.maximum_attempts]
    expect.equal(said, [2 * SECOND, 2.0, 200 * SECOND, 3], "how often it is tried, with what nobody said")
    converter = world.client.data_converter
    payloads = [*found.args, found.memo["of"], found.static_summary, found.static_details]
    expect.that(all(isinstance(each, Payload) for each in payloads), "payloads", payloads)
    values = await converter.decode(payloads)
    expect.equal(values, ["count", "the run", "a summary", "details"], "what it is given")
    kind = told.raw_description.schedule.action.start_workflow.task_queue.kind
    expect.equal(kind, TaskQueueKind.TASK_QUEUE_KIND_NORMAL, "its queue")


@case()
async def what_is_no_schedule_is_refused(world: World) -> None:
    service = world.client.workflow_service
    for limited, remaining in ((True, 0), (False, 1)):
        state = ScheduleState(limited_actions=limited, remaining_actions=remaining)
        await expect.fails(ValueError, world.client.create_schedule(world.id("bad"), plan(world, state=state)))
    bad = [
        plan(world, action=action(world, id="x" * 1001)),
        plan(world, action=action(world, typed_search_attributes=unknown())),
    ]
    for schedule in bad:
        creation = world.client.create_schedule(world.id("bad"), schedule)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, creation)
    creation = world.client.create_schedule(world.id("bad"), plan(world), search_attributes=unknown())
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, creation)
    # A Temporal server of this version lets these pass.
    if not world.reference:
        creation = world.client.create_schedule(world.id("bad"), plan(world, state=ScheduleState(note="x" * 1001)))
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, creation)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, world.client.create_schedule("", plan(world)))
    request = CreateScheduleRequest(namespace=NAMESPACE, schedule_id=world.id("bad"))
    request.schedule.CopyFrom(await plan(world)._to_proto(world.client))
    error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.create_schedule(request))
    expect.equal(error.message, "RequestId is not set on request.", "no request id")
    request.request_id = str(uuid.uuid4())
    for field, value in (("cron_schedule", "@daily"), ("workflow_id_reuse_policy", 2)):
        other = CreateScheduleRequest()
        other.CopyFrom(request)
        setattr(other.schedule.action.start_workflow, field, value)
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.create_schedule(other))
        expect.that("must not contain" in error.message, field, error.message)
    for field in ("workflow_type", "task_queue"):
        other = CreateScheduleRequest()
        other.CopyFrom(request)
        other.schedule.action.start_workflow.ClearField(field)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.create_schedule(other))
    # A Temporal server of this version looks for neither an action nor a patch.
    if not world.reference:
        request.schedule.action.Clear()
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.create_schedule(request))
        expect.equal(error.message, "Only StartWorkflow action is supported for schedules", "no action")
        patch = PatchScheduleRequest(namespace=NAMESPACE, schedule_id=world.id("nobody"), request_id="x")
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.patch_schedule(patch))
        expect.equal(error.message, "Patch is not set on request.", "no patch")


def unknown() -> TypedSearchAttributes:
    return TypedSearchAttributes([SearchAttributePair(SearchAttributeKey.for_int("Nobody"), 1)])


async def nothing_is_there(world: World, handle: ScheduleHandle) -> None:
    """Everything that is asked of a schedule says that it is not there."""
    now = datetime.now(UTC)
    calls = [
        handle.describe(),
        handle.pause(),
        handle.unpause(),
        handle.trigger(),
        handle.backfill(ScheduleBackfill(now - HOUR, now)),
        handle.update(lambda given: ScheduleUpdate(given.description.schedule)),
        handle.delete(),
    ]
    # A Temporal server still tells the times of one that is deleted.
    if not world.reference:
        calls.append(matching(world, handle.id, now - HOUR, now))
    for call in calls:
        await expect.refused(RPCStatusCode.NOT_FOUND, call)


@case()
async def an_id_is_taken_once_and_free_again(world: World) -> None:
    handle = world.client.get_schedule_handle(world.id("schedule"))
    await nothing_is_there(world, handle)
    for _ in range(2):
        async with scheduled(world, plan(world), id=handle.id, memo={"of": "the first"}):
            again = world.client.create_schedule(handle.id, plan(world), memo={"of": "the second"})
            await expect.fails(ScheduleAlreadyRunningError, again)
            expect.equal(await (await handle.describe()).memo_value("of"), "the first", "whose it is")
            await handle.delete()
            await nothing_is_there(world, handle)


@case()
async def a_call_is_made_again_without_harm(world: World) -> None:
    service = world.client.workflow_service
    request = CreateScheduleRequest(namespace=NAMESPACE, schedule_id=world.id("schedule"), request_id="the first")
    request.schedule.CopyFrom(await plan(world)._to_proto(world.client))
    handle = world.client.get_schedule_handle(request.schedule_id)
    answers = [await service.create_schedule(request) for _ in range(3)]
    expect.equal([each.conflict_token for each in answers], [answers[0].conflict_token] * 3, "answers")
    request.request_id = "another"
    await expect.refused(RPCStatusCode.ALREADY_EXISTS, service.create_schedule(request))
    await handle.delete()
    await nothing_is_there(world, handle)


@case()
async def pauses_carry_notes(world: World) -> None:
    async with scheduled(world, plan(world)) as handle:
        steps = [
            (handle.pause, {}, True, "Paused via Python SDK"),
            (handle.unpause, {}, False, "Unpaused via Python SDK"),
            (handle.pause, {"note": "too loud"}, True, "too loud"),
            (handle.pause, {"note": "still too loud"}, True, "still too loud"),
            (handle.unpause, {"note": "quiet again"}, False, "quiet again"),
            (handle.unpause, {"note": "very quiet"}, False, "very quiet"),
        ]
        for call, options, paused, note in steps:
            await call(**options)
            state = (await handle.describe()).schedule.state
            expect.equal((state.paused, state.note), (paused, note), "what is described at once")
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, handle.pause(note="x" * 1001))
        patch = PatchScheduleRequest(namespace=NAMESPACE, schedule_id=handle.id, request_id="both")
        patch.patch.pause, patch.patch.unpause = "first", "then"
        await world.client.workflow_service.patch_schedule(patch)
        state = (await handle.describe()).schedule.state
        expect.equal((state.paused, state.note), (False, "then"), "both in one")


@case()
async def updates_replace_each_part(world: World) -> None:
    given = {"memo": {"of": "it"}, "search_attributes": attributes("red")}
    async with scheduled(world, plan(world, paused=True), **given) as handle:
        made = await handle.describe()
        expect.equal(made.info.last_updated_at, None, "when nothing was updated")
        await handle.update(lambda _: None)
        expect.equal((await handle.describe()).raw_description, made.raw_description, "no update")

        def new_spec(given: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule = given.description.schedule
            schedule.spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(HOUR)], start_at=at(5))
            return ScheduleUpdate(schedule)

        await handle.update(new_spec)
        told = await handle.describe()
        expect.equal(told.info.next_action_times, [at(5) + n * HOUR for n in range(10)], "new times")
        expect.that(told.info.last_updated_at >= told.info.created_at, "when it was updated", told.info)
        expect.equal(told.info.created_at, made.info.created_at, "when it was made")
        expect.that(told.raw_description.conflict_token != made.raw_description.conflict_token, "another token")

        async def new_action(given: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule = given.description.schedule
            assert isinstance(schedule.action, ScheduleActionStartWorkflow)
            schedule.action.args = ["wait"]
            schedule.action.run_timeout = 5 * MINUTE
            return ScheduleUpdate(schedule)

        await handle.update(new_action)
        found = (await handle.describe()).schedule.action
        expect.equal(found.run_timeout, 5 * MINUTE, "a new timeout")
        expect.equal(await world.client.data_converter.decode(found.args), ["wait"], "a new argument")

        def new_policy(given: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule = given.description.schedule
            schedule.policy = SchedulePolicy(ScheduleOverlapPolicy.ALLOW_ALL, 20 * SECOND, True)
            return ScheduleUpdate(schedule)

        await handle.update(new_policy)
        expected = SchedulePolicy(ScheduleOverlapPolicy.ALLOW_ALL, 20 * SECOND, True)
        expect.equal((await handle.describe()).schedule.policy, expected, "a new policy")

        def new_state(given: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule = given.description.schedule
            schedule.state = ScheduleState("by and by", False, True, 3)
            return ScheduleUpdate(schedule)

        await handle.update(new_state)
        told = await handle.describe()
        expect.equal(told.schedule.state, ScheduleState("by and by", False, True, 3), "a new state")
        expect.equal(told.info.next_action_times, [at(5), at(6), at(7)], "no more times than actions")
        expect.equal(told.schedule.policy, expected, "what the update before has set")
        expect.equal(await told.memo(), {"of": "it"}, "what no update changes")

        class Changed(Exception):
            """Of the callback."""

        def fails(_: ScheduleUpdateInput) -> ScheduleUpdate:
            raise Changed

        before = (await handle.describe()).raw_description
        await expect.fails(Changed, handle.update(fails))
        expect.equal((await handle.describe()).raw_description, before, "an update that fails")


@case()
async def what_is_not_given_is_filled_in(world: World) -> None:
    request = CreateScheduleRequest(namespace=NAMESPACE, schedule_id=world.id("schedule"))
    request.schedule.action.start_workflow.workflow_type.name = "Scheduled"
    request.schedule.action.start_workflow.workflow_id = world.id()
    request.schedule.action.start_workflow.task_queue.name = world.queue
    service = world.client.workflow_service
    for window, expected in ((None, YEAR), (1, 10 * SECOND), (60, MINUTE)):
        request.request_id = str(uuid.uuid4())
        if window:
            request.schedule.policies.catchup_window.seconds = window
        await service.create_schedule(request)
        handle = world.client.get_schedule_handle(request.schedule_id)
        told = await handle.describe()
        await handle.delete()
        expect.equal(told.schedule.policy, SchedulePolicy(ScheduleOverlapPolicy.SKIP, expected), "policies")
        expect.equal(told.schedule.state, ScheduleState(), "its state")
        raw = told.raw_description
        expect.equal([raw.HasField("memo"), raw.HasField("search_attributes")], [False] * 2, "what nobody gave")
        expect.equal(list(told.info.next_action_times), [], "no times")


@case()
async def a_token_of_an_older_description_is_refused(world: World) -> None:
    """A Temporal server drops such an update, and answers as if it had made it."""
    service = world.client.workflow_service
    async with scheduled(world, plan(world)) as handle:
        told = (await handle.describe()).raw_description
        update = UpdateScheduleRequest(namespace=NAMESPACE, schedule_id=handle.id, schedule=told.schedule)
        update.conflict_token = told.conflict_token
        update.schedule.state.notes, update.request_id = "first", str(uuid.uuid4())
        await service.update_schedule(update)
        expect.equal((await handle.describe()).schedule.state.note, "first", "an update with its token")
        update.schedule.state.notes, update.request_id = "second", str(uuid.uuid4())
        if world.reference:
            await service.update_schedule(update)
        else:
            error = await expect.refused(RPCStatusCode.FAILED_PRECONDITION, service.update_schedule(update))
            expect.equal(error.message, "mismatched conflict token", "why")
        expect.equal((await handle.describe()).schedule.state.note, "first", "nothing has changed")
        await handle.pause(note="paused")
        update.conflict_token = (await handle.describe()).raw_description.conflict_token
        update.request_id = str(uuid.uuid4())
        await service.update_schedule(update)
        expect.equal((await handle.describe()).schedule.state.note, "second", "with the newest token")


async def carried(handle: ScheduleHandle) -> TypedSearchAttributes:
    return (await handle.describe()).typed_search_attributes


@case()
async def attributes_are_set_kept_and_cleared(world: World) -> None:
    empty = TypedSearchAttributes.empty
    for first in (empty, attributes("red", 1)):
        given = {"search_attributes": first} if first.search_attributes else {}
        async with scheduled(world, plan(world), **given) as handle:
            expect.equal(await carried(handle), first, "as made")
            steps = [(None, first), (attributes("blue"), attributes("blue")), (None, attributes("blue"))]
            for new, expected in [*steps, (empty, empty), (None, empty), (attributes("red", 2), attributes("red", 2))]:
                await handle.update(lambda told: ScheduleUpdate(told.description.schedule, new))
                await world.settles(lambda: carried(handle), expected, f"after {new}")
            await expect.refused(
                RPCStatusCode.INVALID_ARGUMENT,
                handle.update(lambda told: ScheduleUpdate(told.description.schedule, unknown())),
            )


@case()
async def schedules_are_listed_in_pages_and_by_queries(world: World) -> None:
    tag = world.id("tag")
    spec = ScheduleSpec(calendars=[ScheduleCalendarSpec(comment=f"{n}") for n in range(12)], start_at=at(1))
    ids = []

    async def list_ids(query: str, page_size: int = 1000) -> list[str]:
        return sorted([each.id async for each in await world.client.list_schedules(query, page_size=page_size)])

    async def lists(query: str, expected: list[str]) -> None:
        await world.settles(lambda: list_ids(query), sorted(expected), query)
        # A Temporal server of this version has no such call.
        if not world.reference:
            request = CountSchedulesRequest(namespace=NAMESPACE, query=query)
            counted = await world.client.workflow_service.count_schedules(request)
            expect.equal(counted.count, len(expected), f"the count of {query}")

    for number in range(5):
        given = {"memo": {"number": number}, "search_attributes": attributes(tag, number)}
        made = plan(world, spec=spec, state=ScheduleState(note=f"note {number}", paused=number % 2 == 0))
        ids.append((await world.client.create_schedule(world.id("schedule"), made, **given)).id)
    own = f"`SdkTestKeyword` = '{tag}'"
    await lists(own, ids)
    for size in (1, 2, 5):
        expect.equal(await list_ids(own, size), sorted(ids), f"in pages of {size}")
    await lists(f"{own} AND TemporalSchedulePaused = true", ids[::2])
    await lists(f"{own} AND TemporalSchedulePaused = false", ids[1::2])
    await lists(f"{own} AND SdkTestInt > 2", ids[3:])
    await lists(f"ScheduleId = '{ids[1]}'", [ids[1]])
    await lists(f"{own} AND (ScheduleId = '{ids[1]}' OR SdkTestInt IN (0, 4))", [ids[0], ids[1], ids[4]])
    await lists(f"{own} AND ScheduleId = 'nobody'", [])
    (found,) = [each async for each in await world.client.list_schedules(f"ScheduleId = '{ids[3]}'")]
    expect.equal(await found.memo(), {"number": 3}, "its memo")
    expect.equal(found.typed_search_attributes, attributes(tag, 3), "its search attributes")
    expect.equal(found.schedule.action.workflow, "Scheduled", "what it starts")
    expect.equal((found.schedule.state.note, found.schedule.state.paused), ("note 3", False), "its state")
    expect.equal([each.comment for each in found.schedule.spec.calendars], list("0123456789"), "no more than ten")
    expect.equal(list(found.info.recent_actions), [], "its runs")
    midnights = [at(0, day=day) for day in range(2, 7)]
    expect.equal(found.info.next_action_times[:5], midnights, "times to come")

    handle = world.client.get_schedule_handle(ids[3])
    await handle.pause(note="no more")
    await lists(f"{own} AND TemporalSchedulePaused = true", [*ids[::2], ids[3]])
    await handle.update(lambda told: ScheduleUpdate(told.description.schedule, attributes(tag, 30)))
    await lists(f"{own} AND SdkTestInt = 30 AND TemporalSchedulePaused = true", [ids[3]])
    await handle.delete()
    await lists(own, [each for each in ids if each != handle.id])
    runs = [each.id async for each in world.client.list_workflows(f"SdkTestKeyword = '{tag}'")]
    expect.equal(runs, [], "no schedule is a workflow")
    for each in ids:
        if each != handle.id:
            await world.client.get_schedule_handle(each).delete()
    await lists(own, [])


@case()
async def what_is_no_query_of_schedules_is_refused(world: World) -> None:
    service = world.client.workflow_service
    for query in ("Nobody = 1", "SdkTestInt =", "WorkflowType = 'x'", "ExecutionStatus = 'Running'"):
        request = ListSchedulesRequest(namespace=NAMESPACE, query=query)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.list_schedules(request))
        if not world.reference:
            count = CountSchedulesRequest(namespace=NAMESPACE, query=query)
            await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.count_schedules(count))
    elsewhere = DescribeScheduleRequest(namespace="nowhere", schedule_id="x")
    await expect.refused(RPCStatusCode.NOT_FOUND, service.describe_schedule(elsewhere))
