//! Writes a record as Avro along its compiled schema: field by field, without an intermediate value.

use std::fmt::Display;

use serde::ser::{Impossible, SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::compiled_schema::{CompiledSchema, Field, SchemaKind};

/// The record and the schema do not agree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Mismatch(String);

impl serde::ser::Error for Mismatch {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Appends the datum.
pub(super) fn datum<T: Serialize>(
    plan: &CompiledSchema,
    record: &T,
    out: &mut Vec<u8>,
) -> Result<(), Mismatch> {
    record.serialize(Pen { kinds: plan.kinds(), place: 0, out })
}

/// Writes the value of one type of the schema.
struct Pen<'a> {
    kinds: &'a [SchemaKind],
    place: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Pen<'a> {
    fn kind(&self) -> &'a SchemaKind {
        &self.kinds[self.place]
    }

    fn at(kinds: &'a [SchemaKind], place: usize, out: &'a mut Vec<u8>) -> Self {
        Self { kinds, place, out }
    }

    fn wrong<T>(&self, given: &str) -> Result<T, Mismatch> {
        Err(Mismatch(format!("{given} where the schema has {:?}", self.kind())))
    }

    fn number(&mut self, number: i64, given: &str) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Long => {}
            SchemaKind::Int if i32::try_from(number).is_ok() => {}
            _other => return self.wrong(given),
        }
        put(self.out, number);
        Ok(())
    }

    fn length(&mut self, bytes: usize) {
        put(self.out, i64::try_from(bytes).expect("memory has less than 2^63 bytes"));
    }
}

/// A number in zigzag and groups of 7 bits.
fn put(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

impl<'a> Serializer for Pen<'a> {
    type Ok = ();
    type Error = Mismatch;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Impossible<(), Mismatch>;
    type SerializeTupleStruct = Impossible<(), Mismatch>;
    type SerializeTupleVariant = Impossible<(), Mismatch>;
    type SerializeMap = Items<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Impossible<(), Mismatch>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, given: bool) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Boolean => {
                self.out.push(u8::from(given));
                Ok(())
            }
            _other => self.wrong("a boolean"),
        }
    }

    fn serialize_i8(self, given: i8) -> Result<(), Mismatch> {
        self.serialize_i64(given.into())
    }

    fn serialize_i16(self, given: i16) -> Result<(), Mismatch> {
        self.serialize_i64(given.into())
    }

    fn serialize_i32(self, given: i32) -> Result<(), Mismatch> {
        self.serialize_i64(given.into())
    }

    fn serialize_i64(mut self, given: i64) -> Result<(), Mismatch> {
        self.number(given, "a number")
    }

    fn serialize_u8(self, given: u8) -> Result<(), Mismatch> {
        self.serialize_i64(given.into())
    }

    fn serialize_u16(self, given: u16) -> Result<(), Mismatch> {
        self.serialize_i64(given.into())
    }

    fn serialize_u32(self, given: u32) -> Result<(), Mismatch> {
        self.serialize_i64(given.into())
    }

    fn serialize_u64(self, given: u64) -> Result<(), Mismatch> {
        match i64::try_from(given) {
            Ok(given) => self.serialize_i64(given),
            Err(_error) => self.wrong("a number above 2^63"),
        }
    }

    fn serialize_f32(self, given: f32) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Fixed(4) => {
                self.out.extend_from_slice(&given.to_le_bytes());
                Ok(())
            }
            _other => self.wrong("a float"),
        }
    }

    fn serialize_f64(self, given: f64) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Fixed(8) => {
                self.out.extend_from_slice(&given.to_le_bytes());
                Ok(())
            }
            _other => self.wrong("a double"),
        }
    }

    fn serialize_char(self, _given: char) -> Result<(), Mismatch> {
        self.wrong("a character")
    }

    fn serialize_str(mut self, given: &str) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Text => {
                self.length(given.len());
                self.out.extend_from_slice(given.as_bytes());
                Ok(())
            }
            _other => self.wrong("a text"),
        }
    }

    fn serialize_bytes(mut self, given: &[u8]) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Bytes => {
                self.length(given.len());
                self.out.extend_from_slice(given);
                Ok(())
            }
            _other => self.wrong("bytes"),
        }
    }

    fn serialize_none(self) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Nullable(_place) => {
                self.out.push(0);
                Ok(())
            }
            _other => self.wrong("nothing"),
        }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, given: &T) -> Result<(), Mismatch> {
        match self.kind() {
            SchemaKind::Nullable(place) => {
                self.out.push(2);
                given.serialize(Pen::at(self.kinds, *place, self.out))
            }
            _other => self.wrong("something or nothing"),
        }
    }

    fn serialize_unit(self) -> Result<(), Mismatch> {
        self.wrong("a unit")
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Mismatch> {
        self.wrong(name)
    }

    fn serialize_unit_variant(self, name: &'static str, _: u32, _: &'static str) -> Result<(), Mismatch> {
        self.wrong(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        given: &T,
    ) -> Result<(), Mismatch> {
        given.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Mismatch> {
        self.wrong(name)
    }

    fn serialize_seq(self, items: Option<usize>) -> Result<Items<'a>, Mismatch> {
        match self.kind() {
            SchemaKind::Array(place) => Items::begin(self.kinds, *place, self.out, items),
            _other => self.wrong("a list"),
        }
    }

    fn serialize_map(self, items: Option<usize>) -> Result<Items<'a>, Mismatch> {
        match self.kind() {
            SchemaKind::Map(place) => Items::begin(self.kinds, *place, self.out, items),
            _other => self.wrong("a map"),
        }
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'a>, Mismatch> {
        match self.kind() {
            SchemaKind::Record(fields) => Ok(Fields { kinds: self.kinds, fields, next: 0, out: self.out }),
            _other => self.wrong(name),
        }
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Mismatch> {
        self.wrong("a tuple")
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeTuple, Mismatch> {
        self.wrong(name)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTuple, Mismatch> {
        self.wrong(name)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Mismatch> {
        self.wrong(name)
    }
}

/// Elements of a list or entries of a map: one block, its end.
struct Items<'a> {
    kinds: &'a [SchemaKind],
    place: usize,
    out: &'a mut Vec<u8>,
    left: usize,
}

impl<'a> Items<'a> {
    fn begin(
        kinds: &'a [SchemaKind],
        place: usize,
        out: &'a mut Vec<u8>,
        items: Option<usize>,
    ) -> Result<Self, Mismatch> {
        let items = items.ok_or_else(|| Mismatch("a list that does not know its length".into()))?;
        if items > 0 {
            put(out, i64::try_from(items).expect("memory has less than 2^63 bytes"));
        }
        Ok(Self { kinds, place, out, left: items })
    }

    fn item<T: Serialize + ?Sized>(&mut self, given: &T) -> Result<(), Mismatch> {
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| Mismatch("a list that is longer than it said".into()))?;
        given.serialize(Pen::at(self.kinds, self.place, self.out))
    }

    fn finish(self) -> Result<(), Mismatch> {
        if self.left > 0 {
            return Err(Mismatch("a list that is shorter than it said".into()));
        }
        self.out.push(0);
        Ok(())
    }
}

impl SerializeSeq for Items<'_> {
    type Ok = ();
    type Error = Mismatch;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, given: &T) -> Result<(), Mismatch> {
        self.item(given)
    }

    fn end(self) -> Result<(), Mismatch> {
        self.finish()
    }
}

impl SerializeMap for Items<'_> {
    type Ok = ();
    type Error = Mismatch;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, given: &T) -> Result<(), Mismatch> {
        given.serialize(Pen { kinds: &[SchemaKind::Text], place: 0, out: self.out })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, given: &T) -> Result<(), Mismatch> {
        self.item(given)
    }

    fn end(self) -> Result<(), Mismatch> {
        self.finish()
    }
}

/// Fields of a record, in the order of the schema.
struct Fields<'a> {
    kinds: &'a [SchemaKind],
    fields: &'a [Field],
    next: usize,
    out: &'a mut Vec<u8>,
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Mismatch;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        given: &T,
    ) -> Result<(), Mismatch> {
        match self.fields.get(self.next) {
            Some(field) if field.is_called(name) => {
                self.next += 1;
                given.serialize(Pen::at(self.kinds, field.place, self.out))
            }
            other => Err(Mismatch(format!("the field {name} where the schema has {other:?}"))),
        }
    }

    fn end(self) -> Result<(), Mismatch> {
        if self.next == self.fields.len() { Ok(()) } else { Err(Mismatch("fields are missing".into())) }
    }
}

#[cfg(test)]
mod tests {
    use apache_avro::Schema;

    use super::*;

    #[derive(Serialize)]
    struct Given {
        b: i32,
        a: Option<&'static str>,
    }

    fn write(fields: &str) -> Result<Vec<u8>, String> {
        let text = format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#);
        let plan = CompiledSchema::new(&Schema::parse_str(&text).expect("a schema")).expect("names resolve");
        let mut out = Vec::new();
        let written = datum(&plan, &Given { b: -1, a: Some("x") }, &mut out);
        written.map(|()| out).map_err(|error| error.to_string())
    }

    #[test]
    fn a_record_that_is_not_its_schemas_is_never_written() {
        let (b, a) = (r#"{"name": "b", "type": "int"}"#, r#"{"name": "a", "type": ["null", "string"]}"#);
        assert_eq!(write(&format!("{b},{a}")), Ok(vec![1, 2, 2, b'x']));
        for fields in [
            format!("{a},{b}"),
            b.to_owned(),
            format!("{b},{a},{}", r#"{"name": "c", "type": "int"}"#),
            format!("{b},{}", r#"{"name": "a", "type": "string"}"#),
            format!("{},{a}", r#"{"name": "b", "type": "string"}"#),
        ] {
            assert!(write(&fields).is_err(), "{fields}");
        }
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_can() {
        let written = |number| {
            let mut out = Vec::new();
            put(&mut out, number);
            out
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(-64), [0x7f]);
        assert_eq!(written(64), [0x80, 1]);
        assert_eq!(written(i64::MIN), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }
}
