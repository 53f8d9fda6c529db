//! The real parts work: clusters of every version keep records, and are harmed and ended as tests want it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use everlog_tests::kafka::{Cluster, Registry, Version, tool};
use everlog_tests::patience;

#[test]
fn a_broker_of_each_version_keeps_a_record() -> anyhow::Result<()> {
    for version in [Version::V4_4_0, Version::V3_9_2] {
        let cluster = Cluster::start(version, 1)?;
        create_topic(&cluster, "orders")?;
        produce(&cluster, "orders", &["one", "two"])?;
        assert_eq!(consume(&cluster, "orders", 2)?, ["one", "two"], "{version:?}");
    }
    Ok(())
}

#[test]
fn three_nodes_outlive_the_loss_and_the_pause_of_one() -> anyhow::Result<()> {
    let cluster = Cluster::start(Version::V4_4_0, 3)?;
    assert_eq!(cluster.bootstrap().split(',').count(), 3);
    create_topic(&cluster, "orders")?;
    cluster.kill(1)?;
    produce(&cluster, "orders", &["while one is dead"])?;
    cluster.restart(1)?;
    cluster.pause(2)?;
    produce(&cluster, "orders", &["while one is paused"])?;
    cluster.resume(2)?;
    assert_eq!(consume(&cluster, "orders", 2)?, ["while one is dead", "while one is paused"]);
    Ok(())
}

#[test]
fn nothing_of_a_cluster_outlives_it() -> anyhow::Result<()> {
    let cluster = Cluster::start(Version::V4_4_0, 1)?;
    let (dir, process) = (cluster.dir(), format!("/proc/{}", cluster.pid(1)?));
    assert!(dir.join("node-1/data").is_dir());
    assert!(!Path::new("/proc/self").exists() || Path::new(&process).exists());
    assert!(cluster.kill(2).is_err(), "there is no second node");
    drop(cluster);
    assert!(!dir.exists());
    assert!(!Path::new(&process).exists());
    Ok(())
}

#[test]
fn all_tests_of_a_process_share_one_broker() -> anyhow::Result<()> {
    assert_eq!(Cluster::shared()?.bootstrap(), Cluster::shared()?.bootstrap());
    TcpStream::connect(Cluster::shared()?.address(1)?)?;
    Ok(())
}

#[test]
fn the_registry_speaks_confluents_api() -> anyhow::Result<()> {
    let registry = Registry::start()?;
    let (address, path) =
        registry.url().trim_start_matches("http://").split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /{path}/subjects HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert!(answer.contains(" 200 ") && answer.ends_with("[]"), "{answer}");
    Ok(())
}

fn create_topic(cluster: &Cluster, topic: &str) -> anyhow::Result<()> {
    let arguments =
        ["--bootstrap-server", cluster.bootstrap(), "--create", "--topic", topic, "--partitions", "1"];
    tool("org.apache.kafka.tools.TopicCommand", &arguments, "").map(drop)
}

fn produce(cluster: &Cluster, topic: &str, values: &[&str]) -> anyhow::Result<()> {
    let mut arguments = vec!["--bootstrap-server", cluster.bootstrap(), "--topic", topic];
    // By itself it gives a record up after 6 s, and says so on its standard error alone: a paused leader takes longer.
    let within = format!("delivery.timeout.ms={}", patience::most().as_millis());
    arguments.extend(["--request-required-acks", "all", "--message-send-max-retries", "1000000"]);
    arguments.extend(["--producer-property", &within]);
    tool("kafka.tools.ConsoleProducer", &arguments, &(values.join("\n") + "\n")).map(drop)
}

fn consume(cluster: &Cluster, topic: &str, records: usize) -> anyhow::Result<Vec<String>> {
    let (records, within_ms) = (records.to_string(), patience::most().as_millis().to_string());
    let mut arguments = vec!["--bootstrap-server", cluster.bootstrap(), "--topic", topic, "--from-beginning"];
    arguments.extend(["--max-messages", &records, "--timeout-ms", &within_ms]);
    let printed = tool("org.apache.kafka.tools.consumer.ConsoleConsumer", &arguments, "")?;
    Ok(printed.lines().map(str::to_owned).collect())
}
