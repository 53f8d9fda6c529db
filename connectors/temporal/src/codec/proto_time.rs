//! Times and durations: milliseconds in the engine, protobuf messages in the API.

use std::time::{SystemTime, UNIX_EPOCH};

use everlog_engine::time as engine;

/// Milliseconds since 1970-01-01 UTC, by the clock of this machine. For what is shown: decisions have the time of their records.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The timestamp `ms` milliseconds after 1970-01-01 UTC.
pub(crate) fn timestamp(ms: i64) -> prost_types::Timestamp {
    let engine::Timestamp { seconds, nanos } = engine::Timestamp::from_ms(ms);
    prost_types::Timestamp { seconds, nanos }
}

/// The same, absent where it is 0.
pub(crate) fn timestamp_if_set(ms: i64) -> Option<prost_types::Timestamp> {
    (ms != 0).then(|| timestamp(ms))
}

/// The duration of `ms` milliseconds.
pub(crate) fn duration(ms: i64) -> prost_types::Duration {
    outer(engine::Duration::from_ms(ms))
}

/// The engine's duration as the API's.
pub(crate) fn outer(span: engine::Duration) -> prost_types::Duration {
    prost_types::Duration { seconds: span.seconds, nanos: span.nanos }
}

/// The API's duration as the engine's.
pub(crate) fn inner(span: prost_types::Duration) -> engine::Duration {
    engine::Duration { seconds: span.seconds, nanos: span.nanos }
}

/// True of an RFC 3339 timestamp with date, time and zone.
pub(crate) fn is_rfc3339(text: &str) -> bool {
    let is_zone = |zone: &str| matches!(zone.as_bytes(), [b'+' | b'-', _, _, b':', _, _]);
    let has_zone =
        text.ends_with('Z') || text.len().checked_sub(6).and_then(|at| text.get(at..)).is_some_and(is_zone);
    text.as_bytes().get(10) == Some(&b'T') && has_zone && text.parse::<prost_types::Timestamp>().is_ok()
}
