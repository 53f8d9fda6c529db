//! Checks that every client can read a message, also the contents that the server never decodes.
//!
//! The check allocates nothing and reads each byte at most once. It is as strict as the strictest client: a field of the wrong wire
//! type is an error in Rust's decoder, and so in the SDKs that use it, while Go's and Java's skip it.

use std::fmt;

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The depth of messages in a request. Clients read a depth of 100. The rest is for the messages around the contents in a response:
/// they are deeper in a history than in the request.
pub const DEPTH_MAX: u32 = 85;

/// The prefix of type URLs.
const ANY_TYPE_URL: u32 = 1;
const ANY_VALUE: u32 = 2;

struct Shape {
    name: &'static str,
    /// By tag.
    fields: &'static [Field],
}

struct Field {
    tag: u32,
    kind: FieldKind,
    /// It is repeated.
    many: bool,
}

#[derive(Clone, Copy)]
enum FieldKind {
    Varint,
    Fixed32,
    Fixed64,
    Bytes,
    String,
    /// By its index among the shapes.
    Message(usize),
    Any,
}

/// By name.
static SHAPES: &[Shape] = include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// Why a client cannot read a message, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The message, by its full name.
    message: &'static str,
    /// The tag of the field; none if it is unknown.
    tag: Option<u32>,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    CutShort,
    NoKey,
    WireType,
    NotUtf8,
    TooDeep,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::CutShort => "it is cut short",
            Why::NoKey => "a field has no valid key",
            Why::WireType => "it is of another type",
            Why::NotUtf8 => "string field contains invalid UTF-8",
            Why::TooDeep => return write!(out, "{}: messages lie more than {DEPTH_MAX} deep", self.message),
        };
        match self.tag {
            Some(tag) => write!(out, "{}, field {tag}: {why}", self.message),
            None => write!(out, "{}: {why}", self.message),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Checks a message of this full name, such as `temporal.api.common.v1.Payloads`. A message of an unknown name passes, because no
/// client reads it.
///
/// # Errors
/// The first fault that keeps a client from reading it.
pub fn check(name: &str, message: &[u8]) -> Result<(), Unreadable> {
    find(name).map_or(Ok(()), |shape| shape.check(message, DEPTH_MAX))
}

fn find(name: &str) -> Option<&'static Shape> {
    SHAPES.binary_search_by(|shape| shape.name.cmp(name)).ok().map(|at| &SHAPES[at])
}

impl Shape {
    fn check(&self, message: &[u8], depth: u32) -> Result<(), Unreadable> {
        let mut rest = message;
        while rest.has_remaining() {
            let (tag, wire_type) = decode_key(&mut rest).map_err(|_| self.fault(None, Why::NoKey))?;
            let field = self.fields.binary_search_by_key(&tag, |field| field.tag).ok();
            let field = field.map(|at| &self.fields[at]);
            match wire_type {
                WireType::LengthDelimited => {
                    let body = split(&mut rest).ok_or_else(|| self.fault(Some(tag), Why::CutShort))?;
                    self.check_body(tag, field, body, depth)?;
                }
                _ if field.is_some_and(|field| field.kind.wire_type() != wire_type) => {
                    return Err(self.fault(Some(tag), Why::WireType));
                }
                _ => skip_field(wire_type, tag, &mut rest, DecodeContext::default())
                    .map_err(|_| self.fault(Some(tag), Why::CutShort))?,
            }
        }
        Ok(())
    }

    fn check_body(&self, tag: u32, field: Option<&Field>, body: &[u8], depth: u32) -> Result<(), Unreadable> {
        let Some(field) = field else { return Ok(()) };
        let fault = |why| self.fault(Some(tag), why);
        let below = || depth.checked_sub(1).ok_or_else(|| fault(Why::TooDeep));
        match field.kind {
            FieldKind::Message(at) => SHAPES[at].check(body, below()?),
            FieldKind::Any => check_any(body, below()?),
            FieldKind::String => str::from_utf8(body).map(drop).map_err(|_| fault(Why::NotUtf8)),
            FieldKind::Bytes => Ok(()),
            // A repeated number may be packed.
            FieldKind::Varint | FieldKind::Fixed32 | FieldKind::Fixed64 if field.many => {
                let mut rest = body;
                while rest.has_remaining() {
                    skip_field(field.kind.wire_type(), tag, &mut rest, DecodeContext::default())
                        .map_err(|_| fault(Why::CutShort))?;
                }
                Ok(())
            }
            FieldKind::Varint | FieldKind::Fixed32 | FieldKind::Fixed64 => Err(fault(Why::WireType)),
        }
    }

    fn fault(&self, tag: Option<u32>, why: Why) -> Unreadable {
        Unreadable { message: self.name, tag, why }
    }
}

impl FieldKind {
    fn wire_type(self) -> WireType {
        match self {
            Self::Varint => WireType::Varint,
            Self::Fixed32 => WireType::ThirtyTwoBit,
            Self::Fixed64 => WireType::SixtyFourBit,
            Self::Bytes | Self::String | Self::Message(_) | Self::Any => WireType::LengthDelimited,
        }
    }
}

/// Checks the content of an `Any` whose type is the API's.
fn check_any(any: &[u8], depth: u32) -> Result<(), Unreadable> {
    let shape = find("google.protobuf.Any").expect("the API has it");
    shape.check(any, depth)?;
    let (mut type_url, mut value, mut rest) = (&[][..], &[][..], any);
    while let Ok((tag, wire_type)) = decode_key(&mut rest) {
        match (tag, wire_type) {
            (ANY_TYPE_URL, WireType::LengthDelimited) => type_url = split(&mut rest).unwrap_or_default(),
            (ANY_VALUE, WireType::LengthDelimited) => value = split(&mut rest).unwrap_or_default(),
            _ if skip_field(wire_type, tag, &mut rest, DecodeContext::default()).is_err() => break,
            _ => {}
        }
    }
    let name = str::from_utf8(type_url).unwrap_or_default();
    let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
    let Some(shape) = find(name) else { return Ok(()) };
    let Some(below) = depth.checked_sub(1) else { return Err(shape.fault(None, Why::TooDeep)) };
    shape.check(value, below)
}

/// The body of a length-delimited field, cut off the rest.
fn split<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    let (body, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(body)
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::Any;

    use super::*;
    use crate::full::temporal::api::common::v1::{Payload, Payloads};
    use crate::full::temporal::api::failure::v1::Failure;

    const START: &str = "temporal.api.workflowservice.v1.StartWorkflowExecutionRequest";
    const COMPLETION: &str = "temporal.api.workflowservice.v1.RespondWorkflowTaskCompletedRequest";

    /// A length-delimited field; numbers below 16 and bodies of any length.
    fn field(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | 2];
        prost::encoding::encode_varint(body.len() as u64, &mut bytes);
        bytes.extend_from_slice(body);
        bytes
    }

    fn why(name: &str, message: &[u8]) -> Option<Why> {
        check(name, message).err().map(|fault| fault.why)
    }

    /// A failure with so many others below it, one within the other.
    fn failures(below: usize) -> Failure {
        (0..below).fold(Failure::default(), |cause, _| Failure {
            cause: Some(Box::new(cause)),
            ..Failure::default()
        })
    }

    #[test]
    fn what_clients_send_is_well_formed() {
        let payload = Payload {
            metadata: [("encoding".to_owned(), "json/plain".into())].into(),
            data: vec![0xff; 100].into(),
            ..Payload::default()
        };
        let payloads = Payloads { payloads: vec![payload; 3] }.encode_to_vec();
        assert_eq!(check(START, &field(5, &payloads)), Ok(()));
        assert_eq!(check(START, &[]), Ok(()));
        assert_eq!(check("acme.Order", &[0xff]), Ok(()), "nobody reads it");
        // A field that a later version of the API will have.
        assert_eq!(check("temporal.api.common.v1.Payloads", &field(15, &[0xff])), Ok(()));
    }

    #[test]
    fn contents_that_cannot_be_read_are_found_wherever_they_lie() {
        let not_utf8 = field(1, &field(1, &[field(1, &[0xff, 0xfe]), field(2, b"x")].concat()));
        assert_eq!(why(START, &field(5, &[0xff; 12])), Some(Why::NoKey));
        assert_eq!(why(START, &field(5, &field(1, &not_utf8)[1..])), Some(Why::WireType));
        assert_eq!(why(START, &field(5, &not_utf8)), Some(Why::NotUtf8));
        assert_eq!(why(START, &field(5, &field(1, b"\x0a\x7f"))), Some(Why::CutShort));
        assert_eq!(why(START, &field(5, &[0x08, 0x01])), Some(Why::WireType));
        let fault = check(START, &field(5, &not_utf8)).expect_err("not UTF-8");
        assert_eq!(
            fault.to_string(),
            "temporal.api.common.v1.Payload.MetadataEntry, field 1: string field contains invalid UTF-8"
        );
    }

    #[test]
    fn contents_that_lie_too_deep_are_refused() {
        let failure = "temporal.api.failure.v1.Failure";
        let deepest = failures(DEPTH_MAX as usize).encode_to_vec();
        assert_eq!(check(failure, &deepest), Ok(()));
        assert!(Failure::decode(deepest.as_slice()).is_ok());
        let deeper = failures(DEPTH_MAX as usize + 1).encode_to_vec();
        assert_eq!(why(failure, &deeper), Some(Why::TooDeep));
    }

    #[test]
    fn what_an_any_holds_is_walked_as_what_it_says_it_is() {
        let holding = |type_url: &str, value: &[u8]| {
            let any = Any { type_url: type_url.into(), value: value.to_vec() }.encode_to_vec();
            // A protocol message is field 11 of a completion, its body field 5 of that.
            why(COMPLETION, &field(11, &field(5, &any)))
        };
        let response = "type.googleapis.com/temporal.api.update.v1.Response";
        assert_eq!(holding(response, &field(2, &field(1, &[]))), None);
        assert_eq!(holding(response, &field(2, &field(1, &field(1, &[0xff])))), Some(Why::NoKey));
        assert_eq!(holding("type.googleapis.com/acme.Order", &[0xff]), None);
        assert_eq!(why(COMPLETION, &field(11, &field(5, &field(1, &[0xff])))), Some(Why::NotUtf8));
    }

    #[test]
    fn numbers_may_stand_one_by_one_or_together() {
        // `reset_reapply_exclude_types`, a list, of a reset.
        let reset = "temporal.api.workflowservice.v1.ResetWorkflowExecutionRequest";
        assert_eq!(check(reset, &[0x38, 0x01, 0x38, 0x02]), Ok(()));
        assert_eq!(check(reset, &field(7, &[0x01, 0x02])), Ok(()));
        assert_eq!(why(reset, &field(7, &[0x80])), Some(Why::CutShort));
    }
}
