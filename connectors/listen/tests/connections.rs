//! Connections over real sockets: who is let in, who is kept waiting, and who has to go.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use everlog_listen::http2::{self, Options};
use everlog_listen::{Listener, ListenerBounds, http1};
use everlog_patience as patience;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

const HEAD: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const SLOW: &str = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
/// How a client of HTTP/2 begins, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Longer than a test may take.
const LONG: Duration = Duration::from_secs(3_600);

/// Answers at once, or under `/slow` when it is told to.
#[derive(Clone, Default)]
struct Here {
    began: Arc<Notify>,
    slow: Arc<Notify>,
}

impl tower_service::Service<Request<Incoming>> for Here {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let (began, slow) = (Arc::clone(&self.began), Arc::clone(&self.slow));
        Box::pin(async move {
            if request.uri().path() == "/slow" {
                began.notify_one();
                slow.notified().await;
            }
            Ok(Response::new(Full::from("here")))
        })
    }
}

fn bounds() -> ListenerBounds {
    ListenerBounds { hello_within: LONG, idle_within: LONG, ..ListenerBounds::default() }
}

async fn listener(bounds: ListenerBounds) -> (Listener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("it has one");
    (Listener::new(socket, bounds), address)
}

async fn served(bounds: ListenerBounds) -> (SocketAddr, Here) {
    let (listener, address) = listener(bounds).await;
    let here = Here::default();
    tokio::spawn(http1::serve(listener, here.clone()));
    (address, here)
}

async fn served_http2(bounds: ListenerBounds) -> SocketAddr {
    let (listener, address) = listener(bounds).await;
    let options = Options {
        streams_max: 10,
        window_bytes: 1 << 20,
        header_bytes_max: 16 << 10,
        alive_every: LONG,
        alive_within: LONG,
    };
    tokio::spawn(http2::serve(listener, Here::default(), options, std::future::pending()));
    address
}

async fn connected(address: SocketAddr) -> TcpStream {
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

/// Waits until the other side has hung up; what it said before that.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let read = patience::answer("the end", stream.read_to_end(&mut said)).await.expect("it hangs up");
    // A reset is an end as well.
    drop(read);
    said
}

#[tokio::test]
async fn whoever_sends_no_whole_head_in_time_is_hung_up_on() {
    let (address, _) = served(ListenerBounds { hello_within: Duration::from_millis(50), ..bounds() }).await;
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
async fn a_connection_on_which_nothing_was_said_makes_room_before_all_others() {
    let (address, _) = served(ListenerBounds { connections_max: 2, ..bounds() }).await;
    let mut first = connected(address).await;
    assert!(asked(&mut first, HEAD).await.contains("200 OK"));
    let mut silent = connected(address).await;
    let mut third = connected(address).await;
    assert!(asked(&mut third, HEAD).await.contains("200 OK"));
    assert!(rest(&mut silent).await.is_empty());
    assert!(asked(&mut first, HEAD).await.contains("200 OK"));
    // Now the third is the one that has been without a request for longer.
    let mut fourth = connected(address).await;
    assert!(asked(&mut fourth, HEAD).await.contains("200 OK"));
    assert!(rest(&mut third).await.is_empty());
    assert!(asked(&mut first, HEAD).await.contains("200 OK"));
}

#[tokio::test]
async fn a_connection_with_a_call_under_way_makes_room_for_nobody() {
    let (address, here) = served(ListenerBounds { connections_max: 1, ..bounds() }).await;
    let mut first = connected(address).await;
    first.write_all(SLOW.as_bytes()).await.expect("it reads");
    patience::answer("the slow call", here.began.notified()).await.expect("it begins");
    let mut second = connected(address).await;
    let second = tokio::spawn(async move { asked(&mut second, HEAD).await });
    // What is asked next comes behind the slow one: its answer shows that the connection has stayed.
    here.slow.notify_one();
    assert!(asked(&mut first, "").await.contains("200 OK"));
    assert!(second.await.expect("no panic").contains("200 OK"), "now there is room");
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_no_more() {
    let (address, here) = served(ListenerBounds { address_connections_max: 1, ..bounds() }).await;
    let mut first = connected(address).await;
    first.write_all(SLOW.as_bytes()).await.expect("it reads");
    patience::answer("the slow call", here.began.notified()).await.expect("it begins");
    assert!(rest(&mut connected(address).await).await.is_empty());
    here.slow.notify_one();
    assert!(asked(&mut first, "").await.contains("200 OK"));
    // Without a call it makes room for the next one of its address.
    assert!(asked(&mut connected(address).await, HEAD).await.contains("200 OK"));
    assert!(rest(&mut first).await.is_empty());
}

#[tokio::test]
async fn a_client_that_never_begins_with_http2_is_hung_up_on() {
    let address = served_http2(ListenerBounds { hello_within: Duration::from_millis(10), ..bounds() }).await;
    let (mut silent, mut slow) = (connected(address).await, connected(address).await);
    slow.write_all(&PREFACE[..23]).await.expect("it reads");
    rest(&mut silent).await;
    rest(&mut slow).await;
}

#[tokio::test]
async fn a_connection_without_a_call_is_told_to_go_after_a_while() {
    let address = served_http2(ListenerBounds { idle_within: Duration::from_millis(10), ..bounds() }).await;
    let mut idle = connected(address).await;
    idle.write_all(PREFACE).await.expect("it reads");
    let said = rest(&mut idle).await;
    // A frame's type stands behind the three bytes of its length; that of GOAWAY is 7.
    let mut frames = said.as_slice();
    let mut types = Vec::new();
    while let [high, middle, low, kind, ..] = *frames {
        types.push(kind);
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        frames = frames.get(9 + length..).unwrap_or_default();
    }
    assert!(types.contains(&7), "{types:?}");
}
