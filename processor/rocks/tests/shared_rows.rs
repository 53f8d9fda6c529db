//! The rows of a database are read in key order, within their bounds, and under what is changed in memory.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::sync::Arc;

use bytes::Bytes;
use everlog_rocks::rows::SharedRows;
use everlog_store::{CommittedRows, Error, Seek, Space, Store};
use rocksdb::{DB, Options};

fn open(dir: &std::path::Path, families: &[&str]) -> Arc<DB> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    Arc::new(DB::open_cf(&options, dir, families).unwrap())
}

fn keys(base: &Store<SharedRows>, space: Space, from: &str, to: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        keys.push(format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value)));
        true
    };
    base.scan(space, from.as_bytes(), to.as_bytes(), &mut visit).unwrap();
    keys
}

#[test]
fn rows_of_the_database_stand_below_the_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &["changelog", "history", "timers", "index"]);
    for key in ["a", "b", "c", "d"] {
        db.put_cf(db.cf_handle("changelog").unwrap(), key, "1").unwrap();
        db.put_cf(db.cf_handle("timers").unwrap(), key, "due").unwrap();
    }
    let mut store = Store::new(SharedRows::new(Arc::clone(&db)).unwrap());
    store.put(Space::State, "b".into(), "2".into());
    store.delete(Space::State, "c".into());
    store.put_new(Space::State, "bb".into(), "3".into());
    assert_eq!(keys(&store, Space::State, "a", "d"), ["a=1", "b=2", "bb=3"]);
    assert_eq!(keys(&store, Space::Timers, "b", "c"), ["b=due"]);
    assert_eq!(keys(&store, Space::History, "", "z"), [""; 0]);
    assert_eq!(keys(&store, Space::State, "d", "a"), [""; 0]);
    assert_eq!(store.get(Space::State, b"c").unwrap(), None);
    assert_eq!(store.get(Space::State, b"d").unwrap(), Some(Bytes::from_static(b"1")));
    for (_, key, value) in store.begin_commit() {
        let family = db.cf_handle("changelog").unwrap();
        match value {
            Some(value) => db.put_cf(family, key, value).unwrap(),
            None => db.delete_cf(family, key).unwrap(),
        }
    }
    store.committed(None).unwrap();
    assert_eq!(store.overlay_bytes(), 0);
    assert_eq!(keys(&store, Space::State, "a", "z"), ["a=1", "b=2", "bb=3", "d=1"]);
}

#[test]
fn a_database_without_the_column_families_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let rows = SharedRows::new(open(dir.path(), &["changelog"]));
    assert!(matches!(rows.map(drop), Err(Error::Io { .. })));
}

#[test]
fn a_flipped_byte_in_a_table_is_an_error_and_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &["changelog", "history", "timers", "index"]);
    let family = db.cf_handle("changelog").unwrap();
    db.put_cf(family, "key", "value ".repeat(50)).unwrap();
    db.flush_cf(family).unwrap();
    drop(db);
    let table = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let table = table.filter(|path| path.extension().is_some_and(|kind| kind == "sst")).max().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let rows = SharedRows::new(open(dir.path(), &["changelog", "history", "timers", "index"])).unwrap();
    assert!(matches!(rows.get(Space::State, b"key"), Err(Error::Corrupt { .. })));
    assert!(matches!(rows.scan(Space::State, b"", b"z", &mut |_, _| true), Err(Error::Corrupt { .. })));
}

#[test]
fn a_skim_finds_what_a_scan_does_wherever_it_passes_rows_over() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &["changelog", "history", "timers", "index"]);
    let timers = db.cf_handle("timers").unwrap();
    let row = |group: u32, place: u32| format!("{group:03}-{place:03}");
    for group in 0..200 {
        // From none to many in a group: rows are passed one by one, and by seeks.
        (0..group % 40).for_each(|place| db.put_cf(timers, row(group, place), "due").unwrap());
    }
    let mut store = Store::new(SharedRows::new(Arc::clone(&db)).unwrap());
    for group in (0..200).step_by(3) {
        store.put(Space::Timers, row(group, 7).into(), "changed".into());
        store.put_new(Space::Timers, row(group, 900).into(), "new".into());
        store.delete(Space::Timers, row(group, 5).into());
    }
    let wanted = |key: &str| (5..9).contains(&key[4..].parse::<u32>().unwrap());
    let mut scanned = keys(&store, Space::Timers, "010", "190");
    scanned.iter_mut().for_each(|row| row.truncate(7));
    scanned.retain(|key| wanted(key));
    for most in [usize::MAX, 100, 1] {
        let (mut skimmed, mut visited) = (Vec::new(), 0);
        let mut visit = |key: &[u8]| {
            visited += 1;
            let key = String::from_utf8(key.to_vec()).unwrap();
            let (group, place): (u32, u32) = (key[..3].parse().unwrap(), key[4..].parse().unwrap());
            if place < 5 {
                return Seek::At(row(group, 5).into());
            }
            if place >= 9 {
                return Seek::At(row(group + 1, 5).into());
            }
            skimmed.push(key);
            if skimmed.len() < most { Seek::Next } else { Seek::End }
        };
        store.seek_scan(Space::Timers, b"010", b"190", &mut visit).unwrap();
        assert_eq!(skimmed, scanned[..most.min(scanned.len())]);
        assert!(most < usize::MAX || visited < 4 * scanned.len(), "{visited} rows for {}", scanned.len());
    }
    assert!(scanned.len() > 300, "{}", scanned.len());
}
