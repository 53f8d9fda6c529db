//! What the engine writes into a history is what Temporal's clients read: each golden event is a `HistoryEvent` of
//! theirs, down to the last byte.

use std::path::Path;

use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use prost::Message;

/// The golden events of the engine: a name and the bytes under it, in hex.
fn golden() -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../processor/wire/tests/golden/events.hex");
    let text = std::fs::read_to_string(path).expect("the golden events are part of the clone");
    let event = |line: &str| {
        let (name, hex) = line.split_once(' ').expect("a name and its bytes");
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("bytes are in hex");
        (name.to_owned(), (0..hex.len()).step_by(2).map(byte).collect())
    };
    text.lines().map(event).collect()
}

#[test]
fn every_event_is_one_of_temporals_down_to_the_last_byte() {
    let golden = golden();
    assert!(golden.len() >= 27, "some events have no golden bytes");
    for (name, bytes) in golden {
        let event = HistoryEvent::decode(bytes.as_slice()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(event.encode_to_vec(), bytes, "{name} has bytes that Temporal's clients do not know");
    }
}

#[test]
fn every_event_says_its_type_and_what_happened() {
    for (name, bytes) in golden() {
        let event = HistoryEvent::decode(bytes.as_slice()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kind = format!("{:?}", event.event_type());
        let told = format!("{:?}", event.attributes.expect("an event says what happened"));
        let attributes = told.split('(').next().unwrap_or_default().trim_end_matches("EventAttributes");
        assert_eq!(kind, attributes, "{name}");
    }
}
