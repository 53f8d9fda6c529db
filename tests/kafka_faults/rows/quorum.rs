//! Several nodes on three brokers. The brokers end in turn, among them the coordinators.

use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size, TOOK_A_GROUP};
use crate::net::Host;
use crate::rows::brokers::{GROUPS, TRANSACTIONS, coordinator_of, until_moved};
use crate::rows::several::{rejoin, rounds, until_taken};

const BROKERS: u32 = 3;

/// F8: each of three brokers in turn, well and killed.
pub async fn each_of_three<const NODES: usize>(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::of_three().await?;
    let environment =
        Environment::of_quorum(&cluster, &format!("f8x{NODES}"), size, &vec![Host::here(); NODES]).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size).max(u64::from(BROKERS)) as u32 {
        let broker = 1 + round % BROKERS;
        load.further(environment.size.open as u64 / 2).await?;
        environment.troubles.begin();
        if (round / BROKERS + broker).is_multiple_of(2) {
            cluster.kill(broker).await?;
        } else {
            cluster.end(broker).await?;
        }
        outcome.injected += 1;
        // Two of three go on.
        load.further(environment.size.open as u64 / 2).await?;
        outcome.seen += u64::from(!cluster.is_alive(broker)?);
        cluster.restart(broker).await?;
        environment.troubles.end();
    }
    outcome.how = format!("{} times every node went on with two of three brokers", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F10: the broker goes that coordinates the transactions of one group of partitions, then of the next.
pub async fn transactions<const NODES: usize>(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::of_three().await?;
    let environment =
        Environment::of_quorum(&cluster, &format!("f10x{NODES}"), size, &vec![Host::here(); NODES]).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size) {
        load.further(environment.size.open as u64 / 2).await?;
        let id = format!("{}group-{}", environment.prefix, round % 4);
        let before = coordinator_of(&environment.bootstrap, TRANSACTIONS, &id)?;
        environment.troubles.begin();
        cluster.kill(before).await?;
        outcome.injected += 1;
        load.further(environment.size.open as u64).await?;
        until_moved(&environment.bootstrap, TRANSACTIONS, &id, before).await?;
        outcome.seen += 1;
        cluster.restart(before).await?;
        environment.troubles.end();
    }
    outcome.how = format!("{} coordinators took over", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F16: the broker goes that coordinates the group of the nodes; then, while it is away, one of the nodes, which the
/// next coordinator must miss.
pub async fn members<const NODES: usize>(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::of_three().await?;
    let mut environment =
        Environment::of_quorum(&cluster, &format!("f16x{NODES}"), size, &vec![Host::here(); NODES]).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    let group = format!("{}nodes", environment.prefix);
    for round in 0..rounds(size) {
        load.further(environment.size.open as u64 / 2).await?;
        let before = coordinator_of(&environment.bootstrap, GROUPS, &group)?;
        environment.troubles.begin();
        cluster.kill(before).await?;
        outcome.injected += 1;
        load.further(environment.size.open as u64 / 2).await?;
        until_moved(&environment.bootstrap, GROUPS, &group, before).await?;
        let (takes, victim) = (environment.times_said(TOOK_A_GROUP), round as usize % NODES);
        environment.kill(victim)?;
        until_taken(&environment, takes).await?;
        outcome.seen += 1;
        load.further(environment.size.open as u64 / 2).await?;
        cluster.restart(before).await?;
        rejoin(environment.node_at(victim)).await?;
        environment.troubles.end();
    }
    outcome.how = format!("{} times the next coordinator missed a dead node", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}
