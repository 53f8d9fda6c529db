//! The rows that a node keeps beside the log, with every earlier state that they were in.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use everlog_store::{Change, CommittedRows, Error, RowChange, RowsCheckpoint, Space};

/// A directory; clones are the same one.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Files>>);

#[derive(Default)]
struct Files {
    rows: BTreeMap<(Space, Bytes), Bytes>,
    mark: Option<Bytes>,
    writes: Vec<(Vec<Change>, Option<Bytes>)>,
    /// The newest mark there ever was, where the directory claims to stand there whatever it holds.
    boast: Option<Bytes>,
    boasts: bool,
}

impl Files {
    fn apply(&mut self, changes: &[Change], mark: Option<&Bytes>) {
        for (space, key, value) in changes {
            match value {
                Some(value) => self.rows.insert((*space, key.clone()), value.clone()),
                None => self.rows.remove(&(*space, key.clone())),
            };
        }
        if let Some(mark) = mark {
            self.mark = Some(mark.clone());
        }
    }
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes so far.
    pub fn writes(&self) -> usize {
        self.lock().writes.len()
    }

    /// The directory as it was after so many writes.
    pub fn copy(&self, writes: usize) -> Self {
        let old = self.lock();
        let mut files = Files { boasts: old.boasts, boast: old.boast.clone(), ..Files::default() };
        for (changes, mark) in &old.writes[..writes.min(old.writes.len())] {
            files.apply(changes, mark.as_ref());
            files.writes.push((changes.clone(), mark.clone()));
        }
        Self(Arc::new(Mutex::new(files)))
    }

    /// From now on it claims to be as new as it ever was.
    pub fn boast(&self) {
        self.lock().boasts = true;
    }

    /// Every row.
    pub fn rows(&self) -> BTreeMap<(Space, Bytes), Bytes> {
        self.lock().rows.clone()
    }
}

impl CommittedRows for Disk {
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error> {
        let files = self.lock();
        Ok(RowsCheckpoint::At(if files.boasts { files.boast.clone() } else { files.mark.clone() }))
    }

    fn write(
        &self,
        changes: &mut dyn Iterator<Item = RowChange<'_>>,
        mark: Option<&[u8]>,
    ) -> Result<(), Error> {
        let owned = |(space, key, value): RowChange<'_>| -> Change {
            (space, Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice))
        };
        let changes: Vec<Change> = changes.map(owned).collect();
        let mark = mark.map(Bytes::copy_from_slice);
        let mut files = self.lock();
        files.apply(&changes, mark.as_ref());
        files.boast = mark.clone().or_else(|| files.boast.take());
        files.writes.push((changes, mark));
        Ok(())
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(self.lock().rows.get(&(space, Bytes::copy_from_slice(key))).cloned())
    }

    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        if from < to {
            let edge = |key: &[u8]| (space, Bytes::copy_from_slice(key));
            let files = self.lock();
            for ((_, key), value) in
                files.rows.range((Bound::Included(edge(from)), Bound::Excluded(edge(to))))
            {
                if !visit(key, value) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        if from >= to {
            return Ok(None);
        }
        let edge = |key: &[u8]| (space, Bytes::copy_from_slice(key));
        let files = self.lock();
        let mut range = files.rows.range((Bound::Included(edge(from)), Bound::Excluded(edge(to))));
        Ok(range.next_back().map(|((_, key), value)| (key.clone(), value.clone())))
    }
}
