//! What happens to nodes that share the partitions: calls go to each of them in turn, whoever owns what they are for.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::ensure;
use everlog_tests::dice::Dice;
use serde_json::Value;

use crate::deliveries::now_ms;
use crate::node::Node;
use crate::program::Errands;
use crate::rows::asleep::Asleep;
use crate::scene::{Outcome, Scene, Size, TOOK_A_GROUP, tool};
use crate::site::Site;

const FURTHER_WITHIN: Duration = Duration::from_secs(120);
/// How long others may take to have what a dead node had: its session, and a margin for a busy machine.
pub const TAKEN_WITHIN: Duration = Duration::from_secs(60);
const SHARES_EVERY: Duration = Duration::from_millis(250);
/// How long a node that is awake takes at most to say that it serves.
const ANSWERS_AT_ONCE: Duration = Duration::from_millis(300);
/// How long brokers wait for a word of a node, in ms.
const SESSION_MS: u64 = 6_000;
/// A node that flaps comes or goes so often, in all.
const FLAP_EVERY: Duration = Duration::from_secs(2);
const FLAP_FOR: Duration = Duration::from_secs(60);
/// It would get partitions in that time, and take them with it.
const LONGER_LIFE: Duration = Duration::from_secs(10);
const LONGER_LIVES: usize = 3;
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Each fault is injected so often in the full form.
const TIMES: u64 = 20;

/// How often something is done; once in the short form.
pub fn rounds(size: Size) -> u64 {
    if size.is_full { TIMES } else { 1 }
}

/// Waits until some node has taken a group over that had not before.
pub async fn until_taken(scene: &Scene, before: u64) -> anyhow::Result<()> {
    let deadline = Instant::now() + TAKEN_WITHIN;
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    while scene.times_said(TOOK_A_GROUP) <= before {
        looks.tick().await;
        let words: Vec<_> = scene.nodes().map(Node::last_words).collect();
        ensure!(Instant::now() < deadline, "nobody takes over: {words:?}");
    }
    Ok(())
}

/// Waits until each node serves some of the partitions, and somebody each of them.
pub async fn until_shared(scene: &Scene) -> anyhow::Result<()> {
    let deadline = Instant::now() + TAKEN_WITHIN;
    let nodes = scene.nodes().count();
    let mut looks = tokio::time::interval(SHARES_EVERY);
    loop {
        looks.tick().await;
        let variables = scene.variables.clone();
        let asked = move || tool(&["cluster", "status", "--json"], &variables);
        let (code, told) = tokio::task::spawn_blocking(asked).await??;
        if code == Some(0) && owners(&told).len() == nodes {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "not each node has a part: {code:?}: {told}");
    }
}

/// Those that serve a partition, as `everlog cluster status --json` tells it.
fn owners(told: &str) -> BTreeSet<String> {
    let lines = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let partitions = lines.filter(|line| !line["partition"].is_null());
    partitions.filter_map(|line| Some(line["node"].as_str()?.to_owned())).collect()
}

/// Starts a node again that has ended, and waits until it has a part again.
pub async fn rejoin(node: &mut Node) -> anyhow::Result<()> {
    let takes = node.times_said(TOOK_A_GROUP);
    node.start_again()?;
    node.ready().await?;
    node.until_said(TOOK_A_GROUP, takes + 1, TAKEN_WITHIN).await
}

/// F1: SIGKILL of one of them; the other takes over while it is down, and it joins again.
pub async fn killed<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::of_nodes(&site, &format!("f1x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut dice = Dice::new(size.seed);
    let (mut outcome, mut taken) = (Outcome::default(), 0);
    for round in 0..rounds(size) {
        load.further(dice.below(size.open as u64) + 1, FURTHER_WITHIN).await?;
        let before = scene.times_said(TOOK_A_GROUP);
        let victim = dice.below(NODES as u64) as usize;
        scene.kill(victim)?;
        outcome.injected += 1;
        outcome.seen += u64::from(!scene.node_at(victim).is_alive()?);
        if round % 2 == 0 {
            // It comes back before anybody has noticed, or after.
            until_taken(&scene, before).await?;
            taken += 1;
        }
        load.further(1, FURTHER_WITHIN).await?;
        for number in 0..NODES {
            let node = scene.node_at(number);
            if !node.is_alive()? {
                rejoin(node).await?;
            }
        }
    }
    outcome.how = format!("{taken} of {} times another node had the partitions meanwhile", outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F2: SIGSTOP of one of them for half of its session, one and a half, and three; it must not end.
pub async fn paused<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::of_nodes(&site, &format!("f2x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let (mut outcome, mut noticed, mut answered) = (Outcome::default(), 0, 0);
    for round in 0..rounds(size) {
        load.further(size.open as u64 / 2, FURTHER_WITHIN).await?;
        let before = scene.times_said(TOOK_A_GROUP);
        let sleeper = round as usize % NODES;
        let mut asleep = Asleep::begin(&scene, round).await?;
        let place = scene.node_at(sleeper).place()?;
        let began_ms = now_ms();
        scene.node_at(sleeper).pause()?;
        scene.troubles.since(began_ms);
        outcome.injected += 1;
        // Whoever calls a node that sleeps waits; who is taken over is served by the other.
        scene.turn_from(sleeper)?;
        outcome.seen += u64::from(sleeps(scene.node_at(sleeper)).await);
        let sessions_halved = [3, 1, 6][(round % 3) as usize];
        // The time is the fault.
        tokio::time::timeout(
            Duration::from_millis(SESSION_MS / 2 * sessions_halved),
            std::future::pending::<()>(),
        )
        .await
        .ok();
        if sessions_halved > 1 {
            until_taken(&scene, before).await?;
            noticed += 1;
            load.further(size.open as u64 / 2, FURTHER_WITHIN).await?;
            asleep.ask(&scene, &place).await?;
        }
        let began_ms = now_ms();
        scene.node_at(sleeper).resume()?;
        scene.troubles.since(began_ms);
        answered += asleep.end(&scene).await?;
        scene.turn_to_all()?;
        load.further(size.open as u64, FURTHER_WITHIN).await?;
        for number in 0..NODES {
            let node = scene.node_at(number);
            ensure!(node.is_alive()?, "a node that slept has ended: {}", node.last_words());
        }
    }
    outcome.how = format!(
        "{noticed} of {} sleeps were noticed; who woke answered {answered} who had asked meanwhile",
        outcome.injected
    );
    Ok(scene.finish(load, outcome).await?.0)
}

/// Whether a node is stopped, and answers nobody.
async fn sleeps(node: &Node) -> bool {
    let answers = tokio::time::timeout(ANSWERS_AT_ONCE, everlog_tests::raw::is_serving(node.address)).await;
    node.is_stopped() && answers.is_err()
}

/// F4: SIGKILL of all.
pub async fn all_killed<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::of_nodes(&site, &format!("f4x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for _ in 0..rounds(size) {
        load.further(size.open as u64 / 2, FURTHER_WITHIN).await?;
        let before = scene.client.ledger.acked();
        scene.troubles.begin();
        for number in 0..NODES {
            scene.node_at(number).kill()?;
        }
        outcome.injected += 1;
        for number in 0..NODES {
            scene.node_at(number).start_again()?;
        }
        for number in 0..NODES {
            scene.node_at(number).ready().await?;
        }
        scene.troubles.end();
        load.further(1, FURTHER_WITHIN).await?;
        scene.until_acked(before).await?;
        outcome.seen += 1;
    }
    outcome.how = format!("{} times all of them", outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}

/// What a node says that ends, and whose groups nobody has taken in time.
const WAITED_IN_VAIN: &str = "nobody has taken all partitions";

/// F5: SIGTERM, one after the other; SDK clients, each at one of them, see no call fail.
pub async fn rolled<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let size = Size { errands: Errands { is_ordinary: true, ..size.errands }, ..size };
    let mut scene = Scene::of_nodes(&site, &format!("f5x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..(rounds(size) * 2).max(NODES as u64) {
        load.further(size.open as u64 / 2, FURTHER_WITHIN).await?;
        let before = scene.times_said(TOOK_A_GROUP);
        let had_some = {
            let node = scene.node_at(round as usize % NODES);
            let status = node.stop().await?;
            ensure!(status.success(), "it ended with {status}: {}", node.last_words());
            // What others have is not waited for, however they came to it.
            ensure!(node.times_said(WAITED_IN_VAIN) == 0, "it waited in vain: {}", node.last_words());
            node.times_said("gave a group of partitions up") > 0
        };
        outcome.injected += 1;
        // Whoever ends gives what it has to the other.
        if had_some {
            until_taken(&scene, before).await?;
            outcome.seen += 1;
        }
        load.further(1, FURTHER_WITHIN).await?;
        rejoin(scene.node_at(round as usize % NODES)).await?;
    }
    outcome.how = format!("{} of {} nodes gave what they had to the other", outcome.seen, outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F7: the broker ends, well or killed, and comes back.
pub async fn broker_ended<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let scene = Scene::of_nodes(&site, &format!("f7x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size).max(2) {
        load.further(size.open as u64 / 2, FURTHER_WITHIN).await?;
        scene.troubles.begin();
        match round % 2 {
            0 => site.end(1).await?,
            _ => site.kill(1).await?,
        }
        outcome.injected += 1;
        outcome.seen += u64::from(!site.is_alive(1)?);
        site.restart(1).await?;
        scene.troubles.end();
        load.further(1, FURTHER_WITHIN).await?;
    }
    outcome.how = format!("{} times", outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F15: a third node comes and goes every two seconds, for a minute, and then lives a little longer each time: it takes nothing along.
pub async fn flapping<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let scene = Scene::of_nodes(&site, &format!("f15x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    let mut third = Node::start("third", scene.dir.path(), &scene.variables)?;
    let (began, mut flaps) = (Instant::now(), tokio::time::interval(FLAP_EVERY));
    let mut progress = (Instant::now(), load.ended());
    while began.elapsed() < FLAP_FOR {
        flaps.tick().await;
        let was_alive = third.is_alive()?;
        if was_alive {
            let began_ms = now_ms();
            third.kill()?;
            scene.troubles.since(began_ms);
        } else {
            third.start_again()?;
        }
        outcome.injected += 1;
        outcome.seen += u64::from(third.is_alive()? != was_alive);
        if progress.0.elapsed() >= PROGRESS_EVERY {
            if load.ended() <= progress.1 {
                outcome.violations.push(format!("nothing went on for {PROGRESS_EVERY:?}"));
            }
            progress = (Instant::now(), load.ended());
        }
    }
    third.kill()?;
    let took = third.times_said(TOOK_A_GROUP);
    for _ in 0..LONGER_LIVES {
        third.start_again()?;
        load.further(1, FURTHER_WITHIN).await?;
        // The time is the fault.
        let ended = third.ended(LONGER_LIFE).await?;
        ensure!(ended.is_none(), "it ended: {}", third.last_words());
        let began_ms = now_ms();
        third.kill()?;
        scene.troubles.since(began_ms);
        outcome.injected += 2;
        outcome.seen += 2 * u64::from(!third.is_alive()?);
    }
    let took = third.times_said(TOOK_A_GROUP) - took;
    if took > 0 {
        outcome.violations.push(format!("it took {took} groups along"));
    }
    load.further(1, FURTHER_WITHIN).await?;
    outcome.how = format!("it came or went {} times", outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F17: the rows of a node that was killed are removed before it comes back.
pub async fn rows_gone<const NODES: usize>(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::of_nodes(&site, &format!("f17x{NODES}"), size, NODES).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size) {
        load.further(size.open as u64 / 2, FURTHER_WITHIN).await?;
        scene.kill(round as usize % NODES)?;
        let node = scene.node_at(round as usize % NODES);
        let had_rows = node.rows().exists();
        if had_rows {
            std::fs::remove_dir_all(node.rows())?;
        }
        outcome.injected += 1;
        // It has rows again when it has a part.
        rejoin(node).await?;
        outcome.seen += u64::from(had_rows && node.rows().exists());
        load.further(1, FURTHER_WITHIN).await?;
    }
    outcome.how = format!("{} times", outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}
