//! The positions of the partitions of a log, and the position that partitions of another log begin with.

use bytes::Bytes;
use everlog_wire::{Body, Position, Record};
use prost::Message as _;

use crate::error::Error;
use crate::model::keys::Address;

/// The positions of all partitions that have committed anything, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct ExportedPositions(Vec<(u32, Position)>);

/// A message that is taken and not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntoldMessage {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The number of the last message that the receiver has taken.
    pub taken: u64,
    /// The number of the last message that the sender has sent.
    pub sent: u64,
}

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedMessage {
    /// The partition that has the Workflow Id in a log with so many.
    pub to: u32,
    /// The record of a journal that nobody owns yet.
    pub record: Bytes,
}

/// The time of the last record that a position row has applied, in ms since 1970-01-01 UTC.
///
/// # Errors
/// It cannot be read, or a later release has decided there.
pub fn last_stamp_ms(row: Bytes) -> Result<i64, Error> {
    Ok(Position::read(row)?.last_stamp_ms)
}

impl ExportedPositions {
    /// Takes the position row of a partition.
    ///
    /// # Errors
    /// It cannot be read, or a later release has decided there.
    pub fn add(&mut self, partition: u32, row: Bytes) -> Result<(), Error> {
        self.0.push((partition, Position::read(row)?));
        Ok(())
    }

    /// The highest level of decisions.
    pub fn level(&self) -> u32 {
        self.0.iter().map(|(_, position)| position.level).max().unwrap_or(0)
    }

    /// Whether a partition has taken a message.
    pub fn has_taken(&self, to: u32, from: u32, number: u64) -> bool {
        let receiver = self.0.iter().find(|(partition, _)| *partition == to);
        receiver.is_some_and(|(_, position)| position.taken_from(from) >= number)
    }

    /// A message that its receiver has taken and its sender has not sent: the positions are not of one moment then.
    pub fn untold(&self) -> Option<UntoldMessage> {
        let all = self.0.iter().flat_map(|(to, receiver)| receiver.posts.iter().map(move |post| (*to, post)));
        let untold = all.filter_map(|(to, post)| {
            let sender = self.0.iter().find(|(partition, _)| *partition == post.partition);
            let sent = sender.map_or(0, |(_, position)| position.sent_to(to));
            (post.taken > sent).then_some(UntoldMessage { from: post.partition, to, taken: post.taken, sent })
        });
        untold.into_iter().next()
    }

    /// The position of each partition of another log before its first record: time, limits and level go on; messages,
    /// commands and the owner begin anew.
    pub fn first_of(&self, incarnation: [u8; 16]) -> Bytes {
        let latest = self.0.iter().max_by_key(|(_, position)| position.last_stamp_ms);
        let first = Position {
            last_stamp_ms: latest.map_or(0, |(_, position)| position.last_stamp_ms),
            settings: latest.and_then(|(_, position)| position.settings.clone()),
            incarnation: incarnation.to_vec().into(),
            level: self.level(),
            ..Position::default()
        };
        first.encode_to_vec().into()
    }
}

impl MovedMessage {
    /// The request of a message, for the journal of its receiver in a log with so many partitions; none where it has none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(bytes: Bytes, partitions: u32) -> Result<Option<Self>, Error> {
        let Some(Body::OutboxMessage(message)) = Record::read(bytes)?.body else { return Ok(None) };
        Ok(message.input.map(|input| Self {
            to: Address::of(&input).partition(partitions),
            record: Record::new(0, Body::Input(input)).encode(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::request::RequestRecord;
    use everlog_wire::{MessageCursor, OutboxMessage};

    use super::*;

    fn message(number: u64) -> Bytes {
        let input = RequestRecord { workflow_id: "order-1".into(), ..RequestRecord::default() };
        OutboxMessage { from: 3, number, input: Some(input), sender_applied: 0 }.record()
    }

    #[test]
    fn a_position_goes_on_in_time_and_begins_anew_in_the_journal() {
        let mut positions = ExportedPositions::default();
        let mut old = Position { applied: 7, last_stamp_ms: 9, term: 5, level: 2, ..Position::default() };
        old.post(3).taken = 4;
        positions.add(1, old.encode()).expect("it is one");
        positions.add(2, Position { last_stamp_ms: 8, ..old }.encode()).expect("it is one");
        let first = Position::read(positions.first_of([9; 16])).expect("it is one");
        let wanted =
            Position { last_stamp_ms: 9, level: 2, incarnation: vec![9; 16].into(), ..Position::default() };
        assert_eq!(first, wanted);
        let taken = |to, from, number| positions.has_taken(to, from, number);
        assert_eq!(
            [taken(1, 3, 4), taken(1, 3, 5), taken(1, 4, 1), taken(7, 3, 1)],
            [true, false, false, false]
        );
    }

    #[test]
    fn positions_that_are_not_of_one_moment_are_told() {
        let position = |partition, sent, taken| {
            let mut position = Position::default();
            *position.post(partition) = MessageCursor { partition, sent, taken };
            position.encode()
        };
        let mut positions = ExportedPositions::default();
        positions.add(1, position(2, 5, 3)).expect("it is one");
        positions.add(2, position(1, 3, 5)).expect("it is one");
        assert_eq!(positions.untold(), None);
        positions.add(3, position(1, 0, 1)).expect("it is one");
        assert_eq!(positions.untold(), Some(UntoldMessage { from: 1, to: 3, taken: 1, sent: 0 }));
    }

    #[test]
    fn a_message_becomes_a_request_of_its_receivers_journal() {
        let moved = MovedMessage::read(message(2), 16).expect("it is one").expect("it has a request");
        let record = Record::read(moved.record.clone()).expect("it is one");
        assert!(matches!(record, Record { term: 0, body: Some(Body::Input(_)), .. }), "{record:?}");
    }
}
