//! Who had which groups until a while ago: what a poll has claimed there before a group went is taken back by whoever has it now.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Far longer than the longest poll waits, which is a minute.
const KNOWN_FOR: Duration = Duration::from_secs(300);

/// Each group and node once, and since when somebody else is to have it.
#[derive(Debug, Default)]
pub struct OwnershipHistory(Vec<(usize, String, Instant)>);

impl OwnershipHistory {
    /// A node has a group no longer, or only until the next one takes it.
    pub fn note(&mut self, group: usize, node: &str, now: Instant) {
        self.0.retain(|(known_group, known, since)| {
            (*known_group, known.as_str()) != (group, node)
                && now.saturating_duration_since(*since) < KNOWN_FOR
        });
        self.0.push((group, node.to_owned(), now));
    }

    /// The groups that a node had.
    pub fn groups_of(&self, node: &str, now: Instant) -> BTreeSet<usize> {
        let is_of = |(_, known, since): &&(usize, String, Instant)| {
            known == node && now.saturating_duration_since(*since) < KNOWN_FOR
        };
        self.0.iter().filter(is_of).map(|(group, ..)| *group).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_had_is_known_for_a_while() {
        let (mut former, began) = (OwnershipHistory::default(), Instant::now());
        former.note(0, "a", began);
        former.note(1, "b", began);
        former.note(1, "a", began + Duration::from_secs(1));
        assert_eq!(former.groups_of("a", began + Duration::from_secs(1)), [0, 1].into());
        assert_eq!(former.groups_of("b", began), [1].into());
        assert_eq!(former.groups_of("c", began), BTreeSet::new());
        former.note(1, "a", began + Duration::from_secs(2));
        assert_eq!(former.0.len(), 3, "each once");
        assert_eq!(former.groups_of("a", began + KNOWN_FOR), [1].into());
        former.note(2, "a", began + KNOWN_FOR);
        assert_eq!(former.0.len(), 2, "what is over is forgotten");
    }
}
