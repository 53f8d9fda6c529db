//! The rows of the index, in the store of a partition: the keys begin with the partition, for several may share a database.

use bytes::{BufMut, Bytes, BytesMut};
use everlog_store::{CommittedRows, Error, Space, Store};
use everlog_visibility::index::{IndexRows, WriteIndexRows};

/// Bytes before a key of the index.
const PREFIX_BYTES: usize = 4;

/// IndexRows of one partition's index, to read.
pub(crate) struct PartitionIndex<'a, B: CommittedRows> {
    pub(crate) store: &'a Store<B>,
    pub(crate) partition: u32,
}

/// IndexRows of one partition's index, to change.
pub(crate) struct PartitionIndexMut<'a, B: CommittedRows> {
    pub(crate) store: &'a mut Store<B>,
    pub(crate) partition: u32,
}

/// The key of a row in the store.
pub(crate) fn stored_key(partition: u32, key: &[u8]) -> Bytes {
    let mut stored = BytesMut::with_capacity(PREFIX_BYTES + key.len());
    stored.put_u32(partition);
    stored.put_slice(key);
    stored.freeze()
}

impl<B: CommittedRows> IndexRows for PartitionIndex<'_, B> {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.store.get(Space::Index, &stored_key(self.partition, key))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), Error> {
        let (from, to) = (stored_key(self.partition, from), stored_key(self.partition, to));
        self.store.scan(Space::Index, &from, &to, &mut |key, value| visit(&key[PREFIX_BYTES..], value))
    }
}

impl<B: CommittedRows> IndexRows for PartitionIndexMut<'_, B> {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        PartitionIndex { store: self.store, partition: self.partition }.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), Error> {
        PartitionIndex { store: self.store, partition: self.partition }.scan(from, to, visit)
    }
}

impl<B: CommittedRows> WriteIndexRows for PartitionIndexMut<'_, B> {
    fn put(&mut self, key: Bytes, value: Bytes) {
        self.store.put(Space::Index, stored_key(self.partition, &key), value);
    }

    fn put_new(&mut self, key: Bytes, value: Bytes) {
        self.store.put_new(Space::Index, stored_key(self.partition, &key), value);
    }

    fn delete(&mut self, key: Bytes) {
        self.store.delete(Space::Index, stored_key(self.partition, &key));
    }
}
