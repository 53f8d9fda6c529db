//! What waits in a queue: the level that goes first before the others, and within a level the partitions in turn, in each of
//! these the runs in turn, in each of these the oldest first. So no run, and no partition, has to wait until another's flood is
//! over. Who names a fairness key takes turns by it in place of the run.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::model::keys::RunKey;
use crate::model::priority::{LEVEL_DEFAULT, TaskPriority};
use crate::model::task_types::{Ready, TaskRef};

/// What waits in a queue.
#[derive(Default)]
pub struct Backlog {
    levels: BTreeMap<u8, Level>,
}

#[derive(Default)]
struct Level {
    partitions: BTreeMap<u32, RunBacklog>,
    /// The partitions that have something, each once.
    turns: VecDeque<u32>,
    count: usize,
}

/// Of one level and partition. Each share has a mark, which moves on by a stride with each task; the lowest goes first. A million
/// may wait: what is known of each is kept once, and found by its hash.
#[derive(Default)]
struct RunBacklog {
    /// By their serials: as they came.
    entries: BTreeMap<i64, Box<BacklogEntry>>,
    /// The serial of each, by the hash of its id.
    serials: HashTable<i64>,
    /// Mark and serial.
    order: BTreeSet<(u64, i64)>,
    /// The mark that the next task of a share gets, and how many of it wait. By the hash of the share: two with the same one would
    /// take turns together.
    shares: HashMap<u64, (u64, usize)>,
    /// Where a share begins that comes anew. A turn of all that wait moves it on by a stride: else whoever comes with one task
    /// would go before the second one of everybody else, for as long as some do.
    mark: u64,
    first: i64,
    last: i64,
    hashes: RandomState,
}

/// One that waits.
struct BacklogEntry {
    offered_ms: i64,
    mark: u64,
    ready: Ready,
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

/// Marks are finer than strides, so that a part of one can be told: among 65,536 shares that wait, a stride of 1.
const MARKS_PER_STRIDE: u64 = 1 << 16;

/// How far its share moves on, in marks.
fn stride(ready: &Ready) -> u64 {
    let stride = match ready {
        Ready::Task(task) => task.precedence.stride,
        Ready::Query { .. } => TaskPriority::default().stride,
    };
    u64::from(stride) * MARKS_PER_STRIDE
}

impl RunBacklog {
    /// False where it waits already: offered again by whoever has it now, it keeps its turn. As one more of its share it would put
    /// the next task of that off by a turn, with each move of a partition.
    fn push(&mut self, offered_ms: i64, ready: Ready) -> bool {
        if let Some(known) = self.serial(&ready).and_then(|serial| self.entries.get_mut(&serial)) {
            if known.ready.yields_to(&ready) {
                known.ready = ready;
            }
            return false;
        }
        let (next, count) = self.shares.entry(share(&self.hashes, &ready)).or_insert((self.mark, 0));
        let mark = *next;
        *next = mark.saturating_add(stride(&ready));
        *count += 1;
        self.last += 1;
        self.put(self.last, BacklogEntry { offered_ms, mark, ready });
        true
    }

    /// It has been the next one before, and is again. False where it was offered again meanwhile.
    fn push_first(&mut self, offered_ms: i64, ready: Ready) -> bool {
        let again = self.serial(&ready).and_then(|serial| self.take(serial));
        let is_new = again.is_none();
        let ready = match again {
            Some(again) if ready.yields_to(&again.ready) => again.ready,
            Some(_) | None => ready,
        };
        self.shares.entry(share(&self.hashes, &ready)).or_insert((self.mark, 0)).1 += 1;
        self.first -= 1;
        self.put(self.first, BacklogEntry { offered_ms, mark: 0, ready });
        is_new
    }

    fn put(&mut self, serial: i64, entry: BacklogEntry) {
        let (hashes, entries) = (&self.hashes, &self.entries);
        let of = |serial: &i64| entries.get(serial).map_or(0, |entry| id(hashes, &entry.ready));
        self.serials.insert_unique(id(hashes, &entry.ready), serial, of);
        self.order.insert((entry.mark, serial));
        self.entries.insert(serial, Box::new(entry));
    }

    /// The serial of what waits under the same id.
    fn serial(&self, ready: &Ready) -> Option<i64> {
        let is_it = |serial: &i64| self.entries.get(serial).is_some_and(|entry| is_same(&entry.ready, ready));
        self.serials.find(id(&self.hashes, ready), is_it).copied()
    }

    fn take(&mut self, serial: i64) -> Option<BacklogEntry> {
        let entry = *self.entries.remove(&serial)?;
        self.order.remove(&(entry.mark, serial));
        if let Ok(found) = self.serials.find_entry(id(&self.hashes, &entry.ready), |other| *other == serial) {
            found.remove();
        }
        let share = share(&self.hashes, &entry.ready);
        if let Some((_, count)) = self.shares.get_mut(&share) {
            *count -= 1;
            if *count == 0 {
                self.shares.remove(&share);
            }
        }
        Some(entry)
    }

    fn pop(&mut self) -> Option<Ready> {
        let (mark, serial) = *self.order.first()?;
        let shares = self.shares.len().max(1) as u64;
        let BacklogEntry { ready, .. } = self.take(serial)?;
        self.mark = self.mark.max(mark).saturating_add(stride(&ready) / shares);
        Some(ready)
    }
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

/// The hash of who takes turns: its run, or the key that it names.
fn share(hashes: &RandomState, ready: &Ready) -> u64 {
    match ready {
        Ready::Task(task) if task.precedence.fairness_key.is_empty() => hashes.hash_one((0, &task.run)),
        Ready::Task(task) => hashes.hash_one((1, &task.precedence.fairness_key)),
        Ready::Query { run, .. } => hashes.hash_one((0, run)),
    }
}

impl Level {
    fn lane(&mut self, partition: u32, is_first: bool) -> &mut RunBacklog {
        let lane = self.partitions.entry(partition).or_default();
        if lane.entries.is_empty() {
            match is_first {
                true => self.turns.push_front(partition),
                false => self.turns.push_back(partition),
            }
        }
        lane
    }

    fn pop(&mut self) -> Option<Ready> {
        let partition = self.turns.pop_front()?;
        let lane = self.partitions.get_mut(&partition)?;
        let ready = lane.pop()?;
        self.count -= 1;
        match lane.entries.is_empty() {
            true => drop(self.partitions.remove(&partition)),
            false => self.turns.push_back(partition),
        }
        Some(ready)
    }

    fn oldest_ms(&self) -> Option<i64> {
        self.partitions.values().filter_map(|lane| Some(lane.entries.first_key_value()?.1.offered_ms)).min()
    }
}

impl Backlog {
    /// Something waits from now on.
    pub fn push(&mut self, offered_ms: i64, ready: Ready) {
        let level = self.levels.entry(ready.level()).or_default();
        level.count += usize::from(level.lane(ready.partition(), false).push(offered_ms, ready));
    }

    /// Something that was the next one is the next one again.
    pub fn push_first(&mut self, offered_ms: i64, ready: Ready) {
        let level = self.levels.entry(ready.level()).or_default();
        level.count += usize::from(level.lane(ready.partition(), true).push_first(offered_ms, ready));
    }

    /// What goes next.
    pub fn pop(&mut self) -> Option<Ready> {
        let mut first = self.levels.first_entry()?;
        let ready = first.get_mut().pop();
        if first.get().count == 0 {
            first.remove();
        }
        ready
    }

    /// How much waits.
    pub fn len(&self) -> usize {
        self.levels.values().map(|level| level.count).sum()
    }

    /// True where nothing waits.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// How much waits at each level, and since when the oldest of it.
    pub fn levels(&self) -> impl Iterator<Item = (u8, usize, i64)> {
        self.levels.iter().filter_map(|(level, row)| Some((*level, row.count, row.oldest_ms()?)))
    }

    /// What waits under an id.
    pub fn find(&self, id: &ReadyId) -> Option<&Ready> {
        let lanes = self.levels.values().flat_map(|level| level.partitions.values());
        let mut all = lanes.flat_map(|lane| lane.entries.values()).map(|entry| &entry.ready);
        all.find(|ready| ReadyId::of(ready) == *id)
    }

    /// Everything, as it would go.
    pub fn into_all(mut self) -> impl Iterator<Item = Ready> {
        std::iter::from_fn(move || self.pop())
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
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::model::keys::WorkflowKey;

    fn task(workflow: &str, id: i64, precedence: TaskPriority) -> Ready {
        let run = WorkflowKey::new("n", workflow).run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
        let (partition, scheduled_event_id, attempt) = (1, id, 1);
        let (normal_queue, offered_by, term) = (None, None, None);
        Ready::Task(TaskRef {
            partition,
            run,
            scheduled_event_id,
            attempt,
            stamp: 0,
            normal_queue,
            precedence,
            offered_by,
            term,
        })
    }

    fn plain(workflow: &str, id: i64) -> Ready {
        task(workflow, id, TaskPriority::default())
    }

    fn ids(backlog: &mut Backlog, count: usize) -> Vec<i64> {
        let popped = std::iter::from_fn(|| backlog.pop()).take(count);
        popped.map(|ready| if let Ready::Task(task) = ready { task.scheduled_event_id } else { -1 }).collect()
    }

    #[test]
    fn one_that_waits_takes_little() {
        // With its place in the order, its share and its id some 240 bytes, and its key: a million may wait.
        assert!(size_of::<BacklogEntry>() <= 128, "{}", size_of::<BacklogEntry>());
    }

    #[test]
    fn a_run_with_ten_thousand_tasks_delays_others_by_a_turn() {
        let mut backlog = Backlog::default();
        (0..10_000).for_each(|id| backlog.push(0, plain("flood", id)));
        assert_eq!(ids(&mut backlog, 3), [0, 1, 2]);
        backlog.push(0, plain("one", -10));
        backlog.push(0, plain("two", -20));
        backlog.push(0, plain("two", -21));
        let next = ids(&mut backlog, 6);
        assert!(next.iter().position(|id| *id == -10).is_some_and(|turn| turn <= 2), "{next:?}");
        assert!(next.contains(&-20) && next.contains(&-21), "{next:?}");
        assert_eq!(ids(&mut backlog, usize::MAX).len(), 10_000 - 3 - 3);
        assert!(backlog.is_empty());
    }

    #[test]
    fn whoever_comes_anew_all_the_time_keeps_no_second_task_waiting() {
        let mut backlog = Backlog::default();
        (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
        backlog.push(0, plain("two", -1));
        backlog.push(0, plain("two", -2));
        let mut seen = Vec::new();
        for turn in 100..400 {
            seen.extend(ids(&mut backlog, 1));
            backlog.push(0, plain(&format!("w{turn}"), turn));
        }
        let at = |id| seen.iter().position(|seen| *seen == id).expect("it has had its turn");
        assert!(at(-1) <= 101 && at(-2) <= 205, "{} and {}: about a turn of a hundred each", at(-1), at(-2));
    }

    #[test]
    fn what_is_offered_again_and_again_keeps_its_turn_and_puts_nothing_off() {
        let mut backlog = Backlog::default();
        (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
        for _ in 0..10 {
            (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
        }
        assert_eq!(backlog.len(), 100);
        assert_eq!(ids(&mut backlog, 2), [0, 1]);
        // Its turn was begun and not ended; meanwhile it is offered again.
        backlog.push(0, plain("w0", 0));
        backlog.push_first(0, plain("w0", 0));
        assert_eq!((backlog.len(), ids(&mut backlog, 1)), (99, vec![0]));
        backlog.push(0, plain("w50", 1_000));
        let next = ids(&mut backlog, 99);
        assert_eq!(next.len(), 99);
        assert_eq!(next.iter().position(|id| *id == 50), Some(48));
        assert!(next.contains(&1_000) && backlog.is_empty());
    }

    #[test]
    fn what_an_earlier_owner_offers_late_does_not_stand_for_what_a_later_one_has_offered() {
        let of = |term| match plain("w", 1) {
            Ready::Task(task) => Ready::Task(TaskRef { term: NonZeroU64::new(term), ..task }),
            query @ Ready::Query { .. } => query,
        };
        let term = |ready: Option<Ready>| ready.expect("it waits").term().map(NonZeroU64::get);
        let terms = |offers: &[u64]| {
            let mut backlog = Backlog::default();
            offers.iter().for_each(|term| backlog.push(0, of(*term)));
            let first = term(backlog.pop());
            // It was being handed out while another one was offered.
            offers.iter().rev().for_each(|term| backlog.push_first(0, of(*term)));
            assert_eq!(backlog.len(), 1);
            (first, term(backlog.pop()))
        };
        assert_eq!(terms(&[1, 9]), (Some(9), Some(9)));
        assert_eq!(terms(&[9, 1]), (Some(9), Some(9)));
        assert_eq!(terms(&[7, 7]), (Some(7), Some(7)));
        assert_eq!(terms(&[9, 0]).0, None, "where nobody knows the last one counts");
        assert_eq!(terms(&[0, 9]).0, Some(9));
    }

    #[test]
    fn questions_take_turns_as_their_runs_do() {
        let mut backlog = Backlog::default();
        (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
        for asked in 0..50 {
            let run =
                WorkflowKey::new("n", &format!("asked-{asked}")).run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
            let (query_id, normal_queue, offered_by) = (format!("1-{asked}"), None, None);
            backlog.push(0, Ready::Query { partition: 1, run, query_id, normal_queue, offered_by });
        }
        let mut answered = 0;
        for turn in 100..250 {
            answered += usize::from(ids(&mut backlog, 1) == [-1]);
            backlog.push(0, plain(&format!("w{turn}"), turn));
        }
        assert_eq!(answered, 50, "behind those that came before them");
    }

    #[test]
    fn runs_with_one_task_each_go_as_they_came() {
        let mut backlog = Backlog::default();
        (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
        assert_eq!(ids(&mut backlog, 50), (0..50).collect::<Vec<_>>());
        (100..150).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
        assert_eq!(ids(&mut backlog, 100), (50..150).collect::<Vec<_>>());
    }

    #[test]
    fn a_higher_priority_goes_first_whatever_waits() {
        let mut backlog = Backlog::default();
        for (number, level) in (0..).zip([5, 4, 3, 2, 1, 1, 5]) {
            let precedence = TaskPriority { level, ..TaskPriority::default() };
            let id = 10 * i64::from(level) + number;
            backlog.push(i64::from(level), task(&format!("w{level}"), id, precedence));
        }
        let levels: Vec<_> = backlog.levels().collect();
        assert_eq!(levels, [(1, 2, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), (5, 2, 5)]);
        assert_eq!(ids(&mut backlog, 9), [14, 15, 23, 32, 41, 50, 56]);
    }

    #[test]
    fn keys_share_by_weight_whatever_runs_they_come_from() {
        let mut backlog = Backlog::default();
        let of =
            |key: &str, stride| TaskPriority { fairness_key: key.into(), stride, ..TaskPriority::default() };
        for id in 0..1_000 {
            backlog.push(0, task(&format!("l{id}"), 1, of("light", 900)));
            backlog.push(0, task(&format!("h{id}"), 0, of("heavy", 100)));
        }
        let light: i64 = ids(&mut backlog, 500).iter().sum();
        assert!((45..=55).contains(&light), "one in ten of 500: {light}");
    }

    #[test]
    fn what_comes_back_is_the_next_one_and_nothing_is_forgotten() {
        let mut backlog = Backlog::default();
        [1, 2, 3].into_iter().for_each(|id| backlog.push(id, plain("w", id)));
        let (one, two) = (backlog.pop().expect("it waits"), backlog.pop().expect("it waits"));
        backlog.push_first(2, two);
        backlog.push_first(1, one);
        assert_eq!(backlog.levels().collect::<Vec<_>>(), [(3, 3, 1)]);
        assert_eq!(ids(&mut backlog, 9), [1, 2, 3]);
        assert_eq!((backlog.len(), backlog.pop()), (0, None));
    }
}
