//! One layer of changed rows in memory, ordered by key, with the count of its bytes.

use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, Range};
use std::ops::Bound;

use bytes::Bytes;

use crate::{Change, RowChange, Space};

/// Memory of a row in the map besides its key and value, about.
const ROW_BYTES: usize = 96;

/// A changed row: None is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) value: Option<Bytes>,
    /// Nothing below this layer has the key, so deleting it leaves nothing to write.
    pub(crate) new: bool,
}

#[derive(Default)]
pub(crate) struct Layer {
    spaces: [BTreeMap<Bytes, Row>; Space::ALL.len()],
    size_bytes: usize,
}

impl Layer {
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Option<&Row> {
        self.spaces[index(space)].get(key)
    }

    pub(crate) fn range(&self, space: Space, from: &[u8], to: &[u8]) -> Range<'_, Bytes, Row> {
        self.spaces[index(space)].range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)))
    }

    /// `new` counts only for a key that the layer has not.
    pub(crate) fn put(&mut self, space: Space, key: Bytes, value: Bytes, new: bool) {
        self.size_bytes += value.len();
        match self.spaces[index(space)].entry(key) {
            Entry::Occupied(mut entry) => {
                let before = entry.get_mut().value.replace(value);
                self.size_bytes -= before.map_or(0, |value| value.len());
            }
            Entry::Vacant(entry) => {
                self.size_bytes += entry.key().len() + ROW_BYTES;
                entry.insert(Row { value: Some(value), new });
            }
        }
    }

    pub(crate) fn delete(&mut self, space: Space, key: Bytes) {
        match self.spaces[index(space)].entry(key) {
            Entry::Occupied(mut entry) => {
                let before = entry.get_mut().value.take();
                self.size_bytes -= before.map_or(0, |value| value.len());
                if entry.get().new {
                    self.size_bytes -= entry.key().len() + ROW_BYTES;
                    entry.remove();
                }
            }
            Entry::Vacant(entry) => {
                self.size_bytes += entry.key().len() + ROW_BYTES;
                entry.insert(Row { value: None, new: false });
            }
        }
    }

    pub(crate) fn changes(&self) -> Vec<Change> {
        let of = |space: Space| {
            let rows = &self.spaces[index(space)];
            rows.iter().map(move |(key, row)| (space, key.clone(), row.value.clone()))
        };
        Space::ALL.into_iter().flat_map(of).collect()
    }

    /// The same, borrowed.
    pub(crate) fn rows(&self) -> impl Iterator<Item = RowChange<'_>> {
        let of = |space: Space| {
            let rows = &self.spaces[index(space)];
            rows.iter().map(move |(key, row)| (space, key.as_ref(), row.value.as_deref()))
        };
        Space::ALL.into_iter().flat_map(of)
    }

    /// Lays `above` over this layer: its rows win, but what is new is said by the lower layer.
    pub(crate) fn absorb(&mut self, above: Layer) {
        for (space, rows) in Space::ALL.into_iter().zip(above.spaces) {
            for (key, row) in rows {
                match row.value {
                    Some(value) => self.put(space, key, value, row.new),
                    None => self.delete(space, key),
                }
            }
        }
    }
}

fn index(space: Space) -> usize {
    match space {
        Space::State => 0,
        Space::History => 1,
        Space::Timers => 2,
        Space::Index => 3,
    }
}
