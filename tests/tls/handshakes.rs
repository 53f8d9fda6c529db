//! Handshakes that were changed at random: none stops the node, and clients come in beside them.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use everlog_tests::{page, patience};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::inputs::{BATCH, Inputs, batches, of_hex};
use crate::secured::Secured;

/// TLS, in its records of an alert and of a handshake, or the refusal of what is none over HTTP/1.1 and HTTP/2.
fn is_an_answer(answer: &[u8]) -> bool {
    let is_http2 = answer.get(3) == Some(&4);
    answer.is_empty() || matches!(answer[0], 21 | 22) || answer.starts_with(b"HTTP/1.1 400") || is_http2
}

/// Sends it, and reads the answer to its end. A connection that is reset was answered.
async fn say(address: SocketAddr, input: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut stream, mut answer) = (TcpStream::connect(address).await?, Vec::new());
    if stream.write_all(input).await.is_ok() && stream.shutdown().await.is_ok() {
        let _reset = stream.read_to_end(&mut answer).await;
    }
    Ok(answer)
}

#[tokio::test]
async fn handshakes_that_were_changed_are_refused_and_clients_come_in_beside_them() -> anyhow::Result<()> {
    let secured = Secured::start().await?;
    let mut inputs = Inputs::of(include_str!("../fuzz/corpus/handshakes").lines().map(of_hex).collect());
    for batch in 0..batches() {
        for number in 0..BATCH {
            let input = inputs.next();
            let address = [secured.server.address(), secured.http_address][number % 2];
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            let answer =
                patience::answer("an end", say(address, &input)).await?.with_context(|| hex.clone())?;
            ensure!(is_an_answer(&answer), "{address}: {hex}: {answer:?}");
        }
        secured.calls()?.served().await.with_context(|| format!("behind {} inputs", (batch + 1) * BATCH))?;
        ensure!(secured.face()?.get("/subjects").await?.starts_with("HTTP/1.1 200"));
        let panics = page::metric(secured.server.metrics_address(), "service_panics").await?.unwrap_or(0.0);
        ensure!(panics == 0.0, "{panics} panics within {} inputs", (batch + 1) * BATCH);
    }
    Ok(())
}
