//! Times against a search second by second, around changes of the clocks: a half-hour one, a skipped day, a southern zone,
//! one without changes, an offset with seconds, and others that are odd. The clocks are those of another library.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike, TimeZone, Timelike};
use chrono_tz::Tz;
use everlog_schedules::matcher::{MatchBudget, Matcher, SearchPosition, SearchResult};
use everlog_schedules::spec::{CalendarSpec, IntervalSpec, ScheduleSpec, SpecDuration, SpecTime, ValueRange};
use proptest::prelude::*;

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

/// Zones, and moments at which their clocks change, or nothing special happens.
const CHANGES: [(&str, &str); 24] = [
    // Half an hour, in both directions.
    ("Australia/Lord_Howe", "2022-04-02T15:00:00Z"),
    ("Australia/Lord_Howe", "2022-10-01T15:30:00Z"),
    // The 30th of December 2011 does not exist.
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
    // Southern ones, of which the second has no midnight on that day.
    ("Pacific/Auckland", "2024-04-06T14:00:00Z"),
    ("America/Santiago", "2024-09-08T04:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ("America/Sao_Paulo", "2019-02-17T02:00:00Z"),
    // None, and an odd offset.
    ("Asia/Kolkata", "2024-03-31T01:00:00Z"),
    ("Asia/Kathmandu", "1985-12-31T18:30:00Z"),
    // An offset with seconds, -0:44:30, until 1972.
    ("Africa/Monrovia", "1972-01-07T00:44:30Z"),
    // Usual ones.
    ("Europe/Berlin", "2024-03-31T01:00:00Z"),
    ("Europe/Berlin", "2024-10-27T01:00:00Z"),
    ("US/Pacific", "2022-03-13T10:00:00Z"),
    ("US/Pacific", "2021-11-07T09:00:00Z"),
    // Winter time is the exception.
    ("Europe/Dublin", "2024-10-27T01:00:00Z"),
    // Two hours.
    ("Antarctica/Troll", "2024-03-31T01:00:00Z"),
    ("Antarctica/Troll", "2024-10-27T01:00:00Z"),
    // A day before a change back, at a quarter.
    ("Pacific/Chatham", "2024-09-28T14:00:00Z"),
    // The offset, without summer time.
    ("America/Caracas", "2016-05-01T07:00:00Z"),
    ("Asia/Pyongyang", "2018-05-04T15:00:00Z"),
    // Changes in both directions within five weeks.
    ("Africa/Casablanca", "2024-03-10T02:00:00Z"),
    ("Asia/Gaza", "2011-08-29T21:00:00Z"),
    // Beyond the years that tables of changes used to have.
    ("Europe/Berlin", "2090-03-26T01:00:00Z"),
];

fn unix_s(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text).expect("a moment").timestamp()
}

/// True if a value is among ranges as the API defines them.
fn is_among(ranges: &[ValueRange], value: i64) -> bool {
    ranges.iter().any(|range| {
        let (start, end) = (i64::from(range.start), i64::from(range.end.max(range.start)));
        (start..=end).contains(&value) && (value - start) % i64::from(range.step.max(1)) == 0
    })
}

fn does_match(calendar: &CalendarSpec, zone: Tz, unix_s: i64) -> bool {
    let shown = zone.timestamp_opt(unix_s, 0).single().expect("in reach");
    is_among(&calendar.second, shown.second().into())
        && is_among(&calendar.minute, shown.minute().into())
        && is_among(&calendar.hour, shown.hour().into())
        && is_among(&calendar.day_of_month, shown.day().into())
        && is_among(&calendar.month, shown.month().into())
        && (calendar.year.is_empty() || is_among(&calendar.year, shown.year().into()))
        && is_among(&calendar.day_of_week, shown.weekday().num_days_from_sunday().into())
}

/// What a specification means, each second for itself.
fn is_nominal(spec: &ScheduleSpec, zone: Tz, unix_s: i64) -> bool {
    let span_s = |span: Option<SpecDuration>| span.unwrap_or_default().seconds;
    let of_interval = |interval: &IntervalSpec| {
        (unix_s - span_s(interval.phase)).rem_euclid(span_s(interval.interval)) == 0
    };
    let of_calendar = |calendar: &CalendarSpec| does_match(calendar, zone, unix_s);
    spec.start.is_none_or(|start| unix_s >= start.seconds)
        && spec.end.is_none_or(|end| unix_s <= end.seconds)
        && (spec.intervals.iter().any(of_interval) || spec.calendars.iter().any(of_calendar))
        && !spec.excluded.iter().any(of_calendar)
}

/// Nominal times behind the first moment and not behind the last.
fn found(matcher: &Matcher, after_s: i64, until_s: i64) -> Vec<i64> {
    let mut position = SearchPosition::behind(after_s);
    let mut budget = MatchBudget::new(u32::MAX);
    let mut times = Vec::new();
    while let SearchResult::Found(time) = matcher.next(&mut position, &mut budget)
        && time.nominal_s <= until_s
    {
        times.push(time.nominal_s);
        position = SearchPosition::behind(time.nominal_s);
    }
    times
}

fn ranges(values: RangeInclusive<i32>) -> impl Strategy<Value = Vec<ValueRange>> {
    let range = (values.clone(), values.clone(), 0..20).prop_map(|(one, other, step)| ValueRange {
        start: one.min(other),
        end: if step % 3 == 0 { 0 } else { one.max(other) },
        step: step % 7,
    });
    let all = ValueRange { start: *values.start(), end: *values.end(), step: 0 };
    prop_oneof![
        4 => proptest::collection::vec(range, 1..3),
        6 => Just(vec![all]),
    ]
}

fn calendar() -> impl Strategy<Value = CalendarSpec> {
    let second = prop_oneof![3 => Just(vec![ValueRange::default()]), 1 => ranges(0..=59)];
    let minute =
        prop_oneof![1 => Just(vec![ValueRange { start: 30, ..ValueRange::default() }]), 3 => ranges(0..=59)];
    let fields = (second, minute, ranges(0..=23), ranges(1..=31), ranges(1..=12), ranges(0..=6));
    fields.prop_map(|(second, minute, hour, day_of_month, month, day_of_week)| CalendarSpec {
        second,
        minute,
        hour,
        day_of_month,
        month,
        day_of_week,
        ..CalendarSpec::default()
    })
}

fn interval() -> impl Strategy<Value = IntervalSpec> {
    (1_i64..200_000).prop_flat_map(|interval_s| {
        (0..interval_s).prop_map(move |phase_s| {
            let span = |seconds| Some(SpecDuration { seconds, nanos: 0 });
            IntervalSpec { interval: span(interval_s), phase: span(phase_s) }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_are_those_of_a_search_second_by_second(
        place in 0..CHANGES.len(),
        calendars in proptest::collection::vec(calendar(), 0..3),
        excluded in proptest::collection::vec(calendar(), 0..2),
        intervals in proptest::collection::vec(interval(), 0..2),
        bounds in (proptest::option::weighted(0.2, -DAY_S..DAY_S), proptest::option::weighted(0.2, -DAY_S..DAY_S)),
        before_s in 0..DAY_S,
    ) {
        let (name, change) = CHANGES[place];
        let zone: Tz = name.parse().expect("a zone");
        let change_s = unix_s(change);
        let moment = |offset_s: i64| SpecTime { seconds: change_s + offset_s, nanos: 0 };
        let spec = ScheduleSpec {
            calendars,
            excluded,
            intervals,
            start: bounds.0.map(moment),
            end: bounds.1.map(moment),
            zone_name: name.to_owned(),
            ..ScheduleSpec::default()
        };
        let matcher = Matcher::new(&spec, "").expect("a zone");
        let (after_s, until_s) = (change_s - DAY_S - before_s, change_s + 2 * DAY_S);
        let expected: Vec<i64> = (after_s + 1..=until_s).filter(|s| is_nominal(&spec, zone, *s)).collect();
        prop_assert_eq!(found(&matcher, after_s, until_s), expected, "{} at {}", name, change);
    }
}

/// What a zone's clocks show at a time each day, as nominal times.
fn daily(zone: &str, hour: i32, minute: i32, second: i32, after: &str, days: i64) -> Vec<String> {
    let at = |start: i32| vec![ValueRange { start, ..ValueRange::default() }];
    let all = |start: i32, end: i32| vec![ValueRange { start, end, step: 0 }];
    let calendar = CalendarSpec {
        second: at(second),
        minute: at(minute),
        hour: if hour < 0 { all(0, 23) } else { at(hour) },
        day_of_month: all(1, 31),
        month: all(1, 12),
        day_of_week: all(0, 6),
        ..CalendarSpec::default()
    };
    let spec =
        ScheduleSpec { calendars: vec![calendar], zone_name: zone.to_owned(), ..ScheduleSpec::default() };
    let matcher = Matcher::new(&spec, "").expect("a zone");
    let after_s = unix_s(after);
    let shown = |s: i64| {
        let time = DateTime::from_timestamp(s, 0).expect("in reach").naive_utc();
        format!("{time:?}")[8..].replace("T", " ")
    };
    found(&matcher, after_s, after_s + days * DAY_S).into_iter().map(shown).collect()
}

#[test]
fn a_local_time_that_does_not_exist_does_not_come_and_one_that_exists_twice_comes_twice() {
    let spring = daily("US/Pacific", 2, 33, 33, "2022-03-12T00:00:00Z", 3);
    assert_eq!(spring, ["12 10:33:33", "14 09:33:33"]);
    let autumn = daily("US/Pacific", 1, 33, 33, "2021-11-06T12:00:00Z", 2);
    assert_eq!(autumn, ["07 08:33:33", "07 09:33:33", "08 09:33:33"]);
    assert_eq!(daily("US/Pacific", -1, 0, 0, "2021-11-07T06:59:59Z", 1).len(), 24);
    let long_day = daily("US/Pacific", -1, 0, 0, "2021-11-07T06:59:59Z", 2);
    assert_eq!(long_day.iter().take_while(|time| *time != "08 08:00:00").count(), 25, "{long_day:?}");
    let half = daily("Australia/Lord_Howe", 1, 45, 0, "2022-04-01T18:00:00Z", 2);
    assert_eq!(half, ["02 14:45:00", "02 15:15:00", "03 15:15:00"]);
    // Behind the 29th follows the 31st.
    let skipped = daily("Pacific/Apia", 12, 0, 0, "2011-12-28T00:00:00Z", 5);
    assert_eq!(skipped, ["28 22:00:00", "29 22:00:00", "30 22:00:00", "31 22:00:00", "01 22:00:00"]);
    let with_seconds = daily("Africa/Monrovia", 0, 0, 30, "1972-01-05T12:00:00Z", 3);
    assert_eq!(with_seconds, ["06 00:45:00", "08 00:00:30"]);
}

/// Changes of a named zone are found by looking each few days: none may be undone before the next look.
#[test]
fn no_zone_changes_twice_between_two_looks() {
    let mut problems = Vec::new();
    for zone in chrono_tz::TZ_VARIANTS {
        let offset_s = |unix_s: i64| {
            let time = zone.timestamp_opt(unix_s, 0).single().expect("in reach");
            time.naive_local().and_utc().timestamp() - unix_s
        };
        let mut last_change_s = i64::MIN;
        let mut before_s = offset_s(0);
        for hour in (0..unix_s("2100-12-31T00:00:00Z") / HOUR_S).step_by(12) {
            let now_s = offset_s(hour * HOUR_S);
            if now_s != before_s {
                if hour * HOUR_S - last_change_s.max(-1_000_000) < 6 * DAY_S {
                    problems.push(format!("{zone} at {hour} h"));
                }
                (before_s, last_change_s) = (now_s, hour * HOUR_S);
            }
        }
    }
    assert!(problems.is_empty(), "{problems:?}");
}
