//! Spans of calls, as a collector of OpenTelemetry receives them; and collectors that are away, hang, or are too slow.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::*;
use everlog_tests::certificates::Authority;
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
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::{Message, Name};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::{Certificate, Channel, Identity, ServerTlsConfig};
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
        Self::serve("http", free_address()?, tonic::transport::Server::builder())
    }

    /// By TLS; it takes spans of those alone whom the authority has certified.
    async fn secured(authority: &Authority) -> anyhow::Result<Self> {
        let address = free_address()?;
        let own = authority.certify(&address.ip().to_string());
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(own.certificate, own.key))
            .client_ca_root(Certificate::from_pem(authority.certificate()));
        Self::serve("https", address, tonic::transport::Server::builder().tls_config(tls)?)
    }

    fn serve(
        scheme: &str,
        address: SocketAddr,
        mut server: tonic::transport::Server,
    ) -> anyhow::Result<Self> {
        let (sent, spans) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let service = server.add_service(TraceServiceServer::new(Receiver(sent)));
        tokio::spawn(service.serve_with_shutdown(address, async { drop(stopped.await) }));
        Ok(Self { endpoint: format!("{scheme}://{address}"), spans, _stop: stop })
    }

    /// The next span of a method.
    async fn next(&mut self, method: &str) -> anyhow::Result<(Vec<KeyValue>, Span)> {
        self.next_named(|name| name.ends_with(&format!("/{method}"))).await
    }

    async fn next_named(
        &mut self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> anyhow::Result<(Vec<KeyValue>, Span)> {
        let wanted = async {
            while let Some((resource, span)) = self.spans.recv().await {
                if is_wanted(&span.name) {
                    return Ok((resource, span));
                }
            }
            anyhow::bail!("the collector has ended")
        };
        patience::answer("a span", wanted).await?
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

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_of_a_producer_goes_on_in_the_span_of_its_command() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut collector = Collector::start().await?;
    let server =
        Server::start(dir.path(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.endpoint), DELAY]).await?;
    let send = async |value: &str| {
        let trace = format!("00-{TRACE}-{PARENT}-01");
        let body =
            format!(r#"{{"key": "order-8", "headers": {{"traceparent": "{trace}"}}, "value": {value}}}"#);
        let json = [("Content-Type", "application/json")];
        let (status, said) = page::ask(server.http_address(), "POST /commands", &json, &body).await?;
        ensure!(status == 200, "{status}: {said}");
        anyhow::Ok(())
    };
    send(r#"{"type": "signal", "signal": {"name": "paid"}}"#).await?;
    send(r#"{"type": "start", "start": {"workflow_type": "Order", "task_queue": "orders"}}"#).await?;
    for is_refused in [true, false] {
        let (_, span) = collector.next_named(|name| name.starts_with("process ")).await?;
        let trace = (hex(&span.trace_id), hex(&span.parent_span_id));
        ensure!(trace == (TRACE.into(), PARENT.into()), "{span:?}");
        ensure!(span.kind() == SpanKind::Consumer && span.end_time_unix_nano >= span.start_time_unix_nano);
        let attribute = |key| text(&span.attributes, key);
        ensure!(attribute("temporalWorkflowID") == Some("order-8"), "{span:?}");
        ensure!(attribute("temporalNamespace") == Some("default"), "{span:?}");
        ensure!(attribute("error.type") == is_refused.then_some("not_found"), "{span:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_is_reached_by_tls_with_a_certificate_of_the_node() -> anyhow::Result<()> {
    let (dir, authority) = (tempfile::tempdir()?, Authority::new("authority"));
    let mut collector = Collector::secured(&authority).await?;
    let node = authority.certify("node");
    let file = |name: &str, text: String| -> anyhow::Result<String> {
        let path = dir.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let ca = file("ca.pem", authority.certificate())?;
    let other = file("other.pem", Authority::new("other").certificate())?;
    let (certificate, key) = (file("node.pem", node.certificate)?, file("node.key", node.key)?);
    let common = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate.as_str()),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", key.as_str()),
        DELAY,
    ];
    let with = |authority| [&common[..], &[("OTEL_EXPORTER_OTLP_CERTIFICATE", authority)]].concat();

    // The collector is none that it trusts.
    let mut server = Server::start(&dir.path().join("wary"), &with(&other)).await?;
    let channel = server.connect().await?;
    send(&channel, &format!("00-{TRACE}-{PARENT}-01"), start("unseen")).await?;
    let failed = async || counted(&server, "failed").await.is_ok_and(|failed| failed >= 1.0);
    patience::until("a span fails", failed).await?;
    ensure!(server.stop()?.success());

    let server = Server::start(&dir.path().join("trusting"), &with(&ca)).await?;
    let channel = server.connect().await?;
    send(&channel, &format!("00-{TRACE}-{PARENT}-01"), start("order-7")).await?;
    let (_, span) = collector.next("StartWorkflowExecution").await?;
    ensure!(text(&span.attributes, "temporalWorkflowID") == Some("order-7"), "{span:?}");
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
