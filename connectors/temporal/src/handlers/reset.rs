//! ResetWorkflowExecution: a run is reset to one of its workflow tasks.

use everlog_engine::Reply;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::reset::Reset;
use everlog_engine::request::Request;
use everlog_temporal_api::enums::{ResetReapplyExcludeType, ResetReapplyType};
use everlog_temporal_api::temporal::api::batch::v1::BatchOperationReset;
use everlog_temporal_api::workflow::PostResetOperation;
use everlog_temporal_api::workflow::post_reset_operation::Variant;
use everlog_temporal_api::workflowservice::{ResetWorkflowExecutionRequest, ResetWorkflowExecutionResponse};
use tonic::Status;

use crate::codec::status::invalid;
use crate::codec::validation::Checks;
use crate::handlers::{run_control, signal};
use crate::server::call::Call;

pub(crate) async fn reset(
    call: &Call<'_>,
    request: ResetWorkflowExecutionRequest,
) -> Result<ResetWorkflowExecutionResponse, Status> {
    let checks = call.checks();
    let reapply_type = request.reset_reapply_type;
    let execution = checks.execution(request.workflow_execution)?;
    if request.request_id.is_empty() {
        return Err(invalid("RequestId is not set on request."));
    }
    checks.length("RequestId", &request.request_id)?;
    signal::reason(&checks, &request.reason)?;
    let options = post_reset(&checks, request.post_reset_operations, &request.identity)?;
    let [without_signals, without_updates, without_options] =
        left_behind(reapply_type, &request.reset_reapply_exclude_types)?;
    let order = Reset {
        finish_event_id: request.workflow_task_finish_event_id,
        reason: request.reason,
        request_id: request.request_id,
        without_signals,
        without_updates,
        without_options,
        options,
    };
    match call.send(call.request_record(execution, Request::Reset(order))).await? {
        Reply::Started(made) => Ok(ResetWorkflowExecutionResponse { run_id: made.run_id }),
        _another_kind => Err(Status::internal("internal error")),
    }
}

/// Checks the options of a reset before its target is known.
pub(crate) fn check_options(checks: &Checks<'_>, reset: &BatchOperationReset) -> Result<(), Status> {
    post_reset(checks, reset.post_reset_operations.clone(), &reset.identity)?;
    match &reset.options {
        Some(options) => left_behind(options.reset_reapply_type, &options.reset_reapply_exclude_types),
        None => left_behind(reset.reset_reapply_type, &[]),
    }
    .map(drop)
}

/// The kinds of events after the task that are not reapplied: signals, updates, and changes of options if every kind is excluded.
fn left_behind(reapply_type: i32, exclude: &[i32]) -> Result<[bool; 3], Status> {
    let excludes = |kind: ResetReapplyExcludeType| exclude.contains(&i32::from(kind));
    let (signals, updates) = match ResetReapplyType::try_from(reapply_type) {
        Ok(ResetReapplyType::Unspecified | ResetReapplyType::AllEligible) => (false, false),
        Ok(ResetReapplyType::Signal) => (false, true),
        Ok(ResetReapplyType::None) => (true, true),
        Err(_unknown) => return Err(invalid("unknown reset type")),
    };
    let signals = signals || excludes(ResetReapplyExcludeType::Signal);
    let updates = updates || excludes(ResetReapplyExcludeType::Update);
    let others = excludes(ResetReapplyExcludeType::Nexus) && excludes(ResetReapplyExcludeType::CancelRequest);
    Ok([signals, updates, signals && updates && others])
}

/// What is done to the new run behind the reset: its options may be changed. Of several such changes each part of the last one counts.
fn post_reset(
    checks: &Checks<'_>,
    operations: Vec<PostResetOperation>,
    identity: &str,
) -> Result<Option<UpdateRunOptions>, Status> {
    let mut options: Option<UpdateRunOptions> = None;
    for operation in operations {
        match operation.variant {
            Some(Variant::UpdateWorkflowOptions(given)) => {
                let next = run_control::update(
                    checks,
                    given.update_mask,
                    given.workflow_execution_options,
                    identity.to_owned(),
                )?;
                options = Some(match options {
                    Some(before) => before.followed_by(next),
                    None => next,
                });
            }
            Some(Variant::SignalWorkflow(_)) => {
                let kind = "*workflow.PostResetOperation_SignalWorkflow_";
                return Err(invalid(format!("unsupported post reset operation: {kind}")));
            }
            None => return Err(invalid("unsupported post reset operation: <nil>")),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_in_either_way_is_left_behind() {
        let of =
            |reapply: i32, exclude: &[i32]| left_behind(reapply, exclude).map_err(|status| status.code());
        for (reapply, exclude, expected) in [
            (0, &[][..], [false, false, false]),
            (3, &[], [false, false, false]),
            (1, &[], [false, true, false]),
            (2, &[], [true, true, false]),
            (0, &[1], [true, false, false]),
            (3, &[2], [false, true, false]),
            (1, &[1], [true, true, false]),
            (0, &[3, 4, 9], [false, false, false]),
            (2, &[3, 4], [true, true, true]),
            (0, &[1, 2, 3, 4], [true, true, true]),
        ] {
            assert_eq!(of(reapply, exclude), Ok(expected), "{reapply} {exclude:?}");
        }
        assert_eq!(of(9, &[]), Err(tonic::Code::InvalidArgument));
    }
}
