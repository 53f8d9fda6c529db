//! A marker: a result of workflow code that replay reads back (side effects, local activities, versions).

use bytes::Bytes;

use crate::api_types::{MapEntry, TaskFailedCause as Cause};
use crate::command::Command;
use crate::draft::Draft;
use crate::machine::command_validation;
use crate::machine::workflow_task_completed::{TaskFailure, extras};

/// Command: record a marker.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Record {
    /// What kind of marker the SDK means.
    #[prost(string, tag = "1")]
    pub marker_name: String,
    /// Named payloads, opaque.
    #[prost(message, repeated, tag = "2")]
    pub details: Vec<MapEntry>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub header: Option<Bytes>,
    /// A failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub failure: Option<Bytes>,
}

/// Event: a marker was recorded.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Recorded {
    /// What kind of marker the SDK means.
    #[prost(string, tag = "1")]
    pub marker_name: String,
    /// Named payloads, opaque.
    #[prost(message, repeated, tag = "2")]
    pub details: Vec<MapEntry>,
    /// The task that recorded it.
    #[prost(int64, tag = "3")]
    pub workflow_task_completed_event_id: i64,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub header: Option<Bytes>,
    /// A failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub failure: Option<Bytes>,
}

pub(crate) fn record(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Record,
    completed: i64,
) -> Result<(), TaskFailure> {
    let bad = |reason: &str| Err(TaskFailure::new(Cause::BadRecordMarkerAttributes, reason));
    if order.marker_name.is_empty() {
        return bad("MarkerName is not set on RecordMarkerCommand.");
    }
    if let Some(excess) = command_validation::excess(draft, &order.marker_name) {
        let reason = "MarkerName on RecordMarkerCommand exceeds length limit.";
        return bad(&format!("{reason} MarkerName={} {excess}", order.marker_name));
    }
    if bytes(&order.details) as i64 > draft.settings.blob_bytes_max {
        return Err(TaskFailure::fatal(
            Cause::BadRecordMarkerAttributes,
            "RecordMarkerCommandAttributes.Details exceeds size limit.",
        ));
    }
    let recorded = Recorded {
        marker_name: order.marker_name.clone(),
        details: order.details.clone(),
        workflow_task_completed_event_id: completed,
        header: order.header.clone(),
        failure: order.failure.clone(),
    };
    draft.emit_at(draft.now_ms(), recorded.into(), extras(command));
    Ok(())
}

/// Bytes of a marker's details, their names among them.
pub(crate) fn bytes(details: &[MapEntry]) -> usize {
    details.iter().map(|entry| entry.key.len() + entry.value.len()).sum()
}
