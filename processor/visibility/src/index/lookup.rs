//! Lookup rows: by which attributes and values runs are found.
//!
//! What type an attribute has is registered elsewhere and may change, so a value is encoded by what it is in JSON. A string that is a
//! moment is found as both. Whoever finds a run by a row has its filter tested on the entry: strings are cut, numbers are rounded to
//! doubles, and a value that is too large to be found by its parts is found by all who look for the attribute.

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use crate::derived::UNVERSIONED;
use crate::index::escape::{self, escaped, unended};
use crate::index::key::{Division, LOOKUP, behind};
use crate::index::order_key::OrderKey;

use crate::payload::{Json, PayloadParts};
use crate::query::{Literal, RangeOperator, parse_datetime};
use crate::record::Record;

/// A value of more bytes is not found by its parts.
const VALUE_BYTES_MAX: usize = 2_048;
/// A list of more different values is not found by its parts.
const ELEMENTS_MAX: usize = 64;
/// Values that are looked for; where a test has more, runs are not found by it.
const LITERALS_MAX: usize = 5_000;
/// Bytes of a string in a key, before it is escaped.
const STRING_BYTES_MAX: usize = 255;

/// A predefined or custom attribute; its escaped name follows.
const NAMED: u8 = 0x20;

/// Instead of the values: the run is found by all who look for the attribute.
const ANY: u8 = 0;
const BOOL: u8 = 1;
const NUMBER: u8 = 2;
const MOMENT: u8 = 3;
const STRING: u8 = 4;

/// The number of a system attribute by which runs are found. A root is found by its Workflow Id, and only closed runs by their status.
fn number(attribute: SystemAttribute) -> Option<u8> {
    match attribute {
        SystemAttribute::WorkflowType => Some(1),
        SystemAttribute::ExecutionStatus => Some(2),
        SystemAttribute::TaskQueue => Some(3),
        SystemAttribute::WorkflowId => Some(4),
        SystemAttribute::ParentWorkflowId => Some(5),
        SystemAttribute::RootWorkflowId => Some(6),
        SystemAttribute::RunId
        | SystemAttribute::StartTime
        | SystemAttribute::ExecutionTime
        | SystemAttribute::CloseTime
        | SystemAttribute::ExecutionDuration
        | SystemAttribute::HistoryLength
        | SystemAttribute::HistorySizeBytes
        | SystemAttribute::StateTransitionCount
        | SystemAttribute::ParentRunId
        | SystemAttribute::RootRunId => None,
    }
}

/// By what a record is found: of each lookup row the part between division and order key, sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lookups {
    bytes: Vec<u8>,
    /// From where to where in the bytes.
    parts: Vec<(u32, u32)>,
}

impl Lookups {
    pub(crate) fn of(record: &Record) -> Self {
        let mut lookups = Self::default();
        lookups.bytes.reserve(256);
        for (attribute, text) in [
            (SystemAttribute::WorkflowType, &record.workflow_type),
            (SystemAttribute::TaskQueue, &record.task_queue),
            (SystemAttribute::WorkflowId, &record.workflow_id),
            (SystemAttribute::ParentWorkflowId, &record.parent_workflow_id),
            (SystemAttribute::RootWorkflowId, &record.root_workflow_id),
        ] {
            let is_of_itself = matches!(
                attribute,
                SystemAttribute::WorkflowType | SystemAttribute::TaskQueue | SystemAttribute::WorkflowId
            );
            if is_of_itself || !text.is_empty() {
                lookups.add(|part| {
                    part.extend(number(attribute));
                    string(text, part);
                });
            }
        }
        if !record.is_open() {
            lookups.add(|part| {
                part.extend(number(SystemAttribute::ExecutionStatus));
                double(f64::from(record.status), part);
            });
        }
        for entry in &record.search_attributes {
            lookups.add_payload(&entry.key, &entry.value);
        }
        let Self { bytes, parts } = &mut lookups;
        let part = |span: &(u32, u32)| &bytes[span.0 as usize..span.1 as usize];
        parts.sort_unstable_by(|one, other| part(one).cmp(part(other)));
        parts.dedup_by(|one, other| part(one) == part(other));
        lookups
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|span| &self.bytes[span.0 as usize..span.1 as usize])
    }

    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.parts.push((from, self.bytes.len() as u32));
    }

    fn add_payload(&mut self, name: &str, payload: &[u8]) {
        let Some(parts) = PayloadParts::read(payload) else { return };
        let is_large = parts.data.len() > VALUE_BYTES_MAX;
        // Its words are not found by rows; as a keyword it is found all the same, should it be one.
        if is_large || parts.kind == b"Text" {
            return self.add_value(name, |part| part.push(ANY));
        }
        match parts.json() {
            Some(Json::List(items)) if items.len() > ELEMENTS_MAX => {
                self.add_value(name, |part| part.push(ANY));
            }
            Some(Json::List(items)) => items.iter().for_each(|item| self.add_json(name, item)),
            Some(single) => self.add_json(name, &single),
            None => {}
        }
    }

    fn add_json(&mut self, name: &str, value: &Json<'_>) {
        match value {
            Json::String(text) if is_everywhere(name, text) => {}
            Json::String(text) => {
                self.add_value(name, |part| string(text, part));
                if let Some(ns) = parse_datetime(text) {
                    self.add_value(name, |part| moment_ns(ns, part));
                }
            }
            Json::Int(number) => self.add_value(name, |part| double(*number as f64, part)),
            Json::Double(number) => self.add_value(name, |part| double(*number, part)),
            Json::Bool(is_true) => self.add_value(name, |part| part.extend([BOOL, u8::from(*is_true)])),
            // No type has lists of lists.
            Json::List(_) => {}
        }
    }

    fn add_value(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.add(|part| {
            named(name, part);
            write(part);
        });
    }
}

/// True of a value that nearly every run has: a row for each would cost more than it saves.
fn is_everywhere(name: &str, text: &str) -> bool {
    name == "BuildIds" && text == UNVERSIONED
}

fn named(name: &str, part: &mut Vec<u8>) {
    part.push(NAMED);
    escaped(name.as_bytes(), part);
}

fn string(text: &str, part: &mut Vec<u8>) {
    part.push(STRING);
    escaped(cut(text), part);
}

fn cut(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(STRING_BYTES_MAX)]
}

fn double(number: f64, part: &mut Vec<u8>) {
    part.push(NUMBER);
    // Both zeros are one.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let is_negative = bits >> 63 == 1;
    let ordered = if is_negative { !bits } else { bits ^ (1 << 63) };
    part.extend_from_slice(&ordered.to_be_bytes());
}

fn moment_ns(ns: i64, part: &mut Vec<u8>) {
    part.push(MOMENT);
    part.extend_from_slice(&(ns.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

/// Parts between which a test's matches are found: `from <= part < to`.
pub(crate) type PartSpan = (Vec<u8>, Vec<u8>);

/// The parts under which every run is found that has one of these values; none where runs are not found by them.
pub(crate) fn parts_of_any(attribute: &Attribute, literals: &[Literal]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    if literals.len() > LITERALS_MAX {
        return None;
    }
    for head in heads(attribute)? {
        for literal in literals {
            if matches!((&attribute.source, literal), (AttributeSource::Named(name), Literal::String(text)) if is_everywhere(name, text))
            {
                return None;
            }
            let mut part = head.clone();
            if equal_value(attribute, literal, &mut part)? {
                parts.push(part);
            }
        }
        if matches!(attribute.source, AttributeSource::Named(_)) {
            parts.push([&head[..], &[ANY]].concat());
        }
    }
    Some(parts)
}

/// The spans in which every run is found whose value stands so to the literal; none where runs are not found by it.
pub(crate) fn spans_of_range(
    attribute: &Attribute,
    range: RangeOperator,
    literal: &Literal,
) -> Option<Vec<PartSpan>> {
    let value = |part: &mut Vec<u8>| {
        match (attribute.kind, literal) {
            (AttributeType::Keyword, Literal::String(text)) => string(text, part),
            (AttributeType::Int | AttributeType::Double, Literal::Int(number)) => {
                double(*number as f64, part);
            }
            (AttributeType::Int | AttributeType::Double, Literal::Double(number)) => double(*number, part),
            (AttributeType::Datetime, Literal::Time(ns)) => moment_ns(*ns, part),
            _otherwise_it_is_not_the_value_that_decides => return None,
        }
        Some(())
    };
    spans(attribute, |head| {
        let mut edge = head.to_vec();
        value(&mut edge)?;
        let (kind, end) = (edge[head.len()], behind(&edge));
        Some(match range {
            RangeOperator::Less | RangeOperator::LessOrEqual => ([head, &[kind]].concat(), end),
            RangeOperator::Greater | RangeOperator::GreaterOrEqual => (edge, [head, &[kind + 1]].concat()),
        })
    })
}

/// The spans in which every run is found whose value begins so; none where runs are not found by it.
pub(crate) fn spans_of_prefix(attribute: &Attribute, prefix: &str) -> Option<Vec<PartSpan>> {
    if attribute.kind != AttributeType::Keyword {
        return None;
    }
    spans(attribute, |head| {
        let mut from = head.to_vec();
        from.push(STRING);
        unended(cut(prefix), &mut from);
        let to = behind(&from);
        Some((from, to))
    })
}

fn spans(attribute: &Attribute, span: impl Fn(&[u8]) -> Option<PartSpan>) -> Option<Vec<PartSpan>> {
    if attribute.source == AttributeSource::System(SystemAttribute::ExecutionStatus) {
        return None;
    }
    let mut spans = Vec::new();
    for head in heads(attribute)? {
        spans.push(span(&head)?);
        if matches!(attribute.source, AttributeSource::Named(_)) {
            let any = [&head[..], &[ANY]].concat();
            let end = behind(&any);
            spans.push((any, end));
        }
    }
    Some(spans)
}

/// What the parts of an attribute begin with; none of one by which runs are not found.
fn heads(attribute: &Attribute) -> Option<Vec<Vec<u8>>> {
    match &attribute.source {
        AttributeSource::System(SystemAttribute::RootWorkflowId) => {
            let both = [SystemAttribute::RootWorkflowId, SystemAttribute::WorkflowId];
            Some(both.iter().filter_map(|one| number(*one)).map(|number| vec![number]).collect())
        }
        AttributeSource::System(system) => Some(vec![vec![number(*system)?]]),
        AttributeSource::Named(_) if attribute.kind == AttributeType::Text => None,
        AttributeSource::Named(name) => {
            let mut head = Vec::new();
            named(name, &mut head);
            Some(vec![head])
        }
    }
}

/// Appends the value that is equal to a literal: false where no value of the type is, none where runs are not found by it.
fn equal_value(attribute: &Attribute, literal: &Literal, part: &mut Vec<u8>) -> Option<bool> {
    if attribute.source == AttributeSource::System(SystemAttribute::ExecutionStatus) {
        let Literal::Int(status) = literal else { return None };
        double(*status as f64, part);
        return Some(true);
    }
    let number = match literal {
        Literal::Int(number) => Some(*number as f64),
        Literal::Double(number) => Some(*number),
        Literal::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        Literal::String(_) | Literal::Time(_) => None,
    };
    match (attribute.kind, literal, number) {
        (AttributeType::Keyword | AttributeType::KeywordList, Literal::String(text), _) => string(text, part),
        (AttributeType::Int | AttributeType::Double, _, Some(number)) => double(number, part),
        (AttributeType::Bool, _, Some(0.0)) => part.extend([BOOL, 0]),
        (AttributeType::Bool, _, Some(1.0)) => part.extend([BOOL, 1]),
        (AttributeType::Datetime, Literal::Time(ns), _) => moment_ns(*ns, part),
        (AttributeType::Text, ..) => return None,
        _another_type => return Some(false),
    }
    Some(true)
}

/// The row of a part.
pub(crate) fn row(division: Division, part: &[u8], key: &OrderKey) -> Vec<u8> {
    [&division.prefix(LOOKUP)[..], part, key.bytes()].concat()
}

/// Part and order key of a row's key behind its division; none where it is no lookup.
pub(crate) fn read(rest: &[u8]) -> Option<(&[u8], OrderKey)> {
    let (attribute, mut value) = rest.split_first()?;
    if *attribute == NAMED {
        value = escape::skip(value)?;
    }
    let (kind, value) = value.split_first()?;
    let key = match *kind {
        ANY => value,
        BOOL => value.get(1..)?,
        NUMBER | MOMENT => value.get(8..)?,
        STRING => escape::skip(value)?,
        _other => return None,
    };
    Some((&rest[..rest.len() - key.len()], OrderKey::read(key)?))
}
