//! Work under judgement: a worker that may only work, the server's own jobs, and commands to other namespaces.

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_engine::api_types::{Execution, WorkflowType as EngineType};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{child, close, external_workflow};
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::{BatchOperationState, WorkflowExecutionStatus};
use everlog_temporal_api::full::temporal::api::worker::v1::WorkerHeartbeat;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::temporal::api::batch::v1::BatchOperationTermination;
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::*;
use everlog_tests::patience;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::callers::{
    BOTH_WRITER, Caller, OTHER, OTHER_WRITER, OWN, READER, UNKNOWN, WORKER, WRITER, is_denied, serve,
};

/// A workflow that nobody ends waits for its worker.
pub fn start(namespace: &str, id: &str) -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: namespace.into(),
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "order".into() }),
        task_queue: queue(),
        request_id: format!("start {id}"),
        ..Default::default()
    }
}

fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: "orders".into(), kind: 1, ..Default::default() })
}

/// A workflow task of a namespace, got by a caller.
pub async fn take(
    caller: Caller,
    channel: &Channel,
    namespace: &str,
) -> Result<PollWorkflowTaskQueueResponse, Status> {
    let poll = PollWorkflowTaskQueueRequest {
        namespace: namespace.into(),
        task_queue: queue(),
        identity: caller.name.into(),
        ..Default::default()
    };
    read(caller.send(channel, poll).await?)
}

fn read<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

async fn complete(
    caller: Caller,
    channel: &Channel,
    task: &PollWorkflowTaskQueueResponse,
    orders: Vec<CommandAttributes>,
) -> Result<Bytes, Status> {
    let of = |order: CommandAttributes| Command {
        command_type: order.command_type(),
        order: Some(order),
        ..Command::default()
    };
    let commands = orders.into_iter().map(of).collect();
    let request = RespondWorkflowTaskCompletedRequest {
        task_token: task.task_token.clone(),
        namespace: OWN.into(),
        commands,
        ..Default::default()
    };
    caller.send(channel, request).await
}

async fn status(caller: Caller, channel: &Channel, namespace: &str, id: &str) -> Result<i32, Status> {
    let request = DescribeWorkflowExecutionRequest {
        namespace: namespace.into(),
        execution: Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() }),
    };
    let described: DescribeWorkflowExecutionResponse = read(caller.send(channel, request).await?)?;
    Ok(described.workflow_execution_info.unwrap_or_default().status)
}

#[tokio::test]
async fn a_worker_does_workflows_and_can_start_none() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    ensure!(is_denied(&WORKER.send(&channel, start(OWN, "w")).await), "a worker starts nothing");
    ensure!(is_denied(&READER.send(&channel, start(OWN, "w")).await), "a reader starts nothing");
    ensure!(
        is_denied(&OTHER_WRITER.send(&channel, start(OWN, "w")).await),
        "a writer elsewhere starts nothing"
    );
    WRITER.send(&channel, start(OWN, "w")).await?;
    let task = take(WORKER, &channel, OWN).await?;
    complete(WORKER, &channel, &task, vec![CommandAttributes::CompleteWorkflow(close::Complete::default())])
        .await?;
    let completed = i32::from(WorkflowExecutionStatus::Completed);
    ensure!(status(READER, &channel, OWN, "w").await? == completed);
    let described = status(WORKER, &channel, OWN, "w").await;
    ensure!(
        described.is_err_and(|status| status.code() == Code::PermissionDenied),
        "a worker reads no state"
    );
    Ok(())
}

/// The list of workers of a namespace, as this caller gets it: their keys.
async fn workers(caller: Caller, channel: &Channel, namespace: &str) -> Result<Vec<String>, Status> {
    let request = ListWorkersRequest { namespace: namespace.into(), ..Default::default() };
    let listed: ListWorkersResponse = read(caller.send(channel, request).await?)?;
    Ok(listed.workers.into_iter().map(|worker| worker.worker_instance_key).collect())
}

#[tokio::test]
async fn workers_are_known_in_their_own_namespace_only() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    let tells = |namespace: &str, key: &str| RecordWorkerHeartbeatRequest {
        namespace: namespace.into(),
        worker_heartbeat: vec![
            WorkerHeartbeat { worker_instance_key: key.into(), ..Default::default() }.encode_to_vec().into(),
        ],
        ..Default::default()
    };
    WORKER.send(&channel, tells(OWN, "ours")).await?;
    OTHER_WRITER.send(&channel, tells(OTHER, "theirs")).await?;
    ensure!(is_denied(&WORKER.send(&channel, tells(OTHER, "planted")).await));
    ensure!(workers(READER, &channel, OWN).await? == ["ours"]);
    ensure!(workers(OTHER_WRITER, &channel, OTHER).await? == ["theirs"]);
    let denied = workers(READER, &channel, OTHER).await.err().context("it is not a reader there")?;
    ensure!(denied.code() == Code::PermissionDenied);
    let describes = |namespace: &str| DescribeWorkerRequest {
        namespace: namespace.into(),
        worker_instance_key: "theirs".into(),
    };
    let told = READER.send(&channel, describes(OWN)).await.err().context("it is not there")?;
    ensure!(told.code() == Code::NotFound, "{told:?}");
    ensure!(is_denied(&READER.send(&channel, describes(OTHER)).await));
    let count = CountWorkersRequest { namespace: OWN.into(), ..Default::default() };
    let counted: CountWorkersResponse = read(READER.send(&channel, count).await?)?;
    ensure!(counted.count == 1, "{counted:?}");
    Ok(())
}

#[tokio::test]
async fn a_batch_job_acts_in_its_namespace() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    for id in ["a", "b"] {
        WRITER.send(&channel, start(OWN, id)).await?;
        OTHER_WRITER.send(&channel, start(OTHER, id)).await?;
    }
    let job = StartBatchOperationRequest {
        namespace: OWN.into(),
        job_id: "job".into(),
        visibility_query: "WorkflowType = 'order'".into(),
        reason: "a test".into(),
        operation: Some(Operation::TerminationOperation(BatchOperationTermination::default())),
        ..Default::default()
    };
    WRITER.send(&channel, job).await?;
    let completed = i32::from(BatchOperationState::Completed);
    patience::until("the job has ended", async || {
        let request = DescribeBatchOperationRequest { namespace: OWN.into(), job_id: "job".into() };
        let told = READER.send(&channel, request).await.and_then(read::<DescribeBatchOperationResponse>);
        told.is_ok_and(|told| told.state == completed)
    })
    .await?;
    let (terminated, running) =
        (i32::from(WorkflowExecutionStatus::Terminated), i32::from(WorkflowExecutionStatus::Running));
    for id in ["a", "b"] {
        ensure!(status(READER, &channel, OWN, id).await? == terminated);
        ensure!(status(OTHER_WRITER, &channel, OTHER, id).await? == running);
    }
    Ok(())
}

fn child_elsewhere() -> CommandAttributes {
    CommandAttributes::StartChild(Box::new(child::Start {
        namespace: OTHER.into(),
        workflow_id: "child".into(),
        workflow_type: Some(EngineType { name: "parcel".into() }),
        ..child::Start::default()
    }))
}

fn signal_elsewhere() -> CommandAttributes {
    CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        namespace: OTHER.into(),
        execution: Some(Execution { workflow_id: "stranger".into(), run_id: String::new() }),
        signal_name: "go".into(),
        ..external_workflow::SignalOther::default()
    }))
}

fn cancel_elsewhere() -> CommandAttributes {
    CommandAttributes::RequestCancelExternal(Box::new(external_workflow::CancelOther {
        namespace: OTHER.into(),
        workflow_id: "stranger".into(),
        ..external_workflow::CancelOther::default()
    }))
}

const ALLOWED: (&str, &str) = ("EVERLOG_GATEWAY__CROSS_NAMESPACE_COMMANDS", "true");

#[tokio::test]
async fn commands_go_to_another_namespace_where_their_worker_may() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[ALLOWED]).await?;
    OTHER_WRITER.send(&channel, start(OTHER, "stranger")).await?;
    WRITER.send(&channel, start(OWN, "parent")).await?;
    let task = take(WORKER, &channel, OWN).await?;
    for order in [child_elsewhere, signal_elsewhere, cancel_elsewhere] {
        for caller in [WORKER, WRITER] {
            let answer = complete(caller, &channel, &task, vec![order()]).await;
            ensure!(is_denied(&answer), "{}: {answer:?}", caller.name);
        }
    }
    let absent = status(OTHER_WRITER, &channel, OTHER, "child").await;
    ensure!(absent.is_err_and(|status| status.code() == Code::NotFound), "nothing was started");
    let orders = vec![child_elsewhere(), signal_elsewhere(), cancel_elsewhere()];
    complete(BOTH_WRITER, &channel, &task, orders).await?;
    patience::until("the child runs in its namespace", async || {
        status(OTHER_WRITER, &channel, OTHER, "child").await.is_ok()
    })
    .await?;
    patience::until("the stranger has heard both", async || {
        let types = history(&channel, OTHER, "stranger").await.unwrap_or_default();
        let has = |wanted: &str| types.iter().any(|kind| kind == wanted);
        has("WorkflowExecutionSignaled") && has("WorkflowExecutionCancelRequested")
    })
    .await?;
    patience::until("the parent has heard of all three", async || {
        let types = history(&channel, OWN, "parent").await.unwrap_or_default();
        let has = |wanted: &str| types.iter().any(|kind| kind == wanted);
        has("ChildWorkflowExecutionStarted")
            && has("ExternalWorkflowExecutionSignaled")
            && has("ExternalWorkflowExecutionCancelRequested")
    })
    .await?;
    Ok(())
}

/// The types of a history's events.
async fn history(channel: &Channel, namespace: &str, id: &str) -> anyhow::Result<Vec<String>> {
    use everlog_temporal_api::enums::EventType;
    use everlog_temporal_api::full::temporal::api::history::v1::History;
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: namespace.into(),
        execution: Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() }),
        ..Default::default()
    };
    let page: GetWorkflowExecutionHistoryResponse = read(BOTH_WRITER.send(channel, request).await?)?;
    let events = History::decode(page.history.context("there is a history")?)?.events;
    let name =
        |kind: i32| EventType::try_from(kind).map_or_else(|_| kind.to_string(), |kind| format!("{kind:?}"));
    Ok(events.iter().map(|event| name(event.event_type)).collect())
}

#[tokio::test]
async fn commands_stay_in_their_namespace_unless_the_settings_say_otherwise() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    WRITER.send(&channel, start(OWN, "parent")).await?;
    let task = take(WORKER, &channel, OWN).await?;
    let answer = complete(BOTH_WRITER, &channel, &task, vec![child_elsewhere()]).await;
    let refused = answer.err().context("it is refused")?;
    ensure!(refused.message().contains("cross-namespace commands are not allowed"), "{refused:?}");
    // The same of one that does not exist: the refusal does not tell.
    WRITER.send(&channel, start(OWN, "curious")).await?;
    let task = take(WORKER, &channel, OWN).await?;
    let order = CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        namespace: UNKNOWN.into(),
        execution: Some(Execution { workflow_id: "stranger".into(), run_id: String::new() }),
        signal_name: "go".into(),
        ..external_workflow::SignalOther::default()
    }));
    let refused = complete(WORKER, &channel, &task, vec![order]).await.err().context("it is refused")?;
    ensure!(refused.message().contains("cross-namespace commands are not allowed"), "{refused:?}");
    Ok(())
}
