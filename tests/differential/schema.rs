//! Messages of the API as trees, read and written by the descriptor set: no field is left out because nobody wrote code for it.
//!
//! A tree is JSON: fields by their names, enum values by theirs, bytes as text (or `hex:`), a duration as `3.5s`, a
//! timestamp as `time <seconds>.<nanoseconds>`, an `Any` as what it holds with `@type` beside its
//! fields. What the descriptors do not know is kept as `unknown_<number>`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use bytes::Buf;
use prost::Message;
use prost::encoding::{self, WireType};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use serde_json::{Map, Number, Value};

/// Where one method is and what it takes and gives.
#[derive(Clone, Debug)]
pub struct Method {
    pub path: String,
    pub input: String,
    pub output: String,
}

/// What the descriptor set says, by full names with a dot before them.
#[derive(Debug, Default)]
pub struct Schema {
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, Vec<(i32, String)>>,
    methods: BTreeMap<String, Method>,
}

impl Schema {
    pub fn new() -> Result<Self> {
        let mut schema = Self::default();
        for file in FileDescriptorSet::decode(everlog_temporal_api::DESCRIPTOR)?.file {
            let package = format!(".{}", file.package());
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let (input, output) = (method.input_type().to_owned(), method.output_type().to_owned());
                    schema.methods.insert(method.name().to_owned(), Method { path, input, output });
                }
            }
            file.enum_type.iter().for_each(|one| schema.add_enum(&package, one));
            file.message_type.into_iter().for_each(|one| schema.add_message(&package, one));
        }
        Ok(schema)
    }

    fn add_enum(&mut self, scope: &str, one: &prost_types::EnumDescriptorProto) {
        let values = one.value.iter().map(|value| (value.number(), value.name().to_owned())).collect();
        self.enums.insert(format!("{scope}.{}", one.name()), values);
    }

    fn add_message(&mut self, scope: &str, mut message: DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message.enum_type.iter().for_each(|one| self.add_enum(&name, one));
        std::mem::take(&mut message.nested_type).into_iter().for_each(|one| self.add_message(&name, one));
        self.messages.insert(name, message);
    }

    /// A method of either service.
    pub fn method(&self, name: &str) -> Result<&Method> {
        self.methods.get(name).with_context(|| format!("there is no method {name}"))
    }

    /// The names of an enum's values, by its full name.
    pub fn values_of(&self, name: &str) -> Vec<String> {
        self.enums.get(name).into_iter().flatten().map(|(_, value)| value.clone()).collect()
    }

    fn message(&self, name: &str) -> Result<&DescriptorProto> {
        self.messages.get(name).with_context(|| format!("there is no message {name}"))
    }

    fn is_map(&self, field: &FieldDescriptorProto) -> bool {
        field.label() == Label::Repeated
            && self
                .messages
                .get(field.type_name())
                .is_some_and(|message| message.options.as_ref().is_some_and(|options| options.map_entry()))
    }

    /// Reads a message of this type.
    pub fn decode(&self, name: &str, mut bytes: &[u8]) -> Result<Value> {
        match name {
            ".google.protobuf.Timestamp" => {
                let time = prost_types::Timestamp::decode(bytes)?;
                return Ok(format!("time {}.{:09}", time.seconds, time.nanos).into());
            }
            ".google.protobuf.Duration" => {
                let duration = prost_types::Duration::decode(bytes)?;
                return Ok(format!("{}s", seconds(duration.seconds, duration.nanos)).into());
            }
            ".google.protobuf.Any" => {
                let any = prost_types::Any::decode(bytes)?;
                let name = any.type_url.rsplit('/').next().unwrap_or_default();
                let mut tree = self.decode(&format!(".{name}"), &any.value)?;
                tree["@type"] = name.into();
                return Ok(tree);
            }
            _message => {}
        }
        let message = self.message(name)?;
        let mut tree = Map::new();
        while bytes.has_remaining() {
            let (number, wire_type) = encoding::decode_key(&mut bytes)?;
            let Some(field) = message.field.iter().find(|field| field.number() == number as i32) else {
                tree.insert(format!("unknown_{number}"), raw_value(wire_type, &mut bytes)?);
                continue;
            };
            let is_packed = wire_type == WireType::LengthDelimited && is_packable(field);
            if is_packed && field.label() == Label::Repeated {
                let mut packed = chunk(&mut bytes)?;
                while packed.has_remaining() {
                    let value = self.scalar(field, packed_type(field), &mut packed)?;
                    push(&mut tree, field.name(), value);
                }
            } else if self.is_map(field) {
                let entry = self.decode(field.type_name(), chunk(&mut bytes)?)?;
                let key = entry.get("key").map(text_of).unwrap_or_default();
                let value = entry.get("value").cloned().unwrap_or(Value::Null);
                let map = tree.entry(field.name()).or_insert_with(|| Value::Object(Map::new()));
                map.as_object_mut().context("a map")?.insert(key, value);
            } else {
                let value = self.scalar(field, wire_type, &mut bytes)?;
                match field.label() {
                    Label::Repeated => push(&mut tree, field.name(), value),
                    _singular => drop(tree.insert(field.name().to_owned(), value)),
                }
            }
        }
        Ok(Value::Object(tree))
    }

    fn scalar(&self, field: &FieldDescriptorProto, wire_type: WireType, bytes: &mut &[u8]) -> Result<Value> {
        ensure!(wire_type == packed_type(field), "{} has another wire type", field.name());
        Ok(match field.r#type() {
            Type::Message => self.decode(field.type_name(), chunk(bytes)?)?,
            Type::String | Type::Bytes => bytes_text(chunk(bytes)?).into(),
            Type::Enum => {
                let number = encoding::decode_varint(bytes)? as i32;
                let values = self.enums.get(field.type_name()).context("an enum")?;
                let name = values.iter().find(|(value, _)| *value == number);
                name.map_or_else(|| number.into(), |(_, name)| name.clone().into())
            }
            Type::Bool => (encoding::decode_varint(bytes)? != 0).into(),
            Type::Int32 | Type::Int64 => (encoding::decode_varint(bytes)? as i64).into(),
            Type::Uint32 | Type::Uint64 => encoding::decode_varint(bytes)?.into(),
            Type::Double => {
                ensure!(bytes.remaining() >= 8, "a double is cut off");
                Number::from_f64(bytes.get_f64_le()).map_or(Value::Null, Value::Number)
            }
            Type::Float => {
                ensure!(bytes.remaining() >= 4, "a float is cut off");
                Number::from_f64(f64::from(bytes.get_f32_le())).map_or(Value::Null, Value::Number)
            }
            other => bail!("{} has the type {other:?}, which the API did not use so far", field.name()),
        })
    }

    /// Writes a tree as a message of this type.
    pub fn encode(&self, name: &str, tree: &Value) -> Result<Vec<u8>> {
        if name == ".google.protobuf.Duration" {
            return duration(tree);
        }
        if let (".google.protobuf.Any", Some(inner)) = (name, tree["@type"].as_str()) {
            let mut body = tree.clone();
            body.as_object_mut().map(|fields| fields.remove("@type"));
            let value = self.encode(&format!(".{inner}"), &body)?;
            let type_url = format!("type.googleapis.com/{inner}");
            return Ok(prost_types::Any { type_url, value }.encode_to_vec());
        }
        let message = self.message(name)?;
        let mut bytes = Vec::new();
        for (key, value) in tree.as_object().with_context(|| format!("{name} is not {tree}"))? {
            let field = message.field.iter().find(|field| field.name() == key);
            let field = field.with_context(|| format!("{name} has no field {key}"))?;
            match value {
                Value::Null => {}
                // What has no presence is not written where it says nothing: so every client does it.
                Value::Bool(false) if field.oneof_index.is_none() => {}
                Value::Object(entries) if self.is_map(field) => {
                    for (key, value) in entries {
                        let entry = Map::from_iter([
                            ("key".to_owned(), Value::from(key.clone())),
                            ("value".to_owned(), value.clone()),
                        ]);
                        let entry = self.encode(field.type_name(), &Value::Object(entry))?;
                        write_chunk(field, &entry, &mut bytes);
                    }
                }
                Value::Array(values) => {
                    for value in values {
                        self.write(field, value, &mut bytes)?;
                    }
                }
                value => self.write(field, value, &mut bytes)?,
            }
        }
        Ok(bytes)
    }

    fn write(&self, field: &FieldDescriptorProto, value: &Value, bytes: &mut Vec<u8>) -> Result<()> {
        let number = field.number() as u32;
        let varint = |value: u64, bytes: &mut Vec<u8>| {
            encoding::encode_key(number, WireType::Varint, bytes);
            encoding::encode_varint(value, bytes);
        };
        match (field.r#type(), value) {
            (Type::Message, value) => {
                let inner = self.encode(field.type_name(), value)?;
                write_chunk(field, &inner, bytes);
            }
            (Type::String, Value::String(text)) => write_chunk(field, text.as_bytes(), bytes),
            (Type::Bytes, Value::String(text)) => write_chunk(field, &text_bytes(text)?, bytes),
            (Type::Enum, Value::String(name)) => {
                let values = self.enums.get(field.type_name()).context("an enum")?;
                let value = values.iter().find(|(_, value)| value == name);
                varint(value.with_context(|| format!("there is no {name}"))?.0 as u64, bytes);
            }
            (Type::Bool, Value::Bool(value)) => varint(u64::from(*value), bytes),
            (Type::Double, Value::Number(value)) => {
                encoding::encode_key(number, WireType::SixtyFourBit, bytes);
                bytes.extend_from_slice(&value.as_f64().context("a double")?.to_le_bytes());
            }
            (Type::Float, Value::Number(value)) => {
                encoding::encode_key(number, WireType::ThirtyTwoBit, bytes);
                bytes.extend_from_slice(&(value.as_f64().context("a float")? as f32).to_le_bytes());
            }
            (_number, Value::Number(value)) => varint(value.as_i64().context("an integer")? as u64, bytes),
            (kind, value) => bail!("{} of type {kind:?} cannot be {value}", field.name()),
        }
        Ok(())
    }
}

/// A message whose type is not known, as numbered fields: details of an error.
pub fn decode_unknown(mut bytes: &[u8]) -> Result<Value> {
    let mut tree = Map::new();
    while bytes.has_remaining() {
        let (number, wire_type) = encoding::decode_key(&mut bytes)?;
        tree.insert(number.to_string(), raw_value(wire_type, &mut bytes)?);
    }
    Ok(Value::Object(tree))
}

fn raw_value(wire_type: WireType, bytes: &mut &[u8]) -> Result<Value> {
    Ok(match wire_type {
        WireType::Varint => encoding::decode_varint(bytes)?.into(),
        WireType::LengthDelimited => bytes_text(chunk(bytes)?).into(),
        other => bail!("an unknown field of wire type {other:?}"),
    })
}

fn chunk<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let len = usize::try_from(encoding::decode_varint(bytes)?)?;
    ensure!(len <= bytes.len(), "a field is cut off");
    let (chunk, rest) = bytes.split_at(len);
    *bytes = rest;
    Ok(chunk)
}

fn write_chunk(field: &FieldDescriptorProto, chunk: &[u8], bytes: &mut Vec<u8>) {
    encoding::encode_key(field.number() as u32, WireType::LengthDelimited, bytes);
    encoding::encode_varint(chunk.len() as u64, bytes);
    bytes.extend_from_slice(chunk);
}

fn push(tree: &mut Map<String, Value>, name: &str, value: Value) {
    let list = tree.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(values) = list {
        values.push(value);
    }
}

fn is_packable(field: &FieldDescriptorProto) -> bool {
    packed_type(field) != WireType::LengthDelimited
}

fn packed_type(field: &FieldDescriptorProto) -> WireType {
    match field.r#type() {
        Type::Message | Type::String | Type::Bytes => WireType::LengthDelimited,
        Type::Double => WireType::SixtyFourBit,
        Type::Float => WireType::ThirtyTwoBit,
        _number => WireType::Varint,
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Bytes as text where they are text, in hex else.
pub fn bytes_text(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.chars().any(|sign| sign.is_control() && sign != '\n'));
    text.map_or_else(
        || format!("hex:{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        str::to_owned,
    )
}

fn text_bytes(text: &str) -> Result<Vec<u8>> {
    let Some(hex) = text.strip_prefix("hex:") else { return Ok(text.as_bytes().to_vec()) };
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

fn seconds(seconds: i64, nanos: i32) -> String {
    if nanos == 0 {
        return seconds.to_string();
    }
    format!("{}", seconds as f64 + f64::from(nanos) / 1e9)
}

fn duration(tree: &Value) -> Result<Vec<u8>> {
    let text = tree.as_str().and_then(|text| text.strip_suffix('s'));
    let value: f64 = text.with_context(|| format!("{tree} is no duration"))?.parse()?;
    let whole = value.trunc();
    let duration =
        prost_types::Duration { seconds: whole as i64, nanos: ((value - whole) * 1e9).round() as i32 };
    Ok(duration.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Schema;

    #[test]
    fn a_tree_comes_back_as_it_was() -> anyhow::Result<()> {
        let schema = Schema::new()?;
        let name = schema.method("StartWorkflowExecution")?.input.clone();
        let tree = json!({
            "namespace": "default",
            "workflow_id": "order-1",
            "input": {"payloads": [{"metadata": {"encoding": "json/plain"}, "data": "1"}]},
            "workflow_run_timeout": "1.5s",
            "workflow_id_reuse_policy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE",
            "request_eager_execution": true,
        });
        let bytes = schema.encode(&name, &tree)?;
        assert_eq!(schema.decode(&name, &bytes)?, tree);
        // A field that no descriptor has stays to be seen.
        let more = [bytes, vec![0xf8, 0x3f, 7]].concat();
        assert_eq!(schema.decode(&name, &more)?["unknown_1023"], json!(7));
        assert!(schema.encode(&name, &json!({"no_such_field": 1})).is_err());
        Ok(())
    }
}
