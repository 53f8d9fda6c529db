//! Encodes and decodes records of public topics: 0, the schema's id (4 bytes, big endian), the Avro body.

use apache_avro::from_value;
use apache_avro::reader::datum::GenericDatumReader;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::schema::{PublicTopic, Writer};
use crate::validator::{Bounds, sift};
use crate::writer::datum;

/// Bytes in front of the body.
pub const HEAD_BYTES: usize = 5;

/// Bytes of the detail of an error; a longer one is cut.
const DETAIL_BYTES_MAX: usize = 500;

/// A record taken apart into its schema's id and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The id under which a registry knows the schema that it was written with.
    pub schema_id: u32,
    /// The Avro body.
    pub body: &'a [u8],
}

/// Appends a record to a buffer; what the buffer held stays in front of it.
///
/// # Errors
/// [`Error::Write`]; the buffer is as it was.
pub fn write<T: Serialize>(
    noun: PublicTopic,
    schema_id: u32,
    record: &T,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = buffer.len();
    buffer.push(0);
    buffer.extend_from_slice(&schema_id.to_be_bytes());
    datum(noun.plan(), record, buffer).map_err(|error| {
        buffer.truncate(start);
        Error::Write { noun: noun.name(), detail: brief(error.to_string()) }
    })
}

/// Takes a record apart.
///
/// # Errors
/// [`Error::Frame`].
pub fn frame(bytes: &[u8]) -> Result<Framed<'_>, Error> {
    match bytes {
        [0, a, b, c, d, body @ ..] => Ok(Framed { schema_id: u32::from_be_bytes([*a, *b, *c, *d]), body }),
        [0, ..] => Err(Error::Frame { detail: "it is shorter than 5 bytes" }),
        [] => Err(Error::Frame { detail: "it is empty" }),
        [_, ..] => Err(Error::Frame { detail: "it does not begin with the byte 0" }),
    }
}

/// Reads a body that was written with `writer`: all of it, within bounds that hold before memory is taken.
///
/// # Errors
/// [`Error::Body`].
pub fn read<T: DeserializeOwned>(writer: &Writer, body: &[u8], bounds: &Bounds) -> Result<T, Error> {
    let noun = writer.noun();
    let wrong = |detail: String| Error::Body { noun: noun.name(), detail: brief(detail) };
    sift(writer.plan(), body, bounds).map_err(|fault| wrong(fault.to_string()))?;
    let mut rest = body;
    let Some(schema) = writer.foreign() else {
        return noun.reader().read_deser(&mut rest).map_err(|error| wrong(error.to_string()));
    };
    let reader = GenericDatumReader::builder(schema).reader_schema(noun.schema());
    let reader = reader.human_readable(false).build().map_err(|error| wrong(error.to_string()))?;
    let value = reader.read_value(&mut rest).map_err(|error| wrong(error.to_string()))?;
    from_value(&value).map_err(|error| wrong(error.to_string()))
}

/// The beginning of an explanation: a decoder may repeat a whole schema, a sender may write a long name.
pub(super) fn brief(mut detail: String) -> String {
    let mut end = DETAIL_BYTES_MAX.min(detail.len());
    while !detail.is_char_boundary(end) {
        end -= 1;
    }
    detail.truncate(end);
    detail
}
