//! The index rows of a partition's store.

use bytes::Bytes;
use everlog_store::{Error, MemoryRows, Space, Store};
use everlog_visibility::index::{IndexRows, WriteIndexRows};

/// A store of which the index has its own space.
pub struct StoreRows(pub Store<MemoryRows>);

impl StoreRows {
    pub fn new() -> Self {
        Self(Store::new(MemoryRows::default()))
    }

    /// Every row.
    pub fn all(&self) -> Vec<(Bytes, Bytes)> {
        let mut all = Vec::new();
        self.scan(&[], &[u8::MAX], &mut |key, value| {
            all.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
            true
        })
        .expect("the rows are read");
        all
    }
}

impl IndexRows for StoreRows {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.0.get(Space::Index, key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), Error> {
        self.0.scan(Space::Index, from, to, visit)
    }
}

impl WriteIndexRows for StoreRows {
    fn put(&mut self, key: Bytes, value: Bytes) {
        self.0.put(Space::Index, key, value);
    }

    fn put_new(&mut self, key: Bytes, value: Bytes) {
        let before = self.0.get(Space::Index, &key).expect("the rows are read");
        assert_eq!(before, None, "a row is said to be new, and is there");
        self.0.put_new(Space::Index, key, value);
    }

    fn delete(&mut self, key: Bytes) {
        let before = self.0.get(Space::Index, &key).expect("the rows are read");
        assert_ne!(before, None, "a row is deleted that is not there");
        self.0.delete(Space::Index, key);
    }
}
