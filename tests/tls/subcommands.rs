//! The subcommands that speak HTTP with a node, over TLS.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use everlog_tests::certificates::Authority;
use everlog_tests::server::binary;

use crate::secured::Secured;

/// What a subcommand said, and how it ended.
pub fn run(words: &[&str], variables: &[(&str, &Path)]) -> anyhow::Result<(Option<i32>, String, String)> {
    let mut command = Command::new(binary()?);
    command.args(words).envs(variables.iter().copied()).env("EVERLOG_LOGS__FORMAT", "json");
    let output = command.output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.code(), text(output.stdout), text(output.stderr)))
}

#[tokio::test]
async fn commands_are_sent_and_topics_read_over_tls() -> anyhow::Result<()> {
    let secured = Secured::start().await?;
    let (authority, url) = (secured.authority_file(), format!("https://{}", secured.server.http_address()));
    let ca_file = authority.to_str().context("a path")?;
    let start = ["start", "--workflow-type", "Order", "--task-queue", "orders"];
    let send = ["command", "send", "--workflow-id", "order-1", "--reply", "--http-address", &url];
    let send = [&send[..], &["--ca-file", ca_file], &start].concat();
    let (code, _, said) = run(&send, &[])?;
    ensure!(code == Some(0), "{said}");
    let export = ["events", "export", "--http-address", &url];
    let (code, events, said) = run(&export, &[("EVERLOG_CA_FILE", &authority)])?;
    ensure!(code == Some(0) && events.contains("WorkflowExecutionStarted"), "{events} {said}");
    let check = ["schemas", "check", "--registry", &url, "--ca-file", ca_file];
    let (code, ids, said) = run(&check, &[])?;
    ensure!(code == Some(0) && ids.contains("everlog.events-value"), "{ids} {said}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_told_from_one_that_is_away() -> anyhow::Result<()> {
    let secured = Secured::start().await?;
    let address = secured.server.http_address();
    let other = secured.path().join("other.pem");
    std::fs::write(&other, Authority::new("other").certificate())?;
    let port = address.port();
    for (url, authority, expected) in [
        (format!("https://{address}"), Some(&other), "UnknownIssuer"),
        (format!("https://{address}"), Some(&other), "--ca-file"),
        (format!("https://{}", secured.server.address()), Some(&secured.authority_file()), "--ca-file"),
        (format!("http://{address}"), None, "this port speaks TLS"),
        (format!("https://{}", secured.server.metrics_address()), Some(&other), "--ca-file"),
        (format!("https://127.0.0.1:{port}"), Some(&other), "no node serves HTTP at"),
        (format!("https://{address}"), Some(&secured.path().join("away.pem")), "away.pem cannot be read"),
        (format!("https://{address}"), Some(&secured.path().join("server.key")), "holds no certificate"),
    ] {
        let variables: Vec<_> =
            authority.map(|file| ("EVERLOG_CA_FILE", file.as_path())).into_iter().collect();
        let (code, _, said) = run(&["events", "export", "--http-address", &url], &variables)?;
        ensure!(code == Some(1) && said.contains(expected), "{url} {expected}: {said}");
        ensure!(said.lines().count() == 1, "{said}");
    }
    Ok(())
}
