//! HTTP for whoever reaches the address: connections, heads, bodies and answers are bounded in number, size and time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use everlog_log::Outage;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a connection may last: a client that takes its answers byte by byte holds it no longer.
const CONNECTION_WITHIN: Duration = Duration::from_secs(600);
/// The pause after a connection that could not be taken: there may be no file descriptor left.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How much is taken.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once; further ones wait.
    pub connections_max: usize,
    /// How long a head may take to arrive, and an open connection be silent.
    pub head_within: Duration,
}

/// Serves for as long as the future lives.
pub async fn serve(listener: TcpListener, routes: Router, bounds: Bounds) {
    let (places, mut outage) = (Arc::new(Semaphore::new(bounds.connections_max)), Outage::default());
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                outage.works(Instant::now());
                drop(tokio::spawn(converse(stream, routes.clone(), bounds, place)));
            }
            Err(error) => {
                if let Some(lasts) = outage.fails(Instant::now()) {
                    tracing::warn!(%error, for_s = lasts.as_secs(), "a connection could not be taken");
                }
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, routes: Router, bounds: Bounds, _place: OwnedSemaphorePermit) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.head_within).max_buf_size(HEAD_BYTES_MAX);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    tokio::select! {
        ended = connection.as_mut() => return told(ended),
        () = tokio::time::sleep(CONNECTION_WITHIN) => connection.as_mut().graceful_shutdown(),
    }
    // What is being answered has as long as a head has; then it breaks off.
    if let Ok(ended) = tokio::time::timeout(bounds.head_within, connection).await {
        told(ended);
    }
}

fn told(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use everlog_patience as patience;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn served(bounds: Bounds) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has one");
        tokio::spawn(serve(listener, Router::new().route("/", get(async || "here")), bounds));
        address
    }

    async fn connected(address: std::net::SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("it listens")
    }

    /// What is said to a head; nothing where the other side hangs up.
    async fn asked(stream: &mut TcpStream, head: &str) -> String {
        let mut answer = vec![0; 1_024];
        let heard = async {
            stream.write_all(head.as_bytes()).await?;
            stream.read(&mut answer).await
        };
        // Where it has hung up before all of the head was there, the connection is reset.
        let bytes = patience::answer("an answer", heard).await.expect("it answers or hangs up").unwrap_or(0);
        String::from_utf8_lossy(&answer[..bytes]).into_owned()
    }

    const HEAD: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    #[tokio::test]
    async fn whoever_sends_no_whole_head_in_time_is_hung_up_on() {
        let head_within = Duration::from_millis(50);
        let address = served(Bounds { connections_max: 2, head_within }).await;
        let mut stream = connected(address).await;
        let answer = asked(&mut stream, HEAD.trim_end()).await;
        assert!(!answer.contains("200"), "{answer}");
        // This machine may be too slow for it at times.
        let is_in_time = async || {
            stream = connected(address).await;
            let answer = asked(&mut stream, HEAD).await;
            answer.contains("200 OK") && answer.ends_with("here")
        };
        patience::until("a head in time", is_in_time).await.expect("it is answered");
        assert_eq!(asked(&mut stream, "").await, "", "a silent connection ends");
    }

    #[tokio::test]
    async fn a_connection_too_many_waits_until_another_ends() {
        let bounds = Bounds { connections_max: 1, head_within: Duration::from_secs(3_600) };
        let address = served(bounds).await;
        let mut first = connected(address).await;
        asked(&mut first, HEAD).await;
        let mut stream = connected(address).await;
        let second = tokio::spawn(async move { asked(&mut stream, HEAD).await });
        for _ in 0..10 {
            // The other one has come before these.
            assert!(asked(&mut first, HEAD).await.contains("200 OK"));
        }
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.expect("no panic").contains("200 OK"));
    }
}
