//! What the attributes of commands have to be like that make something which may be tried again: activities, children, runs.

use crate::cron;
use crate::draft::Draft;
use crate::machine::activity::Schedule;
use crate::machine::child::Start as StartChild;
use crate::machine::close::{ContinueAsNew, within_size};
use crate::machine::completion::TaskFailure;
use crate::machine::properties;
use crate::retry;
use crate::time::{Duration, span_ms};
use crate::vocabulary::{RetryPolicy, TaskFailedCause as Cause};

/// What a command to schedule an activity has to be like.
pub(crate) fn of_activity(draft: &Draft<'_>, order: &Schedule) -> Result<(), String> {
    let id_bytes_max = draft.settings.id_bytes_max;
    let name = order.activity_type.as_ref().map_or("", |activity_type| &activity_type.name);
    for (what, text) in [("ActivityId", order.activity_id.as_str()), ("ActivityType", name)] {
        if text.is_empty() {
            return Err(format!("{what} is not set on ScheduleActivityTaskCommand."));
        }
        if text.len() as i64 > id_bytes_max {
            return Err(format!("{what} on ScheduleActivityTaskCommand exceeds length limit."));
        }
    }
    let queue = order.task_queue.as_ref().map_or("", |queue| &queue.name);
    if queue.is_empty() {
        return Err("invalid TaskQueue on ScheduleActivityTaskCommand: missing task queue name.".into());
    }
    if queue.len() as i64 > id_bytes_max {
        return Err("TaskQueue on ScheduleActivityTaskCommand exceeds length limit.".into());
    }
    let spans = [
        order.schedule_to_close_timeout,
        order.schedule_to_start_timeout,
        order.start_to_close_timeout,
        order.heartbeat_timeout,
    ];
    if spans.into_iter().flatten().any(Duration::is_negative) {
        return Err("Invalid timeout on ScheduleActivityTaskCommand: negative duration.".into());
    }
    if span_ms(order.schedule_to_close_timeout) == 0 && span_ms(order.start_to_close_timeout) == 0 {
        return Err(
            "A valid StartToClose or ScheduleToCloseTimeout is not set on ScheduleActivityTaskCommand."
                .into(),
        );
    }
    Ok(())
}

/// What a command to start a child has to be like; its retry policy with its defaults filled in.
pub(crate) fn of_child(draft: &Draft<'_>, order: &StartChild) -> Result<Option<RetryPolicy>, String> {
    let id_bytes_max = draft.settings.id_bytes_max;
    let on = "StartChildWorkflowExecutionCommand";
    let name = order.workflow_type.as_ref().map_or("", |workflow_type| &workflow_type.name);
    for (what, text) in [("WorkflowId", order.workflow_id.as_str()), ("WorkflowType", name)] {
        if text.is_empty() {
            return Err(format!("Required field {what} is not set on {on}."));
        }
        if text.len() as i64 > id_bytes_max {
            return Err(format!("{what} on {on} exceeds length limit."));
        }
    }
    if order.task_queue.as_ref().is_some_and(|queue| queue.name.len() as i64 > id_bytes_max) {
        return Err(format!("TaskQueue on {on} exceeds length limit."));
    }
    let spans = [
        ("WorkflowExecutionTimeout", order.workflow_execution_timeout),
        ("WorkflowRunTimeout", order.workflow_run_timeout),
        ("WorkflowTaskTimeout", order.workflow_task_timeout),
    ];
    for (what, span) in spans {
        if span.is_some_and(Duration::is_negative) {
            return Err(format!("Invalid {what} on {on}: negative duration."));
        }
    }
    let policy = retry::of_workflow(order.retry_policy.as_ref())
        .map_err(|reason| format!("invalid WorkflowRetryPolicy on {on}: {reason}"))?;
    cron::check(&order.cron_schedule).map_err(|reason| format!("invalid CronSchedule on {on}: {reason}"))?;
    if let Some(given) = &order.search_attributes {
        properties::check_number(given, draft.settings)?;
    }
    Ok(policy)
}

/// What a command to continue as new has to be like; its retry policy with its defaults filled in.
pub(crate) fn of_continuation(
    draft: &Draft<'_>,
    order: &ContinueAsNew,
) -> Result<Option<RetryPolicy>, TaskFailure> {
    let cause = Cause::BadContinueAsNewAttributes;
    let bad = |reason: &str| Err(TaskFailure::new(cause, reason));
    let id_bytes_max = draft.settings.id_bytes_max;
    if order.workflow_type.as_ref().is_some_and(|given| given.name.len() as i64 > id_bytes_max) {
        return bad("WorkflowType on ContinueAsNewWorkflowExecutionCommand exceeds length limit.");
    }
    if order.task_queue.as_ref().is_some_and(|given| given.name.len() as i64 > id_bytes_max) {
        return bad("TaskQueue on ContinueAsNewWorkflowExecutionCommand exceeds length limit.");
    }
    let spans = [order.workflow_run_timeout, order.workflow_task_timeout, order.backoff_start_interval];
    if spans.into_iter().flatten().any(Duration::is_negative) {
        return bad("Invalid duration on ContinueAsNewWorkflowExecutionCommand: negative duration.");
    }
    // A schedule is not looked at: one that cannot be read brings no further run.
    let policy = match retry::of_workflow(order.retry_policy.as_ref()) {
        Ok(policy) => policy,
        Err(reason) => {
            let place = "invalid WorkflowRetryPolicy on ContinueAsNewWorkflowExecutionCommand";
            return bad(&format!("{place}: {reason}"));
        }
    };
    if order.initial_versioning_behavior != 0 {
        return bad(
            "InitialVersioningBehavior on ContinueAsNewWorkflowExecutionCommand is not supported yet.",
        );
    }
    if let Some(given) = &order.search_attributes {
        properties::check_number(given, draft.settings)
            .map_err(|reason| TaskFailure::new(Cause::BadSearchAttributes, &reason))?;
        properties::check_sizes(&properties::read(Some(given)), draft.settings)
            .map_err(|reason| TaskFailure::fatal(cause, &reason))?;
    }
    let memo = order.memo.as_ref();
    if memo.is_some_and(|memo| memo.len() as i64 > draft.settings.memo_bytes_max)
        || properties::has_too_many_keys(memo, draft.settings)
    {
        let reason = "ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit.";
        return Err(TaskFailure::fatal(cause, reason));
    }
    within_size(
        draft,
        cause,
        order.input.as_ref(),
        "ContinueAsNewWorkflowExecutionCommandAttributes. Input",
    )?;
    Ok(policy)
}
