//! Rejections: commands that were refused or could not be read, with their original bytes.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::command::{Code, CommandRecord};
use crate::{Bounds, Error, PublicTopic, Writer, codec};

/// A header of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header<'a> {
    /// Its name.
    pub key: Cow<'a, str>,
    /// Its value.
    pub value: Option<Blob>,
}

/// A command that was refused or could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rejection<'a> {
    /// Why, for programs: the name of a [`Code`].
    pub code: Cow<'a, str>,
    /// Why, for people.
    pub reason: Cow<'a, str>,
    /// When it was refused, in ms since 1970-01-01 UTC.
    pub time: i64,
    /// The topic of the command.
    pub topic: Cow<'a, str>,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// The command's id, where it could be read.
    pub command_id: Option<Cow<'a, str>>,
    /// The namespace, by name, where it could be read.
    pub namespace: Option<Cow<'a, str>>,
    /// The command's key.
    pub key: Option<Blob>,
    /// The command's bytes; fewer than `value_bytes` where they are too many.
    pub value: Option<Blob>,
    /// How many bytes the command had.
    pub value_bytes: i64,
    /// The command's headers.
    pub headers: Vec<Header<'a>>,
}

impl<'a> Rejection<'a> {
    /// A refusal of a record at `time_ms`, with at most `bytes_max` of its bytes.
    pub fn new(
        record: &CommandRecord<'a>,
        code: Code,
        reason: &'a str,
        time_ms: i64,
        bytes_max: usize,
    ) -> Self {
        let blob = |bytes: &[u8]| Blob(Bytes::copy_from_slice(bytes));
        let header = |(key, value): &(&'a str, Option<&[u8]>)| Header {
            key: Cow::Borrowed(*key),
            value: value.map(blob),
        };
        Self {
            code: code.name().into(),
            reason: reason.into(),
            time: time_ms,
            topic: record.place.topic.into(),
            partition: i32::try_from(record.place.partition).unwrap_or(i32::MAX),
            offset: i64::try_from(record.place.offset).unwrap_or(i64::MAX),
            command_id: None,
            namespace: None,
            key: record.key.map(blob),
            value: record.value.map(|value| blob(&value[..value.len().min(bytes_max)])),
            value_bytes: record.value.map_or(0, |value| i64::try_from(value.len()).unwrap_or(i64::MAX)),
            headers: record.headers.iter().map(header).collect(),
        }
    }

    /// Appends the record to a buffer, ready for the topic.
    ///
    /// # Errors
    /// [`Error::Write`]: a fault of this release.
    pub fn write(&self, schema_id: u32, buffer: &mut Vec<u8>) -> Result<(), Error> {
        codec::write(PublicTopic::Rejection, schema_id, self, buffer)
    }

    /// Reads a record as the topic holds it, written with `writer`.
    ///
    /// # Errors
    /// [`Error::Frame`], [`Error::Body`].
    pub fn read(writer: &Writer, bytes: &[u8]) -> Result<Rejection<'static>, Error> {
        codec::read(writer, codec::frame(bytes)?.body, &Bounds::default())
    }
}
