//! Rows about namespaces that were deleted, and about their deletion.

use anyhow::Context;
use bytes::Bytes;
use everlog_temporal_api::operatorservice::{
    DeleteNamespaceRequest, DeleteNamespaceResponse, ListSearchAttributesRequest,
};
use everlog_temporal_api::workflowservice::{
    DescribeNamespaceRequest, DescribeNamespaceResponse, PollWorkflowTaskQueueRequest,
    RegisterNamespaceRequest, UpdateNamespaceRequest,
};
use everlog_tests::patience;
use prost::{Message, Name};
use tonic::Code;

use crate::ids::signal_for;
use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken};
use crate::world::{World, observation, queue, seconds, text};

const DELETED: &str = "Namespace has invalid state: Deleted. Must be Registered or Deprecated.";
const SEEN: &str = "a name stands in log lines, metrics and tables, where it has to be seen for what it is";
const NOT_REGISTERED: &str = "Namespace has invalid state: Deleted. Must be Registered.";

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    use Code::{AlreadyExists, FailedPrecondition, NotFound};
    let deleted = || refused(FailedPrecondition, DELETED).with("NamespaceInvalidStateFailure");
    vec![
        row(4, "a start in a namespace that was deleted", after(|world, _| world.start_of("late")),
            refused(FailedPrecondition, NOT_REGISTERED).with("NamespaceInvalidStateFailure")),
        row(4, "a signal in it", after(|world, _| signal_for(world, "there")), deleted()),
        row(4, "a read in it", after(|world, _| world.describe("there")), deleted()),
        row(4, "a poll in it", after(|world, _| poll(world)), deleted()),
        row(4, "a task token of it, and its name",
            after(|world, token| world.completion(token, Vec::new())), deleted()),
        row(4, "a task token of it, and no name", after(|world, token| {
            let mut request = world.completion(token, Vec::new());
            request.namespace.clear();
            request
        }), deleted()),
        row(4, "a change of it", after(|world, _| UpdateNamespaceRequest {
            namespace: world.namespace.clone(), ..UpdateNamespaceRequest::default()
        }), deleted()),
        row(4, "a question for its search attributes", after(|world, _| ListSearchAttributesRequest {
            namespace: world.namespace.clone()
        }), deleted()),
        row(4, "another one of its new name", after(|world, _| RegisterNamespaceRequest {
            namespace: world.namespace.clone(),
            workflow_execution_retention_period: Some(seconds(86_400)),
            ..RegisterNamespaceRequest::default()
        }), refused(AlreadyExists, "").with("NamespaceAlreadyExistsFailure")),
        row(4, "one with a character that nobody sees", named("shop\u{202e}"),
            invalid("Namespace name has the character U+202E,").unlike(SEEN)),
        row(4, "one with a line end", named("shop\nop"), invalid("Namespace name has the character U+000A,").unlike(SEEN)),
        row(4, "one with a control character", named("\u{9b}31mshop"),
            invalid("Namespace name has the character U+009B,").unlike(SEEN)),
        row(4, "its deletion once more", after(|world, _| delete(&world.namespace, "")), taken("")),
        row(4, "a call by its former name", story(by_its_former_name),
            refused(NotFound, "Namespace ").with("NamespaceNotFoundFailure")),
        row(4, "a deletion by name and id", asked("default", "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11"),
            invalid("Only one of namespace name or Id should be set on request.")),
        row(4, "a deletion of nothing", asked("", ""), invalid("Namespace not set on request.")),
        row(4, "a deletion of an unknown name", asked("nowhere", ""),
            refused(NotFound, "Namespace nowhere is not found.").with("NamespaceNotFoundFailure")),
        row(4, "a deletion of an unknown id", asked("", "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11"),
            refused(NotFound, "Namespace 7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11 is not found.")
                .with("NamespaceNotFoundFailure")),
        row(4, "a deletion of a name > 1000 bytes", story(delete_long), invalid("Namespace length exceeds limit.")),
    ]
}

fn named(name: &'static str) -> Action {
    Box::new(move |world| {
        let request = RegisterNamespaceRequest {
            namespace: name.into(),
            workflow_execution_retention_period: Some(seconds(86_400)),
            ..RegisterNamespaceRequest::default()
        };
        Box::pin(async move { Ok(observation(world.send(request).await)) })
    })
}

fn delete(namespace: &str, namespace_id: &str) -> DeleteNamespaceRequest {
    DeleteNamespaceRequest {
        namespace: namespace.into(),
        namespace_id: namespace_id.into(),
        ..DeleteNamespaceRequest::default()
    }
}

fn asked(namespace: &'static str, namespace_id: &'static str) -> Action {
    Box::new(move |world| {
        Box::pin(async move { Ok(observation(world.send(delete(namespace, namespace_id)).await)) })
    })
}

async fn delete_long(world: World) -> anyhow::Result<Observation> {
    Ok(observation(world.send(delete(&text(1001), "")).await))
}

fn poll(world: &World) -> PollWorkflowTaskQueueRequest {
    PollWorkflowTaskQueueRequest {
        namespace: world.namespace.clone(),
        task_queue: Some(queue("q")),
        ..PollWorkflowTaskQueueRequest::default()
    }
}

/// Asks in a namespace that was deleted, where a run and a task token of it were.
fn after<M: Message + Name + 'static>(ask: fn(&World, &Bytes) -> M) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let (_, world, token) = deleted(world).await?;
            Ok(observation(world.send(ask(&world, &token)).await))
        })
    })
}

/// Makes a namespace with a run and deletes it: its former name, the world in it as it is called now, and a task token of it.
async fn deleted(world: World) -> anyhow::Result<(String, World, Bytes)> {
    let former = world.fresh("namespace");
    world.register(&former).await?;
    let mut world = World { namespace: former.clone(), ..world };
    let run = world.begin(|_fine| {}).await?;
    let token = world.task(&run).await?.task_token;
    let describe = DescribeNamespaceRequest { namespace: former.clone(), ..Default::default() };
    let described: DescribeNamespaceResponse = world.answer(describe).await?;
    let id = described.namespace_info.context("a description has it")?.id;
    let answer: DeleteNamespaceResponse = world.answer(delete("", &id)).await?;
    anyhow::ensure!(answer.deleted_namespace == format!("{former}-deleted-{}", &id[..5]), "{answer:?}");
    world.namespace = answer.deleted_namespace;
    refusing(&world, Code::FailedPrecondition).await?;
    Ok((former, world, token))
}

/// Waits until the world's namespace is refused so: a Temporal server may take a while to tell all of itself.
async fn refusing(world: &World, code: Code) -> anyhow::Result<Observation> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let observation = observation(world.send(world.describe("there")).await);
        // A run that is not known is another matter.
        if observation.code == Some(code) && observation.message.starts_with("Namespace ") {
            return Ok(observation);
        }
        anyhow::ensure!(!deadline.is_over(), "{} was answered with {observation}", world.namespace);
    }
}

async fn by_its_former_name(world: World) -> anyhow::Result<Observation> {
    let (namespace, world, _) = deleted(world).await?;
    refusing(&World { namespace, ..world }, Code::NotFound).await
}
