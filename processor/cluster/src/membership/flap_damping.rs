//! The uptime of each node, as the coordinator has seen it. Groups that moved to a node for balance move again when
//! it dies. So a node that dies often waits longer for them each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::control_rows::NodeRow;

/// After this uptime a node is steady. Each death before doubles it.
const SETTLES_IN: Duration = Duration::from_secs(3);
const SETTLES_IN_AT_MOST: Duration = Duration::from_secs(30);
/// A death counts for so long.
const COUNTS_FOR: Duration = Duration::from_secs(300);

/// Uptimes and deaths.
#[derive(Default)]
pub struct FlapDamping {
    by_name: BTreeMap<String, Uptime>,
    /// When nodes died.
    losses: BTreeMap<String, Vec<Instant>>,
}

struct Uptime {
    /// The start that it runs by.
    start: String,
    /// None: since before this node was the coordinator.
    since: Option<Instant>,
    /// It has said that it leaves.
    leaves: bool,
}

impl FlapDamping {
    /// The live nodes at this look. At the first look, nodes that `was_there` knows are steady.
    pub fn see<'a>(
        &mut self,
        nodes: impl Iterator<Item = (&'a String, &'a NodeRow)>,
        was_there: impl Fn(&str) -> bool,
        now: Instant,
    ) {
        let nodes: BTreeMap<_, _> = nodes.collect();
        let is_first = self.by_name.is_empty();
        self.by_name.retain(|name, life| {
            let lives_on = nodes.get(name).is_some_and(|row| row.instance == life.start);
            if !lives_on && !life.leaves {
                self.losses.entry(name.clone()).or_default().push(now);
            }
            lives_on
        });
        self.losses.retain(|_, losses| {
            losses.retain(|at| now.saturating_duration_since(*at) < COUNTS_FOR);
            !losses.is_empty()
        });
        for (name, row) in nodes {
            let since = (!(is_first && was_there(name))).then_some(now);
            let begun = || Uptime { start: row.instance.clone(), since, leaves: false };
            self.by_name.entry(name.clone()).or_insert_with(begun).leaves = row.leaves;
        }
    }

    /// Whether a node has been up for long enough.
    pub fn is_settled(&self, name: &str, now: Instant) -> bool {
        let Some(life) = self.by_name.get(name) else { return false };
        let losses = self.losses.get(name).map_or(0, Vec::len);
        let doubled = 1u32.checked_shl(u32::try_from(losses).unwrap_or(u32::MAX)).unwrap_or(u32::MAX);
        let settles_in = SETTLES_IN.saturating_mul(doubled).min(SETTLES_IN_AT_MOST);
        life.since.is_none_or(|since| now.saturating_duration_since(since) >= settles_in)
    }

    /// Another node is the coordinator: the next look is the first.
    pub fn end(&mut self) {
        self.by_name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes as one coordinator sees them, and the time.
    struct NodeView {
        lives: FlapDamping,
        now: Instant,
    }

    impl NodeView {
        fn new() -> Self {
            let mut place = Self { lives: FlapDamping::default(), now: Instant::now() };
            place.see(&[("placer", 1, false)]);
            place
        }

        fn see(&mut self, nodes: &[(&str, u32, bool)]) {
            let row =
                |start: u32, leaves| NodeRow { instance: start.to_string(), leaves, ..NodeRow::default() };
            let rows: Vec<_> = nodes
                .iter()
                .map(|(name, start, leaves)| ((*name).to_owned(), row(*start, *leaves)))
                .collect();
            let was_there = |name: &str| name == "placer";
            self.lives.see(rows.iter().map(|(name, row)| (name, row)), was_there, self.now);
        }

        /// After how many seconds it is steady.
        fn settles_in(&self, name: &str) -> Option<u64> {
            (0..100).find(|after| self.lives.is_settled(name, self.now + Duration::from_secs(*after)))
        }
    }

    #[test]
    fn a_node_is_settled_after_a_while_and_at_once_if_it_was_there_before() {
        let mut place = NodeView::new();
        assert_eq!(place.settles_in("placer"), Some(0));
        place.see(&[("placer", 1, false), ("a", 1, false)]);
        assert_eq!((place.settles_in("a"), place.settles_in("b")), (Some(3), None));
        place.lives.end();
        place.see(&[("placer", 1, false), ("a", 1, false)]);
        assert_eq!((place.settles_in("placer"), place.settles_in("a")), (Some(0), Some(3)));
    }

    #[test]
    fn each_loss_doubles_what_a_node_waits_until_it_is_long_ago() {
        let mut place = NodeView::new();
        let waits: Vec<_> = (1..=6)
            .map(|start| {
                // Some are back before the coordinator has looked.
                if start % 2 == 0 {
                    place.see(&[("placer", 1, false)]);
                }
                place.see(&[("placer", 1, false), ("a", start, false)]);
                place.settles_in("a").expect("it is settled in the end")
            })
            .collect();
        assert_eq!(waits, [3, 6, 12, 24, 30, 30]);
        for start in 7..100 {
            place.see(&[("placer", 1, false), ("a", start, false)]);
        }
        assert_eq!(place.settles_in("a"), Some(30));
        place.now += COUNTS_FOR;
        place.see(&[("placer", 1, false), ("a", 99, false)]);
        assert_eq!(place.settles_in("a"), Some(0));
        place.see(&[("placer", 1, false), ("a", 100, false)]);
        assert_eq!(place.settles_in("a"), Some(6));
    }

    #[test]
    fn a_node_that_has_said_that_it_ends_is_not_lost() {
        let mut place = NodeView::new();
        for start in 1..5 {
            place.see(&[("placer", 1, false), ("a", start, false)]);
            assert_eq!(place.settles_in("a"), Some(3));
            place.see(&[("placer", 1, false), ("a", start, true)]);
            place.see(&[("placer", 1, false)]);
        }
    }
}
