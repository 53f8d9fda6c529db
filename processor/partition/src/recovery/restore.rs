//! Rows that are kept beside the log: what they lack is brought from its compacted topics. What decisions need comes
//! before the partition is taken over, histories follow behind.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_log::{Log, Offset, Topic};
use everlog_store::{CommittedRows, RowsCheckpoint, Space};
use everlog_wire::{Position, RestoreCheckpoint};

use everlog_visibility::index::stale_row;

use crate::error::{Error, RowsFault};
use crate::invariants::{Rule, Rules};
use crate::model::keys::RunKey;
use crate::partition::Partition;
use crate::recovery::history_backfill::HistoryBackfill;
use crate::state::index_rows::stored_key;
use crate::stats::Stats;

/// Bytes of rows that are written together.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes after which a restore says how far it has come.
const SLICE_BYTES: usize = 16 << 20;

/// Rows as a restore leaves them.
enum Restored {
    /// The log keeps them itself, or nothing is committed: the position, if there is one.
    AsTheyStand(Option<(Offset, Bytes)>),
    /// They stand at the mark; what is applied there.
    To(RestoreCheckpoint, Offset),
}

/// What brings the rows of a partition to where the log's last commit left them.
struct Restorer<'a, L: ?Sized, B, R> {
    id: u32,
    log: &'a L,
    base: &'a B,
    stats: &'a Stats,
    /// By whatever clock rows are dated with, in ms since 1970-01-01 UTC.
    now_ms: i64,
    rules: PhantomData<fn() -> R>,
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Brings the rows of a partition that another process owns as far as its commits are, histories included, so that
    /// taking it over has little left to bring. Whoever does so must be the only one who has these rows open.
    ///
    /// # Errors
    /// As [`Partition::recover`]; the rows are as good as before, or to be set aside.
    pub fn prepare(id: u32, log: &L, base: &B, stats: &Stats, now_ms: i64) -> Result<(), Error> {
        let restorer = Restorer::<L, B, R> { id, log, base, stats, now_ms, rules: PhantomData };
        let Restored::To(mark, _) = restorer.restore()? else { return Ok(()) };
        let (history, _) = restorer.restore_topic(Topic::History, Space::History, mark.history)?;
        base.write(&mut std::iter::empty(), Some(&RestoreCheckpoint { history, ..mark }.encode()))?;
        Ok(())
    }

    /// Brings the rows that decisions need to where the log's last commit left them; returns its position.
    pub(crate) fn restore(&mut self) -> Result<Option<(Offset, Bytes)>, Error> {
        let restorer = Restorer::<L, B, R> {
            id: self.context.id,
            log: &*self.log,
            base: self.runs.store().base(),
            stats: &self.context.stats,
            now_ms: self.offers.dispatcher.now_ms(),
            rules: PhantomData,
        };
        match restorer.restore()? {
            Restored::AsTheyStand(committed) => Ok(committed),
            Restored::To(mark, applied) => {
                self.backfill = Some(HistoryBackfill::from(mark.history));
                self.context.stats.behind.store(1, Ordering::Relaxed);
                let position = mark.position.clone();
                self.commits.set_checkpoint(mark);
                Ok(Some((applied, position)))
            }
        }
    }

    /// Brings what is missing of the histories, at once. Whatever was deleted meanwhile is found out as ever, with the rows
    /// that are still asked for.
    pub(crate) fn bring_histories(&mut self) -> Result<(), Error> {
        let Some(next) = self.backfill.as_ref().map(HistoryBackfill::next) else { return Ok(()) };
        let restorer = Restorer::<L, B, R> {
            id: self.context.id,
            log: &*self.log,
            base: self.runs.store().base(),
            stats: &self.context.stats,
            now_ms: self.offers.dispatcher.now_ms(),
            rules: PhantomData,
        };
        let (next, _) = restorer.restore_topic(Topic::History, Space::History, next)?;
        if let Some(backfill) = &mut self.backfill {
            backfill.brought(next);
        }
        Ok(())
    }

    pub(crate) fn outside(&self, topic: Topic, error: everlog_log::Error) -> Error {
        outside(self.context.id, topic, error)
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Restorer<'_, L, B, R> {
    fn restore(&self) -> Result<Restored, Error> {
        let committed = self.log.position(self.id)?;
        let mark = match self.base.checkpoint()? {
            RowsCheckpoint::WithTheLog => return Ok(Restored::AsTheyStand(committed)),
            RowsCheckpoint::At(Some(_)) if !R::keeps(Rule::RowsFromTheirMark) => {
                return Ok(Restored::AsTheyStand(committed));
            }
            RowsCheckpoint::At(None) if R::keeps(Rule::FinishedRestore) && self.holds_rows()? => {
                // A restore from the beginning tells nothing of what was deleted long ago.
                let detail = "their first restore was not finished";
                return Err(self.stale(RowsFault::Unfinished, detail.into()));
            }
            RowsCheckpoint::At(None) => RestoreCheckpoint::default(),
            RowsCheckpoint::At(Some(mark)) => {
                let unreadable =
                    |error: everlog_wire::Error| self.stale(RowsFault::Corrupt, error.to_string());
                RestoreCheckpoint::read(mark).map_err(unreadable)?
            }
        };
        self.compare(&mark, committed.as_ref())?;
        self.stats.restore_left.store(0, Ordering::Relaxed);
        self.stats.restore_all.store(0, Ordering::Relaxed);
        let (changelog, found) = self.restore_topic(Topic::Changelog, Space::State, mark.changelog)?;
        let (timers, _) = self.restore_topic(Topic::Timers, Space::Timers, mark.timers)?;
        let known = committed.filter(|(_, position)| *position == mark.position);
        let Some((applied, position)) = found.or(known) else {
            return self.nothing_is_committed().map(Restored::AsTheyStand);
        };
        // They are as new as the log was when it was asked.
        let (partition, written_ms) = (u64::from(self.id) + 1, self.now_ms);
        let mark = RestoreCheckpoint { position, changelog, timers, partition, written_ms, ..mark };
        self.base.write(&mut std::iter::empty(), Some(&mark.encode()))?;
        Ok(Restored::To(mark, applied))
    }

    /// The changelog has no position: it must not have had one, or everything would begin anew.
    fn nothing_is_committed(&self) -> Result<Option<(Offset, Bytes)>, Error> {
        match self.log.position(self.id)? {
            None => Ok(None),
            Some((applied, _)) => {
                let detail = format!("the changelog has lost the position that it had at {applied}");
                Err(Error::lost(self.id, &detail))
            }
        }
    }

    fn holds_rows(&self) -> Result<bool, Error> {
        let mut found = false;
        for space in Space::ALL {
            // Every key begins with its bucket, far below this.
            self.base.scan(space, &[], &[u8::MAX], &mut |_, _| {
                found = true;
                false
            })?;
        }
        Ok(found)
    }

    /// Whether the rows are of this log, not ahead of it, and not so old that it has forgotten what was deleted since.
    fn compare(&self, mark: &RestoreCheckpoint, committed: Option<&(Offset, Bytes)>) -> Result<(), Error> {
        if mark.position.is_empty() || !R::keeps(Rule::StaleRows) {
            return Ok(());
        }
        let position = Position::read(mark.position.clone());
        let position = position.map_err(|error| self.stale(RowsFault::Corrupt, error.to_string()))?;
        if position.incarnation != self.log.incarnation()[..] {
            return Err(self.stale(RowsFault::Foreign, "they belong to other topics".into()));
        }
        if mark.partition != u64::from(self.id) + 1 {
            return Err(self.stale(RowsFault::Foreign, "they belong to another partition".into()));
        }
        if committed.is_none() && position.applied > 0 {
            let detail =
                format!("the rows kept here stand at {}, the changelog has no position", position.applied);
            return Err(Error::lost(self.id, &detail));
        }
        let (applied, row) = committed.map_or((0, &[][..]), |(applied, row)| (*applied, row.as_ref()));
        if position.applied > applied {
            let detail = format!("they stand at {}, the log is committed up to {applied}", position.applied);
            return Err(self.stale(RowsFault::Ahead, detail));
        }
        if mark.position == row {
            // Nothing was deleted since.
            return Ok(());
        }
        if position.applied == applied {
            let detail = format!("at {applied} they stand otherwise than the log");
            return Err(self.stale(RowsFault::Foreign, detail));
        }
        let log_ms = Position::read(Bytes::copy_from_slice(row)).map_or(0, |position| position.last_stamp_ms);
        // Neither clock is trusted alone: the rows are as old as the worse of the two says.
        let now_ms = self.now_ms.max(log_ms);
        let age_ms = now_ms - position.last_stamp_ms.min(mark.written_ms);
        match self.log.tombstones_ms() {
            Some(kept_ms) if age_ms > kept_ms / 2 => {
                let detail = format!("they are {age_ms} ms old, deletions are told for {kept_ms} ms");
                Err(self.stale(RowsFault::Old, detail))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn stale(&self, fault: RowsFault, detail: String) -> Error {
        Error::Stale { partition: self.id, fault, detail }
    }

    /// Restores a topic from an offset to its end; where the next restore may begin, and the last position in it.
    fn restore_topic(
        &self,
        topic: Topic,
        space: Space,
        from: Offset,
    ) -> Result<(Offset, Option<(Offset, Bytes)>), Error> {
        let (mut next, mut position, mut all) = (from, None, None);
        loop {
            let mut rows = Rows {
                base: self.base,
                partition: self.id,
                from,
                space,
                changes: Vec::new(),
                waiting_bytes: 0,
                bytes: 0,
                count: 0,
                failed: None,
            };
            let restored = self.log.restore(topic, self.id, next, &mut |key, value| rows.take(key, value));
            rows.write();
            let Rows { bytes, count, failed, .. } = rows;
            if let Some(error) = failed {
                return Err(error.into());
            }
            let restored = restored.map_err(|error| outside(self.id, topic, error))?;
            if all.is_none() {
                let span = restored.end.saturating_sub(from.min(restored.end));
                self.stats.restore_all.fetch_add(span, Ordering::Relaxed);
                self.stats.restore_left.fetch_add(span, Ordering::Relaxed);
                all = Some(span);
            }
            let passed = restored.next.saturating_sub(next);
            // Others may have made the topic longer meanwhile.
            let left = self.stats.restore_left.load(Ordering::Relaxed).saturating_sub(passed);
            self.stats.restore_left.store(left, Ordering::Relaxed);
            self.stats.restored_rows.fetch_add(count, Ordering::Relaxed);
            self.stats.restored_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            position = restored.position.or(position);
            let is_done = restored.next >= restored.end;
            next = restored.next;
            if is_done {
                return Ok((next, position));
            }
        }
    }
}

/// A mark that the topic does not reach, though it is not ahead of the log's position, or not any longer.
fn outside(partition: u32, topic: Topic, error: everlog_log::Error) -> Error {
    match error {
        everlog_log::Error::OutOfRange { wanted, end, .. } if wanted > end => {
            let detail =
                format!("{} was read up to {wanted}, it ends at {end}: it was made again", topic.name());
            Error::lost(partition, &detail)
        }
        everlog_log::Error::OutOfRange { .. } => {
            Error::Stale { partition, fault: RowsFault::Old, detail: error.to_string() }
        }
        error => error.into(),
    }
}

/// Rows on their way from a topic into the base.
struct Rows<'a, B: CommittedRows> {
    base: &'a B,
    partition: u32,
    /// Where the restore of the topic began.
    from: Offset,
    space: Space,
    changes: Vec<(Bytes, Option<Bytes>)>,
    waiting_bytes: usize,
    bytes: usize,
    count: u64,
    failed: Option<everlog_store::Error>,
}

impl<B: CommittedRows> Rows<'_, B> {
    fn take(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let bytes = key.len() + value.map_or(0, <[u8]>::len);
        self.waiting_bytes += bytes;
        self.bytes += bytes;
        self.count += 1;
        self.changes.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        if self.waiting_bytes >= WRITE_BYTES {
            self.write();
        }
        self.failed.is_none() && self.bytes < SLICE_BYTES
    }

    /// The runs whose rows change are not what the index says of them. Where there was no row, there is no index.
    fn stale(&self, changes: &[(Bytes, Option<Bytes>)]) -> Vec<(Bytes, Bytes)> {
        if self.space != Space::State || self.from == 0 {
            return Vec::new();
        }
        let runs = changes.iter().filter_map(|(key, _)| RunKey::of_row(key));
        runs.map(|run| {
            let (key, value) = stale_row(run.bytes());
            (stored_key(self.partition, &key), value)
        })
        .collect()
    }

    fn write(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        self.waiting_bytes = 0;
        let mut stale = self.stale(&changes);
        stale.dedup();
        let rows = changes.iter().map(|(key, value)| (self.space, key.as_ref(), value.as_deref()));
        let stale = stale.iter().map(|(key, value)| (Space::Index, key.as_ref(), Some(value.as_ref())));
        let mut rows = rows.chain(stale);
        if let Err(error) = self.base.write(&mut rows, None) {
            self.failed.get_or_insert(error);
        }
    }
}
