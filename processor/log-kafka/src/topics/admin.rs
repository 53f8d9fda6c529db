//! Administrative requests: list, create and remove topics, read their settings, delete records.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use everlog_log::{Error, Offset};
use rdkafka::admin::{
    AdminClient, AdminOptions, NewTopic, OwnedResourceSpecifier, ResourceSpecifier, TopicReplication,
};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::Metadata;
use rdkafka::topic_partition_list::{Offset as At, TopicPartitionList};

use crate::client::librdkafka::{Live, connection_failure, describe};
use crate::client::log_lines::ClientLog;
use crate::errors::{answered, io, io_text, refused};
use crate::options::Options;
use crate::permissions::{AclDenial, AclOperation, AclResource};
use crate::topics::definition::{ExistingTopic, TopicDefinition};
use crate::topics::identity::TopicId;
use crate::topics::permitted::{TopicsUse, denials};

pub(crate) struct Admin {
    client: Live<AdminClient<ClientLog>>,
    servers: String,
    timeout: Duration,
}

impl Admin {
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        let client = options
            .client("admin")
            .create_with_context(ClientLog::new("admin"))
            .map_err(|error| io("an admin client", &error))?;
        Ok(Admin { client, servers: options.bootstrap_servers.clone(), timeout: options.call_timeout() })
    }

    /// The topics there are whose names begin with the prefix, with their settings.
    pub(crate) fn topics(
        &self,
        wanted: &[TopicDefinition],
    ) -> Result<BTreeMap<String, ExistingTopic>, Error> {
        let metadata = self.metadata()?;
        let mut topics = BTreeMap::new();
        for topic in metadata.topics().iter().filter(|topic| wanted.iter().any(|w| w.name == topic.name())) {
            let replicas = topic.partitions().iter().map(|partition| partition.replicas().len());
            topics.insert(
                topic.name().to_owned(),
                ExistingTopic {
                    partitions: topic.partitions().len() as u32,
                    replication: replicas.min().unwrap_or(0) as u16,
                    settings: BTreeMap::new(),
                },
            );
        }
        let names: Vec<String> = topics.keys().cloned().collect();
        if names.is_empty() {
            return Ok(topics);
        }
        let resources: Vec<_> = names.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
        let described = self.wait(self.client.describe_configs(&resources, &self.asked()))?;
        let described = described.map_err(|error| io("the settings of the topics", &error))?;
        // The answers come in the order of the question.
        for (name, described) in names.iter().zip(described) {
            let described = described.map_err(|code| {
                self.refusal(&format!("the settings of {name}"), code, AclOperation::DescribeConfigs, name)
            })?;
            let OwnedResourceSpecifier::Topic(name) = described.specifier else { continue };
            let settings = described.entries.into_iter();
            let settings = settings.filter_map(|entry| Some((entry.name, entry.value?))).collect();
            if let Some(existing) = topics.get_mut(&name) {
                existing.settings = settings;
            }
        }
        Ok(topics)
    }

    /// The ids of topics by their names, without those that are not there.
    pub(crate) fn ids(&self, topics: &[String]) -> Result<BTreeMap<String, TopicId>, Error> {
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        let described = describe(&self.client, &names, self.timeout, "the ids of the topics")?.into_iter();
        let there = described.filter(|topic| topic.code == RDKafkaErrorCode::NoError);
        Ok(there.map(|topic| (topic.name, topic.id)).collect())
    }

    /// How many partitions a topic has; 0: it is not there.
    pub(crate) fn partitions(&self, topic: &str) -> Result<u32, Error> {
        let metadata = self.client.inner().fetch_metadata(None, self.timeout);
        let metadata = metadata.map_err(|error| io("which topics there are", &error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        Ok(found.map_or(0, |found| found.partitions().len() as u32))
    }

    /// Creates topics; one that another process creates at the same time is accepted.
    pub(crate) fn create(&self, wanted: &[&TopicDefinition]) -> Result<(), Error> {
        if wanted.is_empty() {
            return Ok(());
        }
        let new: Vec<NewTopic<'_>> = wanted
            .iter()
            .map(|topic| {
                let replication = TopicReplication::Fixed(topic.replication.into());
                let mut new = NewTopic::new(&topic.name, topic.partitions as i32, replication);
                for (key, value) in topic.settings() {
                    new = new.set(key, value);
                }
                new
            })
            .collect();
        let options = self.asked().operation_timeout(Some(self.timeout));
        let made = self.wait(self.client.create_topics(&new, &options))?;
        for result in made.map_err(|error| io("making the topics", &error))? {
            match result {
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((_, RDKafkaErrorCode::InvalidReplicationFactor)) => {
                    return Err(self.too_few_brokers(wanted));
                }
                Err((name, code)) => {
                    let what = format!("making the topic {name}");
                    return Err(self.refusal(&what, code, AclOperation::Create, &name));
                }
            }
        }
        Ok(())
    }

    /// Why topics cannot have so many replicas.
    fn too_few_brokers(&self, wanted: &[&TopicDefinition]) -> Error {
        let replication = wanted.iter().map(|topic| topic.replication).max().unwrap_or(0);
        match self.client.inner().fetch_metadata(None, self.timeout) {
            Ok(metadata) => refused(too_few(metadata.brokers().len(), replication)),
            Err(error) => io("which brokers there are", &error),
        }
    }

    /// Removes topics; those that are not there are none.
    pub(crate) fn remove(&self, names: &[&str]) -> Result<(), Error> {
        let options = self.asked().operation_timeout(Some(self.timeout));
        let removed = self.wait(self.client.delete_topics(names, &options))?;
        for result in removed.map_err(|error| io("removing the topics", &error))? {
            match result {
                Ok(_)
                | Err((_, RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic)) => {}
                Err((name, code)) => {
                    let what = format!("removing the topic {name}");
                    return Err(self.refusal(&what, code, AclOperation::Delete, &name));
                }
            }
        }
        Ok(())
    }

    /// Deletes the records of a partition below an offset.
    pub(crate) fn delete_below(&self, topic: &str, partition: i32, below: Offset) -> Result<(), Error> {
        let what = format!("deleting records of {topic}-{partition}");
        let mut list = TopicPartitionList::new();
        let below = i64::try_from(below).map_err(|_| io_text(format!("{what} below {below}")))?;
        list.add_partition_offset(topic, partition, At::Offset(below)).map_err(|error| io(&what, &error))?;
        let deleted = self.wait(self.client.delete_records(&list, &self.asked()))?;
        let needs = [(AclOperation::Delete, AclResource::Topic(topic))];
        let fault = |error| self.client.principal().fault(&what, &error, &needs);
        for element in deleted.map_err(fault)?.elements() {
            element.error().map_err(fault)?;
        }
        Ok(())
    }

    fn metadata(&self) -> Result<Metadata, Error> {
        self.client.inner().fetch_metadata(None, self.timeout).map_err(|error| {
            let reason = connection_failure(&self.client).unwrap_or_else(|| error.to_string());
            io_text(format!("no broker of bootstrap.servers = {} answers: {reason}", self.servers))
        })
    }

    /// What is denied of a task on the topics.
    pub(crate) fn denials(&self, options: &Options, task: TopicsUse) -> Result<Vec<AclDenial>, Error> {
        // It says why no broker answers, such as that a login fails; a description says that time is up.
        self.metadata()?;
        denials(&self.client, options, task)
    }

    /// What a broker answered to a wish that concerns a topic.
    fn refusal(&self, what: &str, code: RDKafkaErrorCode, operation: AclOperation, topic: &str) -> Error {
        let denial = self.client.principal().denial(code, &[(operation, AclResource::Topic(topic))]);
        denial.map_or_else(|| answered(what, code), AclDenial::into_error)
    }

    fn asked(&self) -> AdminOptions {
        AdminOptions::new().request_timeout(Some(self.timeout))
    }

    /// The client's own thread completes the future; this one sleeps until then.
    fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let deadline = Instant::now() + self.timeout * 2;
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io_text(format!("bootstrap.servers = {}: no answer", self.servers)));
            }
            std::thread::park_timeout(left);
        }
    }
}

fn too_few(brokers: usize, replication: u16) -> String {
    let plural = if brokers == 1 { "" } else { "s" };
    if brokers >= usize::from(replication) {
        // Some of them take no replicas at the moment.
        return format!(
            "the cluster has {brokers} broker{plural} and does not place {replication} replicas on them now \
             (kafka.replication): look at its brokers, or try again"
        );
    }
    format!(
        "the cluster has {brokers} broker{plural}, kafka.replication is {replication}: set it to {brokers}, or add brokers"
    )
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_replicas_than_brokers_are_refused_with_both_numbers() {
        let told = "the cluster has 1 broker, kafka.replication is 3: set it to 1, or add brokers";
        assert_eq!(too_few(1, 3), told);
        assert!(too_few(2, 3).starts_with("the cluster has 2 brokers, "));
        assert!(too_few(3, 3).contains("does not place 3 replicas"));
    }
}
