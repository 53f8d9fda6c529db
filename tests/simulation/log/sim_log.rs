//! The log of one node: its own producer, its own marks, and calls that the broker answers at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use everlog_log::{
    AppendDone, Commit, CommitDone, Error, Fence, Log, Marks, Offset, PartitionId, Record, RestoreChunkDone,
    Restored, Tail, Topic, TopicEntry, Visit, Wake, restore_chunk,
};

use super::broker::{Broker, Happening, Shared};
use super::nasty::Removed;
use super::tail::{Followed, SimTail};

pub type SharedMarks = Arc<Mutex<BTreeMap<PartitionId, Marks>>>;

/// One node's handle.
pub struct SimLog {
    broker: Shared,
    /// Which handle it is; no other one has this number.
    pub by: u64,
    marks: SharedMarks,
}

impl SimLog {
    pub fn open(broker: &Shared) -> Self {
        let by = broker.lock().serial();
        Self { broker: broker.clone(), by, marks: SharedMarks::default() }
    }

    /// What is under way goes on while somebody asks.
    fn drift(&self) {
        let count = {
            let mut broker = self.broker.lock();
            let chance = broker.nasty.drift;
            if broker.dice.permille(chance) { broker.dice.below(4) } else { 0 }
        };
        for _ in 0..count {
            self.broker.happen();
        }
    }

    fn checked(broker: &Broker, partition: PartitionId) -> Result<(), Error> {
        if partition < broker.partitions { Ok(()) } else { Err(refused("no such partition")) }
    }
}

fn refused(detail: &str) -> Error {
    Error::Refused { detail: detail.into() }
}

pub fn index(topic: Topic) -> usize {
    match topic {
        Topic::Events => 0,
        Topic::Changelog => 1,
        Topic::History => 2,
        Topic::Timers => 3,
        Topic::Replies => 4,
        Topic::Rejections => 5,
    }
}

impl Log for SimLog {
    fn incarnation(&self) -> [u8; 16] {
        self.broker.lock().incarnation
    }

    fn partitions(&self) -> u32 {
        self.broker.lock().partitions
    }

    fn fence(&self, partition: PartitionId) -> Result<Fence, Error> {
        self.drift();
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        if broker.away_until_ms > broker.now_ms {
            return Err(Error::Unknown { detail: "the coordinator is away".into() });
        }
        Ok(broker.fence(partition))
    }

    fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone) {
        let told = {
            let mut broker = self.broker.lock();
            match Self::checked(&broker, partition) {
                Err(error) => vec![(Box::new(move || done(Err(error)))) as super::broker::Tell],
                Ok(()) if records.is_empty() => {
                    vec![Box::new(move || done(Err(refused("an append of nothing")))) as super::broker::Tell]
                }
                Ok(()) => broker.send(self.by, partition, records, done),
            }
        };
        told.into_iter().for_each(|tell| tell());
    }

    fn read(&self, partition: PartitionId, from: Offset, bytes_max: usize) -> Result<Vec<Record>, Error> {
        self.drift();
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        let removed = broker.removed;
        let stored = broker.stored(partition);
        let (start, end) = (stored.start, stored.journal.len() as Offset);
        if from < start || from > end {
            return Err(Error::OutOfRange { partition, wanted: from, start, end });
        }
        let mut found: Vec<Record> = Vec::new();
        let mut bytes = 0;
        for record in &stored.journal[from as usize..] {
            bytes += record.bytes.len();
            if !found.is_empty() && bytes > bytes_max {
                break;
            }
            let mut record = record.clone();
            if removed == Some(Removed::Stamps) {
                record.stamp_ms += 1_000;
            }
            found.push(record);
        }
        Ok(found)
    }

    fn follow(
        &self,
        partition: PartitionId,
        from: Offset,
        wake: Wake,
    ) -> Result<Option<Box<dyn Tail>>, Error> {
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        let stored = broker.stored(partition);
        let (start, end) = (stored.start, stored.journal.len() as Offset);
        if from < start || from > end {
            return Err(Error::OutOfRange { partition, wanted: from, start, end });
        }
        let followed = Followed { partition, visible: end, wake: Arc::new(wake) };
        let followed = Arc::new(Mutex::new(followed));
        stored.tails.push(Arc::downgrade(&followed));
        drop(broker);
        Ok(Some(Box::new(SimTail { broker: self.broker.clone(), followed, next: from })))
    }

    fn bounds(&self, partition: PartitionId) -> Result<Range<Offset>, Error> {
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        let stored = broker.stored(partition);
        Ok(stored.start..stored.journal.len() as Offset)
    }

    fn commit(&self, commit: Commit, done: CommitDone) {
        let told = self.broker.lock().begin(self.by, commit, done, self.marks.clone());
        told.into_iter().for_each(|tell| tell());
    }

    fn marks(&self, partition: PartitionId) -> Result<Marks, Error> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(marks.get(&partition).copied().unwrap_or_default())
    }

    fn position(&self, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error> {
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        Ok(broker.stored(partition).position.clone())
    }

    fn restore(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        self.drift();
        let (rows, mut restored) = {
            let mut broker = self.broker.lock();
            Self::checked(&broker, partition)?;
            if !topic.is_compacted() {
                return Err(refused("append-only topics are not restored"));
            }
            broker.rows_from(topic, partition, from)?
        };
        for row in rows {
            if !visit(&row.key, row.value.as_deref()) {
                restored.next = row.offset + 1;
                break;
            }
        }
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = marks.entry(partition).or_default();
        match topic {
            Topic::Changelog => marks.changelog = marks.changelog.max(restored.next),
            Topic::History => marks.history = marks.history.max(restored.next),
            Topic::Timers => marks.timers = marks.timers.max(restored.next),
            Topic::Events | Topic::Replies | Topic::Rejections => {}
        }
        Ok(restored)
    }

    fn restore_chunk(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
        done: RestoreChunkDone,
    ) {
        let log = Self { broker: self.broker.clone(), by: self.by, marks: self.marks.clone() };
        let mut broker = self.broker.lock();
        if broker.nasty.immediate {
            drop(broker);
            return done(restore_chunk(&log, topic, partition, from, bytes_max));
        }
        let bytes_max = bytes_max.min(broker.slice_bytes_max);
        let (now_ms, delay_ms, from_ms) = (broker.now_ms, broker.nasty.delay_ms, broker.slices_from_ms);
        let at_ms = now_ms + broker.dice.span(0, delay_ms);
        let read = Box::new(move || done(restore_chunk(&log, topic, partition, from, bytes_max)));
        broker.plan(at_ms.max(from_ms), Happening::Read(read));
    }

    fn tombstones_ms(&self) -> Option<i64> {
        self.broker.lock().tombstones_ms
    }

    fn trim(&self, partition: PartitionId, below: Offset) -> Result<(), Error> {
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        let (removed, immediate) = (broker.removed, broker.nasty.immediate);
        let stored = broker.stored(partition);
        if removed == Some(Removed::Trims) {
            stored.start = stored.journal.len() as Offset;
            return Ok(());
        }
        let position = stored.position.as_ref().map_or(0, |(applied, _)| *applied);
        // Who may trim up to where is not the broker's business.
        if below > position && immediate {
            return Err(Error::OutOfRange { partition, wanted: below, start: stored.start, end: position });
        }
        stored.start = stored.start.max(below.min(stored.journal.len() as Offset));
        Ok(())
    }

    fn topic_read(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<TopicEntry>, Error> {
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        if topic.is_compacted() {
            return Err(refused("compacted topics are restored"));
        }
        let topic = &broker.stored(partition).topics[index(topic)];
        if from < topic.start || from > topic.next {
            return Err(Error::OutOfRange { partition, wanted: from, start: topic.start, end: topic.next });
        }
        let mut bytes = 0;
        let rows = topic.rows.iter().filter(|row| row.offset >= from);
        let within = rows.take_while(|row| {
            let first = bytes == 0;
            bytes += row.key.len() + row.value.as_ref().map_or(0, Bytes::len) + 1;
            first || bytes <= bytes_max
        });
        Ok(within.map(|row| (row.offset, row.key.clone(), row.value.clone().unwrap_or_default())).collect())
    }

    fn topic_trim(&self, topic: Topic, partition: PartitionId, below: Offset) -> Result<(), Error> {
        let mut broker = self.broker.lock();
        Self::checked(&broker, partition)?;
        let topic = &mut broker.stored(partition).topics[index(topic)];
        if below > topic.next {
            return Err(Error::OutOfRange { partition, wanted: below, start: topic.start, end: topic.next });
        }
        topic.start = topic.start.max(below);
        topic.rows.retain(|row| row.offset >= below);
        Ok(())
    }

    fn control_put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let mut broker = self.broker.lock();
        match value {
            Some(value) => broker.control.insert(key.to_vec(), value.to_vec()),
            None => broker.control.remove(key),
        };
        Ok(())
    }

    fn control_scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let rows = self.broker.lock().control.clone();
        rows.iter().for_each(|(key, value)| visit(key, value));
        Ok(())
    }
}
