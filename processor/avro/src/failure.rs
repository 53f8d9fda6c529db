//! Public failures: a chain with the failure first and then its causes, each link flat.

use std::borrow::Cow;

use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, Execution, RetryState, TimeoutType, WorkflowType};
use everlog_engine::time::Duration;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::event::fields::{id, named, payload, payloads, span, text};
use crate::payload::Payload;

/// Links of a chain that are published; of a longer one the last link says how many are missing.
const LINKS_MAX: usize = 100;

/// One link of a chain of failures: the first is the failure itself, each further one the cause of the one before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure<'a> {
    /// What went wrong, for people.
    pub message: Cow<'a, str>,
    /// Application, Timeout, Canceled, Terminated, Server, ResetWorkflow, Activity, ChildWorkflow, NexusOperation or NexusHandler.
    pub kind: Option<Cow<'a, str>>,
    /// Who says so, e.g. PythonSDK.
    pub source: Option<Cow<'a, str>>,
    /// Where it was raised.
    pub stack_trace: Option<Cow<'a, str>>,
    /// Message and stack trace where they are encrypted.
    pub encoded_attributes: Option<Payload<'a>>,
    /// Application, NexusHandler: the type of the error, as retry policies name it.
    pub error_type: Option<Cow<'a, str>>,
    /// Application, Server: no retry whatever the policy says.
    pub non_retryable: Option<bool>,
    /// Application, Canceled: details. Timeout, ResetWorkflow: what the activity reported last.
    pub details: Option<Vec<Payload<'a>>>,
    /// Application: the next attempt waits this long, in ms.
    pub next_retry_delay_ms: Option<i64>,
    /// Application: Benign, or a number that this release has no name for.
    pub category: Option<Cow<'a, str>>,
    /// Timeout: StartToClose, ScheduleToStart, ScheduleToClose or Heartbeat.
    pub timeout_type: Option<Cow<'a, str>>,
    /// Canceled, Terminated: who asked for it. Activity: the worker.
    pub identity: Option<Cow<'a, str>>,
    /// Activity: its id.
    pub activity_id: Option<Cow<'a, str>>,
    /// Activity: its type.
    pub activity_type: Option<Cow<'a, str>>,
    /// ChildWorkflow: its namespace.
    pub namespace: Option<Cow<'a, str>>,
    /// ChildWorkflow: its Workflow Id.
    pub workflow_id: Option<Cow<'a, str>>,
    /// ChildWorkflow: its run.
    pub run_id: Option<Cow<'a, str>>,
    /// ChildWorkflow: its type.
    pub workflow_type: Option<Cow<'a, str>>,
    /// ChildWorkflow: the event that asked for it.
    pub initiated_event_id: Option<i64>,
    /// Activity, NexusOperation: its Scheduled event.
    pub scheduled_event_id: Option<i64>,
    /// Activity, ChildWorkflow: its Started event.
    pub started_event_id: Option<i64>,
    /// Activity, ChildWorkflow: why there was no other attempt.
    pub retry_state: Option<Cow<'a, str>>,
    /// NexusOperation: the endpoint.
    pub endpoint: Option<Cow<'a, str>>,
    /// NexusOperation: the service.
    pub service: Option<Cow<'a, str>>,
    /// NexusOperation: the operation.
    pub operation: Option<Cow<'a, str>>,
    /// NexusOperation: its token.
    pub operation_token: Option<Cow<'a, str>>,
    /// NexusHandler: Retryable or NonRetryable.
    pub retry_behavior: Option<Cow<'a, str>>,
    /// Of the last link only: further causes that the chain had, beyond 100.
    pub causes_omitted: i32,
}

/// In which order tasks are handed out.
/// Temporal's `Failure`: the cause stays encoded, so that a long chain is read link by link.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Encoded {
    #[prost(string, tag = "1")]
    pub message: String,
    #[prost(string, tag = "2")]
    pub source: String,
    #[prost(string, tag = "3")]
    pub stack_trace: String,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub cause: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "20")]
    pub encoded_attributes: Option<Bytes>,
    #[prost(oneof = "Info", tags = "5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
    pub info: Option<Info>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Info {
    #[prost(message, tag = "5")]
    Application(Application),
    #[prost(message, tag = "6")]
    Timeout(Timeout),
    #[prost(message, tag = "7")]
    Canceled(Canceled),
    #[prost(message, tag = "8")]
    Terminated(Terminated),
    #[prost(message, tag = "9")]
    Server(Server),
    #[prost(message, tag = "10")]
    ResetWorkflow(ResetWorkflow),
    #[prost(message, tag = "11")]
    Activity(Activity),
    #[prost(message, tag = "12")]
    ChildWorkflow(ChildWorkflow),
    #[prost(message, tag = "13")]
    NexusOperation(NexusOperation),
    #[prost(message, tag = "14")]
    NexusHandler(NexusHandler),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Application {
    #[prost(string, tag = "1")]
    pub r#type: String,
    #[prost(bool, tag = "2")]
    pub non_retryable: bool,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub details: Option<Bytes>,
    #[prost(message, optional, tag = "4")]
    pub next_retry_delay: Option<Duration>,
    #[prost(int32, tag = "5")]
    pub category: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Timeout {
    #[prost(int32, tag = "1")]
    timeout_type: i32,
    #[prost(bytes = "bytes", optional, tag = "2")]
    last_heartbeat_details: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Canceled {
    #[prost(bytes = "bytes", optional, tag = "1")]
    details: Option<Bytes>,
    #[prost(string, tag = "2")]
    identity: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Terminated {
    #[prost(string, tag = "1")]
    identity: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Server {
    #[prost(bool, tag = "1")]
    non_retryable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResetWorkflow {
    #[prost(bytes = "bytes", optional, tag = "1")]
    last_heartbeat_details: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Activity {
    #[prost(int64, tag = "1")]
    scheduled_event_id: i64,
    #[prost(int64, tag = "2")]
    started_event_id: i64,
    #[prost(string, tag = "3")]
    identity: String,
    #[prost(message, optional, tag = "4")]
    activity_type: Option<ActivityType>,
    #[prost(string, tag = "5")]
    activity_id: String,
    #[prost(int32, tag = "6")]
    retry_state: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ChildWorkflow {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(message, optional, tag = "2")]
    execution: Option<Execution>,
    #[prost(message, optional, tag = "3")]
    workflow_type: Option<WorkflowType>,
    #[prost(int64, tag = "4")]
    initiated_event_id: i64,
    #[prost(int64, tag = "5")]
    started_event_id: i64,
    #[prost(int32, tag = "6")]
    retry_state: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NexusOperation {
    #[prost(int64, tag = "1")]
    scheduled_event_id: i64,
    #[prost(string, tag = "2")]
    endpoint: String,
    #[prost(string, tag = "3")]
    service: String,
    #[prost(string, tag = "4")]
    operation: String,
    #[prost(string, tag = "6")]
    operation_token: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NexusHandler {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(int32, tag = "2")]
    retry_behavior: i32,
}

/// Reads a chain of failures. Bytes that are no failure stand in the details of one without a kind.
pub(super) fn read(bytes: &Bytes) -> Vec<Failure<'static>> {
    let mut chain: Vec<Failure<'static>> = Vec::new();
    let mut next = Some(bytes.clone());
    while let Some(bytes) = next {
        if chain.len() == LINKS_MAX {
            let last = chain.last_mut().expect("there is a limit of links, and it is not 0");
            last.causes_omitted = omitted(bytes);
            break;
        }
        let Ok(mut link) = Encoded::decode(bytes.clone()) else {
            let whole = payloads(Some(&bytes));
            chain.push(Failure { details: whole, ..Failure::default() });
            break;
        };
        next = link.cause.take();
        chain.push(flat(link));
    }
    chain
}

/// How many links there are, at most as many as an `int` counts.
fn omitted(first: Bytes) -> i32 {
    let mut count = 0_i32;
    let mut next = Some(first);
    while let Some(bytes) = next {
        count = count.saturating_add(1);
        next = Encoded::decode(bytes).ok().and_then(|mut link| link.cause.take());
    }
    count
}

/// A text that outlives what it was read from.
fn own(given: &str) -> Option<Cow<'static, str>> {
    text(given).map(|text| Cow::Owned(text.into_owned()))
}

fn flat(link: Encoded) -> Failure<'static> {
    let failure = Failure {
        message: link.message.into(),
        source: own(&link.source),
        stack_trace: own(&link.stack_trace),
        encoded_attributes: payload(link.encoded_attributes.as_ref()),
        ..Failure::default()
    };
    match link.info {
        Some(info) => with_info(failure, info),
        None => failure,
    }
}

fn with_info(failure: Failure<'static>, info: Info) -> Failure<'static> {
    let kind = |name: &'static str| Some(Cow::Borrowed(name));
    match info {
        Info::Application(info) => Failure {
            kind: kind("Application"),
            error_type: own(&info.r#type),
            non_retryable: Some(info.non_retryable),
            details: payloads(info.details.as_ref()),
            next_retry_delay_ms: span(info.next_retry_delay),
            category: one_of(&["Benign"], info.category),
            ..failure
        },
        Info::Timeout(info) => Failure {
            kind: kind("Timeout"),
            timeout_type: named::<TimeoutType>(info.timeout_type),
            details: payloads(info.last_heartbeat_details.as_ref()),
            ..failure
        },
        Info::Canceled(info) => Failure {
            kind: kind("Canceled"),
            details: payloads(info.details.as_ref()),
            identity: own(&info.identity),
            ..failure
        },
        Info::Terminated(info) => {
            Failure { kind: kind("Terminated"), identity: own(&info.identity), ..failure }
        }
        Info::Server(info) => {
            Failure { kind: kind("Server"), non_retryable: Some(info.non_retryable), ..failure }
        }
        Info::ResetWorkflow(info) => Failure {
            kind: kind("ResetWorkflow"),
            details: payloads(info.last_heartbeat_details.as_ref()),
            ..failure
        },
        Info::Activity(info) => with_activity(failure, &info),
        Info::ChildWorkflow(info) => with_child(failure, &info),
        Info::NexusOperation(info) => Failure {
            kind: kind("NexusOperation"),
            scheduled_event_id: id(info.scheduled_event_id),
            endpoint: own(&info.endpoint),
            service: own(&info.service),
            operation: own(&info.operation),
            operation_token: own(&info.operation_token),
            ..failure
        },
        Info::NexusHandler(info) => Failure {
            kind: kind("NexusHandler"),
            error_type: own(&info.r#type),
            retry_behavior: one_of(&["Retryable", "NonRetryable"], info.retry_behavior),
            ..failure
        },
    }
}

fn with_activity(failure: Failure<'static>, info: &Activity) -> Failure<'static> {
    let activity_type = info.activity_type.as_ref().map(|given| given.name.as_str());
    Failure {
        kind: Some("Activity".into()),
        scheduled_event_id: id(info.scheduled_event_id),
        started_event_id: id(info.started_event_id),
        identity: own(&info.identity),
        activity_type: activity_type.and_then(own),
        activity_id: own(&info.activity_id),
        retry_state: named::<RetryState>(info.retry_state),
        ..failure
    }
}

fn with_child(failure: Failure<'static>, info: &ChildWorkflow) -> Failure<'static> {
    let run = info.execution.as_ref();
    Failure {
        kind: Some("ChildWorkflow".into()),
        namespace: own(&info.namespace),
        workflow_id: run.and_then(|run| own(&run.workflow_id)),
        run_id: run.and_then(|run| own(&run.run_id)),
        workflow_type: info.workflow_type.as_ref().and_then(|given| own(&given.name)),
        initiated_event_id: id(info.initiated_event_id),
        started_event_id: id(info.started_event_id),
        retry_state: named::<RetryState>(info.retry_state),
        ..failure
    }
}

/// The name of a number from 1; none for 0, and the number itself where it has no name.
fn one_of(names: &'static [&'static str], number: i32) -> Option<Cow<'static, str>> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match place.and_then(|place| names.get(place)) {
        Some(name) => Some(Cow::Borrowed(name)),
        None if number == 0 => None,
        None => Some(Cow::Owned(number.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(links: usize) -> Bytes {
        let mut bytes = None;
        for link in (0..links).rev() {
            let encoded = Encoded { message: format!("{link}"), cause: bytes, ..Encoded::default() };
            bytes = Some(encoded.encode_to_vec().into());
        }
        bytes.expect("at least one link")
    }

    #[test]
    fn causes_follow_the_failure_in_order() {
        let read: Vec<_> = read(&chain(3)).into_iter().map(|link| link.message).collect();
        assert_eq!(read, ["0", "1", "2"]);
    }

    #[test]
    fn a_chain_of_thousands_is_cut_and_says_so() {
        let read = read(&chain(5_000));
        assert_eq!((read.len(), read[LINKS_MAX - 1].causes_omitted), (LINKS_MAX, 4_900));
        assert_eq!(read[0].causes_omitted, 0);
    }

    #[test]
    fn a_number_without_a_name_stands_as_it_is() {
        assert_eq!(one_of(&["Benign"], 0), None);
        assert_eq!(one_of(&["Benign"], 1).as_deref(), Some("Benign"));
        assert_eq!(one_of(&["Benign"], 2).as_deref(), Some("2"));
    }
}
