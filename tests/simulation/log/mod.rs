//! The simulated log, in memory. Its owners get replies late, with every error that is allowed, or never.

mod broker;
mod calm_backend;
mod commit;
mod nasty;
mod produce;
mod sim_log;
mod tail;
mod topic;

pub use broker::{Broker, Shared, StoredPartition, incarnation};
pub use calm_backend::CalmBackend;
pub use nasty::{Nasty, Removed};
pub use sim_log::{SimLog, index};
