//! Activity tasks: poll, heartbeat, complete, fail and cancel, by token or by id.

use bytes::Bytes;
use everlog_engine::machine::activity_attempt::{Cancel, Complete, Fail, Heartbeat, Target};
use everlog_engine::request::Request;
use everlog_engine::{HeartbeatAnswer, Reply};
use everlog_partition::{Delivery, Poll, TaskKind};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::workflowservice::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, RecordActivityTaskHeartbeatByIdRequest,
    RecordActivityTaskHeartbeatByIdResponse, RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse, RespondActivityTaskCanceledByIdRequest,
    RespondActivityTaskCanceledByIdResponse, RespondActivityTaskCanceledRequest,
    RespondActivityTaskCanceledResponse, RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedByIdResponse, RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse, RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskFailedByIdResponse, RespondActivityTaskFailedRequest,
    RespondActivityTaskFailedResponse,
};
use tonic::Status;

use crate::codec::failure;
use crate::codec::payload::stored_copy;
use crate::codec::status::{self, invalid};
use crate::codec::validation::unversioned;
use crate::codec::versioning::worker_version;
use crate::handlers::long_poll;
use crate::server::call::Call;
use crate::tasks::response;
use crate::tasks::token::{Subject, unreadable};

pub(crate) async fn poll(
    call: &Call<'_>,
    request: PollActivityTaskQueueRequest,
) -> Result<PollActivityTaskQueueResponse, Status> {
    let checks = call.checks();
    checks.length("Identity", &request.identity)?;
    checks.length("WorkerInstanceKey", &request.worker_instance_key)?;
    let task_queue = checks.task_queue(request.task_queue)?;
    unversioned(request.deployment_options.as_ref(), "deployment_options")?;
    let rate = request.task_queue_metadata.and_then(|metadata| metadata.max_tasks_per_second);
    // An infinite rate means none.
    let rate = rate.filter(|rate| *rate != f64::INFINITY);
    if rate.is_some_and(|rate| rate.is_nan() || rate < 0.0) {
        return Err(invalid("task_queue_metadata.max_tasks_per_second is not a rate."));
    }
    let version = worker_version(checks, request.worker_version_capabilities, request.deployment_options)?;
    let poll = Poll {
        namespace_id: call.namespace.record.id.clone(),
        queue: task_queue.name,
        kind: TaskKind::Activity,
        sticky: false,
        normal_queue: None,
        identity: request.identity,
        poll_id: call.poll_id(),
        rate_per_second: rate,
        version,
    };
    let (response, receipt) = match long_poll::wait(call, poll, &request.worker_instance_key).await? {
        Some(Delivery::Activity(task)) => response::of_activity(call.response_context(), *task),
        Some(Delivery::Remote(told)) => response::read(told)?,
        // A task of the wrong kind is requeued when it is dropped.
        Some(Delivery::Workflow(_) | Delivery::Query(_) | Delivery::Nothing) | None => Default::default(),
    };
    call.respond_with(receipt);
    Ok(response)
}

/// The attempt that a request names.
type Attempt = (WorkflowExecution, Target);

fn by_token(call: &Call<'_>, identity: &str) -> Result<Attempt, Status> {
    let attempt = match call.task()? {
        (execution, Subject::Activity(target)) => (execution, target),
        (_, Subject::Workflow(_) | Subject::Query(_)) => return Err(unreadable()),
    };
    call.checks().length("Identity", identity)?;
    Ok(attempt)
}

fn by_id(
    call: &Call<'_>,
    workflow_id: String,
    run_id: String,
    activity_id: String,
    identity: &str,
) -> Result<Attempt, Status> {
    let checks = call.checks();
    let execution = checks.run(workflow_id, run_id)?;
    checks.id("ActivityId", &activity_id)?;
    checks.length("Identity", identity)?;
    Ok((execution, Target { activity_id, ..Target::default() }))
}

async fn record_heartbeat(
    call: &Call<'_>,
    attempt: Attempt,
    details: Option<Bytes>,
) -> Result<HeartbeatAnswer, Status> {
    let (execution, target) = attempt;
    let order = Heartbeat { target: Some(target), details: stored_copy(details) };
    match call.send(call.request_record(execution, Request::HeartbeatActivity(order))).await? {
        Reply::Heartbeat(answer) => Ok(answer),
        _other => Err(status::unexpected_reply()),
    }
}

pub(crate) async fn heartbeat(
    call: &Call<'_>,
    request: RecordActivityTaskHeartbeatRequest,
) -> Result<RecordActivityTaskHeartbeatResponse, Status> {
    let attempt = by_token(call, &request.identity)?;
    let answer = record_heartbeat(call, attempt, request.details).await?;
    Ok(RecordActivityTaskHeartbeatResponse {
        cancel_requested: answer.cancel_requested,
        activity_paused: answer.paused,
        activity_reset: answer.reset,
    })
}

pub(crate) async fn heartbeat_by_id(
    call: &Call<'_>,
    request: RecordActivityTaskHeartbeatByIdRequest,
) -> Result<RecordActivityTaskHeartbeatByIdResponse, Status> {
    let attempt = by_id(call, request.workflow_id, request.run_id, request.activity_id, &request.identity)?;
    let answer = record_heartbeat(call, attempt, request.details).await?;
    Ok(RecordActivityTaskHeartbeatByIdResponse {
        cancel_requested: answer.cancel_requested,
        activity_paused: answer.paused,
        activity_reset: answer.reset,
    })
}

async fn respond_completed(call: &Call<'_>, attempt: Attempt, report: Complete) -> Result<(), Status> {
    let (execution, target) = attempt;
    let order = Complete { target: Some(target), ..report };
    call.send(call.request_record(execution, Request::CompleteActivity(order))).await?;
    Ok(())
}

pub(crate) async fn complete(
    call: &Call<'_>,
    request: RespondActivityTaskCompletedRequest,
) -> Result<RespondActivityTaskCompletedResponse, Status> {
    let attempt = by_token(call, &request.identity)?;
    let (identity, worker_version) = (request.identity, request.worker_version);
    respond_completed(
        call,
        attempt,
        Complete { target: None, result: request.result, identity, worker_version },
    )
    .await?;
    Ok(RespondActivityTaskCompletedResponse::default())
}

pub(crate) async fn complete_by_id(
    call: &Call<'_>,
    request: RespondActivityTaskCompletedByIdRequest,
) -> Result<RespondActivityTaskCompletedByIdResponse, Status> {
    let attempt = by_id(call, request.workflow_id, request.run_id, request.activity_id, &request.identity)?;
    let report = Complete { result: request.result, identity: request.identity, ..Complete::default() };
    respond_completed(call, attempt, report).await?;
    Ok(RespondActivityTaskCompletedByIdResponse::default())
}

/// Fails the attempt; returns failures about the request itself, such as truncation.
async fn respond_failed(call: &Call<'_>, attempt: Attempt, report: Fail) -> Result<Vec<Bytes>, Status> {
    let checks = call.checks();
    let mut remarks = Vec::new();
    let failure = match report.failure {
        Some(failure) if !failure::is_application(&failure) => {
            return Err(invalid("Failure must have ApplicationFailureInfo."));
        }
        Some(failure) if checks.is_oversize(Some(&failure)) => {
            let failure = failure::oversize(&failure, checks.limits);
            remarks.push(failure.clone());
            Some(failure)
        }
        failure => stored_copy(failure),
    };
    let last_heartbeat_details = match report.last_heartbeat_details {
        Some(details) if checks.is_oversize(Some(&details)) => {
            remarks.push(failure::server("Heartbeat details exceed size limit.", None));
            None
        }
        details => stored_copy(details),
    };
    let (execution, target) = attempt;
    let order = Fail { target: Some(target), failure, last_heartbeat_details, ..report };
    call.send(call.request_record(execution, Request::FailActivity(order))).await?;
    Ok(remarks)
}

pub(crate) async fn fail(
    call: &Call<'_>,
    request: RespondActivityTaskFailedRequest,
) -> Result<RespondActivityTaskFailedResponse, Status> {
    let attempt = by_token(call, &request.identity)?;
    let report = Fail {
        target: None,
        failure: request.failure,
        identity: request.identity,
        last_heartbeat_details: request.last_heartbeat_details,
        worker_version: request.worker_version,
        cause: request.cause,
    };
    let failures = respond_failed(call, attempt, report).await?;
    Ok(RespondActivityTaskFailedResponse { failures })
}

pub(crate) async fn fail_by_id(
    call: &Call<'_>,
    request: RespondActivityTaskFailedByIdRequest,
) -> Result<RespondActivityTaskFailedByIdResponse, Status> {
    let attempt = by_id(call, request.workflow_id, request.run_id, request.activity_id, &request.identity)?;
    let report = Fail {
        target: None,
        failure: request.failure,
        identity: request.identity,
        last_heartbeat_details: request.last_heartbeat_details,
        worker_version: None,
        cause: request.cause,
    };
    let failures = respond_failed(call, attempt, report).await?;
    Ok(RespondActivityTaskFailedByIdResponse { failures })
}

async fn respond_canceled(call: &Call<'_>, attempt: Attempt, report: Cancel) -> Result<(), Status> {
    let (execution, target) = attempt;
    let order = if call.checks().is_oversize(report.details.as_ref()) {
        let failure = Some(failure::server("Cancel details exceed size limit.", None));
        let Cancel { identity, worker_version, .. } = report;
        Request::FailActivity(Fail {
            target: Some(target),
            failure,
            identity,
            worker_version,
            ..Fail::default()
        })
    } else {
        Request::CancelActivity(Cancel { target: Some(target), ..report })
    };
    call.send(call.request_record(execution, order)).await?;
    Ok(())
}

pub(crate) async fn cancel(
    call: &Call<'_>,
    request: RespondActivityTaskCanceledRequest,
) -> Result<RespondActivityTaskCanceledResponse, Status> {
    let attempt = by_token(call, &request.identity)?;
    let (identity, worker_version) = (request.identity, request.worker_version);
    respond_canceled(
        call,
        attempt,
        Cancel { target: None, details: request.details, identity, worker_version },
    )
    .await?;
    Ok(RespondActivityTaskCanceledResponse::default())
}

pub(crate) async fn cancel_by_id(
    call: &Call<'_>,
    request: RespondActivityTaskCanceledByIdRequest,
) -> Result<RespondActivityTaskCanceledByIdResponse, Status> {
    let attempt = by_id(call, request.workflow_id, request.run_id, request.activity_id, &request.identity)?;
    let report = Cancel { details: request.details, identity: request.identity, ..Cancel::default() };
    respond_canceled(call, attempt, report).await?;
    Ok(RespondActivityTaskCanceledByIdResponse::default())
}
