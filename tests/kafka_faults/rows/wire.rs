//! Faults between a node and its broker: late requests and lost replies.

use std::time::Duration;

use anyhow::{Context, ensure};
use everlog_tests::patience;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::checker::terms::POSITION_HEAD_BYTES;
use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size};
use crate::frame::Key;
use crate::proxy::{Act, Rule, When};
use crate::reader;

/// The client ids of the producers of outputs and of journals end so.
const OUTPUTS: &str = "-outputs";
const JOURNAL: &str = "-journal";

/// How long a slow request waits.
const SLOW: Duration = Duration::from_millis(300);

/// F11: the end of a transaction reaches the broker when its client has sent it again over another connection, and is
/// in the middle of the next transaction.
pub async fn late_end(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "f11", size, &[]).await?;
    let mut load = environment.load();
    load.further(size.open as u64 / 2).await?;
    let act = Act::Late(When::MidTransaction);
    cluster.proxy().set(vec![Rule {
        key: Key::END_TXN,
        client: OUTPUTS,
        act,
        permille: 200,
        times: 10 * size.times,
    }]);
    load.further(3 * size.open as u64).await?;
    let held = Act::Late(When::After(Duration::from_secs(if size.is_full { 30 } else { 5 })));
    let counts = cluster.proxy().counts();
    cluster.proxy().set(vec![Rule {
        key: Key::END_TXN,
        client: OUTPUTS,
        act: held,
        permille: 200,
        times: size.times,
    }]);
    load.further(2 * size.open as u64).await?;
    let more = cluster.proxy().counts();
    let outcome = Outcome {
        injected: counts.hit + more.hit,
        seen: counts.mid_transaction,
        how: format!("answered with the errors {:?} and {:?}", counts.late_errors, more.late_errors),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}

/// The same to a producer that is used again after its client sent an end twice: its transactions are torn.
pub async fn late_end_reused(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "f11r", size, &[]).await?;
    let topics = ["replies", "rejections", "changelog"].map(|name| environment.topic(name));
    let act = Act::Late(When::MidTransaction);
    cluster.proxy().set(vec![Rule {
        key: Key::END_TXN,
        client: "reused-outputs",
        act,
        permille: 1_000,
        times: 1,
    }]);
    let (bootstrap, prefix) = (environment.bootstrap.clone(), environment.prefix.clone());
    let reuse = move || -> anyhow::Result<()> {
        let mut config = reader::client(&bootstrap);
        config.set("client.id", "reused-outputs").set("transactional.id", format!("{prefix}reused"));
        let producer: BaseProducer = config.set("transaction.timeout.ms", "30000").create()?;
        producer.init_transactions(patience::most())?;
        for commit in 1..=5_u64 {
            // A late end may end it at any place: that it fails by then is no matter here.
            if transact(&producer, &topics, commit).is_err() {
                break;
            }
        }
        Ok(())
    };
    tokio::task::spawn_blocking(reuse).await??;
    let counts = cluster.proxy().counts();
    let load = environment.load();
    let (outcome, _) = environment.finish(load, Outcome::default()).await?;
    let owner = format!("fence {}", u64::MAX);
    let torn =
        outcome.violations.iter().filter(|what| what.contains("torn") && what.contains(&owner)).count();
    Ok(Outcome {
        injected: counts.mid_transaction,
        seen: torn as u64,
        how: format!(
            "{torn} torn transactions found; the late end was answered with {:?}",
            counts.late_errors
        ),
        violations: if torn > 0 { Vec::new() } else { vec!["the checker did not see it".into()] },
        ..outcome
    })
}

/// A commit of three records to three topics, with the headers of an owner that nobody has.
fn transact(producer: &BaseProducer, topics: &[String; 3], commit: u64) -> anyhow::Result<()> {
    let mut position = vec![0; POSITION_HEAD_BYTES];
    position[24..32].copy_from_slice(&u64::MAX.to_be_bytes());
    producer.begin_transaction()?;
    for (place, topic) in (0_u32..).zip(topics) {
        let numbers = [u64::MAX, commit, commit].map(u64::to_be_bytes).concat();
        let header = [numbers, place.to_be_bytes().to_vec()].concat();
        let headers = OwnedHeaders::new().insert(Header { key: "everlog", value: Some(&header) });
        // The last one has the key of a position, which closes a commit.
        let record = BaseRecord::to(topic).partition(0).key(b"\xff\xffp".as_slice());
        producer.send(record.payload(&position).headers(headers)).map_err(|(error, _)| error)?;
        producer.flush(patience::most()).context("a record")?;
    }
    Ok(producer.commit_transaction(patience::most())?)
}

/// F12: produce requests reach the broker when their clients have sent them again, or given them up.
pub async fn late_produce(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "f12", size, &[]).await?;
    let mut load = environment.load();
    load.further(size.open as u64 / 2).await?;
    let rule = |client, ms| Rule {
        key: Key::PRODUCE,
        client,
        act: Act::Late(When::After(Duration::from_millis(ms))),
        permille: 30,
        times: 5 * size.times,
    };
    cluster.proxy().set(vec![
        rule(JOURNAL, 300),
        rule(OUTPUTS, 300),
        rule(JOURNAL, 7_000),
        rule(OUTPUTS, 7_000),
    ]);
    load.further(3 * size.open as u64).await?;
    let counts = cluster.proxy().counts();
    let outcome = Outcome {
        injected: counts.hit,
        seen: counts.late,
        how: format!("{} came late", counts.late),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}

/// F13: the broker does what it is asked, and the answer is lost, with the connection or without it.
pub async fn lost_answers(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "f13", size, &[]).await?;
    let (mut load, _) = environment.load_with_records()?;
    load.further(size.open as u64 / 2).await?;
    let keys = [Key::PRODUCE, Key::END_TXN, Key::INIT_PRODUCER_ID, Key::ADD_PARTITIONS_TO_TXN, Key::FETCH];
    let rule = |key, act, permille, times| Rule { key, client: "everlog-", act, permille, times };
    let lost = keys.into_iter().map(|key| rule(key, Act::LoseAnswer, 20, 10 * size.times));
    let silent = keys.into_iter().map(|key| rule(key, Act::Silence, 3, size.times));
    let reset = keys.into_iter().map(|key| rule(key, Act::Reset, 10, 5 * size.times));
    let slow = keys.into_iter().map(|key| rule(key, Act::Delay(SLOW), 10, 5 * size.times));
    cluster.proxy().set(silent.chain(lost).chain(reset).chain(slow).collect());
    load.further(4 * size.open as u64).await?;
    let counts = cluster.proxy().counts();
    cluster.calm();
    let asked = keys.map(|key| format!("{} {}", key.name(), counts.requests.get(&key).unwrap_or(&0)));
    let outcome = Outcome {
        injected: counts.hit,
        seen: counts.hit,
        how: format!("of {}", asked.join(", ")),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}

/// An append of a former owner reaches the journal when its successor serves.
pub async fn late_append(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "append", size, &[]).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    for round in 0..size.times {
        load.further(size.open as u64 / 2).await?;
        let act = Act::Late(When::After(Duration::from_secs(6)));
        cluster.proxy().set(vec![Rule {
            key: Key::PRODUCE,
            client: JOURNAL,
            act,
            permille: 1_000,
            times: 2,
        }]);
        // The sooner it is killed the less it has sent again.
        let (deadline, mut looks) = (patience::deadline(), tokio::time::interval(Duration::from_millis(2)));
        while cluster.proxy().counts().hit < 2 {
            looks.tick().await;
            ensure!(!deadline.is_over(), "no two appends are late");
        }
        environment.node.kill()?;
        let mut next = crate::node::Node::start_as(
            "one",
            &format!("next-{round}"),
            environment.dir.path(),
            &environment.variables,
        )?;
        next.ready().await?;
        environment.client.turn_to(vec![next.place()?]);
        environment.node = next;
        patience::until("both arrive", async || cluster.proxy().counts().late >= 2).await?;
        outcome.injected += 2;
        outcome.seen += cluster.proxy().counts().late;
    }
    outcome.how = format!("{} arrived behind the successor's Owner record", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}

/// The coordinator of transactions does not answer for longer than uncommitted outputs may grow.
pub async fn no_commits(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    // The least that may wait, so that it is reached soon.
    let bounds = [("EVERLOG_MEMORY__UNCOMMITTED_BYTES_MAX", "1048576")];
    let environment = Environment::open(&cluster, "away", size, &bounds).await?;
    let mut load = environment.load();
    load.further(size.open as u64 / 2).await?;
    let keys = [Key::END_TXN, Key::INIT_PRODUCER_ID, Key::ADD_PARTITIONS_TO_TXN];
    let away = |key| Rule { key, client: OUTPUTS, act: Act::Reset, permille: 1_000, times: u64::MAX };
    cluster.proxy().set(keys.map(away).into());
    // Nothing is committed, so nothing ends: the load stands before its bound soon.
    patience::pass(Duration::from_secs(if size.is_full { 60 } else { 12 })).await;
    let counts = cluster.proxy().counts();
    cluster.calm();
    load.further(size.open as u64).await?;
    let outcome = Outcome {
        injected: counts.hit,
        seen: counts.hit,
        how: format!("{} requests to the coordinator failed", counts.hit),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}

/// A producer's own request for its transactional id reaches the broker again when it has got it by then: it must not
/// take itself for a successor.
pub async fn late_init(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "init", size, &[]).await?;
    let mut load = environment.load();
    load.further(size.open as u64 / 2).await?;
    let late = Act::Late(When::After(Duration::from_secs(1)));
    let rule = |key, act, permille| Rule { key, client: OUTPUTS, act, permille, times: size.times };
    // A commit without an answer costs the producer.
    cluster
        .proxy()
        .set(vec![rule(Key::END_TXN, Act::Silence, 100), rule(Key::INIT_PRODUCER_ID, late, 1_000)]);
    let came = patience::until("one comes late", async || cluster.proxy().counts().late > 0).await;
    came.with_context(|| format!("{:?}", cluster.proxy().counts()))?;
    let ended = load.further(size.open as u64).await;
    let counts = cluster.proxy().counts();
    cluster.calm();
    if let Err(error) = ended {
        let status = environment.node.end()?;
        anyhow::bail!("{error:#}; the node ended with {status:?}: {}", environment.node.last_words());
    }
    let outcome = Outcome {
        injected: counts.hit,
        seen: counts.late,
        how: format!("{} came late", counts.late),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}
