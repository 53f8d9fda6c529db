//! Retention of public commands: a record is deleted once the reading group has committed past it and it is old enough.
//!
//! No record is deleted by its age alone.

use everlog_log::{Error, Offset, PartitionId};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset as At, TopicPartitionList};

use crate::client::consumer::{FOLLOW_WAIT, range};
use crate::client::librdkafka;
use crate::client::librdkafka::Live;
use crate::client::log_lines::ClientLog;
use crate::errors::{io, missing};
use crate::options::Options;
use crate::permissions::reads;
use crate::topic_id;
use crate::topics::admin::Admin;

/// Trims the topic `commands`.
pub struct CommandsRetention {
    options: Options,
    admin: Admin,
    /// A client with the group's name that never joins it.
    consumer: Live<BaseConsumer<ClientLog>>,
}

impl CommandsRetention {
    /// Connects to the brokers.
    ///
    /// # Errors
    /// `Refused`: the settings are wrong.
    pub fn open(options: &Options) -> Result<Self, Error> {
        options.validate()?;
        let consumer =
            options.member("ingress", FOLLOW_WAIT).create_with_context(ClientLog::new("commands-keep"));
        let consumer = consumer.map_err(|error| io("a client of the commands' group", &error))?;
        Ok(CommandsRetention { admin: Admin::open(options)?, options: options.clone(), consumer })
    }

    /// Deletes what the group has read and what was produced before `before_ms`, in ms since 1970-01-01 UTC.
    ///
    /// # Errors
    /// `Refused`: there is no such topic; `Io`: no broker answers.
    pub fn trim(&self, before_ms: i64) -> Result<(), Error> {
        let (topic, within) = (self.options.topic("commands"), self.options.call_timeout());
        let id = librdkafka::topic_id(&self.consumer, &topic, within)?.ok_or_else(|| missing(&topic))?;
        let partitions = self.partitions(&topic)?;
        let list = |at: At| {
            let mut list = TopicPartitionList::new();
            let added =
                partitions.iter().try_for_each(|it| list.add_partition_offset(&topic, *it as i32, at));
            added.map(|()| list).map_err(|error| io("the partitions of the commands", &error))
        };
        let committed = self.consumer.committed_offsets(list(At::Invalid)?, within);
        let group = self.options.group("ingress");
        let needs = reads(&topic, &group);
        let fault = |error| self.consumer.principal().fault("what the group has committed", &error, &needs);
        let committed = committed.map_err(fault)?;
        let young = self.consumer.offsets_for_times(list(At::Offset(before_ms))?, within);
        let young = young.map_err(|error| io("which commands are young", &error))?;
        for partition in partitions {
            let read = committed.find_partition(&topic, partition as i32);
            // Offsets of a topic of the same name that was there before mean nothing, nor do those that somebody set by a tool:
            // what they pass over was not read.
            let is_of_it = |text: &str| topic_id::parse(text).is_some_and(|other| other == id);
            let read = read.filter(|read| read.error().is_ok() && is_of_it(read.metadata()));
            let Some(read) = read.and_then(|read| number(read.offset())) else { continue };
            let young = young.find_partition(&topic, partition as i32);
            let below = match young.filter(|young| young.error().is_ok()).map(|young| young.offset()) {
                Some(At::End) => read,
                Some(at) => number(at).unwrap_or(0).min(read),
                None => continue,
            };
            self.delete_below(&topic, partition, below)?;
        }
        Ok(())
    }

    fn partitions(&self, topic: &str) -> Result<Vec<PartitionId>, Error> {
        let metadata = self.consumer.fetch_metadata(None, self.options.call_timeout());
        let metadata = metadata.map_err(|error| io("no broker answers", &error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let found = found.ok_or_else(|| missing(topic))?.partitions();
        Ok(found.iter().filter_map(|partition| PartitionId::try_from(partition.id()).ok()).collect())
    }

    fn delete_below(&self, topic: &str, partition: PartitionId, below: Offset) -> Result<(), Error> {
        let there = range(&self.consumer, topic, partition as i32, self.options.call_timeout())?;
        if there.start >= below {
            return Ok(());
        }
        self.admin.delete_below(topic, partition as i32, below)
    }
}

fn number(at: At) -> Option<Offset> {
    match at {
        At::Offset(offset) => Offset::try_from(offset).ok(),
        At::Beginning | At::End | At::Stored | At::Invalid | At::OffsetTail(_) => None,
    }
}
