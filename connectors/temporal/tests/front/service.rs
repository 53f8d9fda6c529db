//! What holds for every call: sizes, compression, panics, metrics, health, and the end of the service.

use std::sync::Arc;

use bytes::Bytes;
use everlog_patience as patience;
use everlog_temporal::Limits;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::namespace::namespace_info;
use everlog_temporal_api::operatorservice::ListNexusEndpointsRequest;
use everlog_temporal_api::operatorservice::operator_service_client::OperatorServiceClient;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::*;
use prost::Message;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::Front;
use crate::sample::contents;

fn signal(workflow_id: &str, input: usize) -> SignalWorkflowExecutionRequest {
    SignalWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_execution: Some(WorkflowExecution { workflow_id: workflow_id.into(), ..Default::default() }),
        signal_name: "pay".into(),
        input: contents(input),
        ..Default::default()
    }
}

fn poll(queue: &str, worker: &str) -> PollWorkflowTaskQueueRequest {
    PollWorkflowTaskQueueRequest {
        namespace: "default".into(),
        task_queue: Some(TaskQueue { name: queue.into(), ..Default::default() }),
        worker_instance_key: worker.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused_in_the_words_that_sdks_look_for() {
    let mut front = Front::open().await;
    let status = front.client.signal_workflow_execution(signal("w", 5 << 20)).await.expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().starts_with("grpc: received message larger than max ("), "{}", status.message());
    let mut zipping = front.client.clone().send_compressed(Gzip);
    let status = zipping.signal_workflow_execution(signal("w", 100 << 20)).await.expect_err("a bomb");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().starts_with("grpc: received message after decompression larger than max"));
}

#[tokio::test]
async fn requests_and_answers_may_be_compressed() {
    let front = Front::open().await;
    let mut zipping = front.client.clone().send_compressed(Gzip).accept_compressed(Gzip);
    zipping.get_system_info(GetSystemInfoRequest {}).await.expect("answered");
    let status = zipping.signal_workflow_execution(signal("w", 1 << 20)).await.expect_err("no such run");
    assert_eq!(status.code(), Code::NotFound);
    // Java's SDK sends its health check so before anything else.
    let mut health = HealthClient::new(front.channel.clone()).send_compressed(Gzip);
    let healthy = health.check(HealthCheckRequest::default()).await.expect("answered").into_inner();
    assert_eq!(healthy.status, 1);
    let bomb = HealthCheckRequest { service: "x".repeat(4 << 20) };
    let status = health.check(bomb).await.expect_err("a bomb");
    assert!(status.message().starts_with("grpc: received message after decompression larger than max"));
}

/// Each of them turns something on in SDKs: only what works is announced.
#[tokio::test]
async fn the_server_and_its_namespaces_announce_what_they_can_and_nothing_else() {
    let mut front = Front::open().await;
    let info = front.client.get_system_info(GetSystemInfoRequest {}).await.expect("answered").into_inner();
    let expected = get_system_info_response::Capabilities {
        signal_and_query_header: true,
        internal_error_differentiation: true,
        activity_failure_include_heartbeat: true,
        supports_schedules: true,
        encoded_failure_attributes: true,
        build_id_based_versioning: true,
        upsert_memo: true,
        eager_workflow_start: true,
        sdk_metadata: true,
        count_group_by_execution_status: true,
        nexus: false,
        server_scaled_deployments: false,
        server_scaled_provider_cloud_run: false,
    };
    assert_eq!((info.server_version.as_str(), info.capabilities), ("0.1.0", Some(expected)));
    let request = DescribeNamespaceRequest { namespace: "default".into(), ..Default::default() };
    let found = front.client.describe_namespace(request).await.expect("known").into_inner();
    let info = found.namespace_info.expect("always there");
    let expected = namespace_info::Capabilities {
        eager_workflow_start: true,
        sync_update: true,
        async_update: true,
        worker_heartbeats: true,
        reported_problems_search_attribute: true,
        workflow_pause: true,
        standalone_activities: false,
        worker_poll_complete_on_shutdown: true,
        poller_autoscaling: false,
        worker_commands: false,
        standalone_nexus_operation: false,
        workflow_update_callbacks: false,
        poller_autoscaling_auto_enroll: false,
        workflow_task_completion_pagination: false,
        standalone_activity_start_delay: false,
        standalone_activity_batch_operations: false,
        standalone_activity_operator_commands: false,
    };
    assert_eq!((info.supports_schedules, info.capabilities), (true, Some(expected)));
}

/// A signal whose text fields hold any bytes.
#[derive(Clone, PartialEq, Message)]
struct Raw {
    #[prost(bytes = "bytes", tag = "1")]
    namespace: Bytes,
}

async fn send_raw(front: &Front, path: &'static str, raw: Raw) -> Status {
    let mut grpc = tonic::client::Grpc::new(front.channel.clone());
    grpc.ready().await.expect("connected");
    let codec = tonic_prost::ProstCodec::<Raw, SignalWorkflowExecutionResponse>::default();
    grpc.unary(Request::new(raw), PathAndQuery::from_static(path), codec)
        .await
        .map(drop)
        .expect_err("refused")
}

#[tokio::test]
async fn text_that_is_not_utf8_and_calls_that_do_not_exist_stop_nothing() {
    let mut front = Front::open().await;
    let raw = Raw { namespace: Bytes::from_static(b"\xff\xfe") };
    let path = "/temporal.api.workflowservice.v1.WorkflowService/SignalWorkflowExecution";
    assert_eq!(send_raw(&front, path, raw.clone()).await.code(), Code::Internal);
    let path = "/temporal.api.workflowservice.v1.WorkflowService/NoSuchCall";
    assert_eq!(send_raw(&front, path, raw.clone()).await.code(), Code::Unimplemented);
    assert_eq!(send_raw(&front, "/no.such.Service/Call", raw).await.code(), Code::Unimplemented);
    let later = front.client.list_worker_deployments(ListWorkerDeploymentsRequest::default()).await;
    assert_eq!(later.expect_err("later").code(), Code::Unimplemented);
    let mut operator = OperatorServiceClient::new(front.channel.clone());
    let later = operator.list_nexus_endpoints(ListNexusEndpointsRequest::default()).await;
    assert_eq!(later.expect_err("later").code(), Code::Unimplemented);
    front.client.get_system_info(GetSystemInfoRequest {}).await.expect("still serves");
}

#[tokio::test]
async fn a_panic_costs_one_answer_and_is_counted() {
    let mut front = Front::open().await;
    let status = front.client.signal_workflow_execution(signal("panic", 0)).await.expect_err("it panics");
    assert_eq!((status.code(), status.message()), (Code::Internal, "internal error"));
    let status = front.client.signal_workflow_execution(signal("w", 0)).await.expect_err("no such run");
    assert_eq!(status.code(), Code::NotFound);
    let text = prometheus::TextEncoder::new().encode_to_string(&front.registry.gather()).expect("text");
    let labels = r#"{namespace="default",operation="SignalWorkflowExecution",service_name="frontend"}"#;
    assert!(text.contains(&format!("service_panics{labels} 1")), "{text}");
    assert!(text.contains(&format!("service_requests{labels} 2")), "{text}");
    assert!(text.contains(&format!("service_pending_requests{labels} 0")), "{text}");
}

#[tokio::test]
async fn unknown_namespaces_share_one_label() {
    let mut front = Front::open().await;
    for number in 0..20 {
        let request = SignalWorkflowExecutionRequest { namespace: format!("no-{number}"), ..signal("w", 0) };
        let status = front.client.signal_workflow_execution(request).await.expect_err("unknown");
        assert_eq!(status.code(), Code::NotFound);
    }
    let text = prometheus::TextEncoder::new().encode_to_string(&front.registry.gather()).expect("text");
    assert!(!text.contains("no-1"), "{text}");
    let labels = r#"{namespace="_unknown_",operation="SignalWorkflowExecution",service_name="frontend"}"#;
    assert!(text.contains(&format!("service_requests{labels} 20")), "{text}");
}

#[tokio::test]
async fn namespaces_are_listed_page_by_page() {
    let mut front = Front::open().await;
    for name in ["shop", "bank"] {
        let period = Some(prost_types::Duration { seconds: 86_400, nanos: 0 });
        let request = RegisterNamespaceRequest {
            namespace: name.into(),
            workflow_execution_retention_period: period,
            ..Default::default()
        };
        front.client.register_namespace(request).await.expect("new");
    }
    let mut names = Vec::new();
    let mut next_page_token = Bytes::new();
    loop {
        let request = ListNamespacesRequest { page_size: 2, next_page_token, ..Default::default() };
        let page = front.client.list_namespaces(request).await.expect("a page").into_inner();
        names.extend(
            page.namespaces.into_iter().filter_map(|found| found.namespace_info).map(|info| info.name),
        );
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            break;
        }
    }
    assert_eq!(names, ["bank", "default", "shop"]);
    let request = DescribeNamespaceRequest { namespace: "default".into(), ..Default::default() };
    let found = front.client.describe_namespace(request).await.expect("known").into_inner();
    let info = found.namespace_info.expect("always there");
    assert_eq!(info.limits.expect("always there").blob_size_limit_error, 2 << 20);
    let request = DescribeNamespaceRequest { id: info.id, ..Default::default() };
    assert!(front.client.describe_namespace(request).await.is_ok());
}

/// Waits until so many polls for workflow tasks have arrived.
async fn polls_wait(front: &Front, count: usize) {
    let mut client = front.client.clone();
    let waiting = format!(
        r#"service_pending_requests{{namespace="default",operation="PollWorkflowTaskQueue",service_name="frontend"}} {count}"#
    );
    let are_there = async || {
        client.get_system_info(GetSystemInfoRequest {}).await.expect("answered");
        let text = prometheus::TextEncoder::new().encode_to_string(&front.registry.gather()).expect("text");
        text.contains(&waiting)
    };
    patience::until("polls wait", are_there).await.expect("they arrive");
}

#[tokio::test]
async fn a_worker_that_shuts_down_gets_its_polls_back_empty() {
    let front = Front::with(Default::default(), Arc::new(|_, _| true)).await;
    let polling = |worker: &'static str| {
        let mut client = front.client.clone();
        tokio::spawn(async move { client.poll_workflow_task_queue(poll("orders", worker)).await })
    };
    // It came first, and would end first if polls came to their ends by themselves.
    let other = polling("worker-2");
    polls_wait(&front, 1).await;
    let mine = polling("worker-1");
    polls_wait(&front, 2).await;
    let mut client = front.client.clone();
    let pollers = || DescribeTaskQueueRequest {
        namespace: "default".into(),
        task_queue: Some(TaskQueue { name: "orders".into(), ..Default::default() }),
        ..Default::default()
    };
    let request = ShutdownWorkerRequest {
        namespace: "default".into(),
        worker_instance_key: "worker-1".into(),
        ..Default::default()
    };
    client.shutdown_worker(request).await.expect("answered");
    let empty = patience::answer("the end of its poll", mine).await.expect("it ends").expect("no panic");
    assert_eq!(empty.expect("no error").into_inner(), PollWorkflowTaskQueueResponse::default());
    for _ in 0..10 {
        // On the same connection: an end of the other one would come before these answers.
        client.describe_task_queue(pollers()).await.expect("answered");
    }
    assert!(!other.is_finished());
    other.abort();
}

#[tokio::test]
async fn a_gateway_that_stops_ends_polls_empty_and_says_so_to_health_checks() {
    // No call is broken off while the test lasts.
    let limits = Limits { drain_ms: 3_600_000, ..Limits::default() };
    let mut front = Front::with(limits, Arc::new(|_, _| true)).await;
    let mut health = HealthClient::new(front.channel.clone());
    for service in ["", "temporal.api.workflowservice.v1.WorkflowService"] {
        let request = HealthCheckRequest { service: service.into() };
        assert_eq!(health.check(request).await.expect("known").into_inner().status, 1);
    }
    let opens = |front: &Front| {
        let mut client = front.client.clone();
        tokio::spawn(async move { client.poll_workflow_task_queue(poll("orders", "")).await })
    };
    // A poll of another gateway waits as long, and came first: it would end first if polls came to their ends by themselves.
    let goes_on = Front::with(Limits::default(), Arc::new(|_, _| true)).await;
    let other = opens(&goes_on);
    polls_wait(&goes_on, 1).await;
    let open = opens(&front);
    polls_wait(&front, 1).await;
    front.stop().await;
    let empty = patience::answer("the end of its poll", open).await.expect("it ends").expect("no panic");
    assert_eq!(empty.expect("no error").into_inner(), PollWorkflowTaskQueueResponse::default());
    assert!(!other.is_finished());
    other.abort();
}
