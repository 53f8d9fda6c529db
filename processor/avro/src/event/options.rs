//! Public events of changed options of a run, and of its pauses.

use std::borrow::Cow;

use everlog_engine::machine::attached_requests;
use everlog_engine::machine::operator::run_pause::{RunPaused, RunUnpaused};
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::event::fields::{Priority, priority, text};

/// Options of the run were changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionOptionsUpdated<'a> {
    /// The id of a start that has found the run, and that finds it again when it is repeated.
    pub attached_request_id: Option<Cow<'a, str>>,
    /// What overrides the version of its workers from here on, as Temporal's protobuf VersioningOverride.
    pub versioning_override: Option<Blob>,
    /// Nothing overrides the version of its workers any more.
    pub unset_versioning_override: bool,
    /// Its priority from here on; one without fields means none.
    pub priority: Option<Priority<'a>>,
    /// Who has changed them.
    pub identity: Option<Cow<'a, str>>,
}

impl<'a> From<&'a attached_requests::Updated> for WorkflowExecutionOptionsUpdated<'a> {
    fn from(event: &'a attached_requests::Updated) -> Self {
        let overriding = event.versioning_override.as_ref();
        Self {
            attached_request_id: text(&event.attached_request_id),
            versioning_override: overriding.map(|given| Blob(given.encode_to_vec().into())),
            unset_versioning_override: event.unset_versioning_override,
            priority: priority(event.priority.as_ref()),
            identity: text(&event.identity),
        }
    }
}

/// The run was paused: workers get no task of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionPaused<'a> {
    /// Who asked.
    pub identity: Option<Cow<'a, str>>,
    /// Why.
    pub reason: Option<Cow<'a, str>>,
    /// Of the call.
    pub request_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a RunPaused> for WorkflowExecutionPaused<'a> {
    fn from(event: &'a RunPaused) -> Self {
        Self {
            identity: text(&event.identity),
            reason: text(&event.reason),
            request_id: text(&event.request_id),
        }
    }
}

/// The run was unpaused: workers get its tasks again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionUnpaused<'a> {
    /// Who asked.
    pub identity: Option<Cow<'a, str>>,
    /// Why.
    pub reason: Option<Cow<'a, str>>,
    /// Of the call.
    pub request_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a RunUnpaused> for WorkflowExecutionUnpaused<'a> {
    fn from(event: &'a RunUnpaused) -> Self {
        Self {
            identity: text(&event.identity),
            reason: text(&event.reason),
            request_id: text(&event.request_id),
        }
    }
}
