//! Nodes that share task queues over a network that loses and delays messages. No ready task may be forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll as Polled;

use everlog_partition::{
    BoxedFuture, ClaimReply, Dispatcher, InboxMessage, KeptBack, NodeLink, Offer, Poll, QueueKey, Ready,
    ReadyId, RemoteClaims, RunKey, TaskRef,
};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::dice::Dice;
use crate::log::Removed;

/// How long a node waits for the answer of another, in ms.
const ANSWERED_WITHIN_MS: i64 = 1_000;
/// How long a claim may take at its owner, in ms.
const CLAIMED_WITHIN_MS: i64 = 10_000;
/// The rest before something that failed is tried again, in ms.
const AGAIN_AFTER_MS: i64 = 250;
/// How long somebody is looked for who has the partition, in ms.
const OWNER_WITHIN_MS: i64 = 60_000;
/// So long the door of an owner that is new refuses what its partition has offered, where that is planted.
const REFUSES_MS: i64 = 100;

/// What the nodes are, by the word of whoever places them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Word {
    hosts: BTreeSet<usize>,
    /// Which process each of them is.
    instances: BTreeMap<usize, u64>,
    generation: u64,
}

impl Word {
    /// Never 0.
    fn era(&self, knows_instances: bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.generation, &self.hosts).hash(&mut hasher);
        for host in self.hosts.iter().filter(|_| knows_instances) {
            self.instances.get(host).hash(&mut hasher);
        }
        hasher.finish().max(1)
    }

    fn home(&self, queue: &QueueKey) -> Option<usize> {
        let weight = |host: &&usize| {
            let mut hasher = DefaultHasher::new();
            (host, queue).hash(&mut hasher);
            hasher.finish()
        };
        self.hosts.iter().max_by_key(weight).copied()
    }
}

/// What all nodes share.
pub struct Net {
    clock: Clock,
    dice: Mutex<Dice>,
    removed: Option<Removed>,
    /// Of a thousand messages, those that get lost, or whose answers do.
    lost: AtomicU64,
    word: Mutex<Word>,
    desks: Mutex<BTreeMap<usize, Arc<Desk>>>,
    tasks: Mutex<Vec<BoxedFuture<()>>>,
    /// Offers on their way: to whom, and what.
    offers: Mutex<BTreeMap<u64, (String, Vec<ReadyId>)>>,
    serial: AtomicU64,
}

/// A node's side of it.
pub struct Desk {
    pub id: usize,
    pub name: Arc<str>,
    pub exchange: Arc<RemoteClaims>,
    pub dispatcher: Arc<Dispatcher>,
    send: everlog_partition::PartitionSender,
    net: Arc<Net>,
    shown: Mutex<Word>,
    lives: Arc<AtomicBool>,
    /// It is stopped until then.
    pub asleep_until_ms: AtomicI64,
    /// The partition serves here; since when it was taken over.
    pub serves: AtomicBool,
    pub taken_ms: AtomicI64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Net {
    pub fn new(clock: Clock, mut dice: Dice, removed: Option<Removed>) -> Arc<Self> {
        let lost = if dice.permille(500) { dice.below(150) } else { 0 };
        Arc::new(Self {
            clock,
            dice: Mutex::new(dice),
            removed,
            lost: AtomicU64::new(lost),
            word: Mutex::default(),
            desks: Mutex::default(),
            tasks: Mutex::default(),
            offers: Mutex::default(),
            serial: AtomicU64::new(0),
        })
    }

    /// What nodes have begun since.
    pub fn begun(&self) -> Vec<BoxedFuture<()>> {
        std::mem::take(&mut *lock(&self.tasks))
    }

    /// Nothing gets lost any more.
    pub fn calm(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Those that live are to have something; while there is no peace perhaps not all of them.
    pub fn place(&self, is_peace: bool) {
        let lives: BTreeSet<usize> = lock(&self.desks).keys().copied().collect();
        let mut dice = lock(&self.dice);
        let is_drained = |_: &usize| !is_peace && dice.permille(200);
        let drained: BTreeSet<usize> = lives.iter().copied().filter(is_drained).collect();
        let hosts: BTreeSet<usize> = lives.difference(&drained).copied().collect();
        let mut word = lock(&self.word);
        if !hosts.is_empty() && hosts != word.hosts {
            word.hosts = hosts;
            word.generation += 1;
        }
    }

    /// The node goes, and all that it has begun.
    pub fn dies(&self, id: usize) {
        if let Some(desk) = lock(&self.desks).remove(&id) {
            desk.lives.store(false, Ordering::Relaxed);
        }
    }

    fn desk_named(&self, name: &str) -> Option<Arc<Desk>> {
        lock(&self.desks).values().find(|desk| &*desk.name == name).cloned()
    }

    fn span(&self, from_ms: i64, to_ms: i64) -> i64 {
        lock(&self.dice).span(from_ms, to_ms)
    }

    /// A message goes its way to a node; none where it does not get there.
    async fn way(&self, to: &str) -> Option<Arc<Desk>> {
        self.clock.sleep(self.span(1, 40)).await;
        while let Some(desk) = self.desk_named(to) {
            let wakes_ms = desk.asleep_until_ms.load(Ordering::Relaxed);
            let now_ms = self.clock.now_ms();
            if wakes_ms > now_ms {
                self.clock.sleep(wakes_ms - now_ms).await;
                continue;
            }
            let lost = self.lost.load(Ordering::Relaxed);
            return Some(desk).filter(|_| !lock(&self.dice).permille(u32::try_from(lost).unwrap_or(0)));
        }
        None
    }

    /// True where offers are on their way to a node.
    fn carries(&self, to: &str, id: &ReadyId) -> bool {
        lock(&self.offers).values().any(|(node, ids)| node == to && ids.contains(id))
    }

    /// That something reached nobody is told to whoever serves the partition, once somebody does.
    pub fn pass_on(self: &Arc<Self>, partition: u32, event: InboxMessage) {
        let net = Arc::clone(self);
        lock(&self.tasks).push(Box::pin(async move {
            let until_ms = net.clock.now_ms() + OWNER_WITHIN_MS;
            while net.clock.now_ms() < until_ms {
                net.clock.sleep(net.span(1, 300)).await;
                let serving = |desk: &&Arc<Desk>| desk.serves.load(Ordering::Relaxed);
                let desk = lock(&net.desks).values().find(serving).cloned();
                if let Some(desk) = desk {
                    (desk.send)(partition, event);
                    return;
                }
            }
        }));
    }
}

impl Desk {
    /// Of a process that begins.
    pub fn open(
        net: &Arc<Net>,
        (id, instance): (usize, u64),
        dispatcher: &Arc<Dispatcher>,
        send: &everlog_partition::PartitionSender,
        partitions: u32,
    ) -> Arc<Self> {
        let desk = Arc::new_cyclic(|own: &std::sync::Weak<Self>| Self {
            id,
            name: format!("node-{id}").into(),
            exchange: RemoteClaims::new(Arc::clone(dispatcher), send.clone(), partitions, own.clone()),
            dispatcher: Arc::clone(dispatcher),
            send: send.clone(),
            net: Arc::clone(net),
            shown: Mutex::default(),
            lives: Arc::new(AtomicBool::new(true)),
            asleep_until_ms: AtomicI64::new(0),
            serves: AtomicBool::new(false),
            taken_ms: AtomicI64::new(0),
        });
        dispatcher.shares_with(desk.exchange.clone());
        lock(&net.word).instances.insert(id, instance);
        lock(&net.desks).insert(id, Arc::clone(&desk));
        desk.spawn(Box::pin(Arc::clone(&desk).follow()));
        desk
    }

    /// Hears of what the nodes are, late, and of what was in between not at all.
    async fn follow(self: Arc<Self>) {
        let clock = self.net.clock.clone();
        loop {
            clock.sleep(self.net.span(5, 400)).await;
            let asleep_ms = self.asleep_until_ms.load(Ordering::Relaxed) - clock.now_ms();
            if asleep_ms > 0 {
                clock.sleep(asleep_ms).await;
            }
            let word = lock(&self.net.word).clone();
            let era = word.era(self.net.removed != Some(Removed::Instances));
            *lock(&self.shown) = word;
            if self.exchange.era() != era {
                clock.sleep(self.net.span(0, 20)).await;
                self.exchange.begin(era);
            }
        }
    }

    /// That something reached nobody is told to whoever serves the partition.
    pub fn pass_on(&self, partition: u32, event: InboxMessage) {
        self.net.pass_on(partition, event);
    }

    /// The node where a queue has its home, as far as this one knows.
    pub fn home(&self, queue: &QueueKey) -> Option<usize> {
        lock(&self.shown).home(queue)
    }

    /// Why a ready task that the partition of this node has offered is nowhere, if it is.
    pub fn misses(&self, id: &ReadyId) -> Option<String> {
        if self.dispatcher.has(id, None) {
            return None;
        }
        let home = match self.exchange.whereabouts(id) {
            everlog_partition::Whereabouts::Waits => return None,
            everlog_partition::Whereabouts::At(home) => home,
            everlog_partition::Whereabouts::Unknown => {
                return Some(format!("{id:?} is ready on node {}, which knows nothing of it", self.id));
            }
        };
        let desk = self.net.desk_named(&home)?;
        // Where the home is of another era, all is offered again when both are of the same.
        let is_there = desk.exchange.era() != self.exchange.era()
            || self.net.carries(&home, id)
            || desk.exchange.is_claiming(id)
            || desk.dispatcher.has(id, Some(&self.name));
        (!is_there).then(|| format!("{id:?} is ready on node {}, which takes it to be at {home}", self.id))
    }
}

/// As the node that offers it has it, or as others have what that one offers.
fn offered_by(ready: Ready, node: Option<&Arc<str>>, keeps_term: bool) -> Ready {
    match ready {
        Ready::Task(task) => {
            let term = task.term.filter(|_| keeps_term);
            Ready::Task(TaskRef { offered_by: node.cloned(), term, ..task })
        }
        Ready::Query { partition, run, query_id, normal_queue, .. } => {
            Ready::Query { partition, run, query_id, normal_queue, offered_by: node.cloned() }
        }
    }
}

/// Offers that are on their way for as long as this is there.
struct Carried(Arc<Net>, u64);

impl Drop for Carried {
    fn drop(&mut self) {
        lock(&self.0.offers).remove(&self.1);
    }
}

impl NodeLink for Desk {
    fn far_home(&self, normal: &QueueKey) -> Option<String> {
        self.home(normal).filter(|home| *home != self.id).map(|home| format!("node-{home}"))
    }

    fn offer(&self, node: &str, era: u64, offers: Vec<Offer>) -> BoxedFuture<bool> {
        let (net, node, own) = (Arc::clone(&self.net), node.to_owned(), Arc::clone(&self.name));
        let serial = net.serial.fetch_add(1, Ordering::Relaxed);
        let ids = offers.iter().map(|offer| ReadyId::of(&offer.ready)).collect();
        lock(&net.offers).insert(serial, (node.clone(), ids));
        let carried = Carried(Arc::clone(&net), serial);
        Box::pin(async move {
            let Some(home) = net.way(&node).await else {
                net.clock.sleep(ANSWERED_WITHIN_MS).await;
                return false;
            };
            let keeps_term = net.removed != Some(Removed::OfferTerms);
            let offers = offers.into_iter().map(|Offer { queue, ready }| Offer {
                queue,
                ready: offered_by(ready, Some(&own), keeps_term),
            });
            let era = if net.removed == Some(Removed::Eras) { home.exchange.era() } else { era };
            let is_taken = home.exchange.take_in(era, offers);
            let is_heard = net.way(&own).await.is_some();
            drop(carried);
            is_taken && is_heard
        })
    }

    fn claim(&self, node: &Arc<str>, ready: Ready, poll: &Poll) -> BoxedFuture<ClaimReply> {
        let (net, node, own, poll) =
            (Arc::clone(&self.net), Arc::clone(node), Arc::clone(&self.name), poll.clone());
        Box::pin(async move {
            let nobody_knows = || match net.removed {
                Some(Removed::Unanswered) => ClaimReply::Refused,
                _all_others => ClaimReply::Unanswered,
            };
            let Some(owner) = net.way(&node).await else {
                net.clock.sleep(ANSWERED_WITHIN_MS).await;
                return nobody_knows();
            };
            let is_new = net.clock.now_ms() < owner.taken_ms.load(Ordering::Relaxed) + REFUSES_MS;
            if is_new && net.removed == Some(Removed::Endpoint) {
                return ClaimReply::Refused;
            }
            let given = owner.exchange.give(offered_by(ready, None, true), poll);
            let given = net.clock.within(CLAIMED_WITHIN_MS, given).await;
            let is_heard = owner.lives.load(Ordering::Relaxed) && net.way(&own).await.is_some();
            match given {
                // What nobody hears of goes back by its receipt.
                Some(Some(delivery)) if is_heard => ClaimReply::Given(delivery),
                Some(None) if is_heard => ClaimReply::Refused,
                Some(_) | None => nobody_knows(),
            }
        })
    }

    fn poll_lost(&self, partition: u32, run: RunKey, poll_id: String) {
        self.net.pass_on(partition, InboxMessage::PollsLost { poll_ids: [poll_id].into(), run: Some(run) });
    }

    fn question_lost(&self, node: Arc<str>, partition: u32, query_id: String) {
        if let Some(desk) = self.net.desk_named(&node) {
            (desk.send)(partition, InboxMessage::QueryLost { query_id });
        }
    }

    fn kept_back(&self, _queue: QueueKey, reply: oneshot::Sender<KeptBack>) {
        // Nobody asks here.
        drop(reply);
    }

    fn poll_id(&self) -> String {
        format!("again-{}", self.net.serial.fetch_add(1, Ordering::Relaxed))
    }

    fn rest(&self) -> BoxedFuture<()> {
        let clock = self.net.clock.clone();
        Box::pin(async move { clock.sleep(AGAIN_AFTER_MS).await })
    }

    fn spawn(&self, mut task: BoxedFuture<()>) {
        let lives = Arc::clone(&self.lives);
        lock(&self.net.tasks).push(Box::pin(poll_fn(move |context| {
            if !lives.load(Ordering::Relaxed) {
                return Polled::Ready(());
            }
            task.as_mut().poll(context)
        })));
    }
}
