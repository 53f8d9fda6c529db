//! Finds a consistent cut over all journals of a log on Kafka, while its nodes append to them and delete from them.
//!
//! The order counts: the last commit of each partition, then the first ends of all journals, then their second ends. So
//! what a commit has was sent before any first end, and what led to a record before a first end stands before a second one.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use everlog_log::{Error, Log};
use everlog_log_kafka::{Kafka, PastCommit};
use everlog_partition::transfer::{JournalWindow, NoCut, cut};

use super::journal_copy::{CopiedRecords, JournalCopy};

/// Looks that are tried: an owner may delete records before they are copied.
const LOOKS_MAX: usize = 10;
/// Between the two looks. Brokers' clocks that differ by less do not change the order of calls.
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(50);
/// Partitions that are looked at at a time.
const THREADS: usize = 4;

/// What a partition has at the cut: a commit, and the records between it and the cut.
pub type CutJournal = (Option<PastCommit>, CopiedRecords);

/// The cut, by partition. Journals are copied into a directory.
pub fn find(log: &Kafka, dir: &Path) -> Result<Vec<CutJournal>> {
    let mut last = None;
    for number in 0..LOOKS_MAX {
        let dir = dir.join(format!("look-{number}"));
        std::fs::create_dir(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        match look(log, &dir) {
            Ok(found) => return Ok(found),
            Err(error) if is_passing(&error) => {
                std::fs::remove_dir_all(&dir)
                    .with_context(|| format!("{} cannot be removed", dir.display()))?;
                tracing::debug!(error = format!("{error:#}"), "the journals are looked at once more");
                last = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let why = last.unwrap_or_else(|| anyhow!("they change all the time"));
    Err(why.context(
        "the journals are trimmed faster than they are copied; set partition.journal_keep_records higher, or try again \
         when there is less load",
    ))
}

/// An owner was faster.
fn is_passing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::OutOfRange { .. }))
        || matches!(error.downcast_ref(), Some(NoCut::Behind { .. }))
}

fn look(log: &Kafka, dir: &Path) -> Result<Vec<CutJournal>> {
    let copies = each(log, |partition| JournalCopy::begin(log, partition, dir).map(Mutex::new))?;
    let end = |partition| Ok(log.bounds(partition)?.end);
    let first_ends = each(log, end)?;
    std::thread::sleep(SECOND_LOOK_AFTER);
    let last_ends = each(log, end)?;
    each(log, |partition| {
        let index = partition as usize;
        let mut copy = copies[index].lock().map_err(|_| anyhow!("another thread has panicked"))?;
        (copy.window.first_end, copy.window.last_end) = (first_ends[index], last_ends[index]);
        copy.go_on(log, partition, last_ends[index])
    })?;
    let copies = copies.into_iter().map(|copy| copy.into_inner().context("another thread has panicked"));
    let mut copies: Vec<JournalCopy> = copies.collect::<Result<_>>()?;
    let windows: Vec<JournalWindow> =
        copies.iter_mut().map(|copy| std::mem::take(&mut copy.window)).collect();
    match cut(&windows) {
        Ok(cuts) => copies.into_iter().zip(cuts).map(|(copy, end)| copy.close(end)).collect(),
        Err(error @ NoCut::Behind { .. }) => Err(error.into()),
        Err(error @ NoCut::Unknown { .. }) => bail!(
            "{error}: an earlier release has sent it; upgrade all nodes, or stop all of them in order, and try again"
        ),
    }
}

/// Does something for each partition, a few at a time.
fn each<T: Send>(log: &Kafka, act: impl Fn(u32) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, partitions) = (AtomicU32::new(0), log.partitions());
    let work = || {
        let mut done = Vec::new();
        loop {
            let partition = next.fetch_add(1, Ordering::Relaxed);
            if partition >= partitions {
                return Ok(done);
            }
            done.push((partition, act(partition)?));
        }
    };
    let all: Vec<Result<Vec<(u32, T)>>> = std::thread::scope(|threads| {
        let working: Vec<_> = (0..THREADS).map(|_| threads.spawn(work)).collect();
        let joined = working.into_iter();
        joined.map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a thread has panicked")))).collect()
    });
    let mut all: Vec<(u32, T)> = all.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    all.sort_by_key(|(partition, _)| *partition);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}
