//! A field of a calendar as a string: `*`, `5`, `1-5`, `1-20/3`, `5/15`, names, and lists of them.

use std::ops::RangeInclusive;

use crate::spec::ranges::CALENDAR_YEARS;
use crate::spec::{CalendarSpec, CalendarStrings, SpecError, ValueRange};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
/// What of a name has to be there, in bytes.
const MONTH_MIN_BYTES: usize = 3;
const WEEKDAY_MIN_BYTES: usize = 2;
/// The other number of Sunday, in strings only.
const LATE_SUNDAY: i64 = 7;

/// What a field is and how it is read.
struct FieldSyntax {
    /// Its name in messages.
    name: &'static str,
    /// What an empty string means.
    default: &'static str,
    values: RangeInclusive<i64>,
    notation: Notation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Number,
    /// `*` is an empty list.
    Year,
    Month,
    Weekday,
}

/// The structured calendar that strings mean. Values are in the limits of their fields; the comment is not looked at.
pub(super) fn calendar(given: &CalendarStrings) -> Result<CalendarSpec, SpecError> {
    let years = i64::from(*CALENDAR_YEARS.start())..=i64::from(*CALENDAR_YEARS.end());
    let mut wrong = Vec::new();
    let mut field = |text: &str, name, default, values, notation| {
        let syntax = FieldSyntax { name, default, values, notation };
        syntax.ranges(text).unwrap_or_else(|fault| {
            wrong.push(fault);
            Vec::new()
        })
    };
    let calendar = CalendarSpec {
        second: field(&given.second, "Second", "0", 0..=59, Notation::Number),
        minute: field(&given.minute, "Minute", "0", 0..=59, Notation::Number),
        hour: field(&given.hour, "Hour", "0", 0..=23, Notation::Number),
        day_of_week: field(&given.day_of_week, "DayOfWeek", "*", 0..=LATE_SUNDAY, Notation::Weekday),
        day_of_month: field(&given.day_of_month, "DayOfMonth", "*", 1..=31, Notation::Number),
        month: field(&given.month, "Month", "*", 1..=12, Notation::Month),
        year: field(&given.year, "Year", "*", years, Notation::Year),
        comment: given.comment.clone(),
    };
    if wrong.is_empty() { Ok(calendar) } else { Err(SpecError(wrong.join(", "))) }
}

impl FieldSyntax {
    fn ranges(&self, text: &str) -> Result<Vec<ValueRange>, String> {
        let text = match text.trim() {
            "" => self.default,
            given => given,
        };
        if text == "*" && self.notation == Notation::Year {
            return Ok(Vec::new());
        }
        let mut ranges = Vec::new();
        for item in text.split(',') {
            self.push_item(item, &mut ranges)?;
        }
        Ok(ranges)
    }

    fn push_item(&self, item: &str, ranges: &mut Vec<ValueRange>) -> Result<(), String> {
        let (values, step) = match item.split_once('/') {
            None => (item, None),
            Some((values, step)) => (values, Some(self.step(step)?)),
        };
        let (start, mut end) = self.bounds(values, step.is_some())?;
        let step = step.unwrap_or(1);
        if self.notation == Notation::Weekday && end == LATE_SUNDAY {
            let meets_sunday = (LATE_SUNDAY - start) % step == 0;
            // From 0 or 1 on, each day to 6 is the whole week already.
            if meets_sunday && (step > 1 || start > 1) {
                ranges.push(ValueRange::default());
                if start == LATE_SUNDAY {
                    return Ok(());
                }
            }
            end = LATE_SUNDAY - 1;
        }
        let end = if start == end { 0 } else { end };
        let step = if step == 1 { 0 } else { step };
        // Steps have the width that the API gives them.
        ranges.push(ValueRange { start: start as i32, end: end as i32, step: step as i32 });
        Ok(())
    }

    fn step(&self, text: &str) -> Result<i64, String> {
        if text.contains('/') {
            return Err(format!("{} has too many slashes", self.name));
        }
        if text.is_empty() {
            return Err(format!("{} missing step value", self.name));
        }
        let step = number(text).map_err(|fault| fault.text(text))?;
        if step < 1 { Err(format!("{} has invalid Step", self.name)) } else { Ok(step) }
    }

    /// The first and the last value of an item without its step.
    fn bounds(&self, values: &str, has_step: bool) -> Result<(i64, i64), String> {
        let (least, most) = (*self.values.start(), *self.values.end());
        let limits = format!("[{least}-{most}]");
        if values == "*" {
            return Ok((least, most));
        }
        let Some((start, end)) = values.split_once('-') else {
            let start = self.value(values, least);
            let start = start.ok_or_else(|| format!("{} is not in range {limits}", self.name))?;
            return Ok((start, if has_step { most } else { start }));
        };
        if end.contains('-') {
            return Err(format!("{} has too many dashes", self.name));
        }
        let start = self.value(start, least);
        let start = start.ok_or_else(|| format!("{} Start is not in range {limits}", self.name))?;
        let end = self.value(end, start);
        let end = end.ok_or_else(|| format!("{} End is before Start or not in range {limits}", self.name))?;
        Ok((start, end))
    }

    /// A number or a name, if it is at least `least` and in the field.
    fn value(&self, text: &str, least: i64) -> Option<i64> {
        let named = match self.notation {
            Notation::Month => place(&MONTHS, text, MONTH_MIN_BYTES).map(|place| place + 1),
            Notation::Weekday => place(&WEEKDAYS, text, WEEKDAY_MIN_BYTES),
            Notation::Number | Notation::Year => None,
        };
        let value = named.or_else(|| number(text).ok())?;
        (least..=*self.values.end()).contains(&value).then_some(value)
    }
}

/// The place of the first name that begins so.
fn place(names: &[&str], text: &str, bytes_min: usize) -> Option<i64> {
    // Lower case may be longer than the text, but never by so much.
    if !(bytes_min..=32).contains(&text.len()) {
        return None;
    }
    let text = text.to_lowercase();
    names.iter().position(|name| name.starts_with(&text)).and_then(|place| i64::try_from(place).ok())
}

/// Why a text is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFault {
    Syntax,
    Range,
}

impl NumberFault {
    /// In the words of Go's library.
    fn text(self, text: &str) -> String {
        let why = match self {
            Self::Syntax => "invalid syntax",
            Self::Range => "value out of range",
        };
        format!("strconv.Atoi: parsing {text:?}: {why}")
    }
}

/// A decimal number with an optional sign.
fn number(text: &str) -> Result<i64, NumberFault> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberFault::Syntax);
    }
    text.parse().map_err(|_overflow| NumberFault::Range)
}
