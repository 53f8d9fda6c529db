//! `everlog command send`: sends a public command, and prints its outcome.

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use everlog_avro::PublicTopic;
use everlog_config::logs::visible;
use everlog_log::Error;
use everlog_log::clock::now_ms;
use everlog_log_kafka::Options;
use everlog_log_kafka::topics::topic_io::{From, OutgoingRecord, Producer, TailStep};
use serde_json::json;

use crate::command_json::CommandKind;
use crate::http_client::{self, HttpNode, HttpResponse};
use crate::json_line::{DecodedRecord, Reader, line};
use crate::public_topics::{LogOptions, PublicTopics, TopicReader};
use crate::{ExitStatus, write_line};

/// Bytes of a command on the standard input.
const INPUT_BYTES_MAX: u64 = 64 << 20;
/// How long one wait for a record takes.
const WAIT: Duration = Duration::from_millis(200);

/// `everlog command`
#[derive(Debug, Subcommand)]
pub enum SendCommand {
    /// Send a command to the topic `commands`.
    ///
    /// Prints the topic, partition and offset of the command, and with --reply its outcome. Exit codes: 0: sent, or with
    /// --reply executed. 3: refused. 2: the outcome is unknown. 1: nothing was sent.
    Send(Send),
}

/// `everlog command send`
#[derive(Args, Debug)]
pub struct Send {
    /// The Workflow Id, which is the key of the record.
    #[arg(long, value_name = "ID")]
    workflow_id: String,
    /// The namespace [default: the node's default namespace].
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The id of the command; it is executed once, however often it is sent.
    #[arg(long, value_name = "ID")]
    command_id: Option<String>,
    /// Do not execute it before this time: milliseconds since 1970, or from now: +30s, +5m, +2h, +7d.
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    deliver_at: Option<String>,
    /// Wait for the outcome and print it.
    #[arg(long)]
    reply: bool,
    /// How long to wait for the outcome, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30_000, requires = "reply")]
    reply_timeout_ms: u64,
    #[command(flatten)]
    place: LogOptions,
    #[command(subcommand)]
    order: CommandKind,
}

/// Runs it.
///
/// # Errors
/// Nothing was sent.
pub fn run(command: &SendCommand) -> Result<ExitStatus> {
    let SendCommand::Send(send) = command;
    let value = send.order.json(standard_input)?;
    let config = send.place.settings()?;
    everlog_config::logs::start(&config.logs)?;
    let place = send.place.place(&config);
    let headers = send.headers(&place.topic(PublicTopic::Outcome), now_ms())?;
    // The outcome may come before the reader starts otherwise.
    let replies = || place.tail(PublicTopic::Outcome, None, From::End).context("nothing was sent");
    let replies = if send.reply { Some(replies()?) } else { None };
    let sent = match &place {
        PublicTopics::Kafka(options) => {
            produce(options, &place.topic(PublicTopic::Command), send, &value, &headers)?
        }
        PublicTopics::Node(node) => hand_in(node, send, &value, &headers)?,
    };
    let (partition, offset, refusal) = match sent {
        SendResult::Unknown(why) => {
            eprintln!("everlog: {}", visible::lines(&why));
            return Ok(ExitStatus::Unknown);
        }
        SendResult::At(partition, offset, refusal) => (partition, offset, refusal),
    };
    let topic = place.topic(PublicTopic::Command);
    let mut told = json!({"topic": topic, "partition": partition, "offset": offset});
    if let Some((code, reason)) = &refusal {
        (told["code"], told["reason"]) = (json!(code), json!(reason));
    }
    write_line(&told.to_string())?;
    match (refusal, replies) {
        (Some(_), _) => Ok(ExitStatus::Failure),
        (None, None) => Ok(ExitStatus::Success),
        (None, Some(replies)) => outcome(&place, replies, partition, offset, send.reply_timeout_ms),
    }
}

/// The result of sending.
enum SendResult {
    /// Partition and offset, and the refusal where a node has refused the command at once.
    At(u32, u64, Option<(String, String)>),
    Unknown(String),
}

impl Send {
    fn headers(&self, replies: &str, now_ms: i64) -> Result<Vec<(&'static str, String)>> {
        let mut headers = Vec::new();
        headers.extend(self.namespace.clone().map(|name| ("namespace", name)));
        headers.extend(self.command_id.clone().map(|id| ("command-id", id)));
        if let Some(moment) = &self.deliver_at {
            headers.push(("deliver-at", moment_ms(moment, now_ms)?.to_string()));
        }
        if self.reply {
            headers.push(("reply-topic", replies.to_owned()));
        }
        Ok(headers)
    }
}

fn produce(
    options: &Options,
    topic: &str,
    send: &Send,
    value: &str,
    headers: &[(&'static str, String)],
) -> Result<SendResult> {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, Some(value.as_bytes()))).collect();
    let record = OutgoingRecord {
        topic,
        partition: None,
        key: Some(send.workflow_id.as_bytes()),
        value: Some(value.as_bytes()),
        headers: &headers,
    };
    match Producer::open(options)?.send(&[record]) {
        Ok(places) => {
            let (partition, offset) = places.first().copied().context("a record has a place")?;
            Ok(SendResult::At(partition, offset, None))
        }
        Err(Error::Unknown { detail }) => Ok(SendResult::Unknown(format!(
            "nobody knows whether the command is there: {detail}; send it again with the same --command-id"
        ))),
        Err(error) => Err(nothing_sent(&options.bootstrap_servers, error)),
    }
}

/// The error of a command that was not sent.
fn nothing_sent(brokers: &str, error: Error) -> anyhow::Error {
    match error {
        Error::Io { detail } => anyhow!("no broker of {brokers} answers; nothing was sent ({detail})"),
        error => anyhow::Error::from(error).context("nothing was sent"),
    }
}

fn hand_in(
    node: &HttpNode,
    send: &Send,
    value: &str,
    headers: &[(&'static str, String)],
) -> Result<SendResult> {
    let headers: serde_json::Map<_, _> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    // The value is sent as it was written.
    let body = format!(
        "{{\"key\":{},\"headers\":{},\"value\":{value}}}",
        json!(send.workflow_id),
        serde_json::Value::Object(headers)
    );
    let HttpResponse { status, body, .. } = node.post("/commands", body)?;
    let number = |name: &str| body[name].as_u64();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    match (status, number("partition").and_then(|partition| u32::try_from(partition).ok()), number("offset"))
    {
        (200, Some(partition), Some(offset)) => Ok(SendResult::At(partition, offset, None)),
        (422, Some(partition), Some(offset)) => {
            Ok(SendResult::At(partition, offset, Some((text("code"), text("reason")))))
        }
        (504, ..) => {
            Ok(SendResult::Unknown(format!("{}; send it again with the same --command-id", text("error"))))
        }
        _ => {
            let complaint = http_client::complaint(status, &body);
            bail!("the node at {} did not take the command: {complaint}", node.url())
        }
    }
}

/// Waits for the outcome of the command at this partition and offset.
fn outcome(
    place: &PublicTopics,
    mut replies: TopicReader,
    partition: u32,
    offset: u64,
    within_ms: u64,
) -> Result<ExitStatus> {
    let deadline = Instant::now() + Duration::from_millis(within_ms);
    // Outcomes are written by nodes of this release.
    let mut reader = Reader::new(PublicTopic::Outcome, None)?;
    let (commands, topic) = (place.topic(PublicTopic::Command), place.topic(PublicTopic::Outcome));
    while Instant::now() < deadline {
        let TailStep::Record(record) = replies.next(WAIT)? else { continue };
        let told = reader.read(&record)?;
        let DecodedRecord::Outcome(outcome) = &told else { continue };
        let is_ours = outcome.topic == commands
            && u32::try_from(outcome.partition) == Ok(partition)
            && u64::try_from(outcome.offset) == Ok(offset);
        if is_ours {
            write_line(&line(&topic, &record, &told)?)?;
            return Ok(if outcome.status == "refused" { ExitStatus::Failure } else { ExitStatus::Success });
        }
    }
    eprintln!("everlog: the command is sent; no outcome came within {within_ms} ms");
    Ok(ExitStatus::Unknown)
}

fn standard_input() -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text);
    read.context("the standard input cannot be read")?;
    Ok(text)
}

/// A time, in ms since 1970-01-01 UTC.
fn moment_ms(text: &str, now_ms: i64) -> Result<i64> {
    let wrong = || {
        anyhow!(
            "--deliver-at {text} is no moment; allowed are milliseconds since 1970, and +30s, +5m, +2h, +7d"
        )
    };
    let Some(span) = text.strip_prefix('+') else { return text.parse().map_err(|_error| wrong()) };
    let unit = span.chars().next_back().ok_or_else(wrong)?;
    let unit_ms = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _other => return Err(wrong()),
    };
    let count: i64 = span[..span.len() - 1].parse().map_err(|_error| wrong())?;
    count.checked_mul(unit_ms).and_then(|span| now_ms.checked_add(span)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_was_not_sent_says_so_and_names_the_brokers() {
        let away = nothing_sent("broker-1:9092", Error::Io { detail: "timed out".into() });
        assert_eq!(away.to_string(), "no broker of broker-1:9092 answers; nothing was sent (timed out)");
        let refused = nothing_sent("broker-1:9092", Error::Refused { detail: "no such topic".into() });
        assert!(format!("{refused:#}").starts_with("nothing was sent: "), "{refused:#}");
    }

    #[test]
    fn a_moment_is_a_number_or_a_span_from_now_on() {
        for (text, expected) in [("1700000000000", 1_700_000_000_000), ("+30s", 31_000), ("+7d", 604_801_000)]
        {
            assert_eq!(moment_ms(text, 1_000).expect(text), expected);
        }
        for bad in ["", "+", "+5", "+5y", "tomorrow", "+s", "+99999999999999999d", "+5ü"] {
            assert!(moment_ms(bad, 1_000).is_err(), "{bad}");
        }
    }
}
