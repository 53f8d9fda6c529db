//! The build ids of task queues: UpdateWorkerBuildIdCompatibility, GetWorkerBuildIdCompatibility, GetWorkerTaskReachability.

use everlog_temporal_api::enums::TaskReachability;
use everlog_temporal_api::taskqueue::{
    BuildIdReachability, CompatibleVersionSet, TaskQueue, TaskQueueReachability,
};
use everlog_temporal_api::workflowservice::{
    GetWorkerBuildIdCompatibilityRequest, GetWorkerBuildIdCompatibilityResponse,
    GetWorkerTaskReachabilityRequest, GetWorkerTaskReachabilityResponse,
    UpdateWorkerBuildIdCompatibilityRequest, UpdateWorkerBuildIdCompatibilityResponse,
};
use tonic::Status;

use crate::codec::status::invalid;
use crate::server::call::Call;
use crate::task_queues::build_ids;
use crate::task_queues::registry::TaskQueueRecord;

/// Build ids of a question.
const ASKED_MAX: usize = 5;

fn checked(call: &Call<'_>, name: &str) -> Result<(), Status> {
    let queue = TaskQueue { name: name.into(), ..TaskQueue::default() };
    call.checks().task_queue(Some(queue)).map(drop)
}

pub(crate) async fn update(
    call: &Call<'_>,
    request: UpdateWorkerBuildIdCompatibilityRequest,
) -> Result<UpdateWorkerBuildIdCompatibilityResponse, Status> {
    build_ids::check(&request)?;
    checked(call, &request.task_queue)?;
    if let Some(operation) = request.operation {
        let change = |record: &mut TaskQueueRecord| build_ids::update(&mut record.build_id_sets, operation);
        let namespace_id = &call.namespace.record.id;
        call.gateway.task_queues.update(namespace_id, &request.task_queue, change).await?;
    }
    Ok(UpdateWorkerBuildIdCompatibilityResponse::default())
}

pub(crate) async fn get(
    call: &Call<'_>,
    request: GetWorkerBuildIdCompatibilityRequest,
) -> Result<GetWorkerBuildIdCompatibilityResponse, Status> {
    checked(call, &request.task_queue)?;
    let found = call.gateway.task_queues.read(&call.namespace.record.id, &request.task_queue).await?;
    let sets = found.map(|record| record.build_id_sets.clone()).unwrap_or_default();
    let left_out = match usize::try_from(request.max_sets) {
        Ok(0) | Err(_) => 0,
        Ok(count) => sets.len().saturating_sub(count),
    };
    let sets = sets.into_iter().skip(left_out).map(|set| CompatibleVersionSet { build_ids: set.ids });
    Ok(GetWorkerBuildIdCompatibilityResponse { major_version_sets: sets.collect() })
}

/// New workflows reach the default build id of a queue, and workers without a version. No run has a build id of a set, because no
/// worker with such a version gets tasks: so there are no others to be reached.
pub(crate) async fn reachability(
    call: &Call<'_>,
    request: GetWorkerTaskReachabilityRequest,
) -> Result<GetWorkerTaskReachabilityResponse, Status> {
    let GetWorkerTaskReachabilityRequest { build_ids: ids, task_queues: names, reachability, .. } = request;
    if ids.is_empty() {
        return Err(invalid("Must query at least one build ID (or empty string for unversioned worker)"));
    }
    if ids.len() > ASKED_MAX {
        return Err(invalid(format!("Too many build ids queried at once, limit: {ASKED_MAX}")));
    }
    if TaskReachability::try_from(reachability).is_err() {
        return Err(invalid(format!("Unsupported reachability type: {reachability}")));
    }
    if names.is_empty() && ids.iter().any(String::is_empty) {
        return Err(invalid(
            "Cannot get reachability of an unversioned worker without specifying at least one task queue (empty build ID is interpereted as unversioned)",
        ));
    }
    names.iter().try_for_each(|name| checked(call, name))?;
    let known = call.gateway.task_queues.read_namespace(&call.namespace.record.id).await?;
    let of_id = |build_id: String| {
        let has_it =
            known.iter().filter(|record| build_ids::place(&record.build_id_sets, &build_id).is_some());
        let queues = match names.is_empty() {
            true => has_it.map(|record| record.name.clone()).collect(),
            false => names.clone(),
        };
        let is_default = |name: &str| {
            let record = known.iter().find(|record| record.name == name);
            record.is_some_and(|record| build_ids::is_default(&record.build_id_sets, &build_id))
        };
        let of_queue = |task_queue: String| {
            let is_reached = build_id.is_empty() || is_default(&task_queue);
            let reachability = is_reached.then(|| TaskReachability::NewWorkflows.into());
            TaskQueueReachability { reachability: reachability.into_iter().collect(), task_queue }
        };
        let task_queue_reachability = queues.into_iter().map(of_queue).collect();
        BuildIdReachability { task_queue_reachability, build_id }
    };
    Ok(GetWorkerTaskReachabilityResponse { build_id_reachability: ids.into_iter().map(of_id).collect() })
}
