"""Times of schedules: every form of a spec, what its times are, and what is no spec."""

from datetime import datetime, timedelta

from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleRange,
    ScheduleSpec,
    ScheduleUpdate,
)
from temporalio.service import RPCStatusCode

import expect
from case import case
from scheduling import DAY, HOUR, MIDNIGHT, MINUTE, SECOND, at, matching, plan, scheduled
from world import NAMESPACE, World

# Clocks go forward in Berlin on 30 March 2031, and back in New York on 2 November.
TIMES: list[tuple[str, ScheduleSpec, datetime, datetime, list[datetime]]] = [
    (
        "a calendar",
        ScheduleSpec(calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(3, 9, 3)], day_of_month=[ScheduleRange(2)])]),
        at(0),
        at(0, month=2),
        [at(3, day=2), at(6, day=2), at(9, day=2)],
    ),
    (
        "intervals, the second one beside the first",
        ScheduleSpec(intervals=[ScheduleIntervalSpec(8 * HOUR), ScheduleIntervalSpec(12 * HOUR, 5 * MINUTE)]),
        at(0),
        at(0, day=2),
        [at(0, 5), at(8), at(12, 5), at(16), at(0, day=2)],
    ),
    (
        "a cron string of five fields, with its zone",
        ScheduleSpec(cron_expressions=["CRON_TZ=Asia/Tokyo 30 9 * JAN MON-FRI"]),
        at(0, day=3),
        at(0, day=7),
        [at(0, 30, day=3), at(0, 30, day=6)],
    ),
    (
        "one of seven, and a name",
        ScheduleSpec(cron_expressions=["15,45 0 6 1 1 * 2031-2032", "@monthly"]),
        at(0),
        at(0, month=2),
        [at(6, second=15), at(6, second=45), at(0, month=2)],
    ),
    (
        "the same time from two is one",
        ScheduleSpec(calendars=[MIDNIGHT], intervals=[ScheduleIntervalSpec(DAY)], cron_expressions=["@daily"]),
        at(0),
        at(1, day=3),
        [at(0, day=2), at(0, day=3)],
    ),
    (
        "what is left out",
        ScheduleSpec(intervals=[ScheduleIntervalSpec(HOUR)], skip=[ScheduleCalendarSpec(hour=[ScheduleRange(1, 22)])]),
        at(0),
        at(0, day=2),
        [at(23), at(0, day=2)],
    ),
    (
        "start and end, which are part of it",
        ScheduleSpec(intervals=[ScheduleIntervalSpec(HOUR)], start_at=at(4), end_at=at(6)),
        at(0),
        at(0, day=2),
        [at(4), at(5), at(6)],
    ),
    (
        "an hour that is not there",
        ScheduleSpec(calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(2)])], time_zone_name="Europe/Berlin"),
        at(0, day=28, month=3),
        at(23, day=31, month=3),
        [at(1, day=28, month=3), at(1, day=29, month=3), at(0, day=31, month=3)],
    ),
    (
        "an hour that is there twice",
        ScheduleSpec(calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(1)])], time_zone_name="America/New_York"),
        at(0, day=1, month=11),
        at(0, day=4, month=11),
        [at(5, day=1, month=11), at(5, day=2, month=11), at(6, day=2, month=11), at(6, day=3, month=11)],
    ),
    ("nothing", ScheduleSpec(), at(0), at(0, year=2032), []),
]


@case()
async def times_follow_from_each_form(world: World) -> None:
    for what, spec, after, until, expected in TIMES:
        async with scheduled(world, plan(world, spec=spec, paused=True)) as handle:
            expect.equal(await matching(world, handle.id, after, until), expected, what)
    every_second = plan(world, spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(SECOND)]), paused=True)
    async with scheduled(world, every_second) as handle:
        found = await matching(world, handle.id, at(0), at(1))
        expect.equal(found, [at(0) + n * SECOND for n in range(1, 1001)], "a thousand times, and no more")
        bare = ListScheduleMatchingTimesRequest(namespace=NAMESPACE, schedule_id=handle.id)
        call = world.client.workflow_service.list_schedule_matching_times
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, call(bare))
        expect.equal(error.message, "missing or invalid query", "a question without times")


@case()
async def midnights_are_what_a_calendar_has_by_default(world: World) -> None:
    async with scheduled(world, plan(world, spec=ScheduleSpec(calendars=[MIDNIGHT]))) as handle:
        times = (await handle.describe()).info.next_action_times
        expect.equal([(each.hour, each.minute, each.second) for each in times], [(0, 0, 0)] * 10, "ten midnights")
        expect.equal({after - before for before, after in zip(times, times[1:])}, {DAY}, "a day apart")


@case()
async def jitter_keeps_to_its_bounds_and_stays(world: World) -> None:
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(MINUTE)], jitter=HOUR, start_at=at(0), end_at=at(1))
    async with scheduled(world, plan(world, spec=spec, paused=True)) as handle:
        times = await matching(world, handle.id, at(0) - SECOND, at(2))
        expect.equal(len(times), 61, "as many as without it")
        slots = [at(0) + n * MINUTE for n in range(61)]
        # The last one has no next one to keep away from.
        late = [time - slot for time, slot in zip(times[:-1], slots)]
        expect.that(all(timedelta(0) <= each < MINUTE for each in late), "none reaches the next one's time", late)
        expect.that(len(set(late)) > 30, "they differ", late)
        expect.equal(await matching(world, handle.id, at(0) - SECOND, at(2)), times, "they stay")
        expect.equal((await handle.describe()).info.next_action_times, times[:10], "as in the description")
    async with scheduled(world, plan(world, spec=spec, paused=True)) as handle:
        expect.that(await matching(world, handle.id, at(0) - SECOND, at(2)) != times, "another's differ", times)


@case()
async def what_a_spec_says_comes_back_the_same(world: World) -> None:
    """What is described is sent back unchanged, and is described as before."""
    spec = ScheduleSpec(
        calendars=[ScheduleCalendarSpec(minute=[ScheduleRange(5)], year=[ScheduleRange(2030, 2035)])],
        cron_expressions=["TZ=America/New_York 0 6 * * SAT,SUN #weekend", "TZ=America/New_York 1-7 1 * * *"],
    )
    async with scheduled(world, plan(world, spec=spec)) as handle:
        before = await handle.describe()
        expect.equal(before.schedule.spec.time_zone_name, "America/New_York", "a zone of cron strings")
        comments = [each.comment for each in before.schedule.spec.calendars]
        expect.equal(comments, [None, "weekend", None], "comments")
        await handle.update(lambda given: ScheduleUpdate(given.description.schedule))
        after = await handle.describe()
        parts = [each.raw_description.schedule for each in (before, after)]
        expect.equal(parts[1], parts[0], "the schedule")
        expect.equal(after.info.next_action_times, before.info.next_action_times, "its times")


REFUSED: list[tuple[ScheduleSpec, str]] = [
    (ScheduleSpec(calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(24)])]), "is not in range [0-23]"),
    (ScheduleSpec(calendars=[ScheduleCalendarSpec(month=[ScheduleRange(0)])]), "is not in range [1-12]"),
    (ScheduleSpec(calendars=[ScheduleCalendarSpec(minute=[ScheduleRange(1, 60)])]), "not in range [0-59]"),
    (ScheduleSpec(calendars=[ScheduleCalendarSpec(year=[ScheduleRange(1999)])]), "is not in range [2000-2100]"),
    (ScheduleSpec(calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(1, 2, -1)])]), "has invalid Step"),
    (ScheduleSpec(calendars=[ScheduleCalendarSpec(comment="x" * 201)]), "comment is too long"),
    (ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(milliseconds=999))]), "interval is too small"),
    (ScheduleSpec(intervals=[ScheduleIntervalSpec(HOUR, HOUR)]), "phase cannot be greater than Interval"),
    (ScheduleSpec(intervals=[ScheduleIntervalSpec(HOUR, -HOUR)]), "phase is negative"),
    (ScheduleSpec(cron_expressions=["0 0 * *"]), "CronString does not have 5-7 fields"),
    (ScheduleSpec(cron_expressions=["0 0 * * FRI-TUE"]), "is before Start"),
    (ScheduleSpec(cron_expressions=["0 1/2/3 * * *"]), "has too many slashes"),
    (ScheduleSpec(cron_expressions=["@every"]), "CronString"),
    (ScheduleSpec(cron_expressions=["TZ=UTC"]), "CronString has time zone but missing fields"),
    (ScheduleSpec(cron_expressions=["TZ=UTC @daily", "@daily"]), "conflicting timezone names"),
    (ScheduleSpec(calendars=[MIDNIGHT], time_zone_name="Nowhere/Land"), "unknown time zone Nowhere/Land"),
]


@case()
async def what_is_no_spec_is_refused(world: World) -> None:
    async with scheduled(world, plan(world, paused=True)) as handle:
        before = (await handle.describe()).raw_description
        for spec, why in REFUSED:
            bad = plan(world, spec=spec)
            creation = world.client.create_schedule(world.id("bad"), bad)
            for call in (creation, handle.update(lambda _: ScheduleUpdate(bad))):
                error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, call)
                expect.that("invalid schedule spec: " in error.message.lower(), "what it is", error.message)
                expect.that(why in error.message, why, error.message)
        expect.equal((await handle.describe()).raw_description, before, "what was there before")
