//! What happens to a schedule, as its events tell it: numbered, and told once each.

use everlog_schedules::state::{
    FiredAction, MissedTimes, PauseChange, ScheduleEffect, ScheduleRevision, SkippedAction,
};

/// An event of a schedule. It stands in no history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEvent {
    /// The schedule's run: a schedule of the same id that is made later has another.
    pub run_id: String,
    /// 1, 2, 3 ... without a gap in the life of the schedule.
    pub event_id: i64,
    /// What happened.
    pub kind: ScheduleEventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleEventKind {
    /// An action was started.
    Fired(FiredAction),
    /// An action was dropped.
    Skipped(SkippedAction),
    /// Times were too late.
    Missed(MissedTimes),
    /// The schedule was paused or unpaused.
    PauseChanged(PauseChange),
    /// The schedule was made.
    Created(ScheduleRevision),
    /// The definition was replaced.
    Updated(ScheduleRevision),
    /// The schedule is gone.
    Closed(ScheduleEnd),
}

/// Why a schedule is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleEnd {
    /// It had nothing to do for too long.
    Idle,
    /// A user has deleted it.
    Deleted,
}

/// Events for what has happened, rather than what is asked of others. The last number moves behind them.
pub(super) fn numbered(run_id: &str, last_id: &mut i64, effects: &[ScheduleEffect]) -> Vec<ScheduleEvent> {
    let kinds = effects.iter().filter_map(kind);
    kinds.map(|kind| next(run_id, last_id, kind)).collect()
}

/// The next event of a schedule.
pub(super) fn next(run_id: &str, last_id: &mut i64, kind: ScheduleEventKind) -> ScheduleEvent {
    *last_id += 1;
    ScheduleEvent { run_id: run_id.to_owned(), event_id: *last_id, kind }
}

fn kind(effect: &ScheduleEffect) -> Option<ScheduleEventKind> {
    match effect {
        ScheduleEffect::Fired(fired) => Some(ScheduleEventKind::Fired(fired.clone())),
        ScheduleEffect::Skipped(skipped) => Some(ScheduleEventKind::Skipped(skipped.clone())),
        ScheduleEffect::Missed(missed) => Some(ScheduleEventKind::Missed(missed.clone())),
        ScheduleEffect::PauseChanged(change) => Some(ScheduleEventKind::PauseChanged(change.clone())),
        ScheduleEffect::Created(revision) => Some(ScheduleEventKind::Created(revision.clone())),
        ScheduleEffect::Updated(revision) => Some(ScheduleEventKind::Updated(revision.clone())),
        ScheduleEffect::Close => Some(ScheduleEventKind::Closed(ScheduleEnd::Idle)),
        ScheduleEffect::Start(_)
        | ScheduleEffect::Cancel(_)
        | ScheduleEffect::CancelAgain(_)
        | ScheduleEffect::Terminate(_) => None,
    }
}
