//! The position row of a partition: the next offset to apply, and all state that decisions inherit from applied records.

use bytes::Bytes;
use everlog_engine::{Settings, level};
use prost::Message;

use crate::Error;
use crate::public_command::SourcePosition;

/// Committed together with the outputs up to it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Position {
    /// The offset of the next journal record to apply.
    #[prost(uint64, tag = "1")]
    pub applied: u64,
    /// The time of the last applied record: no later one is earlier.
    #[prost(int64, tag = "2")]
    pub last_stamp_ms: i64,
    /// The offset of the latest `Owner` record.
    #[prost(uint64, tag = "3")]
    pub term: u64,
    /// When it took over.
    #[prost(int64, tag = "4")]
    pub owner_ms: i64,
    /// The limits in force.
    #[prost(message, optional, tag = "5")]
    pub settings: Option<Settings>,
    /// The journal's incarnation.
    #[prost(bytes = "bytes", tag = "6")]
    pub incarnation: Bytes,
    /// The level of decisions that the latest `Owner` record names: see [`level`].
    #[prost(uint32, tag = "7")]
    pub level: u32,
    /// How far the records of each partition of each source topic were applied.
    #[prost(message, repeated, tag = "8")]
    pub marks: Vec<SourcePosition>,
    /// The numbers of the last messages sent to each partition, and taken from each.
    #[prost(message, repeated, tag = "9")]
    pub posts: Vec<MessageCursor>,
}

/// The messages between this partition and another, or itself.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct MessageCursor {
    /// The other partition.
    #[prost(uint32, tag = "1")]
    pub partition: u32,
    /// The number of the last message to it.
    #[prost(uint64, tag = "2")]
    pub sent: u64,
    /// The number of the last message taken from it.
    #[prost(uint64, tag = "3")]
    pub taken: u64,
}

/// Up to where the rows beside the log are written. It is written with them, and never to the log.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RestoreCheckpoint {
    /// The position row of the commit, encoded.
    #[prost(bytes = "bytes", tag = "1")]
    pub position: Bytes,
    /// The next offset of the changelog.
    #[prost(uint64, tag = "2")]
    pub changelog: u64,
    /// The next offset of the history.
    #[prost(uint64, tag = "3")]
    pub history: u64,
    /// The next offset of the timers.
    #[prost(uint64, tag = "4")]
    pub timers: u64,
    /// When it was written, in ms since 1970-01-01 UTC by the node's clock: a checkpoint older than the tombstones is unusable.
    #[prost(int64, tag = "5")]
    pub written_ms: i64,
    /// Whose rows they are, counted from 1.
    #[prost(uint64, tag = "6")]
    pub partition: u64,
}

impl RestoreCheckpoint {
    /// The checkpoint's bytes.
    pub fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`Error::Decode`].
    pub fn read(bytes: Bytes) -> Result<Self, Error> {
        Self::decode(bytes).map_err(|error| Error::decode("a mark", &error))
    }
}

impl Position {
    /// The cursor of the messages between this partition and another.
    pub fn post(&mut self, partition: u32) -> &mut MessageCursor {
        let index = match self.posts.binary_search_by_key(&partition, |post| post.partition) {
            Ok(index) => index,
            Err(index) => {
                self.posts.insert(index, MessageCursor { partition, ..MessageCursor::default() });
                index
            }
        };
        &mut self.posts[index]
    }

    /// The number of the last message taken from a partition; 0 = none.
    pub fn taken_from(&self, partition: u32) -> u64 {
        let index = self.posts.binary_search_by_key(&partition, |post| post.partition);
        index.map_or(0, |index| self.posts[index].taken)
    }

    /// The number of the last message sent to a partition; 0 = none.
    pub fn sent_to(&self, partition: u32) -> u64 {
        let index = self.posts.binary_search_by_key(&partition, |post| post.partition);
        index.map_or(0, |index| self.posts[index].sent)
    }

    /// The row's bytes.
    pub fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads a row.
    ///
    /// # Errors
    /// [`Error::Decode`]; [`Error::Version`]: a later release has decided here as this one cannot.
    pub fn read(bytes: Bytes) -> Result<Self, Error> {
        let position = Self::decode(bytes).map_err(|error| Error::decode("a position row", &error))?;
        match position.level {
            0..=level::LATEST => Ok(position),
            version => Err(Error::Version { what: "a position row", version, known: level::LATEST }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_a_later_release_asks_for_an_upgrade() {
        let row = Position { level: level::LATEST + 1, ..Position::default() }.encode();
        assert!(Position::read(row).expect_err("it is refused").to_string().contains("a newer one"));
        assert!(Position::read(Position::default().encode()).is_ok());
    }
}
