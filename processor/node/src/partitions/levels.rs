//! Where partitions learn which levels of decisions are in force.

use std::sync::Arc;

use everlog_cluster::RemotePartitions;
use everlog_engine::level;
use everlog_partition::LevelSource;

/// Those of an embedded log, which stays at its level.
pub struct OwnLevels {
    raised: u32,
}

impl OwnLevels {
    /// `everlog dev` has no operator: its log is raised to the latest level.
    pub fn of(is_dev: bool) -> Self {
        Self { raised: if is_dev { level::LATEST } else { 0 } }
    }
}

impl LevelSource for OwnLevels {
    fn of_new_partition(&self) -> u32 {
        level::LATEST
    }

    fn raised(&self) -> u32 {
        self.raised
    }
}

/// Those of a log on Kafka, by the rows of `control`.
pub struct LevelsInControl(pub Arc<dyn RemotePartitions>);

impl LevelSource for LevelsInControl {
    fn of_new_partition(&self) -> u32 {
        self.0.level_of_new()
    }

    fn raised(&self) -> u32 {
        self.0.raised_level()
    }
}
