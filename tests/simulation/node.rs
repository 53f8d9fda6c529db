//! A node: its router, its dispatcher, its rows, and the partition while the node owns it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use everlog_engine::{Settings, level};
use everlog_partition::{
    Admission, Config, Dispatcher, Error, InboxMessage, LevelSource, Partition, PreviousOwner, ReadyId,
    Router, Stats, UncommittedBudget, Unnamed,
};
use everlog_store::Store;

use crate::disk::Disk;
use crate::exchange::{Desk, Net};
use crate::gateway::Gateway;
use crate::log::{Shared, SimLog};
use crate::rules::Loose;

/// The partition that everything happens in.
pub const PARTITION: u32 = 0;
/// So many that each has few buckets: a take-over looks into every one of them.
pub const PARTITIONS: u32 = 256;

/// Events, and for reports of the log the life of the partition that they are for.
type Inbox = Arc<Mutex<Option<VecDeque<(Option<u64>, InboxMessage)>>>>;

/// A process.
pub struct Node {
    pub id: usize,
    pub log: Arc<SimLog>,
    pub router: Router,
    pub admission: Arc<Admission>,
    pub disk: Disk,
    pub partition: Option<Partition<SimLog, Disk, Loose>>,
    /// How far its clock is off.
    pub clock_ms: Arc<AtomicI64>,
    /// It is stopped until then.
    pub asleep_until_ms: i64,
    /// When it takes its next turn, in the world's time; none where it waits for events only.
    pub next_ms: Option<i64>,
    /// When it may try to take the partition again, if it means to.
    pub retry_ms: Option<i64>,
    pub recovered_ms: i64,
    /// Uncommitted bytes that its partition may keep.
    pub overlay_bytes_max: usize,
    /// The level of decisions that it names.
    pub level: Arc<NodeLevel>,
    /// Its public face, where there is one.
    pub gateway: Option<Rc<Gateway>>,
    /// Its side of what nodes do for each other, where they do.
    pub desk: Option<Arc<Desk>>,
    dispatcher: Arc<Dispatcher>,
    inbox: Inbox,
    life: u64,
}

/// The level of decisions that a node names; it may be raised while the node lives.
pub struct NodeLevel(pub AtomicU32);

impl LevelSource for NodeLevel {
    fn of_new_partition(&self) -> u32 {
        self.raised()
    }

    fn raised(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Nodes are not configured alike: each gives its workers other advice, and mostly names another level of decisions.
pub fn config(node: usize, levels: Arc<dyn LevelSource>, instance: u64, overlay_bytes_max: usize) -> Config {
    Config {
        node: format!("node-{node}"),
        public: Arc::new(Unnamed),
        ending_counts: Arc::new(everlog_partition::Uncounted),
        command_observer: None,
        instance: Bytes::copy_from_slice(&instance.to_be_bytes()),
        levels,
        settings: Settings { suggest_events: 3 + 4 * node as i64, ..Settings::standard() },
        commit_interval_ms: 100,
        overlay_bytes_max,
        room: UncommittedBudget::new(0),
        cached_runs_max: 4,
        appends_max: 2,
        append_records_max: 5,
        wakes_max: 3,
        buffered_queries_max: 10,
        journal_keep_records: 5,
    }
}

impl Node {
    pub fn start(id: usize, broker: &Shared, now_ms: &Arc<AtomicI64>, disk: Disk) -> Self {
        let inbox: Inbox = Arc::new(Mutex::new(Some(VecDeque::new())));
        let send = post(&inbox, 0);
        let clock_ms = Arc::new(AtomicI64::new(0));
        let (clock, now) = (clock_ms.clone(), now_ms.clone());
        let dispatcher = Dispatcher::new(move || now.load(Ordering::Relaxed) + clock.load(Ordering::Relaxed));
        let admission = Arc::new(Admission::new(PARTITIONS, 100, 100));
        let router = Router::new(PARTITIONS, send.clone(), dispatcher.clone(), admission.clone());
        Self {
            id,
            log: Arc::new(SimLog::open(broker)),
            router,
            admission,
            disk,
            partition: None,
            clock_ms,
            asleep_until_ms: 0,
            next_ms: None,
            retry_ms: None,
            recovered_ms: 0,
            overlay_bytes_max: 64 << 20,
            level: Arc::new(NodeLevel(AtomicU32::new(level::LATEST.min(id as u32)))),
            gateway: None,
            desk: None,
            dispatcher,
            inbox,
            life: 0,
        }
    }

    /// From now on it brings tasks and polls together with others. `instance`: which process of its name it is.
    pub fn share(&mut self, net: &Arc<Net>, instance: u64) {
        let send = post(&self.inbox, 0);
        self.desk = Some(Desk::open(net, (self.id, instance), &self.dispatcher, &send, PARTITION + 1));
    }

    fn own_ms(&self, now_ms: i64) -> i64 {
        now_ms + self.clock_ms.load(Ordering::Relaxed)
    }

    /// Takes the partition over again after a life that had come so far, unless somebody else has it. The upper half
    /// of an instance is that of its process.
    pub fn resume(&mut self, applied: u64, instance: u64, now_ms: i64) -> Result<(), Error> {
        let process = Bytes::copy_from_slice(&instance.to_be_bytes()[..4]);
        self.take(Some(PreviousOwner { process, applied }), instance, now_ms)
    }

    /// Takes the partition over.
    pub fn recover(&mut self, instance: u64, now_ms: i64) -> Result<(), Error> {
        self.take(None, instance, now_ms)
    }

    /// Brings its rows as far as the owner's commits are, whoever that is.
    pub fn prepare(&self, now_ms: i64) -> Result<(), Error> {
        let stats = Stats::default();
        Partition::<SimLog, Disk, Loose>::prepare(
            PARTITION,
            &self.log,
            &self.disk,
            &stats,
            self.own_ms(now_ms),
        )
    }

    fn take(&mut self, former: Option<PreviousOwner>, instance: u64, now_ms: i64) -> Result<(), Error> {
        self.partition = None;
        // What was meant for the owner before goes with it.
        self.events().clear();
        self.retry_ms = None;
        self.life = instance;
        let (log, store, dispatcher) =
            (self.log.clone(), Store::new(self.disk.clone()), self.dispatcher.clone());
        let (send, config, stats) = (
            post(&self.inbox, instance),
            config(self.id, self.level.clone(), instance, self.overlay_bytes_max),
            Arc::default(),
        );
        let recovered = match &former {
            None => Partition::recover(PARTITION, log, store, dispatcher, send, config, stats),
            Some(former) => Partition::resume(former, PARTITION, log, store, dispatcher, send, config, stats),
        };
        self.partition = Some(recovered?);
        self.next_ms = Some(now_ms);
        self.recovered_ms = now_ms;
        Ok(())
    }

    fn events(&self) -> VecDeque<(Option<u64>, InboxMessage)> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Requests that have a place in front of the partition.
    pub fn places(&self) -> usize {
        self.admission.waiting_orders(PARTITION) + self.admission.waiting_reads(PARTITION)
    }

    /// Whether something has come that was not taken in.
    pub fn has_events(&self) -> bool {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.as_ref().is_some_and(|events| !events.is_empty())
    }

    /// Its clock is set, and the partition is told as far as its driver notices.
    pub fn set_clock(&mut self, clock_ms: i64, notices: bool, now_ms: i64) {
        let by_ms = clock_ms - self.clock_ms.swap(clock_ms, Ordering::Relaxed);
        if let Some(partition) = self.partition.as_mut().filter(|_| notices && by_ms != 0) {
            partition.clock_was_set(by_ms);
            self.next_ms = Some(now_ms);
        }
    }

    /// When it has something to do.
    pub fn due_ms(&self, now_ms: i64) -> Option<i64> {
        let due_ms = if self.has_events() { Some(now_ms) } else { self.next_ms };
        due_ms.map(|due_ms| due_ms.max(self.asleep_until_ms))
    }

    /// Takes in up to `events_max` events and a turn.
    pub fn turn(&mut self, events_max: usize, now_ms: i64) -> Result<(), Error> {
        let own_ms = self.own_ms(now_ms);
        self.next_ms = None;
        let mut events = self.events();
        let Some(partition) = self.partition.as_mut() else {
            self.strays(events);
            return Ok(());
        };
        let later = events.split_off(events.len().min(events_max));
        if let Some(inbox) = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            for event in later.into_iter().rev() {
                inbox.push_front(event);
            }
        }
        for (life, event) in events {
            if life.is_some_and(|life| life != self.life) {
                continue;
            }
            partition.handle(event, own_ms)?;
        }
        let next_ms = partition.turn(own_ms)?;
        self.next_ms = next_ms.map(|next_ms| (next_ms - own_ms + now_ms).max(now_ms));
        Ok(())
    }

    /// What reaches a partition that is not here: polls wait on, and what has reached nobody is told to whoever has it.
    fn strays(&self, events: VecDeque<(Option<u64>, InboxMessage)>) {
        let Some(desk) = &self.desk else { return };
        let send = post(&self.inbox, 0);
        for (_, event) in events {
            match event {
                InboxMessage::Claim { waiting, .. } | InboxMessage::HandQuery { waiting, .. } => {
                    self.dispatcher.poll_again(waiting, &send);
                }
                InboxMessage::Release { .. } | InboxMessage::PollsLost { .. } => {
                    desk.pass_on(PARTITION, event)
                }
                _nobody_waits => {}
            }
        }
    }

    /// A ready task of its partition that is nowhere: not at the home of its queue, nor on its way there or from there.
    pub fn forgotten(&self) -> Option<String> {
        let (desk, partition) = self.desk.as_ref().zip(self.partition.as_ref())?;
        let offered = match partition.offered() {
            Ok(offered) => offered,
            Err(error) => return Some(format!("what node {} has offered cannot be read: {error}", self.id)),
        };
        if offered.is_empty() {
            return None;
        }
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut claimed = Vec::new();
        for (_, event) in inbox.iter().flatten() {
            match event {
                InboxMessage::OfferAgain => return None,
                InboxMessage::Claim { task, .. } => {
                    claimed.push(ReadyId::of_task(task));
                }
                _other => {}
            }
        }
        offered.iter().filter(|id| !claimed.contains(id)).find_map(|id| desk.misses(id))
    }

    /// Nothing is left of the process.
    pub fn die(self) -> Disk {
        // Dropped outside the lock: what comes back by a receipt is sent to this inbox.
        let closed = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(closed);
        self.disk
    }
}

/// What brings events to a node: what the log reports goes to the life of the partition that asked for it.
fn post(inbox: &Inbox, life: u64) -> everlog_partition::PartitionSender {
    let inbox = inbox.clone();
    Arc::new(move |_, event| {
        let report = event.is_report();
        match inbox.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(open) => {
                open.push_back((report.then_some(life), event));
                true
            }
            None => false,
        }
    })
}
