//! Outputs go to the log in the background, and only when they are committed do their rows stand in the base.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_log::{Commit, Log, Output};
use everlog_store::CommittedRows;

use crate::config::HOLD_MS;
use crate::error::Error;
use crate::invariants::{Rule, Rules};
use crate::model::inbox_message::InboxMessage;
use crate::partition::Partition;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn commit_if_due(&mut self, now_ms: i64) -> Result<(), Error> {
        let early = self.uncommitted_bytes() > self.context.config.overlay_bytes_max;
        if self.committing.is_some() || !self.changed || (now_ms < self.next_commit_ms && !early) {
            return Ok(());
        }
        self.runs.flush();
        self.keep_messages();
        let mut outputs = self.outputs.begin_commit();
        let mut index = Vec::new();
        for (space, key, value) in self.runs.store().begin_commit() {
            match space.topic() {
                Some(topic) => outputs.push(Output::new(topic, key, value)),
                None => index.push((key, value)),
            }
        }
        let (send, id) = (self.context.send.clone(), self.context.id);
        let (applied, position) = (self.position.applied, self.position.encode());
        self.committing = Some((applied, position.clone()));
        if !R::keeps(Rule::RowsAfterCommit) {
            self.write_rows(position.clone(), now_ms)?;
        }
        let commit =
            Commit { partition: self.context.id, fence: self.fence, applied, position, outputs, index };
        self.changed = false;
        self.next_commit_ms = self.next_commit_slot_ms(now_ms);
        let done = Box::new(move |result| {
            // A partition that is gone restores from what is committed.
            send(id, InboxMessage::Committed(result));
        });
        self.log.commit(commit, done);
        Ok(())
    }

    /// Partitions commit one after the other within the interval: all at once, they would keep appends waiting. Those
    /// whose outputs can go in one transaction do so at the same moment: what a transaction costs is not its size.
    fn next_commit_slot_ms(&self, now_ms: i64) -> i64 {
        let interval_ms = self.context.config.commit_interval_ms;
        let first = self.log.committed_with(self.context.id).start;
        let slot_ms = interval_ms * i64::from(first) / i64::from(self.context.partitions);
        now_ms + interval_ms - (now_ms - slot_ms).rem_euclid(interval_ms)
    }

    pub(crate) fn committed(
        &mut self,
        result: Result<(), everlog_log::Error>,
        now_ms: i64,
    ) -> Result<(), Error> {
        match result {
            Ok(()) => self.refused_commits.ends(self.context.id),
            // Nothing of it was written.
            Err(error @ (everlog_log::Error::Full { .. } | everlog_log::Error::Busy { .. })) => {
                self.refused_commits.begins(self.context.id, &error);
                self.not_committed(now_ms);
                return Ok(());
            }
            Err(everlog_log::Error::Fenced { .. }) if !R::keeps(Rule::StepDown) => {
                self.not_committed(now_ms);
                return Ok(());
            }
            Err(everlog_log::Error::Unknown { .. }) if !R::keeps(Rule::UnknownCommits) => {
                self.not_committed(now_ms);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.outputs.committed();
        let (applied, position) = self.committing.take().unwrap_or_default();
        self.write_rows(position, now_ms)?;
        self.runs.evict();
        self.context.stats.commits.fetch_add(1, Ordering::Relaxed);
        self.context.stats.committed_offset.store(applied, Ordering::Relaxed);
        self.context.stats.next_offset.store(self.position.applied, Ordering::Relaxed);
        let safe = applied.saturating_sub(self.context.config.journal_keep_records);
        let below = if R::keeps(Rule::Trim) { safe } else { self.position.applied };
        if below > self.trimmed + self.context.config.journal_keep_records / 2 {
            self.trim(below);
        }
        self.offer_held()
    }

    /// The rows of the commit stand in the base from now on.
    fn write_rows(&mut self, position: Bytes, now_ms: i64) -> Result<(), Error> {
        let mark = self.stand_at(position, now_ms)?;
        Ok(self.runs.store().committed(Some(&mark))?)
    }

    /// The log had no room for the outputs: they join those that come, and are committed later. The journal has it all.
    fn not_committed(&mut self, now_ms: i64) {
        self.committing = None;
        self.runs.store().commit_failed();
        self.outputs.commit_failed();
        self.changed = true;
        self.next_commit_ms = now_ms + HOLD_MS;
    }
}
