//! What is killed: a node with the embedded log, or with `EVERLOG_TEST_HOME=kafka` one of two in turn.

use std::path::PathBuf;

use everlog_tests::kafka::Cluster;
use everlog_tests::process::Process;
use everlog_tests::server::{Server, is_on_kafka};

use crate::planner::Planner;

/// The nodes, one of which is killed at a time.
pub enum Nodes {
    /// One with its own log.
    Embedded(Server),
    /// Two on the shared broker.
    OnKafka(Box<Pair>),
}

/// Two nodes on the shared broker, under a prefix of their own.
pub struct Pair {
    nodes: [Process; 2],
    dir: PathBuf,
    variables: Vec<(&'static str, String)>,
    kills: usize,
}

const NAMES: [&str; 2] = ["one", "two"];

impl Nodes {
    /// Nodes that keep what they have in `dir`.
    pub async fn start(dir: PathBuf) -> anyhow::Result<Self> {
        if !is_on_kafka() {
            return Ok(Self::Embedded(Server::start(&dir, &[]).await?));
        }
        let prefix = format!("schedules-{}.", std::process::id());
        let variables = vec![("EVERLOG_KAFKA__PREFIX", prefix), ("EVERLOG_KAFKA__PARTITIONS", "4".into())];
        let start =
            |name: &str| Process::start(Cluster::shared()?.bootstrap(), name, &dir.join(name), &variables);
        let mut nodes = [start(NAMES[0])?, start(NAMES[1])?];
        for node in &mut nodes {
            node.ready().await?;
        }
        Ok(Self::OnKafka(Box::new(Pair { nodes, dir, variables, kills: 0 })))
    }

    /// Kills one with -9, and starts it again: a client of a node that serves.
    pub async fn kill_one(&mut self) -> anyhow::Result<Planner> {
        match self {
            Self::Embedded(server) => server.crash().await?,
            Self::OnKafka(pair) => pair.kill_one().await?,
        }
        self.planner().await
    }

    /// A client.
    pub async fn planner(&mut self) -> anyhow::Result<Planner> {
        match self {
            Self::Embedded(server) => Planner::at(server).await,
            Self::OnKafka(pair) => Ok(Planner(pair.nodes[0].ready().await?)),
        }
    }
}

impl Pair {
    async fn kill_one(&mut self) -> anyhow::Result<()> {
        let number = self.kills % NAMES.len();
        self.kills += 1;
        self.nodes[number].kill()?;
        let (name, bootstrap) = (NAMES[number], Cluster::shared()?.bootstrap());
        self.nodes[number] = Process::start(bootstrap, name, &self.dir.join(name), &self.variables)?;
        self.nodes[number].ready().await?;
        Ok(())
    }
}
