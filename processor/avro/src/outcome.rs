//! Outcomes of commands whose sender asked for a reply.

use bytes::Bytes;
use everlog_engine::machine::update::{Stage, UpdateStanding};
use everlog_engine::{Rejection as Refused, Reply};
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::command::{Code, RecordCoordinates};
use crate::event::fields::payloads;
use crate::failure::{self, Failure};
use crate::payload::Payload;
use crate::{Bounds, Error, PublicTopic, Writer, codec, proto_update};

/// What became of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// `started`, `found`, `done`, `completed`, `failed` or `refused`.
    pub status: String,
    /// When it was decided, in ms since 1970-01-01 UTC.
    pub time: i64,
    /// The topic of the command.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// The command's id.
    pub command_id: Option<String>,
    /// The namespace, by name.
    pub namespace: Option<String>,
    /// The Workflow Id, or the id of the schedule: the key of the command.
    pub workflow_id: Option<String>,
    /// The run that was started or found, or that is in the way; the run of a schedule.
    pub run_id: Option<String>,
    /// The first run of its chain.
    pub first_run_id: Option<String>,
    /// Of a refusal, for programs: the name of a [`Code`].
    pub code: Option<String>,
    /// Of a refusal, for people.
    pub reason: Option<String>,
    /// The command's header of this name.
    pub correlation_id: Option<Blob>,
    /// Of an update: its id.
    pub update_id: Option<String>,
    /// Of an update that completed: what its handler returned.
    pub result: Option<Vec<Payload<'static>>>,
    /// Of an update that failed: why.
    pub failure: Option<Vec<Failure<'static>>>,
    /// Of a schedule that was made, found or changed: what an update names that goes by what it is now.
    pub conflict_token: Option<i64>,
}

impl Outcome {
    /// An outcome without content, of a command at this place, decided at `time_ms`.
    pub fn new(place: &RecordCoordinates<'_>, time_ms: i64) -> Self {
        let partition = i32::try_from(place.partition).unwrap_or(i32::MAX);
        let offset = i64::try_from(place.offset).unwrap_or(i64::MAX);
        Self { time: time_ms, topic: place.topic.into(), partition, offset, ..Self::default() }
    }

    /// Tells the engine's answer.
    #[must_use]
    pub fn decided(self, reply: &Reply) -> Self {
        match reply {
            Reply::Rejected(rejection) => self.rejected(rejection),
            Reply::Started(started) => {
                let outcome = Self {
                    status: if started.started { "started" } else { "found" }.into(),
                    run_id: Some(started.run_id.clone()),
                    first_run_id: Some(started.first_run_id.clone()),
                    ..self
                };
                match &started.update {
                    Some(standing) => outcome.updated(standing),
                    None => outcome,
                }
            }
            Reply::Update(standing) => self.updated(standing),
            Reply::Done
            | Reply::Task(_)
            | Reply::Activity(_)
            | Reply::Gone
            | Reply::Completed(_)
            | Reply::Heartbeat(_)
            | Reply::ActivityOptions(_)
            | Reply::RunOptions(_) => Self { status: "done".into(), ..self },
            Reply::Schedule(standing) => Self {
                status: "done".into(),
                run_id: Some(standing.run_id.clone()),
                conflict_token: i64::try_from(standing.conflict_token).ok(),
                ..self
            },
        }
    }

    /// The outcome of an update: how it ended, or that it was accepted.
    #[must_use]
    pub fn updated(self, standing: &UpdateStanding) -> Self {
        let (run_id, update_id) = (Some(standing.run_id.clone()), Some(standing.update_id.clone()));
        let told = Self { run_id, update_id, ..self };
        match &standing.stage {
            Stage::Completed(outcome) => told.answered(outcome),
            Stage::Admitted | Stage::Accepted | Stage::Done(_) => Self { status: "done".into(), ..told },
        }
    }

    /// Tells how a worker answered an update, as Temporal encodes it.
    fn answered(self, outcome: &Bytes) -> Self {
        let read = proto_update::Outcome::decode(outcome.clone()).unwrap_or_default();
        let failure = read.failure.as_ref().map(failure::read);
        let status = if failure.is_some() { "failed" } else { "completed" }.into();
        Self { status, result: payloads(read.success.as_ref()), failure, ..self }
    }

    /// Tells a refusal.
    #[must_use]
    pub fn refused(self, code: Code, reason: &str) -> Self {
        Self { status: "refused".into(), code: Some(code.name().into()), reason: Some(reason.into()), ..self }
    }

    fn rejected(self, rejection: &Refused) -> Self {
        let (code, reason) = of_rejection(rejection);
        let outcome = self.refused(code, reason);
        match rejection {
            Refused::AlreadyStarted { run_id, first_run_id, .. } => {
                Self { run_id: Some(run_id.clone()), first_run_id: Some(first_run_id.clone()), ..outcome }
            }
            Refused::NotFound(_)
            | Refused::InvalidArgument(_)
            | Refused::Busy(_)
            | Refused::NotReady(_)
            | Refused::Outdated(_)
            | Refused::TooManyAtOnce(_)
            | Refused::TooMany(_)
            | Refused::NamespaceUnknown(_)
            | Refused::NamespaceDeleted(_) => outcome,
        }
    }

    /// Appends the record to a buffer, ready for the topic.
    ///
    /// # Errors
    /// [`Error::Write`]: a fault of this release.
    pub fn write(&self, schema_id: u32, buffer: &mut Vec<u8>) -> Result<(), Error> {
        codec::write(PublicTopic::Outcome, schema_id, self, buffer)
    }

    /// Reads a record as the topic holds it, written with `writer`.
    ///
    /// # Errors
    /// [`Error::Frame`], [`Error::Body`].
    pub fn read(writer: &Writer, bytes: &[u8]) -> Result<Self, Error> {
        codec::read(writer, codec::frame(bytes)?.body, &Bounds::default())
    }
}

/// The code and the words of the engine's refusal.
pub fn of_rejection(rejection: &Refused) -> (Code, &str) {
    match rejection {
        Refused::NotFound(reason) => (Code::NotFound, reason),
        Refused::InvalidArgument(reason) => (Code::InvalidArgument, reason),
        Refused::Busy(reason) | Refused::NotReady(reason) | Refused::TooManyAtOnce(reason) => {
            (Code::Busy, reason)
        }
        Refused::TooMany(reason) => (Code::InvalidArgument, reason),
        Refused::Outdated(reason) => (Code::Outdated, reason),
        Refused::NamespaceUnknown(_) => (Code::NamespaceUnknown, "there is no namespace of this name"),
        Refused::NamespaceDeleted(_) => (Code::NamespaceUnknown, "the namespace was deleted"),
        Refused::AlreadyStarted { message, .. } => (Code::AlreadyStarted, message),
    }
}
