//! Calls that are for other nodes: brought there, brought again, or refused; the other nodes are played by the test.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_partition::{CallFailure, InboxMessage, QueueKey, TaskKind};
use everlog_patience as patience;
use everlog_temporal::{Body, Broken, CallFuture, Limits, Location, Peers};
use everlog_temporal_api::operatorservice::operator_service_client::OperatorServiceClient;
use everlog_temporal_api::operatorservice::*;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::update::UpdateRef;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::Operation;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::operation::Operation as Kind;
use everlog_temporal_api::workflowservice::workflow_service_client::WorkflowServiceClient;
use everlog_temporal_api::workflowservice::{
    DescribeTaskQueueRequest, DescribeWorkflowExecutionRequest, ExecuteMultiOperationRequest,
    PollActivityTaskQueueRequest, PollWorkflowExecutionUpdateRequest, PollWorkflowTaskQueueRequest,
    RegisterNamespaceRequest, RespondActivityTaskCompletedByIdRequest, ShutdownWorkerRequest,
    SignalWorkflowExecutionRequest, StartBatchOperationRequest, StopBatchOperationRequest,
    UpdateNamespaceRequest, UpdateWorkflowExecutionRequest,
};
use http_body_util::Full;
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::watch;
use tonic::codegen::http::{Request, Response};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::sample::{refused, start};
use crate::{Front, unknowing};

/// What another node does with a call.
#[derive(Clone, Copy)]
enum Does {
    /// Answers that it was reached.
    Answers,
    /// Says that the partition is not there.
    Moved,
    Breaks(Broken),
    /// Lives, and never answers.
    Hangs,
}

struct Town {
    place: Mutex<Location>,
    does: Mutex<VecDeque<Does>>,
    /// Methods that were brought, and the nodes.
    brought: Mutex<Vec<(String, String)>>,
    /// Queues whose homes were looked for, and whether they are those of activities.
    homes: Mutex<Vec<(String, bool)>>,
    /// Ids of polls that were brought, and those of which nothing came, with the nodes.
    polls: Mutex<Vec<String>>,
    lost: Mutex<Vec<(String, String)>>,
    changes: watch::Sender<u64>,
    alone: bool,
}

impl Town {
    fn new(place: Location, does: &[Does]) -> Arc<Self> {
        Arc::new(Self::with(place, does, false))
    }

    fn with(place: Location, does: &[Does], alone: bool) -> Self {
        Self {
            alone,
            place: Mutex::new(place),
            does: Mutex::new(does.iter().copied().collect()),
            brought: Mutex::default(),
            homes: Mutex::default(),
            polls: Mutex::default(),
            lost: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    fn there() -> Location {
        Location::There("b".into())
    }

    fn brought(&self) -> Vec<String> {
        let brought = self.brought.lock();
        brought.iter().map(|(method, _)| method.clone()).collect()
    }
}

/// The code is one that no handler of this gateway answers with.
fn reached() -> Response<Body> {
    Status::new(Code::DataLoss, "another node was reached").into_http()
}

fn moved() -> Response<Body> {
    let mut response = Status::unavailable("moved").into_http();
    response.headers_mut().insert("everlog-moved", "1".parse().expect("ASCII"));
    response
}

impl Peers for Town {
    fn owner(&self, _partition: u32) -> Location {
        self.place.lock().clone()
    }

    fn home(&self, queue: &QueueKey) -> Location {
        self.homes.lock().push((queue.name.clone(), queue.kind == TaskKind::Activity));
        self.place.lock().clone()
    }

    fn calls_address(&self, node: &str) -> Option<String> {
        Some(format!("{node}:7233"))
    }

    fn is_alone(&self) -> bool {
        self.alone
    }

    fn others(&self) -> Vec<Arc<str>> {
        vec!["b".into(), "c".into()]
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn poll_lost(&self, node: &str, poll_id: String) {
        self.lost.lock().push((node.to_owned(), poll_id));
    }

    fn call(&self, node: Arc<str>, request: Request<Bytes>) -> CallFuture<Result<Response<Body>, Broken>> {
        let poll_id = request.headers().get("everlog-poll");
        if let Some(poll_id) = poll_id.and_then(|poll_id| poll_id.to_str().ok()) {
            self.polls.lock().push(poll_id.to_owned());
        }
        let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        self.brought.lock().push((method, node.to_string()));
        let does = self.does.lock().pop_front().unwrap_or(Does::Answers);
        Box::pin(async move {
            match does {
                Does::Answers => Ok(reached()),
                Does::Moved => Ok(moved()),
                Does::Breaks(broken) => Err(broken),
                Does::Hangs => std::future::pending().await,
            }
        })
    }
}

/// Calls may take an hour there: whatever is waited for as long as any call may take comes too late for a test.
async fn front(town: &Arc<Town>) -> Front {
    let limits = Limits { query_wait_ms: 3_600_000, ..Limits::default() };
    let peers: Arc<dyn Peers> = Arc::clone(town) as _;
    Front::among(limits, Arc::new(unknowing), Some(peers)).await
}

fn queue(name: &str, normal_name: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: name.into(), kind: 0, normal_name: normal_name.into() })
}

#[tokio::test]
async fn what_another_node_owns_is_brought_there_whatever_names_it() {
    let town = Town::new(Town::there(), &[]);
    let mut front = front(&town).await;
    let answers = [
        refused!(front, start_workflow_execution, start()),
        refused!(
            front,
            signal_workflow_execution,
            SignalWorkflowExecutionRequest {
                namespace: "default".into(),
                workflow_execution: Some(Default::default()),
                ..Default::default()
            }
        ),
        refused!(
            front,
            respond_activity_task_completed_by_id,
            RespondActivityTaskCompletedByIdRequest {
                namespace: "default".into(),
                workflow_id: "w".into(),
                ..Default::default()
            }
        ),
        refused!(
            front,
            start_batch_operation,
            StartBatchOperationRequest {
                namespace: "default".into(),
                job_id: "job".into(),
                ..Default::default()
            }
        ),
        refused!(
            front,
            stop_batch_operation,
            StopBatchOperationRequest {
                namespace: "default".into(),
                job_id: "job".into(),
                ..Default::default()
            }
        ),
        refused!(
            front,
            poll_workflow_task_queue,
            PollWorkflowTaskQueueRequest {
                namespace: "default".into(),
                task_queue: queue("private", "normal"),
                ..Default::default()
            }
        ),
    ];
    for answer in answers {
        assert_eq!((answer.code(), answer.message()), (Code::DataLoss, "another node was reached"));
    }
    let homes = town.homes.lock().clone();
    assert_eq!(homes, [("normal".to_owned(), false)], "where its normal queue is");
}

#[tokio::test]
async fn calls_about_updates_are_brought_to_the_owner_of_their_run() {
    let town = Town::new(Town::there(), &[Does::Answers, Does::Breaks(Broken::Unanswered)]);
    let mut front = front(&town).await;
    let update = UpdateWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_execution: Some(Default::default()),
        ..Default::default()
    };
    assert_eq!(refused!(front, update_workflow_execution, update.clone()).code(), Code::DataLoss);
    let poll = PollWorkflowExecutionUpdateRequest {
        namespace: "default".into(),
        update_ref: Some(UpdateRef { workflow_execution: Some(Default::default()), ..UpdateRef::default() }),
        ..Default::default()
    };
    let answer = refused!(front, poll_workflow_execution_update, poll);
    assert_eq!(answer.code(), Code::DataLoss, "it is brought again: it changes nothing");
    let kinds = [Kind::StartWorkflow(start()), Kind::UpdateWorkflow(update)];
    let operations = kinds.into_iter().map(|kind| Operation { operation: Some(kind) }).collect();
    let both = ExecuteMultiOperationRequest { namespace: "default".into(), operations, ..Default::default() };
    assert_eq!(refused!(front, execute_multi_operation, both).code(), Code::DataLoss);
    let brought = [
        "UpdateWorkflowExecution",
        "PollWorkflowExecutionUpdate",
        "PollWorkflowExecutionUpdate",
        "ExecuteMultiOperation",
    ];
    assert_eq!(town.brought(), brought);
}

#[tokio::test]
async fn calls_that_wait_for_another_node_have_their_places_and_no_more() {
    let town = Town::new(Town::there(), &[Does::Hangs, Does::Hangs]);
    let limits = Limits { calls_max: 1, polls_max: 1, ..Limits::default() };
    let peers: Arc<dyn Peers> = Arc::clone(&town) as _;
    let mut front = Front::among(limits, Arc::new(unknowing), Some(peers)).await;
    let waits = |mut client: WorkflowServiceClient<Channel>| async move {
        client.start_workflow_execution(start()).await.map(drop)
    };
    let waiting: Vec<_> = (0..2).map(|_| tokio::spawn(waits(front.client.clone()))).collect();
    patience::until("both are brought", async || town.brought().len() == 2).await.expect("they are");
    assert_eq!(refused!(front, start_workflow_execution, start()).code(), Code::ResourceExhausted);
    assert_eq!(town.brought().len(), 2, "it is not brought");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    let is_reached = async || refused!(front, start_workflow_execution, start()).code() == Code::DataLoss;
    patience::until("another node is reached", is_reached).await.expect("there is room again");
}

#[tokio::test]
async fn whoever_changes_a_namespace_is_one_node() {
    let town = Town::new(Town::there(), &[]);
    let mut front = front(&town).await;
    let mut operator = OperatorServiceClient::new(front.channel.clone());
    let codes = [
        refused!(front, register_namespace, RegisterNamespaceRequest::default()),
        refused!(front, update_namespace, UpdateNamespaceRequest::default()),
        operator.add_search_attributes(AddSearchAttributesRequest::default()).await.expect_err("brought"),
        operator
            .remove_search_attributes(RemoveSearchAttributesRequest::default())
            .await
            .expect_err("brought"),
        operator.delete_namespace(DeleteNamespaceRequest::default()).await.expect_err("brought"),
    ]
    .map(|status| status.code());
    assert_eq!(codes, [Code::DataLoss; 5]);
    let brought = [
        "RegisterNamespace",
        "UpdateNamespace",
        "AddSearchAttributes",
        "RemoveSearchAttributes",
        "DeleteNamespace",
    ];
    assert_eq!(town.brought(), brought);
    let listed = ListSearchAttributesRequest { namespace: "default".into() };
    assert!(operator.list_search_attributes(listed).await.is_ok(), "any node answers what changes nothing");
}

#[tokio::test]
async fn a_question_about_a_queue_goes_where_the_tasks_of_its_kind_meet() {
    const ENHANCED: i32 = 1;
    let town = Town::new(Town::there(), &[]);
    let mut front = front(&town).await;
    for (api_mode, task_queue_type, task_queue_types) in [
        (0, 0, vec![]),
        (0, 1, vec![]),
        (0, 2, vec![]),
        (ENHANCED, 2, vec![]),
        (ENHANCED, 0, vec![2]),
        (ENHANCED, 0, vec![1, 2]),
    ] {
        let request = DescribeTaskQueueRequest {
            namespace: "default".into(),
            task_queue: queue("orders", ""),
            api_mode,
            task_queue_type,
            task_queue_types,
            ..Default::default()
        };
        assert_eq!(refused!(front, describe_task_queue, request).code(), Code::DataLoss);
    }
    let homes = town.homes.lock().clone();
    let activities: Vec<_> = homes.iter().map(|(_, activities)| *activities).collect();
    assert_eq!(activities, [false, false, true, false, true, false]);
}

#[tokio::test]
async fn of_both_kinds_each_is_asked_for_where_it_meets() {
    let town = Town::new(Location::Here, &[]);
    let mut front = front(&town).await;
    let request = DescribeTaskQueueRequest {
        namespace: "default".into(),
        task_queue: queue("orders", ""),
        api_mode: 1,
        task_queue_types: vec![1, 2],
        report_pollers: true,
        ..Default::default()
    };
    let answer = front.client.describe_task_queue(request).await.expect("it is answered").into_inner();
    let kinds: Vec<_> = answer.versions_info[""].types_info.keys().copied().collect();
    assert_eq!(kinds, [1, 2]);
    let activities: Vec<_> = town.homes.lock().iter().map(|(_, activities)| *activities).collect();
    assert_eq!(activities, [false, true]);
}

#[tokio::test]
async fn what_says_not_where_it_belongs_is_answered_here() {
    let town = Town::new(Town::there(), &[]);
    let mut front = front(&town).await;
    let mut request = start();
    request.namespace = "no".into();
    assert_eq!(refused!(front, start_workflow_execution, request).code(), Code::NotFound);
    let forged = everlog_temporal_api::workflowservice::RespondWorkflowTaskCompletedRequest {
        task_token: Bytes::from_static(b"forged"),
        ..Default::default()
    };
    assert_eq!(refused!(front, respond_workflow_task_completed, forged).code(), Code::InvalidArgument);
    assert!(town.brought().is_empty());
}

#[tokio::test]
async fn what_was_not_taken_is_brought_again_and_nothing_else_is() {
    let unsent = Does::Breaks(Broken::Unsent);
    let town = Town::new(Town::there(), &[Does::Moved, unsent, Does::Answers]);
    let mut front = front(&town).await;
    assert_eq!(refused!(front, start_workflow_execution, start()).code(), Code::DataLoss);
    assert_eq!(town.brought().len(), 3);
    town.does.lock().extend([Does::Breaks(Broken::Unanswered); 2]);
    let answer = refused!(front, start_workflow_execution, start());
    assert_eq!(answer.code(), Code::Unavailable, "it may have taken effect");
    assert_eq!(town.brought().len(), 4);
    let describe =
        DescribeWorkflowExecutionRequest { namespace: "default".into(), execution: Some(Default::default()) };
    assert_eq!(
        refused!(front, describe_workflow_execution, describe).code(),
        Code::DataLoss,
        "a read has none"
    );
    assert_eq!(town.brought().len(), 6);
}

#[tokio::test]
async fn a_poll_that_breaks_off_is_told_as_lost_and_brought_again_as_another_one() {
    let unanswered = Does::Breaks(Broken::Unanswered);
    let unsent = Does::Breaks(Broken::Unsent);
    let town = Town::new(Town::there(), &[unanswered, unsent, unanswered, Does::Answers]);
    let mut front = front(&town).await;
    let poll = PollActivityTaskQueueRequest {
        namespace: "default".into(),
        task_queue: queue("q", ""),
        ..Default::default()
    };
    assert_eq!(refused!(front, poll_activity_task_queue, poll).code(), Code::DataLoss);
    let polls = town.polls.lock().clone();
    assert_eq!(polls.len(), 4);
    assert_eq!(polls.iter().collect::<BTreeSet<_>>().len(), 4, "each time another one: {polls:?}");
    let lost = town.lost.lock().clone();
    let expected = [&polls[0], &polls[2]].map(|poll_id| ("b".to_owned(), poll_id.clone()));
    assert_eq!(lost, expected, "what was not sent has claimed nothing");
    refused!(front, start_workflow_execution, start());
    assert_eq!(town.polls.lock().len(), 4, "only polls are known by ids");
}

#[tokio::test]
async fn a_node_that_never_answers_holds_a_call_no_longer_than_its_caller_waits() {
    let town = Town::new(Town::there(), &[Does::Hangs]);
    let front = front(&town).await;
    let message = start().encode_to_vec();
    let length = u32::try_from(message.len()).expect("a small one").to_be_bytes();
    let body = Bytes::from([&[0], &length[..], &message].concat());
    let request = Request::post("/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution")
        .header("content-type", "application/grpc")
        .header("grpc-timeout", "200m")
        .body(Body::new(Full::new(body)))
        .expect("a request");
    let answer = patience::answer("the call's answer", front.calls.clone().answer(request));
    let answer = answer.await.expect("it ends");
    let code = answer.headers().get("grpc-status").and_then(|code| code.to_str().ok());
    assert_eq!(code, Some("4"), "{answer:?}");
    assert_eq!(town.brought(), ["StartWorkflowExecution"], "once");
}

#[tokio::test]
async fn whoever_waits_for_an_owner_is_told_after_a_while() {
    let town = Town::new(Location::Nowhere, &[]);
    let mut front = front(&town).await;
    let began = Instant::now();
    let call = async { refused!(front, start_workflow_execution, start()) };
    let answer = patience::answer("the call's answer", call).await.expect("it is told");
    assert_eq!(answer.code(), Code::Unavailable);
    assert!(began.elapsed() >= Duration::from_secs(2), "an owner may come: {:?}", began.elapsed());
}

#[tokio::test]
async fn what_moves_away_while_it_waits_here_follows() {
    let town = Town::new(Location::Here, &[]);
    let (moving, peers) = (Arc::clone(&town), Arc::clone(&town) as Arc<dyn Peers>);
    let send = move |_partition, event: InboxMessage| {
        *moving.place.lock() = Town::there();
        event.refuse(CallFailure::Moved);
        true
    };
    let mut front = Front::among(Limits::default(), Arc::new(send), Some(peers)).await;
    assert_eq!(refused!(front, start_workflow_execution, start()).code(), Code::DataLoss);
    assert_eq!(town.brought(), ["StartWorkflowExecution"]);
}

#[tokio::test]
async fn a_node_that_serves_everything_looks_for_nobody_until_something_moves() {
    let town = Arc::new(Town::with(Location::Here, &[], true));
    let (moving, peers) = (Arc::clone(&town), Arc::clone(&town) as Arc<dyn Peers>);
    let send = move |_partition, event: InboxMessage| {
        *moving.place.lock() = Town::there();
        event.refuse(CallFailure::Moved);
        true
    };
    let mut front = Front::among(Limits::default(), Arc::new(send), Some(peers)).await;
    let request = DescribeTaskQueueRequest {
        namespace: "default".into(),
        task_queue: queue("q", ""),
        ..Default::default()
    };
    front.client.describe_task_queue(request).await.expect("the home is here");
    assert!(town.homes.lock().is_empty());
    // The partition is gone when it is asked.
    assert_eq!(refused!(front, start_workflow_execution, start()).code(), Code::DataLoss);
    assert_eq!(town.brought(), ["StartWorkflowExecution"]);
}

#[tokio::test]
async fn a_worker_that_ends_is_told_to_all_nodes() {
    let town = Town::new(Location::Here, &[]);
    let mut front = front(&town).await;
    let request = ShutdownWorkerRequest { namespace: "default".into(), ..Default::default() };
    front.client.shutdown_worker(request).await.expect("it is answered here");
    patience::until("both are told", async || town.brought().len() == 2).await.expect("they are");
    let brought = town.brought.lock().clone();
    assert!(brought.iter().any(|(_, node)| node == "b") && brought.iter().any(|(_, node)| node == "c"));
}
