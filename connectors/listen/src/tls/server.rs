//! TLS as a listener speaks it: its certificate, which client certificates it takes, and who may speak what within.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio_rustls::TlsAcceptor;

use crate::tls::certificate::{Certificate, CertificateUse};
use crate::tls::failure::FailureCounts;
use crate::tls::{HTTP1, HTTP2, PemFile, Reloading, TlsError};

/// The certificate of a listener, and how clients may speak with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// The certificate, and those between it and its authority.
    pub certificate: PemFile,
    /// Its private key.
    pub key: PemFile,
    /// The certificates of clients.
    pub client_certificates: ClientCertificates,
    /// The oldest version that is spoken.
    pub version_min: TlsVersion,
}

/// Which certificates clients may or must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// None is asked for.
    Ignored,
    /// A client may show one. One that is not valid is refused.
    Asked(PemFile),
    /// A client without one is refused.
    Required(PemFile),
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

/// What is spoken inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1
    Http1,
    /// HTTP/2
    Http2,
}

/// TLS of one or more listeners.
pub struct ServerTls {
    loaded: Reloading<Loaded>,
    /// Handshakes that failed.
    pub failures: FailureCounts,
}

/// What is made from the files.
struct Loaded {
    http1: TlsAcceptor,
    http2: TlsAcceptor,
    certificates: Vec<Certificate>,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ServerTls")
    }
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn new(options: ServerTlsOptions) -> Result<Arc<Self>, TlsError> {
        let mut files = vec![options.certificate.clone(), options.key.clone()];
        files.extend(options.client_certificates.authorities().cloned());
        let loaded = Reloading::new(files, move || Loaded::read(&options))?;
        Ok(Arc::new(Self { loaded, failures: FailureCounts::default() }))
    }

    /// Reads files again that have changed, for connections from now on; true if so. It reads from the disk.
    ///
    /// # Errors
    /// A changed file cannot be used; those from before stay in use.
    pub fn reload(&self) -> Result<bool, TlsError> {
        self.loaded.refresh()
    }

    /// The certificates in use.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.loaded.get().certificates.clone()
    }

    /// Makes handshakes, by the files as they were read last.
    pub(crate) fn acceptor(&self, protocol: Protocol) -> TlsAcceptor {
        let loaded = self.loaded.get();
        match protocol {
            Protocol::Http1 => loaded.http1.clone(),
            Protocol::Http2 => loaded.http2.clone(),
        }
    }
}

impl ClientCertificates {
    fn authorities(&self) -> Option<&PemFile> {
        match self {
            Self::Ignored => None,
            Self::Asked(authorities) | Self::Required(authorities) => Some(authorities),
        }
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let Some(authorities) = self.authorities() else { return Ok(WebPkiClientVerifier::no_client_auth()) };
        let roots = authorities.authorities()?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
        let verifier = match self {
            Self::Asked(_) => verifier.allow_unauthenticated(),
            Self::Ignored | Self::Required(_) => verifier,
        };
        verifier.build().map_err(|error| authorities.unusable(&error))
    }
}

impl TlsVersion {
    /// This one and those after it.
    fn and_later(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::V1_2 => vec![&TLS13, &TLS12],
            Self::V1_3 => vec![&TLS13],
        }
    }
}

impl Loaded {
    fn read(options: &ServerTlsOptions) -> Result<Self, TlsError> {
        let ServerTlsOptions { certificate, key, client_certificates, version_min } = options;
        let chain = certificate.certificates()?;
        let private_key = key.private_key()?;
        let provider = Arc::new(ring::default_provider());
        let verifier = client_certificates.verifier(&provider)?;
        let mut certificates = Certificate::read_all(certificate, &chain, CertificateUse::Server)?;
        if let Some(authorities) = client_certificates.authorities() {
            let read = authorities.certificates()?;
            certificates.extend(Certificate::read_all(authorities, &read, CertificateUse::ClientCa)?);
        }
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&version_min.and_later())
            .and_then(|config| {
                config.with_client_cert_verifier(verifier).with_single_cert(chain, private_key)
            })
            .map_err(|error| TlsError::pair(certificate, key, &error))?;
        // Every connection makes a full handshake, in which the client's certificate is verified. Connections last long.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let acceptor = |protocol: &[u8]| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.to_vec()];
            TlsAcceptor::from(Arc::new(config))
        };
        Ok(Self { http1: acceptor(HTTP1), http2: acceptor(HTTP2), certificates })
    }
}
