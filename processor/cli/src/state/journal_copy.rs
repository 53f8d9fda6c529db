//! A copy of what a journal holds behind a commit: its owner deletes records that it has committed, however long somebody
//! else would like to read them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use everlog_log::{Error, Log, Record};
use everlog_log_kafka::{Kafka, PastCommit};
use everlog_partition::transfer::{CutMessage, JournalWindow, last_stamp_ms};

use super::row_file::{RowReader, RowWriter};

/// Bytes of a journal that are read at a time.
const READ_BYTES: usize = 4 << 20;
/// Memory of a record besides its bytes.
const RECORD_BYTES: usize = 64;

/// What is copied of a journal.
pub struct JournalCopy {
    /// The last commit when it began; none where nothing was ever committed.
    pub commit: Option<PastCommit>,
    /// What was seen of the journal.
    pub window: JournalWindow,
    path: PathBuf,
    writer: Option<RowWriter>,
    next: u64,
}

impl JournalCopy {
    /// Begins behind the last commit of a partition, and copies what is there.
    pub fn begin(log: &Kafka, partition: u32, dir: &Path) -> Result<Self> {
        let commit = log.last_commit(partition)?;
        let next = commit.as_ref().map_or(0, |commit| commit.applied);
        let first_stamp_ms =
            commit.as_ref().map(|commit| last_stamp_ms(commit.position.clone())).transpose()?.unwrap_or(0);
        let window = JournalWindow { first_stamp_ms, first_end: u64::MAX, ..JournalWindow::default() };
        let path = dir.join(format!("journal-{partition}"));
        let mut copy = Self { commit, window, path, writer: None, next };
        copy.go_on(log, partition, log.bounds(partition)?.end)?;
        Ok(copy)
    }

    /// Copies on, up to an offset.
    pub fn go_on(&mut self, log: &Kafka, partition: u32, end: u64) -> Result<()> {
        while self.next < end {
            let records = log.read(partition, self.next, READ_BYTES)?;
            let is_over = records.is_empty();
            for record in records.into_iter().take_while(|record| record.offset < end) {
                self.take(&record)?;
            }
            if is_over {
                let (wanted, start) = (self.next, self.next);
                return Err(Error::OutOfRange { partition, wanted, start, end }.into());
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &Record) -> Result<()> {
        self.next = record.offset + 1;
        let window = &mut self.window;
        if record.offset < window.first_end {
            window.first_stamp_ms = window.first_stamp_ms.max(record.stamp_ms);
        } else {
            window.later.push((record.offset, record.stamp_ms));
        }
        window.messages.extend(CutMessage::of(record.offset, &record.bytes));
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(RowWriter::create(&self.path)?),
        };
        let key = [record.offset.to_be_bytes(), record.stamp_ms.to_be_bytes()].concat();
        writer.row(&key, &record.bytes)
    }

    /// Nothing more is copied. The commit, and the records up to an offset.
    pub fn close(self, end: u64) -> Result<(Option<PastCommit>, CopiedRecords)> {
        let path = self.writer.map(RowWriter::close).transpose()?.map(|_| self.path);
        let start = self.commit.as_ref().map_or(0, |commit| commit.applied);
        Ok((self.commit, CopiedRecords { path, start, end, reader: None, next: start }))
    }
}

/// Records that were copied, mostly read in order.
pub struct CopiedRecords {
    path: Option<PathBuf>,
    /// The offset of the first one, and the one behind the last.
    pub start: u64,
    pub end: u64,
    reader: Option<RowReader>,
    /// The offset of the reader's next record.
    next: u64,
}

impl CopiedRecords {
    /// See `Log::read`.
    pub fn read(&mut self, from: u64, bytes_max: usize) -> Result<Vec<Record>> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        if self.reader.is_none() || self.next > from {
            (self.reader, self.next) = (Some(RowReader::open(path)?), self.start);
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        while let Some(reader) = &mut self.reader
            && bytes < bytes_max
            && self.next < self.end
        {
            let Some((key, value)) = reader.read()? else { break };
            let offset = key.first_chunk().context("a record without an offset")?;
            let stamp_ms = key.last_chunk().context("a record without a time")?;
            let (offset, stamp_ms) = (u64::from_be_bytes(*offset), i64::from_be_bytes(*stamp_ms));
            self.next = offset + 1;
            if offset >= from {
                bytes += value.len() + RECORD_BYTES;
                records.push(Record { offset, stamp_ms, bytes: value.into() });
            }
        }
        Ok(records)
    }

    /// Removes the copy.
    pub fn remove(self) -> Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))
    }
}
