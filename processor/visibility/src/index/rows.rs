//! The rows that the index is kept in, as far as it reads and writes them.

use bytes::Bytes;

/// Rows in the order of their keys.
pub trait IndexRows {
    /// Why a row could not be read.
    type Error: std::fmt::Display;

    /// The row under a key.
    ///
    /// # Errors
    /// It cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Self::Error>;

    /// Visits the rows with `from <= key < to` in key order until `visit` says false.
    ///
    /// # Errors
    /// They cannot be read.
    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Self::Error>;
}

/// Rows that can be changed; whoever reads sees a change at once.
pub trait WriteIndexRows: IndexRows {
    /// Writes a row.
    fn put(&mut self, key: Bytes, value: Bytes);

    /// Writes a row that is not there.
    fn put_new(&mut self, key: Bytes, value: Bytes);

    /// Deletes a row, if it is there.
    fn delete(&mut self, key: Bytes);
}

/// Why the index gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error<E: std::fmt::Display> {
    /// The rows could not be read.
    #[error("{0}")]
    Rows(E),
    /// A row is not what the index writes: it has to be made again.
    #[error("damaged index: {0}")]
    Damaged(&'static str),
    /// A count by groups has more of them than one answer may.
    #[error("more than {0} groups")]
    Groups(usize),
}
