//! Nodes and programs on brokers that ask for TLS, a login and permission: with just the ACLs that
//! docs/operating-kafka.md grants, and without each of them.

mod acls;
mod broker;
mod load;
mod mutual_tls;
mod rights;
mod rotation;

use std::path::Path;

use anyhow::ensure;
use everlog_tests::patience;

use crate::broker::{PASSWORD, SecureBroker, Variables, run, said};

/// That of the page.
const PREFIX: &str = "everlog.";
const USER: &str = "everlog";

fn variables(broker: &SecureBroker, password: &str) -> Variables {
    broker.variables(PREFIX, "SCRAM-SHA-512", USER, password)
}

/// Grants what the page grants to a node, word for word.
fn grant(broker: &SecureBroker) -> anyhow::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operating-kafka.md");
    let page = std::fs::read_to_string(page)?;
    let of_node =
        |line: &&str| line.starts_with("kafka-acls.sh ") && line.contains(&format!(" User:{USER} "));
    let lines: Vec<_> = page.lines().filter(of_node).collect();
    ensure!(lines.len() == 4, "the page has {} lines of kafka-acls.sh for a node", lines.len());
    for line in lines {
        let words: Vec<_> = line.split(' ').skip(3).collect();
        broker.operate("kafka.admin.AclCommand", &words)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_node_with_a_password_and_the_acls_of_the_page_does_all_that_nodes_do() -> anyhow::Result<()> {
    let broker = SecureBroker::shared()?;
    broker.set_password(USER, PASSWORD)?;
    broker.make_topics(PREFIX)?;
    let wrong = run(&["topics", "check"], &variables(broker, "of-somebody-else"))?;
    ensure!(wrong.status.code() == Some(1) && said(&wrong).contains("uthentication"), "{}", said(&wrong));
    let stranger = run(&["topics", "check"], &variables(broker, PASSWORD))?;
    ensure!(!stranger.status.success(), "without an ACL nothing is shown: {}", said(&stranger));
    grant(broker)?;
    let checked = run(&["topics", "check"], &variables(broker, PASSWORD))?;
    ensure!(checked.status.success(), "{}", said(&checked));

    let variables = variables(broker, PASSWORD);
    let mut node = broker.node("page", &variables).await?;
    load::start(&node.connect().await?, "by-call").await?;
    let within_ms = patience::most().as_millis().to_string();
    let mut words = vec!["command", "send", "--workflow-id", "by-record", "--reply"];
    words.extend(["--reply-timeout-ms", &within_ms]);
    words.extend(["start", "--workflow-type", "Order", "--task-queue", "orders"]);
    let sent = run(&words, &variables)?;
    ensure!(sent.status.success(), "{}", said(&sent));
    let deadline = patience::deadline();
    loop {
        let told = said(&run(&["events", "export", "--type", "WorkflowExecutionStarted"], &variables)?);
        if told.contains("by-call") && told.contains("by-record") {
            break;
        }
        ensure!(!deadline.is_over(), "{told}");
    }
    // What was read is let go of: records of the journal and of the commands are deleted.
    for name in ["everlog.journal", "everlog.commands"] {
        let deadline = patience::deadline();
        let words = ["--time", "earliest", "--topic", name];
        while broker
            .operate("org.apache.kafka.tools.GetOffsetShell", &words)?
            .lines()
            .all(|line| line.ends_with(":0"))
        {
            ensure!(!deadline.is_over(), "nothing of {name} was deleted");
        }
    }
    // A node may be slow to answer.
    let deadline = patience::deadline();
    loop {
        let healthy = run(&["doctor"], &variables)?;
        if healthy.status.success() {
            break;
        }
        ensure!(!deadline.is_over(), "{}", said(&healthy));
    }
    node.crash().await?;
    node.stop()?;
    Ok(())
}
