//! The rows beside a log on Kafka: a directory for each partition, and directories that were set aside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everlog_partition::RowsFault;
use everlog_rocks::rows::{DatabaseMemory, LocalRows};
use everlog_store::{CommittedRows, Error};

/// How often rows were set aside, by reason.
pub type SetAside = [AtomicU64; RowsFault::ALL.len()];

/// All directories.
pub struct RowDirectories {
    dir: PathBuf,
    memory: DatabaseMemory,
    aside_max: usize,
    set_aside: Arc<SetAside>,
    /// Open rows that are not in use at the moment.
    kept_open: Mutex<BTreeMap<u32, Box<dyn CommittedRows>>>,
}

impl RowDirectories {
    /// The directories in `dir`, with so much memory together. Of each partition, `aside_max` directories that were
    /// set aside are kept.
    pub fn new(dir: PathBuf, memory_bytes: usize, aside_max: usize) -> Self {
        Self {
            dir,
            memory: DatabaseMemory::new(memory_bytes),
            aside_max,
            set_aside: Arc::default(),
            kept_open: Mutex::default(),
        }
    }

    /// Opens the rows of a partition. Damaged rows are set aside, and new ones made.
    ///
    /// # Errors
    /// They are in use, or the directory cannot be written.
    pub fn open(&self, partition: u32) -> Result<Box<dyn CommittedRows>, Error> {
        if let Some(rows) = self.kept_open().remove(&partition) {
            return Ok(rows);
        }
        let dir = self.of(partition);
        std::fs::create_dir_all(&self.dir).map_err(|error| io(&self.dir, &error))?;
        match LocalRows::open(&dir, &self.memory) {
            Ok(rows) => Ok(Box::new(rows)),
            Err(Error::Corrupt { detail }) => {
                self.set_aside(partition, RowsFault::Corrupt, &detail)?;
                Ok(Box::new(LocalRows::open(&dir, &self.memory)?))
            }
            Err(error @ Error::Io { .. }) => Err(error),
        }
    }

    /// Keeps open rows for the next user.
    pub fn keep_open(&self, partition: u32, rows: Box<dyn CommittedRows>) {
        self.kept_open().insert(partition, rows);
    }

    /// Closes rows that were kept open.
    pub fn close(&self, partition: u32) {
        let rows = self.kept_open().remove(&partition);
        // Behind the lock, because it takes a while.
        drop(rows);
    }

    fn kept_open(&self) -> MutexGuard<'_, BTreeMap<u32, Box<dyn CommittedRows>>> {
        self.kept_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for new rows of a partition. Nobody may have the old ones open.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn set_aside(&self, partition: u32, fault: RowsFault, reason: &str) -> Result<(), Error> {
        let dir = self.of(partition);
        let aside = LocalRows::set_aside(&dir, fault.name(), self.aside_max);
        let aside = aside.map_err(|error| io(&dir, &error))?;
        self.set_aside[fault as usize].fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            partition, fault = fault.name(), reason, aside = %aside.display(),
            "rows set aside: they cannot be used, and are restored from the log"
        );
        Ok(())
    }

    /// How often rows were set aside.
    pub fn counts(&self) -> Arc<SetAside> {
        Arc::clone(&self.set_aside)
    }

    /// The partitions that have a directory.
    pub fn kept(&self) -> BTreeSet<u32> {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return BTreeSet::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    fn of(&self, partition: u32) -> PathBuf {
        self.dir.join(partition.to_string())
    }
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::Io { detail: format!("{}: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_rows_are_set_aside_counted_and_made_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let rows = RowDirectories::new(dir.path().join("rows"), 8 << 20, 1);
        drop(rows.open(3).expect("they are new"));
        std::fs::remove_file(dir.path().join("rows/3/CURRENT")).expect("it is there");
        drop(rows.open(3).expect("new ones are made"));
        let counts: Vec<u64> = rows.counts().iter().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(counts[RowsFault::Corrupt as usize], 1, "{counts:?}");
        assert!(dir.path().join("rows/3.aside-1-corrupt").is_dir());
    }

    #[test]
    fn faults_are_numbered_in_their_order() {
        for (number, fault) in RowsFault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, number, "{}", fault.name());
        }
    }
}
