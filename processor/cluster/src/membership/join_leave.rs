//! How a node comes among the others, and how it leaves them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use everlog_partition::Error;
use tokio::time::MissedTickBehavior;

use crate::Cluster;
use crate::control_rows::Row;
use crate::peers::client::PeerClient;

/// How often it is looked whether silent nodes answer or are gone.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the rows of `control` may take to be there at the start.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// How long a node that ends waits for others to take what it has.
pub const DEPART_WITHIN: Duration = Duration::from_secs(20);
/// How long it may take to leave the group of nodes: others find out by themselves.
pub const LEAVE_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AT_DEPARTURE_EVERY: Duration = Duration::from_millis(10);

impl Cluster {
    /// Says that this node is there. Where no other one is, it takes all partitions over before it returns.
    ///
    /// # Errors
    /// Another node has this name; `control` cannot be read or written.
    pub async fn begin(self: &Arc<Self>) -> Result<Result<(), Error>> {
        let mut is_caught_up = self.control.caught_up();
        let told = tokio::time::timeout(TOLD_WITHIN, is_caught_up.wait_for(|told| *told)).await.is_ok();
        if !told {
            bail!("the topic control could not be read within {} s", TOLD_WITHIN.as_secs());
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
            bail!(
                "the topic control did not bring a row that was written within {} s",
                TOLD_WITHIN.as_secs()
            );
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
        // Where no partition can be served there is nothing to go on with.
        Ok(taken.and_then(|closed| match closed.into_iter().next() {
            Some((_, error)) if self.is_closed_whole() => Err(error),
            _some_serve => Ok(()),
        }))
    }

    /// True where all partitions are closed, and all at this node.
    pub fn is_closed_whole(&self) -> bool {
        self.groups.is_closed_whole()
    }

    /// True where another node answers.
    async fn any_peer_answers(self: &Arc<Self>) -> bool {
        let nodes = self.control.view().nodes.clone();
        let others = nodes.iter().filter(|(name, _)| **name != self.node.name);
        let mut asked = tokio::task::JoinSet::new();
        for (name, row) in others {
            let (cluster, name, address) = (Arc::clone(self), name.clone(), row.address.clone());
            asked.spawn(async move { cluster.peers.instance(&name, &address).await.is_some() });
        }
        while let Some(answer) = asked.join_next().await {
            if answer.unwrap_or(false) {
                return true;
            }
        }
        false
    }

    /// Nodes that live by the brokers' word, and are not to be spoken to from here: they are slow to answer, cannot be reached, or one
    /// of the two does not trust the other. What they have is not to be taken as if nobody were there. One whose process is gone
    /// refuses connections.
    async fn silent(self: &Arc<Self>) -> BTreeSet<String> {
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

    /// Waits until another node answers (true), or those that are silent are gone. Meanwhile it is no member of the group: it might
    /// be chosen to place.
    async fn waits_for(self: &Arc<Self>, silent: &BTreeSet<String>) -> bool {
        tracing::warn!(
            nodes = ?silent,
            "another node lives by the brokers' word and does not answer, or does not trust this one: nothing is taken over until \
             that changes"
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

    /// Gives all groups to other nodes, where there are some and the brokers tell them of it, and leaves.
    pub async fn depart(self: &Arc<Self>) {
        let has_others = {
            let view = self.control.view();
            view.assignment.nodes.iter().any(|node| *node != self.node.name)
        };
        if !has_others {
            return;
        }
        if tokio::time::timeout(DEPART_WITHIN, self.give_all()).await.is_err() || self.groups.are_in_use() {
            tracing::warn!("nobody has taken all partitions; others take them over when they notice");
        }
    }

    /// Waits until others have all groups, or cannot be told to take them.
    async fn give_all(self: &Arc<Self>) {
        if self.control.is_log_unreachable() {
            return;
        }
        let row = self.node.change_row(|row| row.leaves = true);
        // Where it is this node that places, what it places must come behind: to whoever reads that first this node is gone, and
        // is fenced.
        let told = self.control.write(row.clone()).await;
        self.control.apply_and_publish(row);
        while told.is_ok() && self.groups.are_in_use() && !self.control.is_log_unreachable() {
            tokio::time::sleep(LOOK_AT_DEPARTURE_EVERY).await;
        }
    }

    /// Leaves the group of nodes; what others bring is answered no more.
    pub async fn end(self: &Arc<Self>) {
        self.node.end();
        if tokio::time::timeout(LEAVE_WITHIN, self.leave_members()).await.is_err() {
            tracing::debug!("the group of nodes was left without a word; others find out by themselves");
        }
    }

    async fn leave_members(self: &Arc<Self>) {
        let (members, follow) = (self.node.take_members(), self.control.take_follow());
        let is_its_own = self.node.is_registered(&self.control.view());
        if is_its_own
            && !self.control.is_log_unreachable()
            && let Err(error) = self.control.write(self.node.removed_row()).await
        {
            tracing::debug!(%error, "others find out by themselves that this node is gone");
        }
        // Both wait for their threads.
        let ended = tokio::task::spawn_blocking(move || drop((members, follow)));
        if ended.await.is_err() {
            tracing::warn!("the group of nodes was not left well");
        }
    }
}
