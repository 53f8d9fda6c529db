//! The way to other nodes: one connection to each, which carries many calls at once and breaks soon when nobody is there.
//! A peer that is silent holds up nobody but those who ask it, and those no longer than one attempt takes.

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
use crate::peers::tls;
use crate::peers::tls::Tls;
use crate::status::Status;

/// What nodes show each other.
pub const SECRET_HEADER: &str = "everlog-secret";
/// How long a node may take to answer whether it is there.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
/// How long a node of the same name may take to answer, on a machine that is overloaded: a mistake here makes two of it.
const NAMESAKE_WITHIN: Duration = Duration::from_secs(3);
/// How often it is asked meanwhile.
const NAMESAKE_EVERY: Duration = Duration::from_millis(100);
/// How long it may take to tell how it stands: somebody waits for it, and nothing hangs on it.
const STATUS_WITHIN: Duration = Duration::from_secs(2);
/// How long it has to go on that a node and this one do not trust each other, until that is said: a node that stops takes less.
const TOLD_AFTER: Duration = Duration::from_secs(3);
/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// How often a connection shows that it lives, and how long it has for that: calls end with it.
pub const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// See [`ALIVE_EVERY`].
pub const ALIVE_WITHIN: Duration = Duration::from_secs(2);
/// Bytes under way in one answer before its reader takes some.
pub const STREAM_WINDOW: u32 = 256 << 10;
/// The same of a whole connection: room for all answers that it may carry, so that clients that do not read theirs hold up nobody else.
pub const CONNECTION_WINDOW: u32 = 1 << 30;
/// Bytes of an answer to what nodes ask each other; a task may be as large as a message of the API, and more.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What comes of a question to a node how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusReply {
    /// This.
    Status(Status),
    /// It does not trust whoever asks.
    Refused,
    /// Nothing that can be understood.
    Unreadable,
}

/// A connection, and whether anything has come by it.
#[derive(Clone)]
struct Sender {
    calls: SendRequest<Full<Bytes>>,
    has_answered: Arc<AtomicBool>,
}

/// What a node shows others, and whom it takes for one.
#[derive(Default)]
pub struct PeerAuth {
    secret: Option<HeaderValue>,
    tls: Option<Tls>,
}

impl PeerAuth {
    /// A secret, if nodes show one, and the files of TLS, if they speak it: certificate, key and authorities. `server_name` is what
    /// all certificates have; empty where each has its host.
    ///
    /// # Errors
    /// A file cannot be read or used; says which.
    pub fn read(
        secret: Option<HeaderValue>,
        tls_files: Option<[PathBuf; 3]>,
        server_name: &str,
    ) -> Outcome<Self> {
        let tls = tls_files.map(|files| Tls::read(files, server_name)).transpose()?;
        Ok(Self { secret, tls })
    }
}

/// The connections.
pub struct PeerClient {
    trust: PeerAuth,
    links: Mutex<HashMap<String, Arc<Peer>>>,
    refusals: Arc<Refusals>,
    ends: watch::Sender<()>,
}

/// One of them.
#[derive(Default)]
struct Peer(tokio::sync::Mutex<Line>);

#[derive(Default)]
struct Line {
    sender: Option<Sender>,
    /// When the latest attempt that came to nothing ended.
    failed: Option<Instant>,
}

/// Why nodes at these addresses and this one do not trust each other.
#[derive(Default)]
struct Refusals(Mutex<BTreeMap<String, Refusal>>);

struct Refusal {
    why: String,
    since: Instant,
    is_caught_up: bool,
}

impl Refusals {
    fn now(&self) -> MutexGuard<'_, BTreeMap<String, Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node that stops hangs up as well: only what goes on is worth a warning.
    fn note(&self, address: &str, why: String) {
        let mut now = self.now();
        let new = || Refusal { why: why.clone(), since: Instant::now(), is_caught_up: false };
        let known = now.entry(address.to_owned()).or_insert_with(new);
        if known.why != why {
            *known = new();
        }
        if !known.is_caught_up && known.since.elapsed() >= TOLD_AFTER {
            known.is_caught_up = true;
            tracing::warn!(address, why, "a node and this one do not trust each other");
        }
    }

    fn forget(&self, address: &str) {
        if self.now().remove(address).is_some_and(|known| known.is_caught_up) {
            tracing::info!(address, "a node and this one trust each other");
        }
    }
}

impl PeerClient {
    /// None yet.
    pub fn new(trust: PeerAuth) -> Self {
        let (links, refusals, (ends, _)) = (Mutex::default(), Arc::default(), watch::channel(()));
        Self { trust, links, refusals, ends }
    }

    /// True where a call may come from another node: it shows this node's secret, or none where this node has none. One that has a
    /// secret refuses those that have none, so that those have to refuse it: only whoever is refused can say why.
    pub fn trusts<T>(&self, request: &Request<T>) -> bool {
        // Both are the operator's own; how long the comparison takes tells at most their common beginning, and a secret of
        // random bytes is not guessed so.
        request.headers().get(SECRET_HEADER) == self.trust.secret.as_ref()
    }

    /// What nodes know each other by, if they speak TLS.
    pub fn tls(&self) -> Option<&Tls> {
        self.trust.tls.as_ref()
    }

    /// Why the node at an address and this one do not trust each other, where the latest attempt has shown that.
    pub fn refusal(&self, address: &str) -> Option<String> {
        self.refusals.now().get(address).map(|refusal| refusal.why.clone())
    }

    /// Changes whenever a connection has ended: the earliest sign that a node is gone.
    pub fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    /// Whether nobody listens at an address: the process is gone, though its machine is there.
    pub async fn refuses(address: &str) -> bool {
        let connected = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await;
        matches!(connected, Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// Whether a node is reached: it has answered on a connection that lives, answers now, or says that it does not trust this one.
    pub async fn reaches(&self, name: &str, address: &str) -> bool {
        let is_open =
            |sender: &Sender| !sender.calls.is_closed() && sender.has_answered.load(Ordering::Relaxed);
        if self.link(address).0.lock().await.sender.as_ref().is_some_and(is_open) {
            return true;
        }
        self.instance(name, address).await.is_some() || self.refusal(address).is_some()
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
            self.refusals
                .note(address, "it is shown another secret than its own (cluster.secret_file)".into());
            return Err(Broken::Unsent);
        }
        self.refusals.forget(address);
        Ok(response)
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

    /// Asks the node of this name; none where there is no answer.
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

    /// The instance of a node, if it is there.
    pub async fn instance(&self, name: &str, address: &str) -> Option<String> {
        let answer = self.ask(address, "/node/alive", &(), ANSWERS_WITHIN).await.ok()?;
        let (told, instance) = std::str::from_utf8(&answer).ok()?.split_once('\n')?;
        (told == name).then(|| instance.to_owned())
    }

    /// The instance of a node that would be in the way if it is there: one that is slow to answer is asked again, unless
    /// nothing listens where it should be.
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

    /// What a node tells of itself, whoever it is.
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

    async fn sender(&self, address: &str) -> Option<Sender> {
        let came = Instant::now();
        let link = self.link(address);
        let mut line = link.0.lock().await;
        if let Some(open) = line.sender.as_ref().filter(|sender| !sender.calls.is_closed()) {
            return Some(open.clone());
        }
        if line.failed.is_some_and(|failed| failed >= came) {
            // Whoever was before has tried meanwhile: all who waited have their answer.
            return None;
        }
        line.sender = self.connect(address).await;
        line.failed = line.sender.is_none().then(Instant::now);
        line.sender.clone()
    }

    async fn connect(&self, address: &str) -> Option<Sender> {
        let stream = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await.ok()?.ok()?;
        // A call is not kept back until the one before it is acknowledged.
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

    async fn converse<S>(&self, address: &str, stream: S) -> Option<Sender>
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
        let sender = Sender { calls, has_answered: Arc::clone(&has_answered) };
        let (address, refusals, ends) = (address.to_owned(), Arc::clone(&self.refusals), self.ends.clone());
        tokio::spawn(async move {
            let ended = connection.await;
            ends.send_replace(());
            let is_silent = !has_answered.load(Ordering::Relaxed);
            if let Err(error) = &ended {
                tracing::debug!(address, %error, "the connection to a node has ended");
            }
            if let Some(why) = distrust(ended, is_silent) {
                refusals.note(&address, why);
            }
        });
        Some(sender)
    }
}

/// What the end of a connection says about trust; none where it is an end like others. In TLS 1.3 whoever has connected hears
/// only so that its certificate is not taken.
fn distrust(ended: hyper::Result<()>, is_silent: bool) -> Option<String> {
    let hung_up = || {
        is_silent.then(|| "it hangs up on whoever speaks as this node does (cluster.certificate_file)".into())
    };
    let Err(error) = ended else { return hung_up() };
    let source = error.source()?;
    if let Some(error) = source.downcast_ref::<std::io::Error>() {
        return tls::distrust(error).or_else(hung_up);
    }
    let is_ours = |error: &h2::Error| error.is_library() && !error.is_remote();
    let is_other = source.downcast_ref::<h2::Error>().is_some_and(is_ours);
    is_other.then(|| "it speaks something else than this node does (cluster.certificate_file)".into())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
