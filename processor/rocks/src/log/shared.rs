//! What callers and the writer share: the database, the queue between them, the published ends.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use everlog_log::{
    AppendDone, Commit, CommitDone, Error, Offset, PartitionId, PerTopic, Topic, bucket_owner,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rocksdb::DB;

use super::Limits;
use super::disk_reserve::DiskReserve;
use super::queue::{WriterJob, WriterQueue};
use super::stats::{Counters, Stats};

/// First offset that is there and next to be written, as readers may see them.
#[derive(Default)]
pub(super) struct PublishedEnds {
    start: AtomicU64,
    end: AtomicU64,
}

impl PublishedEnds {
    pub(super) fn range(&self) -> Range<Offset> {
        let start = self.start.load(Ordering::Acquire);
        start..self.end.load(Ordering::Acquire).max(start)
    }

    pub(super) fn publish(&self, start: Offset, end: Offset) {
        self.end.store(end, Ordering::Release);
        self.start.store(start, Ordering::Release);
    }
}

#[derive(Default)]
pub(super) struct PublishedPartition {
    pub(super) journal: PublishedEnds,
    /// Of the append-only ones.
    pub(super) topics: PerTopic<PublishedEnds>,
}

pub(super) struct Shared {
    pub(super) db: Arc<DB>,
    pub(super) incarnation: [u8; 16],
    pub(super) limits: Limits,
    pub(super) slots: Vec<PublishedPartition>,
    pub(super) counters: Counters,
    pub(super) space: DiskReserve,
    queue: Mutex<WriterQueue>,
    filled: Condvar,
    failure: Mutex<Option<Error>>,
}

impl Shared {
    pub(super) fn new(
        db: Arc<DB>,
        space: DiskReserve,
        incarnation: [u8; 16],
        limits: Limits,
        slots: Vec<PublishedPartition>,
    ) -> Self {
        Shared {
            db,
            space,
            incarnation,
            limits,
            slots,
            counters: Counters::default(),
            queue: Mutex::default(),
            filled: Condvar::new(),
            failure: Mutex::default(),
        }
    }

    pub(super) fn partitions(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn slot(&self, partition: PartitionId) -> Result<&PublishedPartition, Error> {
        let known = self.partitions();
        self.slots
            .get(partition as usize)
            .ok_or_else(|| Error::refused(format!("partition {partition} of {known} does not exist")))
    }

    pub(super) fn topic_ends(&self, topic: Topic, partition: PartitionId) -> Result<&PublishedEnds, Error> {
        check_append_only(topic)?;
        Ok(&self.slot(partition)?.topics[topic])
    }

    pub(super) fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone) {
        let bytes = records.iter().map(Bytes::len).sum();
        match self.admit_append(partition, &records, bytes) {
            Ok(mut queue) => {
                queue.push(WriterJob::Append { partition, records, bytes, done });
                drop(queue);
                self.filled.notify_one();
            }
            Err(error) => done(Err(error)),
        }
    }

    fn admit_append(
        &self,
        partition: PartitionId,
        records: &[Bytes],
        bytes: usize,
    ) -> Result<MutexGuard<'_, WriterQueue>, Error> {
        self.slot(partition)?;
        if records.is_empty() {
            return Err(Error::refused("an append of no records"));
        }
        if bytes > self.limits.append_bytes_max {
            let limit = self.limits.append_bytes_max;
            return Err(Error::refused(format!(
                "an append of {bytes} bytes, above append_bytes_max = {limit}"
            )));
        }
        let queue = self.lock_queue();
        if queue.closed {
            return Err(Error::Closed);
        }
        let (waiting_items, waiting_bytes) = queue.waiting();
        if waiting_items >= self.limits.waiting_items_max || waiting_bytes >= self.limits.waiting_bytes_max {
            return Err(Error::Busy { waiting_items, waiting_bytes });
        }
        Ok(queue)
    }

    pub(super) fn commit(&self, commit: Commit, done: CommitDone) {
        match self.check_commit(&commit) {
            Ok(()) => self.send(WriterJob::Commit { commit, done }),
            Err(error) => done(Err(error)),
        }
    }

    fn check_commit(&self, commit: &Commit) -> Result<(), Error> {
        self.slot(commit.partition)?;
        for output in &commit.outputs {
            let topic = output.topic;
            if !topic.is_compacted() {
                if output.value.is_none() {
                    return Err(Error::refused(format!("a tombstone in {topic:?}, which is append-only")));
                }
                continue;
            }
            let Some((bucket, _)) = output.key.split_first_chunk::<2>() else {
                return Err(Error::refused(format!("a key of {topic:?} without a bucket")));
            };
            let bucket = u16::from_be_bytes(*bucket);
            if bucket_owner(bucket, self.partitions()) != commit.partition {
                let partition = commit.partition;
                return Err(Error::refused(format!("bucket {bucket} is not of partition {partition}")));
            }
        }
        Ok(())
    }

    /// Queues a job whatever waits already: everything but appends is bounded by its callers.
    pub(super) fn send(&self, job: WriterJob) {
        let mut queue = self.lock_queue();
        if queue.closed {
            drop(queue);
            return job.fail(Error::Closed);
        }
        queue.push(job);
        drop(queue);
        self.filled.notify_one();
    }

    /// Waits for work and takes a batch of it; false when closed and nothing is left. With a limit to
    /// the wait there may be none.
    pub(super) fn take(&self, batch: &mut Vec<WriterJob>, wait_max: Option<Duration>) -> bool {
        let mut queue = self.lock_queue();
        while queue.is_empty() {
            if queue.closed {
                return false;
            }
            let Some(wait_max) = wait_max else {
                self.filled.wait(&mut queue);
                continue;
            };
            if self.filled.wait_for(&mut queue, wait_max).timed_out() {
                break;
            }
        }
        queue.take(batch, self.limits.batch_bytes_max);
        true
    }

    /// Lets the writer finish what waits and end; later calls get `Closed`.
    pub(super) fn close(&self) {
        self.lock_queue().closed = true;
        self.filled.notify_all();
    }

    /// Ends the log at once: what waits gets `Closed`.
    pub(super) fn end(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.close();
        let jobs = self.lock_queue().take_all();
        jobs.for_each(|job| job.fail(Error::Closed));
    }

    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }

    pub(super) fn stats(&self) -> Stats {
        let queue = self.lock_queue();
        let (waiting_items, waiting_bytes) = queue.waiting();
        self.counters.snapshot(waiting_items, waiting_bytes)
    }

    fn lock_queue(&self) -> MutexGuard<'_, WriterQueue> {
        self.queue.lock()
    }
}

/// `Refused` for a compacted topic.
pub(super) fn check_append_only(topic: Topic) -> Result<(), Error> {
    if topic.is_compacted() {
        return Err(Error::refused(format!("{topic:?} is compacted, not append-only")));
    }
    Ok(())
}
