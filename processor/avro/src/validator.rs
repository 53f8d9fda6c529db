//! Validates Avro bytes against their schema without allocating: lengths, counts, depth, text, and no bytes left over.
//!
//! The decoder takes a truncated record for one with nulls, and allocates what a count claims. So it decodes only bytes
//! that were validated here.

use crate::compiled_schema::{CompiledSchema, SchemaKind};

/// What is taken of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the body.
    pub bytes_max: usize,
    /// Records, arrays, maps and unions within each other.
    pub depth_max: u32,
    /// Elements of arrays and entries of maps, all together.
    pub items_max: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes_max: 16 << 20, depth_max: 64, items_max: 200_000 }
    }
}

/// Why bytes are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("it ends too early")]
    Short,
    #[error("{0} bytes are left over")]
    Long(usize),
    #[error("it has more than {0} bytes")]
    Bytes(usize),
    #[error("it is nested deeper than {0}")]
    Depth(u32),
    #[error("it has more than {0} elements")]
    Items(u32),
    #[error("a number has too many bytes")]
    Number,
    #[error("a length or a count is negative")]
    Negative,
    #[error("a text is not UTF-8")]
    Text,
    #[error("a boolean is neither 0 nor 1")]
    Boolean,
    #[error("there is no branch {0} in a union")]
    Branch(i64),
    #[error("there is no symbol {0} in an enum")]
    Symbol(i64),
}

/// Checks that the bytes are exactly one datum of the schema.
pub(super) fn sift(plan: &CompiledSchema, bytes: &[u8], bounds: &Bounds) -> Result<(), Fault> {
    if bytes.len() > bounds.bytes_max {
        return Err(Fault::Bytes(bounds.bytes_max));
    }
    let mut sieve = Validator { kinds: plan.kinds(), rest: bytes, bounds, items: 0 };
    sieve.datum(0, 0)?;
    if sieve.rest.is_empty() { Ok(()) } else { Err(Fault::Long(sieve.rest.len())) }
}

struct Validator<'a> {
    kinds: &'a [SchemaKind],
    rest: &'a [u8],
    bounds: &'a Bounds,
    items: u32,
}

impl Validator<'_> {
    fn datum(&mut self, place: usize, depth: u32) -> Result<(), Fault> {
        if depth > self.bounds.depth_max {
            return Err(Fault::Depth(self.bounds.depth_max));
        }
        match &self.kinds[place] {
            SchemaKind::Null => Ok(()),
            SchemaKind::Boolean => match self.take(1)? {
                [0 | 1] => Ok(()),
                _other => Err(Fault::Boolean),
            },
            SchemaKind::Int => i32::try_from(self.number()?).map(drop).map_err(|_error| Fault::Number),
            SchemaKind::Long => self.number().map(drop),
            SchemaKind::Fixed(bytes) => self.take(*bytes).map(drop),
            SchemaKind::Bytes => self.blob().map(drop),
            SchemaKind::Text => self.text(),
            SchemaKind::Enum(symbols) => {
                let symbol = self.number()?;
                let known = usize::try_from(symbol).is_ok_and(|symbol| symbol < *symbols);
                if known { Ok(()) } else { Err(Fault::Symbol(symbol)) }
            }
            SchemaKind::Array(items) => self.blocks(|sieve| sieve.datum(*items, depth + 1)),
            SchemaKind::Map(values) => self.blocks(|sieve| {
                sieve.text()?;
                sieve.datum(*values, depth + 1)
            }),
            SchemaKind::Union(branches) => {
                let branch = self.number()?;
                let place = usize::try_from(branch).ok().and_then(|branch| branches.get(branch));
                self.datum(*place.ok_or(Fault::Branch(branch))?, depth + 1)
            }
            SchemaKind::Nullable(place) => match self.number()? {
                0 => Ok(()),
                1 => self.datum(*place, depth + 1),
                branch => Err(Fault::Branch(branch)),
            },
            SchemaKind::Record(fields) => {
                fields.iter().try_for_each(|field| self.datum(field.place, depth + 1))
            }
        }
    }

    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        loop {
            let mut count = self.number()?;
            if count < 0 {
                // The bytes of the block follow; they are found out anyway.
                count = count.checked_neg().ok_or(Fault::Negative)?;
                if self.number()? < 0 {
                    return Err(Fault::Negative);
                }
            }
            if count == 0 {
                return Ok(());
            }
            let most = self.bounds.items_max;
            let items = u32::try_from(count).ok().and_then(|count| self.items.checked_add(count));
            self.items = items.filter(|items| *items <= most).ok_or(Fault::Items(most))?;
            for _ in 0..count {
                item(self)?;
            }
        }
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Fault::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn blob(&mut self) -> Result<&[u8], Fault> {
        let length = self.number()?;
        if length < 0 {
            return Err(Fault::Negative);
        }
        self.take(usize::try_from(length).map_err(|_error| Fault::Short)?)
    }

    fn text(&mut self) -> Result<(), Fault> {
        std::str::from_utf8(self.blob()?).map(drop).map_err(|_error| Fault::Text)
    }

    /// A number in zigzag and groups of 7 bits.
    fn number(&mut self) -> Result<i64, Fault> {
        let mut found = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            if shift == 63 && byte > 1 {
                return Err(Fault::Number);
            }
            found |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((found >> 1) as i64 ^ -((found & 1) as i64));
            }
        }
        Err(Fault::Number)
    }
}
