//! Why an RPC of the API is not served, for docs/api.md. One that is served stands in the table of RPCs.

/// The reasons, each with the RPCs that it holds for.
const ABSENT: &[(&str, &[&str])] = &[
    (
        "superseded by worker deployments; SDKs call it no more",
        &[
            "DescribeDeployment",
            "ListDeployments",
            "GetDeploymentReachability",
            "GetCurrentDeployment",
            "SetCurrentDeployment",
        ],
    ),
    (
        "there are no worker deployments: tasks go to any worker of their queue",
        &[
            "DescribeWorkerDeploymentVersion",
            "SetWorkerDeploymentCurrentVersion",
            "DescribeWorkerDeployment",
            "DeleteWorkerDeployment",
            "DeleteWorkerDeploymentVersion",
            "SetWorkerDeploymentRampingVersion",
            "ListWorkerDeployments",
            "CreateWorkerDeployment",
            "CreateWorkerDeploymentVersion",
            "UpdateWorkerDeploymentVersionComputeConfig",
            "ValidateWorkerDeploymentVersionComputeConfig",
            "UpdateWorkerDeploymentVersionMetadata",
            "SetWorkerDeploymentManager",
        ],
    ),
    (
        "superseded by worker deployments; a Temporal server refuses it by default",
        &["UpdateWorkerVersioningRules", "GetWorkerVersioningRules"],
    ),
    (
        "there is no Nexus: no endpoints, no operations",
        &[
            "PollNexusTaskQueue",
            "RespondNexusTaskCompleted",
            "RespondNexusTaskFailed",
            "StartNexusOperationExecution",
            "DescribeNexusOperationExecution",
            "PollNexusOperationExecution",
            "ListNexusOperationExecutions",
            "CountNexusOperationExecutions",
            "RequestCancelNexusOperationExecution",
            "TerminateNexusOperationExecution",
            "DeleteNexusOperationExecution",
            "GetNexusEndpoint",
            "CreateNexusEndpoint",
            "UpdateNexusEndpoint",
            "DeleteNexusEndpoint",
            "ListNexusEndpoints",
        ],
    ),
    (
        "an activity belongs to a workflow",
        &[
            "StartActivityExecution",
            "DescribeActivityExecution",
            "PollActivityExecution",
            "ListActivityExecutions",
            "CountActivityExecutions",
            "RequestCancelActivityExecution",
            "TerminateActivityExecution",
            "DeleteActivityExecution",
        ],
    ),
    (
        "a Temporal server has it turned off by default",
        &[
            "CreateWorkflowRule",
            "DescribeWorkflowRule",
            "DeleteWorkflowRule",
            "ListWorkflowRules",
            "TriggerWorkflowRule",
        ],
    ),
    ("a worker is configured by its program", &["FetchWorkerConfig", "UpdateWorkerConfig"]),
    ("time is never skipped", &["PollWorkflowExecutionTimeSkipping"]),
    ("there is one cluster, and no replication", &["AddOrUpdateRemoteCluster", "RemoveRemoteCluster"]),
];

/// Why an RPC is not served; none if nothing is said of it.
pub(super) fn reason(name: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
}
