//! QueryWorkflow and RespondQueryTaskCompleted. A query is never part of a history.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use everlog_engine::api_types::Status as RunStatus;
use everlog_partition::{Address, QueryAnswer, QueryOutcome, QueryRequest, Want};
use everlog_temporal_api::enums::{
    QueryRejectCondition, QueryResultType, ResourceExhaustedCause, ResourceExhaustedScope, TaskQueueType,
};
use everlog_temporal_api::query::QueryRejected;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeTaskQueueRequest, QueryWorkflowRequest, QueryWorkflowResponse, RespondQueryTaskCompletedRequest,
    RespondQueryTaskCompletedResponse,
};
use prost::Message;
use tonic::Status;

use crate::codec::proto_time;
use crate::codec::status::{self, invalid, not_found};
use crate::handlers::history::read;
use crate::handlers::workflow_task_completed::bounded;
use crate::routing::in_process;
use crate::server::call::Call;
use crate::tasks::token::{Subject, unreadable};

/// How long before the caller's deadline a query fails, so that the error arrives in time.
const ANSWER_MARGIN_MAX: Duration = Duration::from_millis(500);
/// Nobody polls a queue that has had no poll for so long, as on a Temporal server.
const UNPOLLED_AFTER_S: i64 = 20;
/// Who asks whether a queue is polled.
const OBSERVER: &str = "everlog-query";

pub(crate) async fn ask(
    call: &Call<'_>,
    request: QueryWorkflowRequest,
) -> Result<QueryWorkflowResponse, Status> {
    let checks = call.checks();
    let execution = checks.execution(request.execution)?;
    let query = request.query.ok_or_else(|| invalid("WorkflowQuery is not set on request."))?;
    checks.id("QueryType", &query.query_type)?;
    checks.blob(query.query_args.as_ref())?;
    checks.blob(query.header.as_ref())?;
    let condition = QueryRejectCondition::try_from(request.query_reject_condition);
    let condition = condition.map_err(|_error| invalid("unknown query reject condition"))?;
    let (address, is_taken) = (call.address(execution), Arc::<AtomicBool>::default());
    let question = QueryRequest {
        address: address.clone(),
        query: query.encode_to_vec().into(),
        only_open: condition == QueryRejectCondition::NotOpen,
        only_completed_cleanly: condition == QueryRejectCondition::NotCompletedCleanly,
        patience_ms: i64::try_from(patience(call).as_millis()).unwrap_or(i64::MAX),
        is_taken: Arc::clone(&is_taken),
    };
    tokio::select! {
        biased;
        outcome = call.gateway.router.query(question) => settle(outcome.map_err(status::of_failure)?),
        () = tokio::time::sleep(patience(call)) => Err(late(call, &address, &is_taken).await),
        () = call.gateway.stopped() => Err(Status::unavailable("the server is stopping")),
    }
}

/// Says why there was no answer in time.
async fn late(call: &Call<'_>, address: &Address, is_taken: &AtomicBool) -> Status {
    if !is_taken.load(Ordering::Relaxed) && is_unpolled(call, address).await.unwrap_or(false) {
        return Status::failed_precondition("no poller seen for task queue recently, worker may be down");
    }
    Status::deadline_exceeded("query timed out before a worker could process it")
}

/// True where no worker has polled the run's queue of late. False of a run with a workflow task: its query waits for the end of
/// the task, and a Temporal server does not look at the pollers then.
async fn is_unpolled(call: &Call<'_>, address: &Address) -> Result<bool, Status> {
    let run = read(call, address, Want::State).await?.run;
    if run.head.task.is_some() || run.head.previous_started_event_id == 0 {
        return Ok(false);
    }
    let namespace = &call.namespace.record.name;
    let request = DescribeTaskQueueRequest {
        namespace: namespace.clone(),
        task_queue: Some(TaskQueue { name: run.start.task_queue.clone(), ..TaskQueue::default() }),
        task_queue_type: TaskQueueType::Workflow.into(),
        ..DescribeTaskQueueRequest::default()
    };
    let calls = call.gateway.calls().map_err(|error| Status::internal(error.to_string()))?;
    let mut client = in_process::client(calls, OBSERVER, namespace);
    let found = in_process::answer(client.describe_task_queue(request)).await?;
    let since = proto_time::now_ms() / 1_000 - UNPOLLED_AFTER_S;
    let polled = found.pollers.iter().filter_map(|poller| poller.last_access_time);
    Ok(polled.map(|at| at.seconds).all(|seconds| seconds < since))
}

fn patience(call: &Call<'_>) -> Duration {
    let longest = Duration::from_millis(call.gateway.limits.query_wait_ms);
    match call.remaining() {
        Some(remaining) => remaining.saturating_sub(ANSWER_MARGIN_MAX.min(remaining / 10)),
        None => longest,
    }
}

fn settle(outcome: QueryOutcome) -> Result<QueryWorkflowResponse, Status> {
    match outcome {
        QueryOutcome::Answered(QueryAnswer { succeeded: true, result, .. }) => {
            Ok(QueryWorkflowResponse { query_result: Some(result.unwrap_or_default()), ..Default::default() })
        }
        QueryOutcome::Answered(answer) => Err(status::query_failed(answer.error_message, answer.failure)),
        QueryOutcome::NotWished(status) => {
            let status = RunStatus::try_from(status).map_or(status, i32::from);
            Ok(QueryWorkflowResponse { query_rejected: Some(QueryRejected { status }), ..Default::default() })
        }
        QueryOutcome::Refused(rejection) => Err(status::of_rejection(rejection)),
        QueryOutcome::NotReady(reason) => Err(status::not_ready(reason)),
        QueryOutcome::Busy => {
            let (cause, scope) = (ResourceExhaustedCause::BusyWorkflow, ResourceExhaustedScope::Namespace);
            Err(status::exhausted(
                cause,
                scope,
                "consistent query buffer is full, this may be caused by too many queries and workflow not able to \
                 process query fast enough",
            ))
        }
    }
}

pub(crate) async fn respond(
    call: &Call<'_>,
    request: RespondQueryTaskCompletedRequest,
) -> Result<RespondQueryTaskCompletedResponse, Status> {
    let (execution, query_id) = match call.task()? {
        (execution, Subject::Query(query_id)) => (execution, query_id),
        (_, Subject::Workflow(_) | Subject::Activity(_)) => return Err(unreadable()),
    };
    let answer = QueryAnswer {
        query_id,
        succeeded: request.completed_type == i32::from(QueryResultType::Answered),
        result: request.query_result,
        error_message: request.error_message,
        failure: request.failure,
    };
    let answer = bounded(&call.checks(), answer);
    let taken = call.gateway.router.answer_query(call.address(execution), answer).await;
    match taken.map_err(status::of_failure)? {
        true => Ok(RespondQueryTaskCompletedResponse::default()),
        false => Err(not_found("query task not found, or already expired")),
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::Rejection;
    use tonic::Code;

    use super::*;

    fn answer(succeeded: bool) -> QueryOutcome {
        QueryOutcome::Answered(QueryAnswer {
            query_id: "1".into(),
            succeeded,
            result: None,
            error_message: "no such query".into(),
            failure: None,
        })
    }

    #[test]
    fn an_empty_answer_is_still_an_answer() {
        let response = settle(answer(true)).expect("it succeeded");
        assert_eq!(response.query_result, Some(bytes::Bytes::new()));
        assert_eq!(response.query_rejected, None);
    }

    #[test]
    fn a_run_that_is_not_wished_is_told_with_its_status() {
        let response = settle(QueryOutcome::NotWished(RunStatus::Failed.into())).expect("not an error");
        assert_eq!(response.query_rejected.map(|rejected| rejected.status), Some(3));
        assert_eq!(response.query_result, None);
    }

    #[test]
    fn what_went_wrong_decides_the_code() {
        let code = |outcome| settle(outcome).expect_err("an error").code();
        assert_eq!(code(answer(false)), Code::InvalidArgument);
        assert_eq!(code(QueryOutcome::NotReady("later".into())), Code::FailedPrecondition);
        assert_eq!(code(QueryOutcome::Refused(Rejection::unknown())), Code::NotFound);
        assert_eq!(code(QueryOutcome::Busy), Code::ResourceExhausted);
    }
}
