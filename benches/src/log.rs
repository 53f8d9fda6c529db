//! The embedded log alone: synced appends with more and more writers that wait, the syncs they take, and what the pace of
//! its flushes and compactions does to them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use everlog_log::Log;
use everlog_rocks::log::{Embedded, Options};
use hdrhistogram::Histogram;

const SPAN: Duration = Duration::from_secs(3);
const RECORD_BYTES: usize = 300;
/// Of flushes and compactions; 0 is as fast as the disk goes.
const PACES_MIB: [u64; 4] = [96, 192, 384, 0];

/// Prints a row per number of waiting writers, in a folder of its own below `dir`.
///
/// # Errors
/// The log cannot be opened or written.
pub fn run(dir: Option<PathBuf>) -> anyhow::Result<()> {
    let dir = dir.unwrap_or_else(std::env::temp_dir).join(format!("everlog-bench-{}", std::process::id()));
    let outcome = table(&dir);
    std::fs::remove_dir_all(&dir).ok();
    outcome
}

/// Prints what appends wait for at several paces of the background: at the log's highest rate, at half of it, and at half
/// of what a whole server asks of it. The paces take turns, so that a disk that changes its mind changes it for all.
///
/// # Errors
/// The log cannot be opened or written.
pub fn pace(dir: Option<PathBuf>, runs: u32, seconds: u64) -> anyhow::Result<()> {
    let dir = dir.unwrap_or_else(std::env::temp_dir).join(format!("everlog-bench-{}", std::process::id()));
    let outcome = paces(&dir, runs, Duration::from_secs(seconds));
    std::fs::remove_dir_all(&dir).ok();
    outcome
}

fn paces(dir: &Path, runs: u32, span: Duration) -> anyhow::Result<()> {
    println!("| MiB/s at most | load | appends/s | p50 ms | p99 ms | p99.9 ms | longest ms |");
    println!("|---|---|---|---|---|---|---|");
    for run in 0..runs {
        for load in [Load::Waiting(1_000), Load::Open(95_000), Load::Open(7_500)] {
            for pace_mib in PACES_MIB {
                let dir = dir.join(format!("{run}-{pace_mib}"));
                let options =
                    Options { background_bytes_per_second_max: pace_mib << 20, ..Options::new(&dir) };
                let log = Arc::new(Embedded::open(options)?);
                let (appends, latency) = match load {
                    Load::Waiting(writers) => closed_loop(&log, writers, span)?,
                    Load::Open(rate) => open_loop(&log, rate, span)?,
                };
                let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1000.0;
                println!(
                    "| {pace_mib} | {load} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} |",
                    appends / span.as_secs_f64(),
                    at(0.5),
                    at(0.99),
                    at(0.999),
                    latency.max() as f64 / 1000.0,
                );
                drop(log);
                std::fs::remove_dir_all(&dir)?;
            }
        }
    }
    Ok(())
}

/// What is asked of the log.
#[derive(Clone, Copy)]
enum Load {
    /// So many writers, each waiting for its append.
    Waiting(usize),
    /// So many appends per second, whatever the log does.
    Open(u64),
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Waiting(writers) => write!(f, "{writers} writers"),
            Self::Open(rate) => write!(f, "{rate} per second"),
        }
    }
}

/// Appends at fixed moments, a batch of them each millisecond; measures from those moments.
fn open_loop(log: &Arc<Embedded>, rate: u64, span: Duration) -> anyhow::Result<(f64, Histogram<u64>)> {
    let (sender, receiver) = mpsc::channel();
    let partitions = log.partitions();
    let begun = Instant::now();
    let mut sent = 0_u64;
    while begun.elapsed() < span {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        for number in sent..due {
            let intended = begun + Duration::from_secs_f64(number as f64 / rate as f64);
            let sender = sender.clone();
            let done = move |result: Result<_, everlog_log::Error>| {
                sender.send((result.is_ok(), intended.elapsed())).ok();
            };
            log.append(number as u32 % partitions, vec![record()], Box::new(done));
        }
        sent = due;
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(sender);
    let mut latency = Histogram::<u64>::new(3)?;
    for (is_ok, took) in receiver {
        anyhow::ensure!(is_ok, "an append failed");
        latency.record(u64::try_from(took.as_micros())?)?;
    }
    Ok((latency.len() as f64, latency))
}

fn record() -> Bytes {
    Bytes::from(vec![b'x'; RECORD_BYTES])
}

fn table(dir: &Path) -> anyhow::Result<()> {
    println!("| waiting writers | appends/s | p50 ms | p99 ms | syncs/s | appends per sync |");
    println!("|---|---|---|---|---|---|");
    for writers in [1, 64, 1_000] {
        let log = Arc::new(Embedded::open(Options::new(dir.join(writers.to_string())))?);
        measure(&log, writers).with_context(|| format!("{writers} writers"))?;
    }
    Ok(())
}

fn measure(log: &Arc<Embedded>, writers: usize) -> anyhow::Result<()> {
    let syncs_before = log.stats().syncs;
    let begun = Instant::now();
    let (appends, latency) = closed_loop(log, writers, SPAN)?;
    let seconds = begun.elapsed().as_secs_f64();
    let syncs = (log.stats().syncs - syncs_before) as f64;
    println!(
        "| {writers} | {:.0} | {:.2} | {:.2} | {:.0} | {:.1} |",
        appends / seconds,
        latency.value_at_quantile(0.5) as f64 / 1000.0,
        latency.value_at_quantile(0.99) as f64 / 1000.0,
        syncs / seconds,
        appends / syncs,
    );
    Ok(())
}

/// Each writer appends again when its append is done.
fn closed_loop(log: &Arc<Embedded>, writers: usize, span: Duration) -> anyhow::Result<(f64, Histogram<u64>)> {
    let done = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = mpsc::channel();
    let begun = Instant::now();
    let partitions = log.partitions();
    let append = |writer: usize| {
        let (sender, done, sent) = (sender.clone(), done.clone(), Instant::now());
        let partition = writer as u32 % partitions;
        log.append(
            partition,
            vec![record()],
            Box::new(move |result| {
                done.fetch_add(u64::from(result.is_ok()), Ordering::Relaxed);
                sender.send((writer, sent.elapsed())).ok();
            }),
        );
    };
    (0..writers).for_each(append);
    let mut latency = Histogram::<u64>::new(3)?;
    let mut waiting = writers;
    while waiting > 0 {
        let (writer, took) = receiver.recv()?;
        latency.record(u64::try_from(took.as_micros())?)?;
        if begun.elapsed() < span {
            append(writer);
        } else {
            waiting -= 1;
        }
    }
    Ok((done.load(Ordering::Relaxed) as f64, latency))
}
