//! Rows about waiting and paging: deadlines, page tokens, page sizes, many calls at once.

use std::time::Duration;

use bytes::Bytes;
use everlog_temporal_api::full::temporal::api::history::v1::History;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryResponse, ListWorkflowExecutionsRequest, PollActivityTaskQueueRequest,
    PollWorkflowTaskQueueRequest, QueryWorkflowRequest,
};
use everlog_tests::patience;
use prost::{Message, Name};
use tokio::task::JoinSet;
use tonic::{Code, Request};

use crate::ids::signal_for;
use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken};
use crate::world::{BYSTANDER, Run, World, execution, observation, path_of, queue, request, text};

const TERMINATE_EXISTING: i32 = 3;
/// Shorter than any poll may wait.
const SOON: Duration = Duration::from_millis(1_500);

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        // Only calls of workers are refused for it, as by a Temporal server.
        row(13, "identity > 1000 bytes", request(|world| PollWorkflowTaskQueueRequest {
                identity: text(1001), ..poll_tasks(world)
            }), invalid("Identity length exceeds limit.")),
        row(38, "query without a worker until the deadline", soon(query), refused(Code::DeadlineExceeded, "")),
        row(63, "workflow task poll with a deadline < 2 s", too_soon(poll_tasks),
            refused(Code::FailedPrecondition, "Context timeout is too short.")),
        row(63, "workflow task poll without a deadline", story(poll_without_deadline), taken("")
            .unlike("it waits no longer than any other poll")),
        row(63, "activity poll with a deadline < 2 s", too_soon(poll_activities),
            refused(Code::FailedPrecondition, "Context timeout is too short.")),
        row(64, "page token garbage", story(garbage_page_token), invalid("Invalid NextPageToken.")),
        row(64, "page token of another run", story(page_token_of_another_run),
            invalid("RunId in the request does not match the NextPageToken.")),
        row(64, "page token of another workflow id", story(page_token_of_another_id), invalid("Invalid NextPageToken.")
            .unlike("a page token is sealed for its Workflow Id")),
        row(65, "history page of 10,000: cut to 256", story(large_page), taken("at most 256 batches")),
        row(65, "list page of 10,000", request(|world| ListWorkflowExecutionsRequest {
                namespace: world.namespace.clone(), page_size: 10_000, ..ListWorkflowExecutionsRequest::default()
            }), taken("")),
        row(71, "2,500 calls at once", story(many_calls),
            taken("2500 answered").unlike("rates are not limited unless a setting says so")),
    ]
}

/// A call with a deadline that is soon over.
async fn call_soon<M: Message + Name>(world: &World, request: M) -> Observation {
    let mut call = Request::new(Bytes::from(request.encode_to_vec()));
    call.set_timeout(SOON);
    observation(world.call(&path_of::<M>(), call).await)
}

/// One such call.
fn soon<M: Message + Name + 'static>(make: fn(&World) -> M) -> Action {
    Box::new(move |world| Box::pin(async move { Ok(call_soon(&world, make(&world)).await) }))
}

/// One that is refused for its deadline. Where that is over before the refusal has come it is sent again.
fn too_soon<M: Message + Name + 'static>(make: fn(&World) -> M) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let deadline = patience::deadline();
            loop {
                let observation = call_soon(&world, make(&world)).await;
                if observation.code != Some(Code::DeadlineExceeded) || deadline.is_over() {
                    return Ok(observation);
                }
            }
        })
    })
}

fn query(world: &World) -> QueryWorkflowRequest {
    QueryWorkflowRequest {
        namespace: world.namespace.clone(),
        execution: Some(execution(BYSTANDER)),
        query: Some(WorkflowQuery { query_type: "state".into(), ..WorkflowQuery::default() }),
        ..QueryWorkflowRequest::default()
    }
}

fn poll_tasks(world: &World) -> PollWorkflowTaskQueueRequest {
    PollWorkflowTaskQueueRequest {
        namespace: world.namespace.clone(),
        task_queue: Some(queue("empty")),
        ..PollWorkflowTaskQueueRequest::default()
    }
}

fn poll_activities(world: &World) -> PollActivityTaskQueueRequest {
    PollActivityTaskQueueRequest {
        namespace: world.namespace.clone(),
        task_queue: Some(queue("empty")),
        ..PollActivityTaskQueueRequest::default()
    }
}

/// A task comes while it waits, so that nobody has to wait for its end.
async fn poll_without_deadline(world: World) -> anyhow::Result<Observation> {
    let id = world.fresh("run");
    let start = world.start_of(&id);
    let poll = PollWorkflowTaskQueueRequest { task_queue: start.task_queue.clone(), ..poll_tasks(&world) };
    let (answer, started) = tokio::join!(world.send(poll), world.send(start));
    started?;
    Ok(observation(answer))
}

async fn garbage_page_token(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    Ok(observation(world.send(world.history_of(&run, Bytes::from_static(b"\xffgarbage"))).await))
}

/// The token of a run's second page.
async fn page_token(world: &World, run: &Run) -> anyhow::Result<Bytes> {
    world.send(signal_for(world, &run.id)).await?;
    let mut first = world.history_of(run, Bytes::new());
    first.maximum_page_size = 1;
    let page: GetWorkflowExecutionHistoryResponse = world.answer(first).await?;
    anyhow::ensure!(!page.next_page_token.is_empty(), "there is a second page");
    Ok(page.next_page_token)
}

async fn page_token_of_another_id(world: World) -> anyhow::Result<Observation> {
    let (one, other) = (world.begin(|_fine| {}).await?, world.begin(|_fine| {}).await?);
    let token = page_token(&world, &one).await?;
    Ok(observation(world.send(world.history_of(&other, token)).await))
}

async fn page_token_of_another_run(world: World) -> anyhow::Result<Observation> {
    let one = world.begin(|_fine| {}).await?;
    let token = page_token(&world, &one).await?;
    let other = world
        .begin(|start| {
            start.workflow_id.clone_from(&one.id);
            start.workflow_id_conflict_policy = TERMINATE_EXISTING;
        })
        .await?;
    let other = Run { id: one.id, ..other };
    Ok(observation(world.send(world.history_of(&other, token)).await))
}

async fn large_page(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let mut signals = JoinSet::new();
    for _ in 0..300 {
        let (world, signal) = (world.clone(), signal_for(&world, &run.id));
        signals.spawn(async move { world.send(signal).await });
    }
    while let Some(answer) = signals.join_next().await {
        answer??;
    }
    let mut request = world.history_of(&run, Bytes::new());
    request.maximum_page_size = 10_000;
    let page: GetWorkflowExecutionHistoryResponse = world.answer(request).await?;
    let events = History::decode(page.history.unwrap_or_default())?.events.len();
    // Each signal is a batch of its own unless several were taken together; the start is a batch of two.
    let cut = events <= 257 && !page.next_page_token.is_empty();
    let left = if cut { "at most 256 batches".into() } else { format!("{events} events") };
    Ok(Observation { code: Some(Code::Ok), left, ..Observation::default() })
}

async fn many_calls(world: World) -> anyhow::Result<Observation> {
    let mut calls = JoinSet::new();
    for _ in 0..2_500 {
        let world = world.clone();
        calls.spawn(async move { observation(world.send(world.describe(BYSTANDER)).await) });
    }
    let mut refused = None;
    let mut answered = 0;
    while let Some(observation) = calls.join_next().await {
        match observation? {
            observation if observation.code == Some(Code::Ok) => answered += 1,
            observation => refused = Some(observation),
        }
    }
    Ok(refused.unwrap_or(Observation {
        code: Some(Code::Ok),
        left: format!("{answered} answered"),
        ..Observation::default()
    }))
}
