//! The overlay behaves like one ordered map, whatever is active, being committed or in the base.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_store::{CommittedRows, MemoryRows, RowsCheckpoint, Space, Store};

const SPACES: [Space; 4] = Space::ALL;

fn key(n: u64) -> Bytes {
    Bytes::from(format!("{n:03}"))
}

fn rows(store: &Store<MemoryRows>, space: Space, from: &[u8], to: &[u8]) -> Vec<(Bytes, Bytes)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        true
    };
    store.scan(space, from, to, &mut visit).unwrap();
    found
}

#[test]
fn a_key_made_and_deleted_before_a_commit_leaves_nothing_to_write() {
    let mut store = Store::new(MemoryRows::default());
    store.put_new(Space::Timers, key(1), "due".into());
    store.put(Space::Timers, key(1), "due later".into());
    store.delete(Space::Timers, key(1));
    assert_eq!(store.overlay_bytes(), 0);
    assert!(store.begin_commit().is_empty());
}

#[test]
fn a_key_that_is_being_committed_needs_its_tombstone() {
    let mut store = Store::new(MemoryRows::default());
    store.put_new(Space::Timers, key(1), "due".into());
    assert_eq!(store.begin_commit().len(), 1);
    store.delete(Space::Timers, key(1));
    assert_eq!(store.get(Space::Timers, &key(1)).unwrap(), None);
    store.committed(None).unwrap();
    assert_eq!(store.begin_commit(), [(Space::Timers, key(1), None)]);
}

#[test]
fn a_failed_commit_that_was_deleted_meanwhile_leaves_nothing_to_write() {
    let mut store = Store::new(MemoryRows::default());
    store.put_new(Space::Timers, key(1), "due".into());
    store.put_new(Space::Timers, key(2), "due".into());
    assert_eq!(store.begin_commit().len(), 2);
    store.delete(Space::Timers, key(1));
    store.commit_failed();
    assert_eq!(store.begin_commit(), [(Space::Timers, key(2), Some("due".into()))]);
}

#[test]
fn a_visitor_stops_the_scan_in_any_layer() {
    let base = MemoryRows::default();
    let mut store = Store::new(base.clone());
    for n in 0..9 {
        match n % 3 {
            0 => base.apply(vec![(Space::State, key(n), Some("base".into()))]),
            1 => store.put(Space::State, key(n), "committing".into()),
            _ => {}
        }
    }
    store.begin_commit();
    (0..9).filter(|n| n % 3 == 2).for_each(|n| store.put(Space::State, key(n), "active".into()));
    for wanted in 1..=9 {
        let mut seen = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            seen.push(Bytes::copy_from_slice(key));
            seen.len() < wanted
        };
        store.scan(Space::State, b"", b"~", &mut visit).unwrap();
        assert_eq!(seen, (0..wanted as u64).map(key).collect::<Vec<_>>());
    }
}

/// Random changes and commits against a plain map; after every step every read must agree.
#[test]
fn an_overlay_reads_like_one_map() {
    for seed in 1..=60u64 {
        let mut random = Random(seed);
        let base = MemoryRows::default();
        let mut store = Store::new(base.clone());
        let mut model: BTreeMap<(Space, Bytes), Bytes> = BTreeMap::new();
        let mut under_way = None;
        for step in 0..400u64 {
            let space = SPACES[random.below(4) as usize];
            let key = key(random.below(24));
            let value = Bytes::from(format!("{step}"));
            match random.below(10) {
                0..=3 => {
                    let known = model.insert((space, key.clone()), value.clone()).is_some();
                    // A key without a row may still have a tombstone in a layer: that is no reason to call it new.
                    if known { store.put(space, key, value) } else { store.put_new(space, key, value) }
                }
                4..=6 => {
                    model.remove(&(space, key.clone()));
                    store.delete(space, key);
                }
                7 if under_way.is_none() => under_way = Some(store.begin_commit()),
                8 if under_way.take().is_some() => {
                    store.committed(Some(step.to_string().as_bytes())).unwrap();
                    assert_eq!(base.checkpoint().unwrap(), RowsCheckpoint::At(Some(step.to_string().into())));
                }
                9 if under_way.take().is_some() => store.commit_failed(),
                _ => {}
            }
            for space in SPACES {
                let (from, to) = (crate::key(random.below(12)), crate::key(12 + random.below(14)));
                let expected: Vec<_> = model
                    .range((space, from.clone())..(space, to.clone()))
                    .map(|((_, k), v)| (k.clone(), v.clone()))
                    .collect();
                assert_eq!(rows(&store, space, &from, &to), expected, "seed {seed}, step {step}");
                let some = crate::key(random.below(24));
                assert_eq!(
                    store.get(space, &some).unwrap().as_ref(),
                    model.get(&(space, some)),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}

fn appended(store: &Store<MemoryRows>, from: &[u8]) -> Vec<(Bytes, Bytes)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        true
    };
    store.scan_appended(Space::History, from, b"~", &mut visit).unwrap();
    found
}

#[test]
fn what_is_appended_behind_a_change_is_not_sought_in_the_base() {
    let base = MemoryRows::default();
    let mut store = Store::new(base.clone());
    store.put_new(Space::History, key(1), "committing".into());
    store.begin_commit();
    store.put_new(Space::History, key(2), "active".into());
    // It cannot be there in life: it tells who was asked.
    base.apply(vec![(Space::History, key(3), Some("base".into()))]);
    assert_eq!(appended(&store, &key(1)).len(), 2);
    assert_eq!(appended(&store, &key(2)).len(), 1);
    assert_eq!(appended(&store, &key(0)).len(), 3);
    store.committed(None).unwrap();
    assert_eq!(appended(&store, &key(1)).len(), 3);
}

/// A list that only grows, and is forgotten from its beginning on, reads alike in both ways from whatever row on.
#[test]
fn what_is_appended_is_read_as_a_scan_reads_it() {
    for seed in 1..=60u64 {
        let mut random = Random(seed);
        let mut store = Store::new(MemoryRows::default());
        let (mut first, mut next, mut under_way) = (0, 0, false);
        for _ in 0..300u64 {
            match random.below(8) {
                0..=3 => {
                    store.put_new(Space::History, key(next), "batch".into());
                    next += 1;
                }
                4 => {
                    let end = next.min(first + random.below(4));
                    (first..end).for_each(|n| store.delete(Space::History, key(n)));
                    first = end;
                }
                5 if !under_way => {
                    store.begin_commit();
                    under_way = true;
                }
                6 if std::mem::take(&mut under_way) => store.committed(None).unwrap(),
                7 if std::mem::take(&mut under_way) => store.commit_failed(),
                _ => {}
            }
            let from = key(random.below(next + 2));
            assert_eq!(appended(&store, &from), rows(&store, Space::History, &from, b"~"), "seed {seed}");
        }
    }
}

/// xorshift: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
