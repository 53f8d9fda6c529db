//! The responses of polls: a task as its worker receives it, also for a poll that another node has forwarded.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::machine::activity_attempt::Target;
use everlog_partition::{ActivityTask, Delivery, QueryTask, Receipt, RemoteClaim, WorkflowTask};
use everlog_temporal_api::common::{ActivityType, WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::TaskQueueKind;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{PollActivityTaskQueueResponse, PollWorkflowTaskQueueResponse};
use prost::Message;
use tonic::Status;

use crate::Gateway;
use crate::codec::{proto_time, retry_policy, status, update_messages};
use crate::namespaces::namespace::Namespace;
use crate::tasks::page_token::PageToken;
use crate::tasks::token::{Subject, TaskToken, TokenSigner};

/// What a response with a task is made with.
#[derive(Clone, Copy)]
pub(crate) struct ResponseContext<'a> {
    pub token_signer: &'a TokenSigner,
    pub namespace: &'a Namespace,
}

/// The response that the owner of the run has made, decoded for the handler.
pub(crate) fn read<R: Message + Default>(told: RemoteClaim) -> Result<(R, Option<Receipt>), Status> {
    let answer = R::decode(told.answer);
    // On an error the receipt is dropped, and the task is requeued.
    let answer = answer.map_err(|_error| Status::internal("another node's answer cannot be read"))?;
    Ok((answer, told.receipt))
}

impl Gateway {
    /// The encoded response with a task of this node's partitions, for a poll on another node, and its receipt. None if there is no
    /// response, and the task is requeued.
    pub fn tell(&self, namespace_id: &str, delivery: Delivery) -> Option<(Bytes, Option<Receipt>)> {
        let namespace = self.namespaces.find_id(namespace_id).ok()?;
        let context = ResponseContext { token_signer: &self.token_signer, namespace: &namespace };
        match delivery {
            Delivery::Workflow(told) => {
                let (response, receipt) = of_workflow_task(context, *told).ok()?;
                Some((response.encode_to_vec().into(), receipt))
            }
            Delivery::Activity(told) => {
                let (response, receipt) = of_activity(context, *told);
                Some((response.encode_to_vec().into(), receipt))
            }
            Delivery::Query(mut told) => {
                let receipt = told.receipt.take();
                let response = of_query(context, *told).ok()?;
                Some((response.encode_to_vec().into(), receipt))
            }
            Delivery::Remote(_) | Delivery::Nothing => None,
        }
    }
}

/// The response with a workflow task, and the receipt, which is accepted last.
pub(crate) fn of_workflow_task(
    context: ResponseContext<'_>,
    task: WorkflowTask,
) -> Result<(PollWorkflowTaskQueueResponse, Option<Receipt>), Status> {
    let WorkflowTask { run, sticky: _, history, queries, backlog, receipt } = task;
    let pending = run.head.task.as_ref().ok_or_else(status::unexpected_reply)?;
    let page_token = PageToken {
        end_event_id: pending.started_event_id + 1,
        ..PageToken::of(&run, history.next_event_id)
    };
    let next_page_token = match history.next_event_id {
        0 => Bytes::new(),
        _more => page_token.seal(context, &run.start.workflow_id),
    };
    let response = PollWorkflowTaskQueueResponse {
        task_token: token(context, &run, Subject::Workflow(pending.token())),
        workflow_execution: Some(execution(&run)),
        workflow_type: Some(WorkflowType { name: run.workflow_type().to_owned() }),
        previous_started_event_id: run.head.previous_started_event_id,
        started_event_id: pending.started_event_id,
        attempt: pending.attempt,
        backlog_count_hint: i64::try_from(backlog).unwrap_or(i64::MAX),
        history: Some(history.history),
        next_page_token,
        workflow_execution_task_queue: Some(normal_queue(&run)),
        scheduled_time: Some(proto_time::timestamp(pending.scheduled_ms)),
        started_time: Some(proto_time::timestamp(pending.started_ms)),
        queries: attached(queries)?,
        messages: update_messages::for_worker(&run, pending.started_event_id),
        ..PollWorkflowTaskQueueResponse::default()
    };
    Ok((response, receipt))
}

pub(crate) fn of_query(
    context: ResponseContext<'_>,
    task: QueryTask,
) -> Result<PollWorkflowTaskQueueResponse, Status> {
    let QueryTask { run, sticky: _, history, query, query_id, receipt: _ } = task;
    let page_token =
        PageToken { end_event_id: run.head.next_event_id, ..PageToken::of(&run, history.next_event_id) };
    let next_page_token = match history.next_event_id {
        0 => Bytes::new(),
        _more => page_token.seal(context, &run.start.workflow_id),
    };
    Ok(PollWorkflowTaskQueueResponse {
        task_token: token(context, &run, Subject::Query(query_id)),
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

pub(crate) fn execution(run: &Run) -> WorkflowExecution {
    WorkflowExecution { workflow_id: run.start.workflow_id.clone(), run_id: run.start.run_id.clone() }
}

fn token(context: ResponseContext<'_>, run: &Run, subject: Subject) -> Bytes {
    let token = TaskToken {
        namespace_id: run.start.namespace_id.clone(),
        workflow_id: run.start.workflow_id.clone(),
        run_id: run.start.run_id.clone(),
        subject: Some(subject),
    };
    token.seal(context.token_signer)
}

fn normal_queue(run: &Run) -> TaskQueue {
    let kind = TaskQueueKind::Normal.into();
    TaskQueue { name: run.start.task_queue.clone(), kind, normal_name: String::new() }
}

/// The response with an activity task, and the receipt, which is accepted last.
pub(crate) fn of_activity(
    context: ResponseContext<'_>,
    task: ActivityTask,
) -> (PollActivityTaskQueueResponse, Option<Receipt>) {
    let ActivityTask { run, activity, scheduled, receipt } = task;
    let options = activity.options();
    let target = Target {
        scheduled_event_id: activity.scheduled_event_id,
        attempt: activity.attempt,
        claim: activity.claim,
        activity_id: String::new(),
    };
    let response = PollActivityTaskQueueResponse {
        task_token: token(context, &run, Subject::Activity(target)),
        workflow_namespace: context.namespace.record.name.clone(),
        workflow_type: Some(WorkflowType { name: run.workflow_type().to_owned() }),
        workflow_execution: Some(execution(&run)),
        activity_type: Some(ActivityType { name: activity.activity_type.clone() }),
        activity_id: activity.activity_id.clone(),
        header: scheduled.header,
        input: scheduled.input,
        heartbeat_details: activity.heartbeat_details.clone(),
        scheduled_time: Some(proto_time::timestamp(activity.first_scheduled_ms)),
        current_attempt_scheduled_time: Some(proto_time::timestamp(activity.scheduled_ms)),
        started_time: Some(proto_time::timestamp(activity.started_ms)),
        attempt: activity.attempt,
        schedule_to_close_timeout: Some(proto_time::duration(options.schedule_to_close_ms)),
        start_to_close_timeout: Some(proto_time::duration(options.start_to_close_ms)),
        heartbeat_timeout: Some(proto_time::duration(options.heartbeat_timeout_ms)),
        retry_policy: activity.retry_policy.clone().map(retry_policy::outer),
        priority: of_both(run.priority(), options.priority),
        ..PollActivityTaskQueueResponse::default()
    };
    (response, receipt)
}

/// An activity's priority, with the workflow's for fields that it leaves out. Concatenated messages merge so.
fn of_both(workflow: Option<&Bytes>, activity: Option<Bytes>) -> Option<Bytes> {
    match (workflow, activity) {
        (Some(workflow), Some(activity)) => Some([workflow.as_ref(), activity.as_ref()].concat().into()),
        (workflow, activity) => activity.or_else(|| workflow.cloned()),
    }
}
