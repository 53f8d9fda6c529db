//! Golden bytes: what was once written is read for ever, and means the same.
//!
//! Each line of a golden file is a name and the bytes under it, in hex. `UPDATE_GOLDEN=1` adds lines for names that are
//! new; it never touches a line that is there. When a message grows a field, its old line stays, and a new name with the
//! field filled in joins it.

mod events;
mod operator_calls;
mod public_command;
mod public_samples;
mod records;
mod rows;
mod schedules;
mod settings;
mod shaken;
mod versioned;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use bytes::Bytes;
use everlog_engine::event::{Attributes, History, HistoryEvent};
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::schedule::definition::ScheduleProgress;
use everlog_engine::machine::update::Update;
use everlog_wire::rows::{Builder, diff, done_suffix, is_part, promise_prefix, request_suffix};
use everlog_wire::{Position, Record};
use prost::Message;

/// The lines of a golden file, completed by those of the names that are new where that is asked for.
fn golden(file: &str, written: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines: BTreeMap<String, Vec<u8>> = text.lines().map(line).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        for (name, bytes) in written {
            lines.entry(name.clone()).or_insert_with(|| bytes.clone());
        }
        let text: String = lines.iter().map(|(name, bytes)| format!("{name} {}\n", hex(bytes))).collect();
        std::fs::write(&path, text).expect("a golden file can be written");
    }
    lines
}

fn line(line: &str) -> (String, Vec<u8>) {
    let (name, hex) = line.split_once(' ').expect("a name and its bytes");
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("bytes are in hex");
    (name.into(), (0..hex.len()).step_by(2).map(digit).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all");
        hex
    })
}

/// Compares what is written today with the golden lines of the same names, and returns the golden lines.
fn compare(file: &str, written: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let golden = golden(file, &written);
    for (name, bytes) in &written {
        let line =
            golden.get(name).unwrap_or_else(|| panic!("{file} has no line {name}: run with UPDATE_GOLDEN=1"));
        assert_eq!(hex(line), hex(bytes), "{name} is written otherwise than it once was");
    }
    let gone: Vec<_> = golden.keys().filter(|name| !written.contains_key(*name)).collect();
    assert!(gone.is_empty(), "{file}: nothing is written any more as {gone:?}");
    golden
}

#[test]
fn events_keep_their_bytes() {
    let samples = events::samples();
    let names: Vec<_> = samples.keys().map(String::as_str).collect();
    for name in Attributes::NAMES {
        assert!(names.contains(name), "there is no sample of {name}");
    }
    let written = samples.iter().map(|(name, event)| (name.clone(), event.encode_to_vec())).collect();
    for (name, bytes) in compare("events.hex", written) {
        let read = HistoryEvent::decode(Bytes::from(bytes)).expect("an event of old is read");
        assert_eq!(read, samples[&name], "{name} means something else");
    }
    let history = History { events: samples.into_values().collect() };
    assert_eq!(History::decode(Bytes::from(history.encode_to_vec())).expect("a history is read"), history);
}

#[test]
fn rows_keep_their_bytes() {
    let run = rows::sample();
    let mut written = BTreeMap::new();
    diff(None, &run, |suffix, value| {
        let name = format!("{}.{}", char::from(suffix[0]), hex(suffix));
        written.insert(name, value.expect("a new run has only rows with a value").to_vec());
    });
    let request = request_suffix("signal-1");
    let done = done_suffix("update-0");
    let promise = promise_prefix("update-1");
    for (beside, bytes) in [(request, vec![1]), (done, rows::done().encode_to_vec()), (promise, vec![1])] {
        assert!(!is_part(&beside));
        written.insert(format!("{}.{}", char::from(beside[0]), hex(&beside)), bytes);
    }
    let mut builder = Builder::default();
    for (name, bytes) in compare("rows.hex", written) {
        let (_, suffix) = line(&name.replace('.', " "));
        builder.row(&suffix, &bytes).expect("a row of old is read");
    }
    assert_eq!(builder.finish().expect("the rows are complete"), Some(run), "the rows mean something else");
}

#[test]
fn records_keep_their_bytes() {
    let samples = records::samples();
    let written = samples.iter().map(|(name, record)| (name.clone(), record.encode().to_vec())).collect();
    for (name, bytes) in compare("records.hex", written) {
        let read = Record::read(bytes.into()).expect("a record of old is read");
        assert_eq!(read, samples[&name], "{name} means something else");
    }
}

#[test]
fn what_operators_leave_in_a_run_keeps_its_bytes() {
    let written = BTreeMap::from([
        ("Activity.operator".to_owned(), operator_calls::activity().encode_to_vec()),
        ("Properties.operator".to_owned(), operator_calls::properties().encode_to_vec()),
        ("Head.operator".to_owned(), operator_calls::head().encode_to_vec()),
    ]);
    let golden = compare("operator_calls.hex", written);
    let bytes = |name: &str| Bytes::from(golden[name].clone());
    let activity = Activity::decode(bytes("Activity.operator")).expect("a row of old is read");
    assert_eq!(activity, operator_calls::activity());
    let properties = everlog_engine::Properties::decode(bytes("Properties.operator"));
    assert_eq!(properties.expect("a row of old is read"), operator_calls::properties());
    let head = everlog_engine::ExecutionInfo::decode(bytes("Head.operator"));
    assert_eq!(head.expect("a row of old is read"), operator_calls::head());
}

#[test]
fn what_stands_beside_a_run_keeps_its_bytes() {
    let (position, marked) = (records::position(), records::marked());
    let current = everlog_engine::Current { run_id: rows::RUN_ID.into() };
    let written = BTreeMap::from([
        ("Position".to_owned(), position.encode().to_vec()),
        ("Position.marks".to_owned(), marked.encode().to_vec()),
        ("Current".to_owned(), current.encode_to_vec()),
        ("Start.continued".to_owned(), rows::continued().encode_to_vec()),
        ("Position.level".to_owned(), records::levelled().encode().to_vec()),
        ("Position.posts".to_owned(), records::posted().encode().to_vec()),
        ("Start.named".to_owned(), rows::named().encode_to_vec()),
        ("Start.parent".to_owned(), rows::of_parent().encode_to_vec()),
        ("Head.updates".to_owned(), rows::updated().encode_to_vec()),
        ("Properties.builds".to_owned(), rows::built().encode_to_vec()),
        ("Properties.versioned".to_owned(), versioned::properties().encode_to_vec()),
        ("Start.reset".to_owned(), rows::reset().encode_to_vec()),
        ("Head.reset".to_owned(), rows::replaced().encode_to_vec()),
        ("Start.watched".to_owned(), schedules::watched().encode_to_vec()),
        ("ScheduleProgress.told".to_owned(), schedules::told().encode_to_vec()),
        ("ScheduleProgress.tried".to_owned(), schedules::tried().encode_to_vec()),
        ("Start.begun".to_owned(), rows::begun().encode_to_vec()),
        ("Head.closed".to_owned(), rows::closed().encode_to_vec()),
        ("Head.failing".to_owned(), rows::failing().encode_to_vec()),
        ("Update.reset".to_owned(), rows::written_update().encode_to_vec()),
        ("TaskToken".to_owned(), records::token().encode_to_vec()),
        ("ActivityTarget".to_owned(), records::target().encode_to_vec()),
    ]);
    let golden = compare("others.hex", written);
    let bytes = |name: &str| Bytes::from(golden[name].clone());
    assert_eq!(Position::read(bytes("Position")).expect("a position of old is read"), position);
    assert_eq!(Position::read(bytes("Position.marks")).expect("a position of old is read"), marked);
    let posted = Position::read(bytes("Position.posts")).expect("a position of old is read");
    assert_eq!(posted, records::posted());
    let levelled = Position::read(bytes("Position.level")).expect("a position of old is read");
    assert_eq!(levelled, records::levelled());
    let of_parent = everlog_engine::Start::decode(bytes("Start.parent")).expect("a row of old is read");
    assert_eq!(of_parent, rows::of_parent());
    assert_eq!(everlog_engine::Current::decode(bytes("Current")).expect("a row of old is read"), current);
    let continued = everlog_engine::Start::decode(bytes("Start.continued")).expect("a row of old is read");
    assert_eq!(continued, rows::continued());
    let named = everlog_engine::Start::decode(bytes("Start.named")).expect("a row of old is read");
    assert_eq!(named, rows::named());
    let updated = everlog_engine::ExecutionInfo::decode(bytes("Head.updates")).expect("a row of old is read");
    assert_eq!(updated, rows::updated());
    let built = everlog_engine::Properties::decode(bytes("Properties.builds")).expect("a row of old is read");
    assert_eq!(built, rows::built());
    let versioned = everlog_engine::Properties::decode(bytes("Properties.versioned"));
    assert_eq!(versioned.expect("a row of old is read"), versioned::properties());
    let reset = everlog_engine::Start::decode(bytes("Start.reset")).expect("a row of old is read");
    assert_eq!(reset, rows::reset());
    let replaced = everlog_engine::ExecutionInfo::decode(bytes("Head.reset")).expect("a row of old is read");
    assert_eq!(replaced, rows::replaced());
    let watched = everlog_engine::Start::decode(bytes("Start.watched")).expect("a row of old is read");
    assert_eq!(watched, schedules::watched());
    let told = ScheduleProgress::decode(bytes("ScheduleProgress.told")).expect("a row of old is read");
    assert_eq!(told, schedules::told());
    let tried = ScheduleProgress::decode(bytes("ScheduleProgress.tried")).expect("a row of old is read");
    assert_eq!(tried, schedules::tried());
    let begun = everlog_engine::Start::decode(bytes("Start.begun")).expect("a row of old is read");
    assert_eq!(begun, rows::begun());
    let closed = everlog_engine::ExecutionInfo::decode(bytes("Head.closed")).expect("a row of old is read");
    assert_eq!(closed, rows::closed());
    let failing = everlog_engine::ExecutionInfo::decode(bytes("Head.failing")).expect("a row of old is read");
    assert_eq!(failing, rows::failing());
    let written = Update::decode(bytes("Update.reset")).expect("a row of old is read");
    assert_eq!(written, rows::written_update());
}

#[test]
fn what_a_later_release_wrote_is_not_read_as_something_else() {
    let mut record = records::samples().remove("Wake").expect("there is a sample");
    record.version = everlog_wire::LEVEL_VERSION + 1;
    let error = Record::read(record.encode()).expect_err("it is of a later release");
    assert_eq!(
        error.to_string(),
        "a journal record has version 3, this release reads up to 2: install the release that wrote it, or a newer one"
    );
    assert!(Record::read(Bytes::from_static(b"\xff\xff")).is_err());
    let mut builder = Builder::default();
    assert!(builder.row(b"?", b"").is_err(), "a row of an unknown kind is no part of a run");
    assert!(builder.row(b"h", b"\xff").is_err());
    assert!(builder.row(b"", b"").is_err());
    builder.row(b"h", b"").expect("an empty head is a head");
    assert!(builder.finish().is_err(), "a run without its start is none");
    assert_eq!(Builder::default().finish(), Ok(None));
}
