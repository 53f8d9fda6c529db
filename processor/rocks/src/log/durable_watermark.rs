//! The file `acked`: a lower bound of what was acknowledged, which recovery must find in the database.
//!
//! It is written after each sync and not synced itself: after a loss of power it may be lower than what was acknowledged,
//! never higher. Two slots are written in turn, so a torn write leaves the other one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use everlog_log::{Error, Offset};

const MAGIC: &[u8; 8] = b"evlacked";
const SLOT_BYTES: u64 = 4096;
const HEADER_BYTES: usize = 8 + 16 + 8 + 8 + 4;

/// Most partitions of a directory: a slot of SLOT_BYTES has room for the ends of these.
pub const PARTITIONS_MAX: u32 = 256;

/// A lower bound of what was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bound {
    /// The incarnation it belongs to.
    pub(super) incarnation: [u8; 16],
    /// RocksDB's sequence number of the last synced write.
    pub(super) sequence: u64,
    /// The synced end of each journal.
    pub(super) ends: Vec<Offset>,
}

pub(super) struct DurableWatermark {
    file: File,
    path: PathBuf,
    generation: u64,
    slot: Vec<u8>,
}

impl DurableWatermark {
    /// Makes the file, or replaces it; it is whole and durable before it gets its name.
    pub(super) fn create(path: &Path, bound: &Bound) -> Result<Self, Error> {
        let new = path.with_extension("new");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&new);
        let file = file.map_err(|e| Error::io("create", &new, &e))?;
        file.write_all_at(&[0; 2 * SLOT_BYTES as usize], 0).map_err(|e| Error::io("write", &new, &e))?;
        let mut acked = DurableWatermark { file, path: path.into(), generation: 0, slot: Vec::new() };
        acked.write(bound.incarnation, bound.sequence, bound.ends.iter().copied())?;
        acked.sync()?;
        std::fs::rename(&new, path).map_err(|e| Error::io("rename", &new, &e))?;
        super::files::sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        Ok(acked)
    }

    /// The file and the newest bound in it; None if there is no file.
    pub(super) fn open(path: &Path) -> Result<Option<(Self, Bound)>, Error> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("open", path, &e)),
        };
        let slots = [0, 1].map(|n| {
            let mut slot = vec![0; SLOT_BYTES as usize];
            file.read_exact_at(&mut slot, n * SLOT_BYTES).ok().and_then(|()| decode(&slot))
        });
        let newest = slots.into_iter().flatten().max_by_key(|(generation, _)| *generation);
        let Some((generation, bound)) = newest else {
            return Err(Error::Corrupt {
                path: path.into(),
                detail: "neither of its two slots is intact, so nothing says how much was acknowledged"
                    .into(),
                way_out: super::WAY_OUT.into(),
            });
        };
        Ok(Some((DurableWatermark { file, path: path.into(), generation, slot: Vec::new() }, bound)))
    }

    pub(super) fn write(
        &mut self,
        incarnation: [u8; 16],
        sequence: u64,
        ends: impl ExactSizeIterator<Item = Offset>,
    ) -> Result<(), Error> {
        self.generation += 1;
        self.slot.clear();
        self.slot.extend_from_slice(MAGIC);
        self.slot.extend_from_slice(&incarnation);
        self.slot.extend_from_slice(&self.generation.to_be_bytes());
        self.slot.extend_from_slice(&sequence.to_be_bytes());
        self.slot.extend_from_slice(&(ends.len() as u32).to_be_bytes());
        ends.for_each(|end| self.slot.extend_from_slice(&end.to_be_bytes()));
        let crc = crc32fast::hash(&self.slot);
        self.slot.extend_from_slice(&crc.to_be_bytes());
        let place = (self.generation % 2) * SLOT_BYTES;
        let written = self.file.write_all_at(&self.slot, place);
        if written.is_err() {
            // The next bound goes to the same slot: the other one is whole.
            self.generation -= 1;
        }
        written.map_err(|e| Error::io("write", &self.path, &e))
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(|e| Error::io("sync", &self.path, &e))
    }
}

fn decode(slot: &[u8]) -> Option<(u64, Bound)> {
    let rest = slot.strip_prefix(MAGIC)?;
    let (incarnation, rest) = rest.split_first_chunk::<16>()?;
    let (generation, rest) = rest.split_first_chunk::<8>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let (ends, rest) = rest.split_at_checked(8 * u32::from_be_bytes(*count) as usize)?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    if crc32fast::hash(slot.get(..HEADER_BYTES + ends.len())?) != u32::from_be_bytes(*crc) {
        return None;
    }
    let (ends, _) = ends.as_chunks::<8>();
    let ends = ends.iter().map(|end| u64::from_be_bytes(*end)).collect();
    let bound = Bound { incarnation: *incarnation, sequence: u64::from_be_bytes(*sequence), ends };
    Some((u64::from_be_bytes(*generation), bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_leaves_the_bound_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acked");
        let first = Bound { incarnation: [7; 16], sequence: 5, ends: vec![1, 2, 3] };
        let mut acked = DurableWatermark::create(&path, &first).unwrap();
        acked.write([7; 16], 9, [4, 5, 6].into_iter()).unwrap();
        let (reopened, bound) = DurableWatermark::open(&path).unwrap().unwrap();
        assert_eq!((bound.sequence, bound.ends), (9, vec![4, 5, 6]));
        reopened.file.write_all_at(b"x", HEADER_BYTES as u64).unwrap();
        assert_eq!(DurableWatermark::open(&path).unwrap().unwrap().1, first);
        reopened.file.write_all_at(b"x", SLOT_BYTES + HEADER_BYTES as u64).unwrap();
        assert!(matches!(DurableWatermark::open(&path), Err(Error::Corrupt { .. })));
    }
}
