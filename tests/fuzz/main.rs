//! What anybody may send, changed at random: tokens, queries, messages, commands, heads of HTTP, headers of calls. Nothing of it
//! panics, stops the server, or gets an answer that is none. Handshakes of TLS are in `tests/tls`, what is read of identities is in
//! `connectors/auth/src/fuzz.rs`.
//!
//! Inputs are those of `corpus/`, a file for each target with an input a line, changed by strategies of proptest. What was found
//! to fail is put there.

mod headers;
mod inputs;
mod targets;

use anyhow::{Context, ensure};
use everlog_tests::server::Server;
use everlog_tests::{page, patience};

use crate::inputs::{BATCH, Inputs, batches};
use crate::targets::{Probe, Target};

/// Feeds a target with so many inputs.
async fn feed(target: Target) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let probe = Probe::new(&server).await?;
    let mut inputs = Inputs::of(target.corpus());
    for batch in 0..batches() {
        for _ in 0..BATCH {
            let input = inputs.next();
            let fault = patience::answer("an answer", target.feed(&server, &probe, &input)).await?;
            let shown = String::from_utf8_lossy(&input).into_owned();
            ensure!(fault.is_none(), "{target:?} {shown:?}: {fault:?}");
        }
        let fed = (batch + 1) * BATCH;
        probe.works().await.with_context(|| format!("{target:?}, behind {fed} inputs"))?;
        let panics = page::metric(server.metrics_address(), "service_panics").await?.unwrap_or(0.0);
        ensure!(panics == 0.0, "{target:?}: {panics} panics within {fed} inputs");
    }
    Ok(())
}

#[tokio::test]
async fn tokens_that_were_changed_open_nothing() -> anyhow::Result<()> {
    feed(Target::Tokens).await
}

#[tokio::test]
async fn queries_are_answered_or_refused() -> anyhow::Result<()> {
    feed(Target::Queries).await
}

#[tokio::test]
async fn messages_of_every_rpc_are_answered_or_refused() -> anyhow::Result<()> {
    feed(Target::Messages).await
}

#[tokio::test]
async fn commands_are_taken_or_refused() -> anyhow::Result<()> {
    feed(Target::Commands).await
}

#[tokio::test]
async fn heads_of_http_are_answered_or_the_connection_ends() -> anyhow::Result<()> {
    feed(Target::Heads).await
}
