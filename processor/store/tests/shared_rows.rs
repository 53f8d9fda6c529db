//! The rows of a database are read in key order, within their bounds, and under what is changed in memory.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::sync::Arc;

use bytes::Bytes;
use everlog_store::{Base, Error, SharedRows, Space, Store};
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
    let db = open(dir.path(), &["changelog", "history", "timers"]);
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
    let db = open(dir.path(), &["changelog", "history", "timers"]);
    let family = db.cf_handle("changelog").unwrap();
    db.put_cf(family, "key", "value ".repeat(50)).unwrap();
    db.flush_cf(family).unwrap();
    drop(db);
    let table = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let table = table.filter(|path| path.extension().is_some_and(|kind| kind == "sst")).max().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let rows = SharedRows::new(open(dir.path(), &["changelog", "history", "timers"])).unwrap();
    assert!(matches!(rows.get(Space::State, b"key"), Err(Error::Corrupt { .. })));
    assert!(matches!(rows.scan(Space::State, b"", b"z", &mut |_, _| true), Err(Error::Corrupt { .. })));
}
