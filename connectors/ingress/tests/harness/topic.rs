//! A topic in memory and a consumer of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use everlog_ingress::Source;
use everlog_log::consumer::{Assigned, ConsumedTopic, Fetched, Polled, SourceError};
use everlog_patience as patience;
use tokio::sync::Notify;
use tokio::time::Instant;

pub const INCARNATION: [u8; 16] = [7; 16];
/// Records of one poll.
pub const POLL_RECORDS: usize = 300;

#[derive(Clone)]
pub struct Topic {
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

#[derive(Default)]
struct State {
    records: Vec<Vec<Fetched>>,
    starts: Vec<u64>,
    committed: Vec<Option<([u8; 16], u64)>>,
    forgets_commits: bool,
    paused: BTreeSet<u32>,
    rebalances: bool,
    assignments: usize,
}

impl Topic {
    pub fn new(partitions: u32) -> Self {
        let count = partitions as usize;
        let (records, starts) = (vec![Vec::new(); count], vec![0; count]);
        let state = State { records, starts, committed: vec![None; count], ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), news: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics")
    }

    pub fn source(&self) -> Consumer {
        self.state().paused.clear();
        Consumer { topic: self.clone(), next: BTreeMap::new(), assigned: false }
    }

    pub fn produce(&self, partition: u32, fetched: Fetched) {
        let records = &mut self.state().records[partition as usize];
        let offset = records.len() as u64;
        records.push(Fetched { partition, offset, ..fetched });
        self.news.notify_one();
    }

    pub fn committed(&self) -> Vec<Option<u64>> {
        self.state().committed.iter().map(|committed| committed.map(|(_, next)| next)).collect()
    }

    pub fn forget_commits(&self, forgets: bool) {
        self.state().forgets_commits = forgets;
    }

    pub fn left_at(&self, partition: u32, incarnation: [u8; 16], next: u64) {
        self.state().committed[partition as usize] = Some((incarnation, next));
    }

    pub fn trim(&self, partition: u32, start: u64) {
        self.state().starts[partition as usize] = start;
    }

    pub fn paused(&self) -> usize {
        self.state().paused.len()
    }

    pub fn assignments(&self) -> usize {
        self.state().assignments
    }

    /// Takes all partitions away and gives them back.
    pub fn rebalance(&self) {
        self.state().rebalances = true;
        self.news.notify_one();
    }
}

pub struct Consumer {
    topic: Topic,
    next: BTreeMap<u32, u64>,
    assigned: bool,
}

impl Consumer {
    fn look(&mut self) -> Option<Polled> {
        let mut state = self.topic.state();
        if std::mem::take(&mut state.rebalances) {
            self.assigned = false;
            return Some(Polled::Revoked(std::mem::take(&mut self.next).into_keys().collect()));
        }
        if !std::mem::replace(&mut self.assigned, true) {
            state.assignments += 1;
            let assigned = (0..state.records.len()).map(|partition| Assigned {
                partition: partition as u32,
                committed: state.committed[partition],
                bounds: state.starts[partition]..state.records[partition].len() as u64,
            });
            return Some(Polled::Assigned(assigned.collect()));
        }
        let mut found = Vec::new();
        for (partition, next) in &mut self.next {
            if !state.paused.contains(partition) {
                let records = state.records[*partition as usize].iter().skip(*next as usize);
                found.extend(records.take(POLL_RECORDS / 4).cloned());
                *next = found
                    .last()
                    .filter(|last| last.partition == *partition)
                    .map_or(*next, |last| last.offset + 1);
            }
        }
        if found.is_empty() { None } else { Some(Polled::Records(found)) }
    }
}

impl Source for Consumer {
    fn topic(&self) -> ConsumedTopic {
        ConsumedTopic { name: "everlog.commands".into(), incarnation: INCARNATION }
    }

    async fn poll(&mut self, deadline: Instant) -> Result<Polled, SourceError> {
        loop {
            if let Some(polled) = self.look() {
                return Ok(polled);
            }
            let news = self.topic.news.clone();
            let left = deadline.saturating_duration_since(Instant::now());
            tokio::select! {
                biased;
                () = news.notified() => {}
                // As a broker's consumer, whose poll ends empty.
                () = patience::pass(left) => return Ok(Polled::Records(Vec::new())),
            }
        }
    }

    fn begin(&mut self, partition: u32, offset: u64) {
        self.next.insert(partition, offset);
        self.topic.news.notify_one();
    }

    fn pause(&mut self, partition: u32) {
        self.topic.state().paused.insert(partition);
    }

    fn resume(&mut self, partition: u32) {
        self.topic.state().paused.remove(&partition);
        self.topic.news.notify_one();
    }

    fn commit(&mut self, partition: u32, next: u64) {
        let mut state = self.topic.state();
        if !state.forgets_commits {
            state.committed[partition as usize] = Some((INCARNATION, next));
        }
    }
}
