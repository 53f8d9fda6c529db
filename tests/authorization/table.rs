//! What each RPC needs, as docs/security.md has it: Temporal's table, what a worker may do besides, and what the Web UI asks on each page.

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    ReaderSomewhere,
    SystemReader,
    SystemAdmin,
    Reader,
    ReaderOrWorker,
    Writer,
    WriterOrWorker,
    Admin,
    /// Any grant. What is not served says so to those who are known.
    Known,
}

const NOTHING: &[&str] = &["GetSystemInfo"];
const KNOWN: &[&str] = &["GetClusterInfo"];
const READER_SOMEWHERE: &[&str] = &["ListNamespaces"];
const SYSTEM_READER: &[&str] = &["GetSearchAttributes"];
const SYSTEM_ADMIN: &[&str] = &["ListClusters"];
const READER_OR_WORKER: &[&str] = &["DescribeNamespace", "GetWorkflowExecutionHistory"];
const READER: &[&str] = &[
    "GetWorkflowExecutionHistoryReverse",
    "DescribeWorkflowExecution",
    "QueryWorkflow",
    "PollWorkflowExecutionUpdate",
    "ListWorkflowExecutions",
    "ScanWorkflowExecutions",
    "CountWorkflowExecutions",
    "ListOpenWorkflowExecutions",
    "ListClosedWorkflowExecutions",
    "ListArchivedWorkflowExecutions",
    "DescribeTaskQueue",
    "ListTaskQueuePartitions",
    "DescribeSchedule",
    "ListSchedules",
    "CountSchedules",
    "ListScheduleMatchingTimes",
    "DescribeBatchOperation",
    "ListBatchOperations",
    "GetWorkerBuildIdCompatibility",
    "GetWorkerTaskReachability",
    "ListWorkers",
    "CountWorkers",
    "DescribeWorker",
    "ListSearchAttributes",
];
const WRITER_OR_WORKER: &[&str] = &[
    "PollWorkflowTaskQueue",
    "PollActivityTaskQueue",
    "RespondWorkflowTaskCompleted",
    "RespondWorkflowTaskFailed",
    "RecordActivityTaskHeartbeat",
    "RecordActivityTaskHeartbeatById",
    "RespondActivityTaskCompleted",
    "RespondActivityTaskCompletedById",
    "RespondActivityTaskFailed",
    "RespondActivityTaskFailedById",
    "RespondActivityTaskCanceled",
    "RespondActivityTaskCanceledById",
    "RespondQueryTaskCompleted",
    "ResetStickyTaskQueue",
    "ShutdownWorker",
    "RecordWorkerHeartbeat",
];
const ADMIN: &[&str] = &[
    "RegisterNamespace",
    "UpdateNamespace",
    "DeprecateNamespace",
    "DeleteNamespace",
    "AddSearchAttributes",
    "RemoveSearchAttributes",
];
const WRITER: &[&str] = &[
    "StartWorkflowExecution",
    "ExecuteMultiOperation",
    "RequestCancelWorkflowExecution",
    "SignalWorkflowExecution",
    "SignalWithStartWorkflowExecution",
    "ResetWorkflowExecution",
    "TerminateWorkflowExecution",
    "DeleteWorkflowExecution",
    "UpdateTaskQueueConfig",
    "UpdateWorkerBuildIdCompatibility",
    "CreateSchedule",
    "UpdateSchedule",
    "PatchSchedule",
    "DeleteSchedule",
    "UpdateWorkflowExecution",
    "StartBatchOperation",
    "StopBatchOperation",
    "UpdateActivityOptions",
    "PauseActivity",
    "UnpauseActivity",
    "ResetActivity",
    "PauseActivityExecution",
    "UnpauseActivityExecution",
    "ResetActivityExecution",
    "UpdateActivityExecutionOptions",
    "UpdateWorkflowExecutionOptions",
    "PauseWorkflowExecution",
    "UnpauseWorkflowExecution",
];

/// What an RPC needs, by its name.
pub fn needs(rpc: &str) -> Needs {
    let table = [
        (Needs::Nothing, NOTHING),
        (Needs::Known, KNOWN),
        (Needs::ReaderSomewhere, READER_SOMEWHERE),
        (Needs::SystemReader, SYSTEM_READER),
        (Needs::SystemAdmin, SYSTEM_ADMIN),
        (Needs::Reader, READER),
        (Needs::ReaderOrWorker, READER_OR_WORKER),
        (Needs::WriterOrWorker, WRITER_OR_WORKER),
        (Needs::Writer, WRITER),
        (Needs::Admin, ADMIN),
    ];
    let found = table.iter().find(|(_, rpcs)| rpcs.contains(&rpc));
    found.map_or(Needs::Known, |(needs, _)| *needs)
}
