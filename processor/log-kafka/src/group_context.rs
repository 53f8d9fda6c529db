//! What the partition groups and their log share: clients, tables, and the restores through them.

use std::sync::Arc;

use bytes::Bytes;
use everlog_log::{Error, Offset, PartitionId, PerTopic, Restored, Topic, Visit};

use crate::client::consumer::TopicEnds;
use crate::control::control_topic::ControlTopic;
use crate::errors::{corrupt, refused};
use crate::journal::append::Journal;
use crate::options::Options;
use crate::outputs::coordinator_wakeup::CoordinatorWakeup;
use crate::outputs::fence_table::{FenceStatus, FenceTable};
use crate::restore::committed::{Committed, VisitAt, after};
use crate::stats::KafkaCounters;

/// Shared by all partition groups of a log.
pub(crate) struct GroupContext {
    pub(crate) options: Options,
    pub(crate) incarnation: [u8; 16],
    pub(crate) topics: Arc<PerTopic<String>>,
    pub(crate) table: FenceTable,
    pub(crate) ends: Arc<TopicEnds>,
    pub(crate) committed: Committed,
    pub(crate) control: ControlTopic,
    pub(crate) journal: Journal,
    pub(crate) counters: Arc<KafkaCounters>,
    pub(crate) rouse: CoordinatorWakeup,
}

impl GroupContext {
    /// The end of the journal, at least up to an applied offset; asks a broker only if no append has shown it.
    pub(crate) fn journal_end(&self, partition: PartitionId, wanted: Offset) -> Result<Offset, Error> {
        let seen = self.journal.seen_end(partition);
        if wanted <= seen {
            return Ok(seen);
        }
        let topic = self.options.topic("journal");
        let range = self.ends.reaching(&topic, partition as i32, wanted)?;
        self.journal.saw_end(partition, range.end);
        Ok(range.end)
    }

    /// See `Log::restore`.
    pub(crate) fn restore(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        let restored = self.visit(topic, partition, from, &mut |_, key, value| visit(key, value))?;
        self.restored(topic, partition, restored.next);
        Ok(restored)
    }

    /// The same with the rows' offsets; nothing counts as restored yet.
    pub(crate) fn visit(
        &self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
        visit: VisitAt<'_>,
    ) -> Result<Restored, Error> {
        if !topic.is_compacted() {
            return Err(refused(format!("{topic:?} is append-only: it is read, not restored")));
        }
        let reached = self.table.of(partition).reached[topic];
        self.committed.restore(&self.topics[topic], partition, from, reached, visit)
    }

    /// Up to where a restore goes that begins now.
    pub(crate) fn restored_to(&self, topic: Topic, partition: PartitionId) -> Result<Offset, Error> {
        let reached = self.table.of(partition).reached[topic];
        Ok(self.ends.committed_to(&self.topics[topic], partition as i32, after(reached))?.end)
    }

    /// The rows below an offset are restored.
    pub(crate) fn restored(&self, topic: Topic, partition: PartitionId, next: Offset) {
        let mut owned = self.table.of(partition);
        let mark = &mut owned.marks[topic];
        *mark = next.max(*mark);
    }

    /// The last committed position: from memory where this log alone can commit, else from the changelog.
    pub(crate) fn position(&self, partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error> {
        let reached = {
            let owned = self.table.of(partition);
            if owned.standing == FenceStatus::Good {
                return Ok(owned.position.clone());
            }
            owned.reached[Topic::Changelog]
        };
        self.read_position(partition, reached)
    }

    pub(crate) fn read_position(
        &self,
        partition: PartitionId,
        reached: Offset,
    ) -> Result<Option<(Offset, Bytes)>, Error> {
        let Some(found) = self.committed.last(partition, reached)?.position else { return Ok(None) };
        if found.incarnation != self.incarnation {
            let detail = "its position row belongs to topics that were made before these";
            return Err(corrupt(&self.topics[Topic::Changelog], partition as i32, detail));
        }
        Ok(Some((found.applied, found.row)))
    }
}

/// The topics' names in the order of their numbers.
pub(crate) fn topic_names(options: &Options) -> Arc<PerTopic<String>> {
    Arc::new(PerTopic::new(|topic| options.topic(topic.name())))
}
