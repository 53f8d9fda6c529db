//! The index: rows beside those of the state, by which runs are found, listed in order, and counted.
//!
//! The rows are a pure function of the runs' records. [`change`] writes what a change of a run changes; [`ListScan`] and [`CountScan`] read
//! in slices, between which they are told of changes, so that they are exact; [`merge`] makes one page of all partitions' pages;
//! [`IndexFormat`] makes the index anew, and [`check`] compares it with the state.
//!
//! It holds no memo, and no length of an open run: whoever answers a list reads these from the run.

mod changes;
mod check;
mod count;
mod escape;
mod key;
mod list;
mod lookup;
mod merge;
mod order_key;
mod plan;
mod rebuild;
mod rows;
mod token;
mod walk;

pub use changes::{CounterChanges, change};
pub use check::{IndexDifference, check};
pub use count::{CountRequest, CountScan, GroupValue, RunCounts};
pub use list::{ListPage, ListRequest, ListScan, ListedRun};
pub use merge::{Merged, merge};
pub use order_key::{ListPosition, OrderKey};
pub use rebuild::{FORMAT, IndexFormat, IndexProgress, indexed, stale_row, stale_runs};
pub use rows::{Error, IndexRows, WriteIndexRows};
pub use token::{ListToken, TokenError, TokenScope};
