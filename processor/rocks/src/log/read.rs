//! Reading: journals, append-only topics, rows, positions, the control topic; every checksum is checked.

use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use everlog_log::{Error, Offset, PartitionId, Record, Topic, TopicEntry};
use rocksdb::{ColumnFamily, DB, DBRawIterator, ReadOptions};

use super::shared::{PublishedEnds, Shared};
use super::{WAY_OUT, rows};

/// Bytes that a record or entry counts against `bytes_max` besides its own.
const FRAME_BYTES: usize = 24;

pub(super) fn journal(
    shared: &Shared,
    partition: PartitionId,
    from: Offset,
    bytes_max: usize,
) -> Result<Vec<Record>, Error> {
    let ends = &shared.slot(partition)?.journal;
    let range = check_range(ends, partition, from)?;
    let mut records = Vec::new();
    let mut budget = bytes_max;
    let last = rows::journal_key(partition, range.end);
    let found =
        walk(&shared.db, rows::JOURNAL, &rows::journal_key(partition, from), Some(&last), |key, row| {
            let expected = from + records.len() as u64;
            let offset = rows::key_offset(key);
            let record =
                (offset == Some(expected)).then(|| rows::decode_record(partition, expected, row)).flatten();
            let Some(record) = record else {
                return Err(damaged(shared, "journal", partition, expected));
            };
            let cost = record.bytes.len() + FRAME_BYTES;
            if !records.is_empty() && cost > budget {
                return Ok(false);
            }
            budget = budget.saturating_sub(cost);
            records.push(record);
            Ok(true)
        });
    trimmed_meanwhile_or(ends, partition, from, found)?;
    if records.is_empty() && from < range.end {
        trimmed_meanwhile_or(ends, partition, from, Err(damaged(shared, "journal", partition, from)))?;
    }
    Ok(records)
}

pub(super) fn topic(
    shared: &Shared,
    topic: Topic,
    partition: PartitionId,
    from: Offset,
    bytes_max: usize,
) -> Result<Vec<TopicEntry>, Error> {
    let ends = shared.topic_ends(topic, partition)?;
    let range = check_range(ends, partition, from)?;
    let mut entries: Vec<TopicEntry> = Vec::new();
    let mut budget = bytes_max;
    let last = rows::topic_key(topic, partition, range.end);
    let found =
        walk(&shared.db, rows::TOPICS, &rows::topic_key(topic, partition, from), Some(&last), |key, row| {
            let expected = from + entries.len() as u64;
            let entry = rows::decode_entry(key, row).filter(|(offset, ..)| *offset == expected);
            let Some(entry) = entry else {
                return Err(damaged(shared, &format!("{topic:?}"), partition, expected));
            };
            let cost = entry.1.len() + entry.2.len() + FRAME_BYTES;
            if !entries.is_empty() && cost > budget {
                return Ok(false);
            }
            budget = budget.saturating_sub(cost);
            entries.push(entry);
            Ok(true)
        });
    trimmed_meanwhile_or(ends, partition, from, found)?;
    if entries.is_empty() && from < range.end {
        let missing = damaged(shared, &format!("{topic:?}"), partition, from);
        trimmed_meanwhile_or(ends, partition, from, Err(missing))?;
    }
    Ok(entries)
}

fn check_range(ends: &PublishedEnds, partition: PartitionId, wanted: Offset) -> Result<Range<Offset>, Error> {
    let range = ends.range();
    if wanted < range.start || wanted > range.end {
        return Err(Error::OutOfRange { partition, wanted, start: range.start, end: range.end });
    }
    Ok(range)
}

/// A hole is no damage if a trim made it while we read.
fn trimmed_meanwhile_or(
    ends: &PublishedEnds,
    partition: PartitionId,
    from: Offset,
    found: Result<(), Error>,
) -> Result<(), Error> {
    if found.is_err() {
        check_range(ends, partition, from)?;
    }
    found
}

fn damaged(shared: &Shared, what: &str, partition: PartitionId, offset: Offset) -> Error {
    Error::Corrupt {
        path: shared.db.path().into(),
        detail: format!("{what} of partition {partition}: offset {offset} is missing or fails its checksum"),
        way_out: WAY_OUT.into(),
    }
}

pub(super) fn restore(
    shared: &Shared,
    topic: Topic,
    partition: PartitionId,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), Error> {
    shared.slot(partition)?;
    let Some(name) = rows::family(topic) else {
        return Err(Error::refused(format!("{topic:?} is not compacted: read it with topic_read")));
    };
    let (first, last) = rows::row_range(partition, shared.partitions());
    walk(&shared.db, name, &first, last.as_deref(), |key, value| Ok(visit(key, value)))
}

pub(super) fn position(db: &DB, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error> {
    let Some(row) = db.get(rows::position_key(partition)).map_err(|e| error_of(db, &e))? else {
        return Ok(None);
    };
    match rows::decode_u64_and(&row) {
        Some((applied, position)) => Ok(Some((applied, Bytes::copy_from_slice(position)))),
        None => Err(Error::Corrupt {
            path: db.path().into(),
            detail: format!("the position row of partition {partition} is too short"),
            way_out: WAY_OUT.into(),
        }),
    }
}

pub(super) fn control(db: &DB, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
    walk(db, rows::META, &[rows::CONTROL], Some(&[rows::CONTROL + 1]), |key, value| {
        visit(&key[1..], value);
        Ok(true)
    })
}

/// Visits the rows of a column family from `first` to before `last` until `visit` says false.
pub(super) fn walk(
    db: &DB,
    name: &'static str,
    first: &[u8],
    last: Option<&[u8]>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    if let Some(last) = last {
        options.set_iterate_upper_bound(last);
    }
    let mut rows = db.raw_iterator_cf_opt(handle(db, name), options);
    rows.seek(first);
    while let Some((key, value)) = rows.item() {
        if !visit(key, value)? {
            return Ok(());
        }
        rows.next();
    }
    finished(db, &rows)
}

/// Key and value.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// The last row of a column family at or below `top`, if it starts with `prefix`.
pub(super) fn last_row(db: &DB, name: &'static str, prefix: &[u8], top: &[u8]) -> Result<Option<Row>, Error> {
    let mut rows = db.raw_iterator_cf(handle(db, name));
    rows.seek_for_prev(top);
    finished(db, &rows)?;
    let found = rows.item().filter(|(key, _)| key.starts_with(prefix));
    Ok(found.map(|(key, value)| (key.to_vec(), value.to_vec())))
}

fn finished(db: &DB, rows: &DBRawIterator<'_>) -> Result<(), Error> {
    rows.status().map_err(|e| error_of(db, &e))
}

pub(super) fn handle<'a>(db: &'a DB, name: &'static str) -> &'a ColumnFamily {
    db.cf_handle(name).expect("every family is opened with the database")
}

pub(super) fn error_of(db: &DB, error: &rocksdb::Error) -> Error {
    translate(db.path(), error)
}

/// RocksDB's errors are text: what kind it is stands at the beginning, the file somewhere in it.
pub(super) fn translate(dir: &Path, error: &rocksdb::Error) -> Error {
    let detail = error.as_ref().to_owned();
    match error.kind() {
        // A write that found no room was not done. A sync that found none may have lost what was written before,
        // unless it was that of a table: its rows are still in the write-ahead log.
        _ if detail.contains("No space left on device")
            && (!detail.contains("sync") || detail.contains(".sst")) =>
        {
            Error::Full { detail }
        }
        rocksdb::ErrorKind::IOError if detail.contains("lock") && detail.contains("LOCK") => {
            Error::Locked { dir: dir.into() }
        }
        rocksdb::ErrorKind::Corruption => corrupt(dir, detail),
        rocksdb::ErrorKind::ShutdownInProgress => Error::Closed,
        _ => Error::Io { detail },
    }
}

/// Damage that RocksDB found.
pub(super) fn corrupt(dir: &Path, detail: String) -> Error {
    Error::Corrupt { path: path_in(&detail, dir), detail, way_out: WAY_OUT.into() }
}

/// The file of the directory that a message names, else the directory.
fn path_in(message: &str, dir: &Path) -> PathBuf {
    let names = message.split(|c: char| c.is_whitespace() || "'\":,()".contains(c));
    let file = names.filter_map(|word| Path::new(word).file_name()).find_map(|name| {
        let text = name.to_str()?.trim_end_matches('.');
        let known = text.starts_with("MANIFEST-")
            || text == "CURRENT"
            || text.ends_with(".sst")
            || text.ends_with(".log");
        known.then(|| dir.join(text))
    });
    file.unwrap_or_else(|| dir.into())
}
