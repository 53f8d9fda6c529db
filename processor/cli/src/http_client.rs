//! A client for the HTTP of one node, over TLS where its address says so. It uses no proxy, and blocks.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use everlog_config::node_file::INSTANCE_HEADER;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, RequestBuilder, Url};
use serde_json::Value;

/// How long connecting may take, and each wait for more of a response.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Bytes that are read of a response.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Whom a client trusts, and who it is.
#[derive(Args, Clone, Debug, Default)]
pub struct HttpOptions {
    /// Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system].
    #[arg(long, value_name = "FILE", env = "EVERLOG_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// Send this API key or token; other users of this machine see arguments, but not the variable.
    #[arg(long, value_name = "KEY", env = "EVERLOG_API_KEY", hide_env_values = true)]
    pub api_key: Option<BearerKey>,
}

/// A key that is never shown.
#[derive(Clone)]
pub struct BearerKey(HeaderValue);

/// Where a node serves HTTP: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUrl(String);

/// A node, and how it is spoken with.
#[derive(Clone, Debug)]
pub struct HttpNode {
    url: NodeUrl,
    options: HttpOptions,
}

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

impl FromStr for BearerKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let header = HeaderValue::from_str(&format!("Bearer {}", text.trim()));
        let mut header = header.map_err(|_unprintable| "expected a line of printable characters")?;
        header.set_sensitive(true);
        Ok(Self(header))
    }
}

impl fmt::Debug for BearerKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("BearerKey(secret)")
    }
}

impl NodeUrl {
    /// The address of a node.
    pub fn new(address: SocketAddr, over_tls: bool) -> Self {
        Self(format!("{}://{address}", if over_tls { "https" } else { "http" }))
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for NodeUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse() {
            return Ok(Self::new(address, false));
        }
        let url = Url::parse(text).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && matches!(url.path(), "" | "/")
                && url.username().is_empty()
                && url.query().is_none()
        });
        let url = url.ok_or("expected an address such as 127.0.0.1:7234 or https://everlog.example:7234")?;
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl HttpOptions {
    /// A client with these options, for requests to `url`.
    ///
    /// # Errors
    /// The file of authorities cannot be read.
    pub fn client(&self, url: &str) -> Result<ClientBuilder> {
        let mut http = everlog_registry::http_client();
        if let Some(BearerKey(key)) = &self.api_key {
            http = http.default_headers(HeaderMap::from_iter([(AUTHORIZATION, key.clone())]));
        }
        if !url.starts_with("https:") {
            // Without TLS, no certificates of the system are needed.
            return Ok(http.tls_certs_only([]));
        }
        let Some(file) = &self.ca_file else { return Ok(http) };
        let shown = file.display();
        let pem = std::fs::read(file).with_context(|| format!("{shown} cannot be read (--ca-file)"))?;
        let authorities = Certificate::from_pem_bundle(&pem);
        let authorities = authorities.ok().filter(|authorities| !authorities.is_empty());
        Ok(http.tls_certs_only(
            authorities.with_context(|| format!("{shown} holds no certificate in PEM (--ca-file)"))?,
        ))
    }
}

impl HttpNode {
    /// The node at an address.
    pub fn new(url: NodeUrl, options: HttpOptions) -> Self {
        Self { url, options }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url.0
    }

    /// How it is spoken with.
    pub fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// Gets a page.
    ///
    /// # Errors
    /// No connection is accepted there, the server is not trusted, or the response is not HTTP.
    pub fn get(&self, path: &str) -> Result<HttpResponse> {
        self.ask(|http, base| http.get(base + path))
    }

    /// Posts a JSON text.
    ///
    /// # Errors
    /// As [`HttpNode::get`].
    pub fn post(&self, path: &str, body: String) -> Result<HttpResponse> {
        self.ask(|http, base| http.post(base + path).header("content-type", "application/json").body(body))
    }

    /// Gets a page of text, with its status.
    ///
    /// # Errors
    /// As [`HttpNode::get`].
    pub fn text(&self, path: &str) -> Result<(u16, String)> {
        let (status, _, body) = self.exchange(|http, base| http.get(base + path))?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    fn ask(&self, request: impl FnOnce(&Client, String) -> RequestBuilder) -> Result<HttpResponse> {
        let (status, instance, body) = self.exchange(request)?;
        Ok(HttpResponse { status, body: serde_json::from_slice(&body).unwrap_or_default(), instance })
    }

    fn exchange(&self, request: impl FnOnce(&Client, String) -> RequestBuilder) -> Result<RawResponse> {
        let (url, http) = (&self.url.0, self.options.client(&self.url.0)?);
        let http = http.connect_timeout(CONNECT_WITHIN).read_timeout(ANSWER_WITHIN);
        let http = http.no_proxy().redirect(Policy::none()).build()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(exchange(request(&http, url.clone()))).map_err(|error| {
            let what = match error.is_connect() {
                _any if is_of_tls(&error) => format!(
                    "no TLS with the server at {url}: its certificate must be for this name, and of an authority that \
                     --ca-file or the system names"
                ),
                true => format!(
                    "no node serves HTTP at {url}; name a node that runs with an embedded log (--http-address), or the \
                     brokers of a log on Kafka (--kafka-bootstrap, --config)"
                ),
                false if error.is_timeout() => format!("the node at {url} does not answer"),
                false => format!("the server at {url} is no node of ours"),
            };
            anyhow::Error::from(error).context(what)
        })
    }
}

/// The connection ended in its handshake.
fn is_of_tls(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if is_invalid(error) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error of input and output that is one of TLS. One may be wrapped in another, which is no source of it.
fn is_invalid(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| {
        error.kind() == io::ErrorKind::InvalidData || error.get_ref().is_some_and(|inner| is_invalid(inner))
    })
}

/// Status, instance and body.
type RawResponse = (u16, Option<String>, Vec<u8>);

async fn exchange(request: RequestBuilder) -> Result<RawResponse, reqwest::Error> {
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
    Ok((status, instance, body))
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
        let response = HttpNode::new(NodeUrl::new(address, false), HttpOptions::default()).get("/events");
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
        let node = HttpNode::new(NodeUrl::new(address, false), HttpOptions::default());
        let error = node.get("/events").expect_err("it is refused");
        assert!(format!("{error:#}").contains("--kafka-bootstrap"), "{error:#}");
    }

    #[test]
    fn a_node_is_named_by_address_or_url() {
        for (text, expected) in [
            ("127.0.0.1:7234", "http://127.0.0.1:7234"),
            ("[::1]:7234", "http://[::1]:7234"),
            ("http://localhost:7234", "http://localhost:7234"),
            ("https://everlog.example/", "https://everlog.example"),
        ] {
            assert_eq!(text.parse::<NodeUrl>().map(|url| url.to_string()).as_deref(), Ok(expected));
        }
        for bad in ["localhost:7234", "everlog", "ftp://x:1", "https://x/path", "https://ann:secret@x", ""] {
            assert!(bad.parse::<NodeUrl>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_sent_and_never_shown() {
        let key: BearerKey = "canary\n".parse().expect("a line");
        assert_eq!(key.0.as_bytes(), b"Bearer canary");
        let options = HttpOptions { api_key: Some(key), ..HttpOptions::default() };
        let shown = format!("{options:?} {:?}", options.client("http://127.0.0.1:1").expect("a client"));
        assert!(!shown.contains("canary"), "{shown}");
        assert!("two\nlines".parse::<BearerKey>().is_err());
    }
}
