//! Any producer to `commands`: how many records a node takes, and how soon the first event of each can be read.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use hdrhistogram::Histogram;
use rdkafka::Message;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use serde::Serialize;

use super::{ANSWER_WITHIN, client, events};
use crate::load::report::Latency;

/// Produces commands in JSON that start workflows, and waits for the first event of each.
#[derive(Args, Debug)]
pub struct Options {
    /// Brokers to begin with
    #[arg(long)]
    bootstrap: String,
    /// What the names of the topics begin with
    #[arg(long, default_value = "everlog.")]
    prefix: String,
    /// Records to produce
    #[arg(long)]
    count: u64,
    /// Records per second; without it as fast as the producer goes
    #[arg(long)]
    rate: Option<f64>,
    /// Bytes of each input
    #[arg(long, default_value_t = 100)]
    payload_bytes: usize,
    /// Workflows that get the records as signals, each started by its first one; without it each record starts one
    #[arg(long)]
    workflows: Option<u64>,
    /// Seconds after which what has had no effect is given up
    #[arg(long, default_value_t = 120.0)]
    timeout: f64,
}

/// What it found.
#[derive(Debug, Serialize)]
pub struct Report {
    records: u64,
    /// From the first record produced to the last event read.
    seconds: f64,
    records_per_second: f64,
    /// How fast they were produced.
    produced_per_second: f64,
    /// From the moment a record was handed to the producer to the moment its event is read.
    to_event_ms: Latency,
}

/// The event that shows a record's effect.
const STARTED: &str = "WorkflowExecutionStarted";
const SIGNALED: &str = "WorkflowExecutionSignaled";

/// Runs until every record has had its effect.
///
/// # Errors
/// There is no broker, or records have had none in time.
pub fn run(options: &Options) -> anyhow::Result<Report> {
    ensure!(options.count > 0, "--count is at least 1");
    let reader = events::reader(&options.bootstrap, &options.prefix)?;
    let mut config = client(&options.bootstrap);
    config.set("acks", "all").set("linger.ms", if options.rate.is_some() { "0" } else { "5" });
    config.set("queue.buffering.max.messages", "1000000");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create()?;
    let plan = Plan::new(options);
    let began = Instant::now();
    let deadline = began + Duration::from_secs_f64(options.timeout);
    let producing = std::thread::scope(|scope| {
        let producing = scope.spawn(|| plan.produce(&producer, began));
        let seen = plan.wait(&reader, deadline);
        let produced = producing.join().map_err(|_| anyhow!("the producing thread panicked"))?;
        seen.and_then(|seen| Ok((seen, produced?)))
    });
    let (seen, sent) = producing?;
    let mut to_event_us = Histogram::<u64>::new(3)?;
    // Signals to one workflow keep their order, so the n-th seen of it is the n-th sent.
    let mut at: HashMap<String, usize> = HashMap::new();
    for (number, sent_at) in sent.moments.iter().enumerate() {
        let id = plan.workflow_id(number as u64);
        let place = at.entry(id.clone()).or_default();
        let seen_at = seen.get(&id).and_then(|moments| moments.get(*place)).copied();
        *place += 1;
        let Some(seen_at) = seen_at else { bail!("record {number} had no effect") };
        to_event_us.record(seen_at.duration_since(*sent_at).as_micros() as u64)?;
    }
    let last = seen.values().flatten().max().copied().unwrap_or(began);
    let seconds = last.duration_since(began).as_secs_f64();
    Ok(Report {
        records: options.count,
        seconds,
        records_per_second: options.count as f64 / seconds,
        produced_per_second: options.count as f64 / sent.seconds,
        to_event_ms: Latency::of_us(&to_event_us),
    })
}

struct Sent {
    moments: Vec<Instant>,
    seconds: f64,
}

/// Which records go where.
struct Plan<'a> {
    options: &'a Options,
    /// Of this run alone; every Workflow Id begins with it.
    name: String,
    topic: String,
    input: String,
}

impl<'a> Plan<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            name: format!("commands-{:x}-{:x}", std::process::id(), events::now_ms()),
            topic: format!("{}commands", options.prefix),
            input: "x".repeat(options.payload_bytes),
            options,
        }
    }

    fn workflow_id(&self, number: u64) -> String {
        format!("{}-{}", self.name, self.options.workflows.map_or(number, |workflows| number % workflows))
    }

    fn command(&self, id: &str) -> String {
        let Self { input, name, .. } = self;
        let start =
            format!(r#""start":{{"workflow_type":"bench","task_queue":"{name}","input":["{input}"]}}"#);
        match self.options.workflows {
            None => format!(r#"{{"type":"start","workflow_id":"{id}",{start}}}"#),
            Some(_) => format!(
                r#"{{"type":"signal_with_start","workflow_id":"{id}","signal":{{"name":"go","input":["{input}"]}},{start}}}"#
            ),
        }
    }

    fn produce(
        &self,
        producer: &ThreadedProducer<DefaultProducerContext>,
        began: Instant,
    ) -> anyhow::Result<Sent> {
        let mut moments = Vec::new();
        for number in 0..self.options.count {
            if let Some(rate) = self.options.rate {
                let intended = began + Duration::from_secs_f64(number as f64 / rate);
                std::thread::sleep(intended.saturating_duration_since(Instant::now()));
            }
            let id = self.workflow_id(number);
            let command = self.command(&id);
            moments.push(Instant::now());
            let mut record = BaseRecord::to(&self.topic).key(&id).payload(&command);
            loop {
                match producer.send(record) {
                    Ok(()) => break,
                    Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                        record = again;
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Err((error, _)) => bail!("a command was not taken: {error}"),
                }
            }
        }
        producer.flush(ANSWER_WITHIN)?;
        Ok(Sent { moments, seconds: began.elapsed().as_secs_f64() })
    }

    /// When the events of each workflow were read, in order.
    fn wait(
        &self,
        reader: &rdkafka::consumer::BaseConsumer,
        deadline: Instant,
    ) -> anyhow::Result<HashMap<String, Vec<Instant>>> {
        let wanted = if self.options.workflows.is_some() { SIGNALED } else { STARTED };
        let mut seen: HashMap<String, Vec<Instant>> = HashMap::new();
        let mut count = 0;
        while count < self.options.count {
            ensure!(
                Instant::now() < deadline,
                "{count} of {} records have had an effect",
                self.options.count
            );
            let Some(message) = reader.poll(Duration::from_millis(50)) else { continue };
            let message = message?;
            let event = events::Event::read(message.payload().unwrap_or_default());
            let event = event.ok_or_else(|| anyhow!("an entry of events cannot be read"))?;
            if event.kind == wanted && event.workflow_id.starts_with(&self.name) {
                seen.entry(event.workflow_id.to_owned()).or_default().push(Instant::now());
                count += 1;
            }
        }
        Ok(seen)
    }
}
