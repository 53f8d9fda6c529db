//! RocksDB's settings: one memory budget, one write-ahead log, strict recovery, little when idle.

use std::path::Path;

use everlog_log::{Error, Space, Topic};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType,
    DBRecoveryMode, LogLevel,
};

use super::memory::LogMemory;
use super::read::translate;
use super::{Options, Recover, rows};

const BLOCK_BYTES: usize = 8 << 10;
const METADATA_BLOCK_BYTES: usize = 4 << 10;
const LEVEL_BASE_BYTES: u64 = 64 << 20;
/// Flushed files that are merged together, where rows are only scanned. A flush takes all families, so each file has a few MB, and
/// is merged with a level of 64 MB: the fewer merges, the less is written again.
const FILES_PER_MERGE: i32 = 12;
const FILE_BYTES: u64 = 32 << 20;
const OPEN_FILES_MAX: i32 = 256;
const INFO_LOG_BYTES: usize = 1 << 20;
const BACKGROUND_REFILL_US: i64 = 10_000;

pub(super) fn create(options: &Options, dir: &Path) -> Result<DB, Error> {
    open_with(options, &LogMemory::new(options), dir, true)
}

/// Never makes a database: one whose files are damaged must not be replaced by an empty one.
pub(super) fn open(options: &Options, memory: &LogMemory, dir: &Path) -> Result<DB, Error> {
    open_with(options, memory, dir, false)
}

fn open_with(options: &Options, memory: &LogMemory, dir: &Path, create: bool) -> Result<DB, Error> {
    let mut database = recovery(options.recover).map_err(|e| translate(dir, &e))?;
    database.create_if_missing(create);
    database.create_missing_column_families(create || lacks_the_index_alone(&database, dir));
    database.set_write_buffer_manager(&memory.buffers);
    strictness(options.recover, &mut database);
    database.set_max_total_wal_size(2 * options.write_buffer_bytes as u64);
    database.set_max_open_files(OPEN_FILES_MAX);
    database.set_max_background_jobs(2);
    database.set_bytes_per_sync(1 << 20);
    // A flush as fast as the disk goes would keep the syncs of appends waiting behind it.
    if let pace @ 1.. = i64::try_from(options.background_bytes_per_second_max).unwrap_or(i64::MAX) {
        database.set_ratelimiter(pace, BACKGROUND_REFILL_US, 10);
    }
    database.set_keep_log_file_num(2);
    database.set_max_log_file_size(INFO_LOG_BYTES);
    database.set_log_level(LogLevel::Warn);
    database.set_stats_dump_period_sec(0);
    database.set_stats_persist_period_sec(0);
    let families =
        rows::families().map(|name| ColumnFamilyDescriptor::new(name, family(options, &memory.cache, name)));
    DB::open_cf_descriptors(&database, dir, families).map_err(|e| open_error(dir, &e))
}

/// True of a database that was made before runs had an index, which is made of the other rows.
fn lacks_the_index_alone(database: &rocksdb::Options, dir: &Path) -> bool {
    let Ok(found) = DB::list_cf(database, dir) else { return false };
    rows::families().all(|name| found.iter().any(|found| found == name) != (name == Space::Index.name()))
}

/// What is read again from the write-ahead log stays in memory, as it was before the end: nobody waits until it is a file.
/// Where the rest of the log is given up it must become one, or the damage would be met again.
fn recovery(recover: Recover) -> Result<rocksdb::Options, rocksdb::Error> {
    let mut defaults = rocksdb::Options::default();
    match recover {
        // The binding has no call of its own for it.
        Recover::Strict => defaults.get_options_from_string("avoid_flush_during_recovery=true"),
        Recover::AcceptLoss => Ok(defaults),
    }
}

/// A flush takes all families at once, so that the rows of one never stand in the files without those of another,
/// and a write-ahead log is dropped only when every family is past it: `files/` relies on both.
fn strictness(recover: Recover, database: &mut rocksdb::Options) {
    database.set_atomic_flush(true);
    database.set_paranoid_checks(true);
    database.set_track_and_verify_wals_in_manifest(recover == Recover::Strict);
    database.set_wal_recovery_mode(match recover {
        Recover::Strict => DBRecoveryMode::AbsoluteConsistency,
        Recover::AcceptLoss => DBRecoveryMode::PointInTime,
    });
}

fn family(options: &Options, cache: &Cache, name: &str) -> rocksdb::Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_block_size(BLOCK_BYTES);
    // A cache that is small beside the rows keeps the parts of indexes and filters that are asked, and each miss reads one
    // of them: not those of a whole file, which would push each other out.
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_metadata_block_size(METADATA_BLOCK_BYTES);
    blocks.set_pin_top_level_index_and_filter(true);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    // Journals and append-only topics are only scanned; a filter would never be asked.
    let scanned = name == rows::JOURNAL || name == rows::TOPICS;
    if !scanned {
        blocks.set_bloom_filter(10.0, false);
    }
    let mut family = rocksdb::Options::default();
    if scanned || name == Topic::Timers.name() {
        // A read by key looks into each of these files; here rows are scanned, but for a letter that arrives.
        family.set_level_zero_file_num_compaction_trigger(FILES_PER_MERGE);
        family.set_level_zero_slowdown_writes_trigger(3 * FILES_PER_MERGE);
        family.set_level_zero_stop_writes_trigger(4 * FILES_PER_MERGE);
    }
    family.set_block_based_table_factory(&blocks);
    family.set_write_buffer_size(options.write_buffer_bytes);
    family.set_max_bytes_for_level_base(LEVEL_BASE_BYTES);
    family.set_target_file_size_base(FILE_BYTES);
    family.set_level_compaction_dynamic_level_bytes(true);
    family.set_compression_type(DBCompressionType::Lz4);
    family.set_compression_per_level(&[
        DBCompressionType::None,
        DBCompressionType::None,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
    ]);
    family
}

/// When opening, whatever is wrong with the files is damage: RocksDB calls a missing file or a bad name an IO
/// error or an invalid argument.
fn open_error(dir: &Path, error: &rocksdb::Error) -> Error {
    match translate(dir, error) {
        Error::Io { detail }
            if error.kind() == rocksdb::ErrorKind::InvalidArgument || detail.contains("No such file") =>
        {
            super::read::corrupt(dir, detail)
        }
        other => other,
    }
}
