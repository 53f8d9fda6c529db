//! Offers on their way to the home of their queues: a window of each queue's is there, the rest waits here, where the tasks are.
//! Queues, their levels and partitions take turns, and so do fairness keys and runs in each, so a flood of one keeps nobody else
//! waiting. At the home is some of each key, as far as there is room: the home decides whose turn it is, and which key waits for
//! its rate. What the home holds is bounded whatever waits at owners: by [`AWAY_MAX`] for each of them, and [`LANE_AWAY_MIN`] for
//! each queue, level and partition beyond.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU64;

use crate::matching::backlog::{Backlog, OwnPriority, ReadyId, TurnRules};
use crate::model::task_types::{Offer, QueueKey, Ready};

/// Offers of one queue, level and partition that are at the home at once: more than are handed out while one message is under way.
pub const LANE_AWAY_MAX: usize = 500;
/// The same, with those of fairness keys that have few there: a rate may hold back what others have there.
pub const LANE_KEYS_AWAY_MAX: usize = 4_000;
/// Offers of one fairness key, where a lane has as many at the home as it may.
const KEY_AWAY_MIN: usize = 8;
/// The same, where a home has as many of this node as it may.
pub const LANE_AWAY_MIN: usize = 8;
/// Offers of all queues that one home has of this node.
pub const AWAY_MAX: usize = 50_000;

/// What waits for one home, and what is there.
#[derive(Default)]
pub struct CreditWindow {
    lanes: HashMap<LaneKey, LaneState>,
    /// Lanes with something that may go now.
    turns: VecDeque<LaneKey>,
    /// Lanes that may go on once the home has fewer of this node.
    blocked: VecDeque<LaneKey>,
    away: HashMap<ReadyId, AtHome>,
}

/// Who takes turns: a queue, a partition and a level. A lower level of the same keeps a higher one from nothing.
type LaneKey = (QueueKey, u32, u8);

/// What is at the home.
#[derive(Debug, PartialEq, Eq)]
struct AtHome {
    lane: LaneKey,
    fairness_key: Box<str>,
    /// The term that it was offered in.
    term: Option<NonZeroU64>,
}

#[derive(Default)]
struct LaneState {
    waiting: Backlog,
    /// What waits, so that nothing does twice.
    ids: HashSet<ReadyId>,
    away: usize,
    /// By fairness key.
    away_of_keys: HashMap<Box<str>, usize>,
    /// All that waits is of keys that have enough at the home.
    is_held: bool,
    /// It is among the turns.
    is_listed: bool,
    /// It waits for the home to have fewer of this node.
    is_blocked: bool,
    /// It is among the blocked, though it may not wait any more.
    has_place: bool,
}

impl CreditWindow {
    /// Something is ready since `now_ms`. What waits already, or is at the home, is not offered twice in a term: in between others
    /// may have had its partition.
    pub fn push(&mut self, now_ms: i64, Offer { queue, ready }: Offer) {
        let (id, lane) = (ReadyId::of(&ready), lane_of(queue, &ready));
        match self.away.get(&id) {
            Some(there) if there.lane == lane && ready.is_as_late_as(there.term) => return,
            // It has left that queue, or is there for a former owner.
            Some(_elsewhere) => self.taken(&ready),
            None => {}
        }
        let state = self.lanes.entry(lane.clone()).or_default();
        state.ids.insert(id);
        state.waiting.push(now_ms, ready);
        state.is_held = false;
        self.list(lane);
    }

    /// What goes next, in turn, and is at the home from now on.
    pub fn next(&mut self, count_max: usize) -> Vec<Offer> {
        let mut offers = Vec::new();
        while offers.len() < count_max
            && let Some(lane) = self.turns.pop_front()
        {
            let is_full = self.away.len() >= AWAY_MAX;
            let Some(state) = self.lanes.get_mut(&lane) else { continue };
            state.is_listed = false;
            if !state.has_more() {
                // Listed again when there is something, or room.
                continue;
            }
            if is_full && state.away >= LANE_AWAY_MIN {
                state.is_blocked = true;
                if !std::mem::replace(&mut state.has_place, true) {
                    self.blocked.push_back(lane);
                }
                continue;
            }
            let Some(ready) = state.next() else { continue };
            let (id, fairness_key) = (ReadyId::of(&ready), ready.fairness_key().unwrap_or_default().into());
            state.ids.remove(&id);
            // What waits in two queues is at the home for the one that it joined last.
            let away = AtHome { lane: lane.clone(), fairness_key, term: ready.term() };
            if let Some(former) = self.away.insert(id, away)
                && let Some(state) = self.lanes.get_mut(&former.lane)
            {
                state.came_back(&former.fairness_key);
            }
            offers.push(Offer { queue: lane.0.clone(), ready });
            self.list(lane);
        }
        offers
    }

    /// How many wait here.
    pub fn waiting(&self) -> usize {
        self.lanes.values().map(|state| state.waiting.len()).sum()
    }

    /// True for what is at the home, or on its way there.
    pub fn is_away(&self, id: &ReadyId) -> bool {
        self.away.contains_key(id)
    }

    /// True for what waits here.
    pub fn has(&self, id: &ReadyId) -> bool {
        self.lanes.values().any(|state| state.ids.contains(id))
    }

    /// What waits here for a queue: how much at each level, and since when the oldest of it.
    pub fn of_queue(&self, queue: &QueueKey) -> impl Iterator<Item = (u8, usize, i64)> {
        let states = self.lanes.iter().filter(move |((of, ..), _)| of == queue);
        states.flat_map(|(_, state)| state.waiting.levels())
    }

    /// What waits here of each queue, partition and level, and since when the oldest of it.
    pub fn of_all(&self) -> impl Iterator<Item = (&QueueKey, usize, i64)> {
        self.lanes.iter().flat_map(move |(key, state)| {
            state.waiting.levels().map(move |(_, count, since_ms)| (&key.0, count, since_ms))
        })
    }

    /// These have not gone: they are the next ones again.
    pub fn back(&mut self, now_ms: i64, offers: Vec<Offer>) {
        for Offer { queue, ready } in offers.into_iter().rev() {
            let (id, lane) = (ReadyId::of(&ready), lane_of(queue, &ready));
            // Forgotten meanwhile, it is offered anew by whoever has it.
            let is_there = |away: &AtHome| away.lane == lane && away.term == ready.term();
            if !self.away.get(&id).is_some_and(is_there) {
                continue;
            }
            self.taken(&ready);
            let state = self.lanes.entry(lane.clone()).or_default();
            if state.ids.insert(id) {
                state.waiting.push_first(now_ms, ready);
            }
            self.list(lane);
        }
    }

    /// Somebody is to get this: the home has it no more.
    pub fn taken(&mut self, ready: &Ready) {
        let Some(AtHome { lane, fairness_key, .. }) = self.away.remove(&ReadyId::of(ready)) else { return };
        if let Some(state) = self.lanes.get_mut(&lane) {
            state.came_back(&fairness_key);
            state.is_blocked &= state.away >= LANE_AWAY_MIN;
            match state.away == 0 && state.waiting.is_empty() && !state.is_listed {
                true => drop(self.lanes.remove(&lane)),
                false => self.list(lane),
            }
        }
        if self.away.len() < AWAY_MAX {
            self.unblock();
        }
    }

    /// Another one of those that wait for room takes turns.
    fn unblock(&mut self) {
        while let Some(lane) = self.blocked.pop_front() {
            let Some(state) = self.lanes.get_mut(&lane) else { continue };
            state.has_place = false;
            if std::mem::take(&mut state.is_blocked) {
                return self.list(lane);
            }
        }
    }

    /// Nothing of these queues and partitions is this node's to offer any more.
    pub fn forget(&mut self, is_gone: impl Fn(&QueueKey, u32) -> bool) {
        let stays = |(queue, partition, _): &LaneKey| !is_gone(queue, *partition);
        self.lanes.retain(|lane, _| stays(lane));
        self.away.retain(|_, away| stays(&away.lane));
        self.turns.retain(stays);
        self.blocked.retain(stays);
        let free = AWAY_MAX.saturating_sub(self.away.len()).min(self.blocked.len());
        (0..free).for_each(|_| self.unblock());
    }

    /// A lane that has something to send and room for it takes turns.
    fn list(&mut self, lane: LaneKey) {
        if let Some(state) = self.lanes.get_mut(&lane)
            && !state.is_listed
            && !state.is_blocked
            && state.has_more()
        {
            state.is_listed = true;
            self.turns.push_back(lane);
        }
    }
}

fn lane_of(queue: QueueKey, ready: &Ready) -> LaneKey {
    (queue, ready.partition(), ready.level())
}

impl LaneState {
    /// Something may go, or it is not known yet that nothing may.
    fn has_more(&self) -> bool {
        !self.waiting.is_empty() && !self.is_held && self.away < LANE_KEYS_AWAY_MAX
    }

    /// What goes next, and is at the home from now on.
    fn next(&mut self) -> Option<Ready> {
        let even = if self.away < LANE_AWAY_MAX { LANE_AWAY_MAX / self.waiting.keys().max(1) } else { 0 };
        let mut room = KeyRoom { away: &self.away_of_keys, of_each: even.max(KEY_AWAY_MIN) };
        let next = self.waiting.pop(&mut room);
        self.is_held = next.is_none();
        let ready = next?;
        self.away += 1;
        let key = ready.fairness_key().unwrap_or_default();
        match self.away_of_keys.get_mut(key) {
            Some(count) => *count += 1,
            None => drop(self.away_of_keys.insert(key.into(), 1)),
        }
        Some(ready)
    }

    /// The home has one of a fairness key less.
    fn came_back(&mut self, fairness_key: &str) {
        self.away -= 1;
        if let Some(count) = self.away_of_keys.get_mut(fairness_key) {
            *count -= 1;
            if *count == 0 {
                self.away_of_keys.remove(fairness_key);
            }
        }
        self.waiting.release(fairness_key);
        self.is_held = false;
    }
}

/// How much of each fairness key may be at the home.
struct KeyRoom<'a> {
    away: &'a HashMap<Box<str>, usize>,
    of_each: usize,
}

impl TurnRules for KeyRoom<'_> {
    fn stride(&self, ready: &Ready) -> u32 {
        OwnPriority.stride(ready)
    }

    fn holds(&mut self, ready: &Ready) -> bool {
        let away = self.away.get(ready.fairness_key().unwrap_or_default()).copied();
        away.unwrap_or(0) >= self.of_each
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::keys::WorkflowKey;
    use crate::model::priority::TaskPriority;
    use crate::model::task_types::{TaskKind, TaskRef};

    const RUN: &str = "1b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1";
    const FLOOD: i64 = 200_000;

    fn offer(queue: &str, partition: u32, id: i64) -> Offer {
        let queue = QueueKey { namespace_id: "n".into(), name: queue.into(), kind: TaskKind::Workflow };
        let run = WorkflowKey::new("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1", "w").run(RUN);
        let task = TaskRef {
            partition,
            run,
            scheduled_event_id: id,
            attempt: 1,
            stamp: 0,
            normal_queue: None,
            precedence: TaskPriority::default(),
            offered_by: None,
            term: None,
        };
        Offer { queue, ready: Ready::Task(task) }
    }

    /// What goes, by queue, partition and Scheduled event.
    fn names(offers: &[Offer]) -> Vec<(String, u32, i64)> {
        let name = |offer: &Offer| match &offer.ready {
            Ready::Task(task) => (offer.queue.name.clone(), task.partition, task.scheduled_event_id),
            Ready::Query { .. } => unreachable!("none is offered here"),
        };
        offers.iter().map(name).collect()
    }

    #[test]
    fn a_flood_of_one_queue_keeps_no_other_queue_and_no_other_partition_waiting() {
        let mut window = CreditWindow::default();
        (0..FLOOD).for_each(|id| window.push(0, offer("flood", 1, id)));
        window.push(0, offer("other", 1, -1));
        window.push(0, offer("flood", 2, -2));
        let next = names(&window.next(4));
        assert_eq!(
            next,
            [
                ("flood".into(), 1, 0),
                ("other".into(), 1, -1),
                ("flood".into(), 2, -2),
                ("flood".into(), 1, 1)
            ]
        );
    }

    #[test]
    fn what_a_home_has_no_room_for_is_told_by_queue() {
        let mut window = CreditWindow::default();
        (0..700).for_each(|id| window.push(1_000 + id, offer("q", 1, id)));
        (700..900).for_each(|id| window.push(5_000, offer("q", 2, id)));
        window.push(1, offer("other", 1, -1));
        let key = QueueKey { namespace_id: "n".into(), name: "q".into(), kind: TaskKind::Workflow };
        let told = |window: &CreditWindow| {
            window.of_queue(&key).fold((0, i64::MAX), |(sum, oldest_ms), (_, count, since_ms)| {
                (sum + count, oldest_ms.min(since_ms))
            })
        };
        assert_eq!(told(&window), (900, 1_000));
        window.next(usize::MAX);
        assert_eq!(told(&window), (200, 1_000 + LANE_AWAY_MAX as i64), "the rest is at the home");
    }

    #[test]
    fn a_home_has_no_more_than_a_window_and_gets_everything_in_the_end() {
        let mut window = CreditWindow::default();
        (0..FLOOD).for_each(|id| window.push(0, offer("flood", 1, id)));
        let mut there = VecDeque::new();
        let mut expected = 0;
        loop {
            there.extend(window.next(300));
            assert!(there.len() <= LANE_AWAY_MAX, "{}", there.len());
            let Some(first) = there.pop_front() else { break };
            assert_eq!(names(std::slice::from_ref(&first)), [("flood".into(), 1, expected)], "in order");
            window.taken(&first.ready);
            expected += 1;
        }
        assert_eq!(expected, FLOOD);
        assert!(window.lanes.is_empty() && window.away.is_empty(), "nothing is remembered");
    }

    #[test]
    fn queues_that_nobody_polls_leave_room_for_one_that_is_polled() {
        let mut window = CreditWindow::default();
        let dead = AWAY_MAX / LANE_AWAY_MAX;
        for queue in 0..dead + 50 {
            let first = 1_000 * queue as i64;
            (0..600).for_each(|id| window.push(0, offer(&format!("dead-{queue}"), 1, first + id)));
        }
        let there = window.next(usize::MAX);
        assert!(there.len() <= AWAY_MAX + 50 * LANE_AWAY_MIN, "{}", there.len());
        let alive = -100;
        (alive..0).for_each(|id| window.push(0, offer("alive", 1, id)));
        for id in 0..100 {
            let ready = offer("alive", 1, alive + id).ready;
            if id % (LANE_AWAY_MIN as i64) == 0 {
                let next = window.next(usize::MAX);
                assert_eq!(next.len(), LANE_AWAY_MIN.min(100 - id as usize), "polled, it goes on");
            }
            window.taken(&ready);
        }
        // Where the home gets rid of some, the others go on.
        there.iter().for_each(|offer| window.taken(&offer.ready));
        assert_eq!(window.next(usize::MAX).len(), (dead + 50) * 600 - there.len());
    }

    #[test]
    fn nothing_is_offered_twice_and_what_has_not_gone_goes_first() {
        let mut window = CreditWindow::default();
        for id in [1, 2, 1, 3] {
            window.push(0, offer("q", 1, id));
        }
        let first = window.next(2);
        assert_eq!(names(&first), [("q".into(), 1, 1), ("q".into(), 1, 2)]);
        window.push(0, offer("q", 1, 2));
        window.back(0, first);
        let next = window.next(9);
        assert_eq!(names(&next), [("q".into(), 1, 1), ("q".into(), 1, 2), ("q".into(), 1, 3)]);
        // It waits in another queue now: the former one has room again.
        window.push(0, offer("other", 1, 2));
        assert_eq!(names(&window.next(9)), [("other".into(), 1, 2)]);
        window.taken(&offer("q", 1, 1).ready);
        window.push(0, offer("q", 1, 1));
        assert_eq!(names(&window.next(9)), [("q".into(), 1, 1)], "once taken, it may come again");
    }

    #[test]
    fn what_is_at_the_home_for_a_former_owner_is_offered_by_the_next() {
        let mut window = CreditWindow::default();
        let of = |term| match offer("q", 1, 1) {
            Offer { queue, ready: Ready::Task(task) } => {
                Offer { queue, ready: Ready::Task(TaskRef { term: NonZeroU64::new(term), ..task }) }
            }
            query => query,
        };
        let terms = |offers: Vec<Offer>| {
            offers.iter().filter_map(|offer| Some(offer.ready.term()?.get())).collect::<Vec<_>>()
        };
        let terms_of = |window: &mut CreditWindow| terms(window.next(9));
        window.push(0, of(1));
        assert_eq!(terms_of(&mut window), [1]);
        window.push(0, of(1));
        assert!(terms_of(&mut window).is_empty(), "it is there");
        window.push(0, of(9));
        window.push(0, of(11));
        assert_eq!(terms_of(&mut window), [11], "once, as the latest owner has it");
        // It has not gone; meanwhile it was offered once more.
        window.push(0, of(13));
        window.back(0, vec![of(11)]);
        assert_eq!(terms_of(&mut window), [13]);
    }

    #[test]
    fn what_is_another_nodes_now_takes_no_room() {
        let mut window = CreditWindow::default();
        (0..2 * LANE_AWAY_MAX as i64).for_each(|id| window.push(0, offer("q", 1, id)));
        window.push(0, offer("q", 2, -1));
        let gone = window.next(usize::MAX);
        window.forget(|_, partition| partition == 1);
        assert!(window.next(9).is_empty());
        window.back(0, gone);
        assert_eq!(names(&window.next(9)), [("q".into(), 2, -1)], "the other partition's is offered still");
    }

    /// Of a queue with these levels and fairness keys.
    fn ranked(id: i64, level: u8, key: &str) -> Offer {
        let Offer { queue, ready } = offer("q", 1, id);
        let Ready::Task(task) = ready else { unreachable!("it is a task") };
        let precedence = TaskPriority { level, fairness_key: key.into(), ..TaskPriority::default() };
        Offer { queue, ready: Ready::Task(TaskRef { precedence, ..task }) }
    }

    #[test]
    fn what_is_urgent_goes_whatever_else_fills_the_window() {
        let mut window = CreditWindow::default();
        (0..1_000).for_each(|id| window.push(0, ranked(id, 5, "")));
        assert_eq!(window.next(usize::MAX).len(), LANE_AWAY_MAX);
        window.push(0, ranked(-1, 1, ""));
        assert_eq!(names(&window.next(9)), [("q".into(), 1, -1)]);
    }

    #[test]
    fn keys_that_wait_for_their_rates_at_the_home_leave_room_for_others() {
        let mut window = CreditWindow::default();
        (0..2_000).for_each(|id| window.push(0, ranked(id, 3, "slow")));
        let slow = window.next(usize::MAX);
        assert_eq!(slow.len(), LANE_AWAY_MAX, "all of it, as nothing else waits");
        (0..2_000).for_each(|id| window.push(0, ranked(-1 - id, 3, "fast")));
        for round in 0..2_000 / KEY_AWAY_MIN {
            let next = window.next(usize::MAX);
            assert!(next.len() == KEY_AWAY_MIN && names(&next).iter().all(|(.., id)| *id < 0), "{round}");
            next.iter().for_each(|offer| window.taken(&offer.ready));
        }
        assert!(window.next(usize::MAX).is_empty());
        let back = slow.iter().map(|offer| window.taken(&offer.ready)).count();
        assert_eq!((back, window.next(usize::MAX).len()), (LANE_AWAY_MAX, LANE_AWAY_MAX));
    }

    #[test]
    fn many_keys_have_few_tasks_each_at_the_home_and_all_go_in_the_end() {
        let mut window = CreditWindow::default();
        let keys = 2 * LANE_KEYS_AWAY_MAX / KEY_AWAY_MIN;
        for key in 0..keys {
            (0..20).for_each(|id| window.push(0, ranked((20 * key + id) as i64, 3, &key.to_string())));
        }
        let mut there = VecDeque::from(window.next(usize::MAX));
        assert_eq!(there.len(), LANE_KEYS_AWAY_MAX);
        let mut count = 0;
        while let Some(first) = there.pop_front() {
            window.taken(&first.ready);
            count += 1;
            there.extend(window.next(usize::MAX));
            assert!(there.len() <= LANE_KEYS_AWAY_MAX);
        }
        assert_eq!(count, 20 * keys);
        assert!(window.lanes.is_empty() && window.away.is_empty(), "nothing is remembered");
    }
}
