//! The identity of a schema: a normalised text that is equal for two spellings of one schema.
//!
//! It holds what Confluent's registry compares: names with their namespaces, and all attributes in order, documentation and
//! unknown ones included. A type is written once, then by its name.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::avro::{AvroSchema, Field, Named, NamedBody, Type, TypeId, TypeShape};

impl AvroSchema {
    /// The identity: equal texts mean the same schema.
    pub(crate) fn identity(&self) -> String {
        let look = |id: TypeId| self.types.get(id);
        let mut writer = IdentityWriter { look: &look, by_name: false, written: HashSet::new() };
        writer.at(self.root).to_string()
    }
}

/// The identity of one definition, with other named types by name only. `look` finds a type; `None`: it is not defined yet.
pub(super) fn definition<'a>(this: &'a Type, look: &dyn Fn(TypeId) -> Option<&'a Type>) -> Value {
    IdentityWriter { look, by_name: true, written: HashSet::new() }.written(this)
}

struct IdentityWriter<'a, 'l> {
    look: &'l dyn Fn(TypeId) -> Option<&'a Type>,
    /// Only the first named type is written in full.
    by_name: bool,
    /// The named types that are written in full.
    written: HashSet<&'a str>,
}

impl<'a> IdentityWriter<'a, '_> {
    fn at(&mut self, id: TypeId) -> Value {
        match (self.look)(id) {
            Some(this) => self.written(this),
            None => json!(id),
        }
    }

    fn written(&mut self, this: &'a Type) -> Value {
        let mut members = match &this.shape {
            TypeShape::Primitive(primitive) if this.attributes.is_empty() => return json!(primitive.name()),
            TypeShape::Union(branches) => return branches.iter().map(|branch| self.at(*branch)).collect(),
            TypeShape::Named(named) if self.is_known(named) => return json!(named.full_name),
            TypeShape::Named(named) => self.named(named),
            TypeShape::Primitive(_) => Map::new(),
            TypeShape::Array(items) => Map::from_iter([("items".to_owned(), self.at(*items))]),
            TypeShape::Map(values) => Map::from_iter([("values".to_owned(), self.at(*values))]),
        };
        members.entry("type").or_insert_with(|| json!(this.shape.kind()));
        with(members, &this.attributes)
    }

    /// Whether the type is written as its name.
    fn is_known(&mut self, named: &'a Named) -> bool {
        (self.by_name && !self.written.is_empty()) || !self.written.insert(&named.full_name)
    }

    fn named(&mut self, named: &'a Named) -> Map<String, Value> {
        let mut members = documented(named.doc.as_deref(), &named.aliases);
        members.insert("name".into(), json!(named.full_name));
        match &named.body {
            NamedBody::Record { is_error, fields } => {
                if *is_error {
                    members.insert("type".into(), json!("error"));
                }
                members.insert("fields".into(), fields.iter().map(|field| self.field(field)).collect());
            }
            NamedBody::Enum { symbols, default } => {
                members.insert("symbols".into(), json!(symbols));
                if let Some(default) = default {
                    members.insert("default".into(), json!(default));
                }
            }
            NamedBody::Fixed { size } => {
                members.insert("size".into(), json!(size));
            }
        }
        members
    }

    fn field(&mut self, field: &'a Field) -> Value {
        let mut members = documented(field.doc.as_deref(), &field.aliases);
        members.insert("name".into(), json!(field.name));
        members.insert("type".into(), self.at(field.type_id));
        members.insert("order".into(), json!(field.order));
        if let Some(default) = &field.default {
            members.insert("default".into(), default.clone());
        }
        with(members, &field.attributes)
    }
}

fn documented(doc: Option<&str>, aliases: &[String]) -> Map<String, Value> {
    let mut members = Map::new();
    if let Some(doc) = doc {
        members.insert("doc".into(), json!(doc));
    }
    if !aliases.is_empty() {
        let mut sorted = aliases.to_vec();
        sorted.sort_unstable();
        members.insert("aliases".into(), json!(sorted));
    }
    members
}

fn with(mut members: Map<String, Value>, attributes: &Map<String, Value>) -> Value {
    members.extend(attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(members)
}
