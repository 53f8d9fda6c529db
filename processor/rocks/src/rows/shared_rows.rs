//! The committed rows in the database of the embedded log, which writes them with its commits.

use std::sync::Arc;

use bytes::Bytes;
use everlog_store::{CommittedRows, Error, RowChange, RowsCheckpoint, Seek, Space};
use rocksdb::{ColumnFamily, DB, ErrorKind, ReadOptions};

/// Rows that `seek_scan` steps over before it seeks: a seek costs as much as several steps.
const PASSED_MAX: usize = 8;

/// The rows in the embedded log's database: column families `changelog`, `history`, `timers` and
/// `index`.
pub struct SharedRows {
    db: Arc<DB>,
}

impl SharedRows {
    /// Rows of a database that has these column families; `Io` if it has not.
    pub fn new(db: Arc<DB>) -> Result<Self, Error> {
        for name in Space::ALL.map(family_name) {
            if db.cf_handle(name).is_none() {
                return Err(Error::Io { detail: format!("the database has no column family {name}") });
            }
        }
        Ok(SharedRows { db })
    }

    pub(super) fn family(&self, space: Space) -> &ColumnFamily {
        self.db.cf_handle(family_name(space)).expect("new() has checked that it is there")
    }

    /// Visits the rows with `from <= key < to` in key order, as `visit` says.
    fn walk(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Seek,
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
                Seek::Next => rows.next(),
                Seek::At(key) => {
                    let is_there = (0..PASSED_MAX).any(|_| {
                        rows.next();
                        rows.key().is_none_or(|at| at >= key.as_slice())
                    });
                    if !is_there {
                        rows.seek(&key);
                    }
                }
                Seek::End => return Ok(()),
            }
        }
        rows.status().map_err(translate)
    }
}

impl CommittedRows for SharedRows {
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error> {
        Ok(RowsCheckpoint::WithTheLog)
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
        let mut onward = |key: &[u8], value: &[u8]| if visit(key, value) { Seek::Next } else { Seek::End };
        self.walk(space, from, to, &mut onward)
    }

    fn seek_scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Seek,
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

pub(super) fn family_name(space: Space) -> &'static str {
    space.name()
}

pub(super) fn translate(error: rocksdb::Error) -> Error {
    let is_damage = error.kind() == ErrorKind::Corruption;
    let detail = error.into_string();
    // A file that is gone may be missed only when it is read.
    if is_damage || detail.contains("No such file") {
        Error::Corrupt { detail }
    } else {
        Error::Io { detail }
    }
}
