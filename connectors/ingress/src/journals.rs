//! Where records go: the journals, by way of the log or of each partition's owner.

use std::sync::Arc;

use everlog_log::Log;
use everlog_partition::{Event, Send as Post};
use everlog_wire::{Body, Record};
use tokio::sync::oneshot;

/// Records were not taken, or nobody knows: all of them have to be sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undelivered(pub String);

/// The journals of all partitions.
pub trait Journals: Send + Sync + 'static {
    /// How many there are; fixed when they were made.
    fn partitions(&self) -> u32;

    /// Appends records to a journal, in order; durable when it is done. One call per partition is under way at a time.
    ///
    /// # Errors
    /// [`Undelivered`].
    fn deliver(
        &self,
        partition: u32,
        bodies: &[Body],
    ) -> impl Future<Output = Result<(), Undelivered>> + Send;
}

/// Journals to which anybody may append.
pub struct Shared<L: Log + ?Sized>(pub Arc<L>);

impl<L: Log + ?Sized> Journals for Shared<L> {
    fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    async fn deliver(&self, partition: u32, bodies: &[Body]) -> Result<(), Undelivered> {
        let records = bodies.iter().map(|body| Record::new(0, body.clone()).encode()).collect();
        let (done, heard) = oneshot::channel();
        let done = Box::new(move |result| {
            // Whoever does not listen any more sends everything again.
            let _gone = done.send(result);
        });
        self.0.append(partition, records, done);
        match heard.await {
            Ok(Ok(_appended)) => Ok(()),
            Ok(Err(error)) => Err(Undelivered(error.to_string())),
            Err(_dropped) => Err(Undelivered("the log is gone".into())),
        }
    }
}

/// Journals to which only their owners append.
pub struct Owned {
    /// How many there are.
    pub partitions: u32,
    /// Reaches the owners.
    pub post: Post,
}

impl Journals for Owned {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    async fn deliver(&self, partition: u32, bodies: &[Body]) -> Result<(), Undelivered> {
        let (done, heard) = oneshot::channel();
        if !(self.post)(partition, Event::Ingest { bodies: bodies.to_vec(), done }) {
            return Err(Undelivered("the partition is not here".into()));
        }
        match heard.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(Undelivered(failure.to_string())),
            Err(_dropped) => Err(Undelivered("the partition has ended".into())),
        }
    }
}
