//! The engine's settings as each release that added some wrote them.

use everlog_engine::Settings;
use everlog_wire::{Body, Record};

pub fn samples() -> impl Iterator<Item = (String, Record)> {
    let releases = [
        ("Settings", first()),
        ("Settings.metadata", second()),
        ("Settings.letters", third()),
        ("Settings.updates", fourth()),
        ("Settings.marks", fifth()),
        ("Settings.fairness", sixth()),
        ("Settings.sizes", seventh()),
        ("Settings.rests", Settings::standard()),
    ];
    releases.into_iter().map(|(name, settings)| (name.to_owned(), Record::new(7, Body::Settings(settings))))
}

/// Settings as they were before user metadata had limits.
pub fn first() -> Settings {
    Settings { summary_bytes_max: 0, details_bytes_max: 0, ..second() }
}

/// Settings as they were before anything went to other workflows.
fn second() -> Settings {
    Settings { pending_children_max: 0, pending_signals_max: 0, pending_cancels_max: 0, ..third() }
}

/// Settings as they were before updates had limits.
fn third() -> Settings {
    Settings { updates_in_flight_max: 0, updates_bytes_max: 0, updates_max: 0, ..fourth() }
}

/// Settings as they were before long histories were warned of.
fn fourth() -> Settings {
    Settings { history_events_warn: 0, history_bytes_warn: 0, ..fifth() }
}

/// Settings as they were before the priorities of commands had all their limits.
fn fifth() -> Settings {
    Settings { fairness_key_bytes_max: 0, ..sixth() }
}

/// Settings as they were before large states, memos and payloads were warned of.
fn sixth() -> Settings {
    Settings { state_bytes_warn: 0, memo_bytes_warn: 0, blob_bytes_warn: 0, ..seventh() }
}

/// Settings as they were before workflow tasks that nobody answers had a rest.
fn seventh() -> Settings {
    Settings { task_rest_attempts: 0, task_rest_initial_ms: 0, task_rest_max_ms: 0, ..Settings::standard() }
}
