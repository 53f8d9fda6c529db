//! Hanging transactions: ended for their coordinator, while a partition has no marker of the end.
//!
//! Kafka 4.4.0 leaves one when a partition has no leader at the moment its marker is due (KAFKA-20734), because the
//! coordinator takes the partition for deleted. A restart of all brokers of a partition does this. Only the next
//! transaction of the same transactional id ends it, with its own end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use everlog_log::{Error, Offset, PartitionId, PerTopic, Topic};
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;

use crate::client::consumer::{TopicEnds, consumer, scan};
use crate::client::librdkafka;
use crate::options::{Isolation, Options};
use crate::record_format;

/// How long a marker may take after its transaction has ended.
const MARKED_WITHIN: Duration = Duration::from_secs(1);
/// Offsets in which other records of the same commit are looked for: no other commit was written since.
const LOOK_BACK: Offset = 64;

/// What hangs of the outputs of one partition.
pub(crate) struct Hanging {
    /// In which topics.
    pub(crate) topics: Vec<Topic>,
    /// Whether it must be committed; else it must be aborted.
    pub(crate) is_commit: bool,
}

/// The number of a commit, under its fence.
type Number = (u64, u64);

/// What hangs of one commit.
#[derive(Debug, Default)]
struct HangingPart {
    places: BTreeSet<u32>,
    /// The place of the position row.
    last: Option<u32>,
}

impl HangingPart {
    fn is_whole(&self) -> bool {
        self.last.is_some_and(|last| self.places.len() == last as usize + 1)
    }
}

/// Looks for what hangs; no transaction of the partition's transactional id may be under way.
pub(crate) fn find(
    options: &Options,
    ends: &TopicEnds,
    names: &PerTopic<String>,
    partition: PartitionId,
) -> Result<Option<Hanging>, Error> {
    let mut open: PerTopic<Option<Range<Offset>>> = PerTopic::default();
    // The public ones too: what was aborted everywhere else would be committed there by the next output.
    for topic in Topic::all() {
        open[topic] = ends.left_open(&names[topic], partition as i32, MARKED_WITHIN)?;
    }
    if open.iter().all(|(_, open)| open.is_none()) {
        return Ok(None);
    }
    let (mut parts, mut seen) = (BTreeMap::<Number, HangingPart>::new(), BTreeSet::new());
    for (topic, open) in open.iter() {
        let name = &names[topic];
        let (range, isolation) = match open {
            Some(range) => (range.clone(), Isolation::Uncommitted),
            None => {
                let range = ends.range(name, partition as i32, Isolation::Committed)?;
                (range.start.max(range.end.saturating_sub(LOOK_BACK))..range.end, Isolation::Committed)
            }
        };
        let reader = consumer(options, "hanging", isolation)?;
        scan(&reader, name, partition as i32, range, options.call_timeout(), &mut |_, message| {
            let Some((number, place)) = origin(message) else { return Ok(true) };
            if open.is_none() {
                seen.insert(number);
                return Ok(true);
            }
            let part = parts.entry(number).or_default();
            part.places.insert(place);
            // A fence row is alone.
            let is_last = number.1 == 0 || message.key() == Some(&record_format::position_key(partition)[..]);
            part.last = if is_last { Some(place) } else { part.last };
            Ok(true)
        })?;
    }
    let topics = Topic::all().filter(|topic| open[*topic].is_some()).collect();
    Ok(Some(Hanging { topics, is_commit: must_commit(&parts, &seen) }))
}

/// Whether the transaction must be committed. It must if a part of it is visible, or a later commit of the same fence.
/// Without such a trace either end is right if all its records are there: its commit may have been acknowledged, never
/// refused. Else it was aborted, or not fully written.
fn must_commit(parts: &BTreeMap<Number, HangingPart>, seen: &BTreeSet<Number>) -> bool {
    let is_passed = |number: &Number| seen.range(*number..=(number.0, u64::MAX)).next().is_some();
    parts.keys().any(|number| number.1 != 0 && is_passed(number)) || parts.values().all(HangingPart::is_whole)
}

/// The commit of a record, and its place there.
fn origin(message: &BorrowedMessage<'_>) -> Option<(Number, u32)> {
    let (_, header) =
        librdkafka::headers(message).into_iter().find(|(name, _)| name == record_format::HEADER)?;
    record_format::origin(&header?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(places: &[u32], last: Option<u32>) -> HangingPart {
        HangingPart { places: places.iter().copied().collect(), last }
    }

    #[test]
    fn what_hangs_is_committed_if_a_part_of_it_is_seen_or_all_of_it_is_there() {
        let hanging = |part: HangingPart, seen: &[Number]| {
            must_commit(&[((7, 3), part)].into(), &seen.iter().copied().collect())
        };
        assert!(hanging(part(&[0, 1, 2], Some(2)), &[]), "whole");
        assert!(hanging(part(&[1], None), &[(7, 2), (7, 3)]), "a part, the rest is seen");
        assert!(hanging(part(&[1], None), &[(7, 5)]), "a part, and what its owner committed later is seen");
        assert!(!hanging(part(&[0, 2], Some(2)), &[(7, 2)]), "a part, the rest is not seen");
        assert!(
            !hanging(part(&[0, 2], Some(2)), &[(8, 4)]),
            "a part, and what another owner committed later"
        );
        assert!(!hanging(part(&[0, 1], None), &[]), "without its position");
        let two = [((7, 3), part(&[0], Some(0))), ((7, 4), part(&[0], None))];
        assert!(!must_commit(&two.into(), &BTreeSet::new()), "commits of one transaction have one end");
    }
}
