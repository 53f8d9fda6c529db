//! The rule that continues a zone's changes, in the notation of POSIX: `CET-1CEST,M3.5.0,M10.5.0/3`.

use crate::civil::{CivilDay, DAY_S, days_in_month, is_leap_year, weekday};
use crate::zone::OffsetChange;

const HOUR_S: i64 = 3_600;
/// When the clocks change if the rule does not say, in seconds of the day.
const DEFAULT_CHANGE_S: i64 = 2 * HOUR_S;
/// Hours of an offset, and of the time of a change (RFC 8536, section 3.3.1).
const OFFSET_HOURS_MAX: i64 = 24;
const CHANGE_HOURS_MAX: i64 = 167;

/// A zone's offset, or its two and when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PosixRule {
    /// Ahead of UTC.
    standard_s: i64,
    summer: Option<Summer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Summer {
    offset_s: i64,
    begin: DayRule,
    end: DayRule,
}

/// A day of each year, and a local time of it that may be beyond its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DayRule {
    day: YearDay,
    second: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum YearDay {
    /// 1 to 365; the 29th of February is not counted.
    Julian(i64),
    /// 0 to 365; it is counted.
    ZeroBased(i64),
    /// The weekday's place in the month, 5 = the last.
    Month { month: u32, week: u32, weekday: u32 },
}

impl PosixRule {
    /// None if it cannot be read.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut text = RuleText(text);
        text.name()?;
        let standard_s = -text.signed_time(OFFSET_HOURS_MAX)?;
        if text.0.is_empty() {
            return Some(Self { standard_s, summer: None });
        }
        text.name()?;
        let offset_s = if text.0.is_empty() || text.0.starts_with(',') {
            standard_s + HOUR_S
        } else {
            -text.signed_time(OFFSET_HOURS_MAX)?
        };
        if text.0.is_empty() {
            text = RuleText(",M3.2.0,M11.1.0");
        }
        text.skip(',')?;
        let begin = text.day_rule()?;
        text.skip(',')?;
        let end = text.day_rule()?;
        text.0.is_empty().then_some(Self { standard_s, summer: Some(Summer { offset_s, begin, end }) })
    }

    /// The offset, if it is always the same.
    pub(super) fn fixed_offset_s(&self) -> Option<i32> {
        if self.summer.is_some() { None } else { i32::try_from(self.standard_s).ok() }
    }

    /// The changes of a year.
    pub(super) fn changes(&self, year: i64) -> Vec<OffsetChange> {
        let Some(summer) = &self.summer else { return Vec::new() };
        let change = |rule: &DayRule, before_s: i64, offset_s: i64| {
            let at_s = rule.local_s(year) - before_s;
            Some(OffsetChange { at_s, offset_s: i32::try_from(offset_s).ok()? })
        };
        let begin = change(&summer.begin, self.standard_s, summer.offset_s);
        let end = change(&summer.end, summer.offset_s, self.standard_s);
        begin.into_iter().chain(end).collect()
    }
}

impl DayRule {
    /// The local time in a year, as if it were UTC.
    fn local_s(&self, year: i64) -> i64 {
        let january = CivilDay { year, month: 1, day: 1 }.days();
        let day = match self.day {
            YearDay::Julian(day) => january + day - 1 + i64::from(is_leap_year(year) && day > 59),
            YearDay::ZeroBased(day) => january + day,
            YearDay::Month { month, week, weekday: wanted } => {
                let first = CivilDay { year, month, day: 1 }.days();
                let mut day = (wanted + 7 - weekday(first)) % 7 + 7 * (week - 1);
                if day >= days_in_month(year, month) {
                    day -= 7;
                }
                first + i64::from(day)
            }
        };
        day * DAY_S + self.second
    }
}

/// What is not read yet.
struct RuleText<'a>(&'a str);

impl RuleText<'_> {
    fn skip(&mut self, sign: char) -> Option<()> {
        self.0 = self.0.strip_prefix(sign)?;
        Some(())
    }

    /// A name of letters, or of anything in angle brackets.
    fn name(&mut self) -> Option<()> {
        if let Some(text) = self.0.strip_prefix('<') {
            self.0 = text.split_once('>')?.1;
            return Some(());
        }
        let length = self.0.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.0.len());
        self.0 = &self.0[length..];
        (length >= 3).then_some(())
    }

    fn number(&mut self, most: i64) -> Option<i64> {
        let length = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        digits.parse().ok().filter(|number| *number <= most)
    }

    /// `[+-]hours[:minutes[:seconds]]`, in seconds.
    fn signed_time(&mut self, hours_max: i64) -> Option<i64> {
        let is_negative = self.skip('-').is_some();
        if !is_negative {
            let _optional = self.skip('+');
        }
        let mut seconds = self.number(hours_max)? * HOUR_S;
        for unit_s in [60, 1] {
            if self.skip(':').is_none() {
                break;
            }
            seconds += self.number(59)? * unit_s;
        }
        Some(if is_negative { -seconds } else { seconds })
    }

    fn day_rule(&mut self) -> Option<DayRule> {
        let day = self.year_day()?;
        let second =
            if self.skip('/').is_some() { self.signed_time(CHANGE_HOURS_MAX)? } else { DEFAULT_CHANGE_S };
        Some(DayRule { day, second })
    }

    fn year_day(&mut self) -> Option<YearDay> {
        if self.skip('J').is_some() {
            return self.number(365).filter(|day| *day >= 1).map(YearDay::Julian);
        }
        if self.skip('M').is_none() {
            return self.number(365).map(YearDay::ZeroBased);
        }
        let month = self.number(12).filter(|month| *month >= 1)?;
        self.skip('.')?;
        let week = self.number(5).filter(|week| *week >= 1)?;
        self.skip('.')?;
        let weekday = self.number(6)?;
        let small = |number: i64| u32::try_from(number).ok();
        Some(YearDay::Month { month: small(month)?, week: small(week)?, weekday: small(weekday)? })
    }
}
