//! A record of `events`, read by its schema alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;

use crate::reader::Entry;

/// Bytes in front of the Avro body: 0 and the schema's id.
const HEAD_BYTES: usize = 5;

/// An event: its envelope, and the plain numbers and texts of its attributes by name. The text of a list of values is its
/// first value, that of a failure its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub partition: i32,
    pub offset: i64,
    pub key: String,
    pub workflow_id: String,
    pub run_id: String,
    pub event_id: i64,
    pub kind: String,
    pub time_ms: i64,
    pub numbers: BTreeMap<String, i64>,
    pub texts: BTreeMap<String, String>,
}

impl Event {
    pub fn read(entry: &Entry) -> anyhow::Result<Self> {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        let schema = SCHEMA.get_or_init(|| schema(include_str!("../../schemas/WorkflowEvent.avsc")));
        let fields = fields(schema, entry.value.as_deref())?;
        let kind = text(&fields, "type")?;
        let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::new());
        if let Some(Value::Record(attributes)) = fields.get(&snake(&kind)) {
            for (name, value) in attributes {
                match bare(value) {
                    Value::Long(number) | Value::TimestampMillis(number) => {
                        numbers.insert(name.clone(), *number);
                    }
                    Value::Int(number) => {
                        numbers.insert(name.clone(), i64::from(*number));
                    }
                    Value::String(text) => {
                        texts.insert(name.clone(), text.clone());
                    }
                    Value::Array(items) => {
                        texts.extend(items.first().and_then(said).map(|said| (name.clone(), said)));
                    }
                    _other => {}
                }
            }
        }
        Ok(Self {
            partition: entry.partition,
            offset: entry.offset,
            key: String::from_utf8_lossy(entry.key.as_deref().unwrap_or_default()).into_owned(),
            workflow_id: text(&fields, "workflow_id")?,
            run_id: text(&fields, "run_id")?,
            event_id: number(&fields, "event_id")?,
            kind,
            time_ms: number(&fields, "time")?,
            numbers,
            texts,
        })
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    pub fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    pub fn is_closing(&self) -> bool {
        status(&self.kind) != RUNNING
    }

    /// Nothing of the chain comes after it.
    pub fn is_last(&self) -> bool {
        self.is_closing() && self.text("new_run_id").is_empty()
    }
}

/// The status of a run that has not closed.
pub const RUNNING: i64 = 1;

/// The status in which an event leaves a run, by the numbers of Temporal's `WorkflowExecutionStatus`.
pub fn status(kind: &str) -> i64 {
    match kind {
        "WorkflowExecutionCompleted" => 2,
        "WorkflowExecutionFailed" => 3,
        "WorkflowExecutionCanceled" => 4,
        "WorkflowExecutionTerminated" => 5,
        "WorkflowExecutionContinuedAsNew" => 6,
        "WorkflowExecutionTimedOut" => 7,
        _goes_on => RUNNING,
    }
}

/// A schema of the public topics.
pub fn schema(text: &str) -> Schema {
    Schema::parse_str(text).expect("it is one of the project's")
}

/// The fields of a record in Confluent's wire format, by name and without their unions.
pub fn fields(schema: &Schema, bytes: Option<&[u8]>) -> anyhow::Result<BTreeMap<String, Value>> {
    let bytes = bytes.context("it has no value")?;
    ensure!(bytes.len() >= HEAD_BYTES && bytes[0] == 0, "it is not in Confluent's wire format");
    let mut body = &bytes[HEAD_BYTES..];
    let reader = GenericDatumReader::builder(schema).build()?;
    let Value::Record(fields) = reader.read_value(&mut body)? else { anyhow::bail!("it is no record") };
    ensure!(body.is_empty(), "{} bytes are left over", body.len());
    Ok(fields.into_iter().map(|(name, value)| (name, bare(&value).clone())).collect())
}

pub fn text(fields: &BTreeMap<String, Value>, name: &str) -> anyhow::Result<String> {
    match fields.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => anyhow::bail!("{name} is {other:?}"),
    }
}

pub fn number(fields: &BTreeMap<String, Value>, name: &str) -> anyhow::Result<i64> {
    match fields.get(name) {
        Some(Value::Long(number) | Value::TimestampMillis(number)) => Ok(*number),
        Some(Value::Int(number)) => Ok(i64::from(*number)),
        other => anyhow::bail!("{name} is {other:?}"),
    }
}

fn bare(value: &Value) -> &Value {
    match value {
        Value::Union(_, inner) => inner,
        other => other,
    }
}

/// What the first of a list says: the message of a failure, the text or the bytes of a value.
fn said(item: &Value) -> Option<String> {
    let Value::Record(fields) = item else { return None };
    let field = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| bare(value));
    match field("message").or_else(|| field("text").filter(|text| matches!(text, Value::String(_)))) {
        Some(Value::String(text)) => Some(text.clone()),
        _ => match field("data") {
            Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        },
    }
}

fn snake(kind: &str) -> String {
    let mut name = String::new();
    for letter in kind.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}
