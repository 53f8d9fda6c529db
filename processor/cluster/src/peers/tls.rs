//! TLS between nodes: each shows a certificate, and accepts those that the operator's authorities have signed. It
//! proves identity only: every holder of such a certificate is a node.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// How long a handshake may take.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(2);
/// Bytes that are still read of a refused client.
const HEARD_BYTES_MAX: usize = 64 << 10;
/// The protocol inside TLS.
const PROTOCOL: &[u8] = b"h2";
/// The settings with the names of the files, in the same order.
const KEYS: [&str; 3] = ["cluster.certificate_file", "cluster.key_file", "cluster.ca_file"];

/// The certificates of a node, and whom it accepts.
pub struct Tls {
    /// Certificate, key and authorities.
    files: [PathBuf; 3],
    /// None where each certificate has the host of its node.
    name: Option<ServerName<'static>>,
    known: Mutex<LoadedCertificates>,
}

struct LoadedCertificates {
    /// The files as they were when they were read.
    looks: [Option<FileVersion>; 3],
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

/// When a file was changed last, and its length in bytes.
type FileVersion = (SystemTime, u64);

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
        let known = Mutex::new(known(&files)?);
        Ok(Self { files, name, known })
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
        let connector = self.known().0;
        let made = tokio::time::timeout(KNOWN_WITHIN, connector.connect(name, stream)).await;
        Ok(made.unwrap_or_else(|_silent| Err(ErrorKind::TimedOut.into()))?.into())
    }

    /// Accepts a TLS connection.
    ///
    /// # Errors
    /// As for [`Self::connect`].
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let acceptor = self.known().1;
        let made = tokio::time::timeout(KNOWN_WITHIN, acceptor.accept(stream).into_fallible()).await;
        match made {
            Ok(Ok(stream)) => Ok(stream.into()),
            Ok(Err((error, stream))) => {
                // If it were closed at once, with data unread, the client would never learn why.
                drop(tokio::time::timeout(KNOWN_WITHIN, hear_out(stream)).await);
                Err(error)
            }
            Err(_silent) => Err(ErrorKind::TimedOut.into()),
        }
    }

    /// The certificates in the files; if they cannot be used, those from before.
    fn known(&self) -> (TlsConnector, TlsAcceptor) {
        let mut now = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let looks = looks(&self.files);
        if now.looks != looks {
            match known(&self.files) {
                Ok(read) => {
                    tracing::info!("peer certificates reloaded");
                    *now = read;
                }
                Err(error) => {
                    tracing::warn!(%error, "changed peer certificates cannot be used: the former ones stay in use");
                    now.looks = looks;
                }
            }
        }
        (now.connector.clone(), now.acceptor.clone())
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

/// Reads what a refused client still sends, until it closes the connection.
async fn hear_out(mut stream: TcpStream) -> std::io::Result<()> {
    stream.shutdown().await?;
    let mut said = [0; 4_096];
    let mut left = HEARD_BYTES_MAX;
    while left > 0 {
        match stream.read(&mut said).await? {
            0 => return Ok(()),
            bytes => left = left.saturating_sub(bytes),
        }
    }
    Ok(())
}

fn looks(files: &[PathBuf; 3]) -> [Option<FileVersion>; 3] {
    let look = |file: &PathBuf| {
        let metadata = std::fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.each_ref().map(look)
}

fn known(files: &[PathBuf; 3]) -> Result<LoadedCertificates> {
    // First, so that a change during the read is noticed.
    let looks = looks(files);
    let [certificate_file, key_file, ca_file] = files;
    let chain = certificates(certificate_file, KEYS[0])?;
    let key = PrivateKeyDer::from_pem_slice(&read(key_file, KEYS[1])?)
        .with_context(|| format!("{} holds no private key in PEM ({})", key_file.display(), KEYS[1]))?;
    let mut roots = RootCertStore::empty();
    for authority in certificates(ca_file, KEYS[2])? {
        roots.add(authority).with_context(|| unusable(ca_file, KEYS[2]))?;
    }
    let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .with_context(|| unusable(ca_file, KEYS[2]))?;
    if let Some((first, between)) = chain.split_first()
        && let Err(error) = verifier.verify_client_cert(first, between, UnixTime::now())
    {
        let (certificate, authorities) = (certificate_file.display(), ca_file.display());
        tracing::warn!(%certificate, %authorities, %error, "own peer certificate is not valid for the own authorities: other nodes will refuse it");
    }
    let with = || format!("{} cannot be used with {}", certificate_file.display(), key_file.display());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key.clone_key())
        .with_context(with)?;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .with_context(with)?;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Every connection makes a full handshake: connections are few and last long.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    client.resumption = Resumption::disabled();
    let (connector, acceptor) = (TlsConnector::from(Arc::new(client)), TlsAcceptor::from(Arc::new(server)));
    Ok(LoadedCertificates { looks, connector, acceptor })
}

fn read(file: &Path, key: &str) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("{} cannot be read ({key})", file.display()))
}

fn certificates(file: &Path, key: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = read(file, key)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read).collect();
    let found = found.with_context(|| format!("{} is no PEM ({key})", file.display()))?;
    if found.is_empty() {
        bail!("{} holds no certificate in PEM ({key})", file.display());
    }
    Ok(found)
}

fn unusable(file: &Path, key: &str) -> String {
    format!("{} cannot be used ({key})", file.display())
}
