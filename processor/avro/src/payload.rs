//! Public payloads: encoding, metadata, and the value as text where it is text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::api_types::{Fields as EncodedFields, MapEntry};
use everlog_engine::payload::{Payload as Encoded, Payloads as EncodedList};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde::{Deserialize, Serialize};

use crate::blob::Blob;

/// The name under which a payload's metadata says how it is encoded.
const ENCODING: &str = "encoding";
/// The encoding of a field that is no payload at all: it is kept whole.
pub const UNREADABLE: &str = "everlog/unreadable";
/// Fields of one encoded value, those inside it included, above which it is kept whole: an empty map entry is two bytes
/// there and a hundred here.
const PARTS_MAX: usize = 10_000;
/// The encoding of a text for which none is named.
pub const JSON: &str = "json/plain";

/// Values by name: a memo, search attributes, headers.
pub type Fields<'a> = BTreeMap<Cow<'a, str>, Payload<'a>>;

/// A value of the user's, with what a converter needs to read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Payload<'a> {
    /// How the value is encoded, e.g. `json/plain`.
    pub encoding: Cow<'a, str>,
    /// What else was said about the value.
    pub metadata: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Metadata whose value is no UTF-8 text.
    pub metadata_binary: Option<BTreeMap<Cow<'a, str>, Blob>>,
    /// The value, where its encoding is `json/...` and it is UTF-8.
    pub text: Option<Cow<'a, str>>,
    /// The value, where it is not in `text`.
    pub data: Option<Blob>,
}

impl Payload<'static> {
    /// A payload from its encoded message; bytes that are none stand in it as they are.
    pub fn read(bytes: &Bytes) -> Self {
        if is_crowded(bytes, 0) {
            return Self::unreadable(bytes);
        }
        Encoded::decode(bytes.clone()).map_or_else(|_error| Self::unreadable(bytes), Self::of)
    }

    /// A list of payloads from its encoded message; bytes that are none stand in one payload as they are.
    pub fn read_all(bytes: &Bytes) -> Vec<Self> {
        if is_crowded(bytes, 1) {
            return vec![Self::unreadable(bytes)];
        }
        match EncodedList::decode(bytes.clone()) {
            Ok(list) => list.payloads.into_iter().map(Self::of).collect(),
            Err(_error) => vec![Self::unreadable(bytes)],
        }
    }

    /// Payloads by name from an encoded map; bytes that are none stand under the empty name as they are.
    pub fn read_fields(bytes: &Bytes) -> Fields<'static> {
        if is_crowded(bytes, 2) {
            return BTreeMap::from([(Cow::Borrowed(""), Self::unreadable(bytes))]);
        }
        match EncodedFields::decode(bytes.clone()) {
            Ok(map) => {
                map.entries.iter().map(|e| (Cow::Owned(e.key.clone()), Self::read(&e.value))).collect()
            }
            Err(_error) => BTreeMap::from([(Cow::Borrowed(""), Self::unreadable(bytes))]),
        }
    }

    fn unreadable(bytes: &Bytes) -> Self {
        Self { encoding: UNREADABLE.into(), data: Some(Blob(bytes.clone())), ..Self::default() }
    }

    fn of(encoded: Encoded) -> Self {
        let mut payload = Self::default();
        for MapEntry { key, value } in encoded.metadata {
            match std::str::from_utf8(&value) {
                Ok(encoding) if key == ENCODING => payload.encoding = Cow::Owned(encoding.to_owned()),
                Ok(text) => {
                    payload.metadata.insert(key.into(), Cow::Owned(text.to_owned()));
                }
                Err(_binary) => {
                    let others = payload.metadata_binary.get_or_insert_default();
                    others.insert(key.into(), Blob(value));
                }
            }
        }
        if encoded.data.is_empty() {
            return payload;
        }
        let text = payload.encoding.starts_with("json/").then(|| std::str::from_utf8(&encoded.data).ok());
        match text.flatten() {
            Some(text) => payload.text = Some(Cow::Owned(text.to_owned())),
            None => payload.data = Some(Blob(encoded.data)),
        }
        payload
    }
}

impl Payload<'_> {
    /// The encoded message. A text without an encoding is JSON.
    pub fn encode(&self) -> Bytes {
        self.message().encode_to_vec().into()
    }

    /// The encoded message of a list.
    pub fn encode_all(payloads: &[Self]) -> Bytes {
        let payloads = payloads.iter().map(Payload::message).collect();
        EncodedList { payloads }.encode_to_vec().into()
    }

    /// The encoded message of a map.
    pub fn encode_fields(fields: &Fields<'_>) -> Bytes {
        let entry = |(key, value): (&Cow<'_, str>, &Payload<'_>)| MapEntry {
            key: key.clone().into_owned(),
            value: value.encode(),
        };
        EncodedFields { entries: fields.iter().map(entry).collect() }.encode_to_vec().into()
    }

    fn message(&self) -> Encoded {
        let data = match (&self.text, &self.data) {
            (Some(text), _) => Bytes::copy_from_slice(text.as_bytes()),
            (None, Some(data)) => data.0.clone(),
            (None, None) => Bytes::new(),
        };
        let encoding = if self.encoding.is_empty() && self.text.is_some() { JSON } else { &self.encoding };
        let entry =
            |key: &str, value: &[u8]| MapEntry { key: key.into(), value: Bytes::copy_from_slice(value) };
        let mut metadata = Vec::with_capacity(1 + self.metadata.len());
        if !encoding.is_empty() {
            metadata.push(entry(ENCODING, encoding.as_bytes()));
        }
        metadata.extend(self.metadata.iter().map(|(key, value)| entry(key, value.as_bytes())));
        let others = self.metadata_binary.iter().flatten();
        metadata.extend(
            others.map(|(key, value)| MapEntry { key: key.clone().into_owned(), value: value.0.clone() }),
        );
        Encoded { metadata, data }
    }
}

/// Whether an encoded message has more parts than are taken apart, `depth` levels of messages in it included.
fn is_crowded(bytes: &[u8], depth: u32) -> bool {
    // Two bytes a field at least: most are settled by their length.
    bytes.len() / 2 > PARTS_MAX && parts(bytes, depth) > PARTS_MAX
}

/// The fields of a message and of those inside it; what is none ends the count of its level.
fn parts(mut bytes: &[u8], depth: u32) -> usize {
    let mut count = 0;
    while let Ok((_tag, wire_type)) = decode_key(&mut bytes) {
        count += 1;
        let inner = match wire_type {
            WireType::LengthDelimited => {
                let length = decode_varint(&mut bytes).ok().and_then(|length| usize::try_from(length).ok());
                length.and_then(|length| bytes.split_at_checked(length))
            }
            WireType::Varint => decode_varint(&mut bytes).ok().map(|_value| (&[][..], bytes)),
            WireType::SixtyFourBit => bytes.split_at_checked(8),
            WireType::ThirtyTwoBit => bytes.split_at_checked(4),
            WireType::StartGroup | WireType::EndGroup => None,
        };
        let Some((inner, rest)) = inner else { break };
        bytes = rest;
        if let (true, WireType::LengthDelimited) = (depth > 0, wire_type) {
            count += parts(inner, depth - 1);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &'static [u8]) -> MapEntry {
        MapEntry { key: key.into(), value: Bytes::from_static(value) }
    }

    fn bytes(metadata: Vec<MapEntry>, data: &'static [u8]) -> Bytes {
        Encoded { metadata, data: Bytes::from_static(data) }.encode_to_vec().into()
    }

    #[test]
    fn json_is_readable_as_text_and_everything_else_is_kept() {
        let payload = Payload::read(&bytes(vec![entry("encoding", b"json/plain")], b"{\"a\":1}"));
        assert_eq!((payload.text.as_deref(), payload.data), (Some("{\"a\":1}"), None));
        let payload = Payload::read(&bytes(vec![entry("encoding", b"json/plain")], b"\xff"));
        assert_eq!((payload.text, payload.data), (None, Some(Blob(Bytes::from_static(b"\xff")))));
        let payload = Payload::read(&bytes(vec![entry("encoding", b"binary/plain")], b"text"));
        assert_eq!((payload.text, payload.data), (None, Some(Blob(Bytes::from_static(b"text")))));
    }

    #[test]
    fn a_payload_goes_back_to_the_bytes_that_it_came_from() {
        let metadata =
            vec![entry("encoding", b"json/protobuf"), entry("messageType", b"M"), entry("x", b"\xff")];
        for given in
            [bytes(metadata, b"{}"), bytes(vec![], b""), bytes(vec![entry("encoding", b"binary/null")], b"")]
        {
            assert_eq!(Payload::read(&given).encode(), given);
        }
        let plain = Payload { text: Some("1".into()), ..Payload::default() };
        assert_eq!(plain.encode(), bytes(vec![entry("encoding", b"json/plain")], b"1"));
    }

    #[test]
    fn bytes_that_are_no_payload_are_kept_whole() {
        let garbage = Bytes::from_static(b"\xff\xff");
        let [payload] = &Payload::read_all(&garbage)[..] else { panic!("one payload") };
        assert_eq!((payload.encoding.as_ref(), &payload.data), (UNREADABLE, &Some(Blob(garbage.clone()))));
        assert_eq!(Payload::read_fields(&garbage)[""].data, Some(Blob(garbage)));
    }
}
