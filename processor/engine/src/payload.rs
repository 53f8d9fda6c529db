//! The little that the engine reads of payloads, and the one it writes.

use bytes::Bytes;
use prost::Message;

use crate::api_types::MapEntry;
use crate::settings::Settings;

/// One payload. Field numbers are those of Temporal's `Payload`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Payload {
    /// `encoding` and what else converters need.
    #[prost(message, repeated, tag = "1")]
    pub metadata: Vec<MapEntry>,
    /// The value.
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
}

/// Several payloads: arguments, results, details.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Payloads {
    /// In order.
    #[prost(message, repeated, tag = "1")]
    pub payloads: Vec<Payload>,
}

/// Summary and details of a run or of a command: two payloads, of which only the sizes matter here.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UserMetadata {
    /// A line, an encoded payload.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub summary: Option<Bytes>,
    /// A page, an encoded payload.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub details: Option<Bytes>,
}

/// Checks the sizes of encoded user metadata.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_user_metadata(given: Option<&Bytes>, settings: &Settings) -> Result<(), &'static str> {
    let Some(given) = given else { return Ok(()) };
    let metadata = UserMetadata::decode(given.clone()).map_err(|_error| "UserMetadata cannot be read.")?;
    let exceeds = |part: Option<Bytes>, bytes_max: i64| {
        // Settings of a release that did not know this limit say 0.
        bytes_max > 0 && part.is_some_and(|part| part.len() as i64 > bytes_max)
    };
    if exceeds(metadata.summary, settings.summary_bytes_max) {
        return Err("UserMetadata.Summary size exceeds limit.");
    }
    if exceeds(metadata.details, settings.details_bytes_max) {
        return Err("UserMetadata.Details size exceeds limit.");
    }
    Ok(())
}

/// What a priority says that can be wrong.
#[derive(Clone, PartialEq, Message)]
struct Priority {
    #[prost(int32, tag = "1")]
    priority_key: i32,
    #[prost(string, tag = "2")]
    fairness_key: String,
    #[prost(float, tag = "3")]
    fairness_weight: f32,
}

/// Parts of a priority: what is absent stays as it is.
#[derive(Clone, PartialEq, Message)]
pub struct PriorityPatch {
    /// 1 goes first, 5 last; 0 = as if nothing was said.
    #[prost(int32, optional, tag = "1")]
    pub priority_key: Option<i32>,
    /// Tasks of one key share a turn.
    #[prost(string, optional, tag = "2")]
    pub fairness_key: Option<String>,
    /// How much of the turns the key has; 0 = 1.
    #[prost(float, optional, tag = "3")]
    pub fairness_weight: Option<f32>,
}

/// An encoded priority with another whole, and with parts on top; none where nothing is said any more.
pub(crate) fn patched_priority(
    whole: Option<&Bytes>,
    patch: Option<&PriorityPatch>,
    now: Option<&Bytes>,
) -> Option<Bytes> {
    let whole = whole.or(now).filter(|whole| !whole.is_empty());
    let Some(patch) = patch else { return whole.cloned() };
    let whole = whole.and_then(|bytes| Priority::decode(bytes.clone()).ok()).unwrap_or_default();
    let patched = Priority {
        priority_key: patch.priority_key.unwrap_or(whole.priority_key),
        fairness_key: patch.fairness_key.clone().unwrap_or(whole.fairness_key),
        fairness_weight: patch.fairness_weight.unwrap_or(whole.fairness_weight),
    };
    Some(Bytes::from(patched.encode_to_vec())).filter(|bytes| !bytes.is_empty())
}

/// Checks an encoded priority.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_priority(given: Option<&Bytes>, settings: &Settings) -> Result<(), &'static str> {
    let Some(given) = given else { return Ok(()) };
    let priority = Priority::decode(given.clone()).map_err(|_error| "Priority cannot be read.")?;
    if priority.priority_key < 0 {
        return Err("PriorityKey can't be negative");
    }
    let most = settings.fairness_key_bytes_max;
    // Settings of a release that did not know this limit say 0.
    if most > 0 && priority.fairness_key.len() as i64 > most {
        return Err("FairnessKey length exceeds limit");
    }
    if priority.fairness_weight < 0.0 {
        return Err("FairnessWeight can't be negative");
    }
    Ok(())
}

/// A JSON string as encoded payloads.
pub fn json_text(text: &str) -> Bytes {
    let encoding = MapEntry { key: "encoding".into(), value: Bytes::from_static(b"json/plain") };
    let data = format!("\"{text}\"").into();
    Payloads { payloads: vec![Payload { metadata: vec![encoding], data }] }.encode_to_vec().into()
}

/// True of an encoded payload that says "nothing", no data or an empty list: upserting it removes a key.
pub fn is_null(payload: &Bytes) -> bool {
    Payload::decode(payload.clone()).is_ok_and(|payload| payload.data.is_empty() || payload.data == b"[]"[..])
}

/// Bytes of the value alone, without its metadata; of the whole where it cannot be read.
pub fn data_bytes(payload: &Bytes) -> i64 {
    let bytes = Payload::decode(payload.clone()).map_or(payload.len(), |payload| payload.data.len());
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(encoding: &'static [u8], data: &'static [u8]) -> Bytes {
        let encoding = MapEntry { key: "encoding".into(), value: Bytes::from_static(encoding) };
        Payload { metadata: vec![encoding], data: Bytes::from_static(data) }.encode_to_vec().into()
    }

    #[test]
    fn only_no_data_and_the_empty_list_say_nothing() {
        assert!(is_null(&payload(b"binary/null", b"")));
        assert!(is_null(&payload(b"json/plain", b"[]")));
        assert!(!is_null(&payload(b"json/plain", b"null")));
        assert!(!is_null(&payload(b"json/plain", b"\"\"")));
        assert!(!is_null(&Bytes::from_static(b"\xff")));
    }
}
