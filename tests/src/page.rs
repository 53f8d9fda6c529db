//! Pages of a server's metrics address, fetched as an operator's tools fetch them.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Status and body of a page such as `/metrics`.
///
/// # Errors
/// Nobody answers, or not with HTTP.
pub async fn get(address: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    ask(address, &format!("GET {path}"), &[], "").await
}

/// The same with a method before the path, headers, and a body.
///
/// # Errors
/// As [`get`].
pub async fn ask(
    address: SocketAddr,
    what: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let mut request = format!("{what} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if headers.iter().all(|(name, _)| *name != "Host") {
        request.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    // Whoever refuses a body may hang up before it has read all of it.
    let sent = stream.write_all(format!("{request}\r\n{body}").as_bytes()).await;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer)?;
    if answer.is_empty() {
        sent?;
        read?;
    }
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head and a body")?;
    let status = head.split(' ').nth(1).context("an answer has a status")?.parse()?;
    Ok((status, body.to_owned()))
}

/// The sum of a metric over all its labels; none where the page does not have it.
///
/// # Errors
/// As [`get`].
pub async fn metric(address: SocketAddr, name: &str) -> anyhow::Result<Option<f64>> {
    let (_, page) = get(address, "/metrics").await?;
    let lines = page.lines().filter_map(|line| line.strip_prefix(name));
    let values = lines.filter(|rest| rest.starts_with(['{', ' ']));
    let values: Vec<f64> = values.filter_map(|rest| rest.rsplit(' ').next()?.parse().ok()).collect();
    Ok((!values.is_empty()).then(|| values.iter().sum()))
}
