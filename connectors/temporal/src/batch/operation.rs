//! A job's outside: the lists that give its runs, the operation at one run, and its heartbeats, as calls of the node's own API.

use bytes::Bytes;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::temporal::api::batch::v1::BatchOperationReset;
use everlog_temporal_api::temporal::api::batch::v1::batch_operation_reset_activities::Activity as ToReset;
use everlog_temporal_api::temporal::api::batch::v1::batch_operation_unpause_activities::Activity as ToUnpause;
use everlog_temporal_api::temporal::api::batch::v1::batch_operation_update_activity_options::Activity as ToUpdate;
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, DeleteWorkflowExecutionRequest, DescribeWorkflowExecutionRequest,
    ListWorkflowExecutionsRequest, RecordActivityTaskHeartbeatRequest, RequestCancelWorkflowExecutionRequest,
    ResetActivityRequest, ResetWorkflowExecutionRequest, SignalWorkflowExecutionRequest,
    StartBatchOperationRequest, TerminateWorkflowExecutionRequest, UnpauseActivityRequest,
    UpdateActivityOptionsRequest, UpdateWorkflowExecutionOptionsRequest, reset_activity_request,
    unpause_activity_request, update_activity_options_request,
};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::batch::job::{self, BatchKind};
use crate::batch::progress::BatchItem;
use crate::batch::reset_target;
use crate::batch::work::{BatchRuns, RunPage};
use crate::codec::proto_time;
use crate::routing::in_process::{ApiClient, answer};

/// Who works, where the caller has not said who asks.
pub(crate) const IDENTITY: &str = "everlog-batch";

/// A job at work.
pub(crate) struct JobCalls {
    client: ApiClient,
    /// The namespace's name.
    namespace: String,
    /// The run of the job: request ids are derived from it.
    run_id: String,
    task_token: Bytes,
    request: StartBatchOperationRequest,
    operation: Operation,
    kind: BatchKind,
    /// The runs that the caller names; none where a query does.
    executions: Option<Vec<BatchItem>>,
}

impl JobCalls {
    /// None where the request is none that StartBatchOperation takes.
    pub(crate) fn new(
        client: ApiClient,
        namespace: String,
        run_id: String,
        task_token: Bytes,
        request: StartBatchOperationRequest,
    ) -> Option<Self> {
        let operation = request.operation.clone()?;
        let kind = job::kind_of(&operation).ok()?;
        let executions = request.visibility_query.is_empty().then(|| job::executions(&request));
        Some(Self { client, namespace, run_id, task_token, request, operation, kind, executions })
    }

    fn identity(&self) -> String {
        match job::identity(&self.operation) {
            "" => IDENTITY.into(),
            given => given.into(),
        }
    }

    /// The same for each repetition of the operation at this run, and for no other.
    fn request_id(&self, item: &BatchItem) -> String {
        let BatchItem { workflow_id, run_id, number } = item;
        let name = format!("{}/{}/{number}/{run_id}/{workflow_id}", self.run_id, self.kind.name);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
    }

    /// The next of the runs that the caller names. The token is their number. One without a run id gets that of the current run, so
    /// that a repetition of the operation meets the same run.
    async fn named_page(&self, named: &[BatchItem], token: &Bytes, size: usize) -> Result<RunPage, Status> {
        let begin = std::str::from_utf8(token).ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        let end = named.len().min(begin + size);
        let mut items = named.get(begin..end).unwrap_or_default().to_vec();
        for item in items.iter_mut().filter(|item| item.run_id.is_empty()) {
            item.run_id = self.current_run(item).await?;
        }
        Ok(RunPage { items, next: (end < named.len()).then(|| end.to_string().into()) })
    }

    /// Empty where there is none: what the operation says of that is its outcome.
    async fn current_run(&self, item: &BatchItem) -> Result<String, Status> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            execution: Some(execution(item)),
        };
        match answer(self.client.clone().describe_workflow_execution(request)).await {
            Ok(described) => {
                let execution = described.workflow_execution_info.and_then(|info| info.execution);
                Ok(execution.map(|execution| execution.run_id).unwrap_or_default())
            }
            Err(status) if status.code() == Code::NotFound => Ok(String::new()),
            Err(status) => Err(status),
        }
    }

    async fn listed_page(&self, token: &Bytes, size: usize) -> Result<RunPage, Status> {
        let request = ListWorkflowExecutionsRequest {
            namespace: self.namespace.clone(),
            page_size: i32::try_from(size).unwrap_or(i32::MAX),
            next_page_token: token.clone(),
            query: job::query(&self.request, self.kind),
        };
        let listed = answer(self.client.clone().list_workflow_executions(request)).await?;
        let executions = listed.executions.into_iter().filter_map(|info| info.execution);
        let item = |found: WorkflowExecution| BatchItem {
            workflow_id: found.workflow_id,
            run_id: found.run_id,
            number: 0,
        };
        let next = Some(listed.next_page_token).filter(|token| !token.is_empty());
        Ok(RunPage { items: executions.map(item).collect(), next })
    }

    async fn reset(&self, item: &BatchItem, operation: &BatchOperationReset) -> Result<(), Status> {
        let target = job::reset_target(operation)
            .ok_or_else(|| Status::invalid_argument("batch reset missing target"))?;
        let (reset_reapply_type, excluded, current_run_only) = match &operation.options {
            Some(options) => (
                options.reset_reapply_type,
                options.reset_reapply_exclude_types.clone(),
                options.current_run_only,
            ),
            None => (operation.reset_reapply_type, Vec::new(), false),
        };
        let found = reset_target::find(
            &self.client,
            &self.namespace,
            execution(item),
            &target,
            current_run_only,
            // Only to tell whether a reset point is expired; the owner of the run decides.
            proto_time::now_ms(),
        );
        let (execution, event_id) = found.await?;
        let request = ResetWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_execution: Some(execution),
            reason: self.request.reason.clone(),
            workflow_task_finish_event_id: event_id,
            request_id: self.request_id(item),
            reset_reapply_type,
            reset_reapply_exclude_types: excluded,
            post_reset_operations: operation.post_reset_operations.clone(),
            identity: self.identity(),
        };
        answer(self.client.clone().reset_workflow_execution(request)).await.map(drop)
    }

    async fn send(&self, item: &BatchItem) -> Result<(), Status> {
        let mut client = self.client.clone();
        let (namespace, workflow_execution) = (self.namespace.clone(), Some(execution(item)));
        let identity = self.identity();
        match &self.operation {
            Operation::TerminationOperation(operation) => {
                let request = TerminateWorkflowExecutionRequest {
                    namespace,
                    workflow_execution,
                    reason: self.request.reason.clone(),
                    details: operation.details.clone(),
                    identity,
                    ..Default::default()
                };
                answer(client.terminate_workflow_execution(request)).await.map(drop)
            }
            Operation::CancellationOperation(_) => {
                let request = RequestCancelWorkflowExecutionRequest {
                    namespace,
                    workflow_execution,
                    identity,
                    request_id: self.request_id(item),
                    ..Default::default()
                };
                answer(client.request_cancel_workflow_execution(request)).await.map(drop)
            }
            Operation::SignalOperation(operation) => {
                let request = SignalWorkflowExecutionRequest {
                    namespace,
                    workflow_execution,
                    signal_name: operation.signal.clone(),
                    input: operation.input.clone(),
                    header: operation.header.clone(),
                    identity,
                    request_id: self.request_id(item),
                    ..Default::default()
                };
                answer(client.signal_workflow_execution(request)).await.map(drop)
            }
            Operation::DeletionOperation(_) => {
                let request = DeleteWorkflowExecutionRequest { namespace, workflow_execution };
                answer(client.delete_workflow_execution(request)).await.map(drop)
            }
            Operation::ResetOperation(operation) => self.reset(item, operation).await,
            Operation::UpdateWorkflowOptionsOperation(operation) => {
                let request = UpdateWorkflowExecutionOptionsRequest {
                    namespace,
                    workflow_execution,
                    workflow_execution_options: operation.workflow_execution_options.clone(),
                    update_mask: operation.update_mask.clone(),
                    identity,
                };
                answer(client.update_workflow_execution_options(request)).await.map(drop)
            }
            Operation::UnpauseActivitiesOperation(_)
            | Operation::ResetActivitiesOperation(_)
            | Operation::UpdateActivityOptionsOperation(_) => self.send_to_activities(item).await,
            _refused_at_the_start => Err(Status::unimplemented("the operation is not supported yet")),
        }
    }
}

impl JobCalls {
    /// The operation at the activities of one run.
    async fn send_to_activities(&self, item: &BatchItem) -> Result<(), Status> {
        let mut client = self.client.clone();
        let (namespace, execution) = (self.namespace.clone(), Some(execution(item)));
        let identity = self.identity();
        match &self.operation {
            Operation::UnpauseActivitiesOperation(operation) => {
                let request = UnpauseActivityRequest {
                    namespace,
                    execution,
                    identity,
                    reset_attempts: operation.reset_attempts,
                    reset_heartbeat: operation.reset_heartbeat,
                    jitter: operation.jitter,
                    activity: operation.activity.clone().map(|activity| match activity {
                        ToUnpause::Type(name) => unpause_activity_request::Activity::Type(name),
                        ToUnpause::MatchAll(all) => unpause_activity_request::Activity::UnpauseAll(all),
                    }),
                };
                answer(client.unpause_activity(request)).await.map(drop)
            }
            Operation::ResetActivitiesOperation(operation) => {
                let request = ResetActivityRequest {
                    namespace,
                    execution,
                    identity,
                    reset_heartbeat: operation.reset_heartbeat,
                    keep_paused: operation.keep_paused,
                    jitter: operation.jitter,
                    restore_original_options: operation.restore_original_options,
                    activity: operation.activity.clone().map(|activity| match activity {
                        ToReset::Type(name) => reset_activity_request::Activity::Type(name),
                        ToReset::MatchAll(all) => reset_activity_request::Activity::MatchAll(all),
                    }),
                };
                answer(client.reset_activity(request)).await.map(drop)
            }
            Operation::UpdateActivityOptionsOperation(operation) => {
                let request = UpdateActivityOptionsRequest {
                    namespace,
                    execution,
                    identity,
                    activity_options: operation.activity_options.clone(),
                    update_mask: operation.update_mask.clone(),
                    restore_original: operation.restore_original,
                    activity: operation.activity.clone().map(|activity| match activity {
                        ToUpdate::Type(name) => update_activity_options_request::Activity::Type(name),
                        ToUpdate::MatchAll(all) => update_activity_options_request::Activity::MatchAll(all),
                    }),
                };
                answer(client.update_activity_options(request)).await.map(drop)
            }
            _others_are_of_runs => Err(Status::unimplemented("the operation is not supported yet")),
        }
    }
}

impl BatchRuns for JobCalls {
    async fn total(&self) -> Result<i64, Status> {
        if let Some(named) = &self.executions {
            return Ok(i64::try_from(named.len()).unwrap_or(i64::MAX));
        }
        let query = job::query(&self.request, self.kind);
        let request = CountWorkflowExecutionsRequest { namespace: self.namespace.clone(), query };
        answer(self.client.clone().count_workflow_executions(request)).await.map(|counted| counted.count)
    }

    async fn page(&self, token: &Bytes, size: usize) -> Result<RunPage, Status> {
        match &self.executions {
            Some(named) => self.named_page(named, token, size).await,
            None => self.listed_page(token, size).await,
        }
    }

    /// A run that is gone, or closed where only an open one can do it, counts as done. A reset needs a run to go back to.
    async fn operate(&self, item: &BatchItem) -> Result<(), Status> {
        match self.send(item).await {
            Err(status)
                if status.code() == Code::NotFound
                    && !matches!(self.operation, Operation::ResetOperation(_)) =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }

    async fn heartbeat(&self, details: Bytes) -> Result<bool, Status> {
        let request = RecordActivityTaskHeartbeatRequest {
            namespace: self.namespace.clone(),
            task_token: self.task_token.clone(),
            details: Some(details),
            identity: IDENTITY.into(),
            ..Default::default()
        };
        let beaten = answer(self.client.clone().record_activity_task_heartbeat(request)).await?;
        Ok(beaten.cancel_requested)
    }
}

fn execution(item: &BatchItem) -> WorkflowExecution {
    WorkflowExecution { workflow_id: item.workflow_id.clone(), run_id: item.run_id.clone() }
}
