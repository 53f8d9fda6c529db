//! Where runs stand in a list: keys of which the byte order is the order of the list.
//!
//! A list without `ORDER BY` has open runs first, newest start first, then closed ones, newest close first; runs of one moment stand
//! in the order of their ids.
//!
//! open     0, ~start, run            25 bytes
//! closed   1, ~close, ~start, run    33 bytes
//!
//! A list by one moment has runs without it last: 0, moment or ~moment, run; or 1, run, with zeros for the moment.

use std::fmt;

use uuid::Uuid;

use crate::attribute::SystemAttribute;
use crate::query::SortOrder;
use crate::record::Record;

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const OPEN_BYTES: usize = 25;
const CLOSED_BYTES: usize = 33;

/// Where a run stands in a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderKey {
    length: u8,
    bytes: [u8; CLOSED_BYTES],
}

/// How far the journal of a partition was applied: the moment at which a list, which is read page by page, shows who is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListPosition {
    /// The offset of the first record that was not applied.
    pub offset: u64,
    /// The time of the last one that was, in ms since 1970-01-01 UTC; no later record has an earlier one.
    pub ms: i64,
}

impl ListPosition {
    /// Behind everything.
    pub const END: Self = Self { offset: u64::MAX, ms: i64::MAX };
}

impl OrderKey {
    /// Of an open run.
    pub fn open(start_ms: i64, run_id: Uuid) -> Self {
        Self::of(OPEN, &[descending(start_ms)], run_id)
    }

    /// Of a closed run.
    pub fn closed(close_ms: i64, start_ms: i64, run_id: Uuid) -> Self {
        Self::of(CLOSED, &[descending(close_ms), descending(start_ms)], run_id)
    }

    /// Where a run stands among the index's rows.
    pub fn of_record(record: &Record) -> Self {
        let run_id = run_id(record);
        match record.is_open() {
            true => Self::open(record.start_ms, run_id),
            false => Self::closed(record.close_ms, record.start_ms, run_id),
        }
    }

    /// Where a run stands in a list that was begun at a position: one that has closed since then stands where it stood. None of a run
    /// that had not begun.
    pub fn at(record: &Record, order: Option<SortOrder>, position: ListPosition) -> Option<Self> {
        if record.start_offset >= position.offset {
            return None;
        }
        let is_open = record.is_open() || record.close_offset >= position.offset;
        let run_id = run_id(record);
        let Some(order) = order else {
            return Some(match is_open {
                true => Self::open(record.start_ms, run_id),
                false => Self::closed(record.close_ms, record.start_ms, run_id),
            });
        };
        let ms = match order.by {
            SystemAttribute::CloseTime if is_open => return Some(Self::of(CLOSED, &[[0; 8]], run_id)),
            SystemAttribute::CloseTime => record.close_ms,
            SystemAttribute::ExecutionTime => record.execution_ms,
            _start_time => record.start_ms,
        };
        let moment = if order.is_descending { descending(ms) } else { ascending(ms) };
        Some(Self::of(OPEN, &[moment], run_id))
    }

    /// A key from its bytes; none where they are not one.
    pub fn read(key: &[u8]) -> Option<Self> {
        let length = match key.first()? {
            &OPEN => OPEN_BYTES,
            // A list by close times has short ones, too.
            &CLOSED if key.len() == OPEN_BYTES => OPEN_BYTES,
            &CLOSED => CLOSED_BYTES,
            _other => return None,
        };
        if key.len() != length {
            return None;
        }
        let mut bytes = [0; CLOSED_BYTES];
        bytes[..length].copy_from_slice(key);
        Some(Self { length: length as u8, bytes })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The run.
    pub fn run_id(&self) -> Uuid {
        let mut run_id = [0; 16];
        run_id.copy_from_slice(&self.bytes()[usize::from(self.length) - 16..]);
        Uuid::from_bytes(run_id)
    }

    /// True of a key that a list of this order has.
    pub(crate) fn is_of(&self, order: Option<SortOrder>) -> bool {
        let is_long = usize::from(self.length) == CLOSED_BYTES;
        let is_closed = self.bytes[0] == CLOSED;
        match order {
            None => is_long == is_closed,
            Some(order) => !is_long && (!is_closed || order.by == SystemAttribute::CloseTime),
        }
    }

    /// Where the closed run stood while it was open; none of an open one's key.
    pub(crate) fn while_open(&self) -> Option<Self> {
        if usize::from(self.length) != CLOSED_BYTES {
            return None;
        }
        let mut bytes = [0; CLOSED_BYTES];
        bytes[0] = OPEN;
        bytes[1..OPEN_BYTES].copy_from_slice(&self.bytes[9..]);
        Some(Self { length: OPEN_BYTES as u8, bytes })
    }

    fn of(region: u8, moments: &[[u8; 8]], run_id: Uuid) -> Self {
        let mut bytes = [0; CLOSED_BYTES];
        bytes[0] = region;
        let mut length = 1;
        for moment in moments {
            bytes[length..length + 8].copy_from_slice(moment);
            length += 8;
        }
        bytes[length..length + 16].copy_from_slice(run_id.as_bytes());
        Self { length: (length + 16) as u8, bytes }
    }
}

impl Ord for OrderKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for OrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region = if self.bytes[0] == OPEN { "open" } else { "closed" };
        write!(f, "{region} {}", self.run_id())
    }
}

/// A span of keys: those with `from <= key < to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl KeySpan {
    /// Open runs that began within these ms.
    pub(crate) fn open(start_ms: std::ops::RangeInclusive<i64>) -> Self {
        Self::region(OPEN, &start_ms)
    }

    /// Closed runs that closed within these ms.
    pub(crate) fn closed(close_ms: std::ops::RangeInclusive<i64>) -> Self {
        Self::region(CLOSED, &close_ms)
    }

    fn region(region: u8, ms: &std::ops::RangeInclusive<i64>) -> Self {
        let edge = |ms: i64| {
            let mut edge = vec![region];
            edge.extend_from_slice(&descending(ms));
            edge
        };
        if ms.is_empty() {
            return Self { from: vec![region], to: vec![region] };
        }
        let to = match ms.start().checked_sub(1) {
            Some(before) => edge(before),
            None => vec![region + 1],
        };
        Self { from: edge(*ms.end()), to }
    }
}

/// The run's id; the nil id for one that is no UUID, which no run has.
pub(crate) fn run_id(record: &Record) -> Uuid {
    Uuid::parse_str(&record.run_id).unwrap_or_default()
}

pub(crate) fn ascending(ms: i64) -> [u8; 8] {
    (ms.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

pub(crate) fn descending(ms: i64) -> [u8; 8] {
    (!(ms.cast_unsigned() ^ (1 << 63))).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENTS: [i64; 7] = [i64::MIN, -1_000, -1, 0, 1, 1_700_000_000_000, i64::MAX];

    #[test]
    fn moments_sort_as_they_are() {
        for pair in MOMENTS.windows(2) {
            assert!(ascending(pair[0]) < ascending(pair[1]), "{pair:?}");
            assert!(descending(pair[0]) > descending(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn keys_are_read_as_they_were_written() {
        let run_id = Uuid::from_u128(7);
        for key in [OrderKey::open(5, run_id), OrderKey::closed(9, 5, run_id)] {
            assert_eq!(OrderKey::read(key.bytes()), Some(key));
            assert_eq!(key.run_id(), run_id);
            for end in 0..key.bytes().len() {
                let cut = OrderKey::read(&key.bytes()[..end]);
                assert!(cut.is_none_or(|cut| cut.bytes().len() == OPEN_BYTES), "{end}");
            }
        }
        assert_eq!(OrderKey::closed(9, 5, run_id).while_open(), Some(OrderKey::open(5, run_id)));
        assert_eq!(OrderKey::open(5, run_id).while_open(), None);
        assert_eq!(OrderKey::read(&[2; 25]), None);
    }

    #[test]
    fn a_span_has_the_runs_of_its_moments_and_no_other() {
        let within = |span: &KeySpan, key: OrderKey| *span.from <= *key.bytes() && *key.bytes() < *span.to;
        for (first, last) in [(0, 0), (-1, 1), (i64::MIN, i64::MAX), (1, i64::MAX), (1, 0), (i64::MIN, -1)] {
            let (open, closed) = (KeySpan::open(first..=last), KeySpan::closed(first..=last));
            for ms in MOMENTS {
                for run_id in [Uuid::nil(), Uuid::max()] {
                    let is_within = (first..=last).contains(&ms);
                    assert_eq!(within(&open, OrderKey::open(ms, run_id)), is_within, "{first}..={last} {ms}");
                    assert_eq!(within(&closed, OrderKey::closed(ms, 0, run_id)), is_within);
                    assert!(!within(&open, OrderKey::closed(ms, ms, run_id)));
                    assert!(!within(&closed, OrderKey::open(ms, run_id)));
                }
            }
        }
    }
}
