//! Tasks whose owner, queue and worker are on several nodes: offers to the homes of queues, claims of what was offered, receipts.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_partition::{
    Claimed, Delivery, Event, Failure, KeptBack, Later, Line, Offer, Poll, QueueKey, Ready, Receipt, RunKey,
    Told, add_kept_back,
};
use everlog_temporal::{Place, random_id};
use prost::Message;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::assignment::assign::home;
use crate::control_rows::{Assignment, Row};
use crate::metrics::Outcome;
use crate::peers::protocol::{
    BacklogReply, Claim as ClaimWire, Claimed as ClaimedWire, Lost, Offers, PollsLost, QueueWire, Received,
    Release,
};
use crate::{Cluster, RemotePartitions, lock};

/// How long a message between nodes may take.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// How long a node may take to say what it keeps back: somebody waits for it, and it is told about.
const KEPT_WITHIN: Duration = Duration::from_secs(1);
/// How long a claim may take: it goes through a journal.
const CLAIMED_WITHIN: Duration = Duration::from_secs(10);
/// The rest before something that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// The same where it may be any node.
const ASKED_AROUND_AFTER: Duration = Duration::from_secs(1);
/// How long it is tried to bring something back to an owner: one that died is missed first, and followed then.
const OWNER_WITHIN: Duration = Duration::from_secs(60);
/// When a node goes all that it was asked breaks off together: so long that is gathered.
const LOST_TOGETHER: Duration = Duration::from_millis(100);
/// An answer of which nothing is heard for so long has reached nobody: the node that was to bring it on is gone. Long enough for
/// a worker that takes a large answer slowly.
const RECEIVED_WITHIN: Duration = Duration::from_secs(8);

/// Whose answer a receipt is of.
pub struct Recipient {
    /// The poll.
    pub poll_id: String,
    /// What it has claimed a task of, by partition and key; none where it is a query that it has got.
    pub claimed: Option<(u32, RunKey)>,
}

/// Answers of which it is not known yet whether they have reached their polls.
#[derive(Default)]
pub struct Receipts {
    last: AtomicU64,
    open: Mutex<HashMap<u64, (Instant, Receipt)>>,
}

impl Receipts {
    /// Keeps a receipt until it is settled, or too old.
    pub fn keep(&self, receipt: Receipt) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open().insert(id, (Instant::now(), receipt));
        id
    }

    /// The answer has reached its poll, or nobody.
    pub fn settle(&self, id: u64, is_taken: bool) {
        let found = self.open().remove(&id);
        if let Some((_, receipt)) = found.filter(|_| is_taken) {
            receipt.accept();
        }
    }

    /// Gives back what nobody has spoken of for too long; how many that were.
    pub fn sweep(&self) -> u64 {
        let is_old = |began: &Instant| began.elapsed() > RECEIVED_WITHIN;
        // They are dropped behind the lock.
        let old: Vec<_> = self.open().extract_if(|_, (began, _)| is_old(began)).collect();
        if !old.is_empty() {
            tracing::debug!(count = old.len(), "nobody has told of answers for too long: they go back");
        }
        old.len() as u64
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open().len()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Receipt)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// The node that brings the polls and the tasks of a queue together.
    pub(crate) fn home_of(&self, queue: &QueueKey) -> Option<String> {
        let view = self.shown.load();
        let kind = [u8::from(queue.activities)];
        let of = [queue.namespace_id.as_bytes(), queue.name.as_bytes(), &kind];
        home(view.hosts.iter().map(String::as_str), &of).map(str::to_owned)
    }

    /// What the other nodes that have partitions keep until there is room for it at the home of a queue.
    async fn remote_backlog(self: Arc<Self>, queue: QueueKey) -> KeptBack {
        let view = self.shown.load();
        let owners: BTreeSet<&String> = view.owners.values().map(|row| &row.node).collect();
        let mut asked = JoinSet::new();
        for node in owners.into_iter().filter(|node| **node != self.me) {
            let (cluster, node, queue) = (Arc::clone(&self), node.clone(), QueueWire::from(queue.clone()));
            asked.spawn(async move { cluster.ask(&node, "/node/kept", &queue, KEPT_WITHIN).await });
        }
        let mut kept_back = KeptBack::new();
        for answer in asked.join_all().await.into_iter().flatten() {
            let kept = BacklogReply::decode(answer).unwrap_or_default();
            kept.read().for_each(|(level, waiting)| add_kept_back(&mut kept_back, level, waiting));
        }
        kept_back
    }

    /// Gives something of a partition of this node to a poll at the home of its queue, in words.
    pub(crate) async fn claimed(&self, ready: Ready, poll: Poll) -> ClaimedWire {
        let namespace_id = poll.namespace_id.clone();
        let delivered = tokio::time::timeout(CLAIMED_WITHIN, self.exchange.give(ready, poll)).await;
        let Ok(Some(delivery)) = delivered else { return ClaimedWire::default() };
        let told = self.gateway.get().and_then(|gateway| gateway.tell(&namespace_id, delivery));
        match told {
            Some((answer, receipt)) => {
                let receipt = receipt.map_or(0, |receipt| self.receipts.keep(receipt));
                ClaimedWire { answer: Some(answer), receipt }
            }
            None => ClaimedWire::default(),
        }
    }

    /// Claims something of the node that has offered it, for a poll at home here. `claimed`: what it is a task of.
    async fn claim(
        self: Arc<Self>,
        node: Arc<str>,
        claim: ClaimWire,
        poll_id: String,
        claimed: Option<(u32, RunKey)>,
    ) -> Claimed {
        let answer = self.ask(&node, "/node/claim", &claim, CLAIMED_WITHIN).await;
        match answer.and_then(|answer| ClaimedWire::decode(answer).ok()) {
            Some(ClaimedWire { answer: Some(answer), receipt }) => {
                self.counts.claims.count(Outcome::Answered);
                let asker = Recipient { poll_id, claimed };
                let receipt = (receipt != 0).then(|| self.receipt(node, receipt, asker));
                Claimed::Given(Delivery::Told(Told { answer, receipt }))
            }
            Some(ClaimedWire { answer: None, .. }) => {
                self.counts.claims.count(Outcome::Refused);
                Claimed::Refused
            }
            None => {
                self.counts.claims.count(Outcome::Unanswered);
                Claimed::Unanswered
            }
        }
    }

    /// Tells the node that something came from whether it has reached its poll.
    pub(crate) fn receipt(self: &Arc<Self>, node: Arc<str>, receipt: u64, asker: Recipient) -> Receipt {
        let claimed = asker.claimed.clone();
        let settle = |is_taken, asker: Option<Recipient>| {
            let (cluster, node) = (Arc::clone(self), Arc::clone(&node));
            move || {
                let runtime = cluster.runtime.clone();
                runtime.spawn(async move {
                    let received = Received { receipt, is_taken };
                    // Unheard, it counts as lost after a while, where the node lives.
                    if cluster.ask(&node, "/node/received", &received, TOLD_WITHIN).await.is_none() {
                        let lost = asker.and_then(|Recipient { poll_id, claimed }| Some((claimed?, poll_id)));
                        if let Some(((partition, run), poll_id)) = lost {
                            cluster.run_poll_lost(partition, run, poll_id);
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

    /// A poll has got nothing of what it has claimed of a run, or may have.
    fn run_poll_lost(self: &Arc<Self>, partition: u32, run: RunKey, poll_id: String) {
        let lost = Event::PollsLost { poll_ids: [poll_id].into(), run: Some(run) };
        self.runtime.spawn(Arc::clone(self).forward_loss(partition, lost));
    }

    /// A poll that was brought to a node has broken off. Where that node has gone whoever follows it takes back what it has
    /// claimed of that node's own partitions; the owners of others see for themselves that nobody tells of their receipts.
    pub(crate) fn poll_lost(self: &Arc<Self>, node: &str, poll_id: String) {
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
        for partition in self.had(&node).into_iter().flat_map(|group| self.partitions_of(group)) {
            let lost = Event::PollsLost { poll_ids: Arc::clone(&poll_ids), run: None };
            self.runtime.spawn(Arc::clone(&self).forward_loss(partition, lost));
        }
    }

    /// The groups that a node has or had: one may be somebody else's before the way to the node breaks.
    fn had(&self, node: &str) -> BTreeSet<usize> {
        let view = self.shown.load();
        let has = view.owners.iter().filter(|(_, owner)| owner.node == node).map(|(group, _)| *group);
        let had = lock(&self.former).groups_of(node, Instant::now());
        has.chain(had).collect()
    }

    /// Tells whoever serves a partition something that nobody waits for; tried again while nobody does. While it rests here for the
    /// brokers' sake another node may have it, of which this one does not hear.
    async fn forward_loss(self: Arc<Self>, partition: u32, event: Event) {
        let mut deadline = Instant::now() + OWNER_WITHIN;
        let lost = if let Event::PollsLost { poll_ids, .. } = &event { poll_ids.as_ref() } else { &[] };
        tracing::debug!(partition, ?lost, "that something reached nobody is told to who has the partition");
        while Instant::now() < deadline {
            if self.serves(partition) {
                // Where it count_failure meanwhile it is told of once more.
                (self.send)(partition, event);
                return;
            }
            let (nodes, pause) = match self.location_of(partition) {
                Place::There(node) => (vec![node.to_string()], AGAIN_AFTER),
                Place::Here | Place::Nowhere => (self.assigned_peers(), ASKED_AROUND_AFTER),
            };
            for node in nodes {
                if self.tell(&node, partition, &event).await.is_some() {
                    return;
                }
            }
            if self.holds(partition) {
                deadline = Instant::now() + OWNER_WITHIN;
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(partition, "a task that reached nobody could not be given back; its timeout does it");
    }

    /// Brings such a thing to the node that owns the partition; none where it did not take it.
    async fn tell(&self, node: &str, partition: u32, event: &Event) -> Option<Bytes> {
        match event {
            Event::Release { input } => {
                let release = Release { partition, input: Some(input.clone()) };
                self.ask(node, "/node/release", &release, TOLD_WITHIN).await
            }
            Event::QueryLost { query_id } => {
                let lost = Lost { partition, query_id: query_id.clone() };
                self.ask(node, "/node/lost", &lost, TOLD_WITHIN).await
            }
            Event::PollsLost { poll_ids, run } => {
                let run = run.as_ref().map(|run| Bytes::copy_from_slice(run.bytes())).unwrap_or_default();
                let lost = PollsLost { partition, poll_ids: poll_ids.to_vec(), run };
                self.ask(node, "/node/polls-lost", &lost, TOLD_WITHIN).await
            }
            _somebody_waits => None,
        }
    }
}

impl Line for Cluster {
    fn far_home(&self, normal: &QueueKey) -> Option<String> {
        self.home_of(normal).filter(|node| *node != self.me)
    }

    fn offer(&self, node: &str, era: u64, offers: Vec<Offer>) -> Later<bool> {
        let (own, node) = (self.this.upgrade(), node.to_owned());
        Box::pin(async move {
            let Some(cluster) = own else { return false };
            let offers: Vec<_> = offers.into_iter().map(Into::into).collect();
            let count = offers.len() as u64;
            let message = Offers { offers, era, node: cluster.me.clone() };
            let has_taken = cluster.ask(&node, "/node/offers", &message, TOLD_WITHIN).await.is_some();
            if has_taken {
                cluster.counts.offers_sent.fetch_add(count, Ordering::Relaxed);
            }
            has_taken
        })
    }

    fn claim(&self, node: &Arc<str>, ready: Ready, poll: &Poll) -> Later<Claimed> {
        let claimed = match &ready {
            Ready::Task(task) => Some((task.partition, task.run.clone())),
            Ready::Query { .. } => None,
        };
        let (own, node) = (self.this.upgrade(), Arc::clone(node));
        let (claim, poll_id) = (ClaimWire::new(ready, poll), poll.poll_id.clone());
        Box::pin(async move {
            match own {
                Some(cluster) => cluster.claim(node, claim, poll_id, claimed).await,
                None => Claimed::Unanswered,
            }
        })
    }

    fn poll_lost(&self, partition: u32, run: RunKey, poll_id: String) {
        if let Some(cluster) = self.this.upgrade() {
            cluster.run_poll_lost(partition, run, poll_id);
        }
    }

    fn question_lost(&self, node: Arc<str>, partition: u32, query_id: String) {
        let Some(cluster) = self.this.upgrade() else { return };
        self.runtime.spawn(async move {
            // Unheard, it waits for its deadline.
            let _ = cluster.ask(&node, "/node/lost", &Lost { partition, query_id }, TOLD_WITHIN).await;
        });
    }

    fn kept_back(&self, queue: QueueKey, reply: oneshot::Sender<KeptBack>) {
        let Some(cluster) = self.this.upgrade() else { return };
        // Whoever asks may be gone.
        self.runtime.spawn(async move { reply.send(cluster.remote_backlog(queue).await) });
    }

    fn poll_id(&self) -> String {
        random_id()
    }

    fn rest(&self) -> Later<()> {
        Box::pin(tokio::time::sleep(AGAIN_AFTER))
    }

    fn spawn(&self, task: Later<()>) {
        self.runtime.spawn(task);
    }
}

/// What is for partitions of a node that are not there.
pub struct RemoteOwners(pub Weak<Cluster>);

impl RemotePartitions for RemoteOwners {
    fn bring(&self, partition: u32, event: Event) {
        let Some(cluster) = self.0.upgrade() else { return event.refuse(Failure::Unavailable) };
        let runtime = cluster.runtime.clone();
        match event {
            // The partition was here when it was offered: whoever has it now has offered its tasks again.
            Event::Claim { waiting, .. } | Event::HandQuery { waiting, .. } => {
                cluster.dispatcher.poll_again(waiting, &cluster.send);
            }
            Event::Release { .. } | Event::QueryLost { .. } | Event::PollsLost { .. } => {
                drop(runtime.spawn(cluster.forward_loss(partition, event)));
            }
            asked => asked.refuse(Failure::Moved),
        }
    }

    fn moved_to(&self, partition: u32) -> Result<Option<String>, everlog_log::Error> {
        let Some(cluster) = self.0.upgrade() else { return Ok(None) };
        let (key, _) = Row::Assignment(Assignment::default()).write();
        let Some(Row::Assignment(latest)) = cluster.latest(&key)? else { return Ok(None) };
        let assigned = latest.groups.into_iter().nth(cluster.group_of(partition)).flatten();
        Ok(assigned.filter(|node| *node != cluster.me))
    }

    fn level(&self) -> u32 {
        self.0.upgrade().map_or(0, |cluster| cluster.shown.load().level())
    }
}
