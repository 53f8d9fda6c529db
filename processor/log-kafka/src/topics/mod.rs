//! The topics of a log: how they must be, how they are made and inspected, and records in them by hand.

pub(crate) mod admin;
pub(crate) mod definition;
pub mod inspect;
mod setup;
pub mod topic_io;

pub(crate) use definition::tombstones_ms;
pub use definition::{Difference, Existing, Wanted, plan, wanted};
pub(crate) use setup::compare;
pub use setup::{check, create, remove};
