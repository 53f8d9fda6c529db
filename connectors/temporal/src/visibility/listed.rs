//! A run as lists show it.

use bytes::{Bytes, BytesMut};
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_partition::VisibleRun;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::workflow::WorkflowExecutionInfo;
use everlog_visibility::attribute::known;
use everlog_visibility::record::Record;
use prost::Message;

use crate::codec::proto_time::{duration, timestamp, timestamp_if_set};
use crate::namespaces::namespace::NamespaceRecord;

/// A listed run, with the attributes that the namespace has registered.
pub(crate) fn execution_info(namespace: &NamespaceRecord, run: VisibleRun) -> WorkflowExecutionInfo {
    let VisibleRun { record, memo, history_length, history_bytes, transitions, .. } = run;
    let record = record.unwrap_or_default();
    let (start_ms, close_ms) = (record.start_ms, record.close_ms);
    let search_attributes = shown(namespace, &record);
    let named = |workflow_id: &str, run_id: &str| WorkflowExecution {
        workflow_id: workflow_id.to_owned(),
        run_id: run_id.to_owned(),
    };
    let root = match record.root_workflow_id.as_str() {
        "" => named(&record.workflow_id, &record.run_id),
        root => named(root, &record.root_run_id),
    };
    let parent = (!record.parent_workflow_id.is_empty())
        .then(|| named(&record.parent_workflow_id, &record.parent_run_id));
    WorkflowExecutionInfo {
        execution: Some(named(&record.workflow_id, &record.run_id)),
        r#type: Some(WorkflowType { name: record.workflow_type }),
        start_time: Some(timestamp(start_ms)),
        close_time: timestamp_if_set(close_ms),
        status: record.status,
        history_length,
        execution_time: Some(timestamp(record.execution_ms)),
        memo: Some(Fields { entries: memo }.encode_to_vec().into()),
        search_attributes: Some(search_attributes),
        task_queue: record.task_queue,
        state_transition_count: transitions,
        history_size_bytes: history_bytes,
        execution_duration: (close_ms != 0).then(|| duration((close_ms - record.execution_ms).max(0))),
        parent_execution: parent,
        root_execution: Some(root),
        ..WorkflowExecutionInfo::default()
    }
}

/// Predefined and registered attributes: an encoded map. What was removed from the namespace is not shown.
fn shown(namespace: &NamespaceRecord, record: &Record) -> Bytes {
    let is_known = |entry: &&MapEntry| {
        namespace.search_attributes.contains_key(&entry.key) || known(&entry.key).is_some()
    };
    let mut map = BytesMut::new();
    for entry in record.search_attributes.iter().filter(is_known) {
        prost::encoding::message::encode(1, entry, &mut map);
    }
    map.freeze()
}
