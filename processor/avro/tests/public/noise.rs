//! Random bytes, cut bytes, turned bits: a reader of public records says no, it never falls.

use std::panic::{AssertUnwindSafe, catch_unwind};

use everlog_avro::command::{Command, CommandVerdict, Complete, Fail, Signal, Terminate};
use everlog_avro::payload::Payload;
use everlog_avro::{PublicTopic, Writer};

use crate::world::{COMMAND_ID, GIVEN_ID, Known, avro, read_in, start};
use crate::{operators, schedules};

/// A generator of numbers that needs no crate; the seed names the case.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

/// A schema that is not ours, and that calls itself: what is skipped may be as deep as the sender likes.
const RECURSIVE: &str = r#"{"type": "record", "name": "io.everlog.WorkflowCommand", "fields": [
    {"name": "type", "type": "string"},
    {"name": "nest", "type": ["null", {"type": "array", "items": "io.everlog.WorkflowCommand"}]},
    {"name": "nulls", "type": {"type": "array", "items": "null"}},
    {"name": "map", "type": {"type": "map", "values": ["null", "double", {"type": "fixed", "name": "F", "size": 3}]}},
    {"name": "mood", "type": {"type": "enum", "name": "Mood", "symbols": ["A", "B"]}}]}"#;

fn seeds() -> Vec<Vec<u8>> {
    let payload = || Payload { text: Some("1".into()), ..Payload::default() };
    let of = |r#type: &str| Command { r#type: r#type.into(), ..Command::default() };
    let signal = Signal { name: "go".into(), input: Some(vec![payload()]), header: None };
    let complete = Complete { activity_id: Some("a".into()), token: None, result: Some(vec![payload()]) };
    let fail = Fail { activity_id: Some("a".into()), details: Some(vec![payload()]), ..Fail::default() };
    let mut seeds = vec![
        avro(&start()),
        avro(&Command { signal: Some(signal), ..of("signal") }),
        avro(&Command { complete_activity: Some(complete), ..of("complete_activity") }),
        avro(&Command { fail_activity: Some(fail), ..of("fail_activity") }),
        avro(&Command { terminate: Some(Terminate::default()), ..of("terminate") }),
    ];
    seeds.extend(schedules::commands().iter().chain(&operators::commands()).map(avro));
    let json = [
        r#"{"type":"start","start":{"workflow_type":"O","task_queue":"q","input":[{"a":[1,2]},"x"],"memo":{"k":1}}}"#,
        r#"{"type":"signal","signal":{"name":"go","input":[{"$payload":{"encoding":"b","data":"AQI="}}]}}"#,
        r#"{"type":"create_schedule","create_schedule":{"schedule":{"spec":{"cron":["@daily"]},"workflow_id":"w",
            "start":{"workflow_type":"O","task_queue":"q"}},"patch":{"trigger":{}}}}"#,
    ];
    seeds.extend(json.map(|text| text.as_bytes().to_vec()));
    let recursive = [&[0], &GIVEN_ID.to_be_bytes()[..], b"\x0ccancel\x00\x00\x00\x02"].concat();
    seeds.push(recursive);
    seeds
}

fn verdict(world: &Known, bytes: &[u8]) -> CommandVerdict {
    let read = || read_in(world, Some(b"order-1"), Some(bytes), &[("command-id", Some(b"c"))]);
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_panic| panic!("it fell over {bytes:02x?}"))
}

fn world() -> Known {
    let given = Writer::parse(PublicTopic::Command, RECURSIVE);
    assert!(given.is_ok(), "{given:?}");
    Known { given: Some(given), ..Known::default() }
}

#[test]
fn a_record_that_ends_too_early_is_refused() {
    let world = world();
    for seed in seeds() {
        assert!(matches!(verdict(&world, &seed), CommandVerdict::Accepted(_)), "{seed:02x?}");
        for end in 0..seed.len() {
            let verdict = verdict(&world, &seed[..end]);
            assert!(matches!(verdict, CommandVerdict::Refused(_)), "{end} bytes of {seed:02x?}: {verdict:?}");
        }
    }
}

#[test]
fn no_bytes_make_the_reader_fall() {
    let (world, seeds) = (world(), seeds());
    for case in 0..60_000_u64 {
        let mut dice = Dice(case);
        let mut bytes = seeds[dice.below(seeds.len())].clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] ^= 1 << dice.below(8),
                1 => bytes[at] = dice.next() as u8,
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, dice.next() as u8),
            }
        }
        verdict(&world, &bytes);
    }
    for case in 0..20_000_u64 {
        let mut dice = Dice(case);
        let id = if case % 2 == 0 { COMMAND_ID } else { GIVEN_ID };
        let mut bytes = [&[0], &id.to_be_bytes()[..]].concat();
        bytes.extend((0..dice.below(64)).map(|_| dice.next() as u8));
        verdict(&world, &bytes);
    }
}

#[test]
fn depth_and_empty_elements_are_bounded() {
    let world = world();
    let head = [&[0], &GIVEN_ID.to_be_bytes()[..]].concat();
    // A command in a command in a command: 100,000 times.
    let deep = [head.clone(), b"\x00\x02\x02".repeat(100_000)].concat();
    let CommandVerdict::Refused(refusal) = verdict(&world, &deep) else { panic!("refused") };
    assert_eq!(refusal.reason, "not a WorkflowCommand: it is nested deeper than 64");
    // Two million nulls, which take no bytes.
    let nulls = [head, b"\x00\x00\x80\x89\xf4\x01\x00".to_vec()].concat();
    let CommandVerdict::Refused(refusal) = verdict(&world, &nulls) else { panic!("refused") };
    assert_eq!(refusal.reason, "not a WorkflowCommand: it has more than 10000 elements");
}

#[test]
fn no_schema_makes_the_reader_fall() {
    let texts = [RECURSIVE, PublicTopic::Outcome.text(), PublicTopic::Command.text()];
    let words = [
        "null",
        "record",
        "enum",
        "fixed",
        "int",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "-1",
        "io.everlog.Outcome",
    ];
    for case in 0..6_000_u64 {
        let mut dice = Dice(case);
        let mut text = texts[dice.below(texts.len())].to_owned();
        for _ in 0..=dice.below(3) {
            let at = dice.below(text.len());
            let end = at + dice.below(12).min(text.len() - at);
            text.replace_range(at..end, words[dice.below(words.len())]);
        }
        let parse = || drop(Writer::parse(PublicTopic::Command, &text));
        catch_unwind(AssertUnwindSafe(parse))
            .unwrap_or_else(|_panic| panic!("case {case}: it fell over {text}"));
    }
}

#[test]
fn an_explanation_is_short_whatever_the_sender_wrote() {
    let long = Command { r#type: "x".repeat(100_000), ..Command::default() };
    for bytes in [avro(&long), format!("{{\"{}\": 1}}", "y".repeat(100_000)).into_bytes()] {
        let CommandVerdict::Refused(refusal) = verdict(&world(), &bytes) else { panic!("refused") };
        assert!(refusal.reason.len() <= 500, "{}", refusal.reason.len());
    }
}
