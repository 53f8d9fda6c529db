//! A node as a process of its own, of which the end matters.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{bail, ensure};
use everlog_tests::raw;
use everlog_tests::server::binary;
use tonic::transport::Endpoint;

use super::{Client, LOOK_EVERY, Place, WITHIN};

/// A node with a name. It is killed when dropped.
pub struct Process {
    pub process: Child,
    pub address: SocketAddr,
    log: std::path::PathBuf,
}

impl Process {
    pub fn start(place: &Place, name: &str, data_dir: &Path) -> anyhow::Result<Self> {
        let free = || -> anyhow::Result<SocketAddr> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?) };
        let (address, metrics_address, http_address) = (free()?, free()?, free()?);
        let log = place.dir.path().join(format!("{name}.log"));
        let [bootstrap, rest @ ..] = place.variables.as_slice() else { bail!("it has variables") };
        let mut command = Command::new(binary()?);
        command.arg("dev").arg("--kafka-bootstrap").arg(&bootstrap.1);
        command.arg("--address").arg(address.to_string()).arg("--data-dir").arg(data_dir);
        command.arg("--metrics-address").arg(metrics_address.to_string());
        command.arg("--http-address").arg(http_address.to_string());
        command.envs(rest.iter().map(|(name, value)| (*name, value))).env("EVERLOG_SERVER__NAME", name);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
        Ok(Self { process: command.spawn()?, address, log })
    }

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

    pub fn said(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
