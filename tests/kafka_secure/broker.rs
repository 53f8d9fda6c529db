//! A broker that is open to an operator, who may do everything, on one port, and closed on two others: one asks for a
//! password, one for a certificate.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, anyhow, ensure};
use everlog_tests::certificates::{Authority, Certified};
use everlog_tests::kafka::{Cluster, Version, tool};
use everlog_tests::patience;
use everlog_tests::server::{Server, binary};

use crate::acls::{self, Right};

/// Of every user.
pub const PASSWORD: &str = "of-the-test";
/// The subject of the certificate that a node shows.
pub const CERTIFIED: &str = "node-1";

/// Variables of a process.
pub type Variables = Vec<(&'static str, String)>;

/// One broker with an authorizer.
pub struct SecureBroker {
    pub cluster: Cluster,
    secure: String,
    mutual: String,
    dir: tempfile::TempDir,
}

impl SecureBroker {
    /// `users`: those that log in by PLAIN. Users of SCRAM are made later.
    pub fn build(users: &[String]) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let [open, control, secure, mutual] = {
            let first = free_ports()?;
            [first, first + 1, first + 2, first + 3]
        };
        let (keys, trusted) = certify(dir.path())?;
        let address = |name: &str, port: u16| format!("{name}://127.0.0.1:{port}");
        let (open_at, secure_at, mutual_at) =
            (address("PLAINTEXT", open), address("SECURE", secure), address("MUTUAL", mutual));
        let plain: Vec<_> = users.iter().map(|user| format!("user_{user}=\"{PASSWORD}\"")).collect();
        let login = "org.apache.kafka.common.security";
        let properties = [
            format!("listeners={open_at},{},{secure_at},{mutual_at}", address("CONTROLLER", control)),
            format!("advertised.listeners={open_at},{secure_at},{mutual_at}"),
            "listener.security.protocol.map=\
             CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL"
                .into(),
            "sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN".into(),
            format!(
                "listener.name.secure.scram-sha-512.sasl.jaas.config={login}.scram.ScramLoginModule required;"
            ),
            format!(
                "listener.name.secure.plain.sasl.jaas.config={login}.plain.PlainLoginModule required {};",
                plain.join(" ")
            ),
            format!("ssl.keystore.location={keys}"),
            "ssl.keystore.type=PEM".into(),
            format!("ssl.truststore.location={trusted}"),
            "ssl.truststore.type=PEM".into(),
            "listener.name.mutual.ssl.client.auth=required".into(),
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".into(),
            "super.users=User:ANONYMOUS".into(),
        ];
        let properties: Vec<_> = properties.iter().map(String::as_str).collect();
        let cluster = Cluster::start_at(Version::V4_4_0, open, &properties)?;
        let (secure, mutual) = (format!("127.0.0.1:{secure}"), format!("127.0.0.1:{mutual}"));
        Ok(Self { cluster, secure, mutual, dir })
    }

    /// The one that the tests of this process share.
    pub fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceLock<Result<SecureBroker, String>> = OnceLock::new();
        let built =
            SHARED.get_or_init(|| Self::build(&crate::rights::users()).map_err(|error| format!("{error:#}")));
        built.as_ref().map_err(|error| anyhow!("{error}"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a tool of Kafka as the operator.
    pub fn operate(&self, class: &str, arguments: &[&str]) -> anyhow::Result<String> {
        tool(class, &[&["--bootstrap-server", self.cluster.bootstrap()], arguments].concat(), "")
    }

    /// Gives a user of SCRAM a password.
    pub fn set_password(&self, user: &str, password: &str) -> anyhow::Result<()> {
        let config = format!("SCRAM-SHA-512=[password={password}]");
        let words = ["--alter", "--add-config", &config, "--entity-type", "users", "--entity-name", user];
        self.operate("kafka.admin.ConfigCommand", &words).map(drop)
    }

    /// Makes the topics of a prefix as the operator. A broker that was just started may need a moment.
    pub fn make_topics(&self, prefix: &str) -> anyhow::Result<()> {
        let mut variables = small(prefix);
        variables.push(("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", self.cluster.bootstrap().to_owned()));
        let deadline = patience::deadline();
        loop {
            let made = run(&["topics", "create"], &variables)?;
            if made.status.success() {
                return Ok(());
            }
            let is_away = made.status.code() == Some(1) && said(&made).contains("does not answer");
            ensure!(is_away && !deadline.is_over(), "{}", said(&made));
        }
    }

    pub fn grant(&self, rights: &[(String, Right)]) -> anyhow::Result<()> {
        acls::grant(self.cluster.bootstrap(), rights)
    }

    /// What a client needs that logs in, but for user name and password.
    pub fn properties(&self, mechanism: &str) -> String {
        let ca = self.path("ca.pem");
        format!("security.protocol=SASL_SSL;ssl.ca.location={};sasl.mechanism={mechanism}", ca.display())
    }

    /// The variables of a process that logs in.
    pub fn variables(&self, prefix: &str, mechanism: &str, user: &str, password: &str) -> Variables {
        let properties =
            format!("{};sasl.username={user};sasl.password={password}", self.properties(mechanism));
        self.with_properties(prefix, properties)
    }

    pub fn with_properties(&self, prefix: &str, properties: String) -> Variables {
        let mut variables = small(prefix);
        variables.push(("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", self.secure.clone()));
        variables.push(("EVERLOG_KAFKA__PROPERTIES", properties));
        variables
    }

    /// The variables of a process that shows a certificate, or none.
    pub fn mutual(&self, prefix: &str, is_certified: bool) -> Variables {
        let path = |name: &str| self.path(name).display().to_string();
        let mut properties = format!("security.protocol=SSL;ssl.ca.location={}", path("ca.pem"));
        if is_certified {
            let (certificate, key) = (path("node.pem"), path("node.key"));
            properties.push_str(&format!(";ssl.certificate.location={certificate};ssl.key.location={key}"));
        }
        let mut variables = small(prefix);
        variables.push(("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", self.mutual.clone()));
        variables.push(("EVERLOG_KAFKA__PROPERTIES", properties));
        variables
    }

    /// Starts a node, which writes its log to a file.
    pub async fn node(&self, name: &str, variables: &Variables) -> anyhow::Result<Server> {
        let log = self.path(&format!("{name}.log")).display().to_string();
        let mut named: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        named.push((everlog_tests::server::LOG, &log));
        Server::start(&self.path(name), &named).await
    }

    /// What a node has logged.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }
}

/// A log of few partitions.
fn small(prefix: &str) -> Variables {
    vec![
        ("EVERLOG_KAFKA__PREFIX", prefix.into()),
        ("EVERLOG_KAFKA__PARTITIONS", "4".into()),
        ("EVERLOG_KAFKA__REPLICATION", "1".into()),
        ("EVERLOG_PARTITION__JOURNAL_KEEP_RECORDS", "0".into()),
        ("EVERLOG_INGRESS__KEEP_MS", "1000".into()),
    ]
}

/// The first of four free ports in a row.
fn free_ports() -> anyhow::Result<u16> {
    let free = |port: &u16| (*port..port + 4).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    let first = 12_000 + (std::process::id() % 4_000) as u16 * 4;
    (first..first + 4_000).step_by(4).find(free).context("four ports are free")
}

/// Certifies the broker and a node, as `ca.pem` shows; the paths of the broker's keys, and of whom it trusts.
fn certify(dir: &Path) -> anyhow::Result<(String, String)> {
    let authority = Authority::new("authority");
    let write = |name: &str, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text)?;
        path.to_str().map(str::to_owned).context("a path of UTF-8")
    };
    let Certified { certificate, key } = authority.certify("127.0.0.1");
    let keys = write("broker.pem", key + &certificate)?;
    let Certified { certificate, key } = authority.certify(CERTIFIED);
    write("node.pem", certificate)?;
    write("node.key", key)?;
    Ok((keys, write("ca.pem", authority.certificate())?))
}

/// Runs the binary to its end.
pub fn run(words: &[&str], variables: &Variables) -> anyhow::Result<Output> {
    let variables = variables.iter().map(|(name, value)| (*name, value));
    Ok(Command::new(binary()?).args(words).envs(variables).output()?)
}

/// How it ended, and what it printed.
pub fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}
