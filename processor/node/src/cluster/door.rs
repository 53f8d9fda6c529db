//! Where other nodes come in: calls of their clients, and what nodes ask each other.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use everlog_partition::Event;
use everlog_temporal::{Body, Brought};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::net::{TcpListener, TcpStream};

use super::Cluster;
use super::links::{ALIVE_EVERY, ALIVE_WITHIN, CONNECTION_WINDOW, STREAM_WINDOW};
use super::wire::{Claim, Leave, Lost, Offers, Received, Release};

/// Calls of one node at once: most of them are polls, which wait.
const STREAMS_MAX: u32 = 100_000;
/// Bytes of what nodes ask each other.
const QUESTION_BYTES_MAX: usize = 64 << 20;
/// The pause after a connection that could not be taken.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Serves for as long as the future lives.
pub async fn serve(listener: TcpListener, cluster: Arc<Cluster>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&cluster)))),
            Err(error) => {
                tracing::warn!(%error, "a node's connection could not be taken");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, cluster: Arc<Cluster>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a node's connection keeps answers back");
    }
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS_MAX);
    let mut over = cluster.over();
    let service = service_fn(move |request| {
        let cluster = Arc::clone(&cluster);
        async move { Ok::<_, Infallible>(answer(&cluster, request).await) }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a node's connection has ended");
            }
        }
        _ = over.wait_for(|over| *over) => {}
    }
}

async fn answer(cluster: &Arc<Cluster>, mut request: Request<Incoming>) -> Response<Body> {
    if !cluster.links.trusts(&request) {
        return plain(StatusCode::UNAUTHORIZED, Bytes::new());
    }
    if let Some(path) = request.uri().path().strip_prefix("/node/").map(str::to_owned) {
        let body = Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect().await;
        let Ok(body) = body else { return plain(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()) };
        return asked(cluster, &path, body.to_bytes()).await;
    }
    match cluster.calls() {
        Some(calls) => {
            request.extensions_mut().insert(Brought);
            calls.answer(request.map(Body::new)).await
        }
        None => plain(StatusCode::SERVICE_UNAVAILABLE, Bytes::new()),
    }
}

async fn asked(cluster: &Arc<Cluster>, path: &str, body: Bytes) -> Response<Body> {
    let unreadable = || plain(StatusCode::BAD_REQUEST, Bytes::new());
    match path {
        "alive" => plain(StatusCode::OK, cluster.signature().into()),
        "status" => {
            let told = serde_json::to_vec(&cluster.status()).expect("it has nothing that JSON cannot say");
            plain(StatusCode::OK, told.into())
        }
        "leave" => {
            let Ok(Leave { group, to }) = Leave::decode(body) else { return unreadable() };
            match cluster.give(group as usize, &to).await {
                true => plain(StatusCode::OK, Bytes::new()),
                false => plain(StatusCode::CONFLICT, Bytes::new()),
            }
        }
        "offers" => {
            let Ok(Offers { offers }) = Offers::decode(body) else { return unreadable() };
            offers.into_iter().filter_map(|offer| offer.read()).for_each(|offer| cluster.offered(offer));
            plain(StatusCode::OK, Bytes::new())
        }
        "claim" => {
            let Some((ready, poll)) = Claim::decode(body).ok().and_then(Claim::read) else {
                return unreadable();
            };
            plain(StatusCode::OK, cluster.claimed(ready, poll).await.encode_to_vec().into())
        }
        "received" => {
            let Ok(Received { receipt, is_taken }) = Received::decode(body) else { return unreadable() };
            cluster.receipts.settle(receipt, is_taken);
            plain(StatusCode::OK, Bytes::new())
        }
        "release" => {
            let Ok(Release { partition, input: Some(input) }) = Release::decode(body) else {
                return unreadable();
            };
            told(cluster, partition, Event::Release { input })
        }
        "lost" => {
            let Ok(Lost { partition, query_id }) = Lost::decode(body) else { return unreadable() };
            told(cluster, partition, Event::QueryLost { query_id })
        }
        _unknown => plain(StatusCode::NOT_FOUND, Bytes::new()),
    }
}

/// Brings something to a partition if that is here.
fn told(cluster: &Cluster, partition: u32, event: Event) -> Response<Body> {
    let is_here = cluster.holds(partition) && (cluster.send)(partition, event);
    plain(if is_here { StatusCode::OK } else { StatusCode::CONFLICT }, Bytes::new())
}

fn plain(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::new(body)));
    *response.status_mut() = status;
    response
}
