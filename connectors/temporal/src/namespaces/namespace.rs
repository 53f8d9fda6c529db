//! The registry of namespaces: durable in a map of rows, and in memory as an immutable index, so that a lookup takes no lock.
//!
//! One node changes namespaces at a time; every node learns the rows that others write.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use everlog_engine::Ending;
use everlog_engine::hidden::is_hidden;
use everlog_partition::EndingCounts;
use everlog_temporal_api::enums::{NamespaceState, ResourceExhaustedCause, ResourceExhaustedScope};
use prost::Message;
use tokio::sync::{Mutex, MutexGuard};
use tonic::Status;

use crate::codec::random_ids;
use crate::codec::status::{self, invalid, namespace_deleted, namespace_exists, namespace_not_found};
use crate::limits::Limits;
use crate::metrics::{Metrics, NamespaceMetrics, OTHER, UNKNOWN};
use crate::namespaces::search_attributes;
use crate::rate_limit::{LimitScope, RateLimit};

/// The namespace that exists from the first start.
pub const DEFAULT: &str = "default";

const KEY_PREFIX: &[u8] = b"namespace/";
pub(crate) const DELETION_PREFIX: &[u8] = b"deleted-namespace/";

/// A row of the durable map: key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The durable map that registries are stored in.
pub trait Control: Send + Sync {
    /// Writes a row. It is durable when this returns.
    ///
    /// # Errors
    /// The cause as text; the row may or may not be written.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String>;

    /// Removes a row, if it is there. That is durable when this returns.
    ///
    /// # Errors
    /// The cause as text; the row may or may not be there.
    fn remove(&self, key: &[u8]) -> Result<(), String>;

    /// Every row.
    ///
    /// # Errors
    /// The cause as text.
    fn scan(&self) -> Result<Vec<Row>, String>;
}

/// The row of a namespace.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceRecord {
    /// A UUID, which never changes.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The unique name, which changes only with the deletion.
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(string, tag = "4")]
    pub owner_email: String,
    #[prost(btree_map = "string, string", tag = "5")]
    pub data: BTreeMap<String, String>,
    /// How long a closed run stays readable, in ms.
    #[prost(int64, tag = "6")]
    pub retention_ms: i64,
    /// The types of the registered search attributes, by name.
    #[prost(btree_map = "string, int32", tag = "7")]
    pub search_attributes: BTreeMap<String, i32>,
    /// Clients start no more workflows in it. Never taken back.
    #[prost(bool, tag = "8")]
    pub is_deprecated: bool,
}

/// The row of a deletion. It is apart from the record, because a node that does not know the deletion yet may write the record again,
/// which must not undo the deletion.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceDeletion {
    /// The name since the deletion.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// A namespace with its limits and metrics.
pub(crate) struct Namespace {
    pub record: NamespaceRecord,
    /// It was deleted and renamed: it takes no calls, and its runs are being deleted.
    pub is_deleted: bool,
    pub usage: Arc<Usage>,
    /// The name in the record.
    name: Arc<str>,
}

/// State that survives changes of the record.
pub(crate) struct Usage {
    pub metrics: Arc<NamespaceMetrics>,
    pub rate_limit: RateLimit,
}

impl Namespace {
    /// What clients are told, and what they may do in it.
    pub(crate) fn state(&self) -> NamespaceState {
        match (self.is_deleted, self.record.is_deprecated) {
            (true, _) => NamespaceState::Deleted,
            (false, true) => NamespaceState::Deprecated,
            (false, false) => NamespaceState::Registered,
        }
    }
}

/// All namespaces. Deleted ones stay known by name and UUID.
pub struct Namespaces {
    known: ArcSwap<NamespaceIndex>,
    nameless: Arc<Namespace>,
    other: Arc<NamespaceMetrics>,
    metrics: Metrics,
    control: Arc<dyn Control>,
    change: Mutex<()>,
    limits: Limits,
}

#[derive(Clone, Default)]
struct NamespaceIndex {
    by_name: BTreeMap<String, Arc<Namespace>>,
    by_id: BTreeMap<String, Arc<Namespace>>,
    /// The names of deleted namespaces, by UUID.
    names_of_deleted: BTreeMap<String, String>,
    /// The UUIDs of deleted namespaces.
    deleted: Arc<[String]>,
}

impl Namespaces {
    /// Reads the registry, and creates the default namespace if it does not exist.
    ///
    /// # Errors
    /// The error of the durable map, as text.
    pub fn open(control: Arc<dyn Control>, limits: &Limits, metrics: &Metrics) -> Result<Self, String> {
        let unknown = Arc::new(NamespaceMetrics::new(UNKNOWN, metrics.clone()));
        let usage =
            Arc::new(Usage { metrics: unknown, rate_limit: RateLimit::new(LimitScope::Namespace, 0, 0) });
        let namespaces = Self {
            known: ArcSwap::default(),
            nameless: Arc::new(Namespace {
                record: NamespaceRecord::default(),
                is_deleted: false,
                usage,
                name: "".into(),
            }),
            other: Arc::new(NamespaceMetrics::new(OTHER, metrics.clone())),
            metrics: metrics.clone(),
            control,
            change: Mutex::new(()),
            limits: limits.clone(),
        };
        let unread = |error| format!("the row of a namespace cannot be read: {error}");
        let rows = namespaces.control.scan()?;
        for (key, value) in &rows {
            if let Some(id) = deleted_id(key) {
                namespaces.insert_deletion(id, NamespaceDeletion::decode(value.as_slice()).map_err(unread)?);
            }
        }
        for (_, value) in rows.iter().filter(|(key, _)| key.starts_with(KEY_PREFIX)) {
            namespaces.insert(NamespaceRecord::decode(value.as_slice()).map_err(unread)?);
        }
        let known = namespaces.known.load_full();
        if !known.by_name.contains_key(DEFAULT) {
            let mut ids = random_ids::ids_of(DEFAULT);
            let record = NamespaceRecord {
                id: ids.find(|id| !known.names_of_deleted.contains_key(id)).unwrap_or_default(),
                name: DEFAULT.into(),
                retention_ms: limits.default_retention_ms,
                ..NamespaceRecord::default()
            };
            namespaces.control.put(&key(&record), &record.encode_to_vec())?;
            namespaces.insert(record);
        }
        Ok(namespaces)
    }

    /// Applies a row that another node may have written. Blocks while this node changes a namespace.
    pub fn learn(&self, key: &[u8], value: &[u8]) {
        if is_of_a_namespace(key) {
            let _alone = self.change.blocking_lock();
            self.take_in(key, value);
        }
    }

    fn take_in(&self, key: &[u8], value: &[u8]) {
        if !is_of_a_namespace(key) {
            return;
        }
        let learned = match deleted_id(key) {
            Some(id) => NamespaceDeletion::decode(value).map(|deletion| self.learn_deletion(id, deletion)),
            None => NamespaceRecord::decode(value).map(|record| self.learn_record(record)),
        };
        if let Err(error) = learned {
            tracing::warn!(%error, "namespace row unreadable");
        }
    }

    fn learn_record(&self, record: NamespaceRecord) {
        let is_known = self.known.load().by_id.get(&record.id).is_some_and(|known| known.record == record);
        if !is_known {
            self.insert(record);
        }
    }

    fn learn_deletion(&self, id: &str, deletion: NamespaceDeletion) {
        let is_known = self.known.load().names_of_deleted.get(id) == Some(&deletion.name);
        if !is_known {
            self.insert_deletion(id, deletion);
        }
    }

    /// The name of the namespace with this UUID.
    pub fn name(&self, id: &str) -> Option<Arc<str>> {
        self.known.load().by_id.get(id).map(|namespace| Arc::clone(&namespace.name))
    }

    /// The UUID of the namespace of this name, and its retention in ms.
    pub fn known(&self, name: &str) -> Option<(String, i64)> {
        let known = self.known.load();
        let record = &known.by_name.get(name).filter(|namespace| !namespace.is_deleted)?.record;
        Some((record.id.clone(), record.retention_ms))
    }

    /// The UUIDs of deleted namespaces.
    pub fn deleted(&self) -> Arc<[String]> {
        self.known.load().deleted.clone()
    }

    /// Search attributes checked against the namespace of this name, with their types.
    ///
    /// # Errors
    /// What is wrong with them, as text.
    pub fn typed(&self, name: &str, search_attributes: &Bytes) -> Result<Bytes, String> {
        let known = self.known.load();
        let namespace = known.by_name.get(name).ok_or_else(|| format!("Namespace {name} is not found."))?;
        search_attributes::typed(&namespace.record, search_attributes)
    }

    /// The namespace of this name, unless it is deleted.
    pub(crate) fn find(&self, name: &str, id_bytes_max: usize) -> Result<Arc<Namespace>, Status> {
        match self.find_any(name, id_bytes_max)? {
            namespace if namespace.is_deleted => Err(namespace_deleted(&namespace.record.name)),
            namespace => Ok(namespace),
        }
    }

    /// The namespace of this name, deleted or not.
    pub(crate) fn find_any(&self, name: &str, id_bytes_max: usize) -> Result<Arc<Namespace>, Status> {
        if name.is_empty() {
            return Err(invalid("Namespace not set on request."));
        }
        if name.len() > id_bytes_max {
            return Err(invalid("Namespace length exceeds limit."));
        }
        self.known.load().by_name.get(name).cloned().ok_or_else(|| namespace_not_found(name))
    }

    /// The namespace with this UUID, deleted or not.
    pub(crate) fn find_id(&self, id: &str) -> Result<Arc<Namespace>, Status> {
        self.known.load().by_id.get(id).cloned().ok_or_else(|| namespace_not_found(id))
    }

    /// The stand-in for calls without a namespace.
    pub(crate) fn nameless(&self) -> &Arc<Namespace> {
        &self.nameless
    }

    /// At most `count` namespaces after this name, by name, and whether there are more; of those whose names are shown.
    pub(crate) fn after(
        &self,
        name: &str,
        count: usize,
        is_shown: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<Namespace>>, bool) {
        use std::ops::Bound::{Excluded, Unbounded};
        let known = self.known.load();
        let rest = known.by_name.range::<str, _>((Excluded(name), Unbounded));
        let mut rest = rest.filter(|(name, namespace)| !namespace.is_deleted && is_shown(name));
        let page = rest.by_ref().take(count).map(|(_, namespace)| namespace.clone()).collect();
        (page, rest.next().is_some())
    }

    /// Takes the lock of changes, and reads the rows that other nodes wrote.
    async fn alone(&self) -> Result<MutexGuard<'_, ()>, Status> {
        let alone = self.change.lock().await;
        let control = self.control.clone();
        let rows = tokio::task::spawn_blocking(move || control.scan()).await;
        match rows.map_err(|_panicked| Status::internal("internal error"))? {
            Ok(rows) => rows.iter().for_each(|(key, value)| self.take_in(key, value)),
            Err(error) => {
                tracing::warn!(%error, "namespaces unreadable");
                return Err(Status::unavailable("the namespaces cannot be read, try again"));
            }
        }
        Ok(alone)
    }

    /// Adds a namespace. It is durable when this returns.
    pub(crate) async fn add(&self, record: NamespaceRecord) -> Result<(), Status> {
        let _alone = self.alone().await?;
        let known = self.known.load_full();
        if known.by_name.contains_key(&record.name) {
            return Err(namespace_exists(&record.name));
        }
        if known.by_name.len().saturating_sub(known.deleted.len()) >= self.limits.namespaces_max {
            let (cause, scope) = (ResourceExhaustedCause::OpsLimit, ResourceExhaustedScope::System);
            return Err(status::exhausted(cause, scope, "there are too many namespaces"));
        }
        self.keep(record).await?;
        Ok(())
    }

    /// Changes a namespace. The change is durable when this returns.
    pub(crate) async fn update(
        &self,
        name: &str,
        id_bytes_max: usize,
        change: impl FnOnce(&mut NamespaceRecord),
    ) -> Result<Arc<Namespace>, Status> {
        let change = |record: &mut NamespaceRecord| {
            change(record);
            Ok(())
        };
        self.try_update(name, id_bytes_max, change).await
    }

    /// [`Namespaces::update`], unless the change is refused.
    pub(crate) async fn try_update(
        &self,
        name: &str,
        id_bytes_max: usize,
        change: impl FnOnce(&mut NamespaceRecord) -> Result<(), Status>,
    ) -> Result<Arc<Namespace>, Status> {
        let _alone = self.alone().await?;
        let namespace = self.find(name, id_bytes_max)?;
        let mut record = namespace.record.clone();
        change(&mut record)?;
        if record == namespace.record {
            return Ok(namespace);
        }
        self.keep(record).await
    }

    /// Deletes a namespace; returns its new name. The deletion is durable when this returns.
    pub(crate) async fn delete(&self, id: &str) -> Result<String, Status> {
        let _alone = self.alone().await?;
        let namespace = self.find_id(id)?;
        if namespace.is_deleted {
            return Ok(namespace.record.name.clone());
        }
        let deletion = NamespaceDeletion { name: self.name_of_deleted(&namespace.record) };
        let key = [DELETION_PREFIX, id.as_bytes()].concat();
        self.put(key, deletion.encode_to_vec(), &namespace.record.name).await?;
        let name = deletion.name.clone();
        self.insert_deletion(id, deletion);
        Ok(name)
    }

    /// The new name has as many characters of the UUID as make it unique.
    fn name_of_deleted(&self, record: &NamespaceRecord) -> String {
        let known = self.known.load();
        let names = (5..=record.id.len()).filter_map(|bytes| record.id.get(..bytes));
        let mut names = names.map(|part| format!("{}-deleted-{part}", record.name));
        let free = names.find(|name| !known.by_name.contains_key(name));
        free.unwrap_or_else(|| format!("{}-deleted-{}", record.name, random_ids::id()))
    }

    async fn keep(&self, record: NamespaceRecord) -> Result<Arc<Namespace>, Status> {
        self.put(key(&record), record.encode_to_vec(), &record.name).await?;
        Ok(self.insert(record))
    }

    async fn put(&self, key: Vec<u8>, row: Vec<u8>, namespace: &str) -> Result<(), Status> {
        let control = self.control.clone();
        match tokio::task::spawn_blocking(move || control.put(&key, &row)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::error!(%error, namespace, "namespace not written");
                Err(Status::unavailable("the namespace could not be kept, try again"))
            }
            Err(_panicked) => Err(Status::internal("internal error")),
        }
    }

    /// Adds a record to the index. The caller holds the lock of changes.
    fn insert(&self, mut record: NamespaceRecord) -> Arc<Namespace> {
        let mut known = NamespaceIndex::clone(&self.known.load());
        let new_name = known.names_of_deleted.get(&record.id);
        let is_deleted = new_name.is_some();
        record.name = new_name.cloned().unwrap_or(record.name);
        let usage = match known.by_id.get(&record.id).cloned() {
            Some(before) => {
                let held = known.by_name.get(&before.record.name);
                if held.is_some_and(|holder| holder.record.id == record.id) {
                    known.by_name.remove(&before.record.name);
                }
                before.usage.clone()
            }
            None => Arc::new(self.usage(&record.name, known.by_name.len())),
        };
        let name = record.name.as_str().into();
        let namespace = Arc::new(Namespace { record, is_deleted, usage, name });
        known.by_name.insert(namespace.record.name.clone(), namespace.clone());
        known.by_id.insert(namespace.record.id.clone(), namespace.clone());
        self.known.store(Arc::new(known));
        namespace
    }

    /// Adds a deletion to the index. The caller holds the lock of changes.
    fn insert_deletion(&self, id: &str, deletion: NamespaceDeletion) {
        let mut known = NamespaceIndex::clone(&self.known.load());
        known.names_of_deleted.insert(id.to_owned(), deletion.name);
        known.deleted = known.names_of_deleted.keys().cloned().collect();
        let record = known.by_id.get(id).map(|namespace| namespace.record.clone());
        self.known.store(Arc::new(known));
        if let Some(record) = record {
            self.insert(record);
        }
    }

    /// What a namespace goes by in metrics, by its UUID.
    pub fn metric_label(&self, id: &str) -> Arc<str> {
        self.usage_of(id).metrics.label().clone()
    }

    fn usage_of(&self, id: &str) -> Arc<Usage> {
        self.known.load().by_id.get(id).unwrap_or(&self.nameless).usage.clone()
    }

    fn usage(&self, name: &str, index: usize) -> Usage {
        let own = index < self.limits.metric_namespaces_max;
        let metrics = match own {
            true => Arc::new(NamespaceMetrics::new(name, self.metrics.clone())),
            false => self.other.clone(),
        };
        let rate_limit = RateLimit::new(
            LimitScope::Namespace,
            self.limits.namespace_calls_per_second,
            self.limits.namespace_polls_max,
        );
        Usage { metrics, rate_limit }
    }
}

impl EndingCounts for Namespaces {
    fn count(&self, namespace_id: &str, ending: Ending) {
        self.usage_of(namespace_id).metrics.over(ending);
    }
}

/// Checks the name of a new namespace. Existing names are not checked.
pub(crate) fn check_new_name(name: &str) -> Result<(), Status> {
    match name.chars().find(|letter| is_hidden(*letter)) {
        None => Ok(()),
        Some(letter) => Err(invalid(format!(
            "Namespace name has the character U+{:04X}, which nobody would see.",
            u32::from(letter)
        ))),
    }
}

/// True of a key of the registry; the map has rows of others.
fn is_of_a_namespace(key: &[u8]) -> bool {
    key.starts_with(KEY_PREFIX) || deleted_id(key).is_some()
}

pub(crate) fn key(record: &NamespaceRecord) -> Vec<u8> {
    [KEY_PREFIX, record.id.as_bytes()].concat()
}

/// The UUID in the key of a deletion.
pub(crate) fn deleted_id(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(DELETION_PREFIX)?).ok()
}
