//! RespondWorkflowTaskCompleted and RespondWorkflowTaskFailed.

use std::sync::Arc;

use everlog_engine::Reply;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::reset_points::Version;
use everlog_engine::machine::workflow_task_completed::{Fault, OtherNamespace, ValidationFailure};
use everlog_engine::machine::{workflow_task, workflow_task_completed};
use everlog_engine::request::Request;
use everlog_partition::QueryAnswer;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::enums::QueryResultType;
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::taskqueue::StickyExecutionAttributes;
use everlog_temporal_api::workflowservice::{
    RespondWorkflowTaskCompletedRequest, RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest, RespondWorkflowTaskFailedResponse,
};
use tonic::Status;

use crate::codec::payload::stored_copy;
use crate::codec::status;
use crate::codec::update_messages;
use crate::codec::validation::{Checks, not_yet, span_ms};
use crate::codec::{failure, versioning};
use crate::handlers::workflow_task::accept;
use crate::namespaces::namespace::{Namespace, NamespaceRecord};
use crate::namespaces::search_attributes;
use crate::rpc::Rpc;
use crate::server::call::Call;
use crate::tasks::response;
use crate::tasks::token::{Subject, unreadable};

fn subject(call: &Call<'_>) -> Result<(WorkflowExecution, workflow_task::Token), Status> {
    match call.task()? {
        (execution, Subject::Workflow(token)) => Ok((execution, token)),
        (_, Subject::Activity(_) | Subject::Query(_)) => Err(unreadable()),
    }
}

pub(crate) async fn complete(
    call: &Call<'_>,
    request: RespondWorkflowTaskCompletedRequest,
) -> Result<RespondWorkflowTaskCompletedResponse, Status> {
    let (execution, token) = subject(call)?;
    let checks = call.checks();
    checks.length("Identity", &request.identity)?;
    checks.length("BinaryChecksum", &request.binary_checksum)?;
    let version = Version::read(request.worker_version_stamp.as_ref());
    checks.length("WorkerVersionStamp.BuildId", &version.build_id)?;
    refuse_later_features(&request)?;
    let said = versioning::reported(&checks, &request)?;
    let mut commands = compacted(request.commands);
    let keys_max = checks.settings.search_attributes_max;
    let others = other_namespaces(call, &commands)?;
    let own = &call.namespace.record;
    let mut findings = search_attributes::of_commands(own, &others, &mut commands, keys_max);
    // Where commands may go nowhere else, a caller that is judged is not told what else there is.
    if !call.gateway.is_guarded() || call.gateway.limits.cross_namespace_commands {
        findings.splice(..0, strangers(call, &commands));
    }
    let order = workflow_task_completed::Complete {
        token: Some(token),
        commands,
        findings,
        identity: request.identity,
        sticky: sticky(&checks, request.sticky_attributes)?,
        return_new_task: request.return_new_workflow_task,
        force_new_task: request.force_create_new_workflow_task,
        sdk_metadata: request.sdk_metadata,
        metering_metadata: request.metering_metadata,
        binary_checksum: request.binary_checksum,
        worker_version: request.worker_version_stamp,
        has_messages: !request.messages.is_empty(),
        messages: update_messages::from_worker(request.messages),
        takes_events_again: request
            .capabilities
            .is_some_and(|capabilities| capabilities.discard_speculative_workflow_task_with_events),
        versioning_behavior: said.behavior,
        deployment_name: said.deployment_name,
        deployment_version: said.version,
        namespace: own.name.clone(),
        other_namespaces: others.iter().map(|other| reference(&other.record)).collect(),
    };
    let answers = request.query_results.into_iter().map(|(id, result)| answer(&checks, id, result)).collect();
    let input = call.request_record(execution, Request::CompleteTask(Box::new(order)));
    let completion = call.gateway.router.complete_task(input, answers).await.map_err(status::of_failure)?;
    let reset_history_event_id = match completion.reply {
        Reply::Completed(completed) => completed.reset_event_id,
        Reply::Rejected(rejection) => return Err(status::of_rejection(rejection)),
        _other => return Err(status::unexpected_reply()),
    };
    let (workflow_task, receipt) = match completion.task {
        Some(task) => {
            let (response, receipt) = response::of_workflow_task(call.response_context(), task)?;
            (Some(response), receipt)
        }
        None => (None, None),
    };
    let (activity_tasks, receipts): (Vec<_>, Vec<_>) = completion
        .activities
        .into_iter()
        .map(|task| response::of_activity(call.response_context(), task))
        .unzip();
    receipts.into_iter().chain([receipt]).for_each(accept);
    Ok(RespondWorkflowTaskCompletedResponse { workflow_task, activity_tasks, reset_history_event_id })
}

/// Commands to namespaces that do not exist.
fn strangers<'a>(
    call: &'a Call<'_>,
    commands: &'a [Command],
) -> impl Iterator<Item = ValidationFailure> + 'a {
    let is_there = move |name: &str| call.gateway.namespaces.known(name).is_some();
    commands.iter().zip(0_u32..).filter_map(move |(command, place)| {
        let (name, _) = elsewhere(call, command)?;
        let fault = Fault::Namespace.into();
        (!is_there(name)).then(|| ValidationFailure { command: place, reason: name.to_owned(), fault })
    })
}

/// The other namespace that a command names, and what the caller of that call there would have made.
fn elsewhere<'a>(call: &Call<'_>, command: &'a Command) -> Option<(&'a str, Rpc)> {
    let (name, rpc) = match command.order.as_ref()? {
        CommandAttributes::StartChild(start) => (&start.namespace, Rpc::StartWorkflowExecution),
        CommandAttributes::SignalExternal(signal) => (&signal.namespace, Rpc::SignalWorkflowExecution),
        CommandAttributes::RequestCancelExternal(cancel) => {
            (&cancel.namespace, Rpc::RequestCancelWorkflowExecution)
        }
        _to_itself => return None,
    };
    let is_elsewhere = !name.is_empty() && *name != call.namespace.record.name;
    is_elsewhere.then_some((name.as_str(), rpc))
}

/// The other namespaces that the commands go to and that are there, where the settings allow it. The caller is judged in each, as
/// if it made the call itself.
fn other_namespaces(call: &Call<'_>, commands: &[Command]) -> Result<Vec<Arc<Namespace>>, Status> {
    if !call.gateway.limits.cross_namespace_commands {
        return Ok(Vec::new());
    }
    let mut found: Vec<Arc<Namespace>> = Vec::new();
    for (name, rpc) in commands.iter().filter_map(|command| elsewhere(call, command)) {
        call.may_call(rpc, name)?;
        let is_new = !found.iter().any(|other| other.record.name == name);
        if let Some(other) = is_new.then(|| call.gateway.namespaces.find(name, usize::MAX).ok()).flatten() {
            found.push(other);
        }
    }
    Ok(found)
}

fn reference(record: &NamespaceRecord) -> OtherNamespace {
    let NamespaceRecord { name, id, retention_ms, .. } = record;
    OtherNamespace { name: name.clone(), id: id.clone(), retention_ms: *retention_ms }
}

fn refuse_later_features(request: &RespondWorkflowTaskCompletedRequest) -> Result<(), Status> {
    not_yet("page_number", request.page_number != 0)?;
    not_yet("intermediate_page", request.intermediate_page)
}

/// Copies what a run stores, so that it does not keep the request's buffer in memory.
fn compacted(mut commands: Vec<Command>) -> Vec<Command> {
    for order in commands.iter_mut().filter_map(|command| command.order.as_mut()) {
        match order {
            CommandAttributes::UpsertSearchAttributes(upsert) => {
                upsert.search_attributes = stored_copy(upsert.search_attributes.take());
            }
            CommandAttributes::ModifyProperties(modify) => {
                modify.upserted_memo = stored_copy(modify.upserted_memo.take())
            }
            CommandAttributes::StartChild(start) => {
                start.memo = stored_copy(start.memo.take());
                start.search_attributes = stored_copy(start.search_attributes.take());
            }
            CommandAttributes::ContinueAsNew(next) => {
                next.memo = stored_copy(next.memo.take());
                next.search_attributes = stored_copy(next.search_attributes.take());
            }
            _kept_nowhere => {}
        }
    }
    commands
}

fn sticky(
    checks: &Checks<'_>,
    given: Option<StickyExecutionAttributes>,
) -> Result<Option<workflow_task::Sticky>, Status> {
    let Some(StickyExecutionAttributes { worker_task_queue: Some(queue), schedule_to_start_timeout }) = given
    else {
        return Ok(None);
    };
    if queue.name.is_empty() {
        return Ok(None);
    }
    let schedule_to_start_ms =
        match span_ms("StickyAttributes.ScheduleToStartTimeout", schedule_to_start_timeout)? {
            0 => checks.limits.sticky_wait_ms,
            ms => ms,
        };
    Ok(Some(workflow_task::Sticky { queue: checks.task_queue(Some(queue))?.name, schedule_to_start_ms }))
}

/// A worker's query result. A result that is too large becomes a failure.
fn answer(checks: &Checks<'_>, query_id: String, result: WorkflowQueryResult) -> QueryAnswer {
    let answered = result.result_type == i32::from(QueryResultType::Answered);
    bounded(
        checks,
        QueryAnswer {
            query_id,
            succeeded: answered,
            result: result.answer,
            error_message: result.error_message,
            failure: result.failure,
        },
    )
}

pub(crate) fn bounded(checks: &Checks<'_>, answer: QueryAnswer) -> QueryAnswer {
    if answer.succeeded && checks.is_oversize(answer.result.as_ref()) {
        let error_message = "Blob data size exceeds limit.".to_owned();
        let failure = Some(failure::server(&error_message, None));
        return QueryAnswer { succeeded: false, result: None, error_message, failure, ..answer };
    }
    answer
}

pub(crate) async fn fail(
    call: &Call<'_>,
    request: RespondWorkflowTaskFailedRequest,
) -> Result<RespondWorkflowTaskFailedResponse, Status> {
    let (execution, token) = subject(call)?;
    let checks = call.checks();
    checks.length("Identity", &request.identity)?;
    checks.length("BinaryChecksum", &request.binary_checksum)?;
    let failure = match request.failure {
        Some(failure) if checks.is_oversize(Some(&failure)) => {
            Some(failure::oversize(&failure, checks.limits))
        }
        failure => failure,
    };
    let order = workflow_task::Fail {
        token: Some(token),
        cause: request.cause,
        failure,
        identity: request.identity,
        binary_checksum: request.binary_checksum,
        worker_version: request.worker_version,
    };
    call.send(call.request_record(execution, Request::FailTask(order))).await?;
    Ok(RespondWorkflowTaskFailedResponse::default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use everlog_engine::Settings;
    use everlog_temporal_api::taskqueue::TaskQueue;
    use prost_types::Duration;
    use tonic::Code;

    use super::*;
    use crate::limits::Limits;

    fn with_checks<T>(test: impl FnOnce(Checks<'_>) -> T) -> T {
        let (limits, settings) = (Limits::default(), Settings::standard());
        test(Checks { limits: &limits, settings: &settings })
    }

    fn attributes(name: &str, timeout: Option<Duration>) -> Option<StickyExecutionAttributes> {
        let queue = TaskQueue { name: name.into(), ..TaskQueue::default() };
        Some(StickyExecutionAttributes { worker_task_queue: Some(queue), schedule_to_start_timeout: timeout })
    }

    #[test]
    fn a_sticky_queue_without_a_timeout_gets_the_default() {
        with_checks(|checks| {
            let sticky = |given| sticky(&checks, given).map_err(|status| status.code());
            let wait = |ms| Ok(Some(workflow_task::Sticky { queue: "q".into(), schedule_to_start_ms: ms }));
            assert_eq!(sticky(attributes("q", None)), wait(10_000));
            assert_eq!(sticky(attributes("q", Some(Duration { seconds: 5, nanos: 0 }))), wait(5_000));
            assert_eq!(sticky(attributes("", None)), Ok(None));
            assert_eq!(sticky(None), Ok(None));
            let negative = Some(Duration { seconds: -5, nanos: 0 });
            assert_eq!(sticky(attributes("q", negative)), Err(Code::InvalidArgument));
        });
    }

    #[test]
    fn an_answer_that_is_too_large_is_a_failure() {
        with_checks(|checks| {
            let large = Some(Bytes::from(vec![0; (2 << 20) + 1]));
            let result_type = QueryResultType::Answered.into();
            let result = WorkflowQueryResult { result_type, answer: large, ..Default::default() };
            let answer = answer(&checks, "1".into(), result);
            assert!(!answer.succeeded && answer.result.is_none());
            assert_eq!(answer.error_message, "Blob data size exceeds limit.");
        });
    }

    #[test]
    fn parts_of_a_completion_that_come_later_are_refused_by_name() {
        let empty = RespondWorkflowTaskCompletedRequest::default;
        let cases = [
            (RespondWorkflowTaskCompletedRequest { page_number: 1, ..empty() }, "page_number"),
            (RespondWorkflowTaskCompletedRequest { intermediate_page: true, ..empty() }, "intermediate_page"),
        ];
        for (request, field) in cases {
            let status = refuse_later_features(&request).expect_err("it has to be refused");
            assert_eq!(status.message(), format!("{field} is not supported yet."));
        }
        assert!(refuse_later_features(&empty()).is_ok());
    }
}
