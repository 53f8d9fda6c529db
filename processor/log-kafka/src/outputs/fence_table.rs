//! The fence, its status and the last offsets of each partition whose outputs this log may commit.

use bytes::Bytes;
use everlog_log::{Error, Fence, Offset, PartitionId, PerTopic};
use parking_lot::{Mutex, MutexGuard};

/// Whether the latest fence of a partition may commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FenceStatus {
    /// No fence was given, or it is being replaced.
    #[default]
    None,
    /// It can.
    Good,
    /// An outcome of its group is unknown.
    Doubtful,
    /// Another process has the transactional id of its group.
    Fenced,
}

/// The fence of one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct FenceState {
    /// The latest fence that was given here; 0 before the first.
    pub(crate) given: u64,
    /// Whether that fence can commit.
    pub(crate) standing: FenceStatus,
    /// Number of the last commit under the fence.
    pub(crate) commits: u64,
    /// The last committed position, if the standing is good and there is one.
    pub(crate) position: Option<(Offset, Bytes)>,
    /// Behind the last record that was committed here.
    pub(crate) reached: PerTopic<Offset>,
    /// Where the next restore may begin: 0 before the first commit or restore.
    pub(crate) marks: PerTopic<Offset>,
    /// Below this offset the journal was trimmed by this log, or is about to be.
    pub(crate) trimmed: Offset,
}

/// All partitions.
pub(crate) struct FenceTable(Vec<Mutex<FenceState>>);

impl FenceTable {
    pub(crate) fn new(partitions: u32) -> Self {
        FenceTable((0..partitions).map(|_| Mutex::default()).collect())
    }

    /// Keep it short.
    pub(crate) fn of(&self, partition: PartitionId) -> MutexGuard<'_, FenceState> {
        self.0[partition as usize].lock()
    }
}

impl FenceState {
    /// Whether a fence may commit.
    pub(crate) fn admit(&self, partition: PartitionId, fence: Fence) -> Result<(), Error> {
        let old = Error::Fenced { partition, given: fence, current: Fence(self.given) };
        match self.standing {
            _ if fence.0 != self.given => Err(old),
            FenceStatus::Good => Ok(()),
            FenceStatus::None | FenceStatus::Fenced => Err(old),
            FenceStatus::Doubtful => {
                let detail = format!(
                    "partition {partition}: the producer of its group was given up; nothing of this commit was \
                     written, but take the partition over again"
                );
                Err(Error::Unknown { detail })
            }
        }
    }
}
