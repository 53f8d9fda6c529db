//! How this node joins the others and leaves them. It decides when; the reconciler takes groups over and releases them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use everlog_partition::Error;
use tokio::time::MissedTickBehavior;

use crate::assignment::groups::GroupTable;
use crate::assignment::reconciler::Reconciler;
use crate::control_rows::Row;
use crate::control_table::ControlTable;
use crate::membership::this_node::ThisNode;
use crate::peers::client::PeerClient;

/// How often silent nodes are asked whether they answer.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the rows of `control` may take at the start.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// How long a leaving node waits until others have taken its groups.
pub const DEPART_WITHIN: Duration = Duration::from_secs(20);
/// How long leaving the consumer group may take. Other nodes notice it by themselves.
pub const LEAVE_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AT_DEPARTURE_EVERY: Duration = Duration::from_millis(10);

/// Joins this node to the others, and takes it away.
pub struct JoinLeave {
    pub control: Arc<ControlTable>,
    pub node: Arc<ThisNode>,
    pub groups: Arc<GroupTable>,
    pub peers: Arc<PeerClient>,
    pub reconciler: Arc<Reconciler>,
}

impl JoinLeave {
    /// Registers this node. Where no other node answers, it takes all partitions over before it returns.
    ///
    /// # Errors
    /// Another node has this name, or `control` cannot be read or written.
    pub async fn begin(&self) -> Result<Result<(), Error>> {
        let mut is_caught_up = self.control.caught_up();
        let told = tokio::time::timeout(TOLD_WITHIN, is_caught_up.wait_for(|told| *told)).await.is_ok();
        if !told {
            bail!("the topic control was not read to its end within {} s", TOLD_WITHIN.as_secs());
        }
        let namesake = self.control.view().nodes.get(&self.node.name).cloned();
        if let Some(row) = namesake
            && self
                .peers
                .instance_of_namesake(&self.node.name, &row.address)
                .await
                .is_some_and(|instance| instance != self.node.instance)
        {
            bail!(
                "a node named \"{}\" is there already, at {}: give each node a name of its own (server.name)",
                self.node.name,
                row.address
            );
        }
        self.control.write(self.node.change_row(|_row| {})).await?;
        let mut changes = self.control.changes();
        let is_there = || self.node.is_registered(&self.control.view());
        let seen = tokio::time::timeout(TOLD_WITHIN, async {
            while !is_there() && changes.changed().await.is_ok() {}
        });
        if seen.await.is_err() {
            bail!("the topic control did not deliver a row that was written {} s ago", TOLD_WITHIN.as_secs());
        }
        if self.any_peer_answers().await {
            return Ok(Ok(()));
        }
        let silent = self.silent().await;
        if !silent.is_empty() && self.waits_for(&silent).await {
            return Ok(Ok(()));
        }
        let groups = self.groups.numbers().map(|_| Some(self.node.name.clone())).collect();
        let nodes = BTreeSet::from([self.node.name.clone()]);
        let assignment = self.control.view().assignment.then(nodes, groups, &self.node.name);
        if self.control.view().assignment != assignment {
            self.control.write(Row::Assignment(assignment.clone())).await?;
            self.control.apply_and_publish(Row::Assignment(assignment));
        }
        for group in self.groups.numbers() {
            self.groups[group].is_acquiring.store(true, Ordering::Release);
        }
        let taken = self.reconciler.take_over_all(self.groups.numbers().collect()).await;
        self.reconciler.set_assigned_groups(taken.is_ok());
        // Where no partition can be served, the node has to end.
        Ok(taken.and_then(|closed| match closed.into_iter().next() {
            Some((_, error)) if self.groups.is_closed_whole() => Err(error),
            _some_serve => Ok(()),
        }))
    }

    /// True where another node answers.
    async fn any_peer_answers(&self) -> bool {
        let nodes = self.control.view().nodes.clone();
        let others = nodes.iter().filter(|(name, _)| **name != self.node.name);
        let mut asked = tokio::task::JoinSet::new();
        for (name, row) in others {
            let (peers, name, address) = (Arc::clone(&self.peers), name.clone(), row.address.clone());
            asked.spawn(async move { peers.instance(&name, &address).await.is_some() });
        }
        while let Some(answer) = asked.join_next().await {
            if answer.unwrap_or(false) {
                return true;
            }
        }
        false
    }

    /// Nodes that are live for the brokers and do not answer this node: they are slow, not reached, or one of the two
    /// does not trust the other. Their groups must not be taken over. A dead process refuses connections, and is not
    /// among them.
    async fn silent(&self) -> BTreeSet<String> {
        let nodes = self.control.view().nodes.clone();
        let mut asked = tokio::task::JoinSet::new();
        for (name, row) in nodes.into_iter().filter(|(name, _)| *name != self.node.name) {
            asked.spawn(async move { (!PeerClient::refuses(&row.address).await).then_some(name) });
        }
        let silent: BTreeSet<_> = asked.join_all().await.into_iter().flatten().collect();
        if silent.is_empty() {
            return silent;
        }
        match self.node.live_members().await {
            Some(live) => silent.intersection(&live).cloned().collect(),
            None => silent,
        }
    }

    /// Waits until another node answers (true), or the silent nodes are gone. Meanwhile this node is no member,
    /// because it could be elected.
    async fn waits_for(&self, silent: &BTreeSet<String>) -> bool {
        tracing::warn!(
            nodes = ?silent,
            "live nodes do not answer this one, or do not trust it: nothing is taken over until that changes"
        );
        self.node.set_away(true);
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let is_there = self.any_peer_answers().await;
            if is_there || self.silent().await.is_empty() {
                self.node.set_away(false);
                return is_there;
            }
        }
    }

    /// Hands all groups over to other nodes, if there are some.
    pub async fn depart(&self) {
        let has_others = {
            let view = self.control.view();
            view.assignment.nodes.iter().any(|node| *node != self.node.name)
        };
        if !has_others {
            return;
        }
        if tokio::time::timeout(DEPART_WITHIN, self.give_all()).await.is_err() || self.groups.are_in_use() {
            tracing::warn!(
                "not all partition groups handed over: other nodes take them over when this one is gone"
            );
        }
    }

    /// Waits until other nodes own all groups, or cannot be told to take them.
    async fn give_all(&self) {
        if self.control.is_log_unreachable() {
            return;
        }
        let row = self.node.change_row(|row| row.leaves = true);
        // The row comes before an assignment that this node may write as the coordinator. In the other order a reader
        // would take this node for dead, and fence it.
        let told = self.control.write(row.clone()).await;
        self.control.apply_and_publish(row);
        while told.is_ok() && self.groups.are_in_use() && !self.control.is_log_unreachable() {
            tokio::time::sleep(LOOK_AT_DEPARTURE_EVERY).await;
        }
    }

    /// Leaves the consumer group and removes the row. Calls of other nodes are refused from now on.
    pub async fn end(&self) {
        self.node.end();
        if tokio::time::timeout(LEAVE_WITHIN, self.leave_members()).await.is_err() {
            tracing::debug!("left the consumer group without waiting for it");
        }
    }

    async fn leave_members(&self) {
        let (members, follow) = (self.node.take_members(), self.control.take_follow());
        let is_its_own = self.node.is_registered(&self.control.view());
        if is_its_own
            && !self.control.is_log_unreachable()
            && let Err(error) = self.control.write(self.node.removed_row()).await
        {
            tracing::debug!(%error, "row of this node not removed");
        }
        // Both wait for their threads.
        let ended = tokio::task::spawn_blocking(move || drop((members, follow)));
        if ended.await.is_err() {
            tracing::warn!("leaving the consumer group failed");
        }
    }
}
