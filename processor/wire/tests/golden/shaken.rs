//! The codecs as property tests: the golden samples, shaken until their fields say anything at all.
//!
//! A sample has every field filled in, so its bytes show where every field stands. Fields of them, at any depth, are
//! left out, written twice, or given another number or other bytes. What then can still be read must be the same after
//! another round trip; what cannot must be refused.

use bytes::Bytes;
use everlog_engine::event::HistoryEvent;
use everlog_wire::rows::{Builder, diff};
use everlog_wire::{Position, Record};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

use crate::{events, records, rows};

/// A field as it stands on the wire.
#[derive(Clone, Debug)]
struct Field {
    tag: u32,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bits64([u8; 8]),
    Bytes(Vec<u8>),
    /// Bytes that can be read as a message, and mostly are one.
    Message(Vec<Field>),
}

/// What is done to a field.
#[derive(Clone, Debug)]
enum Shake {
    Drop,
    Twice,
    Number(u64),
    Bits64([u8; 8]),
    Text(String),
    Bytes(Vec<u8>),
}

fn read(mut rest: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (tag, wire_type) = decode_key(&mut rest).ok()?;
        let value = match wire_type {
            WireType::Varint => Value::Number(decode_varint(&mut rest).ok()?),
            WireType::SixtyFourBit => {
                let (bits, behind) = rest.split_first_chunk::<8>()?;
                rest = behind;
                Value::Bits64(*bits)
            }
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                let (body, behind) = rest.split_at_checked(length)?;
                rest = behind;
                match read(body).filter(|fields| !fields.is_empty()) {
                    Some(fields) => Value::Message(fields),
                    None => Value::Bytes(body.to_vec()),
                }
            }
            WireType::StartGroup | WireType::EndGroup | WireType::ThirtyTwoBit => return None,
        };
        fields.push(Field { tag, value });
    }
    Some(fields)
}

fn write(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    let delimited = |tag: u32, body: &[u8], out: &mut Vec<u8>| {
        encode_key(tag, WireType::LengthDelimited, out);
        encode_varint(body.len() as u64, out);
        out.extend_from_slice(body);
    };
    for Field { tag, value } in fields {
        match value {
            Value::Number(number) => {
                encode_key(*tag, WireType::Varint, &mut out);
                encode_varint(*number, &mut out);
            }
            Value::Bits64(bits) => {
                encode_key(*tag, WireType::SixtyFourBit, &mut out);
                out.extend_from_slice(bits);
            }
            Value::Bytes(bytes) => delimited(*tag, bytes, &mut out),
            Value::Message(fields) => delimited(*tag, &write(fields), &mut out),
        }
    }
    out
}

fn count(fields: &[Field]) -> usize {
    let inner = |field: &Field| match &field.value {
        Value::Message(fields) => count(fields),
        Value::Number(_) | Value::Bits64(_) | Value::Bytes(_) => 0,
    };
    fields.iter().map(|field| 1 + inner(field)).sum()
}

/// Shakes the field that stands at `place` if every field is counted, outer ones before inner ones; what is left of
/// `place` where it lies behind these.
fn shake(fields: &mut Vec<Field>, mut place: usize, how: &Shake) -> Option<usize> {
    for index in 0..fields.len() {
        if place == 0 {
            match (how, &mut fields[index].value) {
                (Shake::Drop, _) => drop(fields.remove(index)),
                (Shake::Twice, _) => fields.insert(index, fields[index].clone()),
                (Shake::Number(number), Value::Number(value)) => *value = *number,
                (Shake::Bits64(bits), Value::Bits64(value)) => *value = *bits,
                (Shake::Text(text), value @ (Value::Bytes(_) | Value::Message(_))) => {
                    *value = Value::Bytes(text.clone().into_bytes());
                }
                (Shake::Bytes(bytes), value @ (Value::Bytes(_) | Value::Message(_))) => {
                    *value = Value::Bytes(bytes.clone());
                }
                (Shake::Number(_) | Shake::Bits64(_) | Shake::Text(_) | Shake::Bytes(_), _) => {}
            }
            return None;
        }
        place -= 1;
        if let Value::Message(inner) = &mut fields[index].value {
            place = shake(inner, place, how)?;
        }
    }
    Some(place)
}

fn shakes() -> impl Strategy<Value = Vec<(Index, Shake)>> {
    let how = prop_oneof![
        Just(Shake::Drop),
        Just(Shake::Twice),
        any::<u64>().prop_map(Shake::Number),
        (0..300_u64).prop_map(Shake::Number),
        any::<[u8; 8]>().prop_map(Shake::Bits64),
        ".{0,8}".prop_map(Shake::Text),
        any::<Vec<u8>>().prop_map(Shake::Bytes),
    ];
    proptest::collection::vec((any::<Index>(), how), 0..6)
}

fn shaken(sample: &[u8], shakes: &[(Index, Shake)]) -> Bytes {
    let mut fields = read(sample).expect("a sample is a message");
    for (index, how) in shakes {
        let fields_in_all = count(&fields);
        if fields_in_all > 0 {
            shake(&mut fields, index.index(fields_in_all), how);
        }
    }
    write(&fields).into()
}

/// Bytes are compared, not values: a coefficient that is no number is not equal to itself.
fn round_trips<M: Message + Default>(bytes: Bytes) -> Result<(), TestCaseError> {
    if let Ok(message) = M::decode(bytes) {
        let written = message.encode_to_vec();
        let again = M::decode(written.as_slice()).expect("what was written can be read");
        prop_assert_eq!(again.encode_to_vec(), written);
    }
    Ok(())
}

fn samples<M: Message>(samples: impl IntoIterator<Item = (String, M)>) -> impl Strategy<Value = Vec<u8>> {
    let bytes = samples.into_iter().map(|(_, sample)| sample.encode_to_vec());
    select(bytes.collect::<Vec<_>>())
}

/// The rows of a run, by their suffixes.
fn sample_rows() -> Vec<(Vec<u8>, Bytes)> {
    let mut all = Vec::new();
    diff(None, &rows::sample(), |suffix, value| {
        all.push((suffix.to_vec(), value.expect("a new run has only rows with a value")));
    });
    all
}

fn rows_of(all: &[(Vec<u8>, Bytes)]) -> Option<Vec<(Vec<u8>, Bytes)>> {
    let mut builder = Builder::default();
    for (suffix, value) in all {
        builder.row(suffix, value).ok()?;
    }
    let run = builder.finish().ok()??;
    let mut written = Vec::new();
    diff(None, &run, |suffix, value| written.push((suffix.to_vec(), value.unwrap_or_default())));
    Some(written)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_comes_back_as_it_was_written(sample in samples(events::samples()), shakes in shakes()) {
        round_trips::<HistoryEvent>(shaken(&sample, &shakes))?;
    }

    #[test]
    fn every_record_comes_back_as_it_was_written(
        sample in select(records::samples().into_values().map(|record| record.encode()).collect::<Vec<_>>()),
        shakes in shakes(),
    ) {
        let bytes = shaken(&sample, &shakes);
        round_trips::<Record>(bytes.clone())?;
        if let Ok(record) = Record::read(bytes) {
            let written = record.encode();
            let again = Record::read(written.clone()).expect("what was written can be read");
            prop_assert_eq!(again.encode(), written);
        }
    }

    #[test]
    fn every_position_comes_back_as_it_was_written(shakes in shakes()) {
        round_trips::<Position>(shaken(&records::position().encode(), &shakes))?;
    }

    #[test]
    fn every_run_comes_back_from_its_rows(row in any::<Index>(), shakes in shakes()) {
        let mut all = sample_rows();
        let row = row.index(all.len());
        all[row].1 = shaken(&all[row].1, &shakes);
        // What cannot be read is refused; of what can, the rows are the same from then on.
        if let Some(written) = rows_of(&all) {
            prop_assert_eq!(rows_of(&written), Some(written));
        }
    }
}

#[test]
fn a_sample_that_is_not_shaken_is_the_same() {
    for sample in events::samples().into_values() {
        let bytes = sample.encode_to_vec();
        assert_eq!(shaken(&bytes, &[]), bytes);
    }
}
