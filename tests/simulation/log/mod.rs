//! The simulated log: a log in memory whose owners are told late, wrongly in every allowed way, or not at all.

mod broker;
mod commit;
mod home;
mod nasty;
mod place;
mod produce;
mod tail;
mod topic;

pub use broker::{Broker, Kept, Shared, incarnation};
pub use home::{SimLog, index};
pub use nasty::{Nasty, Removed};
pub use place::Sea;
