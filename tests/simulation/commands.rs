//! The topic of public commands, and the group of consumers that read it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use everlog_ingress::Source;
use everlog_log::consumer::{Assigned, ConsumedTopic, Fetched, Polled, SourceError};
use tokio::time::Instant;

use crate::ingress::ringing;

/// Partitions of the topic: what cannot be read of any of them goes to the one journal there is.
pub const PARTITIONS: [u32; 2] = [0, 256];
/// Records of a poll.
const POLL_RECORDS: usize = 3;

/// The topic; clones are the same one.
#[derive(Clone)]
pub struct Commands(Arc<Mutex<TopicState>>);

struct TopicState {
    incarnation: [u8; 16],
    records: BTreeMap<u32, Vec<Fetched>>,
    next: BTreeMap<u32, u64>,
    committed: BTreeMap<u32, ([u8; 16], u64)>,
    readers: BTreeMap<u32, u64>,
    members: BTreeMap<u64, Member>,
}

#[derive(Default)]
struct Member {
    news: VecDeque<Polled>,
    reading: BTreeMap<u32, u64>,
    paused: BTreeSet<u32>,
    waker: Option<Waker>,
}

impl TopicState {
    fn bounds(&self, partition: u32) -> std::ops::Range<u64> {
        0..self.next.get(&partition).copied().unwrap_or_default()
    }

    fn assign(&mut self, partition: u32, member: u64) {
        if let Some(before) = self.readers.insert(partition, member)
            && let Some(before) = self.members.get_mut(&before)
        {
            before.news.push_back(Polled::Revoked(vec![partition]));
            before.wake();
        }
        let (committed, bounds) = (self.committed.get(&partition).copied(), self.bounds(partition));
        if let Some(member) = self.members.get_mut(&member) {
            member.news.push_back(Polled::Assigned(vec![Assigned { partition, committed, bounds }]));
            member.wake();
        }
    }

    /// What a member gets next.
    fn poll(&mut self, member: u64) -> Option<Polled> {
        let member = self.members.get_mut(&member)?;
        if let Some(news) = member.news.pop_front() {
            if let Polled::Revoked(partitions) = &news {
                member.reading.retain(|partition, _| !partitions.contains(partition));
            }
            return Some(news);
        }
        let mut found = Vec::new();
        for (partition, next) in &mut member.reading {
            if member.paused.contains(partition) {
                continue;
            }
            let records = self.records.get(partition).into_iter().flatten();
            for record in records.filter(|record| record.offset >= *next).take(POLL_RECORDS) {
                found.push(record.clone());
            }
            *next = found.last().map_or(*next, |last| (*next).max(last.offset + 1));
            if !found.is_empty() {
                break;
            }
        }
        if found.is_empty() { None } else { Some(Polled::Records(found)) }
    }
}

impl Member {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Commands {
    pub fn new(incarnation: [u8; 16]) -> Self {
        Self(Arc::new(Mutex::new(TopicState {
            incarnation,
            records: BTreeMap::new(),
            next: BTreeMap::new(),
            committed: BTreeMap::new(),
            readers: BTreeMap::new(),
            members: BTreeMap::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, TopicState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Produces a record; its offset. Transactions leave gaps in front of it.
    pub fn produce(&self, partition: u32, gap: u64, record: Fetched) -> u64 {
        let mut state = self.lock();
        let next = state.next.entry(partition).or_default();
        let offset = *next + gap;
        *next = offset + 1;
        state.records.entry(partition).or_default().push(Fetched { partition, offset, ..record });
        state.members.values_mut().for_each(Member::wake);
        offset
    }

    /// Another one reads along; partitions that nobody reads are its.
    pub fn join(&self, member: u64) {
        let mut state = self.lock();
        state.members.insert(member, Member::default());
        for partition in PARTITIONS {
            if !state.readers.contains_key(&partition) {
                state.assign(partition, member);
            }
        }
    }

    /// A reader is gone; its partitions are somebody else's, if there is anybody.
    pub fn leave(&self, member: u64) {
        let mut state = self.lock();
        state.members.remove(&member);
        state.readers.retain(|_, reader| *reader != member);
        let heir = state.members.keys().next().copied();
        for partition in PARTITIONS {
            if let Some(heir) = heir.filter(|_| !state.readers.contains_key(&partition)) {
                state.assign(partition, heir);
            }
        }
    }

    /// A partition is somebody else's; who had it hears of it with its next poll.
    pub fn move_to(&self, partition: u32, member: u64) {
        let mut state = self.lock();
        if state.members.contains_key(&member) && state.readers.get(&partition) != Some(&member) {
            state.assign(partition, member);
        }
    }

    /// Whether every record is committed as read.
    pub fn all_committed(&self) -> bool {
        let state = self.lock();
        state.records.iter().all(|(partition, records)| {
            let end = records.last().map_or(0, |last| last.offset + 1);
            state.committed.get(partition).is_some_and(|(_, next)| *next >= end)
        })
    }

    /// The topic is deleted and made again, and so is what the group knew of it.
    pub fn made_again(&self, incarnation: [u8; 16]) {
        let mut state = self.lock();
        *state = TopicState {
            incarnation,
            records: BTreeMap::new(),
            next: BTreeMap::new(),
            committed: BTreeMap::new(),
            readers: BTreeMap::new(),
            members: BTreeMap::new(),
        };
    }

    pub fn incarnation(&self) -> [u8; 16] {
        self.lock().incarnation
    }

    /// A consumer's own end; `rung` when there is something for it.
    pub fn source(&self, member: u64, rung: &Arc<AtomicBool>) -> SimSource {
        SimSource { commands: self.clone(), incarnation: self.incarnation(), member, rung: rung.clone() }
    }
}

/// One consumer.
pub struct SimSource {
    commands: Commands,
    incarnation: [u8; 16],
    member: u64,
    rung: Arc<AtomicBool>,
}

impl SimSource {
    fn with(&self, act: impl FnOnce(&mut Member)) {
        if let Some(member) = self.commands.lock().members.get_mut(&self.member) {
            act(member);
        }
    }
}

impl Source for SimSource {
    fn topic(&self) -> ConsumedTopic {
        ConsumedTopic { name: "commands".into(), incarnation: self.incarnation }
    }

    async fn poll(&mut self, _deadline: Instant) -> Result<Polled, SourceError> {
        let polled = poll_fn(|context| {
            let mut state = self.commands.lock();
            if let Some(polled) = state.poll(self.member) {
                return Poll::Ready(Ok(polled));
            }
            if let Some(member) = state.members.get_mut(&self.member) {
                member.waker = Some(context.waker().clone());
            }
            Poll::Pending
        });
        ringing(&self.rung, polled).await
    }

    fn begin(&mut self, partition: u32, offset: u64) {
        self.with(|member| {
            member.reading.insert(partition, offset);
        });
    }

    fn pause(&mut self, partition: u32) {
        self.with(|member| {
            member.paused.insert(partition);
        });
    }

    fn resume(&mut self, partition: u32) {
        self.with(|member| {
            member.paused.remove(&partition);
        });
    }

    fn commit(&mut self, partition: u32, next: u64) {
        let mut state = self.commands.lock();
        // The group takes nothing from a member that does not have the partition any more.
        if state.readers.get(&partition) == Some(&self.member) && state.incarnation == self.incarnation {
            state.committed.insert(partition, (self.incarnation, next));
        }
    }
}
