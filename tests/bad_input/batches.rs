//! Rows about batch jobs: what a request has to say, kinds that are not served, jobs that are none, and their task queue.

use everlog_temporal_api::common::{Execution, ResetOptions, WorkflowExecution};
use everlog_temporal_api::temporal::api::batch::v1::{
    BatchOperationReset, BatchOperationSignal, BatchOperationTermination,
};
use everlog_temporal_api::workflow::PostResetOperation;
use everlog_temporal_api::workflow::post_reset_operation::{UpdateWorkflowOptions, Variant};
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::{
    DescribeBatchOperationRequest, PollActivityTaskQueueRequest, PollWorkflowTaskQueueRequest,
    StartBatchOperationRequest, StopBatchOperationRequest,
};
use tonic::Code;

use crate::row::{Action, Expected, Row, invalid, refused, row};
use crate::world::{BYSTANDER, CLOSED, execution, queue, request, text};

const REQUIRED: &str = "must provide required parameters: BatchType/Reason/Namespace/Query/Executions";
const EXCLUSIVE: &str = "visibility query, executions, and target executions are mutually exclusive";
const RESERVED: &str = "task queue name cannot start with reserved prefix /_sys/";
const HIDDEN_THERE: &str = "a Temporal server 1.29 answers UNKNOWN and hides the text";
const STRICTER: &str = "what would fail at each run is refused at the start";
const OTHERS_RUN: &str = "a Temporal server takes any run for a job, and stops it";

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(79, "a batch without an operation", start(|r| r.operation = None), invalid(REQUIRED)),
        row(79, "a batch without a reason", start(|r| r.reason.clear()), invalid(REQUIRED)),
        row(79, "a batch without runs", start(|r| r.executions.clear()), invalid(REQUIRED)),
        row(79, "a batch without an id", start(|r| r.job_id.clear()), invalid("JobId is not set on request.")),
        row(79, "a batch without a namespace", start(|r| r.namespace.clear()), invalid("Namespace not set on request.").unlike("there it is: Namespace is empty.")),
        row(79, "a batch in a namespace that is not there", start(|r| r.namespace = "nowhere".into()), refused(Code::NotFound, "Namespace nowhere is not found.")),
        row(79, "a batch with a query and runs", start(|r| r.visibility_query = "WorkflowType = 'Order'".into()), invalid(EXCLUSIVE).unlike(HIDDEN_THERE)),
        row(79, "a batch that names runs in two ways", start(|r| r.target_executions.push(Execution::default())), invalid(EXCLUSIVE).unlike(HIDDEN_THERE)),
        row(79, "a batch with an id > 1000 bytes", start(|r| r.job_id = text(1_001)), invalid("JobId length exceeds limit.").unlike("there it is called a Workflow Id")),
        row(79, "a batch of a signal without a name", start(|r| r.operation = Some(Operation::SignalOperation(BatchOperationSignal::default()))), invalid("must provide signal name").unlike(HIDDEN_THERE)),
        row(79, "a batch of a reset to nothing", reset(|r| r.options = None), invalid("unknown batch reset type Unspecified")),
        row(79, "a batch of a reset of an unknown type", reset(|r| (r.options, r.reset_type) = (None, 9)), invalid("unknown batch reset type 9")),
        row(79, "a batch of a reset without a target", reset(|r| r.options = Some(ResetOptions::default())), invalid("batch reset missing target")),
        row(79, "a batch of a reset with an unknown reapply type", reset(reapply_nothing_known), invalid("unknown reset type").unlike(STRICTER)),
        row(79, "a batch of a reset with an operation that is none", reset(|r| (r.reset_type, r.post_reset_operations) = (1, vec![PostResetOperation::default()])), invalid("unsupported post reset operation: <nil>").unlike(STRICTER)),
        row(79, "a batch of a reset to other options", reset(reapply_by_other_options), invalid("UpdateMask is required").unlike(STRICTER)),
        row(79, "a batch of a run without an id", start(|r| r.executions = vec![WorkflowExecution::default()]), invalid("WorkflowId is not set on request.").unlike(STRICTER)),
        row(79, "a batch of a run with a run id that is no UUID", start(|r| r.executions[0].run_id = "mine".into()), invalid("Invalid RunId.").unlike(STRICTER)),
        row(79, "a batch > 2 MiB", start(|r| r.executions = vec![execution(&text(1_000)); 2_200]), invalid("Blob data size exceeds limit.")),
        row(79, "a batch of other options", start(|r| r.operation = Some(Operation::UpdateWorkflowOptionsOperation(Default::default()))), invalid("UpdateMask is required").unlike(HIDDEN_THERE)),
        row(79, "a batch of unpaused activities", start(|r| r.operation = Some(Operation::UnpauseActivitiesOperation(Default::default()))), invalid("must provide ActivityType or MatchAll").unlike("there it is: activity filter must be set")),
        row(79, "a batch of reset activities", start(|r| r.operation = Some(Operation::ResetActivitiesOperation(Default::default()))), invalid("must provide ActivityType or MatchAll")),
        row(79, "a batch of other options of activities", start(|r| r.operation = Some(Operation::UpdateActivityOptionsOperation(Default::default()))), invalid("must provide ActivityType or MatchAll").unlike("there a restoration is named as another way")),
        row(79, "a batch of canceled activities", start(|r| r.operation = Some(Operation::CancelActivitiesOperation(Default::default()))), unserved("cancel_activities_operation")),
        row(79, "a batch of terminated activities", start(|r| r.operation = Some(Operation::TerminateActivitiesOperation(Default::default()))), unserved("terminate_activities_operation")),
        row(79, "a batch of deleted activities", start(|r| r.operation = Some(Operation::DeleteActivitiesOperation(Default::default()))), unserved("delete_activities_operation")),
        row(79, "a batch of standalone activities", start(|r| { r.executions.clear(); r.target_executions = vec![Execution { r#type: 2, ..Execution::default() }]; }), unserved("target_executions")),
        row(79, "a batch by the id of an open run", start(|r| r.job_id = BYSTANDER.into()), refused(Code::AlreadyExists, "").with("WorkflowExecutionAlreadyStartedFailure")),
        row(79, "a batch by the id of a closed run", start(|r| r.job_id = CLOSED.into()), refused(Code::AlreadyExists, "").with("WorkflowExecutionAlreadyStartedFailure")),
        row(79, "describe a batch without an id", describe(""), invalid("JobId is not set on request.")),
        row(79, "describe a batch that is not there", describe("nobody's"), refused(Code::NotFound, "workflow not found for ID: nobody's")),
        row(79, "describe a run as a batch", describe(BYSTANDER), refused(Code::NotFound, "workflow not found for ID: bystander").unlike(OTHERS_RUN)),
        row(79, "stop a batch without an id", stop(|r| r.job_id.clear()), invalid("JobId is not set on request.")),
        row(79, "stop a batch without a reason", stop(|r| r.reason.clear()), invalid("Reason is not set on request.")),
        row(79, "stop a batch that is not there", stop(|r| r.job_id = "nobody's".into()), refused(Code::NotFound, "workflow not found for ID: nobody's")),
        row(79, "stop a run as a batch", stop(|_| {}), refused(Code::NotFound, "workflow not found for ID: bystander").unlike(OTHERS_RUN)),
        row(79, "poll for the jobs of the server", request(|world| PollWorkflowTaskQueueRequest { namespace: world.namespace.clone(), task_queue: Some(queue("/_sys/batch")), ..PollWorkflowTaskQueueRequest::default() }), invalid(RESERVED)),
        row(79, "poll for the activities of jobs", request(|world| PollActivityTaskQueueRequest { namespace: world.namespace.clone(), task_queue: Some(queue("/_sys/batch")), ..PollActivityTaskQueueRequest::default() }), invalid(RESERVED)),
        row(79, "start a run among the jobs of the server", request(|world| { let mut start = world.start_of(&world.fresh("job")); start.task_queue = Some(queue("/_sys/batch")); start }), invalid(RESERVED)),
    ]
}

/// A batch that would do nothing to anybody.
fn start(edit: fn(&mut StartBatchOperationRequest)) -> Action {
    request(move |world| {
        let mut start = StartBatchOperationRequest {
            namespace: world.namespace.clone(),
            job_id: world.fresh("job"),
            reason: "bad input".into(),
            executions: vec![execution("unknown")],
            operation: Some(Operation::TerminationOperation(BatchOperationTermination::default())),
            ..StartBatchOperationRequest::default()
        };
        edit(&mut start);
        start
    })
}

fn reset(edit: fn(&mut BatchOperationReset)) -> Action {
    request(move |world| {
        let mut reset = BatchOperationReset::default();
        edit(&mut reset);
        StartBatchOperationRequest {
            namespace: world.namespace.clone(),
            job_id: world.fresh("job"),
            reason: "bad input".into(),
            executions: vec![execution("unknown")],
            operation: Some(Operation::ResetOperation(reset)),
            ..StartBatchOperationRequest::default()
        }
    })
}

fn reapply_nothing_known(reset: &mut BatchOperationReset) {
    (reset.reset_type, reset.reset_reapply_type) = (1, 9);
}

fn reapply_by_other_options(reset: &mut BatchOperationReset) {
    let options = Variant::UpdateWorkflowOptions(UpdateWorkflowOptions::default());
    reset.reset_type = 1;
    reset.post_reset_operations = vec![PostResetOperation { variant: Some(options) }];
}

fn unserved(feature: &'static str) -> Expected {
    refused(Code::Unimplemented, feature).until(feature)
}

fn describe(job_id: &'static str) -> Action {
    request(move |world| DescribeBatchOperationRequest {
        namespace: world.namespace.clone(),
        job_id: job_id.into(),
    })
}

/// Stops what is no job.
fn stop(edit: fn(&mut StopBatchOperationRequest)) -> Action {
    request(move |world| {
        let mut stop = StopBatchOperationRequest {
            namespace: world.namespace.clone(),
            job_id: BYSTANDER.into(),
            reason: "enough".into(),
            identity: "tests".into(),
        };
        edit(&mut stop);
        stop
    })
}
