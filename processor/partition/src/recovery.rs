//! Recovery: the committed state, then the journal behind it, then a new term.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_engine::{Grace, Settings};
use everlog_log::Log;
use everlog_store::{Base, Space, Store};
use everlog_wire::{Body, Owner, Position, Record};

use crate::address::RunKey;
use crate::dispatch::Dispatcher;
use crate::due::REACH_MS;
use crate::error::Error;
use crate::partition::{Config, Entry, Partition, Waiter};
use crate::router::Send;
use crate::runs::read_alarm_key;

/// Bytes of journal that are read at a time.
const READ_BYTES: usize = 4 << 20;
/// Alarms that are read at a time: runs are loaded in between.
const ALARMS_SLICE: usize = 10_000;

impl<L: Log, B: Base> Partition<L, B> {
    /// Takes the partition over: restores what is committed, applies the journal behind it, and asks for a new term.
    /// It serves once the `Owner` record is applied; events may be handed to it from now on.
    ///
    /// # Errors
    /// The log, the rows or the journal cannot be read, or do not fit together.
    pub fn recover(
        id: u32,
        log: Arc<L>,
        store: Store<B>,
        dispatcher: Arc<Dispatcher>,
        send: Send,
        config: Config,
    ) -> Result<Self, Error> {
        let mut partition = Self::new(id, log, store, dispatcher, send, config)?;
        if let Some((applied, row)) = partition.log.position(id)? {
            partition.position = Position::read(row)?;
            if partition.position.applied != applied
                || partition.position.incarnation != partition.incarnation[..]
            {
                let detail = "its position row belongs to another journal".into();
                return Err(Error::Journal { partition: id, detail });
            }
        }
        partition.position.incarnation = partition.incarnation.to_vec().into();
        partition.replay()?;
        partition.ask_for_term();
        Ok(partition)
    }

    fn replay(&mut self) -> Result<(), Error> {
        let bounds = self.log.bounds(self.id)?;
        if self.position.applied < bounds.start || self.position.applied > bounds.end {
            let (applied, start, end) = (self.position.applied, bounds.start, bounds.end);
            let detail = format!("the journal holds {start} to {end}, the committed position is {applied}");
            return Err(Error::Journal { partition: self.id, detail });
        }
        self.replaying = true;
        while self.position.applied < bounds.end {
            let records = self.log.read(self.id, self.position.applied, READ_BYTES)?;
            if records.is_empty() {
                let detail = format!("record {} is missing", self.position.applied);
                return Err(Error::Journal { partition: self.id, detail });
            }
            for record in records {
                if record.offset != self.position.applied {
                    let detail = format!("record {} follows {}", record.offset, self.position.applied);
                    return Err(Error::Journal { partition: self.id, detail });
                }
                self.replay_record(record)?;
            }
        }
        self.replaying = false;
        Ok(())
    }

    fn replay_record(&mut self, stored: everlog_log::Record) -> Result<(), Error> {
        match Record::read(stored.bytes) {
            Ok(record) => self.apply(stored.offset, stored.stamp_ms, record, Waiter::Nobody, stored.stamp_ms),
            Err(error @ everlog_wire::Error::Version { .. }) => Err(error.into()),
            Err(error @ everlog_wire::Error::Decode { .. }) => {
                self.position.applied = stored.offset + 1;
                self.skip(stored.offset, &error.to_string(), Waiter::Nobody);
                Ok(())
            }
        }
    }

    fn ask_for_term(&mut self) {
        let owner = Body::Owner(Owner { node: self.config.node.clone() });
        self.pending.push_front(Entry { record: Record::new(0, owner), waiter: Waiter::Nobody });
        self.wants_term = true;
    }

    /// The `Owner` record is applied: the partition is ours, and what waits in it can be handed out.
    pub(crate) fn took_over(&mut self, now_ms: i64) -> Result<(), Error> {
        for entry in &mut self.pending {
            entry.record.term = self.position.term;
        }
        let settings = self.config.settings.clone();
        if self.position.settings.as_ref().unwrap_or(&Settings::default()) != &settings {
            let record = Record::new(self.position.term, Body::Settings(settings));
            self.pending.push_front(Entry { record, waiter: Waiter::Nobody });
        }
        self.runs.flush();
        self.serving = true;
        self.stats.serving.store(1, Ordering::Relaxed);
        self.reach(now_ms + REACH_MS)?;
        self.offer_waiting()
    }

    /// Offers every task that waits for a worker: its run's alarm stands at the very beginning.
    fn offer_waiting(&mut self) -> Result<(), Error> {
        for bucket in self.buckets() {
            for (_, key) in self.alarms(bucket, 0, 1)? {
                self.look_at(&key)?;
            }
            self.runs.evict();
        }
        Ok(())
    }

    fn look_at(&mut self, key: &RunKey) -> Result<(), Error> {
        let Some(run) = self.runs.get(key)? else { return Ok(()) };
        let grace = Grace { owner_ms: self.position.owner_ms };
        self.due.set(key, run.next_deadline_ms(grace));
        self.offer_workflow_task(key, &run);
        let ready: Vec<_> = run.activities.values().filter(|activity| activity.is_ready()).collect();
        for activity in ready {
            self.offer_activity(key, &run, activity.scheduled_event_id);
        }
        Ok(())
    }

    /// Brings every alarm before `horizon_ms` into the due index.
    pub(crate) fn reach(&mut self, horizon_ms: i64) -> Result<(), Error> {
        self.runs.flush();
        let from_ms = self.due.horizon_ms().max(1);
        self.due.reached(horizon_ms);
        let grace = Grace { owner_ms: self.position.owner_ms };
        for bucket in self.buckets() {
            for (_, key) in self.alarms(bucket, from_ms, horizon_ms)? {
                if let Some(run) = self.runs.get(&key)? {
                    self.due.set(&key, run.next_deadline_ms(grace));
                }
            }
            self.runs.evict();
        }
        Ok(())
    }

    fn buckets(&self) -> impl Iterator<Item = u16> + use<L, B> {
        let buckets = everlog_log::buckets_of(self.id, self.log.partitions());
        buckets.filter_map(|bucket| u16::try_from(bucket).ok())
    }

    /// The alarms of a bucket that are due within a span.
    fn alarms(&mut self, bucket: u16, from_ms: i64, to_ms: i64) -> Result<Vec<(i64, RunKey)>, Error> {
        let key = |ms: i64| {
            let mut key = bucket.to_be_bytes().to_vec();
            key.extend_from_slice(&ms.to_be_bytes());
            key
        };
        let mut from = key(from_ms);
        let to = key(to_ms);
        let mut found = Vec::new();
        loop {
            let mut last = None;
            let mut count = 0;
            self.runs.store().scan(Space::Timers, &from, &to, &mut |row, _| {
                found.extend(read_alarm_key(row));
                last = Some(row.to_vec());
                count += 1;
                count < ALARMS_SLICE
            })?;
            match last {
                Some(mut last) if count == ALARMS_SLICE => {
                    last.push(0);
                    from = last;
                }
                Some(_) | None => return Ok(found),
            }
        }
    }

    /// The offset below which the journal has been trimmed.
    pub(crate) fn trimmed_to(&self) -> u64 {
        self.log.bounds(self.id).map_or(0, |bounds| bounds.start)
    }

    /// Deletes applied records; a failure is no reason to stop, the next commit tries again.
    pub(crate) fn trim(&mut self, below: u64) {
        if let Err(error) = self.log.trim(self.id, below) {
            tracing::debug!(partition = self.id, below, %error, "the journal was not trimmed");
        }
    }
}
