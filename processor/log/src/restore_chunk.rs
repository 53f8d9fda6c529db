//! A chunk of a compacted topic, for a restore that does not block its caller.

use bytes::Bytes;

use crate::{Error, Log, Offset, PartitionId, Topic};

/// Memory of a row besides its bytes, about.
const ROW_BYTES: usize = 64;

/// Rows of a compacted topic, in order; the last one of a key holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreChunk {
    /// Key and value; None is a tombstone.
    pub rows: Vec<(Bytes, Option<Bytes>)>,
    /// Where the next chunk begins.
    pub next: Offset,
    /// The end of the topic when it was read: this is the last chunk if the next one begins there.
    pub end: Offset,
}

/// Called once, by the log's thread: keep it short and never block in it.
pub type RestoreChunkDone = Box<dyn FnOnce(Result<RestoreChunk, Error>) + Send>;

/// Reads a chunk of up to `bytes_max` bytes, and blocks meanwhile.
///
/// # Errors
/// As [`Log::restore`].
pub fn restore_chunk<L: Log + ?Sized>(
    log: &L,
    topic: Topic,
    partition: PartitionId,
    from: Offset,
    bytes_max: usize,
) -> Result<RestoreChunk, Error> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    let restored = log.restore(topic, partition, from, &mut |key, value| {
        bytes += key.len() + value.map_or(0, <[u8]>::len) + ROW_BYTES;
        rows.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        bytes < bytes_max
    })?;
    Ok(RestoreChunk { rows, next: restored.next, end: restored.end })
}
