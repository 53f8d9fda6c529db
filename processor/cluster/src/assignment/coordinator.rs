//! Who places partition groups, while it is this node that does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use everlog_log_kafka::control::node_group::Members;
use tokio::time::MissedTickBehavior;

use crate::assignment::assign::AssignmentInput;
use crate::control_rows::{ControlView, NodeRow, OwnerRow, Row};
use crate::membership::flap_damping::FlapDamping;
use crate::membership::reachability::fully_connected;
use crate::peers::client::PeerClient;
use crate::{Cluster, lock};

/// How often it looks at what is there, if nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the brokers' word for who is there is good.
const LIVE_FOR: Duration = Duration::from_secs(1);

impl Cluster {
    /// Places groups, where it is this node that does, until it ends. Brokers that answer late keep nothing else waiting.
    pub(crate) async fn coordinate(self: Arc<Self>) {
        let (mut changes, mut ends) = (self.version.subscribe(), self.links.ends());
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut over = self.over();
        let mut placer = Coordinator::default();
        loop {
            tokio::select! {
                () = async { drop(over.wait_for(|over| *over).await) } => return,
                _ = changes.changed() => {}
                _ = ends.changed() => {}
                _ = looks.tick() => {}
            }
            placer.look(&self).await;
        }
    }
}

/// What the node that places remembers.
#[derive(Default)]
struct Coordinator {
    /// It is this node that places, as of the last look.
    is_coordinator: bool,
    /// Who lives by the brokers' word, and when they gave it.
    live: Option<(Instant, BTreeSet<String>)>,
    lives: FlapDamping,
}

impl Coordinator {
    async fn look(&mut self, cluster: &Arc<Cluster>) {
        let view = cluster.shown.load_full();
        let is_chosen = lock(&cluster.members).as_ref().is_some_and(Members::is_placer);
        let is_coordinator = is_chosen || self.stands_in(cluster).await;
        if std::mem::replace(&mut self.is_coordinator, is_coordinator) != is_coordinator {
            tracing::info!(
                is_coordinator,
                is_chosen,
                by = view.assignment.by,
                "whether this node places has changed"
            );
        }
        if !is_coordinator {
            self.lives.end();
            return;
        }
        let Some(live) = self.live(cluster).await else { return };
        if !live.contains(&cluster.me) {
            return;
        }
        let Some(there) = self.trusted(cluster, &view, live).await else { return };
        let nodes = fully_connected(&view, &there);
        let left_out: Vec<_> = there.difference(&nodes).cloned().collect();
        let now = Instant::now();
        let rows = nodes.iter().filter_map(|node| view.nodes.get_key_value(node));
        self.lives.see(rows, |node| view.hosts.contains(node), now);
        let staying: BTreeSet<_> = nodes.iter().filter(|node| !view.nodes[*node].leaves).cloned().collect();
        let (drained, wanted) =
            staying.into_iter().partition::<BTreeSet<_>, _>(|node| view.drains.contains(node));
        // Somebody has to have them: in need those that are drained, in the worst case those that leave.
        let (nodes, drained) = match (wanted.is_empty(), drained.is_empty()) {
            (false, _) => (wanted, drained),
            (true, false) => (drained, BTreeSet::new()),
            (true, true) => (nodes, BTreeSet::new()),
        };
        // One that is drained and does not come to serve a group is not waited for.
        let has = |owner: &&OwnerRow| owner.serves || !drained.contains(&owner.node);
        let groups = cluster.groups();
        let mut assigned = view.assignment.groups.clone();
        assigned.resize(groups.end, None);
        let seen = AssignmentInput {
            settled: nodes.iter().filter(|node| self.lives.is_settled(node, now)).cloned().collect(),
            assigned,
            owners: groups
                .map(|group| view.owners.get(&group).filter(has).map(|owner| owner.node.clone()))
                .collect(),
            is_moving: view.owners.values().any(|owner| !owner.serves),
            rows: view.nodes.iter().map(|(name, row)| (name.clone(), row.rows.clone())).collect(),
            pinned: view.pins.clone(),
            has_followers: cluster.replicas > 0,
            drained,
            nodes,
        };
        let groups = seen.assign();
        if groups != view.assignment.groups || seen.nodes != view.assignment.nodes {
            let assignment = view.assignment.then(seen.nodes, groups, &cluster.me);
            tracing::info!(nodes = ?assignment.nodes, groups = ?assignment.groups, ?left_out, "assigned");
            let row = Row::Assignment(assignment);
            match cluster.write(row.clone()).await {
                Ok(()) => cluster.note(row),
                Err(error) => tracing::debug!(%error, "what was assigned cannot be told"),
            }
        }
        cluster.record_departed(&there).await;
    }

    /// Those of the living that somebody listens for, and that this node and they trust each other; none where it is this node that is
    /// a stranger, for all that it can tell: then it places nothing.
    async fn trusted(
        &self,
        cluster: &Arc<Cluster>,
        view: &ControlView,
        live: BTreeSet<String>,
    ) -> Option<BTreeSet<String>> {
        let (mut nodes, mut trusts) = (BTreeSet::new(), Vec::new());
        for node in live {
            let Some(NodeRow { address, .. }) = view.nodes.get(&node) else { continue };
            if node == cluster.me {
                nodes.insert(node);
                continue;
            }
            if PeerClient::refuses(address).await {
                continue;
            }
            let was_there = view.assignment.nodes.contains(&node);
            let is_known = was_there && cluster.links.refusal(address).is_none();
            let is_trusted = is_known || cluster.links.instance(&node, address).await.is_some();
            trusts.extend(was_there.then_some(is_trusted));
            if is_trusted {
                nodes.insert(node);
            }
        }
        let is_stranger = !trusts.is_empty() && !trusts.contains(&true);
        (!is_stranger).then_some(nodes)
    }

    /// The node that assigned last is gone, and nobody has been chosen yet: the first of the others does.
    async fn stands_in(&self, cluster: &Arc<Cluster>) -> bool {
        let view = cluster.shown.load_full();
        let by = &view.assignment.by;
        if by.is_empty() || *by == cluster.me {
            return false;
        }
        let first = view.assignment.nodes.iter().find(|node| *node != by);
        if first != Some(&cluster.me) {
            return false;
        }
        match view.nodes.get(by) {
            Some(row) => PeerClient::refuses(&row.address).await,
            None => true,
        }
    }

    async fn live(&mut self, cluster: &Arc<Cluster>) -> Option<BTreeSet<String>> {
        if let Some((_, live)) = self.live.as_ref().filter(|(told, _)| told.elapsed() < LIVE_FOR) {
            return Some(live.clone());
        }
        let live = cluster.live().await?;
        if self.live.as_ref().is_none_or(|(_, before)| *before != live) {
            tracing::debug!(?live, "the brokers hear of others now");
        }
        self.live = Some((Instant::now(), live.clone()));
        Some(live)
    }
}
