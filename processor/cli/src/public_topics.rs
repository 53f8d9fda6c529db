//! The public topics of a log: on brokers, or at a node with an embedded log, over HTTP.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_log_kafka::Options;
use everlog_log_kafka::topics::topic_io::{From, Record, TailStep, TopicTail};
use serde_json::Value;

use crate::http_client::{self, HttpNode, HttpOptions, HttpResponse, NodeUrl};

/// Records of one request to a node.
const ASKED_RECORDS: usize = 500;
/// How often a node is asked for new records.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Options for the place of the log.
#[derive(Args, Clone, Debug, Default)]
pub struct LogOptions {
    /// The file of settings [default: the environment and the defaults only].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Use the log on these brokers [default: kafka.bootstrap_servers].
    #[arg(long, value_name = "HOST:PORT[,...]")]
    pub kafka_bootstrap: Option<String>,
    /// Use the embedded log of the node that serves HTTP here [default, without brokers: http.address].
    ///
    /// A node with TLS is named by its URL, such as https://everlog.example:7234.
    #[arg(long, value_name = "IP:PORT", conflicts_with = "kafka_bootstrap")]
    pub http_address: Option<NodeUrl>,
    #[command(flatten)]
    pub http: HttpOptions,
}

/// Where the topics are.
#[derive(Clone, Debug)]
pub enum PublicTopics {
    /// On brokers.
    Kafka(Box<Options>),
    /// At a node.
    Node(HttpNode),
}

impl LogOptions {
    /// The settings, with the options applied.
    ///
    /// # Errors
    /// The file cannot be read, or settings are not allowed.
    pub fn settings(&self) -> Result<Config> {
        let mut config = Config::load(self.config.as_deref(), &everlog_config::environment())?;
        if let Some(brokers) = &self.kafka_bootstrap {
            config.kafka.bootstrap_servers.clone_from(brokers);
            config.validate()?;
        }
        Ok(config)
    }

    /// On brokers where some are named, else at a node.
    pub fn place(&self, config: &Config) -> PublicTopics {
        let own = || NodeUrl::new(config.http.address, config.tls.certificate_file.is_some());
        match &self.http_address {
            None if config.kafka.is_used() => PublicTopics::Kafka(Box::new(config.kafka.options("by-hand"))),
            named => {
                let url = named.clone().unwrap_or_else(own);
                PublicTopics::Node(HttpNode::new(url, self.http.clone()))
            }
        }
    }
}

impl PublicTopics {
    /// The full name of a topic.
    pub fn topic(&self, noun: PublicTopic) -> String {
        match self {
            Self::Kafka(options) => format!("{}{}", options.prefix, noun.topic()),
            // Topics of the embedded log have no prefix of their own.
            Self::Node(_) => format!("everlog.{}", noun.topic()),
        }
    }

    /// Reads a topic.
    ///
    /// # Errors
    /// It does not exist, nobody answers, or there is no such partition or offset.
    pub fn tail(&self, noun: PublicTopic, partition: Option<u32>, from: From) -> Result<TopicReader> {
        match self {
            Self::Kafka(options) => {
                let tail = TopicTail::open(options, &self.topic(noun), partition, from)?;
                Ok(TopicReader::Kafka(Box::new(tail)))
            }
            Self::Node(node) => {
                Ok(TopicReader::Node(NodeTopicReader::open(node.clone(), noun, partition, from)?))
            }
        }
    }
}

/// A reader of a topic.
pub enum TopicReader {
    /// From brokers.
    Kafka(Box<TopicTail>),
    /// From a node.
    Node(NodeTopicReader),
}

impl TopicReader {
    /// Waits for the next record.
    ///
    /// # Errors
    /// Nobody answers any more.
    pub fn next(&mut self, within: Duration) -> Result<TailStep> {
        match self {
            Self::Kafka(tail) => Ok(tail.next(within)?),
            Self::Node(pages) => pages.next(within),
        }
    }
}

/// A reader of a node's topic.
pub struct NodeTopicReader {
    node: HttpNode,
    noun: PublicTopic,
    partitions: Vec<NodePartition>,
    records: VecDeque<Record>,
    has_ended: bool,
}

/// A partition: the next offset, and the end when the reading began.
struct NodePartition {
    partition: u32,
    next: u64,
    end: u64,
}

impl NodeTopicReader {
    fn open(node: HttpNode, noun: PublicTopic, partition: Option<u32>, from: From) -> Result<Self> {
        let first = ask(&node, noun, partition.unwrap_or(0), None, 0)?;
        let count = number(&first, "partitions")?;
        let count = u32::try_from(count).context("the node has too many partitions")?;
        let wanted = partition.map_or(0..count, |one| one..one.saturating_add(1));
        let mut partitions = Vec::new();
        for partition in wanted {
            let bounds = ask(&node, noun, partition, None, 0)?;
            let (start, end) = (number(&bounds, "start")?, number(&bounds, "end")?);
            let next = match from {
                From::Beginning => start,
                From::End => end,
                From::Offset(offset) if (start..=end).contains(&offset) => offset,
                From::Offset(offset) => {
                    bail!(
                        "partition {partition} of {} holds {start} to {end}, and no offset {offset}",
                        noun.topic()
                    )
                }
            };
            partitions.push(NodePartition { partition, next, end });
        }
        Ok(Self { node, noun, partitions, records: VecDeque::new(), has_ended: false })
    }

    fn next(&mut self, within: Duration) -> Result<TailStep> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(record) = self.records.pop_front() {
                return Ok(TailStep::Record(record));
            }
            let at_end = self.partitions.iter().all(|page| page.next >= page.end);
            if at_end && !std::mem::replace(&mut self.has_ended, true) {
                return Ok(TailStep::End);
            }
            for page in &mut self.partitions {
                // Records beyond that end are read after all partitions have reached theirs.
                if !self.has_ended && page.next >= page.end {
                    continue;
                }
                let answer = ask(&self.node, self.noun, page.partition, Some(page.next), ASKED_RECORDS)?;
                for record in answer["records"].as_array().into_iter().flatten() {
                    self.records.push_back(read(page.partition, record)?);
                }
                page.next = number(&answer, "next")?;
            }
            if self.records.is_empty() && self.has_ended {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(TailStep::Nothing);
                }
                std::thread::sleep(ASK_EVERY.min(left));
            }
        }
    }
}

fn ask(node: &HttpNode, noun: PublicTopic, partition: u32, from: Option<u64>, max: usize) -> Result<Value> {
    let from = from.map(|offset| format!("&offset={offset}")).unwrap_or_default();
    let path = format!("/{}?partition={partition}&max={max}{from}", noun.topic());
    let HttpResponse { status, body, .. } = node.get(&path)?;
    if status != 200 {
        bail!("the node at {} says: {}", node.url(), http_client::complaint(status, &body));
    }
    Ok(body)
}

fn number(answer: &Value, name: &str) -> Result<u64> {
    answer[name].as_u64().with_context(|| format!("the node's answer has no {name}"))
}

fn read(partition: u32, record: &Value) -> Result<Record> {
    let bytes = |name: &str| match &record[name] {
        Value::Null => Ok(None),
        Value::String(text) => STANDARD.decode(text).map(|bytes| Some(bytes.into())).context("base64"),
        other => bail!("{name} is {other}"),
    };
    Ok(Record {
        partition,
        offset: number(record, "offset")?,
        key: bytes("key_base64")?,
        value: bytes("value_base64")?,
        ..Record::default()
    })
}
