//! One topic of one partition.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_log::{Offset, Output};

/// One record of a topic.
#[derive(Clone, Debug)]
pub struct Row {
    pub offset: Offset,
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// What was committed to a topic, in order; every commit takes one more offset than it has records.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    pub rows: Vec<Row>,
    pub start: Offset,
    pub next: Offset,
    /// A restore from a mark below this one would miss tombstones.
    pub forgotten: Offset,
}

impl Topic {
    pub fn push(&mut self, output: &Output) {
        self.rows.push(Row { offset: self.next, key: output.key.clone(), value: output.value.clone() });
        self.next += 1;
    }

    /// The end of a transaction has a place of its own.
    pub fn seal(&mut self) {
        self.next += 1;
    }

    /// Keeps only the last row of each key, and no tombstone below the end.
    pub fn clean(&mut self, keep_tombstones_from: Offset) {
        let mut last: BTreeMap<Bytes, Offset> = BTreeMap::new();
        for row in &self.rows {
            last.insert(row.key.clone(), row.offset);
        }
        let mut forgotten = self.forgotten;
        self.rows.retain(|row| {
            let latest = last.get(&row.key) == Some(&row.offset);
            let drop_tombstone = row.value.is_none() && row.offset < keep_tombstones_from;
            if latest && drop_tombstone {
                forgotten = forgotten.max(row.offset + 1);
            }
            latest && !drop_tombstone
        });
        self.forgotten = forgotten;
    }

    /// The live rows.
    pub fn live(&self) -> BTreeMap<Bytes, Bytes> {
        let mut live = BTreeMap::new();
        for row in &self.rows {
            match &row.value {
                Some(value) => live.insert(row.key.clone(), value.clone()),
                None => live.remove(&row.key),
            };
        }
        live
    }
}
