//! Rows about commands: what a worker may not ask for when it completes a workflow task.

use bytes::Bytes;
use everlog_engine::api_types::{Execution, Fields, MapEntry, RetryPolicy, WorkflowType};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{
    activity as engine_activity, child, close, external_workflow, memo_and_search_attributes,
    timer as engine_timer,
};
use everlog_engine::payload::Payload;
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;

use prost::Message;
use tonic::Code;

use crate::ids::signal_for;
use crate::row::{Action, Expected, Observation, Row, invalid, refused, row, story, taken};
use crate::worker::{activity, command, commands, complete, schedule, timer};
use crate::world::{World, observation, seconds, text};

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(27, "> 2000 pending children", commands(|| (0..2_001).map(|number| child(&format!("child-{number}"))).collect()),
            invalid("PendingChildWorkflowsLimitExceeded")
                .leaves("WORKFLOW_TASK_FAILED (PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED)")),
        row(27, "> 2000 pending signals", commands(|| (0..2_001).map(|_same| signal_other("nobody")).collect()),
            invalid("PendingSignalsLimitExceeded")
                .leaves("WORKFLOW_TASK_FAILED (PENDING_SIGNALS_LIMIT_EXCEEDED)")),
        row(27, "> 2000 pending cancellations", commands(|| (0..2_001).map(|_same| cancel_other("nobody")).collect()),
            invalid("PendingRequestCancelLimitExceeded")
                .leaves("WORKFLOW_TASK_FAILED (PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED)")),
        row(44, "a child without an id", commands(|| vec![child("")]),
            invalid("BadStartChildExecutionAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_START_CHILD_EXECUTION_ATTRIBUTES)")),
        row(44, "a signal to a workflow without an id", commands(|| vec![signal_other("")]),
            invalid("BadSignalWorkflowExecutionAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES)")),
        row(44, "a cancellation of a workflow without an id", commands(|| vec![cancel_other("")]),
            invalid("BadRequestCancelExternalWorkflowExecutionAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES)")),
        row(41, "retry policy of an activity: coefficient < 1", retry(|p| p.backoff_coefficient = 0.5),
            invalid("invalid ActivityRetryPolicy on SechduleActivityTaskCommand").leaves(NOTHING_WRITTEN)),
        row(41, "retry policy of an activity: max < initial interval",
            retry(|p| p.maximum_interval = Some(Span::from_ms(1))),
            invalid("invalid ActivityRetryPolicy on SechduleActivityTaskCommand").leaves(NOTHING_WRITTEN)),
        row(41, "retry policy of an activity: negative attempts", retry(|p| p.maximum_attempts = -1),
            invalid("invalid ActivityRetryPolicy on SechduleActivityTaskCommand").leaves(NOTHING_WRITTEN)),
        row(41, "retry policy of an activity: bad timeout type",
            retry(|p| p.non_retryable_error_types = vec!["TemporalTimeout:Sometimes".into()]),
            invalid("invalid ActivityRetryPolicy on SechduleActivityTaskCommand").leaves(NOTHING_WRITTEN)),
        row(39, "negative timeout of an activity",
            one(|a| a.start_to_close_timeout = Some(Span { seconds: -1, nanos: 0 })),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(39, "negative timer", commands(|| vec![timer("wait", -1_000)]),
            invalid("BadStartTimerAttributes").leaves("WORKFLOW_TASK_FAILED (BAD_START_TIMER_ATTRIBUTES)")),
        row(44, "activity without a timeout to its close", one(|a| a.start_to_close_timeout = None),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(44, "activity without an id", one(|a| a.activity_id.clear()),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(44, "activity without a type", one(|a| a.activity_type = None),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(44, "activity id > 1000 bytes", one(|a| a.activity_id = text(1_001)),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(45, "heartbeat timeout > start-to-close: lowered", story(long_heartbeat), taken("60000 ms")),
        row(46, "two activities with one id", commands(|| vec![activity(|_fine| {}), activity(|_fine| {})]),
            invalid("ScheduleActivityDuplicateId").leaves("WORKFLOW_TASK_FAILED (SCHEDULE_ACTIVITY_DUPLICATE_ID)")),
        row(46, "two timers with one id", commands(|| vec![timer("wait", 60_000), timer("wait", 60_000)]),
            invalid("StartTimerDuplicateId").leaves("WORKFLOW_TASK_FAILED (START_TIMER_DUPLICATE_ID)")),
        row(47, "cancel of an unknown timer", commands(|| vec![cancel_timer("nothing")]),
            invalid("BadCancelTimerAttributes").leaves("WORKFLOW_TASK_FAILED (BAD_CANCEL_TIMER_ATTRIBUTES)")),
        row(47, "cancel of an unknown activity", commands(|| vec![cancel_activity(99)]),
            invalid("BadRequestCancelActivityAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES)")),
        row(48, "complete while a new signal is buffered", story(complete_over_signal),
            invalid("UnhandledCommand").leaves("WORKFLOW_TASK_FAILED (UNHANDLED_COMMAND), SIGNALED, WORKFLOW_TASK_SCHEDULED")),
        row(49, "unknown command type", commands(|| vec![unknown()]),
            invalid("unknown command type").leaves(NOTHING_WRITTEN)),
        row(49, "a closing command that is not the last", commands(|| vec![complete(1), timer("wait", 1_000)]),
            invalid("invalid command sequence").leaves(NOTHING_WRITTEN)),
        row(49, "a command of no type", commands(|| vec![Command::default()]),
            invalid("unknown command type").leaves(NOTHING_WRITTEN)),
        row(50, "a bad command again, at attempts 2 and 3: not written again", story(bad_thrice),
            invalid("BadScheduleActivityAttributes").leaves("1 failure written, attempts [1, 2, 3]")),
        row(70, "a child in a namespace that is not there", commands(|| vec![abroad()]), no_such_namespace()),
        row(70, "a signal to a namespace that is not there", commands(|| vec![signal_abroad()]), no_such_namespace()),
        row(70, "a cancellation in a namespace that is not there", commands(|| vec![cancel_abroad()]), no_such_namespace()),
    ]
}

/// What search attributes are held against.
#[rustfmt::skip]
pub fn attribute_rows() -> Vec<Row> {
    vec![
        row(66, "an upsert of a search attribute that nobody knows", commands(|| vec![upsert("Nonsense", "[\"x\"]")]),
            invalid("BadSearchAttributes: Namespace default has no mapping defined for search attribute Nonsense")
                .leaves(BAD_ATTRIBUTES)),
        row(66, "an upsert with a value of another type", commands(|| vec![upsert("TemporalChangeVersion", "3")]),
            invalid("BadSearchAttributes: invalid value for search attribute TemporalChangeVersion of type KeywordList: 3")
                .leaves(BAD_ATTRIBUTES)),
        row(66, "an upsert of what only the server sets", commands(|| vec![upsert("RunId", "\"x\"")]),
            invalid("BadSearchAttributes: RunId attribute can't be set in SearchAttributes").leaves(BAD_ATTRIBUTES)),
        row(66, "a child with a search attribute that nobody knows", commands(|| vec![child_with("Nonsense", "1")]),
            invalid("BadSearchAttributes: Namespace default has no mapping defined for search attribute Nonsense")
                .leaves(BAD_ATTRIBUTES)),
        row(66, "a child with what only the server sets", commands(|| vec![child_with("RunId", "\"x\"")]),
            invalid("invalid SearchAttributes on StartChildWorkflowCommand: RunId attribute can't be set in SearchAttributes")
                .leaves(NOTHING_WRITTEN)),
        row(66, "a continuation with a value of another type", commands(|| vec![again("TemporalChangeVersion", "3")]),
            invalid("invalid SearchAttributes on ContinueAsNewWorkflowExecutionCommand: invalid value for search attribute")
                .leaves(NOTHING_WRITTEN)),
        row(66, "a continuation with a search attribute that nobody knows", commands(|| vec![again("Nonsense", "1")]),
            invalid("BadSearchAttributes: Namespace default has no mapping defined for search attribute Nonsense")
                .leaves(BAD_ATTRIBUTES)),
    ]
}

const BAD_ACTIVITY: &str = "WORKFLOW_TASK_FAILED (BAD_SCHEDULE_ACTIVITY_ATTRIBUTES)";
/// The whole transcript: the task is still with the worker.
const NOTHING_WRITTEN: &str = "STARTED, WORKFLOW_TASK_SCHEDULED, WORKFLOW_TASK_STARTED.";

const BAD_ATTRIBUTES: &str = "WORKFLOW_TASK_FAILED (BAD_SEARCH_ATTRIBUTES)";

fn one(edit: impl Fn(&mut engine_activity::Schedule) + Send + Sync + Copy + 'static) -> Action {
    commands(move || vec![activity(edit)])
}

fn retry(edit: impl Fn(&mut RetryPolicy) + Send + Sync + Copy + 'static) -> Action {
    one(move |order| {
        let mut policy =
            RetryPolicy { initial_interval: Some(Span::from_ms(1_000)), ..RetryPolicy::default() };
        edit(&mut policy);
        order.retry_policy = Some(policy);
    })
}

fn cancel_timer(id: &str) -> Command {
    command(CommandAttributes::CancelTimer(engine_timer::Cancel { timer_id: id.into() }))
}

fn cancel_activity(scheduled_event_id: i64) -> Command {
    command(CommandAttributes::RequestCancelActivity(engine_activity::RequestCancel { scheduled_event_id }))
}

fn a_child(id: &str) -> child::Start {
    child::Start {
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "Parcel".into() }),
        ..child::Start::default()
    }
}

fn child(id: &str) -> Command {
    command(CommandAttributes::StartChild(Box::new(a_child(id))))
}

fn abroad() -> Command {
    let order = child::Start { namespace: "elsewhere".into(), ..a_child("child") };
    command(CommandAttributes::StartChild(Box::new(order)))
}

fn signal_abroad() -> Command {
    let execution = Some(Execution { workflow_id: "other".into(), run_id: String::new() });
    let (namespace, signal_name) = ("elsewhere".into(), "go".into());
    let order = external_workflow::SignalOther {
        namespace,
        execution,
        signal_name,
        ..external_workflow::SignalOther::default()
    };
    command(CommandAttributes::SignalExternal(Box::new(order)))
}

fn cancel_abroad() -> Command {
    let (namespace, workflow_id) = ("elsewhere".into(), "other".into());
    let order = external_workflow::CancelOther {
        namespace,
        workflow_id,
        ..external_workflow::CancelOther::default()
    };
    command(CommandAttributes::RequestCancelExternal(Box::new(order)))
}

fn no_such_namespace() -> Expected {
    refused(Code::NotFound, "Namespace elsewhere is not found.")
        .with("NamespaceNotFoundFailure")
        .leaves(NOTHING_WRITTEN)
}

fn attributes(name: &str, json: &str) -> Option<Bytes> {
    let encoding = MapEntry { key: "encoding".into(), value: Bytes::from_static(b"json/plain") };
    let value = Payload { metadata: vec![encoding], data: json.to_owned().into() };
    let entry = MapEntry { key: name.into(), value: value.encode_to_vec().into() };
    Some(Fields { entries: vec![entry] }.encode_to_vec().into())
}

fn upsert(name: &str, json: &str) -> Command {
    let search_attributes = attributes(name, json);
    command(CommandAttributes::UpsertSearchAttributes(memo_and_search_attributes::UpsertSearchAttributes {
        search_attributes,
    }))
}

fn child_with(name: &str, json: &str) -> Command {
    let order = child::Start { search_attributes: attributes(name, json), ..a_child("child") };
    command(CommandAttributes::StartChild(Box::new(order)))
}

fn again(name: &str, json: &str) -> Command {
    let search_attributes = attributes(name, json);
    let order = close::ContinueAsNew { search_attributes, ..close::ContinueAsNew::default() };
    command(CommandAttributes::ContinueAsNew(Box::new(order)))
}

fn signal_other(id: &str) -> Command {
    command(CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        execution: Some(Execution { workflow_id: id.into(), run_id: String::new() }),
        signal_name: "go".into(),
        ..external_workflow::SignalOther::default()
    })))
}

fn cancel_other(id: &str) -> Command {
    let order = external_workflow::CancelOther {
        workflow_id: id.into(),
        ..external_workflow::CancelOther::default()
    };
    command(CommandAttributes::RequestCancelExternal(Box::new(order)))
}

fn unknown() -> Command {
    Command { command_type: 99, ..Command::default() }
}

async fn long_heartbeat(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let order = engine_activity::Schedule { heartbeat_timeout: Some(Span::from_ms(90_000)), ..schedule() };
    let observation =
        world.work(&run, vec![command(CommandAttributes::ScheduleActivity(Box::new(order)))]).await?;
    let mut left = "none".to_owned();
    for event in world.events(&run).await? {
        if let Some(Attributes::ActivityTaskScheduledEventAttributes(scheduled)) = event.attributes {
            let timeout = scheduled.heartbeat_timeout.unwrap_or_default();
            left = format!("{} ms", timeout.seconds * 1_000 + i64::from(timeout.nanos) / 1_000_000);
        }
    }
    Ok(Observation { left, ..observation })
}

async fn complete_over_signal(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    world.send(signal_for(&world, &run.id)).await?;
    let observation = observation(world.send(world.completion(&task.task_token, vec![complete(1)])).await);
    world.leaving(&run, observation).await
}

/// From the second attempt on a task that fails is handed out again when its time is over, which is enough for an answer.
async fn bad_thrice(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|start| start.workflow_task_timeout = Some(seconds(5))).await?;
    let (mut attempts, mut last) = (Vec::new(), Observation::default());
    for _ in 0..3 {
        let task = world.task(&run).await?;
        let bad = vec![activity(|order| order.start_to_close_timeout = None)];
        last = observation(world.send(world.completion(&task.task_token, bad)).await);
        attempts.push(task.attempt);
    }
    let failures = world.transcript(&run).await?.matches("WORKFLOW_TASK_FAILED").count();
    Ok(Observation { left: format!("{failures} failure written, attempts {attempts:?}"), ..last })
}
