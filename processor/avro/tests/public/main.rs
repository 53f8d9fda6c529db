//! The public topics: events in full, commands whatever their bytes are, schemas that old and new readers share.

mod commands;
mod events;
#[path = "../../../wire/tests/golden/events.rs"]
mod histories;
mod noise;
mod operators;
mod schedule_events;
mod schedules;
mod versions;
mod words;
mod world;
