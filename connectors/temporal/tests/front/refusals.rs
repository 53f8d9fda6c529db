//! Calls that are refused before anything is written, each with its code and the beginning of its message.

use std::time::Duration;

use bytes::Bytes;
use everlog_patience as patience;
use everlog_temporal::Limits;
use everlog_temporal_api::namespace::NamespaceConfig;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::workflowservice::*;
use tonic::{Code, Request};

use crate::Front;
use crate::sample::{NS, UUID, expect, large, long, queue, refused, run, signal, span};

/// Row of the list of bad inputs, what spoils the signal, and how the refusal begins.
type Row = (&'static str, fn(&mut SignalWorkflowExecutionRequest), &'static str);

#[rustfmt::skip]
const SIGNALS: &[Row] = &[
    ("5", |s| s.workflow_execution = run("", ""), "WorkflowId is not set on request."),
    ("11", |s| s.workflow_execution = run("w", "x"), "Invalid RunId."),
    ("12", |s| s.workflow_execution = None, "Execution is not set on request."),
    ("14", |s| s.signal_name.clear(), "SignalName is not set on request."),
    ("14", |s| s.signal_name = long(), "SignalName length exceeds limit."),
    ("19", |s| s.input = large(), "Blob data size exceeds limit."),
];

#[tokio::test]
async fn signals_are_refused_with_their_code_and_message() {
    let mut front = Front::open().await;
    for (row, spoil, message) in SIGNALS {
        let mut request = signal();
        spoil(&mut request);
        let status = refused!(front, signal_workflow_execution, request);
        expect(row, &status, Code::InvalidArgument, message);
    }
    let status = refused!(front, signal_workflow_execution, signal());
    expect("55", &status, Code::NotFound, "workflow execution not found");
}

#[tokio::test]
async fn queries_are_refused_with_their_code_and_message() {
    let mut front = Front::open().await;
    let heavy = WorkflowQuery { query_type: "q".into(), query_args: large(), ..Default::default() };
    for (row, query, message) in [
        ("15", None, "WorkflowQuery is not set on request."),
        ("15", Some(WorkflowQuery::default()), "QueryType is not set on request."),
        ("19", Some(heavy), "Blob data size exceeds limit."),
    ] {
        let request = QueryWorkflowRequest {
            namespace: NS.into(),
            execution: run("order-1", ""),
            query,
            ..Default::default()
        };
        let status = refused!(front, query_workflow, request);
        expect(row, &status, Code::InvalidArgument, message);
    }
}

#[tokio::test]
async fn page_tokens_that_were_not_made_here_lead_nowhere() {
    let mut front = Front::open().await;
    let history = |next_page_token: &'static [u8]| GetWorkflowExecutionHistoryRequest {
        namespace: NS.into(),
        execution: run("order-1", UUID),
        next_page_token: next_page_token.into(),
        ..Default::default()
    };
    let garbage = refused!(front, get_workflow_execution_history, history(b"garbage"));
    expect("64", &garbage, Code::InvalidArgument, "Invalid NextPageToken.");
    let unknown = refused!(front, get_workflow_execution_history, history(b""));
    expect("55", &unknown, Code::NotFound, "workflow execution not found");
}

#[tokio::test]
async fn task_tokens_that_were_not_made_here_complete_nothing() {
    let mut front = Front::open().await;
    let bad = Code::InvalidArgument;
    for (row, token, message) in [
        ("56", &b""[..], "Task token not set on request."),
        ("56", b"garbage", "Error deserializing task token."),
        ("58", &[1; 200], "Error deserializing task token."),
    ] {
        let task_token = Bytes::copy_from_slice(token);
        let workflow =
            RespondWorkflowTaskCompletedRequest { namespace: NS.into(), task_token, ..Default::default() };
        let task_token = workflow.task_token.clone();
        expect(row, &refused!(front, respond_workflow_task_completed, workflow), bad, message);
        let activity =
            RespondActivityTaskCompletedRequest { namespace: NS.into(), task_token, ..Default::default() };
        expect(row, &refused!(front, respond_activity_task_completed, activity), bad, message);
    }
}

#[tokio::test]
async fn polls_with_hardly_any_time_are_refused_and_without_deadline_welcome() {
    // So long that what a call loses of it on its way does not matter.
    const LEAST_MS: u64 = 3_600_000;
    assert_eq!(Limits::default().poll_deadline_min_ms, 2_000);
    let limits = Limits { poll_wait_ms: 1_000, poll_deadline_min_ms: LEAST_MS, ..Limits::default() };
    let mut front = Front::with(limits, std::sync::Arc::new(|_, _| true)).await;
    let poll = || PollWorkflowTaskQueueRequest {
        namespace: NS.into(),
        task_queue: queue("orders"),
        ..Default::default()
    };
    let mut hurried = Request::new(poll());
    hurried.set_timeout(Duration::from_millis(LEAST_MS - 500));
    let status = refused!(front, poll_workflow_task_queue, hurried);
    expect("63", &status, Code::FailedPrecondition, "Context timeout is too short.");

    let mut patient = Request::new(poll());
    patient.set_timeout(Duration::from_millis(LEAST_MS) + patience::most());
    let empty =
        front.client.poll_workflow_task_queue(patient).await.expect("empty, and no error").into_inner();
    assert_eq!(empty, PollWorkflowTaskQueueResponse::default());
    let endless =
        front.client.poll_workflow_task_queue(poll()).await.expect("no deadline is fine").into_inner();
    assert_eq!(endless, PollWorkflowTaskQueueResponse::default());
}

#[tokio::test]
async fn namespaces_are_refused_with_their_code_and_message() {
    let mut front = Front::open().await;
    let register = |namespace: &str, retention| RegisterNamespaceRequest {
        namespace: namespace.into(),
        workflow_execution_retention_period: retention,
        ..Default::default()
    };
    let retention = "A valid retention period is not set on request.";
    let bad = Code::InvalidArgument;
    for given in [None, span(0), span(3_599), span(-3_600)] {
        let status = refused!(front, register_namespace, register("shop", given));
        expect("68", &status, bad, retention);
    }
    let global = RegisterNamespaceRequest { is_global_namespace: true, ..register("shop", span(3_600)) };
    expect("68", &refused!(front, register_namespace, global), bad, retention);
    front.client.register_namespace(register("shop", span(86_400))).await.expect("new");
    let again = refused!(front, register_namespace, register("shop", span(86_400)));
    expect("exists", &again, Code::AlreadyExists, "Namespace shop already exists.");
    let config = NamespaceConfig { workflow_execution_retention_ttl: span(60), ..Default::default() };
    let update =
        UpdateNamespaceRequest { namespace: "shop".into(), config: Some(config), ..Default::default() };
    expect("68", &refused!(front, update_namespace, update), bad, retention);
}

#[tokio::test]
async fn a_namespace_that_asks_for_too_much_is_turned_away() {
    let limits = Limits { namespace_calls_per_second: 1, ..Limits::default() };
    let mut front = Front::with(limits, std::sync::Arc::new(|_, _| false)).await;
    // How many calls the test has made before is the machine's affair.
    let deadline = patience::deadline();
    let status = loop {
        let status = refused!(front, signal_workflow_execution, signal());
        if status.code() == Code::ResourceExhausted {
            break status;
        }
        assert!(!deadline.is_over(), "nobody is turned away");
    };
    expect("71", &status, Code::ResourceExhausted, "namespace rate limit exceeded");
    let cause = status.metadata().get("x-resource-exhausted-cause").map(|cause| cause.as_bytes());
    assert_eq!(cause, Some(&b"RpsLimit"[..]));
}
