//! A node as a process. It is killed, paused, resumed and restarted on the same addresses.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use everlog_tests::server::{binary, free_address};
use everlog_tests::{patience, raw};
use serde_json::Value;
use tonic::transport::Endpoint;

use crate::client::Connection;
use crate::net::Host;
use crate::waits::Sleep;

/// Where a node serves that has an address for itself.
const FIRST_PORT: u16 = 7233;

const NAME: &str = "EVERLOG_SERVER__NAME";

/// A node. It is killed when dropped.
pub struct Node {
    process: Child,
    pub address: SocketAddr,
    data_dir: PathBuf,
    said: PathBuf,
    variables: Vec<(String, String)>,
    host: Host,
    sleep: Sleep,
}

impl Node {
    /// Starts `everlog serve`, and does not wait for it.
    pub fn start(name: &str, dir: &Path, variables: &[(String, String)]) -> anyhow::Result<Self> {
        Self::start_as(name, name, dir, variables)
    }

    /// The same at a place of its own.
    pub fn start_at(
        name: &str,
        dir: &Path,
        variables: &[(String, String)],
        host: &Host,
    ) -> anyhow::Result<Self> {
        if host.space.is_none() {
            return Self::start(name, dir, variables);
        }
        let addresses = [0, 1, 2].map(|more| SocketAddr::from((host.address, FIRST_PORT + more)));
        Self::begin(name, name, dir, variables, (host.clone(), addresses))
    }

    /// The same with a directory of another name.
    pub fn start_as(
        name: &str,
        folder: &str,
        dir: &Path,
        variables: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let addresses = [free_address()?, free_address()?, free_address()?];
        Self::begin(name, folder, dir, variables, (Host::here(), addresses))
    }

    fn begin(
        name: &str,
        folder: &str,
        dir: &Path,
        variables: &[(String, String)],
        (host, addresses): (Host, [SocketAddr; 3]),
    ) -> anyhow::Result<Self> {
        let [address, metrics_address, http_address] = addresses;
        let (data_dir, said) = (dir.join(folder), dir.join(format!("{folder}.log")));
        let mut variables = variables.to_vec();
        for (key, value) in [
            (NAME, name.to_owned()),
            ("EVERLOG_SERVER__ADDRESS", address.to_string()),
            ("EVERLOG_SERVER__METRICS_ADDRESS", metrics_address.to_string()),
            ("EVERLOG_HTTP__ADDRESS", http_address.to_string()),
            ("EVERLOG_CLUSTER__ADDRESS", SocketAddr::from((host.address, 0)).to_string()),
            ("EVERLOG_SERVER__DATA_DIR", data_dir.display().to_string()),
        ] {
            variables.push((key.into(), value));
        }
        let process = spawn(&said, &variables, &host)?;
        Ok(Self { process, address, data_dir, said, variables, host, sleep: Sleep::default() })
    }

    /// Waits until it serves.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let mut looks = patience::looks();
        let serves = async {
            while !raw::is_serving(self.address).await {
                looks.tick().await;
                if let Some(status) = self.process.try_wait()? {
                    bail!("the node ended at its start ({status})");
                }
            }
            anyhow::Ok(())
        };
        let serves = patience::answer("the node serves", serves).await;
        serves.map_err(Into::into).flatten().with_context(|| self.last_words())
    }

    /// Connections to it, made as they are needed and again when they break.
    pub fn place(&self) -> anyhow::Result<Connection> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
        let channel = endpoint.connect_timeout(Duration::from_secs(2)).connect_lazy();
        Ok(Connection { channel, sleep: self.sleep.clone() })
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// SIGTERM; its exit status.
    pub async fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM")?;
        self.ended().await
    }

    /// SIGSTOP.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.sleep.begin();
        self.signal("STOP")
    }

    /// SIGCONT.
    pub fn resume(&self) -> anyhow::Result<()> {
        let woken = self.signal("CONT");
        self.sleep.end();
        woken
    }

    /// Whether it is stopped, as the system says.
    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
    }

    /// The name that it goes by among the nodes.
    pub fn name(&self) -> &str {
        let named = self.variables.iter().find(|(key, _)| key == NAME);
        named.map_or("", |(_, name)| name)
    }

    fn signal(&self, name: &str) -> anyhow::Result<()> {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.process.id().to_string()).status()?;
        ensure!(status.success(), "kill -{name} failed");
        Ok(())
    }

    /// Starts it again where it was; it must have ended.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        ensure!(self.process.try_wait()?.is_some(), "it still runs");
        self.process = spawn(&self.said, &self.variables, &self.host)?;
        Ok(())
    }

    /// Waits until it ends; its exit status.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            looks.tick().await;
            if let Some(status) = self.end()? {
                return Ok(status);
            }
            ensure!(!deadline.is_over(), "it does not end: {}", self.last_words());
        }
    }

    /// Its exit status, if it has ended.
    pub fn end(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.process.try_wait()?)
    }

    /// The rows beside the log: a directory for each partition.
    pub fn rows(&self) -> PathBuf {
        self.data_dir.join("rows")
    }

    /// All that nodes here had to say.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Whether its process is there.
    pub fn is_alive(&mut self) -> anyhow::Result<bool> {
        Ok(self.end()?.is_none())
    }

    /// Waits until a line was said so often.
    pub async fn until_said(&self, words: &str, times: u64) -> anyhow::Result<()> {
        let said = patience::until(words, async || self.times_said(words) >= times);
        said.await.with_context(|| format!("it has said: {}", self.last_words()))
    }

    /// How many lines say something.
    pub fn times_said(&self, words: &str) -> u64 {
        self.said().lines().filter(|line| line.contains(words)).count() as u64
    }

    /// What it said of its partitions, the last `most` lines of it, each with its time of the day.
    pub fn course(&self, most: usize) -> Vec<String> {
        let said = self.said();
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter_map(
            |mut line| {
                let fields = line.as_object_mut()?;
                let is_of_partitions =
                    ["partition", "group", "groups"].iter().any(|key| fields.contains_key(*key));
                let time = fields.remove("timestamp")?;
                let message = fields.remove("message")?;
                ["level", "target"].iter().for_each(|key| drop(fields.remove(*key)));
                let (time, message) = (time.as_str()?.get(11..23)?, message.as_str()?);
                is_of_partitions.then(|| format!("{time} {message} {}", Value::from(fields.clone())))
            },
        );
        let mut lines: Vec<_> = lines.collect();
        lines.split_off(lines.len().saturating_sub(most))
    }

    pub fn last_words(&self) -> String {
        let said = self.said();
        let lines: Vec<_> = said.lines().rev().take(6).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn spawn(said: &Path, variables: &[(String, String)], host: &Host) -> anyhow::Result<Child> {
    let said = File::options().create(true).append(true).open(said)?;
    let mut command = host.command(&binary()?);
    command.arg("serve").envs(variables.iter().map(|(key, value)| (key, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    command.spawn().context("a node cannot be started")
}
