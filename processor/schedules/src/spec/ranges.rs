//! Ranges of structured calendars: their limits, and the form in which they are shown.

use std::ops::RangeInclusive;

use crate::spec::{CalendarSpec, SpecError, ValueRange};

/// The years that a calendar may name, and the last of which has times at all.
pub const CALENDAR_YEARS: RangeInclusive<i32> = 2000..=2100;
/// The longest comment of a calendar, in bytes.
pub const COMMENT_MAX_BYTES: usize = 200;

/// A field by its name in messages, and the values that it may have.
type FieldRanges<'a> = (&'static str, &'a [ValueRange], RangeInclusive<i32>);

/// The fields in the order in which they are checked.
fn fields(calendar: &CalendarSpec) -> [FieldRanges<'_>; 7] {
    [
        ("Second", &calendar.second, 0..=59),
        ("Minute", &calendar.minute, 0..=59),
        ("Hour", &calendar.hour, 0..=23),
        ("DayOfMonth", &calendar.day_of_month, 1..=31),
        ("Month", &calendar.month, 1..=12),
        ("Year", &calendar.year, CALENDAR_YEARS),
        ("DayOfWeek", &calendar.day_of_week, 0..=6),
    ]
}

/// Refuses values out of their field's limits, with all that is wrong. What is said of an excluded calendar may be long, as
/// on Temporal's server.
pub(super) fn check(calendar: &CalendarSpec, is_excluded: bool) -> Result<(), SpecError> {
    let mut wrong = Vec::new();
    for (name, ranges, values) in fields(calendar) {
        for range in ranges {
            wrong.extend(faults(name, range, &values));
            // Nobody reads more of them, and each is longer than the range that it is of.
            if wrong.len() > FAULTS_MAX {
                wrong.push("and more".to_owned());
                return Err(SpecError(format!("invalid calendar spec: {}", wrong.join(", "))));
            }
        }
    }
    if !is_excluded && calendar.comment.len() > COMMENT_MAX_BYTES {
        wrong.push("comment is too long".to_owned());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(SpecError(format!("invalid calendar spec: {}", wrong.join(", "))))
}

/// Faults of a calendar that are told.
const FAULTS_MAX: usize = 20;

fn faults(name: &str, range: &ValueRange, values: &RangeInclusive<i32>) -> Vec<String> {
    let mut faults = Vec::new();
    let limits = format!("[{}-{}]", values.start(), values.end());
    if !values.contains(&range.start) {
        faults.push(format!("{name} Start is not in range {limits}"));
    }
    if range.end != 0 && (range.end < range.start || range.end > *values.end()) {
        faults.push(format!("{name} End is before Start or not in range {limits}"));
    }
    if range.step < 0 {
        faults.push(format!("{name} has invalid Step"));
    }
    faults
}

/// Gives each range the end and the step that it has by default.
pub(super) fn fill(calendar: &mut CalendarSpec) {
    let CalendarSpec { second, minute, hour, day_of_month, month, year, day_of_week, comment: _ } = calendar;
    for range in [second, minute, hour, day_of_month, month, year, day_of_week].into_iter().flatten() {
        range.end = range.end.max(range.start);
        if range.step == 0 {
            range.step = 1;
        }
    }
}
