//! Options that a start leaves with the open run that it finds: its request id, its links.

use everlog_engine::api_types::{ConflictPolicy, ReusePolicy, TaskFailedCause};
use everlog_engine::event::Attributes;
use everlog_engine::machine::attached_requests::OnConflict;
use everlog_engine::machine::start::Begin;
use expect_test::expect;

use crate::world::{World, a_signal, hours, text};

/// A start that uses what is there, and leaves its id.
fn joins(request_id: &str) -> impl FnOnce(&mut Begin) + use<> {
    let request_id = request_id.to_owned();
    move |begin| {
        begin.request_id = request_id;
        begin.conflict_policy = ConflictPolicy::UseExisting.into();
        begin.on_conflict = Some(OnConflict { request_id: true, links: false });
    }
}

fn asks(request_id: &str, policy: ConflictPolicy) -> impl FnOnce(&mut Begin) + use<> {
    let request_id = request_id.to_owned();
    move |begin| {
        begin.request_id = request_id;
        begin.conflict_policy = policy.into();
    }
}

#[test]
fn a_request_that_has_found_a_run_finds_it_again_even_when_it_is_closed() {
    let mut world = World::new();
    world.start("order-1").start_with("order-1", "(b joins)", joins("b"));
    world.start_with("order-1", "(b joins again)", joins("b"));
    world.start_with("order-1", "(b, or fail)", asks("b", ConflictPolicy::Fail));
    world.start_with("order-1", "(b, anew)", asks("b", ConflictPolicy::TerminateExisting));
    world.crash().task(|t| t.complete("done"));
    world.start_with("order-1", "(b joins)", joins("b"));
    world.start_with("order-1", "(c joins)", |begin| {
        joins("c")(begin);
        begin.reuse_policy = ReusePolicy::RejectDuplicate.into();
    });
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > start order-1 (b joins)
        < options.updated by request b
        = there is run 1, running
        > start order-1 (b joins again)
        = there is run 1, running
        > start order-1 (b, or fail)
        = there is run 1, running
        > start order-1 (b, anew)
        = there is run 1, running
        ~ crash, 3 events replayed
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > start order-1 (b joins)
        = there is run 1, completed
        > start order-1 (c joins)
        ! taken: Workflow execution already finished. WorkflowId: order-1, run 1. Workflow Id reuse policy: reject duplicate workflow Id.
    "#]]);
}

#[test]
fn a_request_goes_along_when_the_run_goes_back_to_a_task_before_it() {
    let mut world = World::new();
    world.start("order-1").task(|t| t);
    world.start_with("order-1", "(b joins)", joins("b")).reset(4);
    let reset = world.run().start.run_id.clone();
    world.start_with("order-1", "(b joins again)", joins("b"));
    world.reset_with(&reset, 4, |order| order.without_signals = true);
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: nothing to do
        < task.started, task.completed
        > start order-1 (b joins)
        < options.updated by request b
        = there is run 1, running
        > reset to 4
        < workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, options.updated by request b, task.scheduled
        > start order-1 (b joins again)
        = there is run 2, running
        > reset to 4
        < workflow.terminated "again", run 3: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, options.updated by request b, task.scheduled
    "#]]);
}

#[test]
fn a_request_stays_behind_where_nothing_goes_along() {
    let mut world = World::new();
    world.start("order-1").task(|t| t);
    world.start_with("order-1", "(b joins)", joins("b")).hush();
    let base = world.run().start.run_id.clone();
    world.reset_with(&base, 4, |order| order.without_options = true);
    world.expect(expect![[r#"
        > reset to 4
        < workflow.terminated "again", run 2: workflow.started, task.scheduled, task.started, task.failed ResetWorkflow, task.scheduled
    "#]]);
}

#[test]
fn nobody_is_woken_for_a_request_that_is_attached() {
    let mut world = World::new();
    world.start("order-1").task(|t| t).hush();
    world.start_with("order-1", "(b joins)", joins("b"));
    world.expect(expect![[r#"
        > start order-1 (b joins)
        < options.updated by request b
        = there is run 1, running
    "#]]);
}

#[test]
fn a_request_is_attached_while_a_worker_has_the_task() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.start_with("order-1", "(b joins)", joins("b")).crash();
    assert_eq!(world.run().attached["b"].event_id, 0);
    world.start_with("order-1", "(b joins again)", joins("b"));
    world.terminate("enough");
    assert_eq!(world.run().attached["b"].event_id, 5);
    world.start_with("order-1", "(b joins)", joins("b"));
    world.expect(expect![[r#"
        > start order-1 (b joins)
        < (waits: options.updated by request b)
        = there is run 1, running
        ~ crash, 3 events replayed
        > start order-1 (b joins again)
        = there is run 1, running
        > terminate: enough
        < task.failed ForceCloseCommand, options.updated by request b, workflow.terminated "enough"
        > start order-1 (b joins)
        = there is run 1, terminated
    "#]]);
}

#[test]
fn a_delayed_run_waits_on() {
    let mut world = World::new();
    world.start_with("order-1", "in an hour", |begin| begin.start_delay_ms = hours(1)).hush();
    world.start_with("order-1", "(b joins)", joins("b")).advance(hours(1));
    world.expect(expect![[r#"
        > start order-1 (b joins)
        < options.updated by request b
        = there is run 1, running
        @ 01:00:00
        < (the delay is over), task.scheduled
    "#]]);
}

#[test]
fn a_request_that_has_found_a_run_finds_it_again_when_another_has_followed() {
    let mut world = World::new();
    world.start("order-1").start_with("order-1", "(b joins)", joins("b"));
    world.task(|t| t.continue_as_new(|_again| {})).hush();
    world.start_with("order-1", "(b)", asks("b", ConflictPolicy::UseExisting));
    world.start_with("order-1", "(b joins)", joins("b"));
    world.start_with("order-1", "(b)", asks("b", ConflictPolicy::Fail));
    world.expect(expect![[r#"
        > start order-1 (b)
        = there is run 1, continuedasnew
        > start order-1 (b joins)
        = there is run 1, continuedasnew
        > start order-1 (b)
        = there is run 1, continuedasnew
    "#]]);
}

#[test]
fn options_that_ask_for_nothing_are_an_event_all_the_same() {
    let mut world = World::new();
    world.start("order-1").hush();
    let with = |what: OnConflict| {
        move |begin: &mut Begin| {
            joins("b")(begin);
            begin.on_conflict = Some(what);
            begin.links = vec![text("a link")];
        }
    };
    world.start_with("order-1", "(nothing)", with(OnConflict::default()));
    world.start_with("order-1", "(links)", with(OnConflict { request_id: false, links: true }));
    world.start_with("order-1", "(both)", with(OnConflict { request_id: true, links: true }));
    let events = world.replica.all().flat_map(|stored| stored.events.iter());
    let updated = events.filter(|event| matches!(event.attributes, Some(Attributes::OptionsUpdated(_))));
    let links: Vec<_> = updated.map(|event| (event.links.len(), event.worker_may_ignore)).collect();
    assert_eq!(links, [(0, true), (1, true), (1, true)]);
    world.expect(expect![[r#"
        > start order-1 (nothing)
        < options.updated
        = there is run 1, running
        > start order-1 (links)
        < options.updated
        = there is run 1, running
        > start order-1 (both)
        < options.updated by request b
        = there is run 1, running
    "#]]);
}

#[test]
fn what_takes_another_way_leaves_nothing() {
    let mut world = World::new();
    world.start("order-1").hush();
    let but = |policy: ConflictPolicy| {
        move |begin: &mut Begin| {
            joins("b")(begin);
            begin.conflict_policy = policy.into();
        }
    };
    world.start_with("order-1", "(or fail)", but(ConflictPolicy::Fail));
    world.start_with("order-1", "(anew)", but(ConflictPolicy::TerminateExisting));
    world.start_with("order-1", "(a signal)", |begin| {
        joins("c")(begin);
        begin.signal = Some(a_signal("one", "c"));
    });
    world.expect(expect![[r#"
        > start order-1 (or fail)
        ! taken: Workflow execution is already running. WorkflowId: order-1, run 1.
        > start order-1 (anew)
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", run 2: workflow.started, task.scheduled
        > signal with start order-1 (a signal)
        < workflow.signaled one
        = there is run 2, running
    "#]]);
}

#[test]
fn a_buffer_that_is_full_of_requests_takes_the_task_from_its_worker() {
    let mut world = World::with(|settings| settings.buffered_events_max = 2);
    world.start("order-1").claim().hush();
    for request_id in ["b", "c", "d"] {
        world.start_with("order-1", &format!("({request_id} joins)"), joins(request_id));
    }
    let failed = world.replica.all().flat_map(|stored| stored.events.iter()).find_map(|event| {
        match &event.attributes {
            Some(Attributes::TaskFailed(failed)) => Some(failed.cause),
            _other => None,
        }
    });
    assert_eq!(failed, Some(TaskFailedCause::ForceCloseCommand.into()));
    world.expect(expect![[r#"
        > start order-1 (b joins)
        < (waits: options.updated by request b)
        = there is run 1, running
        > start order-1 (c joins)
        < (waits: options.updated by request c)
        = there is run 1, running
        > start order-1 (d joins)
        < (waits: options.updated by request d), task.failed ForceCloseCommand, options.updated by request b, options.updated by request c, options.updated by request d, (task attempt 2)
        = there is run 1, running
    "#]]);
}
