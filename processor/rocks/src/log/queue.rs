//! The queue of the writer: appends, and all other jobs. The two take turns.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

use bytes::Bytes;
use everlog_log::{AppendDone, Commit, CommitDone, Error, Fence, Offset, Output, PartitionId, Topic};

/// Bytes of commits after which appends get their turn.
const OTHERS_BYTES_MAX: usize = 256 << 10;

/// Work for the writer, in the order in which it was given.
pub(super) enum WriterJob {
    Append { partition: PartitionId, records: Vec<Bytes>, bytes: usize, done: AppendDone },
    Commit { commit: Commit, done: CommitDone },
    Fence { partition: PartitionId, answer: SyncSender<Result<Fence, Error>> },
    Trim { partition: PartitionId, below: Offset, answer: SyncSender<Result<(), Error>> },
    TopicTrim { topic: Topic, partition: PartitionId, below: Offset, answer: SyncSender<Result<(), Error>> },
    Control { key: Bytes, value: Option<Bytes>, answer: SyncSender<Result<(), Error>> },
}

impl WriterJob {
    /// Ends a job that was never written.
    pub(super) fn fail(self, error: Error) {
        // A caller that does not wait any more needs no answer.
        match self {
            WriterJob::Append { done, .. } => done(Err(error)),
            WriterJob::Commit { done, .. } => done(Err(error)),
            WriterJob::Fence { answer, .. } => drop(answer.send(Err(error))),
            WriterJob::Trim { answer, .. }
            | WriterJob::TopicTrim { answer, .. }
            | WriterJob::Control { answer, .. } => {
                drop(answer.send(Err(error)));
            }
        }
    }
}

/// Jobs in two lanes that take turns, each in its own order: a commit writes much and syncs nothing, and an append in
/// one batch with it would wait for all of that.
#[derive(Default)]
pub(super) struct WriterQueue {
    appends: VecDeque<WriterJob>,
    others: VecDeque<WriterJob>,
    others_are_next: bool,
    waiting_items: usize,
    waiting_bytes: usize,
    pub(super) closed: bool,
}

impl WriterQueue {
    pub(super) fn push(&mut self, job: WriterJob) {
        match &job {
            WriterJob::Append { bytes, .. } => {
                self.waiting_items += 1;
                self.waiting_bytes += bytes;
                self.appends.push_back(job);
            }
            WriterJob::Commit { .. }
            | WriterJob::Fence { .. }
            | WriterJob::Trim { .. }
            | WriterJob::TopicTrim { .. }
            | WriterJob::Control { .. } => self.others.push_back(job),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.others.is_empty()
    }

    /// How many appends wait, and their bytes.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.waiting_items, self.waiting_bytes)
    }

    /// Takes jobs of one lane up to about so many bytes.
    pub(super) fn take(&mut self, batch: &mut Vec<WriterJob>, bytes_max: usize) {
        let others = !self.others.is_empty() && (self.others_are_next || self.appends.is_empty());
        self.others_are_next = !others;
        let bytes_max = if others { bytes_max.min(OTHERS_BYTES_MAX) } else { bytes_max };
        let mut taken_bytes = 0;
        while taken_bytes < bytes_max {
            let lane = if others { &mut self.others } else { &mut self.appends };
            let Some(job) = lane.pop_front() else { break };
            match &job {
                WriterJob::Append { bytes, .. } => {
                    self.waiting_items -= 1;
                    self.waiting_bytes -= bytes;
                    taken_bytes += bytes;
                }
                WriterJob::Commit { commit, .. } => {
                    taken_bytes += commit.outputs.iter().map(size_bytes).sum::<usize>();
                    let row_bytes = |(key, value): &(Bytes, Option<Bytes>)| {
                        key.len() + value.as_ref().map_or(0, Bytes::len)
                    };
                    taken_bytes += commit.index.iter().map(row_bytes).sum::<usize>();
                }
                WriterJob::Fence { .. }
                | WriterJob::Trim { .. }
                | WriterJob::TopicTrim { .. }
                | WriterJob::Control { .. } => {}
            }
            batch.push(job);
        }
    }

    /// Empties both lanes.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = WriterJob> + use<> {
        (self.waiting_items, self.waiting_bytes) = (0, 0);
        std::mem::take(&mut self.appends).into_iter().chain(std::mem::take(&mut self.others))
    }
}

fn size_bytes(output: &Output) -> usize {
    output.key.len() + output.value.as_ref().map_or(0, Bytes::len)
}
