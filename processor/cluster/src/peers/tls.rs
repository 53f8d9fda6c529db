//! TLS between nodes: each shows a certificate, and accepts those that the operator's authorities have signed. It
//! proves identity only: every holder of such a certificate is a node.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use everlog_listen::tls::{Certificate, CertificateUse, HTTP2, PemFile, Reloading, TlsError, read_to_end};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// How long a handshake may take.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// The certificates of a node, and whom it accepts.
pub struct Tls {
    /// None where each certificate has the host of its node.
    name: Option<ServerName<'static>>,
    known: Reloading<LoadedCertificates>,
}

struct LoadedCertificates {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
    /// Those that this node shows.
    shown: Vec<Certificate>,
}

impl Tls {
    /// Reads the files: certificate, key and authorities. `name` is in all certificates; empty where each has its
    /// host.
    ///
    /// # Errors
    /// A file cannot be read or used; the error says which, and why.
    pub fn read(files: [PathBuf; 3], name: &str) -> Result<Self> {
        let name = match name {
            "" => None,
            name => Some(
                ServerName::try_from(name.to_owned())
                    .with_context(|| format!("\"{name}\" is no host name (cluster.server_name)"))?,
            ),
        };
        let [certificate, key, authorities] = files;
        let files = [
            PemFile { path: certificate, setting: "cluster.certificate_file" },
            PemFile { path: key, setting: "cluster.key_file" },
            PemFile { path: authorities, setting: "cluster.ca_file" },
        ];
        let known = Reloading::new(files.to_vec(), move || loaded(&files))?;
        Ok(Self { name, known })
    }

    /// Connects over TLS as a client.
    ///
    /// # Errors
    /// One of the two does not trust the other, or is silent.
    pub async fn connect(&self, address: &str, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = match &self.name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?,
        };
        let connecting = self.known().connector.connect(name, stream);
        let made = tokio::time::timeout(KNOWN_WITHIN, connecting).await;
        Ok(made.unwrap_or_else(|_silent| Err(ErrorKind::TimedOut.into()))?.into())
    }

    /// Accepts a TLS connection.
    ///
    /// # Errors
    /// As for [`Self::connect`].
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let accepting = self.known().acceptor.accept(stream).into_fallible();
        match tokio::time::timeout(KNOWN_WITHIN, accepting).await {
            Ok(Ok(stream)) => Ok(stream.into()),
            Ok(Err((error, stream))) => {
                drop(tokio::time::timeout(KNOWN_WITHIN, read_to_end(stream)).await);
                Err(error)
            }
            Err(_silent) => Err(ErrorKind::TimedOut.into()),
        }
    }

    /// Reads files again that have changed, for connections from now on; true if so. If they cannot be used, those from before stay
    /// in use.
    pub fn reload(&self) -> bool {
        match self.known.refresh() {
            Ok(true) => {
                tracing::info!("peer certificates reloaded");
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(%error, "changed peer certificates cannot be used: the former ones stay in use");
                false
            }
        }
    }

    /// The certificates that this node shows others.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.known.get().shown.clone()
    }

    fn known(&self) -> Arc<LoadedCertificates> {
        self.reload();
        self.known.get()
    }
}

/// What an error says about trust; none where the other side was silent or gone.
pub fn distrust(error: &std::io::Error) -> Option<String> {
    use rustls::Error;
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::AlertReceived(alert)) => Some(format!("TLS: it does not take this node ({alert:?})")),
        Some(Error::InvalidMessage(_)) => Some("TLS: it does not speak it".to_owned()),
        Some(error) => Some(format!("TLS: this node does not take it ({error})")),
        // What HTTP/2 leaves of a TLS error.
        None => (error.kind() == ErrorKind::InvalidData)
            .then(|| format!("TLS: it does not take this node ({error})")),
    }
}

fn loaded([certificate, key, authorities]: &[PemFile; 3]) -> Result<LoadedCertificates, TlsError> {
    let chain = certificate.certificates()?;
    let shown = Certificate::read_all(certificate, &chain, CertificateUse::Peer)?;
    let private_key = key.private_key()?;
    let roots = authorities.authorities()?;
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(|error| authorities.unusable(&error))?;
    if let Some((first, between)) = chain.split_first()
        && let Err(error) = verifier.verify_client_cert(first, between, UnixTime::now())
    {
        tracing::warn!(%certificate, %authorities, %error, "own peer certificate is not valid for the own authorities: other nodes will refuse it");
    }
    let unusable = |error| TlsError::pair(certificate, key, &error);
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .and_then(|server| {
            server
                .with_client_cert_verifier(verifier)
                .with_single_cert(chain.clone(), private_key.clone_key())
        })
        .map_err(unusable)?;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .and_then(|client| client.with_root_certificates(roots).with_client_auth_cert(chain, private_key))
        .map_err(unusable)?;
    server.alpn_protocols = vec![HTTP2.to_vec()];
    client.alpn_protocols = vec![HTTP2.to_vec()];
    // Every connection makes a full handshake: connections are few and last long.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    client.resumption = Resumption::disabled();
    let (connector, acceptor) = (TlsConnector::from(Arc::new(client)), TlsAcceptor::from(Arc::new(server)));
    Ok(LoadedCertificates { connector, acceptor, shown })
}
