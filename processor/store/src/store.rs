//! The rows of a partition: active changes, over those being committed, over the committed rows.

use std::collections::btree_map::Range;
use std::iter::Peekable;

use bytes::Bytes;

use crate::overlay::{Layer, Row};
use crate::{Change, CommittedRows, Error, Seek, Space};

/// Rows with two layers of changes in memory; every read sees all three as one.
pub struct Store<B: CommittedRows> {
    base: B,
    active: Layer,
    committing: Option<Layer>,
}

impl<B: CommittedRows> Store<B> {
    /// No changes yet.
    pub fn new(base: B) -> Self {
        Store { base, active: Layer::default(), committing: None }
    }

    /// The row under a key.
    pub fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        match self.changed(space, key) {
            Some(row) => Ok(row.value.clone()),
            None => self.base.get(space, key),
        }
    }

    /// Writes a row.
    pub fn put(&mut self, space: Space, key: Bytes, value: Bytes) {
        self.active.put(space, key, value, false);
    }

    /// Writes a row under a new key: neither a layer nor the committed rows have it. If it is deleted before the next commit
    /// begins, nothing is written.
    pub fn put_new(&mut self, space: Space, key: Bytes, value: Bytes) {
        self.active.put(space, key, value, true);
    }

    /// Deletes a row, if there is one.
    pub fn delete(&mut self, space: Space, key: Bytes) {
        self.active.delete(space, key);
    }

    /// Visits the rows with `from <= key < to` in key order until `visit` says false.
    pub fn scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        let mut overlay = self.overlay(space, from, to);
        let mut wanted = true;
        self.base.scan(space, from, to, &mut |key, value| {
            wanted = overlay.visit_below(Some(key), visit)
                && match overlay.take(key) {
                    None => visit(key, value),
                    Some(Row { value: Some(value), .. }) => visit(key, value),
                    Some(Row { value: None, .. }) => true,
                };
            wanted
        })?;
        if wanted {
            overlay.visit_below(None, visit);
        }
        Ok(())
    }

    /// Visits keys with `from <= key < to` in order and seeks where `visit` says; `visit` ignores the keys that it does not want.
    pub fn seek_scan(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Seek,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        let mut overlay = self.overlay(space, from, to);
        let mut wanted = true;
        self.base.seek_scan(space, from, to, &mut |key| {
            let mut onward = Seek::Next;
            wanted = overlay.visit_below(Some(key), &mut |key, _| visit(key) != Seek::End);
            if wanted && overlay.take(key).is_none_or(|row| row.value.is_some()) {
                onward = visit(key);
                wanted = onward != Seek::End;
            }
            if wanted { onward } else { Seek::End }
        })?;
        if wanted {
            overlay.visit_below(None, &mut |key, _| visit(key) != Seek::End);
        }
        Ok(())
    }

    /// `scan` of rows that are written once, in key order: where the first of them is a change that waits for its commit,
    /// those behind it are too, and the base is not asked.
    pub fn scan_appended(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        if from < to && self.changed(space, from).is_some_and(|row| row.value.is_some()) {
            self.overlay(space, from, to).visit_below(None, visit);
            return Ok(());
        }
        self.scan(space, from, to, visit)
    }

    /// The last row with `from <= key < to`.
    pub fn last(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<(Bytes, Bytes)>, Error> {
        let mut to = Bytes::copy_from_slice(to);
        while from < to.as_ref() {
            let layers = [Some(&self.active), self.committing.as_ref()].into_iter().flatten();
            let changed = layers
                .filter_map(|layer| layer.range(space, from, &to).next_back())
                .map(|(key, _)| key)
                .max();
            let committed = self.base.last(space, from, &to)?;
            let Some(changed) =
                changed.filter(|changed| committed.as_ref().is_none_or(|(key, _)| *changed >= key))
            else {
                return Ok(committed);
            };
            let changed = changed.clone();
            if let Some(value) = self.changed(space, &changed).and_then(|row| row.value.clone()) {
                return Ok(Some((changed, value)));
            }
            to = changed;
        }
        Ok(None)
    }

    /// About the memory of both layers, in bytes.
    pub fn overlay_bytes(&self) -> usize {
        self.active.size_bytes() + self.committing.as_ref().map_or(0, Layer::size_bytes)
    }

    /// Hands out the active changes, each key once, in the order of space and key; they stay readable.
    ///
    /// # Panics
    /// If the commit before is neither `committed` nor `commit_failed`.
    pub fn begin_commit(&mut self) -> Vec<Change> {
        assert!(self.committing.is_none(), "the commit before must end first");
        let layer = std::mem::take(&mut self.active);
        let changes = layer.changes();
        self.committing = Some(layer);
        changes
    }

    /// The log has the changes of the commit: they become rows of the base, with the mark that says up to where.
    pub fn committed(&mut self, mark: Option<&[u8]>) -> Result<(), Error> {
        if let Some(layer) = &self.committing {
            self.base.write(&mut layer.rows(), mark)?;
        }
        self.committing = None;
        Ok(())
    }

    /// The committed rows below.
    pub fn base(&self) -> &B {
        &self.base
    }

    /// The changes of the commit are not in the base: they join the active ones and go into the next commit.
    pub fn commit_failed(&mut self) {
        if let Some(mut merged) = self.committing.take() {
            merged.absorb(std::mem::take(&mut self.active));
            self.active = merged;
        }
    }

    /// The changes with `from <= key < to`.
    fn overlay(&self, space: Space, from: &[u8], to: &[u8]) -> Overlay<'_> {
        Overlay {
            active: self.active.range(space, from, to).peekable(),
            committing: self.committing.as_ref().map(|layer| layer.range(space, from, to).peekable()),
        }
    }

    fn changed(&self, space: Space, key: &[u8]) -> Option<&Row> {
        self.active.get(space, key).or_else(|| self.committing.as_ref()?.get(space, key))
    }
}

/// Both layers, merged in key order; the active one wins.
struct Overlay<'a> {
    active: Peekable<Range<'a, Bytes, Row>>,
    committing: Option<Peekable<Range<'a, Bytes, Row>>>,
}

impl Overlay<'_> {
    /// Visits the live rows below a key (None: all that are left); false if `visit` said so.
    fn visit_below(&mut self, top: Option<&[u8]>, visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> bool {
        while let Some(key) = self.first().filter(|key| top.is_none_or(|top| key.as_ref() < top)) {
            let value = self.take(&key).and_then(|row| row.value.as_deref());
            if let Some(value) = value
                && !visit(&key, value)
            {
                return false;
            }
        }
        true
    }

    fn first(&mut self) -> Option<Bytes> {
        let active = self.active.peek().map(|(key, _)| *key);
        let committing = self.committing.as_mut().and_then(Peekable::peek).map(|(key, _)| *key);
        match (active, committing) {
            (Some(active), Some(committing)) => Some(active.min(committing).clone()),
            (one, None) => one.cloned(),
            (None, other) => other.cloned(),
        }
    }

    /// Passes the key in both layers, if it is their next, and gives the row that counts.
    fn take(&mut self, key: &[u8]) -> Option<&Row> {
        let active = self.active.next_if(|(first, _)| first.as_ref() == key);
        let committing =
            self.committing.as_mut().and_then(|rows| rows.next_if(|(first, _)| first.as_ref() == key));
        active.or(committing).map(|(_, row)| row)
    }
}
