//! The trait of the committed rows below the overlay, and an implementation in memory for tests.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::{Change, Error, Space};

/// One changed row: None deletes.
pub type RowChange<'a> = (Space, &'a [u8], Option<&'a [u8]>);

/// Up to where the committed rows are written, and who writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowsCheckpoint {
    /// The log writes them with its commits, so they are always at its position.
    WithTheLog,
    /// `write` does: they are at the last mark that was given, or at the beginning.
    At(Option<Bytes>),
}

/// How `seek_scan` goes on after a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seek {
    /// With the next row.
    Next,
    /// At this key, which is ahead. Rows before it may be visited too.
    At(Vec<u8>),
    /// It ends.
    End,
}

/// Committed rows.
pub trait CommittedRows: Send {
    /// Up to where the rows are written.
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error>;

    /// Writes changes and the mark, if there is one, atomically. A crash of the process may undo the latest writes, in order
    /// and with their marks. It does nothing where the log writes the rows.
    fn write(
        &self,
        changes: &mut dyn Iterator<Item = RowChange<'_>>,
        mark: Option<&[u8]>,
    ) -> Result<(), Error>;

    /// The row under a key.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// Visits the rows with `from <= key < to` in key order until `visit` says false.
    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error>;

    /// Visits keys with `from <= key < to` in order and seeks where `visit` says: for few rows among many.
    fn seek_scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Seek,
    ) -> Result<(), Error> {
        self.scan(space, from, to, &mut |key, _| visit(key) != Seek::End)
    }

    /// The last row with `from <= key < to`.
    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error>;
}

/// Rows in memory, for tests; clones share them.
#[derive(Clone, Default)]
pub struct MemoryRows {
    rows: Arc<Mutex<BTreeMap<(Space, Bytes), Bytes>>>,
    mark: Arc<Mutex<Option<Bytes>>>,
}

impl MemoryRows {
    /// Every row.
    pub fn all(&self) -> BTreeMap<(Space, Bytes), Bytes> {
        self.rows.lock().clone()
    }

    /// Makes the changes of a commit the base's rows.
    pub fn apply(&self, changes: Vec<Change>) {
        let mut rows = self.rows.lock();
        for (space, key, value) in changes {
            match value {
                Some(value) => rows.insert((space, key), value),
                None => rows.remove(&(space, key)),
            };
        }
    }
}

impl CommittedRows for MemoryRows {
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error> {
        Ok(RowsCheckpoint::At(self.mark.lock().clone()))
    }

    fn write(
        &self,
        changes: &mut dyn Iterator<Item = RowChange<'_>>,
        mark: Option<&[u8]>,
    ) -> Result<(), Error> {
        let owned = |(space, key, value): RowChange<'_>| -> Change {
            (space, Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice))
        };
        self.apply(changes.map(owned).collect());
        if let Some(mark) = mark {
            let mut standing = self.mark.lock();
            *standing = Some(Bytes::copy_from_slice(mark));
        }
        Ok(())
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let rows = self.rows.lock();
        Ok(rows.get(&(space, Bytes::copy_from_slice(key))).cloned())
    }

    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        let edge = |key: &[u8]| (space, Bytes::copy_from_slice(key));
        let rows = self.rows.lock();
        for ((_, key), value) in rows.range((Bound::Included(edge(from)), Bound::Excluded(edge(to)))) {
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        if from >= to {
            return Ok(None);
        }
        let edge = |key: &[u8]| (space, Bytes::copy_from_slice(key));
        let rows = self.rows.lock();
        let mut range = rows.range((Bound::Included(edge(from)), Bound::Excluded(edge(to))));
        Ok(range.next_back().map(|((_, key), value)| (key.clone(), value.clone())))
    }
}

impl<B: CommittedRows + ?Sized> CommittedRows for Box<B> {
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error> {
        self.as_ref().checkpoint()
    }

    fn write(
        &self,
        changes: &mut dyn Iterator<Item = RowChange<'_>>,
        mark: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.as_ref().write(changes, mark)
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.as_ref().get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.as_ref().scan(space, from, to, visit)
    }

    fn seek_scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Seek,
    ) -> Result<(), Error> {
        self.as_ref().seek_scan(space, from, to, visit)
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        self.as_ref().last(space, from, to)
    }
}
