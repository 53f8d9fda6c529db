//! What may differ from a Temporal server, field by field, each with its reason. As short as can be.
//!
//! The reference is server 1.29.1 (`temporal` 1.5.1), which is older than the API that Everlog speaks.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::runner::Noted;

/// One field that may differ.
pub struct Allowed {
    /// The end of its path; with `*` behind it, any part of it.
    pub field: &'static str,
    /// What is accepted: the reference's value and ours.
    pub accepts: fn(Option<&Value>, Option<&Value>) -> bool,
    /// In which programs: what the reference has answered.
    pub is_met: fn(&[Noted]) -> bool,
    pub reason: &'static str,
}

/// In every program.
pub fn everywhere(_reference: &[Noted]) -> bool {
    true
}

/// An activity is to be heard of before its end.
fn has_heartbeats(reference: &[Noted]) -> bool {
    events(reference)
        .any(|event| event.pointer("/activity_task_scheduled_event_attributes/heartbeat_timeout").is_some())
}

/// The events of all histories that were read at the end.
fn events(reference: &[Noted]) -> impl Iterator<Item = &Value> {
    let is_history = |noted: &&Noted| noted.step.starts_with("history of");
    reference.iter().filter(is_history).filter_map(|noted| noted.answer.as_array()).flatten()
}

/// Options of an activity were changed.
fn has_other_options(reference: &[Noted]) -> bool {
    reference.iter().any(|noted| noted.answer.get("activity_options").is_some())
}

/// An activity was paused.
fn has_paused(reference: &[Noted]) -> bool {
    let activities =
        reference.iter().filter_map(|noted| noted.answer.get("pending_activities")?.as_array()).flatten();
    let mut paused = activities.filter_map(|activity| activity.get("paused"));
    paused.any(|paused| *paused == Value::Bool(true))
}

/// A description told that an activity was paused, be it by then or before.
fn has_pause_info(reference: &[Noted]) -> bool {
    const INFO: &str = "/workflow_execution_info/search_attributes/indexed_fields/TemporalPauseInfo";
    reference.iter().any(|noted| noted.answer.pointer(INFO).is_some())
}

/// A run that is over was described with an activity that is still paused.
fn has_paused_at_the_end(reference: &[Noted]) -> bool {
    const RUNNING: &str = "WORKFLOW_EXECUTION_STATUS_RUNNING";
    reference.iter().any(|noted| {
        let status = noted.answer.pointer("/workflow_execution_info/status");
        status.is_some_and(|status| status != RUNNING) && has_paused(std::slice::from_ref(noted))
    })
}

/// What overrides the version of a run was changed.
fn has_override(reference: &[Noted]) -> bool {
    events(reference).any(|event| event.get("workflow_execution_options_updated_event_attributes").is_some())
}

/// Both have it, whatever it is.
fn both(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some() && everlog.is_some()
}

fn only_theirs(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some() && everlog.is_none()
}

/// Only ours has it.
pub fn only_ours(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_none() && everlog.is_some()
}

/// Theirs names nobody, or itself.
fn forgotten(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_none_or(|identity| identity == "history-service") && everlog.is_some()
}

fn any(_reference: Option<&Value>, _everlog: Option<&Value>) -> bool {
    true
}

/// A workflow was reset.
fn has_reset(reference: &[Noted]) -> bool {
    const CAUSE: &str = "WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW";
    events(reference).any(|event| {
        event.pointer("/workflow_task_failed_event_attributes/cause").is_some_and(|cause| cause == CAUSE)
    })
}

/// A query was told that nobody polls.
fn is_unpolled(reference: &[Noted]) -> bool {
    let mut messages = reference.iter().filter_map(|noted| noted.answer.pointer("/error/message")?.as_str());
    messages.any(|message| message.starts_with(UNPOLLED))
}

fn unpolled(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some_and(|code| code == "FailedPrecondition")
        && everlog.is_some_and(|code| code == "DeadlineExceeded")
}

/// Theirs is as long, or up to a fifth shorter.
fn jittered(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    span_s(reference).zip(span_s(everlog)).is_some_and(|(theirs, ours)| (0.8 * ours..ours).contains(&theirs))
}

const ACCEPTED: &str = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED";
const COMPLETED: &str = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED";

/// Of an update no more than its acceptance was told to one, and its outcome to another.
fn is_told_early(reference: &[Noted]) -> bool {
    let told = |stage: &str| -> BTreeSet<&str> {
        let answers = reference.iter().map(|noted| {
            let with_start = noted.answer.pointer("/responses/1/update_workflow");
            with_start.unwrap_or(&noted.answer)
        });
        let so_far = answers.filter(|answer| answer.get("stage").is_some_and(|told| told == stage));
        so_far.filter_map(|answer| answer.pointer("/update_ref/update_id").and_then(Value::as_str)).collect()
    };
    !told(ACCEPTED).is_disjoint(&told(COMPLETED))
}

/// Theirs says that it is accepted, ours that it is completed.
fn further(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some_and(|stage| stage == ACCEPTED) && everlog.is_some_and(|stage| stage == COMPLETED)
}

/// One message that only ours has.
fn one_message(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_none() && everlog.and_then(Value::as_array).is_some_and(|messages| messages.len() == 1)
}

/// Ours has it, theirs or not.
fn ours(_reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    everlog.is_some()
}

/// A span as JSON has it, in seconds.
fn span_s(value: Option<&Value>) -> Option<f64> {
    value?.as_str()?.strip_suffix('s')?.parse().ok()
}

/// Spans that are the same but for what passes between two looks at a clock.
fn nearly(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    const PASSES_S: f64 = 0.01;
    span_s(reference).zip(span_s(everlog)).is_some_and(|(theirs, ours)| (theirs - ours).abs() < PASSES_S)
}

/// Spans that each has measured on its own clock, which theirs says to the nanosecond.
fn measured(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    const PASSES_S: f64 = 0.5;
    span_s(reference).zip(span_s(everlog)).is_some_and(|(theirs, ours)| {
        let theirs_ms = theirs * 1e3;
        let is_measured = (theirs_ms - theirs_ms.round()).abs() > 1e-6;
        is_measured && (theirs - ours).abs() < PASSES_S
    })
}

/// Theirs is as many, or one more.
fn one_more(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    let count = |value: Option<&Value>| value.and_then(Value::as_i64);
    count(reference).zip(count(everlog)).is_some_and(|(theirs, ours)| theirs == ours + 1)
}

/// Theirs is one to three more.
fn some_more(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    let count = |value: Option<&Value>| value.and_then(Value::as_i64);
    count(reference).zip(count(everlog)).is_some_and(|(theirs, ours)| (1..=3).contains(&(theirs - ours)))
}

/// Theirs says that there is nothing, ours says nothing.
fn nothing(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    reference.is_some_and(is_empty) && everlog.is_none()
}

/// Ours says that there is nothing, theirs says nothing.
fn empty(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    nothing(everlog, reference)
}

fn year_one(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some_and(|time| time == "time of the year 1") && everlog.is_none()
}

fn internal(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some_and(|code| code == "Internal") && everlog.is_some_and(|code| code == "NotFound")
}

fn not_found_detail(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    let ours = everlog.and_then(|detail| detail.get("type"));
    reference.is_none() && ours.is_some_and(|name| name == "NotFoundFailure")
}

const UNPOLLED: &str = "no poller seen for task queue recently";

/// What is said with the same code in other words: theirs and ours, each as a part.
const WORDS: &[(&str, &str)] = &[
    ("Namespace is empty.", "Namespace not set on request."),
    // Until the run leaves the cache.
    ("workflow update was aborted by closing workflow", " not found"),
    ("workflow update was aborted by closing workflow", "workflow execution already completed"),
    (UNPOLLED, "time is over"),
    // Which rate it is about is said by younger servers.
    ("Setting rate limit on workflow task queues", "Setting fairness key rate limit on workflow task queues"),
    // See the row of the code.
    ("something went wrong, please retry", " not found"),
];

fn words(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (theirs, ours) = (text(reference), text(everlog));
    WORDS.iter().any(|(their, our)| theirs.contains(their) && ours.contains(our))
}

const fn row(
    field: &'static str,
    accepts: fn(Option<&Value>, Option<&Value>) -> bool,
    reason: &'static str,
) -> Allowed {
    Allowed { field, accepts, is_met: everywhere, reason }
}

/// A row for some programs alone.
const fn only_where(is_met: fn(&[Noted]) -> bool, row: Allowed) -> Allowed {
    Allowed { is_met, ..row }
}

/// All of them.
pub const ALLOWED: &[Allowed] = &[
    only_where(
        has_other_options,
        row(
            ".expiration_time",
            only_ours,
            "there the time of an activity whose limit was changed is not told",
        ),
    ),
    only_where(
        has_other_options,
        row(".schedule_to_close_timeout", both, "there a worker is told the options that the workflow gave"),
    ),
    only_where(has_other_options, row(".start_to_close_timeout", both, "the same")),
    only_where(has_other_options, row(".heartbeat_timeout", both, "the same")),
    only_where(
        has_pause_info,
        row(
            ".indexed_fields.TemporalPauseInfo",
            only_theirs,
            "there it stays when a paused activity ends or a run closes",
        ),
    ),
    only_where(
        has_paused,
        row(
            ".last_failure",
            only_ours,
            "there an activity that is unpaused forgets why it has failed before",
        ),
    ),
    only_where(
        has_override,
        row(
            ".search_attributes.indexed_fields*",
            any,
            "there they are set to nothing, and a build that no worker has told is unversioned",
        ),
    ),
    only_where(
        has_override,
        row(".versioning_info", only_theirs, "there an override that is unset leaves an empty one"),
    ),
    row(
        ".history_size_bytes",
        ours,
        "the size is that of what a server stores, and ours stores events otherwise",
    ),
    row("[].task_id", any, "a number of the server's own: only its order says something"),
    row(".first_execution_run_id", only_ours, "answers of a younger API than the reference's"),
    row(".workflow_execution_signaled_event_attributes.request_id", only_ours, "a field of a younger API"),
    row(
        ".prev_auto_reset_points",
        nothing,
        "a run that follows one whose time was over says that it has no points to go back to",
    ),
    row(".run_expiration_time", year_one, "Go's zero time where there is none; ours leaves it out"),
    row(".poller_scaling_decision*", only_theirs, "advice by the load of the moment; ours gives none"),
    row(".workflow_task_started_event_attributes.request_id", any, "a name that the server gives to a poll"),
    row(
        ".workflow_task_started_event_attributes.identity",
        forgotten,
        "a task for updates alone is written when it times out or its run is terminated, and there it is not said who had it",
    ),
    row(
        ".start_workflow.link",
        only_ours,
        "there a start whose update the run has completed already is answered without a link",
    ),
    row(".request_id_infos.<key *", any, "a request that the server made up itself, for a child"),
    row(".activity_options.task_queue.kind", only_ours, "ours says that it is a normal queue"),
    row(
        ".activity_options.task_queue.normal_name",
        only_theirs,
        "the normal name of a normal queue is its name",
    ),
    row(
        ".clusters[].cluster_name",
        both,
        "what the cluster is called, where it is, and into how much it is divided",
    ),
    row(".clusters[].address", both, "the same"),
    row(".clusters[].history_shard_count", both, "the same"),
    row(".clusters[].http_address", only_theirs, "ours serves no HTTP there"),
    row(".active_cluster_name", both, "what the cluster is called"),
    row(".config.bad_binaries", nothing, "no server tells of bad builds any more"),
    row(".namespace_info.capabilities*", only_ours, "what younger servers can do as well"),
    row(".namespace_info.limits", only_ours, "a field of a younger API"),
    row("_partitions[].owner_host_name", both, "the name of the node"),
    row(".expire_time", both, "a namespace keeps closed runs for a day there"),
    row(
        ".effective_rate_limit.requests_per_second",
        both,
        "the limit that the server itself sets; ours sets none",
    ),
    row(
        ".backlog_count_hint",
        any,
        "a task of a run that was closed counts until its turn, here; one that was made again counts twice, there",
    ),
    only_where(
        has_heartbeats,
        row(
            ".state_transition_count",
            one_more,
            "there the heartbeat timeout of an activity is written down anew when it has been put off",
        ),
    ),
    only_where(
        has_paused,
        row(
            ".state_transition_count",
            some_more,
            "there a call about an activity that finds it as it asks for is written down as well",
        ),
    ),
    only_where(
        has_reset,
        row(
            ".state_transition_count",
            one_more,
            "there a reset is written down at the latest run as well, though that has closed before",
        ),
    ),
    row(
        ".workflow_task_scheduled_event_attributes.start_to_close_timeout",
        jittered,
        "a task that is tried for the third time or later gets more time, there with a jitter",
    ),
    only_where(
        is_unpolled,
        row(
            ".error.code",
            unpolled,
            "a query that nobody came for ends with its deadline; there it is told if nobody has begun to poll for 20 s",
        ),
    ),
    row(
        ".last_attempt_complete_time",
        only_ours,
        "the end of an attempt that has timed out: there only ends are noted that a worker has told",
    ),
    row(".message", words, "the same refusal in other words"),
    row(
        ".start_workflow.link.workflow_event.namespace",
        only_ours,
        "there the link of a run that a start with an update has found names no namespace",
    ),
    row(
        ".activity_tasks[].retry_policy",
        only_ours,
        "an activity that is handed out with the completion does not tell the policy there",
    ),
    row(".fields.3", only_ours, "the first run of the chain in a refused start: answers of a younger API"),
    row(
        ".next_page_token",
        only_theirs,
        "a page that happens to end with the history promises another, which is empty",
    ),
    row(
        ".pending_workflow_task",
        only_theirs,
        "a run that is over has no task and no activity pending; there it tells what was",
    ),
    row(
        ".pending_activities",
        only_theirs,
        "a run that is over has no task and no activity pending; there it tells what was",
    ),
    only_where(
        has_paused_at_the_end,
        row(
            ".pending_activities[]",
            only_theirs,
            "a run that is over has only those activities that are paused; there it tells all that were pending",
        ),
    ),
    row(
        ".pending_children",
        only_theirs,
        "of its children a run that is over has those pending that go on; there it tells all that there were",
    ),
    row(
        ".activity_tasks[].priority",
        only_ours,
        "an activity that is handed out with the completion does not tell its priority there",
    ),
    row(
        ".error.code",
        internal,
        "to ask for an update of a run that was ended for a large command is an internal error there",
    ),
    row(".error.details[]", not_found_detail, "the same"),
    row(
        ".messages",
        one_message,
        "an update that was admitted is durable here; there it is lost with the cached run, which a call that fails clears",
    ),
    row(".suggest_continue_as_new_reasons", only_ours, "a field of a younger API"),
    row(".auto_reset_points", empty, "ours says that there are none, theirs nothing"),
    row(".non_retryable_error_types", only_ours, "the description of an activity leaves them out"),
    row(
        ".current_retry_interval",
        nearly,
        "there it is measured between two moments, and so a few microseconds longer than was asked for",
    ),
    row(
        ".first_workflow_task_backoff",
        measured,
        "what is left of the delay of a run that was woken before its time is as long as its calls came early",
    ),
    only_where(
        is_told_early,
        row(
            ".stage",
            further,
            "who waits for an outcome is told of the acceptance alone when the server drops the run from its cache; ours waits on",
        ),
    ),
    only_where(is_told_early, row(".outcome", only_ours, "the same")),
];

/// Programs of the fixed set that differ in what no row above may cover, each with what is ours to mend. They are not held
/// against their recorded answers until that is done.
pub const OPEN: &[(&[u64], &str)] = &[];
