//! `everlog cluster upgrade`: shows the levels of decisions, and raises the level of a log.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use everlog_cluster::control_rows::{ControlView, Row};
use everlog_config::Config;
use everlog_config::data_dir::{DataDir, LogLocation};
use everlog_engine::level;
use everlog_log::Log;
use everlog_log_kafka::control::client::ControlClient;
use everlog_partition::level_record;
use everlog_rocks::log::Embedded;

use crate::cluster::{LOOK_EVERY, SettingsOption, partitions, put};
use crate::nodes::{Nodes, peer_auth};
use crate::{ExitStatus, write_line};

/// `everlog cluster upgrade`
#[derive(Args, Debug)]
pub struct UpgradeArgs {
    /// The level.
    #[arg(long, value_name = "N")]
    to_level: Option<u32>,
    /// How long to wait until all partitions have the level, in seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    within_s: u64,
    /// The data directory of an embedded log [default: that of the settings].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) place: SettingsOption,
}

/// Raises the level of a log on Kafka.
pub(super) fn on_kafka(config: &Config, board: &ControlClient, wanted: &UpgradeArgs) -> Result<ExitStatus> {
    let look = || Nodes::look(board, peer_auth(config)?);
    let nodes = look()?;
    let Some(to_level) = wanted.to_level else {
        for line in levels(&nodes) {
            write_line(&line)?;
        }
        return Ok(ExitStatus::Success);
    };
    is_known_here(to_level)?;
    let lacking = lacking(&nodes.view, to_level);
    if !lacking.is_empty() {
        write_line(&refusal(&lacking, to_level))?;
        return Ok(ExitStatus::Failure);
    }
    put(board, &Row::Level(to_level))?;
    let deadline = Instant::now() + Duration::from_secs(wanted.within_s);
    loop {
        let nodes = look()?;
        let lower =
            partitions(&nodes).filter(|partition| level_of(&nodes, *partition) < Some(to_level)).count();
        if lower == 0 {
            write_line(&format!("all partitions are at level {to_level}"))?;
            return Ok(ExitStatus::Success);
        }
        if Instant::now() >= deadline {
            let rest = "each takes the level when a node serves it";
            write_line(&format!("{lower} partitions are below level {to_level} or not served; {rest}"))?;
            return Ok(ExitStatus::Unknown);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn level_of(nodes: &Nodes, partition: u32) -> Option<u32> {
    nodes.told(partition).filter(|told| told.serves)?.level
}

/// Nodes that do not know a level, each with what it knows.
fn lacking(view: &ControlView, level: u32) -> Vec<(String, u32)> {
    let known = view.nodes.iter().map(|(name, row)| (name.clone(), row.level));
    known.filter(|(_, known)| *known < level).collect()
}

fn refusal(lacking: &[(String, u32)], level: u32) -> String {
    let told: Vec<_> = lacking.iter().map(|(name, known)| format!("{name} knows {known}")).collect();
    let way_out = "upgrade them, or wait until those that are gone are forgotten (cluster.forget_after_ms)";
    format!("not raised to level {level}: {}; {way_out}", told.join(", "))
}

fn is_known_here(level: u32) -> Result<()> {
    let latest = level::LATEST;
    ensure!(
        level <= latest,
        "this release knows levels up to {latest}: use the release that has level {level}"
    );
    Ok(())
}

/// The levels of partitions and nodes, and what can be done.
fn levels(nodes: &Nodes) -> Vec<String> {
    let told: Vec<_> = partitions(nodes).filter_map(|partition| level_of(nodes, partition)).collect();
    let in_force = match (told.iter().min(), told.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("level {least} is in force"),
        (Some(least), Some(most)) => format!("levels {least} to {most} are in force"),
        _nobody_serves => "no node tells its level".into(),
    };
    let mut lines = vec![format!("{in_force}, of {} of {} partitions", told.len(), nodes.ends.len())];
    lines.extend(nodes.view.nodes.iter().map(|(name, row)| {
        let release = if row.release.is_empty() { "of an earlier release" } else { &row.release };
        format!("{name} ({release}) knows level {}", row.level)
    }));
    let known = nodes.view.level();
    if told.iter().any(|level| *level < known) {
        lines.push(format!(
            "all nodes know level {known}: `everlog cluster upgrade --to-level {known}` raises it"
        ));
    }
    lines
}

/// Raises the level of an embedded log that no node has open.
pub(super) fn embedded(config: &Config, wanted: &UpgradeArgs) -> Result<ExitStatus> {
    let data = DataDir::lasting(wanted.data_dir.as_deref().unwrap_or(&config.server.data_dir));
    let path = data.path().display().to_string();
    ensure!(data.log_location() == Some(LogLocation::Embedded), "there is no embedded log in {path}");
    let latest = level::LATEST;
    let to_level =
        wanted.to_level.with_context(|| format!("say --to-level: this release knows up to {latest}"))?;
    is_known_here(to_level)?;
    let log = Embedded::open(data.options(config)).map_err(|error| data.explain(error))?;
    for partition in 0..log.partitions() {
        let (sender, appended) = mpsc::channel();
        let done = Box::new(move |result| drop(sender.send(result)));
        log.append(partition, vec![level_record(to_level)], done);
        appended.recv().context("the log has ended")?.map_err(|error| data.explain(error))?;
    }
    write_line(&format!("all partitions of {path} are at level {to_level} from the next start on"))?;
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use everlog_cluster::control_rows::NodeRow;

    use super::*;
    use crate::nodes::tests::{tell, two};

    fn with_levels(known: [u32; 2], in_force: u32) -> Nodes {
        let mut nodes = two();
        for (name, level) in ["a", "b"].into_iter().zip(known) {
            let row = NodeRow { level, release: "1.0.0".into(), ..NodeRow::default() };
            nodes.view.take(Row::Node(name.into(), Some(row)));
            tell(&mut nodes, name, |status| {
                status.partitions.iter_mut().for_each(|partition| partition.level = Some(in_force));
            });
        }
        nodes
    }

    #[test]
    fn a_level_is_raised_when_all_nodes_know_it() {
        let nodes = with_levels([6, 5], 5);
        assert_eq!(lacking(&nodes.view, 5), []);
        let lacking = lacking(&nodes.view, 6);
        assert_eq!(lacking, [("b".to_owned(), 5)]);
        let refused = refusal(&lacking, 6);
        assert!(
            refused.starts_with("not raised to level 6: b knows 5; upgrade them, or wait until"),
            "{refused}"
        );
    }

    #[test]
    fn levels_are_shown_with_what_can_be_done() {
        let lines = [
            "level 5 is in force, of 4 of 4 partitions",
            "a (1.0.0) knows level 6",
            "b (1.0.0) knows level 6",
            "all nodes know level 6: `everlog cluster upgrade --to-level 6` raises it",
        ];
        assert_eq!(levels(&with_levels([6, 6], 5)), lines);
        assert_eq!(levels(&with_levels([6, 5], 5)).len(), 3, "nothing can be raised");
        assert_eq!(levels(&with_levels([6, 6], 6)).len(), 3, "nothing is to be raised");
    }

    #[test]
    fn a_level_that_this_release_does_not_know_is_refused() {
        let error = is_known_here(level::LATEST + 1).unwrap_err().to_string();
        assert!(error.starts_with("this release knows levels up to"), "{error}");
    }
}
