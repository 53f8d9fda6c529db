//! A log of a test's own, and the processes of nodes on it.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use everlog_log_kafka::Options;
use everlog_tests::raw;
use everlog_tests::server::binary;
use tonic::transport::Endpoint;

use crate::client::Client;

const WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After so long a node gives an append, and after twice as long a transaction, up for unknown.
pub const TIMEOUT: Duration = Duration::from_secs(3);

pub struct Place {
    pub options: Options,
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new(bootstrap: &str) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = Options::new(bootstrap);
        options.prefix = format!("recovery-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        (options.partitions, options.replication) = (4, 1);
        Ok(Self { options, dir: tempfile::tempdir()? })
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn rows(&self) -> PathBuf {
        self.data().join("rows")
    }

    /// Starts a node with a name and waits until it serves.
    pub async fn start(&self, name: &str) -> anyhow::Result<(Process, Client)> {
        let mut process = self.spawn(name, &self.data())?;
        let client = process.ready().await?;
        Ok((process, client))
    }

    pub fn spawn(&self, name: &str, data_dir: &Path) -> anyhow::Result<Process> {
        let free = || -> anyhow::Result<SocketAddr> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?) };
        let (address, metrics_address) = (free()?, free()?);
        let log = self.dir.path().join(format!("{name}.log"));
        let mut command = Command::new(binary()?);
        command.arg("dev").arg("--kafka-bootstrap").arg(&self.options.bootstrap_servers);
        command.arg("--address").arg(address.to_string()).arg("--data-dir").arg(data_dir);
        command.arg("--metrics-address").arg(metrics_address.to_string());
        command.arg("--http-address").arg("127.0.0.1:0");
        let timeout_ms = TIMEOUT.as_millis().to_string();
        command.env("EVERLOG_SERVER__NAME", name).env("EVERLOG_KAFKA__PREFIX", &self.options.prefix);
        command.env("EVERLOG_KAFKA__PARTITIONS", self.options.partitions.to_string());
        command.env("EVERLOG_KAFKA__CALL_TIMEOUT_MS", &timeout_ms);
        command.env("EVERLOG_KAFKA__APPEND_TIMEOUT_MS", &timeout_ms);
        command.env("EVERLOG_KAFKA__TRANSACTION_TIMEOUT_MS", &timeout_ms);
        command.env("EVERLOG_GATEWAY__POLL_WAIT_MS", "1000");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
        Ok(Process { process: command.spawn()?, address, metrics_address, log })
    }
}

/// A node, of which the end matters. It is killed when dropped.
pub struct Process {
    process: Child,
    address: SocketAddr,
    metrics_address: SocketAddr,
    log: PathBuf,
}

impl Process {
    pub async fn ready(&mut self) -> anyhow::Result<Client> {
        let deadline = Instant::now() + WITHIN;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        while !raw::is_serving(self.address).await {
            ensure!(self.process.try_wait()?.is_none(), "it ended: {}", self.said()?);
            ensure!(Instant::now() < deadline, "it does not serve: {}", self.said()?);
            looks.tick().await;
        }
        Ok(Client(Endpoint::from_shared(format!("http://{}", self.address))?.connect().await?))
    }

    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        let kill =
            Command::new("kill").arg(format!("-{name}")).arg(self.process.id().to_string()).status()?;
        ensure!(kill.success(), "kill -{name}");
        Ok(())
    }

    /// Ends it in order.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.signal("TERM")?;
        let (code, said) = self.ended()?;
        ensure!(code == Some(0), "it stopped with {code:?}: {said}");
        Ok(())
    }

    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Its exit code, and all that it said.
    pub fn ended(&mut self) -> anyhow::Result<(Option<i32>, String)> {
        let deadline = Instant::now() + WITHIN;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok((status.code(), self.said()?));
            }
            ensure!(Instant::now() < deadline, "it does not end: {}", self.said()?);
            std::thread::yield_now();
        }
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    pub fn said(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }

    /// A page of its own address for metrics and health.
    pub async fn page(&self, path: &str) -> anyhow::Result<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.metrics_address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: everlog\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        Ok(page)
    }

    /// The sum of a metric over what stands in its braces.
    pub async fn metric(&self, name: &str, within: &str) -> anyhow::Result<f64> {
        let page = self.page("/metrics").await?;
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(within));
        let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        let values: Vec<f64> = lines.filter_map(value).collect();
        ensure!(!values.is_empty(), "there is no {name} with {within}");
        Ok(values.iter().sum())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
