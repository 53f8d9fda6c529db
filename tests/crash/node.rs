//! A node that is started under the shim, ends at one of its steps, and is started again without it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail};
use everlog_tests::kafka::Cluster;
use everlog_tests::server::{binary, free_address, is_on_kafka};
use everlog_tests::{patience, shim};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::consumer::{BaseConsumer, Consumer};
use tonic::transport::{Channel, Endpoint};

/// What happens in place of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// The process is killed.
    Kill,
    /// The step fails with this error of the system; a reply always with a reset connection.
    Error(i32),
}

/// A node's directory, and the notes of the shim about it.
pub struct NodeDir {
    dir: tempfile::TempDir,
    /// Of every node here.
    variables: Vec<(&'static str, String)>,
    /// Where its log is on Kafka.
    broker: Option<Broker>,
}

/// A log of its own on the broker that all tests of this process share. Its topics go when it is dropped.
struct Broker {
    bootstrap: &'static str,
    prefix: String,
}

/// A process. It is killed when dropped.
pub struct Node {
    process: Child,
    address: SocketAddr,
}

impl NodeDir {
    /// Few partitions and one thread of each kind keep the order of the steps nearly the same from run to run. With
    /// `EVERLOG_TEST_HOME=kafka` the log is on a broker.
    pub fn new(more: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        let common = [
            ("EVERLOG_LOG__PARTITIONS", "2"),
            ("EVERLOG_LOG__FREE_BYTES_MIN", "1048576"),
            ("EVERLOG_MEMORY__DATABASE_BYTES", "8388608"),
            ("EVERLOG_THREADS__PROCESSOR", "1"),
            ("EVERLOG_THREADS__GATEWAY", "1"),
            ("EVERLOG_PARTITION__COMMIT_INTERVAL_MS", "10"),
            ("EVERLOG_GATEWAY__POLL_WAIT_MS", "2000"),
        ];
        let all = common.iter().chain(more);
        let mut variables: Vec<_> = all.map(|(name, value)| (*name, (*value).to_owned())).collect();
        let broker = if is_on_kafka() { Some(Broker::new()?) } else { None };
        if let Some(broker) = &broker {
            variables.push(("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap.to_owned()));
            variables.push(("EVERLOG_KAFKA__PREFIX", broker.prefix.clone()));
            variables.push(("EVERLOG_KAFKA__PARTITIONS", "2".into()));
        }
        Ok(Self { dir: tempfile::tempdir()?, variables, broker })
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn events(&self) -> PathBuf {
        self.dir.path().join("events")
    }

    /// The end of what nodes here had to say.
    pub fn last_words(&self) -> String {
        let said = std::fs::read_to_string(self.dir.path().join("said")).unwrap_or_default();
        let lines: Vec<_> = said.lines().rev().take(4).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Starts a node as it is.
    pub fn start(&self) -> anyhow::Result<Node> {
        self.spawn(|_command, _address| {})
    }

    /// Starts a node that a blow hits at a step; at none if that is 0.
    pub fn start_under_shim(&self, step: u64, blow: Blow) -> anyhow::Result<Node> {
        let shim = library()?;
        self.spawn(|command, address| {
            command.env("LD_PRELOAD", shim).env("SHIM_DIR", self.data()).env("SHIM_EVENTS", self.events());
            command.env("SHIM_PORT", address.port().to_string());
            if let Some((_, port)) = self.broker.as_ref().and_then(|broker| broker.bootstrap.rsplit_once(':'))
            {
                command.env("SHIM_BROKER_PORT", port);
            }
            match blow {
                Blow::Kill => command.env("SHIM_KILL_AT", step.to_string()),
                Blow::Error(number) => command
                    .env("SHIM_FAIL_AT", step.to_string())
                    .env("SHIM_FAIL_COUNT", "1")
                    .env("SHIM_ERRNO", number.to_string()),
            };
        })
    }

    fn spawn(&self, edit: impl FnOnce(&mut Command, SocketAddr)) -> anyhow::Result<Node> {
        let address = free_address()?;
        let said = File::options().create(true).append(true).open(self.dir.path().join("said"))?;
        let mut command = Command::new(binary()?);
        command.arg("dev").arg("--address").arg(address.to_string());
        command.arg("--metrics-address").arg("127.0.0.1:0").arg("--http-address").arg("127.0.0.1:0");
        command.arg("--data-dir").arg(self.data());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        edit(&mut command, address);
        Ok(Node { process: command.spawn().context("a node cannot be started")?, address })
    }
}

impl Broker {
    fn new() -> anyhow::Result<Self> {
        static LOGS: AtomicU32 = AtomicU32::new(0);
        let bootstrap = Cluster::shared()?.bootstrap();
        Ok(Self { bootstrap, prefix: format!("crash-{}.", LOGS.fetch_add(1, Ordering::Relaxed)) })
    }

    /// Hundreds of logs are more than a broker on this machine has room for.
    fn remove(&self) -> anyhow::Result<()> {
        let client: BaseConsumer = ClientConfig::new().set("bootstrap.servers", self.bootstrap).create()?;
        let there = client.fetch_metadata(None, patience::most())?;
        let names = there.topics().iter().map(|topic| topic.name());
        let own: Vec<_> = names.filter(|name| name.starts_with(&self.prefix)).collect();
        let admin: AdminClient<_> = ClientConfig::new().set("bootstrap.servers", self.bootstrap).create()?;
        futures::executor::block_on(admin.delete_topics(&own, &AdminOptions::new()))?;
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // What stays costs the broker some room, until it ends with the tests.
        self.remove().ok();
    }
}

impl Node {
    /// A connection, as soon as it listens. It may do so before it serves; then the first call waits.
    ///
    /// # Errors
    /// It ended.
    pub async fn connect(&mut self) -> anyhow::Result<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            looks.tick().await;
            if let Ok(channel) = endpoint.connect().await {
                return Ok(channel);
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("the node ended before it listened: {status}");
            }
            anyhow::ensure!(!deadline.is_over(), "the node does not listen");
        }
    }

    /// How it ended, if it has.
    pub fn end(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.process.try_wait()?)
    }

    /// Waits for its end; none if that does not come.
    pub async fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while !deadline.is_over() {
            looks.tick().await;
            if let Some(status) = self.end()? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// Asks it to stop (SIGTERM).
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn ask_to_stop(&self) -> anyhow::Result<()> {
        // It may have ended by itself in the meantime.
        Command::new("kill")
            .arg("-TERM")
            .arg(self.process.id().to_string())
            .stderr(Stdio::null())
            .status()?;
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The shim, built once for all tests.
fn library() -> anyhow::Result<&'static Path> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || shim::build("node", env!("CARGO_TARGET_TMPDIR")).map_err(|error| format!("{error:#}"));
    LIBRARY.get_or_init(build).as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}
