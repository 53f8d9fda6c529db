//! Outputs go to the log in the background, and only when they are committed do their rows stand in the base.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_log::Log;
use everlog_store::CommittedRows;

use crate::error::Error;
use crate::invariants::{Rule, Rules};
use crate::model::inbox_message::InboxMessage;
use crate::partition::Partition;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn commit_if_due(&mut self, now_ms: i64) -> Result<(), Error> {
        if !self.commits.is_due(&self.context.config, self.uncommitted_bytes(), now_ms) {
            return Ok(());
        }
        self.runs.flush()?;
        if R::keeps(Rule::MessageRows) {
            self.outbox.write_rows(self.runs.store(), self.context.first_bucket());
        }
        let rows = self.runs.store().begin_commit();
        let next_ms = self.next_commit_slot_ms(now_ms);
        let commit = self.commits.begin(&self.context, &self.position, rows, next_ms);
        if !R::keeps(Rule::RowsAfterCommit) {
            self.write_rows(commit.position.clone(), now_ms)?;
        }
        let (send, id) = (self.context.send.clone(), self.context.id);
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
            Ok(()) => {}
            // Nothing of it was written.
            Err(error @ (everlog_log::Error::Full { .. } | everlog_log::Error::Busy { .. })) => {
                self.commits.refused(&self.context, &error);
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
        let (applied, position) = self.commits.done(&self.context);
        self.write_rows(position, now_ms)?;
        self.runs.evict();
        let stats = &self.context.stats;
        stats.commits.fetch_add(1, Ordering::Relaxed);
        stats.committed_offset.store(applied, Ordering::Relaxed);
        stats.next_offset.store(self.position.applied, Ordering::Relaxed);
        let safe = applied.saturating_sub(self.context.config.journal_keep_records);
        let below = if R::keeps(Rule::Trim) { safe } else { self.position.applied };
        self.commits.trim(&*self.log, &self.context, below);
        self.offer_held()
    }

    /// The rows of the commit stand in the base from now on.
    fn write_rows(&mut self, position: Bytes, now_ms: i64) -> Result<(), Error> {
        let histories = self.backfill.as_ref().map(|backfill| backfill.next());
        let checkpoint =
            self.commits.rows_stand_at(&*self.log, &self.context, position, histories, now_ms)?;
        Ok(self.runs.store().committed(Some(&checkpoint))?)
    }

    fn not_committed(&mut self, now_ms: i64) {
        self.runs.store().commit_failed();
        self.commits.put_back(now_ms);
    }
}
