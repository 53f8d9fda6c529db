//! The embedded log: log, output topics and state rows in one local RocksDB with one write-ahead log.
//!
//! One writer thread writes all waiting appends as one batch and syncs once. Files in the directory: `lock`, `acked` (see
//! `durable_watermark.rs`) and `db/`, the database.

mod database_options;
mod disk_reserve;
mod durable_watermark;
mod files;
mod memory;
mod open;
mod options;
mod queue;
mod read;
mod rows;
mod shared;
mod snapshot;
mod stats;
mod writer;

use std::ops::Range;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use everlog_log::{
    AppendDone, Commit, CommitDone, Error, Fence, Log, Marks, Offset, PartitionId, Record, Restored, Tail,
    Topic, TopicEntry, Visit, Wake,
};
use rocksdb::DB;

use queue::WriterJob;
use shared::Shared;

pub use durable_watermark::PARTITIONS_MAX;
pub use options::{FreeBytes, Limits, Options, Recover, Sync, WallClock};
pub use snapshot::snapshot;
pub use stats::Stats;

/// The way out of damage, for the operator.
const WAY_OUT: &str = "stop, keep a copy of the directory, and restore it from a backup; or, to go on with what \
                       is readable and lose the rest, open it once with recover = accept-loss";

/// The embedded log. Dropping it writes what waits, then closes; the database closes with its last handle.
pub struct Embedded {
    shared: Arc<Shared>,
    writer: Option<std::thread::JoinHandle<()>>,
    recovery: Recovery,
    _lock: std::fs::File,
}

/// What opening found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the directory was made now.
    pub created: bool,
    /// Bytes of a torn, never acknowledged tail that were cut off.
    pub torn_bytes: u64,
    /// Journal records behind the committed positions, all of them verified.
    pub unapplied_records: u64,
}

impl Embedded {
    /// Opens or makes a log: `Locked`, `Corrupt`, `Mismatch`, `Refused` (settings) or `Io`.
    pub fn open(options: Options) -> Result<Self, Error> {
        open::open(options)
    }

    /// The database, for the reader of the state rows: one column family for each `Space`.
    pub fn database(&self) -> Arc<DB> {
        Arc::clone(&self.shared.db)
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// What opening found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// First offset that is there, and the next to be written, of an append-only topic: `Refused` where it is none.
    pub fn topic_bounds(&self, topic: Topic, partition: PartitionId) -> Result<Range<Offset>, Error> {
        Ok(self.shared.topic_ends(topic, partition)?.range())
    }

    /// Why the log ended, if it did: after that every call gets `Closed`, and the process should exit.
    pub fn failure(&self) -> Option<Error> {
        self.shared.failure()
    }

    /// Whether appends are refused for want of space: not ready, but alive. Looks at the disk.
    pub fn is_full(&self) -> bool {
        self.shared.space.is_full()
    }

    fn ask<T>(&self, job: impl FnOnce(mpsc::SyncSender<Result<T, Error>>) -> WriterJob) -> Result<T, Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.shared.send(job(answer));
        answered.recv().unwrap_or(Err(Error::Closed))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(writer) = self.writer.take() {
            // A panic of the writer was reported by its own hook; there is nobody left to tell.
            let _ = writer.join();
        }
    }
}

impl Log for Embedded {
    fn incarnation(&self) -> [u8; 16] {
        self.shared.incarnation
    }

    fn partitions(&self) -> u32 {
        self.shared.partitions()
    }

    fn fence(&self, partition: PartitionId) -> Result<Fence, Error> {
        self.shared.slot(partition)?;
        self.ask(|answer| WriterJob::Fence { partition, answer })
    }

    fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone) {
        self.shared.append(partition, records, done);
    }

    fn read(&self, partition: PartitionId, from: Offset, bytes_max: usize) -> Result<Vec<Record>, Error> {
        read::journal(&self.shared, partition, from, bytes_max)
    }

    fn follow(&self, _: PartitionId, _: Offset, _: Wake) -> Result<Option<Box<dyn Tail>>, Error> {
        // The lock on the directory keeps others out.
        Ok(None)
    }

    fn bounds(&self, partition: PartitionId) -> Result<Range<Offset>, Error> {
        Ok(self.shared.slot(partition)?.journal.range())
    }

    fn commit(&self, commit: Commit, done: CommitDone) {
        self.shared.commit(commit, done);
    }

    fn marks(&self, partition: PartitionId) -> Result<Marks, Error> {
        self.shared.slot(partition).map(|_| Marks::default())
    }

    fn position(&self, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error> {
        self.shared.slot(partition)?;
        read::position(&self.shared.db, partition)
    }

    fn restore(
        &self,
        topic: Topic,
        partition: PartitionId,
        _from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        read::restore(&self.shared, topic, partition, &mut |key, value| visit(key, Some(value)))?;
        let position = if topic == Topic::Changelog { self.position(partition)? } else { None };
        Ok(Restored { position, ..Restored::default() })
    }

    fn trim(&self, partition: PartitionId, below: Offset) -> Result<(), Error> {
        self.shared.slot(partition)?;
        self.ask(|answer| WriterJob::Trim { partition, below, answer })
    }

    fn topic_read(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<TopicEntry>, Error> {
        read::topic(&self.shared, topic, partition, from, bytes_max)
    }

    fn topic_trim(&self, topic: Topic, partition: PartitionId, below: Offset) -> Result<(), Error> {
        self.shared.topic_ends(topic, partition)?;
        self.ask(|answer| WriterJob::TopicTrim { topic, partition, below, answer })
    }

    fn control_put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let (key, value) = (Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice));
        self.ask(|answer| WriterJob::Control { key, value, answer })
    }

    fn control_scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        read::control(&self.shared.db, visit)
    }
}
