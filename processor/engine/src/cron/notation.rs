//! The notation of schedules: `CRON_TZ=zone`, five fields, descriptors, `@every` with a span of time.

use chrono_tz::Tz;

use crate::cron::Schedule;
use crate::cron::calendar::{Calendar, Field};

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What a field may say: its least and its greatest number, and the names of numbers from the least on.
struct Range {
    least: u32,
    greatest: u32,
    names: &'static [&'static str],
}

const MINUTE: Range = Range { least: 0, greatest: 59, names: &[] };
const HOUR: Range = Range { least: 0, greatest: 23, names: &[] };
const DAY: Range = Range { least: 1, greatest: 31, names: &[] };
const MONTH: Range = Range { least: 1, greatest: 12, names: MONTHS };
const WEEKDAY: Range = Range { least: 0, greatest: 6, names: WEEKDAYS };

/// Reads a schedule; none where it is not one.
pub(super) fn read(text: &str) -> Option<Schedule> {
    let (zone, text) = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(zoned) => {
            let (name, rest) = zoned.split_once(' ')?;
            (zone(name)?, rest.trim())
        }
        None => (None, text),
    };
    if let Some(span) = text.strip_prefix("@every ") {
        return Some(Schedule::Every((nanoseconds(span)? / 1_000_000_000).max(1)));
    }
    let text = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _unknown if text.starts_with('@') => return None,
        fields => fields,
    };
    let mut fields = text.split_whitespace();
    let mut next = |range: &Range| field(fields.next()?, range);
    let calendar = Calendar {
        zone,
        minute: next(&MINUTE)?,
        hour: next(&HOUR)?,
        day: next(&DAY)?,
        month: next(&MONTH)?,
        weekday: next(&WEEKDAY)?,
    };
    fields.next().is_none().then(|| Schedule::Calendar(Box::new(calendar)))
}

/// A time zone by its name; `None` within is UTC. A server has no place of its own: `Local` is UTC, too.
fn zone(name: &str) -> Option<Option<Tz>> {
    match name {
        "" | "UTC" | "Local" => Some(None),
        name => name.parse().ok().map(Some),
    }
}

/// Ranges between commas; what is empty is left out.
fn field(text: &str, range: &Range) -> Option<Field> {
    let mut field = Field::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (bounds, step) = match part.split_once('/') {
            Some((bounds, step)) => (bounds, Some(number(step)?)),
            None => (part, None),
        };
        let mut ends = bounds.split('-');
        let first = ends.next()?;
        let (least, greatest) = if matches!(first, "*" | "?") {
            // With a step it is a choice of numbers like any other.
            field.is_any |= step.is_none_or(|step| step == 1);
            (range.least, range.greatest)
        } else {
            let least = number_or_name(first, range)?;
            match (ends.next(), ends.next()) {
                (None, _) if step.is_some() => (least, range.greatest),
                (None, _) => (least, least),
                (Some(last), None) => (least, number_or_name(last, range)?),
                (Some(_), Some(_)) => return None,
            }
        };
        if least < range.least || greatest > range.greatest || least > greatest || step == Some(0) {
            return None;
        }
        for number in (least..=greatest).step_by(usize::try_from(step.unwrap_or(1)).ok()?) {
            field.numbers |= 1 << number;
        }
    }
    Some(field)
}

fn number_or_name(text: &str, range: &Range) -> Option<u32> {
    let named = range.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named {
        Some(place) => u32::try_from(place).ok()?.checked_add(range.least),
        None => number(text),
    }
}

/// A number in decimal, with or without a plus; one beyond all bounds is the greatest that there is.
fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond 64 bits it is no number to whoever reads it as one.
    let number: i64 = digits.parse().ok()?;
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// A span in Go's notation, `1h30m` or `-1.5s`, in nanoseconds.
fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: i128 = 0;
    while !rest.is_empty() {
        let (part, behind) = part(rest)?;
        sum = sum.checked_add(part)?;
        rest = behind;
    }
    i64::try_from(if negative { -sum } else { sum }).ok()
}

/// A number with its unit, and what stands behind.
fn part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _unknown => return None,
    };
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // What is behind the 18th digit is less than a nanosecond of any unit.
    let fraction = &fraction[..fraction.len().min(18)];
    let numerator: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let denominator = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some((i128::from(whole).checked_mul(unit)?.checked_add(numerator * unit / denominator)?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str, range: &Range) -> Option<Vec<u32>> {
        let field = field(text, range)?;
        Some((0..64).filter(|number| field.has(*number)).collect())
    }

    #[test]
    fn a_field_is_numbers_ranges_steps_and_lists_of_them() {
        assert_eq!(numbers("5", &MINUTE), Some(vec![5]));
        assert_eq!(numbers("1-4", &MINUTE), Some(vec![1, 2, 3, 4]));
        assert_eq!(numbers("*/20", &MINUTE), Some(vec![0, 20, 40]));
        assert_eq!(numbers("50/4", &MINUTE), Some(vec![50, 54, 58]), "to the end of the range");
        assert_eq!(numbers("10-20/5,3,,+7", &MINUTE), Some(vec![3, 7, 10, 15, 20]));
        assert_eq!(numbers("mar-MAY,12", &MONTH), Some(vec![3, 4, 5, 12]));
        assert_eq!(numbers("Sun,6", &WEEKDAY), Some(vec![0, 6]));
        assert_eq!(numbers("*-7", &WEEKDAY), Some((0..7).collect()), "nobody reads on behind a star");
        assert_eq!(numbers("1/99999999999", &HOUR), Some(vec![1]));
        assert_eq!(numbers(",", &MINUTE), Some(Vec::new()));
    }

    #[test]
    fn a_star_with_a_step_is_a_choice() {
        let is_any = |text| field(text, &DAY).expect("a field").is_any;
        assert!(is_any("*") && is_any("?") && is_any("*/1") && is_any("3,*"));
        assert!(!is_any("*/2") && !is_any("1-31"));
    }

    #[test]
    fn what_is_no_field_is_refused() {
        for text in
            ["60", "-1", "5-3", "1-2-3", "1/2/3", "*/0", "a", "1-b", "", "0x1", "1/", "99999999999999999999"]
        {
            assert!(text.is_empty() || field(text, &MINUTE).is_none(), "{text}");
        }
        assert!(
            field("7", &WEEKDAY).is_none() && field("0", &DAY).is_none() && field("13", &MONTH).is_none()
        );
        assert!(field("january", &MONTH).is_none() && field("mon", &MONTH).is_none());
    }

    #[test]
    fn a_schedule_has_five_fields_or_a_name() {
        for text in
            ["* * * * *", " 0  0\t1 1 ? ", "@daily", "@every 1h", "TZ=UTC  @weekly ", "CRON_TZ= 0 0 * * *"]
        {
            assert!(read(text).is_some(), "{text:?}");
        }
        let refused = [
            "",
            "* * * *",
            "0 * * * * *",
            "@never",
            "@Daily",
            "@every",
            "@every ",
            "@every  1h",
            " @daily",
            "TZ=UTC",
            "TZ=Nowhere/Land 0 0 * * *",
            " TZ=UTC 0 0 * * *",
            "tz=UTC 0 0 * * *",
        ];
        for text in refused {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_span_is_written_as_go_writes_it() {
        let spans = [
            ("1h30m", 5_400_000_000_000),
            ("90s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("0", 0),
            ("-5m", -300_000_000_000),
            ("+1ms2us3µs4μs5ns", 1_009_005),
            ("1.0000000000000000000009s", 1_000_000_000),
        ];
        for (text, expected) in spans {
            assert_eq!(nanoseconds(text), Some(expected), "{text}");
        }
        for text in ["", "1", "h", ".s", "1d", "1 h", "--1s", "1h-1m", "9999999h", "99999999999999999999s"] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
        assert_eq!(read("@every 1.9s"), Some(Schedule::Every(1)));
        assert_eq!(read("@every -5h"), Some(Schedule::Every(1)), "nothing comes more often than each second");
    }
}
