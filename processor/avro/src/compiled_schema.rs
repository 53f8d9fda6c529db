//! A schema as a list of types with resolved references, so that a walk over a datum looks up no name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use apache_avro::Schema;
use apache_avro::schema::{InnerDecimalSchema, UuidSchema};

/// A schema as the validator and the writer walk through it: types by their place in a list, named ones resolved.
#[derive(Debug)]
pub(super) struct CompiledSchema {
    kinds: Vec<SchemaKind>,
}

#[derive(Debug)]
pub(super) enum SchemaKind {
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
    /// A union of null, which comes first, and one other.
    Nullable(usize),
    Record(Vec<Field>),
}

/// A field of a record.
#[derive(Debug)]
pub(super) struct Field {
    name: String,
    /// Where its name lies in the program, once it has been compared.
    seen_at: AtomicUsize,
    /// Its type.
    pub(super) place: usize,
}

impl Field {
    fn new(name: String, place: usize) -> Self {
        Self { name, seen_at: AtomicUsize::new(0), place }
    }

    /// Whether it has this name, which is compared once: what lies there is the same for ever.
    pub(super) fn is_called(&self, name: &'static str) -> bool {
        let at = name.as_ptr().addr();
        // A shorter name may lie where a longer one begins.
        if self.seen_at.load(Ordering::Relaxed) == at && name.len() == self.name.len() {
            return true;
        }
        let is_called = self.name == name;
        if is_called {
            self.seen_at.store(at, Ordering::Relaxed);
        }
        is_called
    }
}

impl CompiledSchema {
    /// None: the schema names a type that it does not define.
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let mut draft = SchemaDraft { kinds: Vec::new(), names: HashMap::new() };
        draft.add(schema, None)?;
        Some(Self { kinds: draft.kinds })
    }

    /// The types by their places; the schema itself stands at place 0.
    pub(super) fn kinds(&self) -> &[SchemaKind] {
        &self.kinds
    }
}

struct SchemaDraft {
    kinds: Vec<SchemaKind>,
    names: HashMap<String, usize>,
}

impl SchemaDraft {
    /// Adds a type; its place in the list.
    fn add(&mut self, schema: &Schema, enclosing: Option<&str>) -> Option<usize> {
        let place = self.kinds.len();
        self.kinds.push(SchemaKind::Null);
        let kind = match schema {
            Schema::Null => SchemaKind::Null,
            Schema::Boolean => SchemaKind::Boolean,
            Schema::Int | Schema::Date | Schema::TimeMillis => SchemaKind::Int,
            Schema::Long
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => SchemaKind::Long,
            Schema::Float => SchemaKind::Fixed(4),
            Schema::Double => SchemaKind::Fixed(8),
            Schema::Bytes | Schema::BigDecimal | Schema::Uuid(UuidSchema::Bytes) => SchemaKind::Bytes,
            Schema::String | Schema::Uuid(UuidSchema::String) => SchemaKind::Text,
            Schema::Array(array) => SchemaKind::Array(self.add(&array.items, enclosing)?),
            Schema::Map(map) => SchemaKind::Map(self.add(&map.types, enclosing)?),
            Schema::Union(union) => {
                let branches = union.variants().iter().map(|branch| self.add(branch, enclosing));
                let branches: Vec<usize> = branches.collect::<Option<_>>()?;
                match branches.as_slice() {
                    [first, other] if matches!(self.kinds[*first], SchemaKind::Null) => {
                        SchemaKind::Nullable(*other)
                    }
                    _others => SchemaKind::Union(branches),
                }
            }
            Schema::Record(record) => {
                let name = record.name.fully_qualified_name(enclosing);
                self.names.insert(name.to_string(), place);
                let fields = record.fields.iter().map(|field| {
                    Some(Field::new(field.name.clone(), self.add(&field.schema, name.namespace())?))
                });
                SchemaKind::Record(fields.collect::<Option<_>>()?)
            }
            Schema::Enum(symbols) => {
                self.names.insert(symbols.name.fully_qualified_name(enclosing).to_string(), place);
                SchemaKind::Enum(symbols.symbols.len())
            }
            Schema::Fixed(fixed) | Schema::Duration(fixed) | Schema::Uuid(UuidSchema::Fixed(fixed)) => {
                self.names.insert(fixed.name.fully_qualified_name(enclosing).to_string(), place);
                SchemaKind::Fixed(fixed.size)
            }
            Schema::Decimal(decimal) => match &decimal.inner {
                InnerDecimalSchema::Bytes => SchemaKind::Bytes,
                InnerDecimalSchema::Fixed(fixed) => {
                    self.names.insert(fixed.name.fully_qualified_name(enclosing).to_string(), place);
                    SchemaKind::Fixed(fixed.size)
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
