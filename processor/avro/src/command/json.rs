//! Commands in JSON: any JSON value is a payload as it stands, byte for byte; other payloads are spelled out.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::command::shape::Command;
use crate::payload::{JSON, Payload};
use crate::validator::Bounds;

/// The only member of an object that spells a payload out.
const SPELLED: &str = "$payload";

/// A payload as JSON writes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPayload(pub(super) Payload<'static>);

impl<'de> Deserialize<'de> for JsonPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        if text.starts_with('{') && text.contains(SPELLED) {
            let mut members: BTreeMap<String, &RawValue> =
                serde_json::from_str(text).map_err(D::Error::custom)?;
            if let Some(spelled) = members.remove(SPELLED) {
                if !members.is_empty() {
                    return Err(D::Error::custom(format!(
                        "{SPELLED} has to be the only member of its object"
                    )));
                }
                return serde_json::from_str(spelled.get()).map(JsonPayload).map_err(D::Error::custom);
            }
        }
        let text = Some(text.to_owned().into());
        Ok(Self(Payload { encoding: JSON.into(), text, ..Payload::default() }))
    }
}

/// Reads a command; what is wrong with it, in words.
pub(super) fn read(bytes: &[u8], bounds: &Bounds) -> Result<Command<JsonPayload>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_error| "it is not UTF-8".to_owned())?;
    check(text, bounds)?;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Counts before anything takes memory.
fn check(text: &str, bounds: &Bounds) -> Result<(), String> {
    let (mut depth, mut commas, mut quoted, mut escaped) = (0_u32, 0_u32, false, false);
    for byte in text.bytes() {
        match byte {
            _any if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            b',' if !quoted => commas += 1,
            _other => {}
        }
        if depth > bounds.depth_max {
            return Err(format!("it is nested deeper than {}", bounds.depth_max));
        }
        if commas >= bounds.items_max {
            return Err(format!("it has more than {} elements", bounds.items_max));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(json: &str) -> Result<Payload<'static>, String> {
        serde_json::from_str::<JsonPayload>(json).map(|given| given.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_is_taken_byte_for_byte() {
        for json in
            ["12345678901234567890123", "1.0", "{\"b\": 1,  \"a\":2}", "null", "\"\\u00e4\"", "[1, 2]"]
        {
            let given = payload(json).expect("a payload");
            assert_eq!((given.encoding.as_ref(), given.text.as_deref()), (JSON, Some(json)));
        }
    }

    #[test]
    fn other_payloads_are_spelled_out() {
        let given =
            payload(r#"{"$payload": {"encoding": "binary/plain", "data": "AQI="}}"#).expect("a payload");
        assert_eq!(
            (given.encoding.as_ref(), given.data.map(|data| data.0)),
            ("binary/plain", Some(vec![1, 2].into()))
        );
        assert!(payload(r#"{"$payload": {}, "a": 1}"#).expect_err("two members").contains("only member"));
        assert!(payload(r#"{"$payload": {"dta": ""}}"#).is_err());
        assert!(payload(r#"{"$payload": {"data": "?"}}"#).is_err());
        assert!(payload(r#"{"a": "$payload"}"#).expect("a value").text.is_some());
    }

    #[test]
    fn depth_and_count_are_bounded_before_memory_is_taken() {
        let bounds = Bounds { depth_max: 3, items_max: 4, ..Bounds::default() };
        assert!(check("[[[1,2,3,4]]]", &bounds).is_ok());
        assert!(check("[[[[1]]]]", &bounds).is_err());
        assert!(check("[1,2,3,4,5]", &bounds).is_err());
        assert!(check("[\"[[[[[,,,,,,\\\"[\"]", &bounds).is_ok());
    }
}
