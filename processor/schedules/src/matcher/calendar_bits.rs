//! A calendar as bit sets: each jump to a value that matches is an instruction.

use crate::civil::{CivilDay, DAY_S, days_in_month, weekday};
use crate::spec::{CALENDAR_YEARS, CalendarSpec, ValueRange};

const FIRST_YEAR: i64 = *CALENDAR_YEARS.start() as i64;
const LAST_YEAR: i64 = *CALENDAR_YEARS.end() as i64;

/// What the clocks have to show. A value's bit is at the value; a year's at the years since [`FIRST_YEAR`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CalendarBits {
    second: u64,
    minute: u64,
    hour: u64,
    day_of_month: u64,
    month: u64,
    /// None means every year up to [`LAST_YEAR`], also those before [`FIRST_YEAR`].
    year: Option<u128>,
    day_of_week: u64,
}

impl CalendarBits {
    pub(super) fn of(calendar: &CalendarSpec) -> Self {
        let year = |year: i64| year.checked_sub(FIRST_YEAR);
        Self {
            second: small_bits(&calendar.second),
            minute: small_bits(&calendar.minute),
            hour: small_bits(&calendar.hour),
            day_of_month: small_bits(&calendar.day_of_month),
            month: small_bits(&calendar.month),
            year: (!calendar.year.is_empty()).then(|| bits(&calendar.year, year)),
            day_of_week: small_bits(&calendar.day_of_week),
        }
    }

    /// False where a field is empty, or no year has a day that fits: such a calendar need not be searched.
    pub(super) fn ever_matches(&self) -> bool {
        let has_times = self.second != 0 && self.minute != 0 && self.hour != 0;
        let first_day =
            CivilDay { year: if self.year.is_some() { FIRST_YEAR } else { 1970 }, month: 1, day: 1 };
        // What the clocks show begins a day before UTC's 1970.
        has_times && self.next_day(first_day.days() - 1).0.is_some()
    }

    /// True if the clocks show what fits, in seconds since 1970 of their own.
    pub(super) fn matches(&self, shown_s: i64) -> bool {
        let (days, second) = (shown_s.div_euclid(DAY_S), shown_s.rem_euclid(DAY_S));
        let day = CivilDay::of(days);
        let has_year = match self.year {
            None => day.year <= LAST_YEAR,
            Some(years) => year_bit(day.year).is_some_and(|bit| years & bit != 0),
        };
        has_year
            && has(self.month, day.month)
            && has(self.day_of_month, day.day)
            && has(self.day_of_week, weekday(days))
            && has(self.hour, (second / 3_600) as u32)
            && has(self.minute, (second / 60 % 60) as u32)
            && has(self.second, (second % 60) as u32)
    }

    /// The first that fits and is not before `shown_s`, both in seconds since 1970 as the clocks show them, and the number
    /// of steps that it took.
    pub(super) fn next(&self, shown_s: i64) -> (Option<i64>, u32) {
        let (days, second) = (shown_s.div_euclid(DAY_S), shown_s.rem_euclid(DAY_S));
        let (day, steps) = self.next_day(days);
        if day == Some(days)
            && let Some(second) = self.next_second(second)
        {
            return (Some(days * DAY_S + second), steps + 1);
        }
        let (day, more_steps) = if day == Some(days) { self.next_day(days + 1) } else { (day, 0) };
        let found = day.zip(self.next_second(0)).map(|(day, second)| day * DAY_S + second);
        (found, steps + more_steps + 1)
    }

    /// The first second of a day that fits and is not before `second`.
    fn next_second(&self, second: i64) -> Option<i64> {
        let (hour, minute, second) =
            ((second / 3_600) as u32, (second / 60 % 60) as u32, (second % 60) as u32);
        let whole = |hour, minute, second| Some(i64::from(hour * 3_600 + minute * 60 + second));
        if has(self.hour, hour) {
            if has(self.minute, minute)
                && let Some(second) = next_bit(self.second, second)
            {
                return whole(hour, minute, second);
            }
            if let Some(minute) = next_bit(self.minute, minute + 1) {
                return whole(hour, minute, next_bit(self.second, 0)?);
            }
        }
        whole(next_bit(self.hour, hour + 1)?, next_bit(self.minute, 0)?, next_bit(self.second, 0)?)
    }

    /// The first day that fits and is not before `days` since 1970, and the number of months and years looked at.
    fn next_day(&self, days: i64) -> (Option<i64>, u32) {
        let mut steps = 0;
        let CivilDay { mut year, mut month, mut day } = CivilDay::of(days);
        while let Some(next) = self.next_year(year) {
            steps += 1;
            if next != year {
                (year, month, day) = (next, 1, 1);
            }
            while let Some(next) = next_bit(self.month, month) {
                steps += 1;
                if next != month {
                    (month, day) = (next, 1);
                }
                let first = CivilDay { year, month, day: 1 }.days();
                if let Some(day) = next_bit(self.days_of(year, month, weekday(first)), day) {
                    return (Some(first + i64::from(day) - 1), steps);
                }
                (month, day) = (month + 1, 1);
            }
            (year, month, day) = (year + 1, 1, 1);
        }
        (None, steps + 1)
    }

    /// The first year that fits and is not before `year`.
    fn next_year(&self, year: i64) -> Option<i64> {
        let Some(years) = self.year else { return (year <= LAST_YEAR).then_some(year) };
        let from = u32::try_from((year - FIRST_YEAR).max(0)).ok().filter(|from| *from < u128::BITS)?;
        let left = years >> from << from;
        (left != 0).then(|| FIRST_YEAR + i64::from(left.trailing_zeros()))
    }

    /// The days of a month that fit by their number and their weekday.
    fn days_of(&self, year: i64, month: u32, first_weekday: u32) -> u64 {
        let week = (self.day_of_week >> first_weekday | self.day_of_week << (7 - first_weekday)) & 0x7f;
        let weeks = (0..5).fold(0, |days, place| days | week << (7 * place)) << 1;
        let length = days_in_month(year, month);
        self.day_of_month & weeks & ((2 << length) - 1)
    }
}

fn has(bits: u64, value: u32) -> bool {
    bits.checked_shr(value).unwrap_or(0) & 1 != 0
}

/// The first value that is set and is not before `from`.
fn next_bit(bits: u64, from: u32) -> Option<u32> {
    let left = bits.checked_shr(from)?;
    (left != 0).then(|| from + left.trailing_zeros())
}

fn year_bit(year: i64) -> Option<u128> {
    u32::try_from(year - FIRST_YEAR).ok().and_then(|place| 1_u128.checked_shl(place))
}

fn small_bits(ranges: &[ValueRange]) -> u64 {
    // Values are less than 60.
    bits(ranges, Some) as u64
}

/// The bits of ranges, each value at a place; values without one are none, so that no range is long.
fn bits(ranges: &[ValueRange], place: impl Fn(i64) -> Option<i64>) -> u128 {
    let mut bits = 0_u128;
    for range in ranges {
        let (start, end) = (i64::from(range.start), i64::from(range.end.max(range.start)));
        let step = i64::from(range.step.max(1));
        for count in 0..i64::from(u128::BITS) {
            let value = start + count * step;
            if value > end {
                break;
            }
            let place = place(value).and_then(|place| u32::try_from(place).ok());
            bits |= place.and_then(|place| 1_u128.checked_shl(place)).unwrap_or(0);
        }
    }
    bits
}
