//! `everlog doctor --bundle`: what a bug report needs is in it, and no secret of any kind in any byte.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use everlog_tests::server::{Server, binary};
use flate2::read::GzDecoder;

/// The names and texts in an archive, and all its bytes, packed and unpacked.
struct Archive {
    entries: Vec<(String, String)>,
    bytes: Vec<Vec<u8>>,
}

impl Archive {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let packed = std::fs::read(file).context("there is no archive")?;
        let mut unpacked = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked)?;
        let mut entries = Vec::new();
        for entry in tar::Archive::new(unpacked.as_slice()).entries()? {
            let (mut entry, mut text) = (entry?, String::new());
            entry.read_to_string(&mut text)?;
            entries.push((entry.path()?.display().to_string(), text));
        }
        Ok(Self { entries, bytes: vec![packed, unpacked] })
    }

    fn text(&self, name: &str) -> anyhow::Result<&str> {
        let path = format!("everlog-bundle/{name}");
        let found = self.entries.iter().find(|(name, _)| *name == path);
        found
            .map(|(_, text)| text.as_str())
            .with_context(|| format!("{name} is not in it: {:?}", self.names()))
    }

    fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn has(&self, secret: &str) -> bool {
        let found = |bytes: &Vec<u8>| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        self.bytes.iter().any(found)
    }
}

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Output> {
    let mut command = Command::new(binary()?);
    command.arg("doctor").args(arguments).envs(variables.iter().copied());
    Ok(command.output()?)
}

#[tokio::test]
async fn a_bundle_has_what_a_bug_report_needs() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let log = dir.path().join("node.log");
    let server = Server::start(&data, &[("EVERLOG_TEST_LOG", &log.display().to_string())]).await?;
    let bundle = dir.path().join("bundle.tar.gz");
    let (file, log) = (bundle.display().to_string(), log.display().to_string());
    let arguments =
        ["--data-dir", &data.display().to_string(), "--bundle", &file, "--logs", &log, "--logs", "/nowhere"];
    let output = doctor(&arguments, &[("EVERLOG_KAFKA__PREFIX", "prod.")])?;
    ensure!(output.status.success(), "{output:?}");
    let archive = Archive::read(&bundle)?;
    ensure!(archive.text("release.txt")?.starts_with(env!("CARGO_PKG_VERSION")));
    ensure!(archive.text("settings.toml")?.contains("prefix = \"prod.\""));
    ensure!(archive.text("variables.txt")?.contains("EVERLOG_KAFKA__PREFIX\n"));
    ensure!(archive.text("machine.txt")?.contains("\"cores\""));
    ensure!(archive.text("findings.jsonl")?.contains("one runs on it, and is ready"));
    ensure!(archive.text("metrics.txt")?.contains("everlog_ready 1\n"));
    ensure!(archive.text("ready.txt")?.contains("ready"));
    ensure!(archive.text("log-1.txt")?.contains("serving"));
    let missing = archive.text("missing.txt")?;
    ensure!(missing.contains("log-2.txt: /nowhere cannot be read (--logs)"), "{missing}");
    let again = doctor(&["--data-dir", &data.display().to_string(), "--bundle", &file], &[])?;
    ensure!(again.status.code() == Some(1), "nothing is overwritten: {again:?}");
    drop(server);
    Ok(())
}

/// A secret of each kind.
const SECRETS: [(&str, &str); 11] = [
    ("cluster secret", "canary-of-the-cluster-1"),
    ("key of a node", "canary/key+of/node//1234"),
    ("key of the server", "canary/key+of/server/567"),
    ("password of SASL", "canary-sasl \"quoted\\\" word"),
    ("password of a property", "canary-keystore-word"),
    ("password of the registry", "canary-registry-word"),
    ("hash of an API key", "0123456789abcdefcanary0123456789"),
    ("API key", "canary-api-key-0001"),
    ("key of task tokens", "ca0a51ca0a51ca0a51ca0a51ca0a51ca0a51ca0a51ca0a51ca0a51ca0a51ca0a"),
    ("query of an issuer", "token=canary-issuer-word"),
    ("header of a collector", "canary-collector-word"),
];

fn secret(kind: &str) -> &'static str {
    SECRETS.iter().find(|(name, _)| *name == kind).map_or("", |(_, secret)| secret)
}

/// Each in the place that its setting names, and all of them in a log that should not have them. Returns the variables.
fn hide_in(dir: &Path) -> anyhow::Result<Vec<(&'static str, String)>> {
    let path = |name: &str| dir.join(name).display().to_string();
    let pem = |line: &str| format!("-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----\n");
    let files = [
        ("secret", format!("{}\n", secret("cluster secret"))),
        ("node.key", pem(secret("key of a node"))),
        ("server.key", pem(secret("key of the server"))),
        ("kafka.properties", format!("# for the brokers\nsasl.password={}\n", secret("password of SASL"))),
        ("api-keys", format!("ann orders:write {}\n", secret("hash of an API key"))),
        ("token-keys", format!("{}\n", secret("key of task tokens"))),
        ("certificate", String::new()),
    ];
    for (name, text) in files {
        std::fs::write(path(name), text)?;
    }
    let line = |(kind, secret): (&str, &str)| format!("{{\"{kind}\":{secret:?}}}\n{secret}\n");
    std::fs::write(path("log"), SECRETS.map(line).concat())?;
    Ok(vec![
        ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1".to_owned()),
        ("EVERLOG_KAFKA__CALL_TIMEOUT_MS", "1000".to_owned()),
        ("EVERLOG_KAFKA__PROPERTIES", format!("ssl.keystore.password={}", secret("password of a property"))),
        ("EVERLOG_KAFKA__PROPERTIES_FILE", path("kafka.properties")),
        ("EVERLOG_CLUSTER__SECRET_FILE", path("secret")),
        ("EVERLOG_CLUSTER__CERTIFICATE_FILE", path("certificate")),
        ("EVERLOG_CLUSTER__KEY_FILE", path("node.key")),
        ("EVERLOG_CLUSTER__CA_FILE", path("certificate")),
        ("EVERLOG_TLS__CERTIFICATE_FILE", path("certificate")),
        ("EVERLOG_TLS__KEY_FILE", path("server.key")),
        ("EVERLOG_TOKENS__KEY_FILE", path("token-keys")),
        ("EVERLOG_AUTH__ENABLED", "true".to_owned()),
        ("EVERLOG_AUTH__API_KEYS_FILE", path("api-keys")),
        ("EVERLOG_AUTH__JWKS", format!("https://127.0.0.1:1/keys?{}", secret("query of an issuer"))),
        ("EVERLOG_REGISTRY__URL", format!("http://ann:{}@127.0.0.1:1", secret("password of the registry"))),
        ("EVERLOG_API_KEY", secret("API key").to_owned()),
        ("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization={}", secret("header of a collector"))),
    ])
}

#[test]
fn no_secret_of_any_kind_is_in_any_byte_of_a_bundle() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let variables = hide_in(dir.path())?;
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let output = doctor(&["--bundle", &path("bundle.tar.gz"), "--logs", &path("log")], &variables)?;
    let archive = Archive::read(Path::new(&path("bundle.tar.gz"))).with_context(|| format!("{output:?}"))?;
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    for (kind, secret) in SECRETS {
        let escaped = format!("{secret:?}");
        for secret in [secret, escaped.trim_matches('"')] {
            ensure!(!archive.has(secret), "the {kind} is in it: {:?}", archive.entries);
            ensure!(!said.concat().contains(secret), "the {kind} is printed: {said:?}");
        }
    }
    let canary = archive.has("canary-") || archive.has("canary/");
    ensure!(!canary, "a part of one is in it: {:?}", archive.entries);
    let log = archive.text("log-1.txt")?;
    ensure!(log.matches("(hidden)").count() >= 2 * SECRETS.len(), "the rest of the log is there: {log}");
    ensure!(archive.text("missing.txt")?.contains("findings.jsonl"), "the brokers do not answer");
    ensure!(archive.text("settings.toml")?.contains("ssl.keystore.password=(hidden)"));
    Ok(())
}
