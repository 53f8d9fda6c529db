//! What the reader of commands knows in these tests, and commands to begin with.

use bytes::Bytes;
use everlog_avro::command::{
    self, Code, Command, CommandContext, CommandLimits, CommandRecord, CommandVerdict, NamespaceLookup,
    RecordCoordinates, SchemaLookup, Start, Token,
};
use everlog_avro::payload::Payload;
use everlog_avro::{Bounds, PublicTopic, Writer, WriterError, write};
use everlog_engine::Settings;
use everlog_engine::machine::activity_attempt::Target;
use everlog_engine::request::RequestRecord;

pub const NAMESPACE_ID: &str = "8a3c0000-0000-4000-8000-000000000001";
pub const RUN_ID: &str = "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2";
pub const NOW_MS: i64 = 1_763_700_000_000;
/// Schemas by their ids: those of this release.
pub const COMMAND_ID: u32 = 11;
pub const EVENT_ID: u32 = 12;
/// A schema that was given to the world.
pub const GIVEN_ID: u32 = 13;
pub const UNKNOWN_ID: u32 = 14;

pub struct Known {
    pub command: Writer,
    pub event: Writer,
    pub given: Option<Result<Writer, WriterError>>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            command: Writer::own(PublicTopic::Command),
            event: Writer::own(PublicTopic::Event),
            given: None,
        }
    }
}

impl CommandContext for Known {
    fn namespace(&self, name: &str) -> NamespaceLookup {
        match name {
            "default" | "other" => {
                NamespaceLookup::Open { id: NAMESPACE_ID.into(), retention_ms: 86_400_000 }
            }
            "closed" => NamespaceLookup::Closed,
            _unknown => NamespaceLookup::Unknown,
        }
    }

    fn schema(&self, id: u32) -> SchemaLookup<'_> {
        match id {
            COMMAND_ID => SchemaLookup::Known(Ok(&self.command)),
            EVENT_ID => SchemaLookup::Known(Ok(&self.event)),
            GIVEN_ID => {
                self.given.as_ref().map_or(SchemaLookup::Missing, |given| SchemaLookup::Known(given.as_ref()))
            }
            UNKNOWN_ID => SchemaLookup::Unknown,
            _never_asked => SchemaLookup::Missing,
        }
    }

    fn typed(&self, _namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String> {
        Ok(search_attributes.clone())
    }

    fn token(&self, token: &Bytes) -> Option<Token> {
        (token == "token").then(|| Token {
            namespace_id: NAMESPACE_ID.into(),
            workflow_id: "order-1".into(),
            run_id: RUN_ID.into(),
            target: Target { scheduled_event_id: 5, attempt: 2, claim: 77, activity_id: String::new() },
        })
    }
}

pub type Headers<'a> = &'a [(&'a str, Option<&'a [u8]>)];

pub fn read_in(
    world: &Known,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: Headers<'_>,
) -> CommandVerdict {
    let settings = Settings::standard();
    let rules = CommandLimits {
        settings: &settings,
        namespace_default: "default",
        reply_topics: &["everlog.replies"],
        bounds: Bounds { bytes_max: 1 << 20, items_max: 10_000, ..Bounds::default() },
        now_ms: NOW_MS,
    };
    let place =
        RecordCoordinates { topic: "everlog.commands", incarnation: [7; 16], partition: 3, offset: 42 };
    command::read(&CommandRecord { place, key, value, headers }, &rules, world)
}

pub fn read(value: &[u8], headers: Headers<'_>) -> CommandVerdict {
    read_in(&Known::default(), Some(b"order-1"), Some(value), headers)
}

pub fn refusal(verdict: CommandVerdict) -> (Code, String) {
    match verdict {
        CommandVerdict::Refused(refusal) => (refusal.code, refusal.reason),
        other => panic!("it has to be refused: {other:?}"),
    }
}

pub fn input(verdict: CommandVerdict) -> RequestRecord {
    match verdict {
        CommandVerdict::Accepted(accepted) => accepted.input,
        other => panic!("it has to be accepted: {other:?}"),
    }
}

pub fn avro(command: &Command<Payload<'static>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(PublicTopic::Command, COMMAND_ID, command, &mut bytes).expect("it fits its schema");
    bytes
}

pub fn start() -> Command<Payload<'static>> {
    let input = Payload { text: Some("{\"total\": 12}".into()), ..Payload::default() };
    let start = Start {
        workflow_type: "Order".into(),
        task_queue: "orders".into(),
        input: Some(vec![input]),
        ..Start::default()
    };
    Command { r#type: "start".into(), start: Some(start), ..Command::default() }
}
