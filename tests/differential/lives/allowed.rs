//! What may differ between the lives of schedules at both servers. `docs/schedules.md` says so too, under "Differences".

use serde_json::Value;

use crate::allowed::{Allowed, everywhere, only_ours};
use crate::runner::Noted;

const fn row(
    field: &'static str,
    accepts: fn(Option<&Value>, Option<&Value>) -> bool,
    reason: &'static str,
) -> Allowed {
    Allowed { field, accepts, is_met: everywhere, reason }
}

/// One row each, by the end of its path; with a `*` by any part of it.
pub const ALLOWED_IN_LIVES: &[Allowed] = &[
    row(
        ".answer.error",
        |reference, everlog| {
            let message = everlog.and_then(|error| error["message"].as_str());
            reference.is_none() && message == Some("mismatched conflict token")
        },
        "an update with a wrong token is dropped and answered as if it were not",
    ),
    row(
        ".answer.error.message",
        |reference, everlog| {
            let starts = |value: Option<&Value>, word: &str| {
                value.and_then(Value::as_str).is_some_and(|text| text.starts_with(word))
            };
            let is_taken = starts(reference, "Workflow execution is already running");
            let is_gone = starts(reference, "workflow execution already completed");
            is_taken && starts(everlog, "schedule \"") || is_gone && starts(everlog, "schedule not found")
        },
        "the schedule is called by its own name, not by that of a workflow",
    ),
    row(".answer.error.details[].fields.3", only_ours, "a field of a younger API: the first run"),
    row(
        ".answer.conflict_token",
        |reference, everlog| number(reference) < number(everlog),
        "a creation answers the token that it began with, whatever its patch has changed",
    ),
    row(
        ".start_workflow_status",
        |reference, everlog| {
            is_status(reference, "RUNNING") && everlog.is_some() && !is_status(everlog, "RUNNING")
        },
        "a run that was ended is known to be when the schedule next looks, which may be never",
    ),
    row(
        ".start_workflow_status",
        |reference, everlog| reference.is_none() && is_status(everlog, "TERMINATED"),
        "a run that was deleted while it was open has no status",
    ),
    row(
        ".attributes.workflow_task_completed_event_id",
        |reference, everlog| reference.is_some() && everlog.is_some(),
        "how many tasks a run has had goes by when its worker polled",
    ),
    Allowed {
        field: ".attributes.last_completion_result",
        accepts: |reference, everlog| reference.is_some() && everlog.is_none(),
        is_met: completes_without_result,
        reason: "a run that completes without a result leaves the last one as it is",
    },
    row(".start_workflow.retry_policy.*", only_ours, "a younger server shows what holds by default"),
    row(".attributes.request_id", only_ours, "a field of a younger API"),
    Allowed {
        field: ".info.overlap_skipped",
        accepts: |reference, everlog| number(reference) < number(everlog),
        is_met: supersedes,
        reason: "an action whose place a newer one takes, by whose policy others end, is not counted",
    },
    Allowed {
        field: ".info.buffer_size",
        accepts: |reference, everlog| number(reference) > number(everlog),
        is_met: supersedes,
        reason: "it goes on waiting, until its turn comes and the newer one takes it",
    },
];

fn number(value: Option<&Value>) -> i64 {
    value.and_then(Value::as_i64).unwrap_or_default()
}

fn is_status(status: Option<&Value>, name: &str) -> bool {
    let status =
        status.and_then(Value::as_str).and_then(|text| text.strip_prefix("WORKFLOW_EXECUTION_STATUS_"));
    status == Some(name)
}

/// Some run has completed without a result.
fn completes_without_result(reference: &[Noted]) -> bool {
    let mut events = reference.iter().filter_map(|noted| noted.answer.as_array()).flatten();
    events.any(|event| {
        event["event"] == "WORKFLOW_EXECUTION_COMPLETED" && event["attributes"].get("result").is_none()
    })
}

/// An action may take the place of an older one.
fn supersedes(reference: &[Noted]) -> bool {
    let policies = reference.iter().filter_map(|noted| noted.answer["policies"].as_array()).flatten();
    policies.filter_map(Value::as_str).any(|policy| policy.ends_with("_OTHER"))
}
