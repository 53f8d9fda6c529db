//! Rows about updates: how many, without what they need, without a worker, and with the start of a run.

use everlog_temporal_api::enums::UpdateWorkflowExecutionLifecycleStage as Stage;
use everlog_temporal_api::update::{Input, Meta, Request, UpdateRef, WaitPolicy};
use everlog_temporal_api::workflowservice::execute_multi_operation_request::Operation;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::operation::Operation as Kind;
use everlog_temporal_api::workflowservice::{
    ExecuteMultiOperationRequest, PollWorkflowExecutionUpdateRequest, PollWorkflowExecutionUpdateResponse,
    UpdateWorkflowExecutionRequest, UpdateWorkflowExecutionResponse,
};
use everlog_tests::patience;
use prost::Message;
use tokio::task::JoinSet;
use tonic::Code;

use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken, tight};
use crate::world::{BYSTANDER, CLOSED, World, execution, observation, request};

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    use Code::{FailedPrecondition, NotFound, PermissionDenied, ResourceExhausted};
    vec![
        row(34, "11 updates in flight", story(eleven_at_once), refused(ResourceExhausted, "limit on number of concurrent in-flight updates has been reached").with("ResourceExhaustedFailure")),
        tight(35, "an update more than a run may have", story(one_too_many), refused(FailedPrecondition, "The limit on the total number of distinct updates in this workflow has been reached")),
        row(36, "update without a name", update(|u| name(u).clear()), invalid("UpdateName is not set on request.")),
        row(36, "update with a name > 1000 bytes", update(|u| *name(u) = "x".repeat(1_001)), invalid("UpdateName length exceeds limit.")),
        row(36, "update without a request", update(|u| u.request = None), invalid("Update request is not set on request.")),
        row(36, "update of a closed run", update(|u| u.workflow_execution = Some(execution(CLOSED))), refused(NotFound, "workflow execution already completed")),
        row(36, "update of an unknown run", update(|u| u.workflow_execution = Some(execution("unknown"))), refused(NotFound, "")),
        row(36, "update that waits to be admitted", update(|u| u.wait_policy = wait(Stage::Admitted)), refused(PermissionDenied, "")),
        tight(36, "update that waits for a worker who does not come", story(untaken), taken("admitted after a wait, and after another")),
        row(36, "poll that waits for no stage of an update that no worker has taken", story(at_once), taken("admitted, at once")),
        row(36, "poll that waits until the update is admitted", story(admitted), taken("admitted, at once")),
        row(36, "poll of an update without a reference", poll(), invalid("UpdateRef is not set on request.")),
        row(69, "operations of different namespaces", operations("other", 2), invalid("")),
        row(69, "operations that are not two", operations("default", 1), invalid("Operations have to be exactly [Start, Update].")),
    ]
}

fn wait(stage: Stage) -> Option<WaitPolicy> {
    Some(WaitPolicy { lifecycle_stage: stage.into() })
}

fn name(update: &mut UpdateWorkflowExecutionRequest) -> &mut String {
    &mut update.request.get_or_insert_default().input.get_or_insert_default().name
}

/// An update that is fine.
fn fine(world: &World, id: &str) -> UpdateWorkflowExecutionRequest {
    let meta = Meta { update_id: world.fresh("update"), identity: "tests".into() };
    let input = Input { name: "add".into(), ..Input::default() };
    UpdateWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(id)),
        wait_policy: wait(Stage::Accepted),
        request: Some(Request { meta: Some(meta), input: Some(input), ..Request::default() }),
        ..UpdateWorkflowExecutionRequest::default()
    }
}

fn update(edit: fn(&mut UpdateWorkflowExecutionRequest)) -> Action {
    request(move |world| {
        let mut update = fine(world, BYSTANDER);
        edit(&mut update);
        update
    })
}

fn poll() -> Action {
    request(|world| PollWorkflowExecutionUpdateRequest {
        namespace: world.namespace.clone(),
        ..PollWorkflowExecutionUpdateRequest::default()
    })
}

fn operations(namespace: &'static str, count: usize) -> Action {
    request(move |world| {
        let mut start = world.start_of(&world.fresh("run"));
        start.namespace = namespace.into();
        let update = fine(world, &start.workflow_id);
        let kinds = [Kind::StartWorkflow(start), Kind::UpdateWorkflow(update)];
        let operation = |kind| Operation { operation: Some(kind) };
        ExecuteMultiOperationRequest {
            namespace: world.namespace.clone(),
            operations: kinds.into_iter().take(count).map(operation).collect(),
            ..ExecuteMultiOperationRequest::default()
        }
    })
}

/// Sends so many updates that nobody answers to a run; the first that is refused.
async fn flood(world: World, count: usize) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let mut updates = JoinSet::new();
    for _ in 0..count {
        let (world, update) = (world.clone(), fine(&world, &run.id));
        updates.spawn(async move { world.send(update).await });
    }
    // The others wait for a worker: they are given up with the set.
    while let Some(answer) = updates.join_next().await {
        let observation = observation(answer?);
        if observation.code != Some(Code::Ok) {
            return Ok(observation);
        }
    }
    anyhow::bail!("none was refused")
}

/// How far an update has come that has no outcome yet.
fn reached(stage: i32, has_outcome: bool) -> anyhow::Result<()> {
    anyhow::ensure!(stage == i32::from(Stage::Admitted) && !has_outcome, "stage {stage}, {has_outcome}");
    Ok(())
}

/// A poll of an update, which may come before the update.
async fn polled(world: &World, update: &UpdateWorkflowExecutionRequest, stage: Stage) -> anyhow::Result<()> {
    let meta = update.request.as_ref().and_then(|request| request.meta.clone()).unwrap_or_default();
    let update_id = meta.update_id;
    let update_ref = UpdateRef { workflow_execution: update.workflow_execution.clone(), update_id };
    let poll = PollWorkflowExecutionUpdateRequest {
        namespace: world.namespace.clone(),
        update_ref: Some(update_ref),
        wait_policy: wait(stage),
        ..PollWorkflowExecutionUpdateRequest::default()
    };
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        match world.send(poll.clone()).await {
            Err(status) if status.code() == Code::NotFound && !deadline.is_over() => {}
            answer => {
                let answer = PollWorkflowExecutionUpdateResponse::decode(answer?)?;
                return reached(answer.stage, answer.outcome.is_some());
            }
        }
    }
}

/// What waits for a worker is told, when that has taken too long, how far it has come.
async fn untaken(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let update = fine(&world, &run.id);
    let answer: UpdateWorkflowExecutionResponse = world.answer(update.clone()).await?;
    reached(answer.stage, answer.outcome.is_some())?;
    polled(&world, &update, Stage::Accepted).await?;
    polled(&world, &update, Stage::Completed).await?;
    Ok(Observation {
        code: Some(Code::Ok),
        left: "admitted after a wait, and after another".into(),
        ..Observation::default()
    })
}

/// A poll does not wait: whatever it waited for, the update that it is about would be answered before.
async fn answered_at_once(world: World, stage: Stage) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let update = fine(&world, &run.id);
    tokio::select! {
        early = world.send(update.clone()) => anyhow::bail!("the update itself was answered: {early:?}"),
        polled = polled(&world, &update, stage) => polled?,
    }
    Ok(Observation { code: Some(Code::Ok), left: "admitted, at once".into(), ..Observation::default() })
}

async fn at_once(world: World) -> anyhow::Result<Observation> {
    answered_at_once(world, Stage::Unspecified).await
}

async fn admitted(world: World) -> anyhow::Result<Observation> {
    answered_at_once(world, Stage::Admitted).await
}

async fn eleven_at_once(world: World) -> anyhow::Result<Observation> {
    flood(world, 11).await
}

async fn one_too_many(world: World) -> anyhow::Result<Observation> {
    flood(world, 4).await
}
