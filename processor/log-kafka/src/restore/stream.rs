//! Restores compacted topics in chunks for callers that must not block: one thread reads them one after the other.
//!
//! A fetch brings more than a chunk, so the next chunks of a partition are kept until they are asked for.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use everlog_log::{Error, Offset, PartitionId, RestoreChunk, RestoreChunkDone, Topic};

use crate::errors::io_text;
use crate::group_context::GroupContext;

/// Requests that may wait: one of each partition, and a margin.
const JOBS_MAX: usize = 8_192;
/// Memory of a row besides its bytes.
const ROW_BYTES: usize = 64;
/// Bytes that are read at a time for one partition, and bytes that are kept for all together.
const READ_BYTES: usize = 8 << 20;
const KEPT_BYTES_MAX: usize = 64 << 20;
/// How long chunks are kept that are not asked for.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// A question.
pub(crate) struct RestoreRequest {
    pub(crate) topic: Topic,
    pub(crate) partition: PartitionId,
    pub(crate) from: Offset,
    pub(crate) bytes_max: usize,
    pub(crate) done: RestoreChunkDone,
}

/// The thread, seen from outside.
pub(crate) struct RestoreStream {
    jobs: Option<SyncSender<RestoreRequest>>,
    thread: Option<JoinHandle<()>>,
}

impl RestoreStream {
    pub(crate) fn open(context: Arc<GroupContext>) -> Result<Self, Error> {
        let (jobs, received) = sync_channel(JOBS_MAX);
        let thread = std::thread::Builder::new().name("slices".into());
        let mut shelf = ChunkCache { context, kept: HashMap::new() };
        let thread = thread.spawn(move || shelf.serve(&received));
        let thread = thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(RestoreStream { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues a question; never blocks.
    pub(crate) fn ask(&self, job: RestoreRequest) {
        let Some(jobs) = &self.jobs else { return answer(job.done, Err(Error::Closed)) };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => {
                answer(job.done, Err(Error::Busy { waiting_items: JOBS_MAX, waiting_bytes: 0 }));
            }
            Err(TrySendError::Disconnected(job)) => answer(job.done, Err(Error::Closed)),
        }
    }
}

impl Drop for RestoreStream {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by its own hook; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// A slice, where it begins, and its bytes.
type KeptChunk = (Offset, RestoreChunk, usize);

/// What was read and not asked for yet, in order.
struct ChunkCache {
    context: Arc<GroupContext>,
    kept: HashMap<(Topic, PartitionId), VecDeque<KeptChunk>>,
}

impl ChunkCache {
    fn serve(&mut self, jobs: &Receiver<RestoreRequest>) {
        loop {
            let RestoreRequest { topic, partition, from, bytes_max, done } = match jobs.recv_timeout(KEPT_FOR)
            {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.kept = HashMap::new();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let slice = AssertUnwindSafe(|| self.slice(topic, partition, from, bytes_max));
            let outcome = std::panic::catch_unwind(slice);
            answer(done, outcome.unwrap_or_else(|_| Err(io_text("reading a slice panicked"))));
        }
    }

    fn slice(
        &mut self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<RestoreChunk, Error> {
        let place = (topic, partition);
        let mut kept = self.kept.remove(&place).unwrap_or_default();
        let slice = match kept.pop_front() {
            // Later commits are behind it; the new end shows them.
            Some((start, slice, _)) if start == from => {
                RestoreChunk { end: self.context.restored_to(topic, partition)?, ..slice }
            }
            Some(_) | None => {
                let bytes = self.kept.values().flatten().map(|(_, _, bytes)| bytes).sum::<usize>();
                let read_bytes = if bytes < KEPT_BYTES_MAX { READ_BYTES } else { bytes_max };
                kept = self.read(topic, partition, from, bytes_max, read_bytes)?;
                let (_, first, _) = kept.pop_front().ok_or_else(|| io_text("a restore without an end"))?;
                first
            }
        };
        if !kept.is_empty() {
            self.kept.insert(place, kept);
        }
        self.context.restored(topic, partition, slice.next);
        Ok(slice)
    }

    /// At least one chunk.
    fn read(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
        read_bytes: usize,
    ) -> Result<VecDeque<KeptChunk>, Error> {
        let mut slices: VecDeque<KeptChunk> = VecDeque::new();
        let (mut rows, mut start, mut bytes, mut all) = (Vec::new(), from, 0, 0);
        let restored = self.context.visit(topic, partition, from, &mut |offset, key, value| {
            let size_bytes = key.len() + value.map_or(0, <[u8]>::len) + ROW_BYTES;
            (bytes, all) = (bytes + size_bytes, all + size_bytes);
            rows.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
            if bytes >= bytes_max {
                let slice = RestoreChunk { rows: std::mem::take(&mut rows), next: offset + 1, end: 0 };
                slices.push_back((start, slice, bytes));
                (start, bytes) = (offset + 1, 0);
            }
            all < read_bytes
        })?;
        if slices.is_empty() || restored.next > start {
            slices.push_back((start, RestoreChunk { rows, next: restored.next, end: 0 }, bytes));
        }
        slices.iter_mut().for_each(|(_, slice, _)| slice.end = restored.end);
        Ok(slices)
    }
}

/// A caller's panic must not end the log for everyone else; its own hook has reported it.
fn answer(done: RestoreChunkDone, outcome: Result<RestoreChunk, Error>) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(move || done(outcome)));
}
