//! HTTP/2 on the connections of a listener.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

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
use crate::first_bytes::FirstBytes;
use crate::held_body::HeldBody;
use crate::listener::{CHECK_EVERY, CLOSED_WITHIN, Lease};
use crate::tls::{Protocol, handshake};
use crate::{CallInProgress, Listener, ListenerBounds, SharedConnection};

/// Bytes of a response that the HTTP/2 library buffers for one stream. Four frames keep a fast client busy.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// The bounds of one HTTP/2 connection.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Calls in progress.
    pub streams_max: u32,
    /// Bytes that the client may have sent and the server has not read yet.
    pub window_bytes: u32,
    /// Bytes of a request's headers.
    pub header_bytes_max: u32,
    /// How long the client may be silent before a ping is sent.
    pub alive_every: Duration,
    /// How long it may take to answer the ping; then the connection is closed.
    pub alive_within: Duration,
}

/// Serves until `stop` completes, and then until the calls in progress have ended.
pub async fn serve<S, B>(listener: Listener, service: S, options: Options, stop: impl Future<Output = ()>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (stopping, stops) = watch::channel(false);
    let mut connections_served = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            (stream, lease) = listener.accept() => {
                let bounds = *listener.bounds();
                let (service, stops) = (service.clone(), stops.clone());
                connections_served.spawn(serve_connection(stream, lease, service, (bounds, options), stops));
            }
            // Connections that have ended are removed.
            Some(_ended) = connections_served.join_next(), if !connections_served.is_empty() => {}
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while connections_served.join_next().await.is_some() {}
}

async fn serve_connection<S, B>(
    stream: TcpStream,
    lease: Lease,
    service: S,
    (bounds, options): (ListenerBounds, Options),
    mut stops: watch::Receiver<bool>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let opened = tokio::select! {
        opened = handshake::open(stream, &lease, Protocol::Http2, bounds.hello_within) => opened,
        () = stopped(&mut stops) => None,
    };
    let Some(stream) = opened else { return };
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
    let service = ConnectionService::new(TowerToHyperService::new(service), connection.clone());
    let stream = TokioIo::new(FirstBytes::new(stream, connection.clone()));
    let mut serving = std::pin::pin!(builder.serve_connection(stream, service));
    let mut checks = tokio::time::interval(CHECK_EVERY);
    loop {
        tokio::select! {
            ended = serving.as_mut() => return log_broken(ended),
            () = stopped(&mut stops) => {
                serving.as_mut().graceful_shutdown();
                return log_broken(serving.await);
            }
            () = connection.closed() => break,
            _ = checks.tick() => {
                let now = Instant::now();
                lease.counts.lapsed.fetch_add(connection.lapse_due(now), Ordering::Relaxed);
                if connection.takes_nothing() {
                    tracing::info!(from = %connection.address, "connection closed: it receives no responses");
                    return;
                }
                if connection.is_silent(&bounds, now) {
                    lease.counts.silent.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                if connection.has_outlived_its_certificate(SystemTime::now()) {
                    tracing::info!(from = %connection.address, "connection closed: its client's certificate has ended");
                    break;
                }
            }
        }
    }
    if connection.has_received() {
        // GOAWAY goes out first, so that the client loses no call.
        serving.as_mut().graceful_shutdown();
        close_gracefully(serving, &connection, bounds.idle_within).await;
    }
}

/// Waits for the end of a connection whose shutdown was requested. Calls that arrived meanwhile are finished.
pub(crate) async fn close_gracefully(
    mut serving: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    connection: &Connection,
    within: Duration,
) {
    let began = Instant::now();
    loop {
        if let Ok(ended) = tokio::time::timeout(CLOSED_WITHIN, serving.as_mut()).await {
            return log_broken(ended);
        }
        if connection.idle_since().is_some() || began.elapsed() >= within {
            return;
        }
    }
}

async fn stopped(stops: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    drop(stops.wait_for(|stops| *stops).await);
}

/// Logs how a connection ended, at debug level: clients that break off are ordinary.
pub(crate) fn log_broken(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection broken");
    }
}

/// A service whose requests carry their connection, and whose calls end when the response is sent.
#[derive(Clone)]
pub(crate) struct ConnectionService<S> {
    service: TowerToHyperService<S>,
    connection: SharedConnection,
}

impl<S> ConnectionService<S> {
    pub(crate) fn new(service: TowerToHyperService<S>, connection: SharedConnection) -> Self {
        Self { service, connection }
    }
}

impl<S, B> hyper::service::Service<Request<Incoming>> for ConnectionService<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone,
{
    type Response = Response<HeldBody<B, Option<CallInProgress>>>;
    type Error = Infallible;
    type Future =
        ResponseFuture<<TowerToHyperService<S> as hyper::service::Service<Request<Incoming>>>::Future>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(Arc::clone(&self.connection));
        ResponseFuture { answer: Box::pin(self.service.call(request)), call: Some(self.connection.call()) }
    }
}

/// A response to come.
pub(crate) struct ResponseFuture<F> {
    answer: Pin<Box<F>>,
    call: Option<CallInProgress>,
}

impl<F, B> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    type Output = Result<Response<HeldBody<B, Option<CallInProgress>>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.as_mut().poll(context));
        let call = self.call.take();
        Poll::Ready(answer.map(|answer| answer.map(|body| HeldBody::new(body, call))))
    }
}
