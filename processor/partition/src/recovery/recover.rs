//! Recovery: the committed state, then the journal behind it, then a new term.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_engine::{Grace, Settings};
use everlog_log::Log;
use everlog_store::{CommittedRows, Store};
use everlog_wire::{Body, Position, Record};

use crate::config::Config;
use crate::error::Error;
use crate::invariants::{Rule, Rules, inherited};
use crate::matching::dispatcher::Dispatcher;
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::keys::{DELETION_MS, RunKey, WAITING_MS};
use crate::model::pending::ReplyTo;
use crate::partition::Partition;
use crate::recovery::previous_owner::PreviousOwner;
use crate::stats::Stats;
use crate::timers::due_index::REACH_MS;
use crate::timers::timer_rows::{TIMERS_SLICE, TimerRows};

/// Bytes of journal that are read at a time.
const READ_BYTES: usize = 4 << 20;
/// Runs whose tasks are offered in one turn of a new owner: calls wait for that.
const OFFERED_RUNS_MAX: usize = 64;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Takes the partition over: restores what is committed, applies the journal behind it, and asks for a new term. Of
    /// a long journal only as much is applied at once as may wait for a commit; the rest is followed as it is committed.
    /// It serves once the `Owner` record is applied; events may be handed to it from now on. `stats` goes on counting
    /// where an earlier life of the partition stopped.
    ///
    /// # Errors
    /// The log, the rows or the journal cannot be read, or do not fit together.
    pub fn recover(
        id: u32,
        log: Arc<L>,
        store: Store<B>,
        dispatcher: Arc<Dispatcher>,
        send: PartitionSender,
        config: Config,
        stats: Arc<Stats>,
    ) -> Result<Self, Error> {
        let mut partition = Self::new(id, log, store, dispatcher, send, config, stats)?;
        if let Some((applied, row)) = partition.restore()? {
            partition.position = inherited::<R>(Position::read(row)?);
            let is_its_own = partition.position.applied == applied
                && partition.position.incarnation == partition.context.incarnation[..];
            if !is_its_own && R::keeps(Rule::TakeOver) {
                let detail = "its position row belongs to another journal".into();
                return Err(Error::Journal { partition: id, detail });
            }
        }
        partition.position.incarnation = partition.context.incarnation.to_vec().into();
        partition.open_index()?;
        partition.lost_deliveries.set_look_back(partition.position.applied);
        partition.find_messages()?;
        partition.namespace_deletions.find(partition.runs.rows(), partition.context.first_bucket())?;
        let slice_bytes = if R::keeps(Rule::ReplayInSlices) {
            partition.context.config.overlay_bytes_max
        } else {
            usize::MAX
        };
        partition.replay(slice_bytes)?;
        let (wake, nudged) = (partition.context.send.clone(), id);
        let wake = Box::new(move || {
            // A partition that is gone follows nothing.
            wake(nudged, InboxMessage::Nudge);
        });
        let tail = partition.log.follow(id, partition.position.applied, wake)?;
        partition.journal.set_tail(tail);
        if !partition.journal.is_shared() {
            // Its owner alone has appended, and never more than may wait for a commit.
            partition.replay(usize::MAX)?;
        }
        partition.journal.ask_for_term(&partition.context.config, &partition.position);
        Ok(partition)
    }

    /// Takes a partition over again that an earlier life in this process could not go on with, unless somebody else
    /// has taken it since: before the log is told to fence whoever has it, and again with all that was replayed.
    ///
    /// # Errors
    /// As [`Partition::recover`]; `Superseded`.
    #[allow(clippy::too_many_arguments, reason = "those of recover, and what came before")]
    pub fn resume(
        former: &PreviousOwner,
        id: u32,
        log: Arc<L>,
        store: Store<B>,
        dispatcher: Arc<Dispatcher>,
        send: PartitionSender,
        config: Config,
        stats: Arc<Stats>,
    ) -> Result<Self, Error> {
        former.is_latest(id, &*log)?;
        let partition = Self::recover(id, log.clone(), store, dispatcher, send, config, stats)?;
        former.is_latest(id, &*log)?;
        Ok(partition)
    }

    /// Applies the journal behind the position, until more than so many bytes wait for a commit.
    fn replay(&mut self, bytes_max: usize) -> Result<(), Error> {
        let bounds = self.log.bounds(self.context.id)?;
        if self.position.applied < bounds.start || self.position.applied > bounds.end {
            let (applied, start, end) = (self.position.applied, bounds.start, bounds.end);
            let detail = format!("the journal holds {start} to {end}, the committed position is {applied}");
            return Err(Error::lost(self.context.id, &detail));
        }
        self.commits.set_trimmed(&bounds);
        self.knows_journal(&bounds)?;
        self.ownership.begin_replay(bounds.end);
        let mut flushed_bytes = 0;
        while self.position.applied < bounds.end && self.uncommitted_bytes() <= bytes_max {
            let records = self.log.read(self.context.id, self.position.applied, READ_BYTES)?;
            if records.is_empty() {
                let detail = format!("record {} is missing", self.position.applied);
                return Err(Error::Journal { partition: self.context.id, detail });
            }
            for record in records {
                if record.offset != self.position.applied {
                    let detail = format!("record {} follows {}", record.offset, self.position.applied);
                    return Err(Error::Journal { partition: self.context.id, detail });
                }
                self.replay_record(record)?;
                if self.uncommitted_bytes().saturating_sub(flushed_bytes) > bytes_max / 8 {
                    // Rows of changed runs are counted only here.
                    self.runs.flush()?;
                    flushed_bytes = self.uncommitted_bytes();
                }
                if self.uncommitted_bytes() > bytes_max {
                    break;
                }
            }
        }
        self.ownership.applied(self.position.applied);
        Ok(())
    }

    /// Whether the journal is the one that the position is of: a topic that was made again under its name has later
    /// records where the position has applied others.
    fn knows_journal(&self, bounds: &std::ops::Range<u64>) -> Result<(), Error> {
        let Position { applied, last_stamp_ms, term, owner_ms, .. } = self.position;
        let Some(last) = applied.checked_sub(1) else { return Ok(()) };
        for (offset, until_ms) in [(last, last_stamp_ms), (term, owner_ms)] {
            if !bounds.contains(&offset) || owner_ms == 0 {
                continue;
            }
            let found = self.log.read(self.context.id, offset, 1)?;
            if let Some(record) = found.first().filter(|record| record.stamp_ms > until_ms) {
                let detail = format!(
                    "the journal's record {offset} is of {} ms, what was applied there was of {until_ms} ms at most: \
                     the topic was made again",
                    record.stamp_ms
                );
                return Err(Error::lost(self.context.id, &detail));
            }
        }
        Ok(())
    }

    fn replay_record(&mut self, stored: everlog_log::Record) -> Result<(), Error> {
        let Some(record) = self.read_record(&stored)? else { return Ok(()) };
        self.apply(stored.offset, stored.stamp_ms, record, ReplyTo::Nobody)
    }

    /// A record of the journal; one that is none is skipped.
    pub(crate) fn read_record(&mut self, stored: &everlog_log::Record) -> Result<Option<Record>, Error> {
        match Record::read(stored.bytes.clone()) {
            Ok(record) => Ok(Some(record)),
            Err(error @ everlog_wire::Error::Version { .. }) if R::keeps(Rule::LaterReleases) => {
                Err(error.into())
            }
            Err(error @ (everlog_wire::Error::Decode { .. } | everlog_wire::Error::Version { .. })) => {
                // Time goes on with every record, or the position would not know its own journal again.
                self.position.last_stamp_ms = self.position.last_stamp_ms.max(stored.stamp_ms);
                self.position.applied = stored.offset + 1;
                self.commits.note_change();
                self.skip(stored.offset, &error.to_string(), ReplyTo::Nobody);
                Ok(None)
            }
        }
    }

    /// The `Owner` record is applied: the partition is ours, and what waits in it can be handed out.
    pub(crate) fn took_over(&mut self) -> Result<(), Error> {
        self.journal.set_term(self.position.term);
        let settings = self.context.config.settings.clone();
        if self.position.settings.as_ref().unwrap_or(&Settings::default()) != &settings {
            let record = Record::new(self.position.term, Body::Settings(settings));
            self.journal.push_first(record);
        }
        self.runs.flush()?;
        self.context.stats.fence.store(self.commits.fence(), Ordering::Relaxed);
        self.context.stats.term.store(self.position.term, Ordering::Relaxed);
        self.context.stats.level.store(u64::from(self.position.level), Ordering::Relaxed);
        self.context.stats.next_offset.store(self.position.applied, Ordering::Relaxed);
        self.ownership.serve(&self.context.stats);
        self.reach(self.timers.clock.now_ms() + REACH_MS)?;
        let waiting = R::keeps(Rule::WaitingTasks).then(|| TimerRows::of(&self.context, WAITING_MS));
        self.offers.set_unoffered(waiting);
        self.look_at_lost_polls()?;
        self.find_histories_to_delete()
    }

    /// Offers tasks that wait for a worker, a slice at a time: their runs' alarms stand at the very beginning of each bucket.
    /// What was offered meanwhile is so twice; a worker gets it once, since claims go through the journal.
    pub(crate) fn offer_waiting(&mut self) -> Result<(), Error> {
        let Some(mut rows) = self.offers.take_unoffered() else { return Ok(()) };
        for (_, key) in self.timers.read(&mut rows, self.runs.rows(), OFFERED_RUNS_MAX)? {
            self.look_at(&key)?;
        }
        self.runs.evict();
        self.offers.set_unoffered(Some(rows));
        Ok(())
    }

    /// Everything that waits for a worker is offered once more, in slices.
    pub(crate) fn offer_all_again(&mut self) -> Result<(), Error> {
        if self.ownership.is_serving() {
            self.runs.flush()?;
            self.offers.set_unoffered(Some(TimerRows::of(&self.context, WAITING_MS)));
        }
        for query_id in self.waiters.queries.untaken() {
            self.requeue_query(&query_id)?;
        }
        Ok(())
    }

    fn look_at(&mut self, key: &RunKey) -> Result<(), Error> {
        let Some(run) = self.runs.get(key)? else { return Ok(()) };
        let grace = Grace { owner_ms: self.position.owner_ms };
        self.timers.due.set(key, run.next_deadline_ms(grace));
        self.offer_workflow_task(key, &run);
        let ready: Vec<_> = run.activities.values().filter(|activity| run.offers(activity)).collect();
        for activity in ready {
            self.offer_activity(key, &run, activity.scheduled_event_id);
        }
        Ok(())
    }

    /// Brings every alarm before `horizon_ms` into the due index.
    pub(crate) fn reach(&mut self, horizon_ms: i64) -> Result<(), Error> {
        self.runs.flush()?;
        let from_ms = self.timers.due.horizon_ms().max(DELETION_MS + 1);
        self.timers.due.reached(horizon_ms);
        let grace = Grace { owner_ms: self.position.owner_ms };
        let mut rows = TimerRows::of(&self.context, from_ms..horizon_ms);
        while !rows.is_done() {
            for (_, key) in self.timers.read(&mut rows, self.runs.rows(), TIMERS_SLICE)? {
                if let Some(run) = self.runs.get(&key)? {
                    self.timers.due.set(&key, run.next_deadline_ms(grace));
                }
            }
            self.runs.evict();
        }
        Ok(())
    }
}
