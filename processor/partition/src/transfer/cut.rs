//! A cut: up to which record each journal of a log belongs to an export, while its nodes append to all of them.
//!
//! A journal's records up to a cut make the partition's state there, whatever its owner has committed. A cut over all
//! partitions is consistent where each message that a receiver has taken was sent before its sender's cut. A message says
//! what its sender had applied, so the senders' cuts are moved behind that until nothing is left to move.

use bytes::Bytes;
use everlog_wire::{Body, Record};

/// What was seen of a journal: two looks at its end, the second one after the first one at every other journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalWindow {
    /// Its end at the first look: all that was acknowledged before stands before it.
    pub first_end: u64,
    /// Its end at the second look. Whatever led to a record before anybody's first end stands before it.
    pub last_end: u64,
    /// The stamp of the last record before `first_end`, in ms since 1970-01-01 UTC; 0: there is none.
    pub first_stamp_ms: i64,
    /// Offset and stamp of each record from `first_end` on.
    pub later: Vec<(u64, i64)>,
    /// The messages of other partitions from what is committed on, by offset.
    pub messages: Vec<CutMessage>,
}

/// A message in a receiver's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutMessage {
    /// Its offset there.
    pub offset: u64,
    /// The sender.
    pub from: u32,
    /// What the sender had applied of its own journal.
    pub sender_applied: u64,
}

/// Why there is no cut in what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCut {
    /// Look again.
    #[error("partition {partition} has sent a message at {wanted}, its journal was seen up to {end}")]
    Behind {
        /// The sender.
        partition: u32,
        /// What must be before its cut.
        wanted: u64,
        /// What was seen.
        end: u64,
    },
    /// An earlier release has sent it.
    #[error("a message of partition {from} does not say what its sender had applied")]
    Unknown {
        /// The sender.
        from: u32,
    },
}

impl CutMessage {
    /// The message that a record of a journal is; none where it is another record.
    pub fn of(offset: u64, bytes: &Bytes) -> Option<Self> {
        match Record::read(bytes.clone()).ok()?.body? {
            Body::OutboxMessage(message) => {
                let (from, sender_applied) = (message.from, message.sender_applied);
                Some(Self { offset, from, sender_applied })
            }
            Body::Owner(_)
            | Body::Input(_)
            | Body::Settings(_)
            | Body::Barrier(_)
            | Body::PublicCommand(_)
            | Body::InvalidCommand(_)
            | Body::DeliverDelayed(_)
            | Body::NamespaceDeleted(_)
            | Body::Level(_) => None,
        }
    }
}

/// The first offset of each journal that does not belong to the export, by its partition: the earliest consistent cut that
/// has all before the first ends, and what the log had stamped by then. Without the latter where its clocks differ by
/// more than the time between the two looks.
///
/// # Errors
/// What was seen does not suffice.
pub fn cut(windows: &[JournalWindow]) -> Result<Vec<u64>, NoCut> {
    let by_ms = windows.iter().map(|window| window.first_stamp_ms).max().unwrap_or(0);
    match consistent(windows, windows.iter().map(|window| window.end_at(by_ms)).collect()) {
        Err(NoCut::Behind { .. }) => {
            consistent(windows, windows.iter().map(|window| window.first_end).collect())
        }
        found => found,
    }
}

/// The least consistent cut that is nowhere before these.
fn consistent(windows: &[JournalWindow], mut cuts: Vec<u64>) -> Result<Vec<u64>, NoCut> {
    let mut looked_at = vec![0; windows.len()];
    let mut waiting: Vec<usize> = (0..windows.len()).collect();
    while let Some(receiver) = waiting.pop() {
        let (Some(window), Some(end)) = (windows.get(receiver), cuts.get(receiver).copied()) else {
            continue;
        };
        while let Some(message) = window.messages.get(looked_at[receiver]).filter(|found| found.offset < end)
        {
            looked_at[receiver] += 1;
            let (sender, wanted) = (message.from as usize, message.sender_applied);
            let (Some(sent), Some(from)) = (cuts.get_mut(sender), windows.get(sender)) else { continue };
            if wanted == 0 {
                return Err(NoCut::Unknown { from: message.from });
            }
            if wanted > from.last_end {
                return Err(NoCut::Behind { partition: message.from, wanted, end: from.last_end });
            }
            if *sent < wanted {
                *sent = wanted;
                waiting.push(sender);
            }
        }
    }
    Ok(cuts)
}

impl JournalWindow {
    /// Behind the last record of that time.
    fn end_at(&self, by_ms: i64) -> u64 {
        let later = self.later.iter().take_while(|(_, stamp_ms)| *stamp_ms <= by_ms);
        later.last().map_or(self.first_end, |(offset, _)| offset + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first_end: u64, messages: &[(u64, u32, u64)]) -> JournalWindow {
        let message = |&(offset, from, sender_applied)| CutMessage { offset, from, sender_applied };
        JournalWindow {
            first_end,
            last_end: first_end + 10,
            messages: messages.iter().map(message).collect(),
            ..JournalWindow::default()
        }
    }

    #[test]
    fn a_cut_that_is_consistent_stays_at_the_first_ends() {
        let windows = [window(5, &[(4, 1, 7), (5, 1, 9)]), window(7, &[])];
        assert_eq!(cut(&windows), Ok(vec![5, 7]), "what stands behind the cut counts for nothing");
        assert_eq!(cut(&[]), Ok(vec![]));
    }

    #[test]
    fn a_sender_is_cut_behind_what_it_has_sent_however_long_the_chain() {
        // Partition 0 has taken what 1 sent at 8; before that, 1 took what 2 sent at 12; and so on.
        let windows = [
            window(5, &[(4, 1, 9)]),
            window(7, &[(8, 2, 13)]),
            window(11, &[(12, 3, 21)]),
            window(20, &[(21, 0, 15)]),
        ];
        assert_eq!(cut(&windows), Ok(vec![5, 9, 13, 21]));
        let mut round = windows.clone();
        round[3].messages = vec![CutMessage { offset: 20, from: 0, sender_applied: 6 }];
        assert_eq!(cut(&round), Ok(vec![6, 9, 13, 21]), "a circle ends");
        round[0].messages.push(CutMessage { offset: 5, from: 2, sender_applied: 20 });
        assert_eq!(cut(&round), Ok(vec![6, 9, 20, 21]), "what a move brings in is looked at as well");
    }

    #[test]
    fn what_was_seen_may_not_suffice() {
        let windows = [window(5, &[(4, 1, 18)]), window(7, &[])];
        assert_eq!(cut(&windows), Err(NoCut::Behind { partition: 1, wanted: 18, end: 17 }));
        assert_eq!(cut(&[window(5, &[(4, 0, 0)])]), Err(NoCut::Unknown { from: 0 }));
    }

    #[test]
    fn records_that_the_log_had_stamped_by_then_belong_to_it() {
        let mut windows = [window(5, &[]), window(7, &[])];
        windows[0].first_stamp_ms = 100;
        windows[1].first_stamp_ms = 90;
        windows[1].later = vec![(7, 95), (8, 100), (9, 101), (10, 101)];
        assert_eq!(cut(&windows), Ok(vec![5, 9]));
    }

    #[test]
    fn clocks_that_differ_cost_only_the_order_of_calls() {
        let mut windows = [window(5, &[(4, 1, 6), (6, 1, 18)]), window(7, &[])];
        windows[1].first_stamp_ms = 100;
        windows[0].later = vec![(5, 40), (6, 50)];
        assert_eq!(cut(&windows), Ok(vec![5, 7]), "what led to message 6 was not seen");
        windows[0].messages[1].sender_applied = 9;
        assert_eq!(cut(&windows), Ok(vec![7, 9]));
    }

    /// Random lives of a few partitions, looked at while they go on: the cut is the least one of all that are consistent.
    #[test]
    fn a_cut_is_the_least_consistent_one() {
        let mut dice = 88_172_645_463_325_252_u64;
        let mut roll = move |below: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % below
        };
        for life in 0..300 {
            let count = 2 + roll(4) as usize;
            let mut journals: Vec<Vec<Option<(u32, u64)>>> = vec![Vec::new(); count];
            let mut applied = vec![0_usize; count];
            let mut ends = [vec![None; count], vec![None; count]];
            for ends in &mut ends {
                while ends.iter().any(Option::is_none) {
                    let at = roll(count as u64) as usize;
                    match roll(4) {
                        0 => journals[at].push(None),
                        1 | 2 if applied[at] < journals[at].len() => {
                            applied[at] += 1;
                            let to = roll(count as u64) as usize;
                            journals[to].push(Some((at as u32, applied[at] as u64)));
                        }
                        _ if ends[at].is_none() && roll(3) == 0 => {
                            ends[at] = Some(journals[at].len() as u64);
                        }
                        _ => {}
                    }
                }
            }
            let windows: Vec<_> = (0..count)
                .map(|at| JournalWindow {
                    first_end: ends[0][at].unwrap_or(0),
                    last_end: ends[1][at].unwrap_or(0),
                    messages: (0..)
                        .zip(&journals[at])
                        .filter_map(|(offset, message)| {
                            let (from, sender_applied) = (*message)?;
                            Some(CutMessage { offset, from, sender_applied })
                        })
                        .collect(),
                    ..JournalWindow::default()
                })
                .collect();
            let found = cut(&windows).expect("whatever led to the first ends was seen");
            let is_consistent = |cuts: &[u64]| {
                windows.iter().zip(cuts).all(|(window, end)| {
                    let taken = window.messages.iter().filter(|message| message.offset < *end);
                    taken.into_iter().all(|message| message.sender_applied <= cuts[message.from as usize])
                })
            };
            assert!(is_consistent(&found), "life {life}: {found:?} of {windows:?}");
            for at in 0..count {
                assert!(
                    found[at] >= windows[at].first_end && found[at] <= windows[at].last_end,
                    "life {life}"
                );
                let mut less = found.clone();
                while less[at] > windows[at].first_end {
                    less[at] -= 1;
                    assert!(!is_consistent(&less), "life {life}: {less:?} would do, not {found:?}");
                }
            }
        }
    }
}
