//! The due index: which run has to be looked at when. It holds the near future; what is due later stays in rows.
//!
//! Namespaces take turns among what is due, each with its oldest: a burst of one does not keep the few of another waiting.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::model::keys::{NamespaceKey, RunKey};

/// How far ahead the index reaches, in ms.
pub const REACH_MS: i64 = 60_000;

/// Runs in the order in which something becomes due.
#[derive(Debug)]
pub struct DueIndex {
    by_namespace: HashMap<NamespaceKey, NamespaceDue>,
    /// The earliest deadline of each namespace that has any.
    firsts: BTreeSet<(i64, NamespaceKey)>,
    /// Namespaces in the order in which they take turns: among them all whose earliest deadline is not behind `looked_ms`.
    turns: VecDeque<NamespaceKey>,
    looked_ms: i64,
    by_run: HashMap<RunKey, DueEntry>,
    /// Everything due before this moment is in the index.
    horizon_ms: i64,
}

/// The deadlines of a namespace.
#[derive(Debug, Default)]
struct NamespaceDue {
    by_time: BTreeSet<(i64, RunKey)>,
    /// It is in `turns`.
    has_turn: bool,
}

impl NamespaceDue {
    fn first_ms(&self) -> Option<i64> {
        self.by_time.first().map(|(due_ms, _)| *due_ms)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DueEntry {
    At(i64),
    Waking,
}

impl Default for DueIndex {
    fn default() -> Self {
        Self {
            by_namespace: HashMap::new(),
            firsts: BTreeSet::new(),
            turns: VecDeque::new(),
            looked_ms: i64::MIN,
            by_run: HashMap::new(),
            horizon_ms: 0,
        }
    }
}

impl DueIndex {
    /// The moment before which the index is complete.
    pub fn horizon_ms(&self) -> i64 {
        self.horizon_ms
    }

    /// The index is complete up to here.
    pub fn reached(&mut self, horizon_ms: i64) {
        self.horizon_ms = horizon_ms;
    }

    /// The run's next deadline; it replaces the one before. Beyond the horizon only its row remembers it.
    pub fn set(&mut self, run: &RunKey, due_ms: Option<i64>) {
        let due_ms = due_ms.filter(|due_ms| *due_ms < self.horizon_ms);
        let before = match due_ms {
            Some(due_ms) => self.by_run.insert(run.clone(), DueEntry::At(due_ms)),
            None => self.by_run.remove(run),
        };
        let before_ms = match before {
            Some(DueEntry::At(before_ms)) => Some(before_ms),
            Some(DueEntry::Waking) | None => None,
        };
        if before_ms == due_ms {
            return;
        }
        self.change(run.namespace(), |by_time| {
            if let Some(before_ms) = before_ms {
                by_time.remove(&(before_ms, run.clone()));
            }
            if let Some(due_ms) = due_ms {
                by_time.insert((due_ms, run.clone()));
            }
        });
    }

    /// Takes a run that is due, the earliest of the namespace whose turn it is; until its deadline is set again it is not
    /// taken again.
    pub fn take(&mut self, now_ms: i64) -> Option<RunKey> {
        self.give_turns(now_ms);
        while let Some(namespace) = self.turns.pop_front() {
            let Some(due) = self.by_namespace.get_mut(&namespace) else { continue };
            due.has_turn = false;
            if due.first_ms().is_none_or(|first_ms| first_ms > now_ms) {
                self.change(namespace, |_as_it_is| {});
                continue;
            }
            let taken = self.change(namespace, BTreeSet::pop_first);
            return taken.map(|(_, run)| {
                self.by_run.insert(run.clone(), DueEntry::Waking);
                run
            });
        }
        None
    }

    /// The earliest deadline in the index.
    pub fn next_ms(&self) -> Option<i64> {
        self.firsts.first().map(|(due_ms, _)| *due_ms)
    }

    /// True where the run's deadline was taken and its record has not come yet.
    pub fn is_waking(&self, run: &RunKey) -> bool {
        self.by_run.get(run) == Some(&DueEntry::Waking)
    }

    /// Runs in the index.
    pub fn len(&self) -> usize {
        self.by_run.len()
    }

    /// Changes the deadlines of a namespace, and what is known of them.
    fn change<T>(
        &mut self,
        namespace: NamespaceKey,
        change: impl FnOnce(&mut BTreeSet<(i64, RunKey)>) -> T,
    ) -> T {
        let due = self.by_namespace.entry(namespace).or_default();
        let before_ms = due.first_ms();
        let changed = change(&mut due.by_time);
        let first_ms = due.first_ms();
        if !due.has_turn && first_ms.is_some_and(|first_ms| first_ms <= self.looked_ms) {
            due.has_turn = true;
            self.turns.push_back(namespace);
        }
        if due.by_time.is_empty() && !due.has_turn {
            self.by_namespace.remove(&namespace);
        }
        if before_ms != first_ms {
            before_ms.map(|before_ms| self.firsts.remove(&(before_ms, namespace)));
            first_ms.map(|first_ms| self.firsts.insert((first_ms, namespace)));
        }
        changed
    }

    /// Whoever has something due gets a turn.
    fn give_turns(&mut self, now_ms: i64) {
        let looked_ms = std::mem::replace(&mut self.looked_ms, now_ms);
        if now_ms <= looked_ms {
            return;
        }
        let from = (looked_ms.saturating_add(1), NamespaceKey::MIN);
        for (_, namespace) in self.firsts.range(from..=(now_ms, NamespaceKey::MAX)) {
            let due = self.by_namespace.get_mut(namespace).filter(|due| !due.has_turn);
            due.into_iter().for_each(|due| {
                due.has_turn = true;
                self.turns.push_back(*namespace);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::DueIndex;
    use crate::model::keys::{RunKey, WorkflowKey};

    fn run(namespace: u128, id: &str) -> RunKey {
        WorkflowKey::new(&Uuid::from_u128(namespace).to_string(), id).run("")
    }

    fn index(entries: &[(u128, &str, i64)]) -> DueIndex {
        let mut index = DueIndex::default();
        index.reached(1_000);
        entries.iter().for_each(|(namespace, id, due_ms)| index.set(&run(*namespace, id), Some(*due_ms)));
        index
    }

    /// What is due now: Workflow Ids in the order in which they are taken.
    fn taken(index: &mut DueIndex, now_ms: i64, max: usize) -> String {
        let taken = (0..max).map_while(|_| index.take(now_ms));
        let ids = taken.map(|run| run.address().expect("a key").workflow_id);
        ids.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_namespace_has_its_turn_with_its_oldest() {
        let mut index = index(&[
            (1, "a3", 12),
            (1, "a1", 10),
            (1, "a4", 13),
            (1, "a2", 11),
            (2, "b1", 12),
            (3, "c1", 99),
        ]);
        assert_eq!(index.next_ms(), Some(10));
        assert_eq!(taken(&mut index, 9, 9), "");
        assert_eq!(taken(&mut index, 20, 9), "a1 b1 a2 a3 a4");
        assert_eq!((index.next_ms(), index.len()), (Some(99), 6));
    }

    #[test]
    fn a_burst_keeps_nobody_waiting_who_comes_later() {
        let mut index = index(&[(1, "a1", 10), (1, "a2", 10), (1, "a3", 10), (1, "a4", 10)]);
        assert_eq!(taken(&mut index, 10, 2).len(), 5);
        // Of a moment that was looked at before, and of a later one.
        index.set(&run(2, "b1"), Some(5));
        index.set(&run(3, "c1"), Some(11));
        let order = taken(&mut index, 11, 9);
        let place = |id: &str| order.split(' ').position(|taken| taken == id);
        assert!(place("b1") < Some(2) && place("c1") < Some(3), "{order}");
        assert_eq!(order.split(' ').count(), 4);
    }

    #[test]
    fn a_deadline_that_is_put_off_or_gone_is_not_taken() {
        let mut index = index(&[(1, "a1", 10), (1, "a2", 11), (2, "b1", 10), (2, "b2", 10)]);
        assert_eq!(taken(&mut index, 11, 1), "a1");
        index.set(&run(1, "a2"), Some(50));
        index.set(&run(2, "b1"), None);
        index.set(&run(2, "b2"), None);
        assert_eq!(taken(&mut index, 12, 9), "");
        assert_eq!((index.next_ms(), index.is_waking(&run(1, "a1"))), (Some(50), true));
        assert_eq!(taken(&mut index, 50, 9), "a2");
        index.set(&run(1, "a1"), Some(20));
        assert_eq!(taken(&mut index, 50, 9), "a1");
    }

    #[test]
    fn a_clock_that_goes_back_takes_nothing_early_and_loses_nothing() {
        let mut index = index(&[(1, "a1", 10), (1, "a2", 30), (2, "b1", 20)]);
        assert_eq!(taken(&mut index, 30, 1), "a1");
        assert_eq!(taken(&mut index, 15, 9), "");
        assert_eq!(taken(&mut index, 20, 9), "b1");
        assert_eq!(taken(&mut index, 30, 9), "a2");
        assert_eq!((taken(&mut index, 999, 9), index.next_ms()), (String::new(), None));
    }
}
