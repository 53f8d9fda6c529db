//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Puts load on a Temporal-compatible server and measures how it answers.
///
/// Without --rate as many operations as --concurrency allows are under way at any time (closed loop: the
/// maximum). With --rate operations begin at fixed moments, whatever the server does, and every latency of a
/// client is measured from the intended moment (open loop).
#[derive(Parser, Debug)]
#[command(name = "everlog-load", version)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub scenario: Scenario,
    /// How much of it, where, and what to report.
    #[command(flatten)]
    pub load: Load,
}

/// What one operation is.
#[derive(Subcommand, Clone, Debug)]
pub enum Scenario {
    /// Start a workflow whose first task completes it
    Start,
    /// Start a workflow that runs activities, and see it complete
    Activities {
        /// Activities of one workflow
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: u32,
        /// One after the other (the default)
        #[arg(long, conflicts_with = "parallel")]
        sequence: bool,
        /// All at once
        #[arg(long)]
        parallel: bool,
    },
    /// Signal one of --workflows open workflows, in turn
    Signals {
        /// A workflow that has got so many signals is replaced by a new one (servers limit signals per run)
        #[arg(long, default_value_t = 8_000)]
        signals_per_run: u64,
    },
    /// Update one of --workflows open workflows, in turn, and wait for the outcome
    Updates {
        /// A workflow that has got so many updates is replaced by a new one (servers limit updates per run)
        #[arg(long, default_value_t = 1_900)]
        updates_per_run: u64,
    },
    /// Start a workflow that has children, and see it complete
    Children {
        /// Children of one workflow
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=15_000))]
        count: u32,
        /// Children that are open at the same time; the next ones begin when the last of them has ended
        #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=2_000))]
        wave: u32,
    },
    /// Read one of --workflows long histories, then query it; with --no-sticky its worker reads it again for that
    History {
        /// Markers in each history, which is a little longer than that
        #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=51_000))]
        markers: u32,
    },
    /// Query one of --workflows open workflows, in turn
    Queries,
    /// Describe one of --workflows open workflows, in turn
    Describe,
    /// Start a workflow that waits for timers, and see how late they fire
    Timers {
        /// Timers of one workflow, all started at once
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: u32,
        /// The shortest timer, in milliseconds; the last of a workflow takes nearly twice as long
        #[arg(long, default_value_t = 1_000)]
        timer_ms: u64,
    },
    /// Start workflows that nobody works on, so they stay open
    Open,
    /// Workflows with one activity at low load (20 per second unless --rate says otherwise), step by step
    Step,
}

impl Scenario {
    /// The subcommand's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Activities { .. } => "activities",
            Self::Signals { .. } => "signals",
            Self::Updates { .. } => "updates",
            Self::Children { .. } => "children",
            Self::History { .. } => "history",
            Self::Queries => "queries",
            Self::Describe => "describe",
            Self::Timers { .. } => "timers",
            Self::Open => "open",
            Self::Step => "step",
        }
    }
}

/// Options that all scenarios share.
#[derive(Args, Clone, Debug)]
pub struct Load {
    /// The server, as host:port or URL
    #[arg(long, global = true, default_value = "127.0.0.1:7233")]
    pub address: String,
    /// The namespace, which must exist
    #[arg(long, global = true, default_value = "default")]
    pub namespace: String,
    /// Seconds that are measured
    #[arg(long, global = true, default_value = "10", value_parser = seconds)]
    pub duration: Duration,
    /// Seconds of load before that
    #[arg(long, global = true, default_value = "2", value_parser = seconds)]
    pub warmup: Duration,
    /// Stop after so many operations, all of them measured, instead of after --duration
    #[arg(long, global = true)]
    pub operations: Option<u64>,
    /// Operations under way at once in the closed loop
    #[arg(long, global = true, visible_alias = "workers", default_value_t = 64)]
    pub concurrency: usize,
    /// Open loop: operations per second
    #[arg(long, global = true, value_parser = rate)]
    pub rate: Option<f64>,
    /// Open loop: operations under way at most; those beyond wait, and their waiting counts
    #[arg(long, global = true, default_value_t = 10_000)]
    pub max_in_flight: usize,
    /// Seconds after which an operation is given up and counted as failed
    #[arg(long, global = true, default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
    /// Connections of the clients; the worker has as many of its own
    #[arg(long, global = true, default_value_t = 2)]
    pub connections: usize,
    /// Open workflows that signals, queries and descriptions are about
    #[arg(long, global = true, default_value_t = 64)]
    pub workflows: usize,
    /// Size of every input, result and answer
    #[arg(long, global = true, default_value_t = 100)]
    pub payload_bytes: usize,
    /// Polls outstanding on each of the worker's queues (normal, sticky, activities)
    #[arg(long, global = true, default_value_t = 32)]
    pub pollers: usize,
    /// The worker keeps no workflow and gets whole histories
    #[arg(long, global = true)]
    pub no_sticky: bool,
    /// Learn that a workflow is over as SDK clients do (a long poll for its last event), not from the worker
    #[arg(long, global = true)]
    pub await_result: bool,
    /// Compress requests and accept compressed answers
    #[arg(long, global = true)]
    pub gzip: bool,
    /// Leave the workflows of signals, queries and descriptions open at the end
    #[arg(long, global = true)]
    pub keep: bool,
    /// Threads of this process
    #[arg(long, global = true, default_value_t = 1)]
    pub threads: usize,
    /// Processes of the server, whose CPU and memory are reported
    #[arg(long, global = true, value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Also measure what fdatasync costs in this directory, before the load
    #[arg(long, global = true, value_name = "DIR")]
    pub fdatasync: Option<PathBuf>,
    /// Write the report as JSON to this file, or only that to stdout (-)
    #[arg(long, global = true, value_name = "FILE")]
    pub json: Option<String>,
}

impl Load {
    /// The address with a scheme.
    pub fn url(&self) -> String {
        match self.address.contains("://") {
            true => self.address.clone(),
            false => format!("http://{}", self.address),
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.trim_end_matches('s').parse().map_err(|error| format!("{error}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.01..=1_000_000.0).contains(&rate) { Ok(rate) } else { Err("0.01 to 1,000,000 per second".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn options_stand_before_and_after_the_scenario() {
        let line = "everlog-load --rate 50 activities --count 3 --sequence --duration 1.5 --pid 1,2";
        let options = Options::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(options.load.rate, Some(50.0));
        assert_eq!(options.load.duration, Duration::from_millis(1_500));
        assert_eq!(options.load.pid, [1, 2]);
        assert!(matches!(options.scenario, Scenario::Activities { count: 3, parallel: false, .. }));
        assert!(Options::try_parse_from(["everlog-load", "start", "--rate", "0"]).is_err());
    }
}
