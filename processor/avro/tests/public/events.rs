//! Events on their way out: in full, and the same bytes by both ways of writing them.

use std::time::Instant;

use apache_avro::to_value;
use apache_avro::writer::datum::GenericDatumWriter;
use everlog_avro::event::{Origin, WorkflowEvent, type_name};
use everlog_avro::{PublicTopic, Writer, frame};
use everlog_engine::api_types::TaskQueue;
use everlog_engine::event::{Attributes, HistoryEvent};
use prost::Message;

use crate::histories::samples;

pub const ORIGIN: Origin<'static> =
    Origin { namespace: "default", workflow_id: "order-1", run_id: "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2" };

pub fn written(event: &HistoryEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    WorkflowEvent::new(&ORIGIN, event).write(7, &mut bytes).expect("it fits its schema");
    bytes
}

#[test]
fn every_event_is_written_and_read_back() {
    let samples = samples();
    assert!(Attributes::NAMES.iter().all(|name| samples.contains_key(*name)));
    for (name, event) in &samples {
        let record = WorkflowEvent::new(&ORIGIN, event);
        let bytes = written(event);
        assert_eq!(frame(&bytes).expect("framed").schema_id, 7);
        let read = WorkflowEvent::read(&Writer::own(PublicTopic::Event), &bytes).expect("it is one");
        assert_eq!(read, record, "{name}");
        assert_eq!(read.r#type, type_name(event.attributes.as_ref().expect("every sample has some")));
    }
}

#[test]
fn the_record_that_the_type_names_is_there_and_no_other() {
    for event in samples().values() {
        let record = WorkflowEvent::new(&ORIGIN, event);
        let json = serde_json::to_value(&record).expect("records are JSON too");
        let records =
            json.as_object().expect("an object").iter().filter(|(name, value)| {
                value.is_object() && !["summary", "details"].contains(&name.as_str())
            });
        let names: Vec<_> = records.map(|(name, _)| name.replace('_', "")).collect();
        assert_eq!(names, [record.r#type.to_lowercase()]);
    }
}

#[test]
fn the_fast_way_writes_the_same_bytes_as_the_slow_one() {
    let writer = GenericDatumWriter::builder(PublicTopic::Event.schema()).human_readable(false).build();
    let writer = writer.expect("a valid schema");
    for (name, event) in samples() {
        let value = to_value(WorkflowEvent::new(&ORIGIN, &event)).expect("a value");
        let value = value.resolve(PublicTopic::Event.schema()).expect("it fits its schema");
        let slow = writer.write_value_to_vec(value).expect("it is written");
        assert_eq!(frame(&written(&event)).expect("framed").body, slow, "{name}");
    }
}

/// Every bit of an event is turned around; what still is an event has to give another record.
#[test]
fn nothing_of_an_event_is_lost() {
    for (name, event) in samples() {
        let (bytes, record) = (event.encode_to_vec(), written(&event));
        for bit in 0..bytes.len() * 8 {
            let mut turned = bytes.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            let Ok(other) = HistoryEvent::decode(&turned[..]) else { continue };
            if told(&other) != told(&event) {
                assert_ne!(written(&other), record, "{name}: bit {bit} is lost:\n{event:?}\n{other:?}");
            }
        }
    }
}

/// An event without what is not told of it: numbers of the server's own, those of namespaces too, parts of a
/// millisecond, that a queue which is never a worker's own is a normal one.
fn told(event: &HistoryEvent) -> String {
    let mut event = HistoryEvent { task_id: 0, event_type: 0, ..event.clone() };
    let queue = match &mut event.attributes {
        Some(Attributes::WorkflowStarted(event)) => event.task_queue.as_mut(),
        Some(Attributes::WorkflowContinuedAsNew(event)) => event.task_queue.as_mut(),
        Some(Attributes::ActivityScheduled(event)) => event.task_queue.as_mut(),
        Some(Attributes::StartChildInitiated(event)) => event.task_queue.as_mut(),
        _without_a_queue => None,
    };
    if let Some(queue) = queue {
        *queue = TaskQueue { name: std::mem::take(&mut queue.name), ..TaskQueue::default() };
    }
    let text = without(&format!("{event:?}"), "nanos: ", |c| c.is_ascii_digit());
    without(&text, "namespace_id: \"", |c| c != '"')
}

/// A text without what follows a mark, as long as it is of a kind.
fn without(text: &str, mark: &str, of_kind: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !of_kind(c)).unwrap_or(part.len());
        rest.push_str(&part[end..]);
    }
    rest
}

#[test]
fn events_are_written_and_read_by_a_schema_that_is_parsed_once() {
    let events: Vec<_> = samples().into_values().collect();
    let rounds = 2_000;
    let mut buffer = Vec::with_capacity(1 << 16);
    let begun = Instant::now();
    for _ in 0..rounds {
        for event in &events {
            buffer.clear();
            WorkflowEvent::new(&ORIGIN, event).write(7, &mut buffer).expect("it fits");
        }
    }
    let each_ns = begun.elapsed().as_nanos() / (rounds * events.len() as u128);
    let all: Vec<_> = events.iter().map(written).collect();
    let size = all.iter().map(Vec::len).sum::<usize>() / all.len();
    let begun = Instant::now();
    for _ in 0..rounds {
        for bytes in &all {
            WorkflowEvent::read(&Writer::own(PublicTopic::Event), bytes).expect("it is one");
        }
    }
    let read_ns = begun.elapsed().as_nanos() / (rounds * events.len() as u128);
    println!("an event of {size} bytes: {each_ns} ns to write, {read_ns} ns to read");
    assert!(std::ptr::eq(PublicTopic::Event.schema(), PublicTopic::Event.schema()));
}
