//! The fields of commands that operators give: for open activities, and for whole runs. Spans are in ms.

use serde::{Deserialize, Serialize};

use crate::event::{Priority, RetryPolicy};

/// Hand out no attempt at open activities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "PauseActivity", deny_unknown_fields, default)]
pub struct GivenActivityPause {
    /// The activity of this id.
    pub activity_id: Option<String>,
    /// All of this type.
    pub activity_type: Option<String>,
    /// All.
    pub all: bool,
    /// Why.
    pub reason: Option<String>,
}

/// Hand out attempts at paused activities again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "UnpauseActivity", deny_unknown_fields, default)]
pub struct GivenActivityUnpause {
    /// The activity of this id.
    pub activity_id: Option<String>,
    /// All of this type.
    pub activity_type: Option<String>,
    /// All.
    pub all: bool,
    /// The next attempt counts as the first.
    pub reset_attempts: bool,
    /// What workers have reported is forgotten.
    pub reset_heartbeat: bool,
    /// Each waits for a random part of this, in ms.
    pub jitter_ms: Option<i64>,
}

/// The next attempt at open activities counts as the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "ResetActivity", deny_unknown_fields, default)]
pub struct GivenActivityReset {
    /// The activity of this id.
    pub activity_id: Option<String>,
    /// All of this type.
    pub activity_type: Option<String>,
    /// All.
    pub all: bool,
    /// One that is paused stays so.
    pub keep_paused: bool,
    /// What workers have reported is forgotten.
    pub reset_heartbeat: bool,
    /// Each waits for a random part of this, in ms.
    pub jitter_ms: Option<i64>,
    /// It gets the options of its Scheduled event back.
    pub restore_original: bool,
}

/// Give open activities other options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "UpdateActivityOptions", deny_unknown_fields, default)]
pub struct GivenActivityChange {
    /// The activity of this id.
    pub activity_id: Option<String>,
    /// All of this type.
    pub activity_type: Option<String>,
    /// All.
    pub all: bool,
    /// What changes.
    pub options: Option<GivenActivityOptions>,
    /// They get the options of their Scheduled events back.
    pub restore_original: bool,
}

/// Options of an activity that change: what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "ActivityOptions", deny_unknown_fields, default)]
pub struct GivenActivityOptions {
    /// The queue that its workers poll.
    pub task_queue: Option<String>,
    /// Limit over all attempts, in ms; 0 = none.
    pub schedule_to_close_timeout_ms: Option<i64>,
    /// How long an attempt may wait for a worker, in ms; 0 = as long as all attempts may take.
    pub schedule_to_start_timeout_ms: Option<i64>,
    /// How long an attempt may take, in ms; 0 = as long as all attempts may take.
    pub start_to_close_timeout_ms: Option<i64>,
    /// The longest silence of a worker, in ms; 0 = any.
    pub heartbeat_timeout_ms: Option<i64>,
    /// When a failed attempt is made again: all of it.
    pub retry_policy: Option<RetryPolicy<'static>>,
    /// Priority of its tasks: all of it.
    pub priority: Option<Priority<'static>>,
}

/// Hand out no task of an open run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "PauseWorkflow", deny_unknown_fields, default)]
pub struct GivenRunPause {
    /// Why.
    pub reason: Option<String>,
}

/// Hand out tasks of a paused run again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "UnpauseWorkflow", deny_unknown_fields, default)]
pub struct GivenRunUnpause {
    /// Why.
    pub reason: Option<String>,
}

/// Give an open run other options: what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "UpdateWorkflowOptions", deny_unknown_fields, default)]
pub struct GivenRunOptions {
    /// Priority of its tasks: all of it.
    pub priority: Option<Priority<'static>>,
    /// What overrides the version of its workers.
    pub versioning_override: Option<GivenOverride>,
    /// Nothing overrides the version of its workers any more.
    pub unset_versioning_override: bool,
}

/// What overrides the version of a run's workers: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "VersioningOverride", deny_unknown_fields, default)]
pub struct GivenOverride {
    /// The run goes along with the version that is current.
    pub auto_upgrade: bool,
    /// The run stays with this version.
    pub pinned: Option<GivenVersion>,
}

/// A version of a deployment of workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "DeploymentVersion", deny_unknown_fields, default)]
pub struct GivenVersion {
    /// The deployment.
    pub deployment_name: String,
    /// What its workers were built from.
    pub build_id: String,
}
