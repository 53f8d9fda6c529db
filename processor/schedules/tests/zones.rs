//! Zones read from TZif files: those of the database, damaged ones, and the largest that are accepted.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use everlog_schedules::matcher::{MatchBudget, Matcher, SearchPosition, SearchResult};
use everlog_schedules::spec::{CalendarSpec, SPEC_ENTRIES_MAX, ScheduleSpec, ValueRange};
use everlog_schedules::zone::Zone;
use flate2::read::GzDecoder;
use proptest::prelude::*;

const RECORDED: &[u8] = include_bytes!("schedules-recorded/recorded.jsonl.gz");
const HOUR_S: i64 = 3_600;
/// 2100-01-01 00:00:00 UTC: behind it the database that is compiled in has no changes, and files go on by their rules.
const END_S: i64 = 4_102_444_800;

/// The files that the recorder sent to the server, by the names of their zones.
fn files() -> BTreeMap<String, Vec<u8>> {
    let mut text = String::new();
    GzDecoder::new(RECORDED).read_to_string(&mut text).expect("text");
    let line = text.lines().next().expect("a line");
    let files: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let bytes = |hex: &str| -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    let files = files["tzif"].as_object().expect("files").iter();
    files.map(|(name, hex)| (name.clone(), bytes(hex.as_str().expect("hex")))).collect()
}

#[test]
fn a_file_is_read_as_the_database_that_is_compiled_in() {
    for (name, bytes) in files() {
        let (of_file, named) = (Zone::of("", &bytes).expect("a file"), Zone::of(&name, &[]).expect("a name"));
        let differs = |hour: &i64| of_file.offset_s(hour * HOUR_S) != named.offset_s(hour * HOUR_S);
        assert_eq!((0..END_S / HOUR_S).find(differs), None, "{name}: hour behind 1970");
    }
}

/// A file of version 2 with these changes, each to the other of two offsets, and a rule at the end.
fn tzif(changes: impl Iterator<Item = i64>, offsets: [i32; 2], rule: &str) -> Vec<u8> {
    let changes: Vec<i64> = changes.collect();
    let header = |count: usize| {
        let mut header = b"TZif2".to_vec();
        header.extend([0; 15]);
        for number in [0, 0, 0, count as u32, 2, 4] {
            header.extend(number.to_be_bytes());
        }
        header
    };
    let kinds = || {
        let mut kinds = Vec::new();
        for (place, offset_s) in offsets.iter().enumerate() {
            kinds.extend(offset_s.to_be_bytes());
            kinds.extend([place as u8, 0]);
        }
        kinds.extend(b"ABC\0");
        kinds
    };
    let mut bytes = header(0);
    bytes.extend(kinds());
    bytes.extend(header(changes.len()));
    bytes.extend(changes.iter().flat_map(|at_s| at_s.to_be_bytes()));
    bytes.extend((0..changes.len()).map(|place| (place + 1) as u8 % 2));
    bytes.extend(kinds());
    bytes.extend(format!("\n{rule}\n").bytes());
    bytes
}

#[test]
fn what_is_no_file_or_too_large_is_refused() {
    let fits = |bytes: &[u8]| Zone::of("", bytes).is_ok();
    assert!(fits(&tzif([].into_iter(), [0, 0], "")));
    assert!(fits(&tzif(0..600, [0, HOUR_S as i32], "ABC0")));
    assert!(!fits(&tzif(0..601, [0, HOUR_S as i32], "ABC0")));
    assert!(fits(&tzif(-5_000..0, [0, HOUR_S as i32], "ABC0")), "nobody asks for those before 1970");
    assert!(!fits(&tzif([5, 4].into_iter(), [0, 1], "")), "not in order");
    assert!(!fits(&tzif([].into_iter(), [0, 26 * 3_600 + 1], "")));
    assert!(!fits(&tzif([].into_iter(), [0, i32::MIN], "")));
    assert!(!fits(&[0; 100]) && !fits(b"TZif2"));
    let refused = Zone::of("UTC", b"TZif").expect_err("no file");
    assert_eq!(refused.to_string(), "Invalid schedule spec: malformed time zone information");
}

#[test]
fn the_rule_at_the_end_goes_on_for_ever() {
    let offset_h = |rule: &str, day: i64| {
        let zone = Zone::of("", &tzif([].into_iter(), [0, 0], rule)).expect("a file");
        zone.offset_s(day * 86_400 + 43_200) / HOUR_S
    };
    // Days 20,089 and 20,270 are the 1st of January and the 1st of July 2025; 47,664 is the 1st of July 2100.
    let table = [
        ("CET-1CEST,M3.5.0,M10.5.0/3", [1, 2, 2]),
        ("EST5EDT", [-5, -4, -4]),
        ("NZST-12NZDT,M9.5.0,M4.1.0/3", [13, 12, 12]),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", [0, 1, 1]),
        ("<+03>-3", [3, 3, 3]),
        ("XXX0YYY,J60/0,J300/0", [0, 1, 1]),
        ("XXX0YYY-5,59/-167,299/167", [0, 5, 5]),
    ];
    for (rule, expected) in table {
        assert_eq!([20_089, 20_270, 47_664].map(|day| offset_h(rule, day)), expected, "{rule}");
    }
    for unreadable in [
        "",
        "X",
        "XX0",
        "XXX",
        "XXX25",
        "XXX0YYY,",
        "XXX0YYY,M3.5.0",
        "XXX0YYY,M13.1.0,M1.1.0",
        "XXX0YYY,J0,J1",
        "<A",
    ] {
        assert_eq!(offset_h(unreadable, 20_270), 0, "{unreadable}");
    }
}

fn all(start: i32, end: i32) -> Vec<ValueRange> {
    vec![ValueRange { start, end, step: 0 }]
}

/// As many entries, changes and misses as a user may send: one search takes a bounded number of steps.
#[test]
fn the_worst_specification_costs_a_bounded_number_of_steps() {
    let calendar = CalendarSpec {
        second: all(0, 0),
        minute: all(0, 0),
        hour: all(0, 0),
        day_of_month: all(29, 29),
        month: all(2, 2),
        day_of_week: all(1, 1),
        ..CalendarSpec::default()
    };
    // Each second of ten minutes the clocks are set a day back or forth.
    let begin_s = 1_800_000_000;
    let zone_data = tzif(begin_s..begin_s + 600, [-86_400, 86_400], "");
    let spec =
        ScheduleSpec { calendars: vec![calendar; SPEC_ENTRIES_MAX], zone_data, ..ScheduleSpec::default() };
    let matcher = Matcher::new(&spec, "").expect("a zone");
    let mut budget = MatchBudget::new(u32::MAX);
    let found = matcher.next(&mut SearchPosition::behind(begin_s - 5), &mut budget);
    assert!(matches!(found, SearchResult::Found(_)), "{found:?}");
    let steps = u32::MAX - budget.left();
    assert!(steps < 30_000_000, "{steps}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_stops_nothing(
        which in any::<usize>(),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..12),
        length in any::<usize>(),
        from_s in 0..END_S,
    ) {
        static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(files);
        let files = &*FILES;
        let mut bytes = files.values().nth(which % files.len()).expect("a file").clone();
        for (place, byte) in damage {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        if length.is_multiple_of(3) {
            bytes.truncate(length % bytes.len());
        }
        let noon = CalendarSpec {
            second: all(0, 0),
            minute: all(0, 0),
            hour: all(12, 12),
            day_of_month: all(1, 31),
            month: all(1, 12),
            day_of_week: all(0, 6),
            ..CalendarSpec::default()
        };
        let spec = ScheduleSpec { calendars: vec![noon], zone_data: bytes, ..ScheduleSpec::default() };
        if let Ok(matcher) = Matcher::new(&spec, "") {
            let mut position = SearchPosition::behind(from_s);
            let mut budget = MatchBudget::new(100_000);
            while let SearchResult::Found(time) = matcher.next(&mut position, &mut budget) {
                prop_assert!(time.nominal_s > position.searched_s);
                position = SearchPosition::behind(time.nominal_s);
            }
        }
    }
}
