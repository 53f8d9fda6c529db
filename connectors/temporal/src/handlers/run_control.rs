//! What an operator does to a whole run: pause, unpause, other options.

use everlog_engine::Reply;
use everlog_engine::machine::operator::run_options::{RunOptions, UpdateRunOptions};
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun, check_said};
use everlog_engine::request::Request;
use everlog_temporal_api::workflow::WorkflowExecutionOptions;
use everlog_temporal_api::workflowservice::{
    PauseWorkflowExecutionRequest, PauseWorkflowExecutionResponse, UnpauseWorkflowExecutionRequest,
    UnpauseWorkflowExecutionResponse, UpdateWorkflowExecutionOptionsRequest,
    UpdateWorkflowExecutionOptionsResponse,
};
use prost::Message;
use prost_types::FieldMask;
use tonic::Status;

use crate::codec::activity_options::{set_priority, snake_case, unknown_path};
use crate::codec::status::{self, invalid};
use crate::codec::validation::Checks;
use crate::codec::versioning;
use crate::server::call::Call;

pub(crate) async fn pause(
    call: &Call<'_>,
    request: PauseWorkflowExecutionRequest,
) -> Result<PauseWorkflowExecutionResponse, Status> {
    let execution = call.checks().run(request.workflow_id, request.run_id)?;
    let PauseWorkflowExecutionRequest { identity, reason, request_id, .. } = request;
    check_said(&identity, &reason, &request_id).map_err(invalid)?;
    let order = PauseRun { identity, reason, request_id };
    call.carry_out(execution, Request::PauseRun(order)).await?;
    Ok(PauseWorkflowExecutionResponse::default())
}

pub(crate) async fn unpause(
    call: &Call<'_>,
    request: UnpauseWorkflowExecutionRequest,
) -> Result<UnpauseWorkflowExecutionResponse, Status> {
    let execution = call.checks().run(request.workflow_id, request.run_id)?;
    let UnpauseWorkflowExecutionRequest { identity, reason, request_id, .. } = request;
    check_said(&identity, &reason, &request_id).map_err(invalid)?;
    let order = UnpauseRun { identity, reason, request_id };
    call.carry_out(execution, Request::UnpauseRun(order)).await?;
    Ok(UnpauseWorkflowExecutionResponse::default())
}

pub(crate) async fn update_options(
    call: &Call<'_>,
    request: UpdateWorkflowExecutionOptionsRequest,
) -> Result<UpdateWorkflowExecutionOptionsResponse, Status> {
    let checks = call.checks();
    let given = request.workflow_execution.unwrap_or_default();
    let execution = checks.run(given.workflow_id, given.run_id)?;
    let order = update(&checks, request.update_mask, request.workflow_execution_options, request.identity)?;
    match call.send(call.request_record(execution, Request::UpdateRunOptions(order))).await? {
        Reply::RunOptions(options) => Ok(UpdateWorkflowExecutionOptionsResponse {
            workflow_execution_options: Some(outer(*options)),
            ..Default::default()
        }),
        _other => Err(status::unexpected_reply()),
    }
}

/// What a mask names of the options of a run.
pub(crate) fn update(
    checks: &Checks<'_>,
    mask: Option<FieldMask>,
    options: Option<WorkflowExecutionOptions>,
    identity: String,
) -> Result<UpdateRunOptions, Status> {
    let mask = mask.ok_or_else(|| invalid("UpdateMask is required"))?;
    let options = options.ok_or_else(|| invalid("WorkflowExecutionOptions is required"))?;
    checks.length("Identity", &identity)?;
    let mut order = UpdateRunOptions { identity, ..UpdateRunOptions::default() };
    for path in &mask.paths {
        match snake_case(path).as_str() {
            "versioning_override" => {
                order.sets_override = true;
                order.overriding = versioning::overriding(checks, options.versioning_override.as_ref())?;
            }
            "priority" => order.priority = Some(options.priority.clone().unwrap_or_default()),
            other => match other.split_once('.') {
                Some(("versioning_override", _)) => {
                    return Err(invalid("versioning_override doesn't support partial updates"));
                }
                Some(("priority", part)) => {
                    set_priority(&mut order.priority_patch, part, options.priority.as_ref())?;
                }
                Some(_) | None => return Err(unknown_path(path)),
            },
        }
    }
    Ok(order)
}

/// The engine's options as the API's.
fn outer(options: RunOptions) -> WorkflowExecutionOptions {
    WorkflowExecutionOptions {
        versioning_override: options.overriding.map(|overriding| overriding.encode_to_vec().into()),
        priority: options.priority,
        ..WorkflowExecutionOptions::default()
    }
}
