//! The log on Kafka: journals by idempotent producers, outputs in transactions, rows in compacted topics.
//!
//! A journal is never written in a transaction, so its offsets have no gaps and its records are visible once they are
//! replicated. One transactional producer commits the outputs of a partition group. A new owner initialises its
//! transactional id, which fences the previous one. No fence waits for a consumer group.

mod client;
pub mod commands;
pub mod control;
mod errors;
mod group_context;
mod journal;
mod options;
mod outputs;
mod permissions;
mod record_format;
mod restore;
mod stats;
pub mod topic_id;
pub mod topics;

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::{
    AppendDone, Commit, CommitDone, Error, Fence, Log, Marks, Offset, PartitionId, RestoreChunkDone,
    Restored, Tail, Topic, TopicEntry, Visit, Wake, bucket_owner,
};

use crate::client::consumer::TopicEnds;
use crate::client::reachability::BrokerReachability;
use crate::control::control_topic::ControlTopic;
use crate::errors::{no_such_partition, refused};
use crate::group_context::GroupContext;
use crate::journal::append::Journal;
use crate::journal::follow::Tails;
use crate::journal::read::JournalReader;
use crate::journal::truncation::Truncation;
use crate::outputs::fence_table::FenceTable;
use crate::outputs::group::PartitionGroup;
use crate::restore::committed::Committed;
use crate::restore::stream::{RestoreRequest, RestoreStream};
use crate::stats::KafkaCounters;
use crate::topics::admin::Admin;
use crate::topics::permitted::TopicsUse;

pub use crate::client::properties::ClientProperties;
pub use crate::client::properties_file::PropertiesFile;
pub use crate::client::statistics::{Traffic, Wait};
pub use crate::options::{Options, PARTITIONS_MAX};
pub use crate::permissions::AclDenial;
pub use crate::restore::past_commit::PastCommit;
pub use crate::stats::{CYCLE_BOUNDS_US, Stats};

/// A request without an answer for so long is reported. It is longer than a killed broker leaves a partition without a
/// leader, which is `broker.session.timeout.ms`, 9 s.
const TROUBLE_AFTER: Duration = Duration::from_secs(10);
/// Brokers that have not answered for so long are not waited for. It allows for two questions to one broker that hangs.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(5);

/// The log on Kafka. Dropping it writes what waits, within 5 s, then closes.
pub struct Kafka {
    // The threads end before what they use.
    slices: RestoreStream,
    groups: Vec<OnceLock<PartitionGroup>>,
    opening: parking_lot::Mutex<()>,
    rehearsing: parking_lot::Mutex<()>,
    context: Arc<GroupContext>,
    reachability: Arc<BrokerReachability>,
    admin: Arc<Admin>,
    trims: Truncation,
    reader: JournalReader,
    tails: parking_lot::Mutex<Option<Tails>>,
    partitions: u32,
    group_partitions: u32,
    /// How long tombstones stay at least; as it was set when the log was opened.
    tombstones_ms: Option<i64>,
    /// How long compaction leaves rows alone; as it was set when the log was opened.
    compaction_lag_ms: i64,
}

impl Kafka {
    /// Opens the log whose topics were made by `crate::topics::create`.
    ///
    /// # Errors
    /// `Refused`: the settings, or topics that are missing or would lose data, with the way out; `Io`: no broker
    /// answers within `call_timeout_ms`.
    pub fn open(options: Options) -> Result<Self, Error> {
        options.validate()?;
        let admin = Arc::new(Admin::open(&options)?);
        let denials = admin.denials(&options, TopicsUse::Node)?;
        if !denials.is_empty() {
            return Err(AclDenial::all(denials));
        }
        let control_topic = options.topic("control");
        let wanted = crate::topics::wanted(&options, 1);
        let there = admin.topics(&wanted)?;
        if !there.contains_key(&control_topic) {
            return Err(refused(format!("there is no topic {control_topic}: make the topics first")));
        }
        let ends = Arc::new(TopicEnds::open(&options)?);
        let control = ControlTopic::open(&options, Arc::clone(&ends))?;
        let Some(fixed) = control.incarnation()? else {
            return Err(refused(format!(
                "{control_topic} does not say how the topics were made: make them first"
            )));
        };
        let differences = crate::topics::compare(&options, &admin, fixed.partitions, &control.topic_ids()?)?;
        let refusals: Vec<_> = differences.iter().filter(|d| d.refuses).map(ToString::to_string).collect();
        if !refusals.is_empty() {
            return Err(refused(format!("the topics cannot be served on:\n{}", refusals.join("\n"))));
        }
        control.warm()?;
        let counters = Arc::new(KafkaCounters::default());
        let context = Arc::new(GroupContext {
            incarnation: fixed.id,
            topics: crate::group_context::topic_names(&options),
            table: FenceTable::new(fixed.partitions),
            committed: Committed::new(&options, Arc::clone(&ends)),
            journal: Journal::open(&options, fixed.partitions, Arc::clone(&counters))?,
            ends,
            control,
            counters,
            rouse: crate::outputs::coordinator_wakeup::CoordinatorWakeup::default(),
            options,
        });
        let trims = Truncation::open(&admin, context.options.topic("journal"))?;
        let groups = fixed.partitions.div_ceil(fixed.group_partitions);
        Ok(Kafka {
            slices: RestoreStream::open(Arc::clone(&context))?,
            tombstones_ms: crate::topics::tombstones_ms(&there, &context.options),
            compaction_lag_ms: crate::topics::compaction_lag_ms(&there, &context.options),
            groups: (0..groups).map(|_| OnceLock::new()).collect(),
            opening: parking_lot::Mutex::default(),
            rehearsing: parking_lot::Mutex::default(),
            reader: JournalReader::new(&context.options),
            reachability: BrokerReachability::watch(&context.options, &context.ends)?,
            tails: parking_lot::Mutex::default(),
            context,
            admin,
            trims,
            partitions: fixed.partitions,
            group_partitions: fixed.group_partitions,
        })
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.context.counters.read()
    }

    /// What its clients have sent and received so far; nothing unless `statistics_interval_ms` is set.
    pub fn traffic(&self) -> Traffic {
        self.context.counters.traffic.lock().clone()
    }

    /// Why nothing can be written at the moment, if the brokers have left that unanswered for a while.
    pub fn trouble(&self) -> Option<String> {
        let now = Instant::now();
        let lasts =
            |span: Option<Duration>| span.filter(|span| *span >= TROUBLE_AFTER).map(|span| span.as_secs());
        let servers = &self.context.options.bootstrap_servers;
        let silent = lasts(self.reachability.silent_for(now));
        let silent = silent.map(|seconds| format!("no broker of {servers} answers, for {seconds} s"));
        silent.or_else(|| {
            let (partition, span) = self.context.journal.unacknowledged_for(now)?;
            let topic = self.context.options.topic("journal");
            let seconds = lasts(Some(span))?;
            Some(format!("the brokers acknowledge nothing in {topic}-{partition}, for {seconds} s"))
        })
    }

    /// True where no broker has answered for long enough that nobody should wait for an answer.
    pub fn is_unreachable(&self) -> bool {
        self.reachability.silent_for(Instant::now()).is_some_and(|span| span >= UNREACHABLE_AFTER)
    }

    /// The partitions that share a transactional producer with this one: they are fenced together.
    pub fn group_of(&self, partition: PartitionId) -> Range<PartitionId> {
        let first = partition / self.group_partitions * self.group_partitions;
        first..(first + self.group_partitions).min(self.partitions)
    }

    /// Tells all rows of `control` and then what is written there, on a thread of its own.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn follow_control(
        &self,
        tell: impl FnMut(crate::control::follower::ControlChange<'_>) + Send + 'static,
    ) -> Result<crate::control::follower::Follow, Error> {
        crate::control::follower::Follow::start(&self.context.options, tell)
    }

    /// The group of a partition is about to be fenced: what taking it needs is made ready, without taking anything from its owner.
    /// Blocks.
    pub fn expect(&self, partition: PartitionId) {
        if let Ok(group) = self.group(partition) {
            group.expect();
        }
        // Its partitions are taken side by side, each by clients of its own, which take their time to connect; the next group has
        // the same ones.
        let _turn = self.rehearsing.lock();
        std::thread::scope(|threads| {
            for partition in self.group_of(partition) {
                threads.spawn(move || {
                    if let Err(error) = self.rehearse(partition) {
                        tracing::debug!(partition, %error, "a partition cannot be read");
                    }
                });
            }
        });
    }

    /// Reads what is read first when a partition is taken.
    fn rehearse(&self, partition: PartitionId) -> Result<(), Error> {
        self.context.committed.rehearse(&self.context.topics, partition)?;
        let bounds = self.bounds(partition)?;
        if !bounds.is_empty() {
            self.read(partition, bounds.end - 1, 1)?;
        }
        Ok(())
    }

    /// The next committed offset of the changelog of each partition; every commit moves it. None where brokers do not answer
    /// at once.
    pub fn changelog_ends(&self, partitions: Range<PartitionId>) -> Vec<Option<Offset>> {
        let topic = self.context.topics[Topic::Changelog].as_str();
        let places: Vec<_> = partitions.map(|partition| (topic, partition as i32, 0)).collect();
        self.context.ends.committed(&places)
    }

    /// This process gives up all partitions of a group: nothing of theirs is kept open, soon.
    pub fn rest(&self, partition: PartitionId) {
        let number = partition / self.group_partitions;
        if let Some(group) = self.groups.get(number as usize).and_then(OnceLock::get) {
            group.rest();
        }
    }

    /// How many partitions share a transactional producer.
    pub fn group_partitions(&self) -> u32 {
        self.group_partitions
    }

    fn known(&self, partition: PartitionId) -> Result<(), Error> {
        if partition < self.partitions { Ok(()) } else { Err(no_such_partition(partition, self.partitions)) }
    }

    /// The group of a partition; its thread is started by the first fence.
    fn group(&self, partition: PartitionId) -> Result<&PartitionGroup, Error> {
        let number = partition / self.group_partitions;
        let slot = &self.groups[number as usize];
        let _turn = self.opening.lock();
        if slot.get().is_none() {
            let group = PartitionGroup::open(number, self.group_of(partition), Arc::clone(&self.context))?;
            // Nobody else sets it: the turn is ours.
            let _ = slot.set(group);
        }
        slot.get().ok_or(Error::Closed)
    }

    /// What is wrong with a commit by itself.
    fn faults(&self, commit: &Commit) -> Result<(), Error> {
        self.known(commit.partition)?;
        let max = self.context.options.record_bytes_max;
        for output in &commit.outputs {
            let size_bytes = output.key.len() + output.value.as_ref().map_or(0, Bytes::len);
            if size_bytes > max {
                return Err(refused(format!("an output of {size_bytes} bytes, record_bytes_max is {max}")));
            }
            if !output.topic.is_compacted() {
                if output.value.is_none() {
                    return Err(refused(format!("a tombstone in {:?}", output.topic)));
                }
                continue;
            }
            let Some((bucket, _)) = output.key.split_first_chunk() else {
                return Err(refused(format!("a key of {:?} without a bucket", output.topic)));
            };
            let bucket = u16::from_be_bytes(*bucket);
            let owned = u32::from(bucket) < everlog_log::BUCKETS
                && bucket_owner(bucket, self.partitions) == commit.partition;
            if !owned {
                return Err(refused(format!("bucket {bucket} is not of partition {}", commit.partition)));
            }
        }
        if commit.position.len() > max {
            return Err(refused(format!("a position row of {} bytes", commit.position.len())));
        }
        Ok(())
    }

    fn append_only(&self, topic: Topic, partition: PartitionId) -> Result<(&str, Offset), Error> {
        self.known(partition)?;
        if topic.is_compacted() {
            return Err(refused(format!(
                "{topic:?} is compacted: its rows are restored, not read by offset"
            )));
        }
        let reached = self.context.table.of(partition).reached[topic];
        Ok((&self.context.topics[topic], reached))
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // Commits that wait need the journals' ends; the threads end one after the other.
        self.groups.clear();
    }
}

impl Log for Kafka {
    fn incarnation(&self) -> [u8; 16] {
        self.context.incarnation
    }

    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn fence(&self, partition: PartitionId) -> Result<Fence, Error> {
        self.known(partition)?;
        self.group(partition)?.fence(partition)
    }

    fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone) {
        self.context.journal.append(partition, records, done);
    }

    fn read(
        &self,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<everlog_log::Record>, Error> {
        self.known(partition)?;
        let trimmed = self.context.table.of(partition).trimmed;
        if from < trimmed {
            let Range { start, end } = self.bounds(partition)?;
            return Err(Error::OutOfRange { partition, wanted: from, start, end });
        }
        self.reader.read(&self.context.ends, partition, from, bytes_max)
    }

    fn follow(
        &self,
        partition: PartitionId,
        from: Offset,
        wake: Wake,
    ) -> Result<Option<Box<dyn Tail>>, Error> {
        self.known(partition)?;
        let mut tails = self.tails.lock();
        if tails.is_none() {
            *tails = Some(Tails::open(&self.context)?);
        }
        match tails.as_ref() {
            Some(tails) => tails.follow(partition, from, wake).map(Some),
            None => Err(Error::Closed),
        }
    }

    fn bounds(&self, partition: PartitionId) -> Result<Range<Offset>, Error> {
        self.known(partition)?;
        let topic = self.context.options.topic("journal");
        let seen = self.context.journal.seen_end(partition);
        let range = self.context.ends.reaching(&topic, partition as i32, seen)?;
        self.context.journal.saw_end(partition, range.end);
        // Records that were truncated here are gone, even if no broker has deleted them yet.
        Ok(range.start.max(self.context.table.of(partition).trimmed)..range.end)
    }

    fn commit(&self, commit: Commit, done: CommitDone) {
        match self.faults(&commit).and_then(|()| self.group(commit.partition)) {
            Ok(group) => group.commit(commit, done),
            Err(error) => done(Err(error)),
        }
    }

    fn committed_with(&self, partition: PartitionId) -> Range<PartitionId> {
        self.group_of(partition)
    }

    fn marks(&self, partition: PartitionId) -> Result<Marks, Error> {
        self.known(partition)?;
        let marks = self.context.table.of(partition).marks;
        Ok(Marks {
            changelog: marks[Topic::Changelog],
            history: marks[Topic::History],
            timers: marks[Topic::Timers],
        })
    }

    fn position(&self, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error> {
        self.known(partition)?;
        self.context.position(partition)
    }

    fn restore(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        self.known(partition)?;
        self.context.restore(topic, partition, from, visit)
    }

    fn restore_chunk(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
        done: RestoreChunkDone,
    ) {
        match self.known(partition) {
            Ok(()) => self.slices.ask(RestoreRequest { topic, partition, from, bytes_max, done }),
            Err(error) => done(Err(error)),
        }
    }

    fn tombstones_ms(&self) -> Option<i64> {
        self.tombstones_ms
    }

    fn trim(&self, partition: PartitionId, below: Offset) -> Result<(), Error> {
        self.known(partition)?;
        let applied = self.position(partition)?.map_or(0, |(applied, _)| applied);
        if below > applied {
            let start = self.context.table.of(partition).trimmed;
            return Err(Error::OutOfRange { partition, wanted: below, start, end: applied });
        }
        let mut owned = self.context.table.of(partition);
        if below > owned.trimmed {
            owned.trimmed = below;
            self.trims.want(partition, below);
        }
        Ok(())
    }

    fn topic_read(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<TopicEntry>, Error> {
        let (name, reached) = self.append_only(topic, partition)?;
        self.context.committed.entries(name, partition, from, bytes_max, reached)
    }

    fn topic_trim(&self, topic: Topic, partition: PartitionId, below: Offset) -> Result<(), Error> {
        let (name, reached) = self.append_only(topic, partition)?;
        let range = self.context.ends.committed_to(
            name,
            partition as i32,
            crate::restore::committed::after(reached),
        )?;
        if below > range.end {
            let (start, end) = (range.start, range.end);
            return Err(Error::OutOfRange { partition, wanted: below, start, end });
        }
        if below <= range.start {
            return Ok(());
        }
        self.admin.delete_below(name, partition as i32, below)
    }

    fn control_put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        self.context.control.put(key, value)
    }

    fn control_scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.context.control.scan(visit)
    }
}
