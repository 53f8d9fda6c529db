//! What each kind of job does, and what one reads of it.

use anyhow::ensure;
use everlog_temporal_api::common::reset_options::Target;
use everlog_temporal_api::common::{ResetOptions, WorkflowExecution};
use everlog_temporal_api::enums::{BatchOperationState, BatchOperationType, WorkflowExecutionStatus};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::temporal::api::batch::v1::{
    BatchOperationCancellation, BatchOperationDeletion, BatchOperationReset,
};
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::{
    DescribeBatchOperationResponse, ListBatchOperationsRequest, ListBatchOperationsResponse,
    StartBatchOperationRequest,
};
use everlog_tests::server::Server;
use prost::Message;
use tonic::Code;

use crate::operator::{IDENTITY, NAMESPACE, Operator, REASON, job, signal, termination};

fn counts(job: &DescribeBatchOperationResponse) -> [i64; 3] {
    [job.total_operation_count, job.complete_operation_count, job.failure_operation_count]
}

#[tokio::test]
async fn each_kind_does_its_work_at_each_run() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let operator = Operator::at(&server).await?;

    let runs = operator.runs("signaled", 3).await?;
    let named = [&runs[0], &runs[1], &runs[0], &"unknown".to_owned()];
    let done = operator.complete(job("signal", &named, signal())).await?;
    ensure!(counts(&done) == [4, 4, 0], "one that is not there counts as done: {done:?}");
    ensure!(
        (done.job_id.as_str(), done.identity.as_str(), done.reason.as_str()) == ("signal", IDENTITY, REASON)
    );
    ensure!(done.operation_type() == BatchOperationType::Signal && done.executions.len() == 4, "{done:?}");
    ensure!(done.start_time.is_some() && done.close_time.is_some(), "{done:?}");
    let signals = operator.signals(&runs).await?;
    ensure!(signals == [(0, 1), (1, 1), (2, 1)].into(), "one that is named twice gets two: {signals:?}");

    let runs = operator.runs("canceled", 2).await?;
    let cancel = BatchOperationCancellation { identity: IDENTITY.into() };
    let done = operator.complete(job("cancel", &runs, Operation::CancellationOperation(cancel))).await?;
    ensure!(counts(&done) == [2, 2, 0] && done.operation_type() == BatchOperationType::Cancel, "{done:?}");
    for id in &runs {
        let extended = operator.workflow(id).await?.workflow_extended_info.unwrap_or_default();
        ensure!(extended.cancel_requested, "{id}");
    }

    let runs = operator.runs("terminated", 2).await?;
    let done = operator.complete(job("terminate", &runs, termination())).await?;
    ensure!(counts(&done) == [2, 2, 0] && done.operation_type() == BatchOperationType::Terminate, "{done:?}");
    for id in &runs {
        let last = operator.0.history(id).await?.pop().and_then(|event| event.attributes);
        let Some(Attributes::WorkflowExecutionTerminatedEventAttributes(ended)) = last else {
            anyhow::bail!("{id} ended with {last:?}");
        };
        ensure!((ended.reason.as_str(), ended.identity.as_str()) == (REASON, IDENTITY), "{ended:?}");
    }

    let delete = BatchOperationDeletion { identity: IDENTITY.into() };
    let done = operator.complete(job("delete", &runs, Operation::DeletionOperation(delete))).await?;
    ensure!(counts(&done) == [2, 2, 0] && done.operation_type() == BatchOperationType::Delete, "{done:?}");
    for id in &runs {
        let gone = operator.workflow(id).await.map(drop).map_err(|status| status.code());
        ensure!(gone == Err(Code::NotFound), "{id}: {gone:?}");
    }
    Ok(())
}

fn reset(target: Target) -> Operation {
    let options = Some(ResetOptions { target: Some(target), ..ResetOptions::default() });
    Operation::ResetOperation(BatchOperationReset {
        options,
        identity: IDENTITY.into(),
        ..Default::default()
    })
}

#[tokio::test]
async fn a_reset_goes_back_to_its_target_and_what_fails_is_named() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let operator = Operator::at(&server).await?;
    operator.0.start_patient("worked-at").await?;
    for number in 0..2 {
        operator.0.signal("worked-at", &number.to_string()).await?;
        let task = operator.0.take().await?.expect("a task waits");
        operator.0.complete(task, Vec::new()).await?;
    }
    let before = operator.workflow("worked-at").await?.workflow_execution_info.unwrap_or_default();
    let before = before.execution.unwrap_or_default();

    let named = ["worked-at", "unknown"];
    let done = operator.complete(job("first", &named, reset(Target::FirstWorkflowTask(())))).await?;
    ensure!(counts(&done) == [2, 1, 1] && done.operation_type() == BatchOperationType::Reset, "{done:?}");
    let report = operator.report("first").await?;
    let failure = &report["failures"][0];
    ensure!((&report["total"], &report["failed"]) == (&2.into(), &1.into()), "{report}");
    ensure!(
        (&failure["workflowId"], &failure["code"]) == (&"unknown".into(), &"NOT_FOUND".into()),
        "{report}"
    );
    let after = operator.workflow("worked-at").await?.workflow_execution_info.unwrap_or_default();
    ensure!(after.execution.as_ref().is_some_and(|now| now.run_id != before.run_id), "it has a new run");
    let history = operator.0.history("worked-at").await?;
    let failed = history.iter().find_map(|event| match &event.attributes {
        Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) => {
            Some((event.event_id, failed.base_run_id.clone()))
        }
        _others => None,
    });
    ensure!(failed == Some((5, before.run_id.clone())), "the first task ended with event 5: {failed:?}");

    // Of the former run, which is named; a build that it does not know; an event that is none.
    let of_run = |job_id: &str, target| StartBatchOperationRequest {
        executions: vec![WorkflowExecution {
            workflow_id: "worked-at".into(),
            run_id: before.run_id.clone(),
        }],
        ..job::<&str>(job_id, &[], reset(target))
    };
    let done = operator.complete(of_run("last", Target::LastWorkflowTask(()))).await?;
    ensure!(counts(&done) == [1, 1, 0], "{done:?}");
    let done = operator.complete(of_run("build", Target::BuildId("never seen".into()))).await?;
    ensure!(counts(&done) == [1, 0, 1], "{done:?}");
    let report = operator.report("build").await?;
    let failure = &report["failures"][0];
    ensure!(failure["message"] == "Can't find reset point for never seen", "{report}");
    ensure!(failure["runId"] == before.run_id.as_str(), "{report}");
    let done = operator.complete(of_run("event", Target::WorkflowTaskId(999))).await?;
    ensure!(counts(&done) == [1, 0, 1], "{done:?}");
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_stopped_keeps_its_counts_and_only_a_job_can_be_stopped() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let operator = Operator::at(&server).await?;
    let runs = operator.runs("order", 100).await?;
    let slow = StartBatchOperationRequest { max_operations_per_second: 10.0, ..job("slow", &runs, signal()) };
    operator.0.send(slow.clone()).await?;
    let running = operator.reached("slow", |job| job.complete_operation_count > 0).await?;
    ensure!(
        running.state() == BatchOperationState::Running && running.total_operation_count == 100,
        "{running:?}"
    );
    operator.stop("slow").await?;
    let stopped = operator.describe("slow").await?;
    ensure!(stopped.state() == BatchOperationState::Failed, "{stopped:?}");
    let [total, complete, failed] = counts(&stopped);
    ensure!(total == 100 && failed == 0 && (1..100).contains(&complete), "{stopped:?}");
    let signaled = operator.signals(&runs).await?.get(&1).copied();
    ensure!(signaled == usize::try_from(complete).ok(), "{signaled:?} of {complete}");
    ensure!(operator.report("slow").await?["complete"] == complete);

    let again = operator.stop("slow").await.map_err(|status| (status.code(), status.message().to_owned()));
    ensure!(again == Err((Code::NotFound, "workflow execution already completed".into())), "{again:?}");
    let taken = operator.0.send(slow).await.map(drop).map_err(|status| status.code());
    ensure!(taken == Err(Code::AlreadyExists), "{taken:?}");
    for id in [runs[0].as_str(), "never started"] {
        let unknown = |status: tonic::Status| (status.code(), status.message().to_owned());
        let expected = || Err((Code::NotFound, format!("workflow not found for ID: {id}")));
        ensure!(operator.stop(id).await.map_err(unknown) == expected());
        ensure!(operator.describe(id).await.map(drop).map_err(unknown) == expected());
    }
    let open = operator.workflow(&runs[0]).await?.workflow_execution_info.unwrap_or_default();
    ensure!(open.status() == WorkflowExecutionStatus::Running, "an ordinary run is not stopped as a job");
    Ok(())
}

#[tokio::test]
async fn a_job_is_a_run_that_others_can_read() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let operator = Operator::at(&server).await?;
    let runs = operator.runs("order", 1).await?;
    operator.complete(job("seen", &runs, termination())).await?;
    let info = operator.workflow("seen").await?.workflow_execution_info.unwrap_or_default();
    let kind = info.r#type.clone().unwrap_or_default().name;
    ensure!(
        kind == "temporal-sys-batch-workflow-protobuf" && info.status() == WorkflowExecutionStatus::Completed
    );
    let text = |bytes: Option<bytes::Bytes>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let (memo, attributes) = (text(info.memo), text(info.search_attributes));
    for part in ["batch_operation_type", "\"terminate\"", "batch_operation_reason", "\"NumSuccess\":1"] {
        ensure!(memo.contains(part), "{part} in {memo}");
    }
    for part in ["TemporalNamespaceDivision", "\"TemporalBatcher\"", "BatcherUser", "\"operator\"", "Keyword"]
    {
        ensure!(attributes.contains(part), "{part} in {attributes}");
    }
    let start =
        StartBatchOperationRequest { namespace: NAMESPACE.into(), ..job("order-0", &runs, termination()) };
    let taken = operator.0.send(start).await.map(drop).map_err(|status| status.code());
    ensure!(taken == Err(Code::AlreadyExists), "a job's id is a Workflow Id: {taken:?}");
    Ok(())
}

#[tokio::test]
async fn one_job_of_a_namespace_is_open_at_once_and_lists_have_all() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let operator = Operator::at(&server).await?;
    let runs = operator.runs("order", 20).await?;
    let by_query = |job_id: &str, query: &str, operation| StartBatchOperationRequest {
        visibility_query: query.into(),
        ..job::<&str>(job_id, &[], operation)
    };
    let slow = by_query("slow", "WorkflowType = 'order' -- all of them", signal());
    let slow = StartBatchOperationRequest { max_operations_per_second: 1.0, ..slow };
    operator.0.send(slow).await?;
    let refusal = |status: tonic::Status| (status.code(), status.message().to_owned());
    let second = operator.0.send(job("second", &runs, termination())).await.map(drop).map_err(refusal);
    let busy = (Code::ResourceExhausted, "Max concurrent batch operations is reached".to_owned());
    ensure!(second == Err(busy), "{second:?}");
    operator.stop("slow").await?;
    for query in
        ["Nobody = 1", "WorkflowType = ", "WorkflowType = 'order' GROUP BY ExecutionStatus", "x) OR (y"]
    {
        let refused = operator.0.send(by_query("bad", query, termination())).await.map(drop).map_err(refusal);
        let is_named = |(code, message): &(Code, String)| {
            *code == Code::InvalidArgument && message.starts_with("invalid visibility query: ")
        };
        ensure!(refused.as_ref().is_err_and(is_named), "{query}: {refused:?}");
    }

    // Of 20 runs one is closed, and a termination does not count it.
    operator.complete(job("one", &runs[..1], termination())).await?;
    let done = operator.complete(by_query("others", "WorkflowType = 'order'", termination())).await?;
    ensure!(counts(&done) == [19, 19, 0] && done.query == "WorkflowType = 'order'", "{done:?}");
    let list = ListBatchOperationsRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let listed = ListBatchOperationsResponse::decode(operator.0.send(list).await?)?.operation_info;
    let shown: Vec<_> =
        listed.iter().map(|job| (job.job_id.as_str(), job.state(), job.operation_type())).collect();
    let (completed, terminate) = (BatchOperationState::Completed, BatchOperationType::Terminate);
    let expected = [
        ("others", completed, terminate),
        ("one", completed, terminate),
        ("slow", BatchOperationState::Failed, BatchOperationType::Signal),
    ];
    ensure!(shown == expected, "{shown:?}");
    ensure!(listed.iter().all(|job| job.start_time.is_some() && job.close_time.is_some()), "{listed:?}");
    Ok(())
}
