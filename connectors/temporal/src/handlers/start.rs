//! StartWorkflowExecution and SignalWithStartWorkflowExecution.

use bytes::Bytes;
use everlog_engine::api_types::{ConflictPolicy, ReusePolicy};
use everlog_engine::machine::attached_requests::OnConflict;
use everlog_engine::machine::continuation;
use everlog_engine::machine::signal::Signal;
use everlog_engine::machine::start::Begin;
use everlog_engine::request::Request;
use everlog_engine::{Reply, Started};
use everlog_partition::WorkflowTask;
use everlog_temporal_api::common::link::workflow_event::{EventReference, Reference};
use everlog_temporal_api::common::link::{Variant, WorkflowEvent};
use everlog_temporal_api::common::{Link, TimeSkippingConfig, WorkflowExecution};
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::workflow::OnConflictOptions;
use everlog_temporal_api::workflowservice::{
    SignalWithStartWorkflowExecutionRequest, SignalWithStartWorkflowExecutionResponse,
    StartWorkflowExecutionRequest, StartWorkflowExecutionResponse,
};
use prost::Message;
use tonic::Status;

use crate::codec::callbacks;
use crate::codec::payload::stored_copy;
use crate::codec::retry_policy;
use crate::codec::status::{self, invalid};
use crate::codec::validation::{Checks, not_yet, span_ms, unversioned};
use crate::codec::versioning;
use crate::handlers::workflow_task;
use crate::namespaces::search_attributes;
use crate::server::call::Call;
use crate::tasks::response;

pub(crate) async fn start(
    call: &Call<'_>,
    request: StartWorkflowExecutionRequest,
) -> Result<StartWorkflowExecutionResponse, Status> {
    let (execution, begin) = begin(call, request)?;
    let workflow_id = execution.workflow_id.clone();
    let (started, task) = send(call, execution, begin).await?;
    let (eager_workflow_task, receipt) = match task {
        Some(task) => {
            let (response, receipt) = response::of_workflow_task(call.response_context(), task)?;
            (Some(response), receipt)
        }
        None => (None, None),
    };
    workflow_task::accept(receipt);
    let link = link_to_start(call, &workflow_id, &started.run_id);
    Ok(StartWorkflowExecutionResponse {
        run_id: started.run_id,
        first_execution_run_id: started.first_run_id,
        started: started.started,
        status: started.status.into(),
        eager_workflow_task,
        link: Some(link),
    })
}

pub(crate) async fn signal_with_start(
    call: &Call<'_>,
    mut request: SignalWithStartWorkflowExecutionRequest,
) -> Result<SignalWithStartWorkflowExecutionResponse, Status> {
    let checks = call.checks();
    checks.id("SignalName", &request.signal_name)?;
    checks.blob(request.signal_input.as_ref())?;
    check_policies(request.workflow_id_reuse_policy, request.workflow_id_conflict_policy)?;
    if request.workflow_id_conflict_policy == i32::from(ConflictPolicy::Fail) {
        return Err(invalid(
            "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported for this operation.",
        ));
    }
    request.request_id = checks.request_id(request.request_id)?;
    let signal = Signal {
        name: std::mem::take(&mut request.signal_name),
        input: request.signal_input.take(),
        identity: request.identity.clone(),
        header: request.header.clone(),
        request_id: request.request_id.clone(),
        links: request.links.clone(),
    };
    let (execution, begin) = begin(call, start_of(request))?;
    let (started, _) = send(call, execution, Begin { signal: Some(signal), ..begin }).await?;
    Ok(SignalWithStartWorkflowExecutionResponse {
        run_id: started.run_id,
        first_execution_run_id: started.first_run_id,
        started: started.started,
        signal_link: None,
    })
}

/// The start in a signal-with-start. `control` is left out, because it is deprecated and has no effect.
fn start_of(request: SignalWithStartWorkflowExecutionRequest) -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: request.namespace,
        workflow_id: request.workflow_id,
        workflow_type: request.workflow_type,
        task_queue: request.task_queue,
        input: request.input,
        workflow_execution_timeout: request.workflow_execution_timeout,
        workflow_run_timeout: request.workflow_run_timeout,
        workflow_task_timeout: request.workflow_task_timeout,
        identity: request.identity,
        request_id: request.request_id,
        workflow_id_reuse_policy: request.workflow_id_reuse_policy,
        workflow_id_conflict_policy: request.workflow_id_conflict_policy,
        retry_policy: request.retry_policy,
        cron_schedule: request.cron_schedule,
        memo: request.memo,
        search_attributes: request.search_attributes,
        header: request.header,
        workflow_start_delay: request.workflow_start_delay,
        user_metadata: request.user_metadata,
        links: request.links,
        versioning_override: request.versioning_override,
        priority: request.priority,
        time_skipping_config: request.time_skipping_config,
        ..StartWorkflowExecutionRequest::default()
    }
}

async fn send(
    call: &Call<'_>,
    execution: WorkflowExecution,
    begin: Begin,
) -> Result<(Started, Option<WorkflowTask>), Status> {
    let input = call.request_record(execution, Request::Start(Box::new(begin)));
    call.is_for(&input.workflow_id);
    match call.gateway.router.start(input).await {
        Ok((Reply::Started(started), task)) => Ok((started, task)),
        Ok((Reply::Rejected(rejection), _)) => Err(status::of_rejection(rejection)),
        Ok(_) => Err(status::unexpected_reply()),
        Err(failure) => Err(status::of_failure(failure)),
    }
}

/// A link to the first event of a run.
pub(crate) fn link_to_start(call: &Call<'_>, workflow_id: &str, run_id: &str) -> Bytes {
    let event_ref = EventReference { event_id: 1, event_type: EventType::WorkflowExecutionStarted.into() };
    let event = WorkflowEvent {
        namespace: call.namespace.record.name.clone(),
        workflow_id: workflow_id.into(),
        run_id: run_id.into(),
        reference: Some(Reference::EventRef(event_ref)),
    };
    Link { variant: Some(Variant::WorkflowEvent(event)) }.encode_to_vec().into()
}

fn refuse_later_features(request: &StartWorkflowExecutionRequest) -> Result<(), Status> {
    callbacks::refuse(&request.completion_callbacks)?;
    not_yet("time_skipping_config", is_skipping(request.time_skipping_config.as_ref()))?;
    // Without callbacks there are none to attach.
    let attaches_them =
        |options: &OnConflictOptions| options.attach_completion_callbacks && !options.attach_request_id;
    if request.on_conflict_options.as_ref().is_some_and(attaches_them) {
        return Err(invalid("attaching request ID is required for attaching completion callbacks"));
    }
    unversioned(request.eager_worker_deployment_options.as_ref(), "eager_worker_deployment_options")
}

fn is_skipping(config: Option<&TimeSkippingConfig>) -> bool {
    config.is_some_and(|config| *config != TimeSkippingConfig::default())
}

pub(crate) fn begin(
    call: &Call<'_>,
    request: StartWorkflowExecutionRequest,
) -> Result<(WorkflowExecution, Begin), Status> {
    refuse_later_features(&request)?;
    let checks = call.checks();
    check(&checks, &request)?;
    let workflow_type = request.workflow_type.map(|given| given.name).unwrap_or_default();
    checks.id("WorkflowType", &workflow_type)?;
    let start_delay_ms = span_ms("WorkflowStartDelay", request.workflow_start_delay)?;
    let retry_policy = request.retry_policy.map(retry_policy::inner);
    continuation::check(retry_policy.as_ref(), &request.cron_schedule).map_err(invalid)?;
    let begin = Begin {
        request_id: checks.request_id(request.request_id)?,
        workflow_type,
        task_queue: checks.task_queue(request.task_queue)?.name,
        input: request.input,
        execution_timeout_ms: span_ms("WorkflowExecutionTimeout", request.workflow_execution_timeout)?,
        run_timeout_ms: span_ms("WorkflowRunTimeout", request.workflow_run_timeout)?,
        task_timeout_ms: span_ms("WorkflowTaskTimeout", request.workflow_task_timeout)?,
        identity: request.identity,
        memo: stored_copy(request.memo),
        search_attributes: typed(call, request.search_attributes)?,
        header: request.header,
        reuse_policy: request.workflow_id_reuse_policy,
        conflict_policy: request.workflow_id_conflict_policy,
        start_delay_ms,
        user_metadata: stored_copy(request.user_metadata),
        links: request.links,
        priority: stored_copy(request.priority),
        eager: request.request_eager_execution && start_delay_ms == 0,
        retention_ms: call.namespace.record.retention_ms,
        signal: None,
        continued_failure: request.continued_failure,
        last_completion_result: request.last_completion_result,
        parent: None,
        watcher: None,
        retry_policy,
        cron_schedule: request.cron_schedule,
        update: None,
        on_conflict: request
            .on_conflict_options
            .map(|options| OnConflict { request_id: options.attach_request_id, links: options.attach_links }),
        versioning_override: versioning::overriding(&checks, request.versioning_override.as_ref())?,
        inherited_pinned_version: None,
    };
    let execution = WorkflowExecution { workflow_id: request.workflow_id, run_id: String::new() };
    Ok((execution, begin))
}

/// Search attributes with registered names, and their types.
fn typed(call: &Call<'_>, given: Option<Bytes>) -> Result<Option<Bytes>, Status> {
    let typed = given.map(|given| search_attributes::typed(&call.namespace.record, &given));
    typed.transpose().map_err(invalid)
}

fn check(checks: &Checks<'_>, request: &StartWorkflowExecutionRequest) -> Result<(), Status> {
    checks.id("WorkflowId", &request.workflow_id)?;
    checks.blob(request.input.as_ref())?;
    checks.blob(request.header.as_ref())?;
    checks.blob(request.last_completion_result.as_ref())?;
    checks.blob(request.continued_failure.as_ref())?;
    checks.memo(request.memo.as_ref())?;
    checks.search_attributes(request.search_attributes.as_ref())?;
    checks.user_metadata(request.user_metadata.as_ref())?;
    checks.links(&request.links)?;
    checks.priority(request.priority.as_ref())?;
    if !request.cron_schedule.is_empty() && request.workflow_start_delay.is_some() {
        return Err(invalid("CronSchedule and WorkflowStartDelay may not be used together."));
    }
    check_policies(request.workflow_id_reuse_policy, request.workflow_id_conflict_policy)
}

/// Checks that the policies are compatible. An unknown policy is refused as by Temporal's server.
fn check_policies(reuse: i32, conflict: i32) -> Result<(), Status> {
    let unknown = |what, value| Status::internal(format!("unknown {what}: {value}"));
    let reuse = ReusePolicy::try_from(reuse).map_err(|_error| unknown("WorkflowIdReusePolicy", reuse))?;
    let conflict =
        ConflictPolicy::try_from(conflict).map_err(|_error| unknown("WorkflowIdConflictPolicy", conflict))?;
    if reuse == ReusePolicy::TerminateIfRunning && conflict != ConflictPolicy::Unspecified {
        return Err(invalid(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together \
             with a WorkflowIDConflictPolicy",
        ));
    }
    if reuse == ReusePolicy::RejectDuplicate && conflict == ConflictPolicy::TerminateExisting {
        return Err(invalid(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together with \
             WorkflowIdConflictPolicy WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        let skipping = TimeSkippingConfig { enabled: true, ..Default::default() };
        let request = StartWorkflowExecutionRequest { time_skipping_config: Some(skipping), ..empty.clone() };
        assert_eq!(refusal(request), (Code::InvalidArgument, "time_skipping_config".into()));
        let request =
            StartWorkflowExecutionRequest { completion_callbacks: vec![Bytes::new()], ..empty.clone() };
        assert_eq!(refusal(request), (Code::Unimplemented, "unknown".into()));
        assert!(refuse_later_features(&empty).is_ok());
        let with = |options| {
            let request =
                StartWorkflowExecutionRequest { on_conflict_options: Some(options), ..Default::default() };
            refuse_later_features(&request).map_err(|status| status.message().to_owned())
        };
        let (attach_request_id, attach_links) = (true, true);
        let attach_completion_callbacks = true;
        let all = OnConflictOptions { attach_request_id, attach_completion_callbacks, attach_links };
        assert_eq!(with(all), Ok(()));
        let alone = OnConflictOptions { attach_completion_callbacks: true, ..Default::default() };
        let needed = "attaching request ID is required for attaching completion callbacks";
        assert_eq!(with(alone), Err(needed.into()));
    }

    #[test]
    fn a_signal_with_start_is_held_against_the_same_features() {
        let request = SignalWithStartWorkflowExecutionRequest {
            time_skipping_config: Some(TimeSkippingConfig { enabled: true, ..Default::default() }),
            cron_schedule: "@daily".into(),
            identity: "client".into(),
            ..Default::default()
        };
        let start = start_of(request);
        assert_eq!((start.identity.as_str(), start.cron_schedule.as_str()), ("client", "@daily"));
        let status = refuse_later_features(&start).expect_err("it has to be refused");
        assert_eq!(status.message(), "time_skipping_config is not supported yet.");
    }
}
