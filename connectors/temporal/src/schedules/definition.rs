//! What a schedule is to do: the API's messages, checked, as requests of the engine.

use everlog_engine::api_types::ReusePolicy;
use everlog_engine::machine::continuation;
use everlog_engine::machine::schedule::WORKFLOW_ID_PREFIX;
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::request::{BackfillRecord, PatchRecord, TriggerRecord};
use everlog_engine::machine::start::Begin;
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::state::{SchedulePolicies, ScheduleSettings};
use everlog_temporal_api::schedule as api;
use everlog_temporal_api::schedule::schedule_action::Action;
use everlog_temporal_api::workflow::NewWorkflowExecutionInfo;
use tonic::Status;

use crate::codec::payload::stored_copy;
use crate::codec::retry_policy;
use crate::codec::status::invalid;
use crate::codec::validation::span_ms;
use crate::codec::versioning;
use crate::namespaces::search_attributes;
use crate::schedules::spec;
use crate::server::call::Call;

/// What is appended to the Workflow Id of a run: a dash and a time such as this.
const TIME: &str = "-2009-11-10T23:00:00Z";

/// The Workflow Id of a schedule's run.
pub(crate) fn workflow_id(schedule_id: &str) -> String {
    format!("{WORKFLOW_ID_PREFIX}{schedule_id}")
}

/// Reads what a schedule is to do, and how it begins.
///
/// # Errors
/// INVALID_ARGUMENT: what is wrong with it.
pub(crate) fn read(
    call: &Call<'_>,
    schedule_id: &str,
    given: Option<api::Schedule>,
) -> Result<(ScheduleDefinition, ScheduleSettings), Status> {
    let given = given.unwrap_or_default();
    let Some(Action::StartWorkflow(action)) = given.action.and_then(|given| given.action) else {
        return Err(invalid("Only StartWorkflow action is supported for schedules"));
    };
    let workflow_id = action.workflow_id.clone();
    let action = begin(call, schedule_id, action)?;
    let definition = ScheduleDefinition {
        spec: spec::read(given.spec.unwrap_or_default())?,
        policies: policies(given.policies.unwrap_or_default())?,
        workflow_id,
        action,
    };
    let state = given.state.unwrap_or_default();
    if state.remaining_actions < 0 {
        return Err(invalid("remaining_actions is negative"));
    }
    let settings = ScheduleSettings {
        is_paused: state.paused,
        notes: state.notes,
        is_limited: state.limited_actions,
        remaining: state.remaining_actions,
    };
    Ok((definition, settings))
}

/// The start of the runs.
fn begin(call: &Call<'_>, schedule_id: &str, given: NewWorkflowExecutionInfo) -> Result<Begin, Status> {
    let checks = call.checks();
    checks.id("WorkflowId", &given.workflow_id)?;
    checks.length("WorkflowId", &format!("{}{TIME}", given.workflow_id))?;
    let workflow_type = given.workflow_type.map(|given| given.name).unwrap_or_default();
    checks.id("WorkflowType", &workflow_type)?;
    let task_queue = checks.task_queue(given.task_queue)?.name;
    if !given.cron_schedule.is_empty() {
        return Err(invalid("Scheduled workflow must not contain CronSchedule"));
    }
    match ReusePolicy::try_from(given.workflow_id_reuse_policy) {
        Ok(ReusePolicy::Unspecified | ReusePolicy::AllowDuplicate) => {}
        Ok(_) | Err(_) => return Err(invalid("Scheduled workflow must not contain WorkflowIDReusePolicy")),
    }
    checks.blob(given.input.as_ref())?;
    checks.blob(given.header.as_ref())?;
    checks.memo(given.memo.as_ref())?;
    checks.search_attributes(given.search_attributes.as_ref())?;
    checks.user_metadata(given.user_metadata.as_ref())?;
    checks.priority(given.priority.as_ref())?;
    let retry_policy = given.retry_policy.map(retry_policy::inner);
    continuation::check(retry_policy.as_ref(), "").map_err(invalid)?;
    let record = &call.namespace.record;
    let attributes = given.search_attributes.map(|given| search_attributes::typed(record, &given));
    Ok(Begin {
        workflow_type,
        task_queue,
        input: stored_copy(given.input),
        execution_timeout_ms: span_ms("WorkflowExecutionTimeout", given.workflow_execution_timeout)?,
        run_timeout_ms: span_ms("WorkflowRunTimeout", given.workflow_run_timeout)?,
        task_timeout_ms: span_ms("WorkflowTaskTimeout", given.workflow_task_timeout)?,
        identity: format!("temporal-scheduler-{}-{schedule_id}", record.name),
        memo: stored_copy(given.memo),
        search_attributes: attributes.transpose().map_err(invalid)?,
        header: stored_copy(given.header),
        user_metadata: stored_copy(given.user_metadata),
        priority: stored_copy(given.priority),
        retention_ms: record.retention_ms,
        retry_policy,
        versioning_override: versioning::overriding(&checks, given.versioning_override.as_ref())?,
        ..Begin::default()
    })
}

fn policies(given: api::SchedulePolicies) -> Result<SchedulePolicies, Status> {
    Ok(SchedulePolicies {
        overlap: overlap(given.overlap_policy)?,
        catchup_window: given.catchup_window.map(|span| spec::span("catchup_window", span)).transpose()?,
        pause_on_failure: given.pause_on_failure,
        keep_original_workflow_id: given.keep_original_workflow_id,
    })
}

fn overlap(number: i32) -> Result<i32, Status> {
    match OverlapPolicy::try_from(number) {
        Ok(policy) => Ok(policy.into()),
        Err(_unknown) => Err(invalid(format!("unknown overlap policy: {number}"))),
    }
}

/// Reads a patch.
///
/// # Errors
/// INVALID_ARGUMENT: what is wrong with it.
pub(crate) fn patch(given: api::SchedulePatch) -> Result<PatchRecord, Status> {
    let trigger = given.trigger_immediately.map(|trigger| {
        let at = trigger.scheduled_time.map(|at| spec::time("scheduled_time", at)).transpose()?;
        Ok::<_, Status>(TriggerRecord {
            scheduled_ms: at.map(|at| at.ms()),
            overlap: overlap(trigger.overlap_policy)?,
        })
    });
    let backfill = |range: api::BackfillRequest| {
        let (Some(start), Some(end)) = (range.start_time, range.end_time) else {
            return Err(invalid("a backfill needs start_time and end_time"));
        };
        Ok(BackfillRecord {
            start: spec::time("start_time", start)?,
            end: spec::time("end_time", end)?,
            overlap: overlap(range.overlap_policy)?,
        })
    };
    Ok(PatchRecord {
        trigger: trigger.transpose()?,
        backfills: given.backfill_request.into_iter().map(backfill).collect::<Result<_, Status>>()?,
        pause: given.pause,
        unpause: given.unpause,
    })
}
