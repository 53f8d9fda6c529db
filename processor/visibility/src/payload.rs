//! What payloads of search attributes say: JSON inside of an encoded message, read in place.

use std::borrow::Cow;

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The metadata that names the type of a value.
const TYPE: &[u8] = b"type";

/// A JSON value, as far as search attributes have them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    String(Cow<'a, str>),
    /// A whole number within an i64.
    Int(i64),
    /// Any other number.
    Double(f64),
    Bool(bool),
    /// Without its nulls; never empty.
    List(Vec<Json<'a>>),
}

/// An encoded payload's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PayloadParts<'a> {
    /// The value.
    pub data: &'a [u8],
    /// Its type by the metadata, empty where they name none.
    pub kind: &'a [u8],
}

impl<'a> PayloadParts<'a> {
    /// The parts of an encoded payload; none where it cannot be read.
    pub(crate) fn read(payload: &'a [u8]) -> Option<Self> {
        let mut parts = Self::default();
        let mut rest = payload;
        while let Some((tag, field)) = next_field(&mut rest)? {
            match tag {
                1 => {
                    let (key, value) = map_entry(field)?;
                    if key == TYPE {
                        parts.kind = value;
                    }
                }
                2 => parts.data = field,
                _unknown => {}
            }
        }
        Some(parts)
    }

    /// The value; none where it says nothing, or is no value of a search attribute.
    pub(crate) fn json(&self) -> Option<Json<'a>> {
        match plain_string(self.data) {
            Some(text) => Some(Json::String(text.into())),
            None => from_value(serde_json::from_slice(self.data).ok()?),
        }
    }
}

fn map_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    let mut rest = entry;
    while let Some((tag, field)) = next_field(&mut rest)? {
        match tag {
            1 => key = field,
            2 => value = field,
            _unknown => {}
        }
    }
    Some((key, value))
}

/// The next field that has a length: its tag and bytes. The inner none is the end, the outer one damage.
#[expect(clippy::option_option, reason = "the end is no damage")]
fn next_field<'a>(rest: &mut &'a [u8]) -> Option<Option<(u32, &'a [u8])>> {
    while !rest.is_empty() {
        let (tag, wire_type) = decode_key(rest).ok()?;
        if wire_type != WireType::LengthDelimited {
            skip_field(wire_type, tag, rest, DecodeContext::default()).ok()?;
            continue;
        }
        let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
        let (field, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        return Some(Some((tag, field)));
    }
    Some(None)
}

/// A JSON string without escapes: most are.
fn plain_string(data: &[u8]) -> Option<&str> {
    let inner = data.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = inner.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
    if is_plain { std::str::from_utf8(inner).ok() } else { None }
}

fn from_value(value: serde_json::Value) -> Option<Json<'static>> {
    match value {
        serde_json::Value::Null | serde_json::Value::Object(_) => None,
        serde_json::Value::String(text) => Some(Json::String(text.into())),
        serde_json::Value::Bool(is_true) => Some(Json::Bool(is_true)),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Some(Json::Int(number)),
            None => number.as_f64().map(Json::Double),
        },
        serde_json::Value::Array(items) => {
            let items: Vec<_> = items.into_iter().filter_map(from_value).collect();
            (!items.is_empty()).then_some(Json::List(items))
        }
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::MapEntry;
    use everlog_engine::payload::Payload;
    use prost::Message;

    use super::*;

    fn payload(data: &str) -> Vec<u8> {
        let said = |key: &str, value: &'static str| MapEntry { key: key.into(), value: value.into() };
        let metadata = vec![said("type", "Keyword"), said("encoding", "json/plain")];
        Payload { metadata, data: data.to_owned().into() }.encode_to_vec()
    }

    fn json(data: &str) -> Option<Json<'static>> {
        let payload = payload(data);
        let json = PayloadParts::read(&payload).expect("a payload").json();
        json.map(|json| match json {
            Json::String(text) => Json::String(text.into_owned().into()),
            Json::Int(number) => Json::Int(number),
            Json::Double(number) => Json::Double(number),
            Json::Bool(is_true) => Json::Bool(is_true),
            Json::List(_) => from_value(serde_json::from_str(data).expect("a list")).expect("a value"),
        })
    }

    #[test]
    fn values_are_read_by_what_they_are() {
        assert_eq!(json("\"a b\""), Some(Json::String("a b".into())));
        assert_eq!(json(r#""a\"\u00e9""#), Some(Json::String("a\"é".into())));
        assert_eq!(json("-5"), Some(Json::Int(-5)));
        assert_eq!(json("9223372036854775808"), Some(Json::Double(9_223_372_036_854_775_808.0)));
        assert_eq!(json("true"), Some(Json::Bool(true)));
        assert_eq!(json("[1, null]"), Some(Json::List(vec![Json::Int(1)])));
        for nothing in ["", "null", "[]", "[null]", "{}", "\"", "\"a\u{1}\"", "\"a", "{\"a\": 1}"] {
            assert_eq!(json(nothing), None, "{nothing}");
        }
        assert_eq!(PayloadParts::read(&payload("1")).expect("a payload").kind, b"Keyword");
    }

    #[test]
    fn bytes_that_are_no_payload_say_nothing() {
        let whole = payload("\"a\"");
        for end in 1..whole.len() {
            let cut = PayloadParts::read(&whole[..end]);
            assert!(cut.is_none_or(|parts| parts.json().is_none()), "{end}");
        }
        assert_eq!(
            PayloadParts::read(&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            None
        );
        assert_eq!(PayloadParts::read(&[0x0b]), None);
    }
}
