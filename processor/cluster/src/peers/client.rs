//! The client of other nodes: one HTTP/2 connection to each, for all calls. A dead connection is noticed within 3 s.
//! A silent node delays only calls to it, each by one attempt at most.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result as Outcome;
use bytes::Bytes;
use everlog_temporal::Broken;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::control_table::ControlTable;
use crate::peers::tls::{self, Tls};
use crate::status::Status;

/// The header with the secret of the nodes.
pub const SECRET_HEADER: &str = "everlog-secret";
/// How long a node may take to answer whether it lives.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
/// How long a node of the same name may take to answer on an overloaded machine. A mistake would make two nodes of
/// one name.
const NAMESAKE_WITHIN: Duration = Duration::from_secs(3);
/// How often it is asked meanwhile.
const NAMESAKE_EVERY: Duration = Duration::from_millis(100);
/// How long a node may take to send its status, which is only shown.
const STATUS_WITHIN: Duration = Duration::from_secs(2);
/// How long a refusal must last before it is logged: a node that stops refuses for a shorter time.
const TOLD_AFTER: Duration = Duration::from_secs(3);
/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// How often a connection is probed, and how long it may take to answer. Calls end with the connection.
pub const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// See [`ALIVE_EVERY`].
pub const ALIVE_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of one response that its reader has not read.
pub const STREAM_WINDOW: u32 = 256 << 10;
/// Bytes of all responses of a connection: as many as it can carry, so that a client which does not read delays no
/// other.
pub const CONNECTION_WINDOW: u32 = 1 << 30;
/// Bytes of a reply of a node. A task may be larger than a message of the API.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The reply to a request for a node's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusReply {
    /// Its status.
    Status(Status),
    /// It does not trust the caller.
    Refused,
    /// No reply, or one that cannot be read.
    Unreadable,
}

/// A connection, and whether it has carried a response.
#[derive(Clone)]
struct PeerSender {
    calls: SendRequest<Full<Bytes>>,
    has_answered: Arc<AtomicBool>,
}

/// How a node authenticates itself and others.
#[derive(Default)]
pub struct PeerAuth {
    secret: Option<HeaderValue>,
    tls: Option<Arc<Tls>>,
}

impl PeerAuth {
    /// `secret`: shown to other nodes, if set. `tls_files`: certificate, key and authorities, if nodes use TLS.
    /// `server_name`: the name in all certificates; empty where each has its host.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn read(
        secret: Option<HeaderValue>,
        tls_files: Option<[PathBuf; 3]>,
        server_name: &str,
    ) -> Outcome<Self> {
        let tls = tls_files.map(|files| Tls::read(files, server_name)).transpose()?;
        Ok(Self { secret, tls: tls.map(Arc::new) })
    }

    /// The certificates, if nodes use TLS.
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.as_ref()
    }
}

/// The connections.
pub struct PeerClient {
    trust: PeerAuth,
    links: Mutex<HashMap<String, Arc<Peer>>>,
    refusals: Arc<Refusals>,
    ends: watch::Sender<()>,
}

/// The connection to one node.
#[derive(Default)]
struct Peer(tokio::sync::Mutex<Line>);

#[derive(Default)]
struct Line {
    sender: Option<PeerSender>,
    /// When the latest failed attempt ended.
    failed: Option<Instant>,
}

/// Why this node and those at these addresses do not trust each other.
#[derive(Default)]
struct Refusals(Mutex<BTreeMap<String, PeerRefusal>>);

struct PeerRefusal {
    why: String,
    since: Instant,
    is_caught_up: bool,
}

impl Refusals {
    fn now(&self) -> MutexGuard<'_, BTreeMap<String, PeerRefusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node that stops closes connections as well, so only a lasting refusal is logged.
    fn note(&self, address: &str, why: String) {
        let mut now = self.now();
        let new = || PeerRefusal { why: why.clone(), since: Instant::now(), is_caught_up: false };
        let known = now.entry(address.to_owned()).or_insert_with(new);
        if known.why != why {
            *known = new();
        }
        if !known.is_caught_up && known.since.elapsed() >= TOLD_AFTER {
            known.is_caught_up = true;
            tracing::warn!(address, why, "peers do not trust each other");
        }
    }

    fn forget(&self, address: &str) {
        if self.now().remove(address).is_some_and(|known| known.is_caught_up) {
            tracing::info!(address, "peers trust each other");
        }
    }
}

impl PeerClient {
    /// A client without connections.
    pub fn new(trust: PeerAuth) -> Self {
        let (links, refusals, (ends, _)) = (Mutex::default(), Arc::default(), watch::channel(()));
        Self { trust, links, refusals, ends }
    }

    /// True where a request may come from another node: it has this node's secret, or none where this node has none.
    /// A node with a secret refuses nodes without one, because only a refused node can log why.
    pub fn trusts<T>(&self, request: &Request<T>) -> bool {
        // Both secrets are the operator's. The comparison leaks at most the length of their common prefix, and random
        // bytes cannot be guessed by that.
        request.headers().get(SECRET_HEADER) == self.trust.secret.as_ref()
    }

    /// The certificates, if nodes use TLS.
    pub fn tls(&self) -> Option<&Tls> {
        self.trust.tls.as_deref()
    }

    /// Why the node at an address and this one do not trust each other, by the latest attempt.
    pub fn refusal(&self, address: &str) -> Option<String> {
        self.refusals.now().get(address).map(|refusal| refusal.why.clone())
    }

    /// Changes when a connection ends: the earliest sign of a dead node.
    pub fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    /// Whether nobody listens at an address: the process is gone, and its machine lives.
    pub async fn refuses(address: &str) -> bool {
        let connected = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await;
        matches!(connected, Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// Whether a node is reached: its open connection has carried a response, or it answers now, or it refuses this
    /// node.
    pub async fn reaches(&self, name: &str, address: &str) -> bool {
        let is_open =
            |sender: &PeerSender| !sender.calls.is_closed() && sender.has_answered.load(Ordering::Relaxed);
        if self.link(address).0.lock().await.sender.as_ref().is_some_and(is_open) {
            return true;
        }
        self.instance(name, address).await.is_some() || self.refusal(address).is_some()
    }

    /// Sends a request to an address. Returns the head of the response.
    ///
    /// # Errors
    /// [`Broken`]: whether the request may have reached the node.
    pub async fn call(
        &self,
        address: &str,
        mut request: Request<Bytes>,
    ) -> Result<Response<Incoming>, Broken> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let uri: Uri = format!("http://{address}{path}").parse().map_err(|_no_address| Broken::Unsent)?;
        *request.uri_mut() = uri;
        request.headers_mut().remove(HOST);
        if let Some(secret) = &self.trust.secret {
            request.headers_mut().insert(SECRET_HEADER, secret.clone());
        }
        let mut sender = self.sender(address).await.ok_or(Broken::Unsent)?;
        sender.calls.ready().await.map_err(|_closed| Broken::Unsent)?;
        let sent = sender.calls.try_send_request(request.map(Full::new)).await;
        let response = sent.map_err(|mut error| match error.take_message() {
            Some(_unsent) => Broken::Unsent,
            None => Broken::Unanswered,
        })?;
        sender.has_answered.store(true, Ordering::Relaxed);
        if response.status() == StatusCode::UNAUTHORIZED {
            self.refusals.note(address, "it has another secret than this node (cluster.secret_file)".into());
            return Err(Broken::Unsent);
        }
        self.refusals.forget(address);
        Ok(response)
    }

    /// Sends a message to a node and returns its whole reply.
    ///
    /// # Errors
    /// [`Broken`]; an error status counts as no reply.
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

    /// Sends a message to the node of this name; none where there is no reply.
    pub async fn ask_node(
        &self,
        control: &ControlTable,
        node: &str,
        path: &'static str,
        question: &impl Message,
        within: Duration,
    ) -> Option<Bytes> {
        let address = control.address_of(node)?;
        self.ask(&address, path, question, within).await.ok()
    }

    /// The instance of a node, if it answers.
    pub async fn instance(&self, name: &str, address: &str) -> Option<String> {
        let answer = self.ask(address, "/node/alive", &(), ANSWERS_WITHIN).await.ok()?;
        let (told, instance) = std::str::from_utf8(&answer).ok()?.split_once('\n')?;
        (told == name).then(|| instance.to_owned())
    }

    /// The instance of a node of this node's name. A slow node is asked again, unless nobody listens at its address.
    pub async fn instance_of_namesake(&self, name: &str, address: &str) -> Option<String> {
        let asked = async {
            loop {
                if let Some(instance) = self.instance(name, address).await {
                    return Some(instance);
                }
                if let Ok(Err(_)) = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
                    return None;
                }
                tokio::time::sleep(NAMESAKE_EVERY).await;
            }
        };
        tokio::time::timeout(NAMESAKE_WITHIN, asked).await.ok().flatten()
    }

    /// The status of the node at an address.
    pub async fn status(&self, address: &str) -> StatusReply {
        let asked = async {
            let request =
                Request::builder().method(Method::POST).uri("/node/status").body(Bytes::new()).ok()?;
            let Ok(response) = self.call(address, request).await else {
                return self.refusal(address).map(|_| StatusReply::Refused);
            };
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.ok()?.to_bytes();
            serde_json::from_slice(&body).ok().map(StatusReply::Status)
        };
        tokio::time::timeout(STATUS_WITHIN, asked).await.ok().flatten().unwrap_or(StatusReply::Unreadable)
    }

    fn link(&self, address: &str) -> Arc<Peer> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(links.entry(address.to_owned()).or_default())
    }

    async fn sender(&self, address: &str) -> Option<PeerSender> {
        let came = Instant::now();
        let link = self.link(address);
        let mut line = link.0.lock().await;
        if let Some(open) = line.sender.as_ref().filter(|sender| !sender.calls.is_closed()) {
            return Some(open.clone());
        }
        if line.failed.is_some_and(|failed| failed >= came) {
            // Another call has tried meanwhile: all calls that waited get the same result.
            return None;
        }
        line.sender = self.connect(address).await;
        line.failed = line.sender.is_none().then(Instant::now);
        line.sender.clone()
    }

    async fn connect(&self, address: &str) -> Option<PeerSender> {
        let stream = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await.ok()?.ok()?;
        // Small packets are sent at once.
        stream.set_nodelay(true).ok()?;
        let Some(tls) = &self.trust.tls else { return self.converse(address, stream).await };
        match tls.connect(address, stream).await {
            Ok(stream) => self.converse(address, stream).await,
            Err(error) => {
                if let Some(why) = tls::distrust(&error) {
                    self.refusals.note(address, why);
                }
                None
            }
        }
    }

    async fn converse<S>(&self, address: &str, stream: S) -> Option<PeerSender>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(ALIVE_EVERY)
            .keep_alive_timeout(ALIVE_WITHIN)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let shaken = tokio::time::timeout(CONNECT_WITHIN, builder.handshake(TokioIo::new(stream))).await;
        let (calls, connection) = match shaken.ok()? {
            Ok(shaken) => shaken,
            Err(error) => {
                if let Some(why) = distrust(Err(error), true) {
                    self.refusals.note(address, why);
                }
                return None;
            }
        };
        let has_answered = Arc::new(AtomicBool::new(false));
        let sender = PeerSender { calls, has_answered: Arc::clone(&has_answered) };
        let (address, refusals, ends) = (address.to_owned(), Arc::clone(&self.refusals), self.ends.clone());
        tokio::spawn(async move {
            let ended = connection.await;
            ends.send_replace(());
            let is_silent = !has_answered.load(Ordering::Relaxed);
            if let Err(error) = &ended {
                tracing::debug!(address, %error, "peer connection ended");
            }
            if let Some(why) = distrust(ended, is_silent) {
                refusals.note(&address, why);
            }
        });
        Some(sender)
    }
}

/// What the end of a connection says about trust; none for another end. With TLS 1.3 a client learns only here that
/// its certificate is refused.
fn distrust(ended: hyper::Result<()>, is_silent: bool) -> Option<String> {
    let hung_up = || {
        is_silent.then(|| "it closes the connection: one of the two uses TLS, the other does not (cluster.certificate_file)".into())
    };
    let Err(error) = ended else { return hung_up() };
    let source = error.source()?;
    if let Some(error) = source.downcast_ref::<std::io::Error>() {
        return tls::distrust(error).or_else(hung_up);
    }
    let is_ours = |error: &h2::Error| error.is_library() && !error.is_remote();
    let is_other = source.downcast_ref::<h2::Error>().is_some_and(is_ours);
    is_other.then(|| "it does not use the protocol of this node: one of the two uses TLS, the other does not (cluster.certificate_file)".into())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
