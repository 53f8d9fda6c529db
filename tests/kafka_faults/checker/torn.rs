//! Transactions are whole or absent: the checker compares the headers of outputs with their commits.

use std::collections::{BTreeMap, BTreeSet};

use crate::observations::{Mark, Observations};

/// What there is of a commit.
#[derive(Default)]
struct Commit<'a> {
    /// Places, with how often each is there.
    places: BTreeMap<u32, usize>,
    /// The place of the row that closes it.
    closing: Option<u32>,
    applied: BTreeSet<u64>,
    first: Option<&'a Mark>,
}

/// The first row of an owner, by which its fence becomes known, is a commit with this number.
const FENCE: u64 = 0;
/// Fence, commit, place and position of rows that no owner has written.
const NOBODY: (u64, u64, u32, u64) = (0, 0, 0, 0);

/// All but the rows that end what a broker has left without an end (KAFKA-20734): those are of no owner.
fn owned(observations: &Observations) -> impl Iterator<Item = &Mark> {
    observations.marks.iter().filter(|mark| (mark.fence, mark.commit, mark.place, mark.applied) != NOBODY)
}

pub fn check(observations: &Observations, found: &mut Vec<String>) {
    check_sequence(observations, found);
    let mut commits: BTreeMap<(i32, u64, u64), Commit<'_>> = BTreeMap::new();
    for mark in owned(observations) {
        let commit = commits.entry((mark.partition, mark.fence, mark.commit)).or_default();
        *commit.places.entry(mark.place).or_default() += 1;
        commit.applied.insert(mark.applied);
        commit.first.get_or_insert(mark);
        if mark.is_position {
            commit.closing = Some(mark.place);
        }
    }
    let mut before: Option<((i32, u64, u64), u64)> = None;
    for ((partition, fence, number), commit) in &commits {
        let named = format!("commit {number} under fence {fence} of partition {partition}");
        if let Some((place, count)) = commit.places.iter().find(|(_, count)| **count > 1) {
            found.push(format!("{named}: place {place} is there {count} times"));
        }
        if commit.applied.len() != 1 {
            found.push(format!("{named} has several positions: {:?}", commit.applied));
        }
        if *number != FENCE && !observations.is_compacted {
            check_whole(&named, commit, found);
        }
        let applied = commit.applied.first().copied().unwrap_or(0);
        if let Some((key, position)) = before.filter(|(key, _)| key.0 == *partition) {
            if key.1 == *fence && *number != key.2 + 1 && !observations.is_compacted {
                found.push(format!("{named} follows commit {}", key.2));
            }
            if *number != FENCE && applied < position {
                found.push(format!("{named} goes back from {position} to {applied}"));
            }
        }
        let position = match before.filter(|(key, _)| key.0 == *partition) {
            Some((_, position)) if *number == FENCE => position,
            _follows => applied,
        };
        before = Some(((*partition, *fence, *number), position));
    }
}

/// All places from 0 to that of the position row, which comes last.
fn check_whole(named: &str, commit: &Commit<'_>, found: &mut Vec<String>) {
    let Some(last) = commit.closing else {
        let first = commit.first.map(|mark| (mark.topic, mark.offset));
        found.push(format!(
            "{named} is torn: {} records and no position, first {first:?}",
            commit.places.len()
        ));
        return;
    };
    let missing: Vec<u32> = (0..last).filter(|place| !commit.places.contains_key(place)).take(3).collect();
    if !missing.is_empty() || commit.places.len() as u64 != u64::from(last) + 1 {
        let count = commit.places.len();
        found.push(format!("{named} is torn: {count} of {} records, without {missing:?}", last + 1));
    }
}

/// In each partition of each topic commits stand in their order, and the records of each in theirs.
fn check_sequence(observations: &Observations, found: &mut Vec<String>) {
    let mut last: BTreeMap<(&str, i32), &Mark> = BTreeMap::new();
    for mark in owned(observations) {
        let Some(before) = last.insert((mark.topic, mark.partition), mark) else { continue };
        let order = |mark: &Mark| (mark.fence, mark.commit, mark.place);
        if order(before) >= order(mark) {
            let (topic, partition, offset) = (mark.topic, mark.partition, mark.offset);
            found.push(format!(
                "{topic} {partition}-{offset}: {:?} stands behind {:?}",
                order(mark),
                order(before)
            ));
        }
    }
}
