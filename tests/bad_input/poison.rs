//! What a worker cannot read is stored all the same: the workflow task that brings it keeps no other run waiting.

use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionResponse, RequestCancelWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
};
use everlog_tests::patience;
use everlog_tests::server::Server;

use crate::ids::signal_for;
use crate::world::{Run, World, execution, queue};

/// Whoever takes a task is late at once, and a task rests longer than any test takes.
const HASTY: &[(&str, &str)] = &[
    ("EVERLOG_LIMITS__TASK_TIMEOUT_DEFAULT_MS", "1"),
    ("EVERLOG_LIMITS__TASK_REST_INITIAL_MS", "3600000"),
    ("EVERLOG_LIMITS__TASK_REST_MAX_MS", "3600000"),
];

/// The attempt of a run's pending workflow task.
async fn attempt(world: &World, run: &Run) -> anyhow::Result<i32> {
    let described: DescribeWorkflowExecutionResponse = world.answer(world.describe(&run.id)).await?;
    Ok(described.pending_workflow_task.map_or(0, |task| task.attempt))
}

/// A run of the same queue is started, and a worker polls: whether it gets the task of that one, which is ended then.
async fn goes_first(world: &World, run: &Run) -> anyhow::Result<bool> {
    let other = world.begin(|start| start.task_queue = Some(queue(&run.queue))).await?;
    let task = world.task(run).await?;
    let end = TerminateWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(&other.id)),
        ..TerminateWorkflowExecutionRequest::default()
    };
    world.send(end).await?;
    Ok(task.workflow_execution.is_some_and(|found| found.workflow_id == other.id))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_no_worker_answers_keeps_no_other_run_waiting() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), HASTY).await?;
    let world = World::new(server.connect().await?).await?;
    let run = world.begin(|_fine| {}).await?;
    for number in 1..=3 {
        assert_eq!(world.task(&run).await?.attempt, number);
        let over = async || attempt(&world, &run).await.is_ok_and(|attempt| attempt == number + 1);
        patience::until("the attempt is over", over).await?;
    }
    // It was there before theirs, and would go first if it were offered.
    assert!(goes_first(&world, &run).await?);
    world.send(signal_for(&world, &run.id)).await?;
    assert!(goes_first(&world, &run).await?, "news change nothing");
    assert_eq!(attempt(&world, &run).await?, 4);
    let cancel = RequestCancelWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(&run.id)),
        ..RequestCancelWorkflowExecutionRequest::default()
    };
    world.send(cancel).await?;
    let task = world.task(&run).await?;
    assert_eq!(task.workflow_execution.map(|found| found.workflow_id), Some(run.id), "it is told at once");
    Ok(())
}
