//! The threads that own partitions. They send events and time to their partitions, and stop them in order. Which
//! partitions are here is decided by the cluster.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use everlog_cluster::{LocalPartitions, RemotePartitions};
use everlog_log::clock::now_ms;
use everlog_partition::{Admission, Config, Dispatcher, Error, InboxMessage, QueueLimits, Router, Stats};

use crate::clock::Clock;
use crate::error_policy::LossScope;
use crate::partitions::recovery_pool::{Recovered, RecoveryPool};
use crate::partitions::set::{Failed, OwnershipContext, PartitionSet, TakeReply};
use crate::storage::log_backend::LogBackend;
use crate::storage::token_keys;

/// Events that are received before partitions run, so that what has gathered is appended together.
const EVENTS_PER_TURN: usize = 4_096;
/// How long a stop waits for the last commit.
const STOP_WITHIN: Duration = Duration::from_millis(1_500);
/// How long a stop waits for threads: a thread that takes a partition over may wait for brokers.
pub const END_WITHIN: Duration = Duration::from_secs(3);
const LOOK_AT_END_EVERY: Duration = Duration::from_millis(2);
/// The longest sleep of a thread.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// How partitions are spread over threads, and their bounds.
#[derive(Clone)]
pub struct Options {
    /// Threads that own partitions.
    pub threads: usize,
    /// Requests that may wait for one partition.
    pub waiting_orders_max: usize,
    /// Reads and queries that may wait for one partition.
    pub waiting_reads_max: usize,
    /// Bounds of the task queues.
    pub queues: QueueLimits,
    /// The configuration of a partition; each incarnation gets an instance of its own.
    pub partition: Config,
}

/// The running partitions of a node.
pub struct Running {
    /// Sends requests to them.
    pub router: Router,
    /// Their counters, by partition.
    pub stats: Vec<Arc<Stats>>,
    /// How many requests and reads wait for each of them.
    pub admission: Arc<Admission>,
    context: Arc<OwnershipContext>,
    threads: Vec<JoinHandle<()>>,
}

enum Message {
    /// To a partition; a report is for one incarnation only.
    Deliver(u32, Option<u64>, Box<InboxMessage>),
    /// Take a partition over.
    Take(u32, TakeReply),
    /// Release a partition; the sender is dropped when it is gone.
    Leave(u32, Sender<()>),
    /// The recovery of a partition has ended.
    Arrived(u32, Box<Recovered>),
    Stop,
}

/// Sends to the threads that own the partitions.
pub struct PartitionSenders(Vec<Sender<Message>>);

impl PartitionSenders {
    /// Sends an event to a partition. False where its thread has ended.
    pub fn send(&self, partition: u32, incarnation: Option<u64>, event: InboxMessage) -> bool {
        self.post(partition, Message::Deliver(partition, incarnation, Box::new(event)))
    }

    /// The recovery of a partition has ended.
    pub fn arrived(&self, partition: u32, recovered: Recovered) {
        // A thread that has ended takes nothing over any more.
        self.post(partition, Message::Arrived(partition, Box::new(recovered)));
    }

    fn post(&self, partition: u32, message: Message) -> bool {
        self.0[partition as usize % self.0.len()].send(message).is_ok()
    }
}

/// Starts the threads; no partition is here yet. `stats`: the counters of each partition. `failed` is called when one
/// fails.
///
/// # Errors
/// The system has no threads or no random bytes.
pub fn start(
    backend: &LogBackend,
    options: &Options,
    stats: Vec<Arc<Stats>>,
    failed: &Arc<Failed>,
) -> Result<Running, Error> {
    let partitions = backend.log().partitions();
    let threads = options.threads.clamp(1, partitions as usize);
    let (inboxes, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::channel()).unzip();
    let senders = Arc::new(PartitionSenders(inboxes));
    let send: everlog_partition::PartitionSender = {
        let senders = Arc::clone(&senders);
        Arc::new(move |partition, event| senders.send(partition, None, event))
    };
    let dispatcher = Dispatcher::bounded(options.queues.clone(), now_ms);
    let admission =
        Arc::new(Admission::new(partitions, options.waiting_orders_max, options.waiting_reads_max));
    let context = Arc::new(OwnershipContext {
        backend: backend.clone(),
        partition: options.partition.clone(),
        dispatcher: Arc::clone(&dispatcher),
        senders,
        start: token_keys::random().map_err(|error| unstarted("random bytes", &error))?,
        incarnations: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
        elsewhere: OnceLock::new(),
        recovery_pool: RecoveryPool::default(),
        unprepared: Mutex::default(),
    });
    let mut running = Running {
        router: Router::new(partitions, send, dispatcher, Arc::clone(&admission)),
        stats,
        admission,
        context,
        threads: Vec::new(),
    };
    match running.spawn(receivers, failed) {
        Ok(()) => Ok(running),
        Err(error) => {
            running.stop();
            Err(error)
        }
    }
}

/// Takes partitions over and releases them. Cheap to clone.
#[derive(Clone)]
pub struct PartitionControl {
    context: Weak<OwnershipContext>,
    stats: Arc<[Arc<Stats>]>,
}

impl LocalPartitions for PartitionControl {
    fn take(&self, partitions: Vec<u32>) -> Result<Vec<(u32, Error)>, Error> {
        let Some(context) = self.context.upgrade() else { return Ok(Vec::new()) };
        let (taken, outcomes) = mpsc::channel();
        for partition in partitions {
            context.senders.post(partition, Message::Take(partition, taken.clone()));
        }
        // Waiting must keep nothing open.
        drop((taken, context));
        let outcomes: Vec<_> = outcomes.iter().collect();
        let closed = outcomes.into_iter().filter_map(Result::err).map(|(partition, end, error)| match end {
            LossScope::Closed => Ok((partition, error)),
            LossScope::Lost => Err(error),
        });
        closed.collect()
    }

    fn prepare(&self, partitions: Range<u32>) -> Result<(), Error> {
        let Some(context) = self.context.upgrade() else { return Ok(()) };
        for partition in partitions {
            let stats = &self.stats[partition as usize];
            if context.stopping.load(Ordering::Relaxed) {
                return Ok(());
            }
            let prepared = context.prepare(partition, stats);
            let mut outage = context.unprepared.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = &prepared {
                stats.restore_left.store(0, Ordering::Relaxed);
                if let Some(lasts) = outage.fails(Instant::now()) {
                    let for_s = lasts.as_secs();
                    tracing::warn!(partition, %error, for_s, "rows not restored before a take-over");
                }
            } else if let Some(lasted) = outage.works(Instant::now()) {
                tracing::info!(
                    partition,
                    after_s = lasted.as_secs(),
                    "rows restored before take-overs again"
                );
            }
            drop(outage);
            prepared?;
        }
        Ok(())
    }

    fn may_pass(&self, error: &Error) -> bool {
        self.context.upgrade().is_none_or(|context| context.may_pass(error))
    }

    fn forget(&self, partitions: Range<u32>) {
        let Some(context) = self.context.upgrade() else { return };
        partitions.for_each(|partition| context.backend.close_rows(partition));
    }

    fn leave(&self, partitions: Range<u32>) {
        let Some(context) = self.context.upgrade() else { return };
        let (left, gone) = mpsc::channel();
        for partition in partitions {
            context.senders.post(partition, Message::Leave(partition, left.clone()));
        }
        drop((left, context));
        // It ends when the last sender is dropped.
        let _ = gone.recv();
    }

    fn send_elsewhere(&self, elsewhere: Arc<dyn RemotePartitions>) {
        if let Some(context) = self.context.upgrade() {
            // Set once.
            let _ = context.elsewhere.set(elsewhere);
        }
    }
}

fn unstarted(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Journal { partition: 0, detail: format!("{what}: {error}") }
}

impl Running {
    /// Starts the threads.
    fn spawn(&mut self, inboxes: Vec<Receiver<Message>>, failed: &Arc<Failed>) -> Result<(), Error> {
        let threads = inboxes.len();
        for (index, inbox) in inboxes.into_iter().enumerate() {
            let own = (0..).zip(&self.stats).skip(index).step_by(threads);
            let partitions = own.map(|(id, stats)| (id, Arc::clone(stats))).collect();
            let (context, failed) = (Arc::clone(&self.context), Arc::clone(failed));
            let thread = std::thread::Builder::new().name(format!("processor-{index}"));
            let thread = thread.spawn(move || work(partitions, context, &failed, &inbox));
            self.threads.push(thread.map_err(|error| unstarted("no thread could be started", &error))?);
        }
        Ok(())
    }

    /// Takes partitions over and releases them.
    pub fn control(&self) -> PartitionControl {
        PartitionControl { context: Arc::downgrade(&self.context), stats: self.stats.clone().into() }
    }

    /// Where ready tasks and polls meet on this node.
    pub fn dispatcher(&self) -> Arc<Dispatcher> {
        Arc::clone(&self.context.dispatcher)
    }

    /// True while every partition serves that is wanted here and not closed.
    pub fn is_serving(&self) -> bool {
        let is_set = |gauge: &AtomicU64| gauge.load(Ordering::Relaxed) == 1;
        self.stats
            .iter()
            .all(|stats| is_set(&stats.serving) || is_set(&stats.closed) || !is_set(&stats.is_wanted))
    }

    /// Sends events to partitions.
    pub fn post(&self) -> everlog_partition::PartitionSender {
        let senders = Arc::clone(&self.context.senders);
        Arc::new(move |partition, event| senders.send(partition, None, event))
    }

    /// Ends every waiting poll with an empty answer.
    pub fn stop_polls(&self) {
        self.context.dispatcher.stop();
    }

    /// Applies what is in progress, commits, and ends the threads. False where a thread has not ended in time.
    pub fn stop(self) -> bool {
        self.context.stopping.store(true, Ordering::Relaxed);
        for inbox in &self.context.senders.0 {
            // A thread that has ended has nothing left to stop.
            drop(inbox.send(Message::Stop));
        }
        let deadline = Instant::now() + END_WITHIN;
        let mut all_ended = true;
        for thread in self.threads {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(LOOK_AT_END_EVERY);
            }
            if !thread.is_finished() {
                all_ended = false;
            } else if thread.join().is_err() {
                tracing::error!("partition thread panicked");
            }
        }
        all_ended
    }
}

/// The loop of a thread, which reports a panic.
fn work(
    partitions: Vec<(u32, Arc<Stats>)>,
    context: Arc<OwnershipContext>,
    failed: &Arc<Failed>,
    inbox: &Receiver<Message>,
) {
    let set = PartitionSet::new(partitions, context, Arc::clone(failed));
    let first = set.first();
    let drive = std::panic::AssertUnwindSafe(|| drive(set, inbox));
    if std::panic::catch_unwind(drive).is_err() {
        failed(
            first,
            LossScope::Lost,
            &Error::Journal { partition: first, detail: "its thread panicked".into() },
        );
    }
}

fn drive(mut set: PartitionSet, inbox: &Receiver<Message>) {
    let mut stop_at: Option<Instant> = None;
    let mut clock = Clock::new();
    loop {
        if let Some(by_ms) = clock.was_set() {
            tracing::warn!(by_ms, "system clock set, or machine suspended");
            set.clock_was_set(by_ms);
        }
        let next_ms = set.turn(clock.now_ms());
        if let Some(stop_at) = stop_at
            && (set.is_idle() || Instant::now() >= stop_at)
        {
            return;
        }
        let sleep = sleep(next_ms.map(|next_ms| next_ms - clock.now_ms()), stop_at.is_some());
        let first = match inbox.recv_timeout(sleep) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for message in std::iter::once(first).chain(inbox.try_iter().take(EVENTS_PER_TURN)) {
            match message {
                Message::Deliver(id, incarnation, event) => {
                    set.handle(id, incarnation, *event, clock.now_ms())
                }
                Message::Take(id, taken) => set.take(id, taken),
                Message::Leave(id, left) => set.leave(id, left),
                Message::Arrived(id, recovered) => set.arrived(id, *recovered),
                Message::Stop => {
                    stop_at = Some(Instant::now() + STOP_WITHIN);
                    set.hurry();
                }
            }
        }
    }
}

fn sleep(wait_ms: Option<i64>, stopping: bool) -> Duration {
    let longest = if stopping { Duration::from_millis(10) } else { SLEEP_MAX };
    let Some(wait_ms) = wait_ms else { return longest };
    Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(longest)
}
