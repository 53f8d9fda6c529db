//! Taking: times of the specification become actions that wait.

use crate::matcher::{ActionTime, SearchPosition, SearchResult};
use crate::overlap::OverlapPolicy;
use crate::state::step::{MissedTimes, ScheduleEffect, ScheduleStep, SkipReason};
use crate::state::{BUFFER_MAX, BufferedAction, NextTimeKind, ScheduleState};

impl ScheduleStep<'_> {
    /// Takes the times that are due, oldest first, as many as a step may.
    pub(super) fn take_due(&mut self) {
        // What has been taken starts first, so that none is dropped because it was taken too early.
        if self.state.holds_back() || self.state.has_passes_left(self.plan, self.now_ms) {
            return;
        }
        let mut missed: Option<MissedTimes> = None;
        while self.state.may_act() {
            self.find_next();
            let Some(time) = self.state.next.filter(|time| time.actual_ms <= self.now_ms) else { break };
            if time.actual_ms < self.state.not_before_ms {
                self.state.go_behind(time.nominal_s);
            } else if self.now_ms.saturating_sub(time.actual_ms) > self.plan.policies.catchup_ms() {
                self.state.go_behind(time.nominal_s);
                let missed = missed.get_or_insert(MissedTimes {
                    count: 0,
                    first_nominal_s: time.nominal_s,
                    last_nominal_s: time.nominal_s,
                });
                missed.count += 1;
                missed.last_nominal_s = time.nominal_s;
            } else {
                let Some(left) = self.takes_left.checked_sub(1) else { break };
                self.takes_left = left;
                self.state.go_behind(time.nominal_s);
                let ordinal = self.state.next_ordinal(time.nominal_s);
                self.buffer(time, OverlapPolicy::Unspecified, ActionOrigin::Scheduled, ordinal);
            }
        }
        if let Some(missed) = missed {
            self.state.counts.missed += missed.count;
            self.effects.push(ScheduleEffect::Missed(missed));
        }
    }

    /// Makes sure that the next time is known, if the budget allows.
    pub(super) fn find_next(&mut self) {
        if self.state.next_kind() != NextTimeKind::Unknown {
            return;
        }
        let found = self.plan.matcher.next(&mut self.state.position, &mut self.budget);
        let (kind, next) = match found {
            SearchResult::Found(time) => (NextTimeKind::Known, Some(time)),
            SearchResult::Never => (NextTimeKind::Never, None),
            SearchResult::TooManyExclusions => (NextTimeKind::TooManyExclusions, None),
            SearchResult::Cut => (NextTimeKind::Unknown, None),
        };
        self.state.set_next_kind(kind);
        self.state.next = next;
    }

    /// Takes the times of backfills, one backfill behind the other, as many as a step may and the buffer has room for.
    pub(super) fn take_backfills(&mut self) {
        while self.takes_left > 0 && self.state.has_backfill_to_take() {
            let Some(backfill) = self.state.backfills.first_mut() else { return };
            let found = self.plan.matcher.next(&mut backfill.position, &mut self.budget);
            let (number, overlap) = (backfill.number, backfill.overlap());
            match found {
                SearchResult::Found(time) if time.actual_ms <= backfill.end_ms => {
                    backfill.position = SearchPosition::behind(time.nominal_s);
                    self.takes_left -= 1;
                    self.buffer(time, overlap, ActionOrigin::Backfill(number), 0);
                }
                SearchResult::Cut => return,
                SearchResult::Found(_) | SearchResult::Never | SearchResult::TooManyExclusions => {
                    self.state.backfills.remove(0);
                }
            }
        }
    }

    /// Lets an action wait, if there is room.
    pub(super) fn buffer(
        &mut self,
        time: ActionTime,
        overlap: OverlapPolicy,
        by: ActionOrigin,
        ordinal: u32,
    ) {
        self.state.last_number += 1;
        let action = BufferedAction {
            number: self.state.last_number,
            nominal_s: time.nominal_s,
            actual_ms: time.actual_ms,
            is_manual: by != ActionOrigin::Scheduled,
            backfill: if let ActionOrigin::Backfill(number) = by { number } else { 0 },
            overlap: overlap.into(),
            ordinal,
            ..BufferedAction::default()
        };
        if self.state.buffer.len() >= BUFFER_MAX {
            self.skip(&action, SkipReason::BufferFull);
        } else {
            self.state.buffer.push(action);
        }
    }
}

/// What an action comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionOrigin {
    Scheduled,
    Trigger,
    /// By its number.
    Backfill(u64),
}

impl ScheduleState {
    fn go_behind(&mut self, nominal_s: i64) {
        self.position = SearchPosition::behind(nominal_s);
        self.forget_next();
    }

    pub(super) fn forget_next(&mut self) {
        self.next = None;
        self.set_next_kind(NextTimeKind::Unknown);
    }
}
