//! The node: starts its components in order, watches them, and stops them.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use everlog_avro::PublicTopic;
use everlog_cluster::PeerAuth;
use everlog_cluster::{Cluster, ClusterOptions, LocalNode, LocalPartitions};
use everlog_config::node_file::NodeFile;
use everlog_config::{Config, DataDir, Sync, logs};
use everlog_ingress::OwnedJournals;
use everlog_listen::tls::ServerTls;
use everlog_listen::{Counts, Descriptors, Listener, ListenerBounds, http1};
use everlog_log::consumer::ConsumedTopic;
use everlog_log::{Log, Outage};
use everlog_partition::{Dispatcher, Stats};
use everlog_registry::Ids;
use everlog_temporal::TaskQueues;
use everlog_traces::Traces;
use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::address_space;
use crate::banner::{Addresses, Banner, DevBanner};
use crate::error_policy::LossScope;
use crate::exit_cause::{Cause, Ended, Loss};
use crate::observe::health::Health;
use crate::observe::memory::ProcessMemory;
use crate::observe::progress::{self, Progress};
use crate::observe::{metrics, metrics_http};
use crate::partitions::set::Failed;
use crate::partitions::threads::{self, Running};
use crate::services::auth;
use crate::services::certificates::{self, NodeCertificates};
use crate::services::commands::CommandReader;
use crate::services::gateway::{self, NodeGateway};
use crate::services::names::NodeNames;
use crate::services::partition_options::{self, or_cores};
use crate::services::schemas::{Lookup, Schemas};
use crate::shutdown::{ShutdownParts, end, leave, log_ended};
use crate::storage::log_backend::{self, LogBackend};
use crate::storage::{retention, token_keys};
use crate::{public_http, signals};

/// Threads for calls that block: reads of topics, requests to brokers, take-overs of partition groups.
pub const BLOCKING_THREADS_MAX: usize = 32;
/// How often the node checks its own health.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long the first calls wait for partitions that do not serve yet, and how often these are checked.
const START_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AT_START_EVERY: Duration = Duration::from_millis(2);
/// How long tasks that are left on the runtime may take to end, after everything was stopped in order.
pub const LEFTOVERS_WITHIN: Duration = Duration::from_millis(100);

/// Descriptors for the node itself, and for a partition on Kafka.
const OWN_DESCRIPTORS: u64 = 128;
const PARTITION_DESCRIPTORS: u64 = 32;
/// Connections for metrics, and for other nodes; each of these has one.
const METRICS_CONNECTIONS_MAX: usize = 256;
const NODE_CONNECTIONS_MAX: usize = 1_000;

/// Losses of partitions that are kept until the node handles them.
const LOSSES_MAX: usize = 64;

/// Runs a node until it is asked to stop or cannot go on. The banner is printed when it serves.
///
/// # Errors
/// It cannot start. The error has the reason and the way out, in one line.
pub fn run(config: &Config, data: &DataDir, banner: Option<DevBanner>) -> Result<Ended> {
    address_space::check(config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(or_cores(config.threads.gateway))
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("gateway")
        .enable_all()
        .build()
        .context("threads cannot be started")?;
    let ended = runtime.block_on(serve(config, data, banner));
    runtime.shutdown_timeout(LEFTOVERS_WITHIN);
    ended
}

async fn serve(config: &Config, data: &DataDir, banner: Option<DevBanner>) -> Result<Ended> {
    let memory = ProcessMemory::of_idle_process();
    let asked = signals::asked(data.is_ephemeral().then(|| data.path().to_owned()))?;
    let (health, registry) =
        (Health::new(partitions_wished(config), config.partition.hung_after_ms), Registry::new());
    let (listeners, trust) = listen(config, &registry).await?;
    let face = listeners.face.1;
    let guard = auth::open(config)?;
    let instance = serve_pages(listeners.metrics.0, &health, &registry)?;

    // From here on this thread blocks at times. Metrics and health are served by other threads.
    let Some(backend) = open_backend(config, data, asked.clone()).await? else { return Ok(Ended::Asked) };
    keep_address(&backend, data, NodeFile { instance, metrics_address: listeners.metrics.1 });
    health.log_is_open(backend.health_source(), backend.log().partitions());
    metrics::watch_log(&registry, backend.health_source());
    let token_signer = gateway::open_token_signer(config, data.path(), &backend)?;
    let (namespaces, calls_metrics) = gateway::open_namespaces(config, &backend, &registry)?;
    let schemas = Arc::new(Schemas::open(config, &backend)?);
    let inbox = serve_http(config, listeners.face, (&backend, &schemas), (&registry, &guard));
    let ids = match known_ids(&schemas, config, &health, asked.clone()).await {
        Ok(ids) => ids,
        Err(ended) => {
            leave(backend, &ended);
            return Ok(ended);
        }
    };
    let names = NodeNames { namespaces: Arc::new(namespaces), token_signer, ids };
    let traces = Traces::from_environment(&config.server.name, env!("CARGO_PKG_VERSION"))?;
    let stats = watch_restores(&backend, (&health, &registry));
    let (running, failed, mut failures) =
        start_partitions(config, (data, banner.is_some()), &backend, (&names, traces.as_ref()), stats)?;
    let router = running.router.clone();
    health.partitions_are_there(running.stats.clone(), move |partition| router.nudge(partition));
    metrics::watch_admission(&registry, running.stats.len(), Arc::clone(&running.admission));
    watch_queues(config, &registry, &names, running.dispatcher());
    let known = (&names, &gateway::open_task_queues(&backend, running.dispatcher())?);
    let cluster = join(config, &backend, &running, known, (listeners.nodes, listeners.calls.1), trust)?;
    let reached = (listeners.calls.1, peers(cluster.as_ref()));
    let calls =
        NodeGateway::make(config, &backend, known, &running, (calls_metrics, traces), reached, guard)?;
    if let Some(cluster) = &cluster {
        mind((&health, &registry), cluster);
        cluster.answers_by(&calls)?;
        let mut asked = asked.clone();
        tokio::select! {
            begun = cluster.begin() => begun?.map_err(|error| log_backend::explain(error, config, data))?,
            _ = asked.wait_for(|asked| *asked) => {
                let ends = ShutdownParts { commands: None, gateway: None, cluster: Some(Arc::clone(cluster)) };
                return Ok(end(Cause::Asked, ends, running, backend, failures).await);
            }
        };
        let lost = move |partition: u32, error: &_| failed(partition, LossScope::Lost, error);
        tokio::spawn(Arc::clone(cluster).run(Arc::new(lost)));
    }
    all_serve(&running, &health, asked.clone()).await;
    let commands =
        start_commands(config, &backend, cluster.as_ref(), (&schemas, &names), (&health, &registry));
    keep_public(config, &backend, (&schemas, &names), &running, (&inbox, &registry));
    metrics::watch_calls(&registry, (calls.budgets(), calls.span_counts()));
    let mut gateway = NodeGateway::start(listeners.calls.0, calls);
    let addresses = Addresses { calls: listeners.calls.1, metrics: listeners.metrics.1, face };
    log_serving(data, &addresses);
    if let Some(banner) = banner {
        show_banner(config, data, backend.log().partitions(), (addresses, banner));
    }
    let cause = watch(asked, &mut failures, &mut gateway, (&health, cluster.as_ref()), memory).await;
    health.is_stopping();
    let ends = ShutdownParts { commands, gateway: Some(gateway), cluster };
    Ok(end(cause, ends, running, backend, failures).await)
}

/// Serves public HTTP from here on. Commands get to the inbox.
fn serve_http(
    config: &Config,
    (listener, address): (Listener, SocketAddr),
    (backend, schemas): (&LogBackend, &Arc<Schemas>),
    (registry, guard): (&Registry, &Option<everlog_temporal::Guard>),
) -> public_http::Inbox {
    metrics::watch_registry(registry, schemas);
    if let Some(guard) = guard {
        metrics::watch_identities(registry, Arc::clone(guard.authenticator.counts()));
    }
    let (inbox, held) = (public_http::Inbox::default(), metrics::http_bytes(registry, config));
    let routes = public_http::routes(config, address, (backend, schemas), (&inbox, held, guard));
    tokio::spawn(http1::serve(listener, routes));
    inbox
}

/// The other nodes, as the gateway reaches them.
fn peers(cluster: Option<&Arc<Cluster>>) -> Option<Arc<dyn everlog_temporal::Peers>> {
    cluster.map(|cluster| Arc::new(cluster.forwarder()) as Arc<dyn everlog_temporal::Peers>)
}

/// The descriptors of the process, and how many it needs for itself: a few dozen files for each database, and on
/// Kafka the connections of each partition's clients.
fn descriptors(config: &Config) -> Descriptors {
    let needed = match config.kafka.is_used() {
        true => OWN_DESCRIPTORS + u64::from(config.kafka.partitions) * PARTITION_DESCRIPTORS,
        false => OWN_DESCRIPTORS,
    };
    let descriptors = Descriptors::raise(needed);
    if descriptors.are_few() {
        let Descriptors { most, needed } = descriptors;
        tracing::warn!(most, needed, "few descriptors, and so few connections: raise `ulimit -n`");
    }
    descriptors
}

/// Serves metrics and health from here on. Returns the instance that the responses show.
fn serve_pages(listener: Listener, health: &Arc<Health>, registry: &Registry) -> Result<String> {
    metrics::watch_node(registry, health);
    let instance = uuid::Builder::from_random_bytes(token_keys::random()?).into_uuid().to_string();
    let (registry, health) = (registry.clone(), Arc::clone(health));
    tokio::spawn(metrics_http::serve(
        listener,
        metrics_http::Pages { registry, health, instance: instance.as_str().into() },
    ));
    Ok(instance)
}

/// Opens the log; none where the node is asked to end before that.
async fn open_backend(
    config: &Config,
    data: &DataDir,
    mut asked: watch::Receiver<bool>,
) -> Result<Option<LogBackend>> {
    tokio::select! {
        backend = LogBackend::open(config, data) => backend.map(Some),
        _ = asked.wait_for(|asked| *asked) => Ok(None),
    }
}

/// Writes the node's address to its data directory, which is locked from here on where it has the log.
fn keep_address(backend: &LogBackend, data: &DataDir, file: NodeFile) {
    if !backend.is_remote()
        && let Err(error) = file.write(data.path())
    {
        tracing::warn!(%error, "address not written to the data directory: the doctor will not find this node");
    }
}

/// Makes readiness depend on the cluster, and adds its metrics.
fn mind((health, registry): (&Health, &Registry), cluster: &Arc<Cluster>) {
    metrics::watch_cluster(registry, cluster);
    let minded = Arc::clone(cluster);
    health.mind(move || minded.not_ready_reason());
    let remarked = Arc::clone(cluster);
    health.remark(move || remarked.notice());
    tokio::spawn(Arc::clone(cluster).watch_lag());
    health.partitions_are_shared();
}

/// The task queues: what they do, and how much waits in them.
fn watch_queues(config: &Config, registry: &Registry, names: &NodeNames, dispatcher: Arc<Dispatcher>) {
    metrics::watch_queues(registry, Arc::clone(&dispatcher));
    let namespaces = Arc::clone(&names.namespaces);
    let labels: metrics::MetricNames = Box::new(move |id| namespaces.metric_label(id));
    metrics::watch_backlogs(registry, dispatcher, labels, config.gateway.metric_task_queues_max);
}

/// The counters of all partitions, and the progress of their restores, for everybody who reads them before the
/// partitions serve.
fn watch_restores(backend: &LogBackend, (health, registry): (&Health, &Registry)) -> Vec<Arc<Stats>> {
    let stats: Vec<Arc<Stats>> = (0..backend.log().partitions()).map(|_| Arc::default()).collect();
    health.partitions_recover(stats.clone());
    metrics::watch_partitions(registry, stats.clone());
    if let Some(set_aside) = backend.rows_set_aside() {
        metrics::watch_rows(registry, set_aside);
        tokio::spawn(progress::tell(Progress::of(stats.clone())));
    }
    stats
}

/// A listener and its address; port 0 has become a free port.
type BoundListener = (Listener, SocketAddr);

/// The listeners. They are bound first, so that an address in use is reported at once.
struct Listeners {
    calls: BoundListener,
    metrics: BoundListener,
    face: BoundListener,
    /// On Kafka, for other nodes.
    nodes: Option<BoundListener>,
}

/// Binds the listeners, and looks after the node's certificates from here on. Returns also how nodes know each other.
async fn listen(config: &Config, registry: &Registry) -> Result<(Listeners, PeerAuth)> {
    let trust = certificates::peer_auth(config)?;
    let certificates = NodeCertificates::open(config, &trust)?;
    let listeners = Listeners::bind(config, descriptors(config), certificates.server()).await?;
    metrics::watch_listeners(registry, listeners.counts());
    metrics::watch_certificates(registry, &certificates);
    tokio::spawn(certificates.look_after());
    Ok((listeners, trust))
}

impl Listeners {
    /// Each gets its share of the descriptors for connections: half for calls, a quarter for public HTTP, an eighth
    /// each for metrics and for other nodes.
    ///
    /// Those of clients speak TLS, if there is any.
    async fn bind(config: &Config, descriptors: Descriptors, tls: Option<&Arc<ServerTls>>) -> Result<Self> {
        let Config { server, http, cluster, .. } = config;
        let few = |most| ListenerBounds {
            connections_max: descriptors.share(1, most),
            ..ListenerBounds::default()
        };
        let (calls, face) = (config.gateway.bounds(descriptors), public_http::bounds(config, descriptors));
        let over_tls = |(listener, address): BoundListener| (listener.over(tls.cloned()), address);
        Ok(Self {
            calls: over_tls(bind(server.address, "--address, server.address", calls).await?),
            metrics: bind(
                server.metrics_address,
                "--metrics-address, server.metrics_address",
                few(METRICS_CONNECTIONS_MAX),
            )
            .await?,
            face: over_tls(bind(http.address, "--http-address, http.address", face).await?),
            nodes: match config.kafka.is_used() {
                true => Some(bind(cluster.address, "cluster.address", few(NODE_CONNECTIONS_MAX)).await?),
                false => None,
            },
        })
    }

    /// Their counters, by purpose.
    fn counts(&self) -> Vec<(&'static str, Arc<Counts>)> {
        let nodes = self.nodes.iter().map(|bound| ("nodes", bound));
        let others = [("calls", &self.calls), ("metrics", &self.metrics), ("http", &self.face)];
        others.into_iter().chain(nodes).map(|(name, (listener, _))| (name, listener.counts())).collect()
    }
}

/// The ids of the schemas, which must be known before a partition is owned; an error where the node ends first.
async fn known_ids(
    schemas: &Arc<Schemas>,
    config: &Config,
    health: &Health,
    mut asked: watch::Receiver<bool>,
) -> Result<Ids, Ended> {
    let minded = Arc::clone(schemas);
    health.mind(move || minded.trouble());
    let dead = async {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            if let Some(reason) = health.signs().dead() {
                return reason;
            }
        }
    };
    tokio::select! {
        ids = schemas.ids(config) => Ok(ids),
        _ = asked.wait_for(|asked| *asked) => Err(Ended::Asked),
        reason = dead => Err(log_ended(&reason)),
    }
}

/// Starts to read the topic `commands`, on Kafka.
fn start_commands(
    config: &Config,
    backend: &LogBackend,
    cluster: Option<&Arc<Cluster>>,
    (schemas, names): (&Arc<Schemas>, &NodeNames),
    (health, registry): (&Health, &Registry),
) -> Option<CommandReader> {
    let cluster = cluster.filter(|_on_kafka| config.ingress.enabled)?;
    let commands =
        CommandReader::start(config, &backend.log(), cluster, Lookup(Arc::clone(schemas)), names.clone());
    let sight = commands.health();
    metrics::watch_commands(registry, Arc::clone(&sight));
    health.mind(move || sight.trouble());
    Some(commands)
}

/// On the embedded log: takes commands by HTTP, and deletes old records of public topics.
fn keep_public(
    config: &Config,
    backend: &LogBackend,
    (schemas, names): (&Arc<Schemas>, &NodeNames),
    running: &Running,
    (inbox, registry): (&public_http::Inbox, &Registry),
) {
    let LogBackend::Embedded(log) = backend else { return };
    tokio::spawn(retention::keep(Arc::downgrade(log), config.log.public_retention_ms));
    let journals = OwnedJournals { partitions: log.partitions(), post: running.post() };
    let topic = ConsumedTopic { name: config.topic(PublicTopic::Command), incarnation: log.incarnation() };
    let options = config.ingress_options(names.ids.of(PublicTopic::Command));
    let lookup = Lookup(Arc::clone(schemas));
    let commands = everlog_ingress::HttpSource::new(journals, topic, lookup, names.clone(), options);
    metrics::watch_inbox(registry, commands.stats());
    // Set once, here.
    let _ = inbox.set(commands);
}

/// As far as it is known before the log is open.
fn partitions_wished(config: &Config) -> u32 {
    if config.kafka.is_used() { config.kafka.partitions } else { config.log.partitions }
}

async fn bind(address: SocketAddr, option: &str, bounds: ListenerBounds) -> Result<BoundListener> {
    let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow!(
                "{address} is in use already; stop what listens there, or choose another address ({option})"
            )
        }
        _ => anyhow!("{address} cannot be listened at: {error}; choose another address ({option})"),
    })?;
    let address = listener.local_addr().context("a listener has no address")?;
    Ok((Listener::new(listener, bounds), address))
}

/// Joins the cluster, on Kafka.
fn join(
    config: &Config,
    backend: &LogBackend,
    running: &Running,
    (names, task_queues): (&NodeNames, &Arc<TaskQueues>),
    (nodes, calls): (Option<BoundListener>, SocketAddr),
    trust: PeerAuth,
) -> Result<Option<Arc<Cluster>>> {
    let (LogBackend::Kafka(kafka), Some((listener, address))) = (backend, nodes) else { return Ok(None) };
    if let Some(remark) = config.cluster.remark() {
        tracing::warn!("{remark}");
    }
    let advertised = &config.cluster.advertised;
    let about = ClusterOptions {
        name: config.server.name.clone(),
        address: if advertised.is_empty() { address.to_string() } else { advertised.clone() },
        calls: calls.to_string(),
        trust,
        rows: backend.kept_rows(),
        forget_after: Duration::from_millis(config.cluster.forget_after_ms),
        replicas: config.cluster.replicas,
        instance: uuid::Builder::from_random_bytes(token_keys::random()?).into_uuid().to_string(),
    };
    let (learner, shares_keys) = (names.clone(), config.tokens.key_file.is_none());
    let task_queues = Arc::clone(task_queues);
    let local = LocalNode {
        partitions: Arc::new(running.control()),
        stats: running.stats.clone(),
        dispatcher: running.dispatcher(),
        send: running.post(),
        token_signer: names.token_signer.clone(),
        learn: Box::new(move |key, value| {
            learner.namespaces.learn(key, value);
            task_queues.learn(key, value);
            token_keys::learn(&learner.token_signer, key, value, shares_keys);
        }),
    };
    let options = config.kafka.options(&config.server.name);
    Cluster::join(about, (&kafka.log, &options), local, listener).map(Some)
}

/// Starts the partitions' threads. Returns the callback for failed partitions, and the channel that it reports to. On
/// an embedded log the partitions serve on return.
fn start_partitions(
    config: &Config,
    (data, is_dev): (&DataDir, bool),
    backend: &LogBackend,
    (names, traces): (&NodeNames, Option<&Traces>),
    stats: Vec<Arc<Stats>>,
) -> Result<(Running, Arc<Failed>, mpsc::Receiver<Loss>)> {
    let (sender, failures) = mpsc::channel(LOSSES_MAX);
    let from = log_backend::from_topics(config);
    let failed: Arc<Failed> =
        Arc::new(move |partition: u32, end: LossScope, error: &everlog_partition::Error| {
            tracing::error!(partition, %error, "partition failed");
            // The first one ends the node. Later ones may know the name of the new owner.
            let _ = sender.try_send(Loss::of(partition, end, error, &from));
        });
    let options = partition_options::make(config, backend.log().partitions(), names, (is_dev, traces));
    let explained = |error| log_backend::explain(error, config, data);
    let running = threads::start(backend, &options, stats, &failed).map_err(explained)?;
    if !backend.is_remote()
        && let Err(error) = running.control().take((0..backend.log().partitions()).collect())
    {
        running.stop();
        return Err(explained(error));
    }
    Ok((running, failed, failures))
}

fn log_serving(data: &DataDir, addresses: &Addresses) {
    tracing::info!(
        address = %addresses.calls, http_address = %addresses.face, metrics_address = %addresses.metrics,
        data_dir = %data.path().display(), "serving"
    );
}

fn show_banner(config: &Config, data: &DataDir, partitions: u32, (addresses, dev): (Addresses, DevBanner)) {
    let kafka = &config.kafka;
    let banner = Banner {
        addresses,
        over_tls: config.tls.certificate_file.is_some(),
        authority: dev.authority.as_deref(),
        kafka: kafka.is_used().then_some((&kafka.bootstrap_servers, &kafka.prefix)),
        data_dir: data.path(),
        ephemeral: data.is_ephemeral(),
        synced: config.log.sync == Sync::Always,
        partitions,
    };
    let mut out = std::io::stdout().lock();
    let text = banner.render(out.is_terminal() && logs::colours_are_wanted());
    // A closed standard output is no reason to stop.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Waits until all partitions serve: a few milliseconds, unless the disk is full or the node is asked to stop.
async fn all_serve(running: &Running, health: &Health, mut asked: watch::Receiver<bool>) {
    let serve = async {
        while !running.is_serving() && health.signs().dead().is_none() {
            tokio::time::sleep(LOOK_AT_START_EVERY).await;
        }
    };
    tokio::select! {
        () = serve => {}
        _ = asked.wait_for(|asked| *asked) => {}
        () = tokio::time::sleep(START_WITHIN) => {
            tracing::warn!(reasons = health.signs().unready().join("; "), "node not ready yet");
        }
    }
}

/// Waits for the first cause to end.
async fn watch(
    mut asked: watch::Receiver<bool>,
    failures: &mut mpsc::Receiver<Loss>,
    gateway: &mut NodeGateway,
    (health, cluster): (&Health, Option<&Arc<Cluster>>),
    mut memory: ProcessMemory,
) -> Cause {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let (mut disk_was_full, mut outage) = (false, Outage::default());
    loop {
        let cause = tokio::select! {
            _ = asked.wait_for(|asked| *asked) => Some(Cause::Asked),
            Some(loss) = failures.recv() => lost(loss, cluster).await,
            reason = gateway.ended() => Some(Cause::GatewayEnded(reason)),
            _ = looks.tick() => None,
        };
        memory.look();
        let signs = health.signs();
        if let Some(reason) = signs.dead() {
            return Cause::LogEnded(reason);
        }
        if let Some(cause) = cause {
            return cause;
        }
        match (disk_was_full, signs.disk_full) {
            (false, true) => tracing::warn!("disk full: writes are refused until there is room"),
            (true, false) => tracing::info!("disk has room again"),
            (false, false) | (true, true) => {}
        }
        disk_was_full = signs.disk_full;
        tell_of_log(signs.log_trouble.as_deref(), &mut outage);
    }
}

/// Logs that the log does not take writes, and that it takes them again.
fn tell_of_log(trouble: Option<&str>, outage: &mut Outage) {
    let now = Instant::now();
    match trouble {
        Some(trouble) if outage.fails(now).is_some() => tracing::warn!("{trouble}"),
        None if outage.works(now).is_some() => tracing::info!("the brokers answer again"),
        Some(_) | None => {}
    }
}

/// Why the node ends if a partition is lost. A partition that another node has taken over is no reason. Nor is one
/// that no node can serve, because the next owner would end as well. If this node has all partitions and all are
/// closed, it ends.
async fn lost(loss: Loss, cluster: Option<&Arc<Cluster>>) -> Option<Cause> {
    match (&loss, cluster) {
        (Loss::TakenOver(partition, node), Some(cluster)) if cluster.step_down(*partition).await => {
            tracing::info!(partition, by = node, "partition taken over by another node");
            None
        }
        (Loss::Closed(reason), Some(cluster)) if !cluster.is_closed_whole() => {
            tracing::error!(reason, "partition closed; the others serve on");
            None
        }
        _other => Some(Cause::PartitionEnded(loss)),
    }
}
