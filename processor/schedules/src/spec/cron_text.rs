//! A notation of cron: five to seven fields, `@daily` and the like, `@every 90m/15m`, with a zone in front and a comment.

use crate::spec::duration_text::duration_ns;
use crate::spec::{CalendarSpec, CalendarStrings, IntervalSpec, SpecDuration, SpecError, field_text};

/// What a notation means.
pub(super) struct CronTimes {
    /// The zone's name; empty without one, and with `@every`.
    pub(super) zone: String,
    pub(super) times: Times,
}

/// When it comes.
pub(super) enum Times {
    Calendar(CalendarSpec),
    Interval(IntervalSpec),
}

/// Reads a notation.
pub(super) fn read(text: &str) -> Result<CronTimes, SpecError> {
    let refused = |text: &str| Err(SpecError(text.to_owned()));
    let mut text = text.trim();
    let mut zone = "";
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let Some((prefix, rest)) = text.split_once(' ') else {
            return refused("CronString has time zone but missing fields");
        };
        zone = prefix.split_once('=').map_or("", |(_prefix, zone)| zone);
        text = rest;
    }
    let (text, comment) = text.split_once('#').unwrap_or((text, ""));
    let (text, comment) = (text.trim(), comment.trim());
    if text.starts_with("@every") {
        return Ok(CronTimes { zone: String::new(), times: Times::Interval(interval(text)?) });
    }
    let fields: Vec<&str> = descriptor(text).split_whitespace().take(FIELDS_MAX + 1).collect();
    let (second, fields, year) = match fields.as_slice() {
        [fields @ .., year] if fields.len() == 5 => ("", fields, *year),
        [second, fields @ .., year] if fields.len() == 5 => (*second, fields, *year),
        fields => ("", fields, ""),
    };
    let &[minute, hour, day_of_month, month, day_of_week] = fields else {
        return refused("CronString does not have 5-7 fields");
    };
    let strings = CalendarStrings {
        second: second.to_owned(),
        minute: minute.to_owned(),
        hour: hour.to_owned(),
        day_of_month: day_of_month.to_owned(),
        month: month.to_owned(),
        year: year.to_owned(),
        day_of_week: day_of_week.to_owned(),
        comment: comment.to_owned(),
    };
    let calendar = field_text::calendar(&strings)?;
    Ok(CronTimes { zone: zone.to_owned(), times: Times::Calendar(calendar) })
}

const FIELDS_MAX: usize = 7;

fn descriptor(text: &str) -> &str {
    match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        fields => fields,
    }
}

/// What is behind the first blank: an interval, and behind a slash its phase.
fn interval(text: &str) -> Result<IntervalSpec, SpecError> {
    let Some((_every, given)) = text.split_once(' ') else {
        return Err(SpecError("CronString does not have interval after @every".to_owned()));
    };
    let (interval, phase) = given.split_once('/').unwrap_or((given, ""));
    let read = |text| duration_ns(text).map(SpecDuration::of_ns).map_err(SpecError);
    let interval = Some(read(interval)?);
    let phase = if phase.is_empty() { None } else { Some(read(phase)?) };
    Ok(IntervalSpec { interval, phase })
}
