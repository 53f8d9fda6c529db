//! `everlog-load`: puts load on a Temporal-compatible server, as its clients and as its worker.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use everlog_benches::load::{self, options::Options};

/// 0: everything asked of the server succeeded. 1: something failed, see the report. 2: there is no report.
fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("everlog-load: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> anyhow::Result<bool> {
    let runtime = match options.load.threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let report = runtime.context("the runtime does not start")?.block_on(load::run(options))?;
    match options.load.json.as_deref() {
        Some("-") => println!("{}", report.to_json()?),
        Some(file) => {
            std::fs::write(file, report.to_json()?).with_context(|| format!("{file} cannot be written"))?;
            print!("{report}");
        }
        None => print!("{report}"),
    }
    Ok(report.is_clean())
}
