//! Nodes that died: the coordinator records when, and forgets them after a while. Nothing is lost by that: a node
//! that comes back registers again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use everlog_log::clock::now_ms;

use crate::control_rows::{ControlView, GoneRow, Row};
use crate::control_table::ControlTable;
use crate::peers::client::PeerClient;

/// Nodes that something has to be written of, because they are not in `live`.
fn missed<'a>(
    view: &'a ControlView,
    live: &BTreeSet<String>,
    now_ms: i64,
    forget_after_ms: i64,
) -> impl Iterator<Item = &'a String> {
    let is_due = move |since_ms: i64| now_ms.saturating_sub(since_ms) >= forget_after_ms;
    let missing = view.nodes.keys().filter(|name| !live.contains(*name));
    missing.filter(move |name| view.gone.get(*name).is_none_or(|gone| is_due(gone.since_ms)))
}

/// The rows to write where only `live` nodes are live.
fn news(view: &ControlView, live: &BTreeSet<String>, now_ms: i64, forget_after_ms: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    for name in view.nodes.keys() {
        match (live.contains(name), view.gone.get(name)) {
            (true, None) => {}
            (true, Some(_)) => rows.push(Row::Gone(name.clone(), None)),
            (false, None) => rows.push(Row::Gone(name.clone(), Some(GoneRow { since_ms: now_ms }))),
            (false, Some(gone)) if now_ms.saturating_sub(gone.since_ms) >= forget_after_ms => {
                rows.push(Row::Node(name.clone(), None));
                rows.push(Row::Gone(name.clone(), None));
            }
            (false, Some(_)) => {}
        }
    }
    let said_so = view.gone.keys().filter(|name| !view.nodes.contains_key(*name));
    rows.extend(said_so.map(|name| Row::Gone(name.clone(), None)));
    rows
}

/// Records which nodes are gone.
pub struct DepartedNodes {
    /// The rows of `control`.
    pub control: Arc<ControlTable>,
    /// The way to the others.
    pub peers: Arc<PeerClient>,
    /// A node that is gone for so long is forgotten.
    pub forget_after: Duration,
}

impl DepartedNodes {
    /// Records which nodes have died, and forgets those that died long ago. For the coordinator.
    pub async fn record(&self, live: &BTreeSet<String>) {
        let (view, now_ms) = (self.control.view_full(), now_ms());
        let forget_after_ms = i64::try_from(self.forget_after.as_millis()).unwrap_or(i64::MAX);
        let mut live = live.clone();
        let missed: Vec<_> = missed(&view, &live, now_ms, forget_after_ms).cloned().collect();
        for name in missed {
            // A node that has just started is no member yet.
            if self.peers.instance(&name, &view.nodes[&name].address).await.is_some() {
                live.insert(name);
            }
        }
        for row in news(&view, &live, now_ms, forget_after_ms) {
            if let Row::Node(node, None) = &row {
                tracing::info!(node, "departed node forgotten");
            }
            match self.control.write(row.clone()).await {
                Ok(()) => self.control.apply_and_publish(row),
                Err(error) => tracing::debug!(%error, "departed node not recorded yet"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_rows::NodeRow;

    const HOUR: i64 = 3_600_000;

    fn view(names: &[&str]) -> ControlView {
        let mut view = ControlView::default();
        for name in names {
            let row = NodeRow {
                address: "127.0.0.1:1".into(),
                calls: "127.0.0.1:2".into(),
                instance: (*name).into(),
                ..NodeRow::default()
            };
            view.take(Row::Node((*name).into(), Some(row)));
        }
        view
    }

    fn live(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_node_that_is_gone_is_told_once_and_forgotten_after_a_while() {
        let mut view = view(&["a", "b"]);
        assert_eq!(news(&view, &live(&["a", "b"]), 5, HOUR), []);
        let gone = news(&view, &live(&["a"]), 5, HOUR);
        assert_eq!(gone, [Row::Gone("b".into(), Some(GoneRow { since_ms: 5 }))]);
        gone.into_iter().for_each(|row| view.take(row));
        assert_eq!(news(&view, &live(&["a"]), 3_600_004, HOUR), []);
        assert_eq!(missed(&view, &live(&["a"]), 3_600_004, HOUR).count(), 0);
        assert_eq!(missed(&view, &live(&["a"]), 3_600_005, HOUR).collect::<Vec<_>>(), ["b"]);
        let forgotten = news(&view, &live(&["a"]), 3_600_005, HOUR);
        assert_eq!(forgotten, [Row::Node("b".into(), None), Row::Gone("b".into(), None)]);
        forgotten.into_iter().for_each(|row| view.take(row));
        assert_eq!(news(&view, &live(&["a"]), 3_600_006, HOUR), []);
        assert!(view.nodes.contains_key("a") && !view.nodes.contains_key("b"));
    }

    #[test]
    fn a_node_that_comes_back_or_says_that_it_goes_is_gone_no_more() {
        let mut view = view(&["a", "b"]);
        view.take(Row::Gone("b".into(), Some(GoneRow { since_ms: 5 })));
        assert_eq!(news(&view, &live(&["a", "b"]), 6, HOUR), [Row::Gone("b".into(), None)]);
        view.take(Row::Node("b".into(), None));
        assert_eq!(news(&view, &live(&["a"]), 6, HOUR), [Row::Gone("b".into(), None)]);
    }
}
