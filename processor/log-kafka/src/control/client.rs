//! The topic `control` alone, for command line tools that read or write its rows.
//!
//! It checks no other topic and makes only the clients that this takes.

use std::sync::Arc;

use everlog_log::{Error, Offset, PartitionId};

use crate::client::consumer::TopicEnds;
use crate::client::visible_topics::exists;
use crate::control::control_topic::ControlTopic;
use crate::control::node_group;
use crate::errors::refused;
use crate::options::{Isolation, Options};
use crate::permissions::AclOperation;
use crate::record_format::Incarnation;

/// Reads and writes the rows of `control` without being a node.
pub struct ControlClient {
    control: ControlTopic,
    ends: Arc<TopicEnds>,
    options: Options,
    fixed: Incarnation,
}

impl ControlClient {
    /// Opens it.
    ///
    /// # Errors
    /// `Refused`: the settings are wrong, or the topics are not there; `Io`: no broker answers.
    pub fn open(options: Options) -> Result<Self, Error> {
        options.validate()?;
        let ends = Arc::new(TopicEnds::open(&options)?);
        let control = ControlTopic::open(&options, Arc::clone(&ends))?.plain();
        let topic = options.topic("control");
        let is_missing = || refused(format!("there is no topic {topic}: make the topics first"));
        // Without it, its end would be asked for until time is up.
        if !exists(ends.asker(), &topic, AclOperation::Read, options.call_timeout())? {
            return Err(is_missing());
        }
        let fixed = control.incarnation()?.ok_or_else(is_missing)?;
        Ok(Self { control, ends, options, fixed })
    }

    /// A row is to be written soon: its producer connects meanwhile.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn warm(&self) -> Result<(), Error> {
        self.control.warm()
    }

    /// Closes its clients, all at once: each waits for threads of its own, and one after the other they would take longer than
    /// what they were asked.
    pub fn close(self) {
        let Self { control, ends, .. } = self;
        let (reader, writer) = control.into_clients();
        let ends = Arc::into_inner(ends).map(TopicEnds::into_clients);
        std::thread::scope(|scope| {
            scope.spawn(|| drop(writer));
            scope.spawn(|| drop(reader));
            if let Some((uncommitted, committed)) = ends {
                scope.spawn(|| drop(uncommitted));
                scope.spawn(|| drop(committed));
            }
        });
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> u32 {
        self.fixed.partitions
    }

    /// How many partitions share a transactional producer, and so an owner.
    pub fn group_partitions(&self) -> u32 {
        self.fixed.group_partitions
    }

    /// Writes a row, or removes it; durable when it returns.
    ///
    /// # Errors
    /// As `Log::control_put`.
    pub fn put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        self.control.put(key, value)
    }

    /// Shows all rows as they are now.
    ///
    /// # Errors
    /// As `Log::control_scan`.
    pub fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.control.scan(visit)
    }

    /// The next offset of a journal.
    ///
    /// # Errors
    /// `Io`: the brokers do not say; `Denied`: they may not.
    pub fn journal_end(&self, partition: PartitionId) -> Result<Offset, Error> {
        let topic = self.options.topic("journal");
        let range = self.ends.range(&topic, partition as i32, Isolation::Uncommitted);
        let ends = range.map_err(|error| {
            // A topic that may not be described has no partitions, as it seems.
            let described =
                exists(self.ends.asker(), &topic, AclOperation::Describe, self.options.call_timeout());
            described.err().filter(|denied| matches!(denied, Error::Denied { .. })).unwrap_or(error)
        })?;
        Ok(ends.end)
    }

    /// The names of the nodes that the brokers take for alive: one for each process.
    ///
    /// # Errors
    /// `Io`: the brokers do not say; `Denied`: they may not.
    pub fn members(&self) -> Result<Vec<String>, Error> {
        node_group::live(self.ends.asker(), &self.options)
    }
}
