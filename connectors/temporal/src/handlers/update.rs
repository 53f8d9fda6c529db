//! UpdateWorkflowExecution and PollWorkflowExecutionUpdate: an update is sent to a run, and its stage or outcome is awaited.

use std::time::{Duration, Instant};

use everlog_engine::Reply;
use everlog_engine::machine::update::{Admit, Stage, UpdateStanding};
use everlog_engine::request;
use everlog_partition::{UpdateNews, Want};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::enums::UpdateWorkflowExecutionLifecycleStage as Lifecycle;
use everlog_temporal_api::update::{Outcome, Request, UpdateRef, WaitPolicy};
use everlog_temporal_api::workflowservice::{
    PollWorkflowExecutionUpdateRequest, PollWorkflowExecutionUpdateResponse, UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
};
use prost::Message as _;
use tokio::sync::mpsc;
use tonic::Status;

use crate::codec::random_ids;
use crate::codec::status::{self, denied, invalid, not_found, not_ready};
use crate::codec::validation::not_yet;
use crate::handlers::history::read;
use crate::server::call::Call;

/// The message of an update that no worker had accepted when its run closed.
pub(crate) const ABORTED: &str = "workflow update was aborted by closing workflow";

/// A checked update, and the stage that its caller waits for.
pub(crate) struct CheckedUpdate {
    pub execution: WorkflowExecution,
    pub admit: Admit,
    pub wanted: Lifecycle,
}

pub(crate) async fn update(
    call: &Call<'_>,
    request: UpdateWorkflowExecutionRequest,
) -> Result<UpdateWorkflowExecutionResponse, Status> {
    let CheckedUpdate { execution, admit, wanted } = checked(call, request)?;
    let workflow_id = execution.workflow_id.clone();
    let input = call.request_record(execution, request::Request::Update(admit));
    let called = call.gateway.router.update(input).await.map_err(status::of_failure)?;
    let standing = match called.first {
        Reply::Update(standing) => *standing,
        Reply::Rejected(rejection) => return Err(status::of_rejection(rejection)),
        _other => return Err(status::unexpected_reply()),
    };
    let standing = until(call, standing, called.news, wanted).await?.ok_or_else(aborted)?;
    response(workflow_id, standing)
}

/// Checks the request of an update.
pub(crate) fn checked(
    call: &Call<'_>,
    request: UpdateWorkflowExecutionRequest,
) -> Result<CheckedUpdate, Status> {
    let checks = call.checks();
    let execution = checks.execution(request.workflow_execution)?;
    let first_run_id = checks.first_run_id(request.first_execution_run_id)?;
    let mut update = request.request.ok_or_else(|| invalid("Update request is not set on request."))?;
    check(call, &update)?;
    let meta = update.meta.get_or_insert_default();
    if meta.update_id.is_empty() {
        meta.update_id = random_ids::id();
    }
    let admit = Admit {
        update_id: meta.update_id.clone(),
        this_run_only: !execution.run_id.is_empty(),
        first_run_id,
        request: update.encode_to_vec().into(),
        patient: false,
    };
    let wanted = match wanted(request.wait_policy)? {
        Lifecycle::Unspecified => Lifecycle::Accepted,
        Lifecycle::Admitted => {
            let reason = "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not supported.";
            return Err(denied(reason));
        }
        wanted @ (Lifecycle::Accepted | Lifecycle::Completed) => wanted,
    };
    Ok(CheckedUpdate { execution, admit, wanted })
}

fn check(call: &Call<'_>, update: &Request) -> Result<(), Status> {
    let checks = call.checks();
    if let Some(meta) = &update.meta {
        checks.length("UpdateId", &meta.update_id)?;
    }
    let input = update.input.as_ref().ok_or_else(|| invalid("Update input is not set on request."))?;
    checks.id("UpdateName", &input.name)?;
    checks.blob(input.args.as_ref())?;
    checks.blob(input.header.as_ref())?;
    checks.length("RequestId", &update.request_id)?;
    checks.links(&update.links)?;
    not_yet("request.completion_callbacks", !update.completion_callbacks.is_empty())
}

fn wanted(policy: Option<WaitPolicy>) -> Result<Lifecycle, Status> {
    let stage = policy.unwrap_or_default().lifecycle_stage;
    Lifecycle::try_from(stage).map_err(|_unknown| invalid(format!("unknown lifecycle stage: {stage}")))
}

/// Waits until an update has reached the stage. After `history_wait_ms` the present stage is returned, and the caller polls again. If
/// the caller's deadline is earlier, the call fails with DEADLINE_EXCEEDED. None if the run closed before a worker accepted the
/// update.
pub(crate) async fn until(
    call: &Call<'_>,
    mut standing: UpdateStanding,
    mut news: mpsc::Receiver<UpdateNews>,
    wanted: Lifecycle,
) -> Result<Option<UpdateStanding>, Status> {
    let patience = Duration::from_millis(call.gateway.limits.history_wait_ms);
    let is_over = call.remaining().filter(|remaining| *remaining <= patience);
    let deadline = Instant::now() + is_over.unwrap_or(patience);
    while lifecycle(&standing.stage) < wanted {
        tokio::select! {
            biased;
            heard = news.recv() => match heard {
                Some(UpdateNews::UpdateStanding(next)) => standing = next,
                Some(UpdateNews::Closed) => return Ok(None),
                Some(UpdateNews::TaskFailed) => {
                    return Err(not_ready(
                        "Unable to perform workflow execution update due to unexpected workflow task failure.",
                    ));
                }
                None => return Err(Status::unavailable("the partition has moved: ask again")),
            },
            () = tokio::time::sleep_until(deadline.into()) => {
                if is_over.is_some() {
                    return Err(Status::deadline_exceeded("the update has not come so far in time"));
                }
                break;
            }
            () = call.gateway.stopped() => return Err(Status::unavailable("the server is stopping")),
        }
    }
    Ok(Some(standing))
}

pub(crate) fn aborted() -> Status {
    not_found(ABORTED)
}

fn lifecycle(stage: &Stage) -> Lifecycle {
    match stage {
        Stage::Admitted => Lifecycle::Admitted,
        Stage::Accepted => Lifecycle::Accepted,
        Stage::Completed(_) | Stage::Done(_) => Lifecycle::Completed,
    }
}

/// The response of UpdateWorkflowExecution.
pub(crate) fn response(
    workflow_id: String,
    standing: UpdateStanding,
) -> Result<UpdateWorkflowExecutionResponse, Status> {
    let stage = lifecycle(&standing.stage).into();
    let outcome = outcome(&standing.stage)?;
    let update_ref = Some(reference(workflow_id, standing));
    Ok(UpdateWorkflowExecutionResponse { update_ref, outcome, stage, link: None })
}

fn outcome(stage: &Stage) -> Result<Option<Outcome>, Status> {
    match stage {
        Stage::Admitted | Stage::Accepted => Ok(None),
        Stage::Completed(outcome) => {
            let outcome = Outcome::decode(outcome.clone());
            outcome.map(Some).map_err(|_error| Status::internal("the outcome of an update cannot be read"))
        }
        Stage::Done(_) => Err(status::unexpected_reply()),
    }
}

fn reference(workflow_id: String, standing: UpdateStanding) -> UpdateRef {
    let workflow_execution = Some(WorkflowExecution { workflow_id, run_id: standing.run_id });
    UpdateRef { workflow_execution, update_id: standing.update_id }
}

pub(crate) async fn poll(
    call: &Call<'_>,
    request: PollWorkflowExecutionUpdateRequest,
) -> Result<PollWorkflowExecutionUpdateResponse, Status> {
    let checks = call.checks();
    let update_ref = request.update_ref.ok_or_else(|| invalid("UpdateRef is not set on request."))?;
    let execution = checks.execution(update_ref.workflow_execution)?;
    checks.id("UpdateId", &update_ref.update_id)?;
    let wanted = wanted(request.wait_policy)?;
    let (workflow_id, update_id) = (execution.workflow_id.clone(), update_ref.update_id);
    let address = call.address(execution);
    let called = call.gateway.router.await_update(address.clone(), update_id.clone()).await;
    let called = called.map_err(status::of_failure)?;
    let Some(standing) = called.first else {
        // An unknown workflow has an error of its own.
        read(call, &address, Want::State).await?;
        return Err(not_found(format!("update {update_id:?} not found")));
    };
    let standing = until(call, standing, called.news, wanted).await?.ok_or_else(aborted)?;
    let stage = lifecycle(&standing.stage).into();
    let outcome = outcome(&standing.stage)?;
    let update_ref = Some(reference(workflow_id, standing));
    Ok(PollWorkflowExecutionUpdateResponse { outcome, stage, update_ref })
}
