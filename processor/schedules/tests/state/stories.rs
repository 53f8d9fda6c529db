//! Stories: what is taken, started, skipped, missed and counted.

use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{ScheduleSpec, SpecTime};
use everlog_schedules::state::{
    ActionOpening, BUFFER_MAX, MissedTimes, STARTS_MAX, ScheduleEffect, SchedulePolicies, ScheduleSettings,
    SkipReason, TAKEN_MAX,
};

use crate::world::*;

fn reasons(world: &mut World) -> Vec<SkipReason> {
    let effects = std::mem::take(&mut world.effects);
    let reason = |effect| match effect {
        ScheduleEffect::Skipped(skipped) => Some(skipped.reason),
        _other => None,
    };
    effects.into_iter().filter_map(reason).collect()
}

fn limited(remaining: i64) -> ScheduleSettings {
    ScheduleSettings { is_limited: true, remaining, ..ScheduleSettings::default() }
}

#[test]
fn a_run_is_started_at_each_time_and_named_by_it() {
    let mut world = World::new(&every(HOUR_MS), policies(OverlapPolicy::Skip));
    assert_eq!(world.alarm_ms, Some(START_MS + HOUR_MS), "its creation is not among its times");
    for hour in 1..=3 {
        world.go_to(START_MS + hour * HOUR_MS);
        world.open_all();
        world.close(hour as u64, COMPLETED);
    }
    let ids: Vec<_> = world.starts.iter().map(|start| start.workflow_id.as_str()).collect();
    assert_eq!(ids, ["run-2026-11-30T01:00:00Z", "run-2026-11-30T02:00:00Z", "run-2026-11-30T03:00:00Z"]);
    assert_eq!(world.state.counts.started, 3);
    assert!(world.starts.iter().all(|start| !start.allows_duplicate && start.gets_last_result));
    let recent: Vec<_> = world.state.recent.iter().map(|recent| (recent.status, recent.actual_ms)).collect();
    assert_eq!(recent, [1, 2, 3].map(|hour| (COMPLETED, START_MS + hour * HOUR_MS)));
}

#[test]
fn a_start_counts_as_running_until_it_is_answered_and_its_chain_until_it_ends() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::Skip));
    world.go_to(START_MS + 3 * MINUTE_MS);
    assert!(world.state.is_starting());
    assert_eq!(world.started_s(), [60]);
    assert_eq!(world.state.counts.skipped, 2);
    world.open_all();
    world.go_to(START_MS + 4 * MINUTE_MS);
    assert_eq!(world.state.counts.skipped, 3);
    world.close(1, COMPLETED);
    world.go_to(START_MS + 5 * MINUTE_MS);
    assert_eq!(world.started_s(), [60, 300]);
}

#[test]
fn times_that_are_late_by_more_than_the_window_are_missed_and_counted_at_once() {
    let window =
        SchedulePolicies { catchup_window: Some(span(MINUTE_MS)), ..policies(OverlapPolicy::BufferAll) };
    let mut world = World::new(&every(10 * SECOND_MS), window);
    world.now_ms = START_MS + HOUR_MS;
    world.settle();
    // Those that are late by just the window are not missed.
    assert_eq!(world.state.counts.missed, 353);
    let missed = world.effects.iter().find_map(|effect| match effect {
        ScheduleEffect::Missed(missed) => Some(missed),
        _other => None,
    });
    let start_s = START_MS / 1_000;
    let expected = MissedTimes { count: 353, first_nominal_s: start_s + 10, last_nominal_s: start_s + 3_530 };
    assert_eq!(missed, Some(&expected));
    assert_eq!(world.started_s(), [3_540]);
    assert_eq!(world.state.buffer_size(), 6);
}

#[test]
fn a_short_window_is_ten_seconds_and_none_is_a_year() {
    let window = |catchup_window| SchedulePolicies { catchup_window, ..policies(OverlapPolicy::AllowAll) };
    let shown = |catchup_window| window(catchup_window).resolved().catchup_window.expect("a window").seconds;
    assert_eq!(
        [None, Some(span(0)), Some(span(9_999)), Some(span(11_000))].map(shown),
        [31_536_000, 10, 10, 11]
    );
    assert_eq!(SchedulePolicies::default().resolved().overlap(), OverlapPolicy::Skip);
}

#[test]
fn a_burst_is_worked_in_slices_of_which_none_is_large() {
    let mut world = World::new(&every(SECOND_MS), policies(OverlapPolicy::AllowAll));
    world.now_ms = START_MS + 1_200 * SECOND_MS;
    let (mut started, mut buffered) = (0, 0);
    while world.alarm_ms.is_some_and(|alarm_ms| alarm_ms <= world.now_ms) {
        world.wake();
        assert!(world.starts.len() - started <= STARTS_MAX);
        assert!(world.state.buffer_size() + world.starts.len() - started <= buffered + TAKEN_MAX);
        (started, buffered) = (world.starts.len(), world.state.buffer_size());
        if started.is_multiple_of(500) {
            world.open_all();
        }
    }
    world.open_all();
    assert_eq!(world.started_s(), (1..=1_200).collect::<Vec<_>>());
    assert_eq!(world.state.counts.started, 1_200);
    assert_eq!((world.state.running.len(), world.state.running_beyond), (1_000, 200));
    for number in 1..=1_200 {
        world.close(number, COMPLETED);
    }
    assert!(!world.state.is_running());
}

#[test]
fn the_newest_that_ends_others_has_the_place_of_the_first_and_leaves_what_came_between() {
    let mut world = World::new(&every(DAY_MS), policies(OverlapPolicy::Skip));
    world.patch(&trigger());
    world.open_all();
    let days_before =
        |from: i64, to: i64, overlap| backfill(START_MS - from * DAY_MS, START_MS - to * DAY_MS, overlap);
    world.patch(&days_before(9, 8, OverlapPolicy::CancelOther));
    world.patch(&days_before(7, 6, OverlapPolicy::BufferAll));
    world.patch(&days_before(5, 4, OverlapPolicy::CancelOther));
    world.settle();
    let days = |world: &World| -> Vec<i64> {
        world.state.buffer.iter().map(|action| action.nominal_s / 86_400 - START_MS / DAY_MS).collect()
    };
    assert_eq!(days(&world), [-4, -7, -6]);
    assert_eq!(world.state.counts.skipped, 3, "each that a newer one replaces is counted");
    world.close(1, CANCELED);
    world.open_all();
    assert_eq!(world.started_s(), [0, -4 * 86_400]);
    assert_eq!(days(&world), [-7, -6]);
}

#[test]
fn the_1001st_that_waits_is_dropped_and_counted() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::BufferAll));
    world.go_to(START_MS + (BUFFER_MAX as i64 + 1) * MINUTE_MS);
    assert_eq!((world.state.buffer_size(), world.state.counts.dropped), (BUFFER_MAX, 0));
    world.go_to(START_MS + (BUFFER_MAX as i64 + 3) * MINUTE_MS);
    assert_eq!((world.state.buffer_size(), world.state.counts.dropped), (BUFFER_MAX, 2));
    world.patch(&trigger());
    assert_eq!(world.state.counts.dropped, 3);
    world.open_all();
    world.close(1, COMPLETED);
    assert_eq!(world.started_s(), [60, 120], "oldest first");
}

#[test]
fn all_that_run_are_cancelled_at_each_time_and_only_the_newest_waits() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::AllowAll));
    world.go_to(START_MS + 3 * MINUTE_MS);
    world.open_all();
    world.update(&every(MINUTE_MS), policies(OverlapPolicy::CancelOther), ScheduleSettings::default());
    world.effects.clear();
    world.go_to(START_MS + 6 * MINUTE_MS);
    let cancelled = world.effects.iter().filter_map(|effect| match effect {
        ScheduleEffect::Cancel(run) => Some((run.number, run.first_run_id.as_str())),
        _other => None,
    });
    assert_eq!(cancelled.collect::<Vec<_>>(), [(1, "run-1"), (2, "run-2"), (3, "run-3")]);
    let again = |world: &World| {
        let is_it = |effect: &&ScheduleEffect| matches!(effect, ScheduleEffect::CancelAgain(_));
        world.effects.iter().filter(is_it).count()
    };
    assert_eq!(again(&world), 6, "at the two times behind the first");
    assert_eq!((world.state.buffer_size(), world.state.counts.skipped), (1, 2));
    world.close(1, CANCELED);
    assert_eq!(again(&world), 6, "the end of a run asks no other");
    world.patch(&trigger());
    assert_eq!(again(&world), 8);
    world.close(2, CANCELED);
    assert_eq!(world.starts.len(), 3);
    world.close(3, CANCELED);
    assert_eq!(world.started_s(), [60, 120, 180, 360]);
}

#[test]
fn a_start_under_way_is_terminated_when_it_is_answered() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::TerminateOther));
    world.go_to(START_MS + 2 * MINUTE_MS);
    let is_end = |effect: &ScheduleEffect| matches!(effect, ScheduleEffect::Terminate(_));
    assert!(!world.effects.iter().any(is_end));
    world.answer(1, world.started(1));
    assert_eq!(world.effects.iter().filter(|effect| is_end(effect)).count(), 1);
    world.close(1, CANCELED);
    assert_eq!(world.started_s(), [60, 120]);
}

#[test]
fn a_pause_stops_what_is_scheduled_and_nothing_else() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::BufferAll));
    world.go_to(START_MS + 3 * MINUTE_MS);
    world.open_all();
    world.patch(&pause());
    assert_eq!(world.alarm_ms, None);
    world.patch(&trigger());
    world.now_ms += DAY_MS;
    world.settle();
    // Those that wait are dropped when their turn comes, triggers are not.
    world.close(1, COMPLETED);
    assert_eq!(world.state.counts.paused, 2);
    assert_eq!(world.starts.iter().map(|start| start.is_manual).collect::<Vec<_>>(), [false, true]);
    assert_eq!(reasons(&mut world), [SkipReason::Paused, SkipReason::Paused]);
    world.open_all();
    world.close(4, COMPLETED);
    world.patch(&unpause());
    assert_eq!(world.alarm_ms, Some(START_MS + DAY_MS + 4 * MINUTE_MS), "the pause is not caught up");
    assert_eq!(world.state.counts.missed, 0);
}

#[test]
fn an_unpaused_schedule_that_was_idle_for_long_lives_on() {
    let past = ScheduleSpec { end: Some(SpecTime::of_ms(START_MS)), ..every(MINUTE_MS) };
    let mut world = World::new(&past, policies(OverlapPolicy::Skip));
    assert_eq!(world.alarm_ms, Some(START_MS + 7 * DAY_MS));
    world.patch(&pause());
    assert_eq!(world.alarm_ms, None);
    world.go_to(START_MS + 30 * DAY_MS);
    world.patch(&unpause());
    assert_eq!(world.alarm_ms, Some(START_MS + 37 * DAY_MS));
    world.go_to(START_MS + 37 * DAY_MS - 1);
    assert!(!world.is_closed);
    world.patch(&trigger());
    world.open_all();
    world.go_to(START_MS + 50 * DAY_MS);
    assert!(!world.is_closed, "its run is open");
    world.close(1, COMPLETED);
    assert!(world.is_closed);
}

#[test]
fn a_failure_pauses_where_it_is_to_and_says_why() {
    let careful = SchedulePolicies { pause_on_failure: true, ..policies(OverlapPolicy::AllowAll) };
    let mut world = World::new(&every(MINUTE_MS), careful);
    world.go_to(START_MS + 3 * MINUTE_MS);
    world.open_all();
    world.close(1, CANCELED);
    assert!(!world.state.settings.is_paused);
    let token = world.state.conflict_token;
    world.close(2, FAILED);
    assert!(world.state.settings.is_paused);
    assert_eq!(world.state.settings.notes, "paused due to workflow failure: run-2026-11-30T00:02:00Z: why");
    assert_eq!(world.state.conflict_token, token + 1);
    world.close(3, TIMED_OUT);
    assert_eq!(world.state.conflict_token, token + 1, "it was paused already");
}

#[test]
fn remaining_actions_are_used_by_starts_only_and_over_slices() {
    let mut world =
        World::with(&every(SECOND_MS), policies(OverlapPolicy::AllowAll), limited(120), None, START_MS);
    world.now_ms = START_MS + 1_000 * SECOND_MS;
    world.settle();
    assert_eq!(world.started_s(), (1..=120).collect::<Vec<_>>());
    assert_eq!(world.state.settings.remaining, 0);
    assert_eq!(world.state.conflict_token, 121);
    let taken = world.state.counts.exhausted + 120;
    assert!(taken <= 120 + TAKEN_MAX as u64, "{taken}");
    world.open_all();
    world.patch(&trigger());
    assert_eq!(world.starts.len(), 121, "a trigger needs none");
    world.update(&every(SECOND_MS), policies(OverlapPolicy::AllowAll), limited(1));
    world.go_to(world.now_ms + 5 * SECOND_MS);
    assert_eq!(world.starts.len(), 122, "refilled, and nothing is caught up");
    assert_eq!(world.starts[121].actual_ms, START_MS + 1_000 * SECOND_MS);
}

#[test]
fn skipped_times_use_no_remaining_actions() {
    let mut world = World::with(&every(MINUTE_MS), policies(OverlapPolicy::Skip), limited(2), None, START_MS);
    world.go_to(START_MS + 10 * MINUTE_MS);
    assert_eq!((world.state.settings.remaining, world.state.counts.skipped), (1, 9));
    world.open_all();
    world.close(1, COMPLETED);
    world.go_to(START_MS + 11 * MINUTE_MS);
    assert_eq!(world.state.settings.remaining, 0);
    assert_eq!(world.state.future_times_ms(&world.plan, world.now_ms, 10), []);
    world.open_all();
    world.close(11, COMPLETED);
    assert_eq!(world.alarm_ms, Some(START_MS + 11 * MINUTE_MS + 7 * DAY_MS));
}

#[test]
fn triggers_of_one_second_are_as_many_runs() {
    let mut world = World::new(&ScheduleSpec::default(), policies(OverlapPolicy::AllowAll));
    for _ in 0..3 {
        world.patch(&trigger());
    }
    world.open_all();
    for number in 1..=3 {
        world.close(number, COMPLETED);
    }
    for _ in 0..20 {
        world.patch(&trigger());
        world.open_all();
    }
    let mut ids: Vec<_> = world.starts.iter().map(|start| start.workflow_id.clone()).collect();
    assert_eq!(
        ids[..3],
        ["run-2026-11-30T00:00:00Z", "run-2026-11-30T00:00:00Z-2", "run-2026-11-30T00:00:00Z-3"]
    );
    assert_eq!(world.state.counts.started, 23);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 23);
    assert!(world.starts.iter().all(|start| start.is_manual && start.allows_duplicate));
}

#[test]
fn a_trigger_in_the_second_of_a_scheduled_action_takes_no_id_from_it() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::AllowAll));
    world.now_ms = START_MS + MINUTE_MS + 500;
    world.patch(&trigger());
    let ids: Vec<_> = world.starts.iter().map(|start| start.workflow_id.as_str()).collect();
    assert_eq!(ids, ["run-2026-11-30T00:01:00Z", "run-2026-11-30T00:01:00Z-2"]);
}

#[test]
fn a_taken_workflow_id_drops_a_scheduled_action_and_renames_a_trigger() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::Skip));
    world.go_to(START_MS + MINUTE_MS);
    world.answer(1, ActionOpening::WorkflowIdTaken);
    assert_eq!((world.state.counts.clashed, world.state.is_running()), (1, false));
    world.now_ms += 500;
    world.patch(&trigger());
    world.answer(2, ActionOpening::WorkflowIdTaken);
    world.answer(2, world.started(2));
    assert_eq!(world.starts[2].workflow_id, "run-2026-11-30T00:01:00Z-2");
    assert_eq!(world.state.counts.started, 1);
    world.close(2, COMPLETED);
    world.patch(&trigger());
    while !world.starting.is_empty() {
        world.answer(3, ActionOpening::WorkflowIdTaken);
    }
    assert_eq!(world.state.counts.clashed, 2, "not for ever");
}

#[test]
fn a_start_that_is_put_off_is_tried_again_and_uses_one_action() {
    let mut world = World::with(&every(HOUR_MS), policies(OverlapPolicy::Skip), limited(5), None, START_MS);
    world.go_to(START_MS + HOUR_MS);
    world.answer(1, ActionOpening::Later { delay_ms: 2_000 });
    assert_eq!((world.alarm_ms, world.state.buffer_size()), (Some(START_MS + HOUR_MS + 2_000), 1));
    world.patch(&trigger());
    assert_eq!(world.state.counts.skipped, 1, "it has its place");
    world.go_to(START_MS + HOUR_MS + 2_000);
    assert_eq!((world.starts.len(), world.state.settings.remaining), (2, 4));
    world.answer(1, world.started(1));
    assert_eq!(world.state.counts.started, 1);
}

#[test]
fn a_start_that_is_put_off_for_too_long_is_dropped_and_counted() {
    let window = SchedulePolicies { catchup_window: Some(span(MINUTE_MS)), ..policies(OverlapPolicy::Skip) };
    let once = ScheduleSpec { end: Some(SpecTime::of_ms(START_MS + HOUR_MS)), ..every(HOUR_MS) };
    let mut world = World::new(&once, window);
    world.go_to(START_MS + HOUR_MS);
    for _ in 0..60 {
        world.answer(1, ActionOpening::Later { delay_ms: i64::MAX });
        world.go_to(world.now_ms + MINUTE_MS);
    }
    assert_eq!(world.state.counts.refused, 0);
    world.answer(1, ActionOpening::Later { delay_ms: 1 });
    assert_eq!((world.state.counts.refused, world.starting.len(), world.state.buffer_size()), (1, 0, 0));
}

#[test]
fn answers_to_what_is_not_starting_change_nothing() {
    let mut world = World::new(&every(HOUR_MS), policies(OverlapPolicy::Skip));
    world.go_to(START_MS + HOUR_MS);
    world.open_all();
    let before = world.state.clone();
    for number in [0, 1, 2, u64::MAX] {
        let opening = ActionOpening::Started { first_run_id: "other".into(), start_ms: 0 };
        assert_eq!(world.state.action_opened(&world.plan, number, opening, world.now_ms), []);
    }
    assert_eq!(world.state, before);
}

#[test]
fn recent_actions_are_in_their_order_whatever_order_their_answers_have() {
    let mut world = World::new(&every(MINUTE_MS), policies(OverlapPolicy::AllowAll));
    world.patch(&backfill(START_MS - 11 * MINUTE_MS, START_MS, OverlapPolicy::AllowAll));
    world.settle();
    for number in [3, 1, 12, 2, 5, 4, 11, 9, 10, 7, 8, 6] {
        world.answer(number, world.started(number));
    }
    let numbers: Vec<_> = world.state.recent.iter().map(|recent| recent.number).collect();
    assert_eq!(numbers, (3..=12).collect::<Vec<_>>());
}

#[test]
fn the_original_workflow_id_is_kept_where_it_is_to() {
    let kept = SchedulePolicies { keep_original_workflow_id: true, ..policies(OverlapPolicy::Skip) };
    let mut world = World::new(&every(HOUR_MS), kept);
    world.go_to(START_MS + HOUR_MS);
    assert_eq!(world.starts[0].workflow_id, "run");
    assert!(world.starts[0].allows_duplicate, "else the second would be refused for ever");
}

#[test]
fn a_search_through_exclusions_is_cut_into_steps_and_ends() {
    let mut world = World::new(&mostly_excluded(), policies(OverlapPolicy::Skip));
    world.go_to(START_MS + HOUR_MS - 1);
    assert_eq!(world.state.counts.started + world.state.counts.skipped + world.starting.len() as u64, 59);
    let steps = world.steps;
    world.go_to(START_MS + HOUR_MS);
    assert_eq!(world.state.counts.skipped, 59);
    assert!(world.steps > steps, "some steps only search");
    let mut never = mostly_excluded();
    never.excluded[0].minute[0].start = 0;
    let mut world = World::new(&never, policies(OverlapPolicy::Skip));
    world.settle();
    assert!((100..10_000).contains(&world.steps), "{}", world.steps);
    assert_eq!(world.alarm_ms, Some(START_MS + 7 * DAY_MS), "it has no time");
    let begin = SpecTime::of_ms(START_MS);
    let refused = world.plan.matcher.matching_times(begin, begin, 1).expect_err("too many");
    assert!(refused.to_string().contains("too many exclusions"));
}
