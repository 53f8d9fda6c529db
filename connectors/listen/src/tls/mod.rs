//! TLS: the handshake of a listener's connections, and what all that speaks TLS needs: certificates and keys in files, which are
//! read again when they change. What a verified certificate permits is decided elsewhere.

mod certificate;
mod failure;
pub(crate) mod handshake;
mod pem;
mod plain_text;
mod refused;
mod reloading;
mod server;

pub use certificate::{Certificate, CertificateUse};
pub use failure::{FailureCounts, HandshakeFailure};
pub use pem::{PemFile, TlsError};
pub use refused::read_to_end;
pub use reloading::Reloading;
pub(crate) use server::Protocol;
pub use server::{ClientCertificates, ServerTls, ServerTlsOptions, TlsVersion};

/// HTTP/2 in the negotiation of protocols (ALPN, RFC 7301).
pub const HTTP2: &[u8] = b"h2";
/// HTTP/1.1 in it.
const HTTP1: &[u8] = b"http/1.1";
