//! Whether the index is what the state says: its format, rows that have to be derived again, and making it anew.
//!
//! The index is derived from the state's rows. It is made anew, in slices, where it has another format or none: first all its
//! rows are deleted, then the runs are entered in the order of their keys in the state. Meanwhile the partition goes on: changes of
//! runs that were entered are written as ever, those of others are not, for they will be entered as they are by then.
//!
//! (none, other format)  --delete rows-->  clearing  --enter runs-->  deriving  --last run-->  complete

use bytes::Bytes;
use prost::Message;
use uuid::Uuid;

use crate::index::changes::{CounterChanges, change};
use crate::index::key::{FORMAT as FORMAT_ROW, PRESENT, STALE, all, behind};
use crate::index::rows::{Error, IndexRows, WriteIndexRows};
use crate::index::walk::{chunk, entry_of_run};
use crate::record::Record;

/// The format of the rows that this release writes.
pub const FORMAT: u32 = 1;

/// The row that says what the index is.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct IndexFormat {
    /// The format of the rows; those of another one are of no use.
    #[prost(uint32, tag = "1")]
    pub format: u32,
    /// How far it has come.
    #[prost(enumeration = "IndexProgress", tag = "2")]
    pub progress: i32,
    /// While it is derived: the state's run keys up to this one, itself included, were entered.
    #[prost(bytes = "bytes", tag = "3")]
    pub derived_to: Bytes,
    /// While it is cleared: the rows before this key were deleted. A slice that began before them would pass all of them, for
    /// a database keeps what was deleted for a while.
    #[prost(bytes = "bytes", tag = "4")]
    pub cleared_to: Bytes,
}

/// How far the index has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum IndexProgress {
    /// Rows of another format are being deleted.
    Clearing = 0,
    /// Runs are being entered.
    Deriving = 1,
    /// It has every run.
    Complete = 2,
}

impl IndexFormat {
    /// What the index is; of one that was never written, or in another format, that it has to be cleared.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn read<R: IndexRows>(rows: &R) -> Result<Self, Error<R::Error>> {
        let row = rows.get(&[FORMAT_ROW]).map_err(Error::Rows)?;
        let read = row.and_then(|row| Self::decode(row).ok()).filter(|read| read.format == FORMAT);
        Ok(read.unwrap_or(Self {
            format: FORMAT,
            progress: IndexProgress::Clearing.into(),
            ..Self::default()
        }))
    }

    /// Of an index of a state without runs.
    pub fn complete() -> Self {
        Self { format: FORMAT, progress: IndexProgress::Complete.into(), ..Self::default() }
    }

    /// True once lists can be read.
    pub fn is_complete(&self) -> bool {
        self.progress() == IndexProgress::Complete
    }

    /// True of a run whose changes are to be written: the others will be entered as they are.
    pub fn has(&self, run_key: &[u8]) -> bool {
        match self.progress() {
            IndexProgress::Clearing => false,
            IndexProgress::Deriving => run_key <= &self.derived_to[..],
            IndexProgress::Complete => true,
        }
    }

    /// Writes it.
    pub fn write(&self, rows: &mut impl WriteIndexRows) {
        rows.put(Bytes::from_static(&[FORMAT_ROW]), self.encode_to_vec().into());
    }

    /// Deletes up to `rows_max` rows; true once none is left, and runs are to be entered.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn clear<R: WriteIndexRows>(
        &mut self,
        rows: &mut R,
        rows_max: usize,
    ) -> Result<bool, Error<R::Error>> {
        let (start, to) = all();
        let from = if self.cleared_to.is_empty() { &start[..] } else { &self.cleared_to[..] };
        let chunk = chunk(rows, from, &to, rows_max)?;
        let is_last = chunk.next >= to.to_vec();
        for (row, _) in chunk.rows {
            rows.delete(row);
        }
        self.cleared_to = chunk.next.into();
        if is_last {
            *self = Self { format: FORMAT, progress: IndexProgress::Deriving.into(), ..Self::default() };
        }
        self.write(rows);
        Ok(is_last)
    }

    /// Enters runs of the state that follow those which were entered, in the order of their keys. Nothing may have changed a
    /// run between the reading of its record and this call.
    pub fn derive<'a>(
        &mut self,
        runs: impl Iterator<Item = (&'a [u8], Uuid, &'a Record)>,
        is_last: bool,
        rows: &mut impl WriteIndexRows,
        counters: &mut CounterChanges,
    ) {
        for (run_key, namespace_id, record) in runs {
            change(namespace_id, None, Some(record), rows, counters);
            self.derived_to = Bytes::copy_from_slice(run_key);
        }
        if is_last {
            *self = Self::complete();
        }
        self.write(rows);
    }
}

impl IndexFormat {
    /// Derives the rows of a run again, and forgets that it was to be: `after` is its record by the state, none where it is not there
    /// any more. Nothing is written of a run that will be entered anyway.
    ///
    /// # Errors
    /// The rows cannot be read, or are damaged.
    pub fn refresh<R: WriteIndexRows>(
        &self,
        run_key: &[u8],
        (namespace_id, run_id): (Uuid, Uuid),
        after: Option<&Record>,
        rows: &mut R,
        counters: &mut CounterChanges,
    ) -> Result<(), Error<R::Error>> {
        if self.has(run_key) {
            let before = indexed(rows, namespace_id, run_id)?;
            change(namespace_id, before.as_ref(), after, rows, counters);
        }
        rows.delete(stale_row(run_key).0);
        Ok(())
    }
}

/// The row that says of a run that its rows have to be derived again.
pub fn stale_row(run_key: &[u8]) -> (Bytes, Bytes) {
    ([&[STALE], run_key].concat().into(), PRESENT)
}

/// Keys in the state of up to `max` runs that have to be derived again.
///
/// # Errors
/// The rows cannot be read.
pub fn stale_runs<R: IndexRows>(rows: &R, max: usize) -> Result<Vec<Bytes>, Error<R::Error>> {
    let chunk = chunk(rows, &[STALE], &behind(&[STALE]), max)?;
    Ok(chunk.rows.into_iter().map(|(row, _)| row.slice(1..)).collect())
}

/// What the index has of a run.
///
/// # Errors
/// The rows cannot be read, or are damaged.
pub fn indexed<R: IndexRows>(
    rows: &R,
    namespace_id: Uuid,
    run_id: Uuid,
) -> Result<Option<Record>, Error<R::Error>> {
    Ok(entry_of_run(rows, namespace_id, run_id)?.map(|entry| entry.record))
}
