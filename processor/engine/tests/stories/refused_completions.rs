//! Completions that are refused and change nothing: the worker keeps its task and may complete it again.

use everlog_engine::machine::activity;
use everlog_engine::machine::workflow_task_completed::{Fault, ValidationFailure};
use expect_test::expect;

use crate::world::{Turn, World, fields};

fn find(turn: &mut Turn, command: u32, fault: Fault, reason: &str) {
    turn.order.findings.push(ValidationFailure { command, reason: reason.into(), fault: fault.into() });
}

#[test]
fn a_task_that_means_an_unknown_namespace_stays_with_its_worker() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.answer(|t| {
        t.marker("before").child("parcel-1");
        find(t, 1, Fault::Namespace, "nowhere");
        t
    });
    world.answer(|t| {
        t.signal_other("order-2", false);
        find(t, 0, Fault::Namespace, "nowhere");
        t
    });
    world.answer(|t| {
        t.cancel_other("order-2", false);
        find(t, 0, Fault::Namespace, "nowhere");
        t
    });
    world.answer(|t| t.complete("done"));
    world.expect(expect![[r#"
        > task: marker before, child parcel-1
        ! there is no namespace nowhere
        > task: signal order-2
        ! there is no namespace nowhere
        > task: cancel order-2
        ! there is no namespace nowhere
        > task: complete the workflow
        < task.completed, workflow.completed
    "#]]);
}

/// What fails a task does so before anybody looks at the commands behind it.
#[test]
fn the_first_command_that_does_not_do_decides() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.answer(|t| {
        t.cancel_timer("none").child("parcel-1");
        find(t, 1, Fault::Namespace, "nowhere");
        t
    });
    world.expect(expect![[r#"
        > task: cancel timer none, child parcel-1
        < task.failed BadCancelTimerAttributes, (task attempt 2)
        ! invalid: BadCancelTimerAttributes: invalid history builder state for action: add-timer-canceled-event, TimerID: none
    "#]]);
}

#[test]
fn search_attributes_of_a_run_that_is_to_be_leave_the_task_with_its_worker() {
    let mut world = World::with(|settings| settings.search_attributes_max = 1);
    world.start("order-1").claim().hush();
    let many = || Some(fields(&[("a", Some("1")), ("b", Some("2"))]));
    world.answer(|t| {
        t.child_with("parcel-1", "with two attributes", |start| start.search_attributes = many())
    });
    world.answer(|t| t.continue_as_new(|next| next.search_attributes = many()));
    world.answer(|t| {
        t.child("parcel-1");
        find(t, 0, Fault::Values, "RunId attribute can't be set in SearchAttributes");
        t
    });
    world.answer(|t| {
        t.continue_as_new(|_again| {});
        find(t, 0, Fault::Values, "RunId attribute can't be set in SearchAttributes");
        t
    });
    world.expect(expect![[r#"
        > task: child parcel-1 with two attributes
        ! invalid: invalid SearchAttributes on StartChildWorkflowCommand: number of search attributes 2 exceeds limit 1. WorkflowId=parcel-1 WorkflowType=Parcel Namespace=shop
        > task: continue as new
        ! invalid: invalid SearchAttributes on ContinueAsNewWorkflowExecutionCommand: number of search attributes 2 exceeds limit 1. WorkflowType=Order TaskQueue=name:"orders" kind:TASK_QUEUE_KIND_NORMAL
        > task: child parcel-1
        ! invalid: invalid SearchAttributes on StartChildWorkflowCommand: RunId attribute can't be set in SearchAttributes. WorkflowId=parcel-1 WorkflowType=Parcel Namespace=shop
        > task: continue as new
        ! invalid: invalid SearchAttributes on ContinueAsNewWorkflowExecutionCommand: RunId attribute can't be set in SearchAttributes. WorkflowType=Order TaskQueue=name:"orders" kind:TASK_QUEUE_KIND_NORMAL
    "#]]);
}

#[test]
fn what_else_is_wrong_with_a_child_is_told_before_its_search_attributes() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.answer(|t| {
        t.child("");
        find(t, 0, Fault::Values, "RunId attribute can't be set in SearchAttributes");
        t
    });
    world.expect(expect![[r#"
        > task: child
        < task.failed BadStartChildExecutionAttributes, (task attempt 2)
        ! invalid: BadStartChildExecutionAttributes: Required field WorkflowId is not set on StartChildWorkflowExecutionCommand. WorkflowType=Parcel Namespace=shop
    "#]]);
}

/// Of those that the namespace has not, it fails, as it does by a change of its own ones.
#[test]
fn search_attributes_that_nobody_knows_fail_the_task() {
    let mut world = World::new();
    world.start("order-1").hush();
    world.task(|t| {
        t.child("parcel-1");
        find(t, 0, Fault::Attributes, "Namespace shop has no mapping defined for search attribute b");
        t
    });
    world.expect(expect![[r#"
        > task: child parcel-1
        < task.started, task.failed BadSearchAttributes, (task attempt 2)
        ! invalid: BadSearchAttributes: Namespace shop has no mapping defined for search attribute b
    "#]]);
}

/// One that is there is none of its business.
#[test]
fn a_command_for_another_namespace_fails_the_task() {
    let mut world = World::new();
    world.start("order-1").hush();
    world.task(|t| t.child_with("parcel-1", "elsewhere", |start| start.namespace = "elsewhere".into()));
    world.expect(expect![[r#"
        > task: child parcel-1 elsewhere
        < task.started, task.failed BadStartChildExecutionAttributes, (task attempt 2)
        ! invalid: BadStartChildExecutionAttributes: cross-namespace commands are not allowed: "shop" asks something of "elsewhere".
    "#]]);
}

#[test]
fn a_run_of_the_server_goes_on_with_its_own_queue_and_with_no_other_of_these() {
    let mut world = World::new();
    world.start_with("job", "of the server", |begin| begin.task_queue = "/_sys/jobs".into()).claim();
    let on = |queue: &'static str| {
        move |s: &mut activity::Schedule| s.task_queue.get_or_insert_default().name = queue.into()
    };
    world.answer(|t| t.activity_with("a", "on another", on("/_sys/others")));
    world.answer(|t| t.activity_with("a", "on its own", on("/_sys/jobs")));
    world.expect(expect![[r#"
        > start job of the server
        < workflow.started, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task: activity a on another
        ! invalid: invalid TaskQueue on ScheduleActivityTaskCommand: task queue name cannot start with reserved prefix /_sys/. ActivityId=a ActivityType=Charge
        > task: activity a on its own
        < task.completed, activity.scheduled a
    "#]]);
}
