//! The rows of a commit that is not the last one any more: what a reader sees of a log while its nodes serve it.
//!
//! A row that a later commit has changed is there as long as compaction leaves it.

use bytes::Bytes;
use everlog_log::{Error, Log, Offset, PartitionId, Restored, Topic, Visit};

use crate::Kafka;
use crate::errors::{corrupt, refused};
use crate::record_format::CommitId;

/// A commit of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCommit {
    /// The partition.
    pub partition: PartitionId,
    /// The next offset to apply.
    pub applied: Offset,
    /// The position row.
    pub position: Bytes,
    id: CommitId,
}

impl Kafka {
    /// The last commit of a partition; none where nothing was ever committed. Fences nobody.
    ///
    /// # Errors
    /// As [`Log::position`].
    pub fn last_commit(&self, partition: PartitionId) -> Result<Option<PastCommit>, Error> {
        let topic = &self.context.topics[Topic::Changelog];
        if partition >= self.partitions() {
            return Err(refused(format!("there is no partition {partition}")));
        }
        let last = self.context.committed.last(partition, 0)?;
        let Some(found) = last.position else { return Ok(None) };
        if found.incarnation != self.incarnation() {
            let detail = "its position row belongs to topics that were made before these";
            return Err(corrupt(topic, partition as i32, detail));
        }
        let id = last.commit.ok_or_else(|| {
            corrupt(topic, partition as i32, "its position row does not say which commit it is of")
        })?;
        Ok(Some(PastCommit { partition, applied: found.applied, position: found.row, id }))
    }

    /// Visits what a compacted topic held after a commit, as [`Log::restore`] does; gives no position.
    ///
    /// # Errors
    /// As [`Log::restore`]; `Io`: a transaction stays open.
    pub fn restore_at(
        &self,
        commit: &PastCommit,
        topic: Topic,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        if !topic.is_compacted() {
            return Err(refused(format!("{topic:?} is append-only: it is read, not restored")));
        }
        let name = &self.context.topics[topic];
        self.context.committed.restore_at(name, commit.partition, from, commit.id, visit)
    }

    /// How long the topics of rows keep at least what a later commit has changed, in ms; as it was set when the log was
    /// opened.
    pub fn compaction_lag_ms(&self) -> i64 {
        self.compaction_lag_ms
    }
}
