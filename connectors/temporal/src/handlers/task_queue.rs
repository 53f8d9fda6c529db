//! DescribeTaskQueue, ListTaskQueuePartitions, ResetStickyTaskQueue and ShutdownWorker.

use std::collections::BTreeMap;

use everlog_engine::request::{Request, ResetSticky};
use everlog_partition::{LevelStatus, PollerStatus, QueueKey, QueueStatus, TaskKind};
use everlog_temporal_api::enums::{
    BuildIdTaskReachability, DescribeTaskQueueMode, RateLimitSource, TaskQueueType,
};
use everlog_temporal_api::taskqueue::{
    PollerInfo, TaskIdBlock, TaskQueueConfig, TaskQueuePartitionMetadata, TaskQueueStats, TaskQueueStatus,
    TaskQueueTypeInfo, TaskQueueVersionInfo, TaskQueueVersioningInfo,
};
use everlog_temporal_api::workflowservice::describe_task_queue_response::EffectiveRateLimit;
use everlog_temporal_api::workflowservice::{
    DescribeTaskQueueRequest, DescribeTaskQueueResponse, ListTaskQueuePartitionsRequest,
    ListTaskQueuePartitionsResponse, ResetStickyTaskQueueRequest, ResetStickyTaskQueueResponse,
    ShutdownWorkerRequest, ShutdownWorkerResponse,
};
use prost::Message;
use tonic::Status;

use crate::Gateway;
use crate::codec::proto_time::{duration, timestamp};
use crate::codec::status::invalid;
use crate::codec::validation::{is_sticky, not_yet};
use crate::codec::versioning::NO_VERSION;
use crate::handlers::worker_registry;
use crate::routing::in_process::{self, answer};
use crate::routing::peers::Location;
use crate::server::call::Call;

/// Who describes the other half of a queue.
const DESCRIBER: &str = "everlog-task-queue";
/// The priority of a task without one. It is reported also if it has no tasks.
const PRIORITY_DEFAULT: u8 = 3;
/// The rate that is reported if there is no limit, as by Temporal's server.
const RATE_UNLIMITED: f64 = 100_000.0;

pub(crate) async fn describe(
    call: &Call<'_>,
    request: DescribeTaskQueueRequest,
) -> Result<DescribeTaskQueueResponse, Status> {
    let queue = call.checks().task_queue(request.task_queue.clone())?;
    let sticky = is_sticky(&queue)?;
    if request.api_mode == i32::from(DescribeTaskQueueMode::Enhanced) {
        return enhanced(call, &request, &queue.name, sticky).await;
    }
    if sticky && request.report_stats {
        return Err(invalid("DescribeTaskQueue stats are only supported for the root partition"));
    }
    // Before the rest: the rate that is in force is that of the configuration.
    let config = match request.report_config && !sticky {
        true => configured(call, &queue.name, request.task_queue_type).await?,
        false => None,
    };
    let found = match TaskQueueType::try_from(request.task_queue_type) {
        Ok(TaskQueueType::Nexus) => QueueStatus::default(),
        Ok(kind) => read_status(call, &queue.name, kind).await,
        Err(_) => read_status(call, &queue.name, TaskQueueType::Workflow).await,
    };
    let mut response = plain(&found);
    if !sticky {
        let current_version = NO_VERSION.to_owned();
        response.versioning_info = Some(TaskQueueVersioningInfo { current_version, ..Default::default() });
    }
    if request.report_stats {
        response.stats = Some(stats(&found.total(), found.is_held));
        response.stats_by_priority_key = by_priority(&found);
    }
    response.config = config;
    if request.include_task_queue_status {
        response.task_queue_status = Some(queue_status(&found));
    }
    Ok(response)
}

/// What operators have set, with all that was acknowledged before.
async fn configured(call: &Call<'_>, queue: &str, kind: i32) -> Result<Option<TaskQueueConfig>, Status> {
    let kind = if kind == 0 { TaskQueueType::Workflow.into() } else { kind };
    let record = call.gateway.task_queues.read(&call.namespace.record.id, queue).await?;
    Ok(record.and_then(|record| record.configs.get(&kind).cloned()))
}

async fn read_status(call: &Call<'_>, queue: &str, kind: TaskQueueType) -> QueueStatus {
    let kind = if kind == TaskQueueType::Activity { TaskKind::Activity } else { TaskKind::Workflow };
    call.gateway.router.queue_status(&call.namespace.record.id, queue, kind).await
}

/// The deprecated enhanced mode: by build id and type of task queue. Only unversioned queues are known.
async fn enhanced(
    call: &Call<'_>,
    request: &DescribeTaskQueueRequest,
    queue: &str,
    sticky: bool,
) -> Result<DescribeTaskQueueResponse, Status> {
    if sticky {
        return Err(invalid(
            "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a normal queue.",
        ));
    }
    let builds = request.versions.as_ref().is_some_and(|versions| !versions.build_ids.is_empty());
    not_yet("versions.build_ids", builds)?;
    let types = match request.task_queue_types.as_slice() {
        [] => vec![TaskQueueType::Workflow.into(), TaskQueueType::Activity.into()],
        given => given.to_vec(),
    };
    let mut types_info = BTreeMap::new();
    for number in &types {
        let info = match kind(*number) {
            Some(TaskQueueType::Activity) if types.len() > 1 => activities(call, request).await?,
            Some(kind) => type_info(request, &read_status(call, queue, kind).await),
            None => type_info(request, &QueueStatus::default()),
        };
        types_info.insert(*number, info);
    }
    let task_reachability = match request.report_task_reachability {
        true => BuildIdTaskReachability::Reachable.into(),
        false => 0,
    };
    let version = TaskQueueVersionInfo { types_info, task_reachability };
    let versions_info = BTreeMap::from([(String::new(), version)]);
    Ok(DescribeTaskQueueResponse { versions_info, ..Default::default() })
}

fn type_info(request: &DescribeTaskQueueRequest, found: &QueueStatus) -> TaskQueueTypeInfo {
    TaskQueueTypeInfo {
        stats: request.report_stats.then(|| stats(&found.total(), found.is_held)),
        pollers: if request.report_pollers { pollers(found) } else { Vec::new() },
    }
}

/// What is known of activities where their tasks and polls meet, which may be another node than this one, that of workflow tasks.
async fn activities(
    call: &Call<'_>,
    request: &DescribeTaskQueueRequest,
) -> Result<TaskQueueTypeInfo, Status> {
    let kind = i32::from(TaskQueueType::Activity);
    let request = DescribeTaskQueueRequest { task_queue_types: vec![kind], ..request.clone() };
    let calls = call.gateway.calls().map_err(|error| Status::internal(error.to_string()))?;
    let mut client = in_process::client(calls, DESCRIBER, &call.namespace.record.name);
    let found = answer(client.describe_task_queue(request)).await?;
    let mut infos =
        found.versions_info.into_values().filter_map(|mut version| version.types_info.remove(&kind));
    Ok(infos.next().unwrap_or_default())
}

fn plain(found: &QueueStatus) -> DescribeTaskQueueResponse {
    let source = match found.rate_per_second {
        Some(_) if found.is_rate_configured => RateLimitSource::Api,
        Some(_) => RateLimitSource::Worker,
        None => RateLimitSource::System,
    };
    let effective_rate_limit = Some(EffectiveRateLimit {
        requests_per_second: found.rate_per_second.unwrap_or(RATE_UNLIMITED) as f32,
        rate_limit_source: source.into(),
    });
    DescribeTaskQueueResponse { pollers: pollers(found), effective_rate_limit, ..Default::default() }
}

fn kind(number: i32) -> Option<TaskQueueType> {
    match TaskQueueType::try_from(number) {
        Ok(kind @ (TaskQueueType::Workflow | TaskQueueType::Activity)) => Some(kind),
        Ok(TaskQueueType::Unspecified | TaskQueueType::Nexus) | Err(_) => None,
    }
}

fn pollers(found: &QueueStatus) -> Vec<PollerInfo> {
    found.pollers.iter().map(poller).collect()
}

fn poller(known: &PollerStatus) -> PollerInfo {
    let version = known.version.clone().and_then(|bytes| PollerInfo::decode(bytes).ok());
    PollerInfo {
        last_access_time: Some(timestamp(known.last_ms)),
        identity: known.identity.clone(),
        rate_per_second: known.rate_per_second.unwrap_or(RATE_UNLIMITED),
        ..version.unwrap_or_default()
    }
}

fn stats(level: &LevelStatus, is_held: bool) -> TaskQueueStats {
    TaskQueueStats {
        approximate_backlog_count: count(level.backlog),
        approximate_backlog_age: Some(duration(level.backlog_age_ms.max(0))),
        tasks_add_rate: level.added_per_second,
        tasks_dispatch_rate: level.handed_per_second,
        rate_limiting_active: is_held,
    }
}

fn by_priority(found: &QueueStatus) -> BTreeMap<i32, TaskQueueStats> {
    let mut levels =
        BTreeMap::from([(i32::from(PRIORITY_DEFAULT), stats(&LevelStatus::default(), found.is_held))]);
    levels.extend(found.levels.iter().map(|(level, row)| (i32::from(*level), stats(row, found.is_held))));
    levels
}

fn queue_status(found: &QueueStatus) -> TaskQueueStatus {
    TaskQueueStatus {
        backlog_count_hint: count(found.total().backlog),
        rate_per_second: found.rate_per_second.unwrap_or(RATE_UNLIMITED),
        task_id_block: Some(TaskIdBlock::default()),
        ..TaskQueueStatus::default()
    }
}

fn count(backlog: usize) -> i64 {
    i64::try_from(backlog).unwrap_or(i64::MAX)
}

/// A queue has one partition of each type: itself, at its home.
pub(crate) async fn list_partitions(
    call: &Call<'_>,
    request: ListTaskQueuePartitionsRequest,
) -> Result<ListTaskQueuePartitionsResponse, Status> {
    let queue = call.checks().task_queue(request.task_queue)?;
    let partition = |kind| {
        let (key, namespace_id) = (queue.name.clone(), call.namespace.record.id.clone());
        let owner_host_name = host_of(call.gateway, &QueueKey { namespace_id, name: key.clone(), kind });
        vec![TaskQueuePartitionMetadata { key, owner_host_name }]
    };
    Ok(ListTaskQueuePartitionsResponse {
        activity_task_queue_partitions: partition(TaskKind::Activity),
        workflow_task_queue_partitions: partition(TaskKind::Workflow),
    })
}

/// The address of a queue's home, or the name of that node while its address is unknown.
fn host_of(gateway: &Gateway, queue: &QueueKey) -> String {
    let home = gateway.peers.as_ref().map(|peers| (peers, peers.home(queue)));
    match home {
        Some((peers, Location::There(node))) => {
            peers.calls_address(&node).unwrap_or_else(|| node.to_string())
        }
        Some((_, Location::Here | Location::Nowhere)) | None => gateway.about.address.clone(),
    }
}

pub(crate) async fn reset_sticky(
    call: &Call<'_>,
    request: ResetStickyTaskQueueRequest,
) -> Result<ResetStickyTaskQueueResponse, Status> {
    let execution = call.checks().execution(request.execution)?;
    call.send(call.request_record(execution, Request::ResetSticky(ResetSticky {}))).await?;
    Ok(ResetStickyTaskQueueResponse::default())
}

pub(crate) async fn shut_down_worker(
    call: &Call<'_>,
    request: ShutdownWorkerRequest,
) -> Result<ShutdownWorkerResponse, Status> {
    let checks = call.checks();
    checks.length("Identity", &request.identity)?;
    checks.length("StickyTaskQueue", &request.sticky_task_queue)?;
    checks.length("WorkerInstanceKey", &request.worker_instance_key)?;
    worker_registry::record_attached(call, request.worker_heartbeat)?;
    let namespace_id = &call.namespace.record.id;
    if !request.worker_instance_key.is_empty() {
        call.gateway.pollers.stop(namespace_id, &request.worker_instance_key);
    }
    if !request.sticky_task_queue.is_empty() {
        call.gateway.router.retire_sticky_queue(namespace_id, &request.sticky_task_queue);
    }
    Ok(ShutdownWorkerResponse::default())
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::common::WorkerVersionCapabilities;

    use super::*;

    fn busy() -> QueueStatus {
        let version = PollerInfo {
            worker_version_capabilities: Some(WorkerVersionCapabilities {
                build_id: "b1".into(),
                ..WorkerVersionCapabilities::default()
            }),
            ..PollerInfo::default()
        };
        let worker = PollerStatus {
            identity: "worker".into(),
            last_ms: 5_000,
            rate_per_second: Some(2.5),
            version: Some(version.encode_to_vec().into()),
        };
        let level = |backlog, backlog_age_ms, added_per_second| LevelStatus {
            backlog,
            backlog_age_ms,
            added_per_second,
            handed_per_second: 0.5,
        };
        let levels = BTreeMap::from([(1, level(2, 50, 1.0)), (5, level(5, 1_500, 3.0))]);
        let idle = PollerStatus { identity: "idle".into(), ..PollerStatus::default() };
        let pollers = vec![worker, idle];
        QueueStatus { pollers, levels, rate_per_second: Some(2.5), is_rate_configured: false, is_held: true }
    }

    #[test]
    fn a_queue_is_described_with_its_pollers_and_its_backlog() {
        let found = busy();
        let told = pollers(&found);
        assert_eq!((told[0].identity.as_str(), told[0].last_access_time), ("worker", Some(timestamp(5_000))));
        assert_eq!((told[0].rate_per_second, told[1].rate_per_second), (2.5, RATE_UNLIMITED));
        let version = told[0].worker_version_capabilities.clone().expect("it has said one");
        assert_eq!(version.build_id, "b1");
        let stats = stats(&found.total(), found.is_held);
        assert_eq!(
            (stats.approximate_backlog_count, stats.tasks_add_rate, stats.tasks_dispatch_rate),
            (7, 4.0, 1.0)
        );
        assert_eq!(stats.approximate_backlog_age, Some(duration(1_500)));
        assert!(stats.rate_limiting_active);
        assert_eq!((queue_status(&found).backlog_count_hint, queue_status(&found).rate_per_second), (7, 2.5));
    }

    #[test]
    fn levels_are_told_one_by_one_and_the_usual_one_always() {
        let told = by_priority(&busy());
        assert_eq!(told.keys().copied().collect::<Vec<_>>(), [1, 3, 5]);
        let backlogs: Vec<_> = told.values().map(|stats| stats.approximate_backlog_count).collect();
        assert_eq!(backlogs, [2, 0, 5]);
    }

    #[test]
    fn a_queue_without_a_limit_says_that_it_has_none() {
        let limit = |found: &QueueStatus| plain(found).effective_rate_limit.expect("it is always told");
        let (held, free) = (limit(&busy()), limit(&QueueStatus::default()));
        let set = limit(&QueueStatus { is_rate_configured: true, ..busy() });
        assert_eq!((set.requests_per_second, set.rate_limit_source()), (2.5, RateLimitSource::Api));
        assert_eq!((held.requests_per_second, held.rate_limit_source()), (2.5, RateLimitSource::Worker));
        assert_eq!(
            (free.requests_per_second, free.rate_limit_source()),
            (100_000.0, RateLimitSource::System)
        );
    }

    #[test]
    fn only_queues_of_known_kinds_are_described() {
        assert_eq!(kind(1), Some(TaskQueueType::Workflow));
        assert_eq!(kind(2), Some(TaskQueueType::Activity));
        assert_eq!((kind(0), kind(3), kind(99)), (None, None, None));
    }
}
