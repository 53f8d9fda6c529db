//! The address of a run, its place among the buckets, and the keys of its rows.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use everlog_engine::Run;
use everlog_engine::request::{Request, RequestRecord};
use everlog_wire::public_command::SourcePosition;
use uuid::Uuid;

/// Slices of the Workflow Ids; every stored key begins with one, so that partitions can be split by moving buckets.
pub const BUCKETS: u32 = 16_384;

/// A run by its names; an empty run id means the current run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The namespace's UUID.
    pub namespace_id: String,
    /// The Workflow Id.
    pub workflow_id: String,
    /// The run's UUID, or empty.
    pub run_id: String,
}

impl Address {
    /// Where an order goes.
    pub fn of(input: &RequestRecord) -> Self {
        Self {
            namespace_id: input.namespace_id.clone(),
            workflow_id: input.workflow_id.clone(),
            run_id: input.run_id.clone(),
        }
    }

    /// A request to it.
    pub(crate) fn request(&self, request: Request) -> RequestRecord {
        RequestRecord {
            namespace_id: self.namespace_id.clone(),
            workflow_id: self.workflow_id.clone(),
            run_id: self.run_id.clone(),
            sender: None,
            request: Some(request),
        }
    }

    /// The Workflow Id's bucket.
    pub fn bucket(&self) -> u16 {
        bucket(&self.namespace_id, &self.workflow_id)
    }

    /// The partition that owns the Workflow Id.
    pub fn partition(&self, partitions: u32) -> u32 {
        u32::from(self.bucket()) * partitions / BUCKETS
    }
}

fn bucket(namespace_id: &str, workflow_id: &str) -> u16 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(namespace_id.as_bytes());
    hash.update(&[0]);
    hash.update(workflow_id.as_bytes());
    u16::try_from(hash.finalize() % BUCKETS).expect("below the number of buckets")
}

/// The key of everything that belongs to a Workflow Id: bucket, namespace, Workflow Id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowKey(Bytes);

/// The key of everything that belongs to a run: the workflow's key and the run id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey(Arc<[u8]>);

/// A namespace, as keys of its runs have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespaceKey([u8; 16]);

impl NamespaceKey {
    /// None is before it.
    pub(crate) const MIN: Self = Self([0; 16]);
    /// None is behind it.
    pub(crate) const MAX: Self = Self([u8::MAX; 16]);
}

impl WorkflowKey {
    /// The key of a Workflow Id.
    pub fn new(namespace_id: &str, workflow_id: &str) -> Self {
        let id_bytes = u16::try_from(workflow_id.len()).unwrap_or(u16::MAX);
        let mut key = Vec::with_capacity(20 + workflow_id.len());
        key.extend_from_slice(&bucket(namespace_id, workflow_id).to_be_bytes());
        key.extend_from_slice(uuid(namespace_id).as_bytes());
        key.extend_from_slice(&id_bytes.to_be_bytes());
        key.extend_from_slice(workflow_id.as_bytes());
        Self(key.into())
    }

    /// What the keys of a namespace's workflows in a bucket begin with.
    pub fn prefix(bucket: u16, namespace_id: Uuid) -> [u8; 18] {
        let mut prefix = [0; 18];
        prefix[..2].copy_from_slice(&bucket.to_be_bytes());
        prefix[2..].copy_from_slice(namespace_id.as_bytes());
        prefix
    }

    /// The key's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The key of one of its runs.
    pub fn run(&self, run_id: &str) -> RunKey {
        let mut key = Vec::with_capacity(self.0.len() + 16);
        key.extend_from_slice(&self.0);
        key.extend_from_slice(uuid(run_id).as_bytes());
        RunKey(key.into())
    }
}

impl RunKey {
    /// The key of a run.
    pub(crate) fn of(run: &Run) -> Self {
        WorkflowKey::new(&run.start.namespace_id, &run.start.workflow_id).run(&run.start.run_id)
    }

    /// The key's bytes: bucket (2), namespace (16), length of the Workflow Id (2), Workflow Id, run id (16).
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A key from its bytes; none where they are not one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let key = Self(bytes.into());
        key.address().map(|_| key)
    }

    /// The run that a row of the state belongs to; none where it is a workflow's.
    pub fn of_row(row: &[u8]) -> Option<Self> {
        let id_bytes = usize::from(u16::from_be_bytes(row.get(18..20)?.try_into().ok()?));
        Self::read(row.get(..20 + id_bytes + 16)?)
    }

    /// The names behind the key.
    pub fn address(&self) -> Option<Address> {
        let id_bytes = usize::from(u16::from_be_bytes(self.0.get(18..20)?.try_into().ok()?));
        let workflow_id = self.0.get(20..20 + id_bytes)?;
        let run_id = self.0.get(20 + id_bytes..)?;
        Some(Address {
            namespace_id: Uuid::from_slice(self.0.get(2..18)?).ok()?.to_string(),
            workflow_id: std::str::from_utf8(workflow_id).ok()?.to_owned(),
            run_id: Uuid::from_slice(run_id).ok()?.to_string(),
        })
    }

    /// The namespace.
    pub fn namespace(&self) -> NamespaceKey {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[2..18]);
        NamespaceKey(id)
    }

    /// The bucket.
    pub fn bucket(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }
}

/// An id's 16 bytes. Gateways let only UUIDs through; anything else becomes the nil id, which no run has.
fn uuid(id: &str) -> Uuid {
    Uuid::parse_str(id).unwrap_or_default()
}

/// The key of a row of the run's state.
pub fn state_key(key: &RunKey, suffix: &[u8]) -> Bytes {
    let mut row = BytesMut::with_capacity(key.bytes().len() + suffix.len());
    row.put_slice(key.bytes());
    row.put_slice(suffix);
    row.freeze()
}

/// The key of the batch of events that begins with this id.
pub fn history_key(key: &RunKey, first_event_id: i64) -> Bytes {
    state_key(key, &first_event_id.to_be_bytes())
}

/// The key of a run's alarm: bucket, time, and the rest of the run's key.
pub fn timer_key(key: &RunKey, due_ms: i64) -> Bytes {
    let mut row = BytesMut::with_capacity(key.bytes().len() + 8);
    row.put_slice(&key.bytes()[..2]);
    row.put_i64(due_ms);
    row.put_slice(&key.bytes()[2..]);
    row.freeze()
}

/// Time and run of an alarm's key; none where it is not one.
pub fn read_timer_key(row: &[u8]) -> Option<(i64, RunKey)> {
    let due_ms = i64::from_be_bytes(row.get(2..10)?.try_into().ok()?);
    let mut key = BytesMut::with_capacity(row.len() - 8);
    key.put_slice(&row[..2]);
    key.put_slice(&row[10..]);
    Some((due_ms, RunKey::read(&key)?))
}

/// The source topic's id: whatever stands in its place makes one.
pub(crate) fn incarnation(source: &SourcePosition) -> [u8; 16] {
    let mut id = [0; 16];
    let bytes = source.incarnation.len().min(id.len());
    id[..bytes].copy_from_slice(&source.incarnation[..bytes]);
    id
}

/// Where these rows stand: behind those of tasks that wait, before any alarm.
pub(crate) const DELETION_MS: i64 = 1;

/// Where runs stand among the alarms that have a task waiting for a worker.
pub(crate) const WAITING_MS: Range<i64> = 0..1;
