//! The embedded log alone: synced appends with more and more writers that wait, and the syncs they take.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use everlog_log::Log;
use everlog_log::embedded::{Embedded, Options};
use hdrhistogram::Histogram;

const SPAN: Duration = Duration::from_secs(3);
const RECORD_BYTES: usize = 300;

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
    let done = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = mpsc::channel();
    let begun = Instant::now();
    let partitions = log.partitions();
    let append = |writer: usize| {
        let (sender, done, sent) = (sender.clone(), done.clone(), Instant::now());
        let record = Bytes::from(vec![b'x'; RECORD_BYTES]);
        let partition = writer as u32 % partitions;
        log.append(
            partition,
            vec![record],
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
        if begun.elapsed() < SPAN {
            append(writer);
        } else {
            waiting -= 1;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let appends = done.load(Ordering::Relaxed) as f64;
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
