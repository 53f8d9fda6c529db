//! Where public records come from: a topic that one consumer reads, committed records only.

use std::ops::Range;

use bytes::Bytes;
use tokio::time::Instant;

/// A topic by its name and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id: a topic of the same name made later has another one.
    pub incarnation: [u8; 16],
}

/// A record as it was consumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: u64,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers, in order; those whose names are no UTF-8 are left out.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Why neither key, value nor headers are here: they are too large. It may hold for the offsets behind this one too.
    pub lost: Option<String>,
}

impl Fetched {
    /// About the memory that it takes, in bytes.
    pub fn size_bytes(&self) -> usize {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers = self.headers.iter().map(|(name, value)| name.len() + length(value)).sum::<usize>();
        size_of::<Self>() + length(&self.key) + length(&self.value) + headers
    }
}

/// A partition that is to be read from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The partition.
    pub partition: u32,
    /// What was committed last, if anything: the topic's id at that time, and the offset of the next record.
    pub committed: Option<([u8; 16], u64)>,
    /// The first offset that is there, and the next to be written.
    pub bounds: Range<u64>,
}

/// What a poll brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// Records; those of a partition in the order of their offsets.
    Records(Vec<Fetched>),
    /// Partitions that are to be read: none of them is, until [`Source::begin`].
    Assigned(Vec<Assigned>),
    /// Partitions that somebody else reads from here on.
    Revoked(Vec<u32>),
}

/// Why nothing can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Worth another try.
    #[error("{0}")]
    Passing(String),
    /// A partition cannot be read from where it was left.
    #[error("partition {partition} of the commands cannot be read from {offset} on: {detail}")]
    OutOfRange {
        /// The partition.
        partition: u32,
        /// The offset that was asked for.
        offset: u64,
        /// What is there.
        detail: String,
    },
}

/// A consumer of one topic, one per process.
pub trait Source: Send + 'static {
    /// The topic.
    fn topic(&self) -> Topic;

    /// Waits for something, until the deadline at most. May be dropped while it waits; nothing is lost then.
    ///
    /// # Errors
    /// [`SourceError`].
    fn poll(&mut self, deadline: Instant) -> impl Future<Output = Result<Polled, SourceError>> + Send;

    /// Reads a partition from this offset on.
    fn begin(&mut self, partition: u32, offset: u64);

    /// Brings no more records of a partition until it is resumed, save those that are on their way.
    fn pause(&mut self, partition: u32);

    /// Brings records of a partition again.
    fn resume(&mut self, partition: u32);

    /// All before this offset stands in journals; the topic's id goes along. Never waits; a later commit makes up for
    /// one that fails.
    fn commit(&mut self, partition: u32, next: u64);
}
