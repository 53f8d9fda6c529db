//! The switchboard: every call of WorkflowService that is answered, and the function that does it.

use everlog_temporal_api::workflowservice::workflow_service_server::WorkflowService;
use everlog_temporal_api::workflowservice::*;
use tonic::{Request, Response, Status};

use crate::Gateway;
use crate::handlers::{
    activity, cluster_info, describe, history, multi_operation, operator, query, reset, signal, start,
    task_queue, update, worker_registry, workflow_task, workflow_task_completed,
};
use crate::metrics::Operation;
use crate::server::call::Call;

macro_rules! switchboard {
    ($($method:ident, $operation:ident, $request:ident => $response:ident, $handler:path;)*) => {
        // Calls that are not listed answer UNIMPLEMENTED.
        #[tonic::async_trait]
        impl WorkflowService for Gateway {$(
            async fn $method(&self, request: Request<$request>) -> Result<Response<$response>, Status> {
                let call = Call::open(self, Operation::$operation, &request)?;
                call.answer($handler(&call, request.into_inner())).await
            }
        )*}
    };
}

#[rustfmt::skip]
switchboard! {
    get_system_info, GetSystemInfo, GetSystemInfoRequest => GetSystemInfoResponse, cluster_info::info;
    get_cluster_info, GetClusterInfo, GetClusterInfoRequest => GetClusterInfoResponse, cluster_info::cluster;
    describe_namespace, DescribeNamespace, DescribeNamespaceRequest => DescribeNamespaceResponse, cluster_info::describe_namespace;
    list_namespaces, ListNamespaces, ListNamespacesRequest => ListNamespacesResponse, cluster_info::list_namespaces;
    register_namespace, RegisterNamespace, RegisterNamespaceRequest => RegisterNamespaceResponse, cluster_info::register_namespace;
    get_search_attributes, GetSearchAttributes, GetSearchAttributesRequest => GetSearchAttributesResponse, operator::everywhere;
    update_namespace, UpdateNamespace, UpdateNamespaceRequest => UpdateNamespaceResponse, cluster_info::update_namespace;

    start_workflow_execution, StartWorkflowExecution,
        StartWorkflowExecutionRequest => StartWorkflowExecutionResponse, start::start;
    signal_with_start_workflow_execution, SignalWithStartWorkflowExecution,
        SignalWithStartWorkflowExecutionRequest => SignalWithStartWorkflowExecutionResponse, start::signal_with_start;
    signal_workflow_execution, SignalWorkflowExecution,
        SignalWorkflowExecutionRequest => SignalWorkflowExecutionResponse, signal::signal;
    request_cancel_workflow_execution, RequestCancelWorkflowExecution,
        RequestCancelWorkflowExecutionRequest => RequestCancelWorkflowExecutionResponse, signal::request_cancel;
    terminate_workflow_execution, TerminateWorkflowExecution,
        TerminateWorkflowExecutionRequest => TerminateWorkflowExecutionResponse, signal::terminate;
    delete_workflow_execution, DeleteWorkflowExecution,
        DeleteWorkflowExecutionRequest => DeleteWorkflowExecutionResponse, signal::delete;
    reset_workflow_execution, ResetWorkflowExecution,
        ResetWorkflowExecutionRequest => ResetWorkflowExecutionResponse, reset::reset;
    get_workflow_execution_history, GetWorkflowExecutionHistory,
        GetWorkflowExecutionHistoryRequest => GetWorkflowExecutionHistoryResponse, history::get;
    get_workflow_execution_history_reverse, GetWorkflowExecutionHistoryReverse,
        GetWorkflowExecutionHistoryReverseRequest => GetWorkflowExecutionHistoryReverseResponse, history::get_reverse;
    describe_workflow_execution, DescribeWorkflowExecution,
        DescribeWorkflowExecutionRequest => DescribeWorkflowExecutionResponse, describe::describe;
    query_workflow, QueryWorkflow, QueryWorkflowRequest => QueryWorkflowResponse, query::ask;
    update_workflow_execution, UpdateWorkflowExecution,
        UpdateWorkflowExecutionRequest => UpdateWorkflowExecutionResponse, update::update;
    poll_workflow_execution_update, PollWorkflowExecutionUpdate,
        PollWorkflowExecutionUpdateRequest => PollWorkflowExecutionUpdateResponse, update::poll;
    execute_multi_operation, ExecuteMultiOperation,
        ExecuteMultiOperationRequest => ExecuteMultiOperationResponse, multi_operation::execute;

    poll_workflow_task_queue, PollWorkflowTaskQueue,
        PollWorkflowTaskQueueRequest => PollWorkflowTaskQueueResponse, workflow_task::poll;
    respond_workflow_task_completed, RespondWorkflowTaskCompleted,
        RespondWorkflowTaskCompletedRequest => RespondWorkflowTaskCompletedResponse, workflow_task_completed::complete;
    respond_workflow_task_failed, RespondWorkflowTaskFailed,
        RespondWorkflowTaskFailedRequest => RespondWorkflowTaskFailedResponse, workflow_task_completed::fail;
    respond_query_task_completed, RespondQueryTaskCompleted,
        RespondQueryTaskCompletedRequest => RespondQueryTaskCompletedResponse, query::respond;
    reset_sticky_task_queue, ResetStickyTaskQueue,
        ResetStickyTaskQueueRequest => ResetStickyTaskQueueResponse, task_queue::reset_sticky;
    shutdown_worker, ShutdownWorker, ShutdownWorkerRequest => ShutdownWorkerResponse, task_queue::shut_down_worker;

    poll_activity_task_queue, PollActivityTaskQueue,
        PollActivityTaskQueueRequest => PollActivityTaskQueueResponse, activity::poll;
    record_activity_task_heartbeat, RecordActivityTaskHeartbeat,
        RecordActivityTaskHeartbeatRequest => RecordActivityTaskHeartbeatResponse, activity::heartbeat;
    record_activity_task_heartbeat_by_id, RecordActivityTaskHeartbeatById,
        RecordActivityTaskHeartbeatByIdRequest => RecordActivityTaskHeartbeatByIdResponse, activity::heartbeat_by_id;
    respond_activity_task_completed, RespondActivityTaskCompleted,
        RespondActivityTaskCompletedRequest => RespondActivityTaskCompletedResponse, activity::complete;
    respond_activity_task_completed_by_id, RespondActivityTaskCompletedById,
        RespondActivityTaskCompletedByIdRequest => RespondActivityTaskCompletedByIdResponse, activity::complete_by_id;
    respond_activity_task_failed, RespondActivityTaskFailed,
        RespondActivityTaskFailedRequest => RespondActivityTaskFailedResponse, activity::fail;
    respond_activity_task_failed_by_id, RespondActivityTaskFailedById,
        RespondActivityTaskFailedByIdRequest => RespondActivityTaskFailedByIdResponse, activity::fail_by_id;
    respond_activity_task_canceled, RespondActivityTaskCanceled,
        RespondActivityTaskCanceledRequest => RespondActivityTaskCanceledResponse, activity::cancel;
    respond_activity_task_canceled_by_id, RespondActivityTaskCanceledById,
        RespondActivityTaskCanceledByIdRequest => RespondActivityTaskCanceledByIdResponse, activity::cancel_by_id;
    record_worker_heartbeat, RecordWorkerHeartbeat,
        RecordWorkerHeartbeatRequest => RecordWorkerHeartbeatResponse, worker_registry::record;
    list_workers, ListWorkers, ListWorkersRequest => ListWorkersResponse, worker_registry::list;
    count_workers, CountWorkers, CountWorkersRequest => CountWorkersResponse, worker_registry::count;
    describe_worker, DescribeWorker, DescribeWorkerRequest => DescribeWorkerResponse, worker_registry::describe;
    describe_task_queue, DescribeTaskQueue,
        DescribeTaskQueueRequest => DescribeTaskQueueResponse, task_queue::describe;
}
