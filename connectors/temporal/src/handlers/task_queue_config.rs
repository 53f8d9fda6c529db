//! UpdateTaskQueueConfig.

use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{UpdateTaskQueueConfigRequest, UpdateTaskQueueConfigResponse};
use tonic::Status;

use crate::codec::proto_time;
use crate::server::call::Call;
use crate::task_queues::config;
use crate::task_queues::registry::TaskQueueRecord;

/// The configuration is in force on this node when this returns, and a moment later on all nodes.
pub(crate) async fn update(
    call: &Call<'_>,
    request: UpdateTaskQueueConfigRequest,
) -> Result<UpdateTaskQueueConfigResponse, Status> {
    config::check(&request, call.gateway.settings.fairness_key_bytes_max)?;
    let queue = TaskQueue { name: request.task_queue.clone(), ..TaskQueue::default() };
    let name = call.checks().task_queue(Some(queue))?.name;
    let (kind, now_ms) = (request.task_queue_type, proto_time::now_ms());
    let change = |record: &mut TaskQueueRecord| {
        config::update(record.configs.entry(kind).or_default(), request, now_ms)
    };
    let record = call.gateway.task_queues.update(&call.namespace.record.id, &name, change).await?;
    Ok(UpdateTaskQueueConfigResponse { config: record.configs.get(&kind).cloned() })
}
