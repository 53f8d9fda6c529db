//! `everlog state`: exports all that a log holds into files, and imports it into a new log with other partitions, of
//! the same kind or the other.

mod control;
mod cut_log;
mod export;
mod import;
mod journal_copy;
mod kafka_cut;
mod kafka_source;
mod manifest;
mod progress;
mod replay;
mod row_file;
mod source;
mod target;
mod verify;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use everlog_config::Config;

use crate::ExitStatus;
use crate::public_topics::LogOptions;

/// `everlog state`
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Write all that a log holds into files of a new directory: a backup, and the way to another log.
    ///
    /// It has everything that was acknowledged before the export began, and is of one moment; nodes may serve the log
    /// meanwhile. On Kafka it must not take longer than half of min.compaction.lag.ms of the topics. The files have the
    /// keys of task tokens and all payloads. The public topics are not exported. Exit codes: 0: the export is whole.
    /// 1: there is none, and the message says why.
    Export(StateExport),
    /// Make a new log of an export: embedded or on Kafka, with any count of partitions.
    ///
    /// The target must be a new data directory, or a Kafka prefix that no log has. What was imported is then compared
    /// with the export. Exit codes: 0: the log can be served. 3: it differs from the export. 1: nothing was imported, or
    /// not all of it: no node serves such a log.
    Import(StateImport),
}

/// Where the log is.
#[derive(Args, Clone, Debug, Default)]
pub struct StatePlace {
    /// The file of settings [default: the environment and the defaults only].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The embedded log in this data directory [default, without brokers: server.data_dir].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kafka_bootstrap", "kafka_prefix"])]
    data_dir: Option<PathBuf>,
    /// The log on these brokers [default: kafka.bootstrap_servers].
    #[arg(long, value_name = "HOST:PORT[,...]")]
    kafka_bootstrap: Option<String>,
    /// What the names of its topics begin with [default: kafka.prefix].
    #[arg(long, value_name = "PREFIX")]
    kafka_prefix: Option<String>,
}

/// `everlog state export`
#[derive(Args, Debug)]
pub struct StateExport {
    /// The directory of the export; it must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Of the whole exports of this log in the directory above, keep so many of the newest, and remove the others
    /// [default: all stay].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    #[command(flatten)]
    place: StatePlace,
}

/// `everlog state import`
#[derive(Args, Debug)]
pub struct StateImport {
    /// The directory of the export.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// How many partitions the new log has [default: log.partitions or kafka.partitions].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    partitions: Option<u32>,
    #[command(flatten)]
    place: StatePlace,
}

impl StatePlace {
    /// The settings, with the options applied.
    fn settings(&self) -> Result<Config> {
        let log = LogOptions {
            config: self.config.clone(),
            kafka_bootstrap: self.kafka_bootstrap.clone(),
            ..LogOptions::default()
        };
        let mut config = log.settings()?;
        if let Some(dir) = &self.data_dir {
            config.server.data_dir.clone_from(dir);
            config.kafka.bootstrap_servers.clear();
        }
        if let Some(prefix) = &self.kafka_prefix {
            config.kafka.prefix.clone_from(prefix);
        }
        config.validate()?;
        Ok(config)
    }
}

/// Runs it.
///
/// # Errors
/// Nothing was exported or imported, or not all of it.
pub fn run(command: &StateCommand) -> Result<ExitStatus> {
    match command {
        StateCommand::Export(options) => {
            let config = options.place.settings()?;
            everlog_config::logs::start(&config.logs)?;
            export::run(&config, &options.to, options.keep)
        }
        StateCommand::Import(options) => {
            let config = options.place.settings()?;
            everlog_config::logs::start(&config.logs)?;
            import::run(config, &options.from, options.partitions)
        }
    }
}
