//! Offers to the other nodes: a window at each, and what waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::matching::credit_window::CreditWindow;
use crate::matching::dispatcher::ReadyId;
use crate::matching::remote::KeptBack;
use crate::model::task_types::{QueueKey, Ready};

/// Offers to other nodes, by node.
#[derive(Default)]
pub struct CreditWindows(Mutex<Outlets>);

#[derive(Default)]
struct Outlets {
    /// See [`CreditWindows::era`].
    era: u64,
    by_node: BTreeMap<String, Arc<Outlet>>,
}

/// What waits for one node, what is there, and how its carrier hears that there is more to bring.
pub struct Outlet {
    /// When it was made, see [`CreditWindows::era`]. What is in it goes as of then, whatever is now: a home forgets what it was
    /// offered of an era when the next one begins, and the outlet is thrown away then.
    pub era: u64,
    window: Mutex<CreditWindow>,
    pub has_more: Notify,
}

impl Outlet {
    fn new(era: u64) -> Self {
        Self { era, window: Mutex::default(), has_more: Notify::new() }
    }

    pub fn window(&self) -> MutexGuard<'_, CreditWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CreditWindows {
    fn outlets(&self) -> MutexGuard<'_, Outlets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outlet to a node; `carried` hears of one that is new.
    pub fn outlet(&self, node: &str, carried: impl FnOnce(&Arc<Outlet>)) -> Arc<Outlet> {
        let mut outlets = self.outlets();
        if let Some(outlet) = outlets.by_node.get(node) {
            return Arc::clone(outlet);
        }
        let outlet = Arc::new(Outlet::new(outlets.era));
        outlets.by_node.insert(node.to_owned(), Arc::clone(&outlet));
        carried(&outlet);
        outlet
    }

    /// True while an outlet is the one to a node.
    pub fn has(&self, node: &str, outlet: &Arc<Outlet>) -> bool {
        self.outlets().by_node.get(node).is_some_and(|own| Arc::ptr_eq(own, outlet))
    }

    /// What the nodes that homes are chosen among are known by; another one whenever they, or one of their processes, are others.
    /// As of when this node has seen to what follows from that; 0 before.
    pub fn era(&self) -> u64 {
        self.outlets().era
    }

    /// The nodes are others, or have been started anew: nothing is at a home any more, and what they were offered is to be
    /// offered again. Both at once: what was offered between the two would be at a home that forgets it, and be thought there.
    pub fn begin(&self, era: u64) {
        let before = std::mem::replace(&mut *self.outlets(), Outlets { era, by_node: BTreeMap::new() });
        // Whoever carries for one of these finds it gone.
        before.by_node.values().for_each(|outlet| outlet.has_more.notify_one());
    }

    /// The node that something is at, or on its way to.
    pub fn away(&self, id: &ReadyId) -> Option<String> {
        let outlets = self.outlets();
        let mut away = outlets.by_node.iter().filter(|(_, outlet)| outlet.window().is_away(id));
        away.next().map(|(node, _)| node.clone())
    }

    /// True for what waits here for room at its home.
    pub fn has_waiting(&self, id: &ReadyId) -> bool {
        self.outlets().by_node.values().any(|outlet| outlet.window().has(id))
    }

    /// How many offers are not on their way yet.
    pub fn waiting(&self) -> usize {
        self.outlets().by_node.values().map(|outlet| outlet.window().waiting()).sum()
    }

    /// What is not on its way yet of a queue, by level; how long it waits is by `now_ms`.
    pub fn kept_back(&self, queue: &QueueKey, now_ms: i64) -> KeptBack {
        let mut kept_back = KeptBack::new();
        for outlet in self.outlets().by_node.values() {
            for (level, count, since_ms) in outlet.window().of_queue(queue) {
                add_kept_back(&mut kept_back, level, (count, now_ms - since_ms));
            }
        }
        kept_back
    }

    /// What is not on its way yet, by queue, partition and level, and since when the oldest of it, in ms.
    pub fn all_kept_back(&self) -> Vec<(QueueKey, usize, i64)> {
        let mut all = Vec::new();
        for outlet in self.outlets().by_node.values() {
            let window = outlet.window();
            all.extend(window.of_all().map(|(queue, count, since_ms)| (queue.clone(), count, since_ms)));
        }
        all
    }

    /// Something that was offered is to be got by somebody.
    pub fn taken(&self, ready: &Ready) {
        for outlet in self.outlets().by_node.values() {
            outlet.window().taken(ready);
            outlet.has_more.notify_one();
        }
    }

    /// These queues and partitions are another node's to offer, or nobody's.
    pub fn forget(&self, is_gone: impl Fn(&QueueKey, u32) -> bool) {
        for outlet in self.outlets().by_node.values() {
            outlet.window().forget(&is_gone);
            outlet.has_more.notify_one();
        }
    }
}

/// Adds what another one keeps back at a level: how much it is, and for how many milliseconds the oldest of it has waited.
pub fn add_kept_back(kept_back: &mut KeptBack, level: u8, (count, age_ms): (usize, i64)) {
    let row = kept_back.entry(level).or_default();
    *row = (row.0 + count, row.1.max(age_ms));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_era_goes_as_of_the_next() {
        let windows = CreditWindows::default();
        let mut carried = Vec::new();
        windows.begin(7);
        let before = windows.outlet("b", |outlet| carried.push(outlet.era));
        assert!(Arc::ptr_eq(&before, &windows.outlet("b", |_| panic!("it is there"))));
        windows.begin(8);
        // Whoever carries may have taken something out of it, or somebody may put something in just now.
        assert!((before.era, windows.has("b", &before)) == (7, false));
        let after = windows.outlet("b", |outlet| carried.push(outlet.era));
        assert!(windows.has("b", &after) && !windows.has("c", &after));
        assert_eq!((windows.era(), carried), (8, vec![7, 8]));
    }
}
