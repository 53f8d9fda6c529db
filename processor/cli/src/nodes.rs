//! The nodes of a log as a client sees them: the rows of `control`, the members, and the status that each node
//! reports.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use everlog_cluster::control_rows::{ControlView, OwnerRow, Row};
use everlog_cluster::status::{PartitionStatus, Status};
use everlog_cluster::{PeerAuth, PeerClient, StatusReply};
use everlog_config::Config;
use everlog_log_kafka::control::client::ControlClient;

/// How to authenticate to the nodes, from the settings.
///
/// # Errors
/// A file cannot be read or used.
pub fn peer_auth(config: &Config) -> Result<PeerAuth> {
    let cluster = &config.cluster;
    PeerAuth::read(cluster.secret()?, cluster.tls_files(), &cluster.server_name)
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// The rows of `control`.
    pub view: ControlView,
    /// The live members: one name for each process.
    pub members: Vec<String>,
    /// The replies of the nodes in `control`.
    pub answers: BTreeMap<String, StatusReply>,
    /// Nodes at whose addresses nobody listens.
    pub closed: BTreeSet<String>,
    /// The next offset of each partition's journal.
    pub ends: Vec<u64>,
    /// Partitions of a group.
    pub group_partitions: u32,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It serves.
    Serves,
    /// It is live, and no group is assigned to it, because its release does not know the level that the log is at.
    TooOld(u32),
    /// It is live, and no group is assigned to it yet.
    Comes,
    /// It is drained.
    Drained,
    /// It leaves.
    Leaves,
    /// No group is assigned to it, because it and these nodes do not reach each other.
    Apart(Vec<String>),
    /// It and this client do not trust each other: secrets or certificates differ.
    Refuses,
    /// At its address is a node of this name.
    Another(String),
    /// Its process is gone, which the brokers notice later.
    Ended,
    /// It is a live member, and does not answer this client.
    Silent,
    /// It is no live member. Since when, in ms since 1970-01-01 UTC, where that is known.
    Gone(Option<i64>),
}

/// The state of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// Its owner serves it; percent of the histories that are restored.
    Serves(u64),
    /// Its owner restores its rows; percent.
    Restores(u64),
    /// No node can serve it because of what is in the log.
    Closed,
    /// Its owner takes it over.
    Comes,
    /// Its owner does not report it.
    Untold,
    /// No node owns it.
    Nobodys,
}

impl NodeState {
    /// In words; `now_ms`: since 1970-01-01 UTC.
    pub fn words(&self, now_ms: i64) -> String {
        match self {
            Self::Serves => "serves".into(),
            Self::TooOld(level) => format!("is too old for level {level}"),
            Self::Comes => "comes".into(),
            Self::Drained => "drained".into(),
            Self::Leaves => "leaves".into(),
            Self::Apart(others) => format!("is apart from {}", others.join(", ")),
            Self::Refuses => "is not trusted, or does not trust".into(),
            Self::Another(name) => format!("{name} is there instead"),
            Self::Ended => "its process is gone".into(),
            Self::Silent => "does not answer".into(),
            Self::Gone(None) => "gone".into(),
            Self::Gone(Some(since_ms)) => format!("gone for {} s", (now_ms - since_ms).max(0) / 1_000),
        }
    }

    /// For programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Serves => "serves",
            Self::TooOld(_) => "too_old",
            Self::Comes => "comes",
            Self::Drained => "drained",
            Self::Leaves => "leaves",
            Self::Apart(_) => "apart",
            Self::Refuses => "refuses",
            Self::Another(_) => "another",
            Self::Ended => "ended",
            Self::Silent => "silent",
            Self::Gone(_) => "gone",
        }
    }
}

impl PartitionState {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Serves(100) => "serves".into(),
            Self::Serves(percent) => format!("serves, histories {percent} %"),
            Self::Restores(percent) => format!("restores, {percent} %"),
            Self::Closed => "is closed: its node's log says why".into(),
            Self::Comes => "is being taken over".into(),
            Self::Untold => "its node does not say".into(),
            Self::Nobodys => "nobody has it".into(),
        }
    }

    /// For programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Serves(_) => "serves",
            Self::Restores(_) => "restores",
            Self::Closed => "closed",
            Self::Comes => "comes",
            Self::Untold => "untold",
            Self::Nobodys => "nobodys",
        }
    }

    /// The partition serves calls.
    pub fn is_served(&self) -> bool {
        matches!(self, Self::Serves(_))
    }
}

impl Nodes {
    /// Reads `control`, then asks the nodes in it, all at once.
    ///
    /// # Errors
    /// The brokers do not answer.
    pub fn look(board: &ControlClient, trust: PeerAuth) -> Result<Self> {
        let view = view(board)?;
        let members = board.members()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (answers, closed) = runtime.block_on(ask(&view, trust));
        // After the replies of the nodes, so that no journal ends before what is applied of it.
        let ends = (0..board.partitions()).map(|partition| board.journal_end(partition));
        let ends = ends.collect::<Result<_, _>>()?;
        Ok(Self { view, members, answers, closed, ends, group_partitions: board.group_partitions() })
    }

    /// The group of a partition.
    pub fn group_of(&self, partition: u32) -> usize {
        (partition / self.group_partitions.max(1)) as usize
    }

    /// The owner of a partition, by `control`.
    pub fn owner(&self, partition: u32) -> Option<&OwnerRow> {
        self.view.owners.get(&self.group_of(partition))
    }

    /// The node that it is assigned to.
    pub fn placed(&self, partition: u32) -> Option<&str> {
        self.view.assignment.groups.get(self.group_of(partition))?.as_deref()
    }

    /// The status that a node reports.
    pub fn status(&self, node: &str) -> Option<&Status> {
        match self.answers.get(node)? {
            StatusReply::Status(status) if status.name == node => Some(status),
            StatusReply::Status(_) | StatusReply::Refused | StatusReply::Unreadable => None,
        }
    }

    /// The status that the owner of a partition reports of it.
    pub fn told(&self, partition: u32) -> Option<&PartitionStatus> {
        let status = self.status(&self.owner(partition)?.node)?;
        status.partitions.iter().find(|found| found.partition == partition)
    }

    /// The state of a node.
    pub fn node_state(&self, node: &str) -> NodeState {
        let leaves = self.view.nodes.get(node).is_some_and(|row| row.leaves);
        match self.answers.get(node) {
            Some(StatusReply::Status(status)) if status.name != node => {
                NodeState::Another(status.name.clone())
            }
            Some(StatusReply::Status(_)) if leaves => NodeState::Leaves,
            Some(StatusReply::Status(_)) if self.view.is_too_old(node) => NodeState::TooOld(self.view.raised),
            Some(StatusReply::Status(_)) if self.view.drains.contains(node) => NodeState::Drained,
            Some(StatusReply::Status(_)) if self.view.assignment.nodes.contains(node) => NodeState::Serves,
            Some(StatusReply::Status(_)) => match self.missed(node) {
                others if others.is_empty() => NodeState::Comes,
                others => NodeState::Apart(others),
            },
            Some(StatusReply::Refused) => NodeState::Refuses,
            Some(StatusReply::Unreadable) | None if self.members.iter().any(|member| member == node) => {
                match self.closed.contains(node) {
                    true => NodeState::Ended,
                    false => NodeState::Silent,
                }
            }
            Some(StatusReply::Unreadable) | None => {
                NodeState::Gone(self.view.gone.get(node).map(|gone| gone.since_ms))
            }
        }
    }

    /// Assigned nodes that one does not reach, or that do not reach it.
    pub fn missed(&self, node: &str) -> Vec<String> {
        let misses = |one: &str, other: &str| {
            self.view.nodes.get(one).is_some_and(|row| row.unreachable.contains(other))
        };
        let placed = self.view.assignment.nodes.iter();
        placed.filter(|other| misses(node, other) || misses(other, node)).cloned().collect()
    }

    /// The standby of a partition.
    pub fn follower(&self, partition: u32) -> Option<&str> {
        let mut told = self.view.nodes.keys().filter_map(|name| self.status(name));
        told.find(|status| status.follows.contains(&partition)).map(|status| status.name.as_str())
    }

    /// The state of a partition.
    pub fn partition_state(&self, partition: u32) -> PartitionState {
        match (self.owner(partition), self.told(partition)) {
            (None, _) => PartitionState::Nobodys,
            (Some(_), Some(told)) if told.serves => PartitionState::Serves(told.histories_percent),
            (Some(_), Some(told)) if told.is_closed => PartitionState::Closed,
            (Some(_), Some(told)) => PartitionState::Restores(told.restored_percent),
            (Some(owner), None) if !owner.serves && self.status(&owner.node).is_some() => {
                PartitionState::Comes
            }
            (Some(_), None) => PartitionState::Untold,
        }
    }

    /// Percent of a partition's rows that a node has restored; none where it restores none.
    pub fn brought_percent(&self, node: &str, partition: u32) -> Option<u64> {
        self.status(node)?.brings.get(&partition).copied()
    }

    /// How many journal records of a partition are not applied yet.
    pub fn lag_records(&self, partition: u32) -> Option<u64> {
        let end = self.ends.get(partition as usize)?;
        Some(end.saturating_sub(self.told(partition)?.applied))
    }

    /// Names that more than one live member has.
    pub fn namesakes(&self) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        self.members.iter().map(String::as_str).filter(|member| !seen.insert(*member)).collect()
    }
}

/// The rows of `control` that are about nodes.
///
/// # Errors
/// The brokers do not answer.
pub fn view(board: &ControlClient) -> Result<ControlView> {
    let mut view = ControlView::default();
    board.scan(&mut |key, value| {
        if let Some(row) = Row::read(key, Some(value)) {
            view.take(row);
        }
    })?;
    Ok(view)
}

/// The reply of each node, and the nodes at whose addresses nobody listens.
async fn ask(view: &ControlView, trust: PeerAuth) -> (BTreeMap<String, StatusReply>, BTreeSet<String>) {
    let links = std::sync::Arc::new(PeerClient::new(trust));
    let mut asked = tokio::task::JoinSet::new();
    for (name, row) in &view.nodes {
        let (links, name, address) = (std::sync::Arc::clone(&links), name.clone(), row.address.clone());
        asked.spawn(async move {
            let reply = links.status(&address).await;
            let is_closed = reply == StatusReply::Unreadable && PeerClient::refuses(&address).await;
            (name, reply, is_closed)
        });
    }
    let replies = asked.join_all().await;
    let closed = replies.iter().filter(|(_, _, is_closed)| *is_closed).map(|(name, _, _)| name.clone());
    let closed = closed.collect();
    (replies.into_iter().map(|(name, reply, _)| (name, reply)).collect(), closed)
}

#[cfg(test)]
pub mod tests {
    use everlog_cluster::control_rows::{Assignment, GoneRow, NodeRow};

    use super::*;

    /// Two nodes with a group of two partitions each, all good.
    pub fn two() -> Nodes {
        let mut nodes = Nodes {
            members: vec!["a".into(), "b".into()],
            ends: vec![10; 4],
            group_partitions: 2,
            ..Nodes::default()
        };
        for (group, name) in ["a", "b"].into_iter().enumerate() {
            let row = NodeRow {
                address: format!("{name}:1"),
                calls: format!("{name}:2"),
                instance: name.into(),
                rows: BTreeSet::from([group]),
                ..NodeRow::default()
            };
            nodes.view.take(Row::Node(name.into(), Some(row)));
            nodes.view.take(Row::Owner(group, Some(OwnerRow { node: name.into(), serves: true })));
            let partitions = [2 * group, 2 * group + 1].map(|partition| PartitionStatus {
                partition: u32::try_from(partition).expect("four of them"),
                serves: true,
                applied: 10,
                restored_percent: 100,
                histories_percent: 100,
                ..PartitionStatus::default()
            });
            let status = Status {
                name: name.into(),
                instance: name.into(),
                version: "1.0.0".into(),
                keys: vec!["00".into()],
                partitions: partitions.into(),
                ..Status::default()
            };
            nodes.answers.insert(name.into(), StatusReply::Status(status));
        }
        nodes.view.assignment = Assignment {
            nodes: BTreeSet::from(["a".into(), "b".into()]),
            groups: vec![Some("a".into()), Some("b".into())],
            by: "a".into(),
            ..Assignment::default()
        };
        nodes
    }

    /// Changes the status of a node.
    pub fn tell(nodes: &mut Nodes, node: &str, change: impl FnOnce(&mut Status)) {
        match nodes.answers.get_mut(node) {
            Some(StatusReply::Status(status)) => change(status),
            other => panic!("{node} tells nothing: {other:?}"),
        }
    }

    #[test]
    fn a_node_that_is_gone_is_told_from_one_that_does_not_answer() {
        let mut nodes = two();
        assert_eq!(nodes.node_state("a"), NodeState::Serves);
        nodes.answers.insert("b".into(), StatusReply::Unreadable);
        assert_eq!(nodes.node_state("b"), NodeState::Silent, "the brokers hear of it");
        nodes.closed.insert("b".into());
        assert_eq!(nodes.node_state("b"), NodeState::Ended, "and nobody listens");
        nodes.members.pop();
        assert_eq!(nodes.node_state("b"), NodeState::Gone(None));
        nodes.view.take(Row::Gone("b".into(), Some(GoneRow { since_ms: 1_000 })));
        assert_eq!(nodes.node_state("b").words(8_500), "gone for 7 s");
        nodes.answers.insert("b".into(), StatusReply::Refused);
        assert_eq!(nodes.node_state("b"), NodeState::Refuses);
        nodes.answers.insert("b".into(), nodes.answers["a"].clone());
        assert_eq!(nodes.node_state("b"), NodeState::Another("a".into()));
    }

    #[test]
    fn a_drained_node_a_new_one_and_one_that_leaves_are_told_apart() {
        let mut nodes = two();
        nodes.view.assignment.nodes.remove("b");
        assert_eq!(nodes.node_state("b"), NodeState::Comes);
        nodes.view.nodes.get_mut("a").expect("it is there").unreachable = BTreeSet::from(["b".into()]);
        assert_eq!(nodes.node_state("b").words(0), "is apart from a");
        nodes.view.take(Row::Drain("b".into(), Some(true)));
        assert_eq!(nodes.node_state("b"), NodeState::Drained);
        nodes.view.nodes.get_mut("b").expect("it is there").leaves = true;
        assert_eq!(nodes.node_state("b"), NodeState::Leaves);
    }

    #[test]
    fn a_partition_is_told_with_what_it_still_lacks() {
        let mut nodes = two();
        assert_eq!(nodes.partition_state(3).words(), "serves");
        assert_eq!(nodes.lag_records(3), Some(0));
        tell(&mut nodes, "b", |status| status.partitions[1].histories_percent = 40);
        assert_eq!(nodes.partition_state(3).words(), "serves, histories 40 %");
        tell(&mut nodes, "b", |status| {
            (status.partitions[1].serves, status.partitions[1].applied) = (false, 3);
            status.partitions[1].restored_percent = 3;
        });
        assert_eq!(nodes.partition_state(3).words(), "restores, 3 %");
        assert_eq!(nodes.lag_records(3), Some(7));
        tell(&mut nodes, "b", |status| status.partitions.clear());
        assert_eq!(nodes.partition_state(3), PartitionState::Untold);
        nodes.view.take(Row::Owner(1, Some(OwnerRow { node: "b".into(), serves: false })));
        assert_eq!(nodes.partition_state(3), PartitionState::Comes);
        nodes.answers.insert("b".into(), StatusReply::Unreadable);
        assert_eq!(nodes.partition_state(3), PartitionState::Untold, "nobody takes it over");
        nodes.view.take(Row::Owner(1, None));
        assert_eq!(nodes.partition_state(3), PartitionState::Nobodys);
        assert!(nodes.partition_state(0).is_served());
    }

    #[test]
    fn two_processes_of_one_name_are_found() {
        let mut nodes = two();
        assert!(nodes.namesakes().is_empty());
        nodes.members.push("a".into());
        assert_eq!(nodes.namesakes(), BTreeSet::from(["a"]));
    }
}
