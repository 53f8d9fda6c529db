//! From a row to the run that it is about, and streams of rows merged in the order of a list.

use std::collections::VecDeque;

use bytes::Bytes;
use prost::Message;
use uuid::Uuid;

use crate::index::key::{Division, ENTRY, LOOKUP, PREFIX_BYTES, RUN, START, read_run_value, run_row};
use crate::index::lookup;
use crate::index::order_key::{KeySpan, OrderKey};
use crate::index::plan::Stream;
use crate::index::rows::{Error, IndexRows};
use crate::record::Record;

/// Rows that are read of a stream at once, at most.
pub(crate) const CHUNK_ROWS_MAX: usize = 128;
/// What it costs to begin to read, in rows.
pub(crate) const SEEK_ROWS: usize = 4;

/// The entry of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexEntry {
    pub record: Record,
    /// As it is stored.
    pub bytes: usize,
}

/// The entry that a row of any kind is about.
///
/// # Errors
/// The row is none of a run, or leads to no entry.
pub(crate) fn entry_of_row<R: IndexRows>(
    rows: &R,
    row: &[u8],
    value: &[u8],
) -> Result<IndexEntry, Error<R::Error>> {
    let damaged = |what| Error::Damaged(what);
    if row.first() == Some(&ENTRY) {
        return read_entry(value);
    }
    if row.first() == Some(&RUN) {
        let namespace_id = row.get(1..17).and_then(|id| Uuid::from_slice(id).ok());
        let namespace_id = namespace_id.ok_or(damaged("a row that finds a run is cut"))?;
        return entry_at_run_value(rows, namespace_id, value);
    }
    let (division, rest) = Division::read(row).ok_or(damaged("a row has no division"))?;
    match row[0] {
        LOOKUP => {
            let (_, key) = lookup::read(rest).ok_or(damaged("a lookup row cannot be read"))?;
            let entry = rows.get(&division.entry(&key)).map_err(Error::Rows)?;
            read_entry(&entry.ok_or(damaged("a lookup row without an entry"))?)
        }
        START => {
            let run_id = rest.get(8..).and_then(|id| Uuid::from_slice(id).ok());
            let run_id = run_id.ok_or(damaged("a row by start cannot be read"))?;
            let entry = entry_of_run(rows, division.namespace_id, run_id)?;
            entry.ok_or(damaged("a row by start without an entry"))
        }
        _other => Err(damaged("a row of another kind")),
    }
}

/// The entry of a run; none where there is none.
pub(crate) fn entry_of_run<R: IndexRows>(
    rows: &R,
    namespace_id: Uuid,
    run_id: Uuid,
) -> Result<Option<IndexEntry>, Error<R::Error>> {
    match rows.get(&run_row(namespace_id, run_id)).map_err(Error::Rows)? {
        Some(value) => entry_at_run_value(rows, namespace_id, &value).map(Some),
        None => Ok(None),
    }
}

fn entry_at_run_value<R: IndexRows>(
    rows: &R,
    namespace_id: Uuid,
    value: &[u8],
) -> Result<IndexEntry, Error<R::Error>> {
    let (is_inner, key) =
        read_run_value(value).ok_or(Error::Damaged("a row that finds a run cannot be read"))?;
    let entry = rows.get(&Division { namespace_id, is_inner }.entry(&key)).map_err(Error::Rows)?;
    read_entry(&entry.ok_or(Error::Damaged("a row that finds a run leads nowhere"))?)
}

fn read_entry<E: std::fmt::Display>(value: &[u8]) -> Result<IndexEntry, Error<E>> {
    let record = Record::decode(value).map_err(|_error| Error::Damaged("an entry cannot be read"))?;
    Ok(IndexEntry { record, bytes: value.len() })
}

/// Streams merged, each order key once. It lives no longer than nothing changes.
pub(crate) struct MergedStreams<'a, R> {
    rows: &'a R,
    streams: Vec<Chunked<'a>>,
}

/// A stream, of which some rows have been read.
struct Chunked<'a> {
    stream: &'a Stream,
    /// What has not been read, as rows.
    from: Vec<u8>,
    to: Vec<u8>,
    chunk: VecDeque<(OrderKey, Bytes)>,
    chunk_rows: usize,
}

impl<'a, R: IndexRows> MergedStreams<'a, R> {
    /// The rows of streams within a region, behind a key if one is named.
    pub(crate) fn new(
        rows: &'a R,
        streams: &'a [Stream],
        region: impl Fn(&'a Stream) -> Option<&'a KeySpan>,
        after: Option<&OrderKey>,
    ) -> Self {
        let chunked = |stream: &'a Stream| {
            let span = region(stream)?;
            let (mut from, to) = stream.rows(&span.from, &span.to);
            if let Some(after) = after {
                let behind = [after.bytes(), &[0]].concat();
                from = from.max(stream.rows(&behind, &behind).0);
            }
            (from < to).then(|| Chunked { stream, from, to, chunk: VecDeque::new(), chunk_rows: 16 })
        };
        Self { rows, streams: streams.iter().filter_map(chunked).collect() }
    }

    /// The next key; `budget` falls by the rows that are read for it.
    pub(crate) fn peek(&mut self, budget: &mut usize) -> Result<Option<OrderKey>, Error<R::Error>> {
        for stream in &mut self.streams {
            if stream.chunk.is_empty() {
                stream.fill(self.rows, budget)?;
            }
        }
        self.streams.retain(|stream| !stream.chunk.is_empty());
        Ok(self.streams.iter().filter_map(Chunked::first).min())
    }

    /// Passes a key that `peek` gave.
    pub(crate) fn pass(&mut self, key: OrderKey) {
        for stream in &mut self.streams {
            if stream.first() == Some(key) {
                stream.chunk.pop_front();
            }
        }
    }

    /// Passes a key that `peek` gave, and gives the entry that stands there.
    pub(crate) fn take(&mut self, key: OrderKey) -> Result<Option<IndexEntry>, Error<R::Error>> {
        let mut entry = None;
        for stream in &mut self.streams {
            if stream.first() != Some(key) {
                continue;
            }
            let value = stream.chunk.pop_front();
            if entry.is_none()
                && let Some((_, value)) = value
            {
                let (row, _) = stream.stream.rows(key.bytes(), key.bytes());
                entry = Some(entry_of_row(self.rows, &row, &value)?);
            }
        }
        Ok(entry)
    }
}

impl Chunked<'_> {
    fn first(&self) -> Option<OrderKey> {
        self.chunk.front().map(|(key, _)| *key)
    }

    fn fill<R: IndexRows>(&mut self, rows: &R, budget: &mut usize) -> Result<(), Error<R::Error>> {
        let Self { stream, from, to, chunk, chunk_rows } = self;
        let mut damage = None;
        let mut last = Vec::new();
        let scanned = rows.scan(from, to, &mut |row, value| {
            let key = match stream.is_by_start {
                true => row.get(PREFIX_BYTES..).and_then(|rest| OrderKey::read(&[&[0], rest].concat())),
                false => row.get(stream.prefix.len()..).and_then(OrderKey::read),
            };
            let Some(key) = key else {
                damage = Some(Error::Damaged("a row has no order key"));
                return false;
            };
            chunk.push_back((key, Bytes::copy_from_slice(value)));
            last.clear();
            last.extend_from_slice(row);
            chunk.len() < *chunk_rows
        });
        scanned.map_err(Error::Rows)?;
        if let Some(damage) = damage {
            return Err(damage);
        }
        *budget = budget.saturating_sub(SEEK_ROWS + chunk.len());
        if chunk.len() < *chunk_rows {
            from.clone_from(to);
        } else {
            last.push(0);
            *from = last;
        }
        *chunk_rows = (*chunk_rows * 2).min(CHUNK_ROWS_MAX);
        Ok(())
    }
}

/// Some rows, and from where on there may be more.
pub(crate) struct Chunk {
    pub rows: Vec<(Bytes, Bytes)>,
    pub next: Vec<u8>,
}

/// The first rows with `from <= key < to`.
pub(crate) fn chunk<R: IndexRows>(
    rows: &R,
    from: &[u8],
    to: &[u8],
    rows_max: usize,
) -> Result<Chunk, Error<R::Error>> {
    let mut read: Vec<(Bytes, Bytes)> = Vec::new();
    rows.scan(from, to, &mut |row, value| {
        read.push((Bytes::copy_from_slice(row), Bytes::copy_from_slice(value)));
        read.len() < rows_max.max(1)
    })
    .map_err(Error::Rows)?;
    let next = match read.last() {
        Some((row, _)) if read.len() >= rows_max.max(1) => [&row[..], &[0]].concat(),
        Some(_) | None => to.to_vec(),
    };
    Ok(Chunk { rows: read, next })
}
