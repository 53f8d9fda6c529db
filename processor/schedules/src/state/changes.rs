//! What users change: creation, patches and updates.

use std::fmt;

use crate::matcher::{ActionTime, SearchPosition};
use crate::overlap::OverlapPolicy;
use crate::spec::SpecTime;
use crate::state::step::{ScheduleEffect, ScheduleStep};
use crate::state::take::ActionOrigin;
use crate::state::{
    BACKFILLS_MAX, Backfill, NOTES_MAX_BYTES, SchedulePlan, ScheduleSettings, ScheduleState, TRIGGERS_MAX,
    TriggeredSecond,
};

/// What a patch asks for. All of it happens, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulePatch {
    /// An action at once.
    pub trigger: Option<TriggerRequest>,
    /// Actions for times of the past, or of any other range.
    pub backfills: Vec<BackfillRange>,
    /// Pauses, with these notes; empty means no.
    pub pause: String,
    /// Unpauses, with these notes; empty means no.
    pub unpause: String,
}

/// An action at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerRequest {
    /// Its nominal and its actual time, in ms since 1970; none means now.
    pub scheduled_ms: Option<i64>,
    /// Its policy; unspecified means the schedule's.
    pub overlap: OverlapPolicy,
}

/// Times of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillRange {
    /// The first nominal time.
    pub start: SpecTime,
    /// The last actual time.
    pub end: SpecTime,
    /// The policy of its actions; unspecified means the schedule's.
    pub overlap: OverlapPolicy,
}

impl BackfillRange {
    fn backfill(&self, number: u64) -> Backfill {
        // The first whole second that is not before the start is the first that is found.
        let has_fraction = self.start.nanos > 0;
        let searched_s = if has_fraction { self.start.seconds } else { self.start.seconds.saturating_sub(1) };
        Backfill {
            number,
            position: SearchPosition::behind(searched_s),
            end_ms: self.end.ms(),
            overlap: self.overlap.into(),
        }
    }
}

/// Why a change is refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleRefusal {
    /// FAILED_PRECONDITION: the schedule has changed since the token was read.
    MismatchedToken,
    /// FAILED_PRECONDITION: more than [`BACKFILLS_MAX`] would be under way.
    TooManyBackfills,
    /// INVALID_ARGUMENT: more than [`NOTES_MAX_BYTES`].
    NotesTooLong,
}

impl fmt::Display for ScheduleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MismatchedToken => "mismatched conflict token",
            Self::TooManyBackfills => "too many concurrent backfillers",
            Self::NotesTooLong => "Schedule notes exceeds limit.",
        })
    }
}

impl std::error::Error for ScheduleRefusal {}

impl ScheduleState {
    /// A new schedule, with its initial patch.
    ///
    /// # Errors
    /// Notes that are too long, too many backfills.
    pub fn create(
        plan: &SchedulePlan,
        settings: ScheduleSettings,
        patch: Option<&SchedulePatch>,
        now_ms: i64,
    ) -> Result<(Self, Vec<ScheduleEffect>), ScheduleRefusal> {
        check_notes(&settings.notes)?;
        let mut state = Self {
            settings,
            conflict_token: 1,
            position: SearchPosition::behind(now_ms.div_euclid(1_000)),
            create_ms: now_ms,
            last_event_ms: now_ms,
            ..Self::default()
        };
        let mut effects = vec![ScheduleEffect::Created(state.revision())];
        effects.extend(match patch {
            Some(patch) => state.patch(plan, patch, now_ms)?,
            None => state.wake(plan, now_ms),
        });
        Ok((state, effects))
    }

    /// Changes what a patch asks for.
    ///
    /// # Errors
    /// Notes that are too long, too many backfills.
    pub fn patch(
        &mut self,
        plan: &SchedulePlan,
        patch: &SchedulePatch,
        now_ms: i64,
    ) -> Result<Vec<ScheduleEffect>, ScheduleRefusal> {
        check_notes(&patch.pause)?;
        check_notes(&patch.unpause)?;
        if self.backfills.len().saturating_add(patch.backfills.len()) > BACKFILLS_MAX {
            return Err(ScheduleRefusal::TooManyBackfills);
        }
        // What was due before is not concerned.
        let mut effects = self.wake(plan, now_ms);
        effects.retain(|effect| *effect != ScheduleEffect::Close);
        let mut step = ScheduleStep::new(self, plan, now_ms);
        step.asks_again = true;
        if let Some(trigger) = &patch.trigger {
            step.trigger(trigger);
        }
        for range in &patch.backfills {
            step.state.last_backfill += 1;
            let backfill = range.backfill(step.state.last_backfill);
            step.state.backfills.push(backfill);
        }
        if !patch.pause.is_empty() {
            step.set_paused(true, &patch.pause);
        }
        if !patch.unpause.is_empty() {
            step.set_paused(false, &patch.unpause);
        }
        effects.extend(step.work());
        Ok(effects)
    }

    /// Replaces the definition and the settings. What was due under the old definition is taken first; what waits starts
    /// under the new one.
    ///
    /// # Errors
    /// Another token than the schedule's, notes that are too long.
    pub fn update(
        &mut self,
        old_plan: &SchedulePlan,
        plan: &SchedulePlan,
        settings: ScheduleSettings,
        token: Option<u64>,
        now_ms: i64,
    ) -> Result<Vec<ScheduleEffect>, ScheduleRefusal> {
        if token.is_some_and(|token| token != self.conflict_token) {
            return Err(ScheduleRefusal::MismatchedToken);
        }
        check_notes(&settings.notes)?;
        let mut effects = self.wake(old_plan, now_ms);
        effects.retain(|effect| *effect != ScheduleEffect::Close);
        let was_paused = std::mem::replace(&mut self.settings, settings).is_paused;
        self.conflict_token += 1;
        effects.push(ScheduleEffect::Updated(self.revision()));
        if was_paused != self.settings.is_paused {
            effects.push(self.pause_changed());
        }
        self.update_ms = now_ms;
        self.search_anew(plan, now_ms);
        let mut step = ScheduleStep::new(self, plan, now_ms);
        step.asks_again = true;
        effects.extend(step.work());
        Ok(effects)
    }

    /// From now on its times count again. Those whose nominal time has passed and whose actual time has not are among
    /// them.
    pub(super) fn search_anew(&mut self, plan: &SchedulePlan, now_ms: i64) {
        self.not_before_ms = self.not_before_ms.max(now_ms);
        self.last_event_ms = self.last_event_ms.max(now_ms);
        let from_s = now_ms.div_euclid(1_000).saturating_sub(plan.matcher.jitter_max_s()).saturating_sub(1);
        self.position = SearchPosition::behind(self.position.searched_s.max(from_s));
        self.forget_next();
    }

    /// Remembers the last ordinal of a second.
    pub(super) fn remember_trigger(&mut self, second: i64, ordinal: u32) {
        self.triggers.retain(|trigger| trigger.second != second);
        self.triggers.push(TriggeredSecond { second, ordinal });
        if self.triggers.len() > TRIGGERS_MAX {
            self.triggers.remove(0);
        }
    }
}

impl ScheduleStep<'_> {
    fn trigger(&mut self, trigger: &TriggerRequest) {
        let actual_ms = trigger.scheduled_ms.unwrap_or(self.now_ms);
        let nominal_s = actual_ms.div_euclid(1_000);
        let ordinal = self.state.next_ordinal(nominal_s);
        self.state.remember_trigger(nominal_s, ordinal);
        let time = ActionTime { nominal_s, actual_ms };
        self.buffer(time, trigger.overlap, ActionOrigin::Trigger, ordinal);
    }

    fn set_paused(&mut self, is_paused: bool, notes: &str) {
        let settings = &mut self.state.settings;
        let was_paused = std::mem::replace(&mut settings.is_paused, is_paused);
        settings.notes = notes.to_owned();
        self.state.conflict_token += 1;
        if was_paused != is_paused {
            self.effects.push(self.state.pause_changed());
        }
        if was_paused && !is_paused {
            self.state.search_anew(self.plan, self.now_ms);
        }
    }
}

fn check_notes(notes: &str) -> Result<(), ScheduleRefusal> {
    if notes.len() > NOTES_MAX_BYTES { Err(ScheduleRefusal::NotesTooLong) } else { Ok(()) }
}
