//! The queue of one source partition: waiting records, and the batch in flight.

use std::collections::VecDeque;

use everlog_log::consumer::Fetched;
use tokio::task::AbortHandle;

use crate::options::Options;

/// Waiting records of one source partition.
#[derive(Default)]
pub(crate) struct PartitionQueue {
    waiting: VecDeque<Fetched>,
    waiting_bytes: usize,
    /// The task of the batch in flight, and the offset after the batch.
    under_way: Option<(AbortHandle, u64)>,
    paused: bool,
}

impl PartitionQueue {
    pub(crate) fn push(&mut self, fetched: Fetched) {
        self.waiting_bytes += fetched.size_bytes();
        self.waiting.push_back(fetched);
    }

    /// Records and bytes that wait.
    pub(crate) fn backlog(&self) -> (usize, usize) {
        (self.waiting.len(), self.waiting_bytes)
    }

    /// True where the source is to be paused now.
    pub(crate) fn pauses(&mut self, options: &Options) -> bool {
        let is_full = self.waiting.len() >= options.backlog_records_max
            || self.waiting_bytes >= options.backlog_bytes_max;
        is_full && !std::mem::replace(&mut self.paused, true)
    }

    /// True where the source is to be resumed now.
    pub(crate) fn resumes(&mut self, options: &Options) -> bool {
        let has_room = self.waiting.len() <= options.backlog_records_max / 2
            && self.waiting_bytes <= options.backlog_bytes_max / 2;
        has_room && std::mem::replace(&mut self.paused, false)
    }

    /// The next batch, and the offset after it; None while one is in flight.
    pub(crate) fn take(&mut self, options: &Options) -> Option<(Vec<Fetched>, u64)> {
        if self.under_way.is_some() {
            return None;
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < options.batch_records_max {
            let Some(next) = self.waiting.front() else { break };
            bytes += next.size_bytes();
            if !batch.is_empty() && bytes > options.batch_bytes_max {
                break;
            }
            let Some(next) = self.waiting.pop_front() else { break };
            self.waiting_bytes -= next.size_bytes();
            batch.push(next);
        }
        let next = batch.last()?.offset + 1;
        Some((batch, next))
    }

    pub(crate) fn sent(&mut self, task: AbortHandle, next: u64) {
        self.under_way = Some((task, next));
    }

    /// The batch of this task is durable: the offset after it.
    pub(crate) fn arrived(&mut self, task: tokio::task::Id) -> Option<u64> {
        self.under_way.take_if(|(under_way, _)| under_way.id() == task).map(|(_, next)| next)
    }
}

impl Drop for PartitionQueue {
    fn drop(&mut self) {
        // An append in flight may still become durable; its records count once.
        if let Some((task, _)) = &self.under_way {
            task.abort();
        }
    }
}
