//! The listener of these tests: it says which certificate its client has shown.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use everlog_listen::http2::{self, Options};
use everlog_listen::tls::{ClientCertificates, PemFile, ServerTls, ServerTlsOptions, TlsError, TlsVersion};
use everlog_listen::{Counts, Listener, ListenerBounds, SharedConnection, http1};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::net::TcpListener;

use crate::certificates::{Authority, Certified};

/// Longer than a test may take.
pub const LONG: Duration = Duration::from_secs(3_600);

/// Answers with the length of the client's certificate.
#[derive(Clone)]
struct Here;

impl tower_service::Service<Request<Incoming>> for Here {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let connection = request.extensions().get::<SharedConnection>().expect("each request has its own");
        let shown =
            connection.client_certificate().map_or("none".into(), |der| format!("{} bytes", der.len()));
        ready(Ok(Response::new(Full::from(format!("shown: {shown}.")))))
    }
}

/// A listener over TLS, and its files.
pub struct TlsFiles {
    dir: tempfile::TempDir,
    pub authority: Authority,
}

/// A listener that serves.
pub struct Served {
    pub address: SocketAddr,
    pub tls: Arc<ServerTls>,
    pub counts: Arc<Counts>,
}

impl TlsFiles {
    /// One whose certificate is for `localhost`.
    pub fn new() -> Self {
        let place =
            Self { dir: tempfile::tempdir().expect("a directory"), authority: Authority::new("servers") };
        place.show(&place.authority.certify("localhost"));
        place
    }

    /// Writes a file.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Writes certificate and key.
    pub fn show(&self, certified: &Certified) {
        self.put("certificate", &certified.certificate);
        self.put("key", &certified.key);
    }

    pub fn file(&self, name: &str, setting: &'static str) -> PemFile {
        PemFile { path: self.dir.path().join(name), setting }
    }

    /// The authorities of clients, in a file.
    pub fn clients(&self, authority: &Authority) -> PemFile {
        self.put("clients", &authority.certificate());
        self.file("clients", "tls.client_ca_file")
    }

    pub fn tls(&self, client_certificates: ClientCertificates) -> Result<Arc<ServerTls>, TlsError> {
        self.tls_from(client_certificates, TlsVersion::V1_2)
    }

    pub fn tls_from(
        &self,
        client_certificates: ClientCertificates,
        version_min: TlsVersion,
    ) -> Result<Arc<ServerTls>, TlsError> {
        ServerTls::new(ServerTlsOptions {
            certificate: self.file("certificate", "tls.certificate_file"),
            key: self.file("key", "tls.key_file"),
            client_certificates,
            version_min,
        })
    }

    /// A listener of HTTP/1.1 that asks for these certificates.
    pub async fn served(&self, client_certificates: ClientCertificates) -> Served {
        let tls = self.tls(client_certificates).expect("the files are good");
        http1_over(tls, bounds()).await
    }
}

pub fn bounds() -> ListenerBounds {
    ListenerBounds { hello_within: LONG, idle_within: LONG, ..ListenerBounds::default() }
}

pub async fn http1_over(tls: Arc<ServerTls>, bounds: ListenerBounds) -> Served {
    over(tls, bounds, |listener| http1::serve(listener, Here)).await
}

pub async fn http2_over(tls: Arc<ServerTls>, bounds: ListenerBounds) -> Served {
    over(tls, bounds, serve_http2).await
}

/// Addresses of listeners in plain text: HTTP/1.1, HTTP/2.
pub async fn plain() -> [SocketAddr; 2] {
    let (one, first) = listener(bounds()).await;
    let (two, second) = listener(bounds()).await;
    tokio::spawn(http1::serve(one, Here));
    tokio::spawn(serve_http2(two));
    [first, second]
}

async fn over<F>(tls: Arc<ServerTls>, bounds: ListenerBounds, serve: impl FnOnce(Listener) -> F) -> Served
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, address) = listener(bounds).await;
    let counts = listener.counts();
    tokio::spawn(serve(listener.over(Some(Arc::clone(&tls)))));
    Served { address, tls, counts }
}

async fn listener(bounds: ListenerBounds) -> (Listener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("it has one");
    (Listener::new(socket, bounds), address)
}

fn serve_http2(listener: Listener) -> impl Future<Output = ()> {
    let options = Options {
        streams_max: 10,
        window_bytes: 1 << 20,
        header_bytes_max: 16 << 10,
        alive_every: LONG,
        alive_within: LONG,
    };
    http2::serve(listener, Here, options, std::future::pending())
}
