//! What a consumer of the public commands delivers: records, assigned partitions, and failures.
//!
//! The consumer on Kafka and the ingress share these types; neither imports the other.

use std::ops::Range;

use bytes::Bytes;

use crate::{Offset, PartitionId};

/// The topic that is consumed, by its name and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumedTopic {
    /// Its name.
    pub name: String,
    /// The id that the cluster gave it: a topic of the same name made later has another one.
    pub incarnation: [u8; 16],
}

/// A record as it was consumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The partition.
    pub partition: PartitionId,
    /// The offset.
    pub offset: Offset,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers, in order; those whose names are no UTF-8 are left out.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Why neither key, value nor headers are here; it may hold for the offsets behind this one too.
    pub lost: Option<String>,
}

impl Fetched {
    /// About the memory that it takes, in bytes.
    pub fn size_bytes(&self) -> usize {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers = self.headers.iter().map(|(name, value)| 64 + name.len() + length(value)).sum::<usize>();
        size_of::<Self>() + length(&self.key) + length(&self.value) + headers
    }
}

/// A partition that this member is to read from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The partition.
    pub partition: PartitionId,
    /// What the group committed last, if anything: the topic's id at that time, and the offset of the next record.
    /// None also where a tool set the offset, without an id. An id that cannot be read is zeros.
    pub committed: Option<([u8; 16], Offset)>,
    /// The first offset, and the first one of an open transaction or the end.
    pub bounds: Range<Offset>,
}

/// The result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// Records; those of a partition in the order of their offsets.
    Records(Vec<Fetched>),
    /// Partitions assigned to this consumer. Each delivers records once it is begun.
    Assigned(Vec<Assigned>),
    /// Partitions that another member of the group reads from now on.
    Revoked(Vec<PartitionId>),
}

/// Why the topic, or a partition of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Transient: it is retried.
    #[error("{0}")]
    Passing(String),
    /// The next offset is not in the partition; it delivers nothing more.
    #[error("partition {partition} of the commands cannot be read from {offset} on: {detail}")]
    OutOfRange {
        /// The partition.
        partition: PartitionId,
        /// The offset that comes next.
        offset: Offset,
        /// What is there.
        detail: String,
    },
    /// The topic was deleted and created again; no partition of it delivers anything more.
    #[error(
        "partition {partition} of the commands was read up to {offset}, in another topic of that name: {detail}"
    )]
    MadeAgain {
        /// The partition.
        partition: PartitionId,
        /// The offset that came next in the former topic.
        offset: Offset,
        /// Both ids.
        detail: String,
    },
}
