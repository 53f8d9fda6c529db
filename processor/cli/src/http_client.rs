//! A client for the HTTP of one node. It uses no TLS and no proxy, and blocks.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use everlog_config::node_file::INSTANCE_HEADER;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

/// How long connecting may take, and each wait for more of a response.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Bytes that are read of a response.
const ANSWER_BYTES_MAX: usize = 256 << 20;

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
/// No connection is accepted there, or the response is not HTTP.
pub fn get(address: SocketAddr, path: &str) -> Result<HttpResponse> {
    ask(address, |http, base| http.get(base + path))
}

/// Posts a JSON text.
///
/// # Errors
/// As [`get`].
pub fn post(address: SocketAddr, path: &str, body: String) -> Result<HttpResponse> {
    ask(address, |http, base| http.post(base + path).header("content-type", "application/json").body(body))
}

fn ask(address: SocketAddr, request: impl FnOnce(&Client, String) -> RequestBuilder) -> Result<HttpResponse> {
    let http = everlog_registry::http_client().connect_timeout(CONNECT_WITHIN).read_timeout(ANSWER_WITHIN);
    // Without TLS, no certificates of the system are needed.
    let http = http.no_proxy().redirect(Policy::none()).tls_certs_only([]).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(exchange(request(&http, format!("http://{address}")))).map_err(|error| {
        let what = match error.is_connect() {
            true => format!(
                "no node serves HTTP at {address}; name a node that runs with an embedded log (--http-address), or the \
                 brokers of a log on Kafka (--kafka-bootstrap, --config)"
            ),
            false if error.is_timeout() => format!("the node at {address} does not answer"),
            false => format!("the server at {address} is no node of ours"),
        };
        anyhow::Error::from(error).context(what)
    })
}

async fn exchange(request: RequestBuilder) -> Result<HttpResponse, reqwest::Error> {
    let mut response = request.send().await?;
    let status = response.status().as_u16();
    let instance = response.headers().get(INSTANCE_HEADER).and_then(|value| value.to_str().ok());
    let instance = instance.map(str::to_owned);
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(HttpResponse { status, body: serde_json::from_slice(&body).unwrap_or_default(), instance })
}

/// The error in a response.
pub fn complaint(status: u16, body: &Value) -> String {
    match body["error"].as_str().or_else(|| body["message"].as_str()) {
        Some(error) => format!("{error} (status {status})"),
        None => format!("status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// The response of a server that sends `answer` and closes the connection.
    fn answered(answer: &str) -> Result<HttpResponse> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let answer = answer.to_owned();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let _ = stream.read(&mut [0; 4_096]);
            stream.write_all(answer.as_bytes()).expect("it is read");
        });
        let response = get(address, "/events");
        server.join().expect("no panic");
        response
    }

    #[test]
    fn a_response_has_its_status_its_json_and_the_instance() {
        let head = format!("HTTP/1.1 503 Service Unavailable\r\n{INSTANCE_HEADER}: 7\r\n");
        let body = "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"en\r\n7\r\nd\": 42}\r\n0\r\n\r\n";
        let HttpResponse { status, body, instance } = answered(&(head + body)).expect("a response");
        assert_eq!((status, body["end"].as_u64(), instance.as_deref()), (503, Some(42), Some("7")));
    }

    #[test]
    fn a_response_that_is_cut_off_or_not_http_is_an_error() {
        for bad in ["HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"end\": 42}", "SSH-2.0-x\r\n\r\n", ""] {
            let error = answered(bad).expect_err(bad);
            assert!(error.to_string().contains("is no node of ours"), "{bad}: {error:#}");
        }
    }

    #[test]
    fn a_refused_connection_is_told_with_the_way_out() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let error = get(address, "/events").expect_err("it is refused");
        assert!(format!("{error:#}").contains("--kafka-bootstrap"), "{error:#}");
    }
}
