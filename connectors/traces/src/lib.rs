//! Spans of calls and of public commands, exported by OpenTelemetry's protocol over gRPC. Off unless the environment asks for them.
//!
//! A span waits in a bounded queue and is dropped where that is full: nothing waits for a collector.

mod bounded;
mod settings;
mod tls;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

pub use opentelemetry::KeyValue;

pub use crate::bounded::SpanCounts;
pub use crate::settings::TracesError;

/// How long the end of a node waits for a collector that does not answer.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Makes spans. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Traces {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
    counts: Arc<SpanCounts>,
}

impl Traces {
    /// By the variables of OpenTelemetry; none where they ask for no traces. Needs a runtime of tokio.
    ///
    /// # Errors
    /// [`TracesError`]: a variable asks for what there is not.
    pub fn from_environment(node: &str, release: &'static str) -> Result<Option<Self>, TracesError> {
        let variable = |name: &str| std::env::var(name).ok();
        if !settings::are_wanted(variable)? {
            return Ok(None);
        }
        let counts = Arc::new(SpanCounts::default());
        let processor = bounded::processor(&counts, tls::config(variable)?)?;
        let own = [
            KeyValue::new("service.instance.id", node.to_owned()),
            KeyValue::new("service.version", release),
        ];
        let mut resource = Resource::builder().with_attributes(own);
        if !settings::names_service(variable) {
            resource = resource.with_service_name("everlog");
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_span_processor(processor)
            .build();
        Ok(Some(Self { tracer: provider.tracer("everlog"), provider, counts }))
    }

    /// What became of spans.
    pub fn counts(&self) -> &Arc<SpanCounts> {
        &self.counts
    }

    /// The span of a call that a client has made, within the trace that its headers name; they are asked for by name.
    pub fn call(
        &self,
        service: &'static str,
        method: &'static str,
        namespace: &str,
        header: impl Fn(&str) -> Option<String>,
    ) -> CallSpan {
        let parent = context(header);
        let mut attributes = vec![
            KeyValue::new("rpc.system", "grpc"),
            KeyValue::new("rpc.service", service),
            KeyValue::new("rpc.method", method),
        ];
        if !namespace.is_empty() {
            attributes.push(KeyValue::new("temporalNamespace", namespace.to_owned()));
        }
        let builder = self.tracer.span_builder(format!("{service}/{method}"));
        let builder = builder.with_kind(SpanKind::Server).with_attributes(attributes);
        CallSpan(self.tracer.build_with_context(builder, &parent))
    }

    /// The span of what was read from a topic and is done by now, within the trace that its producer has named. `began_ms` is
    /// when it was taken in, in ms since 1970; `refused` names why it had no effect.
    pub fn processed(
        &self,
        topic: &str,
        traceparent: Option<&str>,
        began_ms: i64,
        mut attributes: Vec<KeyValue>,
        refused: Option<&'static str>,
    ) {
        let header = |name: &str| match name {
            "traceparent" => traceparent.map(str::to_owned),
            _other => None,
        };
        attributes.push(KeyValue::new("messaging.operation.type", "process"));
        attributes.push(KeyValue::new("messaging.destination.name", topic.to_owned()));
        let began = UNIX_EPOCH + Duration::from_millis(u64::try_from(began_ms).unwrap_or(0));
        let builder = self.tracer.span_builder(format!("process {topic}"));
        let builder =
            builder.with_kind(SpanKind::Consumer).with_attributes(attributes).with_start_time(began);
        let mut span = self.tracer.build_with_context(builder, &context(header));
        if let Some(code) = refused {
            span.set_attribute(KeyValue::new("error.type", code));
            span.set_status(Status::error(code));
        }
        // The clock of what took it in may be ahead of this one.
        span.end_with_timestamp(SystemTime::now().max(began));
    }

    /// Exports what waits, for two seconds at most.
    pub async fn end(self) {
        // The exporter runs on this runtime, which the wait must not block.
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(ENDS_WITHIN));
        if let Ok(Err(error)) = ended.await {
            tracing::warn!(%error, "the last spans are not exported");
        }
    }
}

/// The trace that these headers name.
fn context(header: impl Fn(&str) -> Option<String>) -> Context {
    let headers = TraceHeaders(["traceparent", "tracestate"].map(header));
    TraceContextPropagator::new().extract_with_context(&Context::new(), &headers)
}

/// A call while it lasts. It ends where it is dropped.
#[derive(Debug)]
pub struct CallSpan(Span);

impl CallSpan {
    /// Notes how the call was answered: the number and the name of its gRPC code, and whether it is the server's fault.
    pub fn answered(&mut self, code: i32, name: &'static str, is_fault: bool) {
        self.0.set_attribute(KeyValue::new("rpc.grpc.status_code", i64::from(code)));
        if is_fault {
            self.0.set_status(Status::error(name));
        }
    }

    /// Notes the workflow that the call is for.
    pub fn is_for(&mut self, workflow_id: &str) {
        self.0.set_attribute(KeyValue::new("temporalWorkflowID", workflow_id.to_owned()));
    }
}

/// The headers of W3C's trace context.
struct TraceHeaders([Option<String>; 2]);

impl Extractor for TraceHeaders {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.0[0].as_deref(),
            "tracestate" => self.0[1].as_deref(),
            _other => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}
