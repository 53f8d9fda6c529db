//! What every request says of itself before it is looked at: its namespace or task token, and whether it waits.

use everlog_temporal_api::operatorservice::{
    AddSearchAttributesRequest, DeleteNamespaceRequest, ListSearchAttributesRequest,
    RemoveSearchAttributesRequest,
};
use everlog_temporal_api::workflowservice::*;

use crate::server::call::{Asked, Scope};

macro_rules! nameless {
    ($($request:ident),* $(,)?) => {$(
        impl Asked for $request {
            fn scope(&self) -> Scope<'_> {
                Scope::Nameless
            }
        }
    )*};
}

macro_rules! named {
    ($($request:ident $(waits $wait:expr)?),* $(,)?) => {$(
        impl Asked for $request {
            fn scope(&self) -> Scope<'_> {
                Scope::Name(&self.namespace)
            }

            $(fn is_long_poll(&self) -> bool {
                let waits: fn(&Self) -> bool = $wait;
                waits(self)
            })?
        }
    )*};
}

macro_rules! tokened {
    ($($request:ident),* $(,)?) => {$(
        impl Asked for $request {
            fn scope(&self) -> Scope<'_> {
                Scope::Token { name: &self.namespace, token: &self.task_token }
            }
        }
    )*};
}

// The calls about namespaces name one that they do not act in.
nameless! {
    GetSystemInfoRequest, GetClusterInfoRequest, DescribeNamespaceRequest, ListNamespacesRequest,
    RegisterNamespaceRequest, UpdateNamespaceRequest, GetSearchAttributesRequest, AddSearchAttributesRequest,
    RemoveSearchAttributesRequest, ListSearchAttributesRequest, DeleteNamespaceRequest,
}

named! {
    StartWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    RequestCancelWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
    DeleteWorkflowExecutionRequest,
    ResetWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest waits |request| request.wait_new_event,
    GetWorkflowExecutionHistoryReverseRequest,
    DescribeWorkflowExecutionRequest,
    QueryWorkflowRequest,
    PollWorkflowTaskQueueRequest waits |_| true,
    ResetStickyTaskQueueRequest,
    ShutdownWorkerRequest,
    PollActivityTaskQueueRequest waits |_| true,
    RecordActivityTaskHeartbeatByIdRequest,
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskCanceledByIdRequest,
    DescribeTaskQueueRequest,
    RecordWorkerHeartbeatRequest,
    ListWorkersRequest,
    CountWorkersRequest,
    DescribeWorkerRequest,
    UpdateWorkflowExecutionRequest waits |_| true,
    PollWorkflowExecutionUpdateRequest waits |_| true,
    ExecuteMultiOperationRequest waits |_| true,
}

tokened! {
    RespondWorkflowTaskCompletedRequest, RespondWorkflowTaskFailedRequest, RespondQueryTaskCompletedRequest,
    RecordActivityTaskHeartbeatRequest, RespondActivityTaskCompletedRequest, RespondActivityTaskFailedRequest,
    RespondActivityTaskCanceledRequest,
}
