//! The client's log: every call with its reply, every task that the client got, and every history that it read.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_tests::fate::{Fate, is_definite};
use tonic::Status;

/// A call. Its identity stands in the events that come of it, so that each can be found again.
#[derive(Clone, Debug)]
pub struct Call {
    pub identity: String,
    pub path: String,
    pub request: Bytes,
    pub fate: Fate,
    /// An event that must come of it if it is acknowledged, once.
    pub effect: Option<EventType>,
    /// An event that may come of it besides.
    pub side_effect: Option<EventType>,
    pub answer: Bytes,
    pub note: Note,
}

/// What else is to be known of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Nothing,
    /// The events that a completion's commands leave behind it.
    Commands(Vec<EventType>),
    /// A signal, by Workflow Id and name.
    Signal(String, String),
    /// A heartbeat, by its number.
    Heartbeat(u64),
    /// A failure of this attempt of an activity.
    Failure(i32),
}

/// A workflow task that was handed out.
#[derive(Clone, Debug)]
pub struct Task {
    pub identity: String,
    pub run_id: String,
    pub started_event_id: i64,
    pub attempt: i32,
    pub events: Vec<HistoryEvent>,
}

/// An activity task that was handed out.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub run_id: String,
    pub activity_id: String,
    pub attempt: i32,
    /// What it was told of earlier heartbeats.
    pub details: String,
    /// The calls that had been sent when it was polled.
    pub before: Vec<(Note, Fate)>,
}

/// A query, and the signals that the worker saw which answered it.
#[derive(Clone, Debug)]
pub struct Query {
    pub workflow_id: String,
    pub seen: String,
    /// Names of the signals that had been acknowledged when it was sent.
    pub acked: Vec<String>,
}

/// Everything, in the order in which it happened.
#[derive(Clone, Debug, Default)]
pub struct ClientLog {
    pub calls: Vec<Call>,
    pub tasks: Vec<Task>,
    pub attempts: Vec<Attempt>,
    pub queries: Vec<Query>,
    /// Histories that were read.
    pub reads: Vec<(String, Vec<HistoryEvent>)>,
}

/// A log that several workers write into.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<ClientLog>>);

impl Shared {
    pub fn open(&self) -> MutexGuard<'_, ClientLog> {
        self.0.lock().expect("nobody panics while it is open")
    }
}

impl ClientLog {
    /// An identity that no other call has.
    pub fn identity(&self) -> String {
        format!("call-{}", self.calls.len())
    }

    /// Notes a call before it is sent; its number.
    pub fn sent(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// The notes of all calls so far.
    pub fn notes(&self) -> Vec<(Note, Fate)> {
        self.calls.iter().map(|call| (call.note.clone(), call.fate)).collect()
    }

    /// Notes what came of a call. A refusal after a try without an answer says nothing about that try.
    pub fn answered(&mut self, call: usize, answer: &Result<Bytes, Status>, is_first: bool) {
        let call = &mut self.calls[call];
        match answer {
            Ok(answer) => (call.fate, call.answer) = (Fate::Acked, answer.clone()),
            Err(status) if is_first && is_definite(status) => call.fate = Fate::Refused,
            Err(_) => {}
        }
    }
}
