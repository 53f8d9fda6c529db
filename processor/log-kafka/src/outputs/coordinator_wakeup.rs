//! Wakes a stalled transaction coordinator: one that could not write the end of a transaction retries only with its next
//! work, or after its brokers' `request.timeout.ms` (30 s).
//!
//! Kafka 4.4.0 does this when a broker is lost at that moment. Until the retry the coordinator refuses the transactional
//! id to a new owner. The end of any other transaction wakes it, so an empty one is ended here, under another id of the
//! same coordinator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use everlog_log::{Error, Outage, PartitionId};
use parking_lot::Mutex;
use rdkafka::consumer::Consumer;

use crate::client::consumer::TopicEnds;
use crate::errors::{io, io_text};
use crate::group_context::GroupContext;
use crate::options::Options;
use crate::topics::topic_io::{OutgoingRecord, Producer, TransactionEnd};

/// The topic of the coordinators' state: the leader of an id's partition is the id's coordinator.
const STATES: &str = "__transaction_state";
/// Its partitions where they cannot be read: Kafka's default.
const STATES_PARTITIONS: u32 = 50;
/// Timeout of each step; the refused owner asks again by then.
const WITHIN_MS: u64 = 2_000;
/// Ids that are tried: among so many one falls into the wanted partition, however many there are.
const IDS_MAX: u32 = 100_000;

/// One coordinator is woken up at a time; another group that waits repeats its request.
#[derive(Default)]
pub(crate) struct CoordinatorWakeup {
    is_under_way: AtomicBool,
    outage: Mutex<Outage>,
}

/// Rouses the coordinator of a transactional id, in the background.
///
/// A record of `commands` is aborted for it, in that partition: nobody who reads committed records sees it.
pub(crate) fn coordinator_of(id: &str, context: &Arc<GroupContext>, partition: PartitionId) {
    if context.rouse.is_under_way.swap(true, Ordering::AcqRel) {
        return;
    }
    let (id, shared) = (id.to_owned(), Arc::clone(context));
    let rouse = move || {
        let ended = end_of_nothing(&id, &shared, partition);
        let mut outage = shared.rouse.outage.lock();
        match ended {
            Ok(used) => {
                outage.works(Instant::now());
                tracing::info!(id, used, "transaction coordinator woken up");
            }
            Err(error) => {
                if let Some(lasts) = outage.fails(Instant::now()) {
                    let for_s = lasts.as_secs();
                    tracing::info!(id, %error, for_s, "transaction coordinator not woken up");
                }
            }
        }
        drop(outage);
        shared.rouse.is_under_way.store(false, Ordering::Release);
    };
    if let Err(error) = std::thread::Builder::new().name("rouse".into()).spawn(rouse) {
        tracing::debug!(%error, "no thread to wake up a coordinator");
        context.rouse.is_under_way.store(false, Ordering::Release);
    }
}

/// Ends a transaction of another id; gives that id.
fn end_of_nothing(id: &str, context: &GroupContext, partition: PartitionId) -> Result<String, Error> {
    let Options { call_timeout_ms, transaction_timeout_ms, .. } = context.options;
    let call_timeout_ms = WITHIN_MS.min(call_timeout_ms).min(transaction_timeout_ms);
    let options = Options { call_timeout_ms, ..context.options.clone() };
    let partitions = states_partitions(&context.ends, options.call_timeout())?;
    let place = place_of(id, partitions);
    let names = (0..IDS_MAX).map(|number| format!("{}rouse-{number}", options.prefix));
    let other = names.into_iter().find(|name| place_of(name, partitions) == place);
    let other = other.ok_or_else(|| io_text(format!("no id has the place {place} of {partitions}")))?;
    let mut producer = Producer::open_transactional(&options, &other)?;
    let topic = options.topic("commands");
    let nothing = OutgoingRecord { topic: &topic, partition: Some(partition), ..OutgoingRecord::default() };
    producer.transact(&[nothing], TransactionEnd::Abort)?;
    Ok(other)
}

/// Asked by a client that there is: where no broker answers, none is made in vain.
fn states_partitions(ends: &TopicEnds, within: Duration) -> Result<u32, Error> {
    let told = ends.asker().fetch_metadata(Some(STATES), within);
    let told = told.map_err(|error| io("where coordinators keep what they know", &error))?;
    let partitions = told.topics().first().map_or(0, |topic| topic.partitions().len());
    Ok(u32::try_from(partitions).ok().filter(|count| *count > 0).unwrap_or(STATES_PARTITIONS))
}

/// Where a coordinator keeps an id, as Kafka finds it: by the hash that Java gives a text.
fn place_of(id: &str, partitions: u32) -> u32 {
    let hash =
        id.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.checked_abs().map_or(0, i32::unsigned_abs) % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As brokers with 4 of them said in their logs.
    #[test]
    fn an_id_is_where_kafka_keeps_it() {
        assert_eq!(place_of("f9x2.group-1", 4), 2);
        assert_eq!(place_of("f9x2.group-3", 4), 0);
    }

    /// `"polygenelubricants".hashCode()` is the least of all numbers, which has no absolute value.
    #[test]
    fn the_least_number_is_at_the_first_place() {
        assert_eq!(place_of("polygenelubricants", 50), 0);
    }
}
