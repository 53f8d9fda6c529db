//! The ingress: public commands from a topic into the journals, in order, until each is durable.
//!
//! It dedups nothing: whoever applies a journal knows by its marks what was brought before. A record is brought again
//! after every failure, and its offset is committed only after the journal has it.

mod carrier;
mod inbox;
mod ingress;
mod journals;
mod lane;
mod options;
mod reader;
mod schemas;
mod source;
mod stats;

pub use inbox::{Inbox, Taken};
pub use ingress::Ingress;
pub use journals::{Journals, Owned, Shared, Undelivered};
pub use options::{Names, Options};
pub use schemas::Registry;
pub use source::Source;
pub use stats::Stats;
