//! Whether a reader's schema can read all data of a writer's, with the results of Java's `SchemaCompatibility`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use crate::avro::branches::{Branches, has_field_aliases};
use crate::avro::{AvroSchema, Field, Named, NamedBody, Primitive, TypeId, TypeShape};
use crate::work_budget::{Stopped, WorkBudget};

/// Limit of nested types in a comparison, so that recursion does not overflow a thread's stack.
const DEPTH_MAX: usize = 600;
/// Steps of a new pair of types. A known pair, a field, a symbol and an alias take one each.
const STEPS_OF_A_PAIR: usize = 8;
/// Limit of the incompatibilities in a response; there may be more.
const TOLD_MAX: usize = 20;

/// Why a reader's schema cannot read all data of a writer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incompatibility {
    /// Java's name of the incompatibility.
    kind: &'static str,
    /// A JSON pointer into the reader's schema; indexes are those of fields and branches.
    path: String,
    detail: String,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, path, detail } = self;
        let path = if path.is_empty() { "/" } else { path };
        write!(f, "{{errorType:'{kind}', description:'{detail}', additionalInfo:'{path}'}}")
    }
}

/// Why `reader` cannot read all data of `writer`; empty if it can.
///
/// # Errors
/// [`Stopped`].
pub(crate) fn incompatibilities(
    reader: &AvroSchema,
    writer: &AvroSchema,
    steps: &WorkBudget,
) -> Result<Vec<Rc<Incompatibility>>, Stopped> {
    let mut comparison = SchemaComparison {
        reader,
        writer,
        seen: HashMap::new(),
        path: Vec::new(),
        depth: 0,
        steps,
        branches: HashMap::new(),
        tries_all: has_field_aliases(reader),
        ambiguous: Found::new(),
    };
    let found = comparison.pair(reader.root, writer.root)?;
    Ok(if found.is_empty() { comparison.ambiguous } else { found })
}

/// The incompatibilities found; empty means compatible.
type Found = Vec<Rc<Incompatibility>>;

struct SchemaComparison<'a> {
    reader: &'a AvroSchema,
    writer: &'a AvroSchema,
    /// The result of each pair (reader, writer), and `None` during its comparison. A pair inside of itself counts as
    /// compatible meanwhile.
    seen: HashMap<(TypeId, TypeId), Option<Found>>,
    path: Vec<String>,
    depth: usize,
    steps: &'a WorkBudget,
    /// The indexes of the reader's unions.
    branches: HashMap<TypeId, Rc<Branches<'a>>>,
    /// A field of the reader has an alias, so all branches are compared: any may have an ambiguous field.
    tries_all: bool,
    /// An ambiguous field, found anywhere. Java fails there, even in a branch that it only tries.
    ambiguous: Found,
}

impl<'a> SchemaComparison<'a> {
    fn pair(&mut self, reader: TypeId, writer: TypeId) -> Result<Found, Stopped> {
        self.steps.spend(1)?;
        match self.seen.get(&(reader, writer)) {
            Some(Some(known)) => return Ok(known.clone()),
            Some(None) => return Ok(Found::new()),
            None => {}
        }
        if self.depth == DEPTH_MAX {
            return Ok(self.too_deep());
        }
        self.depth += 1;
        self.steps.spend(STEPS_OF_A_PAIR - 1)?;
        self.seen.insert((reader, writer), None);
        let found = self.compare(reader, writer)?;
        self.seen.insert((reader, writer), Some(found.clone()));
        self.depth -= 1;
        Ok(found)
    }

    /// Compares a pair one step further on the path.
    fn below(&mut self, step: &str, reader: TypeId, writer: TypeId) -> Result<Found, Stopped> {
        self.path.push(step.to_owned());
        let found = self.pair(reader, writer);
        self.path.pop();
        found
    }

    fn compare(&mut self, reader: TypeId, writer: TypeId) -> Result<Found, Stopped> {
        let (ours, theirs) = (&self.reader.types[reader].shape, &self.writer.types[writer].shape);
        match (ours, theirs) {
            (_, TypeShape::Union(branches)) => {
                let mut all = Found::new();
                for (place, branch) in branches.iter().enumerate() {
                    let found = match ours {
                        TypeShape::Union(_) if self.pair(reader, *branch)?.is_empty() => Found::new(),
                        TypeShape::Union(_) => self.no_branch(*branch, Some(place)),
                        TypeShape::Primitive(_)
                        | TypeShape::Array(_)
                        | TypeShape::Map(_)
                        | TypeShape::Named(_) => self.below(&place.to_string(), reader, *branch)?,
                    };
                    all = merged([all, found]);
                }
                Ok(all)
            }
            (TypeShape::Union(branches), _) if self.tries_all => self.one_of(branches.iter(), writer),
            (TypeShape::Union(branches), theirs) => {
                let found = self.branches_of(reader, branches)?;
                self.one_of(found.that_may_read(theirs), writer)
            }
            (TypeShape::Primitive(ours), TypeShape::Primitive(theirs)) if ours.reads(*theirs) => {
                Ok(Found::new())
            }
            (TypeShape::Array(ours), TypeShape::Array(theirs)) => self.below("items", *ours, *theirs),
            (TypeShape::Map(ours), TypeShape::Map(theirs)) => self.below("values", *ours, *theirs),
            (TypeShape::Named(ours), TypeShape::Named(theirs)) if same_kind(&ours.body, &theirs.body) => {
                self.steps.spend(ours.aliases.len())?;
                let name = if ours.is_called(theirs) { Found::new() } else { self.other_name(theirs) };
                Ok(merged([name, self.bodies(ours, theirs)?]))
            }
            (TypeShape::Primitive(_) | TypeShape::Array(_) | TypeShape::Map(_) | TypeShape::Named(_), _) => {
                let detail = format!("{} does not read {}", ours.kind(), theirs.kind());
                Ok(self.fault("TYPE_MISMATCH", detail))
            }
        }
    }

    /// Whether a branch of the reader's union reads a writer's type that is no union.
    fn one_of<'b>(
        &mut self,
        branches: impl Iterator<Item = &'b TypeId>,
        writer: TypeId,
    ) -> Result<Found, Stopped> {
        for branch in branches {
            if self.pair(*branch, writer)?.is_empty() {
                return Ok(Found::new());
            }
        }
        Ok(self.no_branch(writer, None))
    }

    /// The index of a reader's union, made once.
    fn branches_of(&mut self, union: TypeId, branches: &[TypeId]) -> Result<Rc<Branches<'a>>, Stopped> {
        if let Some(known) = self.branches.get(&union) {
            return Ok(Rc::clone(known));
        }
        let found = Rc::new(Branches::of(self.reader, branches, self.steps)?);
        self.branches.insert(union, Rc::clone(&found));
        Ok(found)
    }

    fn bodies(&mut self, ours: &'a Named, theirs: &'a Named) -> Result<Found, Stopped> {
        match (&ours.body, &theirs.body) {
            (NamedBody::Record { fields, .. }, NamedBody::Record { fields: written, .. }) => {
                self.steps.spend(fields.len() + written.len())?;
                let written = written.iter().map(|field| (field.name.as_str(), field)).collect();
                let mut all = Found::new();
                for (place, field) in fields.iter().enumerate() {
                    self.path.extend(["fields".to_owned(), place.to_string()]);
                    all = merged([all, self.field(field, &written)?]);
                    self.path.truncate(self.path.len() - 2);
                }
                Ok(all)
            }
            (NamedBody::Enum { symbols, default }, NamedBody::Enum { symbols: written, .. }) => {
                self.steps.spend(symbols.len() + written.len())?;
                let symbols: HashSet<&String> = symbols.iter().collect();
                let missing = written.iter().filter(|symbol| !symbols.contains(symbol)).map(String::as_str);
                let missing: Vec<_> = missing.take(TOLD_MAX).collect();
                if missing.is_empty() || default.is_some() {
                    return Ok(Found::new());
                }
                let detail =
                    format!("the reader has neither the symbols {} nor a default", missing.join(", "));
                Ok(self.fault("MISSING_ENUM_SYMBOLS", detail))
            }
            (NamedBody::Fixed { size }, NamedBody::Fixed { size: written }) if size != written => {
                Ok(self.fault("FIXED_SIZE_MISMATCH", format!("{size} bytes are read, {written} written")))
            }
            _of_the_same_size => Ok(Found::new()),
        }
    }

    /// Compares a field of the reader with the writer's fields of its name and aliases.
    fn field(&mut self, field: &'a Field, written: &HashMap<&str, &'a Field>) -> Result<Found, Stopped> {
        self.steps.spend(field.aliases.len())?;
        let names = std::iter::once(&field.name).chain(&field.aliases);
        let mut found = names.filter_map(|name| written.get(name.as_str()));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => {
                let detail = format!("{} and its aliases are several fields of the writer", field.name);
                self.ambiguous = self.fault("NAME_MISMATCH", detail);
                Ok(self.ambiguous.clone())
            }
            (Some(one), None) => self.below("type", field.type_id, one.type_id),
            (None, _) if field.default.is_some() => Ok(Found::new()),
            (None, _) => {
                let detail = format!("the field {} has no default and is not written", field.name);
                Ok(self.fault("READER_FIELD_MISSING_DEFAULT_VALUE", detail))
            }
        }
    }

    fn other_name(&self, theirs: &Named) -> Found {
        self.fault("NAME_MISMATCH", format!("{} is written", theirs.full_name))
    }

    fn no_branch(&self, writer: TypeId, place: Option<usize>) -> Found {
        let at = place.map(|place| format!(" (branch {place})")).unwrap_or_default();
        let kind = self.writer.types[writer].shape.kind();
        self.fault("MISSING_UNION_BRANCH", format!("no branch of the reader reads {kind}{at}"))
    }

    fn too_deep(&self) -> Found {
        self.fault("TOO_DEEP", format!("more than {DEPTH_MAX} types stand within each other"))
    }

    fn fault(&self, kind: &'static str, detail: String) -> Found {
        let path = self.path.iter().map(|step| format!("/{step}")).collect();
        vec![Rc::new(Incompatibility { kind, path, detail })]
    }
}

fn merged(all: impl IntoIterator<Item = Found>) -> Found {
    all.into_iter().flatten().take(TOLD_MAX).collect()
}

fn same_kind(ours: &NamedBody, theirs: &NamedBody) -> bool {
    std::mem::discriminant(ours) == std::mem::discriminant(theirs)
}

impl Named {
    /// Ignores namespaces, except in an alias.
    fn is_called(&self, theirs: &Self) -> bool {
        self.short_name() == theirs.short_name() || self.aliases.contains(&theirs.full_name)
    }
}

impl Primitive {
    fn reads(self, written: Self) -> bool {
        match self {
            Self::Null | Self::Boolean | Self::Int => self == written,
            Self::Long => matches!(written, Self::Long | Self::Int),
            Self::Float => matches!(written, Self::Float | Self::Long | Self::Int),
            Self::Double => matches!(written, Self::Double | Self::Float | Self::Long | Self::Int),
            Self::Bytes | Self::String => matches!(written, Self::Bytes | Self::String),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: usize = 5_000_000;

    fn schema(text: &str) -> AvroSchema {
        AvroSchema::parse(text, &WorkBudget::unbounded()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn incompatibilities(reader: &AvroSchema, writer: &AvroSchema) -> Found {
        super::incompatibilities(reader, writer, &WorkBudget::bounded(STEPS)).expect("it is small")
    }

    /// The table is compared with Java's Avro by `tests/avro`.
    #[test]
    fn each_pair_of_the_table_has_the_verdict_of_java() {
        let mut wrong = Vec::new();
        let mut pairs = 0;
        for line in include_str!("../../tests/resolution.tsv").lines().filter(|line| !line.starts_with('#')) {
            let [name, verdict, reader, writer] =
                line.split('\t').collect::<Vec<_>>().try_into().expect("four columns");
            let found = incompatibilities(&schema(reader), &schema(writer));
            if verdict != if found.is_empty() { "reads" } else { "refuses" } {
                wrong.push(format!("{name}: not {verdict}: {found:?}"));
            }
            pairs += 1;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(pairs > 200, "{pairs} pairs");
    }

    #[test]
    fn a_reason_says_what_it_is_and_where() {
        let reader = schema(
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"int"}},
                {"name":"b","type":"int"},{"name":"c","type":["null","int"],"default":null}]}"#,
        );
        let writer = schema(
            r#"{"type":"record","name":"S","fields":[{"name":"a","type":{"type":"array","items":"string"}},
                {"name":"c","type":["null","string"]}]}"#,
        );
        let found: Vec<_> =
            incompatibilities(&reader, &writer).iter().map(|found| found.to_string()).collect();
        let expected = [
            "{errorType:'NAME_MISMATCH', description:'S is written', additionalInfo:'/'}",
            "{errorType:'TYPE_MISMATCH', description:'int does not read string', additionalInfo:'/fields/0/type/items'}",
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'the field b has no default and is not written', additionalInfo:'/fields/1'}",
            "{errorType:'MISSING_UNION_BRANCH', description:'no branch of the reader reads string (branch 1)', additionalInfo:'/fields/2/type'}",
        ];
        assert_eq!(found, expected);
    }

    /// Records that refer to the one before them, entered at the last one: deeper than any JSON.
    fn chain(length: usize, prefix: &str) -> AvroSchema {
        let mut types = String::from(r#""int""#);
        for number in 0..length {
            let before = if number == 0 { "int".to_owned() } else { format!("N{}", number - 1) };
            types += &format!(
                r#",{{"type":"record","name":"N{number}","fields":[{{"name":"n","type":["null","{before}"]}}]}}"#
            );
        }
        let text = format!(
            r#"{{"type":"record","name":"T","fields":[{{"name":"{prefix}","type":[{types}],"default":0}},
                {{"name":"last","type":"N{}"}}]}}"#,
            length - 1
        );
        schema(&text)
    }

    #[test]
    fn what_is_too_deep_or_too_large_is_refused_without_harm() {
        assert!(incompatibilities(&chain(140, "a"), &chain(140, "b")).is_empty());
        let found = incompatibilities(&chain(10_000, "a"), &chain(10_000, "b"));
        assert!(found.iter().any(|found| found.kind == "MISSING_UNION_BRANCH"), "{found:?}");
        let union = |space: &str| {
            let record = |number| format!(r#"{{"type":"record","name":"{space}{number}.R","fields":[]}}"#);
            schema(&format!("[{}]", (0..2_000).map(record).collect::<Vec<_>>().join(",")))
        };
        assert!(incompatibilities(&union("a"), &union("b")).is_empty(), "the first one is enough");
        let field = |space: &str, kind: &str| {
            let record = |number| {
                format!(
                    r#"{{"type":"record","name":"{space}{number}.R","fields":[{{"name":"f","type":"{kind}"}}]}}"#
                )
            };
            schema(&format!("[{}]", (0..2_000).map(record).collect::<Vec<_>>().join(",")))
        };
        let steps = WorkBudget::bounded(STEPS);
        let found = super::incompatibilities(&field("a", "int"), &field("b", "string"), &steps);
        assert_eq!(found, Err(Stopped::Most(STEPS)));
        let symbols = |letter: char| {
            let symbols: Vec<_> = (0..100_000).map(|number| format!("\"{letter}{number}\"")).collect();
            schema(&format!(r#"{{"type":"enum","name":"E","symbols":[{}]}}"#, symbols.join(",")))
        };
        assert_eq!(incompatibilities(&symbols('a'), &symbols('b')).len(), 1);
    }
}
