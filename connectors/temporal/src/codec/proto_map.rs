//! Encoded maps (memos, search attributes), read entry by entry without decoding them into memory.

use bytes::Buf;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// One entry of an encoded map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtoMapEntry<'a> {
    pub key: &'a str,
    /// The encoded value.
    pub value: &'a [u8],
}

/// The bytes are not an encoded map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<DecodeError> for Malformed {
    fn from(_error: DecodeError) -> Self {
        Self
    }
}

/// The entries of an encoded map, in the order in which they were sent.
pub(crate) fn entries(map: &[u8]) -> impl Iterator<Item = Result<ProtoMapEntry<'_>, Malformed>> {
    let mut rest = map;
    std::iter::from_fn(move || {
        let found = next(&mut rest, 1).transpose()?.and_then(entry);
        if found.is_err() {
            rest = &[];
        }
        Some(found)
    })
}

fn entry(bytes: &[u8]) -> Result<ProtoMapEntry<'_>, Malformed> {
    let key = std::str::from_utf8(last(bytes, 1)?).map_err(|_error| Malformed)?;
    let value = last(bytes, 2)?;
    Ok(ProtoMapEntry { key, value })
}

/// The last value of a singular field.
fn last(message: &[u8], tag: u32) -> Result<&[u8], Malformed> {
    let mut rest = message;
    let mut found: &[u8] = &[];
    while let Some(bytes) = next(&mut rest, tag)? {
        found = bytes;
    }
    Ok(found)
}

/// The next field with this tag; other fields are skipped.
fn next<'a>(rest: &mut &'a [u8], tag: u32) -> Result<Option<&'a [u8]>, Malformed> {
    while !rest.is_empty() {
        let (found, wire_type) = decode_key(rest)?;
        if found != tag || wire_type != WireType::LengthDelimited {
            skip_field(wire_type, found, rest, DecodeContext::default())?;
            continue;
        }
        let length = usize::try_from(decode_varint(rest)?).map_err(|_error| Malformed)?;
        let bytes = rest.get(..length).ok_or(Malformed)?;
        rest.advance(length);
        return Ok(Some(bytes));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::{Fields, MapEntry as Whole};
    use prost::Message;

    use super::*;

    fn map(keys: &[&str]) -> Vec<u8> {
        let entry = |key: &&str| Whole { key: (*key).into(), value: format!("value of {key}").into() };
        Fields { entries: keys.iter().map(entry).collect() }.encode_to_vec()
    }

    #[test]
    fn a_map_is_walked_through_in_order() {
        let map = map(&["b", "a", ""]);
        let read: Vec<_> = entries(&map).map(|entry| entry.expect("a map")).collect();
        assert_eq!(read.iter().map(|entry| entry.key).collect::<Vec<_>>(), ["b", "a", ""]);
        assert_eq!(read[1].value, b"value of a");
    }

    #[test]
    fn fields_of_a_newer_client_are_skipped() {
        let unknown = [0x98, 0x3e, 1];
        let with_unknown = [&unknown[..], &map(&["a"]), &unknown].concat();
        assert_eq!(entries(&with_unknown).count(), 1);
    }

    #[test]
    fn what_is_no_map_ends_with_a_complaint() {
        let map = map(&["a", "b"]);
        let whole = map.len() / 2;
        for end in (1..map.len()).filter(|end| *end != whole) {
            assert_eq!(entries(&map[..end]).last(), Some(Err(Malformed)), "{end} bytes");
        }
        assert_eq!(entries(b"\x0a\x03\x0a\x01\xff").last(), Some(Err(Malformed)));
        assert_eq!(entries(b"").last(), None);
    }
}
