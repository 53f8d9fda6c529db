//! Batch operations: a job is started, described and stopped. What it does is in `crate::batch`.

use std::time::Duration;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::api_types::{ConflictPolicy, Fields, MapEntry, ReusePolicy, Status as RunStatus};
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::start::Begin;
use everlog_engine::machine::{cancel, close};
use everlog_engine::request::Request;
use everlog_engine::{Rejection, Reply};
use everlog_partition::{Address, Reading, Want};
use everlog_temporal_api::common::{Execution, WorkflowExecution};
use everlog_temporal_api::enums::{
    BatchOperationState, ExecutionType, ResourceExhaustedCause, ResourceExhaustedScope,
};
use everlog_temporal_api::temporal::api::batch::v1::BatchOperationInfo;
use everlog_temporal_api::workflow::WorkflowExecutionInfo;
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, DescribeBatchOperationRequest, DescribeBatchOperationResponse,
    ListBatchOperationsRequest, ListBatchOperationsResponse, ListWorkflowExecutionsRequest,
    StartBatchOperationRequest, StartBatchOperationResponse, StopBatchOperationRequest,
    StopBatchOperationResponse,
};
use prost::Message;
use tonic::Status;

use crate::batch::job::{self, BatchKind, DIVISION, QUEUE, WORKFLOW_TYPE};
use crate::batch::progress::{BatchReport, json_payload};
use crate::codec::proto_time::{timestamp, timestamp_if_set};
use crate::codec::random_ids;
use crate::codec::status::{self, invalid};
use crate::codec::validation::span_ms;
use crate::handlers::{activity_control, history, reset, run_control, signal, visibility};
use crate::namespaces::search_attributes;
use crate::server::call::Call;

/// How long a job that is stopped may take to finish what it has begun, and to report. Heartbeats come once a second.
const STOPPED_WITHIN: Duration = Duration::from_secs(3);

/// The job is durable when this returns.
pub(crate) async fn start(
    call: &Call<'_>,
    request: StartBatchOperationRequest,
) -> Result<StartBatchOperationResponse, Status> {
    let kind = job::check(&request)?;
    check_values(call, &request)?;
    check_query(call, &request, kind)?;
    let begin = begin(call, &request, kind)?;
    // One start at a time, so that none of two slips past the limit.
    let _starting = call.gateway.batch_starts.lock().await;
    check_open_jobs(call).await?;
    let execution = WorkflowExecution { workflow_id: request.job_id, run_id: String::new() };
    match call.send(call.request_record(execution, Request::Start(Box::new(begin)))).await? {
        Reply::Started(_) => Ok(StartBatchOperationResponse {}),
        _other => Err(status::unexpected_reply()),
    }
}

/// What would be refused at each run is refused at the start.
fn check_values(call: &Call<'_>, request: &StartBatchOperationRequest) -> Result<(), Status> {
    let checks = call.checks();
    checks.length("JobId", &request.job_id)?;
    signal::reason(&checks, &request.reason)?;
    for named in job::executions(request) {
        checks.run(named.workflow_id, named.run_id)?;
    }
    let Some(operation) = &request.operation else { return Ok(()) };
    checks.length("Identity", job::identity(operation))?;
    match operation {
        Operation::SignalOperation(operation) => {
            checks.id("SignalName", &operation.signal)?;
            checks.blob(operation.input.as_ref())?;
            checks.blob(operation.header.as_ref())
        }
        Operation::ResetOperation(operation) => reset::check_options(&checks, operation),
        Operation::UpdateWorkflowOptionsOperation(operation) => {
            let (mask, options) = (&operation.update_mask, &operation.workflow_execution_options);
            run_control::update(&checks, mask.clone(), options.clone(), String::new()).map(drop)
        }
        Operation::UnpauseActivitiesOperation(operation) => span_ms("Jitter", operation.jitter).map(drop),
        Operation::ResetActivitiesOperation(operation) => span_ms("Jitter", operation.jitter).map(drop),
        Operation::UpdateActivityOptionsOperation(operation) => {
            let (options, mask) = (&operation.activity_options, &operation.update_mask);
            let change = (options.clone(), mask.clone(), operation.restore_original);
            activity_control::patch_of(change).map(drop)
        }
        _others => Ok(()),
    }
}

/// The whole query is checked: of one that is refused later, the job would fail.
fn check_query(call: &Call<'_>, request: &StartBatchOperationRequest, kind: BatchKind) -> Result<(), Status> {
    if request.visibility_query.is_empty() {
        return Ok(());
    }
    let checked = visibility::check(call, &request.visibility_query)
        .and_then(|()| visibility::check(call, &job::query(request, kind)));
    checked.map_err(|status| {
        let why = status.message();
        invalid(format!("invalid visibility query: {}", why.strip_prefix("invalid query: ").unwrap_or(why)))
    })
}

async fn check_open_jobs(call: &Call<'_>) -> Result<(), Status> {
    let query = format!("{} AND ExecutionStatus = 'Running'", job::jobs());
    let request = CountWorkflowExecutionsRequest { query, ..Default::default() };
    let open = visibility::count(call, request).await?.count;
    if open >= i64::from(call.gateway.limits.namespace_batch_jobs_max) {
        let (cause, scope) = (ResourceExhaustedCause::ConcurrentLimit, ResourceExhaustedScope::Namespace);
        return Err(status::exhausted(cause, scope, "Max concurrent batch operations is reached"));
    }
    Ok(())
}

fn begin(call: &Call<'_>, request: &StartBatchOperationRequest, kind: BatchKind) -> Result<Begin, Status> {
    let checks = call.checks();
    let identity = request.operation.as_ref().map_or("", job::identity);
    let input = job::input(request);
    checks.blob(Some(&input))?;
    let memo = map(&[(job::KIND_MEMO, kind.name), ("batch_operation_reason", &request.reason)]);
    checks.memo(Some(&memo))?;
    let attributes = map(&[("TemporalNamespaceDivision", DIVISION), ("BatcherUser", identity)]);
    checks.search_attributes(Some(&attributes))?;
    let attributes = search_attributes::typed(&call.namespace.record, &attributes).map_err(invalid)?;
    Ok(Begin {
        request_id: random_ids::id(),
        workflow_type: WORKFLOW_TYPE.into(),
        task_queue: QUEUE.into(),
        input: Some(input),
        identity: identity.into(),
        memo: Some(memo),
        search_attributes: Some(attributes),
        reuse_policy: ReusePolicy::RejectDuplicate.into(),
        conflict_policy: ConflictPolicy::Fail.into(),
        retention_ms: call.namespace.record.retention_ms,
        ..Begin::default()
    })
}

/// An encoded map of texts.
fn map(texts: &[(&str, &str)]) -> Bytes {
    let entry =
        |(key, text): &(&str, &str)| MapEntry { key: (*key).into(), value: json_payload(&(*text).into()) };
    Fields { entries: texts.iter().map(entry).collect() }.encode_to_vec().into()
}

/// A job as its run tells it.
struct JobRun {
    run: std::sync::Arc<Run>,
    request: StartBatchOperationRequest,
}

/// Reads a job by its run's first event. Another run under its id is no job.
async fn read(call: &Call<'_>, job_id: &str) -> Result<JobRun, Status> {
    let address = address(call, job_id, String::new());
    let want = Want::History { from_event_id: 1, batches_max: 1 };
    let Reading { run, page, .. } = history::read(call, &address, want).await?;
    let is_job = run.start.task_queue == QUEUE && run.workflow_type() == WORKFLOW_TYPE;
    let events = History::decode(page.history).map(|history| history.events).unwrap_or_default();
    let input = events.into_iter().find_map(|event| match event.attributes {
        Some(Attributes::WorkflowStarted(started)) => started.input,
        _later => None,
    });
    match job::read(input.as_ref()) {
        Some(request) if is_job => Ok(JobRun { run, request }),
        Some(_) | None => Err(status::of_rejection(Rejection::unknown_run(job_id, ""))),
    }
}

fn address(call: &Call<'_>, job_id: &str, run_id: String) -> Address {
    call.address(WorkflowExecution { workflow_id: job_id.into(), run_id })
}

pub(crate) async fn describe(
    call: &Call<'_>,
    request: DescribeBatchOperationRequest,
) -> Result<DescribeBatchOperationResponse, Status> {
    call.checks().id("JobId", &request.job_id)?;
    let JobRun { run, request: job } = read(call, &request.job_id).await?;
    let operation = job.operation.as_ref();
    let report = report(call, &request.job_id, &run).await?;
    let kind = operation.and_then(|operation| job::kind_of(operation).ok());
    let execution = |named: crate::batch::progress::BatchItem| Execution {
        r#type: ExecutionType::Workflow.into(),
        business_id: named.workflow_id,
        run_id: named.run_id,
    };
    Ok(DescribeBatchOperationResponse {
        operation_type: kind.map_or(0, |kind| kind.number.into()),
        job_id: request.job_id,
        state: state(run.head.status).into(),
        start_time: Some(timestamp(run.start.start_ms)),
        close_time: timestamp_if_set(run.head.close_ms),
        total_operation_count: report.total,
        complete_operation_count: report.complete,
        failure_operation_count: report.failed,
        identity: operation.map_or("", job::identity).into(),
        executions: job::executions(&job).into_iter().map(execution).collect(),
        reason: job.reason,
        query: job.visibility_query,
    })
}

/// The jobs that lists have, newest first.
pub(crate) async fn list(
    call: &Call<'_>,
    request: ListBatchOperationsRequest,
) -> Result<ListBatchOperationsResponse, Status> {
    let ListBatchOperationsRequest { page_size, next_page_token, .. } = request;
    let query = job::jobs();
    let request = ListWorkflowExecutionsRequest { page_size, next_page_token, query, ..Default::default() };
    let listed = visibility::list(call, request).await?;
    let operation = |info: WorkflowExecutionInfo| BatchOperationInfo {
        state: state(info.status).into(),
        start_time: info.start_time,
        close_time: info.close_time,
        operation_type: job::kind_in(info.memo.as_ref()).map_or(0, |kind| kind.number.into()),
        job_id: info.execution.map(|execution| execution.workflow_id).unwrap_or_default(),
    };
    Ok(ListBatchOperationsResponse {
        operation_info: listed.executions.into_iter().map(operation).collect(),
        next_page_token: listed.next_page_token,
    })
}

/// What is not completed has failed, as on Temporal's server.
fn state(status: i32) -> BatchOperationState {
    match RunStatus::try_from(status) {
        Ok(RunStatus::Running) => BatchOperationState::Running,
        Ok(RunStatus::Completed) => BatchOperationState::Completed,
        Ok(_) | Err(_) => BatchOperationState::Failed,
    }
}

/// The counts: of the last heartbeat; of a closed job those that it has ended with, or was terminated with.
async fn report(call: &Call<'_>, job_id: &str, run: &Run) -> Result<BatchReport, Status> {
    if run.is_open() {
        return Ok(last_heartbeat(run)
            .and_then(|details| BatchReport::read(Some(&details)))
            .unwrap_or_default());
    }
    if let Some(report) = BatchReport::of_memo(&run.properties.memo) {
        return Ok(report);
    }
    let address = address(call, job_id, run.start.run_id.clone());
    let page = history::read(call, &address, Want::LastBatch).await?.page;
    let events = History::decode(page.history).map(|history| history.events).unwrap_or_default();
    let details = events.into_iter().rev().find_map(|event| match event.attributes {
        Some(Attributes::WorkflowTerminated(terminated)) => terminated.details,
        _others => None,
    });
    Ok(BatchReport::read(details.as_ref()).unwrap_or_default())
}

fn last_heartbeat(run: &Run) -> Option<Bytes> {
    run.activities.values().next()?.heartbeat_details.clone()
}

/// The job finishes what it has begun and ends with its counts. One that nobody works at is terminated with the last ones.
pub(crate) async fn stop(
    call: &Call<'_>,
    request: StopBatchOperationRequest,
) -> Result<StopBatchOperationResponse, Status> {
    let checks = call.checks();
    checks.id("JobId", &request.job_id)?;
    if request.reason.is_empty() {
        return Err(invalid("Reason is not set on request."));
    }
    signal::reason(&checks, &request.reason)?;
    checks.length("Identity", &request.identity)?;
    let run = read(call, &request.job_id).await?.run;
    if !run.is_open() {
        return Err(status::of_rejection(Rejection::closed()));
    }
    let run_id = &run.start.run_id;
    let execution = || WorkflowExecution { workflow_id: request.job_id.clone(), run_id: run_id.clone() };
    if run.activities.values().any(|activity| activity.is_started()) {
        let order = cancel::Request {
            reason: request.reason.clone(),
            identity: request.identity.clone(),
            ..cancel::Request::default()
        };
        call.send(call.request_record(execution(), Request::Cancel(order))).await?;
        let closed = call.gateway.router.watch(address(call, &request.job_id, run_id.clone()), i64::MAX);
        if let Ok(closed) = tokio::time::timeout(STOPPED_WITHIN, closed).await {
            closed.map_err(status::of_failure)?;
            return Ok(StopBatchOperationResponse {});
        }
    }
    let run = read(call, &request.job_id).await?.run;
    let report = last_heartbeat(&run).and_then(|details| BatchReport::read(Some(&details)));
    let order = close::Terminate {
        reason: request.reason.clone(),
        details: report.map(|report| report.result()),
        identity: request.identity.clone(),
        ..close::Terminate::default()
    };
    match call.gateway.router.order(call.request_record(execution(), Request::Terminate(order))).await {
        // It has ended meanwhile.
        Ok(Reply::Rejected(Rejection::NotFound(_))) => Ok(StopBatchOperationResponse {}),
        Ok(Reply::Rejected(rejection)) => Err(status::of_rejection(rejection)),
        Ok(_terminated) => Ok(StopBatchOperationResponse {}),
        Err(failure) => Err(status::of_failure(failure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_closed_and_not_completed_has_failed() {
        let of = |status: RunStatus| state(status.into());
        assert_eq!(of(RunStatus::Running), BatchOperationState::Running);
        assert_eq!(of(RunStatus::Completed), BatchOperationState::Completed);
        for status in [RunStatus::Canceled, RunStatus::Terminated, RunStatus::Failed, RunStatus::TimedOut] {
            assert_eq!(of(status), BatchOperationState::Failed, "{status:?}");
        }
    }
}
