//! Signal, cancel, terminate and delete a workflow.

use everlog_engine::machine::{cancel, close, signal};
use everlog_engine::request::{Delete, Request};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::workflowservice::{
    DeleteWorkflowExecutionRequest, DeleteWorkflowExecutionResponse, RequestCancelWorkflowExecutionRequest,
    RequestCancelWorkflowExecutionResponse, SignalWorkflowExecutionRequest, SignalWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest, TerminateWorkflowExecutionResponse,
};
use tonic::Status;

use crate::codec::status::invalid;
use crate::codec::validation::Checks;
use crate::server::call::Call;

pub(crate) async fn signal(
    call: &Call<'_>,
    request: SignalWorkflowExecutionRequest,
) -> Result<SignalWorkflowExecutionResponse, Status> {
    let checks = call.checks();
    let execution = checks.execution(request.workflow_execution)?;
    checks.id("SignalName", &request.signal_name)?;
    checks.blob(request.input.as_ref())?;
    checks.blob(request.header.as_ref())?;
    checks.links(&request.links)?;
    let order = signal::Signal {
        name: request.signal_name,
        input: request.input,
        identity: request.identity,
        header: request.header,
        request_id: checks.request_id(request.request_id)?,
        links: request.links,
    };
    call.send(call.request_record(execution, Request::Signal(order))).await?;
    Ok(SignalWorkflowExecutionResponse::default())
}

pub(crate) async fn request_cancel(
    call: &Call<'_>,
    request: RequestCancelWorkflowExecutionRequest,
) -> Result<RequestCancelWorkflowExecutionResponse, Status> {
    let checks = call.checks();
    let execution = checks.execution(request.workflow_execution)?;
    checks.length("RequestId", &request.request_id)?;
    checks.links(&request.links)?;
    reason(&checks, &request.reason)?;
    let (execution, first_run_id) = of_chain(&checks, execution, request.first_execution_run_id)?;
    let order = cancel::Request {
        reason: request.reason,
        identity: request.identity,
        first_run_id,
        links: request.links,
    };
    call.send(call.request_record(execution, Request::Cancel(order))).await?;
    Ok(RequestCancelWorkflowExecutionResponse::default())
}

/// The reason of a termination without one, as by Temporal's server.
const UNSAID_REASON: &str = "terminated by user via frontend";
const UNSAID_IDENTITY: &str = "frontend-service";

pub(crate) async fn terminate(
    call: &Call<'_>,
    request: TerminateWorkflowExecutionRequest,
) -> Result<TerminateWorkflowExecutionResponse, Status> {
    let checks = call.checks();
    let execution = checks.execution(request.workflow_execution)?;
    // Details have no limit of their own, as on Temporal's server.
    checks.links(&request.links)?;
    reason(&checks, &request.reason)?;
    let (execution, first_run_id) = of_chain(&checks, execution, request.first_execution_run_id)?;
    let or = |said: String, unsaid: &str| if said.is_empty() { unsaid.to_owned() } else { said };
    let order = close::Terminate {
        reason: or(request.reason, UNSAID_REASON),
        details: request.details,
        identity: or(request.identity, UNSAID_IDENTITY),
        first_run_id,
        links: request.links,
    };
    call.send(call.request_record(execution, Request::Terminate(order))).await?;
    Ok(TerminateWorkflowExecutionResponse::default())
}

/// The run cannot be read any more when this returns. An open run is terminated first.
pub(crate) async fn delete(
    call: &Call<'_>,
    request: DeleteWorkflowExecutionRequest,
) -> Result<DeleteWorkflowExecutionResponse, Status> {
    let execution = call.checks().execution(request.workflow_execution)?;
    call.send(call.request_record(execution, Request::Delete(Delete {}))).await?;
    Ok(DeleteWorkflowExecutionResponse::default())
}

/// If the request has the first run id of a chain, the current run of the chain is meant, whatever run id it has.
fn of_chain(
    checks: &Checks<'_>,
    execution: WorkflowExecution,
    first_run_id: String,
) -> Result<(WorkflowExecution, String), Status> {
    let first_run_id = checks.first_run_id(first_run_id)?;
    match first_run_id.as_str() {
        "" => Ok((execution, first_run_id)),
        _chain => Ok((WorkflowExecution { run_id: String::new(), ..execution }, first_run_id)),
    }
}

/// A reason has the limit of other text fields.
pub(crate) fn reason(checks: &Checks<'_>, reason: &str) -> Result<(), Status> {
    if i64::try_from(reason.len()).is_ok_and(|bytes| bytes > checks.settings.blob_bytes_max) {
        return Err(invalid("Blob data size exceeds limit."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use everlog_engine::Settings;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn the_first_run_of_a_chain_stands_for_its_current_one() {
        let (limits, settings) = (Limits::default(), Settings::standard());
        let checks = Checks { limits: &limits, settings: &settings };
        let run_id = "5bbe3c42-7bc0-4a94-a8a9-1b8e3a6ef5b1";
        let execution = WorkflowExecution { workflow_id: "w".into(), run_id: run_id.into() };
        let of = |first_run_id: &str| of_chain(&checks, execution.clone(), first_run_id.into());
        let (same, first) = of("").expect("no chain");
        assert_eq!((same.run_id.as_str(), first.as_str()), (run_id, ""));
        let (current, first) = of(&run_id.to_uppercase()).expect("a UUID");
        assert_eq!((current.run_id.as_str(), first.as_str()), ("", run_id));
        let (current, first) = of("x").expect("a chain that cannot be");
        assert_eq!((current.run_id.as_str(), first.as_str()), ("", "x"));
        let status = of(&"x".repeat(1_001)).expect_err("too long");
        assert_eq!(status.message(), "FirstExecutionRunId length exceeds limit.");
    }
}
