//! Levels of decisions: a release that decides otherwise than those before it raises the level, and decides by a lower one where the
//! journal names that.
//!
//! 0  run ids are UUIDs of version 5
//! 1  run ids are UUIDs of version 7
//! 2  a workflow task rests behind a row of attempts that were not answered
//! 3  there are schedules, and Workflow Ids that are kept for them
//! 4  operators pause, reset and change activities and runs
//! 5  commands reach other namespaces, where whoever brings the completion has allowed it

/// The highest level that this release knows.
pub const LATEST: u32 = 5;
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
