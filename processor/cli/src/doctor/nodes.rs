//! The doctor's checks of the nodes on a log.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anyhow::Result;
use everlog_config::Config;
use everlog_log_kafka::control::client::ControlClient;

use crate::doctor::Finding;
use crate::nodes::peer_auth;
use crate::nodes::{NodeState, Nodes, PartitionState};

/// Checks them. Checks nothing where the topics are missing, which another check reports.
///
/// # Errors
/// The brokers do not answer.
pub fn look(config: &Config, now_ms: i64) -> Result<Vec<Finding>> {
    let board = match ControlClient::open(config.kafka.options("doctor")) {
        Ok(board) => board,
        // Another check reports it.
        Err(everlog_log::Error::Refused { .. } | everlog_log::Error::Denied { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(config.kafka.explain(error)),
    };
    let trust = match peer_auth(config) {
        Ok(trust) => trust,
        Err(error) => {
            let fix = "give the doctor the settings of a node, as a user who may read its files";
            return Ok(vec![Finding::fail("nodes", format!("they cannot be asked: {error:#}"), fix)]);
        }
    };
    let nodes = match Nodes::look(&board, trust) {
        Ok(nodes) => nodes,
        Err(error) => return denied(error),
    };
    board.close();
    Ok(judge(&nodes, now_ms))
}

fn denied(error: anyhow::Error) -> Result<Vec<Finding>> {
    match error.downcast::<everlog_log::Error>() {
        Ok(everlog_log::Error::Denied { detail, fix }) => Ok(vec![Finding::fail("permissions", detail, fix)]),
        Ok(other) => Err(other.into()),
        Err(error) => Err(error),
    }
}

fn judge(nodes: &Nodes, now_ms: i64) -> Vec<Finding> {
    let is_there = |name: &String| nodes.status(name).is_some();
    if !nodes.view.nodes.keys().any(is_there) && nodes.members.is_empty() {
        return vec![Finding::warn("nodes", "none is there", "start one")];
    }
    let mut findings = here(nodes, now_ms);
    findings.extend(addresses(nodes));
    findings.extend(releases(nodes));
    findings.extend(keys(nodes));
    findings.extend(replicas(nodes));
    findings.extend(partitions(nodes));
    findings.extend(wishes(nodes));
    findings
}

/// Which nodes answer.
fn here(nodes: &Nodes, now_ms: i64) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, row) in &nodes.view.nodes {
        let (address, state) = (&row.address, nodes.node_state(name));
        match &state {
            NodeState::Refuses => findings.push(Finding::fail(
                "nodes",
                format!("{name} at {address} and whoever has these settings do not trust each other"),
                "give all nodes the same cluster.secret_file, and certificates of one cluster.ca_file, and start those again that \
                 have others",
            )),
            NodeState::Another(other) => findings.push(Finding::fail(
                "nodes",
                format!("{name} tells others that it is reached at {address}, and {other} answers there"),
                "give each node an address of its own (cluster.address, cluster.advertised)",
            )),
            NodeState::Silent => findings.push(Finding::fail(
                "nodes",
                format!("the brokers hear of {name}, and nobody answers at {address} where it says that it is"),
                "if the process works: cluster.advertised must lead to it from every other node (and from here, for \
                 this check); if it sleeps or is cut off, end it",
            )),
            NodeState::Ended => findings.push(Finding::warn(
                "nodes",
                format!("nobody listens at {address}: the process of {name} is gone, and the brokers do not know it yet"),
                "wait until others have taken over; then start it again, or leave it",
            )),
            NodeState::Gone(_) => findings.push(Finding::warn(
                "nodes",
                format!("{name} is {}, and kept the rows of {} groups", state.words(now_ms), row.rows.len()),
                "start it again, or leave it: it is forgotten after cluster.forget_after_ms",
            )),
            NodeState::Apart(others) => findings.push(Finding::fail(
                "nodes",
                format!("{name} at {address} and {} do not reach each other, so it has nothing", others.join(", ")),
                "each node must reach every other one at its cluster.advertised: look at the network between them, and at \
                 its walls",
            )),
            NodeState::TooOld(raised) => findings.push(Finding::fail(
                "nodes",
                format!("{name} does not know level {raised} of decisions, which the log is at, so it has nothing"),
                "install the release that the level was raised with, or a newer one; there is no way back",
            )),
            NodeState::Serves | NodeState::Comes | NodeState::Drained | NodeState::Leaves => {}
        }
    }
    for name in nodes.namesakes() {
        findings.push(Finding::warn(
            "nodes",
            format!("the brokers hear of {name} more than once"),
            "if it is so for longer than 10 s, two processes go by one name: give each a server.name of its own",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::good("nodes", format!("{} answer", nodes.view.nodes.len())));
    }
    findings
}

/// An address that means another machine to each node.
fn addresses(nodes: &Nodes) -> Vec<Finding> {
    let parsed = |address: &str| address.parse::<SocketAddr>().ok();
    let is_far = |address: &str| parsed(address).is_none_or(|address| !address.ip().is_loopback());
    let others_are_far = nodes.view.nodes.values().any(|row| is_far(&row.address));
    let mut findings = Vec::new();
    for (name, row) in &nodes.view.nodes {
        let Some(address) = parsed(&row.address) else { continue };
        let is_nowhere = address.ip().is_unspecified() || address.port() == 0;
        if is_nowhere || (address.ip().is_loopback() && others_are_far) {
            findings.push(Finding::fail(
                "advertised",
                format!("{name} tells others that it is reached at {address}, which is no address for them"),
                "set cluster.advertised on that node to a name or an address by which others reach it",
            ));
        }
    }
    findings
}

fn releases(nodes: &Nodes) -> Vec<Finding> {
    let mut releases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for status in nodes.view.nodes.keys().filter_map(|name| nodes.status(name)) {
        releases.entry(&status.version).or_default().push(&status.name);
    }
    if releases.len() < 2 {
        return Vec::new();
    }
    let told = |(release, names): (&&str, &Vec<&str>)| {
        let release = if release.is_empty() { "an earlier one" } else { release };
        format!("{release} ({})", names.join(", "))
    };
    let told: Vec<_> = releases.iter().map(told).collect();
    let found = format!("nodes are of different releases: {}", told.join("; "));
    vec![Finding::warn("releases", found, "go on with the upgrade: all nodes are to be of one release")]
}

/// All nodes must accept the task tokens that one of them signs.
fn keys(nodes: &Nodes) -> Vec<Finding> {
    let told: Vec<_> = nodes.view.nodes.keys().filter_map(|name| nodes.status(name)).collect();
    let mut findings = Vec::new();
    for giver in &told {
        let Some(key) = giver.keys.first() else { continue };
        let refuses =
            |taker: &&&everlog_cluster::status::Status| !taker.keys.is_empty() && !taker.keys.contains(key);
        let takers: Vec<_> = told.iter().filter(refuses).map(|taker| taker.name.as_str()).collect();
        if !takers.is_empty() {
            findings.push(Finding::fail(
                "keys",
                format!("task tokens that {} makes are refused by {}", giver.name, takers.join(", ")),
                "give all nodes the same tokens.key_file, or none of them one; to change a key, first add the new one as \
                 the second line everywhere",
            ));
        }
    }
    findings
}

/// A node without replicas is no standby, so some groups have none.
fn replicas(nodes: &Nodes) -> Vec<Finding> {
    let told = nodes.view.nodes.keys().filter_map(|name| nodes.status(name));
    let (with, without): (Vec<_>, Vec<_>) = told.partition(|status| status.replicas > 0);
    if with.is_empty() || without.is_empty() {
        return Vec::new();
    }
    let names: Vec<_> = without.iter().map(|status| status.name.as_str()).collect();
    let found = format!("rows are followed by some nodes, and not by {}", names.join(", "));
    vec![Finding::warn("replicas", found, "give all nodes the same cluster.replicas")]
}

fn partitions(nodes: &Nodes) -> Vec<Finding> {
    let mut amiss: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    let mut served = 0;
    for partition in 0..u32::try_from(nodes.ends.len()).unwrap_or(u32::MAX) {
        let state = nodes.partition_state(partition);
        if state.is_served() {
            served += 1;
            continue;
        }
        let owner = nodes.owner(partition).map_or("nobody", |owner| owner.node.as_str());
        let what = match state {
            PartitionState::Nobodys => "is nobody's".to_owned(),
            PartitionState::Untold if nodes.status(owner).is_some() => {
                format!("is placed on {owner}, which does not have it")
            }
            PartitionState::Untold => format!("is owned by {owner}, which does not answer"),
            PartitionState::Closed => format!("is closed at {owner}, whose log says why"),
            PartitionState::Comes => format!("is being taken over by {owner}"),
            PartitionState::Restores(_) => format!("is brought by {owner}"),
            PartitionState::Serves(_) => continue,
        };
        let passes = matches!(state, PartitionState::Comes | PartitionState::Restores(_));
        let verdict = if passes { "passes" } else { "stays" };
        amiss.entry((verdict, what)).or_default().push(partition.to_string());
    }
    let finding = |((verdict, what), numbers): (&(&str, String), &Vec<String>)| {
        let found = format!("partition {} {what}", numbers.join(", "));
        match *verdict {
            "passes" => {
                Finding::warn("partitions", found, "wait: `everlog cluster status` says how far it is")
            }
            _ => Finding::fail(
                "partitions",
                found,
                "others take it over within seconds of a node's end: start a node where none is left, end one that \
                 does not answer, and look at the log lines of the node that places",
            ),
        }
    };
    let mut findings: Vec<_> = amiss.iter().map(finding).collect();
    if findings.is_empty() {
        findings.push(Finding::good("partitions", format!("all {served} are served")));
    }
    findings
}

/// What an operator has asked for.
fn wishes(nodes: &Nodes) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_there = |node: &str| nodes.status(node).is_some();
    for (group, node) in &nodes.view.pins {
        if !is_there(node) {
            let first = group.saturating_mul(nodes.group_partitions as usize);
            findings.push(Finding::warn(
                "pins",
                format!("the group of partition {first} is to be on {node}, which is not there"),
                format!("start that node, or let the group go anywhere: everlog cluster move {first}"),
            ));
        }
    }
    let drained: BTreeSet<_> = nodes.view.drains.iter().collect();
    for node in drained {
        let what = if is_there(node) { "serves no partition" } else { "is not there" };
        findings.push(Finding::warn(
            "drains",
            format!("{node} is drained by an operator, and {what}"),
            format!("when the work on it is done: everlog cluster drain {node} --undo"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use everlog_cluster::StatusReply;
    use everlog_cluster::control_rows::{OwnerRow, Row};

    use super::*;
    use crate::doctor::CheckVerdict;
    use crate::nodes::tests::{tell, two};

    /// The findings that are not good, after a change of a good cluster.
    fn amiss(change: impl FnOnce(&mut Nodes)) -> Vec<(&'static str, CheckVerdict)> {
        let mut nodes = two();
        change(&mut nodes);
        let findings = judge(&nodes, 0);
        let bad = findings.iter().filter(|finding| finding.verdict != CheckVerdict::Good);
        assert!(bad.clone().all(|finding| finding.fix.is_some()));
        bad.map(|finding| (finding.about, finding.verdict)).collect()
    }

    #[test]
    fn nodes_that_fare_well_are_told_so() {
        assert_eq!(amiss(|_| {}), []);
        let abouts: Vec<_> = judge(&two(), 0).iter().map(|finding| finding.about).collect();
        assert_eq!(abouts, ["nodes", "partitions"]);
    }

    #[test]
    fn a_dead_node_is_told_and_fails_only_while_partitions_are_its_own() {
        let dies = |nodes: &mut Nodes| {
            nodes.answers.insert("b".into(), StatusReply::Unreadable);
            nodes.members.pop();
        };
        assert_eq!(amiss(dies), [("nodes", CheckVerdict::Warn), ("partitions", CheckVerdict::Fail)]);
        let found = amiss(|nodes| {
            dies(nodes);
            nodes.view.take(Row::Owner(1, Some(OwnerRow { node: "a".into(), serves: true })));
            let moved = nodes.told(0).cloned().expect("it tells");
            tell(nodes, "a", |status| {
                status.partitions.extend([2, 3].map(|partition| everlog_cluster::status::PartitionStatus {
                    partition,
                    ..moved.clone()
                }));
            });
        });
        assert_eq!(found, [("nodes", CheckVerdict::Warn)]);
    }

    #[test]
    fn a_node_that_is_not_reached_fails() {
        let silent = amiss(|nodes| drop(nodes.answers.insert("b".into(), StatusReply::Unreadable)));
        assert_eq!(silent, [("nodes", CheckVerdict::Fail), ("partitions", CheckVerdict::Fail)]);
        let refuses = amiss(|nodes| drop(nodes.answers.insert("b".into(), StatusReply::Refused)));
        assert_eq!(refuses, [("nodes", CheckVerdict::Fail), ("partitions", CheckVerdict::Fail)]);
        let another = amiss(|nodes| drop(nodes.answers.insert("b".into(), nodes.answers["a"].clone())));
        assert_eq!(another, [("nodes", CheckVerdict::Fail), ("partitions", CheckVerdict::Fail)]);
    }

    #[test]
    fn an_address_that_is_none_for_others_fails() {
        for (address, expected) in [
            ("0.0.0.0:7235", vec![("advertised", CheckVerdict::Fail)]),
            ("127.0.0.1:7235", vec![("advertised", CheckVerdict::Fail)]),
            ("10.0.0.7:7235", vec![]),
        ] {
            let found = amiss(|nodes| {
                nodes.view.nodes.get_mut("b").expect("it is there").address = address.into();
            });
            assert_eq!(found, expected, "{address}");
        }
        let all_here = amiss(|nodes| {
            nodes.view.nodes.values_mut().for_each(|row| row.address = "127.0.0.1:7235".into());
        });
        assert_eq!(all_here, [], "they share a machine");
    }

    #[test]
    fn different_releases_are_told_and_different_keys_fail() {
        let releases = amiss(|nodes| tell(nodes, "b", |status| status.version = "1.1.0".into()));
        assert_eq!(releases, [("releases", CheckVerdict::Warn)]);
        let keys = amiss(|nodes| tell(nodes, "b", |status| status.keys = vec!["01".into()]));
        assert_eq!(keys, [("keys", CheckVerdict::Fail); 2], "both ways");
        let half = amiss(|nodes| tell(nodes, "b", |status| status.keys = vec!["01".into(), "00".into()]));
        assert_eq!(half, [("keys", CheckVerdict::Fail)], "b takes what a makes, and not the other way round");
        let both = ["00".to_owned(), "01".to_owned()];
        let rotating = amiss(|nodes| {
            tell(nodes, "a", |status| status.keys = both.to_vec());
            tell(nodes, "b", |status| status.keys = both.iter().rev().cloned().collect());
        });
        assert_eq!(rotating, []);
    }

    #[test]
    fn nodes_that_do_not_reach_each_other_fail() {
        let apart = amiss(|nodes| {
            nodes.view.nodes.get_mut("b").expect("it is there").unreachable = BTreeSet::from(["a".into()]);
            nodes.view.assignment.nodes.remove("b");
        });
        assert_eq!(apart, [("nodes", CheckVerdict::Fail)]);
    }

    #[test]
    fn rows_that_only_some_nodes_follow_are_told() {
        assert_eq!(
            amiss(|nodes| tell(nodes, "a", |status| status.replicas = 1)),
            [("replicas", CheckVerdict::Warn)]
        );
        let all = amiss(|nodes| {
            ["a", "b"].into_iter().for_each(|node| tell(nodes, node, |status| status.replicas = 1));
        });
        assert_eq!(all, []);
    }

    #[test]
    fn partitions_without_an_owner_fail_and_those_on_their_way_are_told() {
        assert_eq!(amiss(|nodes| nodes.view.take(Row::Owner(1, None))), [("partitions", CheckVerdict::Fail)]);
        let restores = amiss(|nodes| tell(nodes, "b", |status| status.partitions[0].serves = false));
        assert_eq!(restores, [("partitions", CheckVerdict::Warn)]);
        let idle = amiss(|nodes| tell(nodes, "b", |status| status.partitions.clear()));
        assert_eq!(idle, [("partitions", CheckVerdict::Fail)], "it is placed and does not come");
    }

    #[test]
    fn what_an_operator_has_left_behind_is_told() {
        let drained = amiss(|nodes| nodes.view.take(Row::Drain("c".into(), Some(true))));
        assert_eq!(drained, [("drains", CheckVerdict::Warn)]);
        let pinned = amiss(|nodes| {
            nodes.view.take(Row::Pin(0, Some("a".into())));
            nodes.view.take(Row::Pin(1, Some("c".into())));
        });
        assert_eq!(pinned, [("pins", CheckVerdict::Warn)]);
    }

    #[test]
    fn two_of_one_name_and_nobody_at_all_are_told() {
        assert_eq!(amiss(|nodes| nodes.members.push("a".into())), [("nodes", CheckVerdict::Warn)]);
        let nobody = amiss(|nodes| {
            nodes.members.clear();
            nodes.answers.clear();
        });
        assert_eq!(nobody, [("nodes", CheckVerdict::Warn)]);
    }
}
