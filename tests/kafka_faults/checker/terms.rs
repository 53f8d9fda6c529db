//! The owner-epoch log has no overlap: who had a partition when, as journals, fences and positions tell it.
//!
//! A fence is drawn from `control`, then the journal gets an `Owner` record, whose offset is the term. Every commit has a
//! fence and a position with the term up to which it came: fences and terms only ever rise, a term is that of the last
//! `Owner` record before the position, and nobody commits past the `Owner` record of whoever came after him. Records of
//! a superseded term are void.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};

use crate::observations::varint;
use crate::reader::Entry;

/// What keys of `control` begin with that gave out a fence; the partition follows.
const FENCE: [u8; 2] = [0xff, b'f'];
/// Fields of a journal record: its term, and what it asks for. Public records stand under no term.
const TERM: u64 = 2;
const OWNER: u64 = 3;
const PUBLIC: [u64; 2] = [6, 7];
/// Fields of an `Owner` record.
const NODE: u64 = 1;
const INSTANCE: u64 = 2;
/// Field of the caller's part of a position row.
const POSITION_TERM: u64 = 3;
/// In front of it: the next journal offset, the log's incarnation, the fence.
pub const POSITION_HEAD_BYTES: usize = 32;
/// The identities of the ledger.
const CALL: &[u8] = b"call-";

/// A fence as it was given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub partition: i32,
    pub number: u64,
    pub node: String,
    pub time_ms: i64,
}

/// A node takes a partition over: its place in the journal is the term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub partition: i32,
    pub offset: u64,
    pub node: String,
    pub instance: Vec<u8>,
    pub time_ms: i64,
}

/// Another record of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub partition: i32,
    pub offset: u64,
    /// None where it stands under no term.
    pub term: Option<u64>,
    /// Numbers of the orders that stand in it.
    pub calls: BTreeSet<usize>,
}

/// Where a commit closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub partition: i32,
    pub offset: i64,
    pub fence: u64,
    /// The next journal offset to apply.
    pub applied: u64,
    pub term: u64,
}

/// All of it, each in the order of its topic.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub fences: Vec<Fence>,
    pub owners: Vec<Owner>,
    pub records: Vec<Record>,
    pub positions: Vec<Position>,
    /// The first offset that is left of each journal.
    pub starts: BTreeMap<i32, u64>,
}

impl Terms {
    /// Takes in a row of `control`.
    pub fn note_control(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let key = entry.key.as_deref().unwrap_or_default();
        let Some(partition) = key.strip_prefix(&FENCE) else { return Ok(()) };
        self.fences.push(Fence {
            partition: i32::from_be_bytes(partition.try_into()?),
            // Counted from 1.
            number: u64::try_from(entry.offset)? + 1,
            node: String::from_utf8_lossy(entry.value.as_deref().unwrap_or_default()).into_owned(),
            time_ms: entry.time_ms,
        });
        Ok(())
    }

    /// Takes in a record of a journal.
    pub fn note_journal(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let bytes = entry.value.as_deref().context("a journal record has a value")?;
        let (partition, offset) = (entry.partition, u64::try_from(entry.offset)?);
        self.starts.entry(partition).or_insert(offset);
        let (mut term, mut owner, mut is_public) = (0, None, false);
        for field in fields(bytes)? {
            match field {
                (TERM, Field::Number(number)) => term = number,
                (OWNER, Field::Bytes(bytes)) => owner = Some(bytes),
                (tag, Field::Bytes(_)) if PUBLIC.contains(&tag) => is_public = true,
                _other => {}
            }
        }
        let Some(owner) = owner else {
            let term = (!is_public).then_some(term);
            self.records.push(Record { partition, offset, term, calls: calls(bytes) });
            return Ok(());
        };
        let (mut node, mut instance) = (String::new(), Vec::new());
        for field in fields(owner)? {
            match field {
                (NODE, Field::Bytes(bytes)) => node = String::from_utf8(bytes.to_vec())?,
                (INSTANCE, Field::Bytes(bytes)) => instance = bytes.to_vec(),
                _other => {}
            }
        }
        self.owners.push(Owner { partition, offset, node, instance, time_ms: entry.time_ms });
        Ok(())
    }

    /// Takes in a position row of the changelog.
    pub fn note_position(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let value = entry.value.as_deref().context("a position row has a value")?;
        ensure!(value.len() >= POSITION_HEAD_BYTES, "a position row of {} bytes", value.len());
        let (head, row) = value.split_at(POSITION_HEAD_BYTES);
        let long = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let term = fields(row)?.into_iter().find_map(|field| match field {
            (POSITION_TERM, Field::Number(term)) => Some(term),
            _other => None,
        });
        self.positions.push(Position {
            partition: entry.partition,
            offset: entry.offset,
            fence: long(24),
            applied: long(0),
            term: term.unwrap_or(0),
        });
        Ok(())
    }

    /// The latest `Owner` record in front of an offset; none where it is not there any more.
    fn owner_before(&self, partition: i32, offset: u64) -> Option<&Owner> {
        let owners = self.owners.iter().filter(|owner| owner.partition == partition);
        owners.take_while(|owner| owner.offset < offset).last()
    }

    /// The `Owner` record of whoever drew a fence: his first one behind it, before he drew another.
    fn owner_of(&self, partition: i32, fence: u64) -> Option<&Owner> {
        let mut drawn = self.fences.iter().filter(|drawn| drawn.partition == partition);
        let fence = drawn.find(|drawn| drawn.number == fence)?;
        let next_ms = drawn.find(|next| next.node == fence.node).map_or(i64::MAX, |next| next.time_ms);
        let mut owners = self.owners.iter().filter(|owner| owner.partition == partition);
        owners.find(|owner| owner.node == fence.node && (fence.time_ms..next_ms).contains(&owner.time_ms))
    }

    /// Orders of which each record is void.
    pub fn void_calls(&self) -> BTreeSet<usize> {
        let (mut void, mut counts) = (BTreeSet::new(), BTreeSet::new());
        for record in &self.records {
            let owner = self.owner_before(record.partition, record.offset).map(|owner| owner.offset);
            let is_void = record.term.is_some_and(|term| owner.is_some_and(|owner| owner != term));
            if is_void { void.extend(&record.calls) } else { counts.extend(&record.calls) }
        }
        void.difference(&counts).copied().collect()
    }
}

/// What is wrong with fences and terms; `effects` are orders that have one.
pub fn check(terms: &Terms, effects: &BTreeSet<usize>, found: &mut Vec<String>) {
    let mut last: BTreeMap<i32, &Position> = BTreeMap::new();
    for position in &terms.positions {
        let Position { partition, offset, fence, applied, term } = position;
        let named = format!("changelog {partition}-{offset}, fence {fence}, term {term}");
        if let Some(before) = last.insert(*partition, position)
            && (before.fence > *fence || before.term > *term)
        {
            found.push(format!("{named}: stands behind fence {}, term {}", before.fence, before.term));
        }
        let wanted = terms.owner_before(*partition, *applied);
        let Some(wanted) = wanted else { continue };
        if wanted.offset != *term {
            found.push(format!("{named}: up to {applied} the last owner is that of {}", wanted.offset));
        }
        if let Some(own) = terms.owner_of(*partition, *fence)
            && wanted.offset > own.offset
            && wanted.instance != own.instance
        {
            found.push(format!(
                "{named}: {} took over at {} and committed past the Owner record of {}",
                own.node, own.offset, wanted.node
            ));
        }
    }
    // What is gone may have counted.
    if terms.starts.values().any(|start| *start > 0) {
        return;
    }
    for call in terms.void_calls().intersection(effects) {
        found.push(format!("call-{call} has an effect, and all its records are of a superseded term"));
    }
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a protobuf message: whole numbers, and those with a length.
fn fields(mut bytes: &[u8]) -> anyhow::Result<Vec<(u64, Field<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        match tag & 7 {
            0 => fields.push((tag >> 3, Field::Number(varint(&mut bytes)?))),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?)?;
                let (field, rest) = bytes.split_at_checked(length).context("it ends too soon")?;
                fields.push((tag >> 3, Field::Bytes(field)));
                bytes = rest;
            }
            other => anyhow::bail!("wire type {other} in a journal record or a position"),
        }
    }
    Ok(fields)
}

/// The numbers of orders whose identities stand anywhere in some bytes.
fn calls(bytes: &[u8]) -> BTreeSet<usize> {
    let at = bytes.windows(CALL.len()).enumerate().filter(|(_, window)| *window == CALL);
    let numbers = at.filter_map(|(at, _)| {
        let digits = bytes[at + CALL.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let digits: String = digits.map(|byte| char::from(*byte)).collect();
        digits.parse().ok()
    });
    numbers.collect()
}
