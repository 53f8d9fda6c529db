//! Moments and lengths of time as queries write them.

/// A moment as RFC 3339 has it, with its zone, in ns since 1970-01-01 UTC; the next one that fits where it does not fit.
///
/// A day that the month has not and a leap second are none, as for Go's `time.Parse`. Digits behind the ninth of a
/// fraction are dropped.
pub fn parse_datetime(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| digits(bytes.get(from..to)?);
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let has_marks = is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':');
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fits = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    if !has_marks || !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = bytes.get(19..)?;
    let (nanos, zone) = match rest.split_first() {
        Some((b'.' | b',', rest)) => {
            let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (fraction, zone) = rest.split_at(length);
            (nanos(fraction)?, zone)
        }
        Some(_) | None => (0, rest),
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let ns = i128::from(seconds - zone_seconds(zone)?) * 1_000_000_000 + i128::from(nanos);
    Some(i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }))
}

/// A length of time, in ns: digits alone are ns; else as Go writes it, with days (`1d12h`, `1.5h`, `-3s`); else
/// `hours:minutes:seconds`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse_duration(text: &str) -> Result<i64, &'static str> {
    if let Ok(ns) = text.parse() {
        return Ok(ns);
    }
    with_units(text).map_or_else(|| with_colons(text), Ok)
}

fn with_units(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.split_at_checked(1) {
        Some(("-", rest)) => (true, rest),
        Some(("+", rest)) => (false, rest),
        Some(_) | None => (false, text),
    };
    let mut sum = 0.0;
    let mut whole_ns = 0_i128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let length = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(length);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if number.is_empty() || number == "." || fraction.contains('.') {
            return None;
        }
        let length = behind.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(length);
        let unit_ns: i64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _unknown => return None,
        };
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        whole_ns = whole_ns.checked_add(i128::from(whole) * i128::from(unit_ns))?;
        sum += format!("0.{fraction}0").parse::<f64>().ok()? * unit_ns as f64;
        rest = behind;
    }
    let ns = whole_ns.checked_add(sum as i128)?;
    i64::try_from(if is_negative { -ns } else { ns }).ok()
}

fn with_colons(text: &str) -> Result<i64, &'static str> {
    let mut parts = text.split(':').map(str::parse::<i64>);
    let (Some(Ok(hours)), Some(Ok(minutes)), Some(Ok(seconds)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("invalid duration");
    };
    if hours < 0 {
        return Err("invalid duration: hours must be a positive number");
    }
    if !(0..=59).contains(&minutes) {
        return Err("invalid duration: minutes must be from 0 to 59");
    }
    if !(0..=59).contains(&seconds) {
        return Err("invalid duration: seconds must be from 0 to 59");
    }
    let seconds = hours.checked_mul(3_600).and_then(|hours| hours.checked_add(minutes * 60 + seconds));
    seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)).ok_or("invalid duration")
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// The ns of the digits behind a point; there is one at least.
fn nanos(fraction: &[u8]) -> Option<i64> {
    let first = fraction.get(..9).unwrap_or(fraction);
    let places = u32::try_from(first.len()).ok().filter(|places| *places > 0)?;
    Some(digits(first)? * 10_i64.pow(9 - places))
}

/// Seconds before UTC.
fn zone_seconds(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone {
        [b'Z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _other => return None,
    };
    let [hour_1, hour_2, b':', minute_1, minute_2] = rest else { return None };
    let (hours, minutes) = (digits(&[*hour_1, *hour_2])?, digits(&[*minute_1, *minute_2])?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _long => 31,
    }
}

/// Days of the Gregorian calendar. The year is taken from March on, so that the day of leap years is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        let second = 1_000_000_000;
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000000001Z", 1),
            ("1970-01-01T00:00:00.0000000019Z", 1),
            ("1970-01-01T00:00:01,5Z", second * 3 / 2),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T19:30:00-04:30", 0),
            ("2024-02-29T12:34:56.789Z", 1_709_210_096 * second + 789_000_000),
            ("2000-03-01T00:00:00Z", 951_868_800 * second),
            ("1900-03-01T00:00:00Z", -2_203_891_200 * second),
            ("0000-01-01T00:00:00Z", i64::MIN),
            ("9999-12-31T23:59:59Z", i64::MAX),
        ] {
            assert_eq!(parse_datetime(text), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2026-01-01",
            "2026-01-01 00:00:00",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00z",
            "2026-01-01t00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+25:00",
            "2026-01-01T00:00:00+01:60",
            "2026-01-01T00:00:00ZZ",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "-026-01-01T00:00:00Z",
            "2026-01-01T00:00:0äZ",
            "ä026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_datetime(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_read() {
        let second = 1_000_000_000;
        for (text, ns) in [
            ("0", 0),
            ("-5", -5),
            ("1ns2us3µs4μs5ms", 5_009_001),
            ("1d12h", 36 * 3_600 * second),
            ("1.5h", 5_400 * second),
            (".5m", 30 * second),
            ("-3s", -3 * second),
            ("+1.s", second),
            ("01:02:03", 3_723 * second),
            ("100:00:00", 360_000 * second),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        for text in
            ["", "-", "s", ".s", "1x", "1.2.3s", "200y", "1 s", "1:2", "1:2:3:4", "99999999d", "a:b:c"]
        {
            assert_eq!(parse_duration(text), Err("invalid duration"), "{text}");
        }
        for (text, reason) in [("-1:00:00", "hours"), ("0:60:00", "minutes"), ("0:00:60", "seconds")] {
            assert!(parse_duration(text).is_err_and(|error| error.contains(reason)), "{text}");
        }
        assert_eq!(parse_duration("9999999:00:00"), Err("invalid duration"));
    }
}
