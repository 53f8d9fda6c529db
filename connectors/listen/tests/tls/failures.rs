//! What ends without a connection: silence, plain text, a server that a client does not accept.

use std::net::SocketAddr;
use std::time::Duration;

use everlog_listen::ListenerBounds;
use everlog_listen::tls::{ClientCertificates, HandshakeFailure};
use everlog_patience as patience;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::Authority;
use crate::client::Client;
use crate::here::{Served, TlsFiles, bounds, http1_over, http2_over, plain};

/// Waits until so many handshakes have failed for this reason, and none for another.
pub async fn is_counted(served: &Served, failure: HandshakeFailure, count: u64) {
    let of = |failure| served.tls.failures.get(failure);
    let counted = patience::until("a failure that is counted", async || of(failure) == count).await;
    let all: Vec<_> = HandshakeFailure::ALL.map(|failure| (failure.name(), of(failure))).into();
    assert!(counted.is_ok(), "{all:?}");
    assert_eq!(all.iter().map(|(_, count)| count).sum::<u64>(), count, "{all:?}");
}

/// What a client in plain text is told until the connection ends.
async fn told_in_plain_text(address: SocketAddr, says: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let mut told = Vec::new();
    let spoken = async {
        stream.write_all(says).await?;
        stream.read_to_end(&mut told).await
    };
    // What was sent too late for a listener that has no more patience resets the connection.
    drop(patience::answer("the end", spoken).await.expect("it ends"));
    String::from_utf8_lossy(&told).into_owned()
}

/// What a caller over gRPC in plain text is told: status and message.
async fn called_in_plain_text(address: SocketAddr) -> (String, String) {
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (calls, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
    let connection = tokio::spawn(connection);
    let mut calls = calls.ready().await.expect("it takes calls");
    let request = hyper::Request::post("http://localhost/call").body(()).expect("a request");
    let (response, _) = calls.send_request(request, true).expect("it takes calls");
    let response = patience::answer("an answer", response).await.expect("it comes").expect("no reset");
    let text = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
    let told = (text("grpc-status"), text("grpc-message"));
    drop(patience::answer("the end", connection).await.expect("it is hung up on"));
    told
}

#[tokio::test]
async fn a_client_in_plain_text_is_told_in_its_own_protocol() {
    let place = TlsFiles::new();
    let tls = place.tls(ClientCertificates::Ignored).expect("the files are good");
    let (http1, http2) = (http1_over(tls.clone(), bounds()).await, http2_over(tls, bounds()).await);
    for served in [&http1, &http2] {
        let told = told_in_plain_text(served.address, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(told.starts_with("HTTP/1.1 400 ") && told.contains("this port speaks TLS"), "{told}");
        let (status, told) = called_in_plain_text(served.address).await;
        assert_eq!((status.as_str(), told.as_str()), ("9", "this port speaks TLS"));
        told_in_plain_text(served.address, b"SSH-2.0-x\r\n").await;
    }
    is_counted(&http1, HandshakeFailure::PlainText, 6).await;
}

#[tokio::test]
async fn a_client_over_tls_at_a_port_in_plain_text_learns_it() {
    let authority = Authority::new("servers");
    for address in plain().await {
        let told = Client::new(&authority).told(address).await;
        assert!(told.contains("InvalidContentType"), "{told}");
    }
}

#[tokio::test]
async fn a_client_that_is_silent_or_slow_is_hung_up_on() {
    let place = TlsFiles::new();
    let bounds = ListenerBounds { hello_within: Duration::from_millis(50), ..bounds() };
    let tls = place.tls(ClientCertificates::Ignored).expect("the files are good");
    let served = http2_over(tls, bounds).await;
    // The first half of a record.
    for says in [&b""[..], &[22, 3, 1, 2, 0, 1, 0]] {
        assert_eq!(told_in_plain_text(served.address, says).await, "");
    }
    is_counted(&served, HandshakeFailure::TimedOut, 2).await;
    assert_eq!(served.counts.silent.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test]
async fn clients_without_a_handshake_make_room_for_others() {
    let place = TlsFiles::new();
    let tls = place.tls(ClientCertificates::Ignored).expect("the files are good");
    let served = http1_over(tls, ListenerBounds { connections_max: 2, ..bounds() }).await;
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(served.address).await.expect("it listens");
        stream.write_all(&[22, 3, 1]).await.expect("it reads");
        slow.push(stream);
    }
    let client = Client::new(&place.authority);
    assert_eq!(client.told(served.address).await, "shown: none.");
    assert_eq!(patience::answer("the end", slow[0].read(&mut [0])).await.expect("it ends").unwrap_or(0), 0);
}

#[tokio::test]
async fn a_client_that_goes_away_or_does_not_accept_the_server_is_counted() {
    let place = TlsFiles::new();
    let served = place.served(ClientCertificates::Ignored).await;
    drop(TcpStream::connect(served.address).await.expect("it listens"));
    is_counted(&served, HandshakeFailure::Closed, 1).await;
    let served = place.served(ClientCertificates::Ignored).await;
    let other = Authority::new("servers");
    let told = Client::new(&other).told(served.address).await;
    assert!(told.contains("invalid peer certificate"), "{told}");
    let told = Client { host: "elsewhere", ..Client::new(&place.authority) }.told(served.address).await;
    assert!(told.contains("not valid for name"), "{told}");
    is_counted(&served, HandshakeFailure::RefusedByClient, 2).await;
}
