//! What the rows of a log hold, by namespace: the same in every log that has the same workflows.

use std::collections::BTreeMap;

use everlog_wire::rows::{self, RowFacts};
use uuid::Uuid;

use crate::error::Error;
use crate::transfer::rows::suffix;

/// What a namespace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceTotals {
    /// Runs and schedules.
    pub runs: u64,
    /// Those that have not closed.
    pub open_runs: u64,
    /// Events of all histories.
    pub events: u64,
    /// Workflow tasks that wait or are in a worker's hands.
    pub workflow_tasks: u64,
    /// Open activities.
    pub activities: u64,
    /// Timers that workflows have started.
    pub timers: u64,
}

/// What all namespaces have, by their UUIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(pub BTreeMap<String, NamespaceTotals>);

impl Totals {
    /// Counts a row of the changelog.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let Some(suffix) = suffix(key) else { return Ok(()) };
        let facts = rows::facts(suffix, value)?;
        let Some(namespace) = key.get(2..18).and_then(|id| Uuid::from_slice(id).ok()) else { return Ok(()) };
        if facts == RowFacts::Other {
            return Ok(());
        }
        let totals = self.0.entry(namespace.to_string()).or_default();
        match facts {
            RowFacts::Head(head) => {
                totals.runs += 1;
                totals.open_runs += u64::from(head.close_ms == 0);
                totals.events += u64::try_from(head.next_event_id - 1).unwrap_or(0);
                totals.workflow_tasks += u64::from(head.task.is_some());
            }
            RowFacts::Activity => totals.activities += 1,
            RowFacts::Timer => totals.timers += 1,
            RowFacts::Other => {}
        }
        Ok(())
    }
}
