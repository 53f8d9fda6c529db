//! A topic, journals and a registry in memory, each with the faults that a test asks for.

mod journals;
mod topic;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use everlog_avro::command::{Cancel, Command, Token};
use everlog_avro::payload::Payload;
use everlog_engine::Settings;
use everlog_ingress::{Ingress, Names, Options, Stats};
use everlog_log::consumer::Fetched;
use everlog_patience as patience;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use journals::{Fault, Journal, Journals};
pub use topic::{INCARNATION, POLL_RECORDS, Topic};

pub struct Harness {
    pub topic: Topic,
    pub journals: Journals,
    pub registry: Registry,
    pub options: Options,
    stats: Arc<Stats>,
}

pub struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), String>>,
}

impl Running {
    pub async fn stop(self) {
        self.stop.send(()).expect("it runs");
        self.task.await.expect("it does not panic").expect("it goes on until it is stopped");
    }
}

impl Harness {
    pub fn new(partitions: u32) -> Self {
        let mut options = Options::standard(Arc::new(Settings::standard()), "everlog.replies");
        options.record_bytes_max = 64 << 10;
        options.journal_record_bytes_max = 300 << 10;
        options.backlog_records_max = 500;
        options.batch_records_max = 100;
        options.retry_ms_max = 20;
        Self {
            topic: Topic::new(partitions),
            journals: Journals::new(8),
            registry: Registry::default(),
            options,
            stats: Arc::default(),
        }
    }

    pub fn run(&mut self) -> Running {
        let (source, journals) = (self.topic.source(), self.journals.clone());
        let ingress = Ingress::new(source, journals, self.registry.clone(), Namespaces, self.options.clone());
        self.stats = ingress.stats();
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            // Whoever forgets to stop it stops it, too.
            let _gone = stopped.await;
        };
        Running { stop, task: tokio::spawn(ingress.run(stopped)) }
    }

    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    pub async fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        let came = patience::until("what the test waits for", async || holds(self)).await;
        let (now, stopped) = (self.topic.committed(), self.stats.stopped());
        came.unwrap_or_else(|late| panic!("{late}: {now:?} {stopped:?}"));
    }
}

struct Namespaces;

impl Names for Namespaces {
    fn namespace(&self, name: &str) -> Option<(String, i64)> {
        let known = ["default", "private"].contains(&name);
        known.then(|| ("7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11".into(), 60_000))
    }

    fn typed(&self, _namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String> {
        Ok(search_attributes.clone())
    }

    fn token(&self, _token: &Bytes) -> Option<Token> {
        None
    }
}

/// A registry that may be away.
#[derive(Clone, Default)]
pub struct Registry {
    known: Arc<Mutex<Option<BTreeMap<u32, String>>>>,
    asked: Arc<AtomicUsize>,
}

impl Registry {
    pub fn away() -> Self {
        Self::default()
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn comes_back(&self, id: u32, text: &str) {
        *self.known.lock().expect("nobody panics") = Some(BTreeMap::from([(id, text.to_owned())]));
    }
}

impl everlog_ingress::SchemaRegistry for Registry {
    async fn schema(&self, id: u32) -> Result<Option<String>, String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let known = self.known.lock().expect("nobody panics");
        known.as_ref().map(|known| known.get(&id).cloned()).ok_or_else(|| "it is away".to_owned())
    }
}

pub fn record(workflow_id: &str, value: Vec<u8>) -> Fetched {
    let (key, value) = (Some(workflow_id.to_owned().into()), Some(value.into()));
    Fetched { key, value, ..Fetched::default() }
}

pub fn signal(workflow_id: &str, name: &str) -> Fetched {
    record(workflow_id, format!(r#"{{"type":"signal","signal":{{"name":"{name}","input":[1]}}}}"#).into())
}

pub fn cancel() -> Command<Payload<'static>> {
    Command { r#type: "cancel".into(), cancel: Some(Cancel::default()), ..Command::default() }
}
