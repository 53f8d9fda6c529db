//! Whether a new log has what its export has: counts of all rows, and a sample of runs against their histories.

use anyhow::Result;
use everlog_log::buckets_of;
use everlog_partition::transfer::{RunChecker, StateRow, Totals, state_row};
use everlog_store::{CommittedRows, Space};

use super::manifest::{ExportManifest, FileKind};
use super::progress::TransferProgress;
use super::target::Target;

/// Runs of each partition that are compared with their histories.
const SAMPLED_RUNS: usize = 100;
/// Differences that are shown of a partition.
const SHOWN_MAX: usize = 3;

/// What differs, a sentence each.
pub fn differences(
    manifest: &ExportManifest,
    target: &Target,
    progress: &mut TransferProgress,
) -> Result<Vec<String>> {
    let (mut totals, mut rows) = (Totals::default(), [0_u64; 2]);
    let (mut sampled, mut differences) = (0, Vec::new());
    let partitions = target.log().partitions();
    for partition in 0..partitions {
        let buckets = buckets_of(partition, partitions);
        let committed = target.rows(partition)?;
        let [from, to] = [buckets.start, buckets.end]
            .map(|bucket| u16::try_from(bucket).unwrap_or(u16::MAX).to_be_bytes());
        add(&*committed, &from, &to, &mut totals)?;
        for (space, rows) in [Space::History, Space::Timers].into_iter().zip(&mut rows) {
            committed.scan(space, &from, &to, &mut |_, _| {
                *rows += 1;
                true
            })?;
        }
        let (runs, found) = RunChecker::new(partition, buckets, committed).check(SAMPLED_RUNS)?;
        sampled += runs;
        differences.extend(found.into_iter().take(SHOWN_MAX));
    }
    for (kind, found) in [FileKind::History, FileKind::Timers].into_iter().zip(rows) {
        let wanted = manifest.rows(kind);
        if found != wanted {
            differences.push(format!("{}: {found} rows, the export has {wanted}", kind.name()));
        }
    }
    let wanted = manifest.totals();
    for id in wanted.0.keys().chain(totals.0.keys().filter(|id| !wanted.0.contains_key(*id))) {
        let [found, wanted] = [&totals, &wanted].map(|all| all.0.get(id).copied().unwrap_or_default());
        if found != wanted {
            differences.push(format!("namespace {id}: {found:?}, the export has {wanted:?}"));
        }
    }
    progress.step(&format!("{sampled} runs compared with their histories"));
    Ok(differences)
}

fn add(rows: &dyn CommittedRows, from: &[u8], to: &[u8], totals: &mut Totals) -> Result<()> {
    let mut failed = None;
    rows.scan(Space::State, from, to, &mut |key, value| {
        if state_row(key) == StateRow::Workflow {
            failed = totals.add(key, value).err();
        }
        failed.is_none()
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}
