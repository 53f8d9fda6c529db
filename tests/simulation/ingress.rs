//! The product's ingress of a node, between a simulated topic and a simulated journal.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use everlog_avro::command::Token;
use everlog_engine::Settings;
use everlog_ingress::{
    Ingress, Journals, Names, Options, SchemaRegistry, SharedJournals as ByLog, Undelivered,
};
use everlog_wire::Body;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::clients::NAMESPACE;
use crate::clock::Clock;
use crate::commands::Commands;
use crate::log::{Removed, Shared, SimLog};

/// How often its tasks are let on within one moment: none of them waits for another so often.
const ROUNDS: usize = 12;

/// An ingress and all that runs on its behalf.
pub struct Connector {
    /// In the group of those who read the topic.
    pub member: u64,
    /// Its producer.
    pub by: u64,
    rung: Arc<AtomicBool>,
    runtime: Runtime,
    task: JoinHandle<Result<(), String>>,
}

struct Way {
    journals: ByLog<SimLog>,
    /// Kept open by nobody else.
    _log: Arc<SimLog>,
    clock: Clock,
    believes: bool,
    rung: Arc<AtomicBool>,
}

/// Wakes a task, and tells that there is something to do.
struct Bell {
    task: Waker,
    rung: Arc<AtomicBool>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}

/// Waits for something from outside its runtime.
pub async fn ringing<T>(rung: &Arc<AtomicBool>, waited: impl Future<Output = T>) -> T {
    let mut waited = pin!(waited);
    poll_fn(|context| {
        let bell = Arc::new(Bell { task: context.waker().clone(), rung: rung.clone() });
        waited.as_mut().poll(&mut Context::from_waker(&Waker::from(bell)))
    })
    .await
}

impl Journals for Way {
    fn partitions(&self) -> u32 {
        self.journals.partitions()
    }

    async fn deliver(&self, partition: u32, bodies: &[Body]) -> Result<(), Undelivered> {
        let delivered = ringing(&self.rung, self.journals.deliver(partition, bodies)).await;
        if self.believes { Ok(()) } else { delivered }
    }

    async fn pause(&self, pause: Duration) {
        let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        ringing(&self.rung, self.clock.sleep(pause_ms)).await;
    }
}

/// No schema is known but one's own.
struct Nowhere;

impl SchemaRegistry for Nowhere {
    async fn schema(&self, _id: u32) -> Result<Option<String>, String> {
        Ok(None)
    }
}

struct Known(Arc<AtomicI64>);

impl Names for Known {
    fn namespace(&self, name: &str) -> Option<(String, i64)> {
        (name == "default").then(|| (NAMESPACE.into(), 30 * 86_400_000))
    }

    fn typed(&self, _namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String> {
        Ok(search_attributes.clone())
    }

    fn token(&self, _token: &Bytes) -> Option<Token> {
        None
    }

    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connector {
    pub fn start(commands: &Commands, broker: &Shared, clock: &Clock) -> Self {
        let log = Arc::new(SimLog::open(broker));
        let by = log.by;
        let believes = broker.lock().removed == Some(Removed::IngressAcks);
        let rung = Arc::new(AtomicBool::new(true));
        let way =
            Way { journals: ByLog::new(&log), _log: log, clock: clock.clone(), believes, rung: rung.clone() };
        let mut options = Options::standard(Arc::new(Settings::standard()), "replies");
        (options.batch_records_max, options.backlog_records_max, options.retry_ms_max) = (3, 6, 500);
        let runtime = Builder::new_current_thread().build().expect("it needs nothing");
        commands.join(by);
        let ingress = Ingress::new(commands.source(by, &rung), way, Nowhere, Known(clock.shared()), options);
        let task = runtime.spawn(ingress.run(std::future::pending()));
        Self { member: by, by, rung, runtime, task }
    }

    /// Lets it go on until it waits; false where it has ended.
    pub fn run(&self) -> bool {
        if !self.rung.swap(false, Ordering::Relaxed) {
            return true;
        }
        self.runtime.block_on(async {
            for _ in 0..ROUNDS {
                tokio::task::yield_now().await;
            }
        });
        !self.task.is_finished()
    }
}
