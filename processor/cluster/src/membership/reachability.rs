//! Which nodes this node does not reach, although they are members. Each node writes it to its row, and the
//! coordinator leaves nodes out until all assigned nodes reach each other. A queue whose home is not reached would
//! wait as long as the network is cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::control_rows::ControlView;
use crate::control_table::ControlTable;
use crate::membership::this_node::ThisNode;
use crate::peers::client::PeerClient;

/// How often other nodes are tried. A node with an open connection is not asked, because the connection shows whether
/// it lives.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A node counts as unreachable after so long. Longer than a connection takes to end (3 s); a dead node is reported
/// by the brokers after 6 s.
const MISSED_AFTER: Duration = Duration::from_secs(5);

/// Finds out which nodes this one reaches.
pub struct Reachability {
    /// The rows of `control`.
    pub control: Arc<ControlTable>,
    /// This node.
    pub node: Arc<ThisNode>,
    /// The way to the others.
    pub peers: Arc<PeerClient>,
}

impl Reachability {
    /// Tries the other nodes and records which are unreachable, until the node ends.
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

    /// Whether this node reaches each of the other nodes that are not dead. All are tried at once.
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

/// Nodes that all reach each other. The node with most cuts is left out until there is no cut. Of several, one
/// without groups is left out, then the last.
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

    /// The nodes that are left when each tells which it does not reach.
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
