//! The registry of what is set for task queues: durable in a map of rows, one for each queue, and known to every node.
//!
//! One node changes rows at a time; every node learns the rows that others write. The dispatcher of each is told what a row means
//! for the tasks of its queue.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use everlog_partition::{Dispatcher, QueueConfig, QueueKey, TaskKind};
use everlog_temporal_api::enums::{ResourceExhaustedCause, ResourceExhaustedScope, TaskQueueType};
use everlog_temporal_api::taskqueue::TaskQueueConfig;
use prost::Message;
use tokio::sync::{Mutex, MutexGuard};
use tonic::Status;

use crate::codec::status;
use crate::namespaces::namespace::{Control, deleted_id};
use crate::task_queues::build_ids::BuildIdSet;
use crate::task_queues::config::of_tasks;

const KEY_PREFIX: &str = "task-queue/";
/// The rows of all queues. Every node holds them, and each change reads them.
const BYTES_MAX: usize = 16 << 20;

/// The row of a task queue.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskQueueRecord {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    /// By the number of the [`TaskQueueType`].
    #[prost(btree_map = "int32, message", tag = "3")]
    pub configs: BTreeMap<i32, TaskQueueConfig>,
    /// The last one is the queue's default.
    #[prost(message, repeated, tag = "4")]
    pub build_id_sets: Vec<BuildIdSet>,
}

/// What is set for task queues.
pub struct TaskQueues {
    known: RwLock<TaskQueueIndex>,
    control: Arc<dyn Control>,
    dispatcher: Arc<Dispatcher>,
    change: Mutex<()>,
}

#[derive(Default)]
struct TaskQueueIndex {
    /// By the namespace's UUID and the queue's name.
    records: BTreeMap<(String, String), Arc<TaskQueueRecord>>,
    bytes: usize,
}

impl TaskQueues {
    /// Reads the registry, and configures the queues of the dispatcher.
    ///
    /// # Errors
    /// The error of the durable map, as text.
    pub fn open(control: Arc<dyn Control>, dispatcher: Arc<Dispatcher>) -> Result<Self, String> {
        let queues = Self { known: RwLock::default(), control, dispatcher, change: Mutex::new(()) };
        queues.take_in_all(&queues.control.scan()?);
        Ok(queues)
    }

    /// Applies a row that another node may have written. Blocks while this node changes one.
    pub fn learn(&self, key: &[u8], value: &[u8]) {
        if key.starts_with(KEY_PREFIX.as_bytes()) || deleted_id(key).is_some() {
            let _alone = self.change.blocking_lock();
            self.take_in(key, value);
        }
    }

    fn take_in_all(&self, rows: &[(Vec<u8>, Vec<u8>)]) {
        // Those of deleted namespaces last: their rows may not be removed yet.
        rows.iter()
            .filter(|(key, _)| deleted_id(key).is_none())
            .for_each(|(key, value)| self.take_in(key, value));
        rows.iter()
            .filter(|(key, _)| deleted_id(key).is_some())
            .for_each(|(key, value)| self.take_in(key, value));
    }

    fn take_in(&self, key: &[u8], value: &[u8]) {
        if let Some(namespace_id) = deleted_id(key) {
            drop(self.forget(namespace_id));
        } else if key.starts_with(KEY_PREFIX.as_bytes()) {
            match TaskQueueRecord::decode(value) {
                Ok(record) => self.insert(Arc::new(record)),
                Err(error) => tracing::warn!(%error, "task queue row unreadable"),
            }
        }
    }

    /// What is set for a queue, as far as this node knows.
    pub(crate) fn get(&self, namespace_id: &str, name: &str) -> Option<Arc<TaskQueueRecord>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.records.get(&(namespace_id.to_owned(), name.to_owned())).cloned()
    }

    /// What is set for the queues of a namespace, as far as this node knows.
    pub(crate) fn of_namespace(&self, namespace_id: &str) -> Vec<Arc<TaskQueueRecord>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let rest = known.records.range((namespace_id.to_owned(), String::new())..);
        rest.take_while(|((id, _), _)| id == namespace_id).map(|(_, record)| Arc::clone(record)).collect()
    }

    /// What is set for a queue, with all that was acknowledged before.
    pub(crate) async fn read(
        &self,
        namespace_id: &str,
        name: &str,
    ) -> Result<Option<Arc<TaskQueueRecord>>, Status> {
        let _alone = self.alone().await?;
        Ok(self.get(namespace_id, name))
    }

    /// The same for all queues of a namespace.
    pub(crate) async fn read_namespace(
        &self,
        namespace_id: &str,
    ) -> Result<Vec<Arc<TaskQueueRecord>>, Status> {
        let _alone = self.alone().await?;
        Ok(self.of_namespace(namespace_id))
    }

    /// Changes what is set for a queue. The change is durable when this returns, and in force on this node.
    pub(crate) async fn update(
        &self,
        namespace_id: &str,
        name: &str,
        change: impl FnOnce(&mut TaskQueueRecord) -> Result<(), Status>,
    ) -> Result<Arc<TaskQueueRecord>, Status> {
        let _alone = self.alone().await?;
        let before = self.get(namespace_id, name);
        let mut record = before.as_deref().cloned().unwrap_or_else(|| TaskQueueRecord {
            namespace_id: namespace_id.into(),
            name: name.into(),
            ..TaskQueueRecord::default()
        });
        change(&mut record)?;
        let more =
            record.encoded_len().saturating_sub(before.as_ref().map_or(0, |before| before.encoded_len()));
        let bytes = self.known.read().unwrap_or_else(PoisonError::into_inner).bytes;
        if more > 0 && bytes + more > BYTES_MAX {
            let (cause, scope) = (ResourceExhaustedCause::OpsLimit, ResourceExhaustedScope::System);
            return Err(status::exhausted(cause, scope, "there are too many settings of task queues"));
        }
        let record = Arc::new(record);
        if before.as_ref() != Some(&record) {
            let (key, row) = (key(namespace_id, name), record.encode_to_vec());
            self.blocking(move |control| control.put(&key, &row)).await?;
            self.insert(Arc::clone(&record));
        }
        Ok(record)
    }

    /// Removes all that is set in a namespace that was deleted.
    pub(crate) async fn remove_namespace(&self, namespace_id: &str) -> Result<(), Status> {
        let _alone = self.change.lock().await;
        let keys: Vec<_> =
            self.forget(namespace_id).iter().map(|record| key(namespace_id, &record.name)).collect();
        self.blocking(move |control| keys.iter().try_for_each(|key| control.remove(key))).await
    }

    /// Takes the lock of changes, and reads the rows that other nodes wrote.
    async fn alone(&self) -> Result<MutexGuard<'_, ()>, Status> {
        let alone = self.change.lock().await;
        let rows = self.blocking(|control| control.scan()).await?;
        self.take_in_all(&rows);
        Ok(alone)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        access: impl FnOnce(&dyn Control) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Status> {
        let control = Arc::clone(&self.control);
        match tokio::task::spawn_blocking(move || access(control.as_ref())).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                tracing::error!(%error, "settings of task queues not accessible");
                Err(Status::unavailable("the settings of task queues are not accessible, try again"))
            }
            Err(_panicked) => Err(Status::internal("internal error")),
        }
    }

    /// The caller holds the lock of changes, or is the only one that knows this.
    fn insert(&self, record: Arc<TaskQueueRecord>) {
        let place = (record.namespace_id.clone(), record.name.clone());
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.records.insert(place, Arc::clone(&record));
        known.bytes += record.encoded_len();
        known.bytes -= before.as_ref().map_or(0, |before| before.encoded_len());
        drop(known);
        for kind in [TaskKind::Workflow, TaskKind::Activity] {
            let config = |record: &TaskQueueRecord| of_tasks(record.configs.get(&type_of(kind).into()));
            let next = config(&record);
            if before.as_deref().and_then(config) != next {
                self.dispatcher.configure(&queue_of(&record, kind), next);
            }
        }
    }

    /// As [`Self::insert`].
    fn forget(&self, namespace_id: &str) -> Vec<Arc<TaskQueueRecord>> {
        let gone = self.of_namespace(namespace_id);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for record in &gone {
            known.records.remove(&(namespace_id.to_owned(), record.name.clone()));
            known.bytes -= record.encoded_len();
        }
        drop(known);
        for record in &gone {
            for kind in [TaskKind::Workflow, TaskKind::Activity] {
                self.dispatcher.configure(&queue_of(record, kind), None::<QueueConfig>);
            }
        }
        gone
    }
}

fn queue_of(record: &TaskQueueRecord, kind: TaskKind) -> QueueKey {
    QueueKey { namespace_id: record.namespace_id.clone(), name: record.name.clone(), kind }
}

/// The type of queues with tasks of a kind.
pub(crate) fn type_of(kind: TaskKind) -> TaskQueueType {
    match kind {
        TaskKind::Workflow => TaskQueueType::Workflow,
        TaskKind::Activity => TaskQueueType::Activity,
    }
}

fn key(namespace_id: &str, name: &str) -> Vec<u8> {
    format!("{KEY_PREFIX}{namespace_id}/{name}").into_bytes()
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex as Lock;
    use tonic::Code;

    use super::*;
    use crate::namespaces::namespace::Row;

    /// A durable map that is not.
    #[derive(Default)]
    struct Memory(Lock<BTreeMap<Vec<u8>, Vec<u8>>>);

    impl Control for Memory {
        fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
            self.0.lock().insert(key.to_vec(), value.to_vec());
            Ok(())
        }

        fn remove(&self, key: &[u8]) -> Result<(), String> {
            self.0.lock().remove(key);
            Ok(())
        }

        fn scan(&self) -> Result<Vec<Row>, String> {
            Ok(self.0.lock().iter().map(|(key, value)| (key.clone(), value.clone())).collect())
        }
    }

    fn open(control: &Arc<Memory>) -> (TaskQueues, Arc<Dispatcher>) {
        let dispatcher = Dispatcher::new(|| 0);
        let queues = TaskQueues::open(Arc::clone(control) as Arc<dyn Control>, Arc::clone(&dispatcher));
        (queues.expect("memory does not fail"), dispatcher)
    }

    fn with_rate(rate: f32) -> impl FnOnce(&mut TaskQueueRecord) -> Result<(), Status> {
        move |record| {
            let config = record.configs.entry(TaskQueueType::Activity.into()).or_default();
            let limit = config.queue_rate_limit.get_or_insert_default();
            limit.rate_limit.get_or_insert_default().requests_per_second = rate;
            Ok(())
        }
    }

    fn rate(dispatcher: &Dispatcher, name: &str) -> Option<f64> {
        let key = QueueKey { namespace_id: "n".into(), name: name.into(), kind: TaskKind::Activity };
        dispatcher.status(&key).rate_per_second
    }

    #[tokio::test]
    async fn what_is_set_is_in_force_here_at_the_next_start_and_on_other_nodes() {
        let control = Arc::new(Memory::default());
        let (here, dispatcher) = open(&control);
        let (there, other) = open(&control);
        here.update("n", "orders", with_rate(2.5)).await.expect("it is set");
        assert_eq!((rate(&dispatcher, "orders"), rate(&other, "orders")), (Some(2.5), None));
        let set = here.get("n", "orders");
        assert_eq!(there.get("n", "orders"), None);
        assert_eq!(there.read("n", "orders").await.expect("readable"), set, "what was acknowledged");
        assert_eq!(rate(&other, "orders"), Some(2.5));
        let (next, after) = open(&control);
        assert_eq!((next.get("n", "orders"), rate(&after, "orders")), (set, Some(2.5)));
        there.update("n", "orders", with_rate(7.0)).await.expect("it is set");
        let rows = control.scan().expect("memory does not fail");
        rows.iter().for_each(|(key, value)| here.take_in(key, value));
        assert_eq!(rate(&dispatcher, "orders"), Some(7.0));
    }

    #[tokio::test]
    async fn a_deleted_namespace_leaves_nothing() {
        let control = Arc::new(Memory::default());
        let (here, dispatcher) = open(&control);
        let (there, other) = open(&control);
        for name in ["a", "b"] {
            here.update("n", name, with_rate(1.0)).await.expect("it is set");
            here.update("m", name, with_rate(1.0)).await.expect("it is set");
        }
        there.read("n", "a").await.expect("readable");
        here.remove_namespace("n").await.expect("removed");
        assert_eq!(
            (rate(&dispatcher, "a"), here.of_namespace("n").len(), here.of_namespace("m").len()),
            (None, 0, 2)
        );
        assert_eq!(control.scan().expect("memory does not fail").len(), 2);
        there.take_in(b"deleted-namespace/n", b"");
        assert_eq!((rate(&other, "a"), there.of_namespace("n").len()), (None, 0));
    }

    #[tokio::test]
    async fn settings_are_bounded_and_may_always_become_fewer() {
        let control = Arc::new(Memory::default());
        let (queues, _dispatcher) = open(&control);
        let ids = |bytes: usize| {
            move |record: &mut TaskQueueRecord| {
                record.build_id_sets = vec![BuildIdSet { ids: vec!["b".repeat(bytes)] }];
                Ok(())
            }
        };
        queues.update("n", "large", ids(BYTES_MAX - 1_000)).await.expect("there is room");
        let refusal = queues.update("n", "more", ids(1_000)).await.expect_err("there is none");
        assert_eq!(refusal.code(), Code::ResourceExhausted);
        queues.update("n", "large", ids(1)).await.expect("it is less");
        queues.update("n", "more", ids(1_000)).await.expect("there is room again");
    }
}
