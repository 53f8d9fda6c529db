//! The system gives a process less than it needs: it says so, at its start or at its end.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use everlog_tests::page;
use everlog_tests::patience;
use everlog_tests::server::{LOG, Server, binary};

#[test]
fn a_node_with_too_little_address_space_says_at_its_start_how_much_it_takes() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1500000 && exec \"$0\" \"$@\""]).arg(binary()?);
    command.args(["dev", "--address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0"]);
    command.args(["--http-address", "127.0.0.1:0", "--data-dir"]).arg(dir.path().join("data"));
    let ended = command.stdin(Stdio::null()).output().context("it can be started")?;
    let said = String::from_utf8(ended.stderr)?;
    ensure!(ended.status.code() == Some(1), "{:?}: {said}", ended.status);
    ensure!(said.lines().count() == 1 && said.contains("is limited to 1464 MiB"), "{said}");
    ensure!(said.contains("ulimit -v unlimited"), "no way out: {said}");
    Ok(())
}

#[tokio::test]
async fn a_node_that_gets_no_more_memory_says_so_before_it_ends() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("log");
    let variables = [
        (LOG, log.to_str().context("a path of letters")?),
        // What is asked for is taken from the system, and not from what was taken at the start.
        ("MIMALLOC_ARENA_RESERVE", "0"),
        ("MIMALLOC_DISALLOW_ARENA_ALLOC", "1"),
    ];
    let mut server = Server::start(&dir.path().join("data"), &variables).await?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).context("it has a size")?;
    let kib: u64 = size.trim().trim_end_matches(" kB").parse()?;
    let limit = format!("--as={}", (kib + 512) * 1_024);
    let limited = Command::new("prlimit").arg("--pid").arg(server.pid().to_string()).arg(limit).status()?;
    ensure!(limited.success(), "prlimit: {limited}");
    let large = format!(r#"{{"schema":"{}"}}"#, "x".repeat(1_900_000));
    let json = [("Content-Type", "application/json")];
    // It may end in the middle of an answer.
    let _ = page::ask(server.http_address(), "POST /subjects/s/versions", &json, &large).await;
    let ends = || !server.is_running();
    patience::until_blocking("the end of a node without memory", ends)?;
    let said = std::fs::read_to_string(&log)?;
    ensure!(said.contains("the system gives this process no more memory"), "{said}");
    Ok(())
}
