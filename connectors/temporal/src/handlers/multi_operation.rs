//! ExecuteMultiOperation: update-with-start, where both take effect or none.

use bytes::Bytes;
use everlog_engine::machine::start::Begin;
use everlog_engine::machine::update::UpdateStanding;
use everlog_engine::request::Request;
use everlog_engine::{Rejection, Reply, Started};
use everlog_temporal_api::errordetails::MultiOperationExecutionFailure;
use everlog_temporal_api::errordetails::multi_operation_execution_failure::OperationStatus;
use everlog_temporal_api::failure::MultiOperationExecutionAborted;
use everlog_temporal_api::rpc;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::Operation;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::operation::Operation as Kind;
use everlog_temporal_api::workflowservice::execute_multi_operation_response::Response as Part;
use everlog_temporal_api::workflowservice::execute_multi_operation_response::response::Response;
use everlog_temporal_api::workflowservice::{
    ExecuteMultiOperationRequest, ExecuteMultiOperationResponse, StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse, UpdateWorkflowExecutionRequest, UpdateWorkflowExecutionResponse,
};
use prost::{Message, Name};
use prost_types::Any;
use tonic::{Code, Status};

use crate::codec::status::{self, detailed, invalid};
use crate::handlers::{start, update};
use crate::server::call::Call;

/// How often a run is found or started for the update. A found run may close before it accepts the update; then there is a second
/// attempt.
const ATTEMPTS: u32 = 2;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailedOperation {
    Start,
    Update,
    /// The update, after the start took effect.
    OnlyUpdate,
}

pub(crate) async fn execute(
    call: &Call<'_>,
    request: ExecuteMultiOperationRequest,
) -> Result<ExecuteMultiOperationResponse, Status> {
    let (start, update) = operations(&request.namespace, request.operations)?;
    let workflow_id = start.workflow_id.clone();
    let begun = check_start(&start).and_then(|()| start::begin(call, start));
    let (execution, begin) = begun.map_err(|status| failure(FailedOperation::Start, &status))?;
    let checked = check_update(&update, &workflow_id).and_then(|()| update::checked(call, update));
    let checked = checked.map_err(|status| failure(FailedOperation::Update, &status))?;
    let begin = Begin { update: Some(checked.admit), ..begin };
    let input = call.request_record(execution, Request::Start(Box::new(begin)));
    for _ in 0..ATTEMPTS {
        let called = call.gateway.router.update(input.clone()).await.map_err(status::of_failure)?;
        let (started, standing) = match called.first {
            Reply::Started(started) => {
                let link = start::link_to_start(call, &workflow_id, &started.run_id);
                both(started, link)?
            }
            Reply::Rejected(rejection) => return Err(rejected(rejection)),
            _other => return Err(status::unexpected_reply()),
        };
        let failed = if started.started { FailedOperation::OnlyUpdate } else { FailedOperation::Update };
        let standing = update::until(call, standing, called.news, checked.wanted).await;
        match standing.map_err(|status| failure(failed, &status))? {
            Some(standing) => return both_done(started, update::response(workflow_id, standing)?),
            // The run was started for this update: a second one would end like it.
            None if started.started => return Err(failure(failed, &update::aborted())),
            None => {}
        }
    }
    Err(failure(FailedOperation::Update, &Status::aborted(update::ABORTED)))
}

fn both_done(
    started: StartWorkflowExecutionResponse,
    updated: UpdateWorkflowExecutionResponse,
) -> Result<ExecuteMultiOperationResponse, Status> {
    let parts = [Response::StartWorkflow(started), Response::UpdateWorkflow(updated)];
    let responses = parts.into_iter().map(|part| Part { response: Some(part) }).collect();
    Ok(ExecuteMultiOperationResponse { responses })
}

/// The operations, which have to be a start and an update.
fn operations(
    namespace: &str,
    operations: Vec<Operation>,
) -> Result<(StartWorkflowExecutionRequest, UpdateWorkflowExecutionRequest), Status> {
    let mut kinds = operations.into_iter().map(|operation| operation.operation);
    let (Some(Some(Kind::StartWorkflow(start))), Some(Some(Kind::UpdateWorkflow(update))), None) =
        (kinds.next(), kinds.next(), kinds.next())
    else {
        return Err(invalid("Operations have to be exactly [Start, Update]."));
    };
    let is_other = |name: &str| !name.is_empty() && name != namespace;
    if is_other(&start.namespace) || is_other(&update.namespace) {
        return Err(invalid("Namespace is not consistent with that of the request."));
    }
    Ok((start, update))
}

fn check_start(start: &StartWorkflowExecutionRequest) -> Result<(), Status> {
    if !start.cron_schedule.is_empty() {
        return Err(invalid("CronSchedule is not allowed."));
    }
    if start.request_eager_execution {
        return Err(invalid("RequestEagerExecution is not supported."));
    }
    if start.workflow_start_delay.is_some() {
        return Err(invalid("WorkflowStartDelay is not supported."));
    }
    Ok(())
}

fn check_update(update: &UpdateWorkflowExecutionRequest, workflow_id: &str) -> Result<(), Status> {
    let execution = update.workflow_execution.clone().unwrap_or_default();
    if !execution.run_id.is_empty() {
        return Err(invalid("RunId is not allowed."));
    }
    if !update.first_execution_run_id.is_empty() {
        return Err(invalid("FirstExecutionRunId is not allowed."));
    }
    if execution.workflow_id != workflow_id {
        return Err(invalid("WorkflowId is not consistent with previous operation(s)."));
    }
    Ok(())
}

fn both(started: Started, link: Bytes) -> Result<(StartWorkflowExecutionResponse, UpdateStanding), Status> {
    let standing = started.update.ok_or_else(status::unexpected_reply)?;
    let response = StartWorkflowExecutionResponse {
        run_id: started.run_id,
        first_execution_run_id: started.first_run_id,
        started: started.started,
        status: started.status.into(),
        eager_workflow_task: None,
        link: Some(link),
    };
    Ok((response, *standing))
}

/// The status of a rejection, of the start or of the update.
fn rejected(rejection: Rejection) -> Status {
    let failed = match &rejection {
        Rejection::AlreadyStarted { .. }
        | Rejection::InvalidArgument(_)
        | Rejection::NamespaceUnknown(_)
        | Rejection::NamespaceDeleted(_) => FailedOperation::Start,
        Rejection::NotFound(_)
        | Rejection::Busy(_)
        | Rejection::NotReady(_)
        | Rejection::Outdated(_)
        | Rejection::TooManyAtOnce(_)
        | Rejection::TooMany(_) => FailedOperation::Update,
    };
    failure(failed, &status::of_rejection(rejection))
}

/// The status of the call: that of the failed operation, with the status of each operation in its details.
fn failure(failed: FailedOperation, status: &Status) -> Status {
    let own = OperationStatus {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: rpc::Status::decode(status.details()).unwrap_or_default().details,
    };
    let statuses = match failed {
        FailedOperation::Start => vec![own, aborted()],
        FailedOperation::Update => vec![aborted(), own],
        FailedOperation::OnlyUpdate => vec![OperationStatus::default(), own],
    };
    let message = "Update-with-Start could not be executed.".to_owned();
    detailed(status.code(), message, &MultiOperationExecutionFailure { statuses })
}

fn aborted() -> OperationStatus {
    let detail = MultiOperationExecutionAborted::default();
    let detail = Any { type_url: MultiOperationExecutionAborted::type_url(), value: detail.encode_to_vec() };
    OperationStatus {
        code: Code::Aborted.into(),
        message: "Operation was aborted.".into(),
        details: vec![detail],
    }
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::common::WorkflowExecution;

    use super::*;

    fn start() -> Operation {
        Operation { operation: Some(Kind::StartWorkflow(StartWorkflowExecutionRequest::default())) }
    }

    fn update() -> Operation {
        Operation { operation: Some(Kind::UpdateWorkflow(UpdateWorkflowExecutionRequest::default())) }
    }

    #[test]
    fn only_a_start_and_an_update_go_together() {
        assert!(operations("shop", vec![start(), update()]).is_ok());
        for wrong in [vec![], vec![start()], vec![update(), start()], vec![start(), update(), update()]] {
            let status = operations("shop", wrong).expect_err("it has to be refused");
            assert_eq!(status.message(), "Operations have to be exactly [Start, Update].");
        }
        let elsewhere = StartWorkflowExecutionRequest { namespace: "bank".into(), ..Default::default() };
        let elsewhere = Operation { operation: Some(Kind::StartWorkflow(elsewhere)) };
        assert!(operations("shop", vec![elsewhere, update()]).is_err());
    }

    #[test]
    fn the_one_that_failed_is_told_from_the_one_that_was_not_tried() {
        let taken = Rejection::AlreadyStarted {
            message: "Workflow execution is already running.".into(),
            run_id: "run".into(),
            first_run_id: "first".into(),
            request_id: "request".into(),
        };
        let status = rejected(taken);
        assert_eq!(status.code(), Code::AlreadyExists);
        let read = rpc::Status::decode(status.details()).expect("details are a google.rpc.Status");
        let failure: MultiOperationExecutionFailure = read.details[0].to_msg().expect("of this type");
        let codes: Vec<_> = failure.statuses.iter().map(|status| Code::from(status.code)).collect();
        assert_eq!(codes, [Code::AlreadyExists, Code::Aborted]);
        let own = failure.statuses[0].details[0].type_url.as_str();
        assert!(own.ends_with("WorkflowExecutionAlreadyStartedFailure"), "{own}");
        let other = failure.statuses[1].details[0].type_url.as_str();
        assert!(other.ends_with("temporal.api.failure.v1.MultiOperationExecutionAborted"), "{other}");
    }

    #[test]
    fn an_update_with_a_start_names_no_run() {
        let named = |run_id: &str, workflow_id: &str| UpdateWorkflowExecutionRequest {
            workflow_execution: Some(WorkflowExecution {
                workflow_id: workflow_id.into(),
                run_id: run_id.into(),
            }),
            ..Default::default()
        };
        assert!(check_update(&named("", "w"), "w").is_ok());
        assert!(check_update(&named("5bbe3c42-7bc0-4a94-a8a9-1b8e3a6ef5b1", "w"), "w").is_err());
        assert!(check_update(&named("", "v"), "w").is_err());
    }
}
