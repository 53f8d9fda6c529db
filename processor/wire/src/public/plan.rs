//! A schema as a list of types, so that a walk over a datum looks nothing up by name.

use std::collections::HashMap;

use apache_avro::Schema;
use apache_avro::schema::{InnerDecimalSchema, UuidSchema};

/// A schema as the sieve and the writer walk through it: types by their place in a list, named ones resolved.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    kinds: Vec<Kind>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    Boolean,
    /// A number of up to 32 bits.
    Int,
    /// A number of up to 64 bits.
    Long,
    Fixed(usize),
    Bytes,
    Text,
    Enum(usize),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    /// Fields: names and places.
    Record(Vec<(String, usize)>),
}

impl Plan {
    /// None: the schema names a type that it does not define.
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let mut draft = Draft { kinds: Vec::new(), names: HashMap::new() };
        draft.add(schema, None)?;
        Some(Self { kinds: draft.kinds })
    }

    /// The types by their places; the schema itself stands at place 0.
    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }
}

struct Draft {
    kinds: Vec<Kind>,
    names: HashMap<String, usize>,
}

impl Draft {
    /// Adds a type; its place in the list.
    fn add(&mut self, schema: &Schema, enclosing: Option<&str>) -> Option<usize> {
        let place = self.kinds.len();
        self.kinds.push(Kind::Null);
        let kind = match schema {
            Schema::Null => Kind::Null,
            Schema::Boolean => Kind::Boolean,
            Schema::Int | Schema::Date | Schema::TimeMillis => Kind::Int,
            Schema::Long
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => Kind::Long,
            Schema::Float => Kind::Fixed(4),
            Schema::Double => Kind::Fixed(8),
            Schema::Bytes | Schema::BigDecimal | Schema::Uuid(UuidSchema::Bytes) => Kind::Bytes,
            Schema::String | Schema::Uuid(UuidSchema::String) => Kind::Text,
            Schema::Array(array) => Kind::Array(self.add(&array.items, enclosing)?),
            Schema::Map(map) => Kind::Map(self.add(&map.types, enclosing)?),
            Schema::Union(union) => {
                let branches = union.variants().iter().map(|branch| self.add(branch, enclosing));
                Kind::Union(branches.collect::<Option<_>>()?)
            }
            Schema::Record(record) => {
                let name = record.name.fully_qualified_name(enclosing);
                self.names.insert(name.to_string(), place);
                let fields = record
                    .fields
                    .iter()
                    .map(|field| Some((field.name.clone(), self.add(&field.schema, name.namespace())?)));
                Kind::Record(fields.collect::<Option<_>>()?)
            }
            Schema::Enum(symbols) => {
                self.names.insert(symbols.name.fully_qualified_name(enclosing).to_string(), place);
                Kind::Enum(symbols.symbols.len())
            }
            Schema::Fixed(fixed) | Schema::Duration(fixed) | Schema::Uuid(UuidSchema::Fixed(fixed)) => {
                self.names.insert(fixed.name.fully_qualified_name(enclosing).to_string(), place);
                Kind::Fixed(fixed.size)
            }
            Schema::Decimal(decimal) => match &decimal.inner {
                InnerDecimalSchema::Bytes => Kind::Bytes,
                InnerDecimalSchema::Fixed(fixed) => {
                    self.names.insert(fixed.name.fully_qualified_name(enclosing).to_string(), place);
                    Kind::Fixed(fixed.size)
                }
            },
            Schema::Ref { name } => {
                self.kinds.truncate(place);
                return self.names.get(&name.fully_qualified_name(enclosing).to_string()).copied();
            }
        };
        self.kinds[place] = kind;
        Some(place)
    }
}
