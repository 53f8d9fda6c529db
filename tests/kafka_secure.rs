//! A node on brokers that ask for TLS, a password and permission: with just the ACLs that docs/operating-kafka.md grants.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest;
use everlog_tests::certificates::{Authority, Certified};
use everlog_tests::kafka::{Cluster, Version, tool};
use everlog_tests::server::{Server, binary};
use everlog_tests::{patience, raw};

const PASSWORD: &str = "of-the-test";

/// One broker: open to the operator, who may do everything, on one port, and closed on another.
struct SecureBroker {
    cluster: Cluster,
    secure: String,
    dir: tempfile::TempDir,
}

impl SecureBroker {
    fn build() -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = free_ports()?;
        let keys = certify(dir.path())?;
        let (open, control, secure) = (port, port + 1, port + 2);
        let properties = [
            format!(
                "listeners=PLAINTEXT://127.0.0.1:{open},CONTROLLER://127.0.0.1:{control},SECURE://127.0.0.1:{secure}"
            ),
            format!("advertised.listeners=PLAINTEXT://127.0.0.1:{open},SECURE://127.0.0.1:{secure}"),
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL".into(),
            "sasl.enabled.mechanisms=SCRAM-SHA-512".into(),
            "listener.name.secure.scram-sha-512.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;"
                .into(),
            format!("ssl.keystore.location={keys}"),
            "ssl.keystore.type=PEM".into(),
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".into(),
            "super.users=User:ANONYMOUS".into(),
        ];
        let properties: Vec<_> = properties.iter().map(String::as_str).collect();
        let cluster = Cluster::start_at(Version::V4_4_0, port, &properties)?;
        let secured = Self { cluster, secure: format!("127.0.0.1:{secure}"), dir };
        secured.operate(
            "kafka.admin.ConfigCommand",
            &[
                "--alter",
                "--add-config",
                &format!("SCRAM-SHA-512=[password={PASSWORD}]"),
                "--entity-type",
                "users",
                "--entity-name",
                "everlog",
            ],
        )?;
        let operator = [("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", secured.cluster.bootstrap().to_owned())];
        // A broker that was just started may need a moment.
        let deadline = patience::deadline();
        loop {
            let made = run(&["topics", "create"], &[&operator[..], &small()].concat())?;
            if made.status.success() {
                return Ok(secured);
            }
            let is_away = made.status.code() == Some(1) && said(&made).contains("does not answer");
            ensure!(is_away && !deadline.is_over(), "{}", said(&made));
        }
    }

    fn operate(&self, class: &str, arguments: &[&str]) -> anyhow::Result<String> {
        tool(class, &[&["--bootstrap-server", self.cluster.bootstrap()], arguments].concat(), "")
    }

    /// Grants what the page grants, word for word.
    fn grant(&self) -> anyhow::Result<()> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operating-kafka.md");
        let page = std::fs::read_to_string(page)?;
        let lines: Vec<_> = page.lines().filter(|line| line.starts_with("kafka-acls.sh ")).collect();
        ensure!(lines.len() == 4, "the page has {} lines of kafka-acls.sh", lines.len());
        for line in lines {
            let words: Vec<_> = line.split(' ').skip(3).collect();
            self.operate("kafka.admin.AclCommand", &words)?;
        }
        Ok(())
    }

    fn variables(&self, password: &str) -> Vec<(&'static str, String)> {
        let ca = self.dir.path().join("ca.pem");
        let properties = format!(
            "security.protocol=SASL_SSL;ssl.ca.location={};sasl.mechanism=SCRAM-SHA-512;sasl.username=everlog;\
             sasl.password={password}",
            ca.display()
        );
        let mut variables = small();
        variables.push(("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", self.secure.clone()));
        variables.push(("EVERLOG_KAFKA__PROPERTIES", properties));
        variables
    }
}

fn small() -> Vec<(&'static str, String)> {
    vec![
        ("EVERLOG_KAFKA__PARTITIONS", "4".into()),
        ("EVERLOG_KAFKA__REPLICATION", "1".into()),
        ("EVERLOG_PARTITION__JOURNAL_KEEP_RECORDS", "0".into()),
        ("EVERLOG_INGRESS__KEEP_MS", "1000".into()),
    ]
}

/// The first of three free ports in a row.
fn free_ports() -> anyhow::Result<u16> {
    let free = |port: &u16| (*port..port + 3).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    let first = 12_000 + (std::process::id() % 4_000) as u16 * 4;
    (first..first + 4_000).step_by(4).find(free).context("three ports are free")
}

/// Certifies the broker, as `ca.pem` shows; the path of its key and certificate.
fn certify(dir: &Path) -> anyhow::Result<String> {
    let authority = Authority::new("authority");
    let Certified { certificate, key } = authority.certify("127.0.0.1");
    std::fs::write(dir.join("ca.pem"), authority.certificate())?;
    let keys = dir.join("broker.pem");
    std::fs::write(&keys, key + &certificate)?;
    Ok(keys.to_str().context("a path of UTF-8")?.to_owned())
}

fn run(words: &[&str], variables: &[(&'static str, String)]) -> anyhow::Result<Output> {
    let variables = variables.iter().map(|(name, value)| (*name, value));
    Ok(Command::new(binary()?).args(words).envs(variables).output()?)
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn a_node_with_a_password_and_the_acls_of_the_page_does_all_that_nodes_do() -> anyhow::Result<()> {
    let secured = SecureBroker::build()?;
    let wrong = run(&["topics", "check"], &secured.variables("of-somebody-else"))?;
    ensure!(wrong.status.code() == Some(1) && said(&wrong).contains("uthentication"), "{}", said(&wrong));
    let stranger = run(&["topics", "check"], &secured.variables(PASSWORD))?;
    ensure!(!stranger.status.success(), "without an ACL nothing is shown: {}", said(&stranger));
    secured.grant()?;
    let checked = run(&["topics", "check"], &secured.variables(PASSWORD))?;
    ensure!(checked.status.success(), "{}", said(&checked));

    let variables = secured.variables(PASSWORD);
    let named: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut server = Server::start(&secured.dir.path().join("data"), &named).await?;
    let start = StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: "by-call".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue { name: "orders".into(), ..TaskQueue::default() }),
        ..StartWorkflowExecutionRequest::default()
    };
    raw::send(&server.connect().await?, start).await?;
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
        while secured
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
    server.crash().await?;
    server.stop()?;
    Ok(())
}
