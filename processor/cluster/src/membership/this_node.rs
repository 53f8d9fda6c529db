//! This node as a member: its name, its row in `control`, its membership in the consumer group. Does not assign or
//! take over anything.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use everlog_log_kafka::control::node_group::NodeGroup;
use tokio::sync::watch;

use crate::control_rows::{ControlView, NodeRow, Row};
use crate::control_table::ControlTable;
use crate::lock;

/// This node.
pub struct ThisNode {
    /// Its name among the nodes.
    pub name: String,
    /// Random, one for each start.
    pub instance: String,
    control: Arc<ControlTable>,
    /// The row that it has written last, or is about to write.
    row: Mutex<NodeRow>,
    members: Mutex<Option<NodeGroup>>,
    ended: watch::Sender<bool>,
}

impl ThisNode {
    /// A node that is no member yet.
    pub fn new(name: String, row: NodeRow, control: Arc<ControlTable>) -> Self {
        let instance = row.instance.clone();
        let (row, members, ended) = (Mutex::new(row), Mutex::default(), watch::Sender::new(false));
        Self { name, instance, control, row, members, ended }
    }

    /// What it answers to whoever asks whether it is there: name and instance.
    pub fn signature(&self) -> String {
        format!("{}\n{}", self.name, self.instance)
    }

    /// True for a node that takes part: it is assigned groups, or drained.
    pub fn takes_part(&self, view: &ControlView) -> bool {
        view.assignment.nodes.contains(&self.name) || view.drains.contains(&self.name)
    }

    /// True where its row in `control` is of this start.
    pub fn is_registered(&self, view: &ControlView) -> bool {
        view.nodes.get(&self.name).is_some_and(|row| row.instance == self.instance)
    }

    /// The other nodes that are assigned groups.
    pub fn assigned_peers(&self) -> Vec<String> {
        let view = self.control.view();
        view.assignment.nodes.iter().filter(|node| **node != self.name).cloned().collect()
    }

    /// Changes its row, which is not written yet.
    pub fn change_row(&self, change: impl FnOnce(&mut NodeRow)) -> Row {
        let mut row = lock(&self.row);
        change(&mut row);
        Row::Node(self.name.clone(), Some(row.clone()))
    }

    /// The row that removes this node from `control`.
    pub fn removed_row(&self) -> Row {
        Row::Node(self.name.clone(), None)
    }

    /// Announces that the rows of these groups are kept here.
    pub async fn announce_rows(&self, groups: &[usize]) {
        let mut is_new = false;
        let row = self.change_row(|row| {
            let known = row.rows.len();
            row.rows.extend(groups);
            is_new = row.rows.len() > known;
        });
        if !is_new || self.is_ended() {
            return;
        }
        match self.control.write(row.clone()).await {
            Ok(()) => self.control.apply_and_publish(row),
            // The next row of this node says it.
            Err(error) => tracing::debug!(%error, "kept rows not announced yet"),
        }
    }

    /// Writes the names of the nodes that this one does not reach, where they have changed.
    pub async fn record_unreachable(&self, unreachable: BTreeSet<String>) {
        let is_recorded =
            self.control.view().nodes.get(&self.name).is_none_or(|row| row.unreachable == unreachable);
        let mut is_news = false;
        let row = self.change_row(|row| {
            is_news = row.unreachable != unreachable;
            row.unreachable.clone_from(&unreachable);
        });
        // A node without a row ends, or registers again.
        if is_recorded || self.is_ended() {
            return;
        }
        // What the brokers did not take is written again.
        if is_news && unreachable.is_empty() {
            tracing::info!("all nodes reachable");
        } else if is_news {
            tracing::warn!(nodes = ?unreachable, "nodes unreachable");
        }
        match self.control.write(row.clone()).await {
            Ok(()) => self.control.apply_and_publish(row),
            Err(error) => tracing::debug!(%error, "unreachable nodes not recorded yet"),
        }
    }

    /// Registers again where its row was removed: the node was suspended, or has just come back.
    pub async fn register_again(&self) {
        if self.control.view().nodes.contains_key(&self.name) || self.is_ended() {
            return;
        }
        let row = self.change_row(|_row| {});
        match self.control.write(row.clone()).await {
            Ok(()) => self.control.apply_and_publish(row),
            Err(error) => tracing::debug!(%error, "node not registered again yet"),
        }
    }

    /// Is a member of the group of nodes from now on.
    pub fn joined(&self, members: NodeGroup) {
        *lock(&self.members) = Some(members);
    }

    /// The membership, which ends when it is dropped; dropping it waits for its thread.
    pub fn take_members(&self) -> Option<NodeGroup> {
        lock(&self.members).take()
    }

    /// Tells the brokers that this node is away, or back. A node that is away cannot be elected.
    pub fn set_away(&self, is_away: bool) {
        lock(&self.members).iter().for_each(|members| members.is_away(is_away));
    }

    /// True where the brokers have elected this node as the coordinator.
    pub fn is_elected(&self) -> bool {
        lock(&self.members).as_ref().is_some_and(NodeGroup::is_placer)
    }

    /// The members that are live for the brokers; none where the brokers do not answer.
    pub async fn live_members(self: &Arc<Self>) -> Option<BTreeSet<String>> {
        let asked = Arc::clone(self);
        let live = tokio::task::spawn_blocking(move || lock(&asked.members).as_ref().map(NodeGroup::live));
        match live.await.ok().flatten()? {
            Ok(live) => Some(live.into_iter().collect()),
            Err(error) => {
                tracing::debug!(%error, "live members unknown");
                None
            }
        }
    }

    /// Ends everything that runs until the node ends.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    /// True from then on.
    pub fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for it.
    pub async fn until_ended(&self) {
        let mut ended = self.ended.subscribe();
        // An error: the sender is gone, and the node with it.
        drop(ended.wait_for(|ended| *ended).await);
    }
}
