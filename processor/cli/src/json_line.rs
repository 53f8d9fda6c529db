//! A record of a public topic as one line of JSON. Payloads in JSON are included as they are; absent fields are left
//! out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use everlog_avro::event::WorkflowEvent;
use everlog_avro::outcome::Outcome;
use everlog_avro::payload::JSON;
use everlog_avro::rejection::Rejection;
use everlog_avro::{PublicTopic, Writer, frame};
use everlog_log_kafka::topics::topic_io::Record;
use everlog_registry::{Found, RegistryClient};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

/// A header that the log itself writes.
const OURS: &str = "everlog";

/// A decoded record.
#[derive(Debug)]
pub enum DecodedRecord {
    /// Of `events`.
    Event(Box<WorkflowEvent<'static>>),
    /// Of `replies`.
    Outcome(Box<Outcome>),
    /// Of `rejections`.
    Rejection(Box<Rejection<'static>>),
    /// It cannot be decoded; why.
    Unreadable(String),
}

/// Decodes records of one topic, of any release.
pub struct Reader {
    noun: PublicTopic,
    registry: Option<RegistryClient>,
    runtime: Runtime,
    writers: BTreeMap<u32, Result<Writer, String>>,
}

impl Reader {
    /// Without a registry, all records are decoded by this release's schemas.
    ///
    /// # Errors
    /// The system gives no runtime.
    pub fn new(noun: PublicTopic, registry: Option<RegistryClient>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { noun, registry, runtime, writers: BTreeMap::new() })
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// The registry does not answer.
    pub fn read(&mut self, record: &Record) -> Result<DecodedRecord> {
        let Some(value) = record.value.as_deref() else {
            return Ok(DecodedRecord::Unreadable("it has no value".into()));
        };
        let id = match frame(value) {
            Ok(framed) => framed.schema_id,
            Err(error) => return Ok(DecodedRecord::Unreadable(error.to_string())),
        };
        let noun = self.noun;
        let writer = match self.writer(id)? {
            Ok(writer) => writer,
            Err(detail) => return Ok(DecodedRecord::Unreadable(detail.clone())),
        };
        let told = match noun {
            PublicTopic::Event => {
                WorkflowEvent::read(writer, value).map(|event| DecodedRecord::Event(Box::new(event)))
            }
            PublicTopic::Outcome => {
                Outcome::read(writer, value).map(|outcome| DecodedRecord::Outcome(Box::new(outcome)))
            }
            PublicTopic::Rejection => {
                Rejection::read(writer, value).map(|rejection| DecodedRecord::Rejection(Box::new(rejection)))
            }
            PublicTopic::Command => {
                return Ok(DecodedRecord::Unreadable("commands are read by nodes".into()));
            }
        };
        Ok(told.unwrap_or_else(|error| DecodedRecord::Unreadable(error.to_string())))
    }

    fn writer(&mut self, id: u32) -> Result<&Result<Writer, String>> {
        if !self.writers.contains_key(&id) {
            let writer = match &self.registry {
                // No registry gives the id 0.
                Some(registry) if id != 0 => match self.runtime.block_on(registry.schema(id))? {
                    Found::Schema(text) => Writer::parse(self.noun, &text).map_err(|error| error.to_string()),
                    Found::Unknown => Err(format!("the registry knows no schema {id}")),
                },
                Some(_) | None => Ok(Writer::own(self.noun)),
            };
            self.writers.insert(id, writer);
        }
        self.writers.get(&id).context("it was put there")
    }
}

/// The line of a record.
///
/// # Errors
/// It cannot be written in JSON: a bug of this release.
pub fn line(topic: &str, record: &Record, told: &DecodedRecord) -> Result<String> {
    let mut line = match told {
        DecodedRecord::Event(event) => tidy(&serde_json::to_string(event)?)?,
        DecodedRecord::Outcome(outcome) => tidy(&serde_json::to_string(outcome)?)?,
        DecodedRecord::Rejection(rejection) => rejection_line(rejection)?,
        DecodedRecord::Unreadable(why) => {
            let mut members = Fields::default();
            members.put("unreadable", why)?;
            members.put("key", &record.key.as_deref().map(Bytes))?;
            members.put("value", &record.value.as_deref().map(Bytes))?;
            members.to_string()
        }
    };
    let mut place = Fields::default();
    place.put("topic", topic)?;
    place.put("partition", &record.partition)?;
    place.put("offset", &record.offset)?;
    let mut headers = Fields::default();
    for (name, value) in record.headers.iter().filter(|(name, _)| name != OURS) {
        headers.put(name, &value.as_deref().map(Bytes))?;
    }
    if !headers.0.is_empty() {
        place.put_raw("headers", headers.to_string());
    }
    // Each topic has its own fields in front.
    line.truncate(line.len() - 1);
    line.push_str(&format!(",\"record\":{place}}}"));
    Ok(line)
}

/// Bytes of the original are shown as text where they are text.
fn rejection_line(rejection: &Rejection<'_>) -> Result<String> {
    let mut members = Fields::default();
    members.put("code", &rejection.code)?;
    members.put("reason", &rejection.reason)?;
    members.put("time", &rejection.time)?;
    members.put("topic", &rejection.topic)?;
    members.put("partition", &rejection.partition)?;
    members.put("offset", &rejection.offset)?;
    members.put("command_id", &rejection.command_id)?;
    members.put("namespace", &rejection.namespace)?;
    members.put("key", &rejection.key.as_ref().map(|key| Bytes(&key.0)))?;
    members.put("value", &rejection.value.as_ref().map(|value| Bytes(&value.0)))?;
    members.put("value_bytes", &rejection.value_bytes)?;
    let mut headers = Fields::default();
    for header in &rejection.headers {
        headers.put(&header.key, &header.value.as_ref().map(|value| Bytes(&value.0)))?;
    }
    if !headers.0.is_empty() {
        members.put_raw("headers", headers.to_string());
    }
    Ok(members.to_string())
}

/// Bytes as text where they are UTF-8, else as `{"base64": ...}`.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_binary) => serializer.collect_map([("base64", STANDARD.encode(self.0))]),
        }
    }
}

/// Fields of an object, in order; fields that are null are left out.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Adds a field.
    ///
    /// # Errors
    /// It cannot be written in JSON.
    pub fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        self.put_raw(name, serde_json::to_string(value)?);
        Ok(())
    }

    /// Adds a field that is JSON already.
    pub fn put_raw(&mut self, name: &str, json: String) {
        if json != "null" {
            self.0.push((name.to_owned(), json));
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = |(name, json): &(String, String)| format!("{}:{json}", serde_json::json!(name));
        let members: Vec<_> = self.0.iter().map(member).collect();
        write!(f, "{{{}}}", members.join(","))
    }
}

/// An object that keeps the order of its fields.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Object)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The JSON of a record without absent and empty fields, with readable payloads.
fn tidy(json: &str) -> Result<String> {
    let mut out = String::with_capacity(json.len());
    tidy_value(json, &mut out)?;
    Ok(out)
}

/// The depth of the schemas: payloads are not looked into.
fn tidy_value(json: &str, out: &mut String) -> Result<()> {
    match json.as_bytes().first() {
        Some(b'{') => {
            let Object(members) = serde_json::from_str(json)?;
            if let Some(payload) = payload(&members)? {
                out.push_str(&payload);
                return Ok(());
            }
            let mut tidied = Fields::default();
            for (name, value) in members {
                if !is_empty(value.get()) {
                    let mut text = String::new();
                    tidy_value(value.get(), &mut text)?;
                    tidied.put_raw(&name, text);
                }
            }
            out.push_str(&tidied.to_string());
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json)?;
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                tidy_value(item.get(), out)?;
            }
            out.push(']');
        }
        Some(_) | None => out.push_str(json),
    }
    Ok(())
}

fn is_empty(json: &str) -> bool {
    ["null", "[]", "{}"].contains(&json)
}

/// A payload as commands in JSON write it: a JSON value as it is, any other spelled out. None: it is no payload.
fn payload(members: &[(Cow<'_, str>, &RawValue)]) -> Result<Option<String>> {
    let member = |name: &str| members.iter().find(|(other, _)| other == name).map(|(_, value)| value.get());
    // Only a payload has these fields. Names given by users are keys of maps whose values are payloads.
    let (Some(encoding), Some(metadata), Some(text)) =
        (member("encoding"), member("metadata"), member("text"))
    else {
        return Ok(None);
    };
    let is_plain = metadata == "{}" && member("metadata_binary").is_none_or(is_empty);
    let text: Option<String> = serde_json::from_str(text)?;
    if let (true, Some(text)) = (is_plain && encoding == format!("\"{JSON}\""), text)
        && serde_json::from_str::<&RawValue>(&text).is_ok()
        && !text.contains("$payload")
    {
        // In JSON text, line ends are only between tokens.
        return Ok(Some(text.trim().replace(['\n', '\r'], " ")));
    }
    let mut spelled = Fields::default();
    for (name, value) in members.iter().filter(|(_, value)| !is_empty(value.get())) {
        spelled.put_raw(name, value.get().to_owned());
    }
    Ok(Some(format!("{{\"$payload\":{spelled}}}")))
}

#[cfg(test)]
mod tests {
    use everlog_avro::blob::Blob;
    use everlog_avro::event::WorkflowExecutionSignaled;
    use everlog_avro::payload::Payload;

    use super::*;

    fn json(text: &str) -> Payload<'static> {
        Payload { encoding: JSON.into(), text: Some(text.to_owned().into()), ..Payload::default() }
    }

    fn signaled(input: Vec<Payload<'static>>) -> DecodedRecord {
        let signaled = WorkflowExecutionSignaled {
            signal_name: "approved".into(),
            input: Some(input),
            identity: None,
            header: None,
            external_workflow_id: None,
            external_run_id: None,
            request_id: None,
        };
        DecodedRecord::Event(Box::new(WorkflowEvent {
            namespace: "default".into(),
            workflow_id: "order-1".into(),
            event_id: 3,
            r#type: "WorkflowExecutionSignaled".into(),
            workflow_execution_signaled: Some(Box::new(signaled)),
            ..WorkflowEvent::default()
        }))
    }

    fn shown(told: &DecodedRecord) -> String {
        let headers = vec![(OURS.to_owned(), None), ("trace".to_owned(), Some("x\u{1}".into()))];
        let record = Record { partition: 3, offset: 17, headers, ..Record::default() };
        line("everlog.events", &record, told).expect("a line")
    }

    #[test]
    fn payloads_in_json_stand_as_they_are_and_what_is_absent_is_left_out() {
        let line =
            shown(&signaled(vec![json("{\"total\": 12345678901234567890123,\n \"a\": []}"), json("null")]));
        assert!(line.contains(r#""input":[{"total": 12345678901234567890123,  "a": []},null]"#), "{line}");
        assert!(line.starts_with(r#"{"namespace":"default","workflow_id":"order-1""#), "{line}");
        assert!(!line.contains("timer_started") && !line.contains('\n'), "{line}");
        let place =
            r#""record":{"topic":"everlog.events","partition":3,"offset":17,"headers":{"trace":"x\u0001"}}}"#;
        assert!(line.ends_with(place), "{line}");
    }

    #[test]
    fn other_payloads_are_spelled_out_as_commands_write_them() {
        let binary = Payload {
            encoding: "binary/plain".into(),
            data: Some(Blob(vec![1, 2].into())),
            ..Payload::default()
        };
        for (payload, expected) in [
            (binary, r#""input":[{"$payload":{"encoding":"binary/plain","data":"AQI="}}]"#),
            (json("{no json"), r#""input":[{"$payload":{"encoding":"json/plain","text":"{no json"}}]"#),
            (
                json(r#"{"$payload":1}"#),
                r#""input":[{"$payload":{"encoding":"json/plain","text":"{\"$payload\":1}"}}]"#,
            ),
        ] {
            let line = shown(&signaled(vec![payload]));
            assert!(line.contains(expected), "{line}");
        }
    }

    #[test]
    fn every_line_is_json() {
        let rejection = Rejection {
            code: "not_json".into(),
            key: Some(Blob("order-1".into())),
            value: Some(Blob(vec![0xff, 0].into())),
            ..Rejection::default()
        };
        let told = [
            signaled(vec![json("[1]")]),
            DecodedRecord::Outcome(Box::new(Outcome { status: "done".into(), ..Outcome::default() })),
            DecodedRecord::Rejection(Box::new(rejection)),
            DecodedRecord::Unreadable("why".into()),
        ];
        for told in told {
            let line = shown(&told);
            let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(value["record"]["offset"], 17, "{line}");
            if let DecodedRecord::Rejection(_) = told {
                assert_eq!(
                    (value["key"].as_str(), value["value"]["base64"].as_str()),
                    (Some("order-1"), Some("/wA="))
                );
            }
        }
    }
}
