//! The journals that the ingress appends to: by the log, or by each partition's owner where only the owner appends.

use std::sync::{Arc, Weak};
use std::time::Duration;

use everlog_log::Log;
use everlog_partition::{CallFailure, CallResult, InboxMessage, PartitionSender as Post};
use everlog_wire::public_command::SourcePosition;
use everlog_wire::{Body, Record};
use tokio::sync::oneshot::{self, Receiver};

/// An append failed, or its outcome is unknown: all its records must be appended again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undelivered(pub String);

/// The journals of all partitions.
pub trait Journals: Send + Sync + 'static {
    /// How many there are; fixed when they were made.
    fn partitions(&self) -> u32;

    /// Appends records to a journal, in order; they are durable when it is done. One call per partition is in flight at a time.
    ///
    /// # Errors
    /// [`Undelivered`].
    fn deliver(
        &self,
        partition: u32,
        bodies: &[Body],
    ) -> impl Future<Output = Result<(), Undelivered>> + Send;

    /// Waits before the records of a failed append are appended again.
    fn pause(&self, pause: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(pause)
    }
}

/// Journals that every node may append to. Does not keep the log open.
pub struct SharedJournals<L: Log + ?Sized> {
    log: Weak<L>,
    partitions: u32,
}

impl<L: Log + ?Sized> SharedJournals<L> {
    /// Those of a log.
    pub fn new(log: &Arc<L>) -> Self {
        Self { log: Arc::downgrade(log), partitions: log.partitions() }
    }
}

impl<L: Log + ?Sized> Journals for SharedJournals<L> {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    async fn deliver(&self, partition: u32, bodies: &[Body]) -> Result<(), Undelivered> {
        let records = bodies.iter().map(|body| Record::new(0, body.clone()).encode()).collect();
        let (done, heard) = oneshot::channel();
        let done = Box::new(move |result| {
            // A caller that was dropped appends everything again.
            let _gone = done.send(result);
        });
        let closed = || Undelivered("the log is closed".into());
        self.log.upgrade().ok_or_else(closed)?.append(partition, records, done);
        match heard.await {
            Ok(Ok(_appended)) => Ok(()),
            Ok(Err(error)) => Err(Undelivered(error.to_string())),
            Err(_dropped) => Err(Undelivered("the log is gone".into())),
        }
    }
}

/// Journals to which only their owners append.
pub struct OwnedJournals {
    /// How many there are.
    pub partitions: u32,
    /// Reaches the owners.
    pub post: Post,
}

impl OwnedJournals {
    /// Sends records, after those that were sent before; the receiver completes when they are applied.
    pub(crate) fn send(&self, partition: u32, bodies: Vec<Body>) -> CallResult<Receiver<CallResult<()>>> {
        let (done, heard) = oneshot::channel();
        let is_here = (self.post)(partition, InboxMessage::Ingest { bodies, done });
        if is_here { Ok(heard) } else { Err(CallFailure::Unavailable) }
    }

    /// The offset behind the last record of the partition's own source that was applied.
    pub(crate) async fn mark(&self, partition: u32, incarnation: [u8; 16]) -> CallResult<u64> {
        let (reply, heard) = oneshot::channel();
        let source = SourcePosition {
            incarnation: incarnation.to_vec().into(),
            partition,
            ..SourcePosition::default()
        };
        if !(self.post)(partition, InboxMessage::Mark { source, reply }) {
            return Err(CallFailure::Unavailable);
        }
        heard.await.map_err(|_dropped| CallFailure::Unavailable)
    }
}

impl Journals for OwnedJournals {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    async fn deliver(&self, partition: u32, bodies: &[Body]) -> Result<(), Undelivered> {
        let sent = self.send(partition, bodies.to_vec());
        let heard = sent.map_err(|_gone| Undelivered("the partition is not here".into()))?;
        match heard.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(Undelivered(failure.to_string())),
            Err(_dropped) => Err(Undelivered("the partition has ended".into())),
        }
    }
}
