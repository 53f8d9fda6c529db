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
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: everlog\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
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
