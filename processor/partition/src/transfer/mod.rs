//! The rows of all partitions of a log, for a log that has other partitions: what each row is, and what it becomes.
//!
//! It reads and writes no log. Keys begin with their bucket, so most rows go to whoever has the bucket there; what belongs
//! to a partition itself is its position, messages under way, and the namespaces that were deleted.

mod cut;
mod positions;
mod replayed;
mod rows;
mod run_check;
mod totals;

pub use cut::{CutMessage, JournalWindow, NoCut, cut};
pub use positions::{ExportedPositions, MovedMessage, UntoldMessage, last_stamp_ms};
pub use rows::{StateRow, deleted_namespace_row, moved_row, state_row};
pub use run_check::RunChecker;
pub use totals::{NamespaceTotals, Totals};
