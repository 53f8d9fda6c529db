//! Namespaces at the gateway: what is asked in one never reaches another's runs, and a deleted one takes nothing.

use std::sync::Arc;

use everlog_engine::request::RequestRecord;
use everlog_engine::{Rejection, Reply};
use everlog_partition::InboxMessage;
use everlog_temporal::Limits;
use everlog_temporal_api::enums::NamespaceState;
use everlog_temporal_api::operatorservice::operator_service_client::OperatorServiceClient;
use everlog_temporal_api::operatorservice::{DeleteNamespaceRequest, ListSearchAttributesRequest};
use everlog_temporal_api::workflowservice::*;
use parking_lot::Mutex;
use tonic::Code;
use tonic::transport::Channel;

use crate::Front;
use crate::sample::{NS, UUID, expect, queue, refused, run, signal, span, start};

const DELETED: &str = "Namespace has invalid state: Deleted. Must be Registered or Deprecated.";

type Ordered = Arc<Mutex<Vec<RequestRecord>>>;

/// A gateway before partitions that answer every order so, and what they were ordered.
async fn answering(rejection: Rejection) -> (Front, OperatorServiceClient<Channel>, Ordered) {
    let ordered = Ordered::default();
    let seen = ordered.clone();
    let send = move |_partition, event| {
        let InboxMessage::Request { input, reply, .. } = event else { return false };
        seen.lock().push(input);
        drop(reply.send(Ok(Reply::Rejected(rejection.clone()))));
        true
    };
    let front = Front::with(Limits::default(), Arc::new(send)).await;
    let operator = OperatorServiceClient::new(front.channel.clone());
    (front, operator, ordered)
}

async fn register(front: &mut Front, name: &str) -> String {
    let request = RegisterNamespaceRequest {
        namespace: name.into(),
        workflow_execution_retention_period: span(86_400),
        ..Default::default()
    };
    front.client.register_namespace(request).await.expect("new");
    described(front, name).await.0
}

/// UUID and state.
async fn described(front: &mut Front, name: &str) -> (String, NamespaceState) {
    let request = DescribeNamespaceRequest { namespace: name.into(), ..Default::default() };
    let answer = front.client.describe_namespace(request).await.expect("described").into_inner();
    let info = answer.namespace_info.expect("a description has it");
    assert_eq!(info.name, name);
    (info.id.clone(), info.state())
}

fn delete(name: &str) -> DeleteNamespaceRequest {
    DeleteNamespaceRequest { namespace: name.into(), ..Default::default() }
}

#[tokio::test]
async fn a_deleted_namespace_takes_nothing_and_its_name_is_free() {
    let (mut front, mut operator, ordered) = answering(Rejection::unknown()).await;
    let id = register(&mut front, "shop").await;
    let answer = operator.delete_namespace(delete("shop")).await.expect("deleted").into_inner();
    let name = format!("shop-deleted-{}", &id[..5]);
    assert_eq!(answer.deleted_namespace, name);
    assert_eq!(described(&mut front, &name).await, (id.clone(), NamespaceState::Deleted));
    let by_id = DeleteNamespaceRequest { namespace_id: id.clone(), ..Default::default() };
    let again = operator.delete_namespace(by_id).await.expect("deleted before").into_inner();
    assert_eq!(again.deleted_namespace, name);
    let bad = Code::FailedPrecondition;
    let begin = StartWorkflowExecutionRequest { namespace: name.clone(), ..start() };
    let status = refused!(front, start_workflow_execution, begin);
    expect("4", &status, bad, "Namespace has invalid state: Deleted. Must be Registered.");
    let there = SignalWorkflowExecutionRequest { namespace: name.clone(), ..signal() };
    expect("4", &refused!(front, signal_workflow_execution, there), bad, DELETED);
    let poll = PollWorkflowTaskQueueRequest {
        namespace: name.clone(),
        task_queue: queue("orders"),
        ..Default::default()
    };
    expect("4", &refused!(front, poll_workflow_task_queue, poll), bad, DELETED);
    let change = UpdateNamespaceRequest { namespace: name.clone(), ..Default::default() };
    expect("4", &refused!(front, update_namespace, change), bad, DELETED);
    let attributes = ListSearchAttributesRequest { namespace: name.clone() };
    let status = operator.list_search_attributes(attributes).await.map(drop).expect_err("deleted");
    expect("4", &status, bad, DELETED);
    let old = SignalWorkflowExecutionRequest { namespace: "shop".into(), ..signal() };
    let status = refused!(front, signal_workflow_execution, old.clone());
    expect("2", &status, Code::NotFound, "Namespace shop is not found.");
    assert!(ordered.lock().is_empty(), "nothing has reached a partition");

    let again = register(&mut front, "shop").await;
    assert_ne!(again, id);
    expect("55", &refused!(front, signal_workflow_execution, old), Code::NotFound, "workflow");
    let input = ordered.lock().pop().expect("it has reached a partition");
    assert_eq!(input.namespace_id, again, "the new namespace has nothing of the old");
    let listed = front.client.list_namespaces(ListNamespacesRequest::default()).await.expect("listed");
    let listed = listed.into_inner().namespaces.into_iter().filter_map(|found| found.namespace_info);
    assert_eq!(listed.map(|info| info.name).collect::<Vec<_>>(), [NS, "shop"]);
}

#[tokio::test]
async fn a_gateway_that_has_not_heard_of_a_deletion_is_told_by_the_partition() {
    let (mut front, _operator, _ordered) = answering(Rejection::NamespaceDeleted(UUID.into())).await;
    for status in [
        refused!(front, signal_workflow_execution, signal()),
        refused!(front, start_workflow_execution, start()),
    ] {
        expect("4", &status, Code::FailedPrecondition, DELETED);
    }
}

#[tokio::test]
async fn deletions_are_refused_with_their_code_and_message() {
    let (_front, mut operator, _ordered) = answering(Rejection::unknown()).await;
    let long = "x".repeat(1_001);
    let by = |namespace: &str, id: &str| DeleteNamespaceRequest {
        namespace: namespace.into(),
        namespace_id: id.into(),
        ..Default::default()
    };
    let (bad, unknown) = (Code::InvalidArgument, Code::NotFound);
    for (request, code, message) in [
        (by(NS, UUID), bad, "Only one of namespace name or Id should be set on request."),
        (by("", ""), bad, "Namespace not set on request."),
        (by(&long, ""), bad, "Namespace length exceeds limit."),
        (by("", &long), bad, "Namespace length exceeds limit."),
        (by("nowhere", ""), unknown, "Namespace nowhere is not found."),
        (by("", UUID), unknown, &format!("Namespace {UUID} is not found.")),
    ] {
        let status = operator.delete_namespace(request).await.map(drop).expect_err(message);
        expect("4", &status, code, message);
    }
}

#[tokio::test]
async fn the_same_workflow_id_in_two_namespaces_is_of_two_runs() {
    let (mut front, _operator, ordered) = answering(Rejection::unknown()).await;
    let ids = [register(&mut front, "shop").await, register(&mut front, "depot").await];
    for name in ["shop", "depot"] {
        let cancel = RequestCancelWorkflowExecutionRequest {
            namespace: name.into(),
            workflow_execution: run("order-1", UUID),
            ..Default::default()
        };
        let status = refused!(front, request_cancel_workflow_execution, cancel);
        assert_eq!(status.code(), Code::NotFound, "the partition's word");
    }
    let seen: Vec<_> = ordered.lock().iter().map(|input| input.namespace_id.clone()).collect();
    assert_eq!(seen, ids);
}
