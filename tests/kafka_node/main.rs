//! A node on a real Kafka: each acknowledged request is there once, whichever process is killed and whatever is
//! deleted.

mod away;
mod closed;
mod nodes;
mod orders;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use everlog_temporal_api::enums::EventType;
use everlog_tests::caller::{Caller, signals};
use everlog_tests::kafka::{self, Cluster, Version};
use everlog_tests::process::Process;
use everlog_tests::server::{Server, binary};
use everlog_tests::{page, patience};

use orders::{check_history, read_all, work_until};

/// Each sender: a run takes only so many signals.
const SEND_EVERY: Duration = Duration::from_millis(5);
/// A node whose brokers are harmed gives up soon what they do not answer.
const HASTE: [(&str, &str); 2] =
    [("EVERLOG_KAFKA__CALL_TIMEOUT_MS", "5000"), ("EVERLOG_KAFKA__APPEND_TIMEOUT_MS", "5000")];

/// A log of a test's own: its settings as variables, and the directory of its node.
struct TestLog {
    variables: Vec<(&'static str, String)>,
    dir: tempfile::TempDir,
}

impl TestLog {
    fn new(bootstrap: &str) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("node-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        let variables = vec![
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", bootstrap.to_owned()),
            ("EVERLOG_KAFKA__PREFIX", prefix),
            ("EVERLOG_KAFKA__PARTITIONS", "4".into()),
            ("EVERLOG_GATEWAY__POLL_WAIT_MS", "2000".into()),
        ];
        Ok(Self { variables, dir: tempfile::tempdir()? })
    }

    fn bootstrap(&self) -> &str {
        &self.variables[0].1
    }

    fn prefix(&self) -> &str {
        &self.variables[1].1
    }

    fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    async fn start(&self) -> anyhow::Result<Server> {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start(&self.data(), &variables).await
    }

    /// The settings of a node on brokers that are harmed.
    fn make_haste(&mut self) {
        self.variables.extend(HASTE.map(|(name, value)| (name, value.to_owned())));
    }

    fn process(&self, name: &str, data_dir: &Path) -> anyhow::Result<Process> {
        Process::start(self.bootstrap(), name, data_dir, &self.variables)
    }

    fn topics(&self, verb: &str) -> anyhow::Result<(Option<i32>, String)> {
        let mut command = Command::new(binary()?);
        command.arg("topics").arg(verb).envs(self.variables.iter().map(|(name, value)| (*name, value)));
        let output = command.env("EVERLOG_KAFKA__REPLICATION", "1").output()?;
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok((output.status.code(), said))
    }
}

/// What `cluster status` shows to somebody with these settings.
fn status(variables: &[(&'static str, String)], words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(binary()?);
    command.args(["cluster", "status"]).args(words);
    let output = command.envs(variables.iter().map(|(name, value)| (*name, value))).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn a_workflow_goes_on_after_a_kill_and_reads_the_same_after_its_rows_are_deleted() -> anyhow::Result<()>
{
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let mut server = test_log.start().await?;
    let mut client = Caller(server.connect().await?);
    let ids: Vec<String> = (0..8).map(|number| format!("order-{number}")).collect();
    for id in &ids {
        client.start(id).await?;
    }
    work_until(&client, "their timers and activities are there", &ids, EventType::TimerStarted).await?;
    server.crash().await?;
    client = Caller(server.connect().await?);
    for id in &ids {
        client.signal(id, "go").await?;
    }
    work_until(&client, "they end", &ids, EventType::WorkflowExecutionCompleted).await?;
    let before = read_all(&client, &ids).await?;
    for (id, (history, _)) in ids.iter().zip(&before) {
        check_history(id, history)?;
    }
    server.stop()?;
    std::fs::remove_dir_all(test_log.data().join("rows"))?;
    server = test_log.start().await?;
    let after = read_all(&Caller(server.connect().await?), &ids).await?;
    ensure!(before == after, "describe and history are as they were, byte by byte");
    Ok(())
}

#[tokio::test]
async fn no_step_waits_for_a_transaction() -> anyhow::Result<()> {
    let mut test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    test_log.variables.push(("EVERLOG_PARTITION__COMMIT_INTERVAL_MS", "60000".into()));
    let server = test_log.start().await?;
    let client = Caller(server.connect().await?);
    let transactions = async || {
        let total = page::metric(server.metrics_address(), "everlog_kafka_transactions_total").await?;
        total.context("the node is on Kafka")
    };
    let (before, orders) = (transactions().await?, 100);
    for number in 0..orders {
        let id = format!("order-{number}");
        client.start(&id).await?;
        client.signal(&id, "go").await?;
    }
    // Each step that waited for a transaction would have had one to itself. Without that there are a few in a minute.
    let more = transactions().await? - before;
    ensure!(more < f64::from(orders) / 2.0, "{more} transactions came with {orders} starts and signals each");
    Ok(())
}

#[tokio::test]
async fn a_second_node_joins_answers_for_the_first_and_has_all_when_that_is_killed() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let mut first = test_log.process("one", &test_log.dir.path().join("one"))?;
    let client = first.ready().await?;
    let ids: Vec<String> = (0..8).map(|number| format!("moved-{number}")).collect();
    for id in &ids {
        client.start(id).await?;
    }
    work_until(&client, "they wait", &ids, EventType::TimerStarted).await?;
    let mut second = test_log.process("two", &test_log.dir.path().join("two"))?;
    let client = second.ready().await?;
    for id in &ids {
        client.signal(id, "go").await?;
    }
    ensure!(first.is_running(), "the first node goes on: {}", first.said()?);
    first.kill()?;
    work_until(&client, "they end", &ids, EventType::WorkflowExecutionCompleted).await?;
    for id in &ids {
        check_history(id, &client.history(id).await?)?;
    }
    ensure!(second.is_running(), "the second node serves");
    Ok(())
}

#[tokio::test]
async fn a_second_node_of_the_same_name_is_refused_while_the_first_answers() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let mut first = test_log.process("one", &test_log.dir.path().join("one"))?;
    first.ready().await?;
    let elsewhere = test_log.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere)?;
    let mut second = test_log.process("one", &elsewhere.join("one"))?;
    let ended = second.ended().await;
    let (code, said) = ended.with_context(|| format!("the first said {:?}", first.said()))?;
    ensure!(code == Some(1), "the second node ended with {code:?}: {said}");
    ensure!(said.contains("a node named \"one\" is there already"), "{said}");
    ensure!(first.is_running(), "the first node serves: {}", first.said()?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_under_load_loses_and_doubles_no_acknowledged_signal() -> anyhow::Result<()> {
    let cluster = Arc::new(Cluster::start(Version::V4_4_0, 1)?);
    let mut test_log = TestLog::new(cluster.bootstrap())?;
    test_log.make_haste();
    // Commits give up sooner than the broker is back, so that partitions are taken over again.
    test_log.variables.push(("EVERLOG_KAFKA__TRANSACTION_TIMEOUT_MS", "2000".into()));
    let mut server = test_log.start().await?;
    let client = Caller(server.connect().await?);
    let ids: Vec<String> = (0..4).map(|number| format!("patient-{number}")).collect();
    start_all(&client, &ids).await?;
    let load = Load::begin(&client, &ids);
    load.course.goes_on(50).await?;
    let (harmed, mended) = (Arc::clone(&cluster), Arc::clone(&cluster));
    tokio::task::spawn_blocking(move || harmed.kill(1)).await??;
    load.course.meets_nobody().await?;
    tokio::task::spawn_blocking(move || mended.restart(1)).await??;
    load.end(&client).await?;
    ensure!(server.is_running(), "it went on");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_serves_on_while_each_of_three_brokers_is_dead_in_turn() -> anyhow::Result<()> {
    let cluster = Arc::new(Cluster::start(Version::V4_4_0, 3)?);
    let mut test_log = TestLog::new(cluster.bootstrap())?;
    test_log.make_haste();
    test_log.variables.push(("EVERLOG_KAFKA__REPLICATION", "3".into()));
    let mut server = test_log.start().await?;
    let client = Caller(server.connect().await?);
    let ids: Vec<String> = (0..8).map(|number| format!("patient-{number}")).collect();
    start_all(&client, &ids).await?;
    let load = Load::begin(&client, &ids);
    for node in 1..=3 {
        load.course.goes_on(20).await?;
        let harmed = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || harmed.kill(node)).await??;
        load.course.goes_on(20).await.with_context(|| format!("without broker {node}"))?;
        let mended = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || mended.restart(node).and_then(|()| all_in_sync(&mended)))
            .await??;
    }
    load.end(&client).await?;
    ensure!(server.is_running(), "it went on");
    Ok(())
}

/// Starts them at a node that gives up soon.
async fn start_all(client: &Caller, ids: &[String]) -> anyhow::Result<()> {
    for id in ids {
        patience::until(id, async || client.start(id).await.is_ok()).await?;
    }
    Ok(())
}

/// Waits until no replica is behind, so that the loss of the next broker is one that topics are made for.
fn all_in_sync(cluster: &Cluster) -> anyhow::Result<()> {
    let look = ["--bootstrap-server", cluster.bootstrap(), "--describe", "--under-replicated-partitions"];
    let deadline = patience::deadline();
    loop {
        let behind = kafka::tool("org.apache.kafka.tools.TopicCommand", &look, "")?;
        if behind.trim().is_empty() {
            return Ok(());
        }
        ensure!(!deadline.is_over(), "these stay behind: {behind}");
    }
}

#[tokio::test]
async fn a_journal_that_is_deleted_by_time_is_found_and_refused() -> anyhow::Result<()> {
    let cluster = Cluster::shared()?;
    let test_log = TestLog::new(cluster.bootstrap())?;
    let (code, said) = test_log.topics("plan")?;
    ensure!(code == Some(3) && said.contains("to make: "), "{code:?}: {said}");
    let (code, said) = test_log.topics("create")?;
    ensure!(code == Some(0), "{code:?}: {said}");
    let (code, said) = test_log.topics("check")?;
    ensure!(code == Some(0), "{code:?}: {said}");
    let journal = format!("{}journal", test_log.prefix());
    let change = ["--bootstrap-server", cluster.bootstrap(), "--alter", "--entity-type", "topics"];
    let what = ["--entity-name", &journal, "--add-config", "retention.ms=604800000"];
    kafka::tool("kafka.admin.ConfigCommand", &[&change[..], &what].concat(), "")?;
    let (code, said) = test_log.topics("check")?;
    ensure!(code == Some(3), "{code:?}: {said}");
    for part in ["REFUSED", &journal, "retention.ms", "604800000", "--add-config retention.ms=-1"] {
        ensure!(said.contains(part), "{part} is not in: {said}");
    }
    let mut process = test_log.process("one", &test_log.data())?;
    let (code, said) = process.ended().await?;
    ensure!(code == Some(1) && said.contains("--add-config retention.ms=-1"), "{code:?}: {said}");
    Ok(())
}

/// Signals to some runs, while the brokers are harmed.
struct Load {
    course: Arc<Course>,
    senders: Vec<(String, tokio::task::JoinHandle<anyhow::Result<Vec<Sent>>>)>,
}

/// The name of a signal, and whether it was acknowledged.
type Sent = (String, bool);

/// How far the load and the harm are.
#[derive(Default)]
struct Course {
    /// Of each sender.
    acked: Vec<AtomicU32>,
    slowest_ms: AtomicU32,
    /// No broker is there.
    is_alone: AtomicBool,
    /// Signals that were begun and refused meanwhile.
    refused_alone: AtomicU32,
    /// All brokers serve again.
    is_over: AtomicBool,
}

impl Load {
    /// One sender for each run.
    fn begin(client: &Caller, ids: &[String]) -> Self {
        let acked = ids.iter().map(|_| AtomicU32::default()).collect();
        let course = Arc::new(Course { acked, ..Course::default() });
        let sender = |(number, id): (usize, &String)| {
            let sending = send_many(client.clone(), id.clone(), number, Arc::clone(&course));
            (id.clone(), tokio::spawn(sending))
        };
        let senders = ids.iter().enumerate().map(sender).collect();
        Self { course, senders }
    }

    /// Ends it once signals go through again, and looks for what was lost or doubled.
    async fn end(self, client: &Caller) -> anyhow::Result<()> {
        self.course.is_over.store(true, Ordering::Relaxed);
        let (mut acked, mut unknown) = (0, 0);
        for (id, sender) in self.senders {
            let sent = sender.await??;
            let mut there = BTreeMap::<String, usize>::new();
            for name in signals(&client.history(&id).await?) {
                *there.entry(name).or_default() += 1;
            }
            for (name, is_acked) in &sent {
                let count = there.get(name).copied().unwrap_or(0);
                ensure!(count <= 1, "{id}: {name} is there {count} times");
                ensure!(count == 1 || !is_acked, "{id}: {name} was acknowledged and is lost");
            }
            acked += sent.iter().filter(|(_, acked)| *acked).count();
            unknown += sent.iter().filter(|(_, acked)| !acked).count();
        }
        let slowest_ms = self.course.slowest_ms.load(Ordering::Relaxed);
        println!("{acked} signals were acknowledged, {unknown} were not; the slowest took {slowest_ms} ms");
        Ok(())
    }
}

impl Course {
    fn so_far(&self) -> Vec<u32> {
        self.acked.iter().map(|acked| acked.load(Ordering::Relaxed)).collect()
    }

    /// Waits until each sender had so many more signals acknowledged.
    async fn goes_on(&self, more: u32) -> anyhow::Result<()> {
        let (before, deadline, mut looks) = (self.so_far(), patience::deadline(), patience::looks());
        loop {
            let now = self.so_far();
            if now.iter().zip(&before).all(|(now, before)| *now >= before + more) {
                return Ok(());
            }
            ensure!(!deadline.is_over(), "acknowledged before {before:?}, now {now:?}");
            looks.tick().await;
        }
    }

    /// Waits, while no broker is there, until a signal was begun and refused.
    async fn meets_nobody(&self) -> anyhow::Result<()> {
        self.is_alone.store(true, Ordering::Relaxed);
        let is_refused = async || self.refused_alone.load(Ordering::Relaxed) > 0;
        let met = patience::until("the load meets the broker's absence", is_refused).await;
        self.is_alone.store(false, Ordering::Relaxed);
        Ok(met?)
    }
}

/// Signals one after the other, each tried once, until the harm is over and they go through again.
async fn send_many(
    client: Caller,
    id: String,
    number: usize,
    course: Arc<Course>,
) -> anyhow::Result<Vec<Sent>> {
    let (mut sent, mut since, mut last, mut deadline) = (Vec::new(), 0, None, None);
    let mut pace = tokio::time::interval(SEND_EVERY);
    while since < 50 {
        pace.tick().await;
        let is_over = course.is_over.load(Ordering::Relaxed);
        if is_over {
            let deadline = *deadline.get_or_insert_with(patience::deadline);
            ensure!(!deadline.is_over(), "{id}: only {since} went through afterwards: {last:?}");
        }
        let name = format!("{id}-{}", sent.len());
        let (began, was_alone) = (Instant::now(), course.is_alone.load(Ordering::Relaxed));
        let answer = client.signal(&id, &name).await;
        if was_alone && course.is_alone.load(Ordering::Relaxed) {
            ensure!(answer.is_err(), "{name} was acknowledged while no broker was there");
            course.refused_alone.fetch_add(1, Ordering::Relaxed);
        }
        course.slowest_ms.fetch_max(u32::try_from(began.elapsed().as_millis())?, Ordering::Relaxed);
        sent.push((name, answer.is_ok()));
        if answer.is_ok() {
            course.acked[number].fetch_add(1, Ordering::Relaxed);
            since += usize::from(is_over);
        }
        last = answer.err().or(last);
    }
    Ok(sent)
}
