//! How far a partition is owned: the journal is replayed, a term is awaited, or orders are taken.
//!
//! replaying  --end of what was found-->  waiting  --`Owner` applied-->  serving
//!                                        waiting  <--unknown append---  serving

use std::sync::atomic::Ordering;

use everlog_log::Offset;

use crate::stats::Stats;

/// The stage of a take-over.
#[derive(Default)]
pub(crate) struct Ownership {
    serving: bool,
    replaying: bool,
    /// The journal's end when it was taken over.
    replay_to: Offset,
}

impl Ownership {
    /// Whether orders are taken.
    pub(crate) fn is_serving(&self) -> bool {
        self.serving
    }

    /// Whether records are applied that stood in the journal when it was taken over.
    pub(crate) fn is_replaying(&self) -> bool {
        self.replaying
    }

    /// The journal's end when it was taken over.
    pub(crate) fn replay_to(&self) -> Offset {
        self.replay_to
    }

    /// The journal up to an offset was there before the partition was taken over.
    pub(crate) fn begin_replay(&mut self, replay_to: Offset) {
        (self.replaying, self.replay_to) = (true, replay_to);
    }

    /// The records before an offset are applied.
    pub(crate) fn applied(&mut self, next: Offset) {
        self.replaying = next < self.replay_to;
    }

    /// The partition has a term.
    pub(crate) fn serve(&mut self, stats: &Stats) {
        self.serving = true;
        stats.serving.store(1, Ordering::Relaxed);
    }

    /// The partition needs another term.
    pub(crate) fn lose_term(&mut self, stats: &Stats) {
        self.serving = false;
        stats.serving.store(0, Ordering::Relaxed);
    }
}
