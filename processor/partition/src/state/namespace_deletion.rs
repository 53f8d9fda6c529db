//! The end of namespaces: nothing begins in one that was deleted, and what it has left is deleted run by run.
//!
//! A partition that hears of a deletion says so in its journal, once. From that record on every order in the namespace is
//! refused, whoever has brought it, so what is there only gets less: the owner looks through the buckets and orders for
//! each run what a client orders who deletes it, until there is none. A row says that the namespace was deleted, for as
//! long as the partition lives, and whether something may be left of it: a new owner looks from the beginning.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use everlog_engine::request::{Delete, Request};
use everlog_log::Log;
use everlog_store::{CommittedRows, Space, Store};
use everlog_wire::{Body, NamespaceDeleted, Record};
use uuid::Uuid;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::keys::{RunKey, WorkflowKey, state_key};
use crate::model::pending::ReplyTo;
use crate::partition::Partition;

/// Runs whose deletion is ordered at once, and rows that are looked at for them.
const RUNS_MAX: usize = 100;
const ROWS_MAX: usize = 10_000;
/// Buckets that are looked into at once.
const BUCKETS_MAX: usize = 256;
/// The rest between two slices, in ms.
const REST_MS: i64 = 100;
/// The rest before a namespace that had something is looked through again, in ms.
const AGAIN_MS: i64 = 1_000;
/// How long a record may be on its way before it is appended again, in ms.
const LOST_MS: i64 = 10_000;

/// What a row says.
pub(crate) const LEFT: &[u8] = &[1];
const EMPTY: &[u8] = &[0];

/// Namespaces that were deleted, and those that have runs left.
#[derive(Default)]
pub(crate) struct NamespaceDeletions {
    deleted: BTreeSet<Uuid>,
    /// Whose records are on their way, and since when.
    on_the_way: BTreeMap<Uuid, i64>,
    passes: VecDeque<Pass>,
    next_ms: i64,
}

/// One look through what a namespace has.
struct Pass {
    namespace_id: Uuid,
    from_ms: i64,
    /// The first one is being looked into; none = it has not begun.
    buckets: Option<VecDeque<u16>>,
    /// Where to go on in that bucket.
    from: Option<Bytes>,
    /// There was a run.
    has_found: bool,
}

/// What a look into a bucket has found.
#[derive(Default)]
struct Found {
    runs: Vec<RunKey>,
    /// Where to go on; none = that was all.
    from: Option<Bytes>,
}

impl NamespaceDeletions {
    /// Whether a namespace was deleted.
    pub(crate) fn has(&self, namespace_id: &str) -> bool {
        !self.deleted.is_empty() && Uuid::parse_str(namespace_id).is_ok_and(|id| self.deleted.contains(&id))
    }

    /// When the next slice is due.
    pub(crate) fn next_ms(&self) -> Option<i64> {
        let from_ms = self.passes.iter().map(|pass| pass.from_ms).min();
        from_ms.map(|from_ms| from_ms.max(self.next_ms))
    }

    /// The namespaces among these whose deletion is to be journaled: it is not applied, nor on its way.
    fn take_unjournaled(&mut self, deleted: &[String], now_ms: i64) -> Vec<NamespaceDeleted> {
        if deleted.len() == self.deleted.len() {
            return Vec::new();
        }
        let mut records = Vec::new();
        let ids = deleted.iter().filter_map(|id| Some((Uuid::parse_str(id).ok()?, id)));
        for (id, namespace_id) in ids.filter(|(id, _)| !self.deleted.contains(id)) {
            let since_ms = self.on_the_way.entry(id).or_insert(i64::MIN);
            if now_ms.saturating_sub(*since_ms) >= LOST_MS {
                *since_ms = now_ms;
                records.push(NamespaceDeleted { namespace_id: namespace_id.clone() });
            }
        }
        records
    }

    /// The record of a deletion is applied; true the first time.
    fn apply<B: CommittedRows>(&mut self, store: &mut Store<B>, first_bucket: u16, id: Uuid) -> bool {
        if self.deleted.contains(&id) {
            return false;
        }
        store.put(Space::State, removal_key(first_bucket, id), Bytes::from_static(LEFT));
        self.learn(id, LEFT);
        true
    }

    /// The deletions that former owners have applied.
    pub(crate) fn find<B: CommittedRows>(
        &mut self,
        store: &Store<B>,
        first_bucket: u16,
    ) -> Result<(), Error> {
        let (from, mut to) =
            (removal_key(first_bucket, Uuid::nil()), removal_key(first_bucket, Uuid::max()).to_vec());
        to.push(0);
        let mut found = Vec::new();
        store.scan(Space::State, &from, &to, &mut |row, value| {
            found.extend(read_removal_key(row).map(|id| (id, value.to_vec())));
            true
        })?;
        for (id, row) in found {
            self.learn(id, &row);
        }
        Ok(())
    }

    /// Whether a slice is due: then the next one rests.
    fn is_due(&mut self, now_ms: i64) -> bool {
        self.next_ms = self.next_ms.min(now_ms + REST_MS);
        let is_due = !self.passes.is_empty() && now_ms >= self.next_ms;
        if is_due {
            self.next_ms = now_ms + REST_MS;
        }
        is_due
    }

    fn learn(&mut self, namespace_id: Uuid, row: &[u8]) {
        self.deleted.insert(namespace_id);
        self.on_the_way.remove(&namespace_id);
        if row != EMPTY {
            self.passes.push_back(Pass::new(namespace_id, 0));
        }
    }

    /// What is due goes on, in turn.
    fn take(&mut self, now_ms: i64) -> Option<Pass> {
        // A clock that was set back puts none off.
        let is_due = |pass: &Pass| pass.from_ms <= now_ms || pass.from_ms > now_ms + AGAIN_MS;
        let index = self.passes.iter().position(is_due)?;
        self.passes.remove(index)
    }
}

impl Pass {
    fn new(namespace_id: Uuid, from_ms: i64) -> Self {
        Self { namespace_id, from_ms, buckets: None, from: None, has_found: false }
    }

    /// Runs of the namespace in a bucket, behind those whose deletion was ordered.
    fn runs_in<B: CommittedRows>(
        &self,
        store: &Store<B>,
        bucket: u16,
        runs_max: usize,
        rows_max: &mut usize,
    ) -> Result<Found, Error> {
        let prefix = WorkflowKey::prefix(bucket, self.namespace_id);
        let from = self.from.clone().unwrap_or_else(|| Bytes::copy_from_slice(&prefix));
        // Behind it stands the length of a Workflow Id, which is never that long.
        let to = [prefix.as_slice(), &[u8::MAX]].concat();
        let mut found = Found::default();
        store.scan(Space::State, &from, &to, &mut |row, _| {
            let is_of_last = found.runs.last().is_some_and(|last| row.starts_with(last.bytes()));
            if !is_of_last {
                found.runs.extend(RunKey::of_row(row));
            }
            *rows_max = rows_max.saturating_sub(1);
            let goes_on = *rows_max > 0 && found.runs.len() < runs_max;
            if !goes_on {
                let last = found.runs.last().filter(|last| row.starts_with(last.bytes()));
                found.from = Some(match last {
                    Some(last) => state_key(last, &[u8::MAX]),
                    None => [row, &[0]].concat().into(),
                });
            }
            goes_on
        })?;
        Ok(found)
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Says in the journal which namespaces were deleted, where it does not say so yet.
    pub(crate) fn journal_removals(&mut self, now_ms: i64) {
        let deleted = self.context.config.public.deleted_namespaces();
        for deleted in self.namespace_deletions.take_unjournaled(&deleted, now_ms) {
            let record = Record::new(self.position.term, Body::NamespaceDeleted(deleted));
            self.journal.push(record, ReplyTo::Nobody);
        }
    }

    /// A namespace was deleted: its tasks wait for nobody any more, and its polls for nothing.
    pub(crate) fn namespace_deleted(&mut self, offset: u64, removal: &NamespaceDeleted) {
        let Ok(id) = Uuid::parse_str(&removal.namespace_id) else {
            self.skip(offset, "a deletion of what is no namespace", ReplyTo::Nobody);
            return;
        };
        let is_new = self.namespace_deletions.apply(self.runs.store(), self.context.first_bucket(), id);
        if is_new && !self.ownership.is_replaying() {
            self.offers.dispatcher.forget_namespace(&removal.namespace_id);
        }
    }

    /// Orders the deletion of a slice of what deleted namespaces have left.
    pub(crate) fn remove_runs(&mut self, now_ms: i64) -> Result<(), Error> {
        if !self.namespace_deletions.is_due(now_ms) {
            return Ok(());
        }
        // What waits already goes first, former slices too.
        if self.journal.pending() >= self.context.config.append_records_max || self.takes_no_work() {
            return Ok(());
        }
        let Some(mut pass) = self.namespace_deletions.take(now_ms) else { return Ok(()) };
        // A run that was not written yet is one all the same.
        self.runs.flush()?;
        let mut buckets = pass.buckets.take().unwrap_or_else(|| self.context.buckets().collect());
        let (mut runs_left, mut rows_left) = (RUNS_MAX, ROWS_MAX);
        for _bucket in 0..BUCKETS_MAX {
            let Some(bucket) = buckets.front().copied() else { break };
            let found = pass.runs_in(self.runs.rows(), bucket, runs_left, &mut rows_left)?;
            pass.has_found |= !found.runs.is_empty();
            pass.from = found.from;
            runs_left -= found.runs.len().min(runs_left);
            for key in &found.runs {
                self.remove_run(key)?;
            }
            if pass.from.is_some() {
                break;
            }
            buckets.pop_front();
        }
        if !buckets.is_empty() {
            self.namespace_deletions.passes.push_back(Pass { buckets: Some(buckets), ..pass });
        } else if pass.has_found {
            self.namespace_deletions.passes.push_back(Pass::new(pass.namespace_id, now_ms + AGAIN_MS));
        } else {
            self.removed(pass.namespace_id);
        }
        Ok(())
    }

    /// Orders the deletion of a run. Rows that make none are deleted at once: nobody decides on them.
    fn remove_run(&mut self, key: &RunKey) -> Result<(), Error> {
        match key.address() {
            Some(address) if self.runs.get(key)?.is_some() => {
                self.enqueue(address.request(Request::Delete(Delete {})), ReplyTo::Nobody);
            }
            Some(_) | None => {
                self.runs.delete_state(key)?;
                self.commits.note_change();
            }
        }
        Ok(())
    }

    /// Nothing is left of a namespace, and nothing comes. No decision depends on it, so no record says so.
    fn removed(&mut self, namespace_id: Uuid) {
        let row = removal_key(self.context.first_bucket(), namespace_id);
        self.runs.store().put(Space::State, row, Bytes::from_static(EMPTY));
        self.commits.note_change();
        self.offers.dispatcher.forget_namespace(&namespace_id.to_string());
        tracing::info!(partition = self.context.id, %namespace_id, "nothing is left of a deleted namespace");
    }
}

/// The longest Workflow Id has 1,000 bytes: no run's key says so many, and no message's row so few.
const NO_WORKFLOW: [u8; 18] = {
    let mut key = [0; 18];
    key[16] = u8::MAX;
    key[17] = u8::MAX - 1;
    key
};

/// The key of a deletion's row: bucket (2), what no run's key has there (18), namespace (16).
fn removal_key(bucket: u16, namespace_id: Uuid) -> Bytes {
    let mut key = BytesMut::with_capacity(36);
    key.put_u16(bucket);
    key.put_slice(&NO_WORKFLOW);
    key.put_slice(namespace_id.as_bytes());
    key.freeze()
}

/// Whether a row says that a namespace was deleted.
pub(crate) fn is_removal_row(row: &[u8]) -> bool {
    row.get(2..20).is_some_and(|workflow| workflow == NO_WORKFLOW)
}

fn read_removal_key(row: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(row.get(20..)?).ok()
}
