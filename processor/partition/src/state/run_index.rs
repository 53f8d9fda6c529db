//! The index of a partition's runs: every change of a run's record is written with the rows of its state, and an index of
//! another format is made anew while the partition goes on.

use std::ops::Range;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_store::{CommittedRows, Seek, Space, Store};
use everlog_visibility::index::{
    CounterChanges, Error as IndexError, IndexFormat, IndexProgress, change, stale_row, stale_runs,
};
use everlog_visibility::record::Record;
use uuid::Uuid;

use crate::error::Error;
use crate::model::keys::RunKey;
use crate::state::index_rows::{PartitionIndex, PartitionIndexMut, stored_key};

/// What happened to a run since lists and counts were told last.
pub(crate) struct RecordChange {
    pub(crate) namespace_id: Uuid,
    pub(crate) before: Option<Record>,
    pub(crate) after: Option<Record>,
}

/// The index of the runs of a partition.
pub(crate) struct RunIndex {
    partition: u32,
    /// The partition's buckets: its rows may be in one database with those of others.
    buckets: Range<u32>,
    format: IndexFormat,
    counters: CounterChanges,
    /// A restore has brought rows of runs that the index has otherwise.
    has_stale: bool,
    /// Somebody is reading, and is told of each change.
    is_read: bool,
    changes: Vec<RecordChange>,
}

impl RunIndex {
    /// The index of a partition whose rows have not been read.
    pub(crate) fn new(partition: u32, buckets: Range<u32>) -> Self {
        let (format, counters, changes) = (IndexFormat::default(), CounterChanges::default(), Vec::new());
        Self { partition, buckets, format, counters, has_stale: false, is_read: false, changes }
    }

    /// The index is what the rows say.
    pub(crate) fn open<B: CommittedRows>(&mut self, store: &Store<B>) -> Result<(), Error> {
        let rows = self.rows(store);
        if let Some(format) = self.sound(IndexFormat::read(&rows))? {
            self.format = format;
        }
        self.has_stale = self.sound(stale_runs(&rows, 1))?.is_some_and(|stale| !stale.is_empty());
        Ok(())
    }

    /// Its rows, to read.
    pub(crate) fn rows<'a, B: CommittedRows>(&self, store: &'a Store<B>) -> PartitionIndex<'a, B> {
        PartitionIndex { store, partition: self.partition }
    }

    /// True once lists and counts are exact.
    pub(crate) fn is_complete(&self) -> bool {
        self.format.is_complete() && !self.has_stale
    }

    /// How much of the state was looked through, in percent.
    pub(crate) fn percent(&self) -> u32 {
        let bucket = self.format.derived_to.first_chunk::<2>().map(|bucket| u16::from_be_bytes(*bucket));
        match (self.format.progress(), bucket) {
            (IndexProgress::Complete, _) => 100,
            (IndexProgress::Deriving, Some(bucket)) => {
                let passed =
                    u32::from(bucket).clamp(self.buckets.start, self.buckets.end) - self.buckets.start;
                passed * 100 / u32::try_from(self.buckets.len()).unwrap_or(1).max(1)
            }
            (IndexProgress::Deriving | IndexProgress::Clearing, _) => 0,
        }
    }

    /// A run has changed from what the rows have: none before is a new one, none after one that is deleted.
    pub(crate) fn changed<B: CommittedRows>(
        &mut self,
        key: &RunKey,
        before: Option<&Run>,
        after: Option<&Run>,
        store: &mut Store<B>,
    ) -> Result<(), Error> {
        if let (Some(before), Some(after)) = (before, after)
            && Record::is_same(before, after)
        {
            return Ok(());
        }
        let Some(run) = after.or(before) else { return Ok(()) };
        if !self.format.has(key.bytes()) {
            return Ok(());
        }
        let namespace_id = Uuid::parse_str(&run.start.namespace_id).unwrap_or_default();
        let after = after.map(Record::of);
        if self.has_stale && self.refreshed(key, namespace_id, after.as_ref(), store)? {
            return Ok(());
        }
        let before = before.map(Record::of);
        let mut rows = PartitionIndexMut { store, partition: self.partition };
        change(namespace_id, before.as_ref(), after.as_ref(), &mut rows, &mut self.counters);
        if self.is_read {
            self.changes.push(RecordChange { namespace_id, before, after });
        }
        Ok(())
    }

    /// Writes the counters. Each commit and each read needs it first.
    pub(crate) fn flush<B: CommittedRows>(&mut self, store: &mut Store<B>) -> Result<(), Error> {
        let flushed = self.counters.flush(&mut PartitionIndexMut { store, partition: self.partition });
        self.sound(flushed)?;
        Ok(())
    }

    /// Somebody reads from here on, or nobody does.
    pub(crate) fn read_by(&mut self, is_read: bool) {
        self.is_read = is_read;
        self.changes.clear();
    }

    /// The changes since the last time.
    pub(crate) fn take_changes(&mut self) -> Vec<RecordChange> {
        std::mem::take(&mut self.changes)
    }

    /// Makes a part of what is missing; `rows_max` bounds the rows that are looked at. Every run must be flushed. `record` reads a
    /// run of the state.
    pub(crate) fn build<B: CommittedRows>(
        &mut self,
        rows_max: usize,
        store: &mut Store<B>,
        mut record: impl FnMut(&Store<B>, &RunKey) -> Result<Option<Record>, Error>,
    ) -> Result<(), Error> {
        match self.format.progress() {
            IndexProgress::Clearing => {
                let mut rows = PartitionIndexMut { store, partition: self.partition };
                let cleared = self.format.clear(&mut rows, rows_max);
                self.sound(cleared)?;
                self.has_stale = false;
            }
            IndexProgress::Deriving => {
                let (keys, is_last) = runs_behind(store, &self.buckets, &self.format.derived_to, rows_max)?;
                let mut entered = Vec::with_capacity(keys.len());
                for key in keys {
                    if let Some(record) = record(store, &key)? {
                        entered.push((namespace_of(&key), record, key));
                    }
                }
                let runs = entered.iter().map(|(namespace, record, key)| (key.bytes(), *namespace, record));
                let mut rows = PartitionIndexMut { store, partition: self.partition };
                self.format.derive(runs, is_last, &mut rows, &mut self.counters);
            }
            IndexProgress::Complete => {
                let rows = PartitionIndex { store: &*store, partition: self.partition };
                let found = stale_runs(&rows, rows_max);
                let Some(stale) = self.sound(found)? else { return Ok(()) };
                self.has_stale = !stale.is_empty();
                for bytes in stale {
                    let Some(key) = RunKey::read(&bytes) else {
                        store.delete(Space::Index, stored_key(self.partition, &stale_row(&bytes).0));
                        continue;
                    };
                    let after = record(store, &key)?;
                    self.refresh(&key, namespace_of(&key), after.as_ref(), store)?;
                }
            }
        }
        Ok(())
    }

    /// True where the run's rows had to be derived again, and were.
    fn refreshed<B: CommittedRows>(
        &mut self,
        key: &RunKey,
        namespace_id: Uuid,
        after: Option<&Record>,
        store: &mut Store<B>,
    ) -> Result<bool, Error> {
        let stale = stored_key(self.partition, &stale_row(key.bytes()).0);
        if store.get(Space::Index, &stale)?.is_none() {
            return Ok(false);
        }
        self.refresh(key, namespace_id, after, store)?;
        Ok(true)
    }

    fn refresh<B: CommittedRows>(
        &mut self,
        key: &RunKey,
        namespace_id: Uuid,
        after: Option<&Record>,
        store: &mut Store<B>,
    ) -> Result<(), Error> {
        let mut rows = PartitionIndexMut { store, partition: self.partition };
        let ids = (namespace_id, run_of(key));
        let refreshed = self.format.refresh(key.bytes(), ids, after, &mut rows, &mut self.counters);
        self.sound(refreshed)?;
        Ok(())
    }

    /// What came of a use of the index. One that is damaged is made anew; then there is no answer.
    pub(crate) fn sound<T>(
        &mut self,
        result: Result<T, IndexError<everlog_store::Error>>,
    ) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(IndexError::Rows(error)) => Err(error.into()),
            // The index is sound: a count asks for more groups than it may have.
            Err(IndexError::Groups(_)) => Ok(None),
            Err(error @ IndexError::Damaged(_)) => {
                tracing::error!(partition = self.partition, %error, "index is damaged and is made anew");
                self.format.progress = IndexProgress::Clearing.into();
                self.format.derived_to = Bytes::new();
                self.counters = CounterChanges::default();
                self.has_stale = false;
                Ok(None)
            }
        }
    }
}

/// Runs of the state in these buckets behind one of them, or from the first on, in the order of their keys, and whether they
/// are the last.
pub(crate) fn runs_behind<B: CommittedRows>(
    store: &Store<B>,
    buckets: &Range<u32>,
    behind: &Bytes,
    max: usize,
) -> Result<(Vec<RunKey>, bool), Error> {
    let mut runs: Vec<RunKey> = Vec::new();
    let edge = |bucket: u32| u16::try_from(bucket).unwrap_or(u16::MAX).to_be_bytes();
    let from = match behind.as_ref() {
        [] => edge(buckets.start).to_vec(),
        behind => [behind, &[u8::MAX]].concat(),
    };
    let to = edge(buckets.end);
    store.seek_scan(Space::State, &from, &to, &mut |row| {
        let is_known = runs.last().is_some_and(|last| row.starts_with(last.bytes()));
        match RunKey::of_row(row) {
            Some(_) if is_known => Seek::Next,
            Some(key) if runs.len() < max => {
                let mut next = key.bytes().to_vec();
                next.push(u8::MAX);
                runs.push(key);
                Seek::At(next)
            }
            Some(_) => Seek::End,
            None => Seek::Next,
        }
    })?;
    let is_last = runs.len() < max;
    Ok((runs, is_last))
}

pub(crate) fn namespace_of(key: &RunKey) -> Uuid {
    key.bytes().get(2..18).and_then(|id| Uuid::from_slice(id).ok()).unwrap_or_default()
}

fn run_of(key: &RunKey) -> Uuid {
    let bytes = key.bytes();
    bytes.get(bytes.len() - 16..).and_then(|id| Uuid::from_slice(id).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use everlog_log::{BUCKETS, bucket_owner, buckets_of};
    use everlog_store::MemoryRows;

    use super::*;
    use crate::model::keys::{WorkflowKey, state_key};

    #[test]
    fn a_partition_finds_its_own_runs_in_rows_that_it_shares() {
        const PARTITIONS: u32 = 8;
        let namespace_id = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
        let mut store = Store::new(MemoryRows::default());
        let mut keys: Vec<_> = (0..200)
            .map(|number| WorkflowKey::new(namespace_id, &format!("order-{number}")).run(namespace_id))
            .collect();
        for key in &keys {
            store.put(Space::State, state_key(key, b"h"), Bytes::new());
            store.put(Space::State, state_key(key, b"s"), Bytes::new());
        }
        let found = |buckets: Range<u32>| {
            let (mut found, mut is_last) = (Vec::<RunKey>::new(), false);
            while !is_last {
                let behind = found.last().map_or_else(Bytes::new, |key| Bytes::copy_from_slice(key.bytes()));
                let (runs, last) = runs_behind(&store, &buckets, &behind, 3).unwrap();
                found.extend(runs);
                is_last = last;
            }
            found
        };
        keys.sort_by(|one, other| one.bytes().cmp(other.bytes()));
        assert_eq!(found(0..BUCKETS), keys);
        for partition in 0..PARTITIONS {
            let mut own = keys.clone();
            own.retain(|key| bucket_owner(key.bucket(), PARTITIONS) == partition);
            assert!(!own.is_empty());
            assert_eq!(found(buckets_of(partition, PARTITIONS)), own);
        }
    }
}
