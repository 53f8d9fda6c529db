//! The search attributes of a namespace: names, types, and the check of values.
//!
//! System attributes are set by the server only. Predefined ones exist in every namespace. Custom ones are registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use everlog_engine::api_types::MapEntry;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::workflow_task_completed::{Fault, ValidationFailure};
use everlog_engine::payload::Payload;
use everlog_temporal_api::enums::IndexedValueType as Type;
use everlog_visibility::attribute::{self, AttributeSource, AttributeType, PREDEFINED, SERVER_SET, SYSTEM};
use prost::Message;
use serde_json::Value;

use crate::codec::proto_map::entries;
use crate::codec::proto_time;
use crate::namespaces::namespace::{Namespace, NamespaceRecord};

/// Further names that cannot be registered.
const RESERVED: &[&str] = &["NamespaceId", "Memo", "MemoEncoding", "VisibilityTaskKey"];
const RESERVED_PREFIX: &str = "Temporal";

/// Custom attributes of one type in one namespace.
pub(crate) const OF_A_TYPE_MAX: usize = 100;

/// The system and predefined attributes.
pub(crate) fn everywhere() -> impl Iterator<Item = (String, i32)> {
    let system = SYSTEM.iter().map(|(name, attribute)| (*name, attribute.kind()));
    system.chain(PREDEFINED).map(|(name, kind)| (name.to_owned(), kind.number()))
}

/// True of a name that cannot be registered.
pub(crate) fn is_reserved(name: &str) -> bool {
    is_there_always(name) || RESERVED.contains(&name) || name.starts_with(RESERVED_PREFIX)
}

/// True of a system or predefined attribute.
pub(crate) fn is_there_always(name: &str) -> bool {
    attribute::known(name).is_some()
}

/// The name of a type in SDKs and in metadata.
pub(crate) fn type_name(r#type: Type) -> &'static str {
    AttributeType::from_number(r#type.into()).map_or("Unspecified", AttributeType::name)
}

/// Checks an encoded map of search attributes, and writes the types into the metadata of its values.
///
/// # Errors
/// What is wrong with it, as text. A map that is unreadable or too large is returned as it is, because others refuse it.
pub(crate) fn typed(namespace: &NamespaceRecord, given: &Bytes) -> Result<Bytes, String> {
    fitted(namespace, given).map_err(|(_fault, reason)| reason)
}

fn fitted(namespace: &NamespaceRecord, given: &Bytes) -> Result<Bytes, (Fault, String)> {
    let mut typed = BytesMut::with_capacity(given.len());
    for entry in entries(given) {
        let Ok(entry) = entry else { return Ok(given.clone()) };
        let r#type = type_of(namespace, entry.key)?;
        let payload = Payload::decode(entry.value).unwrap_or_default();
        check(entry.key, r#type, &payload).map_err(|reason| (Fault::Values, reason))?;
        let mut value = BytesMut::from(entry.value);
        if metadata(&payload, "type").is_none() {
            let named =
                MapEntry { key: "type".into(), value: Bytes::from_static(type_name(r#type).as_bytes()) };
            prost::encoding::message::encode(1, &named, &mut value);
        }
        let entry = MapEntry { key: entry.key.into(), value: value.freeze() };
        prost::encoding::message::encode(1, &entry, &mut typed);
    }
    Ok(Bytes::copy_from_slice(&typed))
}

/// Types the search attributes of commands. A misfit is reported with the index of its command. Those of a child are its
/// namespace's, which is among the `others` where it is not the parent's.
pub(crate) fn of_commands(
    own: &NamespaceRecord,
    others: &[Arc<Namespace>],
    commands: &mut [Command],
    keys_max: i64,
) -> Vec<ValidationFailure> {
    let mut bad = Vec::new();
    for (command, place) in commands.iter_mut().zip(0_u32..) {
        let mut namespace = own;
        let given = match &mut command.order {
            Some(CommandAttributes::UpsertSearchAttributes(upsert)) => &mut upsert.search_attributes,
            Some(CommandAttributes::StartChild(start)) => {
                let other = others.iter().find(|other| other.record.name == start.namespace);
                namespace = other.map_or(own, |other| &other.record);
                &mut start.search_attributes
            }
            Some(CommandAttributes::ContinueAsNew(next)) => &mut next.search_attributes,
            _without_attributes => continue,
        };
        let Some(map) = given else { continue };
        // The decision refuses maps with too many entries, with their number.
        if i64::try_from(entries(map).count()).is_ok_and(|keys| keys > keys_max) {
            continue;
        }
        match fitted(namespace, map) {
            Ok(typed) => *map = typed,
            Err((fault, reason)) => {
                bad.push(ValidationFailure { command: place, reason, fault: fault.into() })
            }
        }
    }
    bad
}

fn type_of(namespace: &NamespaceRecord, name: &str) -> Result<Type, (Fault, String)> {
    let known = attribute::known(name);
    let is_system = known.as_ref().is_some_and(|known| matches!(known.source, AttributeSource::System(_)));
    if is_system || SERVER_SET.contains(&name) {
        return Err((Fault::Values, format!("{name} attribute can't be set in SearchAttributes")));
    }
    let of_number = |number: i32| Type::try_from(number).ok();
    let registered = namespace.search_attributes.get(name).and_then(|number| of_number(*number));
    let predefined = known.and_then(|known| of_number(known.kind.number()));
    registered.or(predefined).ok_or_else(|| {
        let namespace = &namespace.name;
        (
            Fault::Attributes,
            format!("Namespace {namespace} has no mapping defined for search attribute {name}"),
        )
    })
}

fn check(name: &str, r#type: Type, payload: &Payload) -> Result<(), String> {
    let wrong = |value: &str| {
        Err(format!("invalid value for search attribute {name} of type {}: {value}", type_name(r#type)))
    };
    match metadata(payload, "encoding") {
        Some(encoding) if encoding == "binary/null" => Ok(()),
        Some(encoding) if encoding == "json/plain" => match serde_json::from_slice(&payload.data) {
            Ok(value) if fits(r#type, &value) => Ok(()),
            Ok(value) => wrong(&shown(&value)),
            Err(_error) => wrong("it is no JSON"),
        },
        Some(_) | None => wrong("its encoding is neither json/plain nor binary/null"),
    }
}

/// The last entry of a key counts, as in every protobuf map.
fn metadata<'a>(payload: &'a Payload, key: &str) -> Option<&'a Bytes> {
    payload.metadata.iter().rev().find(|entry| entry.key == key).map(|entry| &entry.value)
}

/// Checks a value: a value of the type, a list of one, or null. A keyword list is always a list.
fn fits(r#type: Type, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) if r#type == Type::KeywordList => items.iter().all(Value::is_string),
        Value::Array(items) => match items.as_slice() {
            [] => true,
            [item] => is_one(r#type, item),
            _several => false,
        },
        value => is_one(r#type, value),
    }
}

fn is_one(r#type: Type, value: &Value) -> bool {
    match r#type {
        Type::Text | Type::Keyword => value.is_string(),
        Type::Int => value.is_i64(),
        Type::Double => value.is_number(),
        Type::Bool => value.is_boolean(),
        Type::Datetime => value.as_str().is_some_and(proto_time::is_rfc3339),
        Type::KeywordList | Type::Unspecified => false,
    }
}

/// A value as Temporal's server shows it.
fn shown(value: &Value) -> String {
    let all = |words: Vec<String>| words.join(" ");
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", all(items.iter().map(shown).collect())),
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            let fields = fields.into_iter().map(|(key, value)| format!("{key}:{}", shown(value)));
            format!("map[{}]", all(fields.collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::Fields;
    use everlog_engine::machine::memo_and_search_attributes::UpsertSearchAttributes;

    use super::*;

    const TYPES: [Type; 7] =
        [Type::Text, Type::Keyword, Type::Int, Type::Double, Type::Bool, Type::Datetime, Type::KeywordList];

    fn namespace() -> NamespaceRecord {
        let of = |r#type: Type| (format!("My{}", type_name(r#type)), i32::from(r#type));
        let search_attributes = TYPES.into_iter().map(of).collect();
        NamespaceRecord { name: "shop".into(), search_attributes, ..NamespaceRecord::default() }
    }

    fn payload(encoding: &str, data: &str) -> Payload {
        let encoding = MapEntry { key: "encoding".into(), value: encoding.to_owned().into() };
        Payload { metadata: vec![encoding], data: data.to_owned().into() }
    }

    fn map(name: &str, payload: &Payload) -> Bytes {
        let entry = MapEntry { key: name.into(), value: payload.encode_to_vec().into() };
        Fields { entries: vec![entry] }.encode_to_vec().into()
    }

    fn refusal(name: &str, data: &str) -> Option<String> {
        typed(&namespace(), &map(name, &payload("json/plain", data))).err()
    }

    /// What Temporal's server 1.29 takes; the rest it refuses.
    #[test]
    fn values_fit_their_types_or_are_refused() {
        let values = [
            ("\"x\"", "Text Keyword"),
            ("3", "Int Double"),
            ("3.0", "Double"),
            ("1.5", "Double"),
            ("true", "Bool"),
            ("null", "Text Keyword Int Double Bool Datetime KeywordList"),
            ("[]", "Text Keyword Int Double Bool Datetime KeywordList"),
            ("[\"a\"]", "Text Keyword KeywordList"),
            ("[3]", "Int Double"),
            ("[\"a\", \"b\"]", "KeywordList"),
            ("[1, 2]", ""),
            ("{\"a\": 1}", ""),
            ("\"3\"", "Text Keyword"),
            ("\"true\"", "Text Keyword"),
            ("\"2026-01-02T03:04:05Z\"", "Text Keyword Datetime"),
            ("\"2026-01-02T03:04:05.123456789+02:00\"", "Text Keyword Datetime"),
            ("[\"2026-01-02T03:04:05Z\"]", "Text Keyword Datetime KeywordList"),
            ("\"2026-01-02\"", "Text Keyword"),
            ("1e30", "Double"),
            ("-1", "Int Double"),
            ("9223372036854775807", "Int Double"),
            ("9223372036854775808", "Double"),
            ("", ""),
        ];
        for (value, fitting) in values {
            let fits = |r#type: &Type| refusal(&format!("My{}", type_name(*r#type)), value).is_none();
            let found: Vec<_> = TYPES.into_iter().filter(fits).map(type_name).collect();
            assert_eq!(found.join(" "), fitting, "{value}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_of_temporals_server() {
        let told = |name: &str, data: &str| refusal(name, data).unwrap_or_default();
        assert_eq!(told("nope", "1"), "Namespace shop has no mapping defined for search attribute nope");
        for name in ["RunId", "TemporalUsedWorkerDeploymentVersions", "TemporalExternalPayloadCount"] {
            assert_eq!(told(name, "\"x\""), format!("{name} attribute can't be set in SearchAttributes"));
        }
        assert_eq!(told("TemporalReportedProblems", "[\"category=x\"]"), "");
        let wrong = "invalid value for search attribute MyInt of type Int: ";
        assert_eq!(told("MyInt", "\"x\""), format!("{wrong}x"));
        assert_eq!(told("MyInt", "[\"a\", \"b\"]"), format!("{wrong}[a b]"));
        assert_eq!(told("MyInt", "{\"a\": 1}"), format!("{wrong}map[a:1]"));
        assert_eq!(told("TemporalChangeVersion", "[\"x\"]"), "");
        assert!(told("TemporalChangeVersion", "\"x\"").contains("of type KeywordList: x"));
        let binary = typed(&namespace(), &map("MyKeyword", &payload("binary/plain", "\"x\"")));
        assert!(binary.is_err_and(|reason| reason.contains("MyKeyword of type Keyword")));
    }

    #[test]
    fn types_are_written_into_the_metadata_unless_they_stand_there() {
        let type_of = |given: Payload| {
            let typed = typed(&namespace(), &map("MyInt", &given)).expect("it fits");
            let entry = Fields::decode(typed).expect("a map").entries.remove(0);
            let payload = Payload::decode(entry.value).expect("a payload");
            assert_eq!((entry.key.as_str(), &payload.data), ("MyInt", &given.data));
            String::from_utf8_lossy(metadata(&payload, "type").expect("a type")).into_owned()
        };
        assert_eq!(type_of(payload("json/plain", "3")), "Int");
        assert_eq!(type_of(payload("binary/null", "")), "Int");
        let mut own = payload("json/plain", "3");
        own.metadata.push(MapEntry { key: "type".into(), value: Bytes::from_static(b"Double") });
        assert_eq!(type_of(own), "Double", "a client's own word stays");
    }

    #[test]
    fn names_of_the_server_cannot_be_registered() {
        for name in ["WorkflowId", "BuildIds", "TemporalAnything", "Memo", "NamespaceId"] {
            assert!(is_reserved(name), "{name}");
        }
        assert!(!is_reserved("CustomerId"));
        assert_eq!(everywhere().count(), 33);
    }

    #[test]
    fn a_command_that_does_not_fit_is_told_with_its_place() {
        let upsert = |name: &str| {
            let search_attributes = Some(map(name, &payload("json/plain", "3")));
            let order =
                CommandAttributes::UpsertSearchAttributes(UpsertSearchAttributes { search_attributes });
            Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
        };
        let mut commands = [upsert("MyInt"), upsert("nope"), Command::default()];
        let before = commands[1].clone();
        let bad = of_commands(&namespace(), &[], &mut commands, 100);
        assert_eq!(bad.iter().map(|bad| bad.command).collect::<Vec<_>>(), [1]);
        assert!(bad[0].reason.ends_with("search attribute nope"));
        assert_eq!(commands[1], before);
        assert_ne!(commands[0], upsert("MyInt"), "it has its type now");
        assert_eq!(of_commands(&namespace(), &[], &mut [before], 0), [], "the number is another's to judge");
    }
}
