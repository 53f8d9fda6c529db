//! Buffered events: what happens while a worker has a workflow task in hand gets its ids when the task is over.

use std::collections::BTreeMap;

use prost::Message;

use crate::draft::{Change, Draft, Extras};
use crate::event::{Attributes, HistoryEvent};
use crate::machine::parent_child;
use crate::time::Timestamp;

/// Writes the buffered events; true if there were any. They keep their order of arrival, but the closing events of
/// activities and children come last, so that Started stands before Completed.
pub(crate) fn flush(draft: &mut Draft<'_>) -> bool {
    if draft.run.buffered.is_empty() {
        return false;
    }
    let buffered = draft.run.buffered.clone();
    draft.change(Change::Flushed);
    let (last, first): (Vec<_>, Vec<_>) = buffered.iter().cloned().partition(|event| closed(event).is_some());
    let mut started = BTreeMap::new();
    for event in first {
        let begun = match &event.attributes {
            Some(Attributes::ActivityStarted(started)) => Some(started.scheduled_event_id),
            Some(Attributes::ChildStarted(started)) => Some(started.initiated_event_id),
            _other => None,
        };
        let event_id = write(draft, event);
        if let Some(begun) = begun {
            started.insert(begun, event_id);
        }
    }
    for mut event in last {
        if let Some(started_event_id) = closed(&event).and_then(|id| started.get(&id)) {
            set_started(&mut event, *started_event_id);
        }
        write(draft, event);
    }
    true
}

/// True where the buffer is beyond one of its limits.
pub(crate) fn is_full(draft: &Draft<'_>) -> bool {
    let buffered = &draft.run.buffered;
    buffered.len() as i64 > draft.settings.buffered_events_max
        || buffered.iter().map(Message::encoded_len).sum::<usize>() as i64 > draft.settings.buffered_bytes_max
}

/// True where the closing event of this activity is buffered: the workflow does not know of it yet.
pub(crate) fn holds_closed_activity(draft: &Draft<'_>, scheduled_event_id: i64) -> bool {
    draft.run.buffered.iter().any(|event| closed_activity(event) == Some(scheduled_event_id))
}

fn write(draft: &mut Draft<'_>, event: HistoryEvent) -> i64 {
    let time_ms = event.event_time.map_or(0, Timestamp::to_ms);
    let extras = Extras {
        user_metadata: event.user_metadata,
        links: event.links,
        event_group_markers: event.event_group_markers,
    };
    match event.attributes {
        Some(attributes) => draft.emit_at(time_ms, attributes, extras),
        None => 0,
    }
}

/// The event that began what this one closes.
fn closed(event: &HistoryEvent) -> Option<i64> {
    closed_activity(event).or_else(|| parent_child::closed_child(event.attributes.as_ref()?))
}

fn closed_activity(event: &HistoryEvent) -> Option<i64> {
    match event.attributes.as_ref()? {
        Attributes::ActivityCompleted(closed) => Some(closed.scheduled_event_id),
        Attributes::ActivityFailed(closed) => Some(closed.scheduled_event_id),
        Attributes::ActivityTimedOut(closed) => Some(closed.scheduled_event_id),
        Attributes::ActivityCanceled(closed) => Some(closed.scheduled_event_id),
        _other => None,
    }
}

fn set_started(event: &mut HistoryEvent, started_event_id: i64) {
    match &mut event.attributes {
        Some(Attributes::ActivityCompleted(closed)) => closed.started_event_id = started_event_id,
        Some(Attributes::ActivityFailed(closed)) => closed.started_event_id = started_event_id,
        Some(Attributes::ActivityTimedOut(closed)) => closed.started_event_id = started_event_id,
        Some(Attributes::ActivityCanceled(closed)) => closed.started_event_id = started_event_id,
        Some(other) => parent_child::set_started(other, started_event_id),
        None => {}
    }
}
