//! Matching between nodes: offers to the homes of queues, claims of what was offered, receipts of what was delivered.
//! Which task goes to which poll is decided by the dispatcher at the home.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_partition::{
    BoxedFuture, ClaimReply, Delivery, Dispatcher, InboxMessage, KeptBack, NodeLink, Offer, Poll, QueueKey,
    Ready, Receipt, RemoteClaim, RemoteClaims, RunKey, Waiting, add_kept_back,
};
use everlog_temporal::{Location, random_id};
use prost::Message;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::assignment::assign::home;
use crate::assignment::groups::GroupTable;
use crate::control_table::ControlTable;
use crate::lock;
use crate::matching::receipts::{Receipts, Recipient};
use crate::membership::this_node::ThisNode;
use crate::metrics::ClusterCounters;
use crate::metrics::Outcome;
use crate::peers::client::PeerClient;
use crate::peers::local_gateway::LocalGateway;
use crate::peers::protocol::{
    BacklogReply, Claim as ClaimWire, Claimed as ClaimedWire, Lost, Offers, PollsLost, QueueWire, Received,
    Release,
};

/// How long a message to another node may take.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// How long another node may take to say what waits there. It is only shown, and somebody waits for it.
const KEPT_WITHIN: Duration = Duration::from_secs(1);
/// How long a claim may take: it goes through a journal.
const CLAIMED_WITHIN: Duration = Duration::from_secs(10);
/// The pause before a failed attempt is repeated.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// The pause where every node was asked.
const ASKED_AROUND_AFTER: Duration = Duration::from_secs(1);
/// How long a loss is forwarded to the owner of a partition. Longer than the brokers take to notice a dead owner, and
/// a successor to serve.
const OWNER_WITHIN: Duration = Duration::from_secs(60);
/// When a node dies, all calls to it break off at once. Lost polls are gathered for so long.
const LOST_TOGETHER: Duration = Duration::from_millis(100);
/// Tasks and polls between this node and the others.
pub struct RemoteMatching {
    /// The rows of `control`.
    pub control: Arc<ControlTable>,
    /// This node.
    pub node: Arc<ThisNode>,
    /// The groups.
    pub groups: Arc<GroupTable>,
    peers: Arc<PeerClient>,
    gateway: Arc<LocalGateway>,
    counters: Arc<ClusterCounters>,
    dispatcher: Arc<Dispatcher>,
    send: everlog_partition::PartitionSender,
    /// Offers to other nodes, and offers of other nodes.
    pub exchange: Arc<RemoteClaims>,
    /// Receipts of answers that other nodes carry.
    pub receipts: Receipts,
    /// Forwarded polls that broke off, by node. They are reported to the successors, which take back what the polls
    /// had claimed.
    lost_polls: Mutex<HashMap<String, Vec<String>>>,
    runtime: Handle,
    this: Weak<Self>,
}

impl RemoteMatching {
    /// A component that has offered nothing yet.
    pub fn new(
        (control, node): (&Arc<ControlTable>, &Arc<ThisNode>),
        groups: &Arc<GroupTable>,
        peers: &Arc<PeerClient>,
        gateway: &Arc<LocalGateway>,
        counters: &Arc<ClusterCounters>,
        (dispatcher, send): (&Arc<Dispatcher>, &everlog_partition::PartitionSender),
    ) -> Arc<Self> {
        let partitions = u32::try_from(groups.stats.len()).unwrap_or(u32::MAX);
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            control: Arc::clone(control),
            node: Arc::clone(node),
            groups: Arc::clone(groups),
            peers: Arc::clone(peers),
            gateway: Arc::clone(gateway),
            counters: Arc::clone(counters),
            dispatcher: Arc::clone(dispatcher),
            send: send.clone(),
            exchange: RemoteClaims::new(Arc::clone(dispatcher), send.clone(), partitions, this.clone()),
            receipts: Receipts::default(),
            lost_polls: Mutex::default(),
            runtime: Handle::current(),
            this: this.clone(),
        })
    }

    /// Where a partition is, as far as this node knows.
    pub fn location_of(&self, partition: u32) -> Location {
        if self.groups.owns(partition) {
            return Location::Here;
        }
        let view = self.control.view();
        match view.owners.get(&self.groups.group_of(partition)) {
            Some(owner) if owner.node == self.node.name => Location::Here,
            Some(owner) => Location::There(owner.node.as_str().into()),
            None => Location::Nowhere,
        }
    }

    /// Sends an event to a partition that serves here. False where it does not.
    pub fn deliver(&self, partition: u32, event: InboxMessage) -> bool {
        self.groups.serves(partition) && (self.send)(partition, event)
    }

    /// A poll waits on, because the partition that it wanted a task of is not here.
    pub fn poll_again(&self, waiting: Waiting) {
        self.dispatcher.poll_again(waiting, &self.send);
    }

    /// As [`Self::forward_loss`], in the background.
    pub fn forward_loss_later(self: Arc<Self>, partition: u32, event: InboxMessage) {
        let runtime = self.runtime.clone();
        drop(runtime.spawn(self.forward_loss(partition, event)));
    }

    async fn ask(
        &self,
        node: &str,
        path: &'static str,
        question: &impl Message,
        within: Duration,
    ) -> Option<Bytes> {
        self.peers.ask_node(&self.control, node, path, question, within).await
    }

    /// The home of a queue: the node where its polls and tasks meet.
    pub fn home_of(&self, queue: &QueueKey) -> Option<String> {
        let view = self.control.view();
        let kind = [queue.kind as u8];
        let of = [queue.namespace_id.as_bytes(), queue.name.as_bytes(), &kind];
        home(view.hosts.iter().map(String::as_str), &of).map(str::to_owned)
    }

    /// What waits at other nodes for room at the home of a queue.
    async fn remote_backlog(self: Arc<Self>, queue: QueueKey) -> KeptBack {
        let view = self.control.view();
        let owners: BTreeSet<&String> = view.owners.values().map(|row| &row.node).collect();
        let mut asked = JoinSet::new();
        for node in owners.into_iter().filter(|node| **node != self.node.name) {
            let (matching, node, queue) = (Arc::clone(&self), node.clone(), QueueWire::from(queue.clone()));
            asked.spawn(async move { matching.ask(&node, "/node/kept", &queue, KEPT_WITHIN).await });
        }
        let mut kept_back = KeptBack::new();
        for answer in asked.join_all().await.into_iter().flatten() {
            let kept = BacklogReply::decode(answer).unwrap_or_default();
            kept.read().for_each(|(level, waiting)| add_kept_back(&mut kept_back, level, waiting));
        }
        kept_back
    }

    /// Delivers a task or a query of this node to a poll at the home of its queue, encoded as the API's answer.
    pub async fn claimed(&self, ready: Ready, poll: Poll) -> ClaimedWire {
        let namespace_id = poll.namespace_id.clone();
        let delivered = tokio::time::timeout(CLAIMED_WITHIN, self.exchange.give(ready, poll)).await;
        let Ok(Some(delivery)) = delivered else { return ClaimedWire::default() };
        let told = self.gateway.answer(&namespace_id, delivery);
        match told {
            Some((answer, receipt)) => {
                let receipt = receipt.map_or(0, |receipt| self.receipts.keep(receipt));
                ClaimedWire { answer: Some(answer), receipt }
            }
            None => ClaimedWire::default(),
        }
    }

    /// Claims what a node has offered, for a poll at home here. `claimed`: the partition and run of the task.
    async fn claim(
        self: Arc<Self>,
        node: Arc<str>,
        claim: ClaimWire,
        poll_id: String,
        claimed: Option<(u32, RunKey)>,
    ) -> ClaimReply {
        let answer = self.ask(&node, "/node/claim", &claim, CLAIMED_WITHIN).await;
        match answer.and_then(|answer| ClaimedWire::decode(answer).ok()) {
            Some(ClaimedWire { answer: Some(answer), receipt }) => {
                self.counters.claims.count(Outcome::Answered);
                let asker = Recipient { poll_id, claimed };
                let receipt = (receipt != 0).then(|| self.receipt(node, receipt, asker));
                ClaimReply::Given(Delivery::Remote(RemoteClaim { answer, receipt }))
            }
            Some(ClaimedWire { answer: None, .. }) => {
                self.counters.claims.count(Outcome::Refused);
                ClaimReply::Refused
            }
            None => {
                self.counters.claims.count(Outcome::Unanswered);
                ClaimReply::Unanswered
            }
        }
    }

    /// The receipt of an answer that came from another node. Settling it tells that node whether the answer has
    /// reached its poll.
    pub fn receipt(self: &Arc<Self>, node: Arc<str>, receipt: u64, asker: Recipient) -> Receipt {
        let claimed = asker.claimed.clone();
        let settle = |is_taken, asker: Option<Recipient>| {
            let (matching, node) = (Arc::clone(self), Arc::clone(&node));
            move || {
                let runtime = matching.runtime.clone();
                runtime.spawn(async move {
                    let received = Received { receipt, is_taken };
                    // The other node counts it as lost after a while, if it lives.
                    if matching.ask(&node, "/node/received", &received, TOLD_WITHIN).await.is_none() {
                        let lost = asker.and_then(|Recipient { poll_id, claimed }| Some((claimed?, poll_id)));
                        if let Some(((partition, run), poll_id)) = lost {
                            matching.run_poll_lost(partition, run, poll_id);
                        }
                    }
                });
            }
        };
        let receipt = Receipt::answered(settle(true, None), settle(false, Some(asker)));
        match claimed {
            Some((partition, run)) => receipt.of_task(partition, run),
            None => receipt,
        }
    }

    /// Forwards that a poll has not got the task which it has claimed, or may have.
    fn run_poll_lost(self: &Arc<Self>, partition: u32, run: RunKey, poll_id: String) {
        let lost = InboxMessage::PollsLost { poll_ids: [poll_id].into(), run: Some(run) };
        self.runtime.spawn(Arc::clone(self).forward_loss(partition, lost));
    }

    /// A poll that was forwarded to a node has broken off. If that node is gone, its successors take back what the
    /// poll had claimed of its partitions. Other owners notice it by their receipts.
    pub fn poll_lost_at(self: &Arc<Self>, node: &str, poll_id: String) {
        let mut all = lock(&self.lost_polls);
        let polls = all.entry(node.to_owned()).or_default();
        polls.push(poll_id);
        if polls.len() == 1 {
            self.runtime.spawn(Arc::clone(self).send_lost_polls(node.to_owned()));
        }
    }

    async fn send_lost_polls(self: Arc<Self>, node: String) {
        tokio::time::sleep(LOST_TOGETHER).await;
        let poll_ids: Arc<[String]> = lock(&self.lost_polls).remove(&node).unwrap_or_default().into();
        for partition in self
            .control
            .recent_groups_of(&node)
            .into_iter()
            .flat_map(|group| self.groups.partitions_of(group))
        {
            let lost = InboxMessage::PollsLost { poll_ids: Arc::clone(&poll_ids), run: None };
            self.runtime.spawn(Arc::clone(&self).forward_loss(partition, lost));
        }
    }

    /// Forwards a loss to the owner of a partition, and tries again while nobody takes it. A partition that waits
    /// here for the brokers may have another owner that this node does not know.
    async fn forward_loss(self: Arc<Self>, partition: u32, event: InboxMessage) {
        let mut deadline = Instant::now() + OWNER_WITHIN;
        let lost =
            if let InboxMessage::PollsLost { poll_ids, .. } = &event { poll_ids.as_ref() } else { &[] };
        tracing::debug!(partition, ?lost, "lost delivery forwarded to the owner");
        while Instant::now() < deadline {
            if self.groups.serves(partition) {
                // If the partition fails meanwhile, the loss is reported again.
                (self.send)(partition, event);
                return;
            }
            let (nodes, pause) = match self.location_of(partition) {
                Location::There(node) => (vec![node.to_string()], AGAIN_AFTER),
                Location::Here | Location::Nowhere => (self.node.assigned_peers(), ASKED_AROUND_AFTER),
            };
            for node in nodes {
                if self.tell(&node, partition, &event).await.is_some() {
                    return;
                }
            }
            if self.groups.owns(partition) {
                deadline = Instant::now() + OWNER_WITHIN;
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(partition, "lost delivery not forwarded: the task waits for its timeout");
    }

    /// Sends a loss to the owner of a partition; none where it did not take it.
    async fn tell(&self, node: &str, partition: u32, event: &InboxMessage) -> Option<Bytes> {
        match event {
            InboxMessage::Release { input } => {
                let release = Release { partition, input: Some(input.clone()) };
                self.ask(node, "/node/release", &release, TOLD_WITHIN).await
            }
            InboxMessage::QueryLost { query_id } => {
                let lost = Lost { partition, query_id: query_id.clone() };
                self.ask(node, "/node/lost", &lost, TOLD_WITHIN).await
            }
            InboxMessage::PollsLost { poll_ids, run } => {
                let run = run.as_ref().map(|run| Bytes::copy_from_slice(run.bytes())).unwrap_or_default();
                let lost = PollsLost { partition, poll_ids: poll_ids.to_vec(), run };
                self.ask(node, "/node/polls-lost", &lost, TOLD_WITHIN).await
            }
            _somebody_waits => None,
        }
    }
}

impl NodeLink for RemoteMatching {
    fn far_home(&self, normal: &QueueKey) -> Option<String> {
        self.home_of(normal).filter(|node| *node != self.node.name)
    }

    fn offer(&self, node: &str, era: u64, offers: Vec<Offer>) -> BoxedFuture<bool> {
        let (own, node) = (self.this.upgrade(), node.to_owned());
        Box::pin(async move {
            let Some(matching) = own else { return false };
            let offers: Vec<_> = offers.into_iter().map(Into::into).collect();
            let count = offers.len() as u64;
            let message = Offers { offers, era, node: matching.node.name.clone() };
            let has_taken = matching.ask(&node, "/node/offers", &message, TOLD_WITHIN).await.is_some();
            if has_taken {
                matching.counters.offers_sent.fetch_add(count, Ordering::Relaxed);
            }
            has_taken
        })
    }

    fn claim(&self, node: &Arc<str>, ready: Ready, poll: &Poll) -> BoxedFuture<ClaimReply> {
        let claimed = match &ready {
            Ready::Task(task) => Some((task.partition, task.run.clone())),
            Ready::Query { .. } => None,
        };
        let (own, node) = (self.this.upgrade(), Arc::clone(node));
        let (claim, poll_id) = (ClaimWire::new(ready, poll), poll.poll_id.clone());
        Box::pin(async move {
            match own {
                Some(matching) => matching.claim(node, claim, poll_id, claimed).await,
                None => ClaimReply::Unanswered,
            }
        })
    }

    fn poll_lost(&self, partition: u32, run: RunKey, poll_id: String) {
        if let Some(matching) = self.this.upgrade() {
            matching.run_poll_lost(partition, run, poll_id);
        }
    }

    fn question_lost(&self, node: Arc<str>, partition: u32, query_id: String) {
        let Some(matching) = self.this.upgrade() else { return };
        self.runtime.spawn(async move {
            // The query waits for its deadline.
            let _ = matching.ask(&node, "/node/lost", &Lost { partition, query_id }, TOLD_WITHIN).await;
        });
    }

    fn kept_back(&self, queue: QueueKey, reply: oneshot::Sender<KeptBack>) {
        let Some(matching) = self.this.upgrade() else { return };
        // The caller may be gone.
        self.runtime.spawn(async move { reply.send(matching.remote_backlog(queue).await) });
    }

    fn poll_id(&self) -> String {
        random_id()
    }

    fn rest(&self) -> BoxedFuture<()> {
        Box::pin(tokio::time::sleep(AGAIN_AFTER))
    }

    fn spawn(&self, task: BoxedFuture<()>) {
        self.runtime.spawn(task);
    }
}
