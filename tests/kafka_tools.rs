//! What is done by hand, on a real Kafka and on an embedded node: topics read, commands sent, schemas registered, the
//! doctor; and that the brokers of the older line serve a node too.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, ensure};
use everlog_log_kafka::topics::topic_io::{
    From, OutgoingRecord, Producer, Record, TailStep, TopicTail, TransactionEnd,
};
use everlog_log_kafka::{Options, topics};
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest;
use everlog_tests::kafka::{Cluster, Registry, Version};
use everlog_tests::process::Process;
use everlog_tests::server::{Server, binary};
use everlog_tests::{patience, raw};
use serde_json::Value;

/// A log of a test's own on a cluster.
struct TestLog {
    variables: Vec<(&'static str, String)>,
    options: Options,
    dir: tempfile::TempDir,
}

impl TestLog {
    fn new(cluster: &Cluster) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = Options::new(cluster.bootstrap());
        options.prefix = format!("tools-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        (options.partitions, options.replication) = (4, 1);
        let variables = vec![
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", cluster.bootstrap().to_owned()),
            ("EVERLOG_KAFKA__PREFIX", options.prefix.clone()),
            ("EVERLOG_KAFKA__PARTITIONS", "4".into()),
            ("EVERLOG_KAFKA__REPLICATION", "1".into()),
        ];
        Ok(Self { variables, options, dir: tempfile::tempdir()? })
    }

    fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.options.prefix)
    }

    async fn node(&self) -> anyhow::Result<Server> {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start(&self.dir.path().join("data"), &variables).await
    }

    /// Runs the binary by hand.
    fn run(&self, words: &[&str], input: &str) -> anyhow::Result<CliOutput> {
        run(words, &self.variables, input)
    }
}

/// How the binary ended, and what it said.
#[derive(Debug)]
struct CliOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl CliOutput {
    fn lines(&self) -> anyhow::Result<Vec<Value>> {
        self.out.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }
}

fn run(words: &[&str], variables: &[(&'static str, String)], input: &str) -> anyhow::Result<CliOutput> {
    use std::io::Write;
    let mut command = Command::new(binary()?);
    command.args(words).envs(variables.iter().map(|(name, value)| (*name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn()?;
    process.stdin.take().context("it has one")?.write_all(input.as_bytes())?;
    let Output { status, stdout, stderr } = process.wait_with_output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(CliOutput { code: status.code(), out: text(stdout), err: text(stderr) })
}

async fn start(server: &Server, id: &str) -> anyhow::Result<()> {
    let start = StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue { name: "orders".into(), ..TaskQueue::default() }),
        request_id: format!("start-{id}"),
        ..StartWorkflowExecutionRequest::default()
    };
    raw::send(&server.connect().await?, start).await?;
    Ok(())
}

/// Runs it until its lines are as wished: what is acknowledged is there a moment later.
fn until(
    run: impl Fn() -> anyhow::Result<CliOutput>,
    wished: impl Fn(&[Value]) -> bool,
) -> anyhow::Result<Vec<Value>> {
    let deadline = patience::deadline();
    loop {
        let output = run()?;
        ensure!(output.code == Some(0), "{output:?}");
        let lines = output.lines()?;
        if wished(&lines) {
            return Ok(lines);
        }
        ensure!(!deadline.is_over(), "{output:?}");
    }
}

#[tokio::test]
async fn events_are_exported_as_lines_of_json_by_filter() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?)?;
    let server = test_log.node().await?;
    for id in ["order-1", "order-2"] {
        start(&server, id).await?;
    }
    let all = until(|| test_log.run(&["events", "export"], ""), |lines| lines.len() == 4)?;
    let types: Vec<_> =
        all.iter().filter(|line| line["workflow_id"] == "order-1").map(|line| &line["type"]).collect();
    assert_eq!(types, ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]);
    let started =
        all.iter().find(|line| line["type"] == "WorkflowExecutionStarted").context("there are two")?;
    assert_eq!(started["workflow_execution_started"]["workflow_type"], "Order", "{started}");
    assert_eq!(started["record"]["topic"], test_log.topic("events").as_str());
    let words = ["events", "export", "--workflow-id", "order-2", "--type", "WorkflowExecutionStarted"];
    let one = test_log.run(&words, "")?.lines()?;
    assert_eq!((one.len(), one[0]["workflow_id"].as_str()), (1, Some("order-2")));
    let words = ["events", "tail", "--from-beginning", "--limit", "3"];
    assert_eq!(test_log.run(&words, "")?.lines()?.len(), 3);
    let none = test_log.run(&["events", "export", "--namespace", "elsewhere"], "")?;
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    Ok(())
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_a_tail_quietly() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?)?;
    let server = test_log.node().await?;
    start(&server, "order-1").await?;
    let mut command = Command::new(binary()?);
    command.args(["events", "tail", "--from-beginning"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tail = command.envs(test_log.variables.iter().map(|(name, value)| (*name, value))).spawn()?;
    let mut lines = std::io::BufReader::new(tail.stdout.take().context("it has one")?);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut lines, &mut line)?;
    ensure!(line.contains("WorkflowExecutionStarted"), "{line}");
    drop(lines);
    // It notices with the next line that it writes.
    start(&server, "order-2").await?;
    start(&server, "order-3").await?;
    let ended = tail.wait_with_output()?;
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
    Ok(())
}

#[test]
fn a_command_is_a_record_with_what_was_said() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?)?;
    topics::create(&test_log.options)?;
    let begin =
        ["command", "send", "--workflow-id", "order-1", "--namespace", "default", "--command-id", "c-1"];
    let words =
        ["--deliver-at", "1700000000000", "start", "--workflow-type", "Order", "--task-queue", "orders"];
    let output = test_log.run(&[&begin[..], &words, &["--input", "{\"total\": 12}"]].concat(), "")?;
    assert_eq!(output.code, Some(0), "{output:?}");
    let json = "{\"type\": \"cancel\",  \"cancel\": {\"reason\": \"12345678901234567890123\"}}";
    let by_hand = test_log.run(&[&begin[..], &["json"]].concat(), json)?;
    assert_eq!(by_hand.code, Some(0), "{by_hand:?}");
    let records = read(&test_log.options, &test_log.topic("commands"), 2)?;
    let places: Vec<_> = records.iter().map(|record| (record.partition, record.offset)).collect();
    for (output, (partition, offset)) in [output, by_hand].iter().zip(places) {
        let line = &output.lines()?[0];
        assert_eq!(
            (line["partition"].as_u64(), line["offset"].as_u64()),
            (Some(partition.into()), Some(offset))
        );
    }
    let value = String::from_utf8(records[0].value.clone().context("it has one")?.to_vec())?;
    let expected = "{\"type\":\"start\",\"start\":{\"workflow_type\":\"Order\",\"task_queue\":\"orders\",\"input\":[{\"total\": 12}]}}";
    assert_eq!(value, expected);
    assert_eq!(
        (records[0].key.as_deref(), records[1].value.as_deref()),
        (Some(&b"order-1"[..]), Some(json.as_bytes()))
    );
    let headers: Vec<_> =
        records[0].headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    let expected = [
        ("namespace", Some(&b"default"[..])),
        ("command-id", Some(b"c-1")),
        ("deliver-at", Some(b"1700000000000")),
    ];
    assert_eq!(headers, expected);
    let bad = test_log.run(&[&begin[..], &["signal", "--name", "n", "--input", "Ann"]].concat(), "")?;
    assert!(bad.code == Some(1) && bad.err.contains("is no JSON"), "{bad:?}");
    Ok(())
}

/// Commands to a node that serves, and what the public topics say of them.
fn commands_are_obeyed_or_refused(
    run: impl Fn(&[&str], &str) -> anyhow::Result<CliOutput>,
) -> anyhow::Result<()> {
    let within_ms = patience::most().as_millis().to_string();
    let begin = ["command", "send", "--workflow-id", "by-hand", "--reply", "--reply-timeout-ms", &within_ms];
    let send = |words: &[&str], input: &str| {
        let output = run(&[&begin[..], words].concat(), input)?;
        let last = output.lines()?.pop().with_context(|| format!("{output:?}"))?;
        anyhow::Ok((output.code, last))
    };
    let start = ["start", "--workflow-type", "Order", "--task-queue", "orders", "--input", "{\"total\": 12}"];
    let (code, outcome) = send(&start, "")?;
    assert_eq!((code, outcome["status"].as_str()), (Some(0), Some("started")), "{outcome}");
    let (code, again) = send(&start, "")?;
    assert_eq!((code, again["code"].as_str()), (Some(3), Some("already_started")), "{again}");
    assert_eq!(again["run_id"], outcome["run_id"]);
    let (code, done) =
        send(&["signal", "--name", "approved", "--input", "\"Ann\"", "--input", "[1, 2]"], "")?;
    assert_eq!((code, done["status"].as_str()), (Some(0), Some("done")), "{done}");
    let (code, unknown) = send(&["json"], "{\"type\": \"nonsense\"}")?;
    assert_eq!((code, unknown["code"].as_str()), (Some(3), Some("command_unknown")), "{unknown}");
    let events = ["events", "export", "--workflow-id", "by-hand"];
    let events = until(|| run(&events, ""), |lines| lines.len() == 3)?;
    assert_eq!(events[0]["workflow_execution_started"]["input"][0]["total"], 12, "{}", events[0]);
    assert_eq!(events[0]["namespace"], "default");
    let signaled =
        events.iter().find(|event| event["type"] == "WorkflowExecutionSignaled").context("it came")?;
    assert_eq!(
        signaled["workflow_execution_signaled"]["input"],
        serde_json::json!(["Ann", [1, 2]]),
        "{signaled}"
    );
    let replies = run(&["replies", "export", "--workflow-id", "by-hand", "--type", "started"], "")?;
    assert_eq!((replies.code, replies.lines()?.len()), (Some(0), 1), "{replies:?}");
    let rejections = until(|| run(&["rejections", "export"], ""), |lines| lines.len() == 2)?;
    let unknown = rejections.iter().find(|line| line["code"] == "command_unknown").context("it is there")?;
    assert_eq!(
        (unknown["key"].as_str(), unknown["value"].as_str()),
        (Some("by-hand"), Some("{\"type\": \"nonsense\"}"))
    );
    Ok(())
}

#[tokio::test]
async fn commands_by_hand_are_obeyed_or_refused_on_kafka() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?)?;
    let _server = test_log.node().await?;
    commands_are_obeyed_or_refused(|words, input| test_log.run(words, input))
}

#[tokio::test]
async fn commands_by_hand_are_obeyed_or_refused_by_an_embedded_node() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(&dir.path().join("data"), &[]).await?;
    let address = [("EVERLOG_HTTP__ADDRESS", server.http_address().to_string())];
    commands_are_obeyed_or_refused(|words, input| run(words, &address, input))
}

#[test]
fn an_outcome_that_nobody_writes_is_not_waited_for_longer_than_said() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?)?;
    topics::create(&test_log.options)?;
    let words = ["command", "send", "--workflow-id", "a", "--reply", "--reply-timeout-ms", "1000", "cancel"];
    let output = test_log.run(&words, "")?;
    assert!(output.code == Some(2) && output.err.contains("no outcome came within 1000 ms"), "{output:?}");
    let record = read(&test_log.options, &test_log.topic("commands"), 1)?.remove(0);
    let expected = ("reply-topic".to_owned(), Some(test_log.topic("replies").into()));
    assert_eq!(record.headers, [expected]);
    Ok(())
}

/// What to do was not said, but that a broker which had answered does not answer.
#[test]
fn more_replicas_than_brokers_are_refused_with_what_to_set() -> anyhow::Result<()> {
    let mut test_log = TestLog::new(Cluster::shared()?)?;
    test_log.variables.retain(|(name, _)| *name != "EVERLOG_KAFKA__REPLICATION");
    let output = test_log.run(&["topics", "create"], "")?;
    let expected = "the cluster has 1 broker, kafka.replication is 3: set it to 1, or add brokers\n";
    assert!(output.code == Some(1) && output.err.ends_with(expected), "{output:?}");
    assert!(!output.err.contains("does not answer"), "{output:?}");
    let none = test_log.run(&["topics", "check"], "")?;
    assert_eq!((none.code, none.out.matches("missing").count()), (Some(3), 9), "{none:?}");
    Ok(())
}

fn read(options: &Options, topic: &str, count: usize) -> anyhow::Result<Vec<Record>> {
    let mut tail = TopicTail::open(options, topic, None, From::Beginning)?;
    let mut records = Vec::new();
    while let TailStep::Record(record) = tail.next(patience::most())? {
        records.push(record);
    }
    ensure!(records.len() == count, "{records:?}");
    Ok(records)
}

#[test]
fn schemas_are_registered_and_found_in_a_real_registry() -> anyhow::Result<()> {
    let registry = Registry::start()?;
    let words = |verb: &'static str| ["schemas", verb, "--registry", registry.url(), "--prefix", "shop."];
    let missing = run(&words("check"), &[], "")?;
    assert!(missing.code == Some(3) && missing.err.contains("everlog schemas register"), "{missing:?}");
    let registered = run(&words("register"), &[], "")?;
    assert_eq!(registered.code, Some(0), "{registered:?}");
    let subjects: Vec<_> = registered.out.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(
        subjects,
        ["shop.events-value", "shop.commands-value", "shop.replies-value", "shop.rejections-value"]
    );
    let checked = run(&words("check"), &[], "")?;
    assert_eq!((checked.code, checked.out), (Some(0), registered.out));
    drop(registry);
    let words = ["schemas", "check", "--registry", "http://127.0.0.1:1", "--timeout-ms", "200"];
    let away = run(&words, &[], "")?;
    assert!(away.code == Some(1) && away.err.contains("cannot be reached"), "{away:?}");
    Ok(())
}

/// What the doctor says that is not "ok".
fn complaints(output: &CliOutput) -> anyhow::Result<Vec<(String, String, String)>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = output.lines()?;
    let bad = lines.iter().filter(|line| line["verdict"] != "ok");
    Ok(bad.map(|line| (text(&line["verdict"]), text(&line["about"]), text(&line["found"]))).collect())
}

/// Runs the doctor until nothing is wrong: what was done is seen a moment later, and a node may be slow to answer.
fn until_well(run: impl Fn() -> anyhow::Result<CliOutput>) -> anyhow::Result<CliOutput> {
    let deadline = patience::deadline();
    loop {
        let output = run()?;
        if output.code == Some(0) && complaints(&output)?.is_empty() {
            return Ok(output);
        }
        ensure!(!deadline.is_over(), "{output:?}");
    }
}

#[tokio::test]
async fn the_doctor_finds_what_is_wrong_on_kafka_and_moves_nothing() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?)?;
    let nothing = test_log.run(&["doctor", "--json"], "")?;
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    assert!(
        complaints(&nothing)?.iter().any(|(_, about, found)| about == "topics" && found.contains("missing"))
    );
    let mut server = test_log.node().await?;
    start(&server, "order-1").await?;
    until_well(|| test_log.run(&["doctor", "--json"], ""))?;
    // A node that serves was not disturbed.
    start(&server, "order-2").await?;
    ensure!(server.is_running(), "nobody fenced it");
    let topic = test_log.topic("commands");
    // However long it takes to look, no broker ends it.
    let patient = Options { transaction_timeout_ms: 900_000, ..test_log.options.clone() };
    let mut producer = Producer::open_transactional(&patient, "somebody")?;
    producer.begin()?;
    producer.send(&[OutgoingRecord {
        topic: &topic,
        partition: Some(2),
        value: Some(b"x"),
        ..OutgoingRecord::default()
    }])?;
    let open = test_log.run(&["doctor", "--json"], "")?;
    let found = complaints(&open)?;
    assert!(
        found.iter().any(|(verdict, about, found)| {
            verdict == "warn" && about == "transactions" && found.starts_with(&format!("{topic}-2 "))
        }),
        "{open:?}"
    );
    producer.end(TransactionEnd::Abort)?;
    let is_well = || {
        let table = test_log.run(&["doctor"], "");
        table
            .is_ok_and(|table| table.code == Some(0) && table.out.lines().all(|line| line.starts_with("ok ")))
    };
    patience::until_blocking("all is well again", is_well)?;
    let nobody = run(
        &["doctor", "--kafka-bootstrap", "127.0.0.1:1"],
        &[("EVERLOG_KAFKA__CALL_TIMEOUT_MS", "2000".into())],
        "",
    )?;
    assert!(nobody.code == Some(1) && nobody.err.contains("127.0.0.1:1"), "{nobody:?}");
    let words = ["doctor", "--json", "--registry", "http://127.0.0.1:1"];
    let away = test_log.run(&words, "")?;
    assert!(
        away.code == Some(3) && complaints(&away)?.iter().any(|(_, about, _)| about == "registry"),
        "{away:?}"
    );
    Ok(())
}

/// Several nodes of one log, each of which has some of its groups.
struct Nodes(TestLog);

impl Nodes {
    fn new(more: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        let mut test_log = TestLog::new(Cluster::shared()?)?;
        test_log.variables.push(("EVERLOG_KAFKA__GROUP_PARTITIONS", "1".into()));
        test_log.variables.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Ok(Self(test_log))
    }

    async fn node(&self, name: &str, more: &[(&'static str, String)]) -> anyhow::Result<Process> {
        let mut node = self.begin(name, more)?;
        node.ready().await.map(|_ready| node)
    }

    fn begin(&self, name: &str, more: &[(&'static str, String)]) -> anyhow::Result<Process> {
        let variables = [self.0.variables.as_slice(), more].concat();
        Process::start(&self.0.options.bootstrap_servers, name, &self.0.dir.path().join(name), &variables)
    }

    /// Looks at `cluster status` until it is as wished.
    fn until(&self, wished: impl Fn(Option<i32>, &[Value]) -> bool) -> anyhow::Result<Vec<Value>> {
        let deadline = patience::deadline();
        loop {
            let output = self.0.run(&["cluster", "status", "--json"], "")?;
            let lines = output.lines()?;
            if wished(output.code, &lines) {
                return Ok(lines);
            }
            ensure!(!deadline.is_over(), "{output:?}");
        }
    }
}

/// The line of a node, or of a partition.
fn line<'a>(lines: &'a [Value], what: &str, which: impl Into<Value>) -> Option<&'a Value> {
    let which = which.into();
    let is_its_own =
        |line: &&Value| line[what] == which && (what == "partition" || line["partition"].is_null());
    lines.iter().find(is_its_own)
}

fn state(lines: &[Value], node: &str) -> Option<String> {
    Some(line(lines, "node", node)?["state"].as_str()?.to_owned())
}

fn owners<'a>(lines: &'a [Value], node: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| !line["partition"].is_null() && line["node"] == node)
}

#[tokio::test]
async fn nodes_are_shown_moved_drained_and_forgotten_by_hand() -> anyhow::Result<()> {
    let nodes = Nodes::new(&[])?;
    let run = |words: &[&str]| nodes.0.run(words, "");
    let within_s = patience::most().as_secs().to_string();
    let (mut first, mut second) = (nodes.node("a", &[]).await?, nodes.node("b", &[]).await?);
    let both = nodes.until(|code, lines| {
        code == Some(0) && ["a", "b"].iter().all(|node| owners(lines, node).count() == 2)
    })?;
    let states = ["a", "b"].map(|node| state(&both, node));
    assert_eq!(states, ["serves", "serves"].map(|state| Some(state.to_owned())));
    for partition in 0..4 {
        let line = line(&both, "partition", partition).context("four partitions")?;
        assert!(line["fence"].as_u64() > Some(0) && line["end"].as_u64() > line["term"].as_u64(), "{line}");
    }
    until_well(|| run(&["doctor", "--json"]))?;

    let moved = run(&["cluster", "move", "--within-s", &within_s, "0", "b"])?;
    assert_eq!(moved.code, Some(0), "{moved:?}");
    let now = nodes.until(|code, _| code == Some(0))?;
    let of = |lines: &[Value], field: &str| line(lines, "partition", 0).and_then(|line| line[field].as_u64());
    assert_eq!(line(&now, "partition", 0).context("it is there")?["node"], "b");
    let is_another_owner = || of(&now, "term") > of(&both, "term") && of(&now, "fence") > of(&both, "fence");
    assert!(
        line(&both, "partition", 0).context("it is there")?["node"] == "b" || is_another_owner(),
        "{now:?}"
    );
    let mistyped = run(&["cluster", "move", "0", "c"])?;
    assert!(mistyped.code == Some(1) && mistyped.err.contains("there are: a, b"), "{mistyped:?}");

    let drained = run(&["cluster", "drain", "--within-s", &within_s, "a"])?;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    nodes.until(|code, lines| {
        code == Some(0) && state(lines, "a").as_deref() == Some("drained") && owners(lines, "b").count() == 4
    })?;
    let drained = "ready\nthe node is drained by an operator: it serves no partition\n";
    let is_said = async || first.page("/health/ready").await.is_ok_and(|page| page == drained);
    patience::until("readiness says that it is drained", is_said).await?;
    let warned = run(&["doctor", "--json"])?;
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert_eq!(
        complaints(&warned)?.iter().map(|(_, about, _)| about.as_str()).collect::<Vec<_>>(),
        ["drains"]
    );
    assert!(second.metric("everlog_cluster_takeovers_total", "").await? >= 2.0);
    assert!(second.metric("everlog_cluster_takeover_seconds_count", "").await? >= 2.0);
    assert!(first.metric("everlog_cluster_groups_handed_over_total", "").await? >= 1.0);
    let undone = run(&["cluster", "drain", "a", "--undo"])?;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    nodes.until(|code, lines| code == Some(0) && owners(lines, "a").count() > 0)?;

    first.kill()?;
    let without = nodes.until(|code, lines| {
        let is_told = line(lines, "node", "a").is_some_and(|line| !line["gone_since_ms"].is_null());
        code == Some(0) && owners(lines, "b").count() == 4 && is_told
    })?;
    assert_eq!(state(&without, "a").as_deref(), Some("gone"), "it is told, and no failure: all is served");
    assert!(
        without.iter().any(|line| line["warning"].as_str().is_some_and(|text| text.starts_with("a is gone")))
    );
    // The next one that places forgets nodes sooner.
    second.stop().await?;
    let soon = [("EVERLOG_CLUSTER__FORGET_AFTER_MS", "5000".to_owned())];
    let _second = nodes.node("b", &soon).await?;
    nodes.until(|_, lines| state(lines, "a").is_none())?;
    let first = nodes.node("a", &[]).await?;
    nodes.until(|code, lines| code == Some(0) && owners(lines, "a").count() > 0)?;
    assert!(first.metric("everlog_cluster_nodes", "").await? >= 2.0);
    Ok(())
}

#[tokio::test]
async fn nodes_that_do_not_fit_together_are_found() -> anyhow::Result<()> {
    let nodes = Nodes::new(&[])?;
    let folder = nodes.0.dir.path();
    let file = |name: &str, text: &str| -> anyhow::Result<String> {
        std::fs::write(folder.join(name), text)?;
        Ok(folder.join(name).display().to_string())
    };
    let keys = ("EVERLOG_TOKENS__KEY_FILE", file("keys", &"0a".repeat(32))?);
    let secret =
        ("EVERLOG_CLUSTER__SECRET_FILE", file("secret", "a secret of many characters, long enough")?);
    // Its keys are made, and stand in `control`.
    let _first = nodes.node("a", &[]).await?;
    let _second = nodes.node("b", &[keys]).await?;
    let both = nodes.until(|_, lines| {
        ["a", "b"].iter().all(|node| line(lines, "node", *node).is_some_and(|line| !line["keys"].is_null()))
    })?;
    let keys = |node: &str| line(&both, "node", node).and_then(|line| line["keys"].as_array().cloned());
    let (shared, own) = (keys("a").context("it is there")?, keys("b").context("it is there")?);
    assert_eq!((shared.len(), own.len()), (1, 1), "what stands in control is no key of a node with a file");
    assert_ne!(shared, own);
    let found = complaints(&nodes.0.run(&["doctor", "--json"], "")?)?;
    assert!(found.iter().any(|(verdict, about, _)| verdict == "fail" && about == "keys"), "{found:?}");

    let _third = nodes.begin("c", std::slice::from_ref(&secret))?;
    nodes.until(|_, lines| state(lines, "c").as_deref() == Some("refuses"))?;
    let found = complaints(&nodes.0.run(&["doctor", "--json"], "")?)?;
    let refusals = |found: &[(String, String, String)]| {
        found.iter().filter(|(_, _, found)| found.contains("do not trust each other")).count()
    };
    assert_eq!(refusals(&found), 1, "{found:?}");
    let variables = [nodes.0.variables.clone(), vec![secret]].concat();
    let knowing = complaints(&run(&["doctor", "--json"], &variables, "")?)?;
    assert_eq!(refusals(&knowing), 2, "the other two: {knowing:?}");
    Ok(())
}

#[tokio::test]
async fn the_doctor_asks_an_embedded_node_and_opens_nothing_of_its_own() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let mut server = Server::start(&data, &[]).await?;
    // What the settings name is another server: the node tells in its directory where it is reached.
    let other = Server::start(&dir.path().join("other"), &[]).await?;
    let metrics = [("EVERLOG_SERVER__METRICS_ADDRESS", other.metrics_address().to_string())];
    let doctor =
        |data: &Path| run(&["doctor", "--json", "--data-dir", &data.display().to_string()], &metrics, "");
    let well = until_well(|| doctor(&data))?;
    let ready = format!("one runs on it, and is ready ({})", server.metrics_address());
    assert!(well.out.contains(&ready), "{well:?}");
    start(&server, "order-1").await?;
    server.stop()?;
    let stopped = doctor(&data)?;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.out.contains("no node runs"), "{stopped:?}");
    assert_eq!(complaints(&doctor(&dir.path().join("nothing"))?)?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn the_brokers_of_the_older_line_serve_a_node() -> anyhow::Result<()> {
    let cluster = Cluster::start_with(Version::V3_9_2, 1, &[])?;
    let test_log = TestLog::new(&cluster)?;
    let made = test_log.run(&["topics", "create"], "")?;
    let said = "made 9 topics\nThe topics are as they must be.\n";
    assert_eq!((made.code, made.out.as_str()), (Some(0), said), "{made:?}");
    let mut server = test_log.node().await?;
    start(&server, "order-1").await?;
    server.crash().await?;
    start(&server, "order-2").await?;
    let both = until(|| test_log.run(&["events", "export"], ""), |lines| lines.len() == 4)?;
    let ids: Vec<_> =
        both.iter().filter(|line| line["event_id"] == 1).map(|line| &line["workflow_id"]).collect();
    assert!(ids.contains(&&Value::from("order-1")) && ids.contains(&&Value::from("order-2")), "{ids:?}");
    let sent = test_log.run(&["command", "send", "--workflow-id", "order-1", "cancel"], "")?;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    // The brokers hear of the killed process until its session ends, and the doctor says so till then.
    until(
        || test_log.run(&["doctor", "--json"], ""),
        |lines| lines.iter().all(|line| line["verdict"] == "ok"),
    )?;
    Ok(())
}
