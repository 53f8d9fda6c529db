//! The simulated log: a log in memory whose owners are told late, wrongly in every allowed way, or not at all.

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
