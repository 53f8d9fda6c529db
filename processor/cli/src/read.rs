//! `everlog events|replies|rejections tail|export`: prints a public topic, as lines of JSON or as a table.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_log_kafka::topics::topic_io::{From, Record, TailStep};
use everlog_registry::RegistryClient;

use crate::json_line::{DecodedRecord, Reader, line};
use crate::public_topics::{LogOptions, PublicTopics};
use crate::{ExitStatus, event_table, write_line};

/// How long one wait for a record takes.
const WAIT: Duration = Duration::from_millis(500);

/// How a topic is read.
#[derive(Debug, Subcommand)]
pub enum Read {
    /// Print new records until interrupted.
    ///
    /// Exit codes: 0: all records were decoded. 3: one was not. 1: the topic could not be read.
    Tail(TailOptions),
    /// Print all records.
    ///
    /// Exit codes: 0: all records were decoded. 3: one was not. 1: the topic could not be read.
    Export(ExportOptions),
}

/// `tail`
#[derive(Args, Debug)]
pub struct TailOptions {
    #[command(flatten)]
    place: LogOptions,
    #[command(flatten)]
    filter: RecordFilter,
    /// Print old records first.
    #[arg(long)]
    from_beginning: bool,
}

/// `export`
#[derive(Args, Debug)]
pub struct ExportOptions {
    #[command(flatten)]
    place: LogOptions,
    #[command(flatten)]
    filter: RecordFilter,
    /// Continue with new records until interrupted.
    #[arg(long)]
    follow: bool,
}

/// How a record is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object a line, with all fields.
    #[default]
    Json,
    /// A row of id, time, type and the fields that matter.
    Table,
}

/// Which records are printed, and how.
#[derive(Args, Clone, Debug, Default)]
struct RecordFilter {
    /// How records are printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Only records of this namespace.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only records of this Workflow Id.
    #[arg(long, value_name = "ID")]
    workflow_id: Option<String>,
    /// Only records of this run.
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Only records of this type; may be repeated.
    ///
    /// The type of an event, such as WorkflowExecutionStarted, the status of a reply, or the code of a rejection.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only records of this partition of the topic.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
    /// Start at this offset of the partition.
    #[arg(long, value_name = "NUMBER", requires = "partition")]
    from_offset: Option<u64>,
    /// Stop after this number of lines.
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// The schema registry with the schemas of other releases [default: registry.url, else the node's].
    ///
    /// On Kafka without a registry, all records are decoded with the schemas of this release.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
}

/// Reads a topic and prints it.
///
/// # Errors
/// Nobody answers, or the topic does not exist.
pub fn run(noun: PublicTopic, read: &Read) -> Result<ExitStatus> {
    let (place, filter, from, follows) = match read {
        Read::Tail(tail) => {
            let from = if tail.from_beginning { From::Beginning } else { From::End };
            (&tail.place, &tail.filter, from, true)
        }
        Read::Export(export) => (&export.place, &export.filter, From::Beginning, export.follow),
    };
    let config = place.settings()?;
    everlog_config::logs::start(&config.logs)?;
    let place = place.place(&config);
    let registry = match &filter.registry {
        Some(url) => Some(RegistryClient::new(url)?),
        None => registry_of(&place, &config)?,
    };
    let mut reader = Reader::new(noun, registry)?;
    let from = filter.from_offset.map_or(from, From::Offset);
    let mut reading = place.tail(noun, filter.partition, from)?;
    let (topic, mut printed, mut ended) = (place.topic(noun), 0, ExitStatus::Success);
    if filter.format == Format::Table && !write_line(&event_table::heading())? {
        return Ok(ended);
    }
    while filter.limit.is_none_or(|limit| printed < limit) {
        let record = match reading.next(WAIT)? {
            TailStep::Record(record) => record,
            TailStep::End if !follows => break,
            TailStep::End | TailStep::Nothing => continue,
        };
        let told = reader.read(&record)?;
        if !filter.takes(&record, &told) {
            continue;
        }
        if let DecodedRecord::Unreadable(why) = &told {
            let (partition, offset) = (record.partition, record.offset);
            tracing::warn!(topic, partition, offset, why, "a record cannot be read");
            ended = ExitStatus::Failure;
        }
        let json = line(&topic, &record, &told)?;
        let text = match filter.format {
            Format::Json => json,
            Format::Table => event_table::line(&record, &told, &json)?,
        };
        if !write_line(&text)? {
            break;
        }
        printed += 1;
    }
    Ok(ended)
}

/// A node serves its own registry, unless it uses another. Only its own gets the API key.
fn registry_of(place: &PublicTopics, config: &Config) -> Result<Option<RegistryClient>> {
    let url = &config.registry.url.0;
    Ok(match place {
        PublicTopics::Kafka(_) | PublicTopics::Node(_) if !url.is_empty() => Some(RegistryClient::new(url)?),
        PublicTopics::Node(node) => Some(RegistryClient::by(node.options().client(node.url())?, node.url())?),
        PublicTopics::Kafka(_) => None,
    })
}

impl RecordFilter {
    /// Records that cannot be decoded pass, unless their key is of another workflow.
    fn takes(&self, record: &Record, told: &DecodedRecord) -> bool {
        let key = record.key.as_deref();
        let (namespace, id, run, kind) = match told {
            DecodedRecord::Event(event) => (
                Some(event.namespace.as_ref()),
                Some(event.workflow_id.as_bytes()),
                Some(event.run_id.as_ref()),
                event.r#type.as_ref(),
            ),
            DecodedRecord::Outcome(outcome) => {
                (outcome.namespace.as_deref(), key, outcome.run_id.as_deref(), outcome.status.as_str())
            }
            DecodedRecord::Rejection(rejection) => {
                (rejection.namespace.as_deref(), key, None, rejection.code.as_ref())
            }
            DecodedRecord::Unreadable(_) => {
                return self.workflow_id.as_ref().is_none_or(|wanted| key == Some(wanted.as_bytes()));
            }
        };
        let fits = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        fits(&self.namespace, namespace)
            && self.workflow_id.as_ref().is_none_or(|wanted| id == Some(wanted.as_bytes()))
            && fits(&self.run_id, run)
            && (self.types.is_empty() || self.types.iter().any(|wanted| wanted == kind))
    }
}
