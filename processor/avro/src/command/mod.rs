//! Commands: a public record becomes a request to the engine, or is refused with a code and a reason.

mod headers;
mod json;
mod operator_request;
mod operator_shape;
mod schedule_request;
mod schedule_shape;
mod shape;
mod to_request;
mod validate;

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::machine::activity_attempt::Target;
use everlog_engine::request::RequestRecord;

pub use crate::command::headers::{CommandOptions, DELIVER_AHEAD_MS_MAX};
pub use crate::command::operator_shape::{
    GivenActivityChange, GivenActivityOptions, GivenActivityPause, GivenActivityReset, GivenActivityUnpause,
    GivenOverride, GivenRunOptions, GivenRunPause, GivenRunUnpause, GivenVersion,
};
pub use crate::command::schedule_shape::{
    GivenBackfill, GivenCalendar, GivenInterval, GivenPatch, GivenPolicies, GivenSchedule, GivenSpec,
    GivenState, GivenTrigger, ScheduleCreation, ScheduleReplacement,
};
pub use crate::command::shape::{Cancel, Command, Complete, Fail, Signal, Start, Terminate, Update};

use crate::payload::Payload;
use crate::schema::{PublicTopic, Writer, WriterError};
use crate::validator::Bounds;
use crate::{Error, codec};

/// A record of the topic, as it was consumed.
#[derive(Clone, Copy, Debug)]
pub struct CommandRecord<'a> {
    /// Names the topic's partition and the record in it, for ever: a request without an id gets one from it.
    pub place: RecordCoordinates<'a>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

/// The coordinates of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordCoordinates<'a> {
    /// The topic's name.
    pub topic: &'a str,
    /// The topic's id, which no topic of the same name made later has.
    pub incarnation: [u8; 16],
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: u64,
}

/// What commands are held against.
#[derive(Clone, Copy, Debug)]
pub struct CommandLimits<'a> {
    /// The engine's limits.
    pub settings: &'a Settings,
    /// The namespace of a command that names none.
    pub namespace_default: &'a str,
    /// Where outcomes may go; never an internal topic.
    pub reply_topics: &'a [&'a str],
    /// Of one record.
    pub bounds: Bounds,
    /// The time of the reader, in ms since 1970-01-01 UTC: for `deliver-at` only.
    pub now_ms: i64,
}

/// What a reader of commands knows.
pub trait CommandContext {
    /// A namespace by its name.
    fn namespace(&self, name: &str) -> NamespaceLookup;
    /// Search attributes, an encoded map, that fit those of a namespace by its name, with their types.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    fn typed(&self, namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String>;
    /// A schema by its id. Never waits.
    fn schema(&self, id: u32) -> SchemaLookup<'_>;
    /// The activity that a task token stands for; none where the token is not of this cluster.
    fn token(&self, token: &Bytes) -> Option<Token>;
}

/// A namespace, as the reader of commands knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceLookup {
    /// Commands may be sent to it.
    Open {
        /// Its UUID.
        id: String,
        /// How long a run stays readable after its close, in ms.
        retention_ms: i64,
    },
    /// It is there, but the configuration does not open it to commands.
    Closed,
    /// There is none of this name.
    Unknown,
}

/// What is known of a schema.
#[derive(Clone, Copy, Debug)]
pub enum SchemaLookup<'a> {
    /// It was looked up before.
    Known(Result<&'a Writer, &'a WriterError>),
    /// The registry says that there is none.
    Unknown,
    /// Nobody has asked the registry yet, or it does not answer.
    Missing,
}

/// What a task token of an activity says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The namespace's UUID.
    pub namespace_id: String,
    /// The Workflow Id.
    pub workflow_id: String,
    /// The run.
    pub run_id: String,
    /// The attempt.
    pub target: Target,
}

/// A command that can be ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The order, ready for the journal.
    pub input: RequestRecord,
    /// What the headers ask for.
    pub ask: CommandOptions,
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandVerdict {
    /// It is an order.
    Accepted(Box<Accepted>),
    /// It is refused, now and for ever.
    Refused(Box<CommandRefusal>),
    /// It cannot be read before the schema of this id is known: look it up, and read the record again.
    Schema(u32),
}

/// Why a command is refused, for programs. The names are public: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Code {
    NullValue,
    KeyMissing,
    KeyUnreadable,
    KeyMismatch,
    TooLarge,
    NotAvro,
    NotJson,
    SchemaUnknown,
    SchemaWrongType,
    SchemaIncompatible,
    Decode,
    CommandUnknown,
    CommandIncomplete,
    Header,
    ReplyTopic,
    NamespaceUnknown,
    NamespaceClosed,
    Token,
    InvalidArgument,
    NotFound,
    AlreadyStarted,
    Busy,
    Outdated,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::NullValue,
        Self::KeyMissing,
        Self::KeyUnreadable,
        Self::KeyMismatch,
        Self::TooLarge,
        Self::NotAvro,
        Self::NotJson,
        Self::SchemaUnknown,
        Self::SchemaWrongType,
        Self::SchemaIncompatible,
        Self::Decode,
        Self::CommandUnknown,
        Self::CommandIncomplete,
        Self::Header,
        Self::ReplyTopic,
        Self::NamespaceUnknown,
        Self::NamespaceClosed,
        Self::Token,
        Self::InvalidArgument,
        Self::NotFound,
        Self::AlreadyStarted,
        Self::Busy,
        Self::Outdated,
    ];

    /// Its text in `rejections` and `replies`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NullValue => "null_value",
            Self::KeyMissing => "key_missing",
            Self::KeyUnreadable => "key_unreadable",
            Self::KeyMismatch => "key_mismatch",
            Self::TooLarge => "too_large",
            Self::NotAvro => "not_avro",
            Self::NotJson => "not_json",
            Self::SchemaUnknown => "schema_unknown",
            Self::SchemaWrongType => "schema_wrong_type",
            Self::SchemaIncompatible => "schema_incompatible",
            Self::Decode => "decode",
            Self::CommandUnknown => "command_unknown",
            Self::CommandIncomplete => "command_incomplete",
            Self::Header => "header",
            Self::ReplyTopic => "reply_topic",
            Self::NamespaceUnknown => "namespace_unknown",
            Self::NamespaceClosed => "namespace_closed",
            Self::Token => "token",
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::AlreadyStarted => "already_started",
            Self::Busy => "busy",
            Self::Outdated => "outdated",
        }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRefusal {
    /// Why, for programs.
    pub code: Code,
    /// Why, for people.
    pub reason: String,
    /// What the headers ask for, where they could be read: a refusal is an outcome too.
    pub ask: Option<Box<CommandOptions>>,
}

impl CommandRefusal {
    /// A refusal for this reason, of which the beginning is kept.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: codec::brief(reason.into()), ask: None }
    }
}

/// Reads a record. Never panics, never waits, and takes memory only for what is within the bounds.
pub fn read(
    record: &CommandRecord<'_>,
    rules: &CommandLimits<'_>,
    world: &impl CommandContext,
) -> CommandVerdict {
    let ask = match CommandOptions::read(record.headers, rules) {
        Ok(ask) => ask,
        Err(refusal) => return CommandVerdict::Refused(Box::new(refusal)),
    };
    match decode(record, rules, world, &ask) {
        Ok(Decoded::Input(input)) => CommandVerdict::Accepted(Box::new(Accepted { input: *input, ask })),
        Ok(Decoded::Schema(id)) => CommandVerdict::Schema(id),
        Err(refusal) => {
            CommandVerdict::Refused(Box::new(CommandRefusal { ask: Some(Box::new(ask)), ..refusal }))
        }
    }
}

enum Decoded {
    Input(Box<RequestRecord>),
    Schema(u32),
}

fn decode(
    record: &CommandRecord<'_>,
    rules: &CommandLimits<'_>,
    world: &impl CommandContext,
    ask: &CommandOptions,
) -> Result<Decoded, CommandRefusal> {
    let key = record.key.filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| {
        CommandRefusal::new(Code::KeyMissing, "the key has to be the Workflow Id, or the id of the schedule")
    })?;
    let Ok(key) = std::str::from_utf8(key) else {
        return Err(CommandRefusal::new(Code::KeyUnreadable, "the key is not UTF-8"));
    };
    let Some(value) = record.value else {
        return Err(CommandRefusal::new(Code::NullValue, "a record without a value orders nothing"));
    };
    if value.len() > rules.bounds.bytes_max {
        let reason = format!("it has {} bytes, {} are taken", value.len(), rules.bounds.bytes_max);
        return Err(CommandRefusal::new(Code::TooLarge, reason));
    }
    let input = match form(value, ask.content_type.as_deref())? {
        Form::Json => {
            let command = json::read(value, &rules.bounds);
            let command = command.map_err(|detail| CommandRefusal::new(Code::NotJson, detail))?;
            crate::command::to_request::input(record, key, command, rules, world, ask)?
        }
        Form::Avro => {
            let framed =
                codec::frame(value).map_err(|error| CommandRefusal::new(Code::NotAvro, error.to_string()))?;
            let Some(writer) = writer(framed.schema_id, world)? else {
                return Ok(Decoded::Schema(framed.schema_id));
            };
            let command: Command<Payload<'static>> =
                codec::read(writer, framed.body, &rules.bounds).map_err(|error| undecodable(&error))?;
            crate::command::to_request::input(record, key, command, rules, world, ask)?
        }
    };
    Ok(Decoded::Input(Box::new(input)))
}

enum Form {
    Avro,
    Json,
}

/// The first byte says what it is; a content type that says otherwise is a mistake of the sender's.
fn form(value: &[u8], content_type: Option<&str>) -> Result<Form, CommandRefusal> {
    let first = value.iter().find(|byte| !byte.is_ascii_whitespace());
    let form = match (value.first(), first) {
        (Some(0), _) => Form::Avro,
        (_, Some(b'{')) => Form::Json,
        _neither => {
            return Err(CommandRefusal::new(
                Code::NotAvro,
                "it begins neither with the byte 0 (Avro) nor with { (JSON)",
            ));
        }
    };
    match (&form, content_type) {
        (Form::Avro, Some(given)) if given.ends_with("json") => Err(CommandRefusal::new(
            Code::NotJson,
            format!("content-type is {given}, but it begins with the byte 0"),
        )),
        (Form::Json, Some(given)) if given.contains("avro") => {
            Err(CommandRefusal::new(Code::NotAvro, format!("content-type is {given}, but it begins with {{")))
        }
        (Form::Avro | Form::Json, _) => Ok(form),
    }
}

fn writer(schema_id: u32, world: &impl CommandContext) -> Result<Option<&Writer>, CommandRefusal> {
    match world.schema(schema_id) {
        SchemaLookup::Known(Ok(writer)) if writer.noun() == PublicTopic::Command => Ok(Some(writer)),
        SchemaLookup::Known(Ok(writer)) => {
            let reason = format!("the schema {schema_id} is of {}", writer.noun().name());
            Err(CommandRefusal::new(Code::SchemaWrongType, reason))
        }
        SchemaLookup::Known(Err(error)) => {
            let code = match error {
                WriterError::Other { .. } => Code::SchemaWrongType,
                WriterError::Unreadable(_) | WriterError::Incompatible(_) => Code::SchemaIncompatible,
            };
            Err(CommandRefusal::new(code, format!("schema {schema_id}: {error}")))
        }
        SchemaLookup::Unknown => {
            Err(CommandRefusal::new(Code::SchemaUnknown, format!("the registry knows no schema {schema_id}")))
        }
        SchemaLookup::Missing => Ok(None),
    }
}

fn undecodable(error: &Error) -> CommandRefusal {
    CommandRefusal::new(Code::Decode, error.to_string())
}
