//! Memo and search attributes: maps of opaque values that a workflow may change.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};
use prost::encoding::{DecodeContext, decode_key, skip_field};
use prost::{DecodeError, Message, length_delimiter_len};

use crate::api_types::{Fields, MapEntry, TaskFailedCause as Cause};
use crate::command::Command;
use crate::draft::{Draft, bytes};
use crate::machine::close::within_size;
use crate::machine::workflow_task_completed::{TaskFailure, extras};
use crate::payload;
use crate::run::{Properties, Run};
use crate::settings::Settings;

/// Command: change search attributes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UpsertSearchAttributes {
    /// An encoded map; a null value removes its key.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub search_attributes: Option<Bytes>,
}

/// Command: change the memo.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Modify {
    /// An encoded map; a null value removes its key.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub upserted_memo: Option<Bytes>,
}

/// Event: search attributes were changed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SearchAttributesUpserted {
    /// The task that asked for it.
    #[prost(int64, tag = "1")]
    pub workflow_task_completed_event_id: i64,
    /// What was changed, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub search_attributes: Option<Bytes>,
}

/// Event: the memo was changed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Modified {
    /// The task that asked for it.
    #[prost(int64, tag = "1")]
    pub workflow_task_completed_event_id: i64,
    /// What was changed, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub upserted_memo: Option<Bytes>,
}

impl Properties {
    /// The state given at a start: every entry, even one that says nothing.
    pub fn given(memo: Option<&Bytes>, search_attributes: Option<&Bytes>) -> Self {
        let all = |given: Option<&Bytes>| sorted(read(given)).into_values().collect();
        Self { memo: all(memo), search_attributes: all(search_attributes), ..Self::default() }
    }
}

pub(crate) fn upsert_search_attributes(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &UpsertSearchAttributes,
    completed: i64,
) -> Result<(), TaskFailure> {
    let Some(given) = &order.search_attributes else {
        let reason = "SearchAttributes is not set on UpsertWorkflowSearchAttributesCommand.";
        return Err(TaskFailure::new(Cause::BadSearchAttributes, reason));
    };
    check_number(given, draft.settings)
        .map_err(|reason| TaskFailure::new(Cause::BadSearchAttributes, &reason))?;
    let changes = read(Some(given));
    if changes.is_empty() {
        let reason = "IndexedFields is not set on UpsertWorkflowSearchAttributesCommand.";
        return Err(TaskFailure::new(Cause::BadSearchAttributes, reason));
    }
    let merged = merged(&draft.run.properties.search_attributes, changes);
    check_sizes(&merged, draft.settings)
        .map_err(|reason| TaskFailure::fatal(Cause::BadSearchAttributes, &reason))?;
    let upserted = SearchAttributesUpserted {
        workflow_task_completed_event_id: completed,
        search_attributes: Some(given.clone()),
    };
    draft.emit_at(draft.now_ms(), upserted.into(), extras(command));
    Ok(())
}

pub(crate) fn modify(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Modify,
    completed: i64,
) -> Result<(), TaskFailure> {
    let cause = Cause::BadModifyWorkflowPropertiesAttributes;
    let bad = |reason: &str| Err(TaskFailure::new(cause, reason));
    let Some(given) = &order.upserted_memo else {
        return bad("UpsertedMemo is not set on ModifyWorkflowPropertiesCommand.");
    };
    let too_large = || {
        let reason = "ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.";
        Err(TaskFailure::fatal(cause, reason))
    };
    within_size(draft, cause, Some(given), "ModifyWorkflowPropertiesCommandAttributes")?;
    match count(given) {
        Ok(0) => return bad("UpsertedMemo.Fields is not set on ModifyWorkflowPropertiesCommand."),
        Ok(keys) if are_too_many(keys, draft.settings) => return too_large(),
        Ok(_) | Err(_) => {}
    }
    let Ok(Fields { entries: changes }) = Fields::decode(given.clone()) else {
        return bad("UpsertedMemo on ModifyWorkflowPropertiesCommand cannot be read.");
    };
    let entries = merged(&draft.run.properties.memo, changes);
    let too_many = are_too_many(entries.len() as i64, draft.settings);
    if too_many || bytes(&Fields { entries }) > draft.settings.memo_bytes_max {
        return too_large();
    }
    let modified =
        Modified { workflow_task_completed_event_id: completed, upserted_memo: Some(given.clone()) };
    draft.emit_at(draft.now_ms(), modified.into(), extras(command));
    Ok(())
}

/// Checks number and sizes of a set of search attributes.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_search_attributes(given: &Bytes, settings: &Settings) -> Result<(), String> {
    check_number(given, settings)?;
    check_sizes(&read(Some(given)), settings)
}

/// Counts the entries of an encoded map before anybody takes memory for them.
pub(crate) fn count(given: &Bytes) -> Result<i64, DecodeError> {
    let mut rest = given.clone();
    let mut entries = 0;
    while rest.has_remaining() {
        let (tag, wire_type) = decode_key(&mut rest)?;
        skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
        entries += i64::from(tag == 1);
    }
    Ok(entries)
}

pub(crate) fn check_number(given: &Bytes, settings: &Settings) -> Result<(), String> {
    let unread = |_error| "search attributes cannot be read".to_owned();
    let (entries, limit) = (count(given).map_err(unread)?, settings.search_attributes_max);
    if entries > limit {
        return Err(format!("number of search attributes {entries} exceeds limit {limit}"));
    }
    Fields::decode(given.clone()).map_err(unread)?;
    Ok(())
}

/// A memo that is given whole may have so many keys.
pub(crate) fn has_too_many_keys(memo: Option<&Bytes>, settings: &Settings) -> bool {
    memo.is_some_and(|memo| count(memo).is_ok_and(|keys| are_too_many(keys, settings)))
}

/// Settings of a release that did not know this limit say 0.
fn are_too_many(keys: i64, settings: &Settings) -> bool {
    settings.memo_keys_max > 0 && keys > settings.memo_keys_max
}

/// A value counts without its metadata, and all together as they are sent.
pub(crate) fn check_sizes(entries: &[MapEntry], settings: &Settings) -> Result<(), String> {
    let mut sum = 0_i64;
    for entry in entries {
        let (bytes, limit) = (payload::data_bytes(&entry.value), settings.search_attribute_bytes_max);
        if bytes > limit {
            return Err(format!(
                "search attribute {} value size {bytes} exceeds size limit {limit}",
                entry.key
            ));
        }
        let length = entry.encoded_len();
        sum = sum.saturating_add((1 + length_delimiter_len(length) + length) as i64);
    }
    if sum > settings.search_attributes_bytes_max {
        let limit = settings.search_attributes_bytes_max;
        return Err(format!("total size of search attributes {sum} exceeds size limit {limit}"));
    }
    Ok(())
}

pub(crate) fn apply_search_attributes(run: &mut Run, upserted: &SearchAttributesUpserted) {
    change(run, |properties| {
        let changes = read(upserted.search_attributes.as_ref());
        properties.search_attributes = merged(&properties.search_attributes, changes);
    });
}

pub(crate) fn apply_memo(run: &mut Run, modified: &Modified) {
    change(run, |properties| {
        properties.memo = merged(&properties.memo, read(modified.upserted_memo.as_ref()));
    });
}

pub(crate) fn change(run: &mut Run, how: impl FnOnce(&mut Properties)) {
    let properties = run.properties.make_mut();
    run.head.state_bytes -= bytes(properties);
    how(properties);
    run.head.state_bytes += bytes(properties);
}

/// The entries of an encoded map; none of one that cannot be read.
pub(crate) fn read(given: Option<&Bytes>) -> Vec<MapEntry> {
    given.and_then(|given| Fields::decode(given.clone()).ok()).unwrap_or_default().entries
}

/// Sorted by key; of entries with one key the last counts.
fn sorted(entries: impl IntoIterator<Item = MapEntry>) -> BTreeMap<String, MapEntry> {
    entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect()
}

/// A sorted map with changes in it; values that say nothing remove their keys.
pub(crate) fn merged(entries: &[MapEntry], changes: Vec<MapEntry>) -> Vec<MapEntry> {
    let changes = sorted(changes);
    let kept = entries.iter().filter(|entry| !changes.contains_key(&entry.key)).cloned();
    let mut merged: Vec<_> = kept.collect();
    merged.extend(changes.into_values().filter(|entry| !payload::is_null(&entry.value)));
    // Two sorted runs: sorting merges them in one pass.
    merged.sort_by(|a, b| a.key.cmp(&b.key));
    merged
}
