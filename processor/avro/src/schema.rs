//! The schemas of the public topics, and the writer schemas of others.

use std::sync::{Arc, LazyLock};

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::schema_compatibility::SchemaCompatibility;
use serde_json::Value;

use crate::compiled_schema::CompiledSchema;

/// Bytes of a schema's text; a longer one is not read.
pub const SCHEMA_BYTES_MAX: usize = 1 << 20;

/// What a public topic holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PublicTopic {
    /// `events`.
    Event,
    /// `commands`.
    Command,
    /// `replies`.
    Outcome,
    /// `rejections`.
    Rejection,
}

struct Parts {
    schema: &'static Schema,
    reader: GenericDatumReader<'static>,
    plan: CompiledSchema,
    canonical: String,
}

static PARTS: LazyLock<[Parts; 4]> = LazyLock::new(|| PublicTopic::ALL.map(parts));

fn parts(noun: PublicTopic) -> Parts {
    let schema =
        Schema::parse_str(noun.text()).expect("the schemas of the repository are tested to be valid");
    // Once per process, for as long as it runs.
    let schema: &'static Schema = Box::leak(Box::new(schema));
    let reader = GenericDatumReader::builder(schema).human_readable(false).build();
    let valid = "the names in the schemas of the repository are tested to resolve";
    Parts {
        schema,
        reader: reader.expect(valid),
        plan: CompiledSchema::new(schema).expect(valid),
        canonical: schema.canonical_form(),
    }
}

impl PublicTopic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Event, Self::Command, Self::Outcome, Self::Rejection];

    /// Reads the schemas, which takes a tenth of a second once: the first record is not to wait for it.
    pub fn prepare() {
        LazyLock::force(&PARTS);
    }

    /// The name of the record, and of the file in `schemas/`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "WorkflowEvent",
            Self::Command => "WorkflowCommand",
            Self::Outcome => "Outcome",
            Self::Rejection => "Rejection",
        }
    }

    /// The schema as a registry takes it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Event => include_str!("../../../schemas/WorkflowEvent.avsc"),
            Self::Command => include_str!("../../../schemas/WorkflowCommand.avsc"),
            Self::Outcome => include_str!("../../../schemas/Outcome.avsc"),
            Self::Rejection => include_str!("../../../schemas/Rejection.avsc"),
        }
    }

    /// The last part of the topic's name.
    pub fn topic(self) -> &'static str {
        match self {
            Self::Event => "events",
            Self::Command => "commands",
            Self::Outcome => "replies",
            Self::Rejection => "rejections",
        }
    }

    /// Under which subject a registry knows the schema, by the topic's full name: what stock clients expect.
    pub fn subject(topic: &str) -> String {
        format!("{topic}-value")
    }

    /// The schema, parsed.
    pub fn schema(self) -> &'static Schema {
        self.parts().schema
    }

    pub(super) fn plan(self) -> &'static CompiledSchema {
        &self.parts().plan
    }

    pub(super) fn reader(self) -> &'static GenericDatumReader<'static> {
        &self.parts().reader
    }

    fn parts(self) -> &'static Parts {
        match self {
            Self::Event => &PARTS[0],
            Self::Command => &PARTS[1],
            Self::Outcome => &PARTS[2],
            Self::Rejection => &PARTS[3],
        }
    }
}

/// A schema that is of no use to read a noun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriterError {
    /// It is no Avro schema that can be read.
    #[error("the schema cannot be read: {0}")]
    Unreadable(String),
    /// It is the schema of something else.
    #[error("the schema is of {found}, not of {expected}")]
    Other {
        /// Its record's full name, or its type.
        found: String,
        /// The record's name that is expected.
        expected: &'static str,
    },
    /// What it writes cannot be read as the noun of this release.
    #[error("what the schema writes cannot be read: {0}")]
    Incompatible(String),
}

/// A writer's schema of a public topic.
#[derive(Clone, Debug)]
pub struct Writer {
    noun: PublicTopic,
    /// None for the schema of this release.
    foreign: Option<Arc<(Schema, CompiledSchema)>>,
}

impl Writer {
    /// The schema of this release.
    pub fn own(noun: PublicTopic) -> Self {
        Self { noun, foreign: None }
    }

    /// A schema from a registry, checked once: it is of the noun, and what it writes can be read, or some of it.
    ///
    /// # Errors
    /// [`WriterError`].
    pub fn parse(noun: PublicTopic, text: &str) -> Result<Self, WriterError> {
        let unreadable = |detail: String| WriterError::Unreadable(detail);
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(unreadable(format!("it has more than {SCHEMA_BYTES_MAX} bytes")));
        }
        // The parser of JSON stops at a depth of 128, so what walks through the schema does as well.
        let mut json: Value = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        plain(&mut json);
        let schema = Schema::parse(&json).map_err(|error| unreadable(error.to_string()))?;
        let found = match &schema {
            Schema::Record(record) => record.name.to_string(),
            other => format!("the type {:?}", apache_avro::schema::SchemaKind::from(other)),
        };
        let expected = noun.name();
        if found != format!("io.everlog.{expected}") {
            return Err(WriterError::Other { found, expected });
        }
        if schema.canonical_form() == noun.parts().canonical {
            return Ok(Self::own(noun));
        }
        // What is read in part is taken: a record that cannot be read is refused by itself.
        SchemaCompatibility::can_read(&schema, noun.schema())
            .map_err(|error| WriterError::Incompatible(error.to_string()))?;
        let plan = CompiledSchema::new(&schema)
            .ok_or_else(|| unreadable("it names a type that it does not define".into()))?;
        Ok(Self { noun, foreign: Some(Arc::new((schema, plan))) })
    }

    /// What it writes.
    pub fn noun(&self) -> PublicTopic {
        self.noun
    }

    /// The schema, if it is not that of this release.
    pub(super) fn foreign(&self) -> Option<&Schema> {
        self.foreign.as_deref().map(|(schema, _)| schema)
    }

    pub(super) fn plan(&self) -> &CompiledSchema {
        self.foreign.as_deref().map_or_else(|| self.noun.plan(), |(_, plan)| plan)
    }
}

/// Takes the logical types out: a decimal or a UUID in a field that is not ours is skipped as what it is made of.
fn plain(json: &mut Value) {
    match json {
        Value::Object(members) => {
            members.retain(|name, _| name != "logicalType");
            members.iter_mut().filter(|(name, _)| *name != "default").for_each(|(_, member)| plain(member));
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
