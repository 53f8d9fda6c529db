//! A duration as a string: as Go writes it (`1h30m`, `1.5h`, `250ms`), and with `d` for 24 hours.

use std::fmt::Write;

/// The number of nanoseconds.
///
/// # Errors
/// What is wrong, in the words of Go's library.
pub(super) fn duration_ns(text: &str) -> Result<i64, String> {
    let text = days_as_hours(text);
    go_duration_ns(&text)
}

/// Replaces each number of days by as many hours, with six digits behind the point, as Temporal's server does.
fn days_as_hours(text: &str) -> String {
    let mut hours = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let number = number_length(rest);
        let (taken, behind) = rest.split_at(number);
        match (number, behind.strip_prefix('d')) {
            (1.., Some(behind)) => {
                // A number of digits and at most one point, which is always read.
                let days: f64 = taken.parse().unwrap_or_default();
                let _infallible = write!(hours, "{:.6}h", days * 24.0);
                rest = behind;
            }
            (1.., None) => {
                hours.push_str(taken);
                rest = behind;
            }
            (0, _) => {
                let length = rest.chars().next().map_or(rest.len(), char::len_utf8);
                hours.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
    hours
}

/// The length of `12`, `12.`, `12.5` or `.5` at the beginning; 0 without.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let Some(behind) = text[whole..].strip_prefix('.') else { return whole };
    match (whole, digits(behind)) {
        (0, 0) => 0,
        (whole, fraction) => whole + 1 + fraction,
    }
}

/// As Go's `time.ParseDuration`.
fn go_duration_ns(original: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quoted(original));
    let is_negative = original.starts_with('-');
    let mut rest = original.strip_prefix(['-', '+']).unwrap_or(original);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum_ns: u64 = 0;
    while !rest.is_empty() {
        let number = number_length(rest);
        if number == 0 {
            return Err(invalid());
        }
        let (number, behind) = rest.split_at(number);
        let unit_length = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_length);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted(original)));
        }
        let unit_ns = unit_ns(unit)
            .ok_or_else(|| format!("time: unknown unit {} in duration {}", quoted(unit), quoted(original)))?;
        let part_ns = part_ns(number, unit_ns).ok_or_else(invalid)?;
        sum_ns = sum_ns.checked_add(part_ns).filter(|sum| *sum <= LIMIT).ok_or_else(invalid)?;
        rest = behind;
    }
    match i64::try_from(sum_ns) {
        Ok(ns) if is_negative => Ok(-ns),
        Ok(ns) => Ok(ns),
        // The one number whose negative is in reach only.
        Err(_beyond) if is_negative => Ok(i64::MIN),
        Err(_beyond) => Err(invalid()),
    }
}

const LIMIT: u64 = 1 << 63;

fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _unknown => return None,
    })
}

/// A number of units; digits behind the point that no longer fit are cut.
fn part_ns(number: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut units: u64 = 0;
    for digit in whole.bytes().map(|byte| u64::from(byte - b'0')) {
        units = units.checked_mul(10)?.checked_add(digit).filter(|units| *units <= LIMIT)?;
    }
    let whole_ns = units.checked_mul(unit_ns).filter(|ns| *ns <= LIMIT)?;
    let (mut parts, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        if parts > (LIMIT - 1) / 10 {
            break;
        }
        // At most 2^63 + 9, and what is beyond 2^63 is cut as well.
        let more = parts * 10 + digit;
        if more > LIMIT {
            break;
        }
        (parts, scale) = (more, scale * 10.0);
    }
    let fraction_ns = (parts as f64 * (unit_ns as f64 / scale)) as u64;
    whole_ns.checked_add(fraction_ns).filter(|ns| *ns <= LIMIT)
}

/// In double quotes; quotes, backslashes, control characters and all that is not ASCII escaped, as Go does.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(byte.into()),
            _other => {
                let _infallible = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}
