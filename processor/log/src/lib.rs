//! The durable log: journals that are appended to, output that is committed, rows that are restored.
//!
//! It carries bytes and knows nothing of workflows, nor of where they are kept: every implementation passes
//! `contract::check`.

pub mod clock;
pub mod consumer;
pub mod contract;
mod error;
mod outage;
mod restore_chunk;
mod topic;

use std::ops::Range;

use bytes::Bytes;

pub use crate::error::Error;
pub use crate::outage::Outage;
pub use crate::restore_chunk::{RestoreChunk, RestoreChunkDone, restore_chunk};
pub use crate::topic::{PerTopic, Space, Topic};

/// A slice of the Workflow Ids, counted from 0.
pub type PartitionId = u32;
/// A place in a partition's journal or in an append-only topic, counted from 0 without gaps.
pub type Offset = u64;

/// Buckets that the Workflow Ids are hashed into; a partition owns a contiguous range of them.
pub const BUCKETS: u32 = 16_384;

/// One record of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place.
    pub offset: Offset,
    /// The log's time of the append in milliseconds since 1970; never falls within a partition.
    pub stamp_ms: i64,
    /// What was appended.
    pub bytes: Bytes,
}

/// Where the records of one append went: consecutive offsets from `first`, one stamp for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first: Offset,
    /// Stamp of every record of the append, milliseconds since 1970.
    pub stamp_ms: i64,
}

/// The right to commit outputs of a partition; only the latest one is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence(pub u64);

/// One thing that applying the journal yields.
#[derive(Clone, Debug)]
pub struct Output {
    /// Where it goes.
    pub topic: Topic,
    /// In a compacted topic it starts with the bucket (u16, big endian), which must be the partition's own.
    pub key: Bytes,
    /// None is a tombstone, in compacted topics only.
    pub value: Option<Bytes>,
    /// For readers of an append-only topic, where its records have headers: what must be kept stands in the value.
    pub headers: Vec<(&'static str, Bytes)>,
}

impl Output {
    /// One without headers.
    pub fn new(topic: Topic, key: Bytes, value: Option<Bytes>) -> Self {
        Self { topic, key, value, headers: Vec::new() }
    }
}

/// Outputs and the position they belong to: all of it becomes visible, or nothing.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Whose outputs.
    pub partition: PartitionId,
    /// The owner's right to commit.
    pub fence: Fence,
    /// The next offset to apply.
    pub applied: Offset,
    /// The position row, opaque here.
    pub position: Bytes,
    /// In order.
    pub outputs: Vec<Output>,
}

/// Called once, from the log's thread: keep it short and never block in it. None: durable, though other writers'
/// records stand in between or the stamps differ; `follow` brings them in their places.
pub type AppendDone = Box<dyn FnOnce(Result<Option<Appended>, Error>) + Send>;
/// Called once, from the log's thread: keep it short and never block in it.
pub type CommitDone = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// One entry of an append-only topic: offset, key, value.
pub type TopicEntry = (Offset, Bytes, Bytes);
/// Visits one row of a compacted topic: key, value (None is a tombstone); false stops.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], Option<&[u8]>) -> bool;
/// Called from the log's thread when a `Tail` has something new: keep it short and never block in it.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// Where a later restore may begin: the next offset of each compacted topic of one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Of the changelog.
    pub changelog: Offset,
    /// Of the history.
    pub history: Offset,
    /// Of the timers.
    pub timers: Offset,
}

/// What a restore has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Where the next restore of this topic may begin.
    pub next: Offset,
    /// Where the topic ended when it was looked at.
    pub end: Offset,
    /// The last position row on the way, with its `applied`: in the changelog only, and only if one was passed.
    pub position: Option<(Offset, Bytes)>,
}

/// The records of a journal as they become durable, whoever appended them.
pub trait Tail: Send {
    /// What has come since the last call, in order and without gaps, up to `bytes_max` but at least one record if
    /// there is one; empty where nothing is there yet. Never blocks.
    fn take(&mut self, bytes_max: usize) -> Result<Vec<Record>, Error>;
}

/// What a processor needs of a log.
pub trait Log: Send + Sync + 'static {
    /// The random id made with the topics; offsets of another incarnation mean nothing.
    fn incarnation(&self) -> [u8; 16];

    /// Count of partitions, fixed when the topics were made.
    fn partitions(&self) -> u32;

    /// Takes a partition: from the return on, no earlier fence of it can commit.
    fn fence(&self, partition: PartitionId) -> Result<Fence, Error>;

    /// Appends to a journal, all records or none, and never blocks; `done` is called when they are durable, or failed.
    /// `Unknown`: they, some of them or none may be there, or come later; the records of one caller keep their order.
    fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone);

    /// Durable records from an offset on, in order and without gaps: at least one if there is one, then up to
    /// `bytes_max`. Empty at the end of the journal; `OutOfRange` below its start or beyond its end.
    fn read(&self, partition: PartitionId, from: Offset, bytes_max: usize) -> Result<Vec<Record>, Error>;

    /// Follows a journal from an offset on; None where only the partition's own appends reach it. `wake` is called
    /// when there is something new after `take` gave nothing.
    fn follow(
        &self,
        partition: PartitionId,
        from: Offset,
        wake: Wake,
    ) -> Result<Option<Box<dyn Tail>>, Error>;

    /// First offset that is there, and the next to be written.
    fn bounds(&self, partition: PartitionId) -> Result<Range<Offset>, Error>;

    /// Commits outputs and position atomically; `Fenced` if the fence is old. Done means visible and never undone
    /// by a crash of the process; after a loss of power an earlier position may come back, with its outputs.
    /// `Unknown`: it may be visible, now or later; take the partition over again to find out.
    fn commit(&self, commit: Commit, done: CommitDone);

    /// The partitions whose outputs go in one transaction if they are committed at the same moment, which costs less.
    fn committed_with(&self, partition: PartitionId) -> Range<PartitionId> {
        partition..partition + 1
    }

    /// Where a restore may begin that needs only what comes after the last commit or restore of this log; all 0 where
    /// the rows are in the log itself.
    fn marks(&self, partition: PartitionId) -> Result<Marks, Error>;

    /// The last committed `applied` and position row. May read all of the changelog.
    fn position(&self, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error>;

    /// Visits a partition's rows in a compacted topic until `visit` says false; the last visit of a key holds. From 0:
    /// every live row; from a mark: what has changed since. `OutOfRange`: a mark of which too much was forgotten.
    /// All of this log's own commits that are done are visited.
    fn restore(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error>;

    /// Brings a slice of what `restore` visits, and never blocks; `done` is called when it is there, or failed.
    fn restore_chunk(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
        done: RestoreChunkDone,
    ) {
        done(restore_chunk(self, topic, partition, from, bytes_max));
    }

    /// How long the compacted topics tell at least that a row was deleted, in ms: a restore from a mark that is older
    /// may miss it. None: for ever.
    fn tombstones_ms(&self) -> Option<i64> {
        None
    }

    /// Forgets journal records below an offset; `OutOfRange` above the committed position, which is durable when
    /// this returns.
    fn trim(&self, partition: PartitionId, below: Offset) -> Result<(), Error>;

    /// Entries of an append-only topic; limits as in `read`.
    fn topic_read(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<TopicEntry>, Error>;

    /// Forgets entries of an append-only topic below an offset.
    fn topic_trim(&self, topic: Topic, partition: PartitionId, below: Offset) -> Result<(), Error>;

    /// Writes (or with None removes) a row of the control topic; durable when it returns.
    fn control_put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error>;

    /// Visits the rows (key, value) of the control topic in key order.
    fn control_scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error>;
}

/// The partition that owns a bucket.
pub fn bucket_owner(bucket: u16, partitions: u32) -> PartitionId {
    (u64::from(bucket) * u64::from(partitions) / u64::from(BUCKETS)) as PartitionId
}

/// The buckets that a partition owns: those with `bucket * partitions / BUCKETS == partition`.
pub fn buckets_of(partition: PartitionId, partitions: u32) -> Range<u32> {
    let edge = |p: u64| (p * u64::from(BUCKETS)).div_ceil(u64::from(partitions)) as u32;
    edge(u64::from(partition))..edge(u64::from(partition) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_has_exactly_the_owner_whose_range_holds_it() {
        for partitions in [1, 2, 3, 7, 8, 16, 100, 256] {
            for bucket in 0..BUCKETS {
                let owner = bucket_owner(bucket as u16, partitions);
                assert!(buckets_of(owner, partitions).contains(&bucket), "{bucket} of {partitions}");
            }
            assert_eq!(buckets_of(partitions - 1, partitions).end, BUCKETS);
        }
    }
}
