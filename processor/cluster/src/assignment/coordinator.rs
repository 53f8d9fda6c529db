//! The coordinator assigns partition groups while the brokers have elected this node. It writes the assignment to
//! `control`, and records departed nodes. What to assign is decided in `assign`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use crate::assignment::assign::AssignmentInput;
use crate::assignment::groups::GroupTable;
use crate::control_rows::{ControlView, NodeRow, OwnerRow, Row};
use crate::control_table::ControlTable;
use crate::membership::departed::DepartedNodes;
use crate::membership::flap_damping::FlapDamping;
use crate::membership::reachability::fully_connected;
use crate::membership::this_node::ThisNode;
use crate::peers::client::PeerClient;

/// How often the coordinator looks, if nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a list of live members from the brokers is reused.
const LIVE_FOR: Duration = Duration::from_secs(1);

/// Assigns partition groups while this node is elected.
pub struct Coordinator {
    control: Arc<ControlTable>,
    node: Arc<ThisNode>,
    peers: Arc<PeerClient>,
    groups: Arc<GroupTable>,
    departed: DepartedNodes,
    has_followers: bool,
    /// As of the last look.
    is_coordinator: bool,
    /// The live members, and when the brokers listed them.
    live: Option<(Instant, BTreeSet<String>)>,
    uptimes: FlapDamping,
}

impl Coordinator {
    /// A coordinator that has assigned nothing yet. `has_followers`: each group has a standby.
    pub fn new(
        (control, node): (&Arc<ControlTable>, &Arc<ThisNode>),
        peers: &Arc<PeerClient>,
        groups: &Arc<GroupTable>,
        has_followers: bool,
        forget_after: Duration,
    ) -> Self {
        let departed = DepartedNodes { control: Arc::clone(control), peers: Arc::clone(peers), forget_after };
        Self {
            control: Arc::clone(control),
            node: Arc::clone(node),
            peers: Arc::clone(peers),
            groups: Arc::clone(groups),
            departed,
            has_followers,
            is_coordinator: false,
            live: None,
            uptimes: FlapDamping::default(),
        }
    }

    /// Assigns groups while this node is elected, until it ends. It runs beside the reconciler, because brokers that
    /// answer late must not delay that one.
    pub async fn run(mut self) {
        let (mut changes, mut ends) = (self.control.changes(), self.peers.ends());
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let node = Arc::clone(&self.node);
        loop {
            tokio::select! {
                () = node.until_ended() => return,
                _ = changes.changed() => {}
                _ = ends.changed() => {}
                _ = looks.tick() => {}
            }
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let view = self.control.view_full();
        let is_chosen = self.node.is_elected();
        let is_coordinator = is_chosen || self.stands_in().await;
        if std::mem::replace(&mut self.is_coordinator, is_coordinator) != is_coordinator {
            tracing::info!(is_coordinator, is_chosen, by = view.assignment.by, "coordinator changed");
        }
        if !is_coordinator {
            self.uptimes.end();
            return;
        }
        let Some(live) = self.live().await else { return };
        if !live.contains(&self.node.name) {
            return;
        }
        let Some(there) = self.trusted(&view, live).await else { return };
        let mut nodes = fully_connected(&view, &there);
        nodes.retain(|node| !view.is_too_old(node));
        let left_out: Vec<_> = there.difference(&nodes).cloned().collect();
        let now = Instant::now();
        let rows = nodes.iter().filter_map(|node| view.nodes.get_key_value(node));
        self.uptimes.see(rows, |node| view.hosts.contains(node), now);
        let staying: BTreeSet<_> = nodes.iter().filter(|node| !view.nodes[*node].leaves).cloned().collect();
        let (drained, wanted) =
            staying.into_iter().partition::<BTreeSet<_>, _>(|node| view.drains.contains(node));
        // Somebody must own the groups: drained nodes if there are no others, and leaving nodes if there are only
        // these.
        let (nodes, drained) = match (wanted.is_empty(), drained.is_empty()) {
            (false, _) => (wanted, drained),
            (true, false) => (drained, BTreeSet::new()),
            (true, true) => (nodes, BTreeSet::new()),
        };
        // A drained node that does not serve a group yet is not waited for.
        let has = |owner: &&OwnerRow| owner.serves || !drained.contains(&owner.node);
        let groups = self.groups.numbers();
        let mut assigned = view.assignment.groups.clone();
        assigned.resize(groups.end, None);
        let seen = AssignmentInput {
            settled: nodes.iter().filter(|node| self.uptimes.is_settled(node, now)).cloned().collect(),
            assigned,
            owners: groups
                .map(|group| view.owners.get(&group).filter(has).map(|owner| owner.node.clone()))
                .collect(),
            is_moving: view.owners.values().any(|owner| !owner.serves),
            rows: view.nodes.iter().map(|(name, row)| (name.clone(), row.rows.clone())).collect(),
            pinned: view.pins.clone(),
            has_followers: self.has_followers,
            drained,
            nodes,
        };
        let groups = seen.assign();
        if groups != view.assignment.groups || seen.nodes != view.assignment.nodes {
            let assignment = view.assignment.then(seen.nodes, groups, &self.node.name);
            let (nodes, groups) = (spaced(&assignment.nodes), by_group(&assignment.groups));
            tracing::info!(nodes, groups, left_out = spaced(&left_out), "partition groups assigned");
            let row = Row::Assignment(assignment);
            match self.control.write(row.clone()).await {
                Ok(()) => self.control.apply_and_publish(row),
                Err(error) => tracing::debug!(%error, "assignment not written"),
            }
        }
        self.departed.record(&there).await;
    }

    /// The live nodes that listen, and that trust this node and are trusted by it. None if no other node trusts this
    /// one: then this node is probably the stranger, and assigns nothing.
    async fn trusted(&self, view: &ControlView, live: BTreeSet<String>) -> Option<BTreeSet<String>> {
        let (mut nodes, mut trusts) = (BTreeSet::new(), Vec::new());
        for node in live {
            let Some(NodeRow { address, .. }) = view.nodes.get(&node) else { continue };
            if node == self.node.name {
                nodes.insert(node);
                continue;
            }
            if PeerClient::refuses(address).await {
                continue;
            }
            let was_there = view.assignment.nodes.contains(&node);
            let is_known = was_there && self.peers.refusal(address).is_none();
            let is_trusted = is_known || self.peers.instance(&node, address).await.is_some();
            trusts.extend(was_there.then_some(is_trusted));
            if is_trusted {
                nodes.insert(node);
            }
        }
        let is_stranger = !trusts.is_empty() && !trusts.contains(&true);
        (!is_stranger).then_some(nodes)
    }

    /// The former coordinator is gone and none is elected yet: the first of the other nodes stands in.
    async fn stands_in(&self) -> bool {
        let view = self.control.view_full();
        let by = &view.assignment.by;
        if by.is_empty() || *by == self.node.name {
            return false;
        }
        let first = view.assignment.nodes.iter().find(|node| *node != by);
        if first != Some(&self.node.name) {
            return false;
        }
        match view.nodes.get(by) {
            Some(row) => PeerClient::refuses(&row.address).await,
            None => true,
        }
    }

    async fn live(&mut self) -> Option<BTreeSet<String>> {
        if let Some((_, live)) = self.live.as_ref().filter(|(told, _)| told.elapsed() < LIVE_FOR) {
            return Some(live.clone());
        }
        let live = self.node.live_members().await?;
        if self.live.as_ref().is_none_or(|(_, before)| *before != live) {
            tracing::debug!(?live, "live members changed");
        }
        self.live = Some((Instant::now(), live.clone()));
        Some(live)
    }
}

/// The node of each group for a log line: `0=node-a 1=node-b 2=`.
fn by_group(groups: &[Option<String>]) -> String {
    let pairs = groups.iter().enumerate();
    spaced(pairs.map(|(group, node)| format!("{group}={}", node.as_deref().unwrap_or_default())))
}

/// Names for a log line.
fn spaced(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut line = String::new();
    for name in names {
        line.extend([if line.is_empty() { "" } else { " " }, name.as_ref()]);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_logged_as_the_node_of_each_group() {
        let groups = [Some("node-a".to_owned()), None, Some("node-b".to_owned())];
        assert_eq!(by_group(&groups), "0=node-a 1= 2=node-b");
        assert_eq!(by_group(&[]), "");
    }
}
