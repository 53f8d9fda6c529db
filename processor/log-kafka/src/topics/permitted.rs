//! What a client may do with topics, before it tries: one request shows all that is missing.

use std::collections::BTreeMap;

use everlog_log::Error;
use rdkafka::error::RDKafkaErrorCode;

use crate::client::librdkafka::{DescribedTopic, HasNativeClient, Live, describe};
use crate::options::Options;
use crate::permissions::{AclDenial, AclOperation};
use crate::topics::definition::wanted;

/// What somebody does with the topics of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicsUse {
    /// Serves on it.
    Node,
    /// Looks whether the topics are as they must be.
    CheckTopics,
    /// Reads all there is.
    Inspect,
}

impl TopicsUse {
    /// What it needs on a topic, by the topic's name without the prefix.
    fn needs(self, topic: &str) -> &'static [AclOperation] {
        use AclOperation::{Delete, Describe, DescribeConfigs, Read, Write};
        match (self, topic) {
            (TopicsUse::Node, "journal" | "commands") => &[Read, Write, DescribeConfigs, Delete],
            (TopicsUse::Node, _) => &[Read, Write, DescribeConfigs],
            (TopicsUse::CheckTopics, "control") | (TopicsUse::Inspect, _) => &[Read, DescribeConfigs],
            (TopicsUse::CheckTopics, _) => &[Describe, DescribeConfigs],
        }
    }
}

/// What is denied of a task on the topics of a log. Topics that are not there are passed over, and everything where the
/// brokers do not say what they permit.
///
/// # Errors
/// `Io`: no broker answers.
pub(crate) fn denials<T: HasNativeClient>(
    client: &Live<T>,
    options: &Options,
    task: TopicsUse,
) -> Result<Vec<AclDenial>, Error> {
    let topics = wanted(options, 1);
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let described = describe(client, &names, options.call_timeout(), "what the brokers permit")?;
    let missing =
        missing_of(&described, |name| task.needs(name.strip_prefix(&options.prefix).unwrap_or(name)));
    Ok(client.principal().deny_topics(&missing, &names))
}

fn missing_of(
    described: &[DescribedTopic],
    needs: impl Fn(&str) -> &'static [AclOperation],
) -> BTreeMap<AclOperation, Vec<&str>> {
    let mut missing: BTreeMap<AclOperation, Vec<&str>> = BTreeMap::new();
    for topic in described {
        let permitted = match (topic.code, &topic.permitted) {
            (RDKafkaErrorCode::NoError, Some(permitted)) => permitted.as_slice(),
            (RDKafkaErrorCode::TopicAuthorizationFailed, _) => &[],
            _ => continue,
        };
        for operation in needs(&topic.name).iter().filter(|operation| !permitted.contains(operation)) {
            missing.entry(*operation).or_default().push(&topic.name);
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_by_operation_and_only_of_topics_that_the_brokers_speak_of() {
        use AclOperation::{Describe, DescribeConfigs, Read, Write};
        let topic = |name: &str, code, permitted: Option<&[AclOperation]>| DescribedTopic {
            name: name.into(),
            code,
            id: [0; 16],
            permitted: permitted.map(<[_]>::to_vec),
        };
        let described = [
            topic("journal", RDKafkaErrorCode::NoError, Some(&[Read, Write, Describe])),
            topic("control", RDKafkaErrorCode::TopicAuthorizationFailed, None),
            topic("events", RDKafkaErrorCode::UnknownTopicOrPartition, None),
            topic("timers", RDKafkaErrorCode::NoError, None),
        ];
        let missing = missing_of(&described, |name| TopicsUse::Node.needs(name));
        let expected = [
            (Read, vec!["control"]),
            (Write, vec!["control"]),
            (AclOperation::Delete, vec!["journal"]),
            (DescribeConfigs, vec!["journal", "control"]),
        ];
        assert_eq!(missing, expected.into());
    }
}
