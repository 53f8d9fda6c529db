//! The binary `everlog`.

mod banner;
mod cli;
mod config;
mod data;
mod driver;
mod gateway;
mod health;
mod http;
mod keys;
mod logs;
mod metrics;
mod node;
mod process;
mod stop;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cli::{Cli, Command, Dev, Settings};
use config::Config;
use data::DataDir;
use node::Ended;

/// Steps allocate many small pieces and free them on other threads, which this allocator does faster than the C
/// library's, and it gives memory back. RocksDB keeps to the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// It was asked to end.
const ENDED_WELL: u8 = 0;
/// It could not start.
const NOT_STARTED: u8 = 1;
/// It had started and could not go on.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Nobody is left to be told when even this cannot be written.
            let _ = usage.print();
            return ExitCode::from(if usage.use_stderr() { NOT_STARTED } else { ENDED_WELL });
        }
    };
    let ended = match &cli.command {
        Command::Dev(dev) => run_dev(dev),
        Command::Serve(settings) => run_serve(settings),
        Command::Config(settings) => show_config(settings),
    };
    let code = match ended {
        Ok(Ended::Asked) => ENDED_WELL,
        Ok(Ended::Failed(reason)) => {
            eprintln!("everlog: {reason}");
            FAILED
        }
        Err(error) => {
            eprintln!("everlog: {error:#}");
            NOT_STARTED
        }
    };
    ExitCode::from(code)
}

fn run_dev(dev: &Dev) -> Result<Ended> {
    let mut config = Config::load(None, &environment())?;
    if let Some(address) = dev.address {
        config.server.address = address;
    }
    if let Some(address) = dev.metrics_address {
        config.server.metrics_address = address;
    }
    if let Some(dir) = &dev.data_dir {
        config.server.data_dir.clone_from(dir);
    }
    config.validate()?;
    logs::start(&config.logs)?;
    let data = if dev.ephemeral { DataDir::ephemeral()? } else { DataDir::lasting(&config.server.data_dir) };
    node::run(&config, &data, true)
}

fn run_serve(settings: &Settings) -> Result<Ended> {
    let config = Config::load(settings.config.as_deref(), &environment())?;
    logs::start(&config.logs)?;
    node::run(&config, &DataDir::lasting(&config.server.data_dir), false)
}

fn show_config(settings: &Settings) -> Result<Ended> {
    let config = Config::load(settings.config.as_deref(), &environment())?;
    std::io::stdout().write_all(config.to_file().as_bytes())?;
    Ok(Ended::Asked)
}

fn environment() -> BTreeMap<String, String> {
    // A name that is not UTF-8 cannot be one of ours.
    let named = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into()))
    };
    std::env::vars_os().filter_map(named).collect()
}
