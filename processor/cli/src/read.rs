//! `everlog events|replies|rejections tail|export`: a public topic as lines of JSON.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_log_kafka::topics::topic_io::{From, Record, Step};

use crate::json_line::{Reader, Told, line};
use crate::public_topics::{Place, Where};
use crate::{Ended, write_line};

/// How long one wait for a record takes.
const WAIT: Duration = Duration::from_millis(500);

/// How a topic is read.
#[derive(Debug, Subcommand)]
pub enum Read {
    /// Print what comes from here on, for ever.
    Tail(Tail),
    /// Print all that is there, and end.
    Export(Export),
}

/// `tail`
#[derive(Args, Debug)]
pub struct Tail {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    filter: Filter,
    /// Print what is there before.
    #[arg(long)]
    from_beginning: bool,
}

/// `export`
#[derive(Args, Debug)]
pub struct Export {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    filter: Filter,
    /// Go on for ever with what comes then.
    #[arg(long)]
    follow: bool,
}

/// Which records.
#[derive(Args, Clone, Debug, Default)]
struct Filter {
    /// Only those of this namespace.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only those of this Workflow Id.
    #[arg(long, value_name = "ID")]
    workflow_id: Option<String>,
    /// Only those of this run.
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Only those of this type, such as WorkflowExecutionStarted: of replies their status, of rejections their code.
    /// May be repeated.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only those of this partition of the topic.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
    /// Begin at this offset of the partition.
    #[arg(long, value_name = "NUMBER", requires = "partition")]
    from_offset: Option<u64>,
    /// End after so many lines.
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// The schema registry that knows the schemas of other releases [default: registry.url, else
    /// that of the node; on brokers none, and all records count as this release's].
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
}

/// Reads the topic of a noun and prints it.
///
/// # Errors
/// Nobody answers, or the topic is not there.
pub fn run(noun: PublicTopic, read: &Read) -> Result<Ended> {
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
    let url = filter.registry.clone().or_else(|| registry_of(&place, &config));
    let mut reader = Reader::new(noun, url.as_deref())?;
    let from = filter.from_offset.map_or(from, From::Offset);
    let mut reading = place.tail(noun, filter.partition, from)?;
    let (topic, mut printed, mut ended) = (place.topic(noun), 0, Ended::Well);
    while filter.limit.is_none_or(|limit| printed < limit) {
        let record = match reading.next(WAIT)? {
            Step::Record(record) => record,
            Step::End if !follows => break,
            Step::End | Step::Nothing => continue,
        };
        let told = reader.read(&record)?;
        if !filter.takes(&record, &told) {
            continue;
        }
        if let Told::Unreadable(why) = &told {
            let (partition, offset) = (record.partition, record.offset);
            tracing::warn!(topic, partition, offset, why, "a record cannot be read");
            ended = Ended::Badly;
        }
        if !write_line(&line(&topic, &record, &told)?)? {
            break;
        }
        printed += 1;
    }
    Ok(ended)
}

/// A node serves its own, unless it uses another.
fn registry_of(place: &Place, config: &Config) -> Option<String> {
    let url = &config.registry.url.0;
    match place {
        Place::Kafka(_) | Place::Node(_) if !url.is_empty() => Some(url.clone()),
        Place::Node(address) => Some(format!("http://{address}")),
        Place::Kafka(_) => None,
    }
}

impl Filter {
    /// What cannot be read passes, save by a key that is another's.
    fn takes(&self, record: &Record, told: &Told) -> bool {
        let key = record.key.as_deref();
        let (namespace, id, run, kind) = match told {
            Told::Event(event) => (
                Some(event.namespace.as_ref()),
                Some(event.workflow_id.as_bytes()),
                Some(event.run_id.as_ref()),
                event.r#type.as_ref(),
            ),
            Told::Outcome(outcome) => {
                (outcome.namespace.as_deref(), key, outcome.run_id.as_deref(), outcome.status.as_str())
            }
            Told::Rejection(rejection) => {
                (rejection.namespace.as_deref(), key, None, rejection.code.as_ref())
            }
            Told::Unreadable(_) => {
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
