//! A calendar: the moments at which minute, hour, day, month and weekday fit, as the clocks of a time zone show them.
//!
//! A moment that the clocks skip does not come, one that they show twice comes twice: as in the library that
//! Temporal's server uses, whose way through the fields this follows, from the month down to the minute. Where a day has
//! no midnight, which hours of it are looked at follows from how Go reads a time that the clocks skip.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use chrono_tz::Tz;

/// A moment is looked for in this year and as many after it.
const YEARS_MAX: i32 = 5;
const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

/// The numbers that a field may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// A bit for each number.
    pub(super) numbers: u64,
    /// It says nothing (`*` or `?`): of days and weekdays both have to fit then, else one of them.
    pub(super) is_any: bool,
}

impl Field {
    pub(super) fn has(self, number: u32) -> bool {
        self.numbers & (1 << number) != 0
    }
}

/// Fields in a time zone; none is UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) zone: Option<Tz>,
    pub(super) minute: Field,
    pub(super) hour: Field,
    pub(super) day: Field,
    pub(super) month: Field,
    pub(super) weekday: Field,
}

impl Calendar {
    /// The first moment that fits behind `after_s`, in seconds since 1970; none within five years.
    pub(super) fn next_s(&self, after_s: i64) -> Option<i64> {
        let fields = [self.minute, self.hour, self.day, self.month, self.weekday];
        if fields.iter().any(|field| field.numbers == 0) {
            return None;
        }
        let mut search =
            Search { calendar: self, at: Shown::at(self.zone, after_s.checked_add(1)?)?, began_anew: false };
        let year_max = search.at.time.year().checked_add(YEARS_MAX)?;
        while search.at.time.year() <= year_max {
            if search.month()? && search.day()? && search.hour()? && search.minute()? {
                return Some(search.at.unix_s);
            }
        }
        None
    }

    fn has_day(&self, time: NaiveDateTime) -> bool {
        let (day, weekday) =
            (self.day.has(time.day()), self.weekday.has(time.weekday().num_days_from_sunday()));
        if self.day.is_any || self.weekday.is_any { day && weekday } else { day || weekday }
    }
}

/// A moment and what the clocks show then.
#[derive(Clone, Copy)]
struct Shown {
    zone: Option<Tz>,
    unix_s: i64,
    time: NaiveDateTime,
}

impl Shown {
    /// None where no calendar reaches.
    fn at(zone: Option<Tz>, unix_s: i64) -> Option<Self> {
        let time = utc(unix_s.checked_add(offset_s(zone, unix_s)?)?)?;
        Some(Self { zone, unix_s, time })
    }

    /// The moment at which the clocks show `time`. Of two the one, and for a time that they skip the moment, that Go
    /// takes: the offset is that of the moment found with the offset which holds when UTC shows `time`.
    fn showing(zone: Option<Tz>, time: NaiveDateTime) -> Option<Self> {
        let shown_s = time.and_utc().timestamp();
        let unix_s = match offset_s(zone, shown_s)? {
            0 => shown_s,
            near_s => shown_s.checked_sub(offset_s(zone, shown_s.checked_sub(near_s)?)?)?,
        };
        Self::at(zone, unix_s)
    }

    fn later(self, span_s: i64) -> Option<Self> {
        Self::at(self.zone, self.unix_s.checked_add(span_s)?)
    }
}

fn utc(unix_s: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(unix_s, 0).map(|time| time.naive_utc())
}

/// The same day and time of the next month, counted on into the one behind it where it has no such day.
fn a_month_later(time: NaiveDateTime) -> Option<NaiveDateTime> {
    let first = time.date().with_day(1)?.checked_add_months(Months::new(1))?;
    let date = first.checked_add_days(Days::new(u64::from(time.date().day0())))?;
    Some(date.and_time(time.time()))
}

/// How far the clocks are ahead of UTC at a moment.
fn offset_s(zone: Option<Tz>, unix_s: i64) -> Option<i64> {
    match zone {
        None => Some(0),
        Some(zone) => Some(zone.offset_from_utc_datetime(&utc(unix_s)?).fix().local_minus_utc().into()),
    }
}

/// The way to a moment. Each step goes on until its field fits, and says so; where it passes the end of its field, the
/// fields above have to be looked at anew, from the month on.
struct Search<'a> {
    calendar: &'a Calendar,
    at: Shown,
    /// A field was changed, so those below it are at their beginning.
    began_anew: bool,
}

impl Search<'_> {
    fn month(&mut self) -> Option<bool> {
        while !self.calendar.month.has(self.at.time.month()) {
            self.begin_at(self.at.time.date().with_day(1)?, 0)?;
            self.at = Shown::showing(self.at.zone, a_month_later(self.at.time)?)?;
            if self.at.time.month() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn day(&mut self) -> Option<bool> {
        while !self.calendar.has_day(self.at.time) {
            self.begin_at(self.at.time.date(), 0)?;
            let before_s = self.at.unix_s;
            self.at = Shown::showing(self.at.zone, self.at.time.checked_add_days(Days::new(1))?)?;
            // A day without a midnight begins an hour later; Go may find the hour before it instead.
            let hour = i64::from(self.at.time.hour());
            if hour > 12 {
                self.at = self.at.later((24 - hour) * HOUR_S)?;
            } else if hour > 0 {
                self.at = self.at.later(-hour * HOUR_S)?;
            }
            if self.at.unix_s <= before_s {
                // A day that a place left out altogether: the library would stay here for ever.
                self.at = Shown::at(self.at.zone, before_s.checked_add(DAY_S)?)?;
            }
            if self.at.time.day() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn hour(&mut self) -> Option<bool> {
        while !self.calendar.hour.has(self.at.time.hour()) {
            self.begin_at(self.at.time.date(), self.at.time.hour())?;
            self.at = self.at.later(HOUR_S)?;
            if self.at.time.hour() == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Finds the minute, and its beginning.
    fn minute(&mut self) -> Option<bool> {
        while !self.calendar.minute.has(self.at.time.minute()) {
            self.at = self.at.later(MINUTE_S - i64::from(self.at.time.second()))?;
            self.began_anew = true;
            if self.at.time.minute() == 0 {
                return Some(false);
            }
        }
        match i64::from(self.at.time.second()) {
            0 => Some(true),
            passed_s => {
                self.at = self.at.later(MINUTE_S - passed_s)?;
                self.began_anew = true;
                Some(false)
            }
        }
    }

    /// The first change of a field sets those below it to their beginning.
    fn begin_at(&mut self, date: NaiveDate, hour: u32) -> Option<()> {
        if !self.began_anew {
            self.began_anew = true;
            self.at = Shown::showing(self.at.zone, date.and_hms_opt(hour, 0, 0)?)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and follow from a seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, count: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % count
        }

        /// One to a few numbers of a field, or all of them.
        fn field(&mut self, least: u32, greatest: u32) -> Field {
            if self.below(3) == 0 {
                return any(least, greatest);
            }
            let mut numbers = 0;
            for _number in 0..=self.below(4) {
                numbers |= 1 << (u64::from(least) + self.below(u64::from(greatest - least) + 1));
            }
            Field { numbers, is_any: false }
        }

        fn calendar(&mut self, zones: &[Option<Tz>]) -> Calendar {
            Calendar {
                zone: zones[self.below(zones.len() as u64) as usize],
                minute: self.field(0, 59),
                hour: self.field(0, 23),
                day: self.field(1, 31),
                month: self.field(1, 12),
                weekday: self.field(0, 6),
            }
        }
    }

    fn any(least: u32, greatest: u32) -> Field {
        Field { numbers: (least..=greatest).fold(0, |numbers, number| numbers | 1 << number), is_any: true }
    }

    fn fits(calendar: &Calendar, unix_s: i64) -> bool {
        let time = Shown::at(calendar.zone, unix_s).expect("a moment of our time").time;
        calendar.minute.has(time.minute())
            && calendar.hour.has(time.hour())
            && calendar.month.has(time.month())
            && calendar.has_day(time)
            && time.second() == 0
    }

    #[test]
    fn a_moment_lies_ahead_and_fits_and_none_before_it_does() {
        // Places whose clocks are never changed: there the first moment that fits is the one.
        let zones = [None, Some(Tz::Asia__Tokyo), Some(Tz::Asia__Kolkata)];
        let mut dice = Dice(1);
        let mut found = 0;
        for _case in 0..3_000 {
            let calendar = dice.calendar(&zones);
            let after_s = 1_600_000_000 + dice.below(600_000_000) as i64;
            let Some(next_s) = calendar.next_s(after_s) else { continue };
            assert!(next_s > after_s && fits(&calendar, next_s), "{calendar:?} behind {after_s}: {next_s}");
            let mut minute_s = after_s - after_s.rem_euclid(60) + 60;
            while minute_s < next_s.min(after_s + 3 * DAY_S) {
                assert!(!fits(&calendar, minute_s), "{calendar:?} behind {after_s}: {minute_s} comes first");
                minute_s += 60;
            }
            found += 1;
        }
        assert!(found > 2_000, "nearly all have a moment: {found}");
    }

    #[test]
    fn the_search_ends_wherever_the_clocks_are_changed() {
        let mut dice = Dice(2);
        let zones: Vec<Option<Tz>> = chrono_tz::TZ_VARIANTS.iter().copied().map(Some).collect();
        for _case in 0..3_000 {
            let calendar = dice.calendar(&zones);
            // From 1990 on, so that days are left out, too.
            let after_s = 631_152_000 + dice.below(2_800_000_000) as i64;
            if let Some(next_s) = calendar.next_s(after_s) {
                assert!(next_s > after_s, "{calendar:?} behind {after_s}: {next_s}");
                assert!(calendar.minute.has(Shown::at(calendar.zone, next_s).expect("now").time.minute()));
                assert!(next_s <= after_s + (i64::from(YEARS_MAX) + 1) * 366 * DAY_S);
            }
        }
    }

    #[test]
    fn an_hour_that_is_skipped_does_not_come_and_one_that_is_repeated_comes_twice() {
        let at = |hour: u32, minute: u32| Calendar {
            zone: Some(Tz::Europe__Berlin),
            minute: Field { numbers: 1 << minute, is_any: false },
            hour: Field { numbers: 1 << hour, is_any: false },
            day: any(1, 31),
            month: any(1, 12),
            weekday: any(0, 6),
        };
        // 2026-03-29: at 02:00 it is 03:00. The next 02:30 is that of the 30th, 24 h less one and a half after 00:00 UTC.
        let spring_s = 1_774_742_400;
        assert_eq!(at(2, 30).next_s(spring_s), Some(spring_s + DAY_S + 1_800));
        assert_eq!(at(3, 0).next_s(spring_s), Some(spring_s + 3_600));
        // 2026-10-25: at 03:00 it is 02:00 again.
        let autumn_s = 1_792_886_400;
        let first_s = at(2, 30).next_s(autumn_s);
        assert_eq!(first_s, Some(autumn_s + 1_800));
        assert_eq!(at(2, 30).next_s(autumn_s + 1_800), Some(autumn_s + 5_400));
    }

    #[test]
    fn a_day_that_a_place_left_out_is_passed() {
        // Apia had no 30th of December 2011.
        let calendar = Calendar {
            zone: Some(Tz::Pacific__Apia),
            minute: Field { numbers: 1, is_any: false },
            hour: Field { numbers: 1, is_any: false },
            day: Field { numbers: 1 << 30, is_any: false },
            month: any(1, 12),
            weekday: any(0, 6),
        };
        let found_s = calendar.next_s(1_325_000_000).expect("there are other months");
        assert!(fits(&calendar, found_s));
    }
}
