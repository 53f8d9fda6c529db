//! Peers of every kind: trusted ones, strangers, and those that listen and say nothing or nonsense.

// Not all of it is needed here.
#[allow(dead_code)]
#[path = "../../../../tests/src/certificates.rs"]
mod certificates;

use std::convert::Infallible;

use everlog_patience as patience;
use hyper::server::conn::http2 as serving;
use hyper::service::service_fn;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::peers::client::*;
use certificates::{Authority, Certified};

const HERE: &str = "127.0.0.1";
/// Longer than a test waits: what takes as long does not end by itself.
const FOR_EVER: Duration = Duration::from_secs(24 * 3_600);

/// Certificates in files of a directory of the test's own.
struct CertificateDir {
    dir: tempfile::TempDir,
}

impl CertificateDir {
    fn new(authority: &Authority, certified: &Certified) -> Self {
        let place = Self { dir: tempfile::tempdir().expect("a directory") };
        place.put("ca", &authority.certificate());
        place.show(certified);
        place
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn show(&self, certified: &Certified) {
        self.put("certificate", &certified.certificate);
        self.put("key", &certified.key);
    }

    fn tls(&self, name: &str) -> Outcome<Tls> {
        Tls::read(["certificate", "key", "ca"].map(|file| self.dir.path().join(file)), name)
    }

    fn links(&self, name: &str) -> PeerClient {
        PeerClient::new(PeerAuth {
            secret: None,
            tls: Some(Arc::new(self.tls(name).expect("they are good"))),
        })
    }
}

fn of(authority: &Authority, host: &str) -> CertificateDir {
    CertificateDir::new(authority, &authority.certify(host))
}

fn plain() -> PeerClient {
    PeerClient::new(PeerAuth::default())
}

/// A node that says who it is to whoever it trusts; its address.
async fn node(links: PeerClient) -> String {
    let listener = TcpListener::bind((HERE, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it has one").to_string();
    let links = Arc::new(links);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let links = Arc::clone(&links);
            tokio::spawn(async move {
                match links.tls() {
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => serve(stream, Arc::clone(&links)).await,
                        Err(_stranger) => {}
                    },
                    None => serve(stream, links).await,
                }
            });
        }
    });
    address
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, links: Arc<PeerClient>) {
    let answers = service_fn(move |request| {
        let mut response = Response::new(Full::new(Bytes::from_static(b"b\n7")));
        if !links.trusts(&request) {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
        }
        async move { Ok::<_, Infallible>(response) }
    });
    let served = serving::Builder::new(TokioExecutor::new());
    // Whoever breaks it off is looked at from the other side.
    drop(served.serve_connection(TokioIo::new(stream), answers).await);
}

/// A peer of which every connection is given to `behave`.
async fn peer<F>(behave: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((HERE, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it has one").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(behave(stream));
        }
    });
    address
}

async fn silent(stream: TcpStream) {
    std::future::pending::<()>().await;
    drop(stream);
}

/// A node that hangs up on whoever comes first.
async fn slow_at_first() -> String {
    let count = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let slow = peer(move |stream| {
        let connections = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { if connections < 4 { drop(stream) } else { serve(stream, Arc::new(plain())).await } }
    });
    slow.await
}

/// What one says of the other after it has asked: all that is known once the connection has ended.
async fn refused(links: &PeerClient, address: &str) -> String {
    let mut why = None;
    let is_known = async || {
        assert_eq!(links.instance("b", address).await, None, "it is no answer");
        why = links.refusal(address);
        why.is_some()
    };
    patience::until("a refusal", is_known).await.expect("it is known");
    why.expect("it is known")
}

/// The instance that a node tells. A machine may be too slow for the half second that it has.
async fn told(links: &PeerClient, address: &str) -> String {
    let mut instance = None;
    let is_caught_up = async || {
        instance = links.instance("b", address).await;
        instance.is_some()
    };
    patience::until("an instance", is_caught_up).await.expect("it is told");
    instance.expect("it is told")
}

#[tokio::test]
async fn nodes_with_certificates_of_one_authority_talk() {
    let authority = Authority::new("authority");
    let address = node(of(&authority, HERE).links("")).await;
    let links = of(&authority, "elsewhere").links("");
    assert_eq!(told(&links, &address).await, "7");
    assert_eq!(links.refusal(&address), None);
    let named = node(of(&authority, "nodes.example").links("")).await;
    let links = of(&authority, "nodes.example").links("nodes.example");
    assert_eq!(told(&links, &named).await, "7", "by the name that all have");
}

#[tokio::test]
async fn a_namesake_that_is_slow_counts_and_one_that_is_gone_does_not() {
    // Each time another one: a machine may be so slow that one does not get to answer before it counts for gone.
    let slow_counts = async || {
        let slow = slow_at_first().await;
        assert_eq!(plain().instance("b", &slow).await, None, "it is too busy at first");
        plain().instance_of_namesake("b", &slow).await.as_deref() == Some("7")
    };
    patience::until("a slow namesake", slow_counts).await.expect("it counts");
    let silent = peer(silent).await;
    let gone = TcpListener::bind((HERE, 0)).await.expect("a free port").local_addr().expect("it has one");
    let (gone, links) = (gone.to_string(), plain());
    // One that is waited for is asked before it.
    let gone_is_first = async || {
        tokio::select! {
            biased;
            _none = links.instance_of_namesake("b", &silent) => false,
            instance = links.instance_of_namesake("b", &gone) => {
                assert_eq!(instance, None);
                true
            }
        }
    };
    patience::until("a namesake that is gone", gone_is_first).await.expect("nobody is waited for");
}

#[tokio::test]
async fn a_stranger_is_refused_and_told_why() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let address = node(of(&authority, HERE).links("")).await;
    let without = refused(&plain(), &address).await;
    assert!(without.contains("cluster.certificate_file"), "{without}");
    let shown = CertificateDir::new(&authority, &other.certify(HERE));
    let others = refused(&shown.links(""), &address).await;
    assert!(others.contains("it does not take this node"), "{others}");
    let late = CertificateDir::new(
        &authority,
        &authority.certify_as(HERE, |late| late.not_after = rcgen::date_time_ymd(2020, 1, 2)),
    );
    let late = refused(&late.links(""), &address).await;
    assert!(late.contains("it does not take this node"), "{late}");
    let unknown = refused(&of(&other, HERE).links(""), &address).await;
    assert!(unknown.contains("this node does not take it"), "{unknown}");
}

#[tokio::test]
async fn a_node_that_is_not_who_it_should_be_is_refused() {
    let authority = Authority::new("authority");
    let links = of(&authority, HERE).links("");
    let elsewhere = node(of(&authority, "10.0.0.1").links("")).await;
    let why = refused(&links, &elsewhere).await;
    assert!(why.contains("not valid for name"), "{why}");
    let open = node(plain()).await;
    let why = refused(&links, &open).await;
    assert!(why.contains("does not speak it"), "{why}");
}

#[tokio::test]
async fn another_secret_is_refused_and_told() {
    let secret = |text| PeerClient::new(PeerAuth { secret: Some(HeaderValue::from_static(text)), tls: None });
    let address = node(secret("of-the-nodes")).await;
    assert_eq!(told(&secret("of-the-nodes"), &address).await, "7");
    for stranger in [secret("of-somebody"), plain()] {
        let why = refused(&stranger, &address).await;
        assert!(why.contains("cluster.secret_file"), "{why}");
    }
    let why = refused(&secret("of-somebody"), &node(plain()).await).await;
    assert!(why.contains("cluster.secret_file"), "one that has none refuses one that has: {why}");
}

#[tokio::test]
async fn certificates_that_change_are_read_again_and_bad_ones_are_not_taken() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let address = node(of(&authority, HERE).links("")).await;
    let place = CertificateDir::new(&authority, &other.certify(HERE));
    let links = place.links("");
    refused(&links, &address).await;
    place.show(&authority.certify("node-of-the-authority"));
    assert_eq!(told(&links, &address).await, "7");
    assert_eq!(links.refusal(&address), None);
    place.put("key", "half a k");
    let tls = links.tls().expect("it speaks it");
    let goes_on = async || {
        let stream = TcpStream::connect(&address).await.expect("it listens");
        tls.connect(&address, stream).await.is_ok()
    };
    patience::until("another connection", goes_on).await.expect("the former ones go on");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let bad = |file: &str, text: Option<&str>| {
        let place = of(&authority, HERE);
        match text {
            Some(text) => drop(place.put(file, text)),
            None => std::fs::remove_file(place.dir.path().join(file)).expect("it was there"),
        }
        let error = place.tls("").err().expect("it is refused");
        let told = format!("{error:#}");
        assert!(told.contains(&place.dir.path().join(file).display().to_string()), "{told}");
        told
    };
    for file in ["certificate", "key", "ca"] {
        assert!(bad(file, None).contains("cannot be read"));
        assert!(bad(file, Some("")).contains("in PEM"));
        bad(file, Some("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"));
    }
    let told = bad("key", Some(&other.certify(HERE).key));
    assert!(told.contains("cannot be used with"), "{told}");
    let error = of(&authority, HERE).tls("no name!").err().expect("it is refused");
    assert!(format!("{error:#}").contains("cluster.server_name"));
}

#[tokio::test]
async fn a_silent_peer_holds_up_nobody_else_and_those_who_ask_it_all_at_once() {
    let address = peer(silent).await;
    let tls = Arc::new(of(&Authority::new("authority"), HERE).links(""));
    for links in [Arc::new(plain()), tls] {
        let mut asked = tokio::task::JoinSet::new();
        // One after the other they would take half an hour and more.
        for _ in 0..1_000 {
            let (links, address) = (Arc::clone(&links), address.clone());
            let request = Request::post("/").body(Bytes::new()).expect("a request");
            asked.spawn(async move { links.call(&address, request).await.map(drop) });
        }
        let answers = patience::answer("the end of all calls", asked.join_all()).await.expect("all at once");
        assert!(answers.iter().all(Result::is_err), "it says nothing");
    }
    let there = node(plain()).await;
    let links = plain();
    // The one waits while the other is answered.
    let other_is_first = async || {
        tokio::select! {
            biased;
            _silence = links.ask(&address, "/", &(), FOR_EVER) => false,
            instance = links.instance("b", &there) => instance.as_deref() == Some("7"),
        }
    };
    patience::until("an answer of the other", other_is_first).await.expect("nobody is held up");
}

/// Clients that do not read what they have asked for, at a gateway that brings it from another node.
#[tokio::test]
async fn answers_that_nobody_reads_hold_up_no_other() {
    static LARGE: [u8; 1 << 20] = [0; 1 << 20];
    let address = peer(|stream| async move {
        let answers = service_fn(|request: Request<Incoming>| async move {
            let body: &'static [u8] = if request.uri().path() == "/large" { &LARGE } else { b"b\n7" };
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(body))))
        });
        let served = serving::Builder::new(TokioExecutor::new());
        drop(served.serve_connection(TokioIo::new(stream), answers).await);
    });
    let (address, links) = (address.await, plain());
    let mut unread = Vec::new();
    assert_eq!(told(&links, &address).await, "7", "there is a connection");
    for _ in 0..100 {
        let request = Request::get("/large").body(Bytes::new()).expect("a request");
        unread.push(links.call(&address, request).await.expect("it is answered"));
    }
    for _ in 0..10 {
        assert_eq!(told(&links, &address).await, "7");
    }
    let read = unread.pop().expect("there are some").into_body().collect().await.expect("all of it comes");
    assert_eq!(read.to_bytes().len(), LARGE.len());
}

#[tokio::test]
async fn garbage_and_frames_beyond_all_bounds_end_the_connection_only() {
    const GARBAGE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    // A frame of 16 MiB - 1; settings that allow it, which are no excuse.
    const HUGE: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1];
    for bytes in [GARBAGE, HUGE] {
        let address = peer(move |mut stream| async move {
            // It may have been hung up on.
            drop(stream.write_all(bytes).await);
            silent(stream).await;
        });
        let address = address.await;
        let links = plain();
        let asked = links.ask(&address, "/", &(), FOR_EVER);
        let answer = patience::answer("the end of the connection", asked).await.expect("it ends");
        assert!(answer.is_err(), "{answer:?}");
    }
}
