//! The ingress: public commands from a topic into the journals, in order, until each is durable.
//!
//! It dedups nothing: whoever applies a journal knows by its marks what was brought before. A record is brought again
//! after every failure, and its offset is committed only after the journal has it.

mod decoder;
mod http_source;
mod ingress;
mod journal_writer;
mod journals;
mod options;
mod partition_queue;
mod schemas;
mod source;
mod stats;

pub use crate::http_source::{HttpSource, Taken};
pub use crate::ingress::Ingress;
pub use crate::journals::{Journals, Owned, Shared, Undelivered};
pub use crate::options::{Names, Options};
pub use crate::schemas::Registry;
pub use crate::source::Source;
pub use crate::stats::Stats;
