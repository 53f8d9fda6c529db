//! A job goes on after kills of its node: each run is worked at, counted once, and has the operation's effect once.

use std::path::Path;

use anyhow::ensure;
use everlog_temporal_api::enums::{BatchOperationState, WorkflowExecutionStatus};
use everlog_temporal_api::workflowservice::StartBatchOperationRequest;
use everlog_tests::server::Server;

use crate::operator::{Operator, job, signal, termination};

const RUNS: usize = 400;
/// Operations per second: slow enough that the kills come in between.
const RATE: f32 = 50.0;

/// Starts a job for the runs, and kills the node twice meanwhile; the operator after that.
async fn killed_twice(dir: &Path, job: StartBatchOperationRequest) -> anyhow::Result<(Server, Operator)> {
    let mut server = Server::start(dir, &[]).await?;
    let mut operator = Operator::at(&server).await?;
    operator.runs("order", RUNS).await?;
    let job_id = job.job_id.clone();
    operator.0.send(StartBatchOperationRequest { max_operations_per_second: RATE, ..job }).await?;
    for share in [4, 2] {
        let reached = |complete: i64| usize::try_from(complete).is_ok_and(|complete| complete > RUNS / share);
        operator.reached(&job_id, |job| reached(job.complete_operation_count)).await?;
        server.crash().await?;
        operator = Operator::at(&server).await?;
        let job = operator.describe(&job_id).await?;
        ensure!(job.state() == BatchOperationState::Running, "{job:?}");
        ensure!(reached(job.complete_operation_count), "the last report is there: {job:?}");
    }
    let ended = operator.ended(&job_id).await?;
    ensure!(ended.state() == BatchOperationState::Completed, "{ended:?}");
    let all = i64::try_from(RUNS)?;
    let counts = [ended.total_operation_count, ended.complete_operation_count, ended.failure_operation_count];
    ensure!(counts == [all, all, 0], "{ended:?}");
    Ok((server, operator))
}

#[tokio::test]
async fn each_named_run_gets_one_signal_through_kills() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let runs: Vec<_> = (0..RUNS).map(|number| format!("order-{number}")).collect();
    let (_server, operator) = killed_twice(dir.path(), job("signal", &runs, signal())).await?;
    let signals = operator.signals(&runs).await?;
    ensure!(signals == [(1, RUNS)].into(), "signals of each run: {signals:?}");
    Ok(())
}

/// What is terminated leaves the list, so the list alone would not tell how far the job is.
#[tokio::test]
async fn each_run_of_a_query_is_terminated_and_counted_once_through_kills() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let by_query = StartBatchOperationRequest {
        visibility_query: "WorkflowType = 'order'".into(),
        ..job::<&str>("terminate", &[], termination())
    };
    let (_server, operator) = killed_twice(dir.path(), by_query).await?;
    for number in 0..RUNS {
        let info = operator.workflow(&format!("order-{number}")).await?.workflow_execution_info;
        let status = info.unwrap_or_default().status();
        ensure!(status == WorkflowExecutionStatus::Terminated, "order-{number} is {status:?}");
    }
    Ok(())
}
