//! Spans of calls, as a collector of OpenTelemetry receives them; and collectors that are away, hang, or are too slow.

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::*;
use everlog_tests::server::{Server, free_address};
use everlog_tests::{page, patience, raw};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::{Message, Name};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
/// How soon spans leave, in ms.
const DELAY: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "50");

/// Receives spans, with the attributes of what sent them.
struct Collector {
    endpoint: String,
    spans: mpsc::UnboundedReceiver<(Vec<KeyValue>, Span)>,
    _stop: oneshot::Sender<()>,
}

struct Receiver(mpsc::UnboundedSender<(Vec<KeyValue>, Span)>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for sent in request.into_inner().resource_spans {
            let resource = sent.resource.unwrap_or_default().attributes;
            for span in sent.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let _nobody_looks = self.0.send((resource.clone(), span));
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start() -> anyhow::Result<Self> {
        let address = free_address()?;
        let (sent, spans) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let service =
            tonic::transport::Server::builder().add_service(TraceServiceServer::new(Receiver(sent)));
        tokio::spawn(service.serve_with_shutdown(address, async { drop(stopped.await) }));
        Ok(Self { endpoint: format!("http://{address}"), spans, _stop: stop })
    }

    /// The next span of a method.
    async fn next(&mut self, method: &str) -> anyhow::Result<(Vec<KeyValue>, Span)> {
        let wanted = async {
            while let Some((resource, span)) = self.spans.recv().await {
                if span.name.ends_with(&format!("/{method}")) {
                    return Ok((resource, span));
                }
            }
            anyhow::bail!("the collector has ended")
        };
        patience::answer(method, wanted).await?
    }
}

fn start(id: &str) -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "order".into() }),
        task_queue: Some(TaskQueue { name: "orders".into(), kind: 1, ..Default::default() }),
        request_id: format!("start {id}"),
        ..Default::default()
    }
}

fn describe(id: &str) -> DescribeWorkflowExecutionRequest {
    let execution = Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() });
    DescribeWorkflowExecutionRequest { namespace: "default".into(), execution }
}

/// Calls within a trace.
async fn send<M: Message + Name>(channel: &Channel, traceparent: &str, request: M) -> Result<Bytes, Status> {
    let mut call = Request::new(Bytes::from(request.encode_to_vec()));
    call.metadata_mut().insert("traceparent", traceparent.parse().expect("it is ASCII"));
    raw::call(channel, &raw::path_of::<M>(), call).await.map(Response::into_inner)
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let value = attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?;
    match value.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _other => None,
    }
}

fn status_code(span: &Span) -> Option<i64> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == "rpc.grpc.status_code")?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::IntValue(code) => Some(*code),
        _other => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How many spans had this outcome.
async fn counted(server: &Server, outcome: &str) -> anyhow::Result<f64> {
    let name = format!("everlog_trace_spans_total{{outcome=\"{outcome}\"}}");
    page::metric(server.metrics_address(), &name).await?.context("the metric is there")
}

/// The collector answers while the test waits for the end of the server.
#[tokio::test(flavor = "multi_thread")]
async fn the_trace_of_a_caller_goes_on_in_the_span_of_its_call() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut collector = Collector::start().await?;
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint.as_str());
    let named = ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    let mut server = Server::start(dir.path(), &[endpoint, named, DELAY]).await?;
    let channel = server.connect().await?;

    // A trace that its caller does not sample stays so.
    send(&channel, &format!("00-{}-{PARENT}-00", TRACE.replace('4', "5")), start("unsampled")).await?;
    send(&channel, &format!("00-{TRACE}-{PARENT}-01"), start("order-7")).await?;
    let (resource, span) = collector.next("StartWorkflowExecution").await?;
    ensure!((hex(&span.trace_id), hex(&span.parent_span_id)) == (TRACE.into(), PARENT.into()), "{span:?}");
    ensure!(text(&resource, "service.name") == Some("everlog"), "{resource:?}");
    ensure!(text(&resource, "deployment.environment.name") == Some("test"), "{resource:?}");
    ensure!(text(&span.attributes, "temporalNamespace") == Some("default"), "{span:?}");
    ensure!(text(&span.attributes, "temporalWorkflowID") == Some("order-7"), "{span:?}");
    ensure!(text(&span.attributes, "rpc.method") == Some("StartWorkflowExecution"), "{span:?}");
    ensure!(
        status_code(&span) == Some(0) && span.end_time_unix_nano >= span.start_time_unix_nano,
        "{span:?}"
    );

    // What is no trace context begins a trace of its own.
    let unknown = send(&channel, "00-nothing", describe("nowhere")).await;
    ensure!(unknown.is_err_and(|status| status.code() == Code::NotFound));
    let (_, span) = collector.next("DescribeWorkflowExecution").await?;
    ensure!(span.trace_id.len() == 16 && hex(&span.trace_id) != TRACE && span.parent_span_id.is_empty());
    ensure!(status_code(&span) == Some(i64::from(Code::NotFound as i32)), "{span:?}");

    // What waits is exported at the end.
    send(&channel, &format!("00-{TRACE}-{PARENT}-01"), describe("order-7")).await?;
    ensure!(server.stop()?.success());
    collector.next("DescribeWorkflowExecution").await?;
    Ok(())
}

#[tokio::test]
async fn a_collector_that_is_away_or_hangs_holds_nobody() -> anyhow::Result<()> {
    // It takes connections, and says nothing.
    let hangs = TcpListener::bind("127.0.0.1:0").await?;
    for address in [free_address()?, hangs.local_addr()?] {
        let dir = tempfile::tempdir()?;
        let endpoint = format!("http://{address}");
        let variables = [
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str()),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "8"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"),
            DELAY,
        ];
        let mut server = Server::start(dir.path(), &variables).await?;
        let channel = server.connect().await?;
        let many = async {
            for _ in 0..100 {
                let found = send(&channel, &format!("00-{TRACE}-{PARENT}-01"), describe("nowhere")).await;
                ensure!(found.is_err_and(|status| status.code() == Code::NotFound));
            }
            Ok(())
        };
        patience::answer("calls meanwhile", many).await??;
        let lost = counted(&server, "dropped").await? + counted(&server, "failed").await?;
        ensure!(counted(&server, "exported").await? == 0.0 && lost >= 80.0, "{lost}");
        ensure!(server.stop()?.success());
    }
    Ok(())
}

#[tokio::test]
async fn an_exporter_that_there_is_not_is_refused_at_the_start() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let variables = [("OTEL_TRACES_EXPORTER", "zipkin")];
    let started = patience::answer("a start", Server::start(dir.path(), &variables)).await?;
    ensure!(started.is_err());
    Ok(())
}

#[tokio::test]
async fn without_a_variable_there_are_no_spans() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[("OTEL_SDK_DISABLED", "")]).await?;
    let name = "everlog_trace_spans_total{outcome=\"exported\"}";
    ensure!(page::metric(server.metrics_address(), name).await?.is_none());
    Ok(())
}
