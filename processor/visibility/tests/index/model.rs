//! Partitions of runs that begin, change, close and go, with their indexes, and what lists and counts of them have to be.

use std::collections::BTreeMap;

use everlog_engine::api_types::{MapEntry, Status};
use everlog_engine::payload::Payload;
use everlog_visibility::attribute::{Attribute, SystemAttribute};
use everlog_visibility::index::{CountScan, CounterChanges, ListPosition, ListScan, change};
use everlog_visibility::query::{Filter, SortOrder};
use everlog_visibility::record::{Record, Values};
use everlog_visibility::value::Value;
use prost::Message;
use uuid::Uuid;

use crate::random::Random;
use crate::rows::StoreRows;

pub const NAMESPACES: [Uuid; 2] = [Uuid::from_u128(0xa), Uuid::from_u128(u128::MAX - 5)];
pub const LONG: &str = "looooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooong";

/// A partition: what its runs are, and what its index has been told.
pub struct Partition {
    pub rows: StoreRows,
    pub runs: BTreeMap<Uuid, (Uuid, Record)>,
    /// Runs that have changed since the index was told, as they were.
    dirty: BTreeMap<Uuid, Option<(Uuid, Record)>>,
    counters: CounterChanges,
    pub position: ListPosition,
    /// Runs that were begun.
    begun: u64,
    number: u64,
}

/// Lists and counts under way on one partition.
#[derive(Default)]
pub struct Scans<'a> {
    pub lists: Vec<&'a mut ListScan>,
    pub counts: Vec<&'a mut CountScan>,
}

impl Partition {
    pub fn new(number: u64) -> Self {
        Self {
            rows: StoreRows::new(),
            runs: BTreeMap::new(),
            dirty: BTreeMap::new(),
            counters: CounterChanges::default(),
            position: ListPosition { offset: number * 3, ms: 100 },
            begun: 0,
            number,
        }
    }

    /// Something happens to some run.
    pub fn act(&mut self, random: &mut Random) {
        if random.once_in(3) {
            self.position.ms += random.below(4) as i64;
        }
        let offset = self.position.offset;
        self.position.offset += 1;
        match random.below(12) {
            0..=4 => self.start(random, offset),
            5..=7 => self.close(random, offset),
            8 => {
                self.start(random, offset);
                self.close_latest(random, offset);
            }
            9..=10 => self.upsert(random),
            _delete => self.delete(random),
        }
    }

    fn start(&mut self, random: &mut Random, offset: u64) {
        self.begun += 1;
        let run_id = run_id(self.number, self.begun);
        let mut record = Record {
            workflow_id: random.of(&["order-1", "order-2", "order\0", "pay", LONG]).to_string(),
            run_id: run_id.to_string(),
            workflow_type: random.of(&["Order", "Pay", "O"]).to_string(),
            task_queue: random.of(&["q", "r"]).to_string(),
            status: Status::Running.into(),
            start_ms: self.position.ms,
            execution_ms: self.position.ms + random.below(3) as i64,
            start_offset: offset,
            ..Record::default()
        };
        if random.once_in(30) {
            record.status = 8;
        }
        if random.once_in(3) {
            record.parent_workflow_id = "order-1".into();
            record.parent_run_id = Uuid::from_u128(1).to_string();
            record.root_workflow_id = random.of(&["order-1", "root"]).to_string();
            record.root_run_id = Uuid::from_u128(2).to_string();
        }
        for _ in 0..random.below(4) {
            set_random(&mut record, random);
        }
        let namespace_id = NAMESPACES[usize::from(random.once_in(4))];
        self.put(run_id, Some((namespace_id, record)));
    }

    fn close(&mut self, random: &mut Random, offset: u64) {
        let open = self.runs.iter().filter(|(_, (_, record))| record.is_open());
        let open: Vec<_> = open.map(|(run_id, _)| *run_id).collect();
        if !open.is_empty() {
            let run_id = *random.of(&open);
            self.close_run(random, offset, run_id);
        }
    }

    fn close_latest(&mut self, random: &mut Random, offset: u64) {
        let latest = self.runs.iter().max_by_key(|(run_id, _)| run_id.as_u128() as u64);
        let run_id = *latest.expect("one was begun").0;
        self.close_run(random, offset, run_id);
    }

    fn close_run(&mut self, random: &mut Random, offset: u64, run_id: Uuid) {
        let (namespace_id, mut record) = self.runs[&run_id].clone();
        record.status = 2 + random.below(6) as i32;
        (record.close_ms, record.close_offset) = (self.position.ms, offset);
        record.history_length = 3 + random.below(9) as i64;
        self.put(run_id, Some((namespace_id, record)));
    }

    fn upsert(&mut self, random: &mut Random) {
        let open: Vec<_> =
            self.runs.iter().filter(|(_, (_, record))| record.is_open()).map(|(run_id, _)| *run_id).collect();
        if !open.is_empty() {
            let run_id = *random.of(&open);
            let (namespace_id, mut record) = self.runs[&run_id].clone();
            set_random(&mut record, random);
            self.put(run_id, Some((namespace_id, record)));
        }
    }

    fn delete(&mut self, random: &mut Random) {
        let runs: Vec<_> = self.runs.keys().copied().collect();
        if !runs.is_empty() {
            self.put(*random.of(&runs), None);
        }
    }

    fn put(&mut self, run_id: Uuid, run: Option<(Uuid, Record)>) {
        let before = match run {
            Some(run) => self.runs.insert(run_id, run),
            None => self.runs.remove(&run_id),
        };
        self.dirty.entry(run_id).or_insert(before);
    }

    /// Tells the index, and what reads it, of all that has changed.
    pub fn flush(&mut self, scans: &mut Scans<'_>) {
        for (run_id, before) in std::mem::take(&mut self.dirty) {
            let after = self.runs.get(&run_id);
            let Some((namespace_id, _)) = before.as_ref().or(after) else { continue };
            let (before, after) = (before.as_ref().map(|run| &run.1), after.map(|run| &run.1));
            change(*namespace_id, before, after, &mut self.rows, &mut self.counters);
            for list in &mut scans.lists {
                list.changed(*namespace_id, after);
            }
            for count in &mut scans.counts {
                count.changed(*namespace_id, before, after);
            }
        }
        self.counters.flush(&mut self.rows).expect("the rows are read");
        assert!(self.counters.is_empty());
    }

    /// Now and then what has changed is committed, or fails to be.
    pub fn commit(&mut self, random: &mut Random) {
        match random.below(6) {
            0 => {
                self.rows.0.begin_commit();
                self.rows.0.committed(None).expect("the rows are read");
            }
            1 => {
                self.rows.0.begin_commit();
                self.rows.0.commit_failed();
            }
            _later => {}
        }
    }

    /// Acts so often, tells the index, and commits now and then.
    pub fn live(&mut self, random: &mut Random, acts: usize, scans: &mut Scans<'_>) {
        for _ in 0..acts {
            self.act(random);
            if random.once_in(4) {
                self.flush(scans);
                self.commit(random);
            }
        }
        self.flush(scans);
    }

    /// The runs that match, in no order.
    pub fn matching(&self, namespace_id: Uuid, filter: &Filter) -> impl Iterator<Item = &Record> {
        let of_namespace = self.runs.values().filter(move |run| run.0 == namespace_id);
        of_namespace.map(|run| &run.1).filter(|record| filter.matches(*record))
    }
}

/// The id of a run that a partition has begun: in no order.
pub fn run_id(partition: u64, begun: u64) -> Uuid {
    let high = begun.wrapping_mul(0x9e37_79b9) ^ (partition << 56);
    Uuid::from_u128(u128::from(high) << 64 | u128::from(begun))
}

/// The ids of matching runs of all partitions, sorted as a list has them.
pub fn listed(
    partitions: &[Partition],
    namespace_id: Uuid,
    filter: &Filter,
    order: Option<SortOrder>,
) -> Vec<String> {
    let mut runs: Vec<_> =
        partitions.iter().flat_map(|partition| partition.matching(namespace_id, filter)).collect();
    runs.sort_by(|one, other| sorted_by(one, order).cmp(&sorted_by(other, order)));
    runs.into_iter().map(|record| record.run_id.clone()).collect()
}

/// What a run is sorted by: missing or closed, moments, run.
pub fn sorted_by(record: &Record, order: Option<SortOrder>) -> (bool, i64, i64, &str) {
    let run_id = record.run_id.as_str();
    let Some(order) = order else {
        return match record.is_open() {
            true => (false, -record.start_ms, 0, run_id),
            false => (true, -record.close_ms, -record.start_ms, run_id),
        };
    };
    let ms = match order.by {
        SystemAttribute::CloseTime if record.is_open() => return (true, 0, 0, run_id),
        SystemAttribute::CloseTime => record.close_ms,
        SystemAttribute::ExecutionTime => record.execution_ms,
        _start_time => record.start_ms,
    };
    (false, if order.is_descending { -ms } else { ms }, 0, run_id)
}

/// How many runs match, by what they have of an attribute.
pub fn grouped(
    partitions: &[Partition],
    namespace_id: Uuid,
    filter: &Filter,
    by: &Attribute,
) -> BTreeMap<String, i64> {
    let mut groups = BTreeMap::new();
    for record in partitions.iter().flat_map(|partition| partition.matching(namespace_id, filter)) {
        let group = match record.value(by) {
            Some(Value::String(text)) => text.into_owned(),
            Some(Value::Int(number)) => number.to_string(),
            _other => String::new(),
        };
        *groups.entry(group).or_default() += 1;
    }
    groups
}

fn set_random(record: &mut Record, random: &mut Random) {
    let long = format!("\"{LONG}\"");
    let longer = format!("\"{LONG}er\"");
    let many = serde_json::to_string(&(0..80).map(|number| format!("e{number}")).collect::<Vec<_>>());
    let many = many.expect("texts are JSON");
    let (name, values): (&str, Vec<&str>) = match random.below(9) {
        0 | 1 => (
            "K",
            vec!["\"a\"", "\"ab\"", "\"b\"", "\"\"", "\"a\\u0000\"", &long, &longer, "[\"a\"]", "3", ""],
        ),
        2 | 3 => {
            ("L", vec!["[\"a\"]", "[\"a\",\"b\"]", "[\"b\",\"a\",\"b\"]", "[\"c\"]", "[]", &many, "\"a\""])
        }
        4 => ("N", vec!["1", "-5", "0", "9007199254740992", "9007199254740993", "[7]", "1.5", ""]),
        5 => ("D", vec!["1", "1.5", "-0.0", "0", "-1e300", "\"1\""]),
        6 => ("B", vec!["true", "false", ""]),
        7 => (
            "T",
            vec![
                "\"1970-01-01T00:00:01Z\"",
                "\"1970-01-01T01:00:01+01:00\"",
                "\"1970-01-02T00:00:00Z\"",
                "\"a\"",
            ],
        ),
        _division => ("TemporalNamespaceDivision", vec!["\"x\"", "\"y\"", "", "", "", ""]),
    };
    let data = random.of(&values).to_string();
    let is_text = name == "K" && random.once_in(5);
    set(record, name, &data, if is_text { "Text" } else { "Keyword" });
}

/// Sets an attribute to a JSON value, or takes it away.
pub fn set(record: &mut Record, name: &str, data: &str, kind: &str) {
    record.search_attributes.retain(|entry| entry.key != name);
    if data.is_empty() {
        return;
    }
    let said = |key: &str, value: &str| MapEntry { key: key.into(), value: value.to_owned().into() };
    let metadata = vec![said("encoding", "json/plain"), said("type", kind)];
    let payload = Payload { metadata, data: data.to_owned().into() };
    let entry = MapEntry { key: name.into(), value: payload.encode_to_vec().into() };
    record.search_attributes.push(entry);
    record.search_attributes.sort_by(|one, other| one.key.cmp(&other.key));
}
