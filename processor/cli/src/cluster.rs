//! `everlog cluster`: shows nodes and partitions, drains nodes, moves partition groups. Wishes are rows of `control`;
//! the coordinator fulfils them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use everlog_cluster::control_rows::{ControlView, Row};
use everlog_config::Config;
use everlog_log_kafka::control::client::ControlClient;
use serde_json::json;

mod upgrade;

use crate::cluster::upgrade::UpgradeArgs;
use crate::nodes::peer_auth;
use crate::nodes::{NodeState, Nodes, view};
use crate::table::{self, Side};
use crate::{ExitStatus, write_line};

/// How often a command checks whether its wish is fulfilled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// `everlog cluster`
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Print the nodes, and of each partition its owner, its positions and the progress of a restore.
    ///
    /// Exit codes: 0: every partition is served. 3: one is not. 1: the brokers do not answer. A dead node whose
    /// partitions others serve changes nothing.
    Status(StatusArgs),
    /// Move all partitions of a node to the others, and assign none to it from then on.
    ///
    /// Exit codes: 0: done. 2: requested, but not done within --within-s. 1: not requested.
    Drain(DrainArgs),
    /// Move the group of a partition to a node, and pin it there while that node lives.
    ///
    /// Exit codes: 0: done. 2: requested, but not done within --within-s. 1: not requested.
    Move(MoveArgs),
    /// Raise the level of decisions, which new behaviour waits for; there is no way back. Without --to-level: print the levels.
    ///
    /// Do so when all nodes have the new release and nobody wants the former one back. On an embedded log the node must not run.
    ///
    /// Exit codes: 0: done, or printed. 2: requested, but not done within --within-s. 3: not all nodes know the level.
    /// 1: not requested.
    Upgrade(UpgradeArgs),
}

/// The file of settings.
#[derive(Args, Debug)]
pub struct SettingsOption {
    /// The file of settings [default: the environment and the defaults only].
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
}

/// `everlog cluster status`
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Print JSON, one object a line: the nodes, then the partitions, then warnings.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: SettingsOption,
}

/// `everlog cluster drain`
#[derive(Args, Debug)]
pub struct DrainArgs {
    /// The node, by its `server.name`.
    node: String,
    /// Assign partitions to the node again.
    #[arg(long)]
    undo: bool,
    /// How long to wait until the node has none, in seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    within_s: u64,
    #[command(flatten)]
    place: SettingsOption,
}

/// `everlog cluster move`
#[derive(Args, Debug)]
pub struct MoveArgs {
    /// A partition of the group.
    partition: u32,
    /// The node, by its `server.name` [default: none, which removes the pin].
    node: Option<String>,
    /// How long to wait until the node serves the group, in seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    within_s: u64,
    #[command(flatten)]
    place: SettingsOption,
}

/// Runs it.
///
/// # Errors
/// The brokers do not answer, there is no such node or partition, or the log is not on Kafka.
pub fn run(command: &ClusterCommand) -> Result<ExitStatus> {
    let place = match command {
        ClusterCommand::Status(look) => &look.place,
        ClusterCommand::Drain(drain) => &drain.place,
        ClusterCommand::Move(wanted) => &wanted.place,
        ClusterCommand::Upgrade(wanted) => &wanted.place,
    };
    let config = Config::load(place.config.as_deref(), &everlog_config::environment())?;
    everlog_config::logs::start(&config.logs)?;
    if let (ClusterCommand::Upgrade(wanted), false) = (command, config.kafka.is_used()) {
        return upgrade::embedded(&config, wanted);
    }
    if !config.kafka.is_used() {
        bail!("nodes share a log on Kafka only: kafka.bootstrap_servers is empty");
    }
    let board =
        ControlClient::open(config.kafka.options("cluster")).map_err(|error| config.kafka.explain(error))?;
    let is_written = !matches!(command, ClusterCommand::Status(_));
    let warmed = if is_written { board.warm() } else { Ok(()) };
    let ended = warmed.map_err(Into::into).and_then(|()| obey(command, &config, &board));
    board.close();
    ended
}

fn obey(command: &ClusterCommand, config: &Config, board: &ControlClient) -> Result<ExitStatus> {
    match command {
        ClusterCommand::Upgrade(wanted) => upgrade::on_kafka(config, board, wanted),
        ClusterCommand::Status(look) => status(config, board, look.json),
        ClusterCommand::Drain(drain) => {
            if drain.undo {
                put(board, &Row::Drain(drain.node.clone(), None))?;
                return Ok(ExitStatus::Success);
            }
            is_known(board, &drain.node)?;
            put(board, &Row::Drain(drain.node.clone(), Some(true)))?;
            until(board, drain.within_s, |view| !view.owners.values().any(|owner| owner.node == drain.node))
        }
        ClusterCommand::Move(wanted) => {
            let last = board.partitions().saturating_sub(1);
            let partition = wanted.partition;
            ensure!(partition <= last, "there is no partition {partition}: they are 0 to {last}");
            let group = (partition / board.group_partitions()) as usize;
            let Some(node) = &wanted.node else {
                put(board, &Row::Pin(group, None))?;
                return Ok(ExitStatus::Success);
            };
            is_known(board, node)?;
            put(board, &Row::Pin(group, Some(node.clone())))?;
            until(board, wanted.within_s, |view| {
                view.owners.get(&group).is_some_and(|owner| owner.node == *node && owner.serves)
            })
        }
    }
}

fn put(board: &ControlClient, row: &Row) -> Result<()> {
    let (key, value) = row.write();
    Ok(board.put(&key, value.as_deref())?)
}

/// A wish for an unknown node would never be fulfilled.
fn is_known(board: &ControlClient, node: &str) -> Result<()> {
    let nodes = view(board)?.nodes;
    let known = || nodes.keys().cloned().collect::<Vec<_>>().join(", ");
    ensure!(nodes.contains_key(node), "there is no node \"{node}\"; there are: {}", known());
    Ok(())
}

/// Waits until the rows say so.
fn until(board: &ControlClient, within_s: u64, is_so: impl Fn(&ControlView) -> bool) -> Result<ExitStatus> {
    let deadline = Instant::now() + Duration::from_secs(within_s);
    while !is_so(&view(board)?) {
        if Instant::now() >= deadline {
            write_line(&format!("it is not so after {within_s} s; it was asked for, and may still come"))?;
            return Ok(ExitStatus::Unknown);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(ExitStatus::Success)
}

fn status(config: &Config, board: &ControlClient, as_json: bool) -> Result<ExitStatus> {
    let nodes = Nodes::look(board, peer_auth(config)?)?;
    let now_ms = everlog_log::clock::now_ms();
    let lines = if as_json { objects(&nodes, now_ms) } else { tables(&nodes, now_ms) };
    for line in lines {
        if !write_line(&line)? {
            break;
        }
    }
    let is_served = partitions(&nodes).all(|partition| nodes.partition_state(partition).is_served());
    Ok(if is_served { ExitStatus::Success } else { ExitStatus::Failure })
}

/// What `status --json` prints.
///
/// # Errors
/// The brokers do not answer, or a file of the settings cannot be read.
pub(crate) fn status_lines(config: &Config) -> Result<Vec<String>> {
    let board =
        ControlClient::open(config.kafka.options("cluster")).map_err(|error| config.kafka.explain(error))?;
    let nodes = peer_auth(config).and_then(|auth| Nodes::look(&board, auth));
    board.close();
    Ok(objects(&nodes?, everlog_log::clock::now_ms()))
}

fn partitions(nodes: &Nodes) -> impl Iterator<Item = u32> {
    0..u32::try_from(nodes.ends.len()).unwrap_or(u32::MAX)
}

/// How many groups a node has.
fn groups_of(nodes: &Nodes, name: &str) -> usize {
    nodes.view.owners.values().filter(|owner| owner.node == name).count()
}

fn tables(nodes: &Nodes, now_ms: i64) -> Vec<String> {
    let mut lines = table_of_nodes(nodes, now_ms);
    lines.push(String::new());
    lines.extend(table_of_partitions(nodes));
    let odd = oddities(nodes);
    lines.extend((!odd.is_empty()).then(String::new));
    lines.extend(odd);
    lines
}

fn table_of_nodes(nodes: &Nodes, now_ms: i64) -> Vec<String> {
    use Side::{Left, Right};
    let columns = [
        ("NODE", Left),
        ("NODES AT", Left),
        ("CLIENTS AT", Left),
        ("RELEASE", Left),
        ("LEVEL", Right),
        ("GROUPS", Right),
        ("STATE", Left),
    ];
    let row = |(name, row): (&String, &everlog_cluster::control_rows::NodeRow)| {
        let release = nodes.status(name).map_or("-", |status| status.version.as_str());
        let (address, calls) = (row.address.clone(), row.calls.clone());
        let groups = groups_of(nodes, name).to_string();
        [
            name.clone(),
            address,
            calls,
            release.into(),
            row.level.to_string(),
            groups,
            nodes.node_state(name).words(now_ms),
        ]
    };
    table::lines(columns, &nodes.view.nodes.iter().map(row).collect::<Vec<_>>())
}

fn table_of_partitions(nodes: &Nodes) -> Vec<String> {
    use Side::{Left, Right};
    let columns = [
        ("PARTITION", Left),
        ("GROUP", Left),
        ("NODE", Left),
        ("STATE", Left),
        ("LEVEL", Right),
        ("FENCE", Right),
        ("TERM", Right),
        ("APPLIED", Right),
        ("COMMITTED", Right),
        ("END", Right),
        ("LAG", Right),
        ("FOLLOWED BY", Left),
    ];
    let row = |partition| {
        let told = nodes.told(partition);
        let number = |number: Option<u64>| number.map_or_else(|| "-".into(), |number| number.to_string());
        let owner = nodes.owner(partition).map_or("-", |owner| owner.node.as_str());
        let to = nodes.placed(partition).filter(|placed| *placed != owner);
        let state = nodes.partition_state(partition).words();
        [
            partition.to_string(),
            nodes.group_of(partition).to_string(),
            owner.to_owned(),
            to.map_or_else(
                || state.clone(),
                |to| match nodes.brought_percent(to, partition) {
                    Some(percent) => format!("{state}, is to go to {to}, which has {percent} % of its rows"),
                    None => format!("{state}, is to go to {to}"),
                },
            ),
            number(told.and_then(|told| told.level).map(u64::from)),
            number(told.map(|told| told.fence)),
            number(told.map(|told| told.term)),
            number(told.map(|told| told.applied)),
            number(told.map(|told| told.committed)),
            number(nodes.ends.get(partition as usize).copied()),
            number(nodes.lag_records(partition)),
            nodes.follower(partition).unwrap_or("-").to_owned(),
        ]
    };
    table::lines(columns, &partitions(nodes).map(row).collect::<Vec<_>>())
}

/// The same for programs.
fn objects(nodes: &Nodes, now_ms: i64) -> Vec<String> {
    let node = |(name, row): (&String, &everlog_cluster::control_rows::NodeRow)| {
        let (state, status) = (nodes.node_state(name), nodes.status(name));
        let gone_since_ms = match state {
            NodeState::Gone(since_ms) => since_ms,
            _ => None,
        };
        json!({
            "node": name, "state": state.name(), "gone_since_ms": gone_since_ms, "now_ms": now_ms,
            "address": row.address, "calls": row.calls, "instance": row.instance,
            "release": status.map(|status| &status.version), "keys": status.map(|status| &status.keys),
            "level": row.level, "groups": groups_of(nodes, name), "rows_of_groups": row.rows, "misses": row.unreachable,
            "follows": status.map(|status| &status.follows),
        })
    };
    let partition = |partition| {
        let (state, told) = (nodes.partition_state(partition), nodes.told(partition));
        json!({
            "partition": partition, "group": nodes.group_of(partition), "state": state.name(),
            "node": nodes.owner(partition).map(|owner| &owner.node), "placed": nodes.placed(partition),
            "level": told.and_then(|told| told.level), "fence": told.map(|told| told.fence), "term": told.map(|told| told.term),
            "applied": told.map(|told| told.applied), "committed": told.map(|told| told.committed),
            "end": nodes.ends.get(partition as usize), "lag_records": nodes.lag_records(partition),
            "restored_percent": told.map(|told| told.restored_percent),
            "histories_percent": told.map(|told| told.histories_percent),
            "placed_percent": nodes.placed(partition).and_then(|to| nodes.brought_percent(to, partition)),
            "followed_by": nodes.follower(partition),
        })
    };
    let of_nodes = nodes.view.nodes.iter().map(node);
    let of_partitions = partitions(nodes).map(partition);
    let odd = oddities(nodes).into_iter().map(|warning| json!({ "warning": warning }));
    of_nodes.chain(of_partitions).chain(odd).map(|line| line.to_string()).collect()
}

/// Warnings about nodes: nothing that keeps a partition from being served.
fn oddities(nodes: &Nodes) -> Vec<String> {
    let mut odd = Vec::new();
    for name in nodes.view.nodes.keys() {
        match nodes.node_state(name) {
            NodeState::Gone(_) => odd.push(format!("{name} is gone; its row is forgotten in a while")),
            NodeState::Ended => odd.push(format!("{name}: its process is gone; others take over now")),
            NodeState::Silent => odd.push(format!(
                "{name} does not answer here, and the brokers hear of it: it sleeps, or its address is not reached"
            )),
            NodeState::Refuses => odd.push(format!("{name} and whoever has the settings here do not trust each other (cluster.secret_file, cluster.ca_file)")),
            NodeState::Another(other) => odd.push(format!("at the address of {name} answers {other}")),
            NodeState::Apart(others) => odd.push(format!(
                "{name} and {} do not reach each other, so {name} has nothing: look at the network between them",
                others.join(", ")
            )),
            NodeState::TooOld(raised) => odd.push(format!(
                "{name} has nothing: the log is at level {raised} of decisions, which its release does not know; install the \
                 release that it was raised with, or a newer one"
            )),
            NodeState::Serves | NodeState::Comes | NodeState::Drained | NodeState::Leaves => {}
        }
    }
    for name in nodes.namesakes() {
        odd.push(format!(
            "the brokers hear of {name} twice: one of them has just ended, or two go by one name"
        ));
    }
    odd
}

#[cfg(test)]
mod tests {
    use everlog_cluster::StatusReply;
    use everlog_cluster::control_rows::GoneRow;

    use super::*;
    use crate::nodes::tests::{tell, two};

    #[test]
    fn nodes_and_partitions_stand_in_tables() {
        let mut nodes = two();
        nodes.answers.insert("b".into(), StatusReply::Unreadable);
        nodes.members.pop();
        nodes.view.take(Row::Gone("b".into(), Some(GoneRow { since_ms: 1_000 })));
        tell(&mut nodes, "a", |status| {
            status.follows.insert(2);
        });
        let expected = "\
NODE  NODES AT  CLIENTS AT  RELEASE  LEVEL  GROUPS  STATE
a     a:1       a:2         1.0.0        0       1  serves
b     b:1       b:2         -            0       1  gone for 4 s

PARTITION  GROUP  NODE  STATE                  LEVEL  FENCE  TERM  APPLIED  COMMITTED  END  LAG  FOLLOWED BY
0          0      a     serves                     -      0     0       10          0   10    0  -
1          0      a     serves                     -      0     0       10          0   10    0  -
2          1      b     its node does not say      -      -     -        -          -   10    -  a
3          1      b     its node does not say      -      -     -        -          -   10    -  -

b is gone; its row is forgotten in a while";
        assert_eq!(tables(&nodes, 5_000).join("\n"), expected);
    }

    #[test]
    fn programs_get_a_line_for_each_node_and_partition() {
        let nodes = two();
        let lines: Vec<serde_json::Value> =
            objects(&nodes, 0).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 6);
        assert_eq!((&lines[0]["node"], &lines[0]["state"]), (&json!("a"), &json!("serves")));
        assert_eq!((&lines[5]["partition"], &lines[5]["lag_records"]), (&json!(3), &json!(0)));
    }
}
