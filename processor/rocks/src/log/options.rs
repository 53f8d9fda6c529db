//! How an embedded log is opened: its directory, what counts as durable, its bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk_reserve;

/// When an append counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// When it is synced to the disk: survives a loss of power.
    Always,
    /// When the system has it: survives the end of the process only.
    Never,
}

/// What to do about damage found when opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recover {
    /// Stop with `Error::Corrupt` unless nothing acknowledged is lost.
    Strict,
    /// Go on with the longest readable beginning.
    AcceptLoss,
}

/// Bounds of the writer's queue and of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Appends that may wait.
    pub waiting_items_max: usize,
    /// Bytes that may wait.
    pub waiting_bytes_max: usize,
    /// Bytes after which a batch takes no further job.
    pub batch_bytes_max: usize,
    /// Bytes of one append.
    pub append_bytes_max: usize,
    /// Below so many free bytes on the disk appends are refused with `Error::Full`, and commits below half as many;
    /// trims never. At least twice the write buffers and 8 MiB are kept free, whatever this says.
    pub free_bytes_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            waiting_items_max: 65_536,
            waiting_bytes_max: 64 << 20,
            batch_bytes_max: 4 << 20,
            append_bytes_max: 32 << 20,
            free_bytes_min: 64 << 20,
        }
    }
}

/// Milliseconds since 1970.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + std::marker::Sync>;
/// Free bytes on the disk of a directory.
pub type FreeBytes = Arc<dyn Fn(&Path) -> std::io::Result<u64> + Send + std::marker::Sync>;

/// How to open an embedded log.
#[derive(Clone)]
pub struct Options {
    /// Its directory, made when missing.
    pub dir: PathBuf,
    /// Count of partitions, 1 to 256; must be that of an existing directory.
    pub partitions: u32,
    /// When an append counts as durable.
    pub sync: Sync,
    /// What to do about damage.
    pub recover: Recover,
    /// Block cache, at most; the write buffers are charged to the same cache on top of it.
    pub block_cache_bytes: usize,
    /// All write buffers together, at most. Each of the two follows what the rows ask for, from 32 MiB on.
    pub write_buffer_bytes: usize,
    /// What flushes and compactions may write; 0 = as fast as the disk goes.
    pub background_bytes_per_second_max: u64,
    /// Gives the stamps.
    pub clock: WallClock,
    /// Tells the free space.
    pub free_bytes: FreeBytes,
    /// Queue and disk bounds.
    pub limits: Limits,
}

impl Options {
    /// Settings of a small server: 8 partitions, synced, 64 MiB of cache and write buffers, the system's clock.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Options {
            dir: dir.into(),
            partitions: 8,
            sync: Sync::Always,
            recover: Recover::Strict,
            block_cache_bytes: 32 << 20,
            write_buffer_bytes: 32 << 20,
            // Several times what the log takes in at its highest rate on two cores.
            background_bytes_per_second_max: 384 << 20,
            clock: Arc::new(system_clock_ms),
            free_bytes: Arc::new(disk_free_bytes),
            limits: Limits::default(),
        }
    }

    /// Bytes on the disk below which appends are refused, see [`Limits::free_bytes_min`].
    pub fn free_bytes_kept(&self) -> u64 {
        disk_reserve::kept_bytes(self.limits.free_bytes_min, self.write_buffer_bytes)
    }
}

fn system_clock_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

fn disk_free_bytes(dir: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
