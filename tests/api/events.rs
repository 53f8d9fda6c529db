//! The events of docs/compatibility.md are those that the engine writes.

use std::collections::BTreeSet;

use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use prost::Message;

use crate::table::{State, compare, root, rows, values};

/// The types of the golden events: one of each that the engine has, which its own test sees to.
fn written() -> anyhow::Result<BTreeSet<i32>> {
    let golden = std::fs::read_to_string(root().join("processor/wire/tests/golden/events.hex"))?;
    let event_type = |line: &str| {
        let hex = line.split_once(' ').map_or("", |(_name, hex)| hex);
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
        let bytes = (0..hex.len()).step_by(2).map(byte).collect::<Result<Vec<u8>, _>>()?;
        Ok(HistoryEvent::decode(bytes.as_slice())?.event_type)
    };
    golden.lines().map(event_type).collect()
}

#[test]
fn the_list_of_events_is_true() -> anyhow::Result<()> {
    let written = written()?;
    let state = |number| if written.contains(&number) { State::Served } else { State::Absent };
    let values = values("EventType", "EVENT_TYPE_")?;
    let events: Vec<_> = values.into_iter().map(|(number, name)| (name, state(number))).collect();
    assert!(events.len() > 50, "only {} event types were found", events.len());
    compare(&events, &rows("docs/compatibility.md", Some("Events"))?);
    Ok(())
}
