//! A job: what StartBatchOperation asks for, how it is checked, and how it is kept in the input of the job's run.

use bytes::Bytes;
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::payload::{Payload, Payloads};
use everlog_temporal_api::common::reset_options::Target;
use everlog_temporal_api::enums::{BatchOperationType, ExecutionType, ResetType};
use everlog_temporal_api::temporal::api::batch::v1::BatchOperationReset;
use everlog_temporal_api::workflowservice::StartBatchOperationRequest;
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use prost::{Message, Name};
use tonic::Status;

use crate::batch::progress::BatchItem;
use crate::codec::status::invalid;

/// The task queue of jobs. No client may name it.
pub(crate) const QUEUE: &str = "/_sys/batch";
/// The type of their runs, as on Temporal's server.
pub(crate) const WORKFLOW_TYPE: &str = "temporal-sys-batch-workflow-protobuf";
/// The type of the activity that does the work, as on Temporal's server.
pub(crate) const ACTIVITY_TYPE: &str = "BatchActivityWithProtobuf";
/// The value of TemporalNamespaceDivision by which lists of ordinary runs leave jobs out.
pub(crate) const DIVISION: &str = "TemporalBatcher";

/// The key of the kind in the memo of a job, as on Temporal's server.
pub(crate) const KIND_MEMO: &str = "batch_operation_type";

/// A kind of operation: its name in a memo, and its number in the API. Temporal's server 1.29.1 has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchKind {
    pub name: &'static str,
    pub number: BatchOperationType,
    /// Closed runs are left out of what a query gives.
    only_running: bool,
}

const fn kind(name: &'static str, number: BatchOperationType, only_running: bool) -> BatchKind {
    BatchKind { name, number, only_running }
}

const TERMINATE: BatchKind = kind("terminate", BatchOperationType::Terminate, true);
const CANCEL: BatchKind = kind("cancel", BatchOperationType::Cancel, true);
const SIGNAL: BatchKind = kind("signal", BatchOperationType::Signal, true);
const DELETE: BatchKind = kind("delete", BatchOperationType::Delete, false);
const RESET: BatchKind = kind("reset", BatchOperationType::Reset, false);
const UPDATE_OPTIONS: BatchKind = kind("update_options", BatchOperationType::UpdateExecutionOptions, true);
const UNPAUSE_ACTIVITIES: BatchKind = kind("unpause_activities", BatchOperationType::UnpauseActivity, true);
const RESET_ACTIVITIES: BatchKind = kind("reset_activities", BatchOperationType::ResetActivity, true);
const UPDATE_ACTIVITY_OPTIONS: BatchKind =
    kind("update_activity_options", BatchOperationType::UpdateActivityOptions, true);

const KINDS: [BatchKind; 9] = [
    TERMINATE,
    CANCEL,
    SIGNAL,
    DELETE,
    RESET,
    UPDATE_OPTIONS,
    UNPAUSE_ACTIVITIES,
    RESET_ACTIVITIES,
    UPDATE_ACTIVITY_OPTIONS,
];

/// The kind in an encoded memo.
pub(crate) fn kind_in(memo: Option<&Bytes>) -> Option<BatchKind> {
    let memo = Fields::decode(memo?.clone()).ok()?;
    let entry = memo.entries.into_iter().find(|entry| entry.key == KIND_MEMO)?;
    let name: String = serde_json::from_slice(&Payload::decode(entry.value).ok()?.data).ok()?;
    KINDS.into_iter().find(|kind| kind.name == name)
}

/// The query that finds jobs.
pub(crate) fn jobs() -> String {
    format!("TemporalNamespaceDivision = '{DIVISION}' AND WorkflowType = '{WORKFLOW_TYPE}'")
}

/// The kind of an operation.
///
/// # Errors
/// UNIMPLEMENTED names a kind that is not served.
pub(crate) fn kind_of(operation: &Operation) -> Result<BatchKind, Status> {
    let unserved = |field: &str| Err(Status::unimplemented(format!("{field} is not supported yet")));
    match operation {
        Operation::TerminationOperation(_) => Ok(TERMINATE),
        Operation::SignalOperation(_) => Ok(SIGNAL),
        Operation::CancellationOperation(_) => Ok(CANCEL),
        Operation::DeletionOperation(_) => Ok(DELETE),
        Operation::ResetOperation(_) => Ok(RESET),
        Operation::UpdateWorkflowOptionsOperation(_) => Ok(UPDATE_OPTIONS),
        Operation::UnpauseActivitiesOperation(_) => Ok(UNPAUSE_ACTIVITIES),
        Operation::ResetActivitiesOperation(_) => Ok(RESET_ACTIVITIES),
        Operation::UpdateActivityOptionsOperation(_) => Ok(UPDATE_ACTIVITY_OPTIONS),
        Operation::CancelActivitiesOperation(_) => unserved("cancel_activities_operation"),
        Operation::TerminateActivitiesOperation(_) => unserved("terminate_activities_operation"),
        Operation::DeleteActivitiesOperation(_) => unserved("delete_activities_operation"),
    }
}

/// Who asks for the operation, as it says itself.
pub(crate) fn identity(operation: &Operation) -> &str {
    match operation {
        Operation::TerminationOperation(operation) => &operation.identity,
        Operation::SignalOperation(operation) => &operation.identity,
        Operation::CancellationOperation(operation) => &operation.identity,
        Operation::DeletionOperation(operation) => &operation.identity,
        Operation::ResetOperation(operation) => &operation.identity,
        Operation::UpdateWorkflowOptionsOperation(operation) => &operation.identity,
        Operation::UnpauseActivitiesOperation(operation) => &operation.identity,
        Operation::ResetActivitiesOperation(operation) => &operation.identity,
        Operation::UpdateActivityOptionsOperation(operation) => &operation.identity,
        Operation::CancelActivitiesOperation(operation) => &operation.identity,
        Operation::TerminateActivitiesOperation(operation) => &operation.identity,
        Operation::DeleteActivitiesOperation(_) => "",
    }
}

/// Checks what a request says by itself, in the order and the words of Temporal's server.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(request: &StartBatchOperationRequest) -> Result<BatchKind, Status> {
    let has_targets = !request.executions.is_empty() || !request.target_executions.is_empty();
    let has_query = !request.visibility_query.is_empty();
    let required = "must provide required parameters: BatchType/Reason/Namespace/Query/Executions";
    let Some(operation) = request.operation.as_ref() else { return Err(invalid(required)) };
    if request.reason.is_empty() || !(has_query || has_targets) {
        return Err(invalid(required));
    }
    if request.job_id.is_empty() {
        return Err(invalid("JobId is not set on request."));
    }
    let given = [has_query, !request.executions.is_empty(), !request.target_executions.is_empty()];
    if given.into_iter().filter(|is_given| *is_given).count() > 1 {
        return Err(invalid("visibility query, executions, and target executions are mutually exclusive"));
    }
    let kind = kind_of(operation)?;
    match operation {
        Operation::SignalOperation(signal) if signal.signal.is_empty() => {
            return Err(invalid("must provide signal name"));
        }
        Operation::ResetOperation(reset) => check_reset(reset)?,
        Operation::UnpauseActivitiesOperation(given) => check_activities(given.activity.is_some())?,
        Operation::ResetActivitiesOperation(given) => check_activities(given.activity.is_some())?,
        Operation::UpdateActivityOptionsOperation(given) => check_activities(given.activity.is_some())?,
        _others_say_nothing_that_can_be_wrong => {}
    }
    let of_others = |execution: i32| {
        let workflow = [ExecutionType::Unspecified, ExecutionType::Workflow];
        !workflow.map(i32::from).contains(&execution)
    };
    if request.target_executions.iter().any(|execution| of_others(execution.r#type)) {
        return Err(Status::unimplemented("target_executions other than workflows are not supported yet"));
    }
    Ok(kind)
}

fn check_activities(are_named: bool) -> Result<(), Status> {
    are_named.then_some(()).ok_or_else(|| invalid("must provide ActivityType or MatchAll"))
}

fn check_reset(reset: &BatchOperationReset) -> Result<(), Status> {
    if let Some(options) = &reset.options {
        return options.target.as_ref().map(drop).ok_or_else(|| invalid("batch reset missing target"));
    }
    match ResetType::try_from(reset.reset_type) {
        Ok(ResetType::FirstWorkflowTask | ResetType::LastWorkflowTask) => Ok(()),
        Ok(ResetType::Unspecified) => Err(invalid("unknown batch reset type Unspecified")),
        Err(_unknown) => Err(invalid(format!("unknown batch reset type {}", reset.reset_type))),
    }
}

/// Where a reset goes back to. A target replaces the deprecated type.
pub(crate) fn reset_target(reset: &BatchOperationReset) -> Option<Target> {
    match &reset.options {
        Some(options) => options.target.clone(),
        None => match ResetType::try_from(reset.reset_type) {
            Ok(ResetType::FirstWorkflowTask) => Some(Target::FirstWorkflowTask(())),
            Ok(ResetType::LastWorkflowTask) => Some(Target::LastWorkflowTask(())),
            Ok(ResetType::Unspecified) | Err(_) => None,
        },
    }
}

/// The query by which the job's runs are found: what only open runs can do is not tried at closed ones. A comment at the end of
/// the caller's query ends with its line.
pub(crate) fn query(request: &StartBatchOperationRequest, kind: BatchKind) -> String {
    let query = &request.visibility_query;
    match kind.only_running {
        true => format!("({query}\n) AND (ExecutionStatus IN ('Running', 'Paused'))"),
        false => format!("({query}\n)"),
    }
}

/// The runs that a request names, in its order.
pub(crate) fn executions(request: &StartBatchOperationRequest) -> Vec<BatchItem> {
    let named = request.executions.iter().map(|named| (&named.workflow_id, &named.run_id));
    let targets = request.target_executions.iter().map(|named| (&named.business_id, &named.run_id));
    let numbered = named.chain(targets).zip(0_u64..);
    let item = |((workflow_id, run_id), number): ((&String, &String), u64)| BatchItem {
        workflow_id: workflow_id.clone(),
        run_id: run_id.clone(),
        number,
    };
    numbered.map(item).collect()
}

/// The input of the job's run, and of its activity: the request.
pub(crate) fn input(request: &StartBatchOperationRequest) -> Bytes {
    let said = |key: &str, value: String| MapEntry { key: key.into(), value: value.into_bytes().into() };
    let metadata = vec![
        said("encoding", "binary/protobuf".into()),
        said("messageType", StartBatchOperationRequest::full_name()),
    ];
    let payload = Payload { metadata, data: request.encode_to_vec().into() };
    Payloads { payloads: vec![payload] }.encode_to_vec().into()
}

/// The request in such an input; none where there is another one.
pub(crate) fn read(input: Option<&Bytes>) -> Option<StartBatchOperationRequest> {
    let payloads = Payloads::decode(input?.clone()).ok()?;
    let request = StartBatchOperationRequest::decode(payloads.payloads.first()?.data.clone()).ok()?;
    check(&request).is_ok().then_some(request)
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::common::{Execution, ResetOptions, WorkflowExecution};
    use everlog_temporal_api::temporal::api::batch::v1::{
        BatchOperationDeleteActivities, BatchOperationSignal, BatchOperationTermination,
        BatchOperationUnpauseActivities,
    };
    use tonic::Code;

    use super::*;
    use crate::batch::progress::json_payload;

    fn job() -> StartBatchOperationRequest {
        let operation = BatchOperationTermination { identity: "operator".into(), ..Default::default() };
        StartBatchOperationRequest {
            namespace: "default".into(),
            job_id: "job".into(),
            reason: "a bad deployment".into(),
            visibility_query: "WorkflowType = 'Order'".into(),
            operation: Some(Operation::TerminationOperation(operation)),
            ..Default::default()
        }
    }

    fn refusal(change: impl FnOnce(&mut StartBatchOperationRequest)) -> (Code, String) {
        let mut request = job();
        change(&mut request);
        let status = check(&request).expect_err("it has to be refused");
        (status.code(), status.message().to_owned())
    }

    fn reset(operation: BatchOperationReset) -> Option<Operation> {
        Some(Operation::ResetOperation(operation))
    }

    #[test]
    fn the_first_fault_in_the_order_of_a_temporal_server_is_named() {
        let required = "must provide required parameters: BatchType/Reason/Namespace/Query/Executions";
        let run = || WorkflowExecution { workflow_id: "w".into(), run_id: String::new() };
        let message = |change: fn(&mut StartBatchOperationRequest)| refusal(change).1;
        assert_eq!(message(|r| r.operation = None), required);
        assert_eq!(message(|r| r.reason.clear()), required);
        assert_eq!(message(|r| r.visibility_query.clear()), required);
        assert_eq!(message(|r| (r.reason.clear(), r.job_id.clear()).0), required);
        assert_eq!(message(|r| r.job_id.clear()), "JobId is not set on request.");
        let both = "visibility query, executions, and target executions are mutually exclusive";
        assert_eq!(refusal(|r| r.executions.push(run())).1, both);
        let twice = refusal(|r| {
            r.visibility_query.clear();
            r.executions.push(run());
            r.target_executions.push(Execution::default());
        });
        assert_eq!(twice.1, both);
        let signal = BatchOperationSignal::default();
        let nameless = refusal(|r| r.operation = Some(Operation::SignalOperation(signal)));
        assert_eq!(nameless, (Code::InvalidArgument, "must provide signal name".into()));
        assert_eq!(check(&job()).map_err(|status| status.code()), Ok(TERMINATE));
    }

    #[test]
    fn a_reset_names_its_target() {
        let message = |operation| refusal(|r| r.operation = reset(operation)).1;
        let of_type = |reset_type| BatchOperationReset { reset_type, ..Default::default() };
        let to = |target| {
            let options = Some(ResetOptions { target, ..Default::default() });
            BatchOperationReset { options, reset_type: 2, ..Default::default() }
        };
        assert_eq!(message(of_type(0)), "unknown batch reset type Unspecified");
        assert_eq!(message(of_type(9)), "unknown batch reset type 9");
        assert_eq!(message(to(None)), "batch reset missing target");
        assert_eq!(reset_target(&of_type(1)), Some(Target::FirstWorkflowTask(())));
        assert_eq!(reset_target(&of_type(2)), Some(Target::LastWorkflowTask(())));
        assert_eq!(reset_target(&to(Some(Target::WorkflowTaskId(4)))), Some(Target::WorkflowTaskId(4)));
    }

    #[test]
    fn a_kind_that_is_not_served_is_named() {
        let deletion = BatchOperationDeleteActivities::default();
        let refused = refusal(|r| r.operation = Some(Operation::DeleteActivitiesOperation(deletion)));
        let text = "delete_activities_operation is not supported yet";
        assert_eq!(refused, (Code::Unimplemented, text.into()));
        let unnamed = BatchOperationUnpauseActivities::default();
        let refused = refusal(|r| r.operation = Some(Operation::UnpauseActivitiesOperation(unnamed)));
        assert_eq!(refused, (Code::InvalidArgument, "must provide ActivityType or MatchAll".into()));
        let refused = refusal(|r| {
            r.visibility_query.clear();
            r.target_executions.push(Execution { r#type: 2, ..Default::default() });
        });
        assert_eq!(refused.0, Code::Unimplemented);
    }

    #[test]
    fn a_query_leaves_closed_runs_out_where_only_open_ones_can_do_it() {
        let request = StartBatchOperationRequest { visibility_query: "A = 1 -- why".into(), ..job() };
        assert_eq!(
            query(&request, TERMINATE),
            "(A = 1 -- why\n) AND (ExecutionStatus IN ('Running', 'Paused'))"
        );
        assert_eq!(query(&request, RESET), "(A = 1 -- why\n)");
    }

    #[test]
    fn the_input_of_a_job_is_its_request_and_no_other_input_is_taken_for_one() {
        let request = job();
        assert_eq!(read(Some(&input(&request))), Some(request.clone()));
        assert_eq!(read(None), None);
        assert_eq!(read(Some(&Bytes::from_static(b"\xff"))), None);
        assert_eq!(read(Some(&input(&StartBatchOperationRequest { operation: None, ..request }))), None);
    }

    #[test]
    fn the_kind_is_read_from_a_memo() {
        let memo = |name: &str| {
            let entry = MapEntry { key: KIND_MEMO.into(), value: json_payload(&name.into()) };
            Bytes::from(Fields { entries: vec![entry] }.encode_to_vec())
        };
        assert_eq!(kind_in(Some(&memo("reset"))), Some(RESET));
        assert_eq!(kind_in(Some(&memo("juggle"))), None);
        assert_eq!(kind_in(None), None);
    }

    #[test]
    fn named_runs_keep_their_order_and_each_naming_is_one_of_its_own() {
        let run =
            |workflow_id: &str| WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() };
        let request = StartBatchOperationRequest { executions: vec![run("b"), run("a"), run("b")], ..job() };
        let found = executions(&request);
        let found: Vec<_> = found.iter().map(|item| (item.workflow_id.as_str(), item.number)).collect();
        assert_eq!(found, [("b", 0), ("a", 1), ("b", 2)]);
    }
}
