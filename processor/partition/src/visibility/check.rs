//! Whether the index of a partition says what the rows of its state do.

use std::ops::Range;

use everlog_store::{CommittedRows, Store};
use everlog_visibility::index::{Error as IndexError, check};
use everlog_visibility::record::Record;

use crate::error::Error;
use crate::state::run_index::{namespace_of, runs_behind};
use crate::state::run_store::RunStore;

/// Runs that are read at once.
const SLICE_RUNS: usize = 1_000;

/// Where the index of a partition, which has these buckets, says something else than its committed state: up to `max` sentences.
/// None where the index is not complete, and is made by the partition's next owner.
///
/// # Errors
/// The rows cannot be read.
pub fn index_differences<B: CommittedRows>(
    partition: u32,
    buckets: Range<u32>,
    committed: B,
    max: usize,
) -> Result<Option<Vec<String>>, Error> {
    let mut runs = RunStore::new(partition, buckets.clone(), Store::new(committed), 0);
    runs.open_index()?;
    if !runs.index().is_complete() {
        return Ok(None);
    }
    let (mut behind, mut is_last, mut failed) = (bytes::Bytes::new(), false, None);
    let records = std::iter::from_fn(|| {
        if is_last || failed.is_some() {
            return None;
        }
        match slice(&runs, &buckets, &behind) {
            Ok((records, next, last)) => {
                (behind, is_last) = (next, last);
                Some(records)
            }
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    let differences = check(records.flatten(), &runs.index().rows(runs.rows()), max);
    if let Some(error) = failed {
        return Err(error);
    }
    match differences {
        Ok(differences) => Ok(Some(differences.iter().map(ToString::to_string).collect())),
        Err(IndexError::Rows(error)) => Err(error.into()),
        Err(error) => Ok(Some(vec![error.to_string()])),
    }
}

/// Records of runs behind a key, the last key, and whether none follows.
type RunSlice = (Vec<(uuid::Uuid, Record)>, bytes::Bytes, bool);

fn slice<B: CommittedRows>(
    runs: &RunStore<B>,
    buckets: &Range<u32>,
    behind: &bytes::Bytes,
) -> Result<RunSlice, Error> {
    let (keys, is_last) = runs_behind(runs.rows(), buckets, behind, SLICE_RUNS)?;
    let mut records = Vec::with_capacity(keys.len());
    for key in &keys {
        if let Some(run) = runs.look(key)? {
            records.push((namespace_of(key), Record::of(&run)));
        }
    }
    let next = keys.last().map_or_else(bytes::Bytes::new, |key| bytes::Bytes::copy_from_slice(key.bytes()));
    Ok((records, next, is_last))
}
