//! The gateway in the node: what it is made from, its start and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use everlog_config::Config;
use everlog_listen::Listener;
use everlog_partition::Dispatcher;
use everlog_temporal::{About, Guard, Metrics, Namespaces, Peers, TaskQueues, TokenSigner};
use everlog_traces::Traces;
use prometheus::Registry;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::partitions::threads::Running;
use crate::services::names::NodeNames;
use crate::storage::control_rows::ControlRows;
use crate::storage::log_backend::LogBackend;
use crate::storage::token_keys::Keys;

/// A running gateway.
pub struct NodeGateway {
    stop: oneshot::Sender<()>,
    /// None once its end was reported.
    served: Option<JoinHandle<Result<(), everlog_temporal::Error>>>,
}

impl NodeGateway {
    /// A gateway that will take calls, of clients at this address and of other nodes.
    ///
    /// # Errors
    /// A limit cannot be used.
    pub fn make(
        config: &Config,
        backend: &LogBackend,
        (names, task_queues): (&NodeNames, &Arc<TaskQueues>),
        running: &Running,
        (metrics, traces): (Metrics, Option<Traces>),
        (address, peers): (SocketAddr, Option<Arc<dyn Peers>>),
        guard: Option<Guard>,
    ) -> Result<Arc<everlog_temporal::Gateway>> {
        let gateway = everlog_temporal::Gateway::new(everlog_temporal::Config {
            about: about(config, backend, address),
            limits: config.gateway.limits(),
            settings: config.limits.engine(),
            token_signer: names.token_signer.clone(),
            namespaces: Arc::clone(&names.namespaces),
            task_queues: Arc::clone(task_queues),
            router: running.router.clone(),
            metrics,
            peers,
            guard,
            traces,
        })?;
        Ok(Arc::new(gateway))
    }

    /// Starts to take calls from the listener.
    pub fn start(calls: Listener, gateway: Arc<everlog_temporal::Gateway>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(gateway.serve(
            calls,
            // A dropped sender means the same.
            Box::pin(async { drop(stopped.await) }),
        ));
        Self { stop, served: Some(served) }
    }

    /// Waits until the gateway ends by itself. Returns why.
    pub async fn ended(&mut self) -> String {
        let Some(served) = &mut self.served else {
            return std::future::pending().await;
        };
        let ended = served.await;
        self.served = None;
        match ended {
            Ok(Ok(())) => "the gateway has ended".into(),
            Ok(Err(error)) => error.to_string(),
            Err(panicked) => format!("the gateway has ended: {panicked}"),
        }
    }

    /// Takes no more calls, ends open polls, and gives other calls the configured time to finish.
    pub async fn stop(self) {
        // If it has ended already, nobody receives this.
        let _ = self.stop.send(());
        if let Some(served) = self.served
            && let Err(error) = served.await.map_err(anyhow::Error::from).and_then(|ended| Ok(ended?))
        {
            tracing::warn!(%error, "gateway ended with an error");
        }
    }
}

/// Signs and checks task tokens: with the operator's keys, else with those of the data directory, or, on Kafka, with
/// those that all nodes share.
///
/// # Errors
/// There are no keys, and none can be made.
pub fn open_token_signer(config: &Config, data: &Path, backend: &LogBackend) -> Result<TokenSigner> {
    let file = config.tokens.key_file.as_deref();
    let keys = match backend.is_remote() && file.is_none() {
        true => Keys::shared(&ControlRows::of(&backend.log()))
            .context("the keys of task tokens, in the topic control")?,
        false => Keys::load(file, data)?.in_order(),
    };
    Ok(TokenSigner::new(&keys)?)
}

/// The namespaces, read from the log, and the metrics of calls.
///
/// # Errors
/// The namespaces cannot be read.
pub fn open_namespaces(
    config: &Config,
    backend: &LogBackend,
    registry: &Registry,
) -> Result<(Namespaces, Metrics)> {
    let metrics = Metrics::register(registry).context("the metrics of calls cannot be registered")?;
    let rows = Arc::new(ControlRows::of(&backend.log()));
    let namespaces = Namespaces::open(rows, &config.gateway.limits(), &metrics);
    let namespaces = namespaces.map_err(|why| anyhow!("the namespaces cannot be read: {why}"))?;
    Ok((namespaces, metrics))
}

/// What is set for task queues, read from the log and in force in the dispatcher.
///
/// # Errors
/// It cannot be read.
pub fn open_task_queues(backend: &LogBackend, dispatcher: Arc<Dispatcher>) -> Result<Arc<TaskQueues>> {
    let rows = Arc::new(ControlRows::of(&backend.log()));
    let queues = TaskQueues::open(rows, dispatcher);
    queues.map(Arc::new).map_err(|why| anyhow!("the settings of task queues cannot be read: {why}"))
}

/// The version of Temporal's server whose features are served: clients turn their own on and off by it.
const TEMPORAL_VERSION: &str = "1.29.1";

fn about(config: &Config, backend: &LogBackend, address: SocketAddr) -> About {
    let log = backend.log();
    About {
        server_version: format!("{TEMPORAL_VERSION}-everlog.{}", env!("CARGO_PKG_VERSION")),
        cluster_id: uuid::Builder::from_random_bytes(log.incarnation()).into_uuid().to_string(),
        cluster_name: config.server.name.clone(),
        address: address.to_string(),
        partitions: log.partitions(),
        persistence_store: backend.store_name().into(),
        visibility_store: "rocksdb".into(),
    }
}
