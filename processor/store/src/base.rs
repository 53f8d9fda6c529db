//! The committed rows below the overlay: in the log's database, in one of their own, or in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rocksdb::{ColumnFamily, DB, ErrorKind, ReadOptions};

use crate::{Change, Error, Space};

/// One changed row: None deletes.
pub type RowChange<'a> = (Space, &'a [u8], Option<&'a [u8]>);

/// Who writes the rows, and up to where they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The log writes them with its commits: they are always as new as its position.
    WithTheLog,
    /// `write` does: they stand at the mark that was given last, or at the very beginning.
    At(Option<Bytes>),
}

/// How a skim goes on behind a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onward {
    /// With the next row.
    Next,
    /// Rows before this key, which lies ahead, are not wanted; some may be visited all the same.
    At(Vec<u8>),
    /// Not at all.
    End,
}

/// Committed rows.
pub trait Base: Send {
    /// Up to where the rows are written.
    fn standing(&self) -> Result<Standing, Error>;

    /// Makes changes rows, together with the mark if there is one: all of it or nothing. A crash of the process may
    /// take back the latest writes, in order and with their marks. Does nothing where the log writes them.
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

    /// Visits keys with `from <= key < to` in their order, as `visit` says: for rows here and there among many.
    fn skim(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Onward,
    ) -> Result<(), Error> {
        self.scan(space, from, to, &mut |key, _| visit(key) != Onward::End)
    }

    /// The last row with `from <= key < to`.
    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error>;
}

/// Rows that a skim passes one by one: a seek costs as much as several.
const PASSED_MAX: usize = 8;

/// The rows in the embedded log's database: column families `changelog`, `history` and `timers`.
pub struct SharedRows {
    db: Arc<DB>,
}

impl SharedRows {
    /// Rows of a database that has the three column families; `Io` if it has not.
    pub fn new(db: Arc<DB>) -> Result<Self, Error> {
        for name in [Space::State, Space::History, Space::Timers].map(family_name) {
            if db.cf_handle(name).is_none() {
                return Err(Error::Io { detail: format!("the database has no column family {name}") });
            }
        }
        Ok(SharedRows { db })
    }

    pub(crate) fn family(&self, space: Space) -> &ColumnFamily {
        self.db.cf_handle(family_name(space)).expect("new() has checked that it is there")
    }

    /// Visits the rows with `from <= key < to` in key order, as `visit` says.
    fn walk(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Onward,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(to);
        let mut rows = self.db.raw_iterator_cf_opt(self.family(space), options);
        rows.seek(from);
        while let Some((key, value)) = rows.item() {
            match visit(key, value) {
                Onward::Next => rows.next(),
                Onward::At(key) => {
                    let is_there = (0..PASSED_MAX).any(|_| {
                        rows.next();
                        rows.key().is_none_or(|at| at >= key.as_slice())
                    });
                    if !is_there {
                        rows.seek(&key);
                    }
                }
                Onward::End => return Ok(()),
            }
        }
        rows.status().map_err(translate)
    }
}

impl Base for SharedRows {
    fn standing(&self) -> Result<Standing, Error> {
        Ok(Standing::WithTheLog)
    }

    fn write(&self, _: &mut dyn Iterator<Item = RowChange<'_>>, _: Option<&[u8]>) -> Result<(), Error> {
        Ok(())
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let row = self.db.get_pinned_cf(self.family(space), key).map_err(translate)?;
        Ok(row.map(|row| Bytes::copy_from_slice(&row)))
    }

    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut onward =
            |key: &[u8], value: &[u8]| if visit(key, value) { Onward::Next } else { Onward::End };
        self.walk(space, from, to, &mut onward)
    }

    fn skim(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Onward,
    ) -> Result<(), Error> {
        self.walk(space, from, to, &mut |key, _| visit(key))
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(to);
        let mut rows = self.db.raw_iterator_cf_opt(self.family(space), options);
        rows.seek_to_last();
        let last =
            rows.item().map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        rows.status().map_err(translate)?;
        Ok(last)
    }
}

pub(crate) fn family_name(space: Space) -> &'static str {
    match space {
        Space::State => "changelog",
        Space::History => "history",
        Space::Timers => "timers",
    }
}

pub(crate) fn translate(error: rocksdb::Error) -> Error {
    let is_damage = error.kind() == ErrorKind::Corruption;
    let detail = error.into_string();
    // A file that is gone may be missed only when it is read.
    if is_damage || detail.contains("No such file") {
        Error::Corrupt { detail }
    } else {
        Error::Io { detail }
    }
}

/// Rows in memory, for tests; clones share them.
#[derive(Clone, Default)]
pub struct MemoryRows {
    rows: Arc<Mutex<BTreeMap<(Space, Bytes), Bytes>>>,
    mark: Arc<Mutex<Option<Bytes>>>,
}

impl MemoryRows {
    /// Makes the changes of a commit the base's rows.
    pub fn apply(&self, changes: Vec<Change>) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        for (space, key, value) in changes {
            match value {
                Some(value) => rows.insert((space, key), value),
                None => rows.remove(&(space, key)),
            };
        }
    }
}

impl Base for MemoryRows {
    fn standing(&self) -> Result<Standing, Error> {
        Ok(Standing::At(self.mark.lock().unwrap_or_else(PoisonError::into_inner).clone()))
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
            let mut standing = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
            *standing = Some(Bytes::copy_from_slice(mark));
        }
        Ok(())
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
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
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
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
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut range = rows.range((Bound::Included(edge(from)), Bound::Excluded(edge(to))));
        Ok(range.next_back().map(|((_, key), value)| (key.clone(), value.clone())))
    }
}

impl<B: Base + ?Sized> Base for Box<B> {
    fn standing(&self) -> Result<Standing, Error> {
        self.as_ref().standing()
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

    fn skim(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Onward,
    ) -> Result<(), Error> {
        self.as_ref().skim(space, from, to, visit)
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        self.as_ref().last(space, from, to)
    }
}
