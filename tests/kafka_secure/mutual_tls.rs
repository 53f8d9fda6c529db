//! Brokers that ask for a certificate.

use anyhow::ensure;

use crate::acls::{Kind, Operation, Right};
use crate::broker::{CERTIFIED, SecureBroker, run, said};
use crate::load::start;

const PREFIX: &str = "mutual.";

#[tokio::test]
async fn a_node_shows_a_certificate_instead_of_a_password() -> anyhow::Result<()> {
    let broker = SecureBroker::shared()?;
    broker.make_topics(PREFIX)?;
    let strange = run(&["topics", "check"], &broker.mutual(PREFIX, false))?;
    ensure!(strange.status.code() == Some(1) && said(&strange).contains("SSL"), "{}", said(&strange));

    let variables = broker.mutual(PREFIX, true);
    let denied = run(&["topics", "check"], &variables)?;
    let who = "--allow-principal \"User:(the subject of ssl.certificate.location)\"";
    ensure!(denied.status.code() == Some(1) && said(&denied).contains(who), "{}", said(&denied));
    let right = |kind, name: &str, operation| {
        let is_prefix = name == PREFIX;
        (format!("CN={CERTIFIED}"), Right { kind, name: name.into(), is_prefix, operation })
    };
    let (journal, commands) = (format!("{PREFIX}journal"), format!("{PREFIX}commands"));
    broker.grant(&[
        right(Kind::Topic, PREFIX, Operation::Read),
        right(Kind::Topic, PREFIX, Operation::Write),
        right(Kind::Topic, PREFIX, Operation::DescribeConfigs),
        right(Kind::Topic, &journal, Operation::Delete),
        right(Kind::Topic, &commands, Operation::Delete),
        right(Kind::TransactionalId, PREFIX, Operation::Write),
        right(Kind::Group, PREFIX, Operation::Read),
    ])?;
    let mut node = broker.node("mutual", &variables).await?;
    start(&node.connect().await?, "by-certificate").await?;
    node.stop()?;
    Ok(())
}
