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

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::MapEntry;
    use everlog_engine::payload::Payload;
    use prost::Message;
    use uuid::Uuid;

    use super::*;

    fn record(name: &str, data: &str, kind: &str) -> Record {
        let kind = MapEntry { key: "type".into(), value: kind.to_owned().into() };
        let payload = Payload { metadata: vec![kind], data: data.to_owned().into() };
        let entry = MapEntry { key: name.into(), value: payload.encode_to_vec().into() };
        Record { status: 1, search_attributes: vec![entry], ..Record::default() }
    }

    /// The parts of a value, without those that every record has.
    fn parts(name: &str, data: &str) -> Vec<Vec<u8>> {
        let lookups = Lookups::of(&record(name, data, "Keyword"));
        lookups.iter().filter(|part| part[0] == NAMED).map(<[u8]>::to_vec).collect()
    }

    fn attribute(kind: AttributeType) -> Attribute {
        Attribute { source: AttributeSource::Named("K".into()), kind }
    }

    fn is_found(parts: &[Vec<u8>], spans: &[PartSpan]) -> bool {
        parts.iter().any(|part| spans.iter().any(|(from, to)| from <= part && part < to))
    }

    /// Numbers in order; those in one group are one double.
    const NUMBERS: [&[&str]; 9] = [
        &["-1e300"],
        &["-9007199254740992", "-9007199254740993"],
        &["-5"],
        &["-1.5"],
        &["-0.0", "0", "0.0"],
        &["1", "1.0"],
        &["1.5"],
        &["9007199254740992", "9007199254740993"],
        &["1e300"],
    ];

    #[test]
    fn numbers_sort_in_keys_as_they_are() {
        let key = |data: &str| parts("K", data).pop().expect("a part");
        for (place, group) in NUMBERS.iter().enumerate() {
            for (other_place, other) in NUMBERS.iter().enumerate() {
                for (one, another) in
                    group.iter().flat_map(|one| other.iter().map(move |another| (one, another)))
                {
                    assert_eq!(key(one).cmp(&key(another)), place.cmp(&other_place), "{one} {another}");
                }
            }
        }
    }

    #[test]
    fn a_number_is_found_by_every_literal_and_range_that_it_may_match() {
        let literal = |data: &str| match data.parse() {
            Ok(number) => Literal::Int(number),
            Err(_) => Literal::Double(data.parse().expect("a number")),
        };
        let all: Vec<_> = NUMBERS.iter().enumerate().collect();
        for (place, group) in &all {
            for (other_place, other) in &all {
                let (value, literal) = (parts("K", group[0]), literal(other[0]));
                let any = parts_of_any(&attribute(AttributeType::Double), std::slice::from_ref(&literal));
                let any = any.expect("there are rows");
                assert_eq!(any.contains(&value[0]), place == other_place);
                for (range, is_within) in [
                    (RangeOperator::Less, place <= other_place),
                    (RangeOperator::LessOrEqual, place <= other_place),
                    (RangeOperator::Greater, place >= other_place),
                    (RangeOperator::GreaterOrEqual, place >= other_place),
                ] {
                    let spans = spans_of_range(&attribute(AttributeType::Double), range, &literal);
                    assert_eq!(
                        is_found(&value, &spans.expect("there are rows")),
                        is_within,
                        "{group:?} {other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn strings_are_cut_and_found_by_what_is_left() {
        let long = "é".repeat(400);
        let text = |text: &str| parts("K", &format!("\"{text}\""));
        let any = |text: &str| {
            let literal = Literal::String(text.into());
            parts_of_any(&attribute(AttributeType::Keyword), &[literal]).expect("there are rows")
        };
        assert!(text(&long)[0].len() < 270);
        assert!(any(&long).contains(&text(&long)[0]));
        assert!(any(&format!("{long}x")).contains(&text(&long)[0]), "the filter tells them apart");
        assert!(!any("éa").contains(&text(&long)[0]));
        for prefix in ["", "é", &long] {
            let spans = spans_of_prefix(&attribute(AttributeType::Keyword), prefix).expect("there are rows");
            assert!(is_found(&text(&long), &spans));
            assert_eq!(is_found(&text("a"), &spans), prefix.is_empty());
        }
    }

    #[test]
    fn a_value_is_found_by_all_that_it_may_be() {
        let moment = parts("K", "\"1970-01-01T01:00:01+01:00\"");
        assert_eq!(moment.len(), 2, "a string and a moment");
        let equal = parts_of_any(&attribute(AttributeType::Datetime), &[Literal::Time(1_000_000_000)]);
        assert!(equal.expect("there are rows").iter().any(|part| moment.contains(part)));
        assert_eq!(parts("K", "[\"a\", \"b\", \"a\"]").len(), 2, "each once");
        assert_eq!(parts("K", "true").len(), 1);
        for nothing in ["", "null", "[]", "{}", "[[1]]"] {
            assert_eq!(parts("K", nothing), Vec::<Vec<u8>>::new(), "{nothing}");
        }
        assert_eq!(parts("BuildIds", "[\"unversioned\", \"unversioned:one\"]").len(), 1);
        let everywhere = Attribute {
            source: AttributeSource::Named("BuildIds".into()),
            ..attribute(AttributeType::KeywordList)
        };
        assert_eq!(parts_of_any(&everywhere, &[Literal::String("unversioned".into())]), None);
    }

    #[test]
    fn what_is_too_large_is_found_by_all_who_look_for_the_attribute() {
        let many = (0..65).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        let large = format!("\"{}\"", "x".repeat(2_047));
        let text = Lookups::of(&record("K", "\"a word\"", "Text"));
        let text: Vec<_> = text.iter().filter(|part| part[0] == NAMED).map(<[u8]>::to_vec).collect();
        for parts in [parts("K", &format!("[{many}]")), parts("K", &large), text] {
            assert_eq!(parts.len(), 1);
            let any = parts_of_any(&attribute(AttributeType::Keyword), &[Literal::String("?".into())]);
            assert!(any.expect("there are rows").contains(&parts[0]));
            let literal = Literal::String("?".into());
            let spans = spans_of_range(&attribute(AttributeType::Keyword), RangeOperator::Less, &literal);
            assert!(is_found(&parts, &spans.expect("there are rows")));
        }
        assert_eq!(parts_of_any(&attribute(AttributeType::Text), &[Literal::String("a".into())]), None);
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let division = Division { namespace_id: Uuid::from_u128(1), is_inner: true };
        let key = OrderKey::closed(9, 5, Uuid::from_u128(3));
        let values = ["\"a\\u0000b\"", "5", "true", "\"1970-01-01T00:00:01Z\"", "[\"x\", 3]"];
        for part in values.iter().flat_map(|data| parts("K\0", data)) {
            let row = row(division, &part, &key);
            let (read_division, rest) = Division::read(&row).expect("a row");
            assert_eq!((read_division, read(rest)), (division, Some((&part[..], key))));
            for end in 0..rest.len() {
                assert!(read(&rest[..end]).is_none_or(|(_, cut)| cut != key), "{end}");
            }
        }
    }
}
