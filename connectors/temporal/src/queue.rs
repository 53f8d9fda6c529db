//! Task queues: who polls them and what waits there; sticky queues that are given up; workers that shut down.

use std::collections::BTreeMap;

use everlog_engine::input::{Order, ResetSticky};
use everlog_partition::QueueStatus;
use everlog_temporal_api::enums::{DescribeTaskQueueMode, TaskQueueType};
use everlog_temporal_api::taskqueue::{
    PollerInfo, TaskIdBlock, TaskQueueStats, TaskQueueStatus, TaskQueueTypeInfo, TaskQueueVersionInfo,
};
use everlog_temporal_api::workflowservice::{
    DescribeTaskQueueRequest, DescribeTaskQueueResponse, ResetStickyTaskQueueRequest,
    ResetStickyTaskQueueResponse, ShutdownWorkerRequest, ShutdownWorkerResponse,
};
use tonic::Status;

use crate::call::Call;
use crate::moment::{duration, timestamp};
use crate::request::not_yet;

/// The priority of tasks for which none was given.
const PRIORITY_DEFAULT: i32 = 3;

pub(crate) async fn describe(
    call: &Call<'_>,
    request: DescribeTaskQueueRequest,
) -> Result<DescribeTaskQueueResponse, Status> {
    let queue = call.checks().task_queue(request.task_queue)?;
    not_yet("report_task_reachability", request.report_task_reachability)?;
    let builds = request.versions.as_ref().is_some_and(|versions| !versions.build_ids.is_empty());
    not_yet("versions.build_ids", builds)?;
    let look = |kind: TaskQueueType| {
        let activities = kind == TaskQueueType::Activity;
        call.gateway.router.queue_status(&call.namespace.record.id, &queue.name, activities)
    };
    if request.api_mode == i32::from(DescribeTaskQueueMode::Enhanced) {
        let types = match request.task_queue_types.as_slice() {
            [] => vec![TaskQueueType::Workflow.into(), TaskQueueType::Activity.into()],
            given => given.to_vec(),
        };
        let types_info = types.into_iter().filter_map(|number| {
            let found = look(kind(number)?);
            let stats = request.report_stats.then(|| stats(&found));
            let pollers = if request.report_pollers { pollers(&found) } else { Vec::new() };
            Some((number, TaskQueueTypeInfo { pollers, stats }))
        });
        let version = TaskQueueVersionInfo { types_info: types_info.collect(), task_reachability: 0 };
        let versions_info = BTreeMap::from([(String::new(), version)]);
        return Ok(DescribeTaskQueueResponse { versions_info, ..Default::default() });
    }
    let found = look(kind(request.task_queue_type).unwrap_or(TaskQueueType::Workflow));
    let mut response = DescribeTaskQueueResponse { pollers: pollers(&found), ..Default::default() };
    if request.report_stats {
        response.stats = Some(stats(&found));
        response.stats_by_priority_key = BTreeMap::from([(PRIORITY_DEFAULT, stats(&found))]);
    }
    if request.include_task_queue_status {
        response.task_queue_status = Some(queue_status(&found));
    }
    Ok(response)
}

fn kind(number: i32) -> Option<TaskQueueType> {
    match TaskQueueType::try_from(number) {
        Ok(kind @ (TaskQueueType::Workflow | TaskQueueType::Activity)) => Some(kind),
        Ok(TaskQueueType::Unspecified | TaskQueueType::Nexus) | Err(_) => None,
    }
}

fn pollers(found: &QueueStatus) -> Vec<PollerInfo> {
    let poller = |(identity, last_ms): &(String, i64)| PollerInfo {
        last_access_time: Some(timestamp(*last_ms)),
        identity: identity.clone(),
        ..PollerInfo::default()
    };
    found.pollers.iter().map(poller).collect()
}

fn stats(found: &QueueStatus) -> TaskQueueStats {
    TaskQueueStats {
        approximate_backlog_count: backlog(found),
        approximate_backlog_age: Some(duration(found.backlog_age_ms.max(0))),
        ..TaskQueueStats::default()
    }
}

fn queue_status(found: &QueueStatus) -> TaskQueueStatus {
    TaskQueueStatus {
        backlog_count_hint: backlog(found),
        task_id_block: Some(TaskIdBlock::default()),
        ..TaskQueueStatus::default()
    }
}

fn backlog(found: &QueueStatus) -> i64 {
    i64::try_from(found.backlog).unwrap_or(i64::MAX)
}

pub(crate) async fn reset_sticky(
    call: &Call<'_>,
    request: ResetStickyTaskQueueRequest,
) -> Result<ResetStickyTaskQueueResponse, Status> {
    let execution = call.checks().execution(request.execution)?;
    call.order(call.input(execution, Order::ResetSticky(ResetSticky {}))).await?;
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
    let namespace_id = &call.namespace.record.id;
    if !request.worker_instance_key.is_empty() {
        call.gateway.workers.stop(namespace_id, &request.worker_instance_key);
    }
    if !request.sticky_task_queue.is_empty() {
        call.gateway.router.retire_sticky_queue(namespace_id, &request.sticky_task_queue);
    }
    Ok(ShutdownWorkerResponse::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_described_with_its_pollers_and_its_backlog() {
        let found =
            QueueStatus { pollers: vec![("worker".into(), 5_000)], backlog: 7, backlog_age_ms: 1_500 };
        let poller = &pollers(&found)[0];
        assert_eq!((poller.identity.as_str(), poller.last_access_time), ("worker", Some(timestamp(5_000))));
        let stats = stats(&found);
        assert_eq!(stats.approximate_backlog_count, 7);
        assert_eq!(stats.approximate_backlog_age, Some(duration(1_500)));
        assert_eq!(queue_status(&found).backlog_count_hint, 7);
    }

    #[test]
    fn only_queues_of_known_kinds_are_described() {
        assert_eq!(kind(1), Some(TaskQueueType::Workflow));
        assert_eq!(kind(2), Some(TaskQueueType::Activity));
        assert_eq!((kind(0), kind(3), kind(99)), (None, None, None));
    }
}
