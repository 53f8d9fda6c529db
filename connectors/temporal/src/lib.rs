//! The gateway: Temporal's gRPC API on top of the engine and its partitions.
//!
//! A call is let in (`server::call`), checked (`codec::validation`), turned into an order for a partition, and its reply is
//! turned into an answer or a status (`codec::status`). Payloads pass through as the bytes they came as.

mod codec;
mod handlers;
mod limits;
mod metrics;
mod namespaces;
mod routing;
mod rpc;
mod server;
mod service;
mod tasks;

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
use tokio::sync::{Semaphore, watch};
use tonic::codegen::http::Response;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_reflection::server::Builder as Reflection;
use tower::Layer;

pub use crate::codec::random_ids::id as random_id;
pub use crate::limits::{LimitError, Limits};
pub use crate::metrics::Metrics;
pub use crate::namespaces::namespace::{Control, DEFAULT as DEFAULT_NAMESPACE, Namespaces, Row};
pub use crate::routing::delivery_receipt::{ReceiptSlot, with_receipt};
pub use crate::routing::forward::Calls;
pub use crate::routing::peers::{Broken, Forwarded, Location, POLL_HEADER, Peers};
pub use crate::rpc::is_served;
pub use crate::tasks::token::{ActivityTask, KEY_BYTES_MIN, KeyError, TokenSigner};
pub use everlog_temporal_api::codec::STRUCTURE_BYTES_MAX;
pub use tonic::body::Body;

use crate::codec::validation::Checks;
use crate::handlers::worker_registry::WorkerRegistry;
use crate::routing::forward::ForwardLayer;
use crate::server::body_limits::{BodyLimits, CallBudgets};
use crate::server::history_pacing::HistoryPacing;
use crate::server::transport::guarded;
use crate::tasks::poller_registry::PollerRegistry;

/// How long a connection may be silent before it is asked for a sign of life.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long it has for that sign; then it is closed, and its polls end without taking a task along.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// What a connection may have sent that is not read yet, at the least.
const CONNECTION_WINDOW_MIN: u32 = 1 << 20;
/// By how much more that is for each stream that it may have open. The HTTP/2 library ends a connection whose small frames
/// that are not read yet come to more than half of the window, and counts up to 256 bytes for each.
const CONNECTION_WINDOW_PER_STREAM: u32 = 2 * 256;
/// The largest that HTTP/2 has.
const CONNECTION_WINDOW_MAX: u32 = (1 << 31) - 1;

/// A window in which one small request on each stream finds room at once.
fn connection_window(streams_max: u32) -> u32 {
    let streams = streams_max.saturating_mul(CONNECTION_WINDOW_PER_STREAM);
    streams.clamp(CONNECTION_WINDOW_MIN, CONNECTION_WINDOW_MAX)
}

/// What the server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// A plain semantic version.
    pub server_version: String,
    /// A UUID that never changes.
    pub cluster_id: String,
    /// The cluster's name.
    pub cluster_name: String,
    /// Partitions; shown as the number of shards.
    pub partitions: u32,
    /// Where histories are kept, by name.
    pub persistence_store: String,
    /// Where lists of runs come from, by name; empty = nowhere.
    pub visibility_store: String,
}

/// What a gateway is made of.
pub struct Config {
    /// What the server says of itself.
    pub about: About,
    /// The gateway's limits.
    pub limits: Limits,
    /// The engine's limits: what requests are checked against before they become orders.
    pub settings: Settings,
    /// Makes and checks task and page tokens.
    pub token_signer: TokenSigner,
    /// The namespaces, which others may know too.
    pub namespaces: Arc<Namespaces>,
    /// The way to the partitions.
    pub router: Router,
    /// What is counted.
    pub metrics: Metrics,
    /// The other nodes, where this one is not alone.
    pub peers: Option<Arc<dyn Peers>>,
}

/// Why a gateway cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A limit cannot work.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The API's descriptor cannot be served.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Something that completes later, on whatever thread.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Serves Temporal's API.
pub struct Gateway {
    about: About,
    limits: Limits,
    settings: Settings,
    token_signer: TokenSigner,
    namespaces: Arc<Namespaces>,
    router: Router,
    pollers: Arc<PollerRegistry>,
    worker_registry: WorkerRegistry,
    calls: Arc<Budget>,
    polls: Arc<Budget>,
    /// Calls on their way to whoever answers them, here or at another node.
    forwarded: Arc<Budget>,
    budgets: CallBudgets,
    /// Places for calls that read histories.
    readers: Arc<Semaphore>,
    /// How fast their answers leave.
    history_pacing: HistoryPacing,
    metrics: Metrics,
    peers: Option<Arc<dyn Peers>>,
    stopping: watch::Sender<bool>,
}

impl Gateway {
    /// Makes a gateway.
    ///
    /// # Errors
    /// [`Error`]: a limit.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { about, limits, settings, token_signer, namespaces, router, metrics, peers } = config;
        limits.validate()?;
        let memory = Duration::from_millis(limits.stopped_worker_ms);
        Ok(Self {
            token_signer,
            namespaces,
            worker_registry: WorkerRegistry::default(),
            pollers: PollerRegistry::new(limits.stopped_workers_max, memory),
            calls: Budget::new(limits.calls_max),
            polls: Budget::new(limits.polls_max),
            forwarded: Budget::new(limits.calls_max.saturating_add(limits.polls_max)),
            budgets: CallBudgets::new(&limits),
            readers: Arc::new(Semaphore::new(limits.readers_max)),
            history_pacing: HistoryPacing::new(limits.history_bytes_per_second),
            stopping: watch::Sender::new(false),
            about,
            limits,
            settings,
            router,
            metrics,
            peers,
        })
    }

    /// Serves until `shutdown` completes; then open polls end empty, and calls have a short while to finish.
    ///
    /// Nothing here is generic: the services, some hundred calls each with its messages, are compiled in this crate, and
    /// not again in each that serves them.
    ///
    /// # Errors
    /// [`Error`]: the listener or the descriptor.
    pub fn serve(self: Arc<Self>, listener: Listener, shutdown: Later<()>) -> Later<Result<(), Error>> {
        Box::pin(self.answer(listener, shutdown))
    }

    async fn answer(self: Arc<Self>, listener: Listener, shutdown: Later<()>) -> Result<(), Error> {
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
        tokio::select! {
            () = served => {}
            () = drained => {}
        }
        Ok(())
    }

    /// An answer in the words that clients know.
    fn guarded(&self, response: Response<Body>) -> Response<Body> {
        guarded(response, &self.metrics, self.limits.message_bytes_max)
    }

    /// Bytes of requests, and of answers that were not taken yet, of all connections.
    pub fn held(&self) -> [Arc<Budget>; 2] {
        [Arc::clone(&self.budgets.requests), Arc::clone(&self.budgets.answers)]
    }

    /// What answers calls.
    fn services(self: &Arc<Self>) -> Result<Routes, Error> {
        let limit = self.limits.message_bytes_max;
        let workflows = WorkflowServiceServer::from_arc(Arc::clone(self));
        let workflows = workflows.max_decoding_message_size(limit);
        let operators = OperatorServiceServer::from_arc(Arc::clone(self));
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

    fn checks(&self) -> Checks<'_> {
        Checks { limits: &self.limits, settings: &self.settings }
    }

    fn id_bytes_max(&self) -> usize {
        usize::try_from(self.settings.id_bytes_max).unwrap_or(0)
    }
}
