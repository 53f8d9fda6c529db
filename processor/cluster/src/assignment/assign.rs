//! Which node gets which partition group. Owns the decision, as a pure function of the coordinator's input. Does not
//! read or write `control`: the coordinator does.

use std::collections::{BTreeMap, BTreeSet};

/// What the coordinator decides from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssignmentInput {
    /// Live nodes that may get groups, by name.
    pub nodes: BTreeSet<String>,
    /// Live nodes that an operator has drained. A drained node serves its groups until each has been handed over.
    pub drained: BTreeSet<String>,
    /// Live nodes with a steady uptime. Groups move to these only when they move for balance.
    pub settled: BTreeSet<String>,
    /// The node that each group was assigned to until now.
    pub assigned: Vec<Option<String>>,
    /// The owner of each group.
    pub owners: Vec<Option<String>>,
    /// A take-over is in progress.
    pub is_moving: bool,
    /// The groups whose rows a node keeps.
    pub rows: BTreeMap<String, BTreeSet<usize>>,
    /// Groups that an operator has pinned to a node.
    pub pinned: BTreeMap<usize, String>,
    /// Each group has a standby, see [`follower`].
    pub has_followers: bool,
}

impl AssignmentInput {
    /// The assignment of each group from now on; none where no node is live.
    ///
    /// A group whose node is gone is assigned at once. Otherwise one group moves at a time, after the move before it
    /// is complete. Pinned groups move first, then groups of drained nodes, then one from the most to the least
    /// loaded node.
    pub fn assign(&self) -> Vec<Option<String>> {
        let mut next = self.assigned.clone();
        for (group, node) in next.iter_mut().enumerate() {
            *node = node.take().filter(|node| self.may_keep(group, node));
        }
        for group in 0..next.len() {
            if next[group].is_some() {
                continue;
            }
            let owner = self.owners[group].clone().filter(|owner| self.may_keep(group, owner));
            next[group] = owner.or_else(|| self.successor(&next, group));
        }
        let is_moving = self.is_moving || next.iter().zip(&self.owners).any(|(node, owner)| node != owner);
        if !is_moving {
            self.move_one_group(&mut next);
        }
        next
    }

    /// Whether a group may stay at its node. A drained node starts to serve no group.
    fn may_keep(&self, group: usize, node: &String) -> bool {
        let is_owned = || self.owners[group].as_ref() == Some(node);
        self.nodes.contains(node) || (self.drained.contains(node) && is_owned())
    }

    /// The node that gets a group which leaves its node, if any node is live.
    fn successor(&self, next: &[Option<String>], group: usize) -> Option<String> {
        self.follower(group).or_else(|| self.least_loaded(next, group))
    }

    /// The standby of the group while its node was live.
    fn follower(&self, group: usize) -> Option<String> {
        let was_placed = self.assigned[group].is_some();
        let nodes = self.nodes.iter().map(String::as_str);
        (self.has_followers && was_placed).then(|| follower(nodes, group)).flatten().map(str::to_owned)
    }

    fn move_one_group(&self, next: &mut [Option<String>]) {
        for (group, node) in &self.pinned {
            let is_wanted = self.nodes.contains(node)
                && next.get(*group).is_some_and(|assigned| assigned.as_ref() != Some(node));
            if is_wanted {
                next[*group] = Some(node.clone());
                return;
            }
        }
        let is_drained =
            |node: &Option<String>| node.as_ref().is_some_and(|node| self.drained.contains(node));
        if let Some(group) = next.iter().position(is_drained) {
            next[group] = self.successor(next, group);
            return;
        }
        let loads = self.loads(next);
        let candidates = loads.iter().filter(|(node, _)| self.settled.contains(**node));
        let Some((least, least_groups)) = candidates.min_by_key(|(_, groups)| groups.len()) else { return };
        let mut others: Vec<_> =
            loads.iter().filter(|(_, groups)| groups.len() >= least_groups.len() + 2).collect();
        // The most loaded node may have pinned groups only.
        others.sort_by_key(|(_, groups)| std::cmp::Reverse(groups.len()));
        for (node, groups) in others {
            let is_free =
                |group: &usize| self.pinned.get(group).is_none_or(|wanted| wanted.as_str() != *node);
            let mut movable = groups.iter().filter(|group| is_free(group));
            let known = movable.clone().find(|group| self.keeps_rows(least, **group));
            if let Some(group) = known.or_else(|| movable.next()) {
                next[*group] = Some((*least).to_owned());
                return;
            }
        }
    }

    /// The least loaded node. Of several, one that keeps this group's rows.
    fn least_loaded(&self, next: &[Option<String>], group: usize) -> Option<String> {
        let loads = self.loads(next);
        let least = loads.iter().min_by_key(|(node, groups)| (groups.len(), !self.keeps_rows(node, group)));
        least.map(|(node, _)| (*node).to_owned())
    }

    fn loads(&self, next: &[Option<String>]) -> BTreeMap<&str, Vec<usize>> {
        let mut loads: BTreeMap<&str, Vec<usize>> =
            self.nodes.iter().map(|node| (node.as_str(), Vec::new())).collect();
        for (group, node) in next.iter().enumerate() {
            if let Some(groups) = node.as_deref().and_then(|node| loads.get_mut(node)) {
                groups.push(group);
            }
        }
        loads
    }

    fn keeps_rows(&self, node: &str, group: usize) -> bool {
        self.rows.get(node).is_some_and(|groups| groups.contains(&group))
    }
}

/// The home among the nodes, by rendezvous hash. All nodes that see the same nodes choose the same home. When a node
/// goes, only its own homes move.
pub fn home<'a>(nodes: impl Iterator<Item = &'a str>, of: &[&[u8]]) -> Option<&'a str> {
    nodes.max_by_key(|node| {
        let parts = std::iter::once(node.as_bytes()).chain(of.iter().copied());
        (weight(parts), *node)
    })
}

/// The standby of a group, among the nodes that it is not assigned to.
pub fn follower<'a>(others: impl Iterator<Item = &'a str>, group: usize) -> Option<&'a str> {
    home(others, &[b"follower", &(group as u64).to_be_bytes()])
}

/// FNV-1a with 64 bits over the parts and their ends, then the finalizer of MurmurHash3. Every release computes the
/// same.
pub fn weight<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for part in parts {
        part.iter().copied().for_each(&mut mix);
        mix(0xff);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn groups(nodes: &[&str]) -> Vec<Option<String>> {
        nodes.iter().map(|node| Some((*node).to_owned()).filter(|node| !node.is_empty())).collect()
    }

    /// All nodes have a steady uptime, and every group is where it was assigned.
    fn seen(nodes: &[&str], assigned: &[&str]) -> AssignmentInput {
        AssignmentInput {
            nodes: names(nodes),
            settled: names(nodes),
            assigned: groups(assigned),
            owners: groups(assigned),
            ..AssignmentInput::default()
        }
    }

    /// Assigns until nothing moves any more; each move is complete at once.
    fn settle(mut seen: AssignmentInput) -> (Vec<Option<String>>, usize) {
        let mut moves = 0;
        loop {
            let next = seen.assign();
            if next == seen.assigned {
                return (next, moves);
            }
            moves += 1;
            assert!(moves < 1_000, "it never ends");
            (seen.assigned, seen.owners) = (next.clone(), next);
        }
    }

    #[test]
    fn the_first_node_gets_everything_at_once() {
        assert_eq!(seen(&["a"], &["", "", ""]).assign(), groups(&["a", "a", "a"]));
        assert_eq!(seen(&[], &["a"]).assign(), groups(&[""]));
    }

    #[test]
    fn groups_of_a_node_that_is_gone_are_spread_at_once_and_others_stay() {
        let next = seen(&["a", "b"], &["a", "c", "c", "b"]).assign();
        assert_eq!((next[0].as_deref(), next[3].as_deref()), (Some("a"), Some("b")));
        let of = |node: &str| next.iter().filter(|assigned| assigned.as_deref() == Some(node)).count();
        assert_eq!((of("a"), of("b")), (2, 2));
    }

    #[test]
    fn a_node_that_joins_gets_its_part_one_move_after_the_other() {
        let first = seen(&["a", "b"], &["a"; 8]);
        let next = first.assign();
        let moved = next.iter().filter(|node| node.as_deref() == Some("b")).count();
        assert_eq!(moved, 1);
        let moving = AssignmentInput { assigned: next.clone(), ..first.clone() };
        assert_eq!(moving.assign(), next, "the next one waits");
        let coming = AssignmentInput { owners: next.clone(), is_moving: true, ..moving };
        assert_eq!(coming.assign(), next, "until it serves");
        assert_eq!(settle(first).1, 4, "no more moves than there have to be");
    }

    #[test]
    fn a_node_that_has_just_come_gets_nothing_for_balance() {
        let fresh = AssignmentInput { settled: names(&["a"]), ..seen(&["a", "b"], &["a"; 4]) };
        assert_eq!(fresh.assign(), groups(&["a"; 4]));
    }

    #[test]
    fn what_moves_are_groups_whose_rows_are_there_already() {
        let rows = BTreeMap::from([("b".to_owned(), BTreeSet::from([2]))]);
        let next = AssignmentInput { rows, ..seen(&["a", "b"], &["a"; 4]) }.assign();
        assert_eq!(next, groups(&["a", "a", "b", "a"]));
    }

    #[test]
    fn a_node_that_is_drained_gives_one_group_after_the_other() {
        let drained =
            AssignmentInput { drained: names(&["c"]), ..self::seen(&["a", "b"], &["c", "a", "c", "c"]) };
        let next = drained.assign();
        assert_eq!(next, groups(&["b", "a", "c", "c"]));
        let moving = AssignmentInput { assigned: next.clone(), ..drained.clone() };
        assert_eq!(moving.assign(), next, "the next one waits");
        let (end, moves) = settle(drained);
        assert_eq!((end, moves), (groups(&["b", "a", "a", "b"]), 3), "nobody else handovers any");
    }

    #[test]
    fn a_node_that_is_drained_gets_nothing_and_what_it_does_not_have_yet_goes_at_once() {
        let pinned = BTreeMap::from([(0, "c".to_owned())]);
        let assigned = ["c", "c", "", "a", "a", "a"];
        let mut seen = AssignmentInput { drained: names(&["c"]), pinned, ..seen(&["a", "b"], &assigned) };
        seen.owners = groups(&["c", "b", "c", "a", "", "a"]);
        assert_eq!(seen.assign(), groups(&["c", "b", "c", "a", "a", "a"]));
        let first = AssignmentInput { drained: names(&["c"]), ..self::seen(&["a"], &["", "d"]) };
        assert_eq!(first.assign(), groups(&["a", "a"]));
    }

    #[test]
    fn groups_of_a_node_that_is_drained_go_to_whoever_has_followed_them() {
        let assigned = ["c"; 6];
        let drained = AssignmentInput {
            has_followers: true,
            drained: names(&["c"]),
            ..self::seen(&["a", "b"], &assigned)
        };
        let next = drained.assign();
        assert_eq!(next[0].as_deref(), follower(["a", "b"].into_iter(), 0));
    }

    #[test]
    fn what_an_operator_wants_goes_first_and_stays() {
        let pinned = BTreeMap::from([(0, "b".to_owned()), (1, "b".to_owned()), (2, "gone".to_owned())]);
        let wanted = AssignmentInput { pinned, ..seen(&["a", "b"], &["a"; 4]) };
        assert_eq!(wanted.assign(), groups(&["b", "a", "a", "a"]));
        let (end, moves) = settle(wanted);
        assert_eq!((end, moves), (groups(&["b", "b", "a", "a"]), 2));
    }

    #[test]
    fn a_node_whose_groups_an_operator_wants_there_keeps_no_other_from_giving_some() {
        let pinned = (0..6).map(|group| (group, "a".to_owned())).collect();
        let assigned = ["a", "a", "a", "a", "a", "a", "b", "b", "b", "b"];
        let (end, moves) = settle(AssignmentInput { pinned, ..seen(&["a", "b", "c"], &assigned) });
        let of = |node: &str| end.iter().filter(|assigned| assigned.as_deref() == Some(node)).count();
        assert_eq!((of("a"), of("b"), of("c"), moves), (6, 2, 2, 2));
    }

    #[test]
    fn groups_of_a_node_that_is_gone_go_to_whoever_has_followed_them() {
        let nodes = ["a", "b", "c", "d"];
        let assigned = ["a", "b", "c", "d", "a", "b", "c", "d"];
        for gone in nodes {
            let left: Vec<_> = nodes.into_iter().filter(|node| *node != gone).collect();
            let next = AssignmentInput { has_followers: true, ..seen(&left, &assigned) }.assign();
            for (group, owner) in assigned.into_iter().enumerate() {
                let others = nodes.into_iter().filter(|node| *node != owner);
                let followed_by = follower(others, group).map(str::to_owned);
                assert_ne!(followed_by.as_deref(), Some(owner));
                let wanted = if owner == gone { followed_by } else { Some(owner.to_owned()) };
                assert_eq!(next[group], wanted, "group {group}, without {gone}");
            }
        }
        let first = AssignmentInput { has_followers: true, ..seen(&["a", "b"], &[""; 4]) }.assign();
        let of_a = first.iter().filter(|node| node.as_deref() == Some("a")).count();
        assert_eq!(of_a, 2, "what nobody had is spread");
    }

    #[test]
    fn homes_are_spread_and_only_those_of_a_lost_node_move() {
        let nodes = ["a", "b", "c"];
        let of = |nodes: &[&'static str], queue: u32| home(nodes.iter().copied(), &[&queue.to_be_bytes()]);
        let mut counts = BTreeMap::new();
        for queue in 0..3_000 {
            let chosen = of(&nodes, queue).expect("there are nodes");
            *counts.entry(chosen).or_insert(0) += 1;
            if chosen != "c" {
                assert_eq!(of(&nodes[..2], queue), Some(chosen));
            }
        }
        assert!(counts.values().all(|count| (800..1_200).contains(count)), "{counts:?}");
        assert_eq!(home([].into_iter(), &[]), None);
    }
}
