//! The due index: which run has to be looked at when. It holds the near future; what is due later stays in rows.

use std::collections::{BTreeSet, HashMap};

use crate::model::keys::RunKey;

/// How far ahead the index reaches, in ms.
pub const REACH_MS: i64 = 60_000;

/// Runs in the order in which something becomes due.
#[derive(Debug, Default)]
pub struct DueIndex {
    by_time: BTreeSet<(i64, RunKey)>,
    by_run: HashMap<RunKey, DueEntry>,
    /// Everything due before this moment is in the index.
    horizon_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DueEntry {
    At(i64),
    Waking,
}

impl DueIndex {
    /// The moment before which the index is complete.
    pub fn horizon_ms(&self) -> i64 {
        self.horizon_ms
    }

    /// The index is complete up to here.
    pub fn reached(&mut self, horizon_ms: i64) {
        self.horizon_ms = horizon_ms;
    }

    /// The run's next deadline; it replaces the one before. Beyond the horizon only its row remembers it.
    pub fn set(&mut self, run: &RunKey, due_ms: Option<i64>) {
        let due_ms = due_ms.filter(|due_ms| *due_ms < self.horizon_ms);
        let before = match due_ms {
            Some(due_ms) => self.by_run.insert(run.clone(), DueEntry::At(due_ms)),
            None => self.by_run.remove(run),
        };
        if let Some(DueEntry::At(before_ms)) = before {
            if due_ms == Some(before_ms) {
                return;
            }
            self.by_time.remove(&(before_ms, run.clone()));
        }
        if let Some(due_ms) = due_ms {
            self.by_time.insert((due_ms, run.clone()));
        }
    }

    /// Takes the earliest run that is due; until its deadline is set again it is not taken again.
    pub fn take(&mut self, now_ms: i64) -> Option<RunKey> {
        let (due_ms, _) = self.by_time.first()?;
        if *due_ms > now_ms {
            return None;
        }
        let (_, run) = self.by_time.pop_first()?;
        self.by_run.insert(run.clone(), DueEntry::Waking);
        Some(run)
    }

    /// The earliest deadline in the index.
    pub fn next_ms(&self) -> Option<i64> {
        self.by_time.first().map(|(due_ms, _)| *due_ms)
    }

    /// True where the run's deadline was taken and its record has not come yet.
    pub fn is_waking(&self, run: &RunKey) -> bool {
        self.by_run.get(run) == Some(&DueEntry::Waking)
    }

    /// Runs in the index.
    pub fn len(&self) -> usize {
        self.by_run.len()
    }
}
