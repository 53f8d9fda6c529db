//! The writer thread: takes waiting jobs, writes them as one batch, syncs once, and answers their callers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::{
    AppendDone, Appended, Commit, CommitDone, Error, Fence, Offset, PartitionId, PerTopic, Space, Topic,
};
use rocksdb::{WriteBatch, WriteOptions, properties};

use super::disk_reserve::DiskCheck;
use super::durable_watermark::DurableWatermark;
use super::memory::LogMemory;
use super::queue::WriterJob;
use super::read::{error_of, handle};
use super::rows;
use super::shared::{Shared, check_append_only};
use super::stats::Counters;
use super::{Sync, WallClock};

/// RocksDB resumes by itself after a full disk; it looks for space every 5 s. With room again and still refused for
/// so long, the log ends, and opening it again heals it.
const RESUME_WITHIN: Duration = Duration::from_secs(60);
/// How often a database that refuses writes on a full disk is tried, if no job does.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);
/// First and longest wait for a database that must catch up.
const STALL_MIN: Duration = Duration::from_millis(1);
const STALL_MAX: Duration = Duration::from_secs(5);
/// As long while it takes nothing at all; then what happened meanwhile is looked at.
const STOP_MAX: Duration = Duration::from_millis(20);
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// What the writer knows of a partition; the published ends follow it once a batch is durable.
#[derive(Clone, Copy, Default)]
pub(super) struct PartitionTail {
    pub(super) start: Offset,
    pub(super) next: Offset,
    pub(super) stamp_ms: i64,
    pub(super) applied: Offset,
    pub(super) fence: u64,
    /// (start, next) of the append-only ones.
    pub(super) topics: PerTopic<(Offset, Offset)>,
}

pub(super) struct LogWriter {
    pub(super) shared: Arc<Shared>,
    pub(super) tails: Vec<PartitionTail>,
    pub(super) acked: DurableWatermark,
    /// Sequence number of the last synced write; every batch carries it, as evidence for recovery.
    pub(super) acked_sequence: u64,
    pub(super) sync: Sync,
    pub(super) clock: WallClock,
    pub(super) looked: Option<DiskCheck>,
    pub(super) memory: LogMemory,
    /// Bytes of all batches so far.
    pub(super) written_bytes: u64,
    /// Since when RocksDB refuses writes as full although there is room.
    pub(super) refused_since: Option<Instant>,
}

/// Who is answered once the batch is written, or why not.
enum Answer {
    Append(AppendDone, Result<Appended, Error>),
    Unit(CommitDone, Result<(), Error>),
    Fence(SyncSender<Result<Fence, Error>>, Result<Fence, Error>),
}

/// A batch in the making.
struct BatchDraft {
    rows: WriteBatch,
    answers: Vec<Answer>,
    /// Ranges of (family, first, past the last) whose whole files may be dropped once the batch is durable.
    dropped: Vec<(&'static str, Vec<u8>, Vec<u8>)>,
    needs_sync: bool,
    appends: u64,
    records: u64,
    commits: u64,
    scratch: Vec<u8>,
}

impl LogWriter {
    /// Runs until the log is closed or fails; a panic ends the log too, so that nobody waits for ever.
    pub(super) fn run(self) {
        let shared = Arc::clone(&self.shared);
        if std::panic::catch_unwind(AssertUnwindSafe(|| self.write_all())).is_err() {
            shared.end(Error::Io { detail: "the log's writer panicked".into() });
        }
    }

    fn write_all(mut self) {
        let mut jobs = Vec::new();
        while self.shared.take(&mut jobs, self.shared.space.is_stopped().then_some(PROBE_INTERVAL)) {
            if let Err(error) = self.write(&mut jobs) {
                self.shared.end(error);
                return;
            }
        }
        // Clean end: what was acknowledged is now known for certain. If this fails the file says less, never more.
        let _ = self.shared.db.flush_wal(true).map(|()| self.acked.sync());
    }

    /// Writes one batch; an error ends the log.
    fn write(&mut self, jobs: &mut Vec<WriterJob>) -> Result<(), Error> {
        let before = self.tails.clone();
        let mut draft = self.draft(jobs);
        let outcome = if draft.has_rows() { self.write_rows(&mut draft) } else { Ok(()) };
        if outcome.is_ok() {
            self.publish();
            self.drop_files(&draft);
        } else {
            self.tails = before;
        }
        let fatal = outcome.clone().err().and_then(|error| self.fatal(error));
        if let Some(error) = &fatal {
            self.shared.end(error.clone());
        }
        answer_all(draft, outcome.err());
        fatal.map_or(Ok(()), Err)
    }

    /// Everything but a full disk is; a full disk that is over is too, if RocksDB does not come back.
    fn fatal(&mut self, error: Error) -> Option<Error> {
        let Error::Full { detail } = error else {
            return Some(error);
        };
        self.shared.space.set_stopped(true);
        if self.shared.space.look().appends.is_err() {
            self.refused_since = None;
            return None;
        }
        let since = self.refused_since.get_or_insert_with(Instant::now);
        let stuck = since.elapsed() > RESUME_WITHIN;
        stuck.then(|| Error::Io { detail: format!("there is room on the disk again, but still: {detail}") })
    }

    fn draft(&mut self, jobs: &mut Vec<WriterJob>) -> BatchDraft {
        let room = self.shared.space.room(&mut self.looked, self.written_bytes);
        let mut draft = BatchDraft::new(self.acked_sequence);
        if self.shared.space.is_stopped() {
            // A row as it is already: if it is taken, so is all else.
            draft.rows.put(rows::KEY_FORMAT, rows::FORMAT_VERSION.to_be_bytes());
        }
        for job in jobs.drain(..) {
            match job {
                WriterJob::Append { partition, records, done, .. } => {
                    let outcome = room.appends.clone().map(|()| self.append(&mut draft, partition, &records));
                    draft.answers.push(Answer::Append(done, outcome));
                }
                WriterJob::Commit { commit, done } => {
                    let outcome = room.commits.clone().and_then(|()| self.commit(&mut draft, &commit));
                    draft.answers.push(Answer::Unit(done, outcome));
                }
                WriterJob::Fence { partition, answer } => {
                    let fence = self.fence(&mut draft, partition);
                    draft.answers.push(Answer::Fence(answer, Ok(fence)));
                }
                WriterJob::Trim { partition, below, answer } => {
                    let outcome = self.trim(&mut draft, partition, below);
                    draft.answers.push(Answer::Unit(reply_to(answer), outcome));
                }
                WriterJob::TopicTrim { topic, partition, below, answer } => {
                    let outcome = self.topic_trim(&mut draft, topic, partition, below);
                    draft.answers.push(Answer::Unit(reply_to(answer), outcome));
                }
                WriterJob::Control { key, value, answer } => {
                    draft.control(&key, value.as_ref());
                    draft.answers.push(Answer::Unit(reply_to(answer), Ok(())));
                }
            }
        }
        draft
    }

    fn append(&mut self, draft: &mut BatchDraft, partition: PartitionId, records: &[Bytes]) -> Appended {
        let tail = &mut self.tails[partition as usize];
        let journal = handle(&self.shared.db, rows::JOURNAL);
        tail.stamp_ms = tail.stamp_ms.max((self.clock)());
        let appended = Appended { first: tail.next, stamp_ms: tail.stamp_ms };
        for bytes in records {
            rows::encode_record(partition, tail.next, tail.stamp_ms, bytes, &mut draft.scratch);
            draft.rows.put_cf(journal, rows::journal_key(partition, tail.next), &draft.scratch);
            tail.next += 1;
        }
        draft.needs_sync = true;
        draft.appends += 1;
        draft.records += records.len() as u64;
        appended
    }

    fn commit(&mut self, draft: &mut BatchDraft, commit: &Commit) -> Result<(), Error> {
        let partition = commit.partition;
        let tail = &mut self.tails[partition as usize];
        if commit.fence.0 != tail.fence {
            return Err(Error::Fenced { partition, given: commit.fence, current: Fence(tail.fence) });
        }
        if commit.applied < tail.applied || commit.applied > tail.next {
            let (wanted, start, end) = (commit.applied, tail.applied, tail.next);
            return Err(Error::OutOfRange { partition, wanted, start, end });
        }
        tail.applied = commit.applied;
        for output in &commit.outputs {
            let db = &self.shared.db;
            match (rows::family(output.topic), &output.value) {
                (Some(name), Some(value)) => draft.rows.put_cf(handle(db, name), &output.key, value),
                (Some(name), None) => draft.rows.delete_cf(handle(db, name), &output.key),
                (None, value) => {
                    let place = rows::topic_key(output.topic, partition, tail.topics[output.topic].1);
                    let value = value.as_deref().unwrap_or_default();
                    rows::encode_entry(&place, &output.key, value, &mut draft.scratch);
                    draft.rows.put_cf(handle(db, rows::TOPICS), place, &draft.scratch);
                    tail.topics[output.topic].1 += 1;
                }
            }
        }
        let index = handle(&self.shared.db, Space::Index.name());
        for (key, value) in &commit.index {
            match value {
                Some(value) => draft.rows.put_cf(index, key, value),
                None => draft.rows.delete_cf(index, key),
            }
        }
        draft.rows.put(rows::position_key(partition), rows::encode_u64_and(commit.applied, &commit.position));
        draft.commits += 1;
        Ok(())
    }

    fn fence(&mut self, draft: &mut BatchDraft, partition: PartitionId) -> Fence {
        let tail = &mut self.tails[partition as usize];
        tail.fence += 1;
        draft.rows.put(rows::fence_key(partition), tail.fence.to_be_bytes());
        Fence(tail.fence)
    }

    /// The batch is synced, and with it the position, which stands before it in the one write-ahead log.
    fn trim(&mut self, draft: &mut BatchDraft, partition: PartitionId, below: Offset) -> Result<(), Error> {
        let tail = &mut self.tails[partition as usize];
        if below > tail.applied {
            let (start, end) = (tail.start, tail.applied);
            return Err(Error::OutOfRange { partition, wanted: below, start, end });
        }
        if below <= tail.start {
            return Ok(());
        }
        let [first, last, end] = [0, below - 1, below].map(|offset| rows::journal_key(partition, offset));
        tail.start = below;
        draft.rows.put(rows::start_key(partition), rows::encode_u64_and(below, &tail.stamp_ms.to_be_bytes()));
        draft.drop_range(&self.shared, rows::JOURNAL, [&first, &last, &end]);
        Ok(())
    }

    fn topic_trim(
        &mut self,
        draft: &mut BatchDraft,
        topic: Topic,
        partition: PartitionId,
        below: Offset,
    ) -> Result<(), Error> {
        check_append_only(topic)?;
        let (start, next) = &mut self.tails[partition as usize].topics[topic];
        if below > *next {
            return Err(Error::OutOfRange { partition, wanted: below, start: *start, end: *next });
        }
        if below <= *start {
            return Ok(());
        }
        *start = below;
        draft.rows.put(rows::topic_start_key(topic, partition), rows::encode_u64_and(below, &[]));
        let [first, last, end] =
            [0, below - 1, below].map(|offset| rows::topic_key(topic, partition, offset));
        draft.drop_range(&self.shared, rows::TOPICS, [&first, &last, &end]);
        Ok(())
    }

    fn write_rows(&mut self, draft: &mut BatchDraft) -> Result<(), Error> {
        let begun = Instant::now();
        let synced = draft.needs_sync && self.sync == Sync::Always;
        let batch = std::mem::take(&mut draft.rows);
        let size_bytes = batch.size_in_bytes() as u64;
        self.put(batch, synced)?;
        self.written_bytes += size_bytes;
        self.memory.follow(&self.shared.db, self.written_bytes);
        self.refused_since = None;
        self.shared.space.set_stopped(false);
        if synced {
            self.acked_sequence = self.shared.db.latest_sequence_number();
            let ends = self.tails.iter().map(|tail| tail.next);
            match self.acked.write(self.shared.incarnation, self.acked_sequence, ends) {
                // The rows are written; without room to say so, the bound says less than the truth.
                Ok(()) | Err(Error::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let took_us = begun.elapsed().as_micros() as u64;
        let counters = &self.shared.counters;
        Counters::add(&counters.batches, 1);
        Counters::add(&counters.syncs, u64::from(synced));
        Counters::add(&counters.bytes, size_bytes);
        Counters::add(&counters.appends, draft.appends);
        Counters::add(&counters.records, draft.records);
        Counters::add(&counters.commits, draft.commits);
        Counters::add(&counters.write_us, took_us);
        counters.write_max_us.fetch_max(took_us, Ordering::Relaxed);
        Ok(())
    }

    /// Writes a batch as soon as RocksDB takes it; nothing of it is written where that fails with `Full`.
    ///
    /// RocksDB must never wait in here: a write that waits for a flush keeps the recovery from a full disk from
    /// beginning, and both wait for ever.
    fn put(&self, batch: WriteBatch, synced: bool) -> Result<(), Error> {
        let db = &self.shared.db;
        let mut options = WriteOptions::default();
        options.set_sync(synced);
        options.set_no_slowdown(true);
        let begun = Instant::now();
        let mut pause = STALL_MIN;
        let mut batch = Some(batch);
        while let Some(now) = batch.take() {
            let again = WriteBatch::from_data(now.data());
            match db.write_opt(now, &options) {
                Ok(()) => {}
                Err(error) if error.as_ref().contains("Write stall") => {
                    self.stall(begun, pause)?;
                    pause = (2 * pause).min(STALL_MAX);
                    batch = Some(again);
                }
                Err(error) => return Err(error_of(db, &error)),
            }
        }
        Ok(())
    }

    /// Waits for RocksDB to catch up; `Full` where it takes nothing because it found no space.
    fn stall(&self, begun: Instant, pause: Duration) -> Result<(), Error> {
        let number = |name| self.shared.db.property_int_value(name).ok().flatten().unwrap_or(0);
        if number(properties::IS_WRITE_STOPPED) == 0 {
            // Only slowed down. Each attempt counts as a write, so they must become rarer.
            std::thread::sleep(pause);
            return Ok(());
        }
        std::thread::sleep(pause.min(STOP_MAX));
        if begun.elapsed() > STOP_PATIENCE && number(properties::BACKGROUND_ERRORS) > 0 {
            return Err(Error::Full { detail: "the database could not write its files".into() });
        }
        Ok(())
    }

    fn publish(&self) {
        for (slot, tail) in self.shared.slots.iter().zip(&self.tails) {
            slot.journal.publish(tail.start, tail.next);
            for topic in Topic::append_only() {
                let (start, next) = tail.topics[topic];
                slot.topics[topic].publish(start, next);
            }
        }
    }

    /// Only saves work: what stays is hidden by the batch's range tombstone.
    fn drop_files(&self, draft: &BatchDraft) {
        let db = &self.shared.db;
        for (name, first, last) in &draft.dropped {
            let _ = db.delete_file_in_range_cf(handle(db, name), first, last);
        }
    }
}

impl BatchDraft {
    fn new(acked_sequence: u64) -> Self {
        let mut rows = WriteBatch::default();
        rows.put_log_data(acked_sequence.to_le_bytes());
        BatchDraft {
            rows,
            answers: Vec::new(),
            dropped: Vec::new(),
            needs_sync: false,
            appends: 0,
            records: 0,
            commits: 0,
            scratch: Vec::new(),
        }
    }

    fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    fn control(&mut self, key: &[u8], value: Option<&Bytes>) {
        let key = rows::control_key(key);
        match value {
            Some(value) => self.rows.put(key, value),
            None => self.rows.delete(key),
        }
        self.needs_sync = true;
    }

    /// Deletes from `first` on and below `end`; `last` is the last key that goes.
    fn drop_range(&mut self, shared: &Shared, name: &'static str, [first, last, end]: [&[u8]; 3]) {
        self.rows.delete_range_cf(handle(&shared.db, name), first, end);
        self.dropped.push((name, first.into(), last.into()));
        self.needs_sync = true;
    }
}

fn reply_to(answer: SyncSender<Result<(), Error>>) -> CommitDone {
    // A caller that does not wait any more needs no answer.
    Box::new(move |outcome| drop(answer.send(outcome)))
}

/// A caller's panic must not end the log for everyone else; its own hook has reported it.
fn answer_all(draft: BatchDraft, failed: Option<Error>) {
    for answer in draft.answers {
        let failed = failed.clone();
        let call = move || match answer {
            Answer::Append(done, outcome) => done(failed.map_or(outcome.map(Some), Err)),
            Answer::Unit(done, outcome) => done(failed.map_or(outcome, Err)),
            Answer::Fence(answer, outcome) => drop(answer.send(failed.map_or(outcome, Err))),
        };
        let _ = std::panic::catch_unwind(AssertUnwindSafe(call));
    }
}
