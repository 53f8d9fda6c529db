//! A look at RocksDB's files before RocksDB opens them, because it cannot know what was acknowledged.
//!
//! RocksDB either forgives too much (its lenient modes drop what follows a bad record) or too little (its strict
//! one refuses the torn tail of any crash). Here each write-ahead log is read first: a bad record that was
//! acknowledged, or that has something acknowledged behind it, is damage; a bad tail without an acknowledgement is
//! cut off. After that the strict mode fits. docs/decisions/log.md lists what is found where.

mod blocks;
mod manifest;
mod wal;

use std::fs::File;
use std::path::{Path, PathBuf};

use everlog_log::Error;

use super::WAY_OUT;

/// Checks the manifest and the write-ahead logs against the acknowledged sequence number, and cuts off a torn
/// tail; gives its bytes. `Corrupt` names the file.
pub(super) fn examine(database_dir: &Path, acked_sequence: u64) -> Result<u64, Error> {
    let manifest = manifest::read(database_dir)?;
    let wals = wals(database_dir)?
        .into_iter()
        .filter(|(number, _)| *number >= manifest.first_needed_log)
        .collect::<Vec<_>>();
    let torn = wal::examine(database_dir, &manifest, &wals, acked_sequence)?;
    let Some(torn) = torn else { return Ok(0) };
    let mut cut_bytes = 0;
    for (n, (_, path)) in wals.iter().enumerate().skip(torn.wal) {
        // What came after a torn record was never acknowledged either.
        let keep = if n == torn.wal { torn.keep_bytes } else { 0 };
        cut_bytes += cut(path, keep)?;
    }
    sync_dir(database_dir)?;
    Ok(cut_bytes)
}

fn cut(path: &Path, keep_bytes: u64) -> Result<u64, Error> {
    let cut = || {
        let file = File::options().write(true).open(path)?;
        let size_bytes = file.metadata()?.len();
        if size_bytes > keep_bytes {
            file.set_len(keep_bytes)?;
            file.sync_all()?;
        }
        Ok(size_bytes.saturating_sub(keep_bytes))
    };
    cut().map_err(|e: std::io::Error| Error::io("cut off the torn tail of", path, &e))
}

/// The write-ahead logs, oldest first.
pub(super) fn wals(database_dir: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let entries = std::fs::read_dir(database_dir).map_err(|e| Error::io("read", database_dir, &e))?;
    let mut wals = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Error::io("read", database_dir, &e))?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
        if let Some(number) = number {
            wals.push((number, path));
        }
    }
    wals.sort();
    Ok(wals)
}

/// Makes names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|e| Error::io("sync", dir, &e))
}

fn damaged(path: &Path, detail: String) -> Error {
    Error::Corrupt { path: path.into(), detail, way_out: WAY_OUT.into() }
}
