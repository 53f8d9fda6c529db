//! The ingress: appends public commands from a topic to the journals, in order, and commits their offsets.
//!
//! It removes no duplicates: the partition that applies a record knows by its source position whether it was applied before.
//! A record is appended again after every failure, and its offset is committed only after the append is durable.

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
pub use crate::journals::{Journals, OwnedJournals, SharedJournals, Undelivered};
pub use crate::options::{Names, Options};
pub use crate::schemas::SchemaRegistry;
pub use crate::source::Source;
pub use crate::stats::Stats;
