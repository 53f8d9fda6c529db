//! Rows about sizes: payloads, memos, failures, histories, buffers.

use bytes::Bytes;
use everlog_engine::command::CommandAttributes;
use everlog_engine::machine::close;
use everlog_temporal_api::full::temporal::api::common::v1::Memo;
use everlog_temporal_api::full::temporal::api::failure::v1::Failure;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::workflowservice::{
    QueryWorkflowRequest, RecordActivityTaskHeartbeatRequest, RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCompletedRequest, RespondActivityTaskFailedRequest,
};
use prost::Message;
use tonic::Code;

use crate::ids::{signal, signal_for};
use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken, tight};
use crate::worker::{activity, application_failure, command, commands, marker, schedule, timer, upsert_memo};
use crate::world::{
    BYSTANDER, Run, World, execution, observation, payload, payloads, payloads_of, request, start,
};

/// The limit of one payload field.
pub const BLOB_BYTES_MAX: usize = 2 << 20;
const TOO_LARGE: usize = BLOB_BYTES_MAX + 1_000;
/// The tight server's limits, as its variables.
pub const TIGHT: &[(&str, &str)] = &[
    ("EVERLOG_LIMITS__SUGGEST_EVENTS", "20"),
    ("EVERLOG_LIMITS__HISTORY_EVENTS_MAX", "40"),
    ("EVERLOG_LIMITS__SUGGEST_BYTES", "1000000"),
    ("EVERLOG_LIMITS__HISTORY_BYTES_MAX", "3000000"),
    ("EVERLOG_LIMITS__STATE_BYTES_MAX", "1000000"),
    ("EVERLOG_LIMITS__SIGNALS_MAX", "20"),
    ("EVERLOG_LIMITS__BUFFERED_EVENTS_MAX", "5"),
    ("EVERLOG_LIMITS__UPDATES_MAX", "3"),
    ("EVERLOG_GATEWAY__HISTORY_WAIT_MS", "1000"),
    ("EVERLOG_PARTITION__BUFFERED_QUERIES_MAX", "1"),
];

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(18, "request > 4 MiB", start(|r| r.input = payloads(4 << 20)),
            refused(Code::ResourceExhausted, "grpc: received message larger than max (")),
        row(19, "start input > 2 MiB", start(|r| r.input = payloads(TOO_LARGE)), invalid("Blob data size exceeds limit.")),
        row(19, "signal input > 2 MiB", signal(|r| r.input = payloads(TOO_LARGE)),
            invalid("Blob data size exceeds limit.")),
        row(19, "query input > 2 MiB", query(TOO_LARGE), invalid("Blob data size exceeds limit.")),
        row(19, "start input of 2 MiB and a byte", start(|r| r.input = payloads_of(BLOB_BYTES_MAX + 1)),
            invalid("Blob data size exceeds limit.")),
        row(20, "memo > 2 MiB", start(|r| r.memo = Some(memo(TOO_LARGE))), invalid("Memo size exceeds limit.")),
        row(21, "activity result > 2 MiB", story(result_too_large),
            taken("ACTIVITY_TASK_FAILED (Complete result exceeds size limit.)")),
        row(22, "heartbeat details > 2 MiB", story(heartbeat_too_large),
            taken("ACTIVITY_TASK_FAILED (Heartbeat details exceed size limit.), WORKFLOW_TASK_SCHEDULED. cancel requested")),
        row(23, "failure > 2 MiB", story(failure_too_large),
            taken("ACTIVITY_TASK_FAILED (Failure exceeds size limit.)")),
        row(24, "failure without application info", story(failure_without_info),
            invalid("Failure must have ApplicationFailureInfo.")),
        row(25, "activity input > 2 MiB", commands(|| vec![activity(|a| a.input = payloads(TOO_LARGE))]),
            invalid("BadScheduleActivityAttributes: ScheduleActivityTaskCommandAttributes.Input exceeds size limit.")
                .leaves("WORKFLOW_TASK_FAILED (BAD_SCHEDULE_ACTIVITY_ATTRIBUTES), TERMINATED")),
        row(25, "result of a workflow > 2 MiB", commands(|| vec![crate::worker::complete(TOO_LARGE)]),
            invalid("BadScheduleActivityAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_SCHEDULE_ACTIVITY_ATTRIBUTES), TERMINATED")),
        row(25, "marker details > 2 MiB", commands(|| vec![marker(TOO_LARGE)]),
            invalid("BadRecordMarkerAttributes").leaves("WORKFLOW_TASK_FAILED (BAD_RECORD_MARKER_ATTRIBUTES), TERMINATED")),
        row(25, "input of continue-as-new > 2 MiB", commands(|| vec![continue_as_new(TOO_LARGE)]),
            invalid("BadContinueAsNewAttributes").leaves("WORKFLOW_TASK_FAILED (BAD_CONTINUE_AS_NEW_ATTRIBUTES), TERMINATED")),
        row(25, "memo of an upsert > 2 MiB", commands(|| vec![upsert_memo(memo(TOO_LARGE))]),
            invalid("BadModifyWorkflowPropertiesAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES), TERMINATED")),
        row(25, "memo that grows to > 2 MiB", story(memo_grows),
            invalid("BadModifyWorkflowPropertiesAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES), TERMINATED")),
        row(25, "summary of a command > 400 bytes", commands(|| vec![summarised(400)]),
            invalid("BadStartTimerAttributes: UserMetadata.Summary size exceeds limit.")
                .leaves("WORKFLOW_TASK_FAILED (BAD_START_TIMER_ATTRIBUTES)")),
        row(26, "2,001 pending activities", commands(|| (0..=2_000).map(numbered_activity).collect()),
            invalid("PendingActivitiesLimitExceeded: the number of pending activities, 2000, has reached the per-workflow limit of 2000")
                .leaves("WORKFLOW_TASK_FAILED (PENDING_ACTIVITIES_LIMIT_EXCEEDED)")),
        tight(28, "more events than a history may have", commands(|| (0..50).map(numbered_timer).collect()),
            invalid("Workflow history count exceeds limit.").leaves("TERMINATED")),
        tight(29, "a history larger than it may be", story(history_too_large),
            invalid("Workflow history size exceeds limit.").leaves("TERMINATED")),
        tight(30, "a state larger than it may be: a memo that grows", story(state_grows),
            invalid("Workflow mutable state size exceeds limit.")
                .leaves("TERMINATED (Workflow mutable state size exceeds limit.)")),
        tight(30, "a state larger than it may be: what an activity reports", story(report_grows),
            invalid("Workflow mutable state size exceeds limit.")
                .leaves("TERMINATED (Workflow mutable state size exceeds limit.)")),
        tight(31, "more signals than a run may have", story(too_many_signals),
            invalid("exceeded workflow execution limit for signal events")),
        tight(32, "more buffered events than there may be", story(too_many_buffered),
            taken("WORKFLOW_TASK_FAILED (FORCE_CLOSE_COMMAND), SIGNALED")),
        row(33, "one append > 4 MiB", story(large_append),
            taken("MARKER_RECORDED, MARKER_RECORDED, MARKER_RECORDED, SIGNALED")
                .unlike("an append may be larger than a request")),
        tight(37, "a second query while one is buffered", story(too_many_queries),
            refused(Code::ResourceExhausted, "").with("ResourceExhaustedFailure")),
    ]
}

pub fn memo(bytes: usize) -> Bytes {
    named_memo("note", bytes)
}

fn named_memo(name: &str, bytes: usize) -> Bytes {
    Memo { fields: [(name.to_owned(), payload(bytes))].into() }.encode_to_vec().into()
}

fn query(argument_bytes: usize) -> Action {
    request(move |world| QueryWorkflowRequest {
        namespace: world.namespace.clone(),
        execution: Some(execution(BYSTANDER)),
        query: Some(WorkflowQuery {
            query_type: "state".into(),
            query_args: payloads(argument_bytes),
            ..WorkflowQuery::default()
        }),
        ..QueryWorkflowRequest::default()
    })
}

fn numbered_activity(number: i32) -> everlog_engine::command::Command {
    activity(|order| order.activity_id = number.to_string())
}

fn numbered_timer(number: i32) -> everlog_engine::command::Command {
    timer(&number.to_string(), 3_600_000)
}

fn summarised(summary_data_bytes: usize) -> everlog_engine::command::Command {
    let summary = Some(payload(summary_data_bytes).encode_to_vec().into());
    let metadata = everlog_engine::payload::UserMetadata { summary, details: None };
    everlog_engine::command::Command {
        user_metadata: Some(metadata.encode_to_vec().into()),
        ..timer("t", 1_000)
    }
}

fn continue_as_new(input_bytes: usize) -> everlog_engine::command::Command {
    command(CommandAttributes::ContinueAsNew(Box::new(close::ContinueAsNew {
        input: payloads(input_bytes),
        ..close::ContinueAsNew::default()
    })))
}

async fn result_too_large(world: World) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let request = RespondActivityTaskCompletedRequest {
        task_token: task.task_token,
        result: payloads(TOO_LARGE),
        namespace: world.namespace.clone(),
        ..RespondActivityTaskCompletedRequest::default()
    };
    let observation = observation(world.send(request).await);
    world.leaving(&run, observation).await
}

async fn heartbeat_too_large(world: World) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let request = RecordActivityTaskHeartbeatRequest {
        task_token: task.task_token,
        details: payloads(TOO_LARGE),
        namespace: world.namespace.clone(),
        ..RecordActivityTaskHeartbeatRequest::default()
    };
    let answer = world.send(request).await;
    let asked = match &answer {
        Ok(answer) if RecordActivityTaskHeartbeatResponse::decode(answer.clone())?.cancel_requested => {
            "cancel requested"
        }
        Ok(_) | Err(_) => "no cancellation",
    };
    let mut observation = world.leaving(&run, observation(answer)).await?;
    observation.left = format!("{} {asked}", observation.left);
    Ok(observation)
}

async fn fail_activity(world: &World, failure: Failure) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let request = RespondActivityTaskFailedRequest {
        task_token: task.task_token,
        failure: Some(failure.encode_to_vec().into()),
        namespace: world.namespace.clone(),
        ..RespondActivityTaskFailedRequest::default()
    };
    let observation = observation(world.send(request).await);
    world.leaving(&run, observation).await
}

async fn failure_too_large(world: World) -> anyhow::Result<Observation> {
    fail_activity(&world, application_failure(TOO_LARGE)).await
}

async fn failure_without_info(world: World) -> anyhow::Result<Observation> {
    fail_activity(&world, Failure { failure_info: None, ..application_failure(10) }).await
}

async fn history_too_large(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let mut last = Observation::default();
    for _ in 0..2 {
        let mut signal = signal_for(&world, &run.id);
        signal.input = payloads(BLOB_BYTES_MAX - 1_000);
        last = observation(world.send(signal).await);
    }
    world.leaving(&run, last).await
}

/// Each upsert is small enough, all together are not.
async fn memo_grows(world: World) -> anyhow::Result<Observation> {
    upsert_twice(&world, 1_200_000).await
}

/// So is each of these, and the memo that they make; the state is not.
async fn state_grows(world: World) -> anyhow::Result<Observation> {
    upsert_twice(&world, 600_000).await
}

/// Two upserts of a memo with so many bytes each, in one completion.
async fn upsert_twice(world: &World, bytes: usize) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let upserts = (0..2).map(|number| upsert_memo(named_memo(&number.to_string(), bytes)));
    let observation = world.work(&run, upserts.collect()).await?;
    world.leaving(&run, observation).await
}

/// What an activity reports is kept in the state, and may be no larger than that.
async fn report_grows(world: World) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let report = |bytes| RecordActivityTaskHeartbeatRequest {
        task_token: task.task_token.clone(),
        details: payloads(bytes),
        namespace: world.namespace.clone(),
        ..RecordActivityTaskHeartbeatRequest::default()
    };
    world.send(report(900_000)).await?;
    let observation = observation(world.send(report(1_000_000)).await);
    world.leaving(&run, observation).await
}

async fn too_many_signals(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    for _ in 0..20 {
        world.send(signal_for(&world, &run.id)).await?;
    }
    Ok(observation(world.send(signal_for(&world, &run.id)).await))
}

/// Signals come while a worker has the task, more than may wait for it.
async fn too_many_buffered(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    world.task(&run).await?;
    let mut last = Observation::default();
    for _ in 0..6 {
        last = observation(world.send(signal_for(&world, &run.id)).await);
    }
    world.leaving(&run, last).await
}

/// A completion of nearly 4 MiB, behind which a buffered signal of nearly 2 MiB is written.
async fn large_append(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let mut signal = signal_for(&world, &run.id);
    signal.input = payloads(1_900_000);
    world.send(signal).await?;
    let markers = (0..3).map(|_| marker(1_300_000)).collect();
    let observation = observation(world.send(world.completion(&task.task_token, markers)).await);
    world.leaving(&run, observation).await
}

/// Nobody works on the run: the first query waits for its task, the second finds no place.
async fn too_many_queries(world: World) -> anyhow::Result<Observation> {
    let run: Run = world.begin(|_fine| {}).await?;
    let query = || QueryWorkflowRequest {
        namespace: world.namespace.clone(),
        execution: Some(execution(&run.id)),
        query: Some(WorkflowQuery { query_type: "state".into(), ..WorkflowQuery::default() }),
        ..QueryWorkflowRequest::default()
    };
    world.task(&run).await?;
    // Whichever comes second is the one that is refused; the other waits until it is given up.
    let (first, second) = (query(), query());
    let answer = tokio::select! {
        answer = world.send(first) => answer,
        answer = world.send(second) => answer,
    };
    Ok(observation(answer))
}
