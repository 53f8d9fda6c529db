//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use everlog_cli::cluster::Cluster;
use everlog_cli::doctor::Doctor;
use everlog_cli::read::Read;
use everlog_cli::schemas::Schemas;
use everlog_cli::send::Commands;

/// With what it is built from, for bug reports.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\n", env!("EVERLOG_BUILT_FROM"));

/// Durable workflows on a log, for Temporal's SDKs.
#[derive(Debug, Parser)]
#[command(name = "everlog", version, long_version = LONG_VERSION, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a server on this machine, without any configuration.
    ///
    /// Everything else can be set by variables named EVERLOG_SECTION__KEY; docs/configuration.md lists them.
    Dev(Dev),
    /// Run a server with all settings from a file and the environment.
    ///
    /// Variables named EVERLOG_SECTION__KEY go before the file; docs/configuration.md lists them.
    Serve(Settings),
    /// Print every setting as `serve` would use it, and do nothing else.
    Config(Settings),
    /// Make the topics of a log on Kafka, or say what is wrong with them.
    ///
    /// Ends with 0 where they can be served on, 3 where serving on them is refused, 1 where nobody could look.
    #[command(subcommand)]
    Topics(TopicsCommand),
    /// Print what happens in workflows, one event in JSON a line.
    #[command(subcommand)]
    Events(Read),
    /// Print what became of commands, one outcome in JSON a line.
    #[command(subcommand)]
    Replies(Read),
    /// Print commands that were refused or could not be read, one in JSON a line.
    #[command(subcommand)]
    Rejections(Read),
    /// Send commands to workflows.
    #[command(subcommand, name = "command")]
    Send(Commands),
    /// Register the schemas of the public topics, or look whether they are.
    #[command(subcommand)]
    Schemas(Schemas),
    /// Look at the nodes that share a log on Kafka, and say who is to have what.
    #[command(subcommand)]
    Cluster(Cluster),
    /// Look at a log and what it stands on, and say what is wrong and how it is put right.
    ///
    /// Moves and fences nothing. Ends with 0 where all is well, 3 where something is not, 1 where nobody could look.
    Doctor(Doctor),
}

/// `everlog topics`
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// Say what `create` would make and what differs; changes nothing.
    Plan(Settings),
    /// Make the topics that are missing; those that are there stay as they are.
    Create(Settings),
    /// Say what differs, what it means and how it is put right.
    Check(Settings),
}

impl TopicsCommand {
    /// Where the settings come from.
    pub fn settings(&self) -> &Settings {
        match self {
            Self::Plan(settings) | Self::Create(settings) | Self::Check(settings) => settings,
        }
    }
}

/// `everlog dev`
#[derive(Args, Debug, Default)]
pub struct Dev {
    /// Where SDKs and the temporal CLI connect; port 0 takes a free one [default: 127.0.0.1:7233].
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub address: Option<SocketAddr>,
    /// Where metrics and health are served; port 0 takes a free one [default: 127.0.0.1:9233].
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub metrics_address: Option<SocketAddr>,
    /// Where the schema registry is served, and commands are taken over HTTP; port 0 takes a free one [default:
    /// 127.0.0.1:7234].
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub http_address: Option<SocketAddr>,
    /// Where everything is kept; made when missing [default: ./everlog-data].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep everything in a new directory that is removed at the end.
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
    /// Keep the log on these brokers instead; topics that are missing are made, with one replica.
    #[arg(long, value_name = "HOST:PORT[,...]")]
    pub kafka_bootstrap: Option<String>,
}

/// Where settings come from.
#[derive(Args, Debug)]
pub struct Settings {
    /// The file; without one, the environment and the defaults.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_unparsed| "allowed is an IP address and a port, such as 127.0.0.1:7233".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(words.split_whitespace())
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn an_ephemeral_server_has_no_data_directory_of_its_own() {
        assert!(parse("everlog dev --ephemeral").is_ok());
        assert!(parse("everlog dev --ephemeral --data-dir here").is_err());
    }

    #[test]
    fn a_server_on_kafka_may_keep_its_rows_anywhere() {
        for rows in ["--ephemeral", "--data-dir here", ""] {
            let cli = parse(&format!("everlog dev --kafka-bootstrap localhost:9092 {rows}"));
            let Ok(Cli { command: Command::Dev(dev) }) = cli else { panic!("{rows}: {cli:?}") };
            assert_eq!(dev.kafka_bootstrap.as_deref(), Some("localhost:9092"));
        }
        assert!(parse("everlog topics check --config everlog.toml").is_ok());
    }

    #[test]
    fn a_bad_address_is_refused_with_a_good_one() {
        let error = parse("everlog dev --address localhost").expect_err("it has no port");
        assert!(error.to_string().contains("such as 127.0.0.1:7233"), "{error}");
    }
}
