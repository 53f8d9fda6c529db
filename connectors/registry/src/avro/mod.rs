//! Avro schemas for the registry: parsed by the rules of Avro 1.12, compared, and identified.
//!
//! This module reads and writes no data with them.

mod branches;
mod default;
mod identity;
mod parse;
mod resolution;

use serde_json::{Map, Value};

use crate::work_budget::Stopped;

pub(crate) use crate::avro::resolution::incompatibilities;

/// Why a text was not parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text is no valid schema: the reason, in words.
    Invalid(String),
    /// The work was stopped.
    Stopped(Stopped),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Invalid(reason.into())
    }
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// A schema. It is a graph, because named types refer to each other, so its types are a list.
#[derive(Debug)]
pub(crate) struct AvroSchema {
    types: Vec<Type>,
    root: TypeId,
}

/// An index of [`AvroSchema::types`].
type TypeId = usize;

/// Attributes by name that the specification does not define for this kind of type, and `logicalType`.
type Attributes = Map<String, Value>;

#[derive(Debug)]
struct Type {
    shape: TypeShape,
    attributes: Attributes,
}

#[derive(Debug)]
enum TypeShape {
    Primitive(Primitive),
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
    Named(Named),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Primitive {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
}

#[derive(Debug)]
struct Named {
    /// The name with its namespace, if it has one.
    full_name: String,
    /// The aliases with their namespaces.
    aliases: Vec<String>,
    doc: Option<String>,
    body: NamedBody,
}

#[derive(Debug)]
enum NamedBody {
    Record { is_error: bool, fields: Vec<Field> },
    Enum { symbols: Vec<String>, default: Option<String> },
    Fixed { size: i32 },
}

#[derive(Debug)]
struct Field {
    name: String,
    type_id: TypeId,
    default: Option<Value>,
    /// `ascending`, `descending` or `ignore`.
    order: String,
    doc: Option<String>,
    aliases: Vec<String>,
    attributes: Attributes,
}

impl Primitive {
    const ALL: [Self; 8] = [
        Self::Null,
        Self::Boolean,
        Self::Int,
        Self::Long,
        Self::Float,
        Self::Double,
        Self::Bytes,
        Self::String,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::String => "string",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|primitive| primitive.name() == name)
    }
}

impl TypeShape {
    /// The kind of the type, as in the text of a schema.
    fn kind(&self) -> &'static str {
        match self {
            Self::Primitive(primitive) => primitive.name(),
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Named(Named { body: NamedBody::Record { .. }, .. }) => "record",
            Self::Named(Named { body: NamedBody::Enum { .. }, .. }) => "enum",
            Self::Named(Named { body: NamedBody::Fixed { .. }, .. }) => "fixed",
        }
    }
}

impl Named {
    /// The name without its namespace.
    fn short_name(&self) -> &str {
        self.full_name.rsplit_once('.').map_or(&self.full_name, |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work_budget::WorkBudget;

    /// The table is compared with Java's Avro by `tests/avro`.
    #[test]
    fn each_schema_of_the_table_is_what_java_says_it_is() {
        let parse = |text: &str| {
            let steps = WorkBudget::bounded(10_000);
            let schema = AvroSchema::parse(text, &steps)?;
            schema.check_defaults(&steps).map(|()| schema)
        };
        let valid = |text: &str| parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let mut wrong = Vec::new();
        for line in include_str!("../../tests/schemas.tsv").lines().filter(|line| !line.starts_with('#')) {
            let [name, verdict, one, other] =
                line.split('\t').collect::<Vec<_>>().try_into().expect("four columns");
            let right = match verdict {
                "same" => valid(one).identity() == valid(other).identity(),
                "different" => valid(one).identity() != valid(other).identity(),
                "valid" => parse(one).is_ok(),
                "invalid" => parse(one).is_err(),
                unknown => panic!("{unknown} is no verdict"),
            };
            if !right {
                wrong
                    .push(format!("{name}: not {verdict}: {:?}", parse(one).map(|schema| schema.identity())));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// As Confluent's registry has it with `normalize=true`; Java's text of a schema keeps these apart.
    #[test]
    fn the_order_of_attributes_and_aliases_does_not_count() {
        for (one, other) in [
            (r#"{"type":"int","x":{"a":1,"b":2},"y":1}"#, r#"{"y":1,"x":{"b":2,"a":1},"type":"int"}"#),
            (
                r#"{"type":"fixed","name":"X","size":1,"aliases":["A","B"]}"#,
                r#"{"type":"fixed","name":"X","size":1,"aliases":["B","A"]}"#,
            ),
        ] {
            let identity =
                |text| AvroSchema::parse(text, &WorkBudget::unbounded()).expect("valid").identity();
            assert_eq!(identity(one), identity(other));
        }
    }

    #[test]
    fn our_own_schemas_are_valid() {
        for noun in everlog_avro::PublicTopic::ALL {
            let steps = WorkBudget::bounded(100_000);
            let schema = AvroSchema::parse(noun.text(), &steps).expect("valid");
            assert_eq!(schema.check_defaults(&steps), Ok(()), "{noun:?}");
        }
    }
}
