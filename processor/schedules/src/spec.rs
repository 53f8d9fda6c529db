//! The specification of a schedule: what is given, and the one form that is stored.
//!
//! A [`SpecInput`] has calendars and cron notations as strings beside structured ones. [`ScheduleSpec::of`] makes the
//! stored form of it, which has structured calendars and intervals only; a stored form given again stays as it is.

mod cron_text;
mod duration_text;
mod field_text;
mod ranges;

use std::fmt;

pub use crate::spec::ranges::{CALENDAR_YEARS, COMMENT_MAX_BYTES};

/// Calendars, excluded calendars and intervals of a specification, all together. Each is looked at for each time that is
/// searched, so the number bounds what one record may cost; schedules of people have about ten.
pub const SPEC_ENTRIES_MAX: usize = 1_000;

const NS_PER_S: i64 = 1_000_000_000;

/// A moment, as the API gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
pub struct SpecTime {
    /// Seconds since 1970-01-01 UTC, rounded down.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds beyond these, 0 to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl SpecTime {
    /// A moment in ms since 1970.
    pub fn of_ms(ms: i64) -> Self {
        Self { seconds: ms.div_euclid(1_000), nanos: (ms.rem_euclid(1_000) * 1_000_000) as i32 }
    }

    /// In ms since 1970, rounded down.
    pub fn ms(self) -> i64 {
        self.seconds.saturating_mul(1_000).saturating_add(i64::from(self.nanos).div_euclid(1_000_000))
    }
}

/// A span of time, as the API gives it: both parts have the same sign.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct SpecDuration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds beyond these.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl SpecDuration {
    /// A span in nanoseconds.
    pub fn of_ns(ns: i64) -> Self {
        Self { seconds: ns / NS_PER_S, nanos: (ns % NS_PER_S) as i32 }
    }

    /// In nanoseconds; a span of more than 292 years is as long as that.
    pub fn ns(self) -> i64 {
        self.seconds.saturating_mul(NS_PER_S).saturating_add(self.nanos.into())
    }
}

/// Values of a field of a calendar: from `start` on in steps as far as `end`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ValueRange {
    /// The first value.
    #[prost(int32, tag = "1")]
    pub start: i32,
    /// The last one, if the steps meet it; less than `start` means `start`.
    #[prost(int32, tag = "2")]
    pub end: i32,
    /// 0 means 1.
    #[prost(int32, tag = "3")]
    pub step: i32,
}

/// A structured calendar: a time matches if each of its fields does. An empty field matches nothing, but for the year,
/// where it matches all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CalendarSpec {
    /// 0 to 59.
    #[prost(message, repeated, tag = "1")]
    pub second: Vec<ValueRange>,
    /// 0 to 59.
    #[prost(message, repeated, tag = "2")]
    pub minute: Vec<ValueRange>,
    /// 0 to 23.
    #[prost(message, repeated, tag = "3")]
    pub hour: Vec<ValueRange>,
    /// 1 to 31.
    #[prost(message, repeated, tag = "4")]
    pub day_of_month: Vec<ValueRange>,
    /// 1 to 12.
    #[prost(message, repeated, tag = "5")]
    pub month: Vec<ValueRange>,
    /// [`CALENDAR_YEARS`]; empty means all.
    #[prost(message, repeated, tag = "6")]
    pub year: Vec<ValueRange>,
    /// 0 to 6, 0 = Sunday.
    #[prost(message, repeated, tag = "7")]
    pub day_of_week: Vec<ValueRange>,
    /// What the user says of it, at most [`COMMENT_MAX_BYTES`] unless it is excluded.
    #[prost(string, tag = "8")]
    pub comment: String,
}

/// A time at each multiple of an interval since 1970-01-01 UTC, and a phase behind it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct IntervalSpec {
    /// At least a second; fractions of a second are cut where times are computed.
    #[prost(message, optional, tag = "1")]
    pub interval: Option<SpecDuration>,
    /// At least nothing, and less than the interval.
    #[prost(message, optional, tag = "2")]
    pub phase: Option<SpecDuration>,
}

/// A calendar as strings, each in the notation of cron's fields. An empty second, minute or hour is 0, every other empty
/// field is `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalendarStrings {
    /// 0 to 59.
    pub second: String,
    /// 0 to 59.
    pub minute: String,
    /// 0 to 23.
    pub hour: String,
    /// 1 to 31.
    pub day_of_month: String,
    /// 1 to 12, or a name of at least three letters.
    pub month: String,
    /// [`CALENDAR_YEARS`].
    pub year: String,
    /// 0 to 7, 0 and 7 = Sunday, or a name of at least two letters.
    pub day_of_week: String,
    /// What the user says of it.
    pub comment: String,
}

/// A specification as the API gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecInput {
    /// What stays as it is: all that is not given as strings.
    pub spec: ScheduleSpec,
    /// Calendars as strings.
    pub calendars: Vec<CalendarStrings>,
    /// Excluded calendars as strings.
    pub excluded_calendars: Vec<CalendarStrings>,
    /// Notations of cron.
    pub cron: Vec<String>,
}

/// A specification in the form that is stored.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ScheduleSpec {
    /// Calendars, any of which makes a time.
    #[prost(message, repeated, tag = "1")]
    pub calendars: Vec<CalendarSpec>,
    /// Calendars that take times away.
    #[prost(message, repeated, tag = "2")]
    pub excluded: Vec<CalendarSpec>,
    /// Intervals, any of which makes a time.
    #[prost(message, repeated, tag = "3")]
    pub intervals: Vec<IntervalSpec>,
    /// No nominal time is before it, in whole seconds.
    #[prost(message, optional, tag = "4")]
    pub start: Option<SpecTime>,
    /// No nominal time is behind it.
    #[prost(message, optional, tag = "5")]
    pub end: Option<SpecTime>,
    /// Actual times are less than this later than nominal ones.
    #[prost(message, optional, tag = "6")]
    pub jitter: Option<SpecDuration>,
    /// A name of the time zone database; empty means UTC.
    #[prost(string, tag = "7")]
    pub zone_name: String,
    /// The content of a TZif file, which wins over the name; empty means none.
    #[prost(bytes = "vec", tag = "8")]
    pub zone_data: Vec<u8>,
}

impl ScheduleSpec {
    /// The stored form of what was given. Of the zone it knows only that the cron notations do not contradict it: a
    /// [`Matcher`](crate::matcher::Matcher) of it has to be made before it is accepted.
    ///
    /// # Errors
    /// A notation that cannot be read, a value out of its range, zones that contradict each other, more than
    /// [`SPEC_ENTRIES_MAX`] entries.
    pub fn of(given: SpecInput) -> Result<Self, SpecError> {
        let mut spec = given.spec;
        let strings = given.calendars.len() + given.excluded_calendars.len() + given.cron.len();
        if spec.entries().saturating_add(strings) > SPEC_ENTRIES_MAX {
            return Err(SpecError(format!("more than {SPEC_ENTRIES_MAX} calendars and intervals")));
        }
        for calendar in &given.calendars {
            spec.calendars.push(field_text::calendar(calendar)?);
        }
        for calendar in &given.excluded_calendars {
            spec.excluded.push(field_text::calendar(calendar)?);
        }
        let mut zone: Option<String> = None;
        for notation in &given.cron {
            let read = cron_text::read(notation)?;
            if zone.as_ref().is_some_and(|zone| *zone != read.zone) {
                return Err(SpecError::conflicting_zones());
            }
            zone = Some(read.zone);
            match read.times {
                cron_text::Times::Calendar(calendar) => spec.calendars.push(calendar),
                cron_text::Times::Interval(interval) => spec.intervals.push(interval),
            }
        }
        if let Some(zone) = zone.filter(|zone| !zone.is_empty()) {
            let contradicts = !spec.zone_name.is_empty() && spec.zone_name != zone;
            if contradicts || !spec.zone_data.is_empty() {
                return Err(SpecError::conflicting_zones());
            }
            spec.zone_name = zone;
        }
        spec.calendars.iter().try_for_each(|calendar| ranges::check(calendar, false))?;
        spec.intervals.iter().try_for_each(check_interval)?;
        spec.excluded.iter().try_for_each(|calendar| ranges::check(calendar, true))?;
        Ok(spec)
    }

    /// The form that is shown: in each range `end` is at least `start`, and `step` at least 1.
    pub fn filled(mut self) -> Self {
        for calendar in self.calendars.iter_mut().chain(&mut self.excluded) {
            ranges::fill(calendar);
        }
        self
    }

    /// Calendars, excluded calendars and intervals.
    pub fn entries(&self) -> usize {
        self.calendars.len() + self.excluded.len() + self.intervals.len()
    }
}

fn check_interval(interval: &IntervalSpec) -> Result<(), SpecError> {
    let interval_ns = interval.interval.unwrap_or_default().ns();
    let phase_ns = interval.phase.unwrap_or_default().ns();
    let refused = |text: &str| Err(SpecError(text.to_owned()));
    match phase_ns {
        _any if interval_ns < NS_PER_S => refused("interval is too small"),
        ..0 => refused("phase is negative"),
        _late if phase_ns >= interval_ns => refused("phase cannot be greater than Interval"),
        _fits => Ok(()),
    }
}

/// Why a specification is refused, in the words of Temporal's server; the status is INVALID_ARGUMENT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

impl SpecError {
    fn conflicting_zones() -> Self {
        Self("conflicting timezone names".to_owned())
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invalid schedule spec: {}", self.0)
    }
}

impl std::error::Error for SpecError {}
