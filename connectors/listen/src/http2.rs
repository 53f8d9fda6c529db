//! HTTP/2 on the connections of a listener.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

use crate::connection::Connection;
use crate::heard::Heard;
use crate::held::Held;
use crate::listener::{CLOSED_WITHIN, LOOK_EVERY, Lease};
use crate::{Bounds, Call, Listener, Peer};

/// Bytes of an answer that the HTTP/2 library holds ready for a client that has room for more.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// What a client may do on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Calls at once.
    pub streams_max: u32,
    /// Bytes that it may have sent that are not read yet.
    pub window_bytes: u32,
    /// Bytes of a request's headers.
    pub header_bytes_max: u32,
    /// How long it may be silent before it is asked for a sign of life.
    pub alive_every: Duration,
    /// How long it has for that sign; then the connection is closed.
    pub alive_within: Duration,
}

/// Serves until `stop` completes, and then until the calls that are under way have ended.
pub async fn serve<S, B>(listener: Listener, service: S, options: Options, stop: impl Future<Output = ()>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (stopping, stops) = watch::channel(false);
    let mut conversations = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            (stream, lease) = listener.accept() => {
                let bounds = *listener.bounds();
                let (service, stops) = (service.clone(), stops.clone());
                conversations.spawn(converse(stream, lease, service, (bounds, options), stops));
            }
            // Those that are over are let go.
            Some(_ended) = conversations.join_next(), if !conversations.is_empty() => {}
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while conversations.join_next().await.is_some() {}
}

async fn converse<S, B>(
    stream: TcpStream,
    lease: Lease,
    service: S,
    (bounds, options): (Bounds, Options),
    mut stops: watch::Receiver<bool>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps answers back");
    }
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.streams_max)
        .initial_connection_window_size(options.window_bytes)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(options.header_bytes_max)
        .keep_alive_interval(options.alive_every)
        .keep_alive_timeout(options.alive_within);
    let connection = lease.connection.clone();
    let service = OnConnection::new(TowerToHyperService::new(service), connection.clone());
    let stream = TokioIo::new(Heard::new(stream, connection.clone()));
    let mut conversation = std::pin::pin!(builder.serve_connection(stream, service));
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            ended = conversation.as_mut() => return told(ended),
            () = stopped(&mut stops) => {
                conversation.as_mut().graceful_shutdown();
                return told(conversation.await);
            }
            () = connection.closed() => break,
            _ = looks.tick() => {
                let now = Instant::now();
                lease.counts.lapsed.fetch_add(connection.look(now), Ordering::Relaxed);
                if connection.takes_nothing() {
                    tracing::info!(from = %connection.address, "a connection that takes no answers is closed");
                    return;
                }
                if connection.is_silent(&bounds, now) {
                    lease.counts.silent.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
    }
    if connection.was_heard() {
        // It is told, so that no call of its own is lost.
        conversation.as_mut().graceful_shutdown();
        leave(conversation, &connection, bounds.idle_within).await;
    }
}

/// Lets a conversation end that was told to: a call that has come meanwhile has its time.
pub(crate) async fn leave(
    mut conversation: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    connection: &Connection,
    within: Duration,
) {
    let began = Instant::now();
    loop {
        if let Ok(ended) = tokio::time::timeout(CLOSED_WITHIN, conversation.as_mut()).await {
            return told(ended);
        }
        if connection.idle_since().is_some() || began.elapsed() >= within {
            return;
        }
    }
}

async fn stopped(stops: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    drop(stops.wait_for(|stops| *stops).await);
}

/// How a conversation ended is of use to whoever looks for it only.
pub(crate) fn told(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// A service whose requests know their connection, and whose answers count as under way until they are sent.
#[derive(Clone)]
pub(crate) struct OnConnection<S> {
    service: TowerToHyperService<S>,
    connection: Peer,
}

impl<S> OnConnection<S> {
    pub(crate) fn new(service: TowerToHyperService<S>, connection: Peer) -> Self {
        Self { service, connection }
    }
}

impl<S, B> hyper::service::Service<Request<Incoming>> for OnConnection<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone,
{
    type Response = Response<Held<B, Option<Call>>>;
    type Error = Infallible;
    type Future = Answering<<TowerToHyperService<S> as hyper::service::Service<Request<Incoming>>>::Future>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(Arc::clone(&self.connection));
        Answering { answer: Box::pin(self.service.call(request)), call: Some(self.connection.call()) }
    }
}

/// An answer to come.
pub(crate) struct Answering<F> {
    answer: Pin<Box<F>>,
    call: Option<Call>,
}

impl<F, B> Future for Answering<F>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    type Output = Result<Response<Held<B, Option<Call>>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.as_mut().poll(context));
        let call = self.call.take();
        Poll::Ready(answer.map(|answer| answer.map(|body| Held::new(body, call))))
    }
}
