//! The floor under every step: records of the same size, produced with acks=all to a topic of their own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use hdrhistogram::Histogram;
use rdkafka::ClientContext;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use serde::Serialize;

use super::{ANSWER_WITHIN, idempotent, topic};
use crate::load::report::Latency;

/// Produces at fixed moments, whatever the broker does, and measures from the intended moment.
#[derive(Args, Debug)]
pub struct Options {
    /// Brokers to begin with
    #[arg(long)]
    bootstrap: String,
    /// The topic, made with one partition if it is not there
    #[arg(long, default_value = "everlog-probe")]
    topic: String,
    /// Records per second
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Bytes of a record
    #[arg(long, default_value_t = 300)]
    record_bytes: usize,
    /// Seconds that are measured
    #[arg(long, default_value_t = 10.0)]
    duration: f64,
    /// Seconds before that
    #[arg(long, default_value_t = 2.0)]
    warmup: f64,
}

/// What it found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// From the intended moment to the delivery report.
    produce_ms: Latency,
    failures: u64,
}

/// Runs for as long as it is told to.
///
/// # Errors
/// There is no broker, or no record was delivered.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    topic::make(&options.bootstrap, &options.topic).await?;
    let heard: Arc<Mutex<Heard>> = Arc::new(Mutex::new(Heard { took_us: Histogram::new(3)?, failures: 0 }));
    let context = Deliveries { heard: Arc::clone(&heard) };
    let producer: ThreadedProducer<Deliveries> =
        idempotent(&options.bootstrap).create_with_context(context)?;
    let payload = vec![b'x'; options.record_bytes];
    let began = Instant::now();
    let from = began + Duration::from_secs_f64(options.warmup);
    let until = from + Duration::from_secs_f64(options.duration);
    for number in 0_u64.. {
        let intended = began + Duration::from_secs_f64(number as f64 / options.rate);
        if intended >= until {
            break;
        }
        std::thread::sleep(intended.saturating_duration_since(Instant::now()));
        let ticket = Box::new((intended >= from).then_some(intended));
        let record: BaseRecord<'_, (), [u8], Box<Option<Instant>>> =
            BaseRecord::with_opaque_to(&options.topic, ticket).partition(0).payload(&payload);
        if let Err((error, _)) = producer.send(record) {
            bail!("a record was not taken: {error}");
        }
    }
    producer.flush(ANSWER_WITHIN)?;
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Report { produce_ms: Latency::of_us(&heard.took_us), failures: heard.failures })
}

struct Heard {
    took_us: Histogram<u64>,
    failures: u64,
}

struct Deliveries {
    heard: Arc<Mutex<Heard>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    /// The intended moment, if it counts.
    type DeliveryOpaque = Box<Option<Instant>>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<Option<Instant>>) {
        let Some(intended) = *ticket else { return };
        let took_us = intended.elapsed().as_micros() as u64;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(_) if heard.took_us.record(took_us).is_ok() => {}
            Ok(_) | Err(_) => heard.failures += 1,
        }
    }
}
