//! The Gregorian calendar, as numbers: days since 1970 and what they are called.

/// Seconds of a day.
pub(crate) const DAY_S: i64 = 86_400;

/// A day by its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CivilDay {
    /// The year.
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: u32,
    /// 1 to 31.
    pub(crate) day: u32,
}

impl CivilDay {
    /// The day that is so many days behind 1970-01-01. Days of more than some million years are out of reach.
    pub(crate) fn of(days: i64) -> Self {
        // Counted in eras of 400 years, each of which begins on a 1st of March: leap days come last.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month: month as u32, day: day as u32 }
    }

    /// Days since 1970-01-01.
    pub(crate) fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted_month = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let of_year = (153 * i64::from(shifted_month) + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
    }
}

/// True of a year with a 29th of February.
pub(crate) fn is_leap_year(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The number of days of a month.
pub(crate) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _longer => 31,
    }
}

/// The weekday of a day since 1970-01-01, 0 = Sunday.
pub(crate) fn weekday(days: i64) -> u32 {
    (days + 4).rem_euclid(7) as u32
}

/// A time of UTC in RFC 3339, in whole seconds.
pub(crate) fn rfc3339(unix_s: i64) -> String {
    let (day, second) = (CivilDay::of(unix_s.div_euclid(DAY_S)), unix_s.rem_euclid(DAY_S));
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{:02}Z", day.year, day.month, day.day, second % 60)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Datelike};

    use super::*;

    #[test]
    fn days_are_those_of_a_library_that_others_use() {
        for days in (-200_000..200_000).step_by(7).chain([-1, 0, 1, 11_016, 11_017, 47_540, 47_541]) {
            let known = DateTime::from_timestamp(days * DAY_S, 0).expect("in reach").date_naive();
            let day = CivilDay::of(days);
            assert_eq!((day.year, day.month, day.day), (i64::from(known.year()), known.month(), known.day()));
            assert_eq!(day.days(), days);
            assert_eq!(weekday(days), known.weekday().num_days_from_sunday());
            let length = known.num_days_in_month();
            assert_eq!(days_in_month(day.year, day.month), u32::from(length));
        }
    }

    #[test]
    fn a_time_is_written_in_whole_seconds() {
        assert_eq!(rfc3339(1_648_026_000), "2022-03-23T09:00:00Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59Z");
    }
}
