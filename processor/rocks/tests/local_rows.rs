//! Rows in a database of their own come back with their mark, and what a crash took back is missing as a whole.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use bytes::Bytes;
use everlog_rocks::rows::{DatabaseMemory, LocalRows};
use everlog_store::{CommittedRows, Error, RowsCheckpoint, Space, Store};

fn memory() -> DatabaseMemory {
    DatabaseMemory::new(8 << 20)
}

#[test]
fn what_was_committed_is_there_with_its_mark_after_a_clean_end() {
    let dir = tempfile::tempdir().unwrap();
    let rows = LocalRows::open(dir.path(), &memory()).unwrap();
    assert_eq!(rows.checkpoint().unwrap(), RowsCheckpoint::At(None));
    let mut store = Store::new(rows);
    store.put(Space::State, "run".into(), "state".into());
    store.put(Space::History, "run/1".into(), "events".into());
    store.put(Space::Timers, "due".into(), "run".into());
    store.begin_commit();
    store.committed(Some(b"one")).unwrap();
    store.delete(Space::Timers, "due".into());
    store.begin_commit();
    store.committed(Some(b"two")).unwrap();
    store.put(Space::State, "other".into(), "never committed".into());
    drop(store);
    let rows = LocalRows::open(dir.path(), &memory()).unwrap();
    assert_eq!(rows.checkpoint().unwrap(), RowsCheckpoint::At(Some("two".into())));
    let store = Store::new(rows);
    assert_eq!(store.get(Space::State, b"run").unwrap(), Some(Bytes::from_static(b"state")));
    assert_eq!(store.get(Space::State, b"other").unwrap(), None);
    assert_eq!(
        store.last(Space::History, b"run/", b"run0").unwrap(),
        Some(("run/1".into(), "events".into()))
    );
    assert_eq!(store.get(Space::Timers, b"due").unwrap(), None);
}

#[test]
fn a_commit_that_a_crash_took_back_is_missing_with_its_mark() {
    let dir = tempfile::tempdir().unwrap();
    let rows = LocalRows::open(dir.path(), &memory()).unwrap();
    rows.write(&mut [(Space::State, &b"a"[..], Some(&b"1"[..]))].into_iter(), Some(b"one")).unwrap();
    drop(rows);
    let rows = LocalRows::open(dir.path(), &memory()).unwrap();
    rows.write(&mut [(Space::State, &b"a"[..], Some(&b"2"[..]))].into_iter(), Some(b"two")).unwrap();
    // A copy of the files as they are now is what a crash leaves.
    let crashed = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), crashed.path().join(entry.file_name())).unwrap();
    }
    let rows = LocalRows::open(crashed.path(), &memory()).unwrap();
    assert_eq!(rows.checkpoint().unwrap(), RowsCheckpoint::At(Some("one".into())));
    assert_eq!(rows.get(Space::State, b"a").unwrap(), Some(Bytes::from_static(b"1")));
}

#[test]
fn damage_is_named_and_the_directory_can_be_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("7");
    drop(LocalRows::open(&place, &memory()).unwrap());
    std::fs::write(place.join("CURRENT"), "MANIFEST-999999\n").unwrap();
    let damaged = LocalRows::open(&place, &memory()).map(drop);
    assert!(matches!(damaged, Err(Error::Corrupt { .. })), "{damaged:?}");
    let aside = LocalRows::set_aside(&place, "corrupt", 2).unwrap();
    assert_eq!(aside, dir.path().join("7.aside-1-corrupt"));
    let rows = LocalRows::open(&place, &memory()).unwrap();
    assert_eq!(rows.checkpoint().unwrap(), RowsCheckpoint::At(None));
    let second = LocalRows::open(&place, &memory()).map(drop);
    assert!(matches!(second, Err(Error::Io { .. })), "one process at a time: {second:?}");
}

#[test]
fn only_the_latest_directories_that_were_set_aside_stay() {
    let dir = tempfile::tempdir().unwrap();
    let names = || {
        let names = std::fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // Those of another partition stay where they are.
    std::fs::create_dir(dir.path().join("17.aside-1-old")).unwrap();
    for number in 1..=11 {
        std::fs::create_dir(dir.path().join("7")).unwrap();
        std::fs::write(dir.path().join("7").join(number.to_string()), "").unwrap();
        LocalRows::set_aside(&dir.path().join("7"), "ahead", 2).unwrap();
    }
    assert_eq!(names(), ["17.aside-1-old", "7.aside-10-ahead", "7.aside-11-ahead"]);
    std::fs::create_dir(dir.path().join("7")).unwrap();
    LocalRows::set_aside(&dir.path().join("7"), "old", 0).unwrap();
    assert_eq!(names(), ["17.aside-1-old"]);
}
