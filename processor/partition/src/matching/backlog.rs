//! What waits in a queue: the level that goes first before the others, and within a level fairness keys in turn, as often as
//! their weights say. Of a key, and of what names none, partitions take turns, in each of these the runs, in each of these the
//! oldest goes first. So no key, no partition and no run has to wait until another's flood is over.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::model::keys::RunKey;
use crate::model::priority::{LEVEL_DEFAULT, STRIDE, TaskPriority};
use crate::model::task_types::{Ready, TaskRef};

/// What waits in a queue.
#[derive(Default)]
pub struct Backlog {
    levels: BTreeMap<u8, Level>,
}

/// What waits at one level: keys take turns by weight, in each of them partitions, in each of these runs. All that names no key is
/// of one. A million may wait: what is known of each is kept once, and found by its hash. Of two with the same hash each takes
/// turns with the other.
///
/// A key, and a run in its partition, has a mark, which moves on by a stride with each task; the lowest goes first.
#[derive(Default)]
struct Level {
    /// By their serials: as they came.
    entries: BTreeMap<i64, Box<BacklogEntry>>,
    /// The serial of each, by the hash of its id.
    serials: HashTable<i64>,
    /// The share of a partition, mark and serial.
    order: BTreeSet<(u64, u64, i64)>,
    /// The mark that the next task of a run gets in its lane, and how many of it wait.
    runs: HashMap<u64, (u64, usize)>,
    lanes: HashMap<u64, PartitionShare>,
    /// Key, turn, and the share of a partition.
    lane_turns: BTreeSet<(u64, i64, u64)>,
    keys: HashMap<u64, KeyShare>,
    /// Mark, turn and key, of keys whose turn comes.
    key_turns: BTreeSet<(u64, i64, u64)>,
    /// Mark and key, of keys without a task whose mark is ahead. One that comes back goes on where it was.
    ahead: BTreeSet<(u64, u64)>,
    /// Where a key begins that comes anew. A turn of all that wait moves it on by a stride: else whoever comes with one task would
    /// go before the second one of everybody else, for as long as some do.
    mark: u64,
    /// The last turn before all, and the next one behind all.
    turns: (i64, i64),
    first: i64,
    last: i64,
    hashes: RandomState,
}

/// A fairness key.
#[derive(Default)]
struct KeyShare {
    mark: u64,
    turn: i64,
    count: usize,
    /// It takes no turn until it is released.
    is_held: bool,
}

/// What one partition has of a fairness key.
#[derive(Default)]
struct PartitionShare {
    turn: i64,
    count: usize,
    runs: u64,
    /// Where a run begins that comes anew.
    mark: u64,
}

/// One that waits.
struct BacklogEntry {
    offered_ms: i64,
    mark: u64,
    ready: Ready,
}

/// The hashes by which something is found.
#[derive(Clone, Copy)]
struct Hashes {
    id: u64,
    key: u64,
    lane: u64,
    run: u64,
}

/// What a queue says of the task that would go next.
pub trait TurnRules {
    /// How far it moves its share on.
    fn stride(&self, ready: &Ready) -> u32;

    /// True where nothing of the same fairness key may go now. The key takes no turn then, until [`Backlog::release`] names it.
    fn holds(&mut self, ready: &Ready) -> bool;
}

/// Everything may go, as its own priority says.
pub struct OwnPriority;

impl TurnRules for OwnPriority {
    fn stride(&self, ready: &Ready) -> u32 {
        ready.priority().map_or(STRIDE, |priority| priority.stride)
    }

    fn holds(&mut self, _ready: &Ready) -> bool {
        false
    }
}

/// What is ready, wherever it waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReadyId {
    /// An attempt at a task: its run, the event that scheduled it, the attempt, and the stamp that it was offered under.
    Task(RunKey, i64, i32, i32),
    /// A query, by its id.
    Query(String),
}

impl ReadyId {
    /// Of a task.
    pub fn of_task(task: &TaskRef) -> Self {
        Self::Task(task.run.clone(), task.scheduled_event_id, task.attempt, task.stamp)
    }

    /// Of what is ready.
    pub fn of(ready: &Ready) -> Self {
        match ready {
            Ready::Task(task) => Self::of_task(task),
            Ready::Query { query_id, .. } => Self::Query(query_id.clone()),
        }
    }
}

/// Marks are finer than strides, so that a part of one can be told: among 1,024 that wait, a stride of 1.
const MARKS_PER_STRIDE: u64 = 1 << 10;
/// How far a task moves its run on.
const RUN_MARKS: u64 = STRIDE as u64 * MARKS_PER_STRIDE;

impl Level {
    /// It waits already where it is offered again by whoever has it now, and keeps its turn. As one more of its run it would put
    /// the next task of that off by a turn, with each move of a partition.
    fn push(&mut self, offered_ms: i64, ready: Ready) {
        let of = self.hashes_of(&ready);
        if let Some(serial) = self.serial(of.id, &ready)
            && let Some(known) = self.entries.get_mut(&serial)
        {
            if !known.ready.yields_to(&ready) {
                return;
            }
            if known.ready.fairness_key() == ready.fairness_key() {
                known.ready = ready;
                return;
            }
            self.take(serial, None);
        }
        let mark = self.lanes.get(&of.lane).map_or(0, |lane| lane.mark);
        let run = self.runs.entry(of.run).or_insert((mark, 0));
        let mark = run.0;
        run.0 = mark.saturating_add(RUN_MARKS);
        self.last += 1;
        self.put(of, self.last, BacklogEntry { offered_ms, mark, ready });
    }

    /// It has been the next one before, and is again, also where it was offered again meanwhile.
    fn push_first(&mut self, offered_ms: i64, ready: Ready) {
        let of = self.hashes_of(&ready);
        let again = self.serial(of.id, &ready).and_then(|serial| self.take(serial, None));
        let ready = match again {
            Some(again) if ready.yields_to(&again.ready) => again.ready,
            Some(_) | None => ready,
        };
        let of = self.hashes_of(&ready);
        let mark = self.lanes.get(&of.lane).map_or(0, |lane| lane.mark);
        self.runs.entry(of.run).or_insert((mark, 0));
        let marks = marks(OwnPriority.stride(&ready));
        self.first -= 1;
        self.put(of, self.first, BacklogEntry { offered_ms, mark: 0, ready });
        self.leave_turns(of);
        self.turns.0 -= 1;
        if let (Some(key), Some(lane)) = (self.keys.get_mut(&of.key), self.lanes.get_mut(&of.lane)) {
            (key.turn, lane.turn) = (self.turns.0, self.turns.0);
            key.mark = key.mark.saturating_sub(marks);
        }
        self.take_turns(of);
    }

    fn put(&mut self, of: Hashes, serial: i64, entry: BacklogEntry) {
        let (hashes, entries) = (&self.hashes, &self.entries);
        let id_of = |serial: &i64| entries.get(serial).map_or(0, |entry| id(hashes, &entry.ready));
        self.serials.insert_unique(of.id, serial, id_of);
        self.order.insert((of.lane, entry.mark, serial));
        self.entries.insert(serial, Box::new(entry));
        self.leave_turns(of);
        let next = KeyShare { mark: self.mark, turn: self.turns.1, ..KeyShare::default() };
        self.keys.entry(of.key).or_insert(next).count += 1;
        let lane = self
            .lanes
            .entry(of.lane)
            .or_insert(PartitionShare { turn: self.turns.1, ..PartitionShare::default() });
        lane.count += 1;
        self.turns.1 += 1;
        if let Some((_, count)) = self.runs.get_mut(&of.run) {
            lane.runs += u64::from(*count == 0);
            *count += 1;
        }
        self.take_turns(of);
    }

    fn hashes_of(&self, ready: &Ready) -> Hashes {
        let key = self.hashes.hash_one(ready.fairness_key().unwrap_or_default());
        let lane = self.hashes.hash_one((key, ready.partition()));
        let run = self.hashes.hash_one((lane, ready.run()));
        Hashes { id: id(&self.hashes, ready), key, lane, run }
    }

    /// The serial of what waits under the same id.
    fn serial(&self, id: u64, ready: &Ready) -> Option<i64> {
        let is_it = |serial: &i64| self.entries.get(serial).is_some_and(|entry| is_same(&entry.ready, ready));
        self.serials.find(id, is_it).copied()
    }

    /// Takes something out. Where its turn has come, that moves its key on by so many marks.
    fn take(&mut self, serial: i64, marks: Option<u64>) -> Option<BacklogEntry> {
        let entry = *self.entries.remove(&serial)?;
        let of = self.hashes_of(&entry.ready);
        self.leave_turns(of);
        if let Ok(found) = self.serials.find_entry(of.id, |other| *other == serial) {
            found.remove();
        }
        self.order.remove(&(of.lane, entry.mark, serial));
        if let (Some(key), Some(lane)) = (self.keys.get_mut(&of.key), self.lanes.get_mut(&of.lane)) {
            if let Some(marks) = marks {
                key.mark = key.mark.saturating_add(marks);
                lane.mark = lane.mark.max(entry.mark).saturating_add(RUN_MARKS / lane.runs.max(1));
                (key.turn, lane.turn) = (self.turns.1, self.turns.1);
                self.turns.1 += 1;
            }
            key.count -= 1;
            lane.count -= 1;
            if let Some((_, count)) = self.runs.get_mut(&of.run) {
                *count -= 1;
                if *count == 0 {
                    lane.runs -= 1;
                    self.runs.remove(&of.run);
                }
            }
        }
        self.take_turns(of);
        Some(entry)
    }

    /// What changes the turn of a key and a lane comes between this and [`Level::take_turns`].
    fn leave_turns(&mut self, of: Hashes) {
        if let Some(key) = self.keys.get(&of.key) {
            self.key_turns.remove(&(key.mark, key.turn, of.key));
            self.ahead.remove(&(key.mark, of.key));
        }
        if let Some(lane) = self.lanes.get(&of.lane) {
            self.lane_turns.remove(&(of.key, lane.turn, of.lane));
        }
    }

    fn take_turns(&mut self, of: Hashes) {
        match self.keys.get(&of.key) {
            Some(key) if key.count == 0 && key.mark > self.mark => {
                self.ahead.insert((key.mark, of.key));
            }
            Some(key) if key.count == 0 => drop(self.keys.remove(&of.key)),
            Some(key) if !key.is_held => drop(self.key_turns.insert((key.mark, key.turn, of.key))),
            Some(_) | None => {}
        }
        match self.lanes.get(&of.lane) {
            Some(lane) if lane.count > 0 => drop(self.lane_turns.insert((of.key, lane.turn, of.lane))),
            Some(_) => drop(self.lanes.remove(&of.lane)),
            None => {}
        }
    }

    /// The serial of what goes next of a key.
    fn head(&self, key: u64) -> Option<i64> {
        let lanes = (key, i64::MIN, 0)..=(key, i64::MAX, u64::MAX);
        let (_, _, lane) = *self.lane_turns.range(lanes).next()?;
        let (_, _, serial) = *self.order.range((lane, 0, i64::MIN)..=(lane, u64::MAX, i64::MAX)).next()?;
        Some(serial)
    }

    fn pop(&mut self, rules: &mut impl TurnRules) -> Option<Ready> {
        loop {
            let (mark, turn, key) = *self.key_turns.first()?;
            let serial = self.head(key)?;
            let ready = &self.entries.get(&serial)?.ready;
            if rules.holds(ready) {
                self.key_turns.remove(&(mark, turn, key));
                self.keys.get_mut(&key)?.is_held = true;
                continue;
            }
            let marks = marks(rules.stride(ready));
            self.mark = self.mark.max(mark).saturating_add(marks / self.key_turns.len().max(1) as u64);
            let entry = self.take(serial, Some(marks))?;
            self.forget_passed();
            return Some(entry.ready);
        }
    }

    /// Keys without a task are forgotten when one that comes anew begins no earlier.
    fn forget_passed(&mut self) {
        while let Some((mark, key)) = self.ahead.first().copied()
            && mark <= self.mark
        {
            self.ahead.remove(&(mark, key));
            self.keys.remove(&key);
        }
    }

    /// What it missed meanwhile is not made up for.
    fn release(&mut self, key: u64) {
        let Some(state) = self.keys.get_mut(&key).filter(|state| state.is_held) else { return };
        state.is_held = false;
        self.ahead.remove(&(state.mark, key));
        state.mark = state.mark.max(self.mark);
        match state.count {
            0 => drop(self.keys.remove(&key)),
            _waiting => drop(self.key_turns.insert((state.mark, state.turn, key))),
        }
    }
}

fn marks(stride: u32) -> u64 {
    u64::from(stride) * MARKS_PER_STRIDE
}

/// The hash of a [`ReadyId`].
fn id(hashes: &RandomState, ready: &Ready) -> u64 {
    match ready {
        Ready::Task(task) => hashes.hash_one((&task.run, task.scheduled_event_id, task.attempt, task.stamp)),
        Ready::Query { query_id, .. } => hashes.hash_one(query_id),
    }
}

/// Whether both have the same [`ReadyId`].
fn is_same(one: &Ready, other: &Ready) -> bool {
    match (one, other) {
        (Ready::Task(one), Ready::Task(other)) => {
            (&one.run, one.scheduled_event_id, one.attempt, one.stamp)
                == (&other.run, other.scheduled_event_id, other.attempt, other.stamp)
        }
        (Ready::Query { query_id: one, .. }, Ready::Query { query_id: other, .. }) => one == other,
        (Ready::Task(_), Ready::Query { .. }) | (Ready::Query { .. }, Ready::Task(_)) => false,
    }
}

impl Backlog {
    /// Something waits from now on.
    pub fn push(&mut self, offered_ms: i64, ready: Ready) {
        self.levels.entry(ready.level()).or_default().push(offered_ms, ready);
    }

    /// Something that was the next one is the next one again.
    pub fn push_first(&mut self, offered_ms: i64, ready: Ready) {
        self.levels.entry(ready.level()).or_default().push_first(offered_ms, ready);
    }

    /// What goes next; none where nothing waits, or nothing may go.
    pub fn pop(&mut self, rules: &mut impl TurnRules) -> Option<Ready> {
        let next = self.levels.iter_mut().find_map(|(number, level)| Some((*number, level.pop(rules)?)));
        let (number, ready) = next?;
        if self.levels.get(&number).is_some_and(|level| level.entries.is_empty()) {
            self.levels.remove(&number);
        }
        Some(ready)
    }

    /// A fairness key that the rules have held takes turns again; empty = what has none.
    pub fn release(&mut self, fairness_key: &str) {
        for level in self.levels.values_mut() {
            level.release(level.hashes.hash_one(fairness_key));
        }
    }

    /// So do all of them.
    pub fn release_all(&mut self) {
        for level in self.levels.values_mut() {
            let held = level.keys.iter().filter(|(_, state)| state.is_held).map(|(key, _)| *key);
            held.collect::<Vec<_>>().into_iter().for_each(|key| level.release(key));
        }
    }

    /// How much waits.
    pub fn len(&self) -> usize {
        self.levels.values().map(|level| level.entries.len()).sum()
    }

    /// How many fairness keys share it, at all levels; what has none counts as one.
    pub fn keys(&self) -> usize {
        self.levels.values().map(|level| level.keys.len()).sum()
    }

    /// True where nothing waits.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// How much waits at each level, and since when the oldest of it.
    pub fn levels(&self) -> impl Iterator<Item = (u8, usize, i64)> {
        let oldest_ms = |level: &Level| Some(level.entries.first_key_value()?.1.offered_ms);
        self.levels
            .iter()
            .filter_map(move |(number, level)| Some((*number, level.entries.len(), oldest_ms(level)?)))
    }

    /// What waits under an id.
    pub fn find(&self, id: &ReadyId) -> Option<&Ready> {
        let mut all = self.levels.values().flat_map(|level| level.entries.values()).map(|entry| &entry.ready);
        all.find(|ready| ReadyId::of(ready) == *id)
    }

    /// Everything, as it would go.
    pub fn into_all(mut self) -> impl Iterator<Item = Ready> {
        self.release_all();
        std::iter::from_fn(move || self.pop(&mut OwnPriority))
    }
}

impl Ready {
    /// The level that it waits at.
    pub fn level(&self) -> u8 {
        match self {
            Self::Task(task) => task.precedence.level,
            Self::Query { .. } => LEVEL_DEFAULT,
        }
    }

    /// Of a task; a query has none.
    pub fn priority(&self) -> Option<&TaskPriority> {
        match self {
            Self::Task(task) => Some(&task.precedence),
            Self::Query { .. } => None,
        }
    }

    /// The run whose task it is, or that is asked.
    fn run(&self) -> &RunKey {
        match self {
            Self::Task(task) => &task.run,
            Self::Query { run, .. } => run,
        }
    }

    /// The fairness key that it names.
    pub fn fairness_key(&self) -> Option<&str> {
        self.priority().map(|priority| &*priority.fairness_key).filter(|key| !key.is_empty())
    }
}
