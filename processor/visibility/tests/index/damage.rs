//! Rows that the index never wrote: an error or some answer, never a stop.

use bytes::Bytes;
use everlog_store::{MemoryRows, Space, Store};
use everlog_visibility::index::{CountRequest, CountScan, ListRequest, ListScan, check, indexed};
use uuid::Uuid;

use crate::model::{NAMESPACES, Partition, Scans};
use crate::queries;
use crate::random::Random;
use crate::rows::StoreRows;

fn read_all(rows: &StoreRows, random: &mut Random) -> (usize, usize) {
    let (mut answers, mut errors) = (0, 0);
    for _ in 0..12 {
        let namespace_id = *random.of(&NAMESPACES);
        let filter = queries::filter(random);
        let order = queries::order(random);
        let mut list = ListScan::new(ListRequest {
            namespace_id,
            filter: filter.clone(),
            order,
            position: everlog_visibility::index::ListPosition::END,
            after: None,
            rows_max: 10,
            bytes_max: usize::MAX,
            visits_max: 1_000,
        });
        let mut count = CountScan::new(CountRequest {
            namespace_id,
            filter,
            group_by: random.once_in(2).then(|| queries::group_by(random)),
            groups_max: 100,
        });
        let read = [list.read(rows, 10_000).map(|_| ()), count.read(rows, 10_000).map(|_| ())];
        answers += read.iter().filter(|read| read.is_ok()).count();
        errors += read.iter().filter(|read| read.is_err()).count();
    }
    (answers, errors)
}

#[test]
fn damaged_rows_are_an_error_or_some_answer() {
    let (mut answers, mut errors) = (0, 0);
    for seed in 1..=150 {
        let mut random = Random::new(seed);
        let mut partition = Partition::new(0);
        partition.live(&mut random, 60, &mut Scans::default());
        let base = MemoryRows::default();
        let mut changes = Vec::new();
        for (key, value) in partition.rows.all() {
            let (mut key, mut value) = (key.to_vec(), value.to_vec());
            if random.once_in(10) {
                let bytes = if random.once_in(2) { &mut key } else { &mut value };
                match random.below(4) {
                    0 => bytes.truncate(random.below(bytes.len())),
                    1 => bytes.push(random.next() as u8),
                    _flip => {
                        let place = random.below(bytes.len());
                        bytes[place] = random.next() as u8;
                    }
                }
            }
            changes.push((Space::Index, Bytes::from(key), Some(Bytes::from(value))));
        }
        base.apply(changes);
        let rows = StoreRows(Store::new(base));
        let (answered, failed) = read_all(&rows, &mut random);
        (answers, errors) = (answers + answered, errors + failed);
        let runs: Vec<_> = partition.runs.values().cloned().collect();
        let _differences = check(runs.iter().cloned(), &rows, 1_000).unwrap();
        for (namespace_id, record) in &runs {
            let run_id = Uuid::parse_str(&record.run_id).unwrap();
            let _any = indexed(&rows, *namespace_id, run_id);
        }
    }
    assert!(answers > 500 && errors > 100, "{answers} answers, {errors} errors");
}
