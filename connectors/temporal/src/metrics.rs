//! The metrics of calls, with the names and labels that Temporal's dashboards use.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use everlog_engine::Ending;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};
use tonic::{Code, Status};

use crate::codec::status;
use crate::ending_metrics::{self, EndingMetrics, MetricRow, NamespaceEndings};
use crate::rpc::Rpc;

const SERVICE: &str = "frontend";
/// The namespace label of calls without a namespace, or with an unknown one.
pub(crate) const UNKNOWN: &str = "_unknown_";
/// The namespace label of all namespaces beyond `metric_namespaces_max`.
pub const OTHER: &str = "_other_";

const CALL_LABELS: &[&str] = &["operation", "namespace", "service_name"];
const LABELS: &str = "operation, namespace, service_name";
const LATENCY_BUCKETS_SECONDS: &[f64] =
    &[0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0];

const REQUESTS: MetricRow = ("service_requests", "counter", LABELS, "Calls that have arrived.");
const LATENCY: MetricRow =
    ("service_latency", "histogram", LABELS, "Seconds from the arrival of a call to its response.");
const PENDING: MetricRow = ("service_pending_requests", "gauge", LABELS, "Calls in progress.");
const ERRORS: MetricRow =
    ("service_errors", "counter", LABELS, "Calls that failed because of the server, not of the caller.");
const ERROR_TYPES: MetricRow = (
    "service_error_with_type",
    "counter",
    "operation, namespace, service_name, error_type",
    "Calls that failed, by gRPC code.",
);
const EXHAUSTED: MetricRow = (
    "service_errors_resource_exhausted",
    "counter",
    "operation, namespace, service_name, resource_exhausted_cause, resource_exhausted_scope",
    "Calls that were refused because a limit was reached, by cause and scope.",
);
const UNAUTHORIZED: MetricRow = (
    "service_errors_unauthorized",
    "counter",
    LABELS,
    "Calls that were refused because the caller is not known, or may not do that.",
);
const PANICS: MetricRow = ("service_panics", "counter", LABELS, "Calls whose handler panicked.");
const OF_CALLS: [MetricRow; 8] =
    [REQUESTS, LATENCY, PENDING, ERRORS, ERROR_TYPES, EXHAUSTED, UNAUTHORIZED, PANICS];

/// The metrics of the gateway.
#[derive(Clone)]
pub struct Metrics {
    requests: IntCounterVec,
    latency: HistogramVec,
    pending: IntGaugeVec,
    errors: IntCounterVec,
    error_types: IntCounterVec,
    exhausted: IntCounterVec,
    unauthorized: IntCounterVec,
    panics: IntCounterVec,
    endings: EndingMetrics,
}

impl Metrics {
    /// All of them.
    pub fn rows() -> impl Iterator<Item = MetricRow> {
        OF_CALLS.into_iter().chain(ending_metrics::ROWS)
    }

    /// Registers the metrics.
    ///
    /// # Errors
    /// A metric of one of these names is registered already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |(name, _, labels, help): MetricRow| {
            let labels: Vec<_> = labels.split(", ").collect();
            let counter = IntCounterVec::new(Opts::new(name, help), &labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let latency = HistogramOpts::new(LATENCY.0, LATENCY.3).buckets(LATENCY_BUCKETS_SECONDS.to_vec());
        let latency = HistogramVec::new(latency, CALL_LABELS)?;
        registry.register(Box::new(latency.clone()))?;
        let pending = IntGaugeVec::new(Opts::new(PENDING.0, PENDING.3), CALL_LABELS)?;
        registry.register(Box::new(pending.clone()))?;
        Ok(Self {
            requests: counter(REQUESTS)?,
            latency,
            pending,
            errors: counter(ERRORS)?,
            error_types: counter(ERROR_TYPES)?,
            exhausted: counter(EXHAUSTED)?,
            unauthorized: counter(UNAUTHORIZED)?,
            panics: counter(PANICS)?,
            endings: EndingMetrics::register(registry)?,
        })
    }

    /// Counts a call that was refused before its request was read.
    pub(crate) fn count_unread(&self, status: &Status) {
        self.requests.with_label_values(&[UNKNOWN, UNKNOWN, SERVICE]).inc();
        self.count_error(UNKNOWN, UNKNOWN, status);
    }

    fn count_error(&self, operation: &str, namespace: &str, status: &Status) {
        let code = format!("{:?}", status.code());
        self.error_types.with_label_values(&[operation, namespace, SERVICE, &code]).inc();
        match status.code() {
            Code::ResourceExhausted => {
                let (cause, scope) = status::exhaustion(status);
                self.exhausted.with_label_values(&[operation, namespace, SERVICE, cause, scope]).inc();
            }
            Code::PermissionDenied | Code::Unauthenticated => {
                self.unauthorized.with_label_values(&[operation, namespace, SERVICE]).inc();
            }
            Code::Unknown | Code::Aborted | Code::Internal | Code::Unavailable | Code::DataLoss => {
                self.errors.with_label_values(&[operation, namespace, SERVICE]).inc();
            }
            Code::Ok
            | Code::Cancelled
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => {}
        }
    }
}

/// The metrics of one namespace, looked up once per RPC.
pub(crate) struct NamespaceMetrics {
    label: Arc<str>,
    metrics: Metrics,
    handles: [OnceLock<Handles>; Rpc::COUNT],
    endings: NamespaceEndings,
}

/// The metrics of one RPC in one namespace.
struct Handles {
    requests: IntCounter,
    latency: Histogram,
    pending: IntGauge,
}

impl NamespaceMetrics {
    pub(crate) fn new(label: &str, metrics: Metrics) -> Self {
        let endings = metrics.endings.of(label);
        Self { label: label.into(), metrics, handles: [const { OnceLock::new() }; Rpc::COUNT], endings }
    }

    /// What the namespace goes by in metrics.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Counts a workflow, a task or an activity that is over.
    pub(crate) fn over(&self, ending: Ending) {
        self.endings.count(ending);
    }

    /// Counts the start of a call.
    pub(crate) fn began(&self, rpc: Rpc) {
        let handles = self.handles(rpc);
        handles.requests.inc();
        handles.pending.inc();
    }

    /// Counts the end of a call, answered or abandoned.
    pub(crate) fn ended(&self, rpc: Rpc, took: Duration) {
        let handles = self.handles(rpc);
        handles.pending.dec();
        handles.latency.observe(took.as_secs_f64());
    }

    /// Counts a failed call.
    pub(crate) fn failed(&self, rpc: Rpc, status: &Status) {
        self.metrics.count_error(rpc.name(), &self.label, status);
    }

    /// Counts a panic in a handler.
    pub(crate) fn panicked(&self, rpc: Rpc) {
        self.metrics.panics.with_label_values(&[rpc.name(), &self.label, SERVICE]).inc();
    }

    fn handles(&self, rpc: Rpc) -> &Handles {
        self.handles[rpc as usize].get_or_init(|| {
            let labels = [rpc.name(), &self.label, SERVICE];
            Handles {
                requests: self.metrics.requests.with_label_values(&labels),
                latency: self.metrics.latency.with_label_values(&labels),
                pending: self.metrics.pending.with_label_values(&labels),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(registry: &Registry, name: &str) -> Vec<String> {
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }

    #[test]
    fn a_call_is_counted_under_temporals_names() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry).expect("nothing is registered yet");
        let shop = NamespaceMetrics::new("shop", metrics);
        shop.began(Rpc::QueryWorkflow);
        let labels = r#"{namespace="shop",operation="QueryWorkflow",service_name="frontend"}"#;
        assert_eq!(
            lines(&registry, "service_pending_requests"),
            [format!("service_pending_requests{labels} 1")]
        );
        shop.ended(Rpc::QueryWorkflow, Duration::from_millis(3));
        assert_eq!(lines(&registry, "service_requests"), [format!("service_requests{labels} 1")]);
        assert_eq!(
            lines(&registry, "service_pending_requests"),
            [format!("service_pending_requests{labels} 0")]
        );
        assert_eq!(lines(&registry, "service_latency_count"), [format!("service_latency_count{labels} 1")]);
    }

    #[test]
    fn an_error_of_the_caller_is_no_error_of_the_service() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry).expect("nothing is registered yet");
        metrics.count_unread(&Status::invalid_argument("no"));
        assert_eq!(lines(&registry, "service_error_with_type").len(), 1);
        assert!(lines(&registry, "service_errors{").is_empty());
        metrics.count_unread(&Status::internal("broken"));
        assert_eq!(lines(&registry, "service_errors{").len(), 1);
        for refusal in [Status::unauthenticated("who"), Status::permission_denied("no")] {
            metrics.count_unread(&refusal);
        }
        let unauthorized = lines(&registry, "service_errors_unauthorized{");
        assert!(matches!(&*unauthorized, [line] if line.ends_with(" 2")), "{unauthorized:?}");
    }

    #[test]
    fn a_second_gateway_cannot_register_under_the_same_names() {
        let registry = Registry::new();
        assert!(Metrics::register(&registry).is_ok());
        assert!(Metrics::register(&registry).is_err());
    }
}
