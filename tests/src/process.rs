//! A node on Kafka as a process of its own, with a name, of which the end matters.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use tonic::transport::Endpoint;

use crate::caller::Caller;
use crate::server::{binary, free_address};
use crate::{page, patience, raw};

/// A running node. It is killed when dropped.
#[derive(Debug)]
pub struct Process {
    process: Child,
    address: SocketAddr,
    metrics_address: SocketAddr,
    said: PathBuf,
}

impl Process {
    /// Starts `everlog dev` on these brokers with further `EVERLOG_*` variables; does not wait until it serves. What it says is
    /// written beside its directory.
    ///
    /// # Errors
    /// The binary is not built.
    pub fn start(
        bootstrap: &str,
        name: &str,
        data_dir: &Path,
        variables: &[(&str, String)],
    ) -> anyhow::Result<Self> {
        let (address, metrics_address) = (free_address()?, free_address()?);
        let said = data_dir.with_file_name(format!("{name}.log"));
        let mut command = Command::new(binary()?);
        command.arg("dev").arg("--kafka-bootstrap").arg(bootstrap).arg("--data-dir").arg(data_dir);
        command.arg("--address").arg(address.to_string());
        command.arg("--metrics-address").arg(metrics_address.to_string());
        command.arg("--http-address").arg("127.0.0.1:0");
        command.envs(variables.iter().map(|(key, value)| (key, value))).env("EVERLOG_SERVER__NAME", name);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said)?);
        Ok(Self { process: command.spawn()?, address, metrics_address, said })
    }

    /// Waits until it serves.
    ///
    /// # Errors
    /// It ends, or does not serve in time.
    pub async fn ready(&mut self) -> anyhow::Result<Caller> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while !raw::is_serving(self.address).await {
            ensure!(self.is_running(), "it ended: {}", self.said()?);
            ensure!(!deadline.is_over(), "it does not serve: {}", self.said()?);
            looks.tick().await;
        }
        Ok(Caller(Endpoint::from_shared(format!("http://{}", self.address))?.connect().await?))
    }

    /// Where clients reach it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends it a signal of the system, such as `STOP`.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        let process_id = self.process.id().to_string();
        let status = Command::new("kill").arg(format!("-{name}")).arg(process_id).status()?;
        ensure!(status.success(), "kill -{name}");
        Ok(())
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// It ends otherwise, or not in time.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.signal("TERM")?;
        let (code, said) = self.ended().await?;
        ensure!(code == Some(0), "it stopped with {code:?}: {said}");
        Ok(())
    }

    /// Kills it with -9.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Waits for its end; its exit code, and all that it said.
    ///
    /// # Errors
    /// It does not end in time.
    pub async fn ended(&mut self) -> anyhow::Result<(Option<i32>, String)> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            looks.tick().await;
            if let Some(status) = self.process.try_wait()? {
                return Ok((status.code(), self.said()?));
            }
            ensure!(!deadline.is_over(), "it does not end: {}", self.said()?);
        }
    }

    /// True while the process runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// All that it said so far.
    ///
    /// # Errors
    /// The file is gone.
    pub fn said(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(&self.said)?)
    }

    /// A page of its own address for metrics and health.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn page(&self, path: &str) -> anyhow::Result<String> {
        Ok(page::get(self.metrics_address, path).await?.1)
    }

    /// The sum of a metric over what stands in its braces.
    ///
    /// # Errors
    /// There is none.
    pub async fn metric(&self, name: &str, within: &str) -> anyhow::Result<f64> {
        let page = self.page("/metrics").await?;
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(within));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let sum = values.reduce(|sum, value| sum + value);
        sum.with_context(|| format!("there is no {name} with {within}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
