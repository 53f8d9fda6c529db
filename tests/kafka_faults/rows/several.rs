//! Faults of nodes that share the partitions. Each call goes to the next node, whoever owns its partition.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use everlog_tests::dice::Dice;
use everlog_tests::patience;
use serde_json::Value;

use crate::checker::deliveries::now_ms;
use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, SERVES, Size, TOOK_A_GROUP, tool};
use crate::node::Node;
use crate::program::Errands;
use crate::rows::asleep::Asleep;

/// Each look is a process.
const SHARES_EVERY: Duration = Duration::from_millis(250);
/// How long brokers wait for a word of a node, in ms.
const SESSION_MS: u64 = 6_000;
/// A node that flaps is there or away for so long. It comes so often at least, until something has gone on, and all of it again.
const FLAP_EVERY: Duration = Duration::from_secs(2);
const FLAPS: u64 = 3;
const STRETCHES: u64 = 5;
/// It would get partitions in that time, and take them with it, had it not come and gone: now it has to live for longer.
const LONGER_LIFE: Duration = Duration::from_secs(10);
const SETTLED_AFTER: Duration = Duration::from_secs(30);
const LONGER_LIVES: usize = 3;

/// Each fault is injected so often in the full form.
const TIMES: u64 = 20;

/// How often something is done; once in the short form.
pub fn rounds(size: Size) -> u64 {
    if size.is_full { TIMES } else { 1 }
}

/// Waits until some node has taken a group over that had not before.
pub async fn until_taken(environment: &Environment, before: u64) -> anyhow::Result<()> {
    let taken = patience::until("a take-over", async || environment.times_said(TOOK_A_GROUP) > before).await;
    let words = || environment.nodes().map(Node::last_words).collect::<Vec<_>>();
    taken.with_context(|| format!("nobody takes over: {:?}", words()))
}

/// Waits until each node serves some of the partitions, and somebody each of them.
pub async fn until_shared(environment: &Environment) -> anyhow::Result<()> {
    let nodes = environment.nodes().count();
    let (deadline, mut looks) = (patience::deadline(), tokio::time::interval(SHARES_EVERY));
    loop {
        looks.tick().await;
        let variables = environment.variables.clone();
        let asked = move || tool(&["cluster", "status", "--json"], &variables);
        let (code, told) = tokio::task::spawn_blocking(asked).await??;
        if code == Some(0) && owners(&told).len() == nodes {
            return Ok(());
        }
        ensure!(!deadline.is_over(), "not each node has a part: {code:?}: {told}");
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
    node.until_said(TOOK_A_GROUP, takes + 1).await
}

/// F1: SIGKILL of one of them; the other takes over while it is down, and it joins again.
pub async fn killed<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::of_nodes(&cluster, &format!("f1x{NODES}"), size, NODES).await?;
    killed_in::<NODES>(environment, size).await
}

/// The same with so many nodes.
pub async fn killed_in<const NODES: usize>(environment: Environment, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = environment;
    let (mut load, _) = environment.load_with_records()?;
    let mut dice = Dice::new(size.seed);
    let (mut outcome, mut taken) = (Outcome::default(), 0);
    for round in 0..rounds(size) {
        load.further(dice.below(size.open as u64) + 1).await?;
        let before = environment.times_said(TOOK_A_GROUP);
        let victim = dice.below(NODES as u64) as usize;
        environment.kill(victim)?;
        outcome.injected += 1;
        outcome.seen += u64::from(!environment.node_at(victim).is_alive()?);
        if round % 2 == 0 {
            // It comes back before anybody has noticed, or after.
            until_taken(&environment, before).await?;
            taken += 1;
        }
        load.further(1).await?;
        for number in 0..NODES {
            let node = environment.node_at(number);
            if !node.is_alive()? {
                rejoin(node).await?;
            }
        }
        load.turn_over().await?;
    }
    outcome.how = format!("{taken} of {} times another node had the partitions meanwhile", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F2: SIGSTOP of one of them for half of its session, one and a half, and three; it must not end.
pub async fn paused<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::of_nodes(&cluster, &format!("f2x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let (mut outcome, mut noticed, mut answered) = (Outcome::default(), 0, 0);
    for round in 0..rounds(size) {
        load.further(size.open as u64 / 2).await?;
        let before = environment.times_said(TOOK_A_GROUP);
        let sleeper = round as usize % NODES;
        let mut asleep = Asleep::begin(&environment, round).await?;
        let place = environment.node_at(sleeper).place()?;
        let began_ms = now_ms();
        environment.node_at(sleeper).pause()?;
        environment.troubles.since(began_ms);
        outcome.injected += 1;
        // Whoever calls a node that sleeps waits; who is taken over is served by the other.
        environment.turn_from(sleeper)?;
        // Whoever is stopped answers nobody.
        let node = environment.node_at(sleeper);
        patience::until("the node is stopped", async || node.is_stopped()).await?;
        outcome.seen += 1;
        let sessions_halved = [3, 1, 6][(round % 3) as usize];
        // The time is the fault.
        patience::pass(Duration::from_millis(SESSION_MS / 2 * sessions_halved)).await;
        if sessions_halved > 1 {
            until_taken(&environment, before).await?;
            noticed += 1;
            load.further(size.open as u64 / 2).await?;
            asleep.ask(&environment, &place).await?;
        }
        let began_ms = now_ms();
        environment.node_at(sleeper).resume()?;
        environment.troubles.since(began_ms);
        answered += asleep.end(&environment).await?;
        environment.turn_to_all()?;
        load.further(size.open as u64).await?;
        for number in 0..NODES {
            let node = environment.node_at(number);
            ensure!(node.is_alive()?, "a node that slept has ended: {}", node.last_words());
        }
        load.turn_over().await?;
    }
    outcome.how = format!(
        "{noticed} of {} sleeps were noticed; who woke answered {answered} who had asked meanwhile",
        outcome.injected
    );
    Ok(environment.finish(load, outcome).await?.0)
}

/// F4: SIGKILL of all.
pub async fn all_killed<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::of_nodes(&cluster, &format!("f4x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for _ in 0..rounds(size) {
        load.further(size.open as u64 / 2).await?;
        let before = environment.client.client_log.acked();
        environment.troubles.begin();
        for number in 0..NODES {
            environment.node_at(number).kill()?;
        }
        outcome.injected += 1;
        for number in 0..NODES {
            environment.node_at(number).start_again()?;
        }
        for number in 0..NODES {
            environment.node_at(number).ready().await?;
        }
        environment.troubles.end();
        load.further(1).await?;
        environment.until_acked(before).await?;
        outcome.seen += 1;
    }
    outcome.how = format!("{} times all of them", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// What a node says that ends, and whose groups nobody has taken in time.
const WAITED_IN_VAIN: &str = "not all partition groups handed over";

/// F5: SIGTERM, one after the other; SDK clients, each at one of them, see no call fail.
pub async fn rolled<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let size = Size { errands: Errands { is_ordinary: true, ..size.errands }, ..size };
    let mut environment = Environment::of_nodes(&cluster, &format!("f5x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..(rounds(size) * 2).max(NODES as u64) {
        load.further(size.open as u64 / 2).await?;
        let before = environment.times_said(TOOK_A_GROUP);
        let had_some = {
            let node = environment.node_at(round as usize % NODES);
            let status = node.stop().await?;
            ensure!(status.success(), "it ended with {status}: {}", node.last_words());
            // What others have is not waited for, however they came to it.
            ensure!(node.times_said(WAITED_IN_VAIN) == 0, "it waited in vain: {}", node.last_words());
            node.times_said("partition group handed over") > 0
        };
        outcome.injected += 1;
        // Whoever ends gives what it has to the other.
        if had_some {
            until_taken(&environment, before).await?;
            outcome.seen += 1;
        }
        load.further(1).await?;
        rejoin(environment.node_at(round as usize % NODES)).await?;
        load.turn_over().await?;
    }
    outcome.how = format!("{} of {} nodes gave what they had to the other", outcome.seen, outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F7: the broker ends, well or killed, and comes back.
pub async fn broker_ended<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::of_nodes(&cluster, &format!("f7x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size).max(2) {
        load.further(size.open as u64 / 2).await?;
        environment.troubles.begin();
        match round % 2 {
            0 => cluster.end(1).await?,
            _ => cluster.kill(1).await?,
        }
        outcome.injected += 1;
        outcome.seen += u64::from(!cluster.is_alive(1)?);
        cluster.restart(1).await?;
        environment.troubles.end();
        load.further(1).await?;
    }
    outcome.how = format!("{} times", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F15: a third node comes and goes every two seconds, for a minute at least, and then lives a little longer each time: it takes
/// nothing along.
pub async fn flapping<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::of_nodes(&cluster, &format!("f15x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    let mut third = Node::start("third", environment.dir.path(), &environment.variables)?;
    for _ in 0..STRETCHES {
        let (ended, deadline) = (load.ended(), patience::deadline());
        let mut flaps = 0;
        // While it comes and goes everything goes on.
        while flaps < FLAPS || load.ended() <= ended {
            ensure!(!deadline.is_over(), "nothing goes on while a node flaps");
            go(&environment, &mut third)?;
            patience::pass(FLAP_EVERY).await;
            come(&mut third).await?;
            patience::pass(FLAP_EVERY).await;
            flaps += 1;
        }
        outcome.injected += 2 * flaps;
        outcome.seen += 2 * flaps;
    }
    for _ in 0..LONGER_LIVES {
        go(&environment, &mut third)?;
        let (before, came) = (third.times_said(TOOK_A_GROUP), Instant::now());
        come(&mut third).await?;
        patience::pass(LONGER_LIFE).await;
        load.further(1).await?;
        let groups = third.times_said(TOOK_A_GROUP) - before;
        let is_settled = came.elapsed() >= SETTLED_AFTER;
        if groups > 0 && !is_settled {
            outcome.violations.push(format!("it took {groups} groups along"));
        }
        outcome.injected += 2;
        outcome.seen += 2;
    }
    go(&environment, &mut third)?;
    load.turn_over().await?;
    outcome.how = format!("it came or went {} times", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// SIGKILL of a node that flaps; it must not have ended by itself.
fn go(environment: &Environment, node: &mut Node) -> anyhow::Result<()> {
    ensure!(node.is_alive()?, "it ended: {}", node.last_words());
    let began_ms = now_ms();
    node.kill()?;
    environment.troubles.since(began_ms);
    Ok(())
}

/// It is there again, and has told the others.
async fn come(node: &mut Node) -> anyhow::Result<()> {
    let served = node.times_said(SERVES);
    node.start_again()?;
    node.until_said(SERVES, served + 1).await
}

/// F17: the rows of a node that was killed are removed before it comes back.
pub async fn rows_gone<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::of_nodes(&cluster, &format!("f17x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..rounds(size) {
        load.further(size.open as u64 / 2).await?;
        environment.kill(round as usize % NODES)?;
        let node = environment.node_at(round as usize % NODES);
        let had_rows = node.rows().exists();
        if had_rows {
            std::fs::remove_dir_all(node.rows())?;
        }
        outcome.injected += 1;
        // It has rows again when it has a part.
        rejoin(node).await?;
        outcome.seen += u64::from(had_rows && node.rows().exists());
        load.turn_over().await?;
    }
    outcome.how = format!("{} times", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}
