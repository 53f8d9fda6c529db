//! A life of a partition that could not go on, as far as the next one in the same process must know it.
//!
//! After an outcome that nobody knows the partition may be taken over again only while nobody else has done so: two
//! processes that fence each other again and again would both do nothing else.

use bytes::Bytes;
use everlog_log::{Log, Offset};
use everlog_store::CommittedRows;
use everlog_wire::{Body, Owner, Record};

use crate::error::Error;
use crate::invariants::Rules;
use crate::partition::Partition;

/// Bytes of journal that are read at a time.
const READ_BYTES: usize = 4 << 20;

/// What the former life knew.
#[derive(Clone, Debug)]
pub struct PreviousOwner {
    /// What the instances of all lives in this process begin with, and no other's.
    pub process: Bytes,
    /// The offset of the next journal record that it would have applied: see [`Partition::applied`].
    pub applied: Offset,
}

impl PreviousOwner {
    /// Nobody else has taken the partition since, as far as the log tells.
    ///
    /// # Errors
    /// `Superseded`, or the log cannot be read.
    pub(crate) fn is_latest<L: Log + ?Sized>(&self, partition: u32, log: &L) -> Result<(), Error> {
        let bounds = log.bounds(partition)?;
        let mut next = self.applied.max(bounds.start);
        let mut latest = None;
        while next < bounds.end {
            let records = log.read(partition, next, READ_BYTES)?;
            let Some(last) = records.last() else { break };
            next = last.offset + 1;
            latest = records.into_iter().rev().find_map(|stored| owner(stored.bytes)).or(latest);
        }
        self.is_ours(partition, latest.as_ref())?;
        // Only what is committed is trimmed, and the former life committed nothing that it had not applied.
        let committed = log.position(partition)?.map_or(0, |(applied, _)| applied);
        if committed > self.applied || bounds.start > self.applied {
            return Err(Error::Superseded { partition, node: "another node".into() });
        }
        Ok(())
    }

    fn is_ours(&self, partition: u32, latest: Option<&Owner>) -> Result<(), Error> {
        match latest.filter(|owner| !owner.instance.starts_with(&self.process)) {
            Some(owner) => Err(Error::Superseded { partition, node: owner.node.clone() }),
            None => Ok(()),
        }
    }
}

fn owner(bytes: Bytes) -> Option<Owner> {
    match Record::read(bytes).ok()?.body {
        Some(Body::Owner(owner)) => Some(owner),
        _another_kind => None,
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// The offset of the next journal record to apply, or behind the last one that was there when the partition was
    /// taken over: owners up to there came before it.
    pub fn applied(&self) -> Offset {
        self.position.applied.max(self.ownership.replay_to())
    }
}
