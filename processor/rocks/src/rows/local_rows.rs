//! Committed rows in a database per partition, for logs that do not hold rows themselves.
//!
//! The database has no write-ahead log: rows that a crash loses are restored from the log, from the last mark on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use everlog_store::{CommittedRows, Error, RowChange, RowsCheckpoint, Seek, Space};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB,
    DBCompressionType, ErrorKind, FlushOptions, LogLevel, Options, WriteBatch, WriteBufferManager,
    WriteOptions,
};

use super::shared_rows::{SharedRows, family_name, translate};

const MARK: &[u8] = b"mark";
const META: &str = "default";
const BLOCK_BYTES: usize = 8 << 10;
const METADATA_BLOCK_BYTES: usize = 4 << 10;
/// Memory that a column family allocates at a time. Each partition has four families, and all share the write buffers: blocks
/// of 1 MiB, RocksDB's default, would fill the buffers while they are nearly empty.
const ARENA_BLOCK_BYTES: usize = 32 << 10;
const OPEN_FILES_MAX: i32 = 256;
const INFO_LOG_BYTES: usize = 1 << 20;

/// Write buffers of all partitions together: after a crash their rows are restored from the log.
const WRITE_BUFFERS_MAX: usize = 32 << 20;

/// Cache and write buffers that the partitions of a node share.
#[derive(Clone)]
pub struct DatabaseMemory {
    cache: Cache,
    buffers: WriteBufferManager,
    write_buffer_bytes: usize,
}

impl DatabaseMemory {
    /// So many bytes altogether, half of them for what is not on the disk yet, and 32 MiB at most.
    pub fn new(size_bytes: usize) -> Self {
        // The write buffers are charged to the cache, so the whole budget is the capacity of the cache.
        let cache = Cache::new_lru_cache(size_bytes);
        let write_buffer_bytes = (size_bytes / 2).min(WRITE_BUFFERS_MAX);
        let buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(write_buffer_bytes, false, cache.clone());
        DatabaseMemory { cache, buffers, write_buffer_bytes }
    }
}

/// The rows of one partition.
pub struct LocalRows {
    rows: SharedRows,
    db: Arc<DB>,
}

impl LocalRows {
    /// Opens or makes the database: `Corrupt` if its files are damaged, `Io` if another process has it.
    pub fn open(dir: &Path, memory: &DatabaseMemory) -> Result<Self, Error> {
        let mut database = Options::default();
        database.create_if_missing(true);
        database.create_missing_column_families(true);
        database.set_write_buffer_manager(&memory.buffers);
        // The rows of one family never stand on the disk without those of another, nor without their mark.
        database.set_atomic_flush(true);
        database.set_paranoid_checks(true);
        database.set_max_open_files(OPEN_FILES_MAX);
        database.set_keep_log_file_num(2);
        database.set_max_log_file_size(INFO_LOG_BYTES);
        database.set_log_level(LogLevel::Warn);
        database.set_stats_dump_period_sec(0);
        database.set_stats_persist_period_sec(0);
        whole(dir)?;
        let names = Space::ALL.map(family_name).into_iter().chain([META]);
        let families = names.map(|name| ColumnFamilyDescriptor::new(name, family(memory)));
        let db = Arc::new(DB::open_cf_descriptors(&database, dir, families).map_err(of_opening)?);
        Ok(LocalRows { rows: SharedRows::new(Arc::clone(&db))?, db })
    }

    /// Moves a directory that cannot be used out of the way, so that a new one can be made, and names it after `why`.
    /// The latest `keep` such directories stay. Returns where it is now.
    ///
    /// # Errors
    /// What the file system says.
    pub fn set_aside(dir: &Path, why: &str, keep: usize) -> std::io::Result<PathBuf> {
        let mut earlier = set_aside_before(dir)?;
        let number = earlier.last().map_or(0, |(number, _)| *number) + 1;
        let aside = dir.with_extension(format!("aside-{number}-{why}"));
        std::fs::rename(dir, &aside)?;
        earlier.push((number, aside.clone()));
        let surplus = earlier.len().saturating_sub(keep);
        for (_, path) in &earlier[..surplus] {
            // What cannot be removed now is tried again next time.
            let _ = std::fs::remove_dir_all(path);
        }
        Ok(aside)
    }

    fn meta(&self) -> &ColumnFamily {
        self.db.cf_handle(META).expect("open() has made it")
    }

    fn flush(&self) -> Result<(), Error> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        let families: Vec<_> =
            Space::ALL.into_iter().map(|space| self.rows.family(space)).chain([self.meta()]).collect();
        self.db.flush_cfs_opt(&families, &options).map_err(translate)
    }
}

/// A clean end leaves nothing to restore.
impl Drop for LocalRows {
    fn drop(&mut self) {
        // What is not on the disk comes from the log again.
        let _ = self.flush();
    }
}

impl CommittedRows for LocalRows {
    fn checkpoint(&self) -> Result<RowsCheckpoint, Error> {
        let mark = self.db.get_cf(self.meta(), MARK).map_err(translate)?;
        Ok(RowsCheckpoint::At(mark.map(Bytes::from)))
    }

    fn write(
        &self,
        changes: &mut dyn Iterator<Item = RowChange<'_>>,
        mark: Option<&[u8]>,
    ) -> Result<(), Error> {
        let mut batch = WriteBatch::default();
        for (space, key, value) in changes {
            match value {
                Some(value) => batch.put_cf(self.rows.family(space), key, value),
                None => batch.delete_cf(self.rows.family(space), key),
            }
        }
        if let Some(mark) = mark {
            batch.put_cf(self.meta(), MARK, mark);
        }
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.db.write_opt(batch, &options).map_err(translate)
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.rows.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.rows.scan(space, from, to, visit)
    }

    fn seek_scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Seek,
    ) -> Result<(), Error> {
        self.rows.seek_scan(space, from, to, visit)
    }

    fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        self.rows.last(space, from, to)
    }
}

/// A database without its `CURRENT` would be taken for none, and a new one be made among its files.
fn whole(dir: &Path) -> Result<(), Error> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    let is_part = |name: &&String| name.starts_with("MANIFEST-") || name.ends_with(".sst");
    match names.iter().find(is_part) {
        Some(part) if !names.iter().any(|name| name == "CURRENT") => {
            Err(Error::Corrupt { detail: format!("{} has {part}, but no CURRENT", dir.display()) })
        }
        Some(_) | None => Ok(()),
    }
}

/// Files that are missing, or not as they were left, are damage; what is in use or cannot be read is not.
fn of_opening(error: rocksdb::Error) -> Error {
    match (error.kind(), translate(error)) {
        (ErrorKind::InvalidArgument | ErrorKind::NotFound, Error::Io { detail }) => Error::Corrupt { detail },
        (_, error) => error,
    }
}

/// Directories of the same rows that were set aside, in order.
fn set_aside_before(dir: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else { return Ok(Vec::new()) };
    let prefix = format!("{}.aside-", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let number = name.strip_prefix(&prefix).map(|rest| rest.split('-').next().unwrap_or_default());
        found.extend(number.and_then(|number| number.parse().ok()).map(|number| (number, path)));
    }
    found.sort();
    Ok(found)
}

fn family(memory: &DatabaseMemory) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&memory.cache);
    blocks.set_block_size(BLOCK_BYTES);
    // A cache that is small beside the rows keeps the parts of indexes and filters that are asked, and each miss reads one
    // of them: not those of a whole file, which would push each other out.
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_metadata_block_size(METADATA_BLOCK_BYTES);
    blocks.set_pin_top_level_index_and_filter(true);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_bloom_filter(10.0, false);
    let mut family = Options::default();
    family.set_block_based_table_factory(&blocks);
    family.set_write_buffer_size(memory.write_buffer_bytes);
    family.set_arena_block_size(ARENA_BLOCK_BYTES);
    family.set_level_compaction_dynamic_level_bytes(true);
    family.set_compression_type(DBCompressionType::Lz4);
    family
}
