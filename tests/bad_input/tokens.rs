//! Rows about task tokens: missing, garbage, forged, foreign, stale, used twice.

use bytes::Bytes;
use everlog_engine::api_types::RetryPolicy;
use everlog_engine::machine::activity;
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::workflowservice::{
    QueryWorkflowRequest, RecordActivityTaskHeartbeatRequest, RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedRequest, RespondActivityTaskFailedRequest, RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskFailedRequest,
};
use prost::Message;
use tonic::Code;

use crate::row::{Action, Observation, Row, invalid, refused, row, story};
use crate::worker::{application_failure, schedule, timer};
use crate::world::{World, execution, observation, payloads, request, seconds};

const GONE: &str = "invalid activityID or activity already timed out or invoking workflow is completed";
const FORGED: &str = "a token is signed: a forged one is no token";

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    use Code::NotFound;
    vec![
        row(56, "workflow task token empty", complete_task(b""), invalid("Task token not set on request.")),
        row(56, "workflow task token garbage", complete_task(b"garbage"), invalid("Error deserializing task token.")),
        row(56, "workflow task token of a failure empty", fail_task(b""), invalid("Task token not set on request.")),
        row(56, "activity token empty", complete_activity(b""), invalid("Task token not set on request.")),
        row(56, "activity token garbage", complete_activity(b"\xff\xff\xff"), invalid("Error deserializing task token.")),
        row(56, "activity token of a heartbeat garbage", heartbeat(b"\xff\xff"), invalid("Error deserializing task token.")),
        row(56, "activity token of a failure garbage", fail_activity(b"\xff\xff"), invalid("Error deserializing task token.")),
        row(56, "activity token of a cancellation garbage", cancel_activity(b"\xff\xff"),
            invalid("Error deserializing task token.")),
        row(56, "query token empty", answer_query(b""), invalid("Task token not set on request.")),
        row(56, "query token garbage", answer_query(b"\xff\xff"), invalid("Error deserializing task token.")),
        row(57, "token of another namespace", story(foreign),
            invalid("Operation requested with a token from a different namespace.").leaves(IN_HAND)),
        row(57, "token of another namespace, of a task that fails", story(foreign_failure),
            invalid("Operation requested with a token from a different namespace.").leaves(IN_HAND)),
        row(57, "activity token of another namespace", story(foreign_activity),
            invalid("Operation requested with a token from a different namespace.").leaves("ACTIVITY_TASK_SCHEDULED.")),
        row(57, "activity token of another namespace in a heartbeat", story(foreign_heartbeat),
            invalid("Operation requested with a token from a different namespace.").leaves("ACTIVITY_TASK_SCHEDULED.")),
        row(57, "query token of another namespace", story(foreign_answer),
            invalid("Operation requested with a token from a different namespace.")),
        row(58, "forged token: Temporal's own form, ids guessed", story(guessed),
            invalid("Error deserializing task token.").leaves(IN_HAND).unlike(FORGED)),
        row(58, "forged token: a byte of a true one changed, at any place", story(changed),
            invalid("Error deserializing task token.").leaves(IN_HAND).unlike(FORGED)),
        row(58, "forged token: a true one cut short", story(cut),
            invalid("Error deserializing task token.").leaves(IN_HAND).unlike(FORGED)),
        row(58, "a workflow task's token used for an activity", story(wrong_kind),
            refused(Code::InvalidArgument, "").leaves(IN_HAND).unlike(FORGED)),
        row(59, "activity timed out", story(timed_out_activity), refused(NotFound, GONE).leaves("ACTIVITY_TASK_TIMED_OUT")),
        row(60, "workflow task timed out", story(timed_out_task),
            refused(NotFound, "Workflow task not found.").leaves("WORKFLOW_TASK_TIMED_OUT")),
        row(61, "the same completion of an activity twice", story(activity_twice), refused(NotFound, GONE)),
        row(61, "the same completion of a workflow task twice", story(task_twice),
            refused(NotFound, "Workflow task not found.")),
        row(62, "activity canceled without a request", story(cancel_unasked), invalid("").leaves("ACTIVITY_TASK_SCHEDULED.")),
    ]
}

/// The whole transcript: the worker still has its task.
const IN_HAND: &str = "STARTED, WORKFLOW_TASK_SCHEDULED, WORKFLOW_TASK_STARTED.";

fn complete_task(token: &'static [u8]) -> Action {
    request(move |world| world.completion(&Bytes::from_static(token), Vec::new()))
}

fn fail_task(token: &'static [u8]) -> Action {
    request(move |world| RespondWorkflowTaskFailedRequest {
        task_token: Bytes::from_static(token),
        namespace: world.namespace.clone(),
        ..RespondWorkflowTaskFailedRequest::default()
    })
}

fn completed(world: &World, token: Bytes) -> RespondActivityTaskCompletedRequest {
    RespondActivityTaskCompletedRequest {
        task_token: token,
        result: payloads(10),
        namespace: world.namespace.clone(),
        ..RespondActivityTaskCompletedRequest::default()
    }
}

fn complete_activity(token: &'static [u8]) -> Action {
    request(move |world| completed(world, Bytes::from_static(token)))
}

fn heartbeat(token: &'static [u8]) -> Action {
    request(move |world| RecordActivityTaskHeartbeatRequest {
        task_token: Bytes::from_static(token),
        namespace: world.namespace.clone(),
        ..RecordActivityTaskHeartbeatRequest::default()
    })
}

fn fail_activity(token: &'static [u8]) -> Action {
    request(move |world| RespondActivityTaskFailedRequest {
        task_token: Bytes::from_static(token),
        failure: Some(application_failure(1).encode_to_vec().into()),
        namespace: world.namespace.clone(),
        ..RespondActivityTaskFailedRequest::default()
    })
}

fn canceled(world: &World, token: Bytes) -> RespondActivityTaskCanceledRequest {
    RespondActivityTaskCanceledRequest {
        task_token: token,
        namespace: world.namespace.clone(),
        ..RespondActivityTaskCanceledRequest::default()
    }
}

fn cancel_activity(token: &'static [u8]) -> Action {
    request(move |world| canceled(world, Bytes::from_static(token)))
}

fn answer_query(token: &'static [u8]) -> Action {
    request(move |world| RespondQueryTaskCompletedRequest {
        task_token: Bytes::from_static(token),
        completed_type: 1,
        namespace: world.namespace.clone(),
        ..RespondQueryTaskCompletedRequest::default()
    })
}

async fn foreign(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let mut completion = world.completion(&task.task_token, Vec::new());
    completion.namespace.clone_from(&world.other_namespace);
    let observation = observation(world.send(completion).await);
    world.leaving(&run, observation).await
}

async fn foreign_failure(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let failure = RespondWorkflowTaskFailedRequest {
        task_token: task.task_token,
        namespace: world.other_namespace.clone(),
        ..RespondWorkflowTaskFailedRequest::default()
    };
    let observation = observation(world.send(failure).await);
    world.leaving(&run, observation).await
}

async fn foreign_activity(world: World) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let mut completion = completed(&world, task.task_token);
    completion.namespace.clone_from(&world.other_namespace);
    let observation = observation(world.send(completion).await);
    world.leaving(&run, observation).await
}

async fn foreign_heartbeat(world: World) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let beat = RecordActivityTaskHeartbeatRequest {
        task_token: task.task_token,
        namespace: world.other_namespace.clone(),
        ..RecordActivityTaskHeartbeatRequest::default()
    };
    let observation = observation(world.send(beat).await);
    world.leaving(&run, observation).await
}

/// The query is answered all the same, by whoever has its token and the namespace.
async fn foreign_answer(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    world.work(&run, Vec::new()).await?;
    world.until(&run, EventType::WorkflowTaskCompleted).await?;
    let query = QueryWorkflowRequest {
        namespace: world.namespace.clone(),
        execution: Some(execution(&run.id)),
        query: Some(WorkflowQuery { query_type: "state".into(), ..WorkflowQuery::default() }),
        ..QueryWorkflowRequest::default()
    };
    let worker = async {
        let task_token = world.task(&run).await?.task_token;
        let answer = |namespace: &str| RespondQueryTaskCompletedRequest {
            task_token: task_token.clone(),
            completed_type: 1,
            query_result: payloads(10),
            namespace: namespace.into(),
            ..RespondQueryTaskCompletedRequest::default()
        };
        let foreign = observation(world.send(answer(&world.other_namespace)).await);
        world.send(answer(&world.namespace)).await?;
        anyhow::Ok(foreign)
    };
    let (answer, foreign) = tokio::join!(world.send(query), worker);
    answer?;
    foreign
}

/// A task token as Temporal's server makes them: plain, with nothing that proves where it comes from.
#[derive(Clone, PartialEq, Message)]
struct PlainToken {
    #[prost(string, tag = "1")]
    namespace_id: String,
    #[prost(string, tag = "2")]
    workflow_id: String,
    #[prost(string, tag = "3")]
    run_id: String,
    #[prost(int64, tag = "4")]
    scheduled_event_id: i64,
    #[prost(int32, tag = "5")]
    attempt: i32,
    #[prost(int64, tag = "10")]
    started_event_id: i64,
}

async fn guessed(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    world.task(&run).await?;
    let token = PlainToken {
        namespace_id: "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11".into(),
        workflow_id: run.id.clone(),
        run_id: run.run_id.clone(),
        scheduled_event_id: 2,
        attempt: 1,
        started_event_id: 3,
    };
    let observation =
        observation(world.send(world.completion(&token.encode_to_vec().into(), Vec::new())).await);
    world.leaving(&run, observation).await
}

async fn changed(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let mut worst = Observation::default();
    for at in 0..task.task_token.len() {
        let mut token = task.task_token.to_vec();
        token[at] ^= 0x40;
        let observation = observation(world.send(world.completion(&token.into(), Vec::new())).await);
        if worst.code.is_none() || observation.code != Some(Code::InvalidArgument) {
            worst = observation;
        }
    }
    world.leaving(&run, worst).await
}

async fn cut(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let token = task.task_token.slice(..task.task_token.len() - 1);
    let observation = observation(world.send(world.completion(&token, Vec::new())).await);
    world.leaving(&run, observation).await
}

async fn wrong_kind(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let observation = observation(world.send(completed(&world, task.task_token)).await);
    world.leaving(&run, observation).await
}

async fn timed_out_activity(world: World) -> anyhow::Result<Observation> {
    let order = activity::Schedule {
        start_to_close_timeout: Some(Span::from_ms(500)),
        retry_policy: Some(RetryPolicy { maximum_attempts: 1, ..RetryPolicy::default() }),
        ..schedule()
    };
    let (run, task) = world.run_with_activity(order).await?;
    world.until(&run, EventType::ActivityTaskTimedOut).await?;
    let observation = observation(world.send(completed(&world, task.task_token)).await);
    world.leaving(&run, observation).await
}

async fn timed_out_task(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|start| start.workflow_task_timeout = Some(seconds(1))).await?;
    let task = world.task(&run).await?;
    world.until(&run, EventType::WorkflowTaskTimedOut).await?;
    let observation = observation(world.send(world.completion(&task.task_token, Vec::new())).await);
    world.leaving(&run, observation).await
}

async fn activity_twice(world: World) -> anyhow::Result<Observation> {
    let (_, task) = world.run_with_activity(schedule()).await?;
    world.send(completed(&world, task.task_token.clone())).await?;
    Ok(observation(world.send(completed(&world, task.task_token)).await))
}

async fn task_twice(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let completion = || world.completion(&task.task_token, vec![timer("wait", 60_000)]);
    world.send(completion()).await?;
    Ok(observation(world.send(completion()).await))
}

async fn cancel_unasked(world: World) -> anyhow::Result<Observation> {
    let (run, task) = world.run_with_activity(schedule()).await?;
    let observation = observation(world.send(canceled(&world, task.task_token)).await);
    world.leaving(&run, observation).await
}
