//! HTTP/1.1 on the connections of a listener.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::Listener;
use crate::first_bytes::FirstBytes;
use crate::http2::{ConnectionService, close_gracefully, log_broken};
use crate::listener::{CHECK_EVERY, Lease};
use crate::tls::{Protocol, handshake};

/// Bytes of a request's head. Commands and browsers send a few KiB.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a connection may last. It bounds a client that receives its responses byte by byte.
const CONNECTION_WITHIN: Duration = Duration::from_secs(600);

/// Serves until the future is dropped.
pub async fn serve<S, B>(listener: Listener, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    loop {
        let (stream, lease) = listener.accept().await;
        drop(tokio::spawn(serve_connection(stream, lease, service.clone(), listener.bounds().hello_within)));
    }
}

async fn serve_connection<S, B>(stream: TcpStream, lease: Lease, service: S, head_within: Duration)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Some(stream) = handshake::open(stream, &lease, Protocol::Http1, head_within).await else { return };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_within).max_buf_size(HEAD_BYTES_MAX);
    let connection = lease.connection.clone();
    let service = ConnectionService::new(TowerToHyperService::new(service), connection.clone());
    let stream = TokioIo::new(FirstBytes::new(stream, connection.clone()));
    let mut serving = std::pin::pin!(builder.serve_connection(stream, service));
    let (began, mut checks) = (Instant::now(), tokio::time::interval(CHECK_EVERY));
    loop {
        tokio::select! {
            ended = serving.as_mut() => return log_broken(ended),
            () = connection.closed() => break,
            _ = checks.tick() => {
                // A response may take as long to be received as a request may take to arrive and to be answered.
                if connection.busy_since().is_some_and(|since| since.elapsed() >= head_within * 2) {
                    lease.counts.lapsed.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                let is_over = connection.has_outlived_its_certificate(SystemTime::now());
                if is_over || began.elapsed() >= CONNECTION_WITHIN {
                    break;
                }
            }
        }
    }
    if connection.has_received() {
        serving.as_mut().graceful_shutdown();
        close_gracefully(serving, &connection, head_within).await;
    }
}
