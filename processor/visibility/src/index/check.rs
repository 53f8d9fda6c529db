//! Whether the index says what the state does: for `everlog doctor` and the simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use uuid::Uuid;

use crate::index::changes::{read_count, rows_of};
use crate::index::key::{COUNTER, Division, FORMAT, STALE, all};
use crate::index::order_key::run_id;
use crate::index::rows::{Error, IndexRows};
use crate::index::walk::{chunk, entry_of_row};
use crate::record::Record;

/// Rows that are read at once.
const CHUNK_ROWS: usize = 1_000;

/// Where the index says something else than the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexDifference {
    /// A row of a run is not there, or says something else.
    Row {
        /// The run.
        run_id: Uuid,
        /// The key of the row.
        key: Vec<u8>,
    },
    /// A row that no run of the state has.
    Surplus {
        /// The key of the row.
        key: Vec<u8>,
    },
    /// A counter that counts otherwise.
    Counter {
        /// The key of the row.
        key: Vec<u8>,
        /// What it says; none where it is not there.
        says: Option<i64>,
        /// What it would have to say.
        counted: i64,
    },
}

impl fmt::Display for IndexDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { run_id, key } => {
                write!(f, "run {run_id}: its index row {} is not as it should be", hex(key))
            }
            Self::Surplus { key } => write!(f, "the index row {} belongs to no run", hex(key)),
            Self::Counter { key, says: Some(says), counted } => {
                write!(f, "the counter {} says {says}, there are {counted}", hex(key))
            }
            Self::Counter { key, says: None, counted } => {
                write!(f, "the counter {} is missing, there are {counted}", hex(key))
            }
        }
    }
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares the index with the records of every run in the state, each with its namespace; up to `max` differences. Memory: 16 bytes
/// a run.
///
/// # Errors
/// The rows cannot be read.
pub fn check<R: IndexRows>(
    records: impl Iterator<Item = (Uuid, Record)>,
    rows: &R,
    max: usize,
) -> Result<Vec<IndexDifference>, Error<R::Error>> {
    let mut differences = Vec::new();
    let mut runs = BTreeSet::new();
    let mut counted: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for (namespace_id, record) in records {
        runs.insert(run_id(&record));
        let division = Division { namespace_id, is_inner: record.is_inner() };
        *counted.entry(division.counter(&record.workflow_type, record.status)).or_default() += 1;
        for (key, value) in rows_of(namespace_id, &record) {
            if rows.get(&key).map_err(Error::Rows)?.as_ref() != Some(&value) {
                differences.push(IndexDifference::Row { run_id: run_id(&record), key });
            }
        }
        if differences.len() >= max {
            return Ok(differences);
        }
    }
    let (mut from, to) = (all().0.to_vec(), all().1);
    while from < to.to_vec() && differences.len() < max {
        let chunk = chunk(rows, &from, &to, CHUNK_ROWS)?;
        for (key, value) in &chunk.rows {
            match key.first() {
                Some(&(FORMAT | STALE)) => {}
                Some(&COUNTER) => differences.extend(counter(&mut counted, key, value)),
                _of_a_run if belongs(rows, key, value, &runs)? => {}
                _of_none => differences.push(IndexDifference::Surplus { key: key.to_vec() }),
            }
        }
        from = chunk.next;
    }
    let missing = |(key, counted)| IndexDifference::Counter { key, says: None, counted };
    differences.extend(counted.into_iter().map(missing));
    differences.truncate(max);
    Ok(differences)
}

/// What is wrong with a counter, if something is.
fn counter(counted: &mut BTreeMap<Vec<u8>, i64>, key: &[u8], value: &[u8]) -> Option<IndexDifference> {
    let counted = counted.remove(key).unwrap_or_default();
    let says = read_count(value);
    let is_right = says == Some(counted) && counted > 0;
    (!is_right).then(|| IndexDifference::Counter { key: key.to_vec(), says, counted })
}

/// True if a row is one of a run that the state has.
fn belongs<R: IndexRows>(
    rows: &R,
    key: &[u8],
    value: &[u8],
    runs: &BTreeSet<Uuid>,
) -> Result<bool, Error<R::Error>> {
    let record = match entry_of_row(rows, key, value) {
        Ok(entry) => entry.record,
        Err(Error::Rows(error)) => return Err(Error::Rows(error)),
        Err(Error::Damaged(_) | Error::Groups(_)) => return Ok(false),
    };
    let namespace_id = key.get(1..17).and_then(|id| Uuid::from_slice(id).ok()).unwrap_or_default();
    let has_row = rows_of(namespace_id, &record).iter().any(|(own, _)| own == key);
    Ok(runs.contains(&run_id(&record)) && has_row)
}
