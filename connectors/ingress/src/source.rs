//! The trait of a source: a topic of public commands that one consumer reads, committed records only.

use everlog_log::consumer::{ConsumedTopic, Polled, SourceError};
use tokio::time::Instant;

/// A consumer of one topic, one per process.
pub trait Source: Send + 'static {
    /// The topic.
    fn topic(&self) -> ConsumedTopic;

    /// Waits for something, until the deadline at most. May be dropped while it waits; nothing is lost then.
    ///
    /// # Errors
    /// [`SourceError`].
    fn poll(&mut self, deadline: Instant) -> impl Future<Output = Result<Polled, SourceError>> + Send;

    /// Reads a partition from this offset on.
    fn begin(&mut self, partition: u32, offset: u64);

    /// Brings no more records of a partition until it is resumed, save those that are on their way.
    fn pause(&mut self, partition: u32);

    /// Brings records of a partition again.
    fn resume(&mut self, partition: u32);

    /// Everything before this offset is in journals; the topic's id is committed too. Never waits; a later commit replaces
    /// one that fails.
    fn commit(&mut self, partition: u32, next: u64);
}
