//! Faults of a node on Kafka. Each row injects a fault, verifies that it took effect, and runs the independent
//! checker.
//!
//! `cargo test --workspace --test kafka_faults` runs the short form; names of rows behind `--` run those alone
//! (`-- F11 F17`). `EVERLOG_FULL=1` runs all rows with a larger load, `EVERLOG_FAULTS_SEED=N` with other dice than those of the
//! commit, `EVERLOG_FAULTS_KEEP=DIR` leaves there what nodes kept and said. A row is a part: `EVERLOG_FAULTS_FROM=ROW` goes on
//! with that one and those after it.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]
#![allow(missing_docs, reason = "nobody but this test sees it")]

mod account;
mod checker;
mod client;
mod client_log;
mod cluster;
mod commands;
mod environment;
mod event;
mod frame;
mod kin;
mod listed;
mod load;
mod net;
mod node;
mod observations;
mod polls;
mod program;
mod proxy;
mod reader;
mod register;
mod rows;
mod waits;
mod worker;
mod workflows;

use std::process::ExitCode;
use std::time::Instant;

use everlog_tests::dice::seed_of_the_commit;

use crate::cluster::FaultCluster;
use crate::environment::{Outcome, Size};
use crate::program::Errands;
use crate::rows::{ROWS, Row};

fn main() -> ExitCode {
    // What is meant for the usual harness, such as --test-threads 1, names no row.
    let is_name = |word: &String| word.starts_with(|first: char| first.is_ascii_alphabetic());
    let wanted: Vec<String> = std::env::args().skip(1).filter(is_name).collect();
    let is_full = std::env::var_os("EVERLOG_FULL").is_some();
    let seed = std::env::var("EVERLOG_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(seed_of_the_commit);
    let errands = Errands { open: 2, is_ordinary: false };
    let size = if is_full {
        Size { open: 1_000, workers: 32, errands, times: 10, seed, is_full }
    } else {
        Size { open: 24, workers: 6, errands, times: 3, seed, is_full }
    };
    let rows = ROWS.iter().filter(|row| match wanted.as_slice() {
        [] => !row.is_asked_for && (is_full || row.is_short),
        names => names.iter().any(|name| row.name == name),
    });
    let from = std::env::var("EVERLOG_FAULTS_FROM").ok();
    let rows: Vec<&Row> = rows.skip_while(|row| from.as_ref().is_some_and(|from| from != row.name)).collect();
    println!("{} rows, {size:?}; EVERLOG_FAULTS_SEED={seed} throws the same dice", rows.len());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(&rows, size))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("kafka_faults: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// All rows, one after the other; true where each held.
async fn run(rows: &[&Row], size: Size) -> anyhow::Result<bool> {
    let cluster = FaultCluster::start(size.seed, &[]).await?;
    let (mut table, mut acked, mut holds) = (Vec::new(), 0, true);
    for row in rows {
        println!("{} {} ...", row.name, row.claim);
        let begun = Instant::now();
        let outcome = (row.run)(cluster.clone(), size)
            .await
            .unwrap_or_else(|error| Outcome { violations: vec![format!("{error:#}")], ..Outcome::default() });
        let mut violations = outcome.violations;
        let Outcome { injected, seen, .. } = outcome;
        if !row.seen.is_enough(injected, seen, size.is_full) {
            let wanted = row.seen;
            violations
                .push(format!("the fault was seen {seen} of {injected} times, and {wanted:?} is wanted"));
        }
        // On lines of their own, for who reads only what failed.
        violations.iter().for_each(|violation| println!("violation: {} {violation}", row.name));
        acked += outcome.acked;
        holds &= violations.is_empty();
        table.push(format!(
            "{:<17} {:<4} {:>8} {:>6} {:>9} {:>7} {:>6.1}  {}: {}",
            row.name,
            if violations.is_empty() { "ok" } else { "NOT" },
            injected,
            seen,
            outcome.workflows,
            outcome.acked,
            begun.elapsed().as_secs_f64(),
            row.claim,
            outcome.how,
        ));
        println!("{}", table.last().map_or("", String::as_str));
    }
    println!("\nrow               held injected   seen workflows   acked      s  claim: what was seen");
    table.iter().for_each(|line| println!("{line}"));
    println!("{acked} calls and records were acknowledged");
    Ok(holds)
}
