//! What the attributes of commands have to be like that make something which may be tried again: activities, children, runs.

use bytes::Bytes;

use crate::api_types::{RetryPolicy, TaskFailedCause as Cause, TaskQueue};
use crate::command::CommandAttributes;
use crate::cron;
use crate::draft::Draft;
use crate::machine::activity::Schedule;
use crate::machine::child::Start as StartChild;
use crate::machine::close::{ContinueAsNew, within_size};
use crate::machine::memo_and_search_attributes;
use crate::machine::workflow_task_completed::{Fault, TaskFailure, ValidationFailure};
use crate::payload::check_priority;
use crate::retry;
use crate::time::{Duration, span_ms};

/// What a command to schedule an activity has to be like; its retry policy with its defaults filled in.
pub(crate) fn of_activity(draft: &Draft<'_>, order: &Schedule) -> Result<RetryPolicy, TaskFailure> {
    let (id, on) = (&order.activity_id, "ScheduleActivityTaskCommand");
    let name = order.activity_type.as_ref().map_or("", |activity_type| &activity_type.name);
    let bad = |reason: String| TaskFailure::new(Cause::BadScheduleActivityAttributes, &reason);
    let whose = format!("ActivityId={id} ActivityType={name}");
    let queue = order.task_queue.as_ref().map(|queue| queue.name.as_str());
    check_queue(draft, queue)
        .map_err(|reason| TaskFailure::kept(format!("invalid TaskQueue on {on}: {reason}. {whose}")))?;
    if id.is_empty() {
        return Err(bad(format!("ActivityId is not set on {on}. ActivityType={name}")));
    }
    if name.is_empty() {
        return Err(bad(format!("ActivityType is not set on {on}. ActivityID={id}")));
    }
    let policy = retry::normalized(order.retry_policy.as_ref()).map_err(|reason| {
        // The name of the command as Temporal's server spells it here.
        let on = "SechduleActivityTaskCommand";
        TaskFailure::kept(format!("invalid ActivityRetryPolicy on {on}: {reason}. {whose}"))
    })?;
    for (what, text) in [("ActivityId", id.as_str()), ("ActivityType", name)] {
        if let Some(excess) = excess(draft, text) {
            return Err(bad(format!("{what} on {on} exceeds length limit. {whose} {excess}")));
        }
    }
    let spans = [
        ("ScheduleToCloseTimeout", order.schedule_to_close_timeout),
        ("ScheduleToStartTimeout", order.schedule_to_start_timeout),
        ("StartToCloseTimeout", order.start_to_close_timeout),
        ("HeartbeatTimeout", order.heartbeat_timeout),
    ];
    if let Some((what, why)) = fault(&spans) {
        return Err(bad(format!("Invalid {what} for {on}: {why}. {whose}")));
    }
    if span_ms(order.schedule_to_close_timeout) == 0 && span_ms(order.start_to_close_timeout) == 0 {
        let reason = "A valid StartToClose or ScheduleToCloseTimeout is not set on";
        return Err(bad(format!("{reason} {on}. {whose}")));
    }
    check_priority(order.priority.as_ref(), draft.settings).map_err(|reason| bad(reason.into()))?;
    same_build(draft, order.use_workflow_build_id, order.task_queue.as_ref(), "Activity").map_err(bad)?;
    Ok(policy)
}

/// The builds of one queue are nothing to another.
fn same_build(
    draft: &Draft<'_>,
    is_asked: bool,
    queue: Option<&TaskQueue>,
    whose: &str,
) -> Result<(), String> {
    let own = &draft.run.start.task_queue;
    if is_asked && queue.is_some_and(|queue| !queue.name.is_empty() && queue.name != *own) {
        return Err(format!("{whose} with UseCompatibleVersion cannot run on different task queue."));
    }
    Ok(())
}

/// What a command to start a child has to be like; its retry policy with its defaults filled in.
pub(crate) fn of_child(
    draft: &Draft<'_>,
    order: &StartChild,
    namespace: &str,
) -> Result<Option<RetryPolicy>, TaskFailure> {
    let (id, on) = (&order.workflow_id, "StartChildWorkflowExecutionCommand");
    let name = order.workflow_type.as_ref().map_or("", |workflow_type| &workflow_type.name);
    let bad = |reason: String| TaskFailure::new(Cause::BadStartChildExecutionAttributes, &reason);
    if id.is_empty() {
        let whose = format!("WorkflowType={name} Namespace={namespace}");
        return Err(bad(format!("Required field WorkflowId is not set on {on}. {whose}")));
    }
    if name.is_empty() {
        let whose = format!("WorkflowId={id} Namespace={namespace}");
        return Err(bad(format!("Required field WorkflowType is not set on {on}. {whose}")));
    }
    let whose = child_named(order, namespace);
    let too_long = |what: &str| format!("{what} on {on} exceeds length limit.");
    if let Some(excess) = excess(draft, id) {
        let what = too_long("WorkflowId");
        return Err(bad(format!(
            "{what} WorkflowId={id} {excess} WorkflowType={name} Namespace={namespace}"
        )));
    }
    if let Some(excess) = excess(draft, name) {
        let what = too_long("WorkflowType");
        return Err(bad(format!(
            "{what} WorkflowId={id} WorkflowType={name} {excess} Namespace={namespace}"
        )));
    }
    let spans = [
        ("WorkflowExecutionTimeout", order.workflow_execution_timeout),
        ("WorkflowRunTimeout", order.workflow_run_timeout),
        ("WorkflowTaskTimeout", order.workflow_task_timeout),
    ];
    if let Some((what, why)) = fault(&spans) {
        return Err(bad(format!("Invalid {what} on {on}: {why}. {whose}")));
    }
    let kept =
        |what: &str, reason: &str| TaskFailure::kept(format!("invalid {what} on {on}: {reason}. {whose}"));
    let policy = retry::of_workflow(order.retry_policy.as_ref())
        .map_err(|reason| kept("WorkflowRetryPolicy", &reason))?;
    cron::check(&order.cron_schedule).map_err(|reason| kept("CronSchedule", reason))?;
    let queue = order.task_queue.as_ref().map(|queue| queue.name.as_str()).filter(|name| !name.is_empty());
    check_queue(draft, queue.or(Some(&draft.run.start.task_queue)))
        .map_err(|reason| kept("TaskQueue", &reason))?;
    check_priority(order.priority.as_ref(), draft.settings).map_err(|reason| bad(reason.into()))?;
    check_number(draft, order.search_attributes.as_ref())
        .map_err(|reason| unfit_attributes(CHILD, &reason, &whose))?;
    let queue = order.task_queue.as_ref();
    same_build(draft, order.inherit_build_id, queue, "StartChildWorkflowExecution").map_err(bad)?;
    Ok(policy)
}

/// A child in the words of a refusal.
fn child_named(order: &StartChild, namespace: &str) -> String {
    let name = order.workflow_type.as_ref().map_or("", |workflow_type| &workflow_type.name);
    format!("WorkflowId={} WorkflowType={name} Namespace={namespace}", order.workflow_id)
}

/// The commands as Temporal's server names them where their search attributes do not do.
const CHILD: &str = "StartChildWorkflowCommand";
const CONTINUATION: &str = "ContinueAsNewWorkflowExecutionCommand";

/// Search attributes of a run that is to be: the worker keeps its task.
fn unfit_attributes(on: &str, reason: &str, whose: &str) -> TaskFailure {
    TaskFailure::kept(format!("invalid SearchAttributes on {on}: {reason}. {whose}"))
}

fn check_number(draft: &Draft<'_>, given: Option<&Bytes>) -> Result<(), String> {
    given.map_or(Ok(()), |given| memo_and_search_attributes::check_number(given, draft.settings))
}

/// A command that does not fit what is there, as whoever brought it has found.
pub(crate) fn unfit(
    draft: &Draft<'_>,
    said: &CommandAttributes,
    found: &ValidationFailure,
    namespace: &str,
) -> TaskFailure {
    match (Fault::try_from(found.fault), said) {
        (Ok(Fault::Namespace), _) => TaskFailure::unknown_namespace(&found.reason),
        // What else is wrong with them is told first.
        (Ok(Fault::Values), CommandAttributes::StartChild(order)) => of_child(draft, order, namespace)
            .err()
            .unwrap_or_else(|| unfit_attributes(CHILD, &found.reason, &child_named(order, namespace))),
        (Ok(Fault::Values), CommandAttributes::ContinueAsNew(order)) => {
            let whose = Next::of(draft, order).named();
            let unfit = || unfit_attributes(CONTINUATION, &found.reason, &whose);
            of_next(draft, order).err().unwrap_or_else(unfit)
        }
        (Ok(Fault::Attributes | Fault::Values) | Err(_), _) => {
            TaskFailure::new(Cause::BadSearchAttributes, &found.reason)
        }
    }
}

/// By how much a text is too long to name something, if it is.
pub(crate) fn excess(draft: &Draft<'_>, text: &str) -> Option<String> {
    let limit = draft.settings.id_bytes_max;
    (text.len() as i64 > limit).then(|| format!("Length={} Limit={limit}", text.len()))
}

/// A queue that a command names. Where it is none, the worker keeps its task. A reserved name is that of a run of the server itself,
/// which may go on with the queue that it has.
fn check_queue(draft: &Draft<'_>, queue: Option<&str>) -> Result<(), String> {
    let reserved = "/_sys/";
    match queue {
        None => Err("taskQueue is not set".into()),
        Some("") => Err("missing task queue name".into()),
        Some(name) if name.len() as i64 > draft.settings.id_bytes_max => {
            Err("taskQueue length exceeds limit".into())
        }
        Some(name) if name.starts_with(reserved) && name != draft.run.start.task_queue => {
            Err(format!("task queue name cannot start with reserved prefix {reserved}"))
        }
        Some(_) => Ok(()),
    }
}

/// The first span that is none, and why.
fn fault<'a>(spans: &[(&'a str, Option<Duration>)]) -> Option<(&'a str, &'static str)> {
    spans.iter().find_map(|(what, span)| Some((*what, span.and_then(Duration::fault)?)))
}

/// The type and the queue of a run that is to be: its own, or those of the run before it.
struct Next<'a> {
    name: &'a str,
    queue: &'a str,
}

impl<'a> Next<'a> {
    fn of(draft: &'a Draft<'_>, order: &'a ContinueAsNew) -> Self {
        let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        let name = order.workflow_type.as_ref().and_then(|workflow_type| given(&workflow_type.name));
        let queue = order.task_queue.as_ref().and_then(|queue| given(&queue.name));
        Self {
            name: name.unwrap_or_else(|| draft.run.workflow_type()),
            queue: queue.unwrap_or(&draft.run.start.task_queue),
        }
    }

    fn named(&self) -> String {
        let Self { name, queue } = self;
        format!("WorkflowType={name} TaskQueue=name:\"{queue}\" kind:TASK_QUEUE_KIND_NORMAL")
    }
}

/// What a command to continue as new has to be like; its retry policy with its defaults filled in.
pub(crate) fn of_continuation(
    draft: &Draft<'_>,
    order: &ContinueAsNew,
) -> Result<Option<RetryPolicy>, TaskFailure> {
    let cause = Cause::BadContinueAsNewAttributes;
    let policy = of_next(draft, order)?;
    if let Some(given) = &order.search_attributes {
        memo_and_search_attributes::check_sizes(
            &memo_and_search_attributes::read(Some(given)),
            draft.settings,
        )
        .map_err(|reason| TaskFailure::fatal(cause, &reason))?;
    }
    let memo = order.memo.as_ref();
    if memo.is_some_and(|memo| memo.len() as i64 > draft.settings.memo_bytes_max)
        || memo_and_search_attributes::has_too_many_keys(memo, draft.settings)
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

/// What the run that follows has to be like, up to its search attributes: what they are worth is looked at behind that.
fn of_next(draft: &Draft<'_>, order: &ContinueAsNew) -> Result<Option<RetryPolicy>, TaskFailure> {
    let on = CONTINUATION;
    let bad = |reason: &str| TaskFailure::new(Cause::BadContinueAsNewAttributes, reason);
    let next = Next::of(draft, order);
    let whose = next.named();
    if let Some(excess) = excess(draft, next.name) {
        let reason = format!("WorkflowType={} {excess}", next.name);
        return Err(bad(&format!("WorkflowType on {on} exceeds length limit. {reason}")));
    }
    check_queue(draft, Some(next.queue))
        .map_err(|reason| TaskFailure::kept(format!("error validating {on} TaskQueue: {reason}. {whose}")))?;
    let spans = [
        ("WorkflowRunTimeout", order.workflow_run_timeout),
        ("WorkflowTaskTimeout", order.workflow_task_timeout),
        ("BackoffStartInterval", order.backoff_start_interval),
    ];
    if let Some((what, why)) = fault(&spans) {
        return Err(bad(&format!("Invalid {what} on {on}: {why}. {whose}")));
    }
    // A schedule is not looked at: one that cannot be read brings no further run.
    let policy = retry::of_workflow(order.retry_policy.as_ref()).map_err(|reason| {
        TaskFailure::kept(format!("invalid WorkflowRetryPolicy on {on}: {reason}. {whose}"))
    })?;
    if order.initial_versioning_behavior != 0 {
        return Err(bad(&format!("InitialVersioningBehavior on {on} is not supported yet.")));
    }
    check_number(draft, order.search_attributes.as_ref())
        .map_err(|reason| unfit_attributes(on, &reason, &whose))?;
    same_build(draft, order.inherit_build_id, order.task_queue.as_ref(), "ContinueAsNew")
        .map_err(|reason| bad(&reason))?;
    Ok(policy)
}
