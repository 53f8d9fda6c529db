//! Inspects a log on Kafka, read-only: it fences, writes and commits nothing.

use std::ops::Range;
use std::sync::Arc;

use everlog_log::{Error, Offset, PartitionId, Topic};
use rdkafka::consumer::BaseConsumer;
use rdkafka::message::{Message, Timestamp};
use rdkafka::topic_partition_list::{Offset as At, TopicPartitionList};

use crate::client::consumer::{TopicEnds, consumer, scan};
use crate::client::group_offsets::committed_offsets;
use crate::client::librdkafka;
use crate::client::librdkafka::Live;
use crate::client::log_lines::ClientLog;
use crate::control::control_topic::ControlTopic;
use crate::errors::{io, missing, refused};
use crate::options::{Isolation, Options};
use crate::permissions::{AclDenial, AclOperation, AclResource};
use crate::record_format::PositionRow;
use crate::topics::Difference;
use crate::topics::admin::Admin;
use crate::topics::permitted::TopicsUse;
use crate::{record_format, topic_id, topics};

/// Offsets that are first searched for the last position of a partition; each commit ends with one.
const LOOK_BACK: Offset = 4_096;

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// What the brokers deny; then nothing else was looked at.
    pub denials: Vec<AclDenial>,
    /// What differs from how the topics must be.
    pub differences: Vec<Difference>,
    /// The journals, as far as the topics are there.
    pub journals: Vec<JournalReport>,
    /// Transactions that are open.
    pub open: Vec<OpenTransaction>,
    /// The public commands.
    pub commands: Vec<CommandsReport>,
}

/// A journal, and how far it is applied.
#[derive(Clone, Debug, Default)]
pub struct JournalReport {
    /// The partition.
    pub partition: PartitionId,
    /// The first offset that is there, and the next to be written.
    pub bounds: Range<Offset>,
    /// The last position that was committed, if there is one.
    pub position: Option<AppliedPosition>,
    /// When the last record was appended, by the brokers' clock, in ms since 1970-01-01 UTC.
    pub last_ms: Option<i64>,
}

/// A position.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppliedPosition {
    /// The next offset of the journal.
    pub next: Offset,
    /// It was committed to these topics, and not to former ones of the same names.
    pub is_of_these_topics: bool,
    /// When it was committed, by the clock of the node.
    pub committed_ms: Option<i64>,
    /// When the record before it was appended, by the brokers' clock.
    pub appended_ms: Option<i64>,
}

/// A partition in which a transaction is open: who reads committed records stops there.
#[derive(Clone, Debug)]
pub struct OpenTransaction {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionId,
    /// Where it begins.
    pub from: Offset,
    /// Records from there to the end.
    pub behind: u64,
    /// When its first record was made or appended, in ms since 1970-01-01 UTC.
    pub since_ms: Option<i64>,
}

/// A partition of the public commands.
#[derive(Clone, Debug)]
pub struct CommandsReport {
    /// The partition.
    pub partition: PartitionId,
    /// The first offset that is there, and the end of what is committed.
    pub bounds: Range<Offset>,
    /// The next offset that the group is to read, and whether it was committed to this topic.
    pub committed: Option<(Offset, bool)>,
}

/// Looks at everything.
///
/// # Errors
/// `Io`: no broker answers, or it does not let us look; `Refused`: the settings are wrong.
pub fn inspect(options: &Options) -> Result<Inspection, Error> {
    options.validate()?;
    let denials = Admin::open(options)?.denials(options, TopicsUse::Inspect)?;
    if !denials.is_empty() {
        return Ok(Inspection { denials, ..Inspection::default() });
    }
    match look(options) {
        Err(Error::Denied { detail, fix }) => {
            let denials = vec![AclDenial { denied: detail, fix }];
            Ok(Inspection { denials, ..Inspection::default() })
        }
        looked => looked,
    }
}

fn look(options: &Options) -> Result<Inspection, Error> {
    let differences = topics::check(options)?;
    let is_missing = |name: &str| {
        let name = options.topic(name);
        differences.iter().any(|difference| difference.setting == "topic" && difference.topic == name)
    };
    let examiner = Examiner::open(options)?;
    let (mut journals, mut open, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    if !["control", "journal", "changelog"].iter().any(|name| is_missing(name)) {
        journals = examiner.journals()?;
    }
    for name in Topic::all().map(Topic::name).chain(["commands"]) {
        if !is_missing(name) {
            open.extend(examiner.open_transactions(&options.topic(name))?);
        }
    }
    if !is_missing("commands") {
        commands = examiner.commands()?;
    }
    Ok(Inspection { denials: Vec::new(), differences, journals, open, commands })
}

struct Examiner<'a> {
    options: &'a Options,
    admin: Admin,
    ends: Arc<TopicEnds>,
    uncommitted: Live<BaseConsumer<ClientLog>>,
    committed: Live<BaseConsumer<ClientLog>>,
}

/// Gets key, value and stamp in ms of a record; false ends it.
type RecordVisit<'a> = dyn FnMut(&[u8], Option<&[u8]>, Option<i64>) -> bool + 'a;

impl<'a> Examiner<'a> {
    fn open(options: &'a Options) -> Result<Self, Error> {
        Ok(Self {
            options,
            admin: Admin::open(options)?,
            ends: Arc::new(TopicEnds::open(options)?),
            uncommitted: consumer(options, "examiner", Isolation::Uncommitted)?,
            committed: consumer(options, "examiner", Isolation::Committed)?,
        })
    }

    fn partitions(&self, topic: &str) -> Result<u32, Error> {
        let partitions = self.admin.partitions(topic)?;
        if partitions == 0 { Err(missing(topic)) } else { Ok(partitions) }
    }

    fn journals(&self) -> Result<Vec<JournalReport>, Error> {
        let topic = self.options.topic("journal");
        let fixed = ControlTopic::open(self.options, Arc::clone(&self.ends))?.incarnation()?;
        let fixed =
            fixed.ok_or_else(|| refused("the control topic does not say how the topics were made"))?;
        let journal = |partition| {
            let bounds = self.ends.range(&topic, partition as i32, Isolation::Uncommitted)?;
            let position = self.position(partition, fixed.id, &bounds)?;
            let last_ms = self.stamp(&topic, partition, bounds.end.saturating_sub(1)..bounds.end)?;
            Ok(JournalReport { partition, bounds, position, last_ms })
        };
        (0..fixed.partitions).map(journal).collect()
    }

    /// The last position that was committed.
    fn position(
        &self,
        partition: PartitionId,
        incarnation: [u8; 16],
        journal: &Range<Offset>,
    ) -> Result<Option<AppliedPosition>, Error> {
        let topic = self.options.topic("changelog");
        let range = self.ends.range(&topic, partition as i32, Isolation::Committed)?;
        let (key, mut look_back) = (record_format::position_key(partition), LOOK_BACK);
        loop {
            let from = range.start.max(range.end.saturating_sub(look_back));
            let mut last: Option<(PositionRow, Option<i64>)> = None;
            self.scan(
                &self.committed,
                &topic,
                partition,
                from..range.end,
                &mut |key_here, value, stamp_ms| {
                    if key_here == key {
                        last = value.and_then(PositionRow::decode).map(|position| (position, stamp_ms));
                    }
                    true
                },
            )?;
            if let Some((position, committed_ms)) = last {
                let next = position.applied;
                let before = next.saturating_sub(1).max(journal.start)..next.min(journal.end);
                let appended_ms = self.stamp(&self.options.topic("journal"), partition, before)?;
                let is_of_these_topics = position.incarnation == incarnation;
                return Ok(Some(AppliedPosition { next, is_of_these_topics, committed_ms, appended_ms }));
            }
            if from == range.start {
                return Ok(None);
            }
            look_back = look_back.saturating_mul(16);
        }
    }

    /// When the first record of a range was appended; none where it has gone meanwhile: journals are trimmed as they are
    /// looked at.
    fn stamp(&self, topic: &str, partition: PartitionId, range: Range<Offset>) -> Result<Option<i64>, Error> {
        let (from, mut found) = (range.start, None);
        let looked = self.scan(&self.uncommitted, topic, partition, range, &mut |_, _, stamp_ms| {
            found = stamp_ms;
            false
        });
        if let Err(error) = looked {
            let begins = self.ends.range(topic, partition as i32, Isolation::Uncommitted)?.start;
            return if begins > from { Ok(None) } else { Err(error) };
        }
        Ok(found)
    }

    fn scan(
        &self,
        consumer: &Live<BaseConsumer<ClientLog>>,
        topic: &str,
        partition: PartitionId,
        range: Range<Offset>,
        look: &mut RecordVisit<'_>,
    ) -> Result<(), Error> {
        scan(consumer, topic, partition as i32, range, self.options.call_timeout(), &mut |_, message| {
            let stamp_ms = match message.timestamp() {
                Timestamp::CreateTime(ms) | Timestamp::LogAppendTime(ms) => Some(ms),
                Timestamp::NotAvailable => None,
            };
            Ok(look(message.key().unwrap_or_default(), message.payload(), stamp_ms))
        })
    }

    fn open_transactions(&self, topic: &str) -> Result<Vec<OpenTransaction>, Error> {
        let mut found = Vec::new();
        for partition in 0..self.partitions(topic)? {
            // In this order: what is committed in between is not taken for open.
            let all = self.ends.range(topic, partition as i32, Isolation::Uncommitted)?;
            let stable = self.ends.range(topic, partition as i32, Isolation::Committed)?;
            if stable.end < all.end {
                let since_ms = self.stamp(topic, partition, stable.end..all.end)?;
                let behind = all.end - stable.end;
                found.push(OpenTransaction {
                    topic: topic.to_owned(),
                    partition,
                    from: stable.end,
                    behind,
                    since_ms,
                });
            }
        }
        Ok(found)
    }

    fn commands(&self) -> Result<Vec<CommandsReport>, Error> {
        let topic = self.options.topic("commands");
        let timeout = self.options.call_timeout();
        let member: Live<BaseConsumer<ClientLog>> = self
            .options
            .member("ingress", std::time::Duration::from_millis(100))
            .create_with_context(ClientLog::new("examiner"))
            .map_err(|error| io("a consumer", &error))?;
        let id = librdkafka::topic_id(&member, &topic, timeout)?.ok_or_else(|| missing(&topic))?;
        let mut list = TopicPartitionList::new();
        let partitions = self.partitions(&topic)?;
        for partition in 0..partitions {
            list.add_partition(&topic, partition as i32);
        }
        let committed = committed_offsets(&member, list, timeout);
        let group = self.options.group("ingress");
        let needs = [
            (AclOperation::Describe, AclResource::Group(&group)),
            (AclOperation::Describe, AclResource::Topic(&topic)),
        ];
        let what = "what the group of the ingress has committed";
        let committed = committed.map_err(|error| member.principal().fault(what, &error, &needs))?;
        let of = |partition: PartitionId| {
            let bounds = self.ends.range(&topic, partition as i32, Isolation::Committed)?;
            let element = committed.find_partition(&topic, partition as i32);
            let committed = element.and_then(|element| match element.offset() {
                // An offset set by a tool counts as none: the reader begins at the start.
                At::Offset(next) if next >= 0 && !element.metadata().is_empty() => {
                    Some((next as Offset, topic_id::parse(element.metadata()) == Some(id)))
                }
                At::Offset(_) | At::Beginning | At::End | At::Stored | At::Invalid | At::OffsetTail(_) => {
                    None
                }
            });
            Ok(CommandsReport { partition, bounds, committed })
        };
        (0..partitions).map(of).collect()
    }
}
