//! Chains: runs that continue one another, and the time that a run or a chain has.

use bytes::Bytes;
use everlog_engine::api_types::{Initiator, TaskQueue, WorkflowType};
use everlog_engine::event::Attributes;
use everlog_engine::machine::close::ContinuedAsNew;
use everlog_engine::machine::start::Started;
use everlog_engine::machine::{activity_attempt, close, workflow_task};
use everlog_engine::request::Request;
use everlog_engine::time::Timestamp;
use expect_test::expect;

use crate::world::{World, delay, fields, hours, minutes, seconds, text};

/// The Started event of the current run.
fn started(world: &World) -> Started {
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    match &stored.events[0].attributes {
        Some(Attributes::WorkflowStarted(started)) => started.as_ref().clone(),
        other => panic!("{other:?} starts nothing"),
    }
}

/// The closing event of a run that was continued.
fn continued(world: &World, run_id: &str) -> ContinuedAsNew {
    let stored = world.replica.stored(run_id).expect("the run is there");
    match &stored.events.last().expect("it has events").attributes {
        Some(Attributes::WorkflowContinuedAsNew(continued)) => continued.as_ref().clone(),
        other => panic!("{other:?} continues nothing"),
    }
}

#[test]
fn a_run_goes_on_in_a_new_one() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("a").start_timer("t", hours(1))).signal("one");
    world.task(|t| t.marker("m").continue_as_new(|_again| {}));
    world.advance(hours(2)).task(|t| t.complete("done"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: activity a, start timer t 1h
        < task.started, task.completed, activity.scheduled a, timer.started t due 01:00:00
        > signal one
        < workflow.signaled one, task.scheduled
        > task: marker m, continue as new
        < task.started, task.completed, marker.recorded m, workflow.continued_as_new, run 2: workflow.started, task.scheduled
        @ 02:00:00
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_new_run_gets_what_the_command_says_and_the_rest_of_the_old() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| {
        begin.memo = Some(fields(&[("old", Some("memo"))]));
        begin.search_attributes = Some(fields(&[("old", Some("attribute"))]));
        begin.header = Some(text("old header"));
        begin.user_metadata = Some(text("summary"));
        begin.priority = Some(text("priority"));
        begin.execution_timeout_ms = hours(1);
        begin.run_timeout_ms = minutes(30);
        begin.task_timeout_ms = seconds(20);
    });
    let first = world.run().start.clone();
    world.advance(minutes(10)).task(|t| {
        t.continue_as_new(|again| {
            again.workflow_type = Some(WorkflowType { name: "Refund".into() });
            again.task_queue = Some(TaskQueue::normal("refunds"));
            again.workflow_run_timeout = delay(minutes(55));
            again.memo = Some(fields(&[("new", Some("memo"))]));
            again.last_completion_result = Some(text("result"));
            again.failure = Some(text("failure"));
            again.initiator = Initiator::Workflow.into();
        })
    });
    let (second, event) = (world.run().start.as_ref().clone(), started(&world));
    assert_ne!(second.run_id, first.run_id);
    assert_eq!((&second.first_run_id, second.chain_start_ms), (&first.run_id, first.start_ms));
    assert_eq!(
        (second.workflow_type, second.task_queue),
        (Some(WorkflowType { name: "Refund".into() }), "refunds".into())
    );
    assert_eq!((second.run_timeout_ms, second.task_timeout_ms), (minutes(55), seconds(20)));
    assert_eq!(second.execution_expires_ms, first.execution_expires_ms, "the chain's end stays");
    assert_eq!(second.run_expires_ms, first.execution_expires_ms, "a run ends with its chain");
    assert_eq!((&second.priority, &second.user_metadata), (&Some(text("priority")), &None));
    assert_eq!(
        (&event.original_execution_run_id, &event.first_execution_run_id),
        (&second.run_id, &first.run_id)
    );
    assert_eq!((&event.continued_execution_run_id, event.attempt), (&first.run_id, 1));
    assert_eq!(event.initiator, i32::from(Initiator::Workflow));
    assert_eq!(
        (event.last_completion_result, event.continued_failure),
        (Some(text("result")), Some(text("failure")))
    );
    assert_eq!((event.header, event.search_attributes), (None, None), "only what the command has");
    assert_eq!(
        event.workflow_execution_expiration_time,
        Some(Timestamp::from_ms(first.execution_expires_ms))
    );
    assert_eq!(event.first_workflow_task_backoff, None, "nothing is said of a wait that is none");
    assert_eq!(world.run().properties.memo.len(), 1);
    let closing = continued(&world, &first.run_id);
    assert_eq!(closing.new_execution_run_id, second.run_id);
    assert_eq!((closing.backoff_start_interval, closing.initiator), (None, Initiator::Workflow.into()));
    assert_eq!(
        world.replica.stored(&first.run_id).map(|stored| stored.run.head.successor_run_id.clone()),
        Some(second.run_id)
    );
}

#[test]
fn a_new_run_may_have_to_wait() {
    let mut world = World::new();
    world.start("order-1").hush();
    world.task(|t| t.continue_as_new(|again| again.backoff_start_interval = delay(seconds(7)))).signal("one");
    world.crash().advance(seconds(7));
    world.expect(expect![[r#"
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 2: workflow.started, first task in 7s
        > signal one
        < workflow.signaled one
        ~ crash, 7 events replayed
        @ 00:00:07
        < (the delay is over), task.scheduled
    "#]]);
    let first = world.run().start.first_run_id.clone();
    assert_eq!(continued(&world, &first).backoff_start_interval, delay(seconds(7)));
}

#[test]
fn runs_that_continue_in_a_hurry_are_held_back() {
    let mut world = World::with(|settings| settings.continue_interval_min_ms = 1_000);
    world.start("order-1").advance(300).task(|t| t.continue_as_new(|_again| {})).hush();
    assert_eq!(world.run().start.first_task_backoff_ms, 700);
    world.advance(700).task(|t| t.continue_as_new(|_again| {}));
    assert_eq!(world.run().start.first_task_backoff_ms, 1_000, "a run's life begins with its first task");
    world.advance(1_000).advance(1_000).task(|t| t.continue_as_new(|_again| {}));
    assert_eq!(world.run().start.first_task_backoff_ms, 0);
    world.advance(200).task(|t| t.continue_as_new(|again| again.backoff_start_interval = delay(5_000)));
    assert_eq!(world.run().start.first_task_backoff_ms, 5_000);
    world.cancel().task(|t| t.continue_as_new(|_again| {}));
    assert_eq!(world.run().start.first_task_backoff_ms, 6_000, "a wait that was cut short is gone on with");
}

#[test]
fn a_long_chain_keeps_its_beginning() {
    let mut world = World::new();
    world.start("order-1");
    let first = world.run().start.clone();
    for _run in 0..50 {
        let before = world.run().start.run_id.clone();
        world.task(|t| t.continue_as_new(|_again| {}));
        let event = started(&world);
        assert_eq!(
            (event.continued_execution_run_id, event.first_execution_run_id),
            (before, first.run_id.clone())
        );
    }
    assert_eq!(world.replica.all().count(), 51);
    assert_eq!(world.replica.all().filter(|stored| stored.run.is_open()).count(), 1);
}

#[test]
fn a_run_has_its_time_and_so_has_a_chain() {
    let mut world = World::new();
    world.start_with("order-1", "for 10 s in all", |begin| begin.execution_timeout_ms = seconds(10));
    world.advance(seconds(4)).task(|t| t.continue_as_new(|_again| {})).advance(seconds(6));
    world.start_with("order-1", "for 10 s a run", |begin| begin.run_timeout_ms = seconds(10));
    world.advance(seconds(4)).task(|t| t.continue_as_new(|_again| {})).advance(seconds(10));
    world.expect(expect![[r#"
        > start order-1 for 10 s in all
        < workflow.started, task.scheduled
        @ 00:00:04
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 2: workflow.started, task.scheduled
        @ 00:00:10
        < workflow.timed_out Timeout
        > start order-1 for 10 s a run
        < run 3: workflow.started, task.scheduled
        @ 00:00:14
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 4: workflow.started, task.scheduled
        @ 00:00:24
        < workflow.timed_out RetryPolicyNotSet
    "#]]);
}

#[test]
fn what_a_start_says_stands_in_its_event() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| {
        begin.input = Some(text("input"));
        begin.header = Some(text("header"));
        begin.user_metadata = Some(text("summary"));
        begin.links = vec![text("link")];
        begin.last_completion_result = Some(text("result"));
        begin.continued_failure = Some(text("failure"));
        begin.start_delay_ms = seconds(3);
    });
    let event = started(&world);
    assert_eq!((event.input, event.header), (Some(text("input")), Some(text("header"))));
    assert_eq!(
        (event.last_completion_result, event.continued_failure),
        (Some(text("result")), Some(text("failure")))
    );
    assert_eq!(event.first_workflow_task_backoff, delay(3_000));
    assert_eq!(
        (event.identity.as_str(), event.workflow_id.as_str(), event.attempt),
        ("client", "order-1", 1)
    );
    assert_eq!(event.first_execution_run_id, event.original_execution_run_id);
    assert_eq!(event.initiator, i32::from(Initiator::Unspecified));
    assert_eq!((event.workflow_execution_timeout, event.workflow_run_timeout), (None, None));
    assert_eq!(event.workflow_task_timeout, delay(10_000), "only this one is filled in");
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    assert_eq!(
        (stored.events[0].user_metadata.clone(), stored.events[0].links.clone()),
        (Some(text("summary")), vec![text("link")])
    );
}

#[test]
fn what_others_say_with_an_order_stands_on_its_event() {
    let mut world = World::new();
    let run_id = world.start("order-1").task(|t| t.activity("a")).run().start.run_id.clone();
    let version = Some(Bytes::from_static(b"\x0a\x05build"));
    world.claim_activity("a");
    let complete = activity_attempt::Complete {
        target: world.target("a"),
        worker_version: version.clone(),
        ..activity_attempt::Complete::default()
    };
    world.order(Request::CompleteActivity(complete));
    world.claim();
    let fail = workflow_task::Fail {
        token: Some(world.token()),
        binary_checksum: "checksum".into(),
        worker_version: version.clone(),
        ..workflow_task::Fail::default()
    };
    world.order(Request::FailTask(fail));
    let links = vec![text("link")];
    world.order(Request::Terminate(close::Terminate { links: links.clone(), ..close::Terminate::default() }));
    let stored = world.replica.stored(&run_id).expect("the run is there");
    assert_eq!(stored.events.last().expect("its end").links, links);
    let mut versions = Vec::new();
    for event in &stored.events {
        match &event.attributes {
            Some(Attributes::ActivityCompleted(completed)) => versions.push(completed.worker_version.clone()),
            Some(Attributes::TaskFailed(failed)) => {
                assert_eq!(failed.binary_checksum, "checksum");
                versions.push(failed.worker_version.clone());
            }
            _other => {}
        }
    }
    assert_eq!(versions, [version.clone(), version]);
}

#[test]
fn a_run_is_deleted_open_or_closed() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1")).hush();
    world.delete().post().delete();
    assert!(world.current().is_none(), "nothing is left of it");
    world.start("order-1").terminate("enough").delete();
    world.expect(expect![[r#"
        > delete
        < workflow.terminated "Delete workflow execution"
        < (the run is deleted)
        > letter to parcel-1: start Parcel
        < run 2: workflow.started
        > letter to parcel-1: terminate
        < workflow.terminated "by parent close policy"
        > letter to order-1: the child is there
        ! not found: workflow execution not found for workflow ID "order-1" and run ID "00e8d4a5-1000-7000-8000-646883799ca8"
        > letter to order-1: the child is terminated
        ! not found: workflow execution not found for workflow ID "order-1" and run ID "00e8d4a5-1000-7000-8000-646883799ca8"
        > delete
        ! not found: workflow not found for ID: order-1
        > start order-1
        < run 3: workflow.started, task.scheduled
        > terminate: enough
        < workflow.terminated "enough"
        > delete
        < (the run is deleted)
        = nothing to do
    "#]]);
    assert!(world.current().is_none(), "nothing is left of it");
}
