//! Whoever waits for something of a run that no record answers: news of its history, an update's outcome, a query's answer.
//!
//! They wait in memory only. A new owner of the partition does not know of them: their callers ask again.

use crate::reads::history_watch::HistoryWatchers;
use crate::reads::queries::Queries;
use crate::reads::update_waiters::UpdateWaiters;

/// Callers that wait.
#[derive(Default)]
pub(crate) struct ReadWaiters {
    pub(crate) histories: HistoryWatchers,
    pub(crate) updates: UpdateWaiters,
    pub(crate) queries: Queries,
}

impl ReadWaiters {
    /// Forgets callers that have gone away; queries are looked through apart, since those that are late go on.
    pub(crate) fn sweep(&mut self) {
        self.histories.sweep();
        self.updates.sweep();
    }
}
