//! Errors of brokers and clients as errors that a caller of the log can act on.

use everlog_log::{Error, PartitionId};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// The broker was asked and nothing usable came back; or a client could not be made of its settings.
pub(crate) fn io(what: &str, error: &KafkaError) -> Error {
    if let KafkaError::ClientConfig(_, reason, key, _) = error {
        return refused(format!("the Kafka property {key}: {reason}"));
    }
    Error::Io { detail: format!("{what}: {error}") }
}

/// What a broker answered to a wish: one that it refuses, and would refuse again, was answered all the same.
pub(crate) fn answered(what: &str, code: RDKafkaErrorCode) -> Error {
    let detail = format!("{what}: {code}");
    let is_refusal = matches!(
        code,
        RDKafkaErrorCode::ClusterAuthorizationFailed
            | RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::InvalidConfig
            | RDKafkaErrorCode::InvalidPartitions
            | RDKafkaErrorCode::InvalidReplicaAssignment
            | RDKafkaErrorCode::InvalidReplicationFactor
            | RDKafkaErrorCode::InvalidRequest
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::PolicyViolation
            | RDKafkaErrorCode::TopicDeletionDisabled
            | RDKafkaErrorCode::UnsupportedVersion
    );
    if is_refusal { refused(detail) } else { io_text(detail) }
}

pub(crate) fn io_text(detail: impl Into<String>) -> Error {
    Error::Io { detail: detail.into() }
}

pub(crate) fn refused(detail: impl Into<String>) -> Error {
    Error::Refused { detail: detail.into() }
}

pub(crate) fn unknown(detail: impl Into<String>) -> Error {
    Error::Unknown { detail: detail.into() }
}

pub(crate) fn no_such_partition(partition: PartitionId, partitions: u32) -> Error {
    refused(format!("partition {partition} of {partitions}"))
}

/// A topic holds what no writer of ours can have left there.
pub(crate) fn corrupt(topic: &str, partition: i32, detail: impl Into<String>) -> Error {
    Error::Corrupt {
        path: format!("{topic}-{partition}").into(),
        detail: detail.into(),
        way_out:
            "stop every node, and find out who deleted records or made the topic again; then restore the \
                  topics from a backup of the cluster, or begin anew with another prefix"
                .into(),
    }
}

/// Whether it says that a newer producer has the transactional id.
pub(crate) fn is_fence(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced | RDKafkaErrorCode::InvalidProducerEpoch
    )
}

/// The error of a topic that does not exist.
pub(crate) fn missing(name: &str) -> Error {
    refused(format!("there is no topic {name}: make the topics first (everlog topics create)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_refuses_a_wish_has_answered() {
        let told = |code| answered("making the topic events", code);
        assert!(matches!(told(RDKafkaErrorCode::TopicAuthorizationFailed), Error::Refused { .. }));
        assert!(matches!(told(RDKafkaErrorCode::PolicyViolation), Error::Refused { .. }));
        assert!(matches!(told(RDKafkaErrorCode::RequestTimedOut), Error::Io { .. }));
        assert!(matches!(told(RDKafkaErrorCode::NotController), Error::Io { .. }));
    }
}
