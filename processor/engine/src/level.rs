//! Levels of decisions: a release that decides otherwise than those before it raises the level, and decides by a lower one where the
//! journal names that.
//!
//! 0  run ids are UUIDs of version 5
//! 1  run ids are UUIDs of version 7

/// The highest level that this release knows.
pub const LATEST: u32 = 1;
/// From this level on run ids begin with the time.
pub(crate) const TIMED_RUN_IDS: u32 = 1;
