//! Public commands over HTTP, one at a time and without a topic: each gets a source position that is never used again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_log::consumer::{ConsumedTopic, Fetched};
use everlog_partition::CallFailure;
use everlog_wire::Body;
use tokio::sync::Mutex;

use crate::decoder::Decoder;
use crate::journals::{Journals, OwnedJournals};
use crate::options::{Names, Options};
use crate::schemas::SchemaRegistry;
use crate::stats::Stats;

/// A record that is durable and applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The partition that applied it.
    pub partition: u32,
    /// Its number there.
    pub offset: u64,
    /// The code and the reason where it is no valid command, and became a rejection.
    pub refused: Option<(String, String)>,
}

/// The source of commands over HTTP, for journals that only their owners append to.
pub struct HttpSource<R, N> {
    journals: OwnedJournals,
    topic: ConsumedTopic,
    reader: Decoder<R, N>,
    /// The next number of each partition, once it is known. Held while a record is sent: an owner takes them in order.
    next: Vec<Mutex<Option<u64>>>,
    stats: Arc<Stats>,
}

impl<R: SchemaRegistry, N: Names> HttpSource<R, N> {
    /// A source whose records have positions in this topic.
    pub fn new(
        journals: OwnedJournals,
        topic: ConsumedTopic,
        registry: R,
        names: N,
        options: Options,
    ) -> Self {
        let next = (0..journals.partitions()).map(|_| Mutex::default()).collect();
        let reader = Decoder::new(topic.clone(), options, names, registry);
        Self { journals, topic, reader, next, stats: Arc::default() }
    }

    /// What it counts.
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.stats)
    }

    /// Takes a record; its partition and offset are given here. Waits until it is durable and applied. None, and nothing taken,
    /// where `may` says no to what the record is.
    ///
    /// # Errors
    /// [`CallFailure`]: after `Busy` nothing was appended; after another the outcome is unknown.
    pub async fn take(
        &self,
        mut record: Fetched,
        may: impl FnOnce(&Body) -> bool,
    ) -> Result<Option<Taken>, CallFailure> {
        Stats::count(&self.stats.records);
        record.partition = 0;
        // The registry is asked before the lock is taken, which others wait for.
        let (partition, body) = self.read(&record).await;
        if !may(&body) {
            return Ok(None);
        }
        let mut next = self.next[partition as usize].lock().await;
        let offset = match *next {
            Some(offset) => offset,
            None => self.journals.mark(partition, self.topic.incarnation).await?,
        };
        (record.partition, record.offset) = (partition, offset);
        let body = self.read(&record).await.1;
        *next = Some(offset + 1);
        let refused = match &body {
            Body::InvalidCommand(unreadable) => Some((unreadable.code.clone(), unreadable.reason.clone())),
            Body::PublicCommand(_)
            | Body::Owner(_)
            | Body::Settings(_)
            | Body::Input(_)
            | Body::Barrier(_)
            | Body::DeliverDelayed(_)
            | Body::OutboxMessage(_)
            | Body::NamespaceDeleted(_)
            | Body::Level(_) => None,
        };
        let heard = self.journals.send(partition, vec![body])?;
        drop(next);
        heard.await.map_err(|_dropped| CallFailure::Unavailable)??;
        Stats::count(if refused.is_none() { &self.stats.forwarded } else { &self.stats.unreadable });
        Ok(Some(Taken { partition, offset, refused }))
    }

    async fn read(&self, record: &Fetched) -> (u32, Body) {
        let waits = || {
            self.stats.schema_waits.fetch_add(1, Ordering::Relaxed);
        };
        let routed = self.reader.read(record, self.journals.partitions(), waits).await;
        (routed.partition, routed.body)
    }
}
