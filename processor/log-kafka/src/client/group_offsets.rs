//! What a group has committed, where the brokers tell it.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::TopicPartitionList;

use crate::client::log_lines::ClientLog;

/// The offsets that the consumer's group has committed.
///
/// # Errors
/// Those of librdkafka. Where the brokers deny the group it looks for the coordinator again and again until time is over;
/// here the denial is the error.
pub(crate) fn committed_offsets(
    member: &BaseConsumer<ClientLog>,
    list: TopicPartitionList,
    within: Duration,
) -> Result<TopicPartitionList, KafkaError> {
    member.committed_offsets(list, within).map_err(|error| {
        // What went wrong meanwhile is told to whoever polls.
        while member.poll(Duration::ZERO).is_some() {}
        match member.context().is_group_denied() {
            true => KafkaError::MetadataFetch(RDKafkaErrorCode::GroupAuthorizationFailed),
            false => error,
        }
    })
}
