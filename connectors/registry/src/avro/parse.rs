//! Parses a schema from JSON and checks Avro's rules: names, symbols, unions, and that each name is defined.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::avro::{
    Attributes, AvroSchema, Fault, Field, Named, NamedBody, Primitive, Type, TypeId, TypeShape, identity,
};
use crate::work_budget::WorkBudget;

/// Attributes that the specification defines for a type, so they are no [`Attributes`].
const OF_A_TYPE: [&str; 10] =
    ["type", "name", "namespace", "doc", "aliases", "fields", "items", "values", "symbols", "size"];
const OF_AN_ENUM: [&str; 11] = [
    "type",
    "name",
    "namespace",
    "doc",
    "aliases",
    "fields",
    "items",
    "values",
    "symbols",
    "size",
    "default",
];
const OF_A_FIELD: [&str; 6] = ["type", "name", "doc", "aliases", "order", "default"];

type Parsed<T> = Result<T, Fault>;

impl AvroSchema {
    /// Parses a schema. Names may be used before they are defined. [`AvroSchema::check_defaults`] checks defaults, not this.
    /// Steps are spent on the text and on each name with its namespace, because these may be far longer than the text.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn parse(text: &str, steps: &WorkBudget) -> Parsed<Self> {
        steps.spend_on(text)?;
        // The JSON parser's limit is a depth of 128, which bounds the recursion over the text too.
        let json: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let mut parser = SchemaParser::new(steps);
        let root = parser.parse(&json, None)?;
        parser.finish(root)
    }
}

/// A type during parsing.
enum TypeSlot {
    /// The type is used, and not defined yet.
    Missing,
    /// The definition has begun.
    Open,
    Done(Type),
}

struct SchemaParser<'s> {
    steps: &'s WorkBudget,
    slots: Vec<TypeSlot>,
    /// The named types by their full names.
    names: HashMap<String, TypeId>,
}

impl<'s> SchemaParser<'s> {
    fn new(steps: &'s WorkBudget) -> Self {
        // A primitive type without attributes is at its place in the list of them.
        let plain = |primitive| {
            TypeSlot::Done(Type { shape: TypeShape::Primitive(primitive), attributes: Map::new() })
        };
        Self { steps, slots: Primitive::ALL.map(plain).into(), names: HashMap::new() }
    }

    fn finish(self, root: TypeId) -> Parsed<AvroSchema> {
        let missing = |id: TypeId| {
            let name = self.names.iter().find(|(_, of)| **of == id).map(|(name, _)| name.as_str());
            Fault::from(format!("the type {} is not defined", name.unwrap_or_default()))
        };
        if let Some(id) = self.slots.iter().position(|slot| !matches!(slot, TypeSlot::Done(_))) {
            return Err(missing(id));
        }
        let types = self.slots.into_iter().filter_map(|slot| match slot {
            TypeSlot::Done(done) => Some(done),
            TypeSlot::Missing | TypeSlot::Open => None,
        });
        Ok(AvroSchema { types: types.collect(), root })
    }

    fn add(&mut self, shape: TypeShape, attributes: Attributes) -> TypeId {
        self.slots.push(TypeSlot::Done(Type { shape, attributes }));
        self.slots.len() - 1
    }

    /// Parses a type inside of the namespace `space`.
    fn parse(&mut self, json: &Value, space: Option<&str>) -> Parsed<TypeId> {
        match json {
            Value::String(name) => self.find(name, space),
            Value::Array(branches) => self.union(branches, space),
            Value::Object(members) => self.object(members, space),
            Value::Null | Value::Bool(_) | Value::Number(_) => Err(format!("{json} is no type"))?,
        }
    }

    fn object(&mut self, members: &Map<String, Value>, space: Option<&str>) -> Parsed<TypeId> {
        let kind = text(members, "type").ok_or("a type has no attribute \"type\"")?;
        let of = |name: &str| members.get(name).ok_or_else(|| format!("{kind} has no {name}"));
        match kind {
            "record" | "error" | "enum" | "fixed" => self.named(members, kind, space),
            "array" => {
                let items = self.parse(of("items")?, space)?;
                Ok(self.add(TypeShape::Array(items), attributes(members, &OF_A_TYPE)))
            }
            "map" => {
                let values = self.parse(of("values")?, space)?;
                Ok(self.add(TypeShape::Map(values), attributes(members, &OF_A_TYPE)))
            }
            name => {
                let attributes = attributes(members, &OF_A_TYPE);
                match Primitive::parse(name) {
                    Some(primitive) if !attributes.is_empty() => {
                        Ok(self.add(TypeShape::Primitive(primitive), attributes))
                    }
                    // A reference has no attributes: they are those of the definition.
                    Some(_) | None => self.find(name, space),
                }
            }
        }
    }

    /// The type of a name in a namespace, or else a defined type of that name without a namespace. Otherwise the definition
    /// follows later, or encloses this use.
    fn find(&mut self, name: &str, space: Option<&str>) -> Parsed<TypeId> {
        if let Some(place) = Primitive::ALL.iter().position(|primitive| primitive.name() == name) {
            return Ok(place);
        }
        let full_name = match space {
            Some(space) if !name.contains('.') => format!("{space}.{name}"),
            Some(_) | None => name.to_owned(),
        };
        self.steps.spend_on(&full_name)?;
        let is_done = |id: &TypeId| matches!(self.slots[*id], TypeSlot::Done(_));
        let done = |name: &str| self.names.get(name).copied().filter(is_done);
        if let Some(id) = done(&full_name).or_else(|| done(name)) {
            return Ok(id);
        }
        let slots = &mut self.slots;
        Ok(*self.names.entry(full_name).or_insert_with(|| {
            slots.push(TypeSlot::Missing);
            slots.len() - 1
        }))
    }

    fn union(&mut self, branches: &[Value], space: Option<&str>) -> Parsed<TypeId> {
        let ids: Vec<_> =
            branches.iter().map(|branch| self.parse(branch, space)).collect::<Result<_, _>>()?;
        let mut kinds: Vec<String> = Vec::with_capacity(ids.len());
        for id in &ids {
            kinds.push(match &self.slots[*id] {
                TypeSlot::Done(Type { shape: TypeShape::Union(_), .. }) => {
                    return Err("a union contains a union".into());
                }
                TypeSlot::Done(Type { shape: TypeShape::Named(named), .. }) => named.full_name.clone(),
                TypeSlot::Done(Type { shape, .. }) => shape.kind().to_owned(),
                TypeSlot::Missing | TypeSlot::Open => format!("the type {id}"),
            });
        }
        kinds.sort_unstable();
        if let Some(twice) = kinds.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("a union contains {} twice", twice[0]).into());
        }
        Ok(self.add(TypeShape::Union(ids), Map::new()))
    }

    /// A record, an enum or a fixed.
    fn named(&mut self, members: &Map<String, Value>, kind: &str, space: Option<&str>) -> Parsed<TypeId> {
        let name = text(members, "name").ok_or_else(|| format!("{kind} has no name"))?;
        let full_name = full_name(name, text(members, "namespace").or(space))?;
        self.steps.spend_on(&full_name)?;
        if Primitive::parse(&full_name).is_some() {
            return Err(format!("{full_name} is reserved and cannot be the name of a type").into());
        }
        let known = self.names.get(&full_name).copied();
        let (id, is_known) = match known.map(|id| (id, &self.slots[id])) {
            Some((_, TypeSlot::Open)) => {
                return Err(format!("{full_name} is defined inside of itself").into());
            }
            Some((id, TypeSlot::Missing)) => (id, false),
            Some((id, TypeSlot::Done(_))) => (id, true),
            None => {
                self.slots.push(TypeSlot::Missing);
                self.names.insert(full_name.clone(), self.slots.len() - 1);
                (self.slots.len() - 1, false)
            }
        };
        if !is_known {
            self.slots[id] = TypeSlot::Open;
        }
        let own_space = full_name.rsplit_once('.').map(|(space, _)| space.to_owned());
        let body = self.body(members, kind, own_space.as_deref())?;
        let mut aliases = aliases(members)?;
        for alias in &mut aliases {
            *alias = crate::avro::parse::full_name(alias, own_space.as_deref())?;
            self.steps.spend_on(alias)?;
        }
        let named = Named { full_name, aliases, doc: text(members, "doc").map(str::to_owned), body };
        let reserved: &[&str] = if kind == "enum" { &OF_AN_ENUM } else { &OF_A_TYPE };
        let defined = Type { shape: TypeShape::Named(named), attributes: attributes(members, reserved) };
        if is_known {
            return self.again(id, &defined);
        }
        self.slots[id] = TypeSlot::Done(defined);
        Ok(id)
    }

    /// A second definition of a name must equal the first one.
    fn again(&self, id: TypeId, second: &Type) -> Parsed<TypeId> {
        let look = |id: TypeId| match &self.slots[id] {
            TypeSlot::Done(done) => Some(done),
            TypeSlot::Missing | TypeSlot::Open => None,
        };
        let first = look(id).map(|first| identity::definition(first, &look));
        if first == Some(identity::definition(second, &look)) {
            return Ok(id);
        }
        let name = self.names.iter().find(|(_, of)| **of == id).map_or("a type", |(name, _)| name);
        Err(format!("{name} has two different definitions").into())
    }

    fn body(&mut self, members: &Map<String, Value>, kind: &str, space: Option<&str>) -> Parsed<NamedBody> {
        let list = |name: &str| {
            let found = members.get(name).and_then(Value::as_array);
            found.ok_or_else(|| Fault::from(format!("{kind} has no list of {name}")))
        };
        match kind {
            "enum" => symbols(list("symbols")?, text(members, "default")),
            "fixed" => {
                let size = members.get("size").and_then(Value::as_i64);
                let size = size.and_then(|size| i32::try_from(size).ok()).filter(|size| *size >= 0);
                Ok(NamedBody::Fixed { size: size.ok_or("fixed has no size in bytes")? })
            }
            record_or_error => {
                let mut fields: Vec<Field> = Vec::new();
                for field in list("fields")? {
                    let members = field.as_object().ok_or("a field is not an object")?;
                    fields.push(self.field(members, space)?);
                }
                let mut names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
                names.sort_unstable();
                if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
                    return Err(format!("the field {} is defined twice", twice[0]).into());
                }
                Ok(NamedBody::Record { is_error: record_or_error == "error", fields })
            }
        }
    }

    fn field(&mut self, members: &Map<String, Value>, space: Option<&str>) -> Parsed<Field> {
        let name = text(members, "name").ok_or("a field has no name")?;
        check_name(name)?;
        let given = members.get("type").ok_or_else(|| format!("the field {name} has no type"))?;
        let type_id = self.parse(given, space)?;
        let order = match members.get("order") {
            None => "ascending".to_owned(),
            Some(order) => order.as_str().unwrap_or_default().to_ascii_lowercase(),
        };
        if !["ascending", "descending", "ignore"].contains(&order.as_str()) {
            return Err(
                format!("the order of the field {name} is not ascending, descending or ignore").into()
            );
        }
        let mut default = members.get("default").cloned();
        let is_floating = Primitive::ALL
            .get(type_id)
            .is_some_and(|primitive| matches!(primitive, Primitive::Float | Primitive::Double));
        if let Some(Value::String(number)) = default.as_ref().filter(|_| is_floating) {
            let number: f64 =
                number.trim().parse().map_err(|_error| format!("the default of {name} is not a number"))?;
            default = Some(serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number));
        }
        Ok(Field {
            name: name.to_owned(),
            type_id,
            default,
            order,
            doc: text(members, "doc").map(str::to_owned),
            aliases: aliases(members)?,
            attributes: attributes(members, &OF_A_FIELD),
        })
    }
}

fn symbols(given: &[Value], default: Option<&str>) -> Parsed<NamedBody> {
    let symbols: Vec<String> =
        given.iter().map(|symbol| symbol.as_str().unwrap_or_default().to_owned()).collect();
    let mut sorted: Vec<_> = symbols.iter().collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|two| two[0] == two[1]) {
        return Err(format!("the symbol {} is defined twice", twice[0]).into());
    }
    symbols.iter().try_for_each(|symbol| check_name(symbol))?;
    if let Some(default) = default.filter(|default| !symbols.iter().any(|symbol| symbol == default)) {
        return Err(format!("the default {default} is not one of the symbols").into());
    }
    Ok(NamedBody::Enum { symbols, default: default.map(str::to_owned) })
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

fn attributes(members: &Map<String, Value>, reserved: &[&str]) -> Attributes {
    let others = members.iter().filter(|(name, _)| !reserved.contains(&name.as_str()));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn aliases(members: &Map<String, Value>) -> Parsed<Vec<String>> {
    let Some(given) = members.get("aliases") else { return Ok(Vec::new()) };
    let list = given.as_array().ok_or("aliases are not a list")?;
    let mut known = HashSet::new();
    let mut aliases = Vec::new();
    for alias in list {
        let alias = alias.as_str().ok_or("an alias is not a string")?;
        if known.insert(alias) {
            aliases.push(alias.to_owned());
        }
    }
    Ok(aliases)
}

/// A name with its namespace: the one in the name, or else `space`.
fn full_name(name: &str, space: Option<&str>) -> Parsed<String> {
    let (space, short) = match name.rsplit_once('.') {
        Some((space, short)) => (Some(space), short),
        None => (space, name),
    };
    check_name(short)?;
    match space.filter(|space| !space.is_empty()) {
        Some(space) => {
            space.split('.').try_for_each(check_name)?;
            Ok(format!("{space}.{short}"))
        }
        None => Ok(short.to_owned()),
    }
}

/// Accepts letters of all languages, as Java does. Java does not accept letters beyond 16 bits.
fn check_name(name: &str) -> Parsed<()> {
    let is_first = |letter: char| letter == '_' || (letter.is_alphabetic() && u32::from(letter) <= 0xFFFF);
    let is_next = |letter: char| is_first(letter) || (letter.is_numeric() && u32::from(letter) <= 0xFFFF);
    let mut letters = name.chars();
    if letters.next().is_some_and(is_first) && letters.all(is_next) {
        return Ok(());
    }
    Err(format!("\"{name}\" is no name").into())
}
