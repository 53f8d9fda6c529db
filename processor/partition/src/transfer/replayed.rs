//! A partition that commits what its journal holds and takes no term, so that its rows are all there is to know.

use everlog_log::Log;
use everlog_store::CommittedRows;

use crate::error::Error;
use crate::invariants::Rules;
use crate::partition::Partition;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Begins to commit what a recovery has applied. Nothing is appended: no timer fires, no message leaves.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn commit_replayed(&mut self, now_ms: i64) -> Result<(), Error> {
        self.commits.begin_soon();
        self.commit_if_due(now_ms)
    }

    /// True where all that was applied is committed.
    pub fn has_committed(&self) -> bool {
        self.commits.is_idle()
    }
}
