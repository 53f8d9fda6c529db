//! Slices of compacted topics, for those who do not wait for them: one thread reads them, one after the other.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use everlog_log::{Error, Offset, PartitionId, Slice, SliceDone, Topic};

use crate::common::Common;
use crate::fault::io_text;

/// Questions that may wait: one of each partition, and some.
const JOBS_MAX: usize = 8_192;
/// What a row of a slice costs besides its bytes, about.
const ROW_BYTES: usize = 64;

/// A question.
pub(crate) struct Job {
    pub(crate) topic: Topic,
    pub(crate) partition: PartitionId,
    pub(crate) from: Offset,
    pub(crate) bytes_max: usize,
    pub(crate) done: SliceDone,
}

/// The thread, seen from outside.
pub(crate) struct Slices {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Slices {
    pub(crate) fn open(common: Arc<Common>) -> Result<Self, Error> {
        let (jobs, received) = sync_channel(JOBS_MAX);
        let thread = std::thread::Builder::new().name("slices".into());
        let thread = thread.spawn(move || serve(&common, &received));
        let thread = thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(Slices { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues a question; never blocks.
    pub(crate) fn ask(&self, job: Job) {
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

impl Drop for Slices {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by its own hook; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

fn serve(common: &Common, jobs: &Receiver<Job>) {
    while let Ok(Job { topic, partition, from, bytes_max, done }) = jobs.recv() {
        let read = AssertUnwindSafe(|| read(common, topic, partition, from, bytes_max));
        let outcome = std::panic::catch_unwind(read);
        answer(done, outcome.unwrap_or_else(|_| Err(io_text("reading a slice panicked"))));
    }
}

fn read(
    common: &Common,
    topic: Topic,
    partition: PartitionId,
    from: Offset,
    bytes_max: usize,
) -> Result<Slice, Error> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    let restored = common.restore(topic, partition, from, &mut |key, value| {
        bytes += key.len() + value.map_or(0, <[u8]>::len) + ROW_BYTES;
        rows.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        bytes < bytes_max
    })?;
    Ok(Slice { rows, next: restored.next, end: restored.end })
}

/// A caller's panic must not end the log for everyone else; its own hook has reported it.
fn answer(done: SliceDone, outcome: Result<Slice, Error>) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(move || done(outcome)));
}
