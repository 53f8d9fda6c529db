//! A partition of a log on Kafka as it was at a cut: the rows of a commit, and the records behind it up to the cut.
//!
//! It is read like any log. Nothing is written to Kafka: nobody is fenced, and what is committed stays in memory.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use everlog_log::{
    AppendDone, Commit, CommitDone, Error, Fence, Log, Marks, Offset, PartitionId, Record, Restored, Tail,
    Topic, TopicEntry, Visit, Wake,
};
use everlog_log_kafka::{Kafka, PastCommit};

use super::journal_copy::CopiedRecords;

/// One partition at a cut.
pub struct CutLog {
    log: Arc<Kafka>,
    commit: Option<PastCommit>,
    state: Mutex<CutState>,
}

struct CutState {
    records: CopiedRecords,
    /// What was committed here, behind the commit of the log.
    committed: Option<(Offset, Bytes)>,
}

impl CutLog {
    /// The partition of a commit; the records are those behind it.
    pub fn new(log: Arc<Kafka>, commit: Option<PastCommit>, records: CopiedRecords) -> Self {
        let committed = commit.as_ref().map(|commit| (commit.applied, commit.position.clone()));
        Self { log, commit, state: Mutex::new(CutState { records, committed }) }
    }

    /// True where there is no record between the commit and the cut.
    pub fn is_applied(&self) -> bool {
        let state = self.state();
        state.records.start >= state.records.end
    }

    /// The position at the cut, once it is reached, and the records.
    pub fn into_parts(self) -> (Option<Bytes>, CopiedRecords) {
        let CutState { records, committed } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (committed.map(|(_, position)| position), records)
    }

    fn state(&self) -> MutexGuard<'_, CutState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_only_read() -> Error {
    Error::Refused { detail: "a log is only read while it is exported".into() }
}

impl Log for CutLog {
    fn incarnation(&self) -> [u8; 16] {
        self.log.incarnation()
    }

    fn partitions(&self) -> u32 {
        self.log.partitions()
    }

    fn fence(&self, _partition: PartitionId) -> Result<Fence, Error> {
        Ok(Fence(0))
    }

    fn append(&self, _partition: PartitionId, _records: Vec<Bytes>, done: AppendDone) {
        done(Err(is_only_read()));
    }

    fn read(&self, partition: PartitionId, from: Offset, bytes_max: usize) -> Result<Vec<Record>, Error> {
        let mut state = self.state();
        let Range { start, end } = state.records.start..state.records.end;
        if from < start || from > end {
            return Err(Error::OutOfRange { partition, wanted: from, start, end });
        }
        let records = state.records.read(from, bytes_max);
        records.map_err(|error| Error::Refused { detail: format!("the copy of a journal: {error:#}") })
    }

    fn follow(
        &self,
        _partition: PartitionId,
        _from: Offset,
        _wake: Wake,
    ) -> Result<Option<Box<dyn Tail>>, Error> {
        Ok(None)
    }

    fn bounds(&self, _partition: PartitionId) -> Result<Range<Offset>, Error> {
        let state = self.state();
        Ok(state.records.start..state.records.end)
    }

    fn commit(&self, commit: Commit, done: CommitDone) {
        self.state().committed = Some((commit.applied, commit.position));
        done(Ok(()));
    }

    fn marks(&self, _partition: PartitionId) -> Result<Marks, Error> {
        Ok(Marks::default())
    }

    fn position(&self, _partition: PartitionId) -> Result<Option<(Offset, Bytes)>, Error> {
        Ok(self.state().committed.clone())
    }

    fn restore(
        &self,
        topic: Topic,
        _partition: PartitionId,
        from: Offset,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        let Some(commit) = &self.commit else { return Ok(Restored::default()) };
        let restored = self.log.restore_at(commit, topic, from, visit)?;
        // Its row may have been overtaken, and compacted.
        let position = (topic == Topic::Changelog).then(|| (commit.applied, commit.position.clone()));
        Ok(Restored { position, ..restored })
    }

    fn trim(&self, _partition: PartitionId, _below: Offset) -> Result<(), Error> {
        Ok(())
    }

    fn topic_read(
        &self,
        _topic: Topic,
        _partition: PartitionId,
        _from: Offset,
        _bytes_max: usize,
    ) -> Result<Vec<TopicEntry>, Error> {
        Err(is_only_read())
    }

    fn topic_trim(&self, _topic: Topic, _partition: PartitionId, _below: Offset) -> Result<(), Error> {
        Err(is_only_read())
    }

    fn control_put(&self, _key: &[u8], _value: Option<&[u8]>) -> Result<(), Error> {
        Err(is_only_read())
    }

    fn control_scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.log.control_scan(visit)
    }
}
