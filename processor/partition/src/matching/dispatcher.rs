//! The dispatcher: ready tasks meet waiting polls. All of it is memory; the truth is the runs' state.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::matching::idle_queues::{QueueCensus, QueuePlace};
use crate::matching::queue_rates::QueueRates;
use crate::matching::remote::RemoteQueues;
use crate::matching::server_queues::ServerQueues;
use crate::matching::throughput::Throughput;
use crate::model::admission::CallFailure;
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::reply::send_reply;
use crate::model::task_types::{Offer, QueueKey, Ready, Waiting};
use crate::model::types::{Delivery, Poll};

pub use crate::matching::backlog::{Backlog, ReadyId};
pub use crate::matching::idle_queues::{QueueCounts, QueueLimits};
pub use crate::matching::queue_rates::QueueConfig;
pub use crate::matching::status::{LevelStatus, PollerStatus, QueueBacklog, QueueStatus};

/// How long after its last poll a sticky queue still counts as polled, in ms.
pub const STICKY_LIVE_MS: i64 = 10_000;
/// How long a queue without polls and tasks is remembered, in ms.
pub(crate) const FORGET_MS: i64 = 5 * 60_000;
/// Pollers of a queue that are remembered.
const POLLERS_MAX: usize = 1_000;
const SHARDS: usize = 16;

/// Most are small, and the room for them grows by doubling.
type Shard = HashMap<QueueKey, Box<Queue>>;

/// Where ready tasks and waiting polls meet.
pub struct Dispatcher {
    pub(crate) shards: [Mutex<Shard>; SHARDS],
    pub(super) census: Arc<QueueCensus>,
    serial: AtomicU64,
    clock: Box<dyn Fn() -> i64 + std::marker::Send + Sync>,
    own: Weak<Dispatcher>,
    server_queues: ServerQueues,
    /// What operators have configured, whether or not there is such a queue here.
    configs: RwLock<HashMap<QueueKey, Arc<QueueConfig>>>,
    /// None where this node is the only one.
    pub(crate) homes: OnceLock<Arc<dyn RemoteQueues>>,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) ready: Backlog,
    pub(crate) waiting: BTreeMap<u64, Box<Waiting>>,
    /// While polls wait.
    place: Option<QueuePlace>,
    pub(crate) pollers: HashMap<String, Poller>,
    pub(crate) last_poll_ms: i64,
    pub(crate) retired: bool,
    pub(crate) rates: QueueRates,
    pub(crate) flows: Throughput,
    /// Of a sticky queue.
    pub(crate) normal_queue: Option<String>,
    /// Something waits here that could wait in a normal queue.
    is_sticky: bool,
}

/// Who polls, as it has last said.
pub(crate) struct Poller {
    pub(crate) last_ms: i64,
    pub(crate) rate_per_second: Option<f64>,
    pub(crate) version: Option<Bytes>,
}

/// Withdraws a poll when it is dropped.
pub struct PollTicket {
    dispatcher: Weak<Dispatcher>,
    key: QueueKey,
    serial: u64,
}

impl Dispatcher {
    /// An empty dispatcher; `clock` gives ms since 1970-01-01 UTC.
    pub fn new(clock: impl Fn() -> i64 + std::marker::Send + Sync + 'static) -> Arc<Self> {
        Self::bounded(QueueLimits::default(), clock)
    }

    /// [`Dispatcher::new`], with other limits than the usual ones.
    pub fn bounded(
        limits: QueueLimits,
        clock: impl Fn() -> i64 + std::marker::Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            shards: Default::default(),
            census: QueueCensus::new(limits),
            serial: AtomicU64::new(1),
            clock: Box::new(clock),
            own: own.clone(),
            server_queues: ServerQueues::default(),
            configs: RwLock::default(),
            homes: OnceLock::new(),
        })
    }

    /// From now on other nodes bring polls and tasks together too. Said once, before anything is offered.
    pub fn shares_with(&self, homes: Arc<dyn RemoteQueues>) {
        // Said once.
        let _ = self.homes.set(homes);
    }

    fn home(&self, key: &QueueKey, normal_queue: Option<&str>) -> Option<&Arc<dyn RemoteQueues>> {
        let homes = self.homes.get()?;
        let is_far = match normal_queue {
            Some(normal) => homes.is_far(&QueueKey { name: normal.to_owned(), ..key.clone() }),
            None => homes.is_far(key),
        };
        is_far.then_some(homes)
    }

    /// Gives the poll a ready task, or lets it wait.
    ///
    /// # Errors
    /// Nothing is ready in its queue, no other poll waits there, and polls wait at as many queues as may be.
    pub fn poll(
        &self,
        poll: Poll,
        reply: oneshot::Sender<Delivery>,
        send: &PartitionSender,
    ) -> Result<PollTicket, CallFailure> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let key = QueueKey::of(&poll);
        self.welcome(&key, poll.rate_per_second)?;
        self.seat(Waiting { poll, reply, serial, is_visitor: false }, send);
        Ok(PollTicket { dispatcher: self.own.clone(), key, serial })
    }

    /// The queue gets a place among those at which polls wait, unless it has one.
    fn welcome(&self, key: &QueueKey, rate_per_second: Option<f64>) -> Result<(), CallFailure> {
        let mut shard = self.shard(key);
        let place = match shard.get(key) {
            Some(queue) if queue.place.is_some() => None,
            Some(queue) if !queue.ready.is_empty() => Some(self.census.enter(&key.namespace_id)),
            Some(_) | None => Some(self.census.admit(&key.namespace_id)?),
        };
        let queue = self.queue(&mut shard, key);
        queue.place = place.or(queue.place.take());
        queue.rates.limit(rate_per_second, (self.clock)());
        Ok(())
    }

    /// How many queues there are that clients have named, and how many were refused.
    pub fn queue_counts(&self) -> QueueCounts {
        self.census.counts()
    }

    /// A poll whose task was gone waits again.
    pub fn poll_again(&self, waiting: Waiting, send: &PartitionSender) {
        if waiting.is_visitor {
            send_reply(waiting.reply, Delivery::Nothing);
        } else if !waiting.reply.is_closed() {
            self.seat(waiting, send);
        }
    }

    fn seat(&self, waiting: Waiting, send: &PartitionSender) {
        let now_ms = (self.clock)();
        let key = QueueKey::of(&waiting.poll);
        let pair = {
            let mut shard = self.shard(&key);
            let queue = self.queue(&mut shard, &key);
            queue.saw(&waiting.poll, now_ms);
            let enter = || self.census.enter(&waiting.poll.namespace_id);
            queue.place.get_or_insert_with(enter);
            queue.waiting.insert(waiting.serial, Box::new(waiting));
            queue.pair(now_ms)
        };
        if let Some((ready, waiting)) = pair {
            self.bring(ready, waiting, send);
        }
    }

    /// Tells the partition of what is ready which poll is to get it. What another node has offered is that node's to give,
    /// whoever is taken for the owner by now: one that is it no more gives nothing, and whoever is has offered it too.
    pub(crate) fn bring(&self, ready: Ready, waiting: Waiting, send: &PartitionSender) {
        if let (Some(node), Some(homes)) = (ready.offered_by(), self.homes.get()) {
            return homes.claim(Arc::clone(node), ready, waiting);
        }
        let (partition, event) = match ready {
            Ready::Task(task) => (task.partition, InboxMessage::Claim { task, waiting }),
            Ready::Query { partition, query_id, .. } => {
                (partition, InboxMessage::HandQuery { query_id, waiting })
            }
        };
        // Where the partition is gone, so is its node: the poll ends with it.
        send(partition, event);
    }

    /// Offers something ready. Where a poll waits for it, or for what the same partition has offered before, the two
    /// are taken out and returned: the partition hands the one to the other. What another partition or node has offered
    /// before goes first, and is claimed of whoever has offered it.
    pub fn offer(&self, key: &QueueKey, ready: Ready, send: &PartitionSender) -> Option<(Ready, Waiting)> {
        if let Some(homes) = self.home(key, ready.normal_queue()) {
            homes.bring(Offer { queue: key.clone(), ready });
            return None;
        }
        let partition = ready.partition();
        let (first, waiting) = self.put(key, ready)?;
        if first.partition() == partition && first.offered_by().is_none() {
            return Some((first, waiting));
        }
        self.bring(first, waiting, send);
        None
    }

    /// Another node has something ready, and this one is its queue's home. Where a sticky queue has no worker it goes to
    /// the normal queue.
    pub fn offered(&self, offer: Offer, send: &PartitionSender) {
        let Offer { mut queue, mut ready } = offer;
        if ready.normal_queue().is_some() && !self.is_live(&queue) {
            queue.name = ready.leave_sticky_queue().unwrap_or(queue.name);
        }
        if let Some((ready, waiting)) = self.put(&queue, ready) {
            self.bring(ready, waiting, send);
        }
    }

    /// The nodes have changed: queues that have their home elsewhere now are let go of, and their polls end empty. What waits is
    /// forgotten everywhere: owners, this node's own partitions too, offer it once more.
    pub fn rehome(&self) {
        let mut ended = BTreeMap::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|key, queue| {
                let is_far = self.home(key, queue.normal_queue.as_deref()).is_some();
                if is_far {
                    ended.append(&mut queue.waiting);
                }
                queue.ready = Backlog::default();
                queue.rates.forget_held();
                queue.flows = Throughput::default();
                !is_far
            });
        }
        // As they came, whatever queue they wait at.
        for waiting in ended.into_values() {
            // The poll may be gone: then nobody needs to be told.
            send_reply(waiting.reply, Delivery::Nothing);
        }
    }

    /// A namespace was deleted: its queues are let go of with all that waits in them, and its polls end empty.
    pub fn forget_namespace(&self, namespace_id: &str) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|key, queue| {
                let is_gone = key.namespace_id == namespace_id;
                if is_gone {
                    queue.end_polls();
                }
                !is_gone
            });
        }
        let mut configs = self.configs.write().unwrap_or_else(PoisonError::into_inner);
        configs.retain(|key, _| key.namespace_id != namespace_id);
        drop(configs);
        if let Some(homes) = self.homes.get() {
            homes.forget_namespace(namespace_id);
        }
    }

    /// An operator has configured a queue; none = it is not configured any more. What may go by that goes within a second.
    pub fn configure(&self, key: &QueueKey, config: Option<QueueConfig>) {
        let config = config.map(Arc::new);
        let mut configs = self.configs.write().unwrap_or_else(PoisonError::into_inner);
        match &config {
            Some(config) => drop(configs.insert(key.clone(), Arc::clone(config))),
            None => drop(configs.remove(key)),
        }
        drop(configs);
        // A queue that is made from here on finds it.
        if let Some(queue) = self.shard(key).get_mut(key) {
            queue.rates.configure(config, (self.clock)());
            queue.ready.release_all();
        }
    }

    pub(crate) fn config(&self, key: &QueueKey) -> Option<Arc<QueueConfig>> {
        self.configs.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn queue<'a>(&self, shard: &'a mut Shard, key: &QueueKey) -> &'a mut Queue {
        let made = || Box::new(Queue { rates: QueueRates::new(self.config(key)), ..Queue::default() });
        shard.entry(key.clone()).or_insert_with(made)
    }

    /// Something ready joins a queue; what is to be handed out now.
    pub(crate) fn put(&self, key: &QueueKey, ready: Ready) -> Option<(Ready, Waiting)> {
        let now_ms = (self.clock)();
        let mut shard = self.shard(key);
        let queue = match shard.contains_key(key) {
            true => shard.get_mut(key)?,
            false => self.queue(&mut shard, key),
        };
        if queue.normal_queue.is_none() {
            queue.normal_queue = ready.normal_queue().map(str::to_owned);
        }
        queue.is_sticky |= ready.normal_queue().is_some();
        queue.flows.added(ready.level(), now_ms);
        queue.ready.push(now_ms, ready);
        let pair = queue.pair(now_ms);
        if queue.waiting.is_empty() && !queue.ready.is_empty() {
            self.server_queues.note(key);
        }
        pair
    }

    /// The next queue of the server itself where something waits and no poll does. For one caller at a time.
    pub async fn unpolled_server_queue(&self) -> QueueKey {
        self.server_queues.next().await
    }

    /// Milliseconds since 1970-01-01 UTC, by the dispatcher's clock.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// True where a sticky queue of this normal queue has a worker, or where another node has to know.
    pub fn may_be_live(&self, key: &QueueKey, normal_queue: &str) -> bool {
        self.home(key, Some(normal_queue)).is_some() || self.is_live(key)
    }

    /// True where a sticky queue has a worker: polls wait, or one came a short while ago.
    pub fn is_live(&self, key: &QueueKey) -> bool {
        let now_ms = (self.clock)();
        self.shard(key).get(key).is_some_and(|queue| queue.is_live(now_ms))
    }

    /// Tasks that wait in a queue.
    pub fn backlog(&self, key: &QueueKey) -> usize {
        self.shard(key).get(key).map_or(0, |queue| queue.ready.len())
    }

    /// True where something waits here that a node has offered; none = a partition of this one. Looks through all that waits.
    pub fn has(&self, id: &ReadyId, offered_by: Option<&str>) -> bool {
        let is_it = |queue: &Queue| {
            let found = queue.ready.find(id);
            found.is_some_and(|ready| ready.offered_by().map(|node| &**node) == offered_by)
        };
        self.shards.iter().any(|shard| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.values().any(|queue| is_it(queue))
        })
    }

    /// Ends every waiting poll: the node is stopping.
    pub fn stop(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for queue in shard.values_mut() {
                queue.retired = true;
                queue.end_polls();
            }
        }
    }

    pub(crate) fn shard(&self, key: &QueueKey) -> MutexGuard<'_, Shard> {
        let hash = crc32fast::hash(key.name.as_bytes()) as usize;
        self.shards[hash % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn is_live(&self, now_ms: i64) -> bool {
        !self.retired && (!self.waiting.is_empty() || now_ms - self.last_poll_ms < STICKY_LIVE_MS)
    }

    /// A sticky queue where something waits for a worker that polls no more.
    pub(crate) fn is_left(&self, now_ms: i64) -> bool {
        self.is_sticky && !self.ready.is_empty() && !self.is_live(now_ms)
    }

    pub(crate) fn end_polls(&mut self) {
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            // The poll may be gone: then nobody needs to be told.
            send_reply(waiting.reply, Delivery::Nothing);
        }
        self.settle();
    }

    pub(crate) fn forget_closed(&mut self) {
        self.waiting.retain(|_, waiting| !waiting.reply.is_closed());
        self.settle();
    }

    /// Where no poll waits any more, the queue is none that is polled, and keeps no room for polls.
    fn settle(&mut self) {
        if self.waiting.is_empty() {
            self.waiting = BTreeMap::new();
            self.place = None;
        }
    }

    fn saw(&mut self, poll: &Poll, now_ms: i64) {
        self.last_poll_ms = now_ms;
        self.retired = false;
        self.normal_queue = poll.normal_queue.clone().or(self.normal_queue.take());
        let (rate_per_second, version) = (poll.rate_per_second, poll.version.clone());
        let poller = Poller { last_ms: now_ms, rate_per_second, version };
        match self.pollers.get_mut(&poll.identity) {
            Some(known) => *known = poller,
            None => {
                if self.pollers.len() >= POLLERS_MAX {
                    self.pollers.retain(|_, poller| now_ms - poller.last_ms < FORGET_MS);
                }
                if self.pollers.len() < POLLERS_MAX {
                    self.pollers.insert(poll.identity.clone(), poller);
                }
            }
        }
    }

    /// The next of what is ready and the oldest poll, if there are both and the queue's rate allows it.
    pub(crate) fn pair(&mut self, now_ms: i64) -> Option<(Ready, Waiting)> {
        if self.ready.is_empty() {
            return None;
        }
        while self.waiting.first_entry().is_some_and(|first| first.get().reply.is_closed()) {
            self.waiting.pop_first();
        }
        if self.waiting.is_empty() {
            self.settle();
            return None;
        }
        self.rates.released(now_ms).iter().for_each(|key| self.ready.release(key));
        let may_hand_out = self.rates.may_hand_out(now_ms);
        let next = may_hand_out.then(|| self.ready.pop(&mut self.rates.at(now_ms))).flatten();
        let Some(ready) = next else {
            self.flows.held(now_ms);
            return None;
        };
        let (_, waiting) = self.waiting.pop_first()?;
        self.rates.count(&ready, now_ms);
        self.settle();
        self.flows.handed(ready.level(), now_ms);
        Some((ready, *waiting))
    }
}

impl Drop for PollTicket {
    fn drop(&mut self) {
        if let Some(dispatcher) = self.dispatcher.upgrade()
            && let Some(queue) = dispatcher.shard(&self.key).get_mut(&self.key)
            && queue.waiting.remove(&self.serial).is_some()
        {
            // Whoever waits until the end of a poll was there until then.
            queue.last_poll_ms = (dispatcher.clock)();
            queue.settle();
        }
    }
}
