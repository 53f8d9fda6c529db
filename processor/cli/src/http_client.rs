//! A client for a node's HTTP, which needs no TLS and no keep-alive.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use everlog_config::node_file::INSTANCE_HEADER;
use serde_json::Value;

/// How long connecting may take, and each part of a response.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a response.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The body; null where it is no JSON.
    pub body: Value,
    /// The instance of the node, in responses of its health check.
    pub instance: Option<String>,
}

/// Gets a page.
///
/// # Errors
/// Nobody listens there, or it is not HTTP.
pub fn get(address: SocketAddr, path: &str) -> Result<HttpResponse> {
    ask(address, "GET", path, "")
}

/// Posts a JSON text.
///
/// # Errors
/// As [`get`].
pub fn post(address: SocketAddr, path: &str, body: &str) -> Result<HttpResponse> {
    ask(address, "POST", path, body)
}

/// The error in a response.
pub fn complaint(status: u16, body: &Value) -> String {
    match body["error"].as_str().or_else(|| body["message"].as_str()) {
        Some(error) => format!("{error} (status {status})"),
        None => format!("status {status}"),
    }
}

fn ask(address: SocketAddr, verb: &str, path: &str, body: &str) -> Result<HttpResponse> {
    let away = || {
        format!(
            "nobody serves HTTP at {address}; name a node that runs with an embedded log (--http-address), or the \
             brokers of a log on Kafka (--kafka-bootstrap, --config)"
        )
    };
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN).with_context(away)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    let request = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).with_context(away)?;
    let mut bytes = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
    read.with_context(|| format!("the node at {address} does not answer"))?;
    parse(&bytes).with_context(|| format!("what serves at {address} is no node of ours"))
}

fn parse(bytes: &[u8]) -> Result<HttpResponse> {
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("an answer without a head")?;
    let head = std::str::from_utf8(&bytes[..split])?;
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    ensure!(first.starts_with("HTTP/1."), "it does not speak HTTP");
    let status = first.split(' ').nth(1).context("an answer without a status")?.parse()?;
    let (mut body, mut instance) = (bytes[split + 4..].to_vec(), None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked") {
            body = joined(&body)?;
        } else if name.eq_ignore_ascii_case("content-length") {
            ensure!(value.trim().parse() == Ok(body.len()), "an answer that ends too early");
        } else if name.eq_ignore_ascii_case(INSTANCE_HEADER) {
            instance = Some(value.trim().to_owned());
        }
    }
    Ok(HttpResponse { status, body: serde_json::from_slice(&body).unwrap_or_default(), instance })
}

/// The chunks of a body, joined.
fn joined(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").context("a chunk without a length")?;
        let length = std::str::from_utf8(&rest[..end])?;
        let length = usize::from_str_radix(length.split(';').next().unwrap_or_default().trim(), 16)?;
        if length == 0 {
            return Ok(body);
        }
        let Some((chunk, left)) = rest[end + 2..].split_at_checked(length) else {
            bail!("a chunk ends too early")
        };
        body.extend_from_slice(chunk);
        rest = left.strip_prefix(b"\r\n").context("a chunk without an end")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whole_or_in_chunks() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"end\": 42}";
        let chunked =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{\"en\r\n7\r\nd\": 42}\r\n0\r\n\r\n";
        for answer in [&whole[..], &chunked[..]] {
            let HttpResponse { status, body, .. } = parse(answer).expect("an answer");
            assert_eq!((status, body["end"].as_u64()), (200, Some(42)));
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_is_none() {
        for bad in [
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"end\": 42}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n40\r\n{}",
            "HTTP/1.1 200",
            "SSH-2.0\r\n\r\n",
            "",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn nobody_there_is_told_with_the_way_out() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let error = format!("{:#}", get(address, "/events").expect_err("nobody listens"));
        assert!(error.contains("--kafka-bootstrap"), "{error}");
    }
}
