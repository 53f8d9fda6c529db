//! `everlog dev --tls`: what it makes, keeps and prints.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use everlog_tests::server::{binary, free_address};

use crate::client::Client;
use crate::subcommands::run;

/// A server, and its banner.
struct Development {
    process: Child,
    addresses: [SocketAddr; 3],
    banner: String,
}

impl Development {
    fn start(data_dir: &Path, addresses: [SocketAddr; 3]) -> anyhow::Result<Self> {
        let mut command = Command::new(binary()?);
        command.args(["dev", "--tls", "--data-dir"]).arg(data_dir);
        for (option, address) in ["--address", "--metrics-address", "--http-address"].iter().zip(addresses) {
            command.arg(option).arg(address.to_string());
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(process.stdout.take().context("it is piped")?).lines();
        let mut started = Self { process, addresses, banner: String::new() };
        for line in lines {
            let line = line?;
            started.banner += &(line.clone() + "\n");
            if line.contains("Ctrl-C") {
                return Ok(started);
            }
        }
        anyhow::bail!("no banner: {}", started.banner)
    }

    /// What stands behind a word on a line of the banner.
    fn told(&self, word: &str) -> anyhow::Result<&str> {
        let found = self.banner.lines().find_map(|line| line.trim_start().strip_prefix(word));
        Ok(found.with_context(|| format!("no {word}: {}", self.banner))?.trim())
    }
}

impl Drop for Development {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test]
async fn it_makes_certificates_once_and_tells_clients_how_to_trust_them() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let data_dir = dir.path().join("data");
    let (mut shown, addresses) = (Vec::new(), [free_address()?, free_address()?, free_address()?]);
    for _ in 0..2 {
        let server = Development::start(&data_dir, addresses)?;
        let [calls, _, face] = server.addresses;
        let authority = server.told("trust")?;
        let client = Client::new(calls, &std::fs::read_to_string(authority)?, "h2")?;
        client.served().await?;
        shown.push((authority.to_owned(), std::fs::read(authority)?));
        ensure!(server.told("start")?.contains(&format!("--tls-ca-path {authority}")), "{}", server.banner);
        let events: Vec<_> = server.told("events")?.split(' ').skip(1).collect();
        let ended = [&events[..], &["--limit", "0"]].concat();
        let (code, _, said) = run(&ended, &[])?;
        ensure!(code == Some(0), "{ended:?}: {said}");
        ensure!(server.told("schemas")?.starts_with(&format!("https://{face}/")), "{}", server.banner);
    }
    ensure!(shown[0] == shown[1], "it is kept");
    let refused = ["dev", "--tls", "--data-dir", data_dir.to_str().context("a path")?];
    let (code, _, said) = run(
        &refused,
        &[("EVERLOG_TLS__CERTIFICATE_FILE", Path::new("/c")), ("EVERLOG_TLS__KEY_FILE", Path::new("/k"))],
    )?;
    ensure!(code == Some(1) && said.contains("--tls"), "{said}");
    Ok(())
}
