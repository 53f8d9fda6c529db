//! What a change of a run changes in the index: a diff of its rows, and of the counters.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use uuid::Uuid;

use crate::index::key::{COUNTER, Division, ENTRY, LOOKUP, PRESENT, RUN, START, run_row, run_value};
use crate::index::lookup::{self, Lookups};
use crate::index::order_key::{OrderKey, run_id};
use crate::index::rows::{Error, IndexRows, WriteIndexRows};
use crate::record::Record;

/// Changes of counters that are not written yet. They are gathered over many runs, so that a commit writes each counter once.
#[derive(Debug, Default)]
pub struct CounterChanges {
    /// By the counter's key.
    deltas: BTreeMap<Vec<u8>, i64>,
}

/// Where a record's rows are.
struct Located {
    division: Division,
    key: OrderKey,
}

impl Located {
    fn of(namespace_id: Uuid, record: &Record) -> Self {
        let division = Division { namespace_id, is_inner: record.is_inner() };
        Self { division, key: OrderKey::of_record(record) }
    }
}

/// Writes what changes when a run's record changes: none before is a run that is new to the index, none after one that is deleted.
/// Nothing is written where the records are the same.
///
/// `before` must be what the index has: of a run that began and closed between two calls only the closed entry is written.
pub fn change(
    namespace_id: Uuid,
    before: Option<&Record>,
    after: Option<&Record>,
    rows: &mut impl WriteIndexRows,
    counters: &mut CounterChanges,
) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(before), Some(after)) => replace(namespace_id, before, after, rows, counters),
        (Some(before), None) => remove(namespace_id, before, rows, counters),
        (None, Some(after)) => insert(namespace_id, after, rows, counters),
        (None, None) => {}
    }
}

fn insert(
    namespace_id: Uuid,
    record: &Record,
    rows: &mut impl WriteIndexRows,
    counters: &mut CounterChanges,
) {
    let at = Located::of(namespace_id, record);
    counters.add(&at, record, 1);
    let row = run_row(namespace_id, run_id(record));
    rows.put_new(Bytes::copy_from_slice(&row), run_value(at.division, &at.key));
    rows.put_new(at.division.start(record.start_ms, run_id(record)).into(), PRESENT);
    let lookups = Lookups::of(record);
    put_lookups(&at, lookups.iter(), rows);
    rows.put_new(at.division.entry(&at.key).into(), record.encode_to_vec().into());
}

fn remove(
    namespace_id: Uuid,
    record: &Record,
    rows: &mut impl WriteIndexRows,
    counters: &mut CounterChanges,
) {
    let at = Located::of(namespace_id, record);
    counters.add(&at, record, -1);
    rows.delete(Bytes::copy_from_slice(&run_row(namespace_id, run_id(record))));
    rows.delete(at.division.start(record.start_ms, run_id(record)).into());
    delete_lookups(&at, Lookups::of(record).iter(), rows);
    rows.delete(at.division.entry(&at.key).into());
}

fn replace(
    namespace_id: Uuid,
    before: &Record,
    after: &Record,
    rows: &mut impl WriteIndexRows,
    counters: &mut CounterChanges,
) {
    let (from, to) = (Located::of(namespace_id, before), Located::of(namespace_id, after));
    let is_counted_alike = from.division == to.division
        && (&before.workflow_type, before.status) == (&after.workflow_type, after.status);
    if !is_counted_alike {
        counters.add(&from, before, -1);
        counters.add(&to, after, 1);
    }
    let (old, new) = (Lookups::of(before), Lookups::of(after));
    let is_moved = (from.division, from.key) != (to.division, to.key);
    if is_moved {
        let row = run_row(namespace_id, run_id(after));
        rows.put(Bytes::copy_from_slice(&row), run_value(to.division, &to.key));
        rows.delete(from.division.entry(&from.key).into());
        rows.put_new(to.division.entry(&to.key).into(), after.encode_to_vec().into());
        delete_lookups(&from, old.iter(), rows);
        put_lookups(&to, new.iter(), rows);
    } else {
        rows.put(to.division.entry(&to.key).into(), after.encode_to_vec().into());
        delete_lookups(&from, without(&old, &new), rows);
        put_lookups(&to, without(&new, &old), rows);
    }
    if (from.division, before.start_ms) != (to.division, after.start_ms) {
        rows.delete(from.division.start(before.start_ms, run_id(before)).into());
        rows.put_new(to.division.start(after.start_ms, run_id(after)).into(), PRESENT);
    }
}

/// The parts that the other has not. Both are sorted.
fn without<'a>(one: &'a Lookups, other: &'a Lookups) -> impl Iterator<Item = &'a [u8]> {
    let mut others = other.iter().peekable();
    one.iter().filter(move |part| {
        while others.next_if(|other| other < part).is_some() {}
        others.peek() != Some(part)
    })
}

/// Calls with the key of each lookup row: slices of few allocations.
fn each_lookup<'a>(at: &Located, parts: impl Iterator<Item = &'a [u8]>, mut call: impl FnMut(Bytes)) {
    let prefix = at.division.prefix(LOOKUP);
    let mut keys = BytesMut::with_capacity(512);
    for part in parts {
        keys.put_slice(&prefix);
        keys.put_slice(part);
        keys.put_slice(at.key.bytes());
        call(keys.split().freeze());
    }
}

fn put_lookups<'a>(at: &Located, parts: impl Iterator<Item = &'a [u8]>, rows: &mut impl WriteIndexRows) {
    each_lookup(at, parts, |key| rows.put_new(key, PRESENT));
}

fn delete_lookups<'a>(at: &Located, parts: impl Iterator<Item = &'a [u8]>, rows: &mut impl WriteIndexRows) {
    each_lookup(at, parts, |key| rows.delete(key));
}

impl CounterChanges {
    fn add(&mut self, at: &Located, record: &Record, delta: i64) {
        let key = at.division.counter(&record.workflow_type, record.status);
        *self.deltas.entry(key).or_default() += delta;
    }

    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }

    /// Writes every counter that has changed. Each list or count that follows `change`, and each commit, needs it first.
    ///
    /// # Errors
    /// A counter cannot be read, or would fall below 0: the index has to be made again.
    pub fn flush<R: WriteIndexRows>(&mut self, rows: &mut R) -> Result<(), Error<<R as IndexRows>::Error>> {
        for (key, delta) in std::mem::take(&mut self.deltas) {
            if delta == 0 {
                continue;
            }
            let before = rows.get(&key).map_err(Error::Rows)?;
            let count = match &before {
                Some(value) => read_count(value).ok_or(Error::Damaged("a counter cannot be read"))?,
                None => 0,
            };
            let count = count.checked_add(delta).filter(|count| *count >= 0);
            match count.ok_or(Error::Damaged("a counter fell below 0"))? {
                0 => rows.delete(key.into()),
                count if before.is_none() => rows.put_new(key.into(), count_value(count)),
                count => rows.put(key.into(), count_value(count)),
            }
        }
        Ok(())
    }
}

pub(crate) fn count_value(count: i64) -> Bytes {
    Bytes::copy_from_slice(&count.to_be_bytes())
}

/// None where it is no count.
pub(crate) fn read_count(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_be_bytes)
}

/// Every row that a record has in the index, with its value.
pub(crate) fn rows_of(namespace_id: Uuid, record: &Record) -> Vec<(Vec<u8>, Bytes)> {
    let at = Located::of(namespace_id, record);
    let mut rows = vec![
        (at.division.entry(&at.key), record.encode_to_vec().into()),
        (run_row(namespace_id, run_id(record)).to_vec(), run_value(at.division, &at.key)),
        (at.division.start(record.start_ms, run_id(record)), PRESENT),
    ];
    let lookups = Lookups::of(record);
    rows.extend(lookups.iter().map(|part| (lookup::row(at.division, part, &at.key), PRESENT)));
    rows
}

/// The keys of a record's rows of a kind.
pub(crate) fn keys_of_kind(namespace_id: Uuid, record: &Record, kind: u8) -> Vec<Vec<u8>> {
    let at = Located::of(namespace_id, record);
    match kind {
        ENTRY => vec![at.division.entry(&at.key)],
        RUN => vec![run_row(namespace_id, run_id(record)).to_vec()],
        START => vec![at.division.start(record.start_ms, run_id(record))],
        COUNTER => vec![at.division.counter(&record.workflow_type, record.status)],
        _lookup => {
            let lookups = Lookups::of(record);
            lookups.iter().map(|part| lookup::row(at.division, part, &at.key)).collect()
        }
    }
}
