//! The server for other nodes: forwarded calls, and messages between nodes. Decides nothing: every message goes to
//! its component.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use everlog_listen::{CallInProgress, Lease, Listener, SharedConnection};
use everlog_partition::{InboxMessage, RunKey};
use everlog_temporal::{Body, Forwarded, ReceiptSlot};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::assignment::reconciler::Reconciler;
use crate::matching::remote::RemoteMatching;
use crate::membership::this_node::ThisNode;
use crate::metrics::{ClusterCounters, Outcome};
use crate::peers::client::{ALIVE_EVERY, ALIVE_WITHIN, CONNECTION_WINDOW, PeerClient, STREAM_WINDOW};
use crate::peers::local_gateway::LocalGateway;
use crate::peers::protocol::{
    BacklogReply, Claim, Lost, Offers, PollsLost, QueueWire, Received, Release, ReleaseGroup,
};
use crate::status::StatusReporter;

/// The header with the id of a receipt. The node that forwarded the poll settles it.
pub const RECEIPT_HEADER: &str = "everlog-receipt";
/// The header with the partition and run of the claimed task: the partition, a dot, and the run's key in base64.
pub const CLAIMED_HEADER: &str = "everlog-claimed";
/// Calls of one node at once. Most are polls, which wait.
const STREAMS_MAX: u32 = 100_000;
/// Bytes of the headers of a call. The principal among them has as many grants as its token could hold.
const HEADER_BYTES_MAX: u32 = 256 << 10;
/// Bytes of a message between nodes.
const QUESTION_BYTES_MAX: usize = 64 << 20;
/// How long such a message may take to arrive.
const QUESTION_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may take to send the first request that is trusted.
const TRUSTED_WITHIN: Duration = Duration::from_secs(5);

/// The components that requests of other nodes go to.
pub struct PeerServer {
    pub node: Arc<ThisNode>,
    pub peers: Arc<PeerClient>,
    pub gateway: Arc<LocalGateway>,
    pub reconciler: Arc<Reconciler>,
    pub matching: Arc<RemoteMatching>,
    pub counters: Arc<ClusterCounters>,
    pub status: StatusReporter,
}

/// Serves until the future is dropped.
pub async fn serve(listener: Listener, server: Arc<PeerServer>) {
    loop {
        let (stream, lease) = listener.accept().await;
        drop(tokio::spawn(admit(stream, Arc::clone(&server), lease)));
    }
}

async fn admit(stream: TcpStream, server: Arc<PeerServer>, lease: Lease) {
    tokio::select! { () = introduced(stream, server, &lease.connection) => {} () = lease.connection.closed() => {} }
}

async fn introduced(stream: TcpStream, server: Arc<PeerServer>, connection: &SharedConnection) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY not set on a peer connection");
    }
    let from = stream.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
    let Some(tls) = server.peers.tls() else {
        return converse(stream, server, connection, &from).await;
    };
    match tls.accept(stream).await {
        Ok(stream) => converse(stream, server, connection, &from).await,
        // Other nodes connect to find out whether somebody listens, and close the connection.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            tracing::debug!(from, %error, "peer connection closed before the TLS handshake");
        }
        Err(error) => tracing::info!(from, %error, "peer refused"),
    }
}

/// `from`: the address of the client, for log lines.
async fn converse<S>(stream: S, server: Arc<PeerServer>, connection: &SharedConnection, from: &str)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    let node = Arc::clone(&server.node);
    // A node's connection is never closed to make room, because it always counts as busy.
    let is_trusted: Arc<OnceLock<CallInProgress>> = Arc::default();
    let trusted = Arc::clone(&is_trusted);
    let connection = Arc::clone(connection);
    let service = service_fn(move |request| {
        let (server, trusted, connection) =
            (Arc::clone(&server), Arc::clone(&trusted), Arc::clone(&connection));
        async move {
            if !server.peers.trusts(&request) {
                return Ok::<_, Infallible>(plain(StatusCode::UNAUTHORIZED, Bytes::new()));
            }
            trusted.get_or_init(|| connection.call());
            Ok(answer(&server, request).await)
        }
    });
    let mut conversation = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let stranger = async {
        tokio::time::sleep(TRUSTED_WITHIN).await;
        if is_trusted.get().is_some() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = conversation.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(from, %error, "peer connection ended");
            }
        }
        () = stranger => tracing::info!(from, "peer connection closed: no trusted request came in time"),
        () = node.until_ended() => {}
    }
}

async fn answer(server: &PeerServer, mut request: Request<Incoming>) -> Response<Body> {
    if let Some(path) = request.uri().path().strip_prefix("/node/").map(str::to_owned) {
        let body = Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect();
        return match tokio::time::timeout(QUESTION_WITHIN, body).await {
            Ok(Ok(body)) => asked(server, &path, body.to_bytes()).await,
            Ok(Err(_too_much)) => plain(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()),
            Err(_slow) => plain(StatusCode::REQUEST_TIMEOUT, Bytes::new()),
        };
    }
    match server.gateway.calls() {
        Some(calls) => {
            server.counters.forwarded_in.fetch_add(1, Ordering::Relaxed);
            let receipt_slot = ReceiptSlot::default();
            request.extensions_mut().insert(Forwarded);
            request.extensions_mut().insert(receipt_slot.clone());
            let mut response = calls.answer(request.map(Body::new)).await;
            if let Some(receipt) = receipt_slot.take() {
                // The delivery is confirmed when the node that forwarded the poll settles the receipt.
                let claimed = receipt.claimed().map(|claimed| write_claimed(&claimed));
                let id = server.matching.receipts.keep(receipt);
                response.headers_mut().insert(RECEIPT_HEADER, id.into());
                if let Some(claimed) = claimed.and_then(|claimed| claimed.parse().ok()) {
                    response.headers_mut().insert(CLAIMED_HEADER, claimed);
                }
            }
            response
        }
        None => plain(StatusCode::SERVICE_UNAVAILABLE, Bytes::new()),
    }
}

fn write_claimed((partition, run): &(u32, RunKey)) -> String {
    format!("{partition}.{}", BASE64.encode(run.bytes()))
}

/// None where it cannot be read.
pub fn read_claimed(text: &str) -> Option<(u32, RunKey)> {
    let (partition, run) = text.split_once('.')?;
    Some((partition.parse().ok()?, RunKey::read(&BASE64.decode(run).ok()?)?))
}

async fn asked(server: &PeerServer, path: &str, body: Bytes) -> Response<Body> {
    let unreadable = || plain(StatusCode::BAD_REQUEST, Bytes::new());
    match path {
        "alive" => plain(StatusCode::OK, server.node.signature().into()),
        "status" => {
            let told =
                serde_json::to_vec(&server.status.status()).expect("it has nothing that JSON cannot say");
            plain(StatusCode::OK, told.into())
        }
        "leave" => {
            let Ok(ReleaseGroup { group, to }) = ReleaseGroup::decode(body) else { return unreadable() };
            match server.reconciler.hand_over(group as usize, &to).await {
                true => plain(StatusCode::OK, Bytes::new()),
                false => plain(StatusCode::CONFLICT, Bytes::new()),
            }
        }
        "offers" => {
            let Ok(Offers { offers, era, node }) = Offers::decode(body) else { return unreadable() };
            let (node, count) = (node.into(), offers.len() as u64);
            if !server
                .matching
                .exchange
                .take_in(era, offers.into_iter().filter_map(|offer| offer.read(&node)))
            {
                return plain(StatusCode::CONFLICT, Bytes::new());
            }
            server.counters.offers_received.fetch_add(count, Ordering::Relaxed);
            plain(StatusCode::OK, Bytes::new())
        }
        "kept" => {
            let Some(queue) = QueueWire::decode(body).ok().and_then(QueueWire::read) else {
                return unreadable();
            };
            let kept = BacklogReply::from(server.matching.exchange.keeps_back(&queue));
            plain(StatusCode::OK, kept.encode_to_vec().into())
        }
        "claim" => {
            let Some((ready, poll)) = Claim::decode(body).ok().and_then(Claim::read) else {
                return unreadable();
            };
            let claimed = server.matching.claimed(ready, poll).await;
            let is_given = claimed.answer.is_some();
            server.counters.claimed.count(if is_given { Outcome::Answered } else { Outcome::Refused });
            plain(StatusCode::OK, claimed.encode_to_vec().into())
        }
        "received" => {
            let Ok(Received { receipt, is_taken }) = Received::decode(body) else { return unreadable() };
            server.matching.receipts.settle(receipt, is_taken);
            plain(StatusCode::OK, Bytes::new())
        }
        "release" => {
            let Ok(Release { partition, input: Some(input) }) = Release::decode(body) else {
                return unreadable();
            };
            told(server, partition, InboxMessage::Release { input })
        }
        "polls-lost" => {
            let Ok(PollsLost { partition, poll_ids, run }) = PollsLost::decode(body) else {
                return unreadable();
            };
            let run = RunKey::read(&run);
            told(server, partition, InboxMessage::PollsLost { poll_ids: poll_ids.into(), run })
        }
        "lost" => {
            let Ok(Lost { partition, query_id }) = Lost::decode(body) else { return unreadable() };
            told(server, partition, InboxMessage::QueryLost { query_id })
        }
        _unknown => plain(StatusCode::NOT_FOUND, Bytes::new()),
    }
}

/// Sends an event to a partition that serves here.
fn told(server: &PeerServer, partition: u32, event: InboxMessage) -> Response<Body> {
    let is_here = server.matching.deliver(partition, event);
    plain(if is_here { StatusCode::OK } else { StatusCode::CONFLICT }, Bytes::new())
}

fn plain(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::new(body)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use everlog_partition::WorkflowKey;

    use super::*;

    #[test]
    fn what_a_receipt_is_of_is_read_as_it_is_written() {
        let run = WorkflowKey::new("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1", "order é/1")
            .run("1b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
        let claimed = (7, run);
        assert_eq!(read_claimed(&write_claimed(&claimed)), Some(claimed));
        for strange in ["", ".", "7", "7.", "x.AAAA", "7.AAAA", "7.?"] {
            assert_eq!(read_claimed(strange), None, "{strange}");
        }
    }
}
