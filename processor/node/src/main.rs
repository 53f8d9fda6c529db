//! The binary `everlog`: the command line, the exit codes, the allocator.

mod address_space;
mod banner;
mod cli;
mod clock;
mod error_policy;
mod exit_cause;
mod node;
mod observe;
mod partitions;
mod public_http;
mod services;
mod shutdown;
mod signals;
mod storage;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{CommandFactory, Parser};
use everlog_avro::PublicTopic;
use everlog_config::logs::{self, visible};
use everlog_config::{Config, DataDir, Tls, environment};

use crate::banner::DevBanner;
use crate::cli::{Cli, Command, Dev, Settings, TopicsCommand};
use crate::exit_cause::Ended;
use crate::services::topics::TopicsVerdict;
use crate::storage::dev_certificates::DevCertificates;

/// Partitions allocate many small pieces that other threads free. This allocator is faster at that than the C
/// library's, and gives memory back. RocksDB uses the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The variable for `kafka.replication`.
const REPLICATION: &str = "EVERLOG_KAFKA__REPLICATION";

/// It was asked to end.
const ENDED_WELL: u8 = 0;
/// It could not start.
const NOT_STARTED: u8 = 1;
/// It had started and could not go on.
const FAILED: u8 = 2;
/// The topics cannot be served on.
const REFUSED: u8 = 3;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // If even this cannot be written, nobody can be told.
            let _ = usage.print();
            return ExitCode::from(if usage.use_stderr() { NOT_STARTED } else { ENDED_WELL });
        }
    };
    let code = match &cli.command {
        Command::Dev(dev) => code_of(run_dev(dev)),
        Command::Serve(settings) => code_of(run_serve(settings)),
        Command::Config(settings) => code_of(show_config(settings)),
        Command::Topics(command) => look_at_topics(command),
        Command::Events(read) => by_hand(everlog_cli::read::run(PublicTopic::Event, read)),
        Command::Replies(read) => by_hand(everlog_cli::read::run(PublicTopic::Outcome, read)),
        Command::Rejections(read) => by_hand(everlog_cli::read::run(PublicTopic::Rejection, read)),
        Command::Send(command) => by_hand(everlog_cli::send::run(command)),
        Command::Schemas(schemas) => by_hand(everlog_cli::schemas::run(schemas)),
        Command::Cluster(command) => by_hand(everlog_cli::cluster::run(command)),
        Command::Auth(command) => by_hand(everlog_cli::auth::run(command)),
        Command::Doctor(doctor) => by_hand(everlog_cli::doctor::run(doctor, &cli::LONG_VERSION)),
        Command::State(command) => by_hand(everlog_cli::state::run(command)),
        Command::Completions(shell) => by_hand(everlog_cli::completions::run(Cli::command(), shell)),
        Command::Man(man) => by_hand(everlog_cli::man::run(Cli::command(), man)),
    };
    ExitCode::from(code)
}

fn code_of(ended: Result<Ended>) -> u8 {
    match ended {
        Ok(Ended::Asked) => ENDED_WELL,
        Ok(Ended::Failed(reason)) => {
            eprintln!("everlog: {}", visible::lines(&reason));
            FAILED
        }
        Err(error) => {
            eprintln!("everlog: {}", visible::lines(&format!("{error:#}")));
            NOT_STARTED
        }
    }
}

fn run_dev(dev: &Dev) -> Result<Ended> {
    let environment = environment();
    let mut config = Config::load(None, &environment)?;
    if let Some(address) = dev.address {
        config.server.address = address;
    }
    if let Some(address) = dev.metrics_address {
        config.server.metrics_address = address;
    }
    if let Some(address) = dev.http_address {
        config.http.address = address;
    }
    if let Some(dir) = &dev.data_dir {
        config.server.data_dir.clone_from(dir);
    }
    if let Some(brokers) = &dev.kafka_bootstrap {
        config.kafka.bootstrap_servers.clone_from(brokers);
    }
    if !environment.contains_key(REPLICATION) {
        // A broker for trying things out is usually alone.
        config.kafka.replication = 1;
    }
    config.validate()?;
    logs::start(&config.logs)?;
    let data = if dev.ephemeral { DataDir::ephemeral()? } else { DataDir::lasting(&config.server.data_dir) };
    data.fits(&config)?;
    let authority = if dev.tls { Some(speak_tls(&mut config, &data)?) } else { None };
    if config.kafka.is_used() {
        crate::services::topics::make_missing(&config)?;
    }
    node::run(&config, &data, Some(DevBanner { authority }))
}

/// Makes the node speak TLS with certificates for development. Returns the file with what clients trust.
fn speak_tls(config: &mut Config, data: &DataDir) -> Result<PathBuf> {
    if config.tls != Tls::default() {
        bail!("--tls makes certificates of its own; leave it out where [tls] is set (EVERLOG_TLS__...)");
    }
    data.make()?;
    let addresses = [config.server.address.ip(), config.http.address.ip()];
    let certificates = DevCertificates::provide(data.path(), &addresses)?;
    config.tls = certificates.settings();
    Ok(certificates.authority.canonicalize()?)
}

fn run_serve(settings: &Settings) -> Result<Ended> {
    let config = Config::load(settings.config.as_deref(), &environment())?;
    logs::start(&config.logs)?;
    let data = DataDir::lasting(&config.server.data_dir);
    data.fits(&config)?;
    node::run(&config, &data, None)
}

fn show_config(settings: &Settings) -> Result<Ended> {
    let config = Config::load(settings.config.as_deref(), &environment())?;
    std::io::stdout().write_all(config.to_file().as_bytes())?;
    Ok(Ended::Asked)
}

fn look_at_topics(command: &TopicsCommand) -> u8 {
    let look = || {
        let options = command.options();
        let mut config = Config::load(options.settings.config.as_deref(), &environment())?;
        if let Some(brokers) = &options.kafka_bootstrap {
            config.kafka.bootstrap_servers.clone_from(brokers);
            config.validate()?;
        }
        logs::start(&config.logs)?;
        crate::services::topics::run(command, &config)
    };
    match look() {
        Ok(TopicsVerdict::Good) => ENDED_WELL,
        Ok(TopicsVerdict::Refused) => REFUSED,
        Err(error) => code_of(Err(error)),
    }
}

fn by_hand(ended: Result<everlog_cli::ExitStatus>) -> u8 {
    match ended {
        Ok(ended) => ended.code(),
        Err(error) => code_of(Err(error)),
    }
}
