//! The servers that programs run on: Everlog, and a Temporal server beside it if there is one.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use everlog_temporal_api::enums::IndexedValueType;
use everlog_temporal_api::operatorservice::AddSearchAttributesRequest;
use everlog_tests::server::Server;
use everlog_tests::{patience, raw};
use tonic::transport::{Channel, Endpoint};

/// What protects a shared cluster, or would make answers depend on the load, is lifted.
const DYNAMIC: &[&str] = &[
    "frontend.rps=100000",
    "frontend.namespaceRPS=100000",
    "frontend.namespaceRPS.visibility=100000",
    "frontend.namespaceCount=100000",
    "history.rps=100000",
    "matching.rps=100000",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "history.workflowIdReuseMinimalInterval=\"0s\"",
    // A deletion waits until the tasks of the close are known to be done.
    "history.transferProcessorUpdateAckInterval=\"100ms\"",
    "system.enableActivityEagerExecution=true",
    "worker.schedulerNamespaceStartWorkflowRPS=100000",
    // Build ids in sets are off by default, and settings of queues go the way of namespaces to other clusters.
    "frontend.workerVersioningDataAPIs=true",
    "frontend.rps.namespaceReplicationInducingAPIs=100000",
    "frontend.namespaceRPS.namespaceReplicationInducingAPIs=100000",
    "frontend.globalNamespaceRPS.namespaceReplicationInducingAPIs=100000",
    // A set that is no longer the default of its queue counts as that for a while.
    "frontend.reachabilityQuerySetDurationSinceDefault=\"0s\"",
];
/// Limits that are set low at both, so that programs reach them: what a Temporal server calls them, and what ours does.
const LIMITS: &[(&str, &str, usize)] = &[
    ("limit.numPendingActivities.error", "PENDING_ACTIVITIES_MAX", PENDING_MAX),
    ("limit.numPendingChildExecutions.error", "PENDING_CHILDREN_MAX", PENDING_MAX),
    ("limit.numPendingSignals.error", "PENDING_SIGNALS_MAX", PENDING_MAX),
    ("limit.numPendingCancelRequests.error", "PENDING_CANCELS_MAX", PENDING_MAX),
    ("history.maximumSignalsPerExecution", "SIGNALS_MAX", SIGNALS_MAX),
    ("history.maximumBufferedEventsBatch", "BUFFERED_EVENTS_MAX", BUFFERED_MAX),
    ("history.maxInFlightUpdates", "UPDATES_IN_FLIGHT_MAX", UPDATES_MAX),
    ("limit.historyCount.error", "HISTORY_EVENTS_MAX", HISTORY_MAX),
    ("limit.historyCount.suggestContinueAsNew", "SUGGEST_EVENTS", 60),
];
/// Bytes of what is larger than any blob may be.
pub const TOO_LARGE: usize = 2_200_000;
pub const PENDING_MAX: usize = 20;
pub const BUFFERED_MAX: usize = 12;
pub const SIGNALS_MAX: usize = 30;
pub const UPDATES_MAX: usize = 4;
pub const HISTORY_MAX: usize = 250;

/// The search attributes that programs use, beside the server's own, with their types.
const ATTRIBUTES: &[(&str, &str)] = &[("CustomKeywordField", "KEYWORD")];

/// Ours.
pub struct Everlog {
    _directory: tempfile::TempDir,
    server: Server,
}

impl Everlog {
    pub async fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let limits: Vec<(String, String)> = LIMITS
            .iter()
            .map(|(_, ours, value)| (format!("EVERLOG_LIMITS__{ours}"), value.to_string()))
            .collect();
        let variables: Vec<(&str, &str)> =
            limits.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let server = Server::start(directory.path(), &variables).await?;
        let channel = server.connect().await?;
        for (name, r#type) in ATTRIBUTES {
            let r#type = IndexedValueType::from_str_name(&format!("INDEXED_VALUE_TYPE_{type}"));
            let search_attributes = [((*name).to_owned(), r#type.context("a type")?.into())].into();
            let request = AddSearchAttributesRequest { search_attributes, namespace: "default".to_owned() };
            raw::send(&channel, request).await?;
        }
        Ok(Self { _directory: directory, server })
    }

    pub async fn connect(&self) -> Result<Channel> {
        self.server.connect().await
    }
}

/// A Temporal server: of this process, or one that runs already.
pub struct Reference {
    process: Option<Child>,
    address: String,
}

impl Reference {
    /// `place` is an address, or the path of the `temporal` command.
    pub async fn start(place: &str) -> Result<Self> {
        let mut reference = match Path::new(place).is_file() {
            true => Self::spawn(place)?,
            false => Self { process: None, address: place.to_owned() },
        };
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while !reference.is_serving().await {
            if let Some(process) = &mut reference.process {
                ensure!(process.try_wait()?.is_none(), "the Temporal server has ended");
            }
            ensure!(!deadline.is_over(), "the Temporal server does not serve");
            looks.tick().await;
        }
        Ok(reference)
    }

    fn spawn(command: &str) -> Result<Self> {
        let port =
            || anyhow::Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string());
        let own_port = port()?;
        let mut command = Command::new(command);
        command.args(["server", "start-dev", "--headless", "--log-level", "never", "--ip", "127.0.0.1"]);
        command.args(["--port", &own_port, "--http-port", &port()?, "--metrics-port", &port()?]);
        command.args(DYNAMIC.iter().flat_map(|value| ["--dynamic-config-value", *value]));
        for (theirs, _, value) in LIMITS {
            command.args(["--dynamic-config-value", &format!("{theirs}={value}")]);
        }
        for (name, r#type) in ATTRIBUTES {
            command.args(["--search-attribute", &format!("{name}={}", capitalised(r#type))]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().context("the Temporal server cannot be started")?;
        Ok(Self { process: Some(process), address: format!("127.0.0.1:{own_port}") })
    }

    async fn is_serving(&self) -> bool {
        let Ok(channel) = self.connect().await else { return false };
        let request = everlog_temporal_api::workflowservice::DescribeNamespaceRequest {
            namespace: "default".to_owned(),
            ..Default::default()
        };
        raw::send(&channel, request).await.is_ok()
    }

    pub async fn connect(&self) -> Result<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
        Ok(endpoint.connect_timeout(patience::most()).connect().await?)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

/// The name of a type as the `temporal` command takes it.
fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(name.len().min(1));
    format!("{first}{}", rest.to_lowercase())
}
