//! Several nodes on three brokers: brokers go one after the other, and so do those that coordinate.

use crate::net::Home;
use crate::rows::brokers::{GROUPS, TRANSACTIONS, coordinator_of, until_moved};
use crate::rows::several::{rejoin, rounds, until_taken};
use crate::scene::{Outcome, Scene, Size, TOOK_A_GROUP};
use crate::site::Site;

const BROKERS: u32 = 3;

/// F8: each of three brokers in turn, well and killed.
pub async fn each_of_three<const NODES: usize>(_site: Site, size: Size) -> anyhow::Result<Outcome> {
    let site = Site::of_three().await?;
    let scene = Scene::of_quorum(&site, &format!("f8x{NODES}"), size, &vec![Home::here(); NODES]).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size).max(u64::from(BROKERS)) as u32 {
        let broker = 1 + round % BROKERS;
        load.further(scene.size.open as u64 / 2).await?;
        scene.troubles.begin();
        if (round / BROKERS + broker).is_multiple_of(2) {
            site.kill(broker).await?;
        } else {
            site.end(broker).await?;
        }
        outcome.injected += 1;
        // Two of three go on.
        load.further(scene.size.open as u64 / 2).await?;
        outcome.seen += u64::from(!site.is_alive(broker)?);
        site.restart(broker).await?;
        scene.troubles.end();
    }
    outcome.how = format!("{} times every node went on with two of three brokers", outcome.seen);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F10: the broker goes that coordinates the transactions of one group of partitions, then of the next.
pub async fn transactions<const NODES: usize>(_site: Site, size: Size) -> anyhow::Result<Outcome> {
    let site = Site::of_three().await?;
    let scene = Scene::of_quorum(&site, &format!("f10x{NODES}"), size, &vec![Home::here(); NODES]).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size) {
        load.further(scene.size.open as u64 / 2).await?;
        let id = format!("{}group-{}", scene.prefix, round % 4);
        let before = coordinator_of(&scene.bootstrap, TRANSACTIONS, &id)?;
        scene.troubles.begin();
        site.kill(before).await?;
        outcome.injected += 1;
        load.further(scene.size.open as u64).await?;
        until_moved(&scene.bootstrap, TRANSACTIONS, &id, before).await?;
        outcome.seen += 1;
        site.restart(before).await?;
        scene.troubles.end();
    }
    outcome.how = format!("{} coordinators took over", outcome.seen);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F16: the broker goes that coordinates the group of the nodes; then, while it is away, one of the nodes, which the
/// next coordinator must miss.
pub async fn members<const NODES: usize>(_site: Site, size: Size) -> anyhow::Result<Outcome> {
    let site = Site::of_three().await?;
    let mut scene =
        Scene::of_quorum(&site, &format!("f16x{NODES}"), size, &vec![Home::here(); NODES]).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    let group = format!("{}nodes", scene.prefix);
    for round in 0..rounds(size) {
        load.further(scene.size.open as u64 / 2).await?;
        let before = coordinator_of(&scene.bootstrap, GROUPS, &group)?;
        scene.troubles.begin();
        site.kill(before).await?;
        outcome.injected += 1;
        load.further(scene.size.open as u64 / 2).await?;
        until_moved(&scene.bootstrap, GROUPS, &group, before).await?;
        let (takes, victim) = (scene.times_said(TOOK_A_GROUP), round as usize % NODES);
        scene.kill(victim)?;
        until_taken(&scene, takes).await?;
        outcome.seen += 1;
        load.further(scene.size.open as u64 / 2).await?;
        site.restart(before).await?;
        rejoin(scene.node_at(victim)).await?;
        scene.troubles.end();
    }
    outcome.how = format!("{} times the next coordinator missed a dead node", outcome.seen);
    Ok(scene.finish(load, outcome).await?.0)
}
