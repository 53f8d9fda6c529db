//! The specification of a schedule: the API's message, and the form that is stored.

use everlog_schedules::spec::{
    CalendarSpec, CalendarStrings, IntervalSpec, ScheduleSpec, SpecDuration, SpecInput, SpecTime, ValueRange,
};
use everlog_temporal_api::schedule as api;
use prost_types::{Duration, Timestamp};
use tonic::Status;

use crate::codec::status::invalid;

/// Reads a specification.
///
/// # Errors
/// INVALID_ARGUMENT: what is wrong with it. Its time zone is not looked up.
pub(crate) fn read(given: api::ScheduleSpec) -> Result<ScheduleSpec, Status> {
    let intervals = given.interval.iter().map(|interval| {
        let span = |given: Option<Duration>| given.map(|given| span("interval", given)).transpose();
        Ok(IntervalSpec { interval: span(interval.interval)?, phase: span(interval.phase)? })
    });
    let spec = ScheduleSpec {
        calendars: given.structured_calendar.into_iter().map(calendar).collect(),
        excluded: given.exclude_structured_calendar.into_iter().map(calendar).collect(),
        intervals: intervals.collect::<Result<_, Status>>()?,
        start: given.start_time.map(|at| time("start_time", at)).transpose()?,
        end: given.end_time.map(|at| time("end_time", at)).transpose()?,
        jitter: given.jitter.map(|jitter| span("jitter", jitter)).transpose()?,
        zone_name: given.timezone_name,
        zone_data: given.timezone_data.to_vec(),
    };
    let input = SpecInput {
        spec,
        calendars: given.calendar.into_iter().map(strings).collect(),
        excluded_calendars: given.exclude_calendar.into_iter().map(strings).collect(),
        cron: given.cron_string,
    };
    ScheduleSpec::of(input).map_err(|error| invalid(error.to_string()))
}

/// The API's message of a stored form: it has structured calendars and intervals only, with all fields of their ranges.
pub(crate) fn shown(spec: &ScheduleSpec) -> api::ScheduleSpec {
    let spec = spec.clone().filled();
    let interval = |interval: &IntervalSpec| api::IntervalSpec {
        interval: interval.interval.map(duration),
        phase: interval.phase.map(duration),
    };
    api::ScheduleSpec {
        structured_calendar: spec.calendars.into_iter().map(structured).collect(),
        interval: spec.intervals.iter().map(interval).collect(),
        exclude_structured_calendar: spec.excluded.into_iter().map(structured).collect(),
        start_time: spec.start.map(timestamp),
        end_time: spec.end.map(timestamp),
        jitter: spec.jitter.map(duration),
        timezone_name: spec.zone_name,
        timezone_data: spec.zone_data.into(),
        ..api::ScheduleSpec::default()
    }
}

/// A moment of a request.
///
/// # Errors
/// INVALID_ARGUMENT of one that is out of range.
pub(crate) fn time(field: &str, at: Timestamp) -> Result<SpecTime, Status> {
    // The years 1 to 9999, as protobuf has them.
    let is_in_range = (-62_135_596_800..=253_402_300_799).contains(&at.seconds);
    if !is_in_range || !(0..=999_999_999).contains(&at.nanos) {
        return Err(invalid(format!("Invalid schedule spec: {field} is out of range")));
    }
    Ok(SpecTime { seconds: at.seconds, nanos: at.nanos })
}

/// A span of a request.
///
/// # Errors
/// INVALID_ARGUMENT of one that is out of range, or torn.
pub(crate) fn span(field: &str, span: Duration) -> Result<SpecDuration, Status> {
    // Ten thousand years, as protobuf has them; seconds and nanoseconds of one sign.
    let is_in_range = (-315_576_000_000..=315_576_000_000).contains(&span.seconds)
        && (-999_999_999..=999_999_999).contains(&span.nanos)
        && (span.seconds == 0 || span.nanos == 0 || (span.seconds > 0) == (span.nanos > 0));
    if !is_in_range {
        return Err(invalid(format!("Invalid schedule spec: {field} is out of range")));
    }
    Ok(SpecDuration { seconds: span.seconds, nanos: span.nanos })
}

/// The API's moment.
pub(crate) fn timestamp(at: SpecTime) -> Timestamp {
    Timestamp { seconds: at.seconds, nanos: at.nanos }
}

/// The API's span.
pub(crate) fn duration(span: SpecDuration) -> Duration {
    Duration { seconds: span.seconds, nanos: span.nanos }
}

fn calendar(given: api::StructuredCalendarSpec) -> CalendarSpec {
    let ranges = |given: Vec<api::Range>| {
        let range = |api::Range { start, end, step }| ValueRange { start, end, step };
        given.into_iter().map(range).collect()
    };
    CalendarSpec {
        second: ranges(given.second),
        minute: ranges(given.minute),
        hour: ranges(given.hour),
        day_of_month: ranges(given.day_of_month),
        month: ranges(given.month),
        year: ranges(given.year),
        day_of_week: ranges(given.day_of_week),
        comment: given.comment,
    }
}

fn structured(calendar: CalendarSpec) -> api::StructuredCalendarSpec {
    let ranges = |given: Vec<ValueRange>| {
        let range = |ValueRange { start, end, step }| api::Range { start, end, step };
        given.into_iter().map(range).collect()
    };
    api::StructuredCalendarSpec {
        second: ranges(calendar.second),
        minute: ranges(calendar.minute),
        hour: ranges(calendar.hour),
        day_of_month: ranges(calendar.day_of_month),
        month: ranges(calendar.month),
        year: ranges(calendar.year),
        day_of_week: ranges(calendar.day_of_week),
        comment: calendar.comment,
    }
}

fn strings(given: api::CalendarSpec) -> CalendarStrings {
    CalendarStrings {
        second: given.second,
        minute: given.minute,
        hour: given.hour,
        day_of_month: given.day_of_month,
        month: given.month,
        year: given.year,
        day_of_week: given.day_of_week,
        comment: given.comment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_as_what_it_was() {
        let given = api::ScheduleSpec {
            cron_string: vec!["CRON_TZ=Europe/Berlin 0 12 * * MON # noon".into()],
            interval: vec![api::IntervalSpec {
                interval: Some(Duration { seconds: 90, nanos: 0 }),
                phase: None,
            }],
            calendar: vec![api::CalendarSpec { hour: "8-10/2".into(), ..Default::default() }],
            exclude_calendar: vec![api::CalendarSpec { day_of_week: "sun".into(), ..Default::default() }],
            jitter: Some(Duration { seconds: 1, nanos: 500_000_000 }),
            start_time: Some(Timestamp { seconds: 1_700_000_000, nanos: 1 }),
            ..Default::default()
        };
        let stored = read(given).expect("it is well");
        let first = shown(&stored);
        assert!(first.cron_string.is_empty() && first.calendar.is_empty(), "structured ones only");
        assert_eq!((first.structured_calendar.len(), first.interval.len()), (2, 1));
        assert_eq!(first.timezone_name, "Europe/Berlin");
        assert_eq!(shown(&read(first.clone()).expect("it is well")), first);
    }

    #[test]
    fn moments_and_spans_out_of_range_are_refused() {
        let torn =
            api::ScheduleSpec { end_time: Some(Timestamp { seconds: 0, nanos: -1 }), ..Default::default() };
        let message = |given| read(given).expect_err("it is refused").message().to_owned();
        assert_eq!(message(torn), "Invalid schedule spec: end_time is out of range");
        let jitter = Some(Duration { seconds: i64::MAX, nanos: 0 });
        let endless = api::ScheduleSpec { jitter, ..Default::default() };
        assert_eq!(message(endless), "Invalid schedule spec: jitter is out of range");
    }
}
