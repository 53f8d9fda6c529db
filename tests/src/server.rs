//! A server process: the built binary, started on free ports with a directory of its own, ended with its owner.
//!
//! With `EVERLOG_TEST_HOME=kafka` its log is on the broker that all tests of the process share, under a prefix of its
//! own, unless the test names the brokers itself.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail, ensure};
use tonic::transport::{Channel, Endpoint};

use crate::kafka::Cluster;
use crate::patience;

/// The variable that says where the log is, and the one for the brokers.
const HOME: &str = "EVERLOG_TEST_HOME";
const BROKERS: &str = "EVERLOG_KAFKA__BOOTSTRAP_SERVERS";
/// Among a server's variables, the file that its log lines go to; without it they are the test's.
pub const LOG: &str = "EVERLOG_TEST_LOG";
/// Among a server's variables, how many descriptors it may have; without it as many as the test.
pub const DESCRIPTORS: &str = "EVERLOG_TEST_DESCRIPTORS";

/// A running server. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    address: SocketAddr,
    metrics_address: SocketAddr,
    http_address: SocketAddr,
    data_dir: PathBuf,
    variables: Vec<(String, String)>,
}

impl Server {
    /// Starts `everlog dev` on `data_dir` with further `EVERLOG_*` variables, and waits until it serves.
    ///
    /// # Errors
    /// The binary is not built, or does not serve in time.
    pub async fn start(data_dir: &Path, variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut server = Self::begin(data_dir, variables, free_address()?)?;
        server.ready().await?;
        Ok(server)
    }

    /// Starts one that is reached over HTTP at this address, and does not wait until it serves.
    ///
    /// # Errors
    /// The binary is not built.
    pub fn begin(
        data_dir: &Path,
        variables: &[(&str, &str)],
        http_address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let mut variables: Vec<_> =
            variables.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let (address, metrics_address) = (free_address()?, free_address()?);
        let is_placed = variables.iter().any(|(key, _)| key == BROKERS);
        if !is_placed && is_on_kafka() {
            variables.push((BROKERS.into(), Cluster::shared()?.bootstrap().into()));
            variables
                .push(("EVERLOG_KAFKA__PREFIX".into(), format!("test-{}-{}.", address.ip(), address.port())));
        }
        let process = spawn([address, metrics_address, http_address], data_dir, &variables)?;
        Ok(Self { process, address, metrics_address, http_address, data_dir: data_dir.into(), variables })
    }

    /// Where it serves gRPC.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves metrics and health.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics_address
    }

    /// Where it serves schemas, and takes commands over HTTP.
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A connection to it.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn connect(&self) -> anyhow::Result<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
        Ok(endpoint.connect_timeout(patience::most()).connect().await?)
    }

    /// Kills it with -9 and starts it again on the same directory and ports.
    ///
    /// # Errors
    /// It does not serve in time.
    pub async fn crash(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        let addresses = [self.address, self.metrics_address, self.http_address];
        self.process = spawn(addresses, &self.data_dir, &self.variables)?;
        self.ready().await
    }

    /// True while the process runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Asks it to stop (SIGTERM) and waits for the end.
    ///
    /// # Errors
    /// It cannot be signalled, or does not end.
    pub fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        let kill = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status()?;
        ensure!(kill.success(), "kill -TERM failed");
        patience::until_blocking("the server ends", || !self.is_running())?;
        Ok(self.process.wait()?)
    }

    /// Waits until it serves.
    ///
    /// # Errors
    /// It ends, or does not serve in time.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            looks.tick().await;
            if let Some(status) = self.process.try_wait()? {
                bail!("the server ended at its start: {status}");
            }
            if self.connect().await.is_ok() && crate::raw::is_serving(self.address).await {
                return Ok(());
            }
            ensure!(!deadline.is_over(), "the server does not serve");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Where tests that leave it open have their log: on Kafka, or in the server's own directory.
pub fn is_on_kafka() -> bool {
    std::env::var(HOME).is_ok_and(|home| home == "kafka")
}

/// The built binary: beside the folder that holds the test's own.
///
/// # Errors
/// It is not there.
pub fn binary() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).context("the test runs from a target folder")?;
    let binary = folder.join("everlog");
    ensure!(binary.exists(), "{} is not built: run `cargo build` first", binary.display());
    Ok(binary)
}

fn spawn(
    [address, metrics_address, http_address]: [SocketAddr; 3],
    data_dir: &Path,
    variables: &[(String, String)],
) -> anyhow::Result<Child> {
    let descriptors = variables.iter().find(|(key, _)| key == DESCRIPTORS);
    let mut command = match descriptors {
        Some((_, most)) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("ulimit -n {most}; exec \"$0\" \"$@\"")).arg(binary()?);
            shell
        }
        None => Command::new(binary()?),
    };
    command.arg("dev").arg("--address").arg(address.to_string());
    command.arg("--metrics-address").arg(metrics_address.to_string());
    command.arg("--http-address").arg(http_address.to_string()).arg("--data-dir").arg(data_dir);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.envs(variables.iter().map(|(key, value)| (key, value)));
    if let Some((_, path)) = variables.iter().find(|(key, _)| key == LOG) {
        command.stderr(File::options().create(true).append(true).open(path)?);
    }
    command.spawn().context("the server cannot be started")
}

/// A free port of a loopback address that nobody else has, in this process or another: nobody takes it before the server does,
/// or while that is down.
///
/// # Errors
/// There is none.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let [_, _, high, low] = GIVEN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let [.., own] = (std::process::id() % 200 + 10).to_be_bytes();
    Ok(TcpListener::bind((Ipv4Addr::new(127, own, high, low), 0))?.local_addr()?)
}
