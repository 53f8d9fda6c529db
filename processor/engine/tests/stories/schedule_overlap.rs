//! Actions that overlap, chains of runs, and Workflow Ids that are taken.

use everlog_engine::machine::schedule::request::BackfillRecord;
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::overlap::OverlapPolicy::{
    AllowAll, BufferAll, BufferOne, CancelOther, Skip, TerminateOther,
};
use everlog_schedules::spec::{ScheduleSpec, SpecTime};
use expect_test::expect;

use super::retries::{policy, started};
use crate::world::{EPOCH_MS, World, application, minutes, patch, seconds, text};

const FIRST: &str = "report-2001-09-09T01:47:00Z";
const SECOND: &str = "report-2001-09-09T01:48:00Z";

/// A schedule of this policy whose first run is there, not told.
fn running(overlap: OverlapPolicy) -> World {
    let mut world = World::new();
    world.schedule("minutely", "", overlap, |_as_it_is| {}).advance(seconds(30)).post().hush();
    world
}

/// Three more times, and then the first run completes.
fn three_more(overlap: OverlapPolicy) -> World {
    let mut world = running(overlap);
    for _ in 0..3 {
        world.on_schedule("minutely").advance(minutes(1)).post();
    }
    if world.on(FIRST).run().is_open() {
        world.task(|t| t.complete("done"));
    }
    world.post().on_schedule("minutely");
    world
}

#[test]
fn what_is_skipped_is_counted() {
    let mut world = three_more(Skip);
    assert_eq!(world.schedule_state().counts.skipped, 3);
    world.expect(expect![[r#"
        @ 00:01:20
        < (next 00:02:20, 1 runs), skipped 2 Overlap
        @ 00:01:30
        @ 00:02:20
        < (next 00:03:20, 1 runs), skipped 3 Overlap
        @ 00:02:30
        @ 00:03:20
        < (next 00:04:20, 1 runs), skipped 4 Overlap
        @ 00:03:30
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to temporal-sys-scheduler:minutely: action 1 is completed
        < (next 00:04:20)
    "#]]);
}

#[test]
fn one_waits_until_the_one_before_it_has_ended() {
    let world = three_more(BufferOne);
    let counts = world.schedule_state().counts;
    assert_eq!((counts.started, counts.skipped), (2, 2));
    let world = three_more(BufferAll);
    let state = world.schedule_state();
    assert_eq!((state.counts.started, state.counts.skipped, state.buffer_size()), (2, 0, 2));
    let world = three_more(AllowAll);
    assert_eq!((world.schedule_state().counts.started, world.schedule_state().running.len()), (4, 3));
}

#[test]
fn the_one_before_is_cancelled() {
    let mut world = running(CancelOther);
    world.advance(minutes(1)).post().on(FIRST).task(|t| t.cancel()).post();
    world.on(SECOND);
    assert!(world.run().is_open());
    world.expect(expect![[r#"
        @ 00:01:20
        < (next 00:02:20, 1 waits, 1 runs)
        @ 00:01:30
        > letter to report-2001-09-09T01:47:00Z: cancel
        < workflow.cancel_requested
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > letter to temporal-sys-scheduler:minutely: action 1 is canceled
        < (next 00:02:20, 1 starts)
        > letter to report-2001-09-09T01:48:00Z: start Report
        < run 3: workflow.started, task.scheduled
        > letter to temporal-sys-scheduler:minutely: action 2 is there
        < (next 00:02:20, 1 runs), fired 2 as report-2001-09-09T01:48:00Z
    "#]]);
}

#[test]
fn a_chain_that_goes_on_is_cancelled_again() {
    let mut world = running(CancelOther);
    world.advance(minutes(1)).post().on(FIRST).task(|t| t.continue_as_new(|_again| {})).post();
    world.on_schedule("minutely").advance(minutes(1)).post();
    // Once more, which the run knows already.
    world.on_schedule("minutely").advance(minutes(1)).post().on(FIRST).task(|t| t.cancel()).post();
    world.expect(expect![[r#"
        @ 00:01:20
        < (next 00:02:20, 1 waits, 1 runs)
        @ 00:01:30
        > letter to report-2001-09-09T01:47:00Z: cancel
        < workflow.cancel_requested
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 3: workflow.started, task.scheduled
        @ 00:02:20
        < (next 00:03:20, 1 waits, 1 runs), skipped 2 Overlap
        @ 00:02:30
        > letter to report-2001-09-09T01:47:00Z: cancel
        < workflow.cancel_requested
        @ 00:03:20
        < (next 00:04:20, 1 waits, 1 runs), skipped 3 Overlap
        @ 00:03:30
        > letter to report-2001-09-09T01:47:00Z: cancel
        = nothing to do
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > letter to temporal-sys-scheduler:minutely: action 1 is canceled
        < (next 00:04:20, 1 starts)
        > letter to report-2001-09-09T01:50:00Z: start Report
        < run 4: workflow.started, task.scheduled
        > letter to temporal-sys-scheduler:minutely: action 4 is there
        < (next 00:04:20, 1 runs), fired 4 as report-2001-09-09T01:50:00Z
    "#]]);
}

#[test]
fn the_one_before_is_terminated() {
    let mut world = running(TerminateOther);
    world.advance(minutes(1)).post();
    world.expect(expect![[r#"
        @ 00:01:20
        < (next 00:02:20, 1 waits, 1 runs)
        @ 00:01:30
        > letter to report-2001-09-09T01:47:00Z: terminate
        < workflow.terminated "terminated by schedule overlap policy"
        > letter to temporal-sys-scheduler:minutely: action 1 is terminated
        < (next 00:02:20, 1 starts)
        > letter to report-2001-09-09T01:48:00Z: start Report
        < run 3: workflow.started, task.scheduled
        > letter to temporal-sys-scheduler:minutely: action 2 is there
        < (next 00:02:20, 1 runs), fired 2 as report-2001-09-09T01:48:00Z
    "#]]);
}

#[test]
fn a_failure_pauses_a_schedule_that_wants_it() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |order| order.definition.policies.pause_on_failure = true);
    world.advance(seconds(30)).post().on(FIRST);
    world.task(|t| t.fail(application("broken", |_as_it_is| {}))).post().on_schedule("minutely");
    let state = world.schedule_state();
    assert_eq!(state.settings.notes, format!("paused due to workflow failure: {FIRST}: boom"));
    assert_eq!((state.settings.is_paused, state.conflict_token), (true, 2));
    world.hush().advance(minutes(10));
    world.expect(expect![[r#"
        @ 00:10:30
    "#]]);
}

#[test]
fn a_chain_of_runs_is_one_action() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |order| order.definition.action.retry_policy = policy(2));
    world.advance(seconds(30)).post().on(FIRST);
    world.task(|t| t.fail(application("no", |_as_it_is| {}))).post().advance(seconds(2));
    assert_eq!(started(&world).attempt, 2);
    world.task(|t| t.continue_as_new(|_again| {})).post();
    world.claim().reset(3).post();
    world.on_schedule("minutely");
    assert_eq!(world.schedule_state().running_runs().count(), 1, "the chain goes on");
    world.hush().on(FIRST).task(|t| t.complete("at last")).post();
    world.expect(expect![[r#"
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to temporal-sys-scheduler:minutely: action 1 is completed
        < (next 00:01:20)
    "#]]);
    assert_eq!(world.on_schedule("minutely").schedule_state().running_runs().count(), 0);
}

#[test]
fn a_reset_of_a_closed_run_is_told_as_what_it_is() {
    let mut world = running(Skip);
    world.on(FIRST).task(|t| t.complete("done")).post().reset(4).post();
    world.task(|t| t.fail(application("no", |_as_it_is| {}))).post().on_schedule("minutely");
    let recent = world.schedule_state().recent.last().expect("it was started").status;
    assert_eq!(recent, 3, "the last status is that of the reset run");
    world.expect(expect![[r#"
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to temporal-sys-scheduler:minutely: action 1 is completed
        < (next 00:01:20)
        > reset to 4
        < run 3: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed RetryPolicyNotSet
        > letter to temporal-sys-scheduler:minutely: action 1 is failed, again
        < (next 00:01:20)
    "#]]);
}

#[test]
fn a_run_that_a_reset_of_another_chain_replaces_has_ended_for_its_schedule() {
    let mut world = World::new();
    world.schedule("kept", "with one id", Skip, |order| {
        order.definition.policies.keep_original_workflow_id = true;
    });
    world.advance(seconds(30)).post().on("report").task(|t| t.complete("done")).post();
    let first = world.run().start.run_id.clone();
    world.advance(minutes(1)).post().hush();
    world.reset_with(&first, 4, |_order| {}).post().on_schedule("kept");
    assert_eq!(world.schedule_state().running.len(), 0, "nothing that it has started runs");
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", run 4: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
        > letter to temporal-sys-scheduler:kept: action 2 is terminated
        < (next 00:02:20)
    "#]]);
}

#[test]
fn a_foreign_run_with_the_workflow_id_is_no_action() {
    let mut world = World::new();
    world.start(FIRST).schedule("minutely", "", Skip, |_as_it_is| {}).advance(seconds(30)).post();
    let counts = world.schedule_state().counts;
    assert_eq!((counts.started, counts.clashed), (0, 1));
    world.expect(expect![[r#"
        > start report-2001-09-09T01:47:00Z
        < workflow.started, task.scheduled
        > schedule minutely
        < (next 00:00:20), created
        @ 00:00:20
        < (next 00:01:20, 1 starts)
        @ 00:00:30
        > letter to report-2001-09-09T01:47:00Z: start Report
        ! taken: Workflow execution is already running. WorkflowId: report-2001-09-09T01:47:00Z, run 1.
        > letter to temporal-sys-scheduler:minutely: action 1 cannot be: WorkflowIdTaken
        < (next 00:01:20), skipped 1 WorkflowIdTaken
    "#]]);
}

#[test]
fn a_namesake_that_has_closed_is_no_obstacle_to_a_backfill_only() {
    let mut world = running(Skip);
    world.on(FIRST).task(|t| t.complete("done")).post().on_schedule("minutely");
    let at = SpecTime::of_ms(EPOCH_MS + seconds(20));
    let range = BackfillRecord { start: at, end: at, overlap: 0 };
    world.patch_schedule("backfill", patch(|patch| patch.backfills = vec![range]));
    world.post().on(FIRST);
    assert!(world.run().is_open(), "it runs again");
}

#[test]
fn large_runs_are_started_a_few_at_a_time() {
    let mut world = World::new();
    world.schedule("minutely", "", AllowAll, |order| {
        order.definition.action.input = Some(text(&"x".repeat(1 << 20)));
    });
    let at = |minutes: i64| SpecTime::of_ms(EPOCH_MS + seconds(20) - 60_000 * minutes);
    let range = BackfillRecord { start: at(20), end: at(1), overlap: 0 };
    let patched = world.patch_schedule("backfill", patch(|patch| patch.backfills = vec![range]));
    assert_eq!(patched.messages.len(), 7, "of 8 MiB");
    world.advance(seconds(10)).post();
    assert_eq!(world.schedule_state().counts.started, 20);
}

#[test]
fn a_trigger_runs_a_paused_schedule_without_times_and_two_in_a_second_are_two() {
    let mut world = World::new();
    world.schedule("manual", "", AllowAll, |order| {
        order.definition.spec = ScheduleSpec::default();
        order.settings.is_paused = true;
    });
    world.trigger().trigger().post();
    assert_eq!(world.schedule_state().counts.started, 2);
    world.expect(expect![[r#"
        > schedule manual
        < (next never, paused), created
        > trigger
        < (next never, 1 starts, paused)
        > trigger
        < (next never, 2 starts, paused)
        > letter to report-2001-09-09T01:46:40Z: start Report
        < run 2: workflow.started, task.scheduled
        > letter to report-2001-09-09T01:46:40Z-2: start Report
        < run 3: workflow.started, task.scheduled
        > letter to temporal-sys-scheduler:manual: action 1 is there
        < (next never, 1 starts, 1 runs, paused), fired 1 as report-2001-09-09T01:46:40Z
        > letter to temporal-sys-scheduler:manual: action 2 is there
        < (next never, 2 runs, paused), fired 2 as report-2001-09-09T01:46:40Z-2
    "#]]);
}
