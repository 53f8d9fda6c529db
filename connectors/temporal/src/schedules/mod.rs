//! Schedules as the API has them, and as the engine has them.

pub(crate) mod definition;
pub(crate) mod listed;
pub(crate) mod shown;
pub(crate) mod spec;
