//! What clients and operators have begun before an export, and what is not over: updates, a batch job, the end of a namespace.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::{
    BatchOperationState, EventType, UpdateWorkflowExecutionLifecycleStage as Stage,
};
use everlog_temporal_api::operatorservice::DeleteNamespaceRequest;
use everlog_temporal_api::protocol::Message as Protocol;
use everlog_temporal_api::temporal::api::batch::v1::BatchOperationSignal;
use everlog_temporal_api::update::{
    Acceptance, Input, Meta, Outcome, Request, Response, UpdateRef, WaitPolicy, outcome,
};
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::{
    DescribeBatchOperationRequest, DescribeBatchOperationResponse, PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse, RegisterNamespaceRequest, StartBatchOperationRequest,
    StartWorkflowExecutionRequest, UpdateWorkflowExecutionRequest,
};
use everlog_tests::patience;
use prost::{Message as _, Name};
use prost_types::Any;
use serde_json::Value;

use crate::worker::{NAMESPACE, Worker, count, end, queue};

const DELETED: &str = "deleted";
const DELETED_RUNS: usize = 150;
/// Those that have runs, while the deleted one has any.
const NAMESPACES: usize = 2;
const SIGNALED_RUNS: usize = 40;
/// The job takes seconds, and so is under way at the export.
const SIGNALS_PER_SECOND: f32 = 5.0;
const JOB: &str = "look-at-all";

fn run(id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: id.into(), run_id: String::new() }
}

fn update(id: &str) -> UpdateWorkflowExecutionRequest {
    let meta = Some(Meta { update_id: format!("update-of-{id}"), identity: "client".into() });
    let input = Some(Input { name: "add".into(), ..Input::default() });
    UpdateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(run(id)),
        wait_policy: Some(WaitPolicy { lifecycle_stage: Stage::Accepted.into() }),
        request: Some(Request { meta, input, ..Request::default() }),
        ..UpdateWorkflowExecutionRequest::default()
    }
}

/// How far an update is, and whether it has its outcome.
async fn reached(worker: &Worker, id: &str, stage: Stage) -> anyhow::Result<(i32, bool)> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let poll = PollWorkflowExecutionUpdateRequest {
            namespace: NAMESPACE.into(),
            update_ref: Some(UpdateRef {
                workflow_execution: Some(run(id)),
                update_id: format!("update-of-{id}"),
            }),
            wait_policy: Some(WaitPolicy { lifecycle_stage: stage.into() }),
            ..PollWorkflowExecutionUpdateRequest::default()
        };
        match worker.caller.send(poll).await {
            Ok(answer) => {
                let answer = PollWorkflowExecutionUpdateResponse::decode(answer)?;
                if answer.stage >= i32::from(stage) {
                    return Ok((answer.stage, answer.outcome.is_some()));
                }
            }
            // The call that sends it may be on its way.
            Err(status) if status.code() == tonic::Code::NotFound => {}
            Err(status) => return Err(status.into()),
        }
        ensure!(!deadline.is_over(), "the update of {id} is not at {stage:?}");
    }
}

fn message<M: prost::Message + Name>(id: &str, body: &M) -> Protocol {
    Protocol {
        id: format!("update-of-{id}/{}", M::NAME),
        protocol_instance_id: format!("update-of-{id}"),
        body: Some(Any { type_url: M::type_url(), value: body.encode_to_vec() }),
        ..Protocol::default()
    }
}

fn acceptance(id: &str, asked: &Protocol) -> anyhow::Result<Protocol> {
    let body = asked.body.as_ref().context("a message without a body")?;
    let accepted = Acceptance {
        accepted_request_message_id: asked.id.clone(),
        accepted_request_sequencing_event_id: 1,
        accepted_request: Some(Request::decode(body.value.as_slice())?),
    };
    Ok(message(id, &accepted))
}

fn response(id: &str) -> Protocol {
    let meta = Some(Meta { update_id: format!("update-of-{id}"), identity: "worker".into() });
    let outcome = Some(Outcome { value: Some(outcome::Value::Success(Bytes::new())) });
    message(id, &Response { meta, outcome })
}

/// An update that no worker has, and one that a worker has accepted and not answered.
async fn begin_updates(worker: &Worker) -> anyhow::Result<()> {
    for id in ["admitted", "accepted"] {
        worker.start(id, "updated", "").await?;
        let first = worker.task(id).await?;
        worker.complete(first.token, Vec::new()).await?;
        let (caller, sent) = (worker.caller.clone(), update(id));
        // It waits for a worker, longer than the node is there.
        tokio::spawn(async move { caller.send(sent).await });
    }
    reached(worker, "admitted", Stage::Admitted).await?;
    let task = worker.task("accepted").await?;
    let asked = task.messages.first().context("the update is with its task")?;
    worker.answer(task.token, vec![acceptance("accepted", asked)?], Vec::new()).await?;
    ensure!(reached(worker, "accepted", Stage::Accepted).await? == (Stage::Accepted.into(), false));
    Ok(())
}

async fn finish_updates(worker: &Worker) -> anyhow::Result<()> {
    ensure!(reached(worker, "accepted", Stage::Accepted).await? == (Stage::Accepted.into(), false));
    worker.signal("accepted", "go").await?;
    let task = worker.task("accepted").await?;
    worker.answer(task.token, vec![response("accepted")], vec![end()]).await?;
    let task = worker.task("admitted").await?;
    let asked = task.messages.first().context("the update is with its task")?;
    let answers = vec![acceptance("admitted", asked)?, response("admitted")];
    worker.answer(task.token, answers, vec![end()]).await?;
    for id in ["accepted", "admitted"] {
        let stage = reached(worker, id, Stage::Completed).await?;
        ensure!(stage == (Stage::Completed.into(), true), "{id}: {stage:?}");
        let history = worker.history(id).await?;
        let times = [
            EventType::WorkflowExecutionUpdateAccepted,
            EventType::WorkflowExecutionUpdateCompleted,
            EventType::WorkflowExecutionCompleted,
        ]
        .map(|kind| count(&history, kind));
        ensure!(times == [1; 3], "{id}: {times:?}");
    }
    Ok(())
}

async fn job(worker: &Worker) -> anyhow::Result<DescribeBatchOperationResponse> {
    let about = DescribeBatchOperationRequest { namespace: NAMESPACE.into(), job_id: JOB.into() };
    Ok(DescribeBatchOperationResponse::decode(worker.caller.send(about).await?)?)
}

async fn job_reaches(
    worker: &Worker,
    is_there: impl Fn(&DescribeBatchOperationResponse) -> bool,
) -> anyhow::Result<()> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let described = job(worker).await?;
        if is_there(&described) {
            return Ok(());
        }
        ensure!(!deadline.is_over(), "the job is not further than {described:?}");
    }
}

fn signaled() -> impl Iterator<Item = String> {
    (0..SIGNALED_RUNS).map(|number| format!("signaled-{number}"))
}

/// A job that has worked at some of its runs.
async fn begin_job(worker: &Worker) -> anyhow::Result<()> {
    for id in signaled() {
        worker.start(&id, "signaled", "").await?;
    }
    let signal = BatchOperationSignal {
        signal: "look".into(),
        identity: "operator".into(),
        ..BatchOperationSignal::default()
    };
    let begun = StartBatchOperationRequest {
        namespace: NAMESPACE.into(),
        job_id: JOB.into(),
        reason: "a test".into(),
        executions: signaled().map(|id| run(&id)).collect(),
        operation: Some(Operation::SignalOperation(signal)),
        max_operations_per_second: SIGNALS_PER_SECOND,
        ..StartBatchOperationRequest::default()
    };
    worker.caller.send(begun).await?;
    job_reaches(worker, |job| job.complete_operation_count > 0).await
}

async fn finish_job(worker: &Worker) -> anyhow::Result<()> {
    job_reaches(worker, |job| job.state() == BatchOperationState::Completed).await?;
    let done = job(worker).await?;
    let runs = i64::try_from(SIGNALED_RUNS)?;
    ensure!(
        (done.total_operation_count, done.complete_operation_count, done.failure_operation_count)
            == (runs, runs, 0),
        "{done:?}"
    );
    for id in signaled() {
        let times = count(&worker.history(&id).await?, EventType::WorkflowExecutionSignaled);
        ensure!(times == 1, "{id} was signaled {times} times");
    }
    Ok(())
}

/// A namespace whose runs are being deleted.
async fn begin_deletion(worker: &Worker) -> anyhow::Result<()> {
    let made = RegisterNamespaceRequest {
        namespace: DELETED.into(),
        workflow_execution_retention_period: Some(prost_types::Duration { seconds: 86_400, nanos: 0 }),
        ..RegisterNamespaceRequest::default()
    };
    worker.caller.send(made).await?;
    for number in 0..DELETED_RUNS {
        let start = StartWorkflowExecutionRequest {
            namespace: DELETED.into(),
            workflow_id: format!("deleted-{number}"),
            workflow_type: Some(WorkflowType { name: "deleted".into() }),
            task_queue: queue("deleted"),
            request_id: format!("start {number}"),
            ..StartWorkflowExecutionRequest::default()
        };
        worker.caller.send(start).await?;
    }
    let delete = DeleteNamespaceRequest { namespace: DELETED.into(), ..DeleteNamespaceRequest::default() };
    worker.caller.send(delete).await?;
    Ok(())
}

/// Runs of each namespace, by its UUID, as an export has them.
fn runs(export: &Path) -> anyhow::Result<Vec<u64>> {
    let manifest: Value = serde_json::from_slice(&std::fs::read(export.join("manifest.json"))?)?;
    let namespaces = manifest["namespaces"].as_object().context("a manifest has namespaces")?;
    namespaces.values().map(|counts| counts["runs"].as_u64().context("a count")).collect()
}

/// Begins all of it.
pub async fn begin(worker: &Worker) -> anyhow::Result<()> {
    begin_updates(worker).await?;
    begin_deletion(worker).await?;
    begin_job(worker).await
}

/// All of it ends; `export` exports the log that it ends in.
pub async fn finish(worker: &Worker, export: impl Fn(&str) -> anyhow::Result<PathBuf>) -> anyhow::Result<()> {
    finish_updates(worker).await?;
    finish_job(worker).await?;
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    for number in 0.. {
        looks.tick().await;
        let left = runs(&export(&format!("later-{number}"))?)?;
        if left.len() < NAMESPACES {
            break;
        }
        ensure!(!deadline.is_over(), "runs of a deleted namespace are left: {left:?}");
    }
    Ok(())
}
