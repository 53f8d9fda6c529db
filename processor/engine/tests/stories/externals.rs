//! Signals to other workflows, and requests to cancel them.

use everlog_engine::event::Attributes;
use expect_test::expect;

use super::retries::policy;
use crate::world::{World, application};

/// A chain of two runs: their ids.
fn chain(world: &mut World, workflow_id: &str) -> [String; 2] {
    let first = world.start(workflow_id).run().start.run_id.clone();
    world.task(|t| t.continue_as_new(|_again| {}));
    [first, world.run().start.run_id.clone()]
}

/// What has come to a run, in order.
fn heard(world: &World, run_id: &str) -> Vec<&'static str> {
    let stored = world.replica.stored(run_id).expect("the run is there");
    let heard = stored.events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::WorkflowSignaled(_)) => Some("signal"),
        Some(Attributes::WorkflowCancelRequested(_)) => Some("cancel"),
        _other => None,
    });
    heard.collect()
}

#[test]
fn a_signal_reaches_another_workflow_and_its_sender_hears_so() {
    let mut world = World::new();
    world.start("other").start("order-1").hush();
    world.task(|t| t.signal_other("other", false)).post();
    world.expect(expect![[r#"
        > task: signal other
        < task.started, task.completed, external.signal_initiated other
        > letter to other: signal hello
        < workflow.signaled hello
        > letter to order-1: it has arrived
        < external.signaled other, task.scheduled
    "#]]);
    let sender = world.run().start.run_id.clone();
    let other = world.on("other").run().start.run_id.clone();
    let stored = world.replica.stored(&other).expect("the run is there");
    let signaled = stored.events.iter().find_map(|event| match &event.attributes {
        Some(Attributes::WorkflowSignaled(signaled)) => signaled.external_workflow_execution.clone(),
        _other => None,
    });
    assert_eq!(signaled.map(|run| (run.workflow_id, run.run_id)), Some(("order-1".into(), sender)));
}

#[test]
fn nobody_oneself_and_a_stranger_who_is_no_child_are_not_reached() {
    let mut world = World::new();
    world.start("other").start("closed").terminate("enough").start("order-1").hush();
    world.task(|t| {
        t.signal_other("nobody", false)
            .signal_other("order-1", false)
            .signal_other("other", true)
            .signal_other("closed", false)
            .cancel_other("nobody", false)
            .cancel_other("order-1", false)
            .cancel_other("other", true)
    });
    world.post();
    world.expect(expect![[r#"
        > task: signal nobody, signal order-1, signal other, if it is a child, signal closed, cancel nobody, cancel order-1, cancel other, if it is a child
        < task.started, task.completed, external.signal_initiated nobody, external.signal_initiated order-1, external.signal_initiated other, external.signal_initiated closed, external.cancel_initiated nobody, external.cancel_initiated order-1, external.cancel_initiated other
        > letter to nobody: signal hello
        ! not found: workflow not found for ID: nobody
        > letter to order-1: signal hello
        ! not found: workflow execution not found
        > letter to other: signal hello
        ! not found: workflow execution not found
        > letter to closed: signal hello
        ! not found: workflow execution already completed
        > letter to nobody: cancel
        ! not found: workflow not found for ID: nobody
        > letter to order-1: cancel
        ! not found: workflow execution not found
        > letter to other: cancel
        ! not found: workflow execution not found
        > letter to order-1: it has not arrived
        < external.signal_failed nobody NotFound, task.scheduled
        > letter to order-1: it has not arrived
        < external.signal_failed order-1 NotFound
        > letter to order-1: it has not arrived
        < external.signal_failed other NotFound
        > letter to order-1: it has not arrived
        < external.signal_failed closed NotFound
        > letter to order-1: it has not arrived
        < external.cancel_failed nobody NotFound
        > letter to order-1: it has not arrived
        < external.cancel_failed order-1 NotFound
        > letter to order-1: it has not arrived
        < external.cancel_failed other NotFound
    "#]]);
}

#[test]
fn a_request_to_cancel_reaches_the_open_and_the_closed() {
    let mut world = World::new();
    world.start("other").start("closed").terminate("enough").start("order-1").hush();
    world.task(|t| t.cancel_other("other", false).cancel_other("closed", false)).post();
    world.expect(expect![[r#"
        > task: cancel other, cancel closed
        < task.started, task.completed, external.cancel_initiated other, external.cancel_initiated closed
        > letter to other: cancel
        < workflow.cancel_requested
        > letter to closed: cancel
        = nothing to do
        > letter to order-1: it has arrived
        < external.cancel_requested other, task.scheduled
        > letter to order-1: it has arrived
        < external.cancel_requested closed
    "#]]);
}

#[test]
fn a_child_is_not_started_and_canceled_in_one_task() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1").cancel_other("parcel-1", true));
    world.task(|t| t.child("parcel-1")).post();
    world.task(|t| t.cancel_other("parcel-1", true)).post();
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child parcel-1, cancel parcel-1, if it is a child
        < task.started, task.failed BadRequestCancelExternalWorkflowExecutionAttributes, (task attempt 2)
        ! invalid: BadRequestCancelExternalWorkflowExecutionAttributes: Start and RequestCancel for child workflow is not allowed in same workflow task. WorkflowId=parcel-1 RunId= Namespace=
        > task: child parcel-1
        < (task attempt 2 is taken), task.scheduled attempt 2, task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < run 2: workflow.started
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        < task.scheduled
        > task: cancel parcel-1, if it is a child
        < task.started, task.completed, external.cancel_initiated parcel-1
        > letter to parcel-1: cancel
        < workflow.cancel_requested
        > letter to order-1: it has arrived
        < external.cancel_requested parcel-1, task.scheduled
    "#]]);
}

#[test]
fn too_many_signals_are_told_to_the_sender() {
    let mut world = World::with(|settings| settings.signals_max = 1);
    world.start("other").signal("one").start("order-1").hush();
    world.task(|t| t.signal_other("other", false)).post();
    world.expect(expect![[r#"
        > task: signal other
        < task.started, task.completed, external.signal_initiated other
        > letter to other: signal hello
        ! invalid: exceeded workflow execution limit for signal events
        > letter to order-1: it has not arrived
        < external.signal_failed other SignalCountLimitExceeded, task.scheduled
    "#]]);
}

#[test]
fn signals_and_requests_under_way_are_bounded() {
    let mut world = World::with(|settings| {
        settings.pending_signals_max = 1;
        settings.pending_cancels_max = 1;
    });
    world.start("order-1").task(|t| t.signal_other("a", false).signal_other("b", false));
    world.task(|t| t.cancel_other("a", false).cancel_other("b", false));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: signal a, signal b
        < task.started, task.failed PendingSignalsLimitExceeded, (task attempt 2)
        ! invalid: PendingSignalsLimitExceeded: the number of pending signals to external workflows, 1, has reached the per-workflow limit of 1
        > task: cancel a, cancel b
        < (task attempt 2 is taken)
        ! invalid: PendingRequestCancelLimitExceeded: the number of pending requests to cancel external workflows, 1, has reached the per-workflow limit of 1
    "#]]);
}

#[test]
fn a_workflow_that_went_on_in_a_new_run_is_reached_there() {
    let mut world = World::new();
    let [first, second] = chain(&mut world, "other");
    world.start("order-1").hush();
    world.task(|t| t.signal_other("other", false).cancel_other("other", false)).post();
    world.task(|t| t.signal_run("other", &second, "its second run")).post();
    world.expect(expect![[r#"
        > task: signal other, cancel other
        < task.started, task.completed, external.signal_initiated other, external.cancel_initiated other
        > letter to other: signal hello
        < workflow.signaled hello
        > letter to other: cancel
        < workflow.cancel_requested
        > letter to order-1: it has arrived
        < external.signaled other, task.scheduled
        > letter to order-1: it has arrived
        < external.cancel_requested other
        > task: signal other, its second run
        < task.started, task.completed, external.signal_initiated other
        > letter to other: signal hello
        < workflow.signaled hello
        > letter to order-1: it has arrived
        < external.signaled other, task.scheduled
    "#]]);
    assert_eq!((heard(&world, &first), heard(&world, &second)), (vec![], vec!["signal", "cancel", "signal"]));
}

#[test]
fn a_run_that_went_on_takes_no_signal_and_a_request_to_cancel_it_is_no_error() {
    let mut world = World::new();
    let [first, second] = chain(&mut world, "other");
    world.start("order-1").hush();
    let run = "its first run";
    world.task(|t| t.signal_run("other", &first, run).cancel_run("other", &first, run)).post();
    world.expect(expect![[r#"
        > task: signal other, its first run, cancel other, its first run
        < task.started, task.completed, external.signal_initiated other, external.cancel_initiated other
        > letter to other: signal hello
        ! not found: workflow execution already completed
        > letter to other: cancel
        = nothing to do
        > letter to order-1: it has not arrived
        < external.signal_failed other NotFound, task.scheduled
        > letter to order-1: it has arrived
        < external.cancel_requested other
    "#]]);
    assert_eq!((heard(&world, &first), heard(&world, &second)), (vec![], vec![]));
}

#[test]
fn a_run_that_the_other_never_had_is_not_found() {
    let mut world = World::new();
    let stranger = world.start("stranger").run().start.run_id.clone();
    let nobody = "00000000-0000-4000-8000-000000000000";
    world.start("other");
    let [own, _second] = chain(&mut world, "order-1");
    world.hush().task(|t| {
        t.signal_run("other", nobody, "a run of nobody")
            .signal_run("other", &stranger, "a run of the stranger")
            .signal_run("order-1", &own, "its own first run")
            .cancel_run("other", nobody, "a run of nobody")
            .cancel_run("other", &stranger, "a run of the stranger")
            .cancel_run("order-1", &own, "its own first run")
    });
    world.post();
    world.expect(expect![[r#"
        > task: signal other, a run of nobody, signal other, a run of the stranger, signal order-1, its own first run, cancel other, a run of nobody, cancel other, a run of the stranger, cancel order-1, its own first run
        < task.started, task.completed, external.signal_initiated other, external.signal_initiated other, external.signal_initiated order-1, external.cancel_initiated other, external.cancel_initiated other, external.cancel_initiated order-1
        > letter to other: signal hello
        ! not found: workflow execution not found for workflow ID "other" and run ID "00000000-0000-4000-8000-000000000000"
        > letter to other: signal hello
        ! not found: workflow execution not found for workflow ID "other" and run ID "00e8d4a5-1000-7000-8000-646883799ca8"
        > letter to order-1: signal hello
        ! not found: workflow execution not found
        > letter to other: cancel
        ! not found: workflow execution not found for workflow ID "other" and run ID "00000000-0000-4000-8000-000000000000"
        > letter to other: cancel
        ! not found: workflow execution not found for workflow ID "other" and run ID "00e8d4a5-1000-7000-8000-646883799ca8"
        > letter to order-1: cancel
        ! not found: workflow execution not found
        > letter to order-1: it has not arrived
        < external.signal_failed other NotFound, task.scheduled
        > letter to order-1: it has not arrived
        < external.signal_failed other NotFound
        > letter to order-1: it has not arrived
        < external.signal_failed order-1 NotFound
        > letter to order-1: it has not arrived
        < external.cancel_failed other NotFound
        > letter to order-1: it has not arrived
        < external.cancel_failed other NotFound
        > letter to order-1: it has not arrived
        < external.cancel_failed order-1 NotFound
    "#]]);
    assert_eq!(heard(&world, &stranger), Vec::<&str>::new());
}

#[test]
fn a_child_that_went_on_in_a_new_run_is_still_its_parents() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1")).post();
    let first = world.on("parcel-1").run().start.run_id.clone();
    world.task(|t| t.continue_as_new(|_again| {})).on("order-1").hush();
    world.task(|t| t.signal_other("parcel-1", true).cancel_other("parcel-1", true)).post();
    world.expect(expect![[r#"
        > task: signal parcel-1, if it is a child, cancel parcel-1, if it is a child
        < task.started, task.completed, external.signal_initiated parcel-1, external.cancel_initiated parcel-1
        > letter to parcel-1: signal hello
        < workflow.signaled hello
        > letter to parcel-1: cancel
        < workflow.cancel_requested
        > letter to order-1: it has arrived
        < external.signaled parcel-1, task.scheduled
        > letter to order-1: it has arrived
        < external.cancel_requested parcel-1
    "#]]);
    let second = world.on("parcel-1").run().start.run_id.clone();
    assert_eq!((heard(&world, &first), heard(&world, &second)), (vec![], vec!["signal", "cancel"]));
}

#[test]
fn a_run_that_waits_to_be_tried_again_keeps_a_signal_and_is_woken_by_a_request_to_cancel() {
    let mut world = World::new();
    world.start_with("other", "", |begin| begin.retry_policy = policy(2));
    world.task(|t| t.fail(application("Flaky", |_as_it_is| {}))).start("order-1").hush();
    world.task(|t| t.signal_other("other", false)).post();
    world.task(|t| t.cancel_other("other", false)).post();
    world.expect(expect![[r#"
        > task: signal other
        < task.started, task.completed, external.signal_initiated other
        > letter to other: signal hello
        < workflow.signaled hello
        > letter to order-1: it has arrived
        < external.signaled other, task.scheduled
        > task: cancel other
        < task.started, task.completed, external.cancel_initiated other
        > letter to other: cancel
        < workflow.cancel_requested, (the delay is over), task.scheduled
        > letter to order-1: it has arrived
        < external.cancel_requested other, task.scheduled
    "#]]);
}
