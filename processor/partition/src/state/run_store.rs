//! The runs of a partition: decoded and cached, over rows that are written when the outputs are committed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::machine::update::Done;
use everlog_engine::{Current, Grace, Run, SizeWarning};
use everlog_store::{CommittedRows, Space, Store};
use everlog_visibility::index::Error as IndexError;
use everlog_visibility::record::Record;
use everlog_wire::rows::{self, Builder};
use prost::Message;

use crate::error::Error;
use crate::model::keys::{DELETION_MS, RunKey, WorkflowKey, history_key, state_key, timer_key};
use crate::state::index_rows::PartitionIndex;
use crate::state::run_index::RunIndex;

/// The cached runs and the store beneath.
pub struct RunStore<B: CommittedRows> {
    store: Store<B>,
    resident: HashMap<RunKey, Resident>,
    /// Which runs Workflow Ids mean, as far as somebody has asked lately.
    currents: HashMap<WorkflowKey, String>,
    dirty: Vec<RunKey>,
    cached_max: usize,
    index: RunIndex,
}

struct Resident {
    run: Arc<Run>,
    /// As the rows have it.
    base: Option<Arc<Run>>,
    dirty: bool,
    /// The marks that it was warned of.
    warned: Vec<SizeWarning>,
}

impl<B: CommittedRows> RunStore<B> {
    /// Runs of a partition, which has these buckets, over a store; at most `cached_max` unchanged ones stay in memory.
    pub fn new(partition: u32, buckets: Range<u32>, store: Store<B>, cached_max: usize) -> Self {
        let (resident, currents) = (HashMap::new(), HashMap::new());
        let index = RunIndex::new(partition, buckets);
        Self { store, resident, currents, dirty: Vec::new(), cached_max, index }
    }

    /// The index is what the rows say, once they are restored. Nothing may have changed before.
    pub fn open_index(&mut self) -> Result<(), Error> {
        self.index.open(&self.store)
    }

    /// The index of the runs.
    pub fn index(&self) -> &RunIndex {
        &self.index
    }

    /// The index, to be told who reads it.
    pub fn index_mut(&mut self) -> &mut RunIndex {
        &mut self.index
    }

    /// Makes a part of an index that is not complete.
    pub fn build_index(&mut self, rows_max: usize) -> Result<(), Error> {
        self.flush()?;
        let Self { store, resident, index, .. } = self;
        index.build(rows_max, store, |store, key| {
            let run = match resident.get(key) {
                Some(resident) => Some(Arc::clone(&resident.run)),
                None => load(store, key)?.map(Arc::new),
            };
            Ok(run.map(|run| Record::of(&run)))
        })?;
        index.flush(store)
    }

    /// Reads the index, every change up to here included; none where it is damaged, and is made anew.
    pub fn read_index<T>(
        &mut self,
        read: impl FnOnce(&PartitionIndex<'_, B>) -> Result<T, IndexError<everlog_store::Error>>,
    ) -> Result<Option<T>, Error> {
        let result = read(&self.index.rows(&self.store));
        self.index.sound(result)
    }

    /// The store, for rows that are not part of a run.
    pub fn store(&mut self) -> &mut Store<B> {
        &mut self.store
    }

    /// The id of the run that a Workflow Id means.
    pub fn current(&mut self, key: &WorkflowKey) -> Result<Option<String>, Error> {
        if let Some(run_id) = self.currents.get(key) {
            return Ok(Some(run_id.clone()));
        }
        let Some(row) = self.store.get(Space::State, key.bytes())? else { return Ok(None) };
        let current =
            Current::decode(row).map_err(|error| Error::damaged("the current row of a workflow", &error))?;
        self.currents.insert(key.clone(), current.run_id.clone());
        Ok(Some(current.run_id))
    }

    /// The Workflow Id means this run from here on.
    pub fn set_current(&mut self, key: &WorkflowKey, current: &Current) {
        self.currents.remove(key);
        self.store.put(Space::State, key.bytes().clone(), current.encode_to_vec().into());
    }

    /// A run by its key.
    pub fn get(&mut self, key: &RunKey) -> Result<Option<Arc<Run>>, Error> {
        if let Some(resident) = self.resident.get(key) {
            return Ok(Some(resident.run.clone()));
        }
        let Some(run) = load(&self.store, key)?.map(Arc::new) else { return Ok(None) };
        let resident =
            Resident { run: run.clone(), base: Some(run.clone()), dirty: false, warned: Vec::new() };
        self.resident.insert(key.clone(), resident);
        Ok(Some(run))
    }

    /// The store, to look at.
    pub fn rows(&self) -> &Store<B> {
        &self.store
    }

    /// Runs whose rows have not been written since they changed.
    pub fn changed(&self) -> impl Iterator<Item = &RunKey> {
        self.dirty.iter()
    }

    /// A run by its key, which does not stay in memory for that.
    pub fn look(&self, key: &RunKey) -> Result<Option<Arc<Run>>, Error> {
        match self.resident.get(key) {
            Some(resident) => Ok(Some(Arc::clone(&resident.run))),
            None => Ok(load(&self.store, key)?.map(Arc::new)),
        }
    }

    /// Replaces a run, and returns it as it stood; its rows follow with the next commit.
    pub fn put(&mut self, key: &RunKey, run: Arc<Run>) -> Option<Arc<Run>> {
        match self.resident.get_mut(key) {
            Some(resident) => {
                if !resident.dirty {
                    resident.dirty = true;
                    self.dirty.push(key.clone());
                }
                Some(std::mem::replace(&mut resident.run, run))
            }
            None => {
                let resident = Resident { run, base: None, dirty: true, warned: Vec::new() };
                self.resident.insert(key.clone(), resident);
                self.dirty.push(key.clone());
                None
            }
        }
    }

    /// True the first time that a run is to be warned of a mark, as long as it stays in memory.
    pub fn warns(&mut self, key: &RunKey, mark: SizeWarning) -> bool {
        let Some(resident) = self.resident.get_mut(key) else { return false };
        let is_first = !resident.warned.contains(&mark);
        if is_first {
            resident.warned.push(mark);
        }
        is_first
    }

    /// True where the run has taken this request id.
    pub fn has_request(&self, key: &RunKey, request_id: &str) -> Result<bool, Error> {
        Ok(self.store.get(Space::State, &state_key(key, &rows::request_suffix(request_id)))?.is_some())
    }

    /// The run has taken this request id.
    pub fn add_request(&mut self, key: &RunKey, request_id: &str) {
        let row = state_key(key, &rows::request_suffix(request_id));
        self.store.put_new(Space::State, row, Bytes::from_static(&[1]));
    }

    /// Where the outcome of an update that was completed stands.
    pub fn done_update(&self, key: &RunKey, update_id: &str) -> Result<Option<Done>, Error> {
        let row = self.store.get(Space::State, &state_key(key, &rows::done_suffix(update_id)))?;
        let done = row.map(Done::decode).transpose();
        done.map_err(|error| Error::damaged("the row of a completed update", &error))
    }

    /// An update was completed.
    pub fn add_done_update(&mut self, key: &RunKey, update_id: &str, done: Done) {
        let row = state_key(key, &rows::done_suffix(update_id));
        self.store.put(Space::State, row, done.encode_to_vec().into());
    }

    /// Writes the rows of every changed run, of their alarms, and of the index into the store's overlay.
    pub fn flush(&mut self) -> Result<(), Error> {
        for key in std::mem::take(&mut self.dirty) {
            let Some(resident) = self.resident.get_mut(&key) else { continue };
            resident.dirty = false;
            let base = resident.base.replace(resident.run.clone());
            rows::diff(base.as_deref(), &resident.run, |suffix, value| {
                let row = state_key(&key, suffix);
                match value {
                    Some(value) => self.store.put(Space::State, row, value),
                    None => self.store.delete(Space::State, row),
                }
            });
            self.index.changed(&key, base.as_deref(), Some(&resident.run), &mut self.store)?;
            let before = base.as_deref().map(timers_ms).unwrap_or_default();
            let after = timers_ms(&resident.run);
            for (before_ms, after_ms) in
                before.into_iter().zip(after).filter(|(before, after)| before != after)
            {
                if let Some(before_ms) = before_ms {
                    self.store.delete(Space::Timers, timer_key(&key, before_ms));
                }
                if let Some(after_ms) = after_ms {
                    self.store.put(Space::Timers, timer_key(&key, after_ms), Bytes::from_static(&[1]));
                }
            }
        }
        self.index.flush(&mut self.store)
    }

    /// Forgets unchanged runs beyond what may stay in memory.
    pub fn evict(&mut self) {
        if self.currents.len() > self.cached_max {
            self.currents.clear();
        }
        if self.resident.len() > self.cached_max {
            let mut surplus = self.resident.len() - self.cached_max / 2;
            self.resident.retain(|_, resident| {
                let keep = resident.dirty || surplus == 0;
                surplus -= usize::from(!keep);
                keep
            });
        }
    }

    /// True of a run that is in memory.
    pub fn is_resident(&self, key: &RunKey) -> bool {
        self.resident.contains_key(key)
    }

    /// Bytes that wait for a commit.
    pub fn overlay_bytes(&self) -> usize {
        self.store.overlay_bytes()
    }

    /// Runs in memory.
    pub fn resident(&self) -> usize {
        self.resident.len()
    }

    /// Deletes a slice of a run's history; true when nothing is left of it.
    pub fn delete_history(&mut self, key: &RunKey, rows_max: usize) -> Result<bool, Error> {
        let mut batches = Vec::new();
        let (from, to) = (history_key(key, 0), history_key(key, i64::MAX));
        self.store.scan(Space::History, &from, &to, &mut |row, _| {
            batches.push(Bytes::copy_from_slice(row));
            batches.len() < rows_max
        })?;
        let done = batches.len() < rows_max;
        for row in batches {
            self.store.delete(Space::History, row);
        }
        Ok(done)
    }

    /// Deletes all of a run but its history.
    pub fn delete_state(&mut self, key: &RunKey) -> Result<(), Error> {
        self.flush()?;
        let mut rows = Vec::new();
        self.store.scan(Space::State, key.bytes(), &state_key(key, &[u8::MAX]), &mut |row, _| {
            rows.push(Bytes::copy_from_slice(row));
            true
        })?;
        for row in rows {
            self.store.delete(Space::State, row);
        }
        let run = self.resident.remove(key).map(|resident| resident.run);
        for due_ms in run.as_deref().map(timers_ms).unwrap_or_default().into_iter().flatten() {
            self.store.delete(Space::Timers, timer_key(key, due_ms));
        }
        if let Some(run) = run {
            self.index.changed(key, Some(&run), None, &mut self.store)?;
            let workflow = WorkflowKey::new(&run.start.namespace_id, &run.start.workflow_id);
            if self.current(&workflow)?.as_deref() == Some(run.start.run_id.as_str()) {
                self.currents.remove(&workflow);
                self.store.delete(Space::State, workflow.bytes().clone());
            }
        }
        Ok(())
    }
}

fn load<B: CommittedRows>(store: &Store<B>, key: &RunKey) -> Result<Option<Run>, Error> {
    let mut builder = Builder::default();
    let mut damage = None;
    // One scan for most; there may be thousands of rows that are looked up, so that they are jumped over.
    let mut from = Some([0]);
    while let Some(first) = from.take() {
        let (first, end) = (state_key(key, &first), state_key(key, &rows::PARTS_END));
        store.scan(Space::State, &first, &end, &mut |row, value| {
            let suffix = &row[key.bytes().len()..];
            if rows::is_part(suffix) {
                damage = builder.row(suffix, value).err();
            } else {
                from = Some(rows::LOOKED_UP_END);
            }
            damage.is_none() && from.is_none()
        })?;
    }
    match damage {
        Some(damage) => Err(damage.into()),
        None => Ok(builder.finish()?),
    }
}

/// The alarms of a run: the very beginning of time where a task of it waits for a worker, so that a new owner offers
/// it; and its next deadline.
pub fn timers_ms(run: &Run) -> [Option<i64>; 2] {
    let task_ready = run.head.task.as_ref().is_some_and(|task| !task.is_started());
    let ready = run.is_open() && (task_ready || run.activities.values().any(|activity| run.offers(activity)));
    [ready.then_some(0), run.next_deadline_ms(Grace::default()).map(|due_ms| due_ms.max(DELETION_MS + 1))]
}

/// Rows of an expired run's history that are deleted at once.
pub(crate) const EXPIRED_ROWS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use everlog_engine::{ExecutionInfo, Start};
    use everlog_store::MemoryRows;

    use super::*;

    #[test]
    fn what_is_looked_up_hides_no_part_of_its_run() {
        let namespace_id = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
        let run_id = "1b0c9c4e-3f4d-5a8e-9a55-6a3a5f2f1c77";
        let workflow = WorkflowKey::new(namespace_id, "order-1");
        let (key, other) = (workflow.run(run_id), workflow.run(namespace_id));
        let mut builder = Builder::default();
        builder.row(b"s", &Start { run_id: run_id.into(), ..Start::default() }.encode_to_vec()).unwrap();
        builder.row(b"h", &ExecutionInfo { signals: 2, ..ExecutionInfo::default() }.encode_to_vec()).unwrap();
        let run = Arc::new(builder.finish().unwrap().unwrap());

        let mut runs = RunStore::new(0, 0..everlog_log::BUCKETS, Store::new(MemoryRows::default()), 0);
        assert_eq!(runs.put(&key, run.clone()), None);
        runs.flush().unwrap();
        runs.evict();
        assert_eq!(runs.get(&key).unwrap(), Some(run.clone()));
        runs.evict();
        runs.add_request(&key, "a signal");
        runs.add_request(&key, "another signal");
        runs.add_done_update(&key, "an update", Done::default());
        assert_eq!(runs.get(&key).unwrap(), Some(run));
        assert_eq!(runs.get(&other).unwrap(), None);
    }
}
