//! Encoded histories, cut between events. No event is decoded or encoded again.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use everlog_engine::event::{History, HistoryEvent};
use prost::Message;
use prost::encoding::{decode_varint, encoded_len_varint};

/// The key of the repeated field `events`.
const EVENTS_KEY: u64 = 1 << 3 | 2;
/// The key of an event's first field, its id.
const ID_KEY: u8 = 1 << 3;

/// The position of an event in an encoded history, with its key and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The event's id.
    pub id: i64,
    /// Its bytes.
    pub range: Range<usize>,
}

/// An event of which only the id is read.
#[derive(Clone, Copy, PartialEq, Message)]
struct Id {
    #[prost(int64, tag = "1")]
    id: i64,
}

/// The events of an encoded history, in order. The list ends at bytes that are not an event.
pub(crate) fn spans(history: &Bytes) -> Vec<Span> {
    let mut found = Vec::new();
    let mut rest = history.as_ref();
    while !rest.is_empty() {
        let start = history.len() - rest.len();
        let Some(length) = event_length(&mut rest) else {
            break;
        };
        let id = event_id(&rest[..length]);
        rest.advance(length);
        found.push(Span { id, range: start..history.len() - rest.len() });
    }
    found
}

fn event_length(rest: &mut &[u8]) -> Option<usize> {
    if decode_varint(rest).ok()? != EVENTS_KEY {
        return None;
    }
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    (length <= rest.len()).then_some(length)
}

fn event_id(mut event: &[u8]) -> i64 {
    if event.first() == Some(&ID_KEY) {
        event.advance(1);
        return decode_varint(&mut event).map_or(0, |id| id as i64);
    }
    Id::decode(event).map_or(0, |event| event.id)
}

/// The last event alone.
pub(crate) fn last(history: &Bytes) -> Bytes {
    spans(history).pop().map_or_else(Bytes::new, |span| history.slice(span.range))
}

/// The events before `end_event_id`.
pub(crate) fn until(history: &Bytes, end_event_id: i64) -> Bytes {
    let end = spans(history)
        .iter()
        .take_while(|span| span.id < end_event_id)
        .last()
        .map_or(0, |span| span.range.end);
    history.slice(..end)
}

/// The events, newest first.
pub(crate) fn reversed(history: &Bytes) -> Bytes {
    let mut turned = BytesMut::with_capacity(history.len());
    for span in spans(history).iter().rev() {
        turned.extend_from_slice(&history[span.range.clone()]);
    }
    turned.freeze()
}

/// The history with more events at its end.
pub(crate) fn with_tail(history: Bytes, tail: Vec<HistoryEvent>) -> Bytes {
    if tail.is_empty() {
        return history;
    }
    let tail = History { events: tail };
    let mut whole =
        BytesMut::with_capacity(history.len() + tail.encoded_len() + encoded_len_varint(EVENTS_KEY));
    whole.extend_from_slice(&history);
    tail.encode_raw(&mut whole);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event_id: i64) -> HistoryEvent {
        HistoryEvent { event_id, event_type: 26, task_id: event_id, ..HistoryEvent::default() }
    }

    fn history(ids: &[i64]) -> Bytes {
        History { events: ids.iter().copied().map(event).collect() }.encode_to_vec().into()
    }

    fn ids(history: &Bytes) -> Vec<i64> {
        let read = History::decode(history.clone()).expect("a history");
        read.events.iter().map(|event| event.event_id).collect()
    }

    #[test]
    fn a_history_comes_apart_between_its_events() {
        let whole = history(&[1, 2, 300]);
        assert_eq!(spans(&whole).iter().map(|span| span.id).collect::<Vec<_>>(), [1, 2, 300]);
        assert_eq!(spans(&whole).last().map(|span| span.range.end), Some(whole.len()));
        assert_eq!(ids(&last(&whole)), [300]);
        assert_eq!(ids(&until(&whole, 300)), [1, 2]);
        assert_eq!(ids(&until(&whole, 1)), [] as [i64; 0]);
        assert_eq!(ids(&reversed(&whole)), [300, 2, 1]);
        assert_eq!(ids(&with_tail(whole, vec![event(301), event(302)])), [1, 2, 300, 301, 302]);
    }

    #[test]
    fn an_empty_history_has_no_events() {
        assert_eq!(last(&Bytes::new()), Bytes::new());
        assert_eq!(reversed(&Bytes::new()), Bytes::new());
        assert_eq!(until(&Bytes::new(), 5), Bytes::new());
    }

    #[test]
    fn bytes_that_are_no_history_are_never_read_beyond() {
        let whole = history(&[1, 2]);
        for end in 0..whole.len() {
            assert!(spans(&whole.slice(..end)).len() < 2);
        }
        assert!(spans(&Bytes::from_static(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")).is_empty());
        assert!(spans(&Bytes::from_static(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")).is_empty());
    }
}
