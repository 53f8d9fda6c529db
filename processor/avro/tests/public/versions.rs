//! Versions of the schemas: what was once written is read for ever, and old readers read what is written today.
//!
//! `schemas/versions/` holds each version of a noun with golden bytes. `UPDATE_GOLDEN=1` adds a version when the schema
//! differs from the newest one; it never touches a version that is there.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::schema_compatibility::{Compatibility, SchemaCompatibility};
use apache_avro::writer::datum::GenericDatumWriter;
use bytes::Bytes;
use everlog_avro::blob::Blob;
use everlog_avro::command::{Code, Command, CommandRecord, RecordCoordinates};
use everlog_avro::event::WorkflowEvent;
use everlog_avro::outcome::Outcome;
use everlog_avro::payload::Payload;
use everlog_avro::rejection::Rejection;
use everlog_avro::{Bounds, PublicTopic, Writer, frame, read};
use everlog_engine::machine::update::{Stage, UpdateStanding};
use everlog_engine::{Reply, ScheduleStanding};
use serde_json::{Value, json};

use crate::events::written;
use crate::histories;
use crate::operators;
use crate::schedule_events;
use crate::schedules;
use crate::world::{avro, start};

pub const PLACE: RecordCoordinates<'static> =
    RecordCoordinates { topic: "everlog.commands", incarnation: [7; 16], partition: 3, offset: 42 };

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/versions")
}

/// What is written today, by name.
fn samples(noun: PublicTopic) -> BTreeMap<String, Vec<u8>> {
    let place = PLACE;
    let one = |name: &str, bytes: Vec<u8>| BTreeMap::from([(name.to_owned(), bytes)]);
    let mut bytes = Vec::new();
    match noun {
        PublicTopic::Event => {
            let histories = histories::samples();
            let of_histories = histories.iter().map(|(name, event)| (name.clone(), written(event)));
            let of_schedules = schedule_events::events();
            let of_schedules = of_schedules
                .iter()
                .map(|(name, event)| ((*name).to_owned(), schedule_events::written(event)));
            of_histories.chain(of_schedules).collect()
        }
        PublicTopic::Command => {
            let others = schedules::commands().into_iter().chain(operators::commands());
            let commands = others.map(|command| (command.r#type.clone(), avro(&command)));
            commands.chain(one("start", avro(&start()))).collect()
        }
        PublicTopic::Outcome => {
            let outcome = Outcome::new(&place, 1).refused(Code::NotFound, "workflow execution not found");
            outcome.write(7, &mut bytes).expect("it fits its schema");
            let mut samples = one("refused", bytes);
            let (correlation_id, mut bytes) = (Some(Blob("call-7".into())), Vec::new());
            let answer = Outcome { correlation_id, ..Outcome::new(&place, 1).decided(&Reply::Done) };
            answer.write(7, &mut bytes).expect("it fits its schema");
            samples.insert("answered".into(), bytes);
            let (run_id, update_id) = ("0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2".into(), "u-1".into());
            // An outcome with one payload, as Temporal encodes it.
            let stage = Stage::Completed(Bytes::from_static(b"\x0a\x05\x0a\x03\x12\x01\x37"));
            let mut bytes = Vec::new();
            let outcome = Outcome::new(&place, 1).updated(&UpdateStanding { run_id, update_id, stage });
            assert_eq!(
                (outcome.status.as_str(), outcome.result.as_ref().map(Vec::len)),
                ("completed", Some(1))
            );
            outcome.write(7, &mut bytes).expect("it fits its schema");
            samples.insert("updated".into(), bytes);
            let (run_id, conflict_token) = ("0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2".into(), 7);
            let standing = Reply::Schedule(ScheduleStanding { run_id, conflict_token });
            let mut bytes = Vec::new();
            let outcome = Outcome::new(&place, 1).decided(&standing);
            outcome.write(7, &mut bytes).expect("it fits its schema");
            samples.insert("scheduled".into(), bytes);
            samples
        }
        PublicTopic::Rejection => {
            let headers = [("command-id", Some(&b"c-1"[..])), ("empty", None)];
            let record =
                CommandRecord { place, key: Some(b"order-1"), value: Some(b"garbage"), headers: &headers };
            let rejection = Rejection::new(&record, Code::NotAvro, "it begins with neither", 1, 4);
            assert_eq!((&rejection.value, rejection.value_bytes), (&Some(Blob("garb".into())), 7));
            rejection.write(7, &mut bytes).expect("it fits its schema");
            one("not_avro", bytes)
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all");
        hex
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("bytes are in hex");
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// A version: its number, the schema's text, and lines of a name and its bytes.
type Version = (u32, String, BTreeMap<String, Vec<u8>>);

fn versions(noun: PublicTopic) -> Vec<Version> {
    let mut versions = Vec::new();
    for number in 1.. {
        let path = folder().join(format!("{}.{number}", noun.name()));
        let Ok(text) = std::fs::read_to_string(path.with_added_extension("avsc")) else { break };
        let golden = std::fs::read_to_string(path.with_added_extension("hex")).expect("with golden bytes");
        let lines = golden.lines().map(|line| line.split_once(' ').expect("a name and its bytes"));
        versions.push((number, text, lines.map(|(name, hex)| (name.to_owned(), unhex(hex))).collect()));
    }
    versions
}

fn add(noun: PublicTopic, number: u32) {
    let path = folder().join(format!("{}.{number}.avsc", noun.name()));
    std::fs::create_dir_all(folder()).expect("a folder can be made");
    std::fs::write(path, noun.text()).expect("a schema can be written");
    keep(noun, number, &BTreeMap::new());
}

/// Writes the golden bytes of a version: those that it has, and those of the names that are new.
fn keep(noun: PublicTopic, number: u32, golden: &BTreeMap<String, Vec<u8>>) {
    let mut lines = samples(noun);
    lines.extend(golden.clone());
    let lines: String = lines.iter().map(|(name, bytes)| format!("{name} {}\n", hex(bytes))).collect();
    std::fs::write(folder().join(format!("{}.{number}.hex", noun.name())), lines)
        .expect("a file can be written");
}

/// What a record says, as JSON.
fn content(noun: PublicTopic, writer: &Writer, bytes: &[u8]) -> Value {
    let told = match noun {
        PublicTopic::Event => WorkflowEvent::read(writer, bytes).map(|record| json!(record)),
        PublicTopic::Command => {
            let body = frame(bytes).expect("framed").body;
            read::<Command<Payload<'static>>>(writer, body, &Bounds::default()).map(|record| json!(record))
        }
        PublicTopic::Outcome => Outcome::read(writer, bytes).map(|record| json!(record)),
        PublicTopic::Rejection => Rejection::read(writer, bytes).map(|record| json!(record)),
    };
    told.unwrap_or_else(|error| panic!("{noun:?}: {error}"))
}

#[test]
fn the_schema_of_today_is_the_newest_version() {
    for noun in PublicTopic::ALL {
        let known = versions(noun);
        let number = known.last().map_or(0, |(number, ..)| *number);
        if known.last().is_none_or(|(_, text, _)| text != noun.text()) {
            assert!(
                std::env::var_os("UPDATE_GOLDEN").is_some(),
                "{}: the schema is not version {number}: run with UPDATE_GOLDEN=1 to add the next one",
                noun.name()
            );
            add(noun, number + 1);
        }
        let known = versions(noun);
        let (number, _, golden) = known.last().expect("there is a version");
        for (name, bytes) in samples(noun) {
            if std::env::var_os("UPDATE_GOLDEN").is_some() && !golden.contains_key(&name) {
                keep(noun, *number, golden);
            }
            let golden = &versions(noun)[*number as usize - 1].2;
            let line = golden.get(&name);
            let line =
                line.unwrap_or_else(|| panic!("{noun:?} has no line {name}: run with UPDATE_GOLDEN=1"));
            assert_eq!(hex(line), hex(&bytes), "{noun:?}: {name} is written otherwise than it once was");
        }
    }
}

#[test]
fn what_was_once_written_is_read_for_ever() {
    for noun in PublicTopic::ALL {
        for (number, text, golden) in versions(noun) {
            let writer =
                Writer::parse(noun, &text).unwrap_or_else(|error| panic!("{noun:?} {number}: {error}"));
            let today = samples(noun);
            for (name, bytes) in golden {
                let told = content(noun, &writer, &bytes);
                let same = content(noun, &Writer::own(noun), &today[&name]);
                for (member, value) in told.as_object().expect("an object") {
                    assert_eq!(
                        value, &same[member],
                        "{noun:?} {number} {name}: {member} means something else"
                    );
                }
            }
        }
    }
}

#[test]
fn old_readers_read_what_is_written_today() {
    for noun in PublicTopic::ALL {
        for (number, text, _) in versions(noun) {
            let old = Schema::parse_str(&text).expect("a schema of old is one");
            // What is read in part only, such as a union that has grown, is not read by somebody.
            let verdict = SchemaCompatibility::mutual_read(noun.schema(), &old);
            assert_eq!(verdict, Ok(Compatibility::Full), "{noun:?} {number}");
            let reader =
                GenericDatumReader::builder(noun.schema()).reader_schema(&old).build().expect("valid");
            for (name, bytes) in samples(noun) {
                let value = reader.read_value(&mut &bytes[5..]);
                value.unwrap_or_else(|error| panic!("{noun:?} {number} {name}: {error}"));
            }
        }
    }
}

/// Our own writer against the library's: the same record, taken through a value.
#[test]
fn the_bytes_are_those_that_avro_asks_for() {
    for noun in PublicTopic::ALL {
        let reader = GenericDatumReader::builder(noun.schema()).build().expect("valid");
        for (name, bytes) in samples(noun) {
            let value = reader.read_value(&mut &bytes[5..]).expect("it is one");
            assert_eq!(hex(&body_of(noun.schema(), value)), hex(&bytes[5..]), "{noun:?} {name}");
        }
    }
}

/// A version as it may come: a field more, with a default, in the envelope and in a record below it.
fn next(text: &str) -> String {
    let mut schema: Value = serde_json::from_str(text).expect("JSON");
    let field = json!({"name": "later", "type": ["null", "string"], "default": null});
    let fields = schema["fields"].as_array_mut().expect("a record");
    fields.insert(1, field.clone());
    let record =
        fields.iter_mut().find_map(|field| field["type"].get_mut(1)?.get_mut("fields")?.as_array_mut());
    if let Some(inner) = record {
        inner.push(field);
    }
    schema.to_string()
}

#[test]
fn a_field_with_a_default_may_be_added_both_ways() {
    for noun in PublicTopic::ALL {
        let text = next(noun.text());
        let later = Schema::parse_str(&text).expect("a schema");
        let writer = Writer::parse(noun, &text).expect("it can be read");
        let to_later =
            GenericDatumReader::builder(noun.schema()).reader_schema(&later).build().expect("valid");
        for (name, bytes) in samples(noun) {
            let value =
                to_later.read_value(&mut &bytes[5..]).expect("a new reader reads what is written today");
            let body = body_of(&later, value);
            let bytes_later = [&bytes[..5], &body].concat();
            let (told, today) =
                (content(noun, &writer, &bytes_later), content(noun, &Writer::own(noun), &bytes));
            assert_eq!(told, today, "{noun:?} {name}");
        }
    }
}

fn body_of(schema: &Schema, value: apache_avro::types::Value) -> Vec<u8> {
    let writer = GenericDatumWriter::builder(schema).build().expect("valid");
    writer.write_value_to_vec(value).expect("it is written")
}

/// What stock clients, Kafka Connect and ksqlDB take: no union but "or nothing", no enum, no record in itself.
#[test]
fn the_schemas_are_plain_and_every_field_is_explained() {
    fn walk(path: &str, schema: &Value, inside: &mut Vec<String>) {
        match schema {
            Value::Array(branches) => {
                assert!(
                    branches.len() == 2 && branches[0] == "null",
                    "{path}: a union of more than null and a type"
                );
                walk(path, &branches[1], inside);
            }
            Value::Object(members) => match members["type"].as_str().unwrap_or_default() {
                "record" => {
                    let name = members["name"].as_str().expect("a name").to_owned();
                    assert!(members["doc"].as_str().is_some_and(|doc| doc.ends_with('.')), "{path}: no doc");
                    inside.push(name);
                    for field in members["fields"].as_array().expect("fields") {
                        let path = format!("{path}.{}", field["name"].as_str().expect("a name"));
                        assert!(
                            field["doc"].as_str().is_some_and(|doc| doc.ends_with('.')),
                            "{path}: no doc"
                        );
                        let top = inside.len() == 1;
                        assert!(top || field.get("default").is_some(), "{path}: no default");
                        walk(&path, &field["type"], inside);
                    }
                    inside.pop();
                }
                "array" => walk(path, &members["items"], inside),
                "map" => walk(path, &members["values"], inside),
                "long" => assert_eq!(members["logicalType"], "timestamp-millis", "{path}"),
                other => panic!("{path}: a {other}"),
            },
            Value::String(name) => {
                let short = name.trim_start_matches("io.everlog.");
                assert!(!inside.iter().any(|outer| outer == short), "{path}: a record in itself");
            }
            other => panic!("{path}: {other}"),
        }
    }
    for noun in PublicTopic::ALL {
        let schema: Value = serde_json::from_str(noun.text()).expect("JSON");
        assert_eq!(schema["name"], noun.name());
        walk(noun.name(), &schema, &mut Vec::new());
    }
}
