//! Decodes a public record to the journal record that it becomes: a public command, or an invalid one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use everlog_avro::Bounds;
use everlog_avro::command::{
    Accepted, Code, CommandContext, CommandLimits, CommandOptions, CommandRecord, CommandRefusal,
    CommandVerdict, NamespaceLookup, RecordCoordinates, SchemaLookup, Token, read,
};
use everlog_log::consumer::{ConsumedTopic, Fetched};
use everlog_partition::Address;
use everlog_wire::Body;
use everlog_wire::public_command::{
    Header, InvalidCommand, Original, PublicCommand, ReplyTo, SourcePosition,
};
use tokio::time::Instant;

use crate::options::{Names, Options};
use crate::schemas::{SchemaCache, SchemaRegistry, Snapshot, lookup};

/// Bytes of headers that a rejection repeats; further headers are left out.
const HEADERS_BYTES_MAX: usize = 64 << 10;

/// Decodes the records of one topic.
pub(crate) struct Decoder<R, N> {
    topic: ConsumedTopic,
    options: Options,
    names: N,
    schemas: SchemaCache<R>,
}

/// A decoded record and its journal.
pub(crate) struct Routed {
    pub(crate) partition: u32,
    pub(crate) body: Body,
}

struct RecordContext<'a, N> {
    options: &'a Options,
    names: &'a N,
    schemas: &'a Snapshot,
}

impl<N: Names> CommandContext for RecordContext<'_, N> {
    fn namespace(&self, name: &str) -> NamespaceLookup {
        match self.names.namespace(name) {
            None => NamespaceLookup::Unknown,
            Some(_) if !self.options.is_open(name) => NamespaceLookup::Closed,
            Some((id, retention_ms)) => NamespaceLookup::Open { id, retention_ms },
        }
    }

    fn typed(&self, namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String> {
        self.names.typed(namespace, search_attributes)
    }

    fn schema(&self, id: u32) -> SchemaLookup<'_> {
        lookup(self.schemas, id, Instant::now())
    }

    fn token(&self, token: &Bytes) -> Option<Token> {
        self.names.token(token)
    }
}

impl<R: SchemaRegistry, N: Names> Decoder<R, N> {
    pub(crate) fn new(topic: ConsumedTopic, options: Options, names: N, registry: R) -> Self {
        let schemas = SchemaCache::new(registry, options.command_schema_id);
        Self { topic, options, names, schemas }
    }

    /// Decodes a record. It waits for the registry up to a limit; `waits` is called when the wait begins.
    pub(crate) async fn read(&self, fetched: &Fetched, partitions: u32, waits: impl Fn()) -> Routed {
        let mut deadline = None;
        if let Some(reason) = &fetched.lost {
            return self.unreadable(fetched, CommandRefusal::new(Code::TooLarge, reason.clone()), partitions);
        }
        loop {
            let id = match self.verdict(fetched) {
                CommandVerdict::Accepted(accepted) => return self.forwarded(fetched, *accepted, partitions),
                CommandVerdict::Refused(refusal) => return self.unreadable(fetched, *refusal, partitions),
                CommandVerdict::Schema(id) => id,
            };
            let deadline = *deadline.get_or_insert_with(|| {
                waits();
                Instant::now() + Duration::from_millis(self.options.schema_wait_ms)
            });
            if let Err(away) = self.schemas.learn(id, deadline).await {
                let waited_ms = self.options.schema_wait_ms;
                let reason = format!("nobody knows the schema {id} after {waited_ms} ms: {away}");
                return self.unreadable(
                    fetched,
                    CommandRefusal::new(Code::SchemaUnknown, reason),
                    partitions,
                );
            }
        }
    }

    fn verdict(&self, fetched: &Fetched) -> CommandVerdict {
        let headers: Vec<_> =
            fetched.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        let place = RecordCoordinates {
            topic: &self.topic.name,
            incarnation: self.topic.incarnation,
            partition: fetched.partition,
            offset: fetched.offset,
        };
        let (key, value) = (fetched.key.as_deref(), fetched.value.as_deref());
        let record = CommandRecord { place, key, value, headers: &headers };
        let options = &self.options;
        let reply_topics: Vec<_> = options.reply_topics.iter().map(String::as_str).collect();
        let rules = CommandLimits {
            settings: &options.settings,
            namespace_default: &options.namespace_default,
            reply_topics: &reply_topics,
            bounds: Bounds { bytes_max: options.record_bytes_max, ..Bounds::default() },
            now_ms: self.names.now_ms(),
        };
        read(
            &record,
            &rules,
            &RecordContext { options, names: &self.names, schemas: &self.schemas.snapshot() },
        )
    }

    fn forwarded(&self, fetched: &Fetched, accepted: Accepted, partitions: u32) -> Routed {
        let Accepted { input, ask } = accepted;
        let partition = Address::of(&input).partition(partitions);
        let asked = ask.clone();
        let (reply_to, namespace, command_id) = replies(&ask);
        let body = Body::PublicCommand(PublicCommand {
            source: Some(self.source(fetched)),
            input: Some(input),
            namespace,
            command_id,
            reply_to,
            deliver_at_ms: ask.deliver_at_ms.unwrap_or(0),
            traceparent: ask.traceparent,
            original: Some(self.original(fetched)),
        });
        let (bytes, bytes_max) = (body.encoded_len(), self.options.journal_record_bytes_max);
        if bytes > bytes_max {
            let reason = format!("as an order it has {bytes} bytes, {bytes_max} are taken");
            let ask = Some(Box::new(asked));
            return self.unreadable(
                fetched,
                CommandRefusal { ask, ..CommandRefusal::new(Code::TooLarge, reason) },
                partitions,
            );
        }
        Routed { partition, body }
    }

    fn unreadable(&self, fetched: &Fetched, refusal: CommandRefusal, partitions: u32) -> Routed {
        let (reply_to, namespace, command_id) = refusal.ask.as_deref().map(replies).unwrap_or_default();
        let body = Body::InvalidCommand(InvalidCommand {
            source: Some(self.source(fetched)),
            code: refusal.code.name().into(),
            reason: refusal.reason,
            namespace: Some(namespace).filter(|name| !name.is_empty()),
            command_id,
            reply_to,
            original: Some(self.original(fetched)),
        });
        Routed { partition: fetched.partition % partitions, body }
    }

    fn source(&self, fetched: &Fetched) -> SourcePosition {
        SourcePosition {
            incarnation: Bytes::copy_from_slice(&self.topic.incarnation),
            partition: fetched.partition,
            offset: fetched.offset,
            topic: self.topic.name.clone(),
            follows: 0,
        }
    }

    /// The record, cut where it is larger than a record may be.
    fn original(&self, fetched: &Fetched) -> Original {
        let cut = |bytes: &Bytes| bytes.slice(..bytes.len().min(self.options.record_bytes_max));
        let mut room = HEADERS_BYTES_MAX;
        let fits = |(name, value): &&(String, Option<Bytes>)| {
            let size = name.len() + value.as_ref().map_or(0, Bytes::len);
            room.checked_sub(size).inspect(|left| room = *left).is_some()
        };
        let headers = fetched.headers.iter().take_while(fits);
        let headers = headers.map(|(key, value)| Header { key: key.clone(), value: value.clone() });
        Original {
            key: fetched.key.as_ref().map(cut),
            value: fetched.value.as_ref().map(cut),
            value_bytes: fetched.value.as_ref().map_or(0, |value| value.len() as u64),
            headers: headers.collect(),
        }
    }
}

fn replies(ask: &CommandOptions) -> (Option<ReplyTo>, String, Option<String>) {
    let reply_to = ask.reply_topic.clone();
    let reply_to = reply_to.map(|topic| ReplyTo { topic, correlation_id: ask.correlation_id.clone() });
    (reply_to, ask.namespace.clone(), ask.command_id.clone())
}

/// What the ingress shares with the tasks that it starts.
pub(crate) type Shared<R, N> = Arc<Decoder<R, N>>;
