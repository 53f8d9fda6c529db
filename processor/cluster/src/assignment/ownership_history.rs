//! The former owners of groups. When a node dies, the present owners take back what polls had claimed from it. A
//! group may have moved just before.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Five times the longest poll, which waits for a minute.
const KNOWN_FOR: Duration = Duration::from_secs(300);

/// Each pair of group and node once, with the time when the group left the node.
#[derive(Debug, Default)]
pub struct OwnershipHistory(Vec<(usize, String, Instant)>);

impl OwnershipHistory {
    /// Notes that a group leaves a node.
    pub fn note(&mut self, group: usize, node: &str, now: Instant) {
        self.0.retain(|(known_group, known, since)| {
            (*known_group, known.as_str()) != (group, node)
                && now.saturating_duration_since(*since) < KNOWN_FOR
        });
        self.0.push((group, node.to_owned(), now));
    }

    /// The groups that a node owned until a while ago.
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
