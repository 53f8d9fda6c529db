//! Limits of a run, what happens at each, and the end of what is kept of it.

mod bounds;
mod extremes;
mod marks;

use bytes::Bytes;
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::command::CommandAttributes;
use everlog_engine::machine::memo_and_search_attributes::Modify;
use everlog_engine::machine::workflow_task_completed::Complete;
use everlog_engine::request::Request;
use expect_test::expect;
use prost::Message;

use crate::world::{Turn, World, delay, fields, hours, minutes, payload, seconds, text};

#[test]
fn a_history_has_a_limit_of_events() {
    let mut world = World::with(|settings| settings.history_events_max = 4);
    world.start("order-1").signals(&["1", "2"]).signal("3").signal("4");
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > signal 1
        < workflow.signaled 1
        > signal 2
        < workflow.signaled 2
        > signal 3
        < workflow.terminated "Workflow history count exceeds limit."
        ! invalid: Workflow history count exceeds limit.
        > signal 4
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn a_completion_beyond_the_limit_does_nothing_but_end_the_run() {
    let mut world = World::with(|settings| settings.history_events_max = 5);
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| t.activity("a").start_timer("t", minutes(1)));
    world.expect(expect![[r#"
        > task: activity a, start timer t 1m
        < task.failed ForceCloseCommand, workflow.signaled one, workflow.terminated "Workflow history count exceeds limit."
        ! invalid: Workflow history count exceeds limit.
    "#]]);
}

#[test]
fn a_completion_that_closes_may_pass_the_limit() {
    let mut world = World::with(|settings| settings.history_events_max = 4);
    world.start("order-1").task(|t| t.marker("m").complete("done"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: marker m, complete the workflow
        < task.started, task.completed, marker.recorded m, workflow.completed
    "#]]);
}

#[test]
fn a_deadline_beyond_the_limit_ends_the_run() {
    let mut world = World::with(|settings| settings.history_events_max = 5);
    world.start("order-1").task(|t| t.start_timer("t", minutes(1))).hush().advance(minutes(1));
    world.expect(expect![[r#"
        @ 00:01:00
        < workflow.terminated "Workflow history count exceeds limit."
        ! invalid: Workflow history count exceeds limit.
    "#]]);
}

#[test]
fn a_claim_beyond_the_limit_ends_the_run() {
    let mut world = World::with(|settings| settings.history_events_max = 2);
    world.start("order-1").hush().claim();
    world.expect(expect![[r#"
        > a worker takes the task
        < workflow.terminated "Workflow history count exceeds limit."
        ! invalid: Workflow history count exceeds limit.
    "#]]);
}

#[test]
fn a_history_has_a_limit_of_bytes() {
    let mut world = World::with(|settings| settings.history_bytes_max = 3_000);
    world.start("order-1").signal("small").hush();
    world.signal_with("large", "", |signal| signal.input = Some(vec![b' '; 3_000].into()));
    world.expect(expect![[r#"
        > signal large
        < workflow.terminated "Workflow history size exceeds limit."
        ! invalid: Workflow history size exceeds limit.
    "#]]);
}

#[test]
fn what_is_too_long_is_not_kept_for_being_so() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    let id = "ä".repeat(1_000_000);
    world.answer(|t| t.activity(&id));
    let events = world.replica.all().flat_map(|stored| &stored.events);
    let bytes: usize = events.map(Message::encoded_len).sum();
    assert!(bytes < 10_000, "the history has {bytes} bytes");
}

#[test]
fn a_state_has_a_limit_of_bytes() {
    let mut world = World::with(|settings| settings.state_bytes_max = 3_000);
    world.start("order-1").task(|t| t.activity("a").activity("b"));
    let large = text(&"x".repeat(1_500));
    world.claim_activity("a").claim_activity("b").hush();
    let (a, b) = (world.target("a"), world.target("b"));
    world.heartbeats("a reports 1.5 KB", a.clone(), Some(large.clone())).advance(1);
    world.heartbeats("a reports the same", a, Some(large.clone()));
    world.heartbeats("b reports 1.5 KB", b, Some(large));
    world.expect(expect![[r#"
        > a reports 1.5 KB
        < (a lives)
        @ 00:00:00.001
        > a reports the same
        < (a lives)
        > b reports 1.5 KB
        < workflow.terminated "Workflow mutable state size exceeds limit."
        ! invalid: Workflow mutable state size exceeds limit.
    "#]]);
}

#[test]
fn a_completion_with_more_commands_than_a_history_has_events_ends_the_run() {
    let mut world = World::with(|settings| settings.history_events_max = 100);
    world.start("order-1").claim().hush();
    let token = world.token();
    let mut turn = Turn::new(world.run());
    for _marker in 0..100_000 {
        turn.marker("m");
    }
    turn.complete("never reached");
    let order = Complete { token: Some(token), ..turn.order };
    let outcome = world.order(Request::CompleteTask(Box::new(order)));
    world.tell(&outcome);
    world.expect(expect![[r#"
        < task.failed ForceCloseCommand, workflow.terminated "Workflow history count exceeds limit."
        ! invalid: Workflow history count exceeds limit.
    "#]]);
}

#[test]
fn a_memo_has_a_limit_of_keys() {
    let mut world = World::with(|settings| settings.memo_keys_max = 2);
    let many = fields(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]);
    world.start_with("order-1", "with three keys", |begin| begin.memo = Some(many.clone()));
    world.start("order-1").claim().hush();
    world.answer(|t| t.memo(&[("a", Some("1")), ("b", Some("2"))]).force().return_new());
    world.answer(|t| t.memo(&[("a", None), ("c", Some("3"))]).force().return_new());
    world.answer(|t| t.memo(&[("d", Some("4"))]));
    world.start("order-2").task(|t| t.continue_as_new(|again| again.memo = Some(many)));
    world.expect(expect![[r#"
        > task: memo, one more task, at once
        < task.completed, memo.modified, task.scheduled, task.started
        = sticky task attempt 1, history 4-7
        > task: memo, one more task, at once
        < task.completed, memo.modified, task.scheduled, task.started
        = sticky task attempt 1, history 8-11
        > task: memo
        < task.failed BadModifyWorkflowPropertiesAttributes, workflow.terminated "BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit."
        ! invalid: BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.
        > start order-2
        < run 2: workflow.started, task.scheduled
        > task: continue as new
        < task.started, task.failed BadContinueAsNewAttributes, workflow.terminated "BadContinueAsNewAttributes: ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit."
        ! invalid: BadContinueAsNewAttributes: ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit.
    "#]]);
}

#[test]
fn a_memo_of_many_empty_entries_costs_no_memory() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    let empty: Bytes = [0x0a, 0x00].repeat(1_000_000).into();
    world.answer(|t| {
        t.command("memo", CommandAttributes::ModifyProperties(Modify { upserted_memo: Some(empty) }))
    });
    world.expect(expect![[r#"
        > task: memo
        < task.failed BadModifyWorkflowPropertiesAttributes, workflow.terminated "BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit."
        ! invalid: BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.
    "#]]);
}

#[test]
fn a_large_memo_is_merged_in_no_time() {
    let mut world = World::with(|settings| settings.memo_keys_max = 1_000_000);
    world.start("order-1").claim();
    let keys: Vec<_> = (0..100_000).rev().map(|key| format!("{key:05}")).collect();
    let entries: Vec<_> =
        keys.iter().map(|key| MapEntry { key: key.clone(), value: payload("a", "1") }).collect();
    let given: Bytes = Fields { entries }.encode_to_vec().into();
    let order = CommandAttributes::ModifyProperties(Modify { upserted_memo: Some(given) });
    world.settings.memo_bytes_max = 1 << 30;
    world.settings.blob_bytes_max = 1 << 30;
    world.settings.state_bytes_max = 0;
    world.answer(|t| t.command("memo", order));
    let memo = &world.run().properties.memo;
    assert_eq!(memo.len(), 100_000);
    assert!(memo.is_sorted_by(|a, b| a.key < b.key));
}

#[test]
fn a_run_takes_so_many_signals_and_no_more() {
    let mut world = World::with(|settings| settings.signals_max = 2);
    world.start("order-1").signal("1").claim().signal("2").signal("3").answer(|t| t.complete("done"));
    world.task(|t| t.continue_as_new(|_again| {})).signal("4");
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > signal 1
        < workflow.signaled 1
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-4
        > signal 2
        < (waits: workflow.signaled 2)
        > signal 3
        ! invalid: exceeded workflow execution limit for signal events
        > task: complete the workflow
        < task.failed UnhandledCommand, workflow.signaled 2, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > task: continue as new
        < task.started, task.completed, (not about to close), workflow.continued_as_new, run 2: workflow.started, task.scheduled
        > signal 4
        < workflow.signaled 4
    "#]]);
}

#[test]
fn many_deadlines_are_settled_slice_by_slice() {
    let mut world = World::with(|settings| settings.wake_slice_max = 2);
    world.start("order-1");
    world.task(|t| {
        for (name, span_s) in [("c", 3), ("a", 1), ("e", 5), ("b", 2), ("d", 4)] {
            t.start_timer(name, seconds(span_s));
        }
        t
    });
    world.hush().pass(minutes(1)).advance(0);
    world.expect(expect![[r#"
        @ 00:01:00
        < timer.fired a, timer.fired b, task.scheduled
        < timer.fired c, timer.fired d
        < timer.fired e
    "#]]);
}

#[test]
fn deadlines_that_passed_in_the_night_come_before_the_next_task() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.start_timer("t", seconds(1))
            .activity_with("a", "", |s| s.schedule_to_start_timeout = delay(2_000))
            .force()
    });
    world.claim().hush().pass(hours(8)).crash().advance(seconds(10)).claim();
    world.expect(expect![[r#"
        @ 08:00:00
        ~ crash, 8 events replayed
        < (waits: timer.fired t), (waits: activity.timed_out a ScheduleToStart NonRetryableFailure)
        @ 08:00:10
        < task.timed_out StartToClose, timer.fired t, activity.timed_out a ScheduleToStart NonRetryableFailure, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-13
    "#]]);
}

#[test]
fn a_closed_run_is_deleted_after_its_retention() {
    let mut world = World::new();
    world.start_with("order-1", "kept for an hour", |begin| begin.retention_ms = hours(1)).signal("one");
    world.task(|t| t.complete("done")).wake();
    world.pass(hours(1) - 1).wake().pass(1).wake().signal("two").start("order-1");
    world.expect(expect![[r#"
        > start order-1 kept for an hour
        < workflow.started, task.scheduled
        > signal one
        < workflow.signaled one
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > wake
        = nothing to do
        @ 00:59:59.999
        > wake
        = nothing to do
        @ 01:00:00
        > wake
        < (the run is deleted)
        = nothing to do
        > signal two
        ! not found: workflow not found for ID: order-1
        > start order-1
        < run 2: workflow.started, task.scheduled
    "#]]);
}

#[test]
fn a_wake_that_comes_too_early_does_nothing() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("t", minutes(1)).activity("a")).hush();
    world.wake().pass(minutes(1) - 1).wake().pass(1).wake().wake();
    world.expect(expect![[r#"
        > wake
        = nothing to do
        @ 00:00:59.999
        > wake
        = nothing to do
        @ 00:01:00
        > wake
        < timer.fired t, task.scheduled
        > wake
        = nothing to do
    "#]]);
}
