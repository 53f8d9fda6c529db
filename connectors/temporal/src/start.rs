//! Starting runs: StartWorkflowExecution and SignalWithStartWorkflowExecution.

use bytes::Bytes;
use everlog_engine::input::Order;
use everlog_engine::machine::signal::Signal;
use everlog_engine::machine::start::Begin;
use everlog_engine::vocabulary::{ConflictPolicy, ReusePolicy};
use everlog_engine::{Reply, Started};
use everlog_partition::WorkflowTask;
use everlog_temporal_api::common::{TimeSkippingConfig, WorkflowExecution, WorkflowType};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    SignalWithStartWorkflowExecutionRequest, SignalWithStartWorkflowExecutionResponse,
    StartWorkflowExecutionRequest, StartWorkflowExecutionResponse,
};
use prost_types::Duration;
use tonic::Status;

use crate::call::Call;
use crate::payload::kept;
use crate::request::{Checks, not_yet, span_ms, unversioned};
use crate::status::{self, invalid};
use crate::task;

/// What both calls say of the run that they start.
struct Wanted {
    workflow_id: String,
    workflow_type: Option<WorkflowType>,
    task_queue: Option<TaskQueue>,
    input: Option<Bytes>,
    execution_timeout: Option<Duration>,
    run_timeout: Option<Duration>,
    task_timeout: Option<Duration>,
    start_delay: Option<Duration>,
    identity: String,
    request_id: String,
    reuse_policy: i32,
    conflict_policy: i32,
    memo: Option<Bytes>,
    search_attributes: Option<Bytes>,
    header: Option<Bytes>,
    user_metadata: Option<Bytes>,
    links: Vec<Bytes>,
    priority: Option<Bytes>,
}

pub(crate) async fn start(
    call: &Call<'_>,
    request: StartWorkflowExecutionRequest,
) -> Result<StartWorkflowExecutionResponse, Status> {
    refuse_later_features(&request)?;
    let checks = call.checks();
    checks.blob(request.last_completion_result.as_ref())?;
    checks.blob(request.continued_failure.as_ref())?;
    let wanted = Wanted {
        workflow_id: request.workflow_id,
        workflow_type: request.workflow_type,
        task_queue: request.task_queue,
        input: request.input,
        execution_timeout: request.workflow_execution_timeout,
        run_timeout: request.workflow_run_timeout,
        task_timeout: request.workflow_task_timeout,
        start_delay: request.workflow_start_delay,
        identity: request.identity,
        request_id: request.request_id,
        reuse_policy: request.workflow_id_reuse_policy,
        conflict_policy: request.workflow_id_conflict_policy,
        memo: request.memo,
        search_attributes: request.search_attributes,
        header: request.header,
        user_metadata: request.user_metadata,
        links: request.links,
        priority: request.priority,
    };
    let (execution, begin) = begin(call, wanted)?;
    let begin = Begin {
        eager: request.request_eager_execution && begin.start_delay_ms == 0,
        continued_failure: request.continued_failure,
        last_completion_result: request.last_completion_result,
        ..begin
    };
    let (started, task) = send(call, execution, begin).await?;
    let (eager_workflow_task, receipt) = match task {
        Some(task) => {
            let (response, receipt) = task::response(call, task)?;
            (Some(response), receipt)
        }
        None => (None, None),
    };
    task::accept(receipt);
    Ok(StartWorkflowExecutionResponse {
        run_id: started.run_id,
        first_execution_run_id: started.first_run_id,
        started: started.started,
        status: started.status.into(),
        eager_workflow_task,
        link: None,
    })
}

pub(crate) async fn signal_with_start(
    call: &Call<'_>,
    request: SignalWithStartWorkflowExecutionRequest,
) -> Result<SignalWithStartWorkflowExecutionResponse, Status> {
    not_yet("retry_policy", request.retry_policy.is_some())?;
    not_yet("cron_schedule", !request.cron_schedule.is_empty())?;
    not_yet("versioning_override", request.versioning_override.is_some())?;
    not_yet("time_skipping_config", is_skipping(request.time_skipping_config.as_ref()))?;
    let checks = call.checks();
    checks.id("SignalName", &request.signal_name)?;
    checks.blob(request.signal_input.as_ref())?;
    if request.workflow_id_conflict_policy == i32::from(ConflictPolicy::Fail) {
        return Err(invalid(
            "WorkflowIdConflictPolicy Fail is not supported for SignalWithStartWorkflowExecution.",
        ));
    }
    let request_id = checks.request_id(request.request_id)?;
    let signal = Signal {
        name: request.signal_name,
        input: request.signal_input,
        identity: request.identity.clone(),
        header: request.header.clone(),
        request_id: request_id.clone(),
        links: request.links.clone(),
    };
    let wanted = Wanted {
        workflow_id: request.workflow_id,
        workflow_type: request.workflow_type,
        task_queue: request.task_queue,
        input: request.input,
        execution_timeout: request.workflow_execution_timeout,
        run_timeout: request.workflow_run_timeout,
        task_timeout: request.workflow_task_timeout,
        start_delay: request.workflow_start_delay,
        identity: request.identity,
        request_id,
        reuse_policy: request.workflow_id_reuse_policy,
        conflict_policy: request.workflow_id_conflict_policy,
        memo: request.memo,
        search_attributes: request.search_attributes,
        header: request.header,
        user_metadata: request.user_metadata,
        links: request.links,
        priority: request.priority,
    };
    let (execution, begin) = begin(call, wanted)?;
    let (started, _) = send(call, execution, Begin { signal: Some(signal), ..begin }).await?;
    Ok(SignalWithStartWorkflowExecutionResponse {
        run_id: started.run_id,
        first_execution_run_id: started.first_run_id,
        started: started.started,
        signal_link: None,
    })
}

async fn send(
    call: &Call<'_>,
    execution: WorkflowExecution,
    begin: Begin,
) -> Result<(Started, Option<WorkflowTask>), Status> {
    let input = call.input(execution, Order::Start(begin));
    match call.gateway.router.start(input).await {
        Ok((Reply::Started(started), task)) => Ok((started, task)),
        Ok((Reply::Rejected(rejection), _)) => Err(status::of_rejection(rejection)),
        Ok(_) => Err(status::unexpected_reply()),
        Err(failure) => Err(status::of_failure(failure)),
    }
}

fn refuse_later_features(request: &StartWorkflowExecutionRequest) -> Result<(), Status> {
    not_yet("retry_policy", request.retry_policy.is_some())?;
    not_yet("cron_schedule", !request.cron_schedule.is_empty())?;
    not_yet("completion_callbacks", !request.completion_callbacks.is_empty())?;
    not_yet("versioning_override", request.versioning_override.is_some())?;
    not_yet("time_skipping_config", is_skipping(request.time_skipping_config.as_ref()))?;
    if let Some(options) = &request.on_conflict_options {
        not_yet("on_conflict_options.attach_request_id", options.attach_request_id)?;
        not_yet("on_conflict_options.attach_completion_callbacks", options.attach_completion_callbacks)?;
        not_yet("on_conflict_options.attach_links", options.attach_links)?;
    }
    unversioned(request.eager_worker_deployment_options.as_ref(), "eager_worker_deployment_options")
}

fn is_skipping(config: Option<&TimeSkippingConfig>) -> bool {
    config.is_some_and(|config| *config != TimeSkippingConfig::default())
}

fn begin(call: &Call<'_>, wanted: Wanted) -> Result<(WorkflowExecution, Begin), Status> {
    let checks = call.checks();
    check(&checks, &wanted)?;
    let workflow_type = wanted.workflow_type.map(|given| given.name).unwrap_or_default();
    checks.id("WorkflowType", &workflow_type)?;
    let begin = Begin {
        request_id: checks.request_id(wanted.request_id)?,
        workflow_type,
        task_queue: checks.task_queue(wanted.task_queue)?.name,
        input: wanted.input,
        execution_timeout_ms: span_ms("WorkflowExecutionTimeout", wanted.execution_timeout)?,
        run_timeout_ms: span_ms("WorkflowRunTimeout", wanted.run_timeout)?,
        task_timeout_ms: span_ms("WorkflowTaskTimeout", wanted.task_timeout)?,
        identity: wanted.identity,
        memo: kept(wanted.memo),
        search_attributes: kept(wanted.search_attributes),
        header: wanted.header,
        reuse_policy: wanted.reuse_policy,
        conflict_policy: wanted.conflict_policy,
        start_delay_ms: span_ms("WorkflowStartDelay", wanted.start_delay)?,
        user_metadata: kept(wanted.user_metadata),
        links: wanted.links,
        priority: kept(wanted.priority),
        eager: false,
        retention_ms: call.namespace.record.retention_ms,
        signal: None,
        continued_failure: None,
        last_completion_result: None,
    };
    let execution = WorkflowExecution { workflow_id: wanted.workflow_id, run_id: String::new() };
    Ok((execution, begin))
}

fn check(checks: &Checks<'_>, wanted: &Wanted) -> Result<(), Status> {
    checks.id("WorkflowId", &wanted.workflow_id)?;
    checks.length("Identity", &wanted.identity)?;
    checks.blob(wanted.input.as_ref())?;
    checks.blob(wanted.header.as_ref())?;
    checks.memo(wanted.memo.as_ref())?;
    checks.search_attributes(wanted.search_attributes.as_ref())?;
    checks.user_metadata(wanted.user_metadata.as_ref())?;
    checks.links(&wanted.links)?;
    checks.priority(wanted.priority.as_ref())?;
    check_policies(wanted.reuse_policy, wanted.conflict_policy)
}

/// Which policies go together. A policy that nobody knows is answered as Temporal's server answers it.
fn check_policies(reuse: i32, conflict: i32) -> Result<(), Status> {
    let unknown = |what, value| Status::internal(format!("unknown {what}: {value}"));
    let reuse = ReusePolicy::try_from(reuse).map_err(|_error| unknown("WorkflowIdReusePolicy", reuse))?;
    let conflict =
        ConflictPolicy::try_from(conflict).map_err(|_error| unknown("WorkflowIdConflictPolicy", conflict))?;
    if reuse == ReusePolicy::TerminateIfRunning && conflict != ConflictPolicy::Unspecified {
        return Err(invalid(
            "invalid WorkflowIdReusePolicy: TerminateIfRunning cannot be used together with a WorkflowIdConflictPolicy",
        ));
    }
    if reuse == ReusePolicy::RejectDuplicate && conflict == ConflictPolicy::TerminateExisting {
        return Err(invalid(
            "invalid WorkflowIdReusePolicy: RejectDuplicate cannot be used together with \
             WorkflowIdConflictPolicy TerminateExisting",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::common::RetryPolicy;
    use everlog_temporal_api::workflow::OnConflictOptions;
    use tonic::Code;

    use super::*;

    #[test]
    fn policies_that_contradict_each_other_are_refused() {
        let code =
            |reuse: i32, conflict: i32| check_policies(reuse, conflict).map_err(|status| status.code());
        assert_eq!(code(4, 0), Ok(()));
        assert_eq!(code(4, 2), Err(Code::InvalidArgument));
        assert_eq!(code(3, 3), Err(Code::InvalidArgument));
        assert_eq!(code(3, 2), Ok(()));
        assert_eq!(code(0, 99), Err(Code::Internal));
        assert_eq!(code(99, 0), Err(Code::Internal));
    }

    #[test]
    fn features_that_come_later_are_refused_by_name() {
        let refusal = |request: StartWorkflowExecutionRequest| {
            let status = refuse_later_features(&request).expect_err("it has to be refused");
            (status.code(), status.message().split(' ').next().unwrap_or_default().to_owned())
        };
        let empty = StartWorkflowExecutionRequest::default();
        let options = OnConflictOptions { attach_links: true, ..Default::default() };
        let cases = [
            (
                StartWorkflowExecutionRequest { retry_policy: Some(RetryPolicy::default()), ..empty.clone() },
                "retry_policy",
            ),
            (
                StartWorkflowExecutionRequest { cron_schedule: "@daily".into(), ..empty.clone() },
                "cron_schedule",
            ),
            (
                StartWorkflowExecutionRequest { completion_callbacks: vec![Bytes::new()], ..empty.clone() },
                "completion_callbacks",
            ),
            (
                StartWorkflowExecutionRequest { versioning_override: Some(Bytes::new()), ..empty.clone() },
                "versioning_override",
            ),
            (
                StartWorkflowExecutionRequest { on_conflict_options: Some(options), ..empty.clone() },
                "on_conflict_options.attach_links",
            ),
        ];
        for (request, field) in cases {
            assert_eq!(refusal(request), (Code::InvalidArgument, field.into()));
        }
        assert!(refuse_later_features(&empty).is_ok());
        let harmless = OnConflictOptions::default();
        let request = StartWorkflowExecutionRequest { on_conflict_options: Some(harmless), ..empty };
        assert!(refuse_later_features(&request).is_ok());
    }
}
