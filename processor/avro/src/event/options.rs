//! Public events of changed options of a run.

use std::borrow::Cow;

use everlog_engine::machine::attached_requests;
use serde::{Deserialize, Serialize};

use crate::event::fields::text;

/// Options of the run were changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionOptionsUpdated<'a> {
    /// The id of a start that has found the run, and that finds it again when it is repeated.
    pub attached_request_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a attached_requests::Updated> for WorkflowExecutionOptionsUpdated<'a> {
    fn from(event: &'a attached_requests::Updated) -> Self {
        Self { attached_request_id: text(&event.attached_request_id) }
    }
}
