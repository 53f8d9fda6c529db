//! Parents: what becomes of their children when their runs close.

use everlog_engine::api_types::ParentClosePolicy;
use everlog_engine::machine::child::Start;
use expect_test::expect;

use super::retries::policy;
use crate::world::{Turn, World, application, minutes, seconds};

fn left(policy: ParentClosePolicy) -> impl FnOnce(&mut Start) {
    move |start| start.parent_close_policy = policy.into()
}

/// A child for each policy.
fn one_of_each(turn: &mut Turn) -> &mut Turn {
    turn.child_with("ends", "", left(ParentClosePolicy::Terminate))
        .child_with("stays", "", left(ParentClosePolicy::Abandon))
        .child_with("is-asked", "", left(ParentClosePolicy::RequestCancel))
}

#[test]
fn a_run_whose_time_is_over_decides_on_its_children() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.run_timeout_ms = minutes(1));
    world.task(one_of_each).post().hush();
    world.advance(minutes(1)).post();
    world.on("is-asked").task(|t| t.cancel()).on("stays").task(|t| t.complete("done")).post();
    world.expect(expect![[r#"
        @ 00:01:00
        < workflow.timed_out RetryPolicyNotSet
        > letter to ends: terminate
        < workflow.terminated "by parent close policy"
        > letter to is-asked: cancel
        < workflow.cancel_requested
        > letter to order-1: the child is terminated
        = nothing to do
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to order-1: the child is canceled
        = nothing to do
        > letter to order-1: the child is completed
        = nothing to do
    "#]]);
}

#[test]
fn a_run_that_is_tried_again_decides_on_its_children_first() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.retry_policy = policy(2));
    world.task(one_of_each).post().hush();
    world.task(|t| t.fail(application("Flaky", |_as_it_is| {}))).post();
    world.advance(seconds(1)).task(one_of_each).post();
    world.expect(expect![[r#"
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 5: workflow.started attempt 2, first task in 1s
        > letter to ends: terminate
        < workflow.terminated "by parent close policy"
        > letter to is-asked: cancel
        < workflow.cancel_requested
        > letter to order-1: the child is terminated
        = nothing to do
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: child ends, child stays, child is-asked
        < task.started, task.completed, child.initiated ends, child.initiated stays, child.initiated is-asked
        > letter to ends: start Parcel
        < run 6: workflow.started
        > letter to stays: start Parcel
        ! taken: Workflow execution is already running. WorkflowId: stays, run 3.
        > letter to is-asked: start Parcel
        ! taken: Workflow execution is already running. WorkflowId: is-asked, run 4.
        > letter to order-1: the child is there
        < child.started ends, task.scheduled
        > letter to order-1: the child cannot be
        < child.start_failed stays WorkflowAlreadyExists
        > letter to order-1: the child cannot be
        < child.start_failed is-asked WorkflowAlreadyExists
        > letter to ends: begin
        < task.scheduled
    "#]]);
}

#[test]
fn a_run_of_a_schedule_decides_on_its_children_at_its_end() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.cron_schedule = "@hourly".into());
    world.advance(seconds(800)).task(one_of_each).post().hush();
    world.task(|t| t.complete("done")).post();
    world.expect(expect![[r#"
        > task: complete the workflow
        < task.started, task.completed, workflow.completed, run 5: workflow.started, first task in 1h
        > letter to ends: terminate
        < workflow.terminated "by parent close policy"
        > letter to is-asked: cancel
        < workflow.cancel_requested
        > letter to order-1: the child is terminated
        = nothing to do
    "#]]);
}

#[test]
fn a_child_that_has_not_begun_is_woken_by_the_request_to_cancel() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.child_with("is-asked", "", left(ParentClosePolicy::RequestCancel)).child_with(
            "waits",
            "for the hour",
            |start| {
                left(ParentClosePolicy::RequestCancel)(start);
                start.cron_schedule = "@hourly".into();
            },
        )
    });
    world.deliver().expect("a child is started");
    world.deliver().expect("the other is as well");
    world.hush().terminate("enough").post();
    world.on("is-asked").task(|t| t.cancel()).on("waits").task(|t| t.cancel()).post();
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.terminated "enough"
        > letter to order-1: the child is there
        > letter to order-1: the child is there
        > letter to is-asked: cancel
        < workflow.cancel_requested, task.scheduled
        > letter to waits: cancel
        < workflow.cancel_requested, (the delay is over), task.scheduled
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > letter to order-1: the child is canceled
        = nothing to do
        > letter to order-1: the child is canceled
        = nothing to do
    "#]]);
}

#[test]
fn a_child_that_was_woken_before_its_parent_knew_of_it_begins_once() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1"));
    world.deliver().expect("the child is started");
    world.hush().on("parcel-1").cancel().claim().post().answer(|t| t.cancel()).post();
    world.expect(expect![[r#"
        > cancel
        < workflow.cancel_requested, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-4
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        = nothing to do
        > task: cancel the workflow
        < task.completed, workflow.canceled
        > letter to order-1: the child is canceled
        < child.canceled parcel-1
    "#]]);
}
