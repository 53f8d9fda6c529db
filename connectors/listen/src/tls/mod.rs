//! What all that speaks TLS needs: certificates and keys in files, which are read again when they change. What a verified
//! certificate permits is decided elsewhere.

mod pem;
mod refused;
mod reloading;

pub use pem::{PemFile, TlsError};
pub use refused::read_to_end;
pub use reloading::Reloading;

/// HTTP/2 in the negotiation of protocols (ALPN, RFC 7301).
pub const HTTP2: &[u8] = b"h2";
