//! The traits of the durable log: append to journals, commit outputs, restore rows.
//!
//! A log carries bytes and knows no workflow. This crate knows no storage: the implementations are in other crates, and
//! each passes `contract::check`.

mod backoff;
pub mod clock;
pub mod consumer;
pub mod contract;
mod error;
mod import_mark;
mod outage;
mod restore_chunk;
mod topic;

use std::ops::Range;

use bytes::Bytes;

pub use crate::backoff::Backoff;
pub use crate::error::Error;
pub use crate::import_mark::{IMPORT_MARK, has_unfinished_import};
pub use crate::outage::Outage;
pub use crate::restore_chunk::{RestoreChunk, RestoreChunkDone, restore_chunk};
pub use crate::topic::{PerTopic, Space, Topic};

/// A partition: a contiguous range of the buckets of Workflow Ids. Counted from 0.
pub type PartitionId = u32;
/// The offset of a record in a journal, or of an entry in an append-only topic. Counted from 0 without gaps.
pub type Offset = u64;

/// Buckets that the Workflow Ids are hashed into; a partition owns a contiguous range of them.
pub const BUCKETS: u32 = 16_384;

/// One record of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: Offset,
    /// The log's time of the append, in ms since 1970-01-01 UTC. It never decreases within a partition.
    pub stamp_ms: i64,
    /// What was appended.
    pub bytes: Bytes,
}

/// The result of an append: consecutive offsets from `first`, one stamp for all records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first: Offset,
    /// Stamp of every record of the append, milliseconds since 1970.
    pub stamp_ms: i64,
}

/// A fence: the right to commit outputs of a partition. Only the latest one of a partition is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence(pub u64);

/// A record that an applied journal yields for a topic.
#[derive(Clone, Debug)]
pub struct Output {
    /// Where it goes.
    pub topic: Topic,
    /// In a compacted topic it starts with the bucket (u16, big endian), which must be the partition's own.
    pub key: Bytes,
    /// None is a tombstone, in compacted topics only.
    pub value: Option<Bytes>,
    /// Headers for readers of an append-only topic, in logs that have headers. The value repeats what must be kept.
    pub headers: Vec<(&'static str, Bytes)>,
}

impl Output {
    /// One without headers.
    pub fn new(topic: Topic, key: Bytes, value: Option<Bytes>) -> Self {
        Self { topic, key, value, headers: Vec::new() }
    }
}

/// Outputs and the position that they belong to, committed atomically.
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
    /// Rows of `Space::Index`, None deletes. A log that keeps rows writes them with the outputs; others leave them to the
    /// partition.
    pub index: Vec<(Bytes, Option<Bytes>)>,
}

/// Called once, by the log's thread: keep it short and never block in it. None: the records are durable, but other writers'
/// records are between them or their stamps differ. `follow` then delivers them with their offsets.
pub type AppendDone = Box<dyn FnOnce(Result<Option<Appended>, Error>) + Send>;
/// Called once, by the log's thread: keep it short and never block in it.
pub type CommitDone = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// One entry of an append-only topic: offset, key, value.
pub type TopicEntry = (Offset, Bytes, Bytes);
/// Visits one row of a compacted topic: key, value (None is a tombstone); false stops.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], Option<&[u8]>) -> bool;
/// Called by the log's thread when a `Tail` has new records: keep it short and never block in it.
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

/// The end of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Where the next restore of this topic may begin.
    pub next: Offset,
    /// The end of the topic when it was read.
    pub end: Offset,
    /// The last position row that was passed, with its `applied`; in the changelog only.
    pub position: Option<(Offset, Bytes)>,
}

/// The records of a journal as they become durable, of any writer.
pub trait Tail: Send {
    /// New records since the last call, in order and without gaps: at least one if there is one, then up to `bytes_max`.
    /// Never blocks.
    fn take(&mut self, bytes_max: usize) -> Result<Vec<Record>, Error>;
}

/// A log, as the partitions need it.
pub trait Log: Send + Sync + 'static {
    /// The random id that was made with the topics. Offsets of another incarnation are meaningless.
    fn incarnation(&self) -> [u8; 16];

    /// Count of partitions, fixed when the topics were made.
    fn partitions(&self) -> u32;

    /// Fences a partition: once it returns, no earlier fence of the partition can commit.
    fn fence(&self, partition: PartitionId) -> Result<Fence, Error>;

    /// Appends to a journal, all records or none, and never blocks; `done` is called when they are durable, or failed.
    /// After `Unknown` all, some or none may be durable, now or later. The records of one caller keep their order.
    fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone);

    /// Durable records from an offset on, in order and without gaps: at least one if there is one, then up to
    /// `bytes_max`. Empty at the end of the journal; `OutOfRange` below its start or beyond its end.
    fn read(&self, partition: PartitionId, from: Offset, bytes_max: usize) -> Result<Vec<Record>, Error>;

    /// Follows a journal from an offset on. None: only this process appends to it. `wake` is called for new records after
    /// `take` returned none.
    fn follow(
        &self,
        partition: PartitionId,
        from: Offset,
        wake: Wake,
    ) -> Result<Option<Box<dyn Tail>>, Error>;

    /// First offset that is there, and the next to be written.
    fn bounds(&self, partition: PartitionId) -> Result<Range<Offset>, Error>;

    /// Commits outputs and position atomically; `Fenced` if the fence is old. A commit that is done is visible, and no crash
    /// of the process undoes it. A loss of power may bring back an earlier position, with its outputs. After `Unknown` it
    /// may become visible, now or later: fence the partition again to find out.
    fn commit(&self, commit: Commit, done: CommitDone);

    /// The partitions whose commits of the same moment share one transaction, which costs less.
    fn committed_with(&self, partition: PartitionId) -> Range<PartitionId> {
        partition..partition + 1
    }

    /// Where a restore begins that needs only what came after the last commit or restore of this log. All 0: the log itself
    /// holds the rows.
    fn marks(&self, partition: PartitionId) -> Result<Marks, Error>;

    /// The last committed `applied` and position row. May read all of the changelog.
    fn position(&self, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error>;

    /// Visits a partition's rows in a compacted topic until `visit` returns false; the last visit of a key holds. From 0: every
    /// live row. From a mark: every change since. `OutOfRange`: changes since the mark were deleted. The visit includes
    /// all commits of this log that are done.
    fn restore(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error>;

    /// Reads a chunk of what `restore` visits, and never blocks; `done` is called with it, or with the error.
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

    /// How long compacted topics keep tombstones at least, in ms: a restore from an older mark may miss a deletion. None: for
    /// ever.
    fn tombstones_ms(&self) -> Option<i64> {
        None
    }

    /// Deletes journal records below an offset; `OutOfRange` above the committed position. That position is durable when this
    /// returns.
    fn trim(&self, partition: PartitionId, below: Offset) -> Result<(), Error>;

    /// Entries of an append-only topic; limits as in `read`.
    fn topic_read(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<TopicEntry>, Error>;

    /// Deletes entries of an append-only topic below an offset.
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
