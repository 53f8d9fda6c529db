//! Which manifest is current, and what it says of the write-ahead logs that are still needed.

use std::path::Path;

use everlog_log::Error;

use super::blocks::{Blocks, Next};
use super::damaged;

/// Enough for the numbers that stand at the beginning of an edit, names and all.
const HEAD_BYTES_MAX: usize = 4096;

const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const PREVIOUS_LOG: u64 = 9;
const FIRST_NEEDED_LOG: u64 = 10;
const COLUMN_FAMILY_MAX: u64 = 203;
const DATABASE_ID: u64 = 8193;

/// What the last edits of the manifest say.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// The number of the first write-ahead log whose rows may not all be in the tables.
    pub(super) first_needed_log: u64,
    /// A sequence number at or above those of all rows in the tables.
    pub(super) last_sequence: u64,
    /// Numbers of all files come from one counter.
    pub(super) number: u64,
}

impl Manifest {
    /// A flush names a log that is there already, because it was begun when the flush was. Opening names the number
    /// after the last log it found: no file has it, and the log begun then goes on right behind.
    pub(super) fn names_a_log(&self) -> bool {
        self.first_needed_log > self.number
    }
}

/// Reads the current manifest; `Corrupt` if the names do not lead to a readable one. RocksDB checks the rest of it.
pub(super) fn read(database_dir: &Path) -> Result<Manifest, Error> {
    let current = database_dir.join("CURRENT");
    let name = match std::fs::read_to_string(&current) {
        Ok(name) => name,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(damaged(&current, "it is gone".into()));
        }
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            return Err(damaged(&current, "it does not name a manifest".into()));
        }
        Err(e) => return Err(Error::io("read", &current, &e)),
    };
    let name = name.strip_suffix('\n').filter(|name| is_manifest(name));
    let Some(name) = name else {
        return Err(damaged(&current, "it does not name a manifest".into()));
    };
    let manifest = database_dir.join(name);
    if !manifest.exists() {
        return Err(damaged(&manifest, "it is gone, but CURRENT names it".into()));
    }
    let number = name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX);
    read_edits(&manifest, number)
}

fn is_manifest(name: &str) -> bool {
    name.strip_prefix("MANIFEST-")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn read_edits(path: &Path, number: u64) -> Result<Manifest, Error> {
    let mut edits = Blocks::open(path, HEAD_BYTES_MAX)?;
    let mut manifest = Manifest { number, ..Manifest::default() };
    loop {
        match edits.next()? {
            // Where an edit is not understood, RocksDB says what is wrong with it.
            Next::Record(edit) => drop(manifest.add(&edit.head)),
            Next::End => return Ok(manifest),
            Next::Fault { at, reason } => {
                // A torn last edit is what a crash leaves: nothing was built on it. RocksDB takes a bad length
                // for that even where more follows.
                if !edits.beginnings_after(at)?.is_empty() {
                    return Err(damaged(path, format!("at byte {at} {reason}, and more follows")));
                }
                return Ok(manifest);
            }
        }
    }
}

impl Manifest {
    /// Numbers come first in an edit; the search ends at the first field that is none.
    fn add(&mut self, mut edit: &[u8]) -> Option<()> {
        loop {
            match varint(&mut edit)? {
                FIRST_NEEDED_LOG => self.first_needed_log = self.first_needed_log.max(varint(&mut edit)?),
                LAST_SEQUENCE => self.last_sequence = self.last_sequence.max(varint(&mut edit)?),
                LOG_NUMBER | NEXT_FILE | PREVIOUS_LOG | COLUMN_FAMILY_MAX => drop(varint(&mut edit)?),
                COMPARATOR | DATABASE_ID => {
                    let length = usize::try_from(varint(&mut edit)?).ok()?;
                    edit = edit.get(length..)?;
                }
                _ => return None,
            }
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
