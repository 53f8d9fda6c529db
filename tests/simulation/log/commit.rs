//! Commits: each is whole or absent, and its owner may not learn which.

use std::sync::PoisonError;

use everlog_log::{
    Commit, CommitDone, Error, Fence, Marks, Offset, PartitionId, Restored, Topic, bucket_owner,
};

use super::broker::{Broker, Happening, Tell};
use super::nasty::Removed;
use super::sim_log::{SharedMarks, index};
use super::topic::Row;

/// A commit on its way.
pub struct Transaction {
    commit: Option<Commit>,
    done: Option<CommitDone>,
    outcome: Result<(), Error>,
    /// What is told is fixed, whatever comes of it.
    fixed: bool,
    marks: Marks,
    keeper: SharedMarks,
}

impl Broker {
    /// Sends a commit on its way.
    pub fn begin(&mut self, _by: u64, commit: Commit, done: CommitDone, keeper: SharedMarks) -> Vec<Tell> {
        let nasty = self.nasty;
        let id = self.serial();
        self.partition_of_commit.insert(id, commit.partition);
        let mut transaction = Transaction {
            commit: Some(commit),
            done: Some(done),
            outcome: Ok(()),
            fixed: false,
            marks: Marks::default(),
            keeper,
        };
        if nasty.immediate {
            self.transactions.insert(id, transaction);
            self.take_effect(id);
            return self.tell_commit(id);
        }
        let mut at_ms = self.now_ms + self.dice.span(0, nasty.delay_ms);
        let mut told_ms = at_ms + self.dice.span(0, nasty.delay_ms);
        if self.dice.permille(nasty.commit_full) {
            transaction.commit = None;
            transaction.outcome = Err(Error::Full { detail: "no room for a commit".into() });
        } else if self.dice.permille(nasty.commit_unknown) {
            transaction.outcome = Err(Error::Unknown { detail: "no answer to a commit".into() });
            transaction.fixed = true;
            if self.dice.permille(nasty.commit_lost) {
                transaction.commit = None;
                if self.removed == Some(Removed::UnknownIsDone) {
                    transaction.outcome = Ok(());
                }
            } else {
                at_ms += self.dice.span(0, nasty.append_late_ms);
            }
            told_ms += self.dice.span(0, nasty.delay_ms);
        }
        self.transactions.insert(id, transaction);
        self.plan(at_ms, Happening::Commit { commit: id });
        self.plan(told_ms, Happening::Committed { commit: id });
        Vec::new()
    }

    /// The commit becomes visible, unless a newer owner has come.
    pub fn take_effect(&mut self, id: u64) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        let Some(commit) = transaction.commit.take() else { return };
        let outcome = self.checked_commit(&commit);
        let marks = if outcome.is_ok() { self.write(&commit) } else { Marks::default() };
        if let Some(transaction) = self.transactions.get_mut(&id) {
            transaction.marks = marks;
            if !transaction.fixed {
                transaction.outcome = outcome;
            }
        }
    }

    fn checked_commit(&mut self, commit: &Commit) -> Result<(), Error> {
        let partition = commit.partition;
        if partition >= self.partitions {
            return Err(Error::Refused { detail: "no such partition".into() });
        }
        let (removed, partitions) = (self.removed, self.partitions);
        let stored = self.stored(partition);
        let lax = removed == Some(Removed::Fences);
        if commit.fence.0 != stored.fence && !lax {
            let current = Fence(stored.fence);
            return Err(Error::Fenced { partition, given: commit.fence, current });
        }
        let (start, end) =
            (stored.position.as_ref().map_or(0, |(applied, _)| *applied), stored.journal.len() as Offset);
        if (commit.applied < start && !lax) || commit.applied > end {
            let (applied, fence) = (commit.applied, commit.fence.0);
            self.violate(format!(
                "the owner with fence {fence} goes from {start} to {applied}, the end is {end}"
            ));
            return Err(Error::OutOfRange { partition, wanted: applied, start, end });
        }
        for output in &commit.outputs {
            let own = output
                .key
                .first_chunk::<2>()
                .is_some_and(|bucket| bucket_owner(u16::from_be_bytes(*bucket), partitions) == partition);
            let sound = if output.topic.is_compacted() { own } else { output.value.is_some() };
            if !sound {
                return Err(Error::Refused { detail: "an output that makes no sense".into() });
            }
        }
        Ok(())
    }

    fn write(&mut self, commit: &Commit) -> Marks {
        let (nasty, removed) = (self.nasty, self.removed);
        let torn = removed == Some(Removed::PositionWithoutRows) && self.dice.permille(200);
        let cleans = self.dice.permille(nasty.clean);
        let keeps = self.dice.below(40);
        let stored = self.stored(commit.partition);
        for output in commit.outputs.iter().filter(|_| !torn) {
            stored.topics[index(output.topic)].push(output);
        }
        let changelog = &mut stored.topics[index(Topic::Changelog)];
        stored.position_at = changelog.next;
        changelog.seal();
        for topic in &mut stored.topics {
            topic.seal();
        }
        stored.position = Some((commit.applied, commit.position.clone()));
        if cleans {
            for topic in Topic::compacted() {
                let topic = &mut stored.topics[index(topic)];
                topic.clean(topic.next.saturating_sub(keeps));
            }
        }
        let next = |topic: Topic| stored.topics[index(topic)].next;
        Marks {
            changelog: next(Topic::Changelog),
            history: next(Topic::History),
            timers: next(Topic::Timers),
        }
    }

    /// Tells what came of a commit, once it is decided.
    pub fn tell_commit(&mut self, id: u64) -> Vec<Tell> {
        let now_ms = self.now_ms;
        let Some(transaction) = self.transactions.get_mut(&id) else { return Vec::new() };
        if transaction.commit.is_some() && transaction.outcome.is_ok() {
            self.plan(now_ms + 10, Happening::Committed { commit: id });
            return Vec::new();
        }
        let Some(done) = transaction.done.take() else { return Vec::new() };
        let (outcome, marks, keeper) =
            (transaction.outcome.clone(), transaction.marks, transaction.keeper.clone());
        let partition = self.partition_of_commit.remove(&id);
        vec![Box::new(move || {
            if let (Ok(()), Some(partition)) = (&outcome, partition)
                && marks != Marks::default()
            {
                keeper.lock().unwrap_or_else(PoisonError::into_inner).insert(partition, marks);
            }
            done(outcome);
        })]
    }

    /// A new owner of the outputs: what the former one had under way is decided, one way or the other.
    pub fn fence(&mut self, partition: PartitionId) -> Fence {
        let is_ours = |transaction: &Transaction| {
            transaction.commit.as_ref().is_some_and(|commit| commit.partition == partition)
        };
        let under_way = self.transactions.iter().filter(|(_, transaction)| is_ours(transaction));
        let under_way: Vec<u64> = under_way.map(|(id, _)| *id).collect();
        for id in under_way {
            if self.removed == Some(Removed::Fences) {
                continue;
            }
            if self.dice.permille(500) {
                self.take_effect(id);
            } else if let Some(transaction) = self.transactions.get_mut(&id) {
                transaction.commit = None;
                if !transaction.fixed {
                    transaction.outcome = Err(Error::Unknown { detail: "it was aborted".into() });
                }
            }
        }
        let serial = self.serial();
        self.stored(partition).fence = serial;
        Fence(serial)
    }

    /// The rows of a compacted topic from an offset on.
    pub fn rows_from(
        &mut self,
        topic: Topic,
        partition: PartitionId,
        from: Offset,
    ) -> Result<(Vec<Row>, Restored), Error> {
        let stored = self.stored(partition);
        let rows = &stored.topics[index(topic)];
        if from > rows.next || from > 0 && from < rows.forgotten {
            return Err(Error::OutOfRange { partition, wanted: from, start: rows.forgotten, end: rows.next });
        }
        let found = rows.rows.iter().filter(|row| row.offset >= from);
        let found = found.cloned().collect();
        let passed = topic == Topic::Changelog && stored.position_at >= from;
        let position = stored.position.clone().filter(|_| passed);
        Ok((found, Restored { next: rows.next, end: rows.next, position }))
    }
}
