//! The disk reserve: free bytes that are kept, so that the write buffers can always be flushed.
//!
//! | free bytes | appends | commits | flushes |
//! |---|---|---|---|
//! | the reserve or more | taken | taken | run |
//! | less | refused | taken | run |
//! | less than half of it | refused | refused | run |

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use everlog_log::Error;

use super::FreeBytes;

/// How long a look at the free space counts, unless LOOK_BYTES were written.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes written after which the free space is read again.
const LOOK_BYTES: u64 = 2 << 20;
/// Reserve besides twice the write buffers: for manifests, RocksDB's info log, and the batches between two looks.
const HEADROOM_BYTES: u64 = 8 << 20;

/// What the writer and its onlookers know of the disk.
pub(super) struct DiskReserve {
    dir: PathBuf,
    free_bytes: FreeBytes,
    kept_bytes: u64,
    /// The database refuses writes for want of space, whatever the disk says.
    stopped: AtomicBool,
}

/// Who may write at the moment.
#[derive(Clone)]
pub(super) struct Permits {
    pub(super) appends: Result<(), Error>,
    pub(super) commits: Result<(), Error>,
}

/// The last look of the writer.
pub(super) struct DiskCheck {
    room: Permits,
    at: Instant,
    written_bytes: u64,
}

/// What is kept free: `free_bytes_min`, and never less than twice the write buffers and some headroom: while a buffer is written to
/// its file, the log that it stands in is still there.
pub(super) fn kept_bytes(free_bytes_min: u64, write_buffer_bytes: usize) -> u64 {
    free_bytes_min.max(2 * write_buffer_bytes as u64 + HEADROOM_BYTES)
}

impl DiskReserve {
    pub(super) fn new(dir: PathBuf, free_bytes: FreeBytes, kept_bytes: u64) -> Self {
        Self { dir, free_bytes, kept_bytes, stopped: AtomicBool::new(false) }
    }

    /// Whether appends are refused, as of now.
    pub(super) fn is_full(&self) -> bool {
        self.is_stopped() || self.look().appends.is_err()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn set_stopped(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::Relaxed);
    }

    /// As [`DiskReserve::look`], from memory where that is fresh.
    pub(super) fn room(&self, last: &mut Option<DiskCheck>, written_bytes: u64) -> Permits {
        let is_fresh = |look: &&DiskCheck| {
            look.room.appends.is_ok()
                && look.at.elapsed() < LOOK_INTERVAL
                && written_bytes - look.written_bytes < LOOK_BYTES
        };
        if let Some(look) = last.as_ref().filter(is_fresh) {
            return look.room.clone();
        }
        let room = self.look();
        *last = Some(DiskCheck { room: room.clone(), at: Instant::now(), written_bytes });
        room
    }

    pub(super) fn look(&self) -> Permits {
        // Where the free space cannot be read, a full disk shows itself by a failed write.
        let free_bytes = (self.free_bytes)(&self.dir).unwrap_or(u64::MAX);
        let least = |kept_bytes: u64| {
            if free_bytes >= kept_bytes {
                return Ok(());
            }
            let dir = self.dir.display();
            Err(Error::Full {
                detail: format!("{free_bytes} bytes are free in {dir}, {kept_bytes} are kept free"),
            })
        };
        Permits { appends: least(self.kept_bytes), commits: least(self.kept_bytes / 2) }
    }
}
