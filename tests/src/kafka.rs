//! Real Kafka clusters and a real Schema Registry, started by `tests/kafka/run` and ended with the test process.
//!
//! All of it blocks: from an async test, call it where that does no harm. What a process leaves behind when it is
//! killed is ended and removed by the script, which sees its standard input close.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context, anyhow, bail, ensure};

/// How long a dead node is taken for a living one, by a cluster of one's own: it can be restarted no sooner.
const MISSED_AFTER: [&str; 2] = ["broker.session.timeout.ms=6000", "broker.heartbeat.interval.ms=500"];

/// Properties of a client whose group misses it only after half an hour, the longest that brokers allow, unless it leaves:
/// no test waits for so long.
pub const LONG_SESSION: [(&str, &str); 2] =
    [("session.timeout.ms", "1800000"), ("max.poll.interval.ms", "1800000")];

/// A release of Apache Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The newest; needs Java 17.
    V4_4_0,
    /// The last of 3.x.
    V3_9_2,
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Self::V4_4_0 => "4.4.0",
            Self::V3_9_2 => "3.9.2",
        }
    }
}

/// A running cluster of one or three nodes, each a broker and a controller. Nodes are counted from 1.
/// It is killed, and what it kept removed, when it is dropped or this process ends.
#[derive(Debug)]
pub struct Cluster {
    script: Mutex<Script>,
    /// `host:port` of each node, with commas between them.
    nodes: String,
    /// The same for clients, who may meet proxies there.
    bootstrap: String,
}

impl Cluster {
    /// Starts a cluster of one's own, to be harmed: 1 or 3 nodes, empty. Takes seconds, and minutes the first time.
    ///
    /// # Errors
    /// Java or Maven is missing (the message says what to install), or it does not serve in time.
    pub fn start(version: Version, nodes: u32) -> anyhow::Result<Self> {
        Self::start_with(version, nodes, &MISSED_AFTER)
    }

    /// The same with further lines `key=value` of `server.properties`, and nothing of its own but those.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_with(version: Version, nodes: u32, properties: &[&str]) -> anyhow::Result<Self> {
        let (script, bootstrap) = launch(version, &["--nodes", &nodes.to_string()], properties)?;
        Ok(Self { script: Mutex::new(script), nodes: bootstrap.clone(), bootstrap })
    }

    /// A cluster of one's own, to be harmed, behind proxies that listen on these ports of 127.0.0.1 already, one for
    /// each node: clients are sent there, whomever they ask first. Each proxy passes on to [`Cluster::address`] of its
    /// node, which is known only then. The nodes reach each other directly.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_behind(version: Version, proxies: &[u16], properties: &[&str]) -> anyhow::Result<Self> {
        let join = |words: Vec<String>| words.join(",");
        let ports = join(proxies.iter().map(u16::to_string).collect());
        let options = ["--nodes", &proxies.len().to_string(), "--advertise", &ports];
        let (script, nodes) = launch(version, &options, &[&MISSED_AFTER, properties].concat())?;
        let bootstrap = join(proxies.iter().map(|port| format!("127.0.0.1:{port}")).collect());
        Ok(Self { script: Mutex::new(script), nodes, bootstrap })
    }

    /// A cluster of one's own, to be harmed: each node listens at an address of its own, in the network namespace with
    /// that file. This process must reach them all.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_apart(version: Version, places: &[(String, PathBuf)]) -> anyhow::Result<Self> {
        let hosts: Vec<_> = places.iter().map(|(host, _)| host.as_str()).collect();
        let spaces: Vec<_> = places.iter().map(|(_, space)| space.display().to_string()).collect();
        let (count, hosts, spaces) = (places.len().to_string(), hosts.join(","), spaces.join(","));
        let options = ["--nodes", &count, "--hosts", &hosts, "--spaces", &spaces];
        let (script, bootstrap) = launch(version, &options, &MISSED_AFTER)?;
        Ok(Self { script: Mutex::new(script), nodes: bootstrap.clone(), bootstrap })
    }

    /// One node behind a proxy, as with [`Cluster::start_behind`], that keeps what it has in a directory of the caller's:
    /// that stays.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_in(version: Version, dir: &Path, proxy: u16, properties: &[&str]) -> anyhow::Result<Self> {
        let dir = dir.to_str().context("a path of UTF-8")?;
        let options = ["--dir", dir, "--advertise", &proxy.to_string()];
        let (script, nodes) = launch(version, &options, &[&MISSED_AFTER, properties].concat())?;
        Ok(Self { script: Mutex::new(script), nodes, bootstrap: format!("127.0.0.1:{proxy}") })
    }

    /// One node of one's own whose ports are known before it is there, so that `properties` can name further listeners: it
    /// takes `port` and the one behind it.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_at(version: Version, port: u16, properties: &[&str]) -> anyhow::Result<Self> {
        let (script, bootstrap) = launch(version, &["--port", &port.to_string()], properties)?;
        Ok(Self { script: Mutex::new(script), nodes: bootstrap.clone(), bootstrap })
    }

    /// The one broker (4.4.0) that all tests of this process share, for topics with names of their own. It
    /// forgives long pauses of a busy machine, and must not be harmed.
    ///
    /// # Errors
    /// As [`Cluster::start`], each time.
    pub fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceLock<Result<Cluster, String>> = OnceLock::new();
        let started = SHARED
            .get_or_init(|| Self::start_with(Version::V4_4_0, 1, &[]).map_err(|error| format!("{error:#}")));
        started.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// `host:port` of every node as clients are told it, with commas between them: its proxy's, where it has one.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// `host:port` of one node itself.
    ///
    /// # Errors
    /// There is no such node.
    pub fn address(&self, node: u32) -> anyhow::Result<&str> {
        let index = usize::try_from(node)?.checked_sub(1).context("nodes are counted from 1")?;
        self.nodes.split(',').nth(index).with_context(|| format!("there is no node {node}"))
    }

    /// Ends a node by SIGTERM: it hands its partitions over first. Returns when it is gone.
    ///
    /// # Errors
    /// There is no such node.
    pub fn stop(&self, node: u32) -> anyhow::Result<()> {
        self.order("stop", node).map(drop)
    }

    /// Ends a node by SIGKILL.
    ///
    /// # Errors
    /// There is no such node.
    pub fn kill(&self, node: u32) -> anyhow::Result<()> {
        self.order("kill", node).map(drop)
    }

    /// Starts a node on what it kept, and kills it first if it still runs. Returns when it serves, which is not before
    /// the cluster has missed its former self: up to `broker.session.timeout.ms`, 6 s unless it was set.
    ///
    /// # Errors
    /// It does not serve in time, which ends the whole cluster.
    pub fn restart(&self, node: u32) -> anyhow::Result<()> {
        self.order("restart", node).map(drop)
    }

    /// Stops a node by SIGSTOP: its connections stay and nothing answers.
    ///
    /// # Errors
    /// There is no such node.
    pub fn pause(&self, node: u32) -> anyhow::Result<()> {
        self.order("pause", node).map(drop)
    }

    /// Lets a paused node go on, by SIGCONT.
    ///
    /// # Errors
    /// There is no such node.
    pub fn resume(&self, node: u32) -> anyhow::Result<()> {
        self.order("resume", node).map(drop)
    }

    /// The process id of a node, the last one if it is dead.
    ///
    /// # Errors
    /// There is no such node.
    pub fn pid(&self, node: u32) -> anyhow::Result<u32> {
        Ok(self.order("pid", node)?.trim().parse()?)
    }

    /// Where the nodes keep what they have: `node-N/data`, and `node-N/log` is what N complained about.
    pub fn dir(&self) -> PathBuf {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).dir.clone()
    }

    fn order(&self, verb: &str, node: u32) -> anyhow::Result<String> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).order(verb, node)
    }
}

/// A running Apicurio Registry, empty. It is killed when it is dropped or this process ends.
#[derive(Debug)]
pub struct Registry {
    _script: Script,
    url: String,
}

impl Registry {
    /// Starts one. Takes seconds, and minutes the first time.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start() -> anyhow::Result<Self> {
        let (script, url) = Script::start(&["registry", "--short-lived"])?;
        Ok(Self { _script: script, url })
    }

    /// The base of the paths of Confluent's API, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Runs a console tool of Kafka by its Java class, with `input` on standard input.
///
/// # Errors
/// It cannot be run, or fails: then with what it said.
pub fn tool(class: &str, arguments: &[&str], input: &str) -> anyhow::Result<String> {
    let mut command = Command::new(script());
    command.arg("tool").arg(class).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().context("tests/kafka/run cannot be started")?;
    process.stdin.take().context("it has a standard input")?.write_all(input.as_bytes())?;
    let Output { status, stdout, stderr } = process.wait_with_output()?;
    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{class}: {status}\n{said}{complained}");
    Ok(said.into_owned())
}

/// Also where its nodes serve.
fn launch(version: Version, options: &[&str], properties: &[&str]) -> anyhow::Result<(Script, String)> {
    let mut arguments = vec!["broker", "--short-lived", "--version", version.name()];
    arguments.extend(options);
    arguments.extend(properties.iter().flat_map(|property| ["--property", property]));
    Script::start(&arguments)
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kafka/run")
}

/// `tests/kafka/run` under our orders. It ends what it started when its standard input closes, and a pipe closes
/// with the process that holds it, however that ends.
#[derive(Debug)]
struct Script {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    dir: PathBuf,
}

impl Script {
    /// Also the address where what it started serves.
    fn start(arguments: &[&str]) -> anyhow::Result<(Self, String)> {
        let mut command = Command::new(script());
        command.args(arguments).arg("--control");
        if !arguments.contains(&"--dir") {
            command.arg("--temporary");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("tests/kafka/run cannot be started")?;
        let orders = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().context("it has a standard output")?);
        let mut script = Self { process, orders, answers, dir: PathBuf::new() };
        script.dir = script.answer("dir")?.into();
        let address = script.answer("ready")?;
        Ok((script, address))
    }

    fn order(&mut self, verb: &str, node: u32) -> anyhow::Result<String> {
        writeln!(self.orders.as_mut().context("it takes orders until it is dropped")?, "{verb} {node}")?;
        self.answer("done")
    }

    /// What follows `expected` in the next line.
    fn answer(&mut self, expected: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match line.trim_end().split_once(' ') {
            Some((word, rest)) if word == expected => Ok(rest.to_owned()),
            Some(("failed", reason)) => bail!("tests/kafka/run: {reason}"),
            Some(_) => bail!("tests/kafka/run said '{}', not '{expected}'", line.trim_end()),
            None => bail!("tests/kafka/run ended: {}", self.process.wait()?),
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.orders.take();
        self.process.wait().ok();
    }
}
