//! What operators ask of activities and runs, and what rows and events say of it.

use bytes::Bytes;
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::operator::activity_control::{
    ActivityPause, ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity,
    UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::{ActivityOptions, ActivityOptionsPatch};
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, RunPause, UnpauseRun};
use everlog_engine::machine::{activity_attempt, reset, workflow_task};
use everlog_engine::payload::PriorityPatch;
use everlog_engine::request::Request;
use everlog_engine::time::Duration;
use everlog_engine::{ExecutionInfo, Properties};

use crate::events::{overriding, policy};

fn said() -> [String; 3] {
    ["operator".into(), "a bad deployment".into(), "request-1".into()]
}

fn selector(selection: ActivitySelection) -> Option<ActivitySelector> {
    Some(ActivitySelector { selection: Some(selection) })
}

fn parts() -> PriorityPatch {
    PriorityPatch { priority_key: Some(2), fairness_key: Some("tenant".into()), fairness_weight: Some(0.5) }
}

fn patch() -> ActivityOptionsPatch {
    let span = |ms| Some(Duration::from_ms(ms));
    ActivityOptionsPatch {
        task_queue: Some("other".into()),
        schedule_to_close_timeout: span(1_000),
        schedule_to_start_timeout: span(2_000),
        start_to_close_timeout: span(3_000),
        heartbeat_timeout: span(4_000),
        retry_policy: Some(policy()),
        initial_interval: span(5_000),
        backoff_coefficient: Some(1.5),
        maximum_interval: span(6_000),
        maximum_attempts: Some(7),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        priority_patch: Some(parts()),
    }
}

fn update() -> UpdateRunOptions {
    UpdateRunOptions {
        sets_override: true,
        overriding: Some(overriding()),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        priority_patch: Some(parts()),
        identity: "operator".into(),
    }
}

/// One of each kind.
pub fn orders() -> Vec<Request> {
    let [identity, reason, request_id] = said();
    vec![
        Request::PauseActivity(PauseActivity {
            selector: selector(ActivitySelection::Id("a".into())),
            identity: identity.clone(),
            reason: reason.clone(),
            request_id: request_id.clone(),
        }),
        Request::UnpauseActivity(UnpauseActivity {
            selector: selector(ActivitySelection::Type("Charge".into())),
            resets_attempts: true,
            resets_heartbeat: true,
            jitter_ms: 1_500,
        }),
        Request::ResetActivity(ResetActivity {
            selector: selector(ActivitySelection::All(true)),
            keeps_paused: true,
            resets_heartbeat: true,
            jitter_ms: 1_500,
            restores_options: true,
        }),
        Request::UpdateActivityOptions(UpdateActivityOptions {
            selector: selector(ActivitySelection::All(true)),
            patch: Some(Box::new(patch())),
        }),
        Request::PauseRun(PauseRun {
            identity: identity.clone(),
            reason: reason.clone(),
            request_id: request_id.clone(),
        }),
        Request::UnpauseRun(UnpauseRun { identity, reason, request_id }),
        Request::UpdateRunOptions(update()),
    ]
}

/// Requests that once did not know of operators.
pub fn grown() -> Vec<Request> {
    vec![
        Request::ClaimTask(workflow_task::Claim { stamp: 2, ..Default::default() }),
        Request::ClaimActivity(activity_attempt::Claim { stamp: 2, ..Default::default() }),
        Request::Reset(reset::Reset { options: Some(update()), ..Default::default() }),
    ]
}

/// An activity that is paused, was reset, and has other options.
pub fn activity() -> Activity {
    let [identity, reason, request_id] = said();
    let original = ActivityOptions {
        task_queue: "orders".into(),
        schedule_to_close_ms: 1_000,
        schedule_to_start_ms: 2_000,
        start_to_close_ms: 3_000,
        heartbeat_timeout_ms: 4_000,
        retry_policy: Some(policy()),
        priority: Some(Bytes::from_static(b"\x08\x03")),
    };
    Activity {
        pause: Some(ActivityPause { paused_ms: 1_763_700_000_000, identity, reason, request_id }),
        stamp: 3,
        is_reset: true,
        forgets_heartbeat: true,
        original: Some(Box::new(original)),
        ..Activity::default()
    }
}

/// Of a run that is paused, with another priority than it began with.
pub fn properties() -> Properties {
    let [identity, reason, request_id] = said();
    Properties {
        pause: Some(RunPause { paused_ms: 1_763_700_000_000, identity, reason, request_id }),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        ..Properties::default()
    }
}

/// Its head, with a workflow task that was offered a second time.
pub fn head() -> ExecutionInfo {
    let task = workflow_task::Task { stamp: 1, ..Default::default() };
    ExecutionInfo { status: 8, task: Some(task), ..ExecutionInfo::default() }
}
