//! The actions of a schedule and the runs that they start: what the two tell each other, by messages alone.
//!
//! schedule --Start--> run: an action is due; schedule <--ActionOpened-- run: it is there, or cannot be;
//! schedule --Cancel, Terminate--> run: an overlap policy asks for its end;
//! schedule <--ActionClosed-- run: the last run of its chain has closed.
//!
//! A run has its watcher where it has its parent: along retries, cron, continue-as-new and resets. What comes for a
//! schedule that was deleted finds no run of its id, and is dropped.

use bytes::Bytes;
use chrono::{DateTime, Datelike, Timelike};
use everlog_schedules::state::{ActionOpening, StartAction, StartedRun};
use prost::Message;

use crate::api_types::{ConflictPolicy, Fields, MapEntry, ReusePolicy};
use crate::failure::Failure;
use crate::machine::cancel;
use crate::machine::close::Terminate;
use crate::machine::memo_and_search_attributes as attributes;
use crate::machine::schedule;
use crate::machine::schedule::definition::{ScheduleDefinition, ScheduleResults};
use crate::machine::start::Begin;
use crate::outcome::{Outcome, Rejection, Reply};
use crate::payload::Payload;
use crate::request::{Request, RequestRecord};
use crate::run::{Run, Start};

/// The search attribute of a started run that has the time which its schedule meant.
pub const SCHEDULED_START_TIME: &str = "TemporalScheduledStartTime";
/// The search attribute of a started run that has the id of its schedule.
pub const SCHEDULED_BY_ID: &str = "TemporalScheduledById";
/// Why a run is cancelled that others shall not overlap.
const CANCEL_REASON: &str = "cancelled by schedule overlap policy";
/// Why a run is terminated that others shall not overlap.
const TERMINATE_REASON: &str = "terminated by schedule overlap policy";
/// A start that finds its Workflow Id's run busy is tried again after so long, in ms.
const RETRY_DELAY_MS: i64 = 1_000;

/// Who hears how a chain of runs ends: the action of a schedule that has started it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActionWatcher {
    /// The UUID of the schedule's namespace.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// The Workflow Id of the schedule's run.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The schedule's run: another schedule of the same id has another.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// The number of the action.
    #[prost(uint64, tag = "4")]
    pub action: u64,
    /// It has heard of the end of the chain once: a reset has made the run of one that had closed.
    #[prost(bool, tag = "5")]
    pub is_told: bool,
}

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum StartFate {
    /// The run is there.
    Started = 0,
    /// Its Workflow Id is taken.
    WorkflowIdTaken = 1,
    /// It can never be.
    Refused = 2,
    /// It is to be tried again.
    Later = 3,
}

/// Message to the schedule: the run of an action is there, or cannot be.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ScheduleActionOpened {
    /// The number of the action.
    #[prost(uint64, tag = "1")]
    pub action: u64,
    /// What became of its start.
    #[prost(enumeration = "StartFate", tag = "2")]
    pub fate: i32,
    /// The first run of the chain; empty where it cannot be.
    #[prost(string, tag = "3")]
    pub first_run_id: String,
    /// When it began, in ms since 1970.
    #[prost(int64, tag = "4")]
    pub start_ms: i64,
    /// After how long it is to be tried again, in ms.
    #[prost(int64, tag = "5")]
    pub delay_ms: i64,
}

impl ScheduleActionOpened {
    /// As the state of a schedule takes it.
    pub(crate) fn opening(&self) -> ActionOpening {
        match StartFate::try_from(self.fate).unwrap_or(StartFate::Refused) {
            StartFate::Started => {
                ActionOpening::Started { first_run_id: self.first_run_id.clone(), start_ms: self.start_ms }
            }
            StartFate::WorkflowIdTaken => ActionOpening::WorkflowIdTaken,
            StartFate::Refused => ActionOpening::Refused,
            StartFate::Later => ActionOpening::Later { delay_ms: self.delay_ms },
        }
    }
}

/// Message to the schedule: the last run of an action's chain has closed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ScheduleActionClosed {
    /// The number of the action.
    #[prost(uint64, tag = "1")]
    pub action: u64,
    /// The Workflow Id of its run.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The run that closed.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// A number of `WorkflowExecutionStatus`.
    #[prost(int32, tag = "4")]
    pub status: i32,
    /// Result or failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub payload: Option<Bytes>,
    /// When it closed, in ms since 1970.
    #[prost(int64, tag = "6")]
    pub close_ms: i64,
    /// The end of the chain was told before: see [`ActionWatcher::is_told`].
    #[prost(bool, tag = "7")]
    pub is_repeated: bool,
}

impl ScheduleActionClosed {
    /// The message of a failure; empty where there is none.
    pub(crate) fn failure_message(&self) -> String {
        let failure = self.payload.as_ref().and_then(|payload| Failure::decode(payload.clone()).ok());
        failure.map_or_else(String::new, |failure| failure.message)
    }
}

impl ActionWatcher {
    /// A message to the schedule.
    fn message(&self, request: Request) -> RequestRecord {
        RequestRecord {
            namespace_id: self.namespace_id.clone(),
            workflow_id: self.workflow_id.clone(),
            run_id: self.run_id.clone(),
            sender: None,
            request: Some(request),
        }
    }

    /// Of a run that a reset makes of `base`: the end of its chain was told if nothing of it was open.
    pub(crate) fn of_reset(base: &Start, current: &Run) -> Option<Box<Self>> {
        let is_open = current.is_open() && current.start.first_run_id == base.first_run_id;
        let own = current.start.watcher.as_ref().is_some_and(|watcher| watcher.is_told);
        let watcher = base.watcher.as_ref()?;
        Some(Box::new(Self { is_told: !is_open || own, ..watcher.as_ref().clone() }))
    }
}

/// The message that starts a run.
pub(crate) fn start(
    run: &Run,
    definition: &ScheduleDefinition,
    results: &ScheduleResults,
    action: &StartAction,
) -> RequestRecord {
    let start = &run.start;
    let policy =
        if action.allows_duplicate { ReusePolicy::AllowDuplicate } else { ReusePolicy::RejectDuplicate };
    let results = Some(results).filter(|_| action.gets_last_result);
    let begin = Begin {
        request_id: format!("{}-{}", start.run_id, action.number),
        reuse_policy: policy.into(),
        conflict_policy: ConflictPolicy::Fail.into(),
        search_attributes: Some(search_attributes(run, definition, action.nominal_s)),
        last_completion_result: results.and_then(|results| results.last_completion_result.clone()),
        continued_failure: results.and_then(|results| results.last_failure.clone()),
        watcher: Some(Box::new(ActionWatcher {
            namespace_id: start.namespace_id.clone(),
            workflow_id: start.workflow_id.clone(),
            run_id: start.run_id.clone(),
            action: action.number,
            is_told: false,
        })),
        ..definition.action.clone()
    };
    to_run(run, &action.workflow_id, Request::Start(Box::new(begin)))
}

/// The message that asks a chain of runs to cancel itself.
pub(crate) fn cancel(run: &Run, definition: &ScheduleDefinition, started: &StartedRun) -> RequestRecord {
    let order = cancel::Request {
        reason: CANCEL_REASON.into(),
        identity: definition.action.identity.clone(),
        first_run_id: started.first_run_id.clone(),
        ..cancel::Request::default()
    };
    to_run(run, &started.workflow_id, Request::Cancel(order))
}

/// The message that ends a chain of runs.
pub(crate) fn terminate(run: &Run, definition: &ScheduleDefinition, started: &StartedRun) -> RequestRecord {
    let order = Terminate {
        reason: TERMINATE_REASON.into(),
        identity: definition.action.identity.clone(),
        first_run_id: started.first_run_id.clone(),
        ..Terminate::default()
    };
    to_run(run, &started.workflow_id, Request::Terminate(order))
}

fn to_run(schedule: &Run, workflow_id: &str, request: Request) -> RequestRecord {
    RequestRecord {
        namespace_id: schedule.start.namespace_id.clone(),
        workflow_id: workflow_id.to_owned(),
        run_id: String::new(),
        sender: None,
        request: Some(request),
    }
}

/// An encoded map: the action's, with what tells of the schedule.
fn search_attributes(run: &Run, definition: &ScheduleDefinition, nominal_s: i64) -> Bytes {
    let mut entries = attributes::read(definition.action.search_attributes.as_ref());
    let own = [SCHEDULED_START_TIME, SCHEDULED_BY_ID];
    entries.retain(|entry| !own.contains(&entry.key.as_str()));
    let id = schedule::schedule_id(&run.start.workflow_id).unwrap_or_default();
    entries.push(typed(SCHEDULED_START_TIME, "Datetime", &json_string(&rfc3339(nominal_s))));
    entries.push(typed(SCHEDULED_BY_ID, "Keyword", &json_string(id)));
    Fields { entries }.encode_to_vec().into()
}

/// A moment as RFC 3339 writes it, in whole seconds of UTC; one that is out of reach is 1970.
fn rfc3339(seconds: i64) -> String {
    let at = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let (year, month, day) = (at.year(), at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A search attribute of a type, with a value in JSON.
pub(crate) fn typed(key: &str, kind: &str, json: &str) -> MapEntry {
    let metadata = |key: &str, value: &str| MapEntry {
        key: key.to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
    };
    let metadata = vec![metadata("encoding", "json/plain"), metadata("type", kind)];
    let payload = Payload { metadata, data: Bytes::copy_from_slice(json.as_bytes()) };
    MapEntry { key: key.to_owned(), value: payload.encode_to_vec().into() }
}

/// A text as JSON.
fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            letter if letter < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => json.push(letter),
        }
    }
    json.push('"');
    json
}

/// What a schedule hears of the start that it asked for.
pub(crate) fn answer_to_start(watcher: &ActionWatcher, outcome: &Outcome, now_ms: i64) -> RequestRecord {
    let opened = |fate: StartFate| ScheduleActionOpened {
        action: watcher.action,
        fate: fate.into(),
        ..ScheduleActionOpened::default()
    };
    let opened = match &outcome.reply {
        Reply::Started(started) if started.started => {
            let first_run_id = started.first_run_id.clone();
            ScheduleActionOpened { first_run_id, start_ms: now_ms, ..opened(StartFate::Started) }
        }
        Reply::Started(_) | Reply::Rejected(Rejection::AlreadyStarted { .. }) => {
            opened(StartFate::WorkflowIdTaken)
        }
        Reply::Rejected(Rejection::Busy(_) | Rejection::TooManyAtOnce(_)) => {
            ScheduleActionOpened { delay_ms: RETRY_DELAY_MS, ..opened(StartFate::Later) }
        }
        _refused => opened(StartFate::Refused),
    };
    watcher.message(Request::ScheduleActionOpened(opened))
}

/// What a schedule hears when the last run of a chain has closed.
pub(crate) fn closed(watcher: &ActionWatcher, run: &Run, payload: Option<Bytes>) -> RequestRecord {
    watcher.message(Request::ScheduleActionClosed(ScheduleActionClosed {
        action: watcher.action,
        workflow_id: run.start.workflow_id.clone(),
        run_id: run.start.run_id.clone(),
        status: run.head.status,
        payload,
        close_ms: run.head.close_ms,
        is_repeated: watcher.is_told,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_whole_seconds() {
        assert_eq!(rfc3339(1_763_700_009), "2025-11-21T04:40:09Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn any_id_is_a_text_in_json() {
        assert_eq!(json_string("a\"b\\c\nd é"), "\"a\\\"b\\\\c\\u000ad é\"");
    }
}
