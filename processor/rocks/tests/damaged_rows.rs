//! Rows whose files were harmed are never served: it is found when they are opened or read, or they stand whole at an
//! earlier mark.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use everlog_rocks::rows::{DatabaseMemory, LocalRows};
use everlog_store::{CommittedRows, Error, RowsCheckpoint, Space, Store};

type Rows = BTreeMap<(Space, Bytes), Bytes>;

const COMMITS: u32 = 6;
const SPACES: [Space; 3] = [Space::State, Space::History, Space::Timers];

/// The rows after so many commits: some are overwritten, some are deleted.
fn rows_at(commit: u32) -> Rows {
    let mut rows = Rows::new();
    for number in 1..=commit {
        for (space, key, value) in changes(number) {
            match value {
                Some(value) => rows.insert((space, key), value),
                None => rows.remove(&(space, key)),
            };
        }
    }
    rows
}

fn changes(commit: u32) -> Vec<(Space, Bytes, Option<Bytes>)> {
    let mut changes = Vec::new();
    for space in SPACES {
        for row in 0..60 {
            let key = Bytes::from(format!("row-{:04}", row * commit % 150));
            let value = Bytes::from(format!("{commit}-{row}-").repeat(20));
            changes.push((space, key, (row % 7 > 0).then_some(value)));
        }
    }
    changes
}

/// A directory with all commits, in several files.
fn build(dir: &Path) {
    for commit in 1..=COMMITS {
        // A small memory, and a clean end each time: a file more per family.
        let mut store = Store::new(LocalRows::open(dir, &DatabaseMemory::new(8 << 20)).unwrap());
        for (space, key, value) in changes(commit) {
            match value {
                Some(value) => store.put(space, key, value),
                None => store.delete(space, key),
            }
        }
        store.begin_commit();
        store.committed(Some(&commit.to_be_bytes())).unwrap();
    }
}

/// Everything that the directory holds, with its mark.
fn read(dir: &Path) -> Result<(u32, Rows), Error> {
    let base = LocalRows::open(dir, &DatabaseMemory::new(8 << 20))?;
    let RowsCheckpoint::At(mark) = base.checkpoint()? else { panic!("rows of their own") };
    let mark = mark.map_or(0, |mark| u32::from_be_bytes(mark.as_ref().try_into().unwrap()));
    let mut rows = Rows::new();
    for space in SPACES {
        base.scan(space, &[], &[255], &mut |key, value| {
            rows.insert((space, Bytes::copy_from_slice(key)), Bytes::copy_from_slice(value));
            true
        })?;
    }
    for ((space, key), value) in &rows {
        assert_eq!(base.get(*space, key)?.as_ref(), Some(value));
    }
    Ok((mark, rows))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("MANIFEST-") || name.ends_with(".sst") || name == "CURRENT"
    });
    files.sort();
    files
}

/// Harms a copy, and says whether that was found; what is not found must stand whole at its mark.
fn is_found(whole: &Path, what: &str, harm: impl FnOnce(&Path)) -> bool {
    let dir = tempfile::tempdir().unwrap();
    copy(whole, dir.path());
    harm(dir.path());
    match read(dir.path()) {
        Err(Error::Corrupt { .. }) => true,
        Err(error @ Error::Io { .. }) => panic!("{what}: it does not count as damage: {error}"),
        Ok((mark, rows)) => {
            assert!(rows == rows_at(mark), "{what}: the rows are not those of their mark {mark}");
            false
        }
    }
}

#[test]
fn a_flipped_byte_in_any_file_is_found_before_it_is_served() {
    let whole = tempfile::tempdir().unwrap();
    build(whole.path());
    assert_eq!(read(whole.path()).unwrap(), (COMMITS, rows_at(COMMITS)));
    let (mut harmed, mut found) = (0, 0);
    for path in files(whole.path()) {
        let bytes = std::fs::metadata(&path).unwrap().len() as usize;
        let name = path.file_name().unwrap();
        for place in (0..bytes).step_by((bytes / 12).max(1)) {
            let what = format!("{} at {place} of {bytes}", name.display());
            harmed += 1;
            found += u32::from(is_found(whole.path(), &what, |dir| {
                let mut content = std::fs::read(dir.join(name)).unwrap();
                content[place] ^= 0x10;
                std::fs::write(dir.join(name), content).unwrap();
            }));
        }
    }
    println!("{harmed} bytes flipped, {found} of them were found");
    assert!(found * 10 > harmed * 8, "{found} of {harmed}");
}

#[test]
fn a_file_that_is_cut_short_or_missing_is_found_before_it_is_served() {
    let whole = tempfile::tempdir().unwrap();
    build(whole.path());
    for path in files(whole.path()) {
        let name = path.file_name().unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len();
        for length in [0, 1, bytes / 3, bytes - 1] {
            let what = format!("{} cut to {length} of {bytes}", name.display());
            let found = is_found(whole.path(), &what, |dir| {
                let file = std::fs::OpenOptions::new().write(true).open(dir.join(name)).unwrap();
                file.set_len(length).unwrap();
            });
            assert!(found || name.to_string_lossy().starts_with("MANIFEST-"), "{what}");
        }
        let found = is_found(whole.path(), &format!("{} gone", name.display()), |dir| {
            std::fs::remove_file(dir.join(name)).unwrap();
        });
        assert!(found, "{} is gone", name.display());
    }
}
