//! Notations and what they mean: ranges, refusals in the words of the server, zones.

use everlog_schedules::spec::{
    CalendarSpec, CalendarStrings, IntervalSpec, SPEC_ENTRIES_MAX, ScheduleSpec, SpecDuration, SpecInput,
    ValueRange,
};
use everlog_schedules::zone::Zone;
use expect_test::expect;
use proptest::prelude::*;

fn of_calendar(calendar: CalendarStrings) -> SpecInput {
    SpecInput { calendars: vec![calendar], ..SpecInput::default() }
}

fn of_cron(cron: &[&str]) -> SpecInput {
    SpecInput { cron: cron.iter().map(|text| (*text).to_owned()).collect(), ..SpecInput::default() }
}

/// Ranges as start, end and step; what is 0 is not shown behind the start.
fn shown(ranges: &[ValueRange]) -> String {
    let range = |range: &ValueRange| match (range.end, range.step) {
        (0, 0) => range.start.to_string(),
        (end, 0) => format!("{}-{end}", range.start),
        (end, step) => format!("{}-{end}/{step}", range.start),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

fn refusal(given: SpecInput) -> String {
    ScheduleSpec::of(given).map_or_else(|error| error.to_string(), |spec| format!("accepted: {spec:?}"))
}

#[test]
fn a_field_is_a_list_of_values_ranges_steps_and_names() {
    let table = [
        "",
        "*",
        "5",
        "1-5",
        "1-5/2",
        "3/2",
        "*/2",
        "1,3-4,6/2",
        "7",
        "0-7",
        "1-7",
        "3-7",
        "3-7/3",
        "1-7/2",
        "5-7/2",
        "7-7",
        "7/1",
        "sun",
        "SU-Tue",
        "wednesday",
        "mon-fri/2,SAT",
        " 1 ",
        "+3",
        "03",
    ];
    let mut rows = String::new();
    for text in table {
        let calendar = CalendarStrings { day_of_week: text.into(), ..CalendarStrings::default() };
        let spec = ScheduleSpec::of(of_calendar(calendar)).expect(text);
        rows.push_str(&format!("{text:14} {}\n", shown(&spec.calendars[0].day_of_week)));
    }
    expect![[r#"
                       0-6
        *              0-6
        5              5
        1-5            1-5
        1-5/2          1-5/2
        3/2            0,3-6/2
        */2            0-6/2
        1,3-4,6/2      1,3-4,6-0/2
        7              0
        0-7            0-6
        1-7            1-6
        3-7            0,3-6
        3-7/3          3-6/3
        1-7/2          0,1-6/2
        5-7/2          0,5-6/2
        7-7            0
        7/1            0
        sun            0
        SU-Tue         0-2
        wednesday      3
        mon-fri/2,SAT  1-5/2,6
         1             1
        +3             3
        03             3
    "#]]
    .assert_eq(&rows);
}

#[test]
fn what_is_no_field_is_refused_in_the_words_of_the_server() {
    let table = [
        "8",
        "x",
        "1,",
        "1,,2",
        "1-2-3",
        "1/2/3",
        "1/",
        "/2",
        "1/0",
        "1/-1",
        "1/x",
        "1/99999999999999999999",
        "5-1",
        "fri-tue",
        "?",
        "1#2",
        "1, 2",
        "s",
        "1-x",
        "-1",
    ];
    let mut rows = String::new();
    for text in table {
        let calendar = CalendarStrings { day_of_week: text.into(), ..CalendarStrings::default() };
        rows.push_str(&format!("{text:10} {}\n", refusal(of_calendar(calendar))));
    }
    expect![[r#"
        8          Invalid schedule spec: DayOfWeek is not in range [0-7]
        x          Invalid schedule spec: DayOfWeek is not in range [0-7]
        1,         Invalid schedule spec: DayOfWeek is not in range [0-7]
        1,,2       Invalid schedule spec: DayOfWeek is not in range [0-7]
        1-2-3      Invalid schedule spec: DayOfWeek has too many dashes
        1/2/3      Invalid schedule spec: DayOfWeek has too many slashes
        1/         Invalid schedule spec: DayOfWeek missing step value
        /2         Invalid schedule spec: DayOfWeek is not in range [0-7]
        1/0        Invalid schedule spec: DayOfWeek has invalid Step
        1/-1       Invalid schedule spec: DayOfWeek has invalid Step
        1/x        Invalid schedule spec: strconv.Atoi: parsing "x": invalid syntax
        1/99999999999999999999 Invalid schedule spec: strconv.Atoi: parsing "99999999999999999999": value out of range
        5-1        Invalid schedule spec: DayOfWeek End is before Start or not in range [0-7]
        fri-tue    Invalid schedule spec: DayOfWeek End is before Start or not in range [0-7]
        ?          Invalid schedule spec: DayOfWeek is not in range [0-7]
        1#2        Invalid schedule spec: DayOfWeek is not in range [0-7]
        1, 2       Invalid schedule spec: DayOfWeek is not in range [0-7]
        s          Invalid schedule spec: DayOfWeek is not in range [0-7]
        1-x        Invalid schedule spec: DayOfWeek End is before Start or not in range [0-7]
        -1         Invalid schedule spec: DayOfWeek Start is not in range [0-7]
    "#]].assert_eq(&rows);
    let several = CalendarStrings { second: "60".into(), month: "Ja".into(), ..CalendarStrings::default() };
    expect!["Invalid schedule spec: Second is not in range [0-59], Month is not in range [1-12]"]
        .assert_eq(&refusal(of_calendar(several)));
}

#[test]
fn an_empty_string_is_midnight_of_every_day() {
    let spec = ScheduleSpec::of(of_calendar(CalendarStrings::default())).expect("nothing");
    let range = |start, end| vec![ValueRange { start, end, step: 0 }];
    let midnight = CalendarSpec {
        second: range(0, 0),
        minute: range(0, 0),
        hour: range(0, 0),
        day_of_month: range(1, 31),
        month: range(1, 12),
        day_of_week: range(0, 6),
        ..CalendarSpec::default()
    };
    assert_eq!(spec.calendars, [midnight]);
    let filled = ScheduleSpec::filled(spec);
    assert_eq!(shown(&filled.calendars[0].hour), "0-0/1");
    assert_eq!(shown(&filled.calendars[0].month), "1-12/1");
}

#[test]
fn notations_of_cron_are_calendars_and_intervals() {
    let table = [
        "0 12 * * MON",
        "*/15 1-5 1 JAN-Mar 7",
        "1 2 3 4 5 2030",
        "9 1 2 3 4 5 2030-2040/5",
        "@yearly",
        "@monthly",
        "@weekly",
        "@daily",
        "@hourly",
        "  0 1 * * *  # at one #1 ",
        "@every 90s",
        "@every 1h30m/15m",
        "@every 1.5d # lost",
        "TZ=Asia/Tokyo 0 9 * * *",
        "CRON_TZ=Asia/Tokyo   0 9 * * *",
    ];
    let mut rows = String::new();
    for text in table {
        let spec = ScheduleSpec::of(of_cron(&[text])).expect(text);
        rows.push_str(&format!("{text:28} "));
        for calendar in &spec.calendars {
            let CalendarSpec { second, minute, hour, day_of_month, month, year, day_of_week, comment } =
                calendar;
            let fields =
                [second, minute, hour, day_of_month, month, day_of_week, year].map(|field| shown(field));
            rows.push_str(&format!("{} {} {comment}", fields.join(" "), spec.zone_name));
        }
        for IntervalSpec { interval, phase } in &spec.intervals {
            let ns = |span: &Option<SpecDuration>| span.map(SpecDuration::ns);
            rows.push_str(&format!("{:?} {:?}", ns(interval), ns(phase)));
        }
        rows.push('\n');
    }
    expect![[r#"
        0 12 * * MON                 0 0 12 1-31 1-12 1   
        */15 1-5 1 JAN-Mar 7         0 0-59/15 1-5 1 1-3 0   
        1 2 3 4 5 2030               0 1 2 3 4 5 2030  
        9 1 2 3 4 5 2030-2040/5      9 1 2 3 4 5 2030-2040/5  
        @yearly                      0 0 0 1 1 0-6   
        @monthly                     0 0 0 1 1-12 0-6   
        @weekly                      0 0 0 1-31 1-12 0   
        @daily                       0 0 0 1-31 1-12 0-6   
        @hourly                      0 0 0-23 1-31 1-12 0-6   
          0 1 * * *  # at one #1     0 0 1 1-31 1-12 0-6   at one #1
        @every 90s                   Some(90000000000) None
        @every 1h30m/15m             Some(5400000000000) Some(900000000000)
        @every 1.5d # lost           Some(129600000000000) None
        TZ=Asia/Tokyo 0 9 * * *      0 0 9 1-31 1-12 0-6  Asia/Tokyo 
        CRON_TZ=Asia/Tokyo   0 9 * * * 0 0 9 1-31 1-12 0-6  Asia/Tokyo 
    "#]]
    .assert_eq(&rows);
}

#[test]
fn what_is_no_notation_is_refused_in_the_words_of_the_server() {
    let table: &[&[&str]] = &[
        &[""],
        &["* * * *"],
        &["* * * * * * * *"],
        &["@reboot"],
        &["TZ=UTC"],
        &["TZ=UTC\t* * * * *"],
        &["@every"],
        &["@every x"],
        &["@every 1"],
        &["@every 1x"],
        &["@every 500ms"],
        &["@every -1h"],
        &["@every 1h/1h"],
        &["@every 1h/-1m"],
        &["@every 1h/x"],
        &["@every  1h"],
        &["@every 1\u{e9}"],
        &["TZ=UTC 0 * * * *", "0 * * * *"],
        &["TZ=UTC 0 * * * *", "@every 1h"],
        &["61 * * * *"],
    ];
    let mut rows = String::new();
    for cron in table {
        rows.push_str(&format!("{:?} {}\n", cron, refusal(of_cron(cron))));
    }
    let mut with_zone = of_cron(&["TZ=UTC 0 * * * *"]);
    with_zone.spec.zone_name = "Asia/Tokyo".into();
    rows.push_str(&format!("Asia/Tokyo {}\n", refusal(with_zone)));
    let mut with_data = of_cron(&["TZ=UTC 0 * * * *"]);
    with_data.spec.zone_data = vec![1];
    rows.push_str(&format!("data {}\n", refusal(with_data)));
    expect![[r#"
        [""] Invalid schedule spec: CronString does not have 5-7 fields
        ["* * * *"] Invalid schedule spec: CronString does not have 5-7 fields
        ["* * * * * * * *"] Invalid schedule spec: CronString does not have 5-7 fields
        ["@reboot"] Invalid schedule spec: CronString does not have 5-7 fields
        ["TZ=UTC"] Invalid schedule spec: CronString has time zone but missing fields
        ["TZ=UTC\t* * * * *"] Invalid schedule spec: CronString does not have 5-7 fields
        ["@every"] Invalid schedule spec: CronString does not have interval after @every
        ["@every x"] Invalid schedule spec: time: invalid duration "x"
        ["@every 1"] Invalid schedule spec: time: missing unit in duration "1"
        ["@every 1x"] Invalid schedule spec: time: unknown unit "x" in duration "1x"
        ["@every 500ms"] Invalid schedule spec: interval is too small
        ["@every -1h"] Invalid schedule spec: interval is too small
        ["@every 1h/1h"] Invalid schedule spec: phase cannot be greater than Interval
        ["@every 1h/-1m"] Invalid schedule spec: phase is negative
        ["@every 1h/x"] Invalid schedule spec: time: invalid duration "x"
        ["@every  1h"] Invalid schedule spec: time: invalid duration " 1h"
        ["@every 1é"] Invalid schedule spec: time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9"
        ["TZ=UTC 0 * * * *", "0 * * * *"] Invalid schedule spec: conflicting timezone names
        ["TZ=UTC 0 * * * *", "@every 1h"] Invalid schedule spec: conflicting timezone names
        ["61 * * * *"] Invalid schedule spec: Minute is not in range [0-59]
        Asia/Tokyo Invalid schedule spec: conflicting timezone names
        data Invalid schedule spec: conflicting timezone names
    "#]]
    .assert_eq(&rows);
}

#[test]
fn values_out_of_their_ranges_are_refused_in_the_words_of_the_server() {
    let range = |start, end, step| vec![ValueRange { start, end, step }];
    let given = CalendarSpec {
        second: range(60, 0, 0),
        minute: range(5, 4, -1),
        hour: range(0, 24, 0),
        day_of_month: range(0, 0, 0),
        month: range(13, 14, 0),
        year: range(1999, 2101, 0),
        day_of_week: range(7, 0, 0),
        comment: "x".repeat(201),
    };
    let spec = |calendar: &CalendarSpec, is_excluded: bool| {
        let (calendars, excluded) =
            if is_excluded { (vec![], vec![calendar.clone()]) } else { (vec![calendar.clone()], vec![]) };
        SpecInput {
            spec: ScheduleSpec { calendars, excluded, ..ScheduleSpec::default() },
            ..SpecInput::default()
        }
    };
    expect!["Invalid schedule spec: invalid calendar spec: Second Start is not in range [0-59], Minute End is before Start or not in range [0-59], Minute has invalid Step, Hour End is before Start or not in range [0-23], DayOfMonth Start is not in range [1-31], Month Start is not in range [1-12], Month End is before Start or not in range [1-12], Year Start is not in range [2000-2100], Year End is before Start or not in range [2000-2100], DayOfWeek Start is not in range [0-6], comment is too long"].assert_eq(&refusal(spec(&given, false)));
    let excluded = refusal(spec(&given, true));
    assert_eq!(format!("{excluded}, comment is too long"), refusal(spec(&given, false)));
    let many = CalendarSpec {
        second: vec![ValueRange { start: 60, end: 0, step: 0 }; 100_000],
        ..CalendarSpec::default()
    };
    assert!(refusal(spec(&many, false)).len() < 2_000);
}

#[test]
fn intervals_have_their_limits() {
    let refused = |interval_ns: i64, phase_ns: i64| {
        let span = |ns| Some(SpecDuration::of_ns(ns));
        let interval = IntervalSpec { interval: span(interval_ns), phase: span(phase_ns) };
        let spec = ScheduleSpec { intervals: vec![interval], ..ScheduleSpec::default() };
        let given = SpecInput { spec, ..SpecInput::default() };
        ScheduleSpec::of(given).map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    let second = 1_000_000_000;
    assert_eq!(refused(second, second - 1), "");
    assert_eq!(refused(second - 1, 0), "Invalid schedule spec: interval is too small");
    assert_eq!(refused(second, -1), "Invalid schedule spec: phase is negative");
    assert_eq!(refused(second, second), "Invalid schedule spec: phase cannot be greater than Interval");
    assert_eq!(refused(i64::MIN, 0), "Invalid schedule spec: interval is too small");
}

#[test]
fn a_specification_has_a_number_of_entries_at_most() {
    let entries = |count| SpecInput { cron: vec!["0 * * * *".into(); count], ..SpecInput::default() };
    assert!(ScheduleSpec::of(entries(SPEC_ENTRIES_MAX)).is_ok());
    assert!(refusal(entries(SPEC_ENTRIES_MAX + 1)).ends_with("more than 1000 calendars and intervals"));
}

#[test]
fn zones_are_known_by_their_names() {
    let refused =
        |name: &str| Zone::of(name, &[]).map_err(|error| error.to_string()).err().unwrap_or_default();
    for known in ["", "UTC", "Europe/Berlin", "US/Pacific", "Etc/GMT+5"] {
        assert_eq!(refused(known), "");
    }
    for unknown in ["europe/berlin", "Mars", "Local", "UTC "] {
        assert_eq!(refused(unknown), format!("Invalid schedule spec: unknown time zone {unknown}"));
    }
    for invalid in ["/etc/localtime", "\\x", "../x", "a/../b"] {
        assert_eq!(refused(invalid), "Invalid schedule spec: time: invalid location name");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_given_is_read_or_refused(
        cron in proptest::collection::vec("([@*/,#-]|[0-9]|[a-z]| |TZ=|every|\\PC){0,20}", 0..3),
        fields in proptest::array::uniform7("([*/,-]|[0-9]{1,3}|[A-Za-z]{2,4}|\\PC){0,6}"),
    ) {
        let [second, minute, hour, day_of_month, month, year, day_of_week] = fields;
        let comment = String::new();
        let calendar =
            CalendarStrings { second, minute, hour, day_of_month, month, year, day_of_week, comment };
        let given = SpecInput { cron, calendars: vec![calendar], ..SpecInput::default() };
        if let Ok(spec) = ScheduleSpec::of(given) {
            let again = |spec: &ScheduleSpec| {
                ScheduleSpec::of(SpecInput { spec: spec.clone(), ..SpecInput::default() })
            };
            prop_assert_eq!(again(&spec), Ok(spec.clone()));
            let filled = spec.filled();
            prop_assert_eq!(again(&filled), Ok(filled));
        }
    }
}
