//! The fields of a command: in Avro with payloads as records, in JSON with payloads as plain values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::command::operator_shape::{
    GivenActivityChange, GivenActivityPause, GivenActivityReset, GivenActivityUnpause, GivenRunOptions,
    GivenRunPause, GivenRunUnpause,
};
use crate::command::schedule_shape::{GivenPatch, ScheduleCreation, ScheduleReplacement};
use crate::event::{Priority, RetryPolicy};

/// An order for a workflow or a schedule; `P` is how a payload is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "WorkflowCommand", deny_unknown_fields, bound(deserialize = "P: Deserialize<'de>"))]
pub struct Command<P> {
    /// `start`, `signal`, `signal_with_start`, `update`, `update_with_start`, `cancel`, `terminate`, `complete_activity`,
    /// `fail_activity`, `create_schedule`, `update_schedule`, `patch_schedule`, `delete_schedule`, `pause_activity`,
    /// `unpause_activity`, `reset_activity`, `update_activity_options`, `pause`, `unpause` or `update_options`.
    pub r#type: String,
    /// The Workflow Id, or the id of the schedule: the same as the key.
    #[serde(default)]
    pub workflow_id: Option<String>,
    /// The run; absent means the current one.
    #[serde(default)]
    pub run_id: Option<String>,
    /// Who gives the order.
    #[serde(default)]
    pub identity: Option<String>,
    /// For `start`, `signal_with_start` and `update_with_start`.
    #[serde(default = "none")]
    pub start: Option<Start<P>>,
    /// For `signal` and `signal_with_start`.
    #[serde(default = "none")]
    pub signal: Option<Signal<P>>,
    /// For `cancel`.
    #[serde(default)]
    pub cancel: Option<Cancel>,
    /// For `terminate`.
    #[serde(default = "none")]
    pub terminate: Option<Terminate<P>>,
    /// For `complete_activity`.
    #[serde(default = "none")]
    pub complete_activity: Option<Complete<P>>,
    /// For `fail_activity`.
    #[serde(default = "none")]
    pub fail_activity: Option<Fail<P>>,
    /// For `update` and `update_with_start`.
    #[serde(default = "none")]
    pub update: Option<Update<P>>,
    /// For `create_schedule`.
    #[serde(default = "none")]
    pub create_schedule: Option<ScheduleCreation<P>>,
    /// For `update_schedule`.
    #[serde(default = "none")]
    pub update_schedule: Option<ScheduleReplacement<P>>,
    /// For `patch_schedule`.
    #[serde(default)]
    pub patch_schedule: Option<GivenPatch>,
    /// For `pause_activity`.
    #[serde(default)]
    pub pause_activity: Option<GivenActivityPause>,
    /// For `unpause_activity`.
    #[serde(default)]
    pub unpause_activity: Option<GivenActivityUnpause>,
    /// For `reset_activity`.
    #[serde(default)]
    pub reset_activity: Option<GivenActivityReset>,
    /// For `update_activity_options`.
    #[serde(default)]
    pub update_activity_options: Option<GivenActivityChange>,
    /// For `pause`.
    #[serde(default)]
    pub pause: Option<GivenRunPause>,
    /// For `unpause`.
    #[serde(default)]
    pub unpause: Option<GivenRunUnpause>,
    /// For `update_options`.
    #[serde(default)]
    pub update_options: Option<GivenRunOptions>,
}

/// Start a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "StartWorkflow", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct Start<P> {
    /// The name under which workers registered it.
    pub workflow_type: String,
    /// The queue that its workers poll.
    pub task_queue: String,
    /// Arguments.
    pub input: Option<Vec<P>>,
    /// Limit over the chain of runs, in ms.
    pub workflow_execution_timeout_ms: Option<i64>,
    /// Limit of each run, in ms.
    pub workflow_run_timeout_ms: Option<i64>,
    /// Start-to-close timeout of its workflow tasks, in ms.
    pub workflow_task_timeout_ms: Option<i64>,
    /// How long the first workflow task waits, in ms.
    pub start_delay_ms: Option<i64>,
    /// Memo.
    pub memo: Option<BTreeMap<String, P>>,
    /// Search attributes.
    pub search_attributes: Option<BTreeMap<String, P>>,
    /// Headers of the SDK.
    pub header: Option<BTreeMap<String, P>>,
    /// What to do about a closed run of the Workflow Id.
    pub reuse_policy: Option<String>,
    /// What to do about an open run of the Workflow Id.
    pub conflict_policy: Option<String>,
    /// A line about the run.
    pub summary: Option<P>,
    /// A page about the run.
    pub details: Option<P>,
    /// Priority of its tasks.
    pub priority: Option<Priority<'static>>,
    /// When a run that failed or took too long is tried again.
    pub retry_policy: Option<RetryPolicy<'static>>,
    /// When runs come.
    pub cron_schedule: Option<String>,
}

/// Send a signal to an open run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "SendSignal", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct Signal<P> {
    /// The signal's name.
    pub name: String,
    /// Its arguments.
    pub input: Option<Vec<P>>,
    /// Headers of the SDK.
    pub header: Option<BTreeMap<String, P>>,
}

/// Ask an open run to cancel itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "CancelWorkflow", deny_unknown_fields, default)]
pub struct Cancel {
    /// Why.
    pub reason: Option<String>,
    /// The first run of the chain that the run must belong to.
    pub first_run_id: Option<String>,
}

/// End an open run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename = "TerminateWorkflow",
    deny_unknown_fields,
    default,
    bound(deserialize = "P: Deserialize<'de>")
)]
pub struct Terminate<P> {
    /// Why.
    pub reason: Option<String>,
    /// More about it.
    pub details: Option<Vec<P>>,
    /// The first run of the chain that the run must belong to.
    pub first_run_id: Option<String>,
}

/// An activity returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename = "CompleteActivity",
    deny_unknown_fields,
    default,
    bound(deserialize = "P: Deserialize<'de>")
)]
pub struct Complete<P> {
    /// The activity's id.
    pub activity_id: Option<String>,
    /// The task token.
    pub token: Option<Blob>,
    /// Its result.
    pub result: Option<Vec<P>>,
}

/// An attempt at an activity failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "FailActivity", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct Fail<P> {
    /// The activity's id.
    pub activity_id: Option<String>,
    /// The task token.
    pub token: Option<Blob>,
    /// What went wrong.
    pub message: String,
    /// The type of the error.
    pub error_type: Option<String>,
    /// No retry whatever the policy says.
    pub non_retryable: bool,
    /// The next attempt waits this long, in ms.
    pub next_retry_delay_ms: Option<i64>,
    /// Who says so.
    pub source: Option<String>,
    /// Where it was raised.
    pub stack_trace: Option<String>,
    /// More about it.
    pub details: Option<Vec<P>>,
    /// How far the attempt was.
    pub last_heartbeat_details: Option<Vec<P>>,
}

/// Send an update to an open run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "SendUpdate", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct Update<P> {
    /// The update's id; absent: that of the command.
    pub id: Option<String>,
    /// The name of its handler.
    pub name: String,
    /// Its arguments.
    pub input: Option<Vec<P>>,
    /// Headers of the SDK.
    pub header: Option<BTreeMap<String, P>>,
}

fn none<T>() -> Option<T> {
    None
}

/// Derived defaults would ask for one of `P`.
macro_rules! empty {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl<P> Default for $name<P> {
            fn default() -> Self {
                Self { $($field: Default::default()),* }
            }
        })*
    };
}

empty! {
    Command {
        r#type, workflow_id, run_id, identity, start, signal, cancel, terminate, complete_activity, fail_activity,
        update, create_schedule, update_schedule, patch_schedule, pause_activity, unpause_activity, reset_activity,
        update_activity_options, pause, unpause, update_options
    }
    Start {
        workflow_type, task_queue, input, workflow_execution_timeout_ms, workflow_run_timeout_ms,
        workflow_task_timeout_ms, start_delay_ms, memo, search_attributes, header, reuse_policy, conflict_policy,
        summary, details, priority, retry_policy, cron_schedule
    }
    Signal { name, input, header }
    Terminate { reason, details, first_run_id }
    Complete { activity_id, token, result }
    Fail {
        activity_id, token, message, error_type, non_retryable, next_retry_delay_ms, source, stack_trace, details,
        last_heartbeat_details
    }
    Update { id, name, input, header }
}
