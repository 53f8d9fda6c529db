//! The registry of workers by their last heartbeat, on every node: RecordWorkerHeartbeat, ListWorkers, CountWorkers, DescribeWorker.
//!
//! It is in memory only, and bounded: a worker without a heartbeat is forgotten, and new workers of a full registry are not
//! remembered.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_temporal_api::full::temporal::api::worker::v1::WorkerHeartbeat;
use everlog_temporal_api::temporal::api::worker::v1::{WorkerInfo, WorkerListInfo};
use everlog_temporal_api::workflowservice::{
    CountWorkersRequest, CountWorkersResponse, DescribeWorkerRequest, DescribeWorkerResponse,
    ListWorkersRequest, ListWorkersResponse, RecordWorkerHeartbeatRequest, RecordWorkerHeartbeatResponse,
};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use tonic::Status;

use crate::codec::payload::stored_copy;
use crate::codec::status::{self, invalid};
use crate::codec::worker_filter::WorkerFilter;
use crate::server::call::Call;

/// Workers in the registry.
const WORKERS_MAX: usize = 10_000;
/// How long a worker is remembered after its last heartbeat. SDKs send one a minute.
const REMEMBERED_FOR: Duration = Duration::from_secs(10 * 60);
/// Bytes of a heartbeat.
const HEARTBEAT_BYTES_MAX: usize = 8 * 1_024;
/// Heartbeats of one call.
const HEARTBEATS_MAX: usize = 1_000;
/// Workers of one page.
const PAGE_MAX: usize = 200;

/// The workers of all namespaces.
#[derive(Default)]
pub(crate) struct WorkerRegistry(Mutex<BTreeMap<(String, String), KnownWorker>>);

struct KnownWorker {
    last_heartbeat: Instant,
    heartbeat: Bytes,
}

impl WorkerRegistry {
    /// Records a heartbeat. A new worker of a full registry is not remembered.
    fn record_heartbeat(&self, namespace_id: &str, key: String, heartbeat: Bytes, now: Instant) {
        let mut workers = self.workers();
        let key = (namespace_id.to_owned(), key);
        if workers.len() >= WORKERS_MAX && !workers.contains_key(&key) {
            workers.retain(|_, known| is_fresh(known, now));
            if workers.len() >= WORKERS_MAX {
                return;
            }
        }
        workers.insert(key, KnownWorker { last_heartbeat: now, heartbeat });
    }

    fn find(&self, namespace_id: &str, key: &str, now: Instant) -> Option<Bytes> {
        let workers = self.workers();
        let known = workers.get(&(namespace_id.to_owned(), key.to_owned()))?;
        is_fresh(known, now).then(|| known.heartbeat.clone())
    }

    /// At most `count` workers after one of them, in order, that match; and whether there may be more.
    fn list(
        &self,
        (namespace_id, after): (&str, &str),
        count: usize,
        filter: &WorkerFilter,
        now: Instant,
    ) -> WorkersPage {
        let workers = self.workers();
        let mut passing = passing(&workers, (namespace_id, after), filter, now);
        let workers = passing.by_ref().take(count);
        let workers =
            workers.map(|(key, known, read)| (key.clone(), known.heartbeat.clone(), read)).collect();
        WorkersPage { workers, has_more: passing.next().is_some() }
    }

    /// The number of workers that match.
    fn count(&self, namespace_id: &str, filter: &WorkerFilter, now: Instant) -> usize {
        passing(&self.workers(), (namespace_id, ""), filter, now).count()
    }

    fn workers(&self) -> MutexGuard<'_, BTreeMap<(String, String), KnownWorker>> {
        self.0.lock()
    }
}

/// The workers of a namespace after one of them, in order, that match.
fn passing<'r>(
    workers: &'r BTreeMap<(String, String), KnownWorker>,
    (namespace_id, after): (&'r str, &str),
    filter: &'r WorkerFilter,
    now: Instant,
) -> impl Iterator<Item = (&'r String, &'r KnownWorker, WorkerHeartbeat)> {
    let first = (namespace_id.to_owned(), after.to_owned());
    let begin = if after.is_empty() { Bound::Included(first) } else { Bound::Excluded(first) };
    workers
        .range((begin, Bound::Unbounded))
        .take_while(move |((of, _), _)| of == namespace_id)
        .filter(move |(_, known)| is_fresh(known, now))
        // It was decoded when it arrived.
        .filter_map(|((_, key), known)| {
            Some((key, known, WorkerHeartbeat::decode(known.heartbeat.clone()).ok()?))
        })
        .filter(|(_, _, read)| filter.passes(read))
}

struct WorkersPage {
    workers: Vec<(String, Bytes, WorkerHeartbeat)>,
    has_more: bool,
}

fn is_fresh(known: &KnownWorker, now: Instant) -> bool {
    now.saturating_duration_since(known.last_heartbeat) < REMEMBERED_FOR
}

pub(crate) async fn record(
    call: &Call<'_>,
    request: RecordWorkerHeartbeatRequest,
) -> Result<RecordWorkerHeartbeatResponse, Status> {
    call.checks().length("Identity", &request.identity)?;
    if request.worker_heartbeat.len() > HEARTBEATS_MAX {
        return Err(invalid(format!("more than {HEARTBEATS_MAX} heartbeats.")));
    }
    let read = request.worker_heartbeat.into_iter().map(|bytes| read(call, bytes));
    let heartbeats: Vec<_> = read.collect::<Result<_, _>>()?;
    let now = Instant::now();
    for (key, bytes) in heartbeats {
        call.gateway.worker_registry.record_heartbeat(&call.namespace.record.id, key, bytes, now);
    }
    Ok(RecordWorkerHeartbeatResponse::default())
}

/// Records the heartbeat in a request of another RPC.
pub(crate) fn record_attached(call: &Call<'_>, heartbeat: Option<Bytes>) -> Result<(), Status> {
    let Some(bytes) = heartbeat.filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
    let (key, bytes) = read(call, bytes)?;
    call.gateway.worker_registry.record_heartbeat(&call.namespace.record.id, key, bytes, Instant::now());
    Ok(())
}

fn read(call: &Call<'_>, bytes: Bytes) -> Result<(String, Bytes), Status> {
    if bytes.len() > HEARTBEAT_BYTES_MAX {
        return Err(invalid("WorkerHeartbeat exceeds the size limit."));
    }
    let read = WorkerHeartbeat::decode(bytes.clone());
    let read = read.map_err(|_error| invalid("WorkerHeartbeat cannot be read."))?;
    call.checks().length("WorkerInstanceKey", &read.worker_instance_key)?;
    Ok((read.worker_instance_key, stored_copy(Some(bytes)).unwrap_or_default()))
}

pub(crate) async fn describe(
    call: &Call<'_>,
    request: DescribeWorkerRequest,
) -> Result<DescribeWorkerResponse, Status> {
    let key = request.worker_instance_key;
    call.checks().length("WorkerInstanceKey", &key)?;
    let found = call.gateway.worker_registry.find(&call.namespace.record.id, &key, Instant::now());
    let heartbeat = found.ok_or_else(|| status::not_found(format!("Worker {key} not found")))?;
    Ok(DescribeWorkerResponse { worker_info: Some(WorkerInfo { worker_heartbeat: Some(heartbeat) }) })
}

pub(crate) async fn list(
    call: &Call<'_>,
    request: ListWorkersRequest,
) -> Result<ListWorkersResponse, Status> {
    let filter = WorkerFilter::read(&request.query)?;
    let token = std::str::from_utf8(&request.next_page_token);
    let after = token.map_err(|_error| invalid("Invalid NextPageToken."))?;
    call.checks().length("NextPageToken", after)?;
    let count = match usize::try_from(request.page_size) {
        Ok(0) | Err(_) => PAGE_MAX,
        Ok(size) => size.min(PAGE_MAX),
    };
    let from = (call.namespace.record.id.as_str(), after);
    let page = call.gateway.worker_registry.list(from, count, &filter, Instant::now());
    let last = page.workers.last().filter(|_| page.has_more);
    let next_page_token = last.map(|(key, _, _)| Bytes::copy_from_slice(key.as_bytes())).unwrap_or_default();
    let (mut workers_info, mut workers) = (Vec::new(), Vec::new());
    for (_, bytes, read) in page.workers {
        workers_info.push(WorkerInfo { worker_heartbeat: Some(bytes) });
        workers.push(row(read));
    }
    Ok(ListWorkersResponse { workers_info, workers, next_page_token })
}

pub(crate) async fn count(
    call: &Call<'_>,
    request: CountWorkersRequest,
) -> Result<CountWorkersResponse, Status> {
    let filter = WorkerFilter::read(&request.query)?;
    let count = call.gateway.worker_registry.count(&call.namespace.record.id, &filter, Instant::now());
    Ok(CountWorkersResponse { count: i64::try_from(count).unwrap_or(i64::MAX) })
}

fn row(read: WorkerHeartbeat) -> WorkerListInfo {
    let host = read.host_info.unwrap_or_default();
    let deployment_version = read.deployment_version.map(|version| version.encode_to_vec().into());
    WorkerListInfo {
        worker_instance_key: read.worker_instance_key,
        worker_identity: read.worker_identity,
        task_queue: read.task_queue,
        deployment_version,
        sdk_name: read.sdk_name,
        sdk_version: read.sdk_version,
        status: read.status,
        start_time: read.start_time,
        host_name: host.host_name,
        worker_grouping_key: host.worker_grouping_key,
        process_id: host.process_id,
        ..WorkerListInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat_at(worker_registry: &WorkerRegistry, namespace: &str, key: &str, now: Instant) {
        let heartbeat = WorkerHeartbeat { worker_instance_key: key.into(), ..WorkerHeartbeat::default() };
        worker_registry.record_heartbeat(namespace, key.into(), heartbeat.encode_to_vec().into(), now);
    }

    fn keys(page: &WorkersPage) -> Vec<&str> {
        page.workers.iter().map(|(key, _, _)| key.as_str()).collect()
    }

    #[test]
    fn workers_are_listed_page_by_page_in_their_namespace_and_forgotten_when_silent() {
        let (worker_registry, now) = (WorkerRegistry::default(), Instant::now());
        let all = WorkerFilter::read("").expect("it says nothing");
        for (name, key) in [("a", "3"), ("a", "1"), ("b", "9"), ("a", "2")] {
            heartbeat_at(&worker_registry, name, key, now);
        }
        let page = worker_registry.list(("a", ""), 2, &all, now);
        assert_eq!((keys(&page), page.has_more), (vec!["1", "2"], true));
        let page = worker_registry.list(("a", "2"), 2, &all, now);
        assert_eq!((keys(&page), page.has_more), (vec!["3"], false));
        let page = worker_registry.list(("a", ""), 3, &all, now);
        assert_eq!((keys(&page), page.has_more), (vec!["1", "2", "3"], false), "the last of a full page");
        assert_eq!(["a", "b", "c"].map(|name| worker_registry.count(name, &all, now)), [3, 1, 0]);
        assert!(
            worker_registry.find("b", "1", now).is_none() && worker_registry.find("a", "1", now).is_some()
        );
        let later = now + REMEMBERED_FOR;
        heartbeat_at(&worker_registry, "a", "2", later);
        assert_eq!(keys(&worker_registry.list(("a", ""), 9, &all, later)), ["2"]);
        assert!(worker_registry.find("a", "1", later).is_none());
        assert_eq!(worker_registry.count("a", &all, later), 1);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let (worker_registry, now) = (WorkerRegistry::default(), Instant::now());
        (0..WORKERS_MAX + 5).for_each(|number| heartbeat_at(&worker_registry, "n", &number.to_string(), now));
        assert_eq!(worker_registry.workers().len(), WORKERS_MAX);
        heartbeat_at(&worker_registry, "n", "late", now + REMEMBERED_FOR);
        assert_eq!(worker_registry.workers().len(), 1, "the silent ones make room");
    }
}
