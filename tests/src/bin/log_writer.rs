//! Appends to an embedded log and prints each acknowledged record, to be killed by the durability tests.
//!
//! `log_writer DIR always|never|script|retry SEED`: lines on standard output are `ack PARTITION OFFSET TEXT`, each written
//! only after the log said that the record is durable, `trim PARTITION BELOW` likewise, and `refused WHY`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context, bail};
use bytes::Bytes;
use everlog_log::{Commit, Error, Fence, Log, Output, Topic, buckets_of};
use everlog_rocks::log::{Embedded, Limits, Options, Sync};
use everlog_tests::patience;

const PARTITIONS: u32 = 4;
/// Appends that wait for their acknowledgement at a time.
const WAITING: usize = 8;
const SCRIPT_ROUNDS: u64 = 12;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, mode, seed] = &arguments[..] else { bail!("usage: log_writer DIR always|never|script SEED") };
    let sync = match mode.as_str() {
        "always" | "script" | "retry" => Sync::Always,
        "never" => Sync::Never,
        other => bail!("unknown mode {other}"),
    };
    let log = open(Path::new(dir), sync)?;
    let mut fences = Vec::new();
    for partition in 0..PARTITIONS {
        fences.push(log.fence(partition)?);
    }
    match mode.as_str() {
        "script" => script(&log, seed, &fences),
        "retry" => retry(&log, seed),
        _ => run(&log, seed.parse()?, &fences),
    }
}

/// Opens the log once nobody else has it. The harness had: a process that another test forked meanwhile shares its lock for as
/// long as it has not begun its own program.
fn open(dir: &Path, sync: Sync) -> anyhow::Result<Embedded> {
    let mut opened = None;
    patience::until_blocking("nobody else has the log", || {
        let tried = opened.insert(Embedded::open(options(dir, sync)));
        !matches!(tried, Err(Error::Locked { .. }))
    })?;
    Ok(opened.context("it was tried")??)
}

fn options(dir: &Path, sync: Sync) -> Options {
    Options {
        partitions: PARTITIONS,
        sync,
        write_buffer_bytes: 1 << 20,
        block_cache_bytes: 1 << 20,
        clock: Arc::new(|| 0),
        limits: Limits { free_bytes_min: 0, ..Limits::default() },
        ..Options::new(dir)
    }
}

/// Appends, commits and trims without end.
fn run(log: &Embedded, seed: u64, fences: &[Fence]) -> anyhow::Result<()> {
    let mut pending = std::collections::VecDeque::new();
    for round in 0u64.. {
        let partition = (round % u64::from(PARTITIONS)) as u32;
        let size = 10 + (round.wrapping_mul(2_654_435_761) ^ seed) % 1500;
        let texts = (0..1 + round % 3).map(|n| format!("{seed}.{round}.{n}.{}", "x".repeat(size as usize)));
        pending.push_back(append(log, partition, texts.collect()));
        if pending.len() >= WAITING {
            let oldest = pending.pop_front().context("there are some")?;
            oldest.recv()??;
        }
        if round % 7 == 0 {
            commit(log, partition, fences[partition as usize], round)?;
        }
        if round % 400 == 399 {
            let below = log.position(partition)?.map_or(0, |(applied, _)| applied).saturating_sub(100);
            log.trim(partition, below)?;
            println!("trim {partition} {below}");
        }
    }
    Ok(())
}

/// A short life with an end, for walking through every step of it; errors are printed and do not end it.
fn script(log: &Embedded, seed: &str, fences: &[Fence]) -> anyhow::Result<()> {
    for round in 0..SCRIPT_ROUNDS {
        let partition = (round % u64::from(PARTITIONS)) as u32;
        let text = format!("{seed}.{round}.{}", "y".repeat(if round % 4 == 3 { 300_000 } else { 100 }));
        let outcomes = [
            append(log, partition, vec![text]).recv()?,
            commit(log, partition, fences[partition as usize], round),
            log.control_put(&round.to_be_bytes(), Some(b"row")).map_err(Into::into),
        ];
        for outcome in outcomes {
            if let Err(error) = outcome {
                println!("refused {error}");
            }
        }
    }
    println!("end");
    Ok(())
}

/// Appends that are tried again while the disk is full, as a node would.
fn retry(log: &Embedded, seed: &str) -> anyhow::Result<()> {
    for round in 0..SCRIPT_ROUNDS {
        let mut told = None;
        patience::until_blocking("an append is taken, or refused for good", || {
            let appended = append(log, 0, vec![format!("{seed}.{round}.z")]).recv();
            let outcome = told.insert(appended.unwrap_or_else(|closed| Err(closed.into())));
            outcome.as_ref().err().is_none_or(|error| {
                println!("refused {error}");
                !error.is::<Error>() || log.failure().is_some()
            })
        })?;
        told.context("it was tried")?.context("never accepted")?;
    }
    println!("end");
    Ok(())
}

fn append(log: &Embedded, partition: u32, texts: Vec<String>) -> Receiver<anyhow::Result<()>> {
    let (done, wait) = channel();
    let records = texts.iter().map(|text| Bytes::from(text.clone())).collect();
    let report = move |outcome: Result<Option<everlog_log::Appended>, everlog_log::Error>| {
        if let Ok(Some(appended)) = &outcome {
            for (n, text) in texts.iter().enumerate() {
                println!("ack {partition} {} {text}", appended.first + n as u64);
            }
        }
        // The main thread may have ended on an error before.
        drop(done.send(outcome.map(drop).map_err(Into::into)));
    };
    log.append(partition, records, Box::new(report));
    wait
}

fn commit(log: &Embedded, partition: u32, fence: Fence, round: u64) -> anyhow::Result<()> {
    let bucket = buckets_of(partition, PARTITIONS).start as u16;
    let key = [&bucket.to_be_bytes()[..], &(round % 50).to_be_bytes()[..]].concat().into();
    let row = Output::new(Topic::Changelog, key, Some(Bytes::from(vec![7; 400])));
    let event = Output::new(Topic::Events, "wf".into(), Some(Bytes::from(round.to_string())));
    let applied = log.bounds(partition)?.end;
    let commit = Commit {
        partition,
        fence,
        applied,
        position: Bytes::new(),
        outputs: vec![row, event],
        index: Vec::new(),
    };
    let (done, wait) = channel();
    log.commit(commit, Box::new(move |outcome| drop(done.send(outcome))));
    Ok(wait.recv()??)
}
