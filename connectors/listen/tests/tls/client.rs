//! A client over TLS: its versions, its protocols, whom it trusts and what it shows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use everlog_patience as patience;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::{Authority, Certified};

/// A client that trusts an authority.
pub struct Client<'a> {
    pub trusts: &'a Authority,
    pub shows: Option<&'a Certified>,
    pub versions: &'static [&'static SupportedProtocolVersion],
    pub protocols: &'static [&'static str],
    pub host: &'static str,
}

pub static ONLY_1_2: &[&SupportedProtocolVersion] = &[&TLS12];
pub static ONLY_1_3: &[&SupportedProtocolVersion] = &[&TLS13];
static BOTH: &[&SupportedProtocolVersion] = &[&TLS12, &TLS13];

impl<'a> Client<'a> {
    pub fn new(trusts: &'a Authority) -> Self {
        Self { trusts, shows: None, versions: BOTH, protocols: &[], host: "localhost" }
    }

    pub fn showing(trusts: &'a Authority, shows: &'a Certified) -> Self {
        Self { shows: Some(shows), ..Self::new(trusts) }
    }

    pub async fn connect(&self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let host = self.host.try_into().expect("a name");
        let shaken = TlsConnector::from(Arc::new(self.config())).connect(host, stream);
        patience::answer("a handshake", shaken).await.expect("it ends")
    }

    /// What is answered to a request, or why there is no answer. With TLS 1.3 a client that is refused learns it only here.
    pub async fn told(&self, address: SocketAddr) -> String {
        let asked = async { asked(&mut self.connect(address).await?).await };
        asked.await.unwrap_or_else(|error: io::Error| error.to_string())
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authorities = certificates(&self.trusts.certificate());
        authorities.into_iter().for_each(|authority| roots.add(authority).expect("it is good"));
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(self.versions)
            .expect("they are supported")
            .with_root_certificates(roots);
        let mut config = match self.shows {
            Some(Certified { certificate, key }) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                config.with_client_auth_cert(certificates(certificate), key).expect("they fit")
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }
}

/// What is answered to a request on a connection that is kept.
pub async fn asked(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut answer = vec![0; 4_096];
    let bytes =
        patience::answer("an answer", stream.read(&mut answer)).await.expect("it comes, or the end")?;
    let text = String::from_utf8_lossy(&answer[..bytes]).into_owned();
    Ok(text.split_once("\r\n\r\n").map_or(text.clone(), |(_, body)| body.to_owned()))
}

/// The server's certificate.
pub fn leaf(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    let chain = stream.get_ref().1.peer_certificates().expect("a server shows one");
    chain[0].to_vec()
}

pub fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().expect("it is PEM")
}
