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

const OVERLAPPING_FAILURE: &str =
    "a run of the policy that allows all is not looked after there, so its failure pauses nothing";

const OVERLAPPING_TRIGGER: &str = "a trigger without a policy of its own is not known there as one that allows all, and is told what others have left";

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
    row(".start_workflow.retry_policy.*", only_ours, "a younger server shows what holds by default"),
    row(".attributes.request_id", only_ours, "a field of a younger API"),
    row(
        ".answer.error.details[].fields.1",
        |reference, everlog| reference == Some(&Value::from("<id>")) && everlog.is_some(),
        "after some steps the workflow behind a schedule begins anew there, by a request of its own",
    ),
    row(
        ".attributes.prev_auto_reset_points",
        |reference, everlog| {
            everlog.is_none() && reference.and_then(Value::as_object).is_some_and(|points| points.is_empty())
        },
        "a run that follows one whose time was over says that it has no points to go back to",
    ),
    Allowed {
        field: ".attributes.continued_failure",
        accepts: |reference, everlog| reference.is_some() && everlog.is_none(),
        is_met: allows_all_by_default,
        reason: OVERLAPPING_TRIGGER,
    },
    Allowed {
        field: ".attributes.last_completion_result",
        accepts: |reference, everlog| reference.is_some() && everlog.is_none(),
        is_met: allows_all_by_default,
        reason: OVERLAPPING_TRIGGER,
    },
    Allowed {
        field: ".schedule.conflict_token",
        accepts: |reference, everlog| number(reference) < number(everlog),
        is_met: pauses_on_failure,
        reason: OVERLAPPING_FAILURE,
    },
    Allowed {
        field: ".schedule.schedule.state.paused",
        accepts: |reference, everlog| reference.is_none() && everlog == Some(&Value::Bool(true)),
        is_met: pauses_on_failure,
        reason: OVERLAPPING_FAILURE,
    },
    Allowed {
        field: ".schedule.schedule.state.notes",
        accepts: |_reference, everlog| {
            everlog.and_then(Value::as_str).is_some_and(|notes| notes.starts_with("paused due to workflow "))
        },
        is_met: pauses_on_failure,
        reason: OVERLAPPING_FAILURE,
    },
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

/// A failure pauses the schedule, and runs may overlap.
fn pauses_on_failure(reference: &[Noted]) -> bool {
    let pauses = reference.iter().any(|noted| {
        let policy = noted.answer.pointer("/schedule/schedule/policies/pause_on_failure");
        policy.is_some_and(|pauses| *pauses == Value::Bool(true))
    });
    pauses && names_policy(reference, "_ALLOW_ALL")
}

/// An action may take the place of an older one.
fn supersedes(reference: &[Noted]) -> bool {
    names_policy(reference, "_OTHER")
}

/// Actions may overlap, and some have no policy of their own.
fn allows_all_by_default(reference: &[Noted]) -> bool {
    names_policy(reference, "_ALLOW_ALL") && names_policy(reference, "_UNSPECIFIED")
}

/// Some step names an overlap policy that ends so.
fn names_policy(reference: &[Noted], end: &str) -> bool {
    let policies = reference.iter().filter_map(|noted| noted.answer["policies"].as_array()).flatten();
    policies.filter_map(Value::as_str).any(|policy| policy.ends_with(end))
}
