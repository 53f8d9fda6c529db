//! Any consumer of `events`: how long after a step its events can be read.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;
use hdrhistogram::Histogram;
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;
use serde::Serialize;

use super::{client, topic};
use crate::load::report::Latency;

/// Reads only what is committed, from the present end on.
#[derive(Args, Debug)]
pub struct Options {
    /// Brokers to begin with
    #[arg(long)]
    bootstrap: String,
    /// What the names of the topics begin with
    #[arg(long, default_value = "everlog.")]
    prefix: String,
    /// Seconds that are measured
    #[arg(long, default_value_t = 10.0)]
    duration: f64,
}

/// What it found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// From the stamp of the step, which the broker gave, to the moment the event is read.
    behind_step_ms: Latency,
    bytes: u64,
}

/// Runs for as long as it is told to.
///
/// # Errors
/// There is no broker or no such topic, or an entry of it is not an event.
pub fn run(options: &Options) -> anyhow::Result<Report> {
    let consumer = reader(&options.bootstrap, &options.prefix)?;
    let mut behind_us = Histogram::<u64>::new(3)?;
    let mut bytes = 0;
    let until = Instant::now() + Duration::from_secs_f64(options.duration);
    while Instant::now() < until {
        let Some(message) = consumer.poll(Duration::from_millis(50)) else { continue };
        let message = message?;
        let payload = message.payload().unwrap_or_default();
        let event = Event::read(payload).context("an entry of events cannot be read")?;
        let behind_ms = now_ms() - event.time_ms;
        behind_us.record(u64::try_from(behind_ms).unwrap_or(0) * 1_000)?;
        bytes += payload.len() as u64;
    }
    Ok(Report { behind_step_ms: Latency::of_us(&behind_us), bytes })
}

/// A consumer at the end of `events` that sees what is committed.
pub(super) fn reader(bootstrap: &str, prefix: &str) -> anyhow::Result<BaseConsumer> {
    let mut config = client(bootstrap);
    config.set("isolation.level", "read_committed").set("enable.auto.commit", "false");
    config.set("group.id", format!("{prefix}bench"));
    let consumer = config.create()?;
    topic::read_from_end(&consumer, &format!("{prefix}events"))?;
    Ok(consumer)
}

/// The beginning of an event, which is all that is looked at here.
pub(super) struct Event<'a> {
    pub workflow_id: &'a str,
    pub kind: &'a str,
    pub time_ms: i64,
}

impl<'a> Event<'a> {
    /// Namespace, Workflow Id, run id, event id, type and time stand first, behind the five bytes of the schema's id.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes.get(5..)?;
        let _namespace = text(&mut rest)?;
        let workflow_id = text(&mut rest)?;
        let _run_id = text(&mut rest)?;
        let _event_id = long(&mut rest)?;
        let kind = text(&mut rest)?;
        Some(Event { workflow_id, kind, time_ms: long(&mut rest)? })
    }
}

/// Avro's: seven bits a byte, the lowest first, the sign in the lowest bit.
fn long(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(long(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use everlog_avro::event::{Origin, WorkflowEvent};
    use everlog_engine::event::{Attributes, HistoryEvent};
    use everlog_engine::time::Timestamp;

    use super::*;

    #[test]
    fn the_beginning_of_an_event_is_where_it_is_looked_for() {
        let origin = Origin { namespace: "default", workflow_id: "order-1", run_id: "run" };
        let event = HistoryEvent {
            event_id: 3,
            event_time: Some(Timestamp { seconds: 1_700_000_000, nanos: 123_000_000 }),
            attributes: Some(Attributes::TimerFired(Default::default())),
            ..HistoryEvent::default()
        };
        let mut bytes = Vec::new();
        WorkflowEvent::new(&origin, &event).write(7, &mut bytes).unwrap();
        let read = Event::read(&bytes).unwrap();
        assert_eq!((read.workflow_id, read.kind, read.time_ms), ("order-1", "TimerFired", 1_700_000_000_123));
        assert!(Event::read(&bytes[..20]).is_none());
    }
}
