//! Tasks whose owner, queue and worker are on several nodes, as one of these nodes sees them: owners offer what is ready at the home
//! of its queue, and the home claims it for a poll of whoever has offered it.
//!
//! What the nodes are at the moment has a number, the era. When it changes homes forget what they were offered, and owners offer
//! everything anew. Within an era a ready task is always somewhere, by the word of its owner and of the home alike: it waits for room at the
//! home, is on its way there, waits there, or is being claimed. Whoever refuses a claim has the task no more, or goes on with it: it is the
//! partition that says so, and nobody in its place.
//!
//! Nothing here knows of connections or threads: see [`NodeLink`].

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use tokio::sync::oneshot;

use crate::matching::credit_windows::{CreditWindows, Outlet};
use crate::matching::dispatcher::{Dispatcher, ReadyId};
use crate::matching::remote::{KeptBack, RemoteQueues};
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::keys::RunKey;
use crate::model::task_types::{Offer, QueueKey, Ready, Waiting};
use crate::model::types::{Delivery, Poll};

pub use crate::matching::credit_windows::add_kept_back;

/// Offers in one message.
const OFFERS_AT_ONCE: usize = 500;

/// What comes later.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + std::marker::Send>>;

/// What became of a claim of something that another node has offered.
pub enum ClaimReply {
    /// The poll gets this.
    Given(Delivery),
    /// It is not to be had of this node any more. Where it is still ready, it is offered again by whoever has it.
    Refused,
    /// Nobody knows.
    Unanswered,
}

/// The way to the other nodes, and what is known of them.
pub trait NodeLink: std::marker::Send + Sync {
    /// The node where the polls and the tasks of a queue meet, if that is another one.
    fn far_home(&self, normal: &QueueKey) -> Option<String>;

    /// Brings offers to a node. False where it has not taken them, or nobody knows.
    fn offer(&self, node: &str, era: u64, offers: Vec<Offer>) -> BoxedFuture<bool>;

    /// Claims something for a poll of the node that has offered it.
    fn claim(&self, node: &Arc<str>, ready: Ready, poll: &Poll) -> BoxedFuture<ClaimReply>;

    /// A poll has got nothing of what it has claimed of a run, or may have: whoever has its partition is to hear of it.
    fn poll_lost(&self, partition: u32, run: RunKey, poll_id: String);

    /// A question that a node has offered reaches nobody.
    fn question_lost(&self, node: Arc<str>, partition: u32, query_id: String);

    /// Asks the other nodes what they keep back.
    fn kept_back(&self, queue: QueueKey, reply: oneshot::Sender<KeptBack>);

    /// An id that no poll has.
    fn poll_id(&self) -> String;

    /// The rest before something that failed is tried again.
    fn rest(&self) -> BoxedFuture<()>;

    /// Lets something go on by itself.
    fn spawn(&self, task: BoxedFuture<()>);
}

/// One node's side of it.
pub struct RemoteClaims {
    dispatcher: Arc<Dispatcher>,
    send: PartitionSender,
    partitions: u32,
    line: Weak<dyn NodeLink>,
    own: Weak<Self>,
    windows: CreditWindows,
    /// Held by whoever takes offers in, so that none of an era is taken in once the next has begun.
    turn: RwLock<()>,
    /// What is being claimed of other nodes, and for how many polls.
    claims: Mutex<HashMap<ReadyId, usize>>,
}

impl RemoteClaims {
    /// Of a node with this dispatcher; `send` reaches its partitions, those that are not there too.
    pub fn new(
        dispatcher: Arc<Dispatcher>,
        send: PartitionSender,
        partitions: u32,
        line: Weak<dyn NodeLink>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            dispatcher,
            send,
            partitions,
            line,
            own: own.clone(),
            windows: CreditWindows::default(),
            turn: RwLock::default(),
            claims: Mutex::default(),
        })
    }

    /// What the nodes that homes are chosen among are known by, as of when this node has seen to what follows from that; 0 before.
    pub fn era(&self) -> u64 {
        self.windows.era()
    }

    /// Other nodes, or other processes of the same: what was offered to whom counts no more, here and there, and everything that waits
    /// is offered again. Whoever is offered something as of the new ones has forgotten all before it.
    pub fn begin(&self, era: u64) {
        {
            let _turn = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            self.dispatcher.rehome();
            self.windows.begin(era);
        }
        // One that is not here has nothing to offer; one that is about to be may have offered something already.
        for partition in 0..self.partitions {
            (self.send)(partition, InboxMessage::OfferAgain);
        }
    }

    /// The first era, of a node that is alone: whatever was offered is here.
    pub fn begin_alone(&self, era: u64) {
        self.windows.begin(era);
    }

    /// Another node has these ready for queues whose home is here. False where it is of another era: whatever was there is forgotten when the
    /// nodes change, and one of the two has not seen that yet.
    pub fn take_in(&self, era: u64, offers: impl IntoIterator<Item = Offer>) -> bool {
        let _turn = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        let is_of_now = era == self.windows.era();
        if is_of_now {
            offers.into_iter().for_each(|offer| self.dispatcher.offered(offer, &self.send));
        }
        is_of_now
    }

    /// Gives something that a partition of this node has offered to a poll at the home of its queue; none where the partition does not.
    /// Waits for the journal. What comes when this is dropped goes back.
    pub async fn give(&self, ready: Ready, poll: Poll) -> Option<Delivery> {
        let (reply, delivered) = oneshot::channel();
        // First: where it stays ready the partition offers it again.
        self.windows.taken(&ready);
        let waiting = Waiting::visitor(poll, reply);
        let (partition, event) = match ready {
            Ready::Task(task) => (task.partition, InboxMessage::Claim { task, waiting }),
            Ready::Query { partition, query_id, .. } => {
                (partition, InboxMessage::HandQuery { query_id, waiting })
            }
        };
        if !(self.send)(partition, event) {
            return None;
        }
        delivered.await.ok()
    }

    /// What this node has ready for a queue of another home, and keeps until there is room for it.
    pub fn keeps_back(&self, queue: &QueueKey) -> KeptBack {
        self.windows.kept_back(queue, self.dispatcher.now_ms())
    }

    /// How many offers are not on their way yet.
    pub fn waiting(&self) -> usize {
        self.windows.waiting()
    }

    /// These partitions have left the node.
    pub fn let_go(&self, partitions: &std::ops::Range<u32>) {
        self.windows.forget(|_, partition| partitions.contains(&partition));
    }

    /// Where something is that a partition of this node has offered elsewhere, by this node's word.
    pub fn whereabouts(&self, id: &ReadyId) -> Whereabouts {
        match self.windows.away(id) {
            Some(node) => Whereabouts::At(node),
            None if self.windows.has_waiting(id) => Whereabouts::Waits,
            None => Whereabouts::Unknown,
        }
    }

    /// True while something that another node has offered is being claimed for a poll here.
    pub fn is_claiming(&self, id: &ReadyId) -> bool {
        self.claiming().contains_key(id)
    }

    fn claiming(&self) -> std::sync::MutexGuard<'_, HashMap<ReadyId, usize>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A poll at home here is to get something that another node has offered.
    async fn obtain(&self, era: u64, node: Arc<str>, ready: Ready, mut waiting: Waiting) {
        let Some(line) = self.line.upgrade() else { return };
        let claim = line.claim(&node, ready.clone(), &waiting.poll);
        match claim.await {
            ClaimReply::Given(delivery) => {
                // Dropped unread, it goes back by its receipt.
                let _gone = waiting.reply.send(delivery);
            }
            ClaimReply::Refused => self.dispatcher.poll_again(waiting, &self.send),
            ClaimReply::Unanswered => {
                if let Ready::Task(task) = &ready {
                    line.poll_lost(task.partition, task.run.clone(), waiting.poll.poll_id.clone());
                }
                let offer = Offer { queue: QueueKey::of(&waiting.poll), ready };
                // Another poll from now on: what the former one may have claimed goes back.
                waiting.poll.poll_id = line.poll_id();
                self.dispatcher.poll_again(waiting, &self.send);
                line.rest().await;
                // When the nodes change everything is offered again.
                self.take_in(era, [offer]);
            }
        }
    }

    fn outlet(&self, node: &str) -> Option<Arc<Outlet>> {
        let line = self.line.upgrade()?;
        Some(self.windows.outlet(node, |outlet| {
            let (own, outlet) = (self.own.clone(), Arc::downgrade(outlet));
            line.spawn(Box::pin(carry(own, node.to_owned(), outlet)));
        }))
    }
}

/// Where something is that was offered elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It waits here for room at its home.
    Waits,
    /// It is at this node, or on its way there.
    At(String),
    /// Nothing is known of it.
    Unknown,
}

/// While it is there something is being claimed.
struct Claiming {
    exchange: Arc<RemoteClaims>,
    id: ReadyId,
}

impl Claiming {
    fn begin(exchange: Arc<RemoteClaims>, id: ReadyId) -> Self {
        *exchange.claiming().entry(id.clone()).or_default() += 1;
        Self { exchange, id }
    }
}

impl Drop for Claiming {
    fn drop(&mut self) {
        let mut claims = self.exchange.claiming();
        if let Some(count) = claims.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                claims.remove(&self.id);
            }
        }
    }
}

/// Brings offers to a node for as long as the outlet to it is there. While there is nothing to bring, or no room at the home, it waits.
async fn carry(exchange: Weak<RemoteClaims>, node: String, outlet: Weak<Outlet>) {
    loop {
        let Some((exchange, outlet)) = exchange.upgrade().zip(outlet.upgrade()) else { return };
        let Some(line) = exchange.line.upgrade().filter(|_| exchange.windows.has(&node, &outlet)) else {
            return;
        };
        let offers = outlet.window().next(OFFERS_AT_ONCE);
        if offers.is_empty() {
            drop((exchange, line));
            // The outlet itself is held meanwhile; whoever throws it away says so.
            outlet.has_more.notified().await;
            continue;
        }
        let has_taken = line.offer(&node, outlet.era, offers.clone());
        if !has_taken.await {
            outlet.window().back(exchange.dispatcher.now_ms(), offers);
            line.rest().await;
        }
    }
}

impl RemoteQueues for RemoteClaims {
    fn is_far(&self, normal: &QueueKey) -> bool {
        self.line.upgrade().is_some_and(|line| line.far_home(normal).is_some())
    }

    fn bring(&self, offer: Offer) {
        let normal = match offer.ready.normal_queue() {
            Some(name) => QueueKey { name: name.to_owned(), ..offer.queue.clone() },
            None => offer.queue.clone(),
        };
        let Some(line) = self.line.upgrade() else { return };
        match line.far_home(&normal).and_then(|node| self.outlet(&node)) {
            Some(outlet) => {
                outlet.window().push(self.dispatcher.now_ms(), offer);
                outlet.has_more.notify_one();
            }
            // It has come here meanwhile.
            None => self.dispatcher.offered(offer, &self.send),
        }
    }

    fn claim(&self, node: Arc<str>, ready: Ready, waiting: Waiting) {
        let Some((line, own)) = self.line.upgrade().zip(self.own.upgrade()) else { return };
        let (era, claiming) = (self.windows.era(), Claiming::begin(own, ReadyId::of(&ready)));
        line.spawn(Box::pin(async move { claiming.exchange.obtain(era, node, ready, waiting).await }));
    }

    fn lost(&self, node: Arc<str>, partition: u32, query_id: String) {
        if let Some(line) = self.line.upgrade() {
            line.question_lost(node, partition, query_id);
        }
    }

    fn kept_back(&self, queue: QueueKey, reply: oneshot::Sender<KeptBack>) {
        if let Some(line) = self.line.upgrade() {
            line.kept_back(queue, reply);
        }
    }

    fn own_kept_back(&self) -> Vec<(QueueKey, usize, i64)> {
        self.windows.all_kept_back()
    }

    fn forget_namespace(&self, namespace_id: &str) {
        self.windows.forget(|queue, _| queue.namespace_id == namespace_id);
    }
}
