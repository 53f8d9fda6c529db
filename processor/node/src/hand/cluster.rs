//! `everlog cluster`: who has what, and who is to have it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use everlog_log::Log;
use everlog_log_kafka::Kafka;
use everlog_log_kafka::examine::examine;

use super::{Ended, write_line};
use crate::cluster::links::Links;
use crate::cluster::rows::{Row, View};
use crate::cluster::{PartitionStatus, Status};
use crate::config::Config;

/// How often a command looks whether what it asked for is so.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// `everlog cluster`
#[derive(Debug, Subcommand)]
pub enum Cluster {
    /// Print the nodes, and for each partition who has it, how far it is applied, and how far a restore has come.
    ///
    /// Ends with 3 where a partition is nobody's or a node does not answer.
    Status(Place),
    /// Give all partitions of a node to the others, and none to it from then on.
    Drain(Drain),
    /// Give the group of a partition to a node, and leave it there for as long as that node lives.
    Move(Move),
}

/// Where settings come from, and how long to wait.
#[derive(Args, Debug)]
pub struct Place {
    /// The file of settings; without one, the environment and the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
}

/// `everlog cluster drain`
#[derive(Args, Debug)]
pub struct Drain {
    /// The node, by its `server.name`.
    node: String,
    /// Let it have partitions again.
    #[arg(long)]
    undo: bool,
    /// How long to wait until it has none, in seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    within_s: u64,
    #[command(flatten)]
    place: Place,
}

/// `everlog cluster move`
#[derive(Args, Debug)]
pub struct Move {
    /// One of the group's partitions.
    partition: u32,
    /// The node, by its `server.name`; without one the group goes where there is least.
    node: Option<String>,
    /// How long to wait until it is there, in seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    within_s: u64,
    #[command(flatten)]
    place: Place,
}

/// Runs it.
///
/// # Errors
/// Nobody could look, or the log is not on Kafka.
pub fn run(command: &Cluster) -> Result<Ended> {
    let (Cluster::Status(place) | Cluster::Drain(Drain { place, .. }) | Cluster::Move(Move { place, .. })) =
        command;
    let config = Config::load(place.config.as_deref(), &crate::environment())?;
    crate::logs::start(&config.logs)?;
    if !config.kafka.is_used() {
        bail!("nodes share a log on Kafka only: kafka.bootstrap_servers is empty");
    }
    let log = Kafka::open(config.kafka.options("cluster")).map_err(|error| config.kafka.explain(error))?;
    match command {
        Cluster::Status(_) => status(&config, &log),
        Cluster::Drain(drain) => {
            put(&log, &Row::Drain(drain.node.clone(), (!drain.undo).then_some(true)))?;
            let has_none = |view: &View| !view.owners.values().any(|owner| owner.node == drain.node);
            if drain.undo {
                return Ok(Ended::Well);
            }
            until(&log, drain.within_s, has_none)
        }
        Cluster::Move(wanted) => {
            if wanted.partition >= log.partitions() {
                bail!("there is no partition {}: they are 0 to {}", wanted.partition, log.partitions() - 1);
            }
            let group = (wanted.partition / log.group_partitions()) as usize;
            put(&log, &Row::Pin(group, wanted.node.clone()))?;
            let Some(node) = &wanted.node else { return Ok(Ended::Well) };
            until(&log, wanted.within_s, |view| {
                view.owners.get(&group).is_some_and(|owner| owner.node == *node && owner.serves)
            })
        }
    }
}

fn put(log: &Kafka, row: &Row) -> Result<()> {
    let (key, value) = row.write();
    Ok(log.control_put(&key, value.as_deref())?)
}

fn view(log: &Kafka) -> Result<View> {
    let mut view = View::default();
    log.control_scan(&mut |key, value| {
        if let Some(row) = Row::read(key, Some(value)) {
            view.take(row);
        }
    })?;
    Ok(view)
}

/// Waits until the rows say so.
fn until(log: &Kafka, within_s: u64, is_so: impl Fn(&View) -> bool) -> Result<Ended> {
    let deadline = Instant::now() + Duration::from_secs(within_s);
    while !is_so(&view(log)?) {
        if Instant::now() >= deadline {
            write_line(&format!("it is not so after {within_s} s; it was asked for, and may still come"))?;
            return Ok(Ended::Unknown);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(Ended::Well)
}

fn status(config: &Config, log: &Kafka) -> Result<Ended> {
    let view = view(log)?;
    let examined = examine(&config.kafka.options("cluster")).map_err(|error| config.kafka.explain(error))?;
    let secret = config.cluster.secret()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told: BTreeMap<&str, Option<Status>> = runtime.block_on(async {
        let links = Links::new(secret);
        let mut told = BTreeMap::new();
        for (name, row) in &view.nodes {
            told.insert(
                name.as_str(),
                links.status(&row.address).await.filter(|status| status.name == *name),
            );
        }
        told
    });
    let mut is_well = true;
    write_line("NODE                 NODES AT               CLIENTS AT             STATE")?;
    for (name, row) in &view.nodes {
        let state = match (&told[name.as_str()], view.drains.contains(name), row.leaves) {
            (None, ..) => "does not answer",
            (Some(_), true, _) => "drained",
            (Some(_), false, true) => "leaves",
            (Some(_), false, false) => "serves",
        };
        is_well &= told[name.as_str()].is_some();
        write_line(&format!("{name:<20} {:<22} {:<22} {state}", row.address, row.calls))?;
    }
    write_line("")?;
    write_line(
        "PARTITION  GROUP  NODE                 STATE                      APPLIED  COMMITTED        END",
    )?;
    for journal in &examined.journals {
        let group = (journal.partition / log.group_partitions()) as usize;
        let owner = view.owners.get(&group);
        let node = owner.map_or("-", |owner| owner.node.as_str());
        let found = told.get(node).and_then(Option::as_ref);
        let found =
            found.and_then(|status| status.partitions.iter().find(|p| p.partition == journal.partition));
        let state = match (owner, found) {
            (None, _) => "nobody has it".to_owned(),
            (Some(_), Some(found)) => state_of(found),
            (Some(owner), None) if owner.serves => "its node does not say".to_owned(),
            (Some(_), None) => "is being taken over".to_owned(),
        };
        is_well &= found.is_some_and(|found| found.serves);
        let applied = found.map_or_else(|| "-".into(), |found| found.applied.to_string());
        let committed = journal.position.map_or_else(|| "-".into(), |position| position.next.to_string());
        write_line(&format!(
            "{:<10} {group:<6} {node:<20} {state:<24} {applied:>9}  {committed:>9}  {:>9}",
            journal.partition, journal.bounds.end
        ))?;
    }
    Ok(if is_well { Ended::Well } else { Ended::Badly })
}

fn state_of(found: &PartitionStatus) -> String {
    match (found.serves, found.restored_percent, found.histories_percent) {
        (true, _, 100) => "serves".into(),
        (true, _, percent) => format!("serves, histories {percent} %"),
        (false, percent, _) => format!("restores, {percent} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_told_with_what_it_still_lacks() {
        let whole = PartitionStatus {
            partition: 0,
            serves: true,
            applied: 7,
            restored_percent: 100,
            histories_percent: 100,
        };
        assert_eq!(state_of(&whole), "serves");
        assert_eq!(
            state_of(&PartitionStatus { histories_percent: 40, ..whole.clone() }),
            "serves, histories 40 %"
        );
        assert_eq!(
            state_of(&PartitionStatus { serves: false, restored_percent: 3, ..whole }),
            "restores, 3 %"
        );
    }
}
