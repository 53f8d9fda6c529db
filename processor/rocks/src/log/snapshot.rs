//! A copy of the directory of an embedded log, which a node may be writing to. It has everything that was acknowledged
//! before it was begun.
//!
//! Tables never change, so the copy shares them by hard links. Manifest and write-ahead logs are copied, in an order in
//! which the copy is what a killed process would have left. Files that go away meanwhile make a copy that does not
//! open; the caller makes another one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use everlog_log::Error;

use super::files;

/// Copies the log of `dir` into the new directory `to`. Both should be on one file system, or tables are copied too.
///
/// # Errors
/// `Io`: a file went away meanwhile, or the file system says so.
pub fn snapshot(dir: &Path, to: &Path) -> Result<(), Error> {
    let (from_db, to_db) = (dir.join("db"), to.join("db"));
    fs::create_dir_all(&to_db).map_err(|e| Error::io("create", &to_db, &e))?;
    // A lower bound of what the copy has to have, so it comes first.
    copy(&dir.join("acked"), &to.join("acked"))?;
    link_tables(&from_db, &to_db)?;
    let current = from_db.join("CURRENT");
    let manifest = fs::read_to_string(&current).map_err(|e| Error::io("read", &current, &e))?;
    let name = manifest.trim_end();
    copy(&from_db.join(name), &to_db.join(name))?;
    let current = to_db.join("CURRENT");
    fs::write(&current, &manifest).map_err(|e| Error::io("write", &current, &e))?;
    // Those that the manifest has named meanwhile.
    link_tables(&from_db, &to_db)?;
    // All are known before the first is read: a log that is begun later would leave a gap before it.
    for (_, path) in files::wals(&from_db)? {
        let name = path.file_name().unwrap_or_default();
        copy(&path, &to_db.join(name))?;
    }
    files::sync_dir(to)
}

fn link_tables(from: &Path, to: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(from).map_err(|e| Error::io("read", from, &e))?;
    for entry in entries {
        let path = entry.map_err(|e| Error::io("read", from, &e))?.path();
        let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|end| end == "sst")) else {
            continue;
        };
        match fs::hard_link(&path, to.join(name)) {
            Ok(()) => {}
            // A table that a compaction has removed is missed only by a manifest that names it.
            Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            Err(_no_links) => copy(&path, &to.join(name))?,
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::copy(from, to).map(drop).map_err(|e| Error::io("copy", from, &e))
}
