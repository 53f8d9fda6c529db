//! Each principal with exactly its rights, and without each of them in turn: what is said names the operation, the
//! resource and the line that grants it.

use std::process::Output;

use anyhow::ensure;
use everlog_tests::patience;

use crate::acls::{Kind, Operation, Right};
use crate::broker::{PASSWORD, SecureBroker, Variables, run, said};

const PREFIX: &str = "rights.";
/// Lines of a program that is denied something, at most: it does not ask again and again.
const LINES_MAX: usize = 12;

/// Somebody with a few rights, and the program that they are for.
struct Principal {
    name: &'static str,
    words: &'static [&'static str],
    /// Of a program that works.
    code: i32,
    rights: Vec<(Right, &'static str)>,
}

/// A right on a topic of the log or on all (""), and what is said without it.
fn topic(name: &str, operation: Operation, said: &'static str) -> (Right, &'static str) {
    named(Kind::Topic, name, operation, said)
}

fn named(kind: Kind, name: &str, operation: Operation, said: &'static str) -> (Right, &'static str) {
    (Right { kind, name: name.into(), is_prefix: name.is_empty(), operation }, said)
}

const START: &[&str] =
    &["command", "send", "--workflow-id", "w", "start", "--workflow-type", "Order", "--task-queue", "q"];
const START_AND_WAIT: &[&str] = &[
    "command",
    "send",
    "--reply",
    "--reply-timeout-ms",
    "500",
    "--workflow-id",
    "w",
    "start",
    "--workflow-type",
    "Order",
    "--task-queue",
    "q",
];

fn principals() -> Vec<Principal> {
    use Operation::{Describe, DescribeConfigs, Read};
    let checks = || {
        vec![
            topic("control", Read, "Read on the topic P.control"),
            topic("", Describe, "Describe on the topics P."),
            topic("", DescribeConfigs, "DescribeConfigs on the topics P."),
        ]
    };
    vec![
        Principal { name: "plan", words: &["topics", "plan"], code: 0, rights: checks() },
        Principal { name: "check", words: &["topics", "check"], code: 0, rights: checks() },
        Principal {
            name: "doctor",
            words: &["doctor"],
            code: 0,
            rights: vec![
                topic("", Read, "Read on the topics P."),
                topic("", DescribeConfigs, "DescribeConfigs on the topics P."),
                named(Kind::Group, "", Describe, "Describe on the group P.ingress"),
            ],
        },
    ]
    .into_iter()
    .chain(clients())
    .collect()
}

/// Who steers a cluster, who sends commands, and who reads.
fn clients() -> Vec<Principal> {
    use Operation::{Create, Describe, DescribeConfigs, Read, Write};
    let looks = || {
        vec![
            topic("control", Read, "Read on the topic P.control"),
            topic("journal", Describe, "Describe on the topic P.journal"),
            named(Kind::Group, "nodes", Describe, "Read on the group P.nodes"),
        ]
    };
    let produces = || topic("commands", Write, "Write on the topic P.commands");
    vec![
        // Nobody serves the partitions.
        Principal { name: "status", words: &["cluster", "status"], code: 3, rights: looks() },
        Principal {
            name: "drain",
            words: &["cluster", "drain", "node-1", "--undo"],
            code: 0,
            rights: vec![
                topic("control", Read, "Read on the topic P.control"),
                topic("control", Write, "Write on the topic P.control"),
            ],
        },
        Principal { name: "producer", words: START, code: 0, rights: vec![produces()] },
        // Nobody replies.
        Principal {
            name: "replies",
            words: START_AND_WAIT,
            code: 2,
            rights: vec![produces(), topic("replies", Read, "Read on the topic P.replies")],
        },
        Principal {
            name: "events",
            words: &["events", "export"],
            code: 0,
            rights: vec![topic("events", Read, "Read on the topic P.events")],
        },
        Principal {
            name: "rejections",
            words: &["rejections", "export"],
            code: 0,
            rights: vec![topic("rejections", Read, "Read on the topic P.rejections")],
        },
        Principal {
            name: "create",
            words: &["topics", "create"],
            code: 0,
            rights: vec![
                topic("", Create, "Create on the topic P.control"),
                topic("", Describe, "Describe on the topics P."),
                topic("", DescribeConfigs, "DescribeConfigs on the topic"),
                topic("control", Read, "Read on the topic P.control"),
                topic("control", Write, "Write on the topic P.control"),
            ],
        },
    ]
}

/// The rights of a node, as docs/operating-kafka.md has them.
fn node_rights() -> Vec<(Right, &'static str)> {
    use Operation::{Delete, DescribeConfigs, Read, Write};
    vec![
        // `everlog dev` looks at the topics first, as `topics create` does.
        topic("", Read, "Read on the topic"),
        topic("", Write, "Write on the topics P."),
        topic("", DescribeConfigs, "DescribeConfigs on the topics P."),
        topic("journal", Delete, "Delete on the topic P.journal"),
        topic("commands", Delete, "Delete on the topic P.commands"),
        named(Kind::Group, "", Read, "Read on the group P.nodes"),
        named(Kind::TransactionalId, "", Write, "Write on the transactional id P.group-"),
    ]
}

/// With all rights, and without each of them.
fn variants(name: &str, rights: &[(Right, &'static str)]) -> Vec<(String, Option<usize>)> {
    let without = |at: usize| (format!("{name}-{at}"), Some(at));
    std::iter::once((name.to_owned(), None)).chain((0..rights.len()).map(without)).collect()
}

/// All users that log in.
pub fn users() -> Vec<String> {
    let named = |name: &str, rights: &[(Right, &'static str)]| {
        variants(name, rights).into_iter().map(|(user, _)| user).collect::<Vec<_>>()
    };
    let programs = principals();
    let programs = programs.iter().flat_map(|principal| named(principal.name, &principal.rights));
    programs.chain(named("node", &node_rights())).collect()
}

/// What each variant has under its prefix.
fn granted(name: &str, rights: &[(Right, &'static str)]) -> Vec<(String, Right)> {
    let mut granted = Vec::new();
    for (user, without) in variants(name, rights) {
        for (at, (right, _)) in rights.iter().enumerate() {
            if without != Some(at) {
                let name = format!("{}{}", prefix(name, &user), right.name);
                granted.push((user.clone(), Right { name, ..right.clone() }));
            }
        }
    }
    granted
}

/// Whoever makes topics finds none.
fn prefix(name: &str, user: &str) -> String {
    if name == "create" { format!("{user}.") } else { PREFIX.into() }
}

fn variables(broker: &SecureBroker, prefix: &str, user: &str) -> Variables {
    broker.variables(prefix, "PLAIN", user, PASSWORD)
}

/// Whether it names what is missing.
fn names(text: &str, prefix: &str, user: &str, missing: &str) -> bool {
    let denied = format!("the brokers deny User:{user} the operation {}", missing.replace("P.", prefix));
    text.contains(&denied) && text.contains(&format!("--add --allow-principal User:{user} --operation "))
}

fn is_short(output: &Output) -> bool {
    said(output).lines().count() <= LINES_MAX
}

/// Runs a program until the broker denies it nothing: rights that were granted are in force a moment later.
fn run_with_rights(words: &[&str], variables: &Variables) -> anyhow::Result<Output> {
    let deadline = patience::deadline();
    loop {
        let ended = run(words, variables)?;
        if deadline.is_over() || !said(&ended).contains("the brokers deny") {
            return Ok(ended);
        }
    }
}

#[test]
fn a_program_works_with_just_its_rights_and_names_the_one_that_it_lacks() -> anyhow::Result<()> {
    let broker = SecureBroker::shared()?;
    broker.make_topics(PREFIX)?;
    let programs = principals();
    let all: Vec<_> = programs.iter().flat_map(|program| granted(program.name, &program.rights)).collect();
    broker.grant(&all)?;
    for Principal { name, words, code, rights } in programs {
        for (user, without) in variants(name, &rights) {
            let prefix = prefix(name, &user);
            let variables = variables(broker, &prefix, &user);
            let Some(at) = without else {
                let ended = run_with_rights(words, &variables)?;
                ensure!(ended.status.code() == Some(code), "{user}: {}", said(&ended));
                ensure!(!said(&ended).contains("deny"), "{user}: {}", said(&ended));
                continue;
            };
            let ended = run(words, &variables)?;
            let (right, missing) = &rights[at];
            let is_refused = matches!(ended.status.code(), Some(1 | 3));
            ensure!(is_refused, "{user} without {right:?}: {}", said(&ended));
            ensure!(
                names(&said(&ended), &prefix, &user, missing),
                "{user} without {right:?}: {}",
                said(&ended)
            );
            ensure!(is_short(&ended), "{user} without {right:?}: {}", said(&ended));
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_node_works_with_just_its_rights_and_names_the_one_that_it_lacks() -> anyhow::Result<()> {
    let broker = SecureBroker::shared()?;
    let prefix = "rights-node.";
    broker.make_topics(prefix)?;
    let rights = node_rights();
    let mut all = granted("node", &rights);
    all.iter_mut().for_each(|(_, right)| right.name = right.name.replacen(PREFIX, prefix, 1));
    broker.grant(&all)?;
    for (user, without) in variants("node", &rights) {
        let variables = variables(broker, prefix, &user);
        let Some(at) = without else {
            run_with_rights(&["topics", "check"], &variables)?;
            broker.node(&user, &variables).await?.stop()?;
            continue;
        };
        let (right, missing) = &rights[at];
        let log = broker.path(&format!("{user}.log")).display().to_string();
        let mut named: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        named.push((everlog_tests::server::LOG, &log));
        let http = everlog_tests::server::free_address()?;
        let mut node = everlog_tests::server::Server::begin(&broker.path(&user), &named, http)?;
        let is_told = || names(&broker.log(&user), prefix, &user, missing);
        let told = patience::until("it names the right", async || is_told()).await;
        ensure!(told.is_ok(), "{user} without {right:?}: {}", broker.log(&user));
        // Only a transactional id is not known to be denied before a partition is taken over.
        if right.kind == Kind::TransactionalId {
            node.stop()?;
        } else {
            patience::until("it ends", async || !node.is_running()).await?;
        }
    }
    Ok(())
}
