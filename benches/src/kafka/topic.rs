//! Topics: making one, and where each of its partitions ends.

use anyhow::{Context, anyhow};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::{ANSWER_WITHIN, client};

/// Makes a topic of one partition and one replica, unless it is there.
pub async fn make(bootstrap: &str, name: &str) -> anyhow::Result<()> {
    let admin: AdminClient<_> = client(bootstrap).create()?;
    let topic = NewTopic::new(name, 1, TopicReplication::Fixed(1));
    let options = AdminOptions::new().operation_timeout(Some(ANSWER_WITHIN));
    for outcome in admin.create_topics([&topic], &options).await? {
        match outcome {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => return Err(anyhow!("{name} was not made: {code}")),
        }
    }
    Ok(())
}

/// Lets a consumer read all partitions of a topic from their present ends on.
pub fn read_from_end(consumer: &BaseConsumer, name: &str) -> anyhow::Result<()> {
    let metadata = consumer.fetch_metadata(Some(name), ANSWER_WITHIN)?;
    let topic = metadata.topics().first().context("the broker names no topic")?;
    let mut places = TopicPartitionList::new();
    for partition in topic.partitions() {
        let (_, end) = consumer.fetch_watermarks(name, partition.id(), ANSWER_WITHIN)?;
        places.add_partition_offset(name, partition.id(), Offset::Offset(end))?;
    }
    anyhow::ensure!(places.count() > 0, "there is no topic {name}");
    Ok(consumer.assign(&places)?)
}
