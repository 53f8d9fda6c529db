//! Partitions are moved on request, or to a standby that has their rows already.

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, PARTITIONS, Size, TOOK_A_GROUP, tool};
use crate::rows::several;

/// What has every group followed by another node.
const FOLLOWED: &[(&str, &str)] = &[("EVERLOG_CLUSTER__REPLICAS", "1")];

/// F1 where the rows of each group are followed by another node.
pub async fn killed_with_standby(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::of_nodes_with(&cluster, "f1sx2", size, 2, FOLLOWED).await?;
    several::killed_in::<2>(environment, size).await
}

/// In turn a group is moved to another node, and a node is drained and has partitions again.
pub async fn moved<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::of_nodes(&cluster, &format!("movex{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let (mut outcome, partitions) = (Outcome::default(), PARTITIONS.parse::<u64>()?);
    for round in 0..several::rounds(size) {
        load.further(size.open as u64 / 2).await?;
        let before = environment.times_said(TOOK_A_GROUP);
        let partition = round * 3 % partitions;
        let owner = owner_of(&environment, partition).await?;
        let names: Vec<_> = environment.nodes().map(|node| node.name().to_owned()).collect();
        let other = names.iter().find(|name| **name != owner).context("another node")?;
        told(&environment, &["cluster", "move", &partition.to_string(), other]).await?;
        load.turn_over().await?;
        told(&environment, &["cluster", "drain", &owner]).await?;
        load.turn_over().await?;
        told(&environment, &["cluster", "drain", &owner, "--undo"]).await?;
        several::until_shared(&environment).await?;
        load.turn_over().await?;
        outcome.injected += 1;
        outcome.seen += u64::from(environment.times_said(TOOK_A_GROUP) > before);
    }
    outcome.how = format!("{} times", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// Says something by `everlog`, which returns when it is so.
async fn told(environment: &Environment, words: &[&str]) -> anyhow::Result<String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let variables = environment.variables.clone();
    let said = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (code, said) = tool(&words, &variables)?;
        ensure!(code == Some(0), "{words:?}: {code:?}: {said}");
        Ok(said)
    });
    said.await?
}

/// The node that serves a partition.
async fn owner_of(environment: &Environment, partition: u64) -> anyhow::Result<String> {
    let status = told(environment, &["cluster", "status", "--json"]).await?;
    let lines = status.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut own = lines.filter(|line| line["partition"].as_u64() == Some(partition));
    let owner = own.find_map(|line| Some(line["node"].as_str()?.to_owned()));
    owner.with_context(|| format!("nobody has partition {partition}: {status}"))
}
