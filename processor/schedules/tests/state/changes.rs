//! Updates, backfills, clocks that step back.

use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{ScheduleSpec, SpecTime};
use everlog_schedules::state::{
    BACKFILLS_MAX, BackfillRange, NOTES_MAX_BYTES, SchedulePatch, ScheduleRefusal, ScheduleSettings,
    ScheduleState,
};

use crate::world::*;

#[test]
fn an_update_between_the_nominal_and_the_actual_time_loses_no_run() {
    let jittered = ScheduleSpec { jitter: Some(span(30 * MINUTE_MS)), ..every(HOUR_MS) };
    let mut world = World::new(&jittered, policies(OverlapPolicy::Skip));
    let actual_ms = world.alarm_ms.expect("an alarm");
    let nominal_ms = START_MS + HOUR_MS;
    assert!(actual_ms > nominal_ms + 2 * SECOND_MS, "the jitter of this seed");
    world.go_to(nominal_ms + SECOND_MS);
    world.update(&jittered, policies(OverlapPolicy::AllowAll), ScheduleSettings::default());
    world.update(&jittered, policies(OverlapPolicy::Skip), ScheduleSettings::default());
    assert_eq!(world.alarm_ms, Some(actual_ms));
    world.go_to(actual_ms);
    assert_eq!(world.started_s(), [3_600]);
    world.open_all();
    world.close(1, COMPLETED);
    // Behind it an update does not bring it back.
    world.go_to(actual_ms + SECOND_MS);
    world.update(&jittered, policies(OverlapPolicy::Skip), ScheduleSettings::default());
    world.go_to(START_MS + 3 * HOUR_MS - 1);
    assert_eq!(world.started_s(), [3_600, 7_200]);
}

#[test]
fn an_update_does_not_start_what_its_specification_would_have_started_before() {
    let mut world = World::new(&every(DAY_MS), policies(OverlapPolicy::AllowAll));
    world.go_to(START_MS + 20 * HOUR_MS + 500);
    world.update(&every(SECOND_MS), policies(OverlapPolicy::AllowAll), ScheduleSettings::default());
    assert_eq!(world.starts, []);
    world.go_to(START_MS + 20 * HOUR_MS + 2_000);
    assert_eq!(world.started_s(), [72_001, 72_002]);
    assert_eq!(world.state.update_ms, START_MS + 20 * HOUR_MS + 500);
}

#[test]
fn what_was_due_before_an_update_or_a_pause_is_started_as_it_was() {
    let mut world = World::new(&every(HOUR_MS), policies(OverlapPolicy::Skip));
    world.now_ms = START_MS + HOUR_MS + 300;
    world.update(&every(DAY_MS), policies(OverlapPolicy::Skip), ScheduleSettings::default());
    assert_eq!(world.started_s(), [3_600]);
    let mut world = World::new(&every(HOUR_MS), policies(OverlapPolicy::Skip));
    world.now_ms = START_MS + HOUR_MS + 300;
    world.patch(&pause());
    assert_eq!(world.started_s(), [3_600]);
}

#[test]
fn what_waits_is_started_by_the_policy_and_under_the_name_of_the_update() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::BufferAll));
    world.go_to(START_MS + 5 * MINUTE_MS);
    world.open_all();
    assert_eq!(world.state.buffer_size(), 4);
    world.update(&every(MINUTE_MS), policies(OverlapPolicy::AllowAll), ScheduleSettings::default());
    assert_eq!(world.started_s(), [60, 120, 180, 240, 300]);
}

#[test]
fn a_wrong_token_and_long_notes_change_nothing() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::Skip));
    let before = world.state.clone();
    let (plan, now_ms) = (world.plan.clone(), world.now_ms + HOUR_MS);
    let settings = ScheduleSettings::default;
    let refused = world.state.update(&plan, &plan, settings(), Some(2), now_ms);
    assert_eq!(refused, Err(ScheduleRefusal::MismatchedToken));
    let long = "x".repeat(NOTES_MAX_BYTES + 1);
    let notes = ScheduleSettings { notes: long.clone(), ..settings() };
    assert_eq!(
        world.state.update(&plan, &plan, notes.clone(), None, now_ms),
        Err(ScheduleRefusal::NotesTooLong)
    );
    for patch in
        [SchedulePatch { pause: long.clone(), ..trigger() }, SchedulePatch { unpause: long, ..trigger() }]
    {
        assert_eq!(world.state.patch(&plan, &patch, now_ms), Err(ScheduleRefusal::NotesTooLong));
    }
    let range =
        || BackfillRange { start: SpecTime::of_ms(0), end: SpecTime::of_ms(0), overlap: OverlapPolicy::Skip };
    let many = SchedulePatch { backfills: (0..=BACKFILLS_MAX).map(|_| range()).collect(), ..trigger() };
    assert_eq!(world.state.patch(&plan, &many, now_ms), Err(ScheduleRefusal::TooManyBackfills));
    assert!(ScheduleState::create(&plan, notes, None, now_ms).is_err());
    assert_eq!(world.state, before);
    assert!(world.state.update(&plan, &plan, settings(), Some(1), now_ms).is_ok());
    assert_eq!(world.state.conflict_token, 2);
}

#[test]
fn a_pause_that_is_repeated_replaces_its_notes() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::Skip));
    world.patch(&pause());
    world.patch(&SchedulePatch { pause: "again".into(), ..SchedulePatch::default() });
    assert!(world.state.settings.is_paused);
    assert_eq!((world.state.settings.notes.as_str(), world.state.conflict_token), ("again", 3));
    world.patch(&SchedulePatch {
        pause: "both".into(),
        unpause: "at once".into(),
        ..SchedulePatch::default()
    });
    assert!(!world.state.settings.is_paused);
    assert_eq!(world.state.settings.notes, "at once");
}

/// Half an hour and half an hour, of which neither bound is a minute: sixty runs, and the schedule has no other times.
#[test]
fn two_backfills_at_creation_are_worked_off_one_behind_the_other() {
    let (begin_ms, end_ms) = (START_MS - 60 * MINUTE_MS + 400, START_MS + 400);
    let middle_ms = begin_ms + 30 * MINUTE_MS;
    let mut patch = backfill(begin_ms, middle_ms, OverlapPolicy::AllowAll);
    patch.backfills.extend(backfill(middle_ms, end_ms, OverlapPolicy::AllowAll).backfills);
    let ended = ScheduleSpec { end: Some(SpecTime::of_ms(end_ms)), ..every(MINUTE_MS) };
    let settings = ScheduleSettings { is_paused: true, ..ScheduleSettings::default() };
    let mut world = World::with(&ended, policies(OverlapPolicy::Skip), settings, Some(&patch), end_ms);
    world.settle();
    world.open_all();
    assert_eq!(world.started_s(), (-59..=0).map(|minute| minute * 60).collect::<Vec<_>>());
    assert!(world.starts.iter().all(|start| start.is_manual && !start.gets_last_result));
    assert!(world.steps <= 2 + 60, "two wakes, and the answers: {}", world.steps);
    assert_eq!(world.state.counts.started, 60);
}

#[test]
fn both_ends_of_a_backfill_belong_to_it() {
    let times = |start_ms: i64, end_ms: i64| {
        let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::Skip));
        let range = backfill(START_MS + start_ms, START_MS + end_ms, OverlapPolicy::AllowAll);
        world.patch(&range);
        world.started_s()
    };
    assert_eq!(times(-120_000, -60_000), [-120, -60]);
    assert_eq!(times(-119_999, -60_001), []);
    assert_eq!(times(-120_001, -59_999), [-120, -60]);
    assert_eq!(times(-60_000, -120_000), []);
}

#[test]
fn a_backfill_over_a_change_of_the_clocks_has_each_hour() {
    // Berlin's night of 25 hours, 2026-10-25.
    let hourly = cron("CRON_TZ=Europe/Berlin 0 * * * *");
    let mut world = World::new(&hourly, policies(OverlapPolicy::Skip));
    let begin_ms = 1_792_879_200_000;
    world.patch(&backfill(begin_ms, begin_ms + 25 * HOUR_MS - 1, OverlapPolicy::AllowAll));
    assert_eq!(world.starts.len(), 25);
    // Half past two comes twice that night, and not at all in spring.
    let daily = cron("CRON_TZ=Europe/Berlin 30 2 * * *");
    let mut world = World::new(&daily, policies(OverlapPolicy::Skip));
    world.patch(&backfill(begin_ms, begin_ms + 25 * HOUR_MS, OverlapPolicy::AllowAll));
    assert_eq!(world.starts.len(), 2);
    let spring_ms = 1_774_735_200_000;
    world.patch(&backfill(spring_ms, spring_ms + 23 * HOUR_MS, OverlapPolicy::AllowAll));
    assert_eq!(world.starts.len(), 2);
}

#[test]
fn a_long_backfill_leaves_room_and_goes_on_when_there_is_some() {
    let mut world = World::new(&every(DAY_MS), policies(OverlapPolicy::BufferAll));
    world.patch(&backfill(START_MS - 700 * DAY_MS, START_MS, OverlapPolicy::Unspecified));
    world.settle();
    assert_eq!(world.state.buffer_size(), 500);
    assert_eq!(world.state.backfills.len(), 1);
    assert_eq!(world.alarm_ms, Some(START_MS + DAY_MS), "it waits for room");
    for number in 1..=701 {
        world.open_all();
        world.close(number, COMPLETED);
        world.settle();
    }
    assert_eq!(world.started_s(), (-700..=0).map(|day| day * 86_400).collect::<Vec<_>>());
    assert_eq!(world.state.counts.dropped, 0);
    assert_eq!(world.state.backfills, []);
}

#[test]
fn a_clock_that_steps_back_starts_nothing_twice() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::AllowAll));
    world.go_to(START_MS + 10 * MINUTE_MS);
    world.now_ms = START_MS + MINUTE_MS;
    world.wake();
    assert_eq!(world.alarm_ms, Some(START_MS + 11 * MINUTE_MS));
    world.patch(&pause());
    world.patch(&unpause());
    world.update(&every(MINUTE_MS), policies(OverlapPolicy::AllowAll), ScheduleSettings::default());
    world.go_to(START_MS + 12 * MINUTE_MS);
    assert_eq!(world.started_s(), (1..=12).map(|minute| minute * 60).collect::<Vec<_>>());
}

#[test]
fn future_times_are_those_that_will_be_started() {
    let jittered = ScheduleSpec { jitter: Some(span(20 * MINUTE_MS)), ..every(HOUR_MS) };
    let mut world = World::new(&jittered, policies(OverlapPolicy::AllowAll));
    let future = world.state.future_times_ms(&world.plan, world.now_ms, 10);
    world.go_to(START_MS + 11 * HOUR_MS);
    let actual: Vec<i64> = world.starts.iter().map(|start| start.actual_ms).collect();
    assert_eq!(actual, future);
    world.patch(&pause());
    let later_ms = START_MS + 40 * HOUR_MS + 30 * MINUTE_MS;
    world.go_to(later_ms);
    let shown = world.state.future_times_ms(&world.plan, later_ms, 3);
    world.patch(&unpause());
    assert_eq!(world.state.future_times_ms(&world.plan, later_ms, 3), shown, "as if it were not paused");
    assert!(shown.iter().all(|ms| *ms > later_ms) && shown[0] < later_ms + HOUR_MS);
}
