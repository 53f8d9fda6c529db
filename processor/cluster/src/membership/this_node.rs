//! This node as a member: its name, its row in `control`, its place in the group of nodes.

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
    /// Random, of this start.
    pub instance: String,
    control: Arc<ControlTable>,
    /// What it last wrote of itself, or is about to.
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
            Err(error) => tracing::debug!(%error, "others do not know yet which rows are kept here"),
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
        // One that has no row ends, or writes all of itself anew.
        if is_recorded || self.is_ended() {
            return;
        }
        // What the brokers did not take is written again, to them alone.
        if is_news && unreachable.is_empty() {
            tracing::info!("this node reaches all others");
        } else if is_news {
            tracing::warn!(nodes = ?unreachable, "this node does not reach others that the brokers hear of");
        }
        match self.control.write(row.clone()).await {
            Ok(()) => self.control.apply_and_publish(row),
            Err(error) => tracing::debug!(%error, "whom this node does not reach is told later"),
        }
    }

    /// Writes its row again where it was removed: the node slept, or has just come back.
    pub async fn register_again(&self) {
        if self.control.view().nodes.contains_key(&self.name) || self.is_ended() {
            return;
        }
        let row = self.change_row(|_row| {});
        match self.control.write(row.clone()).await {
            Ok(()) => self.control.apply_and_publish(row),
            Err(error) => tracing::debug!(%error, "others do not know that this node is there"),
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

    /// Says to the brokers that this node is away, or back: it cannot be elected meanwhile.
    pub fn set_away(&self, is_away: bool) {
        lock(&self.members).iter().for_each(|members| members.is_away(is_away));
    }

    /// True where the brokers have elected this node as the coordinator.
    pub fn is_elected(&self) -> bool {
        lock(&self.members).as_ref().is_some_and(NodeGroup::is_placer)
    }

    /// The nodes that live by the brokers' word; none where they do not say.
    pub async fn live_members(self: &Arc<Self>) -> Option<BTreeSet<String>> {
        let asked = Arc::clone(self);
        let live = tokio::task::spawn_blocking(move || lock(&asked.members).as_ref().map(NodeGroup::live));
        match live.await.ok().flatten()? {
            Ok(live) => Some(live.into_iter().collect()),
            Err(error) => {
                tracing::debug!(%error, "who lives is not known at the moment");
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
