//! Resets: a run goes back to one of its tasks, and what must not be lost goes along.

use everlog_engine::Rejection;
use everlog_engine::api_types::{ParentClosePolicy, TaskFailedCause};
use everlog_engine::machine::child::Start;
use everlog_engine::time::Duration;
use expect_test::expect;

use crate::world::{World, minutes};

/// A run with an activity, a timer and two tasks behind it.
fn under_way() -> World {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("charge").start_timer("pay", minutes(5)));
    world.signal("one").task(|t| t);
    world.hush();
    world
}

#[test]
fn an_open_run_gives_way_to_one_that_goes_on_from_its_first_task() {
    let mut world = under_way();
    world.signal("two").claim().signal("three");
    world.reset(4).task(|t| t.complete("done"));
    world.expect(expect![[r#"
        > signal two
        < workflow.signaled two, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-13
        > signal three
        < (waits: workflow.signaled three)
        > reset to 4
        < task.failed ForceCloseCommand, workflow.signaled three, workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, workflow.signaled one, workflow.signaled two, workflow.signaled three, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_closed_run_is_begun_anew_from_any_of_its_tasks() {
    let mut world = under_way();
    world.signal("two").task(|t| t.complete("done")).hush();
    world.reset(10).crash();
    world.advance(minutes(5));
    world.expect(expect![[r#"
        > reset to 10
        < run 2: workflow.started, task.scheduled, task.started, task.completed, activity.scheduled charge, timer.started pay due 00:05:00, workflow.signaled one, task.scheduled, task.started, task.failed ResetWorkflow, workflow.signaled two, task.scheduled
        ~ crash, 27 events replayed
        @ 00:05:00
        < timer.fired pay
    "#]]);
}

#[test]
fn what_the_worker_had_not_taken_is_taken_by_nobody() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.complete("done")).hush();
    world.reset(3);
    world.expect(expect![[r#"
        > reset to 3
        < run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
    "#]]);
}

#[test]
fn the_same_request_finds_the_run_that_it_has_made() {
    let mut world = under_way();
    let base = world.run().start.run_id.clone();
    world.reset_with(&base, 4, |order| order.request_id = "once".into());
    let made = world.run().start.run_id.clone();
    world.reset_with(&base, 10, |order| order.request_id = "once".into());
    assert_eq!(world.run().start.run_id, made);
    let stored = world.replica.stored(&base).expect("it is remembered");
    assert_eq!((&stored.run.head.reset_run_id, stored.run.head.reset_event_id), (&made, 4));
    world.reset_with(&base, 10, |order| order.request_id = "twice".into());
    assert_ne!(world.run().start.run_id, made, "the run that was made is replaced by another");
}

#[test]
fn only_tasks_are_gone_back_to() {
    let mut world = under_way();
    for (finish_event_id, reason) in [
        (1, "Workflow task finish ID must be > 1 && <= workflow last event ID."),
        (11, "Workflow task finish ID must be > 1 && <= workflow last event ID."),
        (
            6,
            "StateRebuilder unable to Rebuild mutable state to event ID: 5, version: 0, this event must be at the boundary",
        ),
        (
            7,
            "Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: 7",
        ),
    ] {
        assert_eq!(world.refused_reset(finish_event_id), Rejection::InvalidArgument(reason.into()));
    }
    world.start_with("order-2", "", |begin| begin.start_delay_ms = minutes(1));
    let reason = "Workflow task finish ID must be > 1 && <= workflow last event ID.";
    assert_eq!(world.refused_reset(2), Rejection::InvalidArgument(reason.into()));
}

#[test]
fn a_reset_that_is_sent_again_is_told_of_the_run_that_it_had_made() {
    let mut world = World::new();
    world.start("order-1").task(|t| t);
    let base = world.run().start.run_id.clone();
    world.reset_with(&base, 4, |order| order.request_id = "once".into());
    world.task(|t| t.continue_as_new(|_again| {}));
    world.reset_with(&base, 4, |order| order.request_id = "once".into());
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: nothing to do
        < task.started, task.completed
        > reset to 4
        < workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 3: workflow.started, task.scheduled
        > reset to 4
        = it is run 2, continuedasnew
    "#]]);
}

#[test]
fn a_task_that_was_written_with_its_end_is_gone_back_to() {
    let mut world = World::new();
    world.start("order-1").task(|t| t);
    world.update("u1").claim().fail_task(TaskFailedCause::NonDeterministicError).hush();
    world.reset(7);
    world.expect(expect![[r#"
        > reset to 7
        < workflow.terminated "again", (update u1 goes over to the next run), run 2: workflow.started, task.scheduled, task.started, task.completed, task.scheduled, task.started, task.failed ResetWorkflow, (update u1 waits), task.scheduled
    "#]]);
}

#[test]
fn what_is_excluded_stays_behind() {
    let mut world = under_way();
    let base = world.run().start.run_id.clone();
    world.reset_with(&base, 4, |order| order.without_signals = true);
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
    "#]]);
}

#[test]
fn an_accepted_update_waits_again_and_its_request_is_written_once() {
    let mut world = World::new();
    world.start("order-1").task(|t| t).update("u1").task(|t| t.accept("u1")).update("u2").hush();
    world.reset(4).claim();
    assert_eq!(world.given(), ["u2"], "the worker finds the other in the history");
    world.answer(|t| t.accept("u1").respond("u1").accept("u2"));
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", (update u2 goes over to the next run), run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, update.admitted, (update u2 waits), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-7
        > task: accept u1, answer u1, accept u2
        < task.completed, update.accepted u1, update.completed u1, update.accepted u2
    "#]]);
}

#[test]
fn what_runs_that_follow_have_taken_is_kept() {
    let mut world = World::new();
    world.start("order-1").task(|t| t);
    let base = world.run().start.run_id.clone();
    world.signal("one").task(|t| t.continue_as_new(|_again| {})).signal("two").hush();
    world.reset_with(&base, 4, |_order| {});
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", run 3: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, workflow.signaled one, workflow.signaled two, task.scheduled
    "#]]);
}

#[test]
fn children_go_on_and_answer_the_run_that_waits_for_them() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("done").child("later")).post();
    world.on("done").task(|t| t.complete("ok")).post();
    world.on("order-1").task(|t| t.start_timer("pay", minutes(5))).hush();
    world.reset(9).post();
    world.on("later").task(|t| t.complete("ok")).post();
    world.expect(expect![[r#"
        > reset to 9
        < workflow.terminated "again", run 4: workflow.started, task.scheduled, task.started, task.completed, child.initiated done, child.initiated later, child.started done, task.scheduled, task.started, task.failed ResetWorkflow, child.started later, child.completed done, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to order-1: the child is completed
        = nothing to do
        > letter to order-1: the child is completed
        < child.completed later
    "#]]);
}

#[test]
fn a_run_hears_what_its_base_heard_too_late() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1").signal_other("order-2", false));
    world.signal("one").task(|t| t).terminate("enough").post().hush();
    world.reset(10);
    world.expect(expect![[r#"
        > reset to 10
        < run 3: workflow.started, task.scheduled, task.started, task.completed, child.initiated parcel-1, external.signal_initiated order-2, workflow.signaled one, task.scheduled, task.started, task.failed ResetWorkflow, child.started parcel-1, task.scheduled, external.signal_failed order-2 NotFound
    "#]]);
}

#[test]
fn an_answer_that_takes_a_run_beyond_a_limit_is_not_lost_with_it() {
    let mut world = World::with(|settings| settings.history_events_max = 9);
    let abandon = |start: &mut Start| start.parent_close_policy = ParentClosePolicy::Abandon.into();
    world.start("order-1").task(|t| t.child_with("parcel-1", "", abandon));
    world.signal("one").task(|t| t).hush();
    world.post();
    world.settings.history_events_max = 100;
    world.on("order-1").reset(9);
    world.expect(expect![[r#"
        > letter to parcel-1: start Parcel
        < run 2: workflow.started
        > letter to order-1: the child is there
        < workflow.terminated "Workflow history count exceeds limit."
        ! invalid: Workflow history count exceeds limit.
        > letter to parcel-1: begin
        < task.scheduled
        > reset to 9
        < run 3: workflow.started, task.scheduled, task.started, task.completed, child.initiated parcel-1, workflow.signaled one, task.scheduled, task.started, task.failed ResetWorkflow, child.started parcel-1, task.scheduled
    "#]]);
}

#[test]
fn every_run_that_was_made_of_a_parent_hears_of_its_child() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1"));
    let base = world.run().start.run_id.clone();
    world.signal("one").task(|t| t);
    world.reset(9);
    let first = world.run().start.run_id.clone();
    world.reset_with(&base, 9, |_order| {}).reset_with(&first, 9, |_order| {}).hush();
    world.post();
    world.expect(expect![[r#"
        > letter to parcel-1: start Parcel
        < run 5: workflow.started
        > letter to order-1: the child is there
        > letter to order-1: the child is there
        > letter to order-1: the child is there
        > letter to order-1: the child is there
        < child.started parcel-1
        > letter to parcel-1: begin
        < task.scheduled
        > letter to parcel-1: begin
        = nothing to do
    "#]]);
}

#[test]
fn a_child_that_a_reset_leaves_behind_begins_all_the_same() {
    let mut world = World::new();
    world.start("order-1").task(|t| t).signal("one").task(|t| t.child("parcel-1")).hush();
    world.reset(4).post();
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, workflow.signaled one, task.scheduled
        > letter to parcel-1: start Parcel
        < run 3: workflow.started
        > letter to order-1: the child is there
        > letter to parcel-1: begin
        < task.scheduled
    "#]]);
}

#[test]
fn an_older_run_stays_as_it_is_when_the_latest_was_deleted() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.complete("done"));
    let first = world.run().start.run_id.clone();
    world.start("order-1").delete().hush();
    world.reset_with(&first, 4, |_order| {});
    world.expect(expect![[r#"
        > reset to 4
        ! not found: workflow not found for ID: order-1
    "#]]);
}

#[test]
fn a_child_that_was_reset_reports_once() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1")).post();
    world.on("parcel-1").task(|t| t).hush();
    world.reset(4).post().task(|t| t.complete("ok")).post();
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", run 3: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to order-1: the child is completed
        < child.completed parcel-1
    "#]]);
}

#[test]
fn a_signal_that_went_along_is_not_taken_again() {
    let mut world = under_way();
    world.signal_with("two", "", |signal| signal.request_id = "s".into()).reset(10).hush();
    world.signal_with("two", "again", |signal| signal.request_id = "s".into());
    world.expect(expect![[r#"
        > signal two again
        = nothing to do
    "#]]);
}

#[test]
fn a_run_that_follows_one_that_was_reset_has_not_been_reset_itself() {
    let mut world = World::new();
    world.start("order-1").task(|t| t).pass(minutes(1)).reset(4);
    let reset = world.run().start.clone();
    assert!(reset.reset_ms > reset.start_ms && !reset.former_run_id.is_empty());
    world.task(|t| t.continue_as_new(|_again| {}));
    let next = &world.run().start;
    assert_eq!(next.continued_run_id, reset.run_id);
    assert_eq!((next.reset_ms, &*next.former_run_id, &*next.original_run_id), (0, "", ""));
}

#[test]
fn children_of_a_run_that_was_reset_are_not_those_of_the_next_one() {
    let mut world = World::new();
    let abandon = |start: &mut Start| start.parent_close_policy = ParentClosePolicy::Abandon.into();
    world.start("order-1").task(|t| t.child_with("parcel-1", "", abandon)).post();
    world.on("order-1").task(|t| t).reset(9).task(|t| t.signal_other("parcel-1", true)).post();
    world.on("order-1").task(|t| t.continue_as_new(|_again| {})).hush();
    world.task(|t| t.signal_other("parcel-1", true)).post();
    world.expect(expect![[r#"
        > task: signal parcel-1, if it is a child
        < task.started, task.completed, external.signal_initiated parcel-1
        > letter to parcel-1: signal hello
        ! not found: workflow execution not found
        > letter to order-1: it has not arrived
        < external.signal_failed parcel-1 NotFound, task.scheduled
    "#]]);
}

#[test]
fn an_activity_that_nobody_had_taken_has_all_its_time_again() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.activity_with("charge", " within 5 minutes", |order| {
            order.schedule_to_close_timeout = Some(Duration::from_ms(minutes(5)));
        })
    });
    world.signal("one").task(|t| t).advance(minutes(4)).hush();
    world.reset(8).advance(minutes(4)).advance(minutes(1));
    world.expect(expect![[r#"
        > reset to 8
        < workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.completed, activity.scheduled charge, workflow.signaled one, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
        @ 00:08:00
        @ 00:09:00
        < activity.timed_out charge ScheduleToStart NonRetryableFailure
    "#]]);
}
