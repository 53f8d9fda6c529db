//! The rows that a node keeps beside the log, with every earlier state of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use everlog_store::{Change, CommittedRows, Error, MemoryRows, RowChange, RowsCheckpoint, Space};

/// A directory; clones are the same one.
#[derive(Clone, Default)]
pub struct Disk {
    rows: MemoryRows,
    past: Arc<Mutex<Past>>,
}

#[derive(Default)]
struct Past {
    writes: Vec<(Vec<Change>, Option<Bytes>)>,
    /// The newest mark there ever was, where the directory claims to be there whatever it holds.
    boast: Option<Bytes>,
    boasts: bool,
}

impl Disk {
    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes so far.
    pub fn writes(&self) -> usize {
        self.past().writes.len()
    }

    /// The directory as it was after so many writes.
    pub fn copy(&self, writes: usize) -> Self {
        let old = self.past();
        let copy = Self::default();
        let mut past = Past { boasts: old.boasts, boast: old.boast.clone(), ..Past::default() };
        for (changes, mark) in &old.writes[..writes.min(old.writes.len())] {
            let mut rows = changes.iter().map(|(space, key, value)| (*space, &key[..], value.as_deref()));
            copy.rows.write(&mut rows, mark.as_deref()).expect("it is memory");
            past.writes.push((changes.clone(), mark.clone()));
        }
        *copy.past() = past;
        copy
    }

    /// From now on it claims to be as new as it ever was.
    pub fn boast(&self) {
        self.past().boasts = true;
    }

    /// Every row.
    pub fn rows(&self) -> BTreeMap<(Space, Bytes), Bytes> {
        self.rows.all()
    }
}

impl CommittedRows for Disk {
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error> {
        let past = self.past();
        if past.boasts { Ok(RowsCheckpoint::At(past.boast.clone())) } else { self.rows.checkpoint() }
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
        let mut rows = changes.iter().map(|(space, key, value)| (*space, &key[..], value.as_deref()));
        self.rows.write(&mut rows, mark)?;
        let mark = mark.map(Bytes::copy_from_slice);
        let mut past = self.past();
        past.boast = mark.clone().or_else(|| past.boast.take());
        past.writes.push((changes, mark));
        Ok(())
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.rows.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.rows.scan(space, from, to, visit)
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        self.rows.last(space, from, to)
    }
}
