//! Starts: who may use a Workflow Id, what a repeated request gets, and what wakes a run that has to wait.

use everlog_engine::api_types::{ConflictPolicy, ReusePolicy};
use everlog_engine::machine::signal::Signal;
use everlog_engine::machine::start::Begin;
use everlog_engine::machine::update::Admit;
use expect_test::expect;

use crate::world::{World, a_signal, hours, minutes, seconds};

/// A signal that goes with a start.
pub fn with_start(name: &str) -> Signal {
    a_signal(name, &format!("request-{name}"))
}

fn asks(request_id: &str) -> impl FnOnce(&mut Begin) {
    let request_id = request_id.to_owned();
    move |begin| begin.request_id = request_id
}

fn signals(name: &str) -> impl FnOnce(&mut Begin) {
    let signal = with_start(name);
    move |begin| {
        begin.request_id.clone_from(&signal.request_id);
        begin.signal = Some(signal);
    }
}

#[test]
fn a_repeated_start_finds_its_run_even_when_it_is_closed() {
    let mut world = World::new();
    world.start_with("order-1", "(request r)", asks("r")).start_with("order-1", "(request r)", asks("r"));
    world.start_with("order-1", "(request s)", asks("s")).task(|t| t.complete("done"));
    world.start_with("order-1", "(request r)", asks("r"));
    world.start_with("order-1", "(request s)", asks("s"));
    world.start_with("order-1", "(request r)", asks("r"));
    world.expect(expect![[r#"
        > start order-1 (request r)
        < workflow.started, task.scheduled
        > start order-1 (request r)
        = it is run 1, running
        > start order-1 (request s)
        ! taken: Workflow execution is already running. WorkflowId: order-1, run 1.
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > start order-1 (request r)
        = it is run 1, completed
        > start order-1 (request s)
        < run 2: workflow.started, task.scheduled
        > start order-1 (request r)
        ! taken: Workflow execution is already running. WorkflowId: order-1, run 2.
    "#]]);
}

#[test]
fn requests_without_an_id_are_never_the_same() {
    let mut world = World::new();
    world.start_with("order-1", "(no request id)", asks("")).start_with(
        "order-1",
        "(no request id)",
        asks(""),
    );
    world.expect(expect![[r#"
        > start order-1 (no request id)
        < workflow.started, task.scheduled
        > start order-1 (no request id)
        ! taken: Workflow execution is already running. WorkflowId: order-1, run 1.
    "#]]);
}

#[test]
fn an_open_run_is_in_the_way_unless_the_start_says_otherwise() {
    let mut world = World::new();
    world.start("order-1").hush();
    let policy = |policy: ConflictPolicy| move |begin: &mut Begin| begin.conflict_policy = policy.into();
    world.start_with("order-1", "or fail", policy(ConflictPolicy::Fail));
    world.start_with("order-1", "or use what is there", policy(ConflictPolicy::UseExisting));
    world.claim().signal("one");
    world.start_with("order-1", "and end what is there", policy(ConflictPolicy::TerminateExisting));
    world.start_with("order-1", "and end what is running", |begin| {
        begin.reuse_policy = ReusePolicy::TerminateIfRunning.into();
    });
    world.expect(expect![[r#"
        > start order-1 or fail
        ! taken: Workflow execution is already running. WorkflowId: order-1, run 1.
        > start order-1 or use what is there
        = there is run 1, running
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > signal one
        < (waits: workflow.signaled one)
        > start order-1 and end what is there
        < task.failed ForceCloseCommand, workflow.signaled one, workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", run 2: workflow.started, task.scheduled
        > start order-1 and end what is running
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", run 3: workflow.started, task.scheduled
    "#]]);
    let ends = world.replica.all().filter_map(|stored| match &stored.events.last()?.attributes {
        Some(everlog_engine::event::Attributes::WorkflowTerminated(end)) => end.details.clone(),
        _other => None,
    });
    let details: Vec<_> = ends.collect();
    assert_eq!(details.len(), 2);
    let told = String::from_utf8_lossy(&details[0]).into_owned();
    assert!(told.contains("\"terminated by new runID: "), "{told}");
}

#[test]
fn a_closed_run_may_be_in_the_way_as_well() {
    let reuse = |end: fn(&mut World) -> &mut World, policy: ReusePolicy| {
        let mut world = World::new();
        world.start("order-1");
        end(&mut world);
        world
            .hush()
            .start_with("order-1", &format!("{policy:?}"), |begin| begin.reuse_policy = policy.into());
        world
    };
    fn completed(world: &mut World) -> &mut World {
        world.task(|t| t.complete("done"))
    }
    fn terminated(world: &mut World) -> &mut World {
        world.terminate("enough")
    }
    reuse(completed, ReusePolicy::AllowDuplicate).expect(expect![[r#"
        > start order-1 AllowDuplicate
        < run 2: workflow.started, task.scheduled
    "#]]);
    reuse(completed, ReusePolicy::TerminateIfRunning).expect(expect![[r#"
        > start order-1 TerminateIfRunning
        < run 2: workflow.started, task.scheduled
    "#]]);
    reuse(completed, ReusePolicy::AllowDuplicateFailedOnly).expect(expect![[r#"
        > start order-1 AllowDuplicateFailedOnly
        ! taken: Workflow execution already finished successfully. WorkflowId: order-1, run 1. Workflow Id reuse policy: allow duplicate workflow Id if last run failed.
    "#]]);
    reuse(terminated, ReusePolicy::AllowDuplicateFailedOnly).expect(expect![[r#"
        > start order-1 AllowDuplicateFailedOnly
        < run 2: workflow.started, task.scheduled
    "#]]);
    reuse(terminated, ReusePolicy::RejectDuplicate).expect(expect![[r#"
        > start order-1 RejectDuplicate
        ! taken: Workflow execution already finished. WorkflowId: order-1, run 1. Workflow Id reuse policy: reject duplicate workflow Id.
    "#]]);
}

#[test]
fn a_signal_is_taken_once() {
    let mut world = World::new();
    let same = |signal: &mut Signal| signal.request_id = "same".into();
    world.start("order-1").signal_with("one", "(request same)", same).signal_with(
        "one",
        "(request same)",
        same,
    );
    world.claim().signal_with("one", "(request same)", same);
    let none = |signal: &mut Signal| signal.request_id.clear();
    world.signal_with("two", "(no request id)", none).signal_with("two", "(no request id)", none);
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > signal one (request same)
        < workflow.signaled one
        > signal one (request same)
        = nothing to do
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-4
        > signal one (request same)
        = nothing to do
        > signal two (no request id)
        < (waits: workflow.signaled two)
        > signal two (no request id)
        < (waits: workflow.signaled two)
    "#]]);
}

#[test]
fn signal_with_start_starts_or_signals_and_does_so_once() {
    let mut world = World::new();
    world.start_with("order-1", "(one)", signals("one")).start_with("order-1", "(one)", signals("one"));
    world.start_with("order-1", "(two)", signals("two")).start_with("order-1", "(two)", signals("two"));
    world.task(|t| t.complete("done"));
    world.start_with("order-1", "(two)", signals("two")).start_with("order-1", "(one)", signals("one"));
    world.start_with("order-1", "(three)", signals("three")).start_with(
        "order-1",
        "(three)",
        signals("three"),
    );
    world.expect(expect![[r#"
        > signal with start order-1 (one)
        < workflow.started, workflow.signaled one, task.scheduled
        > signal with start order-1 (one)
        = there is run 1, running
        > signal with start order-1 (two)
        < workflow.signaled two
        = there is run 1, running
        > signal with start order-1 (two)
        = there is run 1, running
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > signal with start order-1 (two)
        = there is run 1, completed
        > signal with start order-1 (one)
        = there is run 1, completed
        > signal with start order-1 (three)
        < run 2: workflow.started, workflow.signaled three, task.scheduled
        > signal with start order-1 (three)
        = there is run 2, running
    "#]]);
}

#[test]
fn signal_with_start_may_end_what_is_there() {
    let mut world = World::new();
    world.start("order-1").hush();
    let both = |begin: &mut Begin| {
        begin.signal = Some(with_start("one"));
        begin.conflict_policy = ConflictPolicy::TerminateExisting.into();
    };
    world.start_with("order-1", "anew", both).start_with("order-1", "anew, the answer was lost", both);
    world.expect(expect![[r#"
        > signal with start order-1 anew
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", run 2: workflow.started, workflow.signaled one, task.scheduled
        > signal with start order-1 anew, the answer was lost
        = there is run 2, running
    "#]]);
}

#[test]
fn signal_with_start_respects_the_reuse_policy() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.complete("done")).hush();
    world.start_with("order-1", "once only", |begin| {
        begin.signal = Some(with_start("one"));
        begin.reuse_policy = ReusePolicy::RejectDuplicate.into();
    });
    world.expect(expect![[r#"
        > signal with start order-1 once only
        ! taken: Workflow execution already finished. WorkflowId: order-1, run 1. Workflow Id reuse policy: reject duplicate workflow Id.
    "#]]);
}

#[test]
fn a_delayed_start_waits_and_a_signal_does_not_wake_it() {
    let mut world = World::new();
    world.start_with("order-1", "in an hour", |begin| begin.start_delay_ms = hours(1));
    world.signal("one").crash().advance(hours(1));
    world.expect(expect![[r#"
        > start order-1 in an hour
        < workflow.started, first task in 1h
        > signal one
        < workflow.signaled one
        ~ crash, 2 events replayed
        @ 01:00:00
        < (the delay is over), task.scheduled
    "#]]);
}

#[test]
fn signal_with_start_wakes_a_delayed_run() {
    let mut world = World::new();
    world.start_with("order-1", "in an hour", |begin| begin.start_delay_ms = hours(1)).hush();
    world.advance(minutes(1)).start_with("order-1", "in two hours", |begin| {
        begin.signal = Some(with_start("one"));
        begin.start_delay_ms = hours(2);
    });
    world.advance(hours(3) - minutes(1));
    world.expect(expect![[r#"
        @ 00:01:00
        > signal with start order-1 in two hours
        < (the delay is over), workflow.signaled one, task.scheduled
        = there is run 1, running
        @ 03:00:00
    "#]]);
}

#[test]
fn a_delayed_start_with_a_signal_waits_too() {
    let mut world = World::new();
    world.start_with("order-1", "in an hour", |begin| {
        begin.signal = Some(with_start("one"));
        begin.start_delay_ms = hours(1);
    });
    world.advance(hours(1));
    world.expect(expect![[r#"
        > signal with start order-1 in an hour
        < workflow.started, first task in 1h, workflow.signaled one
        @ 01:00:00
        < (the delay is over), task.scheduled
    "#]]);
}

#[test]
fn a_request_to_cancel_wakes_a_delayed_run() {
    let mut world = World::new();
    world.start_with("order-1", "in an hour", |begin| begin.start_delay_ms = hours(1)).hush();
    world.cancel().cancel().task(|t| t.cancel());
    world.expect(expect![[r#"
        > cancel
        < workflow.cancel_requested, (the delay is over), task.scheduled
        > cancel
        = nothing to do
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
    "#]]);
}

#[test]
fn a_delayed_run_can_be_terminated() {
    let mut world = World::new();
    world.start_with("order-1", "in an hour", |begin| begin.start_delay_ms = hours(1)).hush();
    world.terminate("enough").advance(hours(2));
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.terminated "enough"
        @ 02:00:00
    "#]]);
}

#[test]
fn a_request_to_cancel_is_recorded_once() {
    let mut world = World::new();
    world.start("order-1").cancel().cancel().task(|t| t.cancel()).cancel();
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > cancel
        < workflow.cancel_requested
        > cancel
        = nothing to do
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > cancel
        = nothing to do
    "#]]);
}

#[test]
fn a_run_can_be_named_by_its_chain() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.continue_as_new(|_again| {})).hush();
    let first = world.run().start.first_run_id.clone();
    let second = world.run().start.run_id.clone();
    world.cancel_chain(&second, "of another chain").terminate_chain(&second, "of another chain");
    world.cancel_chain(&first, "of this chain").terminate_chain(&first, "of this chain");
    world.cancel_chain(&first, "of this chain").cancel_chain(&second, "of another chain");
    world.expect(expect![[r#"
        > cancel, of another chain
        ! not found: workflow execution not found
        > terminate, of another chain
        ! not found: workflow execution not found
        > cancel, of this chain
        < workflow.cancel_requested
        > terminate, of this chain
        < workflow.terminated ""
        > cancel, of this chain
        = nothing to do
        > cancel, of another chain
        = nothing to do
    "#]]);
}

#[test]
fn an_update_can_name_the_chain_that_its_run_belongs_to() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.continue_as_new(|_again| {})).hush();
    let [first, second] = [world.run().start.first_run_id.clone(), world.run().start.run_id.clone()];
    let chain = |run_id: &str| {
        let run_id = run_id.to_owned();
        move |admit: &mut Admit| admit.first_run_id = run_id
    };
    world.update_with("u1", "of another chain", chain(&second));
    world.update_with("u1", "of this chain", chain(&first)).task(|t| t.accept("u1"));
    world.update_with("u1", "of another chain", chain(&second));
    world.update_with("u1", "of this chain", chain(&first)).terminate("enough");
    world.update_with("u1", "of another chain", chain(&second));
    world.update_with("u1", "of this chain", chain(&first));
    world.update_with("u2", "of this chain", chain(&first));
    world.expect(expect![[r#"
        > update u1 of another chain
        ! not found: workflow execution not found
        > update u1 of this chain
        < (update u1 waits)
        > task: accept u1
        < task.started, task.completed, update.accepted u1
        > update u1 of another chain
        ! not found: workflow execution not found
        > update u1 of this chain
        = the update is accepted
        > terminate: enough
        < workflow.terminated "enough"
        > update u1 of another chain
        ! not found: workflow execution not found
        > update u1 of this chain
        = the update ended: AcceptedUpdateCompletedWorkflow
        > update u2 of this chain
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn timeouts_of_a_start_are_fitted_into_one_another() {
    let spans = |change: fn(&mut Begin)| {
        let mut world = World::new();
        world.start_with("order-1", "", change);
        let start = world.run().start.clone();
        let ends_s = |ms: i64| if ms == 0 { 0 } else { (ms - world.now_ms) / 1_000 };
        let spans_s =
            [start.execution_timeout_ms, start.run_timeout_ms, start.task_timeout_ms].map(|ms| ms / 1_000);
        (spans_s, [ends_s(start.execution_expires_ms), ends_s(start.run_expires_ms)])
    };
    assert_eq!(spans(|_begin| {}), ([0, 0, 10], [0, 0]));
    assert_eq!(spans(|b| b.execution_timeout_ms = seconds(100)), ([100, 100, 10], [100, 100]));
    assert_eq!(spans(|b| b.run_timeout_ms = seconds(5)), ([0, 5, 5], [0, 5]));
    assert_eq!(spans(|b| b.task_timeout_ms = hours(1)), ([0, 0, 120], [0, 0]));
    let both = |b: &mut Begin| (b.execution_timeout_ms, b.run_timeout_ms) = (seconds(50), seconds(100));
    assert_eq!(spans(both), ([50, 50, 10], [50, 50]));
    let delayed = |b: &mut Begin| {
        (b.execution_timeout_ms, b.run_timeout_ms, b.start_delay_ms) =
            (seconds(100), seconds(50), seconds(20));
    };
    assert_eq!(spans(delayed), ([100, 50, 10], [100, 70]), "a run's time begins with its first task");
    let late = |b: &mut Begin| (b.execution_timeout_ms, b.start_delay_ms) = (seconds(100), seconds(20));
    assert_eq!(spans(late), ([100, 100, 10], [100, 100]), "the chain's time begins at once");
}

#[test]
fn what_is_unknown_is_not_found() {
    let mut world = World::new();
    world.start("order-1").on("order-2");
    let token = everlog_engine::machine::workflow_task::Token::default();
    let mut told = Vec::new();
    use everlog_engine::machine::{
        activity_attempt, cancel, close, fire_timers, workflow_task, workflow_task_completed,
    };
    use everlog_engine::request::{Request, ResetSticky};
    let orders = [
        Request::Signal(with_start("one")),
        Request::Cancel(cancel::Request::default()),
        Request::Terminate(close::Terminate::default()),
        Request::ClaimTask(workflow_task::Claim::default()),
        Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            token: Some(token),
            ..Default::default()
        })),
        Request::FailTask(workflow_task::Fail::default()),
        Request::ReleaseTask(workflow_task::Release::default()),
        Request::ClaimActivity(activity_attempt::Claim::default()),
        Request::CompleteActivity(activity_attempt::Complete::default()),
        Request::HeartbeatActivity(activity_attempt::Heartbeat::default()),
        Request::FireTimers(fire_timers::FireTimers {}),
        Request::ResetSticky(ResetSticky {}),
    ];
    for order in orders {
        told.push(format!("{:?}", world.order(order).reply));
    }
    expect![[r#"
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
        Gone
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
        Gone
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
        Rejected(NotFound("workflow not found for ID: order-2"))
    "#]]
    .assert_eq(&format!("{}\n", told.join("\n")));
}
