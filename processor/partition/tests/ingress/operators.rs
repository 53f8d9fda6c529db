//! Commands of operators, for activities and for runs: each takes effect once, whatever falls in between.

use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, TaskQueue};
use everlog_engine::command::CommandAttributes;
use everlog_engine::machine::activity::Schedule;
use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun};
use everlog_engine::request::Request;
use everlog_engine::time::Duration;
use everlog_partition::{Delivery, TaskKind};
use everlog_wire::Body;

use crate::harness::{Harness, begin, forwarded};

fn by(selection: ActivitySelection) -> Option<ActivitySelector> {
    Some(ActivitySelector { selection: Some(selection) })
}

fn charge() -> Option<ActivitySelector> {
    by(ActivitySelection::Id("charge".into()))
}

/// A run with an activity that waits for a worker.
fn waiting() -> Harness {
    let mut harness = Harness::build();
    harness.bring(vec![Body::PublicCommand(forwarded(0, begin()))]);
    let task = harness.workflow_task();
    let activity = Schedule {
        activity_id: "charge".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        start_to_close_timeout: Some(Duration::from_ms(1_000_000)),
        ..Schedule::default()
    };
    harness.complete(&task, vec![CommandAttributes::ScheduleActivity(Box::new(activity))]);
    harness
}

/// Each command comes twice and once more behind a crash.
fn bring_each(harness: &mut Harness, requests: Vec<Request>) {
    let commands = (1..).zip(requests).map(|(offset, request)| forwarded(offset, request));
    let commands: Vec<_> = commands.map(Body::PublicCommand).collect();
    for at in 0..commands.len() {
        harness.bring(vec![commands[at].clone()]);
        harness.crash();
        harness.bring(commands[..=at].to_vec());
        harness.crash();
    }
    harness.settle();
}

/// What became of the commands behind the start.
fn codes(harness: &mut Harness) -> Vec<String> {
    let outcomes = harness.outcomes().into_iter().skip(1);
    outcomes.map(|outcome| outcome.code.unwrap_or(outcome.status)).collect()
}

#[test]
fn an_activity_that_was_paused_changed_and_unpaused_comes_as_it_was_changed() {
    let mut harness = waiting();
    let (identity, reason) = ("ops".to_owned(), "the till is broken".to_owned());
    let pause = PauseActivity { selector: charge(), identity, reason, request_id: "pause".into() };
    let nobody = PauseActivity { selector: by(ActivitySelection::Type("Refund".into())), ..pause.clone() };
    let patch = ActivityOptionsPatch {
        heartbeat_timeout: Some(Duration::from_ms(30_000)),
        ..ActivityOptionsPatch::default()
    };
    let endless = ActivityOptionsPatch {
        start_to_close_timeout: Some(Duration::default()),
        ..ActivityOptionsPatch::default()
    };
    let change = |patch| {
        let selector = by(ActivitySelection::Type("Charge".into()));
        Request::UpdateActivityOptions(UpdateActivityOptions { selector, patch: Some(Box::new(patch)) })
    };
    let reset = ResetActivity { selector: charge(), keeps_paused: true, ..ResetActivity::default() };
    let unpause =
        UnpauseActivity { selector: by(ActivitySelection::All(true)), ..UnpauseActivity::default() };
    let requests = vec![
        Request::PauseActivity(pause),
        Request::PauseActivity(nobody),
        change(patch),
        change(endless),
        Request::ResetActivity(reset),
        Request::UnpauseActivity(unpause),
    ];
    bring_each(&mut harness, requests);
    assert_eq!(codes(&mut harness), ["done", "not_found", "done", "invalid_argument", "done", "done"]);
    let Delivery::Activity(mut task) = harness.poll(TaskKind::Activity) else { panic!("the activity comes") };
    task.receipt.take().expect("it can be given back").accept();
    let activity = &task.activity;
    assert_eq!((activity.attempt, activity.heartbeat_timeout_ms, &activity.pause), (1, 30_000, &None));
    assert_eq!(activity.start_to_close_ms, 1_000_000);
    assert_eq!(harness.events().len(), 5, "none of these commands writes an event");
}

#[test]
fn a_run_is_paused_and_unpaused_once_and_tells_who_has_asked() {
    let mut harness = waiting();
    let pause = |request_id: &str| {
        let (identity, reason) = ("ops".into(), "the till is broken".into());
        Request::PauseRun(PauseRun { identity, reason, request_id: request_id.into() })
    };
    let unpause = |request_id: &str| {
        let (identity, reason) = ("ops".into(), "repaired".into());
        Request::UnpauseRun(UnpauseRun { identity, reason, request_id: request_id.into() })
    };
    // Temporal's Priority with the key 2.
    let priority = Some(Bytes::from_static(b"\x08\x02"));
    let change = UpdateRunOptions { priority, identity: "ops".into(), ..UpdateRunOptions::default() };
    let requests = vec![
        pause("first"),
        pause("first"),
        pause("second"),
        Request::UpdateRunOptions(change.clone()),
        Request::UpdateRunOptions(change),
        unpause("third"),
        unpause("third"),
    ];
    bring_each(&mut harness, requests);
    assert_eq!(codes(&mut harness), ["done", "done", "busy", "done", "done", "done", "busy"]);
    let events = harness.events();
    let told: Vec<_> = events.iter().skip(5).map(|event| event.r#type.as_ref()).collect();
    let expected = [
        "WorkflowExecutionPaused",
        "WorkflowExecutionOptionsUpdated",
        "WorkflowExecutionUnpaused",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(told, expected);
    let paused = events[5].workflow_execution_paused.as_ref().expect("it is paused");
    let said = [&paused.identity, &paused.reason, &paused.request_id].map(Option::as_deref);
    assert_eq!(said, [Some("ops"), Some("the till is broken"), Some("first")]);
    let updated = events[6].workflow_execution_options_updated.as_ref().expect("its priority is another");
    let priority = updated.priority.as_ref().and_then(|priority| priority.priority_key);
    assert_eq!((updated.identity.as_deref(), priority), (Some("ops"), Some(2)));
    let unpaused = events[7].workflow_execution_unpaused.as_ref().expect("it goes on");
    assert_eq!(unpaused.reason.as_deref(), Some("repaired"));
    harness.workflow_task();
}
