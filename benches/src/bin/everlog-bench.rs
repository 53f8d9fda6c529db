//! Measures the parts alone: the engine (steps per second of one core, allocations), the log (appends, syncs), the index
//! (lists, counts), and what plain Kafka clients see beside a server.

use std::alloc::System;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use everlog_benches::kafka::{commands, events, probe};
use everlog_benches::{engine, index, log};
use serde::Serialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Measures parts of Everlog, and what plain Kafka clients see beside it.
#[derive(Parser)]
#[command(name = "everlog-bench", version)]
enum Bench {
    /// The engine on one core, as a table
    Engine,
    /// The embedded log with writers that wait, as a table
    #[command(subcommand)]
    Log(Log),
    /// The index of many runs: what it costs, and how long lists and counts take, as tables
    Index {
        /// Where to make a folder for it [default: the system's for temporary files]
        dir: Option<PathBuf>,
        /// Open runs; as many are closed
        #[arg(long, default_value_t = 1_000_000)]
        open: u64,
    },
    /// Produce at a steady rate to a topic of one's own; the report is JSON
    Probe(probe::Options),
    /// Read events as anybody may; the report is JSON
    Events(events::Options),
    /// Produce commands and wait for their events; the report is JSON
    Commands(commands::Options),
}

/// What to measure of the log.
#[derive(Subcommand)]
enum Log {
    /// More and more writers that each wait for their own append
    Writers {
        /// Where to make a folder for it [default: the system's for temporary files]
        dir: Option<PathBuf>,
    },
    /// The same, and open loops, while flushes and compactions may write faster or slower
    Pace {
        /// Where to make a folder for it [default: the system's for temporary files]
        dir: Option<PathBuf>,
        /// How often everything is measured
        #[arg(long, default_value_t = 3)]
        runs: u32,
        /// Seconds of each measurement
        #[arg(long, default_value_t = 6)]
        seconds: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Bench::parse() {
        Bench::Engine => engine::run(ALLOCATOR),
        Bench::Index { dir, open } => index::run(dir, open),
        Bench::Log(Log::Writers { dir }) => log::run(dir),
        Bench::Log(Log::Pace { dir, runs, seconds }) => log::pace(dir, runs, seconds),
        Bench::Probe(options) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            print(&runtime.context("the runtime does not start")?.block_on(probe::run(&options))?)
        }
        Bench::Events(options) => print(&events::run(&options)?),
        Bench::Commands(options) => print(&commands::run(&options)?),
    }
}

fn print(report: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(report)?);
    Ok(())
}
