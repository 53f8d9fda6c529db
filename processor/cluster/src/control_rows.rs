//! The rows of nodes in the topic `control`, in JSON, and the table that they make. Names in JSON are read by nodes
//! of other releases and by tools.

use std::collections::{BTreeMap, BTreeSet};

use everlog_engine::level;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::assignment::assign::weight;

const NODE: &str = "node/";
const GONE: &str = "gone/";
const OWNER: &str = "owner/";
const PIN: &str = "pin/";
const DRAIN: &str = "drain/";
const ASSIGNMENT: &str = "placement";
const LEVEL: &str = "level";

/// A member, or a former one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Where other nodes reach it.
    pub address: String,
    /// Where clients reach it.
    pub calls: String,
    /// Random, one for each start.
    pub instance: String,
    /// It leaves: no group is assigned to it.
    pub leaves: bool,
    /// Groups whose rows it keeps.
    pub rows: BTreeSet<usize>,
    /// Other nodes that it has not reached for a while.
    #[serde(rename = "misses", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unreachable: BTreeSet<String>,
    /// The highest level of decisions that its release knows; 0 where the release knew of no levels.
    #[serde(default)]
    pub level: u32,
    /// Its release; empty where the release did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub release: String,
}

/// A node that died. The coordinator writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneRow {
    /// In ms since 1970-01-01 UTC, by the coordinator's clock.
    pub since_ms: i64,
}

/// The owner of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRow {
    /// The owner.
    pub node: String,
    /// The owner serves the group, or did. False while it takes the group over.
    pub serves: bool,
}

/// Which node every group is assigned to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The live nodes, by name.
    pub nodes: BTreeSet<String>,
    /// The node of each group.
    pub groups: Vec<Option<String>>,
    /// The coordinator that wrote it.
    pub by: String,
    /// Counts the changes of the set of nodes with groups. It tells two times apart at which the set was the same.
    #[serde(default)]
    pub generation: u64,
}

impl Assignment {
    /// The assignment that follows this one.
    pub fn then(&self, nodes: BTreeSet<String>, groups: Vec<Option<String>>, by: &str) -> Self {
        let then = Self { nodes, groups, by: by.to_owned(), generation: self.generation };
        let generation = self.generation + u64::from(then.hosts() != self.hosts());
        Self { generation, ..then }
    }

    /// The nodes with groups; all nodes while none has groups.
    fn hosts(&self) -> BTreeSet<String> {
        let assigned: BTreeSet<_> = self.groups.iter().flatten().cloned().collect();
        if assigned.is_empty() { self.nodes.clone() } else { assigned }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A member; none removes it.
    Node(String, Option<NodeRow>),
    /// A node that died; none = it is back, or forgotten.
    Gone(String, Option<GoneRow>),
    /// The owner of a group.
    Owner(usize, Option<OwnerRow>),
    /// The node that an operator has pinned a group to.
    Pin(usize, Option<String>),
    /// A node that an operator has drained; none = no longer.
    Drain(String, Option<bool>),
    /// Which node every group is assigned to.
    Assignment(Assignment),
    /// The level of decisions that an operator has raised the log to.
    Level(u32),
}

impl Row {
    /// None where the row is not about nodes, or was written by a later release.
    pub fn read(key: &[u8], value: Option<&[u8]>) -> Option<Self> {
        let key = std::str::from_utf8(key).ok()?;
        if key == ASSIGNMENT {
            return Some(Self::Assignment(json(value)?));
        }
        if key == LEVEL {
            return Some(Self::Level(json(value)?));
        }
        if let Some(name) = key.strip_prefix(NODE) {
            return Some(Self::Node(name.to_owned(), json(value)));
        }
        if let Some(name) = key.strip_prefix(GONE) {
            return Some(Self::Gone(name.to_owned(), json(value)));
        }
        if let Some(name) = key.strip_prefix(DRAIN) {
            return Some(Self::Drain(name.to_owned(), json(value)));
        }
        if let Some(group) = key.strip_prefix(OWNER) {
            return Some(Self::Owner(group.parse().ok()?, json(value)));
        }
        let group = key.strip_prefix(PIN)?;
        Some(Self::Pin(group.parse().ok()?, json(value)))
    }

    /// Key and value; a value of none removes the row.
    pub fn write(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Self::Node(name, row) => (format!("{NODE}{name}").into(), row.as_ref().map(bytes)),
            Self::Gone(name, row) => (format!("{GONE}{name}").into(), row.as_ref().map(bytes)),
            Self::Owner(group, name) => (format!("{OWNER}{group}").into(), name.as_ref().map(bytes)),
            Self::Pin(group, name) => (format!("{PIN}{group}").into(), name.as_ref().map(bytes)),
            Self::Drain(name, is_so) => (format!("{DRAIN}{name}").into(), is_so.as_ref().map(bytes)),
            Self::Assignment(assignment) => (ASSIGNMENT.into(), Some(bytes(assignment))),
            Self::Level(level) => (LEVEL.into(), Some(bytes(level))),
        }
    }
}

fn json<T: DeserializeOwned>(value: Option<&[u8]>) -> Option<T> {
    serde_json::from_slice(value?).ok()
}

fn bytes<T: Serialize>(row: &T) -> Vec<u8> {
    serde_json::to_vec(row).expect("rows have nothing that JSON cannot say")
}

/// All rows that were read.
#[derive(Clone, Debug, Default)]
pub struct ControlView {
    /// Nodes by name.
    pub nodes: BTreeMap<String, NodeRow>,
    /// Those of them that died.
    pub gone: BTreeMap<String, GoneRow>,
    /// Which node every group is assigned to.
    pub assignment: Assignment,
    /// The nodes that queues may have their home at: those with groups. A new or unsteady node has none, so no poll
    /// and no task is lost with it.
    pub hosts: BTreeSet<String>,
    /// The owner of each group.
    pub owners: BTreeMap<usize, OwnerRow>,
    /// Groups that an operator has pinned.
    pub pins: BTreeMap<usize, String>,
    /// Nodes that an operator has drained.
    pub drains: BTreeSet<String>,
    /// The level of decisions that an operator has raised the log to; 0: none has.
    pub raised: u32,
}

impl ControlView {
    /// Applies a row.
    pub fn take(&mut self, row: Row) {
        fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
            match value {
                Some(value) => drop(map.insert(key, value)),
                None => drop(map.remove(&key)),
            }
        }
        match row {
            Row::Node(name, row) => put(&mut self.nodes, name, row),
            Row::Gone(name, row) => put(&mut self.gone, name, row),
            Row::Owner(group, name) => put(&mut self.owners, group, name),
            Row::Pin(group, name) => put(&mut self.pins, group, name),
            Row::Drain(name, Some(true)) => drop(self.drains.insert(name)),
            Row::Drain(name, Some(false) | None) => drop(self.drains.remove(&name)),
            Row::Assignment(assignment) => {
                self.hosts = assignment.hosts();
                self.assignment = assignment;
            }
            // An older wish may arrive late.
            Row::Level(level) => self.raised = self.raised.max(level),
        }
    }

    /// Applies that a node hands a group over to another. The new owner's own row outranks it: an old request to hand
    /// over may arrive late, and nothing would ever correct it.
    pub fn give(&mut self, group: usize, from: &str, to: &str) {
        if self.owners.get(&group).is_none_or(|known| known.node == from) {
            self.owners.insert(group, OwnerRow { node: to.to_owned(), serves: false });
        }
    }

    /// The highest level of decisions that all nodes know, including dead nodes that are not forgotten yet.
    pub fn level(&self) -> u32 {
        self.nodes.values().map(|row| row.level).fold(level::LATEST, u32::min)
    }

    /// Whether a node's release does not know the level that the log was raised to.
    pub fn is_too_old(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|row| row.level < self.raised)
    }

    /// The number of the present set of homes and their processes. It changes when a node or its process changes,
    /// also back to an earlier set, because a node that missed the time between has to notice it. All nodes compute
    /// the same; never 0.
    pub fn era(&self) -> u64 {
        let instance = |name| self.nodes.get(name).map_or("", |row| &row.instance);
        let hosts = self.hosts.iter().flat_map(|name| [name.as_bytes(), instance(name).as_bytes()]);
        let generation = self.assignment.generation.to_be_bytes();
        weight(std::iter::once(&generation[..]).chain(hosts)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_ends_when_a_node_with_groups_comes_goes_or_starts_anew() {
        let mut view = ControlView::default();
        let node = |instance: &str, leaves| NodeRow {
            address: "127.0.0.1:1".into(),
            calls: String::new(),
            instance: instance.into(),
            leaves,
            ..NodeRow::default()
        };
        let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let given = |nodes: &[&str], groups: &[&str]| {
            let groups = names(groups).into_iter().map(Some).collect();
            (names(nodes).into_iter().collect::<BTreeSet<_>>(), groups)
        };
        let assigned = |nodes: &[&str]| Err(given(nodes, &[]));
        let mut eras = vec![view.era()];
        let steps = [
            (assigned(&["a"]), true),
            (Ok(Row::Node("a".into(), Some(node("1", false)))), true),
            (Ok(Row::Node("b".into(), Some(node("2", false)))), false),
            (assigned(&["a", "b"]), true),
            (Ok(Row::Node("a".into(), Some(node("1", true)))), false),
            (Ok(Row::Owner(0, Some(OwnerRow { node: "a".into(), serves: true }))), false),
            (assigned(&["b"]), true),
            // As before, and yet another number.
            (assigned(&["a", "b"]), true),
            (Ok(Row::Node("a".into(), Some(node("3", false)))), true),
            (assigned(&["b"]), true),
            (Err(given(&["a", "b"], &["b", "b"])), false),
            (Ok(Row::Node("a".into(), Some(node("4", false)))), false),
            (Err(given(&["a", "b"], &["b", "a"])), true),
            (Err(given(&["a", "b", "c"], &["b", "a"])), false),
            (Err(given(&["a", "b", "c"], &["a", "b"])), false),
            (Err(given(&["b", "c"], &["c", "c"])), true),
        ];
        for (step, is_other) in steps {
            let row = step.unwrap_or_else(|(nodes, groups)| {
                Row::Assignment(view.assignment.then(nodes, groups, "somebody"))
            });
            view.take(row.clone());
            assert_eq!(!eras.contains(&view.era()), is_other, "{row:?}");
            eras.push(view.era());
        }
    }

    #[test]
    fn a_group_that_another_has_told_it_serves_is_not_given_again() {
        let mut view = ControlView::default();
        let row = |node: &str, serves| OwnerRow { node: node.into(), serves };
        view.give(0, "a", "b");
        assert_eq!(view.owners[&0], row("b", false));
        let told = [
            (row("a", true), row("b", false)),
            (row("b", true), row("b", true)),
            (row("c", true), row("c", true)),
        ];
        for (known, then) in told {
            view.take(Row::Owner(0, Some(known.clone())));
            view.give(0, "a", "b");
            assert_eq!(view.owners[&0], then, "as told before: {known:?}");
        }
    }

    #[test]
    fn the_level_of_decisions_is_one_that_all_nodes_know() {
        let mut view = ControlView::default();
        assert_eq!(view.level(), level::LATEST, "nobody knows less");
        // The row of a node of an earlier release.
        let earlier = br#"{"address":"","calls":"","instance":"","leaves":false,"rows":[]}"#;
        let node = |level| Some(NodeRow { level, ..NodeRow::default() });
        let steps = [
            (Row::Node("a".into(), node(level::LATEST)), level::LATEST),
            (Row::read(b"node/b", Some(earlier)).expect("a row of old is read"), 0),
            (Row::Node("c".into(), node(level::LATEST + 1)), 0),
            (Row::Gone("b".into(), Some(GoneRow { since_ms: 7 })), 0),
            (Row::Node("b".into(), None), level::LATEST),
            (Row::Node("a".into(), None), level::LATEST),
        ];
        for (row, then) in steps {
            view.take(row.clone());
            assert_eq!(view.level(), then, "{row:?}");
        }
    }

    #[test]
    fn a_level_is_only_raised_and_nodes_that_do_not_know_it_are_too_old() {
        let mut view = ControlView::default();
        let node = |level| Some(NodeRow { level, ..NodeRow::default() });
        view.take(Row::Node("old".into(), node(5)));
        view.take(Row::Node("new".into(), node(6)));
        assert!(!view.is_too_old("old"), "nobody has raised the level");
        for (wish, raised) in [(6, 6), (4, 6), (7, 7)] {
            view.take(Row::Level(wish));
            assert_eq!(view.raised, raised);
            assert_eq!((view.is_too_old("old"), view.is_too_old("new")), (true, raised > 6));
        }
    }

    #[test]
    fn rows_are_read_as_they_are_written() {
        let node = NodeRow {
            address: "127.0.0.1:1".into(),
            calls: "127.0.0.1:2".into(),
            instance: "00ff".into(),
            leaves: false,
            rows: BTreeSet::from([1, 3]),
            unreachable: BTreeSet::from(["b".into()]),
            level: 1,
            release: "0.1.0".into(),
        };
        let assignment = Assignment {
            nodes: BTreeSet::from(["a".into()]),
            groups: vec![Some("a".into()), None],
            by: "a".into(),
            generation: 7,
        };
        let rows = [
            Row::Node("a/b".into(), Some(node)),
            Row::Node("a".into(), None),
            Row::Gone("a".into(), Some(GoneRow { since_ms: 7 })),
            Row::Owner(7, Some(OwnerRow { node: "a".into(), serves: true })),
            Row::Pin(0, None),
            Row::Drain("a".into(), Some(true)),
            Row::Assignment(assignment),
            Row::Level(6),
        ];
        for row in rows {
            let (key, value) = row.write();
            assert_eq!(Row::read(&key, value.as_deref()), Some(row));
        }
        assert_eq!(Row::read(b"namespace/1", Some(b"{}")), None);
        assert_eq!(Row::read(b"owner/x", Some(b"\"a\"")), None);
    }
}
