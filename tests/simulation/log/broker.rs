//! The broker: what is stored, what is under way, and what happens next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use everlog_log::{Appended, Offset, PartitionId, Record};
use everlog_wire::{Body, Record as Entry};

use super::commit::Transaction;
use super::nasty::{Nasty, Removed};
use super::produce::Session;
use super::tail::Followed;
use super::topic::Topic;
use crate::dice::Dice;

/// When the world begins.
const BEGIN_MS: i64 = 1_700_000_000_000;

/// The broker as everybody shares it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Broker>>);

impl Shared {
    pub fn new(broker: Broker) -> Self {
        Self(Arc::new(Mutex::new(broker)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Broker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next thing happen; those concerned are told outside the lock.
    pub fn happen(&self) {
        let told = self.lock().happen();
        told.into_iter().for_each(|tell| tell());
    }
}

/// Tells somebody something.
pub type Tell = Box<dyn FnOnce() + Send>;

/// A partition as it is kept.
#[derive(Default)]
pub struct StoredPartition {
    /// Everything ever appended; what was trimmed stays here for the checker.
    pub journal: Vec<Record>,
    pub start: Offset,
    pub topics: [Topic; 6],
    pub fence: u64,
    pub position: Option<(Offset, Bytes)>,
    /// Offset of the last position row in the changelog.
    pub position_at: Offset,
    pub last_stamp_ms: i64,
    pub term: Offset,
    pub tails: Vec<Weak<Mutex<Followed>>>,
}

/// What is on its way.
pub enum Happening {
    /// Records reach the journal; `by` is the handle that sent them.
    Arrive { by: u64, partition: PartitionId, records: Vec<Bytes>, append: u64 },
    /// An append's outcome reaches its sender.
    Report { by: u64, partition: PartitionId },
    /// A commit takes effect.
    Commit { commit: u64 },
    /// A commit's outcome reaches its sender.
    Committed { commit: u64 },
    /// Those who follow a journal see what is there.
    Follow(Weak<Mutex<Followed>>),
    /// Somebody reads who does not wait.
    Read(Tell),
}

/// Everything that is there.
pub struct Broker {
    pub now_ms: i64,
    /// How far the log's clock is off.
    pub clock_ms: i64,
    pub incarnation: [u8; 16],
    pub partitions: u32,
    pub stored: BTreeMap<PartitionId, StoredPartition>,
    pub control: BTreeMap<Vec<u8>, Vec<u8>>,
    pub nasty: Nasty,
    pub removed: Option<Removed>,
    pub dice: Dice,
    /// Until when the coordinator of transactions is away.
    pub away_until_ms: i64,
    /// Handles that send nothing until a moment.
    pub asleep: BTreeMap<u64, i64>,
    pub agenda: BTreeMap<(i64, u64), Happening>,
    pub sessions: BTreeMap<(u64, PartitionId), Session>,
    pub transactions: BTreeMap<u64, Transaction>,
    pub partition_of_commit: BTreeMap<u64, PartitionId>,
    pub serial: u64,
    /// Bytes of a slice at most, and when the first one comes.
    pub slice_bytes_max: usize,
    pub slices_from_ms: i64,
    /// How long deletions are told.
    pub tombstones_ms: Option<i64>,
    /// Of the next append of so many records the first one gets lost, and its sender hears nothing for sure; 0 = of none.
    pub loses_first_of: usize,
    pub violations: Vec<String>,
    /// Tells what happens, for one who looks for the cause of a failure.
    pub loud: bool,
}

impl Broker {
    pub fn new(partitions: u32, nasty: Nasty, mut dice: Dice) -> Self {
        Self {
            now_ms: BEGIN_MS,
            clock_ms: 0,
            incarnation: incarnation(&mut dice),
            partitions,
            stored: BTreeMap::new(),
            control: BTreeMap::new(),
            nasty,
            removed: None,
            dice,
            away_until_ms: 0,
            asleep: BTreeMap::new(),
            agenda: BTreeMap::new(),
            sessions: BTreeMap::new(),
            transactions: BTreeMap::new(),
            partition_of_commit: BTreeMap::new(),
            serial: 1,
            slice_bytes_max: 2_000,
            slices_from_ms: 0,
            tombstones_ms: None,
            loses_first_of: 0,
            violations: Vec::new(),
            loud: false,
        }
    }

    pub fn stored(&mut self, partition: PartitionId) -> &mut StoredPartition {
        self.stored.entry(partition).or_default()
    }

    pub fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub fn plan(&mut self, at_ms: i64, happening: Happening) {
        let serial = self.serial();
        self.agenda.insert((at_ms.max(self.now_ms), serial), happening);
    }

    /// When the next thing happens.
    pub fn next_ms(&self) -> Option<i64> {
        self.agenda.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    /// Lets the earliest thing happen; returns who is to be told.
    pub fn happen(&mut self) -> Vec<Tell> {
        let Some((_, happening)) = self.agenda.pop_first() else { return Vec::new() };
        match happening {
            Happening::Arrive { by, partition, records, append } => {
                if let Some(until_ms) =
                    self.asleep.get(&by).copied().filter(|until_ms| *until_ms > self.now_ms)
                {
                    self.plan(until_ms, Happening::Arrive { by, partition, records, append });
                    return Vec::new();
                }
                self.arrived(partition, records, append)
            }
            Happening::Report { by, partition } => self.report(by, partition),
            Happening::Commit { commit } => {
                if self.away_until_ms > self.now_ms {
                    self.plan(self.away_until_ms, Happening::Commit { commit });
                } else {
                    self.take_effect(commit);
                }
                Vec::new()
            }
            Happening::Committed { commit } => self.tell_commit(commit),
            Happening::Follow(followed) => Followed::see(&followed, self),
            Happening::Read(read) => vec![read],
        }
    }

    /// Records stand in the journal from now on.
    pub fn arrive(&mut self, partition: PartitionId, records: Vec<Bytes>) -> (Vec<Tell>, Appended) {
        let wall_ms = self.now_ms + self.clock_ms;
        let (removed, loud, immediate) = (self.removed, self.loud, self.nasty.immediate);
        let mut lines = Vec::new();
        let stored = self.stored(partition);
        // A leader's clock may be behind that of the one before it.
        let stamp_ms = if immediate { wall_ms.max(stored.last_stamp_ms) } else { wall_ms };
        stored.last_stamp_ms = stamp_ms;
        let first = stored.journal.len() as Offset;
        for bytes in records {
            let offset = stored.journal.len() as Offset;
            let mut bytes = bytes;
            if let Ok(mut entry) = Entry::read(bytes.clone()) {
                if matches!(entry.body, Some(Body::Owner(_))) {
                    stored.term = offset;
                } else if let (Some(Removed::IngressMarks), Some(Body::PublicCommand(forwarded))) =
                    (removed, &mut entry.body)
                    && let Some(source) = &mut forwarded.source
                {
                    source.incarnation = Bytes::copy_from_slice(&u128::from(offset).to_be_bytes());
                    (source.offset, source.follows) = (0, 0);
                    bytes = entry.encode();
                } else if removed == Some(Removed::Terms) && entry.body.is_some() && entry.term != stored.term
                {
                    entry.term = stored.term;
                    bytes = entry.encode();
                }
            }
            let text = if loud { describe(&bytes) } else { String::new() };
            lines.push((offset, text));
            stored.journal.push(Record { offset, stamp_ms, bytes });
        }
        for (offset, text) in lines {
            self.say(|| format!("record {offset}: {text}"));
        }
        (self.let_follow(partition), Appended { first, stamp_ms })
    }

    fn let_follow(&mut self, partition: PartitionId) -> Vec<Tell> {
        let immediate = self.nasty.immediate;
        let stored = self.stored(partition);
        stored.tails.retain(|tail| tail.strong_count() > 0);
        let tails = stored.tails.clone();
        let mut told = Vec::new();
        for tail in tails {
            if immediate {
                told.extend(Followed::see(&tail, self));
            } else {
                let follow_ms = self.nasty.follow_ms;
                let at_ms = self.now_ms + self.dice.span(0, follow_ms);
                self.plan(at_ms, Happening::Follow(tail));
            }
        }
        told
    }

    /// Says something, if it is loud.
    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.loud {
            println!("{:>7} {}", self.now_ms - BEGIN_MS, what());
        }
    }

    pub fn violate(&mut self, what: String) {
        self.violations.push(what);
    }
}

pub fn incarnation(dice: &mut Dice) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&dice.throw().to_be_bytes());
    id[8..].copy_from_slice(&dice.throw().to_be_bytes());
    id
}

fn describe(bytes: &Bytes) -> String {
    let Ok(entry) = Entry::read(bytes.clone()) else { return "noise".into() };
    let (term, serial) = (entry.term, entry.serial);
    let body = match entry.body {
        Some(Body::Owner(owner)) => format!("owner {:?}", owner.instance),
        Some(Body::Input(input)) => {
            let mut text = format!("{:?}", input.request);
            text.truncate(120);
            format!("{} {text}", input.workflow_id)
        }
        Some(Body::Barrier(_)) => "barrier".into(),
        Some(_other) => "another kind".into(),
        None => "nothing".into(),
    };
    format!("term {term} serial {serial} {body}")
}
