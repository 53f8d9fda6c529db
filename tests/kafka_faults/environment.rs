//! The environment of a row: its own log on a broker, nodes, clients, workers and a consumer. It ends with the
//! checker.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_tests::patience;
use everlog_tests::server::binary;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::checker::check;
use crate::checker::deliveries::{Troubles, now_ms, time_of_day};
use crate::client::Client;
use crate::cluster::FaultCluster;
use crate::commands::Commands;
use crate::listed;
use crate::load::Load;
use crate::net::Host;
use crate::node::Node;
use crate::observations::{Observations, line};
use crate::polls;
use crate::program::{Errands, Program};
use crate::reader::Along;
use crate::worker::employ;

/// What a node logs when it has taken over a group of partitions.
pub const TOOK_A_GROUP: &str = "partition group taken over";
/// What it logs when it takes calls and has announced itself to the others.
pub const SERVES: &str = "\"message\":\"serving\"";
/// Between two readings of everything.
const READ_EVERY: Duration = Duration::from_millis(200);
/// Histories that the node is asked for at the end.
const ASKED_MAX: usize = 60;

/// How long behind a trouble is told of, where a row is not held.
const FLOW_SECONDS: usize = 20;
/// How much is told of each node there.
const COURSE_LINES: usize = 40;
/// Where nodes' words are kept, and their course is told whatever came of the row.
const KEEP: &str = "EVERLOG_FAULTS_KEEP";

/// Where deliveries are judged: with a thousand, two cores take ten seconds for what waits in a queue, whatever happens to nodes.
const OPEN_OF_SEVERAL: usize = 300;
/// Three brokers on a small machine serve correctness, not speed.
pub const OPEN_OF_THREE: usize = 12;
pub const REPLICATED: &[(&str, &str)] = &[("EVERLOG_KAFKA__REPLICATION", "3")];
/// Groups that can be shared, each of partitions that come one after the other, and journals of which the checker sees the most.
const SEVERAL: &[(&str, &str)] =
    &[("EVERLOG_KAFKA__GROUP_PARTITIONS", "2"), ("EVERLOG_PARTITION__JOURNAL_KEEP_RECORDS", "100000")];

/// The size of a row.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Workflows at a time.
    pub open: usize,
    /// Workers of each kind.
    pub workers: usize,
    /// What an SDK program does beside them, where there are several nodes.
    pub errands: Errands,
    /// How often a row does what it does.
    pub times: u64,
    pub seed: u64,
    pub is_full: bool,
}

/// What a row works with.
pub struct Environment {
    pub bootstrap: String,
    pub prefix: String,
    pub dir: TempDir,
    pub variables: Vec<(String, String)>,
    pub node: Node,
    /// Further nodes on the same log.
    pub others: Vec<Node>,
    pub client: Client,
    pub along: Along,
    /// When something was harmed; tasks are looked at where several nodes are to deliver them.
    pub troubles: Troubles,
    pub is_timely: bool,
    pub size: Size,
    /// Rows, or events, may be gone by then.
    pub is_compacted: bool,
    pub is_trimmed: bool,
    workers: JoinSet<()>,
    program: Option<Program>,
}

/// The outcome of a row.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How often the fault was injected, and how often it was seen to be there.
    pub injected: u64,
    pub seen: u64,
    /// What was seen, for the table.
    pub how: String,
    pub workflows: u64,
    pub acked: usize,
    pub violations: Vec<String>,
}

/// How many partitions a log has here.
pub const PARTITIONS: &str = "8";

/// The variables of every node of a log.
pub fn variables(bootstrap: &str, prefix: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let common = [
        ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", bootstrap),
        ("EVERLOG_KAFKA__PREFIX", prefix),
        ("EVERLOG_KAFKA__PARTITIONS", PARTITIONS),
        ("EVERLOG_KAFKA__REPLICATION", "1"),
        ("EVERLOG_KAFKA__CALL_TIMEOUT_MS", "5000"),
        ("EVERLOG_KAFKA__APPEND_TIMEOUT_MS", "5000"),
        ("EVERLOG_KAFKA__TRANSACTION_TIMEOUT_MS", "5000"),
        ("EVERLOG_GATEWAY__POLL_WAIT_MS", "2000"),
        ("EVERLOG_GATEWAY__QUERY_WAIT_MS", "5000"),
        ("EVERLOG_MEMORY__DATABASE_BYTES", "16777216"),
    ];
    common.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Runs `everlog` with some words; its exit code and what it said.
pub fn tool(words: &[&str], variables: &[(String, String)]) -> anyhow::Result<(Option<i32>, String)> {
    let mut command = Command::new(binary()?);
    command.args(words).envs(variables.iter().map(|(key, value)| (key, value)));
    let output = command.output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
}

/// Makes the topics; a broker that was just started may need a moment.
fn make_topics(variables: &[(String, String)]) -> anyhow::Result<()> {
    let deadline = patience::deadline();
    loop {
        let (code, said) = tool(&["topics", "create"], variables)?;
        if code == Some(0) {
            return Ok(());
        }
        ensure!(code == Some(1) && !deadline.is_over(), "topics create: {code:?}: {said}");
    }
}

impl Environment {
    /// Topics, a node that serves, workers, and a consumer that reads along.
    pub async fn open(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        more: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        Self::open_in(cluster, name, size, more, None).await
    }

    /// The same with the node's directory below another.
    pub async fn open_in(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        more: &[(&str, &str)],
        parent: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let dir = parent.map_or_else(tempfile::tempdir, tempfile::tempdir_in)?;
        Self::open_at(cluster, name, size, more, dir, &Host::here()).await
    }

    async fn open_at(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        more: &[(&str, &str)],
        dir: TempDir,
        host: &Host,
    ) -> anyhow::Result<Self> {
        cluster.calm();
        let mut dir = dir;
        if let Some(kept) = std::env::var_os(KEEP) {
            dir = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(kept)?;
            dir.disable_cleanup(true);
        }
        let (bootstrap, prefix) = (cluster.bootstrap(), format!("{name}."));
        let variables = variables(&bootstrap, &prefix, more);
        make_topics(&variables)?;
        let mut node = Node::start_at("one", dir.path(), &variables, host)?;
        node.ready().await?;
        let client = Client::new(vec![node.place()?]);
        let along = Along::start(&bootstrap, &format!("{prefix}events"))?;
        let workers = employ(&client, size.workers);
        Ok(Self {
            bootstrap,
            prefix,
            dir,
            variables,
            node,
            others: Vec::new(),
            client,
            along,
            troubles: Troubles::default(),
            is_timely: false,
            size,
            is_compacted: false,
            is_trimmed: false,
            workers,
            program: None,
        })
    }

    /// The same with so many nodes that share four groups of partitions; each call goes to the next node.
    pub async fn of_nodes(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        nodes: usize,
    ) -> anyhow::Result<Self> {
        Self::of_nodes_with(cluster, name, size, nodes, &[]).await
    }

    /// The same with further variables.
    pub async fn of_nodes_with(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        nodes: usize,
        more: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let hosts = vec![Host::here(); nodes];
        let size = Size { open: size.open.min(OPEN_OF_SEVERAL), ..size };
        Self::of_hosts(cluster, name, size, &hosts, more).await
    }

    /// The same on brokers that keep three copies; fewer workflows at a time, for a small machine.
    pub async fn of_quorum(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        hosts: &[Host],
    ) -> anyhow::Result<Self> {
        let size = Size { open: size.open.min(OPEN_OF_THREE), workers: 4, ..size };
        Self::of_hosts(cluster, name, size, hosts, REPLICATED).await
    }

    async fn of_hosts(
        cluster: &FaultCluster,
        name: &str,
        size: Size,
        hosts: &[Host],
        more: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let more = [SEVERAL, more].concat();
        let (first, others) = hosts.split_first().context("a node at least")?;
        let mut environment = Self::open_at(cluster, name, size, &more, tempfile::tempdir()?, first).await?;
        environment.is_timely = true;
        for (number, host) in (1..).zip(others) {
            let name = format!("other-{number}");
            let mut node = Node::start_at(&name, environment.dir.path(), &environment.variables, host)?;
            node.ready().await?;
            node.until_said(TOOK_A_GROUP, 1).await?;
            environment.others.push(node);
        }
        environment.turn_to_all()?;
        environment.program = Some(Program::start(&environment, size.errands).await?);
        Ok(environment)
    }

    /// From here on calls go to all nodes.
    pub fn turn_to_all(&self) -> anyhow::Result<()> {
        self.client.turn_to(self.nodes().map(Node::place).collect::<anyhow::Result<_>>()?);
        Ok(())
    }

    /// From here on calls go to all nodes but this one.
    pub fn turn_from(&self, number: usize) -> anyhow::Result<()> {
        let others = self.nodes().enumerate().filter(|(other, _)| *other != number);
        self.client.turn_to(others.map(|(_, node)| node.place()).collect::<anyhow::Result<_>>()?);
        Ok(())
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(&self.node).chain(&self.others)
    }

    /// How often all nodes together said something.
    pub fn times_said(&self, words: &str) -> u64 {
        self.nodes().map(|node| node.times_said(words)).sum()
    }

    /// A node by its number; 0 = the first one.
    pub fn node_at(&mut self, number: usize) -> &mut Node {
        match number {
            0 => &mut self.node,
            other => &mut self.others[other - 1],
        }
    }

    /// SIGKILL of a node by its number: the others have one hand-over time.
    pub fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        let began_ms = now_ms();
        self.node_at(number).kill()?;
        self.troubles.since(began_ms);
        Ok(())
    }

    /// Waits until more calls have been acknowledged than there were.
    pub async fn until_acked(&self, before: usize) -> anyhow::Result<()> {
        let acked = patience::until("another call", async || self.client.client_log.acked() > before).await;
        acked.with_context(|| format!("no call is acknowledged: {}", self.node.last_words()))
    }

    /// Begins the load.
    pub fn load(&self) -> Load {
        Load::begin(&self.client, &self.along.seen, None, self.size.open, self.size.seed)
    }

    /// The load, with about a third of it by records.
    pub fn load_with_records(&self) -> anyhow::Result<(Load, Arc<Commands>)> {
        let commands = Arc::new(Commands::new(&self.bootstrap, &self.prefix, &self.client.client_log)?);
        let by_records = Some(Arc::clone(&commands));
        let load = Load::begin(&self.client, &self.along.seen, by_records, self.size.open, self.size.seed);
        Ok((load, commands))
    }

    pub fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Ends the load, the program and the nodes, reads everything, and runs the checker.
    pub async fn finish(mut self, load: Load, outcome: Outcome) -> anyhow::Result<(Outcome, Observations)> {
        let mut outcome = outcome;
        let program = self.program.take();
        let errands = async {
            match program {
                Some(program) => program.end().await.map(Some),
                None => Ok(None),
            }
        };
        let (drained, errands) = tokio::join!(load.drain(), errands);
        match drained {
            Ok(workflows) => outcome.workflows = workflows,
            Err(error) => outcome.violations.push(format!("{error:#}; {}", self.node.last_words())),
        }
        match errands {
            Ok(Some((wrong, did))) => {
                outcome.violations.extend(wrong);
                outcome.how += &format!("; the SDK program: {did}");
            }
            Ok(None) => {}
            Err(error) => outcome.violations.push(format!("{error:#}")),
        }
        self.workers.shutdown().await;
        let troubles = self.is_timely.then(|| self.troubles.all());
        let (is_compacted, is_trimmed) = (self.is_compacted, self.is_trimmed);
        let mut observations = Observations { is_compacted, is_trimmed, troubles, ..Observations::default() };
        self.ask(&mut observations).await?;
        for node in std::iter::once(&mut self.node).chain(&mut self.others) {
            let status = node.stop().await?;
            if !status.success() {
                outcome.violations.push(format!("the node ended with {status}: {}", node.last_words()));
            }
        }
        let observations = self.read(observations).await?;
        outcome.acked = self.client.client_log.acked();
        outcome.violations.extend(check(&observations));
        if self.is_timely {
            let reads = observations.reads.len();
            outcome.how += &format!("; {reads} reads elsewhere");
            if let Some(longest) = observations.waits.iter().max_by_key(|wait| wait.awake()) {
                let (call, took, at) = (&longest.call, longest.awake(), time_of_day(longest.ended_ms));
                outcome.how += &format!(", no call took more than {took:.1?} ({call}, until {at})");
            }
        }
        if !outcome.violations.is_empty() || std::env::var_os(KEEP).is_some() {
            self.tell_course(&observations);
        }
        Ok((outcome, observations))
    }

    /// What happened to the partitions, and when there was trouble: for who looks for the cause.
    fn tell_course(&self, observations: &Observations) {
        for (from_ms, until_ms) in self.troubles.all() {
            let flow = polls::flow(&observations.polls, until_ms, FLOW_SECONDS);
            let (from, until) = (time_of_day(from_ms), time_of_day(until_ms));
            println!("course: trouble {from} to {until}, tasks got in the seconds behind it: {flow:?}");
        }
        let waits = polls::waits(&observations.polls, &self.troubles.all());
        let of_them = |permille: usize| waits.get(waits.len() * permille / 1_000).or(waits.last());
        let [half, most, nearly_all] =
            [500, 900, 999].map(|permille| of_them(permille).copied().unwrap_or(0));
        let (count, longest) = (waits.len(), waits.last().copied().unwrap_or(0));
        println!(
            "course: {count} tasks were got where nothing was harmed, half within {half} ms, 90 % within {most}, 99.9 % within \
             {nearly_all}, all within {longest}"
        );
        for (number, node) in self.nodes().enumerate() {
            node.course(COURSE_LINES).iter().for_each(|line| println!("course: node {number} {line}"));
        }
    }

    /// What the nodes list, and what they say of the histories of some workflows.
    async fn ask(&self, observations: &mut Observations) -> anyhow::Result<()> {
        observations.listed = Some(listed::all(&self.client, &mut observations.faults).await?);
        let calls = self.client.client_log.calls();
        let ids: BTreeSet<&str> = calls.iter().map(|call| call.workflow_id.as_str()).collect();
        let every = ids.len().div_ceil(ASKED_MAX).max(1);
        for id in ids.into_iter().step_by(every) {
            let history =
                self.client.history(id, "").await.with_context(|| format!("the history of {id}"))?;
            let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) =
                history.first().and_then(|event| event.attributes.as_ref())
            else {
                observations.faults.push(format!("{id}: the node knows no beginning of it"));
                continue;
            };
            let run_id = reset_run(&history).unwrap_or(&started.original_execution_run_id).to_owned();
            observations.told.insert(run_id, history.iter().map(line).collect());
        }
        Ok(())
    }

    /// Everything that the topics hold; who read along may be a moment behind.
    async fn read(&self, mut observations: Observations) -> anyhow::Result<Observations> {
        observations.calls = self.client.client_log.calls();
        observations.reads = self.client.client_log.reads();
        observations.polls = self.client.polls.all();
        observations.waits = self.client.waits.all();
        let (deadline, mut looks) = (patience::deadline(), tokio::time::interval(READ_EVERY));
        loop {
            let (bootstrap, prefix) = (self.bootstrap.clone(), self.prefix.clone());
            let mut own = observations.clone();
            let (seen, faults) = self.along.seen.all();
            own.seen = seen;
            own.faults.extend(faults);
            let read = move || own.read(&bootstrap, &prefix).map(|()| own);
            let read = tokio::task::spawn_blocking(read).await??;
            if read.seen.len() >= read.later.len() || deadline.is_over() {
                return Ok(read);
            }
            looks.tick().await;
        }
    }
}

/// The run that a history belongs to, where a reset has made it: it begins as its base.
fn reset_run(history: &[HistoryEvent]) -> Option<&str> {
    history.iter().rev().find_map(|event| match &event.attributes {
        Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) if !failed.new_run_id.is_empty() => {
            Some(failed.new_run_id.as_str())
        }
        _ => None,
    })
}
