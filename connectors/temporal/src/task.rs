//! Workflow tasks as workers get them: polled, or with the answer to a start or a completion.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_partition::{Delivery, Poll, QueryTask, Receipt, WorkflowTask};
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::TaskQueueKind;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse};
use prost::Message;
use tonic::Status;

use crate::call::Call;
use crate::history::Bookmark;
use crate::request::unversioned;
use crate::status::{self, invalid};
use crate::token::{Subject, TaskToken};
use crate::told::{self, Voice};
use crate::{moment, poll, queue, update};

pub(crate) async fn poll(
    call: &Call<'_>,
    request: PollWorkflowTaskQueueRequest,
) -> Result<PollWorkflowTaskQueueResponse, Status> {
    let checks = call.checks();
    checks.length("Identity", &request.identity)?;
    checks.length("WorkerInstanceKey", &request.worker_instance_key)?;
    let task_queue = checks.task_queue(request.task_queue)?;
    unversioned(request.deployment_options.as_ref(), "deployment_options")?;
    let version = queue::version(checks, request.worker_version_capabilities, request.deployment_options)?;
    let poll = Poll {
        namespace_id: call.namespace.record.id.clone(),
        sticky: is_sticky(&task_queue)?,
        normal_queue: Some(task_queue.normal_name).filter(|name| !name.is_empty()),
        queue: task_queue.name,
        activities: false,
        identity: request.identity,
        poll_id: call.poll_id(),
        rate_per_second: None,
        version,
    };
    let (response, receipt) = match poll::wait(call, poll, &request.worker_instance_key).await? {
        Some(Delivery::Workflow(task)) => response(call.voice(), *task)?,
        Some(Delivery::Query(mut task)) => {
            let receipt = task.receipt.take();
            (query_response(call.voice(), *task)?, receipt)
        }
        Some(Delivery::Told(told)) => told::read(told)?,
        // A task of the wrong kind goes back to its queue when it is dropped.
        Some(Delivery::Activity(_) | Delivery::Nothing) | None => Default::default(),
    };
    call.hands_out(receipt);
    Ok(response)
}

/// The task is on its way to the worker: nothing may come between this and the answer.
pub(crate) fn accept(receipt: Option<Receipt>) {
    if let Some(receipt) = receipt {
        receipt.accept();
    }
}

/// A queue is the private one of a worker.
pub(crate) fn is_sticky(queue: &TaskQueue) -> Result<bool, Status> {
    match TaskQueueKind::try_from(queue.kind) {
        Ok(TaskQueueKind::Unspecified | TaskQueueKind::Normal) => Ok(false),
        Ok(TaskQueueKind::Sticky) => Ok(true),
        Ok(TaskQueueKind::WorkerCommands) => {
            Err(invalid("task_queue.kind WorkerCommands is not supported yet."))
        }
        Err(_) => Err(invalid(format!("unknown task queue kind: {}", queue.kind))),
    }
}

/// Everything that a worker is told of a task, and the receipt to be accepted as the very last step.
pub(crate) fn response(
    voice: Voice<'_>,
    task: WorkflowTask,
) -> Result<(PollWorkflowTaskQueueResponse, Option<Receipt>), Status> {
    let WorkflowTask { run, sticky: _, history, queries, backlog, receipt } = task;
    let pending = run.head.task.as_ref().ok_or_else(status::unexpected_reply)?;
    let place =
        Bookmark { end_event_id: pending.started_event_id + 1, ..Bookmark::of(&run, history.next_event_id) };
    let next_page_token = match history.next_event_id {
        0 => Bytes::new(),
        _more => place.seal(voice, &run.start.workflow_id),
    };
    let response = PollWorkflowTaskQueueResponse {
        task_token: token(voice, &run, Subject::Workflow(pending.token())),
        workflow_execution: Some(execution(&run)),
        workflow_type: Some(WorkflowType { name: run.workflow_type().to_owned() }),
        previous_started_event_id: run.head.previous_started_event_id,
        started_event_id: pending.started_event_id,
        attempt: pending.attempt,
        backlog_count_hint: i64::try_from(backlog).unwrap_or(i64::MAX),
        history: Some(history.history),
        next_page_token,
        workflow_execution_task_queue: Some(normal_queue(&run)),
        scheduled_time: Some(moment::timestamp(pending.scheduled_ms)),
        started_time: Some(moment::timestamp(pending.started_ms)),
        queries: attached(queries)?,
        messages: update::messages(&run, pending.started_event_id),
        ..PollWorkflowTaskQueueResponse::default()
    };
    Ok((response, receipt))
}

pub(crate) fn query_response(
    voice: Voice<'_>,
    task: QueryTask,
) -> Result<PollWorkflowTaskQueueResponse, Status> {
    let QueryTask { run, sticky: _, history, query, query_id, receipt: _ } = task;
    let place =
        Bookmark { end_event_id: run.head.next_event_id, ..Bookmark::of(&run, history.next_event_id) };
    let next_page_token = match history.next_event_id {
        0 => Bytes::new(),
        _more => place.seal(voice, &run.start.workflow_id),
    };
    Ok(PollWorkflowTaskQueueResponse {
        task_token: token(voice, &run, Subject::Query(query_id)),
        workflow_execution: Some(execution(&run)),
        workflow_type: Some(WorkflowType { name: run.workflow_type().to_owned() }),
        previous_started_event_id: run.head.previous_started_event_id,
        attempt: 1,
        history: Some(history.history),
        next_page_token,
        query: Some(readable(&query)?),
        workflow_execution_task_queue: Some(normal_queue(&run)),
        ..PollWorkflowTaskQueueResponse::default()
    })
}

fn attached(queries: Vec<(String, Bytes)>) -> Result<BTreeMap<String, WorkflowQuery>, Status> {
    queries.into_iter().map(|(id, query)| Ok((id, readable(&query)?))).collect()
}

fn readable(query: &Bytes) -> Result<WorkflowQuery, Status> {
    WorkflowQuery::decode(query.clone()).map_err(|_error| Status::internal("a query cannot be read"))
}

pub(crate) fn execution(run: &everlog_engine::Run) -> WorkflowExecution {
    WorkflowExecution { workflow_id: run.start.workflow_id.clone(), run_id: run.start.run_id.clone() }
}

pub(crate) fn token(voice: Voice<'_>, run: &everlog_engine::Run, subject: Subject) -> Bytes {
    let token = TaskToken {
        namespace_id: run.start.namespace_id.clone(),
        workflow_id: run.start.workflow_id.clone(),
        run_id: run.start.run_id.clone(),
        subject: Some(subject),
    };
    token.seal(voice.sealer)
}

fn normal_queue(run: &everlog_engine::Run) -> TaskQueue {
    let kind = TaskQueueKind::Normal.into();
    TaskQueue { name: run.start.task_queue.clone(), kind, normal_name: String::new() }
}
