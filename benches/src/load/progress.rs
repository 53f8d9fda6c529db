//! How far a run has come, as its worker knows from the events it was given.

use std::collections::HashMap;

use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::history::{TimerFiredEventAttributes, TimerStartedEventAttributes};
use prost::Message;
use prost_types::{Duration, Timestamp};

/// `History`, with events as below.
#[derive(Clone, PartialEq, Message)]
pub struct History {
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<Event>,
}

/// `HistoryEvent` as far as it is needed here; the rest is skipped and not decoded.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(int64, tag = "1")]
    pub event_id: i64,
    #[prost(message, optional, tag = "2")]
    pub event_time: Option<Timestamp>,
    #[prost(enumeration = "EventType", tag = "3")]
    pub event_type: i32,
    #[prost(message, optional, tag = "6")]
    pub started: Option<Started>,
    #[prost(message, optional, tag = "20")]
    pub timer_started: Option<TimerStartedEventAttributes>,
    #[prost(message, optional, tag = "21")]
    pub timer_fired: Option<TimerFiredEventAttributes>,
}

/// What is needed of a run's first event.
#[derive(Clone, PartialEq, Message)]
pub struct Started {
    #[prost(message, optional, tag = "1")]
    pub workflow_type: Option<WorkflowType>,
}

/// What a worker keeps of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub last_event_id: i64,
    pub workflow_type: String,
    pub activities_scheduled: u32,
    pub activities_completed: u32,
    pub children_initiated: u32,
    pub children_completed: u32,
    pub markers: u32,
    pub signals: u64,
    pub updates: u64,
    pub timers_started: u32,
    pub timers_fired: u32,
    timers_due_ns: HashMap<String, i64>,
}

/// A timer that has fired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fired {
    /// When it was due, in nanoseconds since 1970.
    pub due_ns: i64,
    /// When its event says that it fired.
    pub fired_ns: i64,
}

/// Events that do not follow on what the worker has.
#[derive(Debug, PartialEq)]
pub struct Gap {
    pub expected: i64,
    pub found: i64,
}

impl Progress {
    /// Takes in a whole history or its next part; yields the timers that fired in events not seen before.
    /// A whole one that ends before what is known belongs to a task that has failed meanwhile, and changes nothing.
    pub fn absorb(&mut self, events: &[Event]) -> Result<Vec<Fired>, Gap> {
        let seen = self.last_event_id;
        if let [Event { event_id: 1, .. }, .., last] | [last @ Event { event_id: 1, .. }] = events {
            if last.event_id < seen {
                return Ok(Vec::new());
            }
            *self = Self::default();
        }
        let mut fired = Vec::new();
        for event in events {
            if event.event_id != self.last_event_id + 1 {
                return Err(Gap { expected: self.last_event_id + 1, found: event.event_id });
            }
            self.last_event_id = event.event_id;
            fired.extend(self.count(event).filter(|_| event.event_id > seen));
        }
        Ok(fired)
    }

    fn count(&mut self, event: &Event) -> Option<Fired> {
        match event.event_type() {
            EventType::ActivityTaskScheduled => self.activities_scheduled += 1,
            EventType::ActivityTaskCompleted => self.activities_completed += 1,
            EventType::StartChildWorkflowExecutionInitiated => self.children_initiated += 1,
            EventType::ChildWorkflowExecutionCompleted => self.children_completed += 1,
            EventType::MarkerRecorded => self.markers += 1,
            EventType::WorkflowExecutionSignaled => self.signals += 1,
            EventType::WorkflowExecutionUpdateCompleted => self.updates += 1,
            EventType::WorkflowExecutionStarted => {
                let started = event.started.as_ref()?;
                self.workflow_type = started.workflow_type.clone().unwrap_or_default().name;
            }
            EventType::TimerStarted => {
                self.timers_started += 1;
                let started = event.timer_started.as_ref()?;
                let due_ns = nanoseconds(event.event_time?) + duration_ns(started.start_to_fire_timeout?);
                self.timers_due_ns.insert(started.timer_id.clone(), due_ns);
            }
            EventType::TimerFired => {
                self.timers_fired += 1;
                let due_ns = self.timers_due_ns.remove(&event.timer_fired.as_ref()?.timer_id)?;
                return Some(Fired { due_ns, fired_ns: nanoseconds(event.event_time?) });
            }
            _ => (),
        }
        None
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    time.seconds * 1_000_000_000 + i64::from(time.nanos)
}

fn duration_ns(duration: Duration) -> i64 {
    duration.seconds * 1_000_000_000 + i64::from(duration.nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event_id: i64, kind: EventType) -> Event {
        Event { event_id, event_type: kind.into(), ..Default::default() }
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        use EventType::{ActivityTaskCompleted, ActivityTaskScheduled, WorkflowExecutionStarted};
        let events = [
            event(1, WorkflowExecutionStarted),
            event(2, ActivityTaskScheduled),
            event(3, ActivityTaskCompleted),
            event(4, ActivityTaskScheduled),
        ];
        let (mut parts, mut whole) = (Progress::default(), Progress::default());
        parts.absorb(&events[..2]).unwrap();
        parts.absorb(&events[2..]).unwrap();
        whole.absorb(&events).unwrap();
        whole.absorb(&events).unwrap();
        assert_eq!(parts, whole);
        assert_eq!((whole.activities_scheduled, whole.activities_completed), (2, 1));
        assert_eq!(parts.absorb(&[event(6, ActivityTaskCompleted)]), Err(Gap { expected: 5, found: 6 }));
    }

    #[test]
    fn a_whole_history_that_comes_late_sets_nothing_back() {
        let events = [1, 2, 3, 4].map(|event_id| event(event_id, EventType::WorkflowExecutionSignaled));
        let mut progress = Progress::default();
        progress.absorb(&events[..3]).unwrap();
        progress.absorb(&events[..2]).unwrap();
        progress.absorb(&events[..1]).unwrap();
        progress.absorb(&events[3..]).unwrap();
        assert_eq!((progress.last_event_id, progress.signals), (4, 4));
    }

    #[test]
    fn a_fired_timer_is_told_once() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 5 });
        let started = TimerStartedEventAttributes {
            timer_id: "1".into(),
            start_to_fire_timeout: Some(Duration { seconds: 2, nanos: 0 }),
            ..Default::default()
        };
        let fired = TimerFiredEventAttributes { timer_id: "1".into(), ..Default::default() };
        let events = [
            Event { event_time: at(10), timer_started: Some(started), ..event(1, EventType::TimerStarted) },
            Event { event_time: at(13), timer_fired: Some(fired), ..event(2, EventType::TimerFired) },
        ];
        let mut progress = Progress::default();
        let told = Fired { due_ns: 12_000_000_005, fired_ns: 13_000_000_005 };
        assert_eq!(progress.absorb(&events), Ok(vec![told]));
        assert_eq!(progress.absorb(&events), Ok(vec![]));
    }
}
