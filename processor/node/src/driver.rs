//! The driver: threads that own partitions, feed them events and time, and stop them in order.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use everlog_log::Log;
use everlog_log::embedded::Embedded;
use everlog_partition::{Admission, Config, Dispatcher, Error, Event, Partition, Router, Stats};
use everlog_store::{SharedRows, Store};

/// Events that are taken in before partitions get their turn: what has gathered is appended together.
const EVENTS_PER_TURN: usize = 4_096;
/// How long a stop waits for the last commit.
const STOP_WITHIN: Duration = Duration::from_millis(1_500);
/// The longest sleep of a thread.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// How the partitions are spread and bounded.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that own partitions.
    pub threads: usize,
    /// Orders that may wait for one partition.
    pub waiting_orders_max: usize,
    /// Reads and queries that may wait for one partition.
    pub waiting_reads_max: usize,
    /// What each partition keeps to.
    pub partition: Config,
}

/// The partitions of a node, at work.
pub struct Running {
    /// Reaches them.
    pub router: Router,
    /// What each of them counts, by partition.
    pub stats: Vec<Arc<Stats>>,
    /// How many orders and reads wait for each of them.
    pub admission: Arc<Admission>,
    dispatcher: Arc<Dispatcher>,
    inboxes: Vec<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
}

enum Message {
    Event(u32, Box<Event>),
    Stop,
}

/// Is told which partition cannot go on, and why.
type Failed = dyn Fn(u32, &Error) + Send + Sync;

type Owned = Partition<Embedded, SharedRows>;

/// Milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Recovers every partition and lets them serve. `failed` is told when one cannot go on.
///
/// # Errors
/// A partition cannot be recovered.
pub fn start(
    log: &Arc<Embedded>,
    options: &Options,
    failed: impl Fn(u32, &Error) + Send + Sync + 'static,
) -> Result<Running, Error> {
    let partitions = log.partitions();
    let threads = options.threads.clamp(1, partitions as usize);
    let (inboxes, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::channel()).unzip();
    let send: everlog_partition::Send = {
        let inboxes: Vec<Sender<Message>> = inboxes.clone();
        Arc::new(move |partition, event| {
            inboxes[partition as usize % inboxes.len()]
                .send(Message::Event(partition, Box::new(event)))
                .is_ok()
        })
    };
    let dispatcher = Dispatcher::new(now_ms);
    let admission =
        Arc::new(Admission::new(partitions, options.waiting_orders_max, options.waiting_reads_max));
    let router = Router::new(partitions, send.clone(), dispatcher.clone(), admission.clone());
    let failed: Arc<Failed> = Arc::new(failed);
    let mut running = Running {
        router,
        stats: Vec::new(),
        admission,
        dispatcher: dispatcher.clone(),
        inboxes,
        threads: Vec::new(),
    };
    let mut shares: Vec<Vec<Owned>> = (0..threads).map(|_| Vec::new()).collect();
    for id in 0..partitions {
        let store = Store::new(SharedRows::new(log.database())?);
        let config = options.partition.clone();
        let partition = Partition::recover(id, log.clone(), store, dispatcher.clone(), send.clone(), config)?;
        running.stats.push(partition.stats());
        shares[id as usize % threads].push(partition);
    }
    for (index, (share, inbox)) in shares.into_iter().zip(receivers).enumerate() {
        let failed = failed.clone();
        let thread = std::thread::Builder::new().name(format!("processor-{index}"));
        let thread = thread.spawn(move || {
            let first = share.first().map_or(0, Partition::id);
            let drive = std::panic::AssertUnwindSafe(|| drive(share, &inbox, failed.as_ref()));
            if std::panic::catch_unwind(drive).is_err() {
                let detail = "its thread panicked".into();
                failed(first, &Error::Journal { partition: first, detail });
            }
        });
        running.threads.push(thread.map_err(|error| Error::Journal {
            partition: 0,
            detail: format!("no thread could be started: {error}"),
        })?);
    }
    Ok(running)
}

impl Running {
    /// True while every partition serves.
    pub fn is_serving(&self) -> bool {
        self.stats.iter().all(|stats| stats.serving.load(std::sync::atomic::Ordering::Relaxed) == 1)
    }

    /// Ends every waiting poll with an empty answer.
    pub fn stop_polls(&self) {
        self.dispatcher.stop();
    }

    /// Applies what is on its way, commits, and ends the threads.
    pub fn stop(self) {
        for inbox in &self.inboxes {
            // A thread that has ended already has nothing left to stop.
            drop(inbox.send(Message::Stop));
        }
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a processor thread had panicked");
            }
        }
    }
}

fn drive(mut partitions: Vec<Owned>, inbox: &Receiver<Message>, failed: &Failed) {
    let mut stop_at: Option<Instant> = None;
    loop {
        let next_ms = turn(&mut partitions, failed);
        if let Some(stop_at) = stop_at
            && (partitions.iter().all(Partition::is_idle) || Instant::now() >= stop_at)
        {
            return;
        }
        let sleep = sleep(next_ms, stop_at.is_some());
        let first = match inbox.recv_timeout(sleep) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now_ms = now_ms();
        for message in std::iter::once(first).chain(inbox.try_iter().take(EVENTS_PER_TURN)) {
            match message {
                Message::Event(id, event) => handle(&mut partitions, id, *event, now_ms, failed),
                Message::Stop => {
                    stop_at = Some(Instant::now() + STOP_WITHIN);
                    partitions.iter_mut().for_each(Partition::hurry);
                }
            }
        }
    }
}

fn handle(partitions: &mut Vec<Owned>, id: u32, event: Event, now_ms: i64, failed: &Failed) {
    let Some(index) = partitions.iter().position(|partition| partition.id() == id) else { return };
    if let Err(error) = partitions[index].handle(event, now_ms) {
        give_up(partitions, index, &error, failed);
    }
}

fn turn(partitions: &mut Vec<Owned>, failed: &Failed) -> Option<i64> {
    let now_ms = now_ms();
    let mut next_ms: Option<i64> = None;
    let mut index = 0;
    while index < partitions.len() {
        match partitions[index].turn(now_ms) {
            Ok(turn_ms) => {
                next_ms = next_ms.into_iter().chain(turn_ms).min();
                index += 1;
            }
            Err(error) => give_up(partitions, index, &error, failed),
        }
    }
    next_ms
}

/// A partition that cannot go on is dropped: whoever waits for it is told so at once.
fn give_up(partitions: &mut Vec<Owned>, index: usize, error: &Error, failed: &Failed) {
    let partition = partitions.swap_remove(index);
    partition.stats().serving.store(0, std::sync::atomic::Ordering::Relaxed);
    failed(partition.id(), error);
}

fn sleep(next_ms: Option<i64>, stopping: bool) -> Duration {
    let longest = if stopping { Duration::from_millis(10) } else { SLEEP_MAX };
    let Some(next_ms) = next_ms else { return longest };
    let wait_ms = u64::try_from(next_ms - now_ms()).unwrap_or(0);
    Duration::from_millis(wait_ms).min(longest)
}
