//! Several nodes on one log: membership, assignment of partition groups, forwarded calls, tasks between nodes.
//!
//! The nodes are a consumer group on Kafka: the brokers notice a dead node, and elect the coordinator. Assignment and
//! owners are rows of the topic `control`, which all nodes read. No safety depends on these rows: a take-over fences
//! all former owners through the log.

mod assignment;
pub mod control_rows;
mod control_table;
mod forwarder;
mod join_leave;
mod journal_lag;
mod local;
mod matching;
mod membership;
pub mod metrics;
mod peer_server;
mod peers;
pub mod status;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use everlog_engine::level;
use everlog_listen::Listener;
use everlog_log::Log;
use everlog_log_kafka::control::node_group::NodeGroup;
use everlog_log_kafka::{Kafka, Options};
use everlog_partition::{Dispatcher, Error};
use tokio::time::MissedTickBehavior;

use crate::assignment::coordinator::Coordinator;
use crate::assignment::groups::GroupTable;
use crate::assignment::reconciler::Reconciler;
use crate::assignment::standby::Standby;
use crate::control_rows::NodeRow;
use crate::control_table::ControlTable;
use crate::join_leave::JoinLeave;
use crate::journal_lag::JournalLag;
use crate::matching::remote::RemoteMatching;
use crate::matching::remote_owners::RemoteOwners;
use crate::membership::reachability::Reachability;
use crate::membership::this_node::ThisNode;
use crate::metrics::ClusterCounters;
use crate::peer_server::PeerServer;
use crate::peers::local_gateway::LocalGateway;
use crate::status::StatusReporter;
pub use forwarder::PeerForwarder;
pub use join_leave::{DEPART_WITHIN, LEAVE_WITHIN};
pub use local::{LocalNode, LocalPartitions, RemotePartitions, RowListener, TakeoverFailed};
pub use peers::client::{PeerAuth, PeerClient, StatusReply};
pub use peers::tls::Tls as PeerTls;

/// How often the reconciler looks, if nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What a node is among the others, and how it treats them.
pub struct ClusterOptions {
    /// Its name among the nodes.
    pub name: String,
    /// Where others reach it.
    pub address: String,
    /// Where clients reach it.
    pub calls: String,
    /// How it authenticates to other nodes, and they to it.
    pub trust: PeerAuth,
    /// Partitions whose rows it keeps.
    pub rows: BTreeSet<u32>,
    /// A node that is gone for so long is forgotten.
    pub forget_after: Duration,
    /// How many standbys each group has.
    pub replicas: u32,
    /// Random, one for each start.
    pub instance: String,
}

impl ClusterOptions {
    /// Its row in `control`.
    fn row(&self, group_partitions: u32) -> NodeRow {
        NodeRow {
            address: self.address.clone(),
            calls: self.calls.clone(),
            instance: self.instance.clone(),
            rows: self.rows.iter().map(|partition| (partition / group_partitions) as usize).collect(),
            level: level::LATEST,
            release: env!("CARGO_PKG_VERSION").into(),
            ..NodeRow::default()
        }
    }
}

/// This node among the others: its components, and the loop that drives them.
pub struct Cluster {
    node: Arc<ThisNode>,
    control: Arc<ControlTable>,
    groups: Arc<GroupTable>,
    peers: Arc<PeerClient>,
    reconciler: Arc<Reconciler>,
    matching: Arc<RemoteMatching>,
    gateway: Arc<LocalGateway>,
    local: Arc<dyn LocalPartitions>,
    dispatcher: Arc<Dispatcher>,
    send: everlog_partition::PartitionSender,
    counters: Arc<ClusterCounters>,
    forget_after: Duration,
    replicas: u32,
}

impl Cluster {
    /// Begins to read `control`, and to answer other nodes.
    ///
    /// # Errors
    /// A client of the brokers cannot be made.
    pub fn join(
        options: ClusterOptions,
        (log, kafka): (&Arc<Kafka>, &Options),
        local: LocalNode,
        listener: Listener,
    ) -> anyhow::Result<Arc<Self>> {
        let row = options.row(log.group_partitions());
        let LocalNode { partitions: local, stats, dispatcher, send, token_signer, learn } = local;
        let control = Arc::new(ControlTable::new(log));
        let node = Arc::new(ThisNode::new(options.name, row, Arc::clone(&control)));
        let groups = Arc::new(GroupTable::new(log.partitions(), log.group_partitions(), stats));
        let peers = Arc::new(PeerClient::new(options.trust));
        let (gateway, counters) = (Arc::new(LocalGateway::default()), Arc::new(ClusterCounters::default()));
        let known = (&control, &node);
        let matching = RemoteMatching::new(known, &groups, &peers, &gateway, &counters, (&dispatcher, &send));
        let exchange = &matching.exchange;
        let reconciler = Arc::new(Reconciler::new(known, &groups, &peers, &local, exchange, &counters));
        dispatcher.shares_with(Arc::clone(exchange) as _);
        local.send_elsewhere(Arc::new(RemoteOwners(Arc::downgrade(&matching))));
        control.follow(log, learn)?;
        let (forget_after, replicas) = (options.forget_after, options.replicas);
        let server = PeerServer {
            node: Arc::clone(&node),
            peers: Arc::clone(&peers),
            gateway: Arc::clone(&gateway),
            reconciler: Arc::clone(&reconciler),
            matching: Arc::clone(&matching),
            counters: Arc::clone(&counters),
            status: StatusReporter {
                node: Arc::clone(&node),
                groups: Arc::clone(&groups),
                token_signer,
                replicas,
            },
        };
        let cluster = Arc::new(Self {
            node,
            control,
            groups,
            peers,
            reconciler,
            matching,
            gateway,
            local,
            dispatcher,
            send,
            counters,
            forget_after,
            replicas,
        });
        tokio::spawn(peer_server::serve(listener, Arc::new(server)));
        let table = Arc::downgrade(&cluster.control);
        let members = NodeGroup::join(kafka, move || {
            if let Some(table) = table.upgrade() {
                table.notify();
            }
        })?;
        cluster.node.joined(members);
        Ok(cluster)
    }

    /// Calls that other nodes forward are answered by this gateway from now on.
    ///
    /// # Errors
    /// Its services cannot be made.
    pub fn answers_by(
        &self,
        gateway: &Arc<everlog_temporal::Gateway>,
    ) -> Result<(), everlog_temporal::Error> {
        self.gateway.set(gateway)
    }

    /// The gateway's way to the other nodes.
    pub fn forwarder(&self) -> PeerForwarder {
        PeerForwarder {
            control: Arc::clone(&self.control),
            node: Arc::clone(&self.node),
            groups: Arc::clone(&self.groups),
            peers: Arc::clone(&self.peers),
            matching: Arc::clone(&self.matching),
            counters: Arc::clone(&self.counters),
        }
    }

    fn join_leave(&self) -> JoinLeave {
        JoinLeave {
            control: Arc::clone(&self.control),
            node: Arc::clone(&self.node),
            groups: Arc::clone(&self.groups),
            peers: Arc::clone(&self.peers),
            reconciler: Arc::clone(&self.reconciler),
        }
    }

    /// Registers this node. Where no other node answers, it takes all partitions over before it returns.
    ///
    /// # Errors
    /// Another node has this name, or `control` cannot be read or written.
    pub async fn begin(&self) -> anyhow::Result<Result<(), Error>> {
        self.join_leave().begin().await
    }

    /// Hands all groups over to other nodes, if there are some. Takes up to [`DEPART_WITHIN`].
    pub async fn depart(&self) {
        self.join_leave().depart().await;
    }

    /// Leaves the consumer group and removes the row. Calls of other nodes are refused from now on.
    pub async fn end(&self) {
        self.join_leave().end().await;
    }

    /// True where all partitions are closed, and all at this node.
    pub fn is_closed_whole(&self) -> bool {
        self.groups.is_closed_whole()
    }

    /// Another node has taken a partition of this node: its group is released. False where the other node has the
    /// name of this one; then this node has to end.
    pub async fn step_down(&self, partition: u32) -> bool {
        self.reconciler.step_down(partition).await
    }

    /// Asks the brokers for the ends of journals, for metrics, until the node ends.
    pub async fn watch_lag(self: Arc<Self>) {
        let (control, node, groups) =
            (Arc::clone(&self.control), Arc::clone(&self.node), Arc::clone(&self.groups));
        drop(self);
        Arc::new(JournalLag { control, node, groups }).run().await;
    }

    /// Reconciles what this node owns with the assignment until the node ends. `failed` is called for partitions that
    /// cannot be recovered.
    pub async fn run(self: Arc<Self>, failed: Arc<TakeoverFailed>) {
        let mut changes = self.control.changes();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut retried = Instant::now();
        let mut nodes = self.control.view().assignment.nodes.clone();
        self.start_components();
        let exchange = &self.matching.exchange;
        if nodes.iter().eq([&self.node.name]) {
            // All offers are on this node.
            exchange.begin_alone(self.control.view().era());
        }
        loop {
            tokio::select! {
                () = self.node.until_ended() => return,
                _ = changes.changed() => {}
                _ = looks.tick() => {
                    self.reconciler.retry_closed(&mut retried);
                    self.dispatcher.sweep(&self.send);
                    let expired = self.matching.receipts.sweep();
                    self.counters.receipts_expired.fetch_add(expired, Ordering::Relaxed);
                    self.reconciler.reannounce_owners();
                }
            }
            let view = self.control.view_full();
            if view.assignment.nodes != nodes {
                nodes.clone_from(&view.assignment.nodes);
                tracing::info!(nodes = ?nodes, "cluster membership changed");
            }
            if view.era() != exchange.era() {
                exchange.begin(view.era());
            }
            self.reconciler.reconcile(&view, &failed);
            self.node.register_again().await;
        }
    }

    /// Starts the components that run beside this loop, until the node ends.
    fn start_components(&self) {
        let known = (&self.control, &self.node);
        let (control, node) = (Arc::clone(&self.control), Arc::clone(&self.node));
        let has_followers = self.replicas > 0;
        let coordinator =
            Coordinator::new(known, &self.peers, &self.groups, has_followers, self.forget_after);
        tokio::spawn(coordinator.run());
        tokio::spawn(Reachability { control, node, peers: Arc::clone(&self.peers) }.run());
        if has_followers {
            let (control, node) = (Arc::clone(&self.control), Arc::clone(&self.node));
            let (groups, local) = (Arc::clone(&self.groups), Arc::clone(&self.local));
            tokio::spawn(Arc::new(Standby { control, node, groups, local }).run());
        }
    }

    /// Why this node is not ready, if it is not. A drained node is ready: it forwards calls.
    pub fn not_ready_reason(&self) -> Option<String> {
        let view = self.control.view();
        if view.is_too_old(&self.node.name) {
            return Some(format!(
                "the log is at level {} of decisions, and this release knows {}: install the release that it was raised \
                 with, or a newer one",
                view.raised,
                level::LATEST
            ));
        }
        let is_assigned = self.node.takes_part(&view);
        if is_assigned && self.reconciler.has_assigned_groups() {
            return None;
        }
        let lacking = match is_assigned {
            true => "the node does not own all of its partitions yet",
            false => "the node is not in the assignment yet",
        };
        let others = view.nodes.iter().filter(|(name, _)| **name != self.node.name);
        let strangers = others.filter_map(|(name, row)| Some((name, self.peers.refusal(&row.address)?)));
        let told: String = strangers.map(|(name, why)| format!("; {name}: {why}")).collect();
        let unreachable = view
            .nodes
            .get(&self.node.name)
            .map(|row| &row.unreachable)
            .filter(|unreachable| !unreachable.is_empty());
        let missed = unreachable.map(|unreachable| {
            let names: Vec<_> = unreachable.iter().map(String::as_str).collect();
            format!("; it does not reach {}", names.join(", "))
        });
        Some(format!("{lacking}{told}{}", missed.unwrap_or_default()))
    }

    /// True where groups are assigned to this node, or could be.
    pub fn is_host(&self) -> bool {
        self.control.view().hosts.contains(&self.node.name)
    }

    /// Waits until [`Self::is_host`], or until the node ends.
    pub async fn until_host(&self) {
        let mut changes = self.control.changes();
        while !self.is_host() && changes.changed().await.is_ok() {}
    }

    /// What an operator should know of a node that is ready.
    pub fn notice(&self) -> Option<String> {
        let is_drained = self.control.view().drains.contains(&self.node.name);
        let has_some = self.groups.iter().any(|group| group.is_owned());
        is_drained.then(|| match has_some {
            false => "the node is drained by an operator: it serves no partition".to_owned(),
            true => "the node is drained by an operator: its partitions go to others".to_owned(),
        })
    }
}

/// No code panics while it holds one of these locks, except when memory is exhausted.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
