//! Several nodes on one log: who is there, who has what, and how calls and tasks find their way between them.
//!
//! The nodes are a group of consumers: the brokers notice who is gone, and choose the one that places the partition
//! groups. What it decides, and who has what, stands in the topic `control`, which all of them follow. None of that is
//! trusted with the truth: whoever takes a partition over fences everybody before, as the log does it.

mod assignment;
pub mod control_rows;
mod journal_lag;
mod local;
mod matching;
mod membership;
pub mod metrics;
mod peers;
pub mod status;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use everlog_engine::level;
use everlog_listen::Listener;
use everlog_log::{Log, Offset, Outage};
use everlog_log_kafka::control::follower::{Follow, News};
use everlog_log_kafka::control::node_group::Members;
use everlog_log_kafka::{Kafka, Options};
use everlog_partition::{Dispatcher, Error, Exchange, QueueKey, Stats};
use everlog_temporal::{Body, Broken, Calls, Later, POLL_HEADER, Peers, Place, Sealer, passing};
use hyper::{Request, Response};
use prost::Message;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::assignment::ownership_history::OwnershipHistory;
use crate::assignment::takeover_backoff::TakeoverBackoff;
use crate::control_rows::{ControlView, NodeRow, Row};
use crate::matching::remote::{Receipts, Recipient, RemoteOwners};
use crate::metrics::{ClusterCounters, Outcome};
use crate::peers::body_timeout::{BodyTimeout, FRAME_TIMEOUT};
use crate::peers::server::{CLAIMED_HEADER, RECEIPT_HEADER, read_claimed};

pub use local::{LocalNode, LocalPartitions, RemotePartitions, RowListener, TakeoverFailed};
pub use membership::join_leave::{DEPART_WITHIN, LEAVE_WITHIN};
pub use peers::client::{PeerAuth, PeerClient, StatusReply};

/// What a node is told of itself.
pub struct ClusterOptions {
    /// Its name among the nodes.
    pub name: String,
    /// Where others reach it.
    pub address: String,
    /// Where clients reach it.
    pub calls: String,
    /// What it shows others, and whom it takes for one.
    pub trust: PeerAuth,
    /// Partitions whose rows it keeps.
    pub rows: BTreeSet<u32>,
    /// A node that is gone for so long is forgotten.
    pub forget_after: Duration,
    /// How many other nodes follow each group's rows.
    pub replicas: u32,
    /// Random, of this start.
    pub instance: String,
}

impl ClusterOptions {
    /// What others are told.
    fn row(&self, group_partitions: u32) -> NodeRow {
        NodeRow {
            address: self.address.clone(),
            calls: self.calls.clone(),
            instance: self.instance.clone(),
            rows: self.rows.iter().map(|partition| (partition / group_partitions) as usize).collect(),
            level: level::LATEST,
            ..NodeRow::default()
        }
    }
}

/// This node among the others.
pub struct Cluster {
    me: String,
    instance: String,
    log: Weak<Kafka>,
    partitions: u32,
    group_partitions: u32,
    stats: Vec<Arc<Stats>>,
    local: Arc<dyn LocalPartitions>,
    dispatcher: Arc<Dispatcher>,
    send: everlog_partition::Send,
    links: PeerClient,
    exchange: Arc<Exchange>,
    this: Weak<Self>,
    receipts: Receipts,
    /// Polls that were brought to nodes and broke off, until those are told who may have to take something back.
    lost_polls: Mutex<HashMap<String, Vec<String>>>,
    /// Who had what before, for those polls.
    former: Mutex<OwnershipHistory>,
    counts: ClusterCounters,
    forget_after: Duration,
    replicas: u32,
    sealer: Sealer,
    runtime: Handle,
    gateway: OnceLock<Arc<everlog_temporal::Gateway>>,
    calls: OnceLock<Mutex<Calls>>,
    /// All rows, as far as they are told.
    view: Mutex<ControlView>,
    /// The same, for whoever only looks.
    shown: ArcSwap<ControlView>,
    version: watch::Sender<u64>,
    is_caught_up: watch::Sender<bool>,
    own: Mutex<NodeRow>,
    groups: Vec<Group>,
    /// It has had all that was assigned on it once: a assignment of its life before says nothing yet.
    has_assigned_groups: AtomicBool,
    /// Places for those who bring groups from nodes that serve them.
    restore_slots: tokio::sync::Semaphore,
    /// Held by whoever writes rows of owners.
    owner_rows: Mutex<()>,
    /// Whether the brokers take rows.
    control_outage: Mutex<Outage>,
    members: Mutex<Option<Members>>,
    follow: Mutex<Option<Follow>>,
    over: watch::Sender<bool>,
}

/// A group of partitions, as far as this node has to do with it.
#[derive(Default)]
struct Group {
    /// It is at work here.
    is_owned: AtomicBool,
    /// It is on its way here.
    is_acquiring: AtomicBool,
    /// How many nodes it is given to at this moment, of which one gets it.
    handovers: AtomicUsize,
    /// PeerForwarder were not told that it comes, or is here: the brokers did not take the row.
    is_unannounced: AtomicBool,
    /// At how many looks in a row somebody else was said to have it, though it is here.
    contradicted: AtomicU32,
    /// How often in a row something failed with it that does not pass by itself.
    failures: AtomicU32,
    /// How long it is left to another node that has taken it.
    backoff: Mutex<TakeoverBackoff>,
    /// Held by whoever brings its rows, takes it over or lets go of it.
    turn: tokio::sync::Mutex<()>,
    /// How far the changelog of each partition was when its rows were brought last, while this node follows them.
    standby_ends: Mutex<BTreeMap<u32, Offset>>,
}

impl Group {
    /// It could not be brought or taken over.
    fn count_failure(&self, may_pass: bool) {
        if !may_pass {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Cluster {
    /// Begins to follow what the nodes tell, and to answer them.
    ///
    /// # Errors
    /// A client of the brokers cannot be made.
    pub fn join(
        about: ClusterOptions,
        (log, options): (&Arc<Kafka>, &Options),
        local: LocalNode,
        listener: Listener,
    ) -> anyhow::Result<Arc<Self>> {
        let group_partitions = log.group_partitions();
        let groups = log.partitions().div_ceil(group_partitions) as usize;
        let own = about.row(group_partitions);
        let LocalNode { partitions: local, stats, dispatcher, send, sealer, learn } = local;
        let cluster = Arc::new_cyclic(|this: &Weak<Self>| Self {
            me: about.name,
            instance: about.instance,
            log: Arc::downgrade(log),
            partitions: log.partitions(),
            group_partitions,
            stats,
            exchange: Exchange::new(Arc::clone(&dispatcher), send.clone(), log.partitions(), this.clone()),
            this: this.clone(),
            dispatcher,
            local,
            send,
            links: PeerClient::new(about.trust),
            receipts: Receipts::default(),
            lost_polls: Mutex::default(),
            former: Mutex::default(),
            counts: ClusterCounters::default(),
            forget_after: about.forget_after,
            replicas: about.replicas,
            sealer,
            runtime: Handle::current(),
            gateway: OnceLock::new(),
            calls: OnceLock::new(),
            view: Mutex::default(),
            shown: ArcSwap::default(),
            version: watch::Sender::new(0),
            is_caught_up: watch::Sender::new(false),
            own: Mutex::new(own),
            groups: (0..groups).map(|_| Group::default()).collect(),
            has_assigned_groups: AtomicBool::new(false),
            restore_slots: tokio::sync::Semaphore::new(crate::assignment::reconciler::RESTORES_MAX),
            owner_rows: Mutex::default(),
            control_outage: Mutex::default(),
            members: Mutex::default(),
            follow: Mutex::default(),
            over: watch::Sender::new(false),
        });
        cluster.dispatcher.shares_with(cluster.exchange.clone());
        cluster.local.send_elsewhere(Arc::new(RemoteOwners(Arc::downgrade(&cluster))));
        let hears = Arc::downgrade(&cluster);
        let follow = log.follow_control(move |news| {
            if let Some(cluster) = hears.upgrade() {
                cluster.hear(news, &learn);
            }
        })?;
        *lock(&cluster.follow) = Some(follow);
        tokio::spawn(crate::peers::server::serve(listener, Arc::clone(&cluster)));
        let hears = Arc::downgrade(&cluster);
        let members = Members::join(options, move || {
            if let Some(cluster) = hears.upgrade() {
                cluster.changed();
            }
        })?;
        *lock(&cluster.members) = Some(members);
        Ok(cluster)
    }

    /// Calls that other nodes bring are answered by this gateway from now on.
    ///
    /// # Errors
    /// Its services cannot be made.
    pub fn answers_by(
        &self,
        gateway: &Arc<everlog_temporal::Gateway>,
    ) -> Result<(), everlog_temporal::Error> {
        // Set once: by whoever starts the node.
        let _ = self.calls.set(Mutex::new(gateway.calls()?));
        let _ = self.gateway.set(Arc::clone(gateway));
        Ok(())
    }

    /// Why this node does not do its part, if it does not. One that an operator has drained does: it answers calls by asking
    /// the others.
    pub fn not_ready_reason(&self) -> Option<String> {
        let view = self.shown.load();
        let is_assigned = view.assignment.nodes.contains(&self.me) || view.drains.contains(&self.me);
        if is_assigned && self.has_assigned_groups.load(Ordering::Acquire) {
            return None;
        }
        let lacking = match is_assigned {
            true => "the node has not got its partitions yet",
            false => "the node is not among the assigned ones yet",
        };
        let others = view.nodes.iter().filter(|(name, _)| **name != self.me);
        let strangers = others.filter_map(|(name, row)| Some((name, self.links.refusal(&row.address)?)));
        let told: String = strangers.map(|(name, why)| format!("; {name}: {why}")).collect();
        let unreachable = view
            .nodes
            .get(&self.me)
            .map(|row| &row.unreachable)
            .filter(|unreachable| !unreachable.is_empty());
        let missed = unreachable.map(|unreachable| {
            let names: Vec<_> = unreachable.iter().map(String::as_str).collect();
            format!("; it does not reach {}", names.join(", "))
        });
        Some(format!("{lacking}{told}{}", missed.unwrap_or_default()))
    }

    /// True where this node is one of those that are to have partitions.
    pub fn is_host(&self) -> bool {
        self.shown.load().hosts.contains(&self.me)
    }

    /// Waits until it is, or the node ends.
    pub async fn until_host(&self) {
        let mut changes = self.version.subscribe();
        while !self.is_host() && changes.changed().await.is_ok() {}
    }

    /// What somebody should know of this node that does its part.
    pub fn notice(&self) -> Option<String> {
        let is_drained = self.shown.load().drains.contains(&self.me);
        let has_some = self.groups().any(|group| self.groups[group].is_owned.load(Ordering::Relaxed));
        is_drained.then(|| match has_some {
            false => "the node is drained by an operator: it serves no partition".to_owned(),
            true => "the node is drained by an operator: its partitions go to others".to_owned(),
        })
    }

    /// Somebody knows what this node was not told yet: what it hears by is made anew.
    fn doubt(&self) {
        lock(&self.follow).iter().for_each(Follow::doubt);
    }

    fn hear(&self, news: News<'_>, learn: &RowListener) {
        match news {
            News::UpToDate => {
                if !*self.is_caught_up.borrow() {
                    // In this order: whoever waits for the rows looks at what is shown.
                    self.show();
                    self.is_caught_up.send_replace(true);
                }
            }
            News::Row(key, value) => {
                if let Some(row) = Row::read(key, value) {
                    self.learn(row);
                    if *self.is_caught_up.borrow() {
                        self.show();
                    }
                } else if let Some(value) = value {
                    learn(key, value);
                }
            }
        }
    }

    fn show(&self) {
        self.shown.store(Arc::new(lock(&self.view).clone()));
        self.changed();
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Takes a row in before the topic brings it, so that what follows from it waits for nothing.
    fn note(&self, row: Row) {
        self.learn(row);
        self.show();
    }

    /// Takes a row in, and remembers whom it takes a group from.
    fn learn(&self, row: Row) {
        let mut view = lock(&self.view);
        if let Row::Owner(group, next) = &row
            && let Some(owner) = view.owners.get(group)
            && next.as_ref().is_none_or(|next| next.node != owner.node)
        {
            lock(&self.former).note(*group, &owner.node, Instant::now());
        }
        view.take(row);
    }

    /// Writes a row; durable when it is done. Blocks.
    fn put(&self, row: &Row) -> Result<(), everlog_log::Error> {
        let log = self.log.upgrade().ok_or(everlog_log::Error::Closed)?;
        let (key, value) = row.write();
        let written = log.control_put(&key, value.as_deref());
        let mut outage = lock(&self.control_outage);
        match &written {
            Ok(()) => {
                if let Some(lasted) = outage.works(Instant::now()) {
                    tracing::info!(
                        after_s = lasted.as_secs(),
                        "the brokers take again what this node tells others"
                    );
                }
            }
            Err(error) => {
                if let Some(lasts) = outage.fails(Instant::now()) {
                    let for_s = lasts.as_secs();
                    tracing::warn!(%error, for_s, "the brokers do not take what this node tells others");
                }
            }
        }
        written
    }

    /// A row as the brokers have it now, whatever was told of it; its value is none where there is no such row. Blocks.
    fn latest(&self, key: &[u8]) -> Result<Option<Row>, everlog_log::Error> {
        let log = self.log.upgrade().ok_or(everlog_log::Error::Closed)?;
        let mut found = None;
        log.control_scan(&mut |row, value| {
            if row == key {
                found = Row::read(row, Some(value));
            }
        })?;
        Ok(found)
    }

    async fn write(self: &Arc<Self>, row: Row) -> Result<(), everlog_log::Error> {
        let cluster = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || cluster.put(&row)).await;
        written.unwrap_or(Err(everlog_log::Error::Closed))
    }

    fn groups(&self) -> Range<usize> {
        0..self.groups.len()
    }

    fn group_of(&self, partition: u32) -> usize {
        (partition / self.group_partitions) as usize
    }

    fn partitions_of(&self, group: usize) -> Range<u32> {
        let first = u32::try_from(group).unwrap_or(u32::MAX).saturating_mul(self.group_partitions);
        first..first.saturating_add(self.group_partitions).min(self.partitions)
    }

    /// True where a partition is at work here.
    fn holds(&self, partition: u32) -> bool {
        self.groups.get(self.group_of(partition)).is_some_and(|group| group.is_owned.load(Ordering::Acquire))
    }

    /// True where a partition is at work here and does not rest.
    fn serves(&self, partition: u32) -> bool {
        let is_serving = |stats: &Arc<Stats>| stats.serving.load(Ordering::Relaxed) == 1;
        self.holds(partition) && self.stats.get(partition as usize).is_some_and(is_serving)
    }

    /// The other nodes that are to have partitions, as far as this one knows.
    fn assigned_peers(&self) -> Vec<String> {
        self.shown.load().assignment.nodes.iter().filter(|node| **node != self.me).cloned().collect()
    }

    fn location_of(&self, partition: u32) -> Place {
        if self.holds(partition) {
            return Place::Here;
        }
        let view = self.shown.load();
        match view.owners.get(&self.group_of(partition)) {
            Some(owner) if owner.node == self.me => Place::Here,
            Some(owner) => Place::There(owner.node.as_str().into()),
            None => Place::Nowhere,
        }
    }

    fn address_of(&self, node: &str) -> Option<String> {
        self.shown.load().nodes.get(node).map(|row| row.address.clone())
    }

    /// Asks a node something; none where there is no answer.
    async fn ask(
        &self,
        node: &str,
        path: &'static str,
        question: &impl Message,
        within: Duration,
    ) -> Option<Bytes> {
        let address = self.address_of(node)?;
        self.links.ask(&address, path, question, within).await.ok()
    }

    /// What this node answers to whoever wants to know whether it is there: name and instance.
    fn signature(&self) -> String {
        format!("{}\n{}", self.me, self.instance)
    }

    fn calls(&self) -> Option<Calls> {
        self.calls.get().map(|calls| lock(calls).clone())
    }

    fn over(&self) -> watch::Receiver<bool> {
        self.over.subscribe()
    }
}

/// The other nodes, for a gateway.
pub struct PeerForwarder(pub Arc<Cluster>);

impl Peers for PeerForwarder {
    fn owner(&self, partition: u32) -> Place {
        self.0.location_of(partition)
    }

    fn home(&self, queue: &QueueKey) -> Place {
        match self.0.home_of(queue) {
            Some(node) if node != self.0.me => Place::There(node.into()),
            Some(_) | None => Place::Here,
        }
    }

    fn is_alone(&self) -> bool {
        let view = self.0.shown.load();
        let mut others = view.assignment.nodes.iter().chain(&view.hosts);
        others.all(|node| *node == self.0.me)
            && self.0.groups.iter().all(|group| group.is_owned.load(Ordering::Acquire))
    }

    fn others(&self) -> Vec<Arc<str>> {
        let view = self.0.shown.load();
        view.assignment
            .nodes
            .iter()
            .filter(|node| **node != self.0.me)
            .map(|node| node.as_str().into())
            .collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    fn poll_lost(&self, node: &str, poll_id: String) {
        self.0.poll_lost(node, poll_id);
    }

    fn call(&self, node: Arc<str>, request: Request<Bytes>) -> Later<Result<Response<Body>, Broken>> {
        let cluster = Arc::clone(&self.0);
        let poll_id = request.headers().get(POLL_HEADER);
        let poll_id = poll_id.and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        Box::pin(async move {
            let answered = match cluster.address_of(&node) {
                Some(address) => cluster.links.call(&address, request).await,
                None => Err(Broken::Unsent),
            };
            cluster.counts.hops.count(match &answered {
                Ok(_) => Outcome::Answered,
                Err(Broken::Unsent) => Outcome::Unsent,
                Err(Broken::Unanswered) => Outcome::Unanswered,
            });
            let mut response = answered?;
            let receipt = response.headers_mut().remove(RECEIPT_HEADER);
            let receipt = receipt.and_then(|receipt| receipt.to_str().ok()?.parse().ok());
            let claimed = response.headers_mut().remove(CLAIMED_HEADER);
            let claimed = claimed.and_then(|claimed| read_claimed(claimed.to_str().ok()?));
            let response = response.map(|body| Body::new(BodyTimeout::new(body, FRAME_TIMEOUT)));
            Ok(match receipt {
                Some(receipt) => {
                    passing(response, cluster.receipt(node, receipt, Recipient { poll_id, claimed }))
                }
                None => response,
            })
        })
    }
}

/// Nothing panics while it holds one of these locks, save the system without memory.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True for what a successor of a partition leads to.
fn is_lost_to_another(error: &Error) -> bool {
    matches!(error, Error::Superseded { .. } | Error::Log(everlog_log::Error::Fenced { .. }))
}
