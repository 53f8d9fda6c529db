//! Faults of topics: deleted, created again, widened, compacted, or trimmed by time.

use anyhow::{Context, ensure};
use everlog_tests::{kafka, patience};
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, PARTITIONS, Size, tool};
use crate::node::Node;
use crate::reader;

fn admin(bootstrap: &str) -> anyhow::Result<AdminClient<DefaultClientContext>> {
    Ok(reader::client(bootstrap).create()?)
}

/// Waits until a topic is there, or is not.
async fn until(bootstrap: &str, topic: &str, is_there: bool) -> anyhow::Result<()> {
    let what = format!("{topic} is {}there", if is_there { "" } else { "not " });
    let is_so = async || {
        let (bootstrap, topic) = (bootstrap.to_owned(), topic.to_owned());
        let found = tokio::task::spawn_blocking(move || reader::ends(&bootstrap, &topic).is_ok()).await;
        found.is_ok_and(|found| found == is_there)
    };
    Ok(patience::until(&what, is_so).await?)
}

async fn delete(bootstrap: &str, topic: &str) -> anyhow::Result<()> {
    let answers = admin(bootstrap)?.delete_topics(&[topic], &AdminOptions::new()).await?;
    for answer in answers {
        answer.map_err(|(topic, code)| anyhow::anyhow!("{topic}: {code}"))?;
    }
    until(bootstrap, topic, false).await
}

async fn make(bootstrap: &str, topic: &str, settings: &[(&str, &str)]) -> anyhow::Result<()> {
    let partitions = if topic.ends_with("control") { 1 } else { PARTITIONS.parse()? };
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    for (key, value) in settings {
        new = new.set(key, value);
    }
    let answers = admin(bootstrap)?.create_topics(&[new], &AdminOptions::new()).await?;
    for answer in answers {
        answer.map_err(|(topic, code)| anyhow::anyhow!("{topic}: {code}"))?;
    }
    until(bootstrap, topic, true).await
}

async fn widen(bootstrap: &str, topic: &str) -> anyhow::Result<()> {
    let wider = NewPartitions::new(topic, PARTITIONS.parse::<usize>()? + 1);
    let answers = admin(bootstrap)?.create_partitions(&[wider], &AdminOptions::new()).await?;
    for answer in answers {
        answer.map_err(|(topic, code)| anyhow::anyhow!("{topic}: {code}"))?;
    }
    Ok(())
}

/// What is done to a topic.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Delete,
    Remake,
    Widen,
}

/// F34: under a stopped node; it must not start, and say why and what to do.
pub async fn harmed(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut how = Vec::new();
    let mut harms = vec![
        ("journal", Harm::Delete),
        ("journal", Harm::Remake),
        ("changelog", Harm::Remake),
        ("journal", Harm::Widen),
        ("control", Harm::Delete),
    ];
    if size.is_full {
        harms.extend([
            ("changelog", Harm::Delete),
            ("timers", Harm::Remake),
            ("history", Harm::Remake),
            ("control", Harm::Remake),
            ("changelog", Harm::Widen),
            ("events", Harm::Widen),
            ("events", Harm::Delete),
        ]);
    }
    let quiet = Size { open: 4, workers: 2, ..size };
    for (number, (name, harm)) in harms.into_iter().enumerate() {
        let mut environment = Environment::open(&cluster, &format!("f34-{number}"), quiet, &[]).await?;
        let mut load = environment.load();
        load.further(quiet.open as u64).await?;
        load.pause().await?;
        ensure!(
            environment.node.stop().await?.success(),
            "it ended badly: {}",
            environment.node.last_words()
        );
        let topic = environment.topic(name);
        match harm {
            Harm::Widen => widen(&environment.bootstrap, &topic).await?,
            Harm::Delete => delete(&environment.bootstrap, &topic).await?,
            Harm::Remake => {
                delete(&environment.bootstrap, &topic).await?;
                // `everlog topics create` makes none that the log was made with.
                let (_, said) = tool(&["topics", "create"], &environment.variables)?;
                let way_out =
                    ["missing is what the state of this log is made of", "there is a journal but no"];
                ensure!(way_out.iter().any(|words| said.contains(words)), "it made {name}: {said}");
                make(&environment.bootstrap, &topic, &[("cleanup.policy", "compact")]).await?;
            }
        }
        outcome.injected += 1;
        let is_remade = matches!(harm, Harm::Remake) && name != "control";
        let told = if is_remade { "topic id is " } else { "" };
        let verdict = refused(&mut environment.node, &topic, told).await?;
        outcome.acked += environment.client.client_log.acked();
        match verdict {
            Ok(()) => outcome.seen += 1,
            Err(what) => outcome.violations.push(format!("{harm:?} of {name}: {what}")),
        }
        how.push(format!("{harm:?} {name}"));
    }
    outcome.how = how.join(", ");
    Ok(outcome)
}

/// Whether a node that is started again refuses to serve, names the topic, and says this of it.
async fn refused(node: &mut Node, topic: &str, told: &str) -> anyhow::Result<Result<(), String>> {
    let before = node.said().len();
    node.start_again()?;
    let status = match node.ended().await {
        Ok(status) => status,
        Err(goes_on) => {
            node.kill()?;
            return Ok(Err(format!("{goes_on:#}")));
        }
    };
    let said = node.said().get(before..).unwrap_or_default().to_owned();
    // By its whole name, or by its prefix and its own.
    let (prefix, name) = topic.split_once('.').unwrap_or_default();
    let is_named =
        said.contains(topic) || said.contains(name) && said.contains(&format!("topics {prefix}.*"));
    if status.success() || !is_named || !said.contains(told) {
        return Ok(Err(format!("it ended with {status} and said {said}")));
    }
    println!("    {}", said.lines().last().unwrap_or_default());
    Ok(Ok(()))
}

/// Sets settings of a topic, and leaves its others.
fn alter(bootstrap: &str, topic: &str, settings: &str) -> anyhow::Result<()> {
    let arguments = [
        "--bootstrap-server",
        bootstrap,
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        topic,
        "--add-config",
        settings,
    ];
    kafka::tool("kafka.admin.ConfigCommand", &arguments, "").map(drop)
}

/// F35: segments are small and compacted at once, and everything is restored from what is left.
pub async fn compacted(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let eager = ["log.cleaner.backoff.ms=200", "log.roll.jitter.ms=0"];
    let cluster = FaultCluster::start(size.seed, &eager).await?;
    let mut environment = Environment::open(&cluster, "f35", size, &[]).await?;
    environment.is_compacted = true;
    let settings =
        "segment.ms=1000,min.cleanable.dirty.ratio=0.001,min.compaction.lag.ms=0,max.compaction.lag.ms=1000";
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    for name in ["changelog", "history", "timers"] {
        alter(&environment.bootstrap, &environment.topic(name), settings)?;
    }
    for _ in 0..size.times {
        load.further(2 * size.open as u64).await?;
        environment.node.kill()?;
        std::fs::remove_dir_all(environment.node.rows())?;
        outcome.injected += 1;
        environment.node.start_again()?;
        environment.node.ready().await?;
    }
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    let (count, end) = loop {
        looks.tick().await;
        let (bootstrap, topic) = (environment.bootstrap.clone(), environment.topic("changelog"));
        let read =
            move || anyhow::Ok((reader::read(&bootstrap, &topic)?.len(), reader::ends(&bootstrap, &topic)?));
        let (count, ends) = tokio::task::spawn_blocking(read).await??;
        let end: i64 = ends.iter().map(|(_, end)| end).sum();
        // What is left is mostly of runs that are kept.
        outcome.seen = u64::from((count as i64) < end * 2 / 3);
        if outcome.seen > 0 || deadline.is_over() {
            break (count, end);
        }
    };
    outcome.how = format!("{count} rows are left of {end} offsets");
    Ok(environment.finish(load, outcome).await?.0)
}

/// The node is down for longer than events and replies are kept.
pub async fn outlived(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::start(
        size.seed,
        &["log.retention.check.interval.ms=500", "log.segment.delete.delay.ms=100"],
    )
    .await?;
    let mut environment = Environment::open(&cluster, "late", size, &[]).await?;
    environment.is_trimmed = true;
    let mut load = environment.load();
    load.further(2 * size.open as u64).await?;
    let events = environment.topic("events");
    let end = |ends: Vec<(i64, i64)>| ends.iter().map(|(start, _)| start).sum::<i64>();
    environment.node.kill()?;
    for name in ["events", "replies", "rejections"] {
        alter(&environment.bootstrap, &environment.topic(name), "retention.ms=1000,segment.ms=1000")?;
    }
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    let deleted = loop {
        looks.tick().await;
        let (bootstrap, events) = (environment.bootstrap.clone(), events.clone());
        let ends = tokio::task::spawn_blocking(move || reader::ends(&bootstrap, &events)).await??;
        if ends.iter().all(|(start, end)| start == end) {
            break end(ends);
        }
        ensure!(!deadline.is_over(), "nothing is deleted: {ends:?}");
    };
    for name in ["events", "replies", "rejections"] {
        alter(&environment.bootstrap, &environment.topic(name), "retention.ms=-1")?;
    }
    environment.node.start_again()?;
    environment.node.ready().await.context("after all events were deleted")?;
    load.further(size.open as u64).await?;
    let outcome = Outcome {
        injected: 1,
        seen: u64::from(deleted > 0),
        how: format!("{deleted} offsets of events were deleted while it was down"),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}
