//! Record batches that the client cannot decompress: finds where one ends, so that the records behind it can be read.
//!
//! Brokers limit the compressed size of a batch, the client the decompressed one. Beyond that limit the client fails at
//! the same offset for ever.

use std::ops::Range;
use std::time::{Duration, Instant};

use everlog_log::{Error, Offset, PartitionId};
use rdkafka::consumer::BaseConsumer;

use crate::client::consumer::assign;
use crate::client::librdkafka::Live;
use crate::client::librdkafka::{FetchedNext, see};
use crate::client::log_lines::ClientLog;
use crate::errors::{io, io_text};
use crate::options::Options;

/// Timeout of one look.
const LOOK_WITHIN: Duration = Duration::from_secs(10);
/// `fetch.wait.max.ms`, and the client's pause before it repeats a fetch.
const FETCH_WAIT: Duration = Duration::from_millis(5);

/// Reads single offsets of a topic, beside its consumer.
pub(crate) struct Prober {
    consumer: Live<BaseConsumer<ClientLog>>,
    topic: String,
}

impl Prober {
    pub(crate) fn open(options: &Options, topic: &str) -> Result<Self, Error> {
        let mut config = options.commands_reader("commands-probe", FETCH_WAIT);
        config.set("fetch.error.backoff.ms", FETCH_WAIT.as_millis().to_string());
        config.set("queued.min.messages", "1");
        let client_log = ClientLog::new("commands-probe");
        let consumer = config.create_with_context(client_log).map_err(|error| io("a consumer", &error))?;
        Ok(Self { consumer, topic: topic.to_owned() })
    }

    /// The offsets from `from` on that cannot be read, of one batch; none where something can be read from there.
    /// `end` is the offset behind the last that may be looked at.
    pub(crate) fn unreadable(
        &self,
        partition: PartitionId,
        from: Offset,
        end: Offset,
    ) -> Result<Option<Range<Offset>>, Error> {
        if from >= end {
            return Ok(None);
        }
        let Some(batch) = self.batch(partition, from)? else { return Ok(None) };
        // Ever further until another batch comes, or something that can be read; then the edge in between.
        let (mut inside, mut step) = (from, 1);
        let mut outside = loop {
            let at = inside.saturating_add(step).min(end);
            if at == end || self.batch(partition, at)? != Some(batch) {
                break at;
            }
            (inside, step) = (at, step.saturating_mul(2));
        };
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            if self.batch(partition, middle)? == Some(batch) {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        Ok(Some(from..outside))
    }

    /// The first offset of the batch that cannot be unpacked when reading begins here; none where something can be read.
    fn batch(&self, partition: PartitionId, at: Offset) -> Result<Option<Offset>, Error> {
        assign(&self.consumer, &self.topic, partition as i32, at)?;
        let deadline = Instant::now() + LOOK_WITHIN;
        loop {
            match see(&self.consumer, deadline.saturating_duration_since(Instant::now())) {
                FetchedNext::Message | FetchedNext::End => return Ok(None),
                FetchedNext::NotUnpacked(batch) => return Ok(Some(batch)),
                FetchedNext::Trouble(_) if Instant::now() < deadline => {}
                FetchedNext::Trouble(error) => {
                    return Err(io_text(format!("{}-{partition}: {error}", self.topic)));
                }
                FetchedNext::Nothing => {
                    return Err(io_text(format!("{}-{partition}: no answer", self.topic)));
                }
            }
        }
    }
}
