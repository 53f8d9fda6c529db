//! The topics of a log: their required settings, their creation and inspection, and records read or written by hand.

pub(crate) mod admin;
pub(crate) mod definition;
pub(crate) mod identity;
pub mod inspect;
pub(crate) mod permitted;
mod setup;
pub mod topic_io;

pub use definition::{Difference, ExistingTopic, TopicDefinition, plan, wanted};
pub(crate) use definition::{compaction_lag_ms, tombstones_ms};
pub(crate) use setup::compare;
pub use setup::{Creation, check, create, remove};
