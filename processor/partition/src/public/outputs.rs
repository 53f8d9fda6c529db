//! What goes to the public topics: events, outcomes and refusals as Avro, until they are committed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_avro::blob::Blob;
use everlog_avro::command::{Code, CommandRecord, RecordCoordinates};
use everlog_avro::event::{Origin, WorkflowEvent};
use everlog_avro::outcome::Outcome;
use everlog_avro::rejection::Rejection;
use everlog_avro::{Error as PublicError, PublicTopic};
use everlog_engine::event::HistoryEvent;
use everlog_engine::machine::schedule::event::ScheduleEvent;
use everlog_engine::machine::schedule::schedule_id;
use everlog_engine::request::RequestRecord;
use everlog_log::{Output, Topic};
use everlog_wire::public_command::{InvalidCommand, Original, PublicCommand, ReplyTo, SourcePosition};

use crate::context::PartitionContext;
use crate::model::keys::incarnation;

/// Bytes of a refused record that are told again; what brings records in cuts longer ones itself.
const REFUSED_BYTES_MAX: usize = 16 << 20;

/// The header that hands a command's correlation id back.
const CORRELATION_ID: &str = "correlation-id";
/// The header that hands back the trace that a command named.
const TRACEPARENT: &str = "traceparent";

type Headers = Vec<(&'static str, Bytes)>;

/// What the world calls things. Asked for every batch of events: it never waits.
pub trait NameResolver: Send + Sync + 'static {
    /// The name of a namespace by its UUID; none where it is gone.
    fn namespace(&self, id: &str) -> Option<Arc<str>>;
    /// The id under which the registry knows a noun's schema.
    fn schema_id(&self, noun: PublicTopic) -> u32;
    /// The UUIDs of namespaces that were deleted: what they have left goes.
    fn deleted_namespaces(&self) -> Arc<[String]>;
}

/// Names nothing: namespaces go by their UUIDs, schemas by 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unnamed;

impl NameResolver for Unnamed {
    fn namespace(&self, _id: &str) -> Option<Arc<str>> {
        None
    }

    fn schema_id(&self, _noun: PublicTopic) -> u32 {
        0
    }

    fn deleted_namespaces(&self) -> Arc<[String]> {
        Arc::default()
    }
}

/// Entries of append-only topics that wait for a commit, in order.
#[derive(Default)]
pub(crate) struct Outputs {
    open: Vec<Output>,
    open_bytes: usize,
    committing: Vec<Output>,
    committing_bytes: usize,
    scratch: Vec<u8>,
}

impl Outputs {
    fn push(
        &mut self,
        topic: Topic,
        key: &Bytes,
        headers: Headers,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), PublicError>,
    ) -> Result<(), PublicError> {
        self.scratch.clear();
        write(&mut self.scratch)?;
        let headers_bytes = headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        self.open_bytes += key.len() + self.scratch.len() + headers_bytes + size_of::<Output>();
        let value = Some(Bytes::copy_from_slice(&self.scratch));
        self.open.push(Output { topic, key: key.clone(), value, headers });
        Ok(())
    }

    /// About the memory of what waits, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.open_bytes + self.committing_bytes
    }

    /// Hands out what waits; it is kept until the commit is done.
    pub(crate) fn begin_commit(&mut self) -> Vec<Output> {
        self.committing = std::mem::take(&mut self.open);
        self.committing_bytes = std::mem::take(&mut self.open_bytes);
        self.committing.clone()
    }

    pub(crate) fn committed(&mut self) {
        self.committing = Vec::new();
        self.committing_bytes = 0;
    }

    /// What was handed out stands before what came since.
    pub(crate) fn commit_failed(&mut self) {
        let later = std::mem::take(&mut self.open);
        self.open = std::mem::take(&mut self.committing);
        self.open.extend(later);
        self.open_bytes += std::mem::take(&mut self.committing_bytes);
    }
}

/// What is known of a public record.
pub(crate) struct CommandOrigin<'a> {
    source: &'a SourcePosition,
    namespace: Option<&'a str>,
    workflow_id: Option<&'a str>,
    command_id: Option<&'a str>,
    reply_to: Option<&'a ReplyTo>,
    traceparent: Option<&'a str>,
    original: Option<&'a Original>,
}

impl<'a> CommandOrigin<'a> {
    pub(crate) fn of_forwarded(source: &'a SourcePosition, forwarded: &'a PublicCommand) -> Self {
        Self {
            source,
            namespace: Some(&forwarded.namespace),
            workflow_id: forwarded.input.as_ref().map(named),
            command_id: forwarded.command_id.as_deref(),
            reply_to: forwarded.reply_to.as_ref(),
            traceparent: forwarded.traceparent.as_deref(),
            original: forwarded.original.as_ref(),
        }
    }

    pub(crate) fn of_unreadable(source: &'a SourcePosition, unreadable: &'a InvalidCommand) -> Self {
        let original = unreadable.original.as_ref();
        let key = original.and_then(|original| original.key.as_deref());
        Self {
            source,
            namespace: unreadable.namespace.as_deref(),
            workflow_id: key.and_then(|key| std::str::from_utf8(key).ok()),
            command_id: unreadable.command_id.as_deref(),
            reply_to: unreadable.reply_to.as_ref(),
            traceparent: None,
            original,
        }
    }

    /// Of the outcome and of the refusal: that of the command.
    fn key(&self) -> Bytes {
        let key = self.original.and_then(|original| original.key.clone());
        key.or_else(|| Some(Bytes::copy_from_slice(self.workflow_id?.as_bytes()))).unwrap_or_default()
    }

    fn place(&self) -> RecordCoordinates<'a> {
        RecordCoordinates {
            topic: &self.source.topic,
            incarnation: incarnation(self.source),
            partition: self.source.partition,
            offset: self.source.offset,
        }
    }
}

/// The id that a command names: a schedule's by itself, without what makes a Workflow Id of it.
pub(crate) fn named(input: &RequestRecord) -> &str {
    let id = input.workflow_id.as_str();
    match &input.request {
        Some(request) if request.is_for_schedules() => schedule_id(id).unwrap_or(id),
        Some(_) | None => id,
    }
}

/// Writes into the outputs of a partition, as of a moment of its journal.
pub(crate) struct Publisher<'a> {
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) context: &'a PartitionContext,
    /// The stamp of the last record, in ms.
    pub(crate) now_ms: i64,
}

impl Publisher<'_> {
    /// One entry per event, in order.
    pub(crate) fn events(
        &mut self,
        namespace_id: &str,
        workflow_id: &str,
        run_id: &str,
        events: &[&HistoryEvent],
    ) {
        let namespace = self.context.config.public.namespace(namespace_id);
        let namespace = namespace.as_deref().unwrap_or(namespace_id);
        let origin = Origin { namespace, workflow_id, run_id };
        let schema_id = self.context.config.public.schema_id(PublicTopic::Event);
        let key = Bytes::copy_from_slice(workflow_id.as_bytes());
        for event in events {
            let record = WorkflowEvent::new(&origin, event);
            let written =
                self.outputs.push(Topic::Events, &key, Vec::new(), |buffer| record.write(schema_id, buffer));
            self.published(written);
        }
    }

    /// One entry per event of a schedule, in order; `input` is what they come of.
    pub(crate) fn schedule_events(&mut self, input: &RequestRecord, events: &[ScheduleEvent]) {
        if events.is_empty() {
            return;
        }
        let namespace = self.context.config.public.namespace(&input.namespace_id);
        let namespace = namespace.as_deref().unwrap_or(&input.namespace_id);
        let schema_id = self.context.config.public.schema_id(PublicTopic::Event);
        let key = Bytes::copy_from_slice(input.workflow_id.as_bytes());
        for event in events {
            let record = WorkflowEvent::of_schedule(namespace, &input.workflow_id, event, self.now_ms);
            let written =
                self.outputs.push(Topic::Events, &key, Vec::new(), |buffer| record.write(schema_id, buffer));
            self.published(written);
        }
    }

    /// What became of a command, for whoever asked.
    pub(crate) fn outcome(&mut self, told: &CommandOrigin<'_>, become_of: impl FnOnce(Outcome) -> Outcome) {
        let Some(reply_to) = told.reply_to else { return };
        let mut outcome = Outcome::new(&told.place(), self.now_ms);
        outcome.command_id = told.command_id.map(str::to_owned);
        outcome.namespace = told.namespace.map(str::to_owned);
        outcome.workflow_id = told.workflow_id.map(str::to_owned);
        outcome.correlation_id = reply_to.correlation_id.clone().map(Blob);
        let outcome = become_of(outcome);
        let correlation = reply_to.correlation_id.iter().map(|id| (CORRELATION_ID, id.clone()));
        let trace = told.traceparent.map(|trace| (TRACEPARENT, Bytes::copy_from_slice(trace.as_bytes())));
        let headers = correlation.chain(trace).collect();
        let schema_id = self.context.config.public.schema_id(PublicTopic::Outcome);
        let written = self
            .outputs
            .push(Topic::Replies, &told.key(), headers, |buffer| outcome.write(schema_id, buffer));
        self.published(written);
    }

    /// A public record was refused: for whoever asked, and among the rejections. `code` is the name of a [`Code`],
    /// perhaps of a later release.
    pub(crate) fn refusal(&mut self, told: &CommandOrigin<'_>, code: &str, reason: &str) {
        self.outcome(told, |outcome| Outcome {
            code: Some(code.to_owned()),
            ..outcome.refused(Code::InvalidArgument, reason)
        });
        self.rejection(told, code, reason);
    }

    /// A public record was refused: with its bytes, among the rejections.
    pub(crate) fn rejection(&mut self, told: &CommandOrigin<'_>, code: &str, reason: &str) {
        self.context.stats.rejections.count(code);
        let original = told.original;
        let headers = original.map(|original| original.headers.as_slice()).unwrap_or_default();
        let headers: Vec<_> =
            headers.iter().map(|header| (header.key.as_str(), header.value.as_deref())).collect();
        let record = CommandRecord {
            place: told.place(),
            key: original.and_then(|original| original.key.as_deref()),
            value: original.and_then(|original| original.value.as_deref()),
            headers: &headers,
        };
        let mut refusal =
            Rejection::new(&record, Code::InvalidArgument, reason, self.now_ms, REFUSED_BYTES_MAX);
        refusal.code = code.into();
        refusal.command_id = told.command_id.map(Into::into);
        refusal.namespace = told.namespace.map(Into::into);
        if let Some(value_bytes) = original.map(|original| original.value_bytes) {
            refusal.value_bytes = i64::try_from(value_bytes).unwrap_or(i64::MAX);
        }
        let schema_id = self.context.config.public.schema_id(PublicTopic::Rejection);
        let written = self
            .outputs
            .push(Topic::Rejections, &told.key(), Vec::new(), |buffer| refusal.write(schema_id, buffer));
        self.published(written);
    }

    /// A record that its schema does not take would be one whatever is tried: the others must not wait for it.
    fn published(&self, written: Result<(), PublicError>) {
        if let Err(error) = written {
            tracing::error!(partition = self.context.id, %error, "an entry of a public topic is missing");
            self.context.stats.unpublished.fetch_add(1, Ordering::Relaxed);
        }
    }
}
