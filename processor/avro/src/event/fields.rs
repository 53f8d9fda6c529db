//! Fields that several events share: how absent values are written, and small records.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use everlog_engine::api_types::{MapEntry, RetryPolicy as Policy};
use everlog_engine::machine::worker_versioning::Version;
use everlog_engine::time::Duration;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::failure::{self, Failure};
use crate::payload::{Fields, Payload};

/// In which order tasks are handed out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Priority<'a> {
    /// From 1, smaller is earlier.
    pub priority_key: Option<i32>,
    /// Keys that share a queue fairly.
    pub fairness_key: Option<Cow<'a, str>>,
    /// The share of the key.
    pub fairness_weight: Option<f32>,
}

/// When and how often a failed attempt is made again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy<'a> {
    /// Wait before the second attempt, in ms.
    pub initial_interval_ms: Option<i64>,
    /// Factor from one wait to the next.
    pub backoff_coefficient: f64,
    /// The longest wait, in ms.
    pub maximum_interval_ms: Option<i64>,
    /// Attempts in all; 0 means no limit.
    pub maximum_attempts: i32,
    /// Types of errors that are final.
    pub non_retryable_error_types: Vec<Cow<'a, str>>,
}

/// A version of a deployment of workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentVersion<'a> {
    /// The deployment.
    pub deployment_name: Cow<'a, str>,
    /// What its workers were built from.
    pub build_id: Cow<'a, str>,
}

/// Temporal's `Priority`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncodedPriority {
    #[prost(int32, tag = "1")]
    pub priority_key: i32,
    #[prost(string, tag = "2")]
    pub fairness_key: String,
    #[prost(float, tag = "3")]
    pub fairness_weight: f32,
}

/// None where there is nothing.
pub(crate) fn text(given: &str) -> Option<Cow<'_, str>> {
    (!given.is_empty()).then_some(Cow::Borrowed(given))
}

pub(super) fn text_of(given: Option<&str>) -> Option<Cow<'_, str>> {
    given.and_then(text)
}

pub(super) fn name(given: Option<&str>) -> Cow<'_, str> {
    Cow::Borrowed(given.unwrap_or_default())
}

/// None for 0: there is no such event.
pub(crate) fn id(event_id: i64) -> Option<i64> {
    (event_id != 0).then_some(event_id)
}

/// A span in ms; never shorter than it was.
pub(crate) fn span(given: Option<Duration>) -> Option<i64> {
    given.map(Duration::to_ms)
}

/// The name of a number; none for 0, and the number itself where this release has no name for it.
pub(crate) fn named<E: TryFrom<i32> + Debug>(number: i32) -> Option<Cow<'static, str>> {
    if number == 0 {
        return None;
    }
    Some(E::try_from(number).map_or_else(|_unknown| number.to_string(), |name| format!("{name:?}")).into())
}

pub(super) fn blob(given: Option<&Bytes>) -> Option<Blob> {
    given.map(|bytes| Blob(bytes.clone()))
}

pub(crate) fn payload(given: Option<&Bytes>) -> Option<Payload<'static>> {
    given.map(Payload::read)
}

pub(crate) fn payloads(given: Option<&Bytes>) -> Option<Vec<Payload<'static>>> {
    given.map(Payload::read_all)
}

pub(super) fn fields(given: Option<&Bytes>) -> Option<Fields<'static>> {
    given.map(Payload::read_fields)
}

pub(super) fn named_payloads(given: &[MapEntry]) -> Option<BTreeMap<Cow<'_, str>, Vec<Payload<'static>>>> {
    let entry = |entry: &MapEntry| (Cow::Owned(entry.key.clone()), Payload::read_all(&entry.value));
    (!given.is_empty()).then(|| given.iter().map(entry).collect())
}

pub(super) fn version(given: Option<&Version>) -> Option<DeploymentVersion<'_>> {
    given.map(|given| DeploymentVersion {
        deployment_name: Cow::Borrowed(&given.deployment_name),
        build_id: Cow::Borrowed(&given.build_id),
    })
}

pub(super) fn failure(given: Option<&Bytes>) -> Option<Vec<Failure<'static>>> {
    given.map(failure::read)
}

/// None where nothing is said, or nothing that can be read.
pub(super) fn priority(given: Option<&Bytes>) -> Option<Priority<'static>> {
    let priority = EncodedPriority::decode(given?.clone()).ok()?;
    Some(Priority {
        priority_key: (priority.priority_key != 0).then_some(priority.priority_key),
        fairness_key: (!priority.fairness_key.is_empty()).then_some(priority.fairness_key.into()),
        fairness_weight: (priority.fairness_weight != 0.0).then_some(priority.fairness_weight),
    })
}

pub(super) fn retry(given: Option<&Policy>) -> Option<RetryPolicy<'_>> {
    let policy = given?;
    Some(RetryPolicy {
        initial_interval_ms: span(policy.initial_interval),
        backoff_coefficient: policy.backoff_coefficient,
        maximum_interval_ms: span(policy.maximum_interval),
        maximum_attempts: policy.maximum_attempts,
        non_retryable_error_types: policy.non_retryable_error_types.iter().map(Cow::from).collect(),
    })
}
