//! Lists and counts while runs begin, change, close and go, between two pages and between two slices of one.

use std::collections::{BTreeMap, BTreeSet};

use everlog_visibility::index::{
    CountRequest, CountScan, ListPage, ListPosition, ListRequest, ListScan, OrderKey, merge,
};
use everlog_visibility::query::{Filter, SortOrder};
use everlog_visibility::record::Record;
use uuid::Uuid;

use crate::model::{NAMESPACES, Partition, Scans, grouped, sorted_by};
use crate::queries;
use crate::random::Random;
use crate::still::texts;

/// A list that is read while things happen, with what it has to be.
struct Walk<'a> {
    partitions: &'a mut Vec<Partition>,
    namespace_id: Uuid,
    filter: &'a Filter,
    order: Option<SortOrder>,
    positions: Vec<ListPosition>,
    /// Runs that matched when it began, and ever since.
    due: BTreeSet<String>,
    /// Runs that existed when it began, as they were.
    begun: BTreeMap<String, Record>,
    /// Every record of a run since then.
    shown: BTreeMap<String, Vec<Record>>,
    found: Vec<String>,
    has_come: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn begin(
        partitions: &'a mut Vec<Partition>,
        (namespace_id, filter, order): (Uuid, &'a Filter, Option<SortOrder>),
    ) -> Self {
        let positions = partitions.iter().map(|partition| partition.position).collect();
        let mut walk = Self {
            partitions,
            namespace_id,
            filter,
            order,
            positions,
            due: BTreeSet::new(),
            begun: BTreeMap::new(),
            shown: BTreeMap::new(),
            found: Vec::new(),
            has_come: BTreeSet::new(),
        };
        for record in walk.records() {
            walk.begun.insert(record.run_id.clone(), record);
        }
        let matching = walk.begun.values().filter(|record| filter.matches(*record));
        walk.due = matching.map(|record| record.run_id.clone()).collect();
        walk.look();
        walk
    }

    fn records(&self) -> Vec<Record> {
        let runs = self.partitions.iter().flat_map(|partition| partition.runs.values());
        runs.filter(|run| run.0 == self.namespace_id).map(|run| run.1.clone()).collect()
    }

    /// What there is now: what stopped matching need not come.
    fn look(&mut self) {
        let now = self.records();
        let matching: BTreeSet<_> = now
            .iter()
            .filter(|record| self.filter.matches(*record))
            .map(|record| record.run_id.clone())
            .collect();
        self.due.retain(|run_id| matching.contains(run_id) || self.has_come.contains(run_id));
        for record in now {
            let shown = self.shown.entry(record.run_id.clone()).or_default();
            if shown.last() != Some(&record) {
                shown.push(record);
            }
        }
    }

    fn happen(&mut self, place: usize, acts: usize, lists: Vec<&mut ListScan>, random: &mut Random) {
        let mut scans = Scans { lists, ..Scans::default() };
        self.partitions[place].live(random, acts, &mut scans);
        self.look();
    }

    fn ask(&mut self, place: usize, after: Option<OrderKey>, random: &mut Random) -> ListPage {
        let mut list = ListScan::new(ListRequest {
            namespace_id: self.namespace_id,
            filter: self.filter.clone(),
            order: self.order,
            position: self.positions[place],
            after,
            rows_max: 1 + random.below(7),
            bytes_max: if random.once_in(4) { 300 } else { usize::MAX },
            visits_max: if random.once_in(4) { 1 + random.below(20) } else { usize::MAX },
        });
        // Short slices, of which a page has many, are where a list depends on what it is told.
        let slice_rows = if self.begun.len() < 30 { 4 } else { 100 };
        loop {
            if random.once_in(3) {
                let acts = random.below(4);
                self.happen(place, acts, vec![&mut list], random);
            }
            let page = list
                .read(&self.partitions[place].rows, 1 + random.below(slice_rows))
                .expect("the rows are read");
            if let Some(page) = page {
                return page;
            }
        }
    }

    fn read(&mut self, random: &mut Random) {
        let mut after = None;
        loop {
            let places = 0..self.partitions.len();
            let mut pages: Vec<_> = places.map(|place| self.ask(place, after, random)).collect();
            let merged = merge(&mut pages, 1 + random.below(9));
            for run in merged.runs {
                let run_id = run.record.run_id.clone();
                assert!(self.has_come.insert(run_id.clone()), "{run_id} comes twice");
                assert!(self.begun.contains_key(&run_id), "{run_id} had not begun");
                assert!(self.shown[&run_id].contains(&run.record), "{run_id} never was so");
                assert!(self.filter.matches(&run.record), "{run_id} does not match");
                self.found.push(run_id);
            }
            let Some(next) = merged.next else { break };
            assert!(after.is_none_or(|after| next > after), "the list stands still");
            after = Some(next);
            let place = random.below(self.partitions.len());
            let acts = random.below(12);
            self.happen(place, acts, Vec::new(), random);
        }
    }

    fn check(&self) {
        let missing: Vec<_> = self.due.difference(&self.has_come).collect();
        assert!(missing.is_empty(), "{missing:?} do not come: {:?} {:?}", self.filter, self.order);
        let stood = |run_id: &String| sorted_by(&self.begun[run_id], self.order);
        assert!(self.found.is_sorted_by_key(stood), "they stand where they stood when the list began");
    }
}

#[test]
fn each_run_that_matched_comes_once_whatever_happens_meanwhile() {
    let mut moved = 0;
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let mut partitions: Vec<_> = (0..2).map(Partition::new).collect();
        for partition in &mut partitions {
            let acts = if random.once_in(4) { 120 } else { 25 };
            partition.live(&mut random, acts, &mut Scans::default());
        }
        for _ in 0..8 {
            let namespace_id = *random.of(&NAMESPACES);
            let filter = queries::filter(&mut random);
            let order = queries::order(&mut random);
            let mut walk = Walk::begin(&mut partitions, (namespace_id, &filter, order));
            walk.read(&mut random);
            walk.check();
            let has_closed = |run_id: &&String| {
                let now = walk.partitions.iter().flat_map(|partition| partition.runs.values());
                let mut now = now.filter(|run| run.1.run_id == **run_id);
                walk.begun[*run_id].is_open() && now.any(|run| !run.1.is_open())
            };
            moved += walk.found.iter().filter(has_closed).count();
        }
    }
    assert!(moved > 300, "{moved} runs closed while their list was read");
}

#[test]
fn a_count_is_exact_as_of_its_last_slice() {
    for seed in 1..=60 {
        let mut random = Random::new(seed);
        let mut partitions = vec![Partition::new(0)];
        let acts = if random.once_in(4) { 300 } else { 80 };
        partitions[0].live(&mut random, acts, &mut Scans::default());
        for _ in 0..25 {
            let namespace_id = *random.of(&NAMESPACES);
            let filter = queries::filter(&mut random);
            let group_by = queries::group_by(&mut random);
            let mut count = CountScan::new(CountRequest {
                namespace_id,
                filter: filter.clone(),
                group_by: Some(group_by.clone()),
                groups_max: 1_000,
            });
            let counts = loop {
                if random.once_in(4) {
                    let acts = random.below(6);
                    let mut scans = Scans { counts: vec![&mut count], ..Scans::default() };
                    partitions[0].live(&mut random, acts, &mut scans);
                }
                let counts =
                    count.read(&partitions[0].rows, 1 + random.below(30)).expect("the rows are read");
                if let Some(counts) = counts {
                    break counts;
                }
            };
            assert_eq!(
                counts.count,
                partitions[0].matching(namespace_id, &filter).count() as i64,
                "{filter:?}"
            );
            assert_eq!(counts.count, counts.groups.values().sum::<i64>());
            assert_eq!(texts(&counts), grouped(&partitions, namespace_id, &filter, &group_by), "{filter:?}");
        }
    }
}
