//! Appends the records of a batch to their journals: in order, one append per journal at a time, until all are durable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use everlog_log::consumer::Fetched;
use everlog_log::{Backoff, Outage};
use everlog_wire::Body;
use everlog_wire::public_command::SourcePosition;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::decoder::{Routed, Shared};
use crate::journals::Journals;
use crate::options::Names;
use crate::schemas::SchemaRegistry;
use crate::stats::Stats;

/// First pause before a failed append is repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Appends batches of all source partitions.
pub(crate) struct JournalWriter<J, R, N> {
    journals: Arc<J>,
    /// Per journal: locked while an append is in flight; the outage that its last outcome tells.
    turns: Vec<Mutex<Outage>>,
    reader: Shared<R, N>,
    retry_ms_max: u64,
    stats: Arc<Stats>,
}

impl<J: Journals, R: SchemaRegistry, N: Names> JournalWriter<J, R, N> {
    pub(crate) fn new(journals: J, reader: Shared<R, N>, retry_ms_max: u64, stats: Arc<Stats>) -> Self {
        let turns = (0..journals.partitions()).map(|_| Mutex::default()).collect();
        Self { journals: Arc::new(journals), turns, reader, retry_ms_max, stats }
    }

    /// Appends a batch of one source partition; returns when all of it is durable.
    pub(crate) async fn carry(self: Arc<Self>, batch: Vec<Fetched>) {
        let mut groups: BTreeMap<u32, Vec<Body>> = BTreeMap::new();
        for fetched in &batch {
            let waits = || {
                self.stats.schema_waits.fetch_add(1, Ordering::Relaxed);
            };
            let Routed { partition, mut body } =
                self.reader.read(fetched, self.journals.partitions(), waits).await;
            let group = groups.entry(partition).or_default();
            if let (Some(source), Some(before)) =
                (source_mut(&mut body), group.last().and_then(|body| source_of(body)))
            {
                source.follows = before.offset + 1;
            }
            group.push(body);
        }
        let mut under_way = JoinSet::new();
        for (partition, bodies) in groups {
            under_way.spawn(self.clone().deliver(partition, bodies));
        }
        while let Some(delivered) = under_way.join_next().await {
            if let Err(error) = delivered
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    async fn deliver(self: Arc<Self>, partition: u32, bodies: Vec<Body>) {
        let mut backoff = Backoff::new(FIRST_PAUSE, Duration::from_millis(self.retry_ms_max));
        loop {
            let mut outage = self.turns[partition as usize].lock().await;
            let delivered = self.journals.deliver(partition, &bodies).await;
            let Err(error) = delivered else {
                if let Some(lasted) = outage.works(Instant::now()) {
                    tracing::info!(
                        partition,
                        after_s = lasted.as_secs(),
                        "commands appended again after an outage"
                    );
                }
                break;
            };
            self.stats.retries.fetch_add(1, Ordering::Relaxed);
            if let Some(lasts) = outage.fails(Instant::now()) {
                let for_s = lasts.as_secs();
                tracing::warn!(partition, for_s, %error, "commands not appended; the append is repeated");
            }
            drop(outage);
            self.journals.pause(backoff.failed()).await;
        }
        let forwarded = bodies.iter().filter(|body| matches!(body, Body::PublicCommand(_))).count() as u64;
        self.stats.forwarded.fetch_add(forwarded, Ordering::Relaxed);
        self.stats.unreadable.fetch_add(bodies.len() as u64 - forwarded, Ordering::Relaxed);
    }
}

fn source_of(body: &Body) -> Option<&SourcePosition> {
    match body {
        Body::PublicCommand(forwarded) => forwarded.source.as_ref(),
        Body::InvalidCommand(unreadable) => unreadable.source.as_ref(),
        Body::Owner(_)
        | Body::Settings(_)
        | Body::Input(_)
        | Body::Barrier(_)
        | Body::DeliverDelayed(_)
        | Body::OutboxMessage(_)
        | Body::NamespaceDeleted(_)
        | Body::Level(_) => None,
    }
}

fn source_mut(body: &mut Body) -> Option<&mut SourcePosition> {
    match body {
        Body::PublicCommand(forwarded) => forwarded.source.as_mut(),
        Body::InvalidCommand(unreadable) => unreadable.source.as_mut(),
        Body::Owner(_)
        | Body::Settings(_)
        | Body::Input(_)
        | Body::Barrier(_)
        | Body::DeliverDelayed(_)
        | Body::OutboxMessage(_)
        | Body::NamespaceDeleted(_)
        | Body::Level(_) => None,
    }
}
