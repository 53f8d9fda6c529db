//! The keys of index rows. A key begins with the byte of its kind; those of runs go on with the namespace's UUID and the
//! division flag, so that inner runs never stand between those which ordinary lists show.
//!
//! | kind | key behind the kind | value |
//! |---|---|---|
//! | format | - | a [`IndexFormat`](crate::index::rebuild::IndexFormat) |
//! | stale | run key | - |
//! | counter | namespace, flag, workflow type, status | count |
//! | entry | namespace, flag, order key | a [`Record`](crate::record::Record) |
//! | run | namespace, run | flag, order key |
//! | start | namespace, flag, ~start, run | - |
//! | lookup | namespace, flag, attribute, value, order key | - |

use bytes::Bytes;
use uuid::Uuid;

use crate::index::escape::{self, escaped};
use crate::index::order_key::{OrderKey, descending};

pub(crate) const FORMAT: u8 = 1;
pub(crate) const STALE: u8 = 2;
pub(crate) const COUNTER: u8 = 3;
pub(crate) const ENTRY: u8 = 4;
pub(crate) const RUN: u8 = 5;
pub(crate) const START: u8 = 6;
pub(crate) const LOOKUP: u8 = 7;
/// Behind every kind.
const KINDS_END: u8 = 8;

/// Bytes of a kind, a namespace and a flag.
pub(crate) const PREFIX_BYTES: usize = 18;

/// What rows say that are there or not: some logs take an empty value for a deletion.
pub(crate) const PRESENT: Bytes = Bytes::from_static(&[1]);

/// Where the rows of a namespace's ordinary or inner runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Division {
    pub namespace_id: Uuid,
    pub is_inner: bool,
}

impl Division {
    /// What its rows of a kind begin with.
    pub(crate) fn prefix(self, kind: u8) -> [u8; PREFIX_BYTES] {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[0] = kind;
        prefix[1..17].copy_from_slice(self.namespace_id.as_bytes());
        prefix[17] = u8::from(self.is_inner);
        prefix
    }

    /// The division and the rest of a row's key; none where it is too short, or its flag is none.
    pub(crate) fn read(row: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = row.split_at_checked(PREFIX_BYTES)?;
        let namespace_id = Uuid::from_slice(&head[1..17]).ok()?;
        let is_inner = match head[17] {
            0 => false,
            1 => true,
            _other => return None,
        };
        Some((Self { namespace_id, is_inner }, rest))
    }

    /// The row of a run's entry.
    pub(crate) fn entry(self, key: &OrderKey) -> Vec<u8> {
        [&self.prefix(ENTRY)[..], key.bytes()].concat()
    }

    /// The row that has a run at its start.
    pub(crate) fn start(self, start_ms: i64, run_id: Uuid) -> Vec<u8> {
        [&self.prefix(START)[..], &descending(start_ms), run_id.as_bytes()].concat()
    }

    /// The row that counts runs of a type and status.
    pub(crate) fn counter(self, workflow_type: &str, status: i32) -> Vec<u8> {
        let mut row = self.prefix(COUNTER).to_vec();
        escaped(workflow_type.as_bytes(), &mut row);
        row.extend_from_slice(&status.to_be_bytes());
        row
    }
}

/// The row that finds the entry of a run.
pub(crate) fn run_row(namespace_id: Uuid, run_id: Uuid) -> [u8; 33] {
    let mut row = [0; 33];
    row[0] = RUN;
    row[1..17].copy_from_slice(namespace_id.as_bytes());
    row[17..].copy_from_slice(run_id.as_bytes());
    row
}

/// What the row that finds an entry says.
pub(crate) fn run_value(division: Division, key: &OrderKey) -> Bytes {
    [&[u8::from(division.is_inner)], key.bytes()].concat().into()
}

/// Flag and order key of a row that finds an entry; none where it says something else.
pub(crate) fn read_run_value(value: &[u8]) -> Option<(bool, OrderKey)> {
    let (flag, key) = value.split_first()?;
    let is_inner = match flag {
        0 => false,
        1 => true,
        _other => return None,
    };
    Some((is_inner, OrderKey::read(key)?))
}

/// Type and status of a counter, from its key behind the division.
pub(crate) fn read_counter(rest: &[u8]) -> Option<(String, i32)> {
    let (workflow_type, status) = escape::read(rest)?;
    let workflow_type = String::from_utf8(workflow_type).ok()?;
    Some((workflow_type, i32::from_be_bytes(status.try_into().ok()?)))
}

/// Every row of the index.
pub(crate) fn all() -> ([u8; 1], [u8; 1]) {
    ([0], [KINDS_END])
}

/// Behind every key that begins so; none where nothing is.
pub(crate) fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![KINDS_END]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(is_inner: bool) -> Division {
        Division { namespace_id: Uuid::from_u128(9), is_inner }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let key = OrderKey::closed(9, 5, Uuid::from_u128(3));
        for is_inner in [false, true] {
            let division = division(is_inner);
            let row = division.entry(&key);
            let (read, rest) = Division::read(&row).expect("a row");
            assert_eq!((read, OrderKey::read(rest)), (division, Some(key)));
            assert_eq!(read_run_value(&run_value(division, &key)), Some((is_inner, key)));
            let row = division.counter("a\0b", -4);
            let (read, rest) = Division::read(&row).expect("a row");
            assert_eq!((read, read_counter(rest)), (division, Some(("a\0b".to_owned(), -4))));
        }
        assert_eq!(read_run_value(&[2, 0]), None);
        assert_eq!(Division::read(&[0; PREFIX_BYTES - 1]), None);
        assert_eq!(Division::read(&[2; PREFIX_BYTES]), None);
    }

    #[test]
    fn behind_a_prefix_stands_the_first_key_that_has_not_got_it() {
        assert_eq!(behind(&[1, 2]), [1, 3]);
        assert_eq!(behind(&[1, 255, 255]), [2]);
        assert_eq!(behind(&[255]), [KINDS_END]);
    }
}
