//! Levels of decisions: a release that decides otherwise than those before it raises the level, and decides by a lower one where the
//! journal names that.
//!
//! 0  run ids are UUIDs of version 5
//! 1  run ids are UUIDs of version 7
//! 2  a workflow task rests behind a row of attempts that were not answered
//! 3  there are schedules, and Workflow Ids that are kept for them
//! 4  operators pause, reset and change activities and runs
//! 5  commands reach other namespaces, where whoever brings the completion has allowed it
//! 6  a run of a schedule that completes without a result leaves the last result and failure as they are
//! 7  a schedule asks again those that others shall not overlap to cancel themselves

use crate::outcome::Rejection;
use crate::stamp::Stamp;

/// The highest level that this release knows.
pub const LATEST: u32 = 7;

/// What is refused below a level, and how the level is raised.
pub(crate) fn below(what: &str, needed: u32, stamp: &Stamp) -> Rejection {
    let has = stamp.level;
    let raised = format!("`everlog cluster upgrade --to-level {needed}`, once all nodes know it");
    Rejection::NotReady(format!(
        "{what} need level {needed} of decisions, and this is at level {has}: {raised}."
    ))
}

/// From this level on run ids begin with the time.
pub(crate) const TIMED_RUN_IDS: u32 = 1;
/// From this level on a workflow task rests behind a row of attempts that were not answered.
pub(crate) const RESTING_TASKS: u32 = 2;
/// From this level on there are schedules.
pub(crate) const SCHEDULES: u32 = 3;
/// From this level on operators pause, reset and change activities and runs.
pub(crate) const OPERATOR_CALLS: u32 = 4;
/// From this level on commands reach other namespaces.
pub(crate) const OTHER_NAMESPACES: u32 = 5;
/// From this level on a run of a schedule that completes without a result leaves the last result and failure as they are.
pub(crate) const RESULTS_LAST: u32 = 6;
/// From this level on a schedule asks again to cancel what others shall not overlap.
pub(crate) const CANCELS_AGAIN: u32 = 7;
