//! Whom a node does not reach, though the brokers hear of both: it tells so, and whoever places leaves a node out, so that
//! those that are left reach each other. A queue whose home nobody reaches would wait as long as the cut lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::control_rows::ControlView;
use crate::control_table::ControlTable;
use crate::membership::this_node::ThisNode;
use crate::peers::client::PeerClient;

/// How often a node looks whether it reaches the others. One with an open connection is not asked: that shows by itself
/// whether it lives.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// One that is not reached for so long is told: later than the connection to it has ended, which takes 3 s, and than the brokers
/// tell of one that is dead, which takes 6 s.
const MISSED_AFTER: Duration = Duration::from_secs(5);

/// Looks whom this node reaches.
pub struct Reachability {
    /// The rows of `control`.
    pub control: Arc<ControlTable>,
    /// This node.
    pub node: Arc<ThisNode>,
    /// The way to the others.
    pub peers: Arc<PeerClient>,
}

impl Reachability {
    /// Looks whom this node reaches, and tells whom it does not, until it ends.
    pub async fn run(self) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut missed_since = BTreeMap::new();
        loop {
            tokio::select! {
                () = self.node.until_ended() => return,
                _ = looks.tick() => {}
            }
            let view = self.control.view_full();
            let reached = self.reached(&view).await;
            missed_since.retain(|name, _| reached.get(name) == Some(&false));
            for name in reached.into_iter().filter(|(_, is_reached)| !is_reached).map(|(name, _)| name) {
                missed_since.entry(name).or_insert_with(Instant::now);
            }
            let missed = missed_since.iter().filter(|(_, since)| since.elapsed() >= MISSED_AFTER);
            self.node.record_unreachable(missed.map(|(name, _)| name.clone()).collect()).await;
        }
    }

    /// Whether there is a way to each of the other nodes that are not known to be gone; all are tried at once.
    async fn reached(&self, view: &ControlView) -> BTreeMap<String, bool> {
        let is_other = |name: &String| *name != self.node.name && !view.gone.contains_key(name);
        let mut tried = JoinSet::new();
        for (name, row) in view.nodes.iter().filter(|(name, _)| is_other(name)) {
            let (peers, name, address) = (Arc::clone(&self.peers), name.clone(), row.address.clone());
            tried.spawn(async move {
                let is_reached = peers.reaches(&name, &address).await;
                (name, is_reached)
            });
        }
        tried.join_all().await.into_iter().collect()
    }
}

/// Those of the nodes that all reach each other: who misses most, or is missed by most, is left out until nobody is missed; of several
/// one that has nothing assigned on it, then the last.
pub(crate) fn fully_connected(view: &ControlView, nodes: &BTreeSet<String>) -> BTreeSet<String> {
    let mut nodes = nodes.clone();
    let mut cuts: BTreeSet<[&String; 2]> = BTreeSet::new();
    for (name, row) in &view.nodes {
        let unreachable = row.unreachable.iter().filter(|missed| nodes.contains(*missed) && *missed != name);
        if nodes.contains(name) {
            cuts.extend(unreachable.map(|missed| [name.min(missed), name.max(missed)]));
        }
    }
    while !cuts.is_empty() {
        let mut counts = BTreeMap::<&String, usize>::new();
        cuts.iter().flatten().for_each(|name| *counts.entry(name).or_default() += 1);
        let worst = counts.into_iter().max_by_key(|(name, cuts)| {
            let is_new = !view.assignment.nodes.contains(*name);
            (*cuts, is_new, *name)
        });
        let Some((worst, _)) = worst else { break };
        nodes.remove(worst);
        cuts.retain(|ends| !ends.contains(&worst));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_rows::{Assignment, NodeRow, Row};

    fn names(names: &str) -> BTreeSet<String> {
        names.chars().map(String::from).collect()
    }

    /// What is left of all nodes that tell something; each tells whom it misses.
    fn left(assigned: &str, told: &[(&str, &str)]) -> BTreeSet<String> {
        let mut view = ControlView {
            assignment: Assignment { nodes: names(assigned), ..Assignment::default() },
            ..ControlView::default()
        };
        for (name, unreachable) in told {
            let row = NodeRow { unreachable: names(unreachable), ..NodeRow::default() };
            view.take(Row::Node((*name).into(), Some(row)));
        }
        fully_connected(&view, &view.nodes.keys().cloned().collect())
    }

    #[test]
    fn nodes_that_reach_each_other_all_stay() {
        assert_eq!(left("abc", &[("a", ""), ("b", ""), ("c", "")]), names("abc"));
        assert_eq!(left("ab", &[("a", "z"), ("b", "")]), names("ab"), "one that is gone is missed by nobody");
    }

    #[test]
    fn of_two_that_miss_each_other_one_stays() {
        assert_eq!(left("ab", &[("a", "b"), ("b", "a")]), names("a"));
        assert_eq!(left("abc", &[("a", ""), ("b", "c"), ("c", "")]), names("ab"), "one way is enough");
    }

    #[test]
    fn one_that_is_cut_from_all_goes_and_the_others_stay() {
        assert_eq!(left("abc", &[("a", "bc"), ("b", "a"), ("c", "a")]), names("bc"), "whoever places");
        assert_eq!(left("abcd", &[("a", "cd"), ("b", "cd"), ("c", ""), ("d", "ab")]).len(), 2, "two halves");
    }

    #[test]
    fn one_that_was_left_out_stays_out_while_it_misses_one() {
        assert_eq!(left("bc", &[("a", "b"), ("b", "a"), ("c", "")]), names("bc"));
        assert_eq!(left("bc", &[("a", ""), ("b", ""), ("c", "")]), names("abc"));
    }
}
