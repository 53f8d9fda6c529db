//! A client over TLS that trusts one authority.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Context as _;
use bytes::Bytes;
use everlog_tests::{patience, raw};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// Connects to one address, as to `localhost`.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    connector: TlsConnector,
}

impl Client {
    /// `protocol`: what is spoken inside TLS.
    pub fn new(address: SocketAddr, authority: &str, protocol: &str) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(authority)?)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Ok(Self { address, connector: TlsConnector::from(Arc::new(config)) })
    }

    pub async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        self.connector.connect("localhost".try_into().expect("a name"), stream).await
    }

    /// The certificate that the server shows now.
    pub async fn shown(&self) -> anyhow::Result<Vec<u8>> {
        let stream = self.connect().await?;
        let chain = stream.get_ref().1.peer_certificates().context("a server shows one")?;
        Ok(chain.first().context("a server shows one")?.to_vec())
    }

    /// The answer to a request over HTTP/1.1.
    pub async fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = self.connect().await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// A connection for calls.
    pub async fn channel(&self) -> anyhow::Result<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
        Ok(endpoint.connect_with_connector(self.clone()).await?)
    }

    /// Waits until the node serves calls.
    pub async fn served(&self) -> anyhow::Result<()> {
        let serves = async || match self.channel().await {
            Ok(channel) => {
                let check =
                    raw::call(&channel, "/grpc.health.v1.Health/Check", tonic::Request::new(Bytes::new()));
                check.await.is_ok_and(|answer| answer.get_ref()[..] == [8, 1])
            }
            Err(_not_yet) => false,
        };
        Ok(patience::until("the node serves", serves).await?)
    }
}

impl tower_service::Service<Uri> for Client {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.connect().await.map(TokioIo::new) })
    }
}

/// The first certificate of a text in PEM.
pub fn certificate(pem: &str) -> anyhow::Result<CertificateDer<'static>> {
    Ok(CertificateDer::from_pem_slice(pem.as_bytes())?)
}
