//! What a partition counts; read by whoever exports metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use everlog_avro::command::Code;
use everlog_engine::Ending;
use everlog_engine::machine::schedule::event::{ScheduleEvent, ScheduleEventKind};
use everlog_schedules::state::SkipReason;

/// Counters and gauges of one partition.
#[derive(Debug, Default)]
pub struct Stats {
    /// Journal records applied.
    pub applied: AtomicU64,
    /// Journal records that this node has handed to the log.
    pub appended: AtomicU64,
    /// Bytes of these.
    pub appended_bytes: AtomicU64,
    /// Orders refused.
    pub refused: AtomicU64,
    /// Records of a former owner that did nothing.
    pub voided: AtomicU64,
    /// Records that could not be read or made the engine fail.
    pub skipped: AtomicU64,
    /// Public commands that were ordered.
    pub forwarded: AtomicU64,
    /// Public records that were applied before: somebody brought them again.
    pub duplicates: AtomicU64,
    /// Public records that were refused.
    pub rejections: Rejections,
    /// Entries of public topics that could not be written: a fault of this release.
    pub unpublished: AtomicU64,
    /// What became of the actions of schedules.
    pub schedule_actions: ScheduleActions,
    /// Runs whose history came beyond a warning mark, of events or of bytes.
    pub large_histories: AtomicU64,
    /// Runs whose state came beyond its mark.
    pub large_states: AtomicU64,
    /// Runs whose memo came beyond its mark.
    pub large_memos: AtomicU64,
    /// Runs with a payload beyond its mark.
    pub large_payloads: AtomicU64,
    /// Output batches committed.
    pub commits: AtomicU64,
    /// Alarms that became records.
    pub wakes: AtomicU64,
    /// Runs that were forgotten: deleted, or past their retention.
    pub forgotten: AtomicU64,
    /// Those of them whose histories are not all deleted yet.
    pub leftovers: AtomicU64,
    /// Tasks that came back because nobody got them.
    pub released: AtomicU64,
    /// The offset of the next record to apply.
    pub next_offset: AtomicU64,
    /// The next offset that the journal gives, as the log last said.
    pub journal_end: AtomicU64,
    /// The number of the fence under which outputs are committed, and the offset of the `Owner` record under which records
    /// are appended; both grow with every owner.
    pub fence: AtomicU64,
    /// See above.
    pub term: AtomicU64,
    /// The level of decisions.
    pub level: AtomicU64,
    /// The offset up to which outputs are committed.
    pub committed_offset: AtomicU64,
    /// Runs in memory.
    pub resident_runs: AtomicU64,
    /// Bytes that wait for a commit.
    pub overlay_bytes: AtomicU64,
    /// Alarms in the index.
    pub alarms: AtomicU64,
    /// Orders of this partition's runs to other workflows that have not arrived.
    pub messages: AtomicU64,
    /// The greatest lateness of an alarm since the last look, in ms.
    pub lateness_ms: AtomicI64,
    /// Rows that were restored from the log.
    pub restored_rows: AtomicU64,
    /// Bytes of these rows.
    pub restored_bytes: AtomicU64,
    /// Records of changelog and timers that the restore before serving has to look through, and how many are left.
    pub restore_all: AtomicU64,
    /// See above.
    pub restore_left: AtomicU64,
    /// The same of histories, which come while the partition serves.
    pub history_all: AtomicU64,
    /// See above.
    pub history_left: AtomicU64,
    /// 1 while histories are missing.
    pub behind: AtomicU64,
    /// How much of the index of runs is missing, in percent.
    pub index_missing_percent: AtomicU64,
    /// 1 while this node is to serve the partition.
    pub is_wanted: AtomicU64,
    /// 1 while the partition serves.
    pub serving: AtomicU64,
    /// 1 while what is in the log keeps the partition from being served.
    pub closed: AtomicU64,
    /// Turns taken.
    pub turns: AtomicU64,
    /// When the last turn began, in ms since 1970-01-01 UTC.
    pub turned_ms: AtomicI64,
}

/// Counts how workflows, tasks and activities end. It never waits.
pub trait EndingCounts: Send + Sync + 'static {
    /// Something is over in the namespace of this UUID. It is told by the partition's owner and never while that replays: what was
    /// told before a take-over is not told again.
    fn count(&self, namespace_id: &str, ending: Ending);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncounted;

impl EndingCounts for Uncounted {
    fn count(&self, _namespace_id: &str, _ending: Ending) {}
}

/// What a code of a later release is counted under.
const OTHER: &str = "other";

/// Public records that were refused, by their codes.
#[derive(Debug, Default)]
pub struct Rejections {
    of_codes: [AtomicU64; Code::ALL.len()],
    others: AtomicU64,
}

impl Rejections {
    pub(crate) fn count(&self, code: &str) {
        let at = Code::ALL.iter().position(|known| known.name() == code);
        at.map_or(&self.others, |at| &self.of_codes[at]).fetch_add(1, Ordering::Relaxed);
    }

    /// Each code that was counted, and how often.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let known = Code::ALL.iter().map(|code| code.name()).zip(&self.of_codes);
        let all = known.chain(std::iter::once((OTHER, &self.others)));
        all.map(|(code, count)| (code, count.load(Ordering::Relaxed))).filter(|(_, count)| *count > 0)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counted().map(|(_, count)| count).sum()
    }
}

/// What became of the actions of schedules, by why they were not started.
#[derive(Debug, Default)]
pub struct ScheduleActions {
    started: AtomicU64,
    overlap: AtomicU64,
    buffer_full: AtomicU64,
    paused: AtomicU64,
    exhausted: AtomicU64,
    workflow_id_taken: AtomicU64,
    refused: AtomicU64,
    missed: AtomicU64,
}

impl ScheduleActions {
    pub(crate) fn count(&self, events: &[ScheduleEvent]) {
        for event in events {
            let (count, by) = match &event.kind {
                ScheduleEventKind::Fired(_) => (&self.started, 1),
                ScheduleEventKind::Skipped(skipped) => (self.skipped(skipped.reason), 1),
                ScheduleEventKind::Missed(missed) => (&self.missed, missed.count),
                ScheduleEventKind::PauseChanged(_)
                | ScheduleEventKind::Created(_)
                | ScheduleEventKind::Updated(_)
                | ScheduleEventKind::Closed(_) => continue,
            };
            count.fetch_add(by, Ordering::Relaxed);
        }
    }

    fn skipped(&self, reason: SkipReason) -> &AtomicU64 {
        match reason {
            SkipReason::Overlap => &self.overlap,
            SkipReason::BufferFull => &self.buffer_full,
            SkipReason::Paused => &self.paused,
            SkipReason::Exhausted => &self.exhausted,
            SkipReason::WorkflowIdTaken => &self.workflow_id_taken,
            SkipReason::Refused => &self.refused,
        }
    }

    /// Each fate, and how many actions had it.
    pub fn counted(&self) -> [(&'static str, u64); 8] {
        [
            ("started", &self.started),
            ("overlap", &self.overlap),
            ("buffer_full", &self.buffer_full),
            ("paused", &self.paused),
            ("exhausted", &self.exhausted),
            ("workflow_id_taken", &self.workflow_id_taken),
            ("refused", &self.refused),
            ("missed", &self.missed),
        ]
        .map(|(fate, count)| (fate, count.load(Ordering::Relaxed)))
    }
}
