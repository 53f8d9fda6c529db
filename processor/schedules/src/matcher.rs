//! The times of a specification: nominal ones, which match it, and actual ones, which are later by their jitter.
//!
//! A calendar is a pattern of what the clocks of a zone show: a local time that does not exist does not come, one that
//! exists twice comes twice. A search may be long where calendars are excluded, so it has a budget, and a
//! [`SearchPosition`] from which it goes on.

mod calendar_bits;

use crate::civil::{CivilDay, DAY_S};
use crate::jitter::jitter_ms;
use crate::matcher::calendar_bits::CalendarBits;
use crate::spec::{CALENDAR_YEARS, CalendarSpec, ScheduleSpec, SpecError, SpecTime};
use crate::zone::Zone;

/// Candidates that exclusions may reject one behind the other, two weeks of seconds; a search with more of them has no
/// next time. As in Temporal's server.
pub const REJECTED_MAX: u32 = 1_209_600;
/// Times that ListScheduleMatchingTimes answers at most.
pub const MATCHING_TIMES_MAX: usize = 1_000;
/// Steps of a search for a reader, who waits: as many as the longest search needs, whatever its number of calendars.
pub const READER_STEPS: u32 = 4 * REJECTED_MAX;

/// Behind a moment that no calendar matches within this time, only a change of the offset could make one match.
const LOCAL_SPREAD_S: i64 = 4 * DAY_S;
const NS_PER_S: i64 = 1_000_000_000;

/// A time of a specification.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ActionTime {
    /// What matches, in seconds since 1970.
    #[prost(int64, tag = "1")]
    pub nominal_s: i64,
    /// When it is due, in ms since 1970.
    #[prost(int64, tag = "2")]
    pub actual_ms: i64,
}

/// How far a search has come. It is stored between the slices of a long search.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct SearchPosition {
    /// Nominal times up to this one are done, in seconds since 1970.
    #[prost(int64, tag = "1")]
    pub searched_s: i64,
    /// Candidates that were rejected since the last time that was found.
    #[prost(uint32, tag = "2")]
    pub rejected: u32,
}

impl SearchPosition {
    /// Behind a nominal time.
    pub fn behind(nominal_s: i64) -> Self {
        Self { searched_s: nominal_s, rejected: 0 }
    }
}

/// Steps that a search may still take: about as many visits to a field, a calendar or an excluded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchBudget {
    steps: u32,
}

impl MatchBudget {
    /// So many steps. The search of one candidate is always finished.
    pub fn new(steps: u32) -> Self {
        Self { steps }
    }

    /// Steps that are left.
    pub fn left(&self) -> u32 {
        self.steps
    }

    /// True when no further candidate may be looked for.
    pub fn is_spent(&self) -> bool {
        self.steps == 0
    }

    fn spend(&mut self, steps: u32) {
        self.steps = self.steps.saturating_sub(steps);
    }
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResult {
    /// The next time.
    Found(ActionTime),
    /// There is none.
    Never,
    /// Exclusions have rejected [`REJECTED_MAX`] candidates: there is none until the specification changes.
    TooManyExclusions,
    /// The budget is spent; the position says from where to go on.
    Cut,
}

/// A specification made ready for searches. It is derived, and never stored.
#[derive(Clone, Debug)]
pub struct Matcher {
    zone: Zone,
    calendars: Vec<CalendarBits>,
    excluded: Vec<CalendarBits>,
    intervals: Vec<WholeInterval>,
    /// The first and the last nominal time.
    first_s: i64,
    last_s: i64,
    jitter_ms: i64,
    seed: String,
}

/// An interval and its phase in whole seconds.
#[derive(Clone, Copy, Debug)]
struct WholeInterval {
    interval_s: i64,
    phase_s: i64,
}

impl WholeInterval {
    fn next_s(self, after_s: i64) -> i64 {
        let passed = after_s.saturating_sub(self.phase_s).div_euclid(self.interval_s);
        passed.saturating_add(1).saturating_mul(self.interval_s).saturating_add(self.phase_s)
    }
}

impl Matcher {
    /// A matcher of a stored form. `seed` is that of the jitter: the ids of the namespace and of the schedule with a dash
    /// between.
    ///
    /// # Errors
    /// A zone that is unknown or malformed.
    pub fn new(spec: &ScheduleSpec, seed: &str) -> Result<Self, SpecError> {
        let zone = Zone::of(&spec.zone_name, &spec.zone_data)?;
        let bits = |calendars: &[CalendarSpec]| {
            calendars.iter().map(CalendarBits::of).filter(CalendarBits::ever_matches).collect()
        };
        let intervals = spec.intervals.iter().map(|interval| WholeInterval {
            interval_s: (interval.interval.unwrap_or_default().ns() / NS_PER_S).max(1),
            phase_s: (interval.phase.unwrap_or_default().ns() / NS_PER_S).max(0),
        });
        let year_behind = CivilDay { year: i64::from(*CALENDAR_YEARS.end()) + 1, month: 1, day: 1 };
        let end_of_time_s = year_behind.days() * DAY_S - 1;
        Ok(Self {
            zone,
            calendars: bits(&spec.calendars),
            excluded: bits(&spec.excluded),
            intervals: intervals.collect(),
            first_s: spec.start.map_or(0, |start| start.seconds.max(0)),
            last_s: spec.end.map_or(end_of_time_s, |end| end.seconds.min(end_of_time_s)),
            jitter_ms: (spec.jitter.unwrap_or_default().ns() / 1_000_000).max(0),
            seed: seed.to_owned(),
        })
    }

    /// The next time whose nominal time is behind the position. The position moves over rejected candidates, and stays
    /// before a time that is found.
    pub fn next(&self, position: &mut SearchPosition, budget: &mut MatchBudget) -> SearchResult {
        loop {
            if position.rejected >= REJECTED_MAX {
                return SearchResult::TooManyExclusions;
            }
            if budget.is_spent() {
                return SearchResult::Cut;
            }
            let after_s = position.searched_s.max(self.first_s.saturating_sub(1));
            let Some(nominal_s) = self.next_unfiltered(after_s, budget).filter(|s| *s <= self.last_s) else {
                return SearchResult::Never;
            };
            if !self.is_excluded(nominal_s, budget) {
                return SearchResult::Found(self.action_time(nominal_s, budget));
            }
            *position = SearchPosition { searched_s: nominal_s, rejected: position.rejected + 1 };
        }
    }

    /// Actual times behind `start` and not behind `end`, at most `max`, as ListScheduleMatchingTimes answers them: the
    /// search begins with the nominal times behind `start`. In ms since 1970.
    ///
    /// # Errors
    /// Too many exclusions.
    pub fn matching_times(&self, start: SpecTime, end: SpecTime, max: usize) -> Result<Vec<i64>, SpecError> {
        let mut times = Vec::new();
        let mut position = SearchPosition::behind(start.seconds);
        let mut budget = MatchBudget::new(READER_STEPS);
        while times.len() < max {
            match self.next(&mut position, &mut budget) {
                SearchResult::Found(time) if SpecTime::of_ms(time.actual_ms) <= end => {
                    times.push(time.actual_ms);
                    position = SearchPosition::behind(time.nominal_s);
                }
                SearchResult::Found(_) | SearchResult::Never => break,
                SearchResult::TooManyExclusions | SearchResult::Cut => return Err(too_many_exclusions()),
            }
        }
        Ok(times)
    }

    /// The longest jitter that a time of it may have, in whole seconds rounded up.
    pub fn jitter_max_s(&self) -> i64 {
        self.jitter_ms.saturating_add(999) / 1_000
    }

    fn action_time(&self, nominal_s: i64, budget: &mut MatchBudget) -> ActionTime {
        let mut bound_ms = self.jitter_ms;
        // A jittered time never reaches the next slot of the raw pattern.
        if bound_ms > 0
            && let Some(following_s) = self.next_unfiltered(nominal_s, budget)
        {
            bound_ms = bound_ms.min((following_s - nominal_s).saturating_mul(1_000));
        }
        let late_ms = jitter_ms(nominal_s, &self.seed, bound_ms);
        ActionTime { nominal_s, actual_ms: nominal_s.saturating_mul(1_000).saturating_add(late_ms) }
    }

    /// The next time of any calendar or interval, exclusions and the end aside.
    fn next_unfiltered(&self, after_s: i64, budget: &mut MatchBudget) -> Option<i64> {
        let intervals = self.intervals.iter().map(|interval| interval.next_s(after_s));
        budget.spend(u32::try_from(self.intervals.len()).unwrap_or(u32::MAX));
        let mut least_s = intervals.min().filter(|s| *s < i64::MAX);
        for calendar in &self.calendars {
            // What is not before the least so far need not be found.
            if let Some(s) = self.next_of(calendar, after_s, least_s.unwrap_or(i64::MAX), budget) {
                least_s = Some(s);
            }
        }
        least_s
    }

    /// The first second behind `after_s` and before `before_s` at which the clocks show what a calendar matches.
    fn next_of(
        &self,
        calendar: &CalendarBits,
        after_s: i64,
        before_s: i64,
        budget: &mut MatchBudget,
    ) -> Option<i64> {
        let mut from_s = after_s.checked_add(1)?;
        while from_s < before_s {
            let offset_s = self.zone.offset_s(from_s);
            let (shown_s, steps) = calendar.next(from_s.checked_add(offset_s)?);
            let found_s = shown_s.map(|shown_s| shown_s - offset_s);
            let horizon_s = found_s.unwrap_or(from_s.saturating_add(LOCAL_SPREAD_S)).min(before_s - 1);
            let (change_s, more_steps) = self.zone.next_change(from_s, horizon_s);
            budget.spend(steps + more_steps);
            match change_s {
                // The clocks change before: what they show from there on decides.
                Some(change_s) => from_s = change_s,
                None => return found_s.filter(|s| *s < before_s),
            }
        }
        None
    }

    fn is_excluded(&self, nominal_s: i64, budget: &mut MatchBudget) -> bool {
        if self.excluded.is_empty() {
            return false;
        }
        budget.spend(u32::try_from(self.excluded.len()).unwrap_or(u32::MAX));
        let shown_s = nominal_s.saturating_add(self.zone.offset_s(nominal_s));
        self.excluded.iter().any(|calendar| calendar.matches(shown_s))
    }
}

/// What a call answers that computes times of a specification with too many exclusions.
pub fn too_many_exclusions() -> SpecError {
    SpecError(
        "the schedule calendar specification has too many exclusions. Please modify the specification."
            .into(),
    )
}
