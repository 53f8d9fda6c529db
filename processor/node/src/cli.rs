//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

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
    /// Where everything is kept; made when missing [default: ./everlog-data].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep everything in a new directory that is removed at the end.
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
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
    fn a_bad_address_is_refused_with_a_good_one() {
        let error = parse("everlog dev --address localhost").expect_err("it has no port");
        assert!(error.to_string().contains("such as 127.0.0.1:7233"), "{error}");
    }
}
