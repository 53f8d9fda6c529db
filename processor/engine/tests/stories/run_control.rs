//! Runs that operators pause, and give other options.

use bytes::Bytes;
use everlog_engine::api_types::Status;
use everlog_engine::machine::worker_versioning::Override;
use everlog_engine::payload::PriorityPatch;
use expect_test::expect;

use crate::world::{World, seconds};

#[test]
fn a_paused_run_takes_in_what_comes_and_hands_out_nothing() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("t", seconds(5)).activity("a")).hush();
    world.pause_run("one").signal("go").advance(seconds(5)).claim_activity("a").claim().crash();
    world.unpause_run().claim_activity("a").claim();
    world.expect(expect![[r#"
        > the run is to be paused
        < workflow.paused why
        > signal go
        < workflow.signaled go
        @ 00:00:05
        < timer.fired t
        > a worker takes a
        = gone
        > a worker takes the task
        = gone
        ~ crash, 9 events replayed
        > the run is to be unpaused
        < workflow.unpaused mended, (a: offered), task.scheduled
        > a worker takes a
        < (a is taken)
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-12
    "#]]);
}

#[test]
fn the_task_that_nobody_has_fails() {
    let mut world = World::new();
    world.start("order-1").pause_run("one");
    assert_eq!(world.run().head.status, i32::from(Status::Paused));
    world.unpause_run().task(|t| t.complete("done"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > the run is to be paused
        < task.failed WorkflowPauseRequestedBeforeTaskStarted, workflow.paused why
        > the run is to be unpaused
        < workflow.unpaused mended, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_task_in_hand_goes_on_and_no_other_follows() {
    let mut world = World::new();
    world.start("order-1").claim().pause_run("one").signal("go").answer(|t| t.activity("a"));
    world.claim_activity("a").unpause_run();
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > the run is to be paused
        < (waits: workflow.paused why)
        > signal go
        < (waits: workflow.signaled go)
        > task: activity a
        < task.completed, activity.scheduled a, workflow.paused why, workflow.signaled go
        > a worker takes a
        = gone
        > the run is to be unpaused
        < workflow.unpaused mended, (a: offered), task.scheduled
    "#]]);
}

#[test]
fn a_task_in_hand_may_not_ask_for_another_one() {
    let mut world = World::new();
    world.start("order-1").claim().pause_run("one").answer(|t| t.force());
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > the run is to be paused
        < (waits: workflow.paused why)
        > task: one more task
        ! not ready: Workflow is paused and force create new workflow task is not allowed.
    "#]]);
}

#[test]
fn it_is_paused_once_and_unpaused_once() {
    let mut world = World::new();
    world
        .start("order-1")
        .hush()
        .unpause_run()
        .pause_run("one")
        .pause_run("one")
        .pause_run("two")
        .pause_run("");
    world.unpause_run().unpause_run();
    world.expect(expect![[r#"
        > the run is to be unpaused
        ! not ready: workflow is not paused.
        > the run is to be paused
        < task.failed WorkflowPauseRequestedBeforeTaskStarted, workflow.paused why
        > the run is to be paused
        = nothing to do
        > the run is to be paused
        ! not ready: workflow is already paused.
        > the run is to be paused
        ! not ready: workflow is already paused.
        > the run is to be unpaused
        < workflow.unpaused mended, task.scheduled
        > the run is to be unpaused
        ! not ready: workflow is not paused.
    "#]]);
}

#[test]
fn a_paused_run_may_be_ended() {
    let mut world = World::new();
    world.start("order-1").pause_run("one").hush().terminate("enough").pause_run("two");
    assert!(world.run().pause().is_none());
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.terminated "enough"
        > the run is to be paused
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn a_paused_run_takes_no_update_and_cancels_itself_later() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.marker("m")).pause_run("one").hush().update("u").cancel().unpause_run();
    world.expect(expect![[r#"
        > update u
        ! not ready: Workflow is paused. Cannot update the workflow.
        > cancel
        < workflow.cancel_requested
        > the run is to be unpaused
        < workflow.unpaused mended, task.scheduled
    "#]]);
}

#[test]
fn other_options_are_an_event_only_where_something_changes() {
    let mut world = World::new();
    world.start("order-1").hush();
    world.gives_run_options(|_order| {});
    world.gives_run_options(|order| order.priority = Some(Bytes::from_static(b"\x08\x02")));
    assert_eq!(world.run().priority(), Some(&Bytes::from_static(b"\x08\x02")));
    let part = PriorityPatch { fairness_key: Some("tenant".into()), ..PriorityPatch::default() };
    world.gives_run_options(|order| order.priority_patch = Some(part));
    world.gives_run_options(|order| order.priority = Some(Bytes::new()));
    assert_eq!(world.run().priority(), None);
    let auto = Override { pinned: None, auto_upgrade: true };
    world.gives_run_options(|order| (order.sets_override, order.overriding) = (true, Some(auto)));
    world.gives_run_options(|order| order.sets_override = true);
    assert_eq!(world.run().properties.versioning, None);
    let negative = PriorityPatch { priority_key: Some(-1), ..PriorityPatch::default() };
    world.gives_run_options(|order| order.priority_patch = Some(negative));
    world.expect(expect![[r#"
        > the run is to have other options
        = nothing to do
        > the run is to have other options
        < options.updated, (the task takes another turn)
        > the run is to have other options
        < options.updated, (the task takes another turn)
        > the run is to have other options
        < options.updated, (the task takes another turn)
        > the run is to have other options
        < options.updated
        > the run is to have other options
        < options.updated
        > the run is to have other options
        ! invalid: PriorityKey can't be negative
    "#]]);
}

#[test]
fn the_run_that_follows_has_the_priority_that_it_was_changed_to() {
    let mut world = World::new();
    world.start("order-1").gives_run_options(|order| order.priority = Some(Bytes::from_static(b"\x08\x02")));
    world.task(|t| t.continue_as_new(|_order| {}));
    assert_eq!(world.run().start.priority, Some(Bytes::from_static(b"\x08\x02")));
}
