//! What a real Temporal server made of some 5,000 specifications, and what this crate makes of the same: the stored form or the
//! refusal, and the times that match in a window.
//!
//! The recording is data (schedules-recorded/recorded.jsonl.gz, made by record.py beside it). Every answer is the server's,
//! or differs for one of the reasons below; `schedules-recorded/differences.txt` has some of each.

use std::collections::BTreeMap;
use std::io::Read;

use everlog_schedules::matcher::{MATCHING_TIMES_MAX, Matcher};
use everlog_schedules::spec::{
    CalendarSpec, CalendarStrings, IntervalSpec, ScheduleSpec, SpecDuration, SpecError, SpecInput, SpecTime,
    ValueRange,
};
use everlog_schedules::zone::Zone;
use expect_test::expect_file;
use flate2::read::GzDecoder;
use serde_json::{Value as Json, json};

const RECORDED: &[u8] = include_bytes!("schedules-recorded/recorded.jsonl.gz");
/// Of each reason for a difference so many are shown.
const SHOWN: usize = 3;

struct Recording {
    tzif: BTreeMap<String, Vec<u8>>,
    answers: Vec<Json>,
}

fn recording() -> Recording {
    let mut text = String::new();
    GzDecoder::new(RECORDED).read_to_string(&mut text).expect("text");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let mut next = || lines.next().expect("a line");
    let tzif = members(&next()["tzif"]).map(|(name, bytes)| (name.clone(), bytes_of(bytes))).collect();
    Recording { tzif, answers: lines.collect() }
}

/// The bytes of a text in hexadecimal.
fn bytes_of(hex: &Json) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("a digit") as u8;
    let digits = hex.as_str().expect("hex").as_bytes();
    digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn members(object: &Json) -> impl Iterator<Item = (&String, &Json)> {
    object.as_object().into_iter().flatten()
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Json) -> i64 {
    value.as_i64().expect("a number")
}

fn moment(value: &Json) -> Option<SpecTime> {
    let parts = value.as_array()?;
    Some(SpecTime { seconds: number(&parts[0]), nanos: number(&parts[1]) as i32 })
}

fn strings(calendar: &Json) -> CalendarStrings {
    CalendarStrings {
        second: text(&calendar["second"]),
        minute: text(&calendar["minute"]),
        hour: text(&calendar["hour"]),
        day_of_month: text(&calendar["day_of_month"]),
        month: text(&calendar["month"]),
        year: text(&calendar["year"]),
        day_of_week: text(&calendar["day_of_week"]),
        comment: text(&calendar["comment"]),
    }
}

fn structured(calendar: &Json) -> CalendarSpec {
    let range = |range: &Json| {
        let part = |place: usize| i32::try_from(number(&range[place])).expect("a small number");
        ValueRange { start: part(0), end: part(1), step: part(2) }
    };
    let ranges = |field: &str| list(&calendar[field]).map(range).collect();
    CalendarSpec {
        second: ranges("second"),
        minute: ranges("minute"),
        hour: ranges("hour"),
        day_of_month: ranges("day_of_month"),
        month: ranges("month"),
        year: ranges("year"),
        day_of_week: ranges("day_of_week"),
        comment: text(&calendar["comment"]),
    }
}

fn given(recording: &Recording, given: &Json) -> SpecInput {
    let span = |ns: &Json| ns.as_i64().map(SpecDuration::of_ns);
    let interval = |pair: &Json| IntervalSpec { interval: span(&pair[0]), phase: span(&pair[1]) };
    let zone_data = given["zone_data"].as_array().map(|parts| {
        let bytes = &recording.tzif[parts[0].as_str().expect("a name")];
        bytes.iter().copied().take(usize::try_from(number(&parts[1])).expect("a length")).collect()
    });
    SpecInput {
        spec: ScheduleSpec {
            calendars: list(&given["structured"]).map(structured).collect(),
            excluded: list(&given["exclude_structured"]).map(structured).collect(),
            intervals: list(&given["interval"]).map(interval).collect(),
            start: moment(&given["start"]),
            end: moment(&given["end"]),
            jitter: span(&given["jitter"]),
            zone_name: text(&given["zone"]),
            zone_data: zone_data.unwrap_or_default(),
        },
        calendars: list(&given["calendar"]).map(strings).collect(),
        excluded_calendars: list(&given["exclude_calendar"]).map(strings).collect(),
        cron: list(&given["cron"]).map(text).collect(),
    }
}

/// A phase that was not given is none in one form, and nothing in another.
fn with_phases(mut spec: ScheduleSpec) -> ScheduleSpec {
    for interval in &mut spec.intervals {
        interval.phase = Some(interval.phase.unwrap_or_default());
    }
    spec
}

/// What this crate answers, in the form of the recording: the stored form apart.
fn answer(recording: &Recording, recorded: &Json) -> Result<(ScheduleSpec, Json), SpecError> {
    let spec = ScheduleSpec::of(given(recording, &recorded["given"]))?;
    let again = SpecInput { spec: spec.clone(), ..SpecInput::default() };
    assert_eq!(ScheduleSpec::of(again).as_ref(), Ok(&spec), "a stored form stays as it is");
    let matcher = Matcher::new(&spec, recorded["seed"].as_str().unwrap_or_default())?;
    let filled = spec.filled();
    let again = SpecInput { spec: filled.clone(), ..SpecInput::default() };
    assert_eq!(ScheduleSpec::of(again).as_ref(), Ok(&filled), "what is shown may be sent back");
    let window = list(&recorded["given"]["window"]).map(|parts| moment(parts).expect("a moment"));
    let &[start, end] = window.collect::<Vec<_>>().as_slice() else { panic!("a window has two ends") };
    let times = matcher.matching_times(start, end, MATCHING_TIMES_MAX)?;
    let shown = recorded["times"].as_array().map_or(0, Vec::len);
    let first: Vec<i64> = times.iter().copied().take(shown.max(1)).collect();
    Ok((with_phases(filled), json!({"count": times.len(), "times": first})))
}

/// Why answers differ; none if they should not.
fn reason(
    recording: &Recording,
    recorded: &Json,
    ours: &Result<(ScheduleSpec, Json), SpecError>,
) -> Option<&'static str> {
    let stored = match ours {
        Err(error) if error.to_string().ends_with("unknown time zone Europe/") => {
            return (recorded["text"] == "Invalid schedule spec: is a directory")
                .then_some("the folder of some zones is an unknown zone");
        }
        Err(error) if error.to_string().contains("too many exclusions") => {
            return recorded["stored"]
                .is_object()
                .then_some("newer servers stop as well at too many exclusions");
        }
        Err(_) => return None,
        Ok((stored, _)) => stored,
    };
    if *stored != with_phases(given(recording, &recorded["stored"]).spec) {
        return None;
    }
    let second = |place: usize| number(&recorded["given"]["window"][place][0]);
    let from_s = second(0).max(stored.start.map_or(-1, |start| start.seconds - 1)).max(-1);
    let phase_s = |interval: &IntervalSpec| interval.phase.unwrap_or_default().seconds;
    if stored.intervals.iter().any(|interval| from_s < phase_s(interval)) {
        return Some("intervals count from 1970 on, and not from one interval later");
    }
    let zone = Zone::of(&stored.zone_name, &stored.zone_data).expect("a zone");
    // The server errs an hour before as well.
    let mut hours = (from_s..second(1) + 7_200).step_by(3_600);
    let is_changed = hours.any(|s| zone.offset_s(s) != zone.offset_s(s + 3_600));
    is_changed.then_some("around changes of the clocks the literal rule holds, second by second")
}

#[test]
fn answers_are_those_of_the_server() {
    let recording = recording();
    assert!(recording.answers.len() > 4_500, "{}", recording.answers.len());
    let mut differences = BTreeMap::<&str, Vec<String>>::new();
    for recorded in &recording.answers {
        let ours = answer(&recording, recorded);
        let is_same = match &ours {
            Ok((stored, times)) => {
                recorded["stored"].is_object()
                    && *stored == with_phases(given(&recording, &recorded["stored"]).spec)
                    && times["count"] == recorded["count"]
                    && times["times"] == recorded["times"]
            }
            Err(error) => recorded["text"] == error.to_string(),
        };
        if is_same {
            continue;
        }
        let ours_shown = match &ours {
            Ok((stored, times)) => format!("{times} {stored:?}"),
            Err(error) => error.to_string(),
        };
        let mut theirs = recorded.clone();
        let given = theirs["given"].take();
        let shown = format!("{given}\n    ours   {ours_shown}\n    theirs {theirs}\n");
        differences.entry(reason(&recording, recorded, &ours).unwrap_or("?")).or_default().push(shown);
    }
    let mut shown = String::new();
    for (reason, all) in &differences {
        shown.push_str(&format!("-- {reason}: {}\n{}", all.len(), all[..all.len().min(SHOWN)].concat()));
    }
    expect_file!["schedules-recorded/differences.txt"].assert_eq(&shown);
    let wrong = differences.get("?").map(|all| all.concat());
    assert_eq!(wrong, None, "not allowed");
}
