//! The way to other nodes: one connection to each, which carries many calls at once and breaks soon when nobody is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use everlog_temporal::Broken;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::net::TcpStream;

use super::Status;

/// What nodes show each other.
pub const SECRET_HEADER: &str = "everlog-secret";
/// How long a node may take to answer whether it is there.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// How often a connection shows that it lives, and how long it has for that: calls end with it.
pub const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// See [`ALIVE_EVERY`].
pub const ALIVE_WITHIN: Duration = Duration::from_secs(2);
/// Bytes under way in one answer, and in all of a connection, before their reader takes some.
pub const STREAM_WINDOW: u32 = 1 << 20;
/// See [`STREAM_WINDOW`].
pub const CONNECTION_WINDOW: u32 = 16 << 20;
/// Bytes of an answer to what nodes ask each other; a task may be as large as a message of the API, and more.
const ANSWER_BYTES_MAX: usize = 64 << 20;

type Sender = SendRequest<Full<Bytes>>;

/// The connections.
pub struct Links {
    secret: Option<HeaderValue>,
    links: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<Sender>>>>>,
}

impl Links {
    /// None yet; each call shows the secret.
    pub fn new(secret: Option<HeaderValue>) -> Self {
        Self { secret, links: Mutex::default() }
    }

    /// True where a call may come from another node.
    pub fn trusts<T>(&self, request: &Request<T>) -> bool {
        // Both are the operator's own; how long the comparison takes tells at most their common beginning, and a secret of
        // random bytes is not guessed so.
        self.secret.as_ref().is_none_or(|secret| request.headers().get(SECRET_HEADER) == Some(secret))
    }

    /// Whether nobody listens at an address: the process is gone, though its machine is there.
    pub async fn refuses(address: &str) -> bool {
        let connected = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await;
        matches!(connected, Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// Brings a call to an address; completes with the beginning of its answer.
    ///
    /// # Errors
    /// [`Broken`]: whether the call may have reached somebody.
    pub async fn call(
        &self,
        address: &str,
        mut request: Request<Bytes>,
    ) -> Result<Response<Incoming>, Broken> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let uri: Uri = format!("http://{address}{path}").parse().map_err(|_no_address| Broken::Unsent)?;
        *request.uri_mut() = uri;
        request.headers_mut().remove(HOST);
        if let Some(secret) = &self.secret {
            request.headers_mut().insert(SECRET_HEADER, secret.clone());
        }
        let mut sender = self.sender(address).await.ok_or(Broken::Unsent)?;
        sender.ready().await.map_err(|_closed| Broken::Unsent)?;
        let sent = sender.try_send_request(request.map(Full::new)).await;
        sent.map_err(|mut error| match error.take_message() {
            Some(_unsent) => Broken::Unsent,
            None => Broken::Unanswered,
        })
    }

    /// Asks a node something, and waits for all of the answer.
    ///
    /// # Errors
    /// [`Broken`]; an answer that is not one counts as none.
    pub async fn ask(
        &self,
        address: &str,
        path: &'static str,
        question: &impl Message,
        within: Duration,
    ) -> Result<Bytes, Broken> {
        let request = Request::builder().method(Method::POST).uri(path).body(question.encode_to_vec().into());
        let Ok(request) = request else { return Err(Broken::Unsent) };
        let asked = async {
            let response = self.call(address, request).await?;
            if !response.status().is_success() {
                return Err(Broken::Unanswered);
            }
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok(body.map_err(|_broke_off| Broken::Unanswered)?.to_bytes())
        };
        tokio::time::timeout(within, asked).await.unwrap_or(Err(Broken::Unanswered))
    }

    /// The instance of a node, if it is there.
    pub async fn instance(&self, name: &str, address: &str) -> Option<String> {
        let answer = self.ask(address, "/node/alive", &(), ANSWERS_WITHIN).await.ok()?;
        let (told, instance) = std::str::from_utf8(&answer).ok()?.split_once('\n')?;
        (told == name).then(|| instance.to_owned())
    }

    /// What a node tells of itself.
    pub async fn status(&self, address: &str) -> Option<Status> {
        let answer = self.ask(address, "/node/status", &(), ANSWERS_WITHIN).await.ok()?;
        serde_json::from_slice(&answer).ok()
    }

    async fn sender(&self, address: &str) -> Option<Sender> {
        let link = {
            let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(links.entry(address.to_owned()).or_default())
        };
        let mut sender = link.lock().await;
        if let Some(open) = sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Some(open.clone());
        }
        *sender = tokio::time::timeout(CONNECT_WITHIN, connect(address)).await.ok().flatten();
        sender.clone()
    }
}

async fn connect(address: &str) -> Option<Sender> {
    let stream = TcpStream::connect(address).await.ok()?;
    // A call is not kept back until the one before it is acknowledged.
    stream.set_nodelay(true).ok()?;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.ok()?;
    let address = address.to_owned();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(address, %error, "the connection to a node has ended");
        }
    });
    Some(sender)
}
