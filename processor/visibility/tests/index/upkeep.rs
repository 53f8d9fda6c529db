//! Keeping the index: what a commit writes, making it anew, deriving rows again, and finding what is wrong with it.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::api_types::Status;
use everlog_visibility::index::{
    CounterChanges, IndexDifference, IndexFormat, IndexRows, WriteIndexRows, change, check, stale_row,
    stale_runs,
};
use everlog_visibility::record::Record;
use uuid::Uuid;

use crate::model::{NAMESPACES, Partition, Scans, set};
use crate::random::Random;
use crate::rows::StoreRows;

fn run() -> Record {
    Record {
        workflow_id: "order-1".into(),
        run_id: Uuid::from_u128(9).to_string(),
        workflow_type: "Order".into(),
        task_queue: "orders".into(),
        status: Status::Running.into(),
        start_ms: 5,
        ..Record::default()
    }
}

fn closed() -> Record {
    Record { status: Status::Completed.into(), close_ms: 9, close_offset: 3, ..run() }
}

/// Rows that a commit puts, and those that it deletes.
fn committed(rows: &mut StoreRows) -> (usize, usize) {
    let changes = rows.0.begin_commit();
    rows.0.committed(None).expect("the rows are written");
    let deleted = changes.iter().filter(|(_, _, value)| value.is_none()).count();
    (changes.len() - deleted, deleted)
}

fn apply(rows: &mut StoreRows, before: Option<&Record>, after: Option<&Record>) {
    let mut counters = CounterChanges::default();
    change(NAMESPACES[0], before, after, rows, &mut counters);
    counters.flush(rows).expect("counters are sound");
}

/// Entry, run, start, a counter; and lookups by type, queue and Workflow Id, of a closed run by its status.
#[test]
fn a_commit_writes_the_rows_that_differ_and_no_others() {
    let mut rows = StoreRows::new();
    apply(&mut rows, None, Some(&run()));
    assert_eq!(committed(&mut rows), (7, 0), "a start");
    apply(&mut rows, Some(&run()), Some(&run()));
    assert_eq!(committed(&mut rows), (0, 0), "nothing");
    let mut tagged = run();
    set(&mut tagged, "K", "\"a\"", "Keyword");
    apply(&mut rows, Some(&run()), Some(&tagged));
    assert_eq!(committed(&mut rows), (2, 0), "an upsert: the entry and a lookup");
    apply(&mut rows, Some(&tagged), Some(&closed()));
    assert_eq!(committed(&mut rows), (7, 6), "a close: the start stays");
    apply(&mut rows, Some(&closed()), None);
    assert_eq!(committed(&mut rows), (0, 8), "a deletion");
    assert_eq!(rows.all(), []);
}

#[test]
fn a_run_that_begins_and_closes_within_a_commit_has_its_closed_rows_alone() {
    let mut rows = StoreRows::new();
    apply(&mut rows, None, Some(&closed()));
    assert_eq!(committed(&mut rows), (8, 0));
    // The same where a list was read in between.
    let mut read = StoreRows::new();
    apply(&mut read, None, Some(&run()));
    apply(&mut read, Some(&run()), Some(&closed()));
    assert_eq!(committed(&mut read), (8, 0));
    assert_eq!(read.all(), rows.all());
}

fn records(partition: &Partition) -> impl Iterator<Item = (Uuid, Record)> + '_ {
    partition.runs.values().cloned()
}

#[test]
fn the_index_is_what_the_state_says_at_every_moment() {
    for seed in 1..=10 {
        let mut random = Random::new(seed);
        let mut partition = Partition::new(0);
        for _ in 0..40 {
            partition.live(&mut random, 10, &mut Scans::default());
            assert_eq!(check(records(&partition), &partition.rows, 10).unwrap(), []);
        }
    }
}

/// The key of a run in the state.
fn run_key(namespace_id: Uuid, run_id: Uuid) -> Bytes {
    [&[0, 7][..], namespace_id.as_bytes(), run_id.as_bytes()].concat().into()
}

/// Rows of runs, without what is said of the index as a whole.
fn of_runs(rows: &StoreRows) -> Vec<(Bytes, Bytes)> {
    rows.all().into_iter().filter(|(key, _)| key[0] > 2).collect()
}

#[test]
fn an_index_that_is_made_anew_is_the_one_that_was_kept() {
    for seed in 1..=30 {
        let mut random = Random::new(seed);
        let mut partition = Partition::new(0);
        partition.live(&mut random, 150, &mut Scans::default());
        let (mut rows, mut counters) = (StoreRows::new(), CounterChanges::default());
        // What an older release has left.
        for number in 0..50_u8 {
            rows.put_new(vec![3 + number % 5, number].into(), Bytes::from_static(b"old"));
        }
        let mut format = IndexFormat::read(&rows).unwrap();
        assert!(!format.is_complete());
        while !format.clear(&mut rows, 1 + random.below(9)).unwrap() {
            assert_eq!(
                IndexFormat::read(&rows).unwrap(),
                format,
                "another process goes on where this one was"
            );
        }
        assert_eq!(of_runs(&rows), [], "nothing of it is left");
        while !format.is_complete() {
            let next: Vec<_> = partition
                .runs
                .iter()
                .map(|(run_id, run)| (run_key(run.0, *run_id), run.clone()))
                .collect::<BTreeMap<_, _>>()
                .into_iter()
                .filter(|(key, _)| !format.has(key))
                .collect();
            let slice = 1 + random.below(9);
            let runs = next.iter().take(slice).map(|(key, run)| (&key[..], run.0, &run.1));
            format.derive(runs, next.len() <= slice, &mut rows, &mut counters);
            let before = partition.runs.clone();
            let acts = random.below(6);
            partition.live(&mut random, acts, &mut Scans::default());
            // What every change of a run does meanwhile.
            let both = before.keys().chain(partition.runs.keys());
            for run_id in both.collect::<std::collections::BTreeSet<_>>() {
                let (before, after) = (before.get(run_id), partition.runs.get(run_id));
                let namespace_id = before.or(after).unwrap().0;
                if format.has(&run_key(namespace_id, *run_id)) {
                    let (before, after) = (before.map(|run| &run.1), after.map(|run| &run.1));
                    change(namespace_id, before, after, &mut rows, &mut counters);
                }
            }
            counters.flush(&mut rows).unwrap();
            let read = IndexFormat::read(&rows).unwrap();
            assert_eq!(read, format, "it goes on after a crash");
        }
        assert_eq!(of_runs(&rows), of_runs(&partition.rows));
        assert_eq!(check(records(&partition), &rows, 10).unwrap(), []);
    }
}

#[test]
fn rows_that_are_derived_again_are_those_that_were_kept() {
    for seed in 1..=30 {
        let mut random = Random::new(seed);
        let mut partition = Partition::new(0);
        partition.live(&mut random, 150, &mut Scans::default());
        let (mut rows, mut counters) = (StoreRows::new(), CounterChanges::default());
        for (key, value) in partition.rows.all() {
            rows.put_new(key, value);
        }
        let before = partition.runs.clone();
        partition.live(&mut random, 150, &mut Scans::default());
        // A restore brings rows of runs, and knows no more of them; not all have changed.
        for (run_id, run) in before.iter().chain(&partition.runs) {
            if partition.runs.get(run_id) != before.get(run_id) || random.once_in(5) {
                let (key, value) = stale_row(&run_key(run.0, *run_id));
                rows.0.put(everlog_store::Space::Index, key, value);
            }
        }
        loop {
            let keys = stale_runs(&rows, 1 + random.below(9)).unwrap();
            if keys.is_empty() {
                break;
            }
            for key in keys {
                let id = |from: usize| Uuid::from_slice(&key[from..from + 16]).unwrap();
                let (namespace_id, run_id) = (id(2), id(18));
                let after = partition.runs.get(&run_id).map(|run| &run.1);
                let format = IndexFormat::complete();
                format.refresh(&key, (namespace_id, run_id), after, &mut rows, &mut counters).unwrap();
            }
            counters.flush(&mut rows).unwrap();
        }
        assert_eq!(rows.all(), partition.rows.all());
    }
}

/// Each damage of a single row is a difference, and names the row, or the run that it belongs to.
#[test]
fn a_row_that_is_missing_changed_or_one_too_many_is_found() {
    let mut random = Random::new(1);
    let mut partition = Partition::new(0);
    partition.live(&mut random, 120, &mut Scans::default());
    let records: Vec<_> = records(&partition).collect();
    let differences = |rows: &StoreRows| check(records.iter().cloned(), rows, 100).unwrap();
    let named = |differences: &[IndexDifference], key: &Bytes| {
        differences.iter().any(|difference| match difference {
            IndexDifference::Row { key: named, .. }
            | IndexDifference::Surplus { key: named }
            | IndexDifference::Counter { key: named, .. } => named == key,
        })
    };
    assert_eq!(differences(&partition.rows), []);
    for (key, value) in partition.rows.all() {
        partition.rows.delete(key.clone());
        assert!(named(&differences(&partition.rows), &key), "{key:?} is missing");
        let mut changed = value.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        partition.rows.put_new(key.clone(), changed.into());
        assert!(named(&differences(&partition.rows), &key), "{key:?} says something else");
        partition.rows.put(key.clone(), value.clone());
        let mut next = key.to_vec();
        *next.last_mut().unwrap() ^= 1;
        let next = Bytes::from(next);
        if partition.rows.get(&next).unwrap().is_some() {
            continue;
        }
        partition.rows.put_new(next.clone(), value);
        assert!(named(&differences(&partition.rows), &next), "{next:?} is one too many");
        partition.rows.delete(next);
    }
    assert_eq!(differences(&partition.rows), []);
}
