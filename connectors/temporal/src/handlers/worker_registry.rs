//! The registry of workers by their last heartbeat, on every node: RecordWorkerHeartbeat, ListWorkers, CountWorkers, DescribeWorker.
//!
//! It is in memory only, and bounded: a worker without a heartbeat is forgotten. In a full registry a new worker takes the place of
//! one of the namespace that has most, so that no namespace keeps the workers of others out.

use std::collections::{BTreeMap, HashMap};
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
/// How often a full registry looks for workers that it forgets, because that takes a look at each.
const SWEPT_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a heartbeat.
const HEARTBEAT_BYTES_MAX: usize = 8 * 1_024;
/// Heartbeats of one call.
const HEARTBEATS_MAX: usize = 1_000;
/// Workers of one page.
const PAGE_MAX: usize = 200;

/// The workers of all namespaces.
#[derive(Default)]
pub(crate) struct WorkerRegistry(Mutex<KnownWorkers>);

#[derive(Default)]
struct KnownWorkers {
    /// By the id of their namespace and their own key.
    workers: BTreeMap<(String, String), KnownWorker>,
    /// How many a namespace has.
    of_namespaces: HashMap<String, usize>,
    /// When the silent ones were last looked for.
    swept: Option<Instant>,
}

struct KnownWorker {
    last_heartbeat: Instant,
    heartbeat: Bytes,
}

impl WorkerRegistry {
    /// Records a heartbeat. A new worker of a full registry is remembered if another namespace has more workers than its own.
    fn record_heartbeat(&self, namespace_id: &str, key: String, heartbeat: Bytes, now: Instant) {
        let mut known = self.known();
        let key = (namespace_id.to_owned(), key);
        let worker = KnownWorker { last_heartbeat: now, heartbeat };
        if let Some(known) = known.workers.get_mut(&key) {
            *known = worker;
        } else if known.workers.len() < WORKERS_MAX || known.make_room_for(namespace_id, now) {
            known.add(key, worker);
        }
    }

    fn find(&self, namespace_id: &str, key: &str, now: Instant) -> Option<Bytes> {
        let known = self.known();
        let known = known.workers.get(&(namespace_id.to_owned(), key.to_owned()))?;
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
        let known = self.known();
        let mut passing = passing(&known.workers, (namespace_id, after), filter, now);
        let workers = passing.by_ref().take(count);
        let workers =
            workers.map(|(key, known, read)| (key.clone(), known.heartbeat.clone(), read)).collect();
        WorkersPage { workers, has_more: passing.next().is_some() }
    }

    /// The number of workers that match.
    fn count(&self, namespace_id: &str, filter: &WorkerFilter, now: Instant) -> usize {
        passing(&self.known().workers, (namespace_id, ""), filter, now).count()
    }

    fn known(&self) -> MutexGuard<'_, KnownWorkers> {
        self.0.lock()
    }
}

impl KnownWorkers {
    fn add(&mut self, key: (String, String), worker: KnownWorker) {
        *self.of_namespaces.entry(key.0.clone()).or_default() += 1;
        self.workers.insert(key, worker);
    }

    fn remove(&mut self, key: &(String, String)) {
        self.workers.remove(key);
        if let Some(count) = self.of_namespaces.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.of_namespaces.remove(&key.0);
            }
        }
    }

    /// Forgets silent workers, or else one of the namespace that has most. False if that is the new worker's own.
    fn make_room_for(&mut self, namespace_id: &str, now: Instant) -> bool {
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= SWEPT_EVERY) {
            self.swept = Some(now);
            let silent = self.workers.iter().filter(|(_, known)| !is_fresh(known, now));
            let silent: Vec<_> = silent.map(|(key, _)| key.clone()).collect();
            silent.iter().for_each(|key| self.remove(key));
        }
        if self.workers.len() < WORKERS_MAX {
            return true;
        }
        let own = self.of_namespaces.get(namespace_id).copied().unwrap_or(0);
        let largest = self.of_namespaces.iter().max_by_key(|(_, count)| **count);
        let Some((namespace, _)) = largest.filter(|(_, count)| **count > own + 1) else { return false };
        let first = (namespace.clone(), String::new());
        let Some((key, _)) = self.workers.range(first..).next() else { return false };
        let key = key.clone();
        self.remove(&key);
        true
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

    fn fill(worker_registry: &WorkerRegistry, namespace: &str, count: usize, now: Instant) {
        (0..count).for_each(|number| heartbeat_at(worker_registry, namespace, &number.to_string(), now));
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let (worker_registry, now) = (WorkerRegistry::default(), Instant::now());
        fill(&worker_registry, "n", WORKERS_MAX + 5, now);
        assert_eq!(worker_registry.known().workers.len(), WORKERS_MAX);
        heartbeat_at(&worker_registry, "n", "late", now + REMEMBERED_FOR);
        assert_eq!(worker_registry.known().workers.len(), 1, "the silent ones make room");
        assert_eq!(worker_registry.known().of_namespaces, HashMap::from([("n".into(), 1)]));
    }

    #[test]
    fn a_namespace_that_fills_the_registry_keeps_no_other_out() {
        let (worker_registry, now) = (WorkerRegistry::default(), Instant::now());
        let all = WorkerFilter::read("").expect("it says nothing");
        let counts = || ["greedy", "small", "late"].map(|name| worker_registry.count(name, &all, now));
        fill(&worker_registry, "greedy", WORKERS_MAX, now);
        fill(&worker_registry, "small", 5, now);
        assert_eq!(counts(), [WORKERS_MAX - 5, 5, 0]);
        fill(&worker_registry, "greedy", WORKERS_MAX, now);
        assert_eq!(counts(), [WORKERS_MAX - 5, 5, 0], "it takes no place of the others");
        fill(&worker_registry, "late", WORKERS_MAX, now);
        let [greedy, small, late] = counts();
        assert_eq!((small, greedy + late), (5, WORKERS_MAX - 5));
        assert!(greedy.abs_diff(late) <= 1, "{greedy} and {late} share what is left");
    }
}
