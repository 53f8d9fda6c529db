//! Task queues that are named for nothing: so many may be polled and no more, and who has something to do goes on.

use anyhow::Context;
use bytes::Bytes;
use everlog_temporal_api::errordetails::ResourceExhaustedFailure;
use everlog_temporal_api::rpc;
use everlog_temporal_api::workflowservice::{
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse, ShutdownWorkerRequest,
    StartWorkflowExecutionRequest,
};
use everlog_tests::server::Server;
use everlog_tests::{page, patience};
use prost::Message;
use tokio::task::JoinHandle;
use tonic::{Code, Request, Status};

use crate::world::{World, path_of, queue};

const LIMITS: &[(&str, &str)] =
    &[("EVERLOG_QUEUES__NAMESPACE_POLLED_MAX", "3"), ("EVERLOG_QUEUES__NAMESPACE_REMEMBERED_MAX", "5")];
/// Names of queues that nobody else has.
const FLOOD: usize = 200;

type Polling = JoinHandle<Result<Bytes, Status>>;

async fn poll(world: &World, namespace: &str, name: &str) -> Result<Bytes, Status> {
    let request = PollWorkflowTaskQueueRequest {
        namespace: namespace.into(),
        task_queue: Some(queue(name)),
        identity: name.into(),
        ..PollWorkflowTaskQueueRequest::default()
    };
    let mut call = Request::new(Bytes::from(request.encode_to_vec()));
    call.set_timeout(patience::most());
    world.call(&path_of::<PollWorkflowTaskQueueRequest>(), call).await
}

fn waits(world: &World, name: &'static str) -> Polling {
    let world = world.clone();
    tokio::spawn(async move { poll(&world, &world.namespace, name).await })
}

fn start(world: &World, namespace: &str, name: &str) -> StartWorkflowExecutionRequest {
    let (namespace, task_queue) = (namespace.into(), Some(queue(name)));
    StartWorkflowExecutionRequest { namespace, task_queue, ..world.start_of(&world.fresh("run")) }
}

async fn polled(server: &Server, count: f64) -> anyhow::Result<()> {
    let shown = async || page::metric(server.metrics_address(), "everlog_task_queues_polled").await;
    let what = format!("polls wait at {count} queues");
    Ok(patience::until(&what, async || shown().await.is_ok_and(|shown| shown == Some(count))).await?)
}

fn task(answer: &Bytes) -> anyhow::Result<PollWorkflowTaskQueueResponse> {
    let task = PollWorkflowTaskQueueResponse::decode(answer.clone())?;
    anyhow::ensure!(!task.task_token.is_empty(), "no task came");
    Ok(task)
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_wait_at_so_many_queues_and_no_more_but_where_there_is_something_to_do() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), LIMITS).await?;
    let world = World::new(server.connect().await?).await?;
    let [first, _second, _third] = ["first", "second", "third"].map(|name| waits(&world, name));
    polled(&server, 3.0).await?;

    let refusal = poll(&world, &world.namespace, "fourth").await.err().context("there is no room")?;
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert_eq!(refusal.message(), "polls wait at 3 task queues of the namespace, which is the limit");
    let details = rpc::Status::decode(refusal.details())?.details;
    let detail: ResourceExhaustedFailure = details.first().context("it has a detail")?.to_msg()?;
    assert_eq!(
        (detail.cause().as_str_name(), detail.scope().as_str_name()),
        ("RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT", "RESOURCE_EXHAUSTED_SCOPE_NAMESPACE")
    );
    let refused = page::metric(server.metrics_address(), "everlog_task_queue_polls_refused_total").await?;
    assert_eq!(refused, Some(1.0));

    // Where a task waits it is to be had; so it is in another namespace.
    world.send(start(&world, &world.namespace, "fourth")).await?;
    let mut fourth = None;
    let comes = async || {
        // The start is acknowledged before its task is in the queue.
        fourth = poll(&world, &world.namespace, "fourth").await.ok();
        fourth.is_some()
    };
    patience::until("the task waits in its queue", comes).await?;
    task(&fourth.context("it came")?)?;
    world.send(start(&world, &world.other_namespace, "fifth")).await?;
    task(&poll(&world, &world.other_namespace, "fifth").await?)?;

    // Whoever has got a task makes room.
    world.send(start(&world, &world.namespace, "first")).await?;
    task(&first.await??)?;
    let sixth = waits(&world, "sixth");
    polled(&server, 3.0).await?;
    world.send(start(&world, &world.namespace, "sixth")).await?;
    task(&sixth.await??)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_of_which_nothing_is_left_but_their_names_are_forgotten() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), LIMITS).await?;
    let world = World::new(server.connect().await?).await?;
    for number in 0..FLOOD {
        let name: &'static str = format!("queue-{number}").leak();
        let waiting = waits(&world, name);
        polled(&server, 1.0).await?;
        waiting.abort();
        polled(&server, 0.0).await?;
        let shut_down = ShutdownWorkerRequest {
            namespace: world.namespace.clone(),
            sticky_task_queue: format!("own-{number}"),
            ..ShutdownWorkerRequest::default()
        };
        world.send(shut_down).await?;
    }
    let shown = async || page::metric(server.metrics_address(), "everlog_task_queues_remembered").await;
    patience::until("the last ones are remembered", async || shown().await.is_ok_and(|n| n == Some(5.0)))
        .await?;
    Ok(())
}
