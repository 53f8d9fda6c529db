//! The gateway: Temporal's gRPC API on top of the engine and its partitions.
//!
//! A call is admitted (`server::call`), checked (`codec::validation`) and sent to a partition as a request. The reply becomes
//! a response or a status (`codec::status`). Payloads pass through as bytes.
//!
//! The table of RPCs is `rpc`. The crate owns namespaces, tokens and the limits of clients; it holds no state of a workflow,
//! and it opens no connection to another node: that is what [`Peers`] is for.

mod authorization;
mod batch;
mod codec;
mod ending_metrics;
mod handlers;
mod limits;
mod metrics;
mod namespaces;
mod rate_limit;
mod routing;
mod rpc;
mod schedules;
mod server;
mod service;
mod task_queues;
mod tasks;
mod visibility;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use everlog_engine::Settings;
use everlog_listen::http2::{self, Options};
use everlog_listen::{Budget, Listener};
use everlog_partition::Router;
use everlog_temporal_api::DESCRIPTOR;
use everlog_temporal_api::operatorservice::operator_service_server::OperatorServiceServer;
use everlog_temporal_api::workflowservice::workflow_service_server::{SERVICE_NAME, WorkflowServiceServer};
use everlog_traces::{SpanCounts, Traces};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::JoinSet;
use tonic::codegen::http::Response;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_reflection::server::Builder as Reflection;
use tower::Layer;

pub use crate::authorization::Guard;
pub use crate::codec::random_ids::id as random_id;
pub use crate::ending_metrics::MetricRow;
pub use crate::limits::{LimitError, Limits};
pub use crate::metrics::{Metrics, OTHER as OTHER_LABEL};
pub use crate::namespaces::namespace::{Control, DEFAULT as DEFAULT_NAMESPACE, Namespaces, Row};
pub use crate::routing::delivery_receipt::{ReceiptSlot, with_receipt};
pub use crate::routing::forward::Calls;
pub use crate::routing::peers::{Broken, Forwarded, Location, POLL_HEADER, Peers};
pub use crate::rpc::is_served;
pub use crate::server::body_limits::CallBudgets;
pub use crate::service::ApiServices;
pub use crate::task_queues::registry::TaskQueues;
pub use crate::tasks::token::{ActivityTask, KEY_BYTES_MIN, KeyError, TokenSigner};
pub use everlog_temporal_api::codec::STRUCTURE_BYTES_MAX;
pub use tonic::body::Body;

use crate::codec::validation::Checks;
use crate::handlers::worker_registry::WorkerRegistry;
use crate::rate_limit::IdentityLimits;
use crate::routing::forward::ForwardLayer;
use crate::server::body_limits::BodyLimits;
use crate::server::history_pacing::HistoryPacing;
use crate::server::transport::guarded;
use crate::tasks::poller_registry::PollerRegistry;

/// How long a connection may be silent before it gets a ping. SDKs ping as often.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long the client may take to answer the ping. Then the connection is closed, and its polls end without a task.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// The smallest flow-control window of a connection, in bytes.
const CONNECTION_WINDOW_MIN: u32 = 1 << 20;
/// Bytes of the window for each stream. The HTTP/2 library closes a connection if its unread small frames exceed half of the
/// window, and counts up to 256 bytes for each.
const CONNECTION_WINDOW_PER_STREAM: u32 = 2 * 256;
/// The largest window of HTTP/2 (RFC 9113, section 6.9.1).
const CONNECTION_WINDOW_MAX: u32 = (1 << 31) - 1;

/// A window with room for one small request on each stream.
fn connection_window(streams_max: u32) -> u32 {
    let streams = streams_max.saturating_mul(CONNECTION_WINDOW_PER_STREAM);
    streams.clamp(CONNECTION_WINDOW_MIN, CONNECTION_WINDOW_MAX)
}

/// How the server describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The semantic version.
    pub server_version: String,
    /// The UUID of the cluster, which never changes.
    pub cluster_id: String,
    /// The cluster's name.
    pub cluster_name: String,
    /// The address at which this node takes calls.
    pub address: String,
    /// The number of partitions, which clients see as history shards.
    pub partitions: u32,
    /// The name of the store of histories.
    pub persistence_store: String,
    /// The name of the visibility store; empty = none.
    pub visibility_store: String,
}

/// What a gateway is built from.
pub struct Config {
    /// How the server describes itself.
    pub about: About,
    /// The gateway's limits.
    pub limits: Limits,
    /// The engine's settings. Requests are checked against its limits before they are sent to a partition.
    pub settings: Settings,
    /// Signs and checks task tokens and page tokens.
    pub token_signer: TokenSigner,
    /// The registry of namespaces, shared with other parts of the node.
    pub namespaces: Arc<Namespaces>,
    /// What is set for task queues, shared with other parts of the node.
    pub task_queues: Arc<TaskQueues>,
    /// Sends requests to partitions.
    pub router: Router,
    /// The metrics of calls.
    pub metrics: Metrics,
    /// The other nodes; none on a single node.
    pub peers: Option<Arc<dyn Peers>>,
    /// Judges callers; none where everybody may do everything.
    pub guard: Option<Guard>,
    /// Makes a span of each call; none where traces are off.
    pub traces: Option<Traces>,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A limit is out of range.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// gRPC reflection cannot serve the API's descriptor.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A boxed future that may move between threads.
pub type CallFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Serves Temporal's API.
pub struct Gateway {
    about: About,
    limits: Limits,
    settings: Settings,
    token_signer: TokenSigner,
    namespaces: Arc<Namespaces>,
    task_queues: Arc<TaskQueues>,
    router: Router,
    pollers: Arc<PollerRegistry>,
    worker_registry: WorkerRegistry,
    calls: Arc<Budget>,
    polls: Arc<Budget>,
    /// Calls in the forwarding, answered here or at another node.
    forwarded: Arc<Budget>,
    budgets: CallBudgets,
    /// Permits for calls that read history.
    readers: Arc<Semaphore>,
    /// The rate at which their responses leave.
    history_pacing: HistoryPacing,
    /// Held while a batch job is started.
    batch_starts: Mutex<()>,
    metrics: Metrics,
    peers: Option<Arc<dyn Peers>>,
    guard: Option<Guard>,
    traces: Option<Traces>,
    identity_limits: IdentityLimits,
    stopping: watch::Sender<bool>,
}

impl Gateway {
    /// A gateway that does not serve yet.
    ///
    /// # Errors
    /// [`Error::Limit`].
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config {
            about,
            limits,
            settings,
            token_signer,
            namespaces,
            task_queues,
            router,
            metrics,
            peers,
            guard,
            traces,
        } = config;
        limits.validate()?;
        let memory = Duration::from_millis(limits.stopped_worker_ms);
        Ok(Self {
            token_signer,
            namespaces,
            task_queues,
            worker_registry: WorkerRegistry::default(),
            pollers: PollerRegistry::new(limits.stopped_workers_max, memory),
            calls: Budget::new(limits.calls_max),
            polls: Budget::new(limits.polls_max),
            forwarded: Budget::new(limits.calls_max.saturating_add(limits.polls_max)),
            budgets: CallBudgets::new(&limits),
            readers: Arc::new(Semaphore::new(limits.readers_max)),
            history_pacing: HistoryPacing::new(limits.history_bytes_per_second),
            batch_starts: Mutex::new(()),
            identity_limits: IdentityLimits::new(&limits),
            stopping: watch::Sender::new(false),
            about,
            limits,
            settings,
            router,
            metrics,
            peers,
            guard,
            traces,
        })
    }

    /// Serves until `shutdown` completes. Then open polls end empty, and calls have `drain_ms` to finish.
    ///
    /// Nothing here is generic, so that the services with their hundred messages are compiled in this crate only.
    ///
    /// # Errors
    /// [`Error`]: the listener or the descriptor.
    pub fn serve(
        self: Arc<Self>,
        listener: Listener,
        shutdown: CallFuture<()>,
    ) -> CallFuture<Result<(), Error>> {
        Box::pin(self.answer(listener, shutdown))
    }

    async fn answer(self: Arc<Self>, listener: Listener, shutdown: CallFuture<()>) -> Result<(), Error> {
        let reporter = HealthReporter::new();
        reporter.set_service_status(SERVICE_NAME, ServingStatus::Serving).await;
        let health = HealthServer::new(HealthService::from_health_reporter(reporter.clone()));
        let routes = self.services()?.add_service(health).prepare();
        let inner = ForwardLayer { gateway: Arc::clone(&self) }.layer(routes);
        let stop = async {
            shutdown.await;
            for service in ["", SERVICE_NAME] {
                reporter.set_service_status(service, ServingStatus::NotServing).await;
            }
            self.stopping.send_replace(true);
        };
        let mut jobs = JoinSet::new();
        jobs.spawn(batch::worker::run(Arc::clone(&self), self.calls()?));
        let options = Options {
            streams_max: self.limits.streams_max,
            window_bytes: connection_window(self.limits.streams_max),
            header_bytes_max: self.limits.header_bytes_max,
            alive_every: KEEPALIVE,
            alive_within: KEEPALIVE_TIMEOUT,
        };
        let served = http2::serve(listener, BodyLimits { inner, gateway: Arc::clone(&self) }, options, stop);
        let drained = async {
            self.stopped().await;
            tokio::time::sleep(Duration::from_millis(self.limits.drain_ms)).await;
        };
        let finished = async {
            served.await;
            self.stopping.send_replace(true);
            // A job that is not finished is given back: another node goes on with it.
            while jobs.join_next().await.is_some() {}
        };
        tokio::select! {
            () = finished => {}
            () = drained => {}
        }
        if let Some(traces) = &self.traces {
            traces.clone().end().await;
        }
        Ok(())
    }

    /// A response whose refusal has the text that SDKs know.
    fn guarded(&self, response: Response<Body>) -> Response<Body> {
        guarded(response, &self.metrics, self.limits.message_bytes_max)
    }

    /// The budgets that the calls of all connections share.
    pub fn budgets(&self) -> CallBudgets {
        self.budgets.clone()
    }

    /// What became of the spans of calls; none where traces are off.
    pub fn span_counts(&self) -> Option<Arc<SpanCounts>> {
        self.traces.as_ref().map(|traces| Arc::clone(traces.counts()))
    }

    /// The services, without the stages before them.
    fn services(self: &Arc<Self>) -> Result<Routes, Error> {
        let limit = self.limits.message_bytes_max;
        let workflows = WorkflowServiceServer::new(ApiServices(Arc::clone(self)));
        let workflows = workflows.max_decoding_message_size(limit);
        let operators = OperatorServiceServer::new(ApiServices(Arc::clone(self)));
        let operators = operators.max_decoding_message_size(limit);
        let descriptor = || Reflection::configure().register_encoded_file_descriptor_set(DESCRIPTOR);
        let (reflection, older) = (descriptor().build_v1()?, descriptor().build_v1alpha()?);
        Ok(Routes::new(workflows).add_service(operators).add_service(reflection).add_service(older))
    }

    /// Completes when the gateway stops.
    async fn stopped(&self) {
        // The sender is this gateway's own, so waiting for it cannot fail.
        drop(self.stopping.subscribe().wait_for(|stopping| *stopping).await);
    }

    /// Callers are judged.
    fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    fn checks(&self) -> Checks<'_> {
        Checks { limits: &self.limits, settings: &self.settings }
    }

    fn id_bytes_max(&self) -> usize {
        usize::try_from(self.settings.id_bytes_max).unwrap_or(0)
    }
}
