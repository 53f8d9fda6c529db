//! What lists and filters know of a run.

use everlog_engine::api_types::MapEntry;

use crate::attribute::Attribute;
use crate::value::Value;

/// Values by attribute.
pub trait Values {
    /// The value of an attribute; none where the run has none, or one that is not of the attribute's type.
    fn value(&self, attribute: &Attribute) -> Option<Value<'_>>;
}

/// What lists and filters know of a run. It changes at the start, at the close, and with the search attributes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Record {
    /// The Workflow Id.
    #[prost(string, tag = "1")]
    pub workflow_id: String,
    /// The run's UUID.
    #[prost(string, tag = "2")]
    pub run_id: String,
    /// The workflow type's name.
    #[prost(string, tag = "3")]
    pub workflow_type: String,
    /// The run's normal task queue.
    #[prost(string, tag = "4")]
    pub task_queue: String,
    /// A number of `WorkflowExecutionStatus`.
    #[prost(int32, tag = "5")]
    pub status: i32,
    /// When the run began, in ms since 1970-01-01 UTC.
    #[prost(int64, tag = "6")]
    pub start_ms: i64,
    /// When its first workflow task may run, in ms.
    #[prost(int64, tag = "7")]
    pub execution_ms: i64,
    /// When it closed, in ms; 0 while it is open.
    #[prost(int64, tag = "8")]
    pub close_ms: i64,
    /// Events of its history; 0 while it is open.
    #[prost(int64, tag = "9")]
    pub history_length: i64,
    /// Encoded bytes of its history; 0 while it is open.
    #[prost(int64, tag = "10")]
    pub history_bytes: i64,
    /// Steps that changed it; 0 while it is open.
    #[prost(int64, tag = "11")]
    pub transitions: i64,
    /// The Workflow Id of its parent; empty without one.
    #[prost(string, tag = "12")]
    pub parent_workflow_id: String,
    /// The run of its parent; empty without one.
    #[prost(string, tag = "13")]
    pub parent_run_id: String,
    /// The Workflow Id of the first ancestor; empty where it is the run itself.
    #[prost(string, tag = "14")]
    pub root_workflow_id: String,
    /// The run of the first ancestor; empty where it is the run itself.
    #[prost(string, tag = "15")]
    pub root_run_id: String,
    /// Predefined and custom search attributes as they were given: encoded payloads, sorted by key.
    #[prost(message, repeated, tag = "16")]
    pub search_attributes: Vec<MapEntry>,
    /// The journal's offset at which it began.
    #[prost(uint64, tag = "17")]
    pub start_offset: u64,
    /// The journal's offset at which it closed; 0 while it is open.
    #[prost(uint64, tag = "18")]
    pub close_offset: u64,
}
