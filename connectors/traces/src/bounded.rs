//! The queue between calls and the exporter: what does not fit is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter as OtlpExporter, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};

/// The variable for how many spans may wait, and OpenTelemetry's default.
const QUEUE: (&str, u64) = ("OTEL_BSP_MAX_QUEUE_SIZE", 2_048);

/// What became of spans since the start.
#[derive(Debug, Default)]
pub struct SpanCounts {
    waiting: AtomicU64,
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl SpanCounts {
    /// `exported`: a collector has them; `dropped`: too many waited; `failed`: the collector did not take them.
    pub fn outcomes(&self) -> [(&'static str, u64); 3] {
        [("exported", &self.exported), ("dropped", &self.dropped), ("failed", &self.failed)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}

/// Exports batches from a thread of its own; by TLS where it is given.
pub fn processor(
    counts: &Arc<SpanCounts>,
    tls: Option<ClientTlsConfig>,
) -> Result<impl SpanProcessor + 'static, ExporterBuildError> {
    let builder = OtlpExporter::builder().with_tonic();
    let inner = match tls {
        Some(tls) => builder.with_tls_config(tls).build()?,
        None => builder.build()?,
    };
    let most = std::env::var(QUEUE.0).ok().and_then(|most| most.parse().ok()).unwrap_or(QUEUE.1);
    // It reads the other variables.
    let batches = BatchSpanProcessor::builder(CountedExporter { inner, counts: Arc::clone(counts) })
        .with_batch_config(BatchConfigBuilder::default().build())
        .build();
    Ok(Bounded { inner: batches, counts: Arc::clone(counts), most })
}

/// Lets no more spans wait than the batches behind it take.
#[derive(Debug)]
struct Bounded {
    inner: BatchSpanProcessor,
    counts: Arc<SpanCounts>,
    most: u64,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.counts.waiting.fetch_add(1, Ordering::Relaxed) < self.most {
            self.inner.on_end(span);
        } else {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[derive(Debug)]
struct CountedExporter {
    inner: OtlpExporter,
    counts: Arc<SpanCounts>,
}

impl SpanExporter for CountedExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
        let result = self.inner.export(batch).await;
        let outcome = if result.is_ok() { &self.counts.exported } else { &self.counts.failed };
        outcome.fetch_add(count, Ordering::Relaxed);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
