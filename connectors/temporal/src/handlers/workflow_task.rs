//! PollWorkflowTaskQueue.

use everlog_partition::{Delivery, Poll, Receipt, TaskKind};
use everlog_temporal_api::workflowservice::{PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse};
use tonic::Status;

use crate::codec::validation::{is_sticky, unversioned};
use crate::codec::versioning::worker_version;
use crate::handlers::long_poll;
use crate::server::call::Call;
use crate::tasks::response;

pub(crate) async fn poll(
    call: &Call<'_>,
    request: PollWorkflowTaskQueueRequest,
) -> Result<PollWorkflowTaskQueueResponse, Status> {
    let checks = call.checks();
    checks.length("Identity", &request.identity)?;
    checks.length("WorkerInstanceKey", &request.worker_instance_key)?;
    let task_queue = checks.task_queue(request.task_queue)?;
    unversioned(request.deployment_options.as_ref(), "deployment_options")?;
    let version = worker_version(checks, request.worker_version_capabilities, request.deployment_options)?;
    let poll = Poll {
        namespace_id: call.namespace.record.id.clone(),
        sticky: is_sticky(&task_queue)?,
        normal_queue: Some(task_queue.normal_name).filter(|name| !name.is_empty()),
        queue: task_queue.name,
        kind: TaskKind::Workflow,
        identity: request.identity,
        poll_id: call.poll_id(),
        rate_per_second: None,
        version,
    };
    let (response, receipt) = match long_poll::wait(call, poll, &request.worker_instance_key).await? {
        Some(Delivery::Workflow(task)) => response::of_workflow_task(call.response_context(), *task)?,
        Some(Delivery::Query(mut task)) => {
            let receipt = task.receipt.take();
            (response::of_query(call.response_context(), *task)?, receipt)
        }
        Some(Delivery::Remote(told)) => response::read(told)?,
        // A task of the wrong kind is requeued when it is dropped.
        Some(Delivery::Activity(_) | Delivery::Nothing) | None => Default::default(),
    };
    call.respond_with(receipt);
    Ok(response)
}

/// Accepts the receipt of a task in the response. No await may come between this and the response.
pub(crate) fn accept(receipt: Option<Receipt>) {
    if let Some(receipt) = receipt {
        receipt.accept();
    }
}
