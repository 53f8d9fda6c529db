//! Children: they begin when their parent knows of them, and their parent hears how they end.

use everlog_engine::api_types::{ParentClosePolicy, ReusePolicy};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::child::Start;
use everlog_engine::machine::workflow_task_completed::OtherNamespace;
use everlog_engine::request::Request;
use everlog_engine::time::Duration;
use expect_test::expect;

use super::retries::{policy, started};
use crate::world::{World, application, minutes, seconds};

#[test]
fn a_child_begins_when_its_parent_knows_of_it_and_reports_its_end() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1")).post();
    world.on("parcel-1").task(|t| t.complete("delivered")).post();
    world.on("order-1").task(|t| t.complete("done")).post();
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child parcel-1
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < run 2: workflow.started
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        < task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to order-1: the child is completed
        < child.completed parcel-1
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_child_knows_its_parent_and_the_root() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1")).post();
    let root = world.run().start.run_id.clone();
    world.on("parcel-1").task(|t| t.child("label-1")).post();
    let parcel = world.run().start.run_id.clone();
    let event = started(world.on("label-1"));
    let parent = event.parent_workflow_execution.expect("it has a parent");
    assert_eq!((parent.workflow_id.as_str(), parent.run_id), ("parcel-1", parcel));
    assert_eq!((event.parent_workflow_namespace.as_str(), event.parent_initiated_event_id), ("shop", 5));
    let found = event.root_workflow_execution.expect("it has a root");
    assert_eq!((found.workflow_id.as_str(), found.run_id), ("order-1", root));
    world.on("label-1").task(|t| t.continue_as_new(|_again| {}));
    assert_eq!(started(&world).parent_initiated_event_id, 5, "the run that follows is a child as well");
}

#[test]
fn a_child_lives_in_another_namespace_where_its_parents_worker_may_start_it() {
    let mut world = World::new();
    let elsewhere =
        OtherNamespace { name: "elsewhere".into(), id: "its UUID".into(), retention_ms: minutes(7) };
    world.start("order-1").task(|t| {
        t.order.other_namespaces.push(elsewhere);
        t.child_with("parcel-1", "elsewhere", |start| start.namespace = "elsewhere".into())
    });
    let child = world.run().children.values().next().expect("it has a child").clone();
    assert_eq!((child.namespace.as_str(), child.namespace_id.as_str()), ("elsewhere", "its UUID"));
    let (letter, begin) = world
        .letters()
        .find_map(|letter| match &letter.request {
            Some(Request::Start(begin)) => Some((letter, begin)),
            _ => None,
        })
        .expect("it is on its way");
    assert_eq!((letter.namespace_id.as_str(), begin.retention_ms), ("its UUID", minutes(7)));
    let parent = begin.parent.as_ref().expect("it has a parent");
    assert_eq!(parent.namespace, "shop");
}

#[test]
fn the_timeouts_of_a_child_are_filled_in_as_of_any_run() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.task_timeout_ms = seconds(3));
    world.task(|t| {
        let run = |start: &mut Start| start.workflow_run_timeout = Some(Duration::from_ms(seconds(1)));
        let chain =
            |start: &mut Start| start.workflow_execution_timeout = Some(Duration::from_ms(seconds(60)));
        t.child("plain").child_with("short", "for 1s", run).child_with("bounded", "chain of 1m", chain)
    });
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let spans = |event: &HistoryEvent| match &event.attributes {
        Some(Attributes::StartChildInitiated(event)) => Some(
            [event.workflow_execution_timeout, event.workflow_run_timeout, event.workflow_task_timeout]
                .map(|span| span.map(|span| span.seconds)),
        ),
        _other => None,
    };
    let told: Vec<_> = stored.events.iter().filter_map(spans).collect();
    let bounded = [Some(60), Some(60), Some(10)];
    assert_eq!(told, [[None, Some(0), Some(10)], [None, Some(1), Some(1)], bounded]);
    let event = started(world.post().on("plain"));
    assert_eq!(event.workflow_run_timeout, Some(Duration::default()), "a child is told that it has no limit");
}

#[test]
fn every_end_of_a_child_reaches_its_parent_once() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.child("fails").child("is-canceled").child("is-terminated").child_with(
            "is-late",
            "for 1m",
            |start| {
                start.workflow_run_timeout = crate::world::delay(minutes(1));
            },
        )
    });
    world.post().hush();
    world.on("fails").task(|t| t.fail(application("no", |_as_it_is| {})));
    world.on("is-canceled").cancel().task(|t| t.cancel());
    world.on("is-terminated").terminate("enough");
    world.advance(minutes(1));
    world.on("order-1").hush().post();
    world.expect(expect![[r#"
        > letter to order-1: the child is failed
        < child.failed fails
        > letter to order-1: the child is canceled
        < child.canceled is-canceled
        > letter to order-1: the child is terminated
        < child.terminated is-terminated
        > letter to order-1: the child is timedout
        < child.timed_out is-late
    "#]]);
}

#[test]
fn only_the_last_run_of_a_chain_reports() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1")).post().hush();
    world.on("parcel-1").task(|t| t.continue_as_new(|_again| {})).post();
    world.task(|t| t.complete("delivered")).post();
    world.expect(expect![[r#"
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 3: workflow.started, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to order-1: the child is completed
        < child.completed parcel-1
    "#]]);
}

#[test]
fn a_child_is_tried_again_before_its_parent_hears_of_it() {
    let mut world = World::new();
    world
        .start("order-1")
        .task(|t| t.child_with("parcel-1", "with 2 attempts", |start| start.retry_policy = policy(2)));
    world.post().hush();
    world.on("parcel-1").task(|t| t.fail(application("no", |_as_it_is| {}))).post();
    world.advance(seconds(1)).task(|t| t.fail(application("no", |_as_it_is| {}))).post();
    assert_eq!((started(&world).attempt, started(&world).parent_initiated_event_id), (2, 5));
    world.expect(expect![[r#"
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 3: workflow.started attempt 2, first task in 1s
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed MaximumAttemptsReached
        > letter to order-1: the child is failed
        < child.failed parcel-1
    "#]]);
}

#[test]
fn a_child_with_a_schedule_goes_on_until_it_is_ended() {
    let mut world = World::new();
    world
        .start("order-1")
        .task(|t| t.child_with("parcel-1", "each hour", |start| start.cron_schedule = "@hourly".into()));
    world.post().on("parcel-1").advance(minutes(60)).task(|t| t.complete("delivered")).post();
    world.terminate("enough").post();
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child parcel-1 each hour
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < run 2: workflow.started, first task in 800s
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        @ 00:13:20
        < (the delay is over), task.scheduled
        @ 01:00:00
        > task: complete the workflow
        < task.started, task.completed, workflow.completed, run 3: workflow.started, first task in 800s
        > terminate: enough
        < workflow.terminated "enough"
        > letter to order-1: the child is terminated
        < child.terminated parcel-1
    "#]]);
}

#[test]
fn a_child_that_could_never_run_is_refused_and_leaves_its_worker_the_task() {
    let mut world = World::new();
    world
        .start("order-1")
        .task(|t| t.child_with("parcel-1", "with a bad policy", |start| start.retry_policy = policy(-1)));
    world.answer(|t| t.child_with("parcel-1", "now and then", |start| start.cron_schedule = "never".into()));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child parcel-1 with a bad policy
        < task.started
        ! invalid: invalid WorkflowRetryPolicy on StartChildWorkflowExecutionCommand: MaximumAttempts cannot be negative on retry policy.. WorkflowId=parcel-1 WorkflowType=Parcel Namespace=shop
        > task: child parcel-1 now and then
        ! invalid: invalid CronSchedule on StartChildWorkflowExecutionCommand: invalid CronSchedule.. WorkflowId=parcel-1 WorkflowType=Parcel Namespace=shop
    "#]]);
}

#[test]
fn an_id_that_is_taken_fails_the_start() {
    let mut world = World::new();
    world.start("parcel-1").start("order-1").hush();
    world.task(|t| t.child("parcel-1")).post();
    world.on("parcel-1").task(|t| t.complete("done"));
    world.on("order-1").task(|t| {
        t.child_with("parcel-1", "once", |start| {
            start.workflow_id_reuse_policy = ReusePolicy::RejectDuplicate.into();
        })
    });
    world.post().task(|t| t.child("parcel-1")).post();
    world.expect(expect![[r#"
        > task: child parcel-1
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        ! taken: Workflow execution is already running. WorkflowId: parcel-1, run 1.
        > letter to order-1: the child cannot be
        < child.start_failed parcel-1 WorkflowAlreadyExists, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > task: child parcel-1 once
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        ! taken: Workflow execution already finished. WorkflowId: parcel-1, run 1. Workflow Id reuse policy: reject duplicate workflow Id.
        > letter to order-1: the child cannot be
        < child.start_failed parcel-1 WorkflowAlreadyExists, task.scheduled
        > task: child parcel-1
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < run 3: workflow.started
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        < task.scheduled
    "#]]);
}

#[test]
fn a_child_may_end_whoever_has_its_id() {
    let anew = |start: &mut Start| start.workflow_id_reuse_policy = ReusePolicy::TerminateIfRunning.into();
    let mut world = World::new();
    world.start("parcel-1").start("order-1").hush();
    world.task(|t| t.child_with("parcel-1", "instead of a stranger", anew)).post();
    world.task(|t| t.child_with("parcel-1", "instead of the child before", anew)).post();
    world.on("parcel-1").task(|t| t.complete("done")).post();
    world.on("order-1").task(|t| t.child_with("parcel-1", "when nobody has it", anew)).post();
    world.expect(expect![[r#"
        > task: child parcel-1 instead of a stranger
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", run 3: workflow.started
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        < task.scheduled
        > task: child parcel-1 instead of the child before
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", run 4: workflow.started
        > letter to order-1: the child is terminated
        < child.terminated parcel-1, task.scheduled
        > letter to order-1: the child is there
        < child.started parcel-1
        > letter to parcel-1: begin
        < task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to order-1: the child is completed
        < child.completed parcel-1
        > task: child parcel-1 when nobody has it
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < run 5: workflow.started
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        < task.scheduled
    "#]]);
}

#[test]
fn a_child_may_want_its_id_only_if_the_run_before_failed() {
    let only = |start: &mut Start| {
        start.workflow_id_reuse_policy = ReusePolicy::AllowDuplicateFailedOnly.into();
    };
    let mut world = World::new();
    world.start("parcel-1").start("order-1").hush();
    world.task(|t| t.child_with("parcel-1", "beside an open run", only)).post();
    world.on("parcel-1").task(|t| t.complete("done")).on("order-1");
    world.task(|t| t.child_with("parcel-1", "after a success", only)).post();
    world.start("parcel-1").task(|t| t.fail(application("no", |_as_it_is| {}))).on("order-1");
    world.task(|t| t.child_with("parcel-1", "after a failure", only)).post();
    world.expect(expect![[r#"
        > task: child parcel-1 beside an open run
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        ! taken: Workflow execution is already running. WorkflowId: parcel-1, run 1.
        > letter to order-1: the child cannot be
        < child.start_failed parcel-1 WorkflowAlreadyExists, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > task: child parcel-1 after a success
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        ! taken: Workflow execution already finished successfully. WorkflowId: parcel-1, run 1. Workflow Id reuse policy: allow duplicate workflow Id if last run failed.
        > letter to order-1: the child cannot be
        < child.start_failed parcel-1 WorkflowAlreadyExists, task.scheduled
        > start parcel-1
        < run 3: workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed RetryPolicyNotSet
        > task: child parcel-1 after a failure
        < task.started, task.completed, child.initiated parcel-1
        > letter to parcel-1: start Parcel
        < run 4: workflow.started
        > letter to order-1: the child is there
        < child.started parcel-1, task.scheduled
        > letter to parcel-1: begin
        < task.scheduled
    "#]]);
}

#[test]
fn a_run_that_closes_decides_on_its_children() {
    let mut world = World::new();
    let child = |policy: ParentClosePolicy| {
        move |start: &mut everlog_engine::machine::child::Start| start.parent_close_policy = policy.into()
    };
    world.start("order-1").task(|t| {
        t.child_with("ends", "", child(ParentClosePolicy::Terminate))
            .child_with("stays", "", child(ParentClosePolicy::Abandon))
            .child_with("is-asked", "", child(ParentClosePolicy::RequestCancel))
    });
    world.post().hush();
    world.task(|t| t.continue_as_new(|_again| {})).post();
    world.expect(expect![[r#"
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 5: workflow.started, task.scheduled
        > letter to ends: terminate
        < workflow.terminated "by parent close policy"
        > letter to is-asked: cancel
        < workflow.cancel_requested
        > letter to order-1: the child is terminated
        = nothing to do
    "#]]);
}

#[test]
fn a_parent_that_closes_at_once_leaves_only_what_it_abandons() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.child("ends")
            .child_with("stays", "", |start| start.parent_close_policy = ParentClosePolicy::Abandon.into())
            .complete("done")
    });
    world.post();
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child ends, child stays, complete the workflow
        < task.started, task.completed, child.initiated ends, child.initiated stays, workflow.completed
    "#]]);
}

#[test]
fn an_end_that_comes_with_the_beginning_is_written_behind_it() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1"));
    world.signal("one").claim().hush();
    world.post();
    world.on("parcel-1").terminate("lost").post();
    world.on("order-1").answer(|t| t.marker("m"));
    world.expect(expect![[r#"
        > letter to parcel-1: start Parcel
        < run 2: workflow.started
        > letter to order-1: the child is there
        < (waits: child.started parcel-1)
        > letter to parcel-1: begin
        < task.scheduled
        > terminate: lost
        < workflow.terminated "lost"
        > letter to order-1: the child is terminated
        < (waits: child.terminated parcel-1)
        > task: marker m
        < task.completed, marker.recorded m, child.started parcel-1, child.terminated parcel-1, task.scheduled
    "#]]);
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let ends = stored.events.iter().find_map(|event| match &event.attributes {
        Some(Attributes::ChildTerminated(closed)) => Some((closed.clone(), event.event_id)),
        _other => None,
    });
    let (closed, event_id) = ends.expect("it has ended");
    let started = stored.events.iter().find_map(|event| match &event.attributes {
        Some(Attributes::ChildStarted(_)) => Some(event.event_id),
        _other => None,
    });
    assert_eq!((closed.initiated_event_id, Some(closed.started_event_id)), (5, started));
    assert!(started < Some(event_id), "it began before it ended");
}

#[test]
fn children_are_bounded() {
    let mut world = World::with(|settings| settings.pending_children_max = 2);
    world.start("order-1").task(|t| t.child("a").child("b").child("c"));
    world.task(|t| t.child("a").child("b")).post().task(|t| t.child("c"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child a, child b, child c
        < task.started, task.failed PendingChildWorkflowsLimitExceeded, (task attempt 2)
        ! invalid: PendingChildWorkflowsLimitExceeded: the number of pending child workflow executions, 2, has reached the per-workflow limit of 2
        > task: child a, child b
        < (task attempt 2 is taken), task.scheduled attempt 2, task.started, task.completed, child.initiated a, child.initiated b
        > letter to a: start Parcel
        < run 2: workflow.started
        > letter to b: start Parcel
        < run 3: workflow.started
        > letter to order-1: the child is there
        < child.started a, task.scheduled
        > letter to order-1: the child is there
        < child.started b
        > letter to a: begin
        < task.scheduled
        > letter to b: begin
        < task.scheduled
        > task: child c
        < task.started, task.failed PendingChildWorkflowsLimitExceeded, (task attempt 2)
        ! invalid: PendingChildWorkflowsLimitExceeded: the number of pending child workflow executions, 2, has reached the per-workflow limit of 2
    "#]]);
}

#[test]
fn the_memo_of_a_child_is_bounded() {
    let mut world = World::with(|settings| settings.memo_bytes_max = 100);
    let memo = |bytes: usize| {
        move |start: &mut everlog_engine::machine::child::Start| start.memo = Some(vec![0x0a; bytes].into())
    };
    world.start("order-1").task(|t| t.child_with("a", "with a large memo", memo(101)));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: child a with a large memo
        < task.started, task.failed BadStartChildExecutionAttributes, workflow.terminated "BadStartChildExecutionAttributes: StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit."
        ! invalid: BadStartChildExecutionAttributes: StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit.
    "#]]);
}
