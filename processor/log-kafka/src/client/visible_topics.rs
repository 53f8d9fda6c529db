//! Whether a topic is there, and whether this client may know that.

use std::time::Duration;

use everlog_log::Error;
use rdkafka::error::RDKafkaErrorCode;

use crate::client::librdkafka::{HasNativeClient, Live, describe};
use crate::errors::missing;
use crate::permissions::{AclOperation, AclResource};

/// Whether there is such a topic. `operation`: what it is wanted for.
///
/// # Errors
/// `Denied`: it may not even be described; `Io`: no broker answers.
pub(crate) fn exists<T: HasNativeClient>(
    client: &Live<T>,
    topic: &str,
    operation: AclOperation,
    within: Duration,
) -> Result<bool, Error> {
    let described = describe(client, &[topic], within, "which topics there are")?;
    let code = described.first().map_or(RDKafkaErrorCode::UnknownTopic, |topic| topic.code);
    match client.principal().denial(code, &[(operation, AclResource::Topic(topic))]) {
        Some(denial) => Err(denial.into_error()),
        None => Ok(code == RDKafkaErrorCode::NoError),
    }
}

/// Why a topic that is to be read is not among those that the brokers list: it is not there, or may not be described.
pub(crate) fn unlisted<T: HasNativeClient>(client: &Live<T>, topic: &str, within: Duration) -> Error {
    match exists(client, topic, AclOperation::Read, within) {
        Err(denied @ Error::Denied { .. }) => denied,
        Ok(_) | Err(_) => missing(topic),
    }
}
