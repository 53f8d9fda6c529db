//! A password that is changed, and a user that is replaced, while a node is under load.

use anyhow::{Context, ensure};
use everlog_tests::patience;

use crate::acls::{Kind, Operation, Right};
use crate::broker::{SecureBroker, run, said};
use crate::load::Load;

const PREFIX: &str = "rotation.";
/// Starts that show that work goes on.
const MORE: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn a_password_changes_under_load_without_a_restart() -> anyhow::Result<()> {
    let broker = SecureBroker::build(&[])?;
    broker.make_topics(PREFIX)?;
    for user in ["first", "second"] {
        broker.set_password(user, "canary-of-the-start")?;
        broker.grant(&rights(user))?;
    }
    let file = broker.path("kafka.properties");
    let write = |user: &str, password: &str| {
        std::fs::write(&file, format!("# rotated\nsasl.username={user}\nsasl.password={password}\n"))
    };
    write("first", "canary-of-the-start")?;
    let mut variables = broker.with_properties(PREFIX, broker.properties("SCRAM-SHA-512"));
    variables.push(("EVERLOG_KAFKA__PROPERTIES_FILE", file.display().to_string()));
    let mut node = broker.node("node", &variables).await?;
    let changes = || broker.log("node").matches("Kafka credentials changed").count();
    let load = Load::begin(node.connect().await?);
    load.go_on(MORE).await.with_context(|| broker.log("node"))?;

    broker.set_password("first", "canary-that-replaces-it")?;
    write("first", "canary-that-replaces-it")?;
    patience::until("the node has the new password", async || changes() == 1).await?;
    // Every connection logs in again, by the new password alone.
    broker.cluster.restart(1)?;
    load.go_on(MORE).await.with_context(|| broker.log("node"))?;

    write("second", "canary-of-the-start")?;
    patience::until("the node has the other user", async || changes() == 2).await?;
    // A broker of 4.4.0 that is killed after one user's password was deleted has lost those of all others.
    broker.set_password("first", "canary-of-nobody")?;
    broker.cluster.restart(1)?;
    load.go_on(MORE).await.with_context(|| broker.log("node"))?;

    let started = load.end().await?;
    let deadline = patience::deadline();
    loop {
        let exported = run(&["events", "export", "--type", "WorkflowExecutionStarted"], &variables)?;
        let exported = said(&exported);
        let Some(absent) = started.iter().find(|id| !exported.contains(&format!("\"{id}\""))) else { break };
        ensure!(!deadline.is_over(), "{absent} is not there: {exported}");
    }
    ensure!(node.is_running(), "{}", broker.log("node"));
    node.stop()?;
    let log = broker.log("node");
    ensure!(!log.contains("canary"), "a secret is in the log: {log}");
    ensure!(!log.contains("need a restart"), "{log}");
    Ok(())
}

/// Those of a node.
fn rights(user: &str) -> Vec<(String, Right)> {
    let right = |kind, name: &str, operation| {
        let name = format!("{PREFIX}{name}");
        (user.to_owned(), Right { kind, is_prefix: name == PREFIX, name, operation })
    };
    vec![
        right(Kind::Topic, "", Operation::Read),
        right(Kind::Topic, "", Operation::Write),
        right(Kind::Topic, "", Operation::DescribeConfigs),
        right(Kind::Topic, "journal", Operation::Delete),
        right(Kind::Topic, "commands", Operation::Delete),
        right(Kind::TransactionalId, "", Operation::Write),
        right(Kind::Group, "", Operation::Read),
    ]
}
