//! Memory of the database: block cache and write buffers grow with its rows, up to a limit.
//!
//! With many rows, small flushed files are merged more often, and a small cache misses. With few rows, more memory would
//! only be held, and its rows be read again after a crash.

use everlog_log::Topic;
use rocksdb::{Cache, DB, WriteBufferManager, properties};

use super::Options;
use super::read::handle;

/// Bytes of the cache and of the write buffers each, from the first row on, unless their limit is lower.
const LEAST_BYTES: usize = 32 << 20;
/// Bytes of rows in files per byte of cache, and per byte of write buffer.
const FILE_BYTES_PER_BYTE: u64 = 6;
/// Bytes written after which the size of the files is read again.
const LOOK_BYTES: u64 = 8 << 20;

pub(super) struct LogMemory {
    pub(super) cache: Cache,
    pub(super) buffers: WriteBufferManager,
    block_cache_bytes_max: usize,
    write_buffer_bytes_max: usize,
    /// What was written until the last look.
    looked_bytes: u64,
}

impl LogMemory {
    pub(super) fn new(options: &Options) -> Self {
        let (block_cache_bytes_max, write_buffer_bytes_max) =
            (options.block_cache_bytes, options.write_buffer_bytes);
        let (block_cache_bytes, write_buffer_bytes) =
            (share(0, block_cache_bytes_max), share(0, write_buffer_bytes_max));
        // The write buffers are charged to the cache, so the whole budget is the capacity of the cache.
        let cache = Cache::new_lru_cache(block_cache_bytes + write_buffer_bytes);
        let buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(write_buffer_bytes, false, cache.clone());
        LogMemory { cache, buffers, block_cache_bytes_max, write_buffer_bytes_max, looked_bytes: 0 }
    }

    /// As [`LogMemory::fit`], now and then: `written_bytes` is what has been written since the log was opened.
    pub(super) fn follow(&mut self, db: &DB, written_bytes: u64) {
        if written_bytes - self.looked_bytes >= LOOK_BYTES {
            self.looked_bytes = written_bytes;
            self.fit(db);
        }
    }

    /// Takes the sizes that suit the rows in the files.
    pub(super) fn fit(&mut self, db: &DB) {
        let Some(file_bytes) = rows_in_files(db) else { return };
        let write_buffer_bytes = share(file_bytes, self.write_buffer_bytes_max);
        self.buffers.set_buffer_size(write_buffer_bytes);
        self.cache.set_capacity(share(file_bytes, self.block_cache_bytes_max) + write_buffer_bytes);
    }
}

/// Bytes of the rows that are asked for by key or written again in place, if the database says so: journals and topics only grow
/// at one end.
fn rows_in_files(db: &DB) -> Option<u64> {
    let size =
        |name| db.property_int_value_cf(handle(db, name), properties::LIVE_SST_FILES_SIZE).ok().flatten();
    Topic::compacted().map(Topic::name).map(size).sum()
}

fn share(file_bytes: u64, max_bytes: usize) -> usize {
    usize::try_from(file_bytes / FILE_BYTES_PER_BYTE).unwrap_or(usize::MAX).max(LEAST_BYTES).min(max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_sixth_of_the_rows_between_its_bounds() {
        let (mib, max) = (1 << 20, 128 << 20);
        let of = |file_mib: u64| share(file_mib << 20, max) / mib;
        assert_eq!([0, 192, 198, 600, 768, 1 << 30].map(of), [32, 32, 33, 100, 128, 128]);
        assert_eq!(share(0, 5 * mib), 5 * mib);
    }
}
