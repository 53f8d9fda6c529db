//! Cron schedules: when the next run of a chain begins.
//!
//! The notation and its moments are those of the library that Temporal's server uses (robfig's cron, version 3): five
//! fields, descriptors like `@daily`, `@every 90s`, a time zone in front (`CRON_TZ=Europe/Berlin 0 9 * * *`). The
//! moments of a notation in fields are found by [`calendar`]; those of `@every` are counted.

mod calendar;
mod notation;

use crate::cron::calendar::Calendar;

/// What is refused because it cannot be read.
const UNREADABLE: &str = "invalid CronSchedule.";
/// What is refused because it would never come.
const NEVER: &str = "invalid CronSchedule, no time can be found to satisfy the schedule";
/// Where the search for a moment that fits begins when a schedule is checked: any schedule that has one comes within
/// five years of it, the 29th of February included.
const SOME_DAY_S: i64 = 1_735_689_600;

/// A schedule that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Schedule {
    /// Again and again after as many seconds, at least one.
    Every(i64),
    /// Whenever the calendar fits.
    Calendar(Box<Calendar>),
}

/// Refuses a schedule that cannot be read or would never come; an empty one is none.
///
/// # Errors
/// What is wrong with it, in the words of Temporal's server.
pub fn check(schedule: &str) -> Result<(), &'static str> {
    if schedule.is_empty() {
        return Ok(());
    }
    let schedule = notation::read(schedule).ok_or(UNREADABLE)?;
    schedule.next_s(SOME_DAY_S, SOME_DAY_S.saturating_mul(1000)).map(|_s| ()).ok_or(NEVER)
}

/// How long the next run waits, in ms, whole seconds rounded up; none where the schedule is empty, cannot be read or
/// never comes again.
///
/// `nominal_ms` is when the present run's first task was to begin: the next run comes at the first moment of the
/// schedule behind it that is not past `now_ms`. Where that lies ahead, since something ended the run's wait, it is the
/// moment itself.
pub fn backoff_ms(schedule: &str, nominal_ms: i64, now_ms: i64) -> Option<i64> {
    if schedule.is_empty() {
        return None;
    }
    let next_ms = if now_ms < nominal_ms {
        nominal_ms
    } else {
        notation::read(schedule)?.next_s(nominal_ms.div_euclid(1000), now_ms)?.checked_mul(1000)?
    };
    let wait_ms = next_ms.checked_sub(now_ms)?;
    Some(wait_ms.saturating_add(999).div_euclid(1000).saturating_mul(1000))
}

impl Schedule {
    /// The first moment behind `nominal_s` that is not before `now_ms`, in seconds.
    fn next_s(&self, nominal_s: i64, now_ms: i64) -> Option<i64> {
        let now_s = now_ms.div_euclid(1000).checked_add(i64::from(now_ms.rem_euclid(1000) > 0))?;
        match self {
            Self::Every(span_s) => {
                let passed = now_s.checked_sub(nominal_s)?.max(0);
                let times = passed.div_euclid(*span_s) + i64::from(passed.rem_euclid(*span_s) > 0);
                nominal_s.checked_add(times.max(1).checked_mul(*span_s)?)
            }
            Self::Calendar(calendar) => calendar.next_s(nominal_s.max(now_s.checked_sub(1)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22 23:59:30.250 UTC, a Sunday.
    const NOW_MS: i64 = 1_795_391_970_250;

    fn wait_s(schedule: &str) -> Option<i64> {
        backoff_ms(schedule, NOW_MS, NOW_MS).map(|ms| ms / 1000)
    }

    #[test]
    fn a_wait_is_in_whole_seconds_and_never_short() {
        assert_eq!(backoff_ms("* * * * *", NOW_MS, NOW_MS), Some(30_000), "29.75 s ahead");
        assert_eq!(backoff_ms("0 0 * * *", NOW_MS, NOW_MS), Some(30_000));
        assert_eq!(wait_s("@every 90s"), Some(90));
        assert_eq!(wait_s("@hourly"), Some(30));
        assert_eq!(wait_s("@yearly"), Some(39 * 86_400 + 30), "the 1st of January");
        assert_eq!(wait_s("CRON_TZ=Asia/Tokyo 0 9 * * *"), Some(30));
        assert_eq!(wait_s(""), None);
    }

    #[test]
    fn moments_that_passed_while_a_run_lived_are_left_out() {
        let nominal_ms = NOW_MS - 3_600_000;
        assert_eq!(backoff_ms("* * * * *", nominal_ms, NOW_MS), Some(30_000));
        // Counted from the whole second in which the first task was to begin.
        assert_eq!(backoff_ms("@every 7m", nominal_ms, NOW_MS), Some(180_000));
        assert_eq!(
            backoff_ms("@every 1s", 0, NOW_MS),
            Some(1_000),
            "56 years of seconds are counted at once"
        );
    }

    #[test]
    fn a_moment_that_is_now_counts_unless_it_is_the_present_runs_own() {
        let now_ms = NOW_MS - 30_250;
        assert_eq!(backoff_ms("* * * * *", now_ms - 60_000, now_ms), Some(0));
        assert_eq!(backoff_ms("* * * * *", now_ms, now_ms), Some(60_000));
        assert_eq!(backoff_ms("@every 60s", now_ms - 60_000, now_ms), Some(0));
    }

    #[test]
    fn a_run_whose_wait_was_cut_short_is_followed_by_one_at_its_own_moment() {
        assert_eq!(backoff_ms("@daily", NOW_MS + 29_750, NOW_MS), Some(30_000));
    }

    #[test]
    fn schedules_that_cannot_be_read_or_never_come_are_told_apart() {
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("0 12 * * MON-FRI"), Ok(()));
        assert_eq!(check("0 0 29 2 *"), Ok(()));
        assert_eq!(check("now and then"), Err(UNREADABLE));
        for never in ["0 0 31 2 *", "0 0 30 2 ?", ", * * * *", "* * , * *"] {
            assert_eq!(check(never), Err(NEVER), "{never}");
            assert_eq!(wait_s(never), None, "{never}");
        }
    }

    #[test]
    fn no_moment_is_too_far_for_a_number() {
        for ms in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX] {
            for nominal_ms in [i64::MIN, 0, i64::MAX] {
                for schedule in ["* * * * *", "@every 1s", "@every 1h", "TZ=America/New_York @daily"] {
                    assert!(backoff_ms(schedule, nominal_ms, ms).is_none_or(|wait_ms| wait_ms >= 0));
                }
            }
        }
    }

    #[test]
    fn the_data_of_time_zones_belongs_to_a_level_of_decisions() {
        // Another edition decides otherwise: whoever changes this line raises the level in the position row.
        assert_eq!(chrono_tz::IANA_TZDB_VERSION, "2025b");
    }
}
