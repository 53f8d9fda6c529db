//! The alarm: when a schedule is to be woken. It follows from the state alone, so none is ever lost.

use crate::matcher::{ActionTime, MatchBudget, READER_STEPS, SearchPosition, SearchResult};
use crate::overlap::OverlapDecision;
use crate::state::{BACKFILL_BUFFER_MAX, IDLE_MS, NextTimeKind, STARTING_MAX, SchedulePlan, ScheduleState};

impl ScheduleState {
    /// When the schedule is to be woken next, in ms since 1970, which may have passed; none if only a call or an answer can
    /// change it.
    pub fn next_alarm_ms(&self, plan: &SchedulePlan, now_ms: i64) -> Option<i64> {
        let at_once = (self.has_backfill_to_take() || self.has_passes_left(plan, now_ms)).then_some(now_ms);
        let due = match self.next_kind() {
            _any if !self.may_act() || self.holds_back() => None,
            NextTimeKind::Unknown => Some(now_ms),
            NextTimeKind::Known => self.next.map(|time| time.actual_ms),
            NextTimeKind::Never | NextTimeKind::TooManyExclusions => None,
        };
        let delayed = self.buffer.iter().map(|action| action.not_before_ms).filter(|ms| *ms > now_ms).min();
        [at_once, due, delayed, self.idle_since_ms()].into_iter().flatten().min()
    }

    /// True while so many starts are under way that no more times are taken: the answers lead on.
    pub(super) fn holds_back(&self) -> bool {
        self.running.iter().filter(|running| running.is_starting()).count() >= STARTING_MAX
    }

    /// True if a backfill may go on.
    pub(super) fn has_backfill_to_take(&self) -> bool {
        !self.backfills.is_empty() && self.buffer.len() < BACKFILL_BUFFER_MAX && !self.holds_back()
    }

    /// True if one more pass would change something.
    pub(super) fn has_passes_left(&self, plan: &SchedulePlan, now_ms: i64) -> bool {
        if self.buffer.is_empty() {
            return false;
        }
        let pass = self.overlap_pass(plan, now_ms);
        pass.decisions.iter().any(|decision| *decision != OverlapDecision::Keep)
    }

    /// When an idle schedule ends, in ms since 1970; none while there is anything to come.
    pub(super) fn idle_since_ms(&self) -> Option<i64> {
        let has_no_times = matches!(self.next_kind(), NextTimeKind::Never | NextTimeKind::TooManyExclusions)
            || self.is_exhausted();
        let is_idle = has_no_times
            && !self.settings.is_paused
            && self.backfills.is_empty()
            && self.buffer.is_empty()
            && !self.is_running();
        is_idle.then(|| self.last_event_ms.saturating_add(IDLE_MS))
    }

    /// Actual times to come, at most `max` and no more than actions remain, in ms since 1970. While paused they are those
    /// that would come.
    pub fn future_times_ms(&self, plan: &SchedulePlan, now_ms: i64, max: usize) -> Vec<i64> {
        // Each search would look through all that is excluded once more.
        let mut max = if self.next_kind() == NextTimeKind::TooManyExclusions { 0 } else { max };
        if self.settings.is_limited {
            max = max.min(usize::try_from(self.settings.remaining).unwrap_or(0));
        }
        let from_s = now_ms.div_euclid(1_000).saturating_sub(plan.matcher.jitter_max_s()).saturating_sub(1);
        let mut position = self.position;
        if position.searched_s < from_s {
            position = SearchPosition::behind(from_s);
        }
        let mut budget = MatchBudget::new(READER_STEPS);
        let mut times = Vec::new();
        while times.len() < max
            && let SearchResult::Found(ActionTime { nominal_s, actual_ms }) =
                plan.matcher.next(&mut position, &mut budget)
        {
            position = SearchPosition::behind(nominal_s);
            if actual_ms > now_ms && actual_ms >= self.not_before_ms {
                times.push(actual_ms);
            }
        }
        times
    }
}
