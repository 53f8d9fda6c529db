//! Why a handshake failed, in classes that can be counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::{CertificateError, Error};

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The client does not speak TLS.
    PlainText,
    /// The client was silent or slow.
    TimedOut,
    /// The client closed the connection.
    Closed,
    /// No version or cipher that both know.
    Incompatible,
    /// No protocol inside TLS that both speak (ALPN).
    Protocol,
    /// The client has shown no certificate.
    CertificateMissing,
    /// The client's certificate has ended.
    CertificateExpired,
    /// The client's certificate is not valid yet.
    CertificateNotYetValid,
    /// The client's certificate is of another authority.
    CertificateUnknownAuthority,
    /// The client's certificate is for other uses, or damaged.
    CertificateUnusable,
    /// The client does not accept the server's certificate, or ends the handshake for another reason of its own.
    RefusedByClient,
    /// What the client sent is against the protocol.
    Other,
}

/// Failed handshakes by reason.
#[derive(Debug, Default)]
pub struct FailureCounts([AtomicU64; HandshakeFailure::ALL.len()]);

impl HandshakeFailure {
    /// All.
    pub const ALL: [Self; 12] = [
        Self::PlainText,
        Self::TimedOut,
        Self::Closed,
        Self::Incompatible,
        Self::Protocol,
        Self::CertificateMissing,
        Self::CertificateExpired,
        Self::CertificateNotYetValid,
        Self::CertificateUnknownAuthority,
        Self::CertificateUnusable,
        Self::RefusedByClient,
        Self::Other,
    ];

    /// As a label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlainText => "plain_text",
            Self::TimedOut => "timed_out",
            Self::Closed => "closed",
            Self::Incompatible => "incompatible",
            Self::Protocol => "protocol",
            Self::CertificateMissing => "certificate_missing",
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateNotYetValid => "certificate_not_yet_valid",
            Self::CertificateUnknownAuthority => "certificate_unknown_authority",
            Self::CertificateUnusable => "certificate_unusable",
            Self::RefusedByClient => "refused_by_client",
            Self::Other => "other",
        }
    }

    /// The class of an error of a handshake.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(Error::PeerIncompatible(_)) => Self::Incompatible,
            Some(Error::NoApplicationProtocol) => Self::Protocol,
            Some(Error::NoCertificatesPresented) => Self::CertificateMissing,
            Some(Error::InvalidCertificate(error)) => Self::of_certificate(error),
            Some(Error::AlertReceived(_)) => Self::RefusedByClient,
            Some(_against_the_protocol) => Self::Other,
            // The connection is broken.
            None => Self::Closed,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::CertificateExpired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::CertificateNotYetValid
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Self::CertificateUnknownAuthority
            }
            _unusable => Self::CertificateUnusable,
        }
    }
}

impl FailureCounts {
    /// How many failed for this reason.
    pub fn get(&self, failure: HandshakeFailure) -> u64 {
        self.0[failure as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, failure: HandshakeFailure) {
        self.0[failure as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_counter_and_name() {
        let counts = FailureCounts::default();
        for (failure, number) in HandshakeFailure::ALL.into_iter().zip(1..) {
            (0..number).for_each(|_| counts.count(failure));
        }
        for (failure, number) in HandshakeFailure::ALL.into_iter().zip(1..) {
            assert_eq!(counts.get(failure), number, "{}", failure.name());
        }
        let names: std::collections::BTreeSet<_> = HandshakeFailure::ALL.map(HandshakeFailure::name).into();
        assert_eq!(names.len(), HandshakeFailure::ALL.len());
    }
}
