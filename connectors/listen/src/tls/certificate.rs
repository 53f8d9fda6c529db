//! What an operator must know of a certificate in use: whose it is, and when it ends.

use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::tls::{PemFile, TlsError};

/// What a certificate is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateUse {
    /// Clients verify it: the server's own, or one between it and its authority.
    Server,
    /// It certifies clients.
    ClientCa,
    /// Other nodes verify it.
    Peer,
}

/// A certificate in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// What it is used for.
    pub used_as: CertificateUse,
    /// It stands first in its file: of a chain, the one of the server itself.
    pub is_first: bool,
    /// Where it is.
    pub file: PemFile,
    /// Whose it is: its distinguished name.
    pub subject: String,
    /// When it begins to be valid, in seconds since 1970.
    pub begins_s: i64,
    /// When it ends, in seconds since 1970.
    pub ends_s: i64,
    /// The same, as text.
    pub ends: String,
    /// It has alternative names. Clients look at no other names of a server.
    pub has_names: bool,
}

impl CertificateUse {
    /// All.
    pub const ALL: [Self; 3] = [Self::Server, Self::ClientCa, Self::Peer];

    /// As a label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::ClientCa => "client-ca",
            Self::Peer => "peer",
        }
    }
}

impl Certificate {
    /// The certificates of a file.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn read_all(
        file: &PemFile,
        certificates: &[CertificateDer<'_>],
        used_as: CertificateUse,
    ) -> Result<Vec<Self>, TlsError> {
        let read = |(at, der): (usize, &CertificateDer<'_>)| {
            let (_, parsed) = X509Certificate::from_der(der).map_err(|error| file.unusable(&error))?;
            let validity = parsed.validity();
            let names = parsed.subject_alternative_name().ok().flatten();
            Ok(Self {
                used_as,
                is_first: at == 0,
                file: file.clone(),
                subject: parsed.subject().to_string(),
                begins_s: validity.not_before.timestamp(),
                ends_s: validity.not_after.timestamp(),
                ends: validity.not_after.to_string(),
                has_names: names.is_some_and(|names| !names.value.general_names.is_empty()),
            })
        };
        certificates.iter().enumerate().map(read).collect()
    }

    /// Seconds until it ends; negative once it has.
    pub fn left_s(&self, now: SystemTime) -> i64 {
        self.ends_s.saturating_sub(seconds(now))
    }

    /// It is not valid yet.
    pub fn is_early(&self, now: SystemTime) -> bool {
        seconds(now) < self.begins_s
    }

    /// Seconds until the first of them ends, of those that have not ended; if all have, since the last one has, as a negative
    /// number. A file of authorities may keep some that have ended.
    pub fn first_left_s<'a>(certificates: impl Iterator<Item = &'a Self>, now: SystemTime) -> Option<i64> {
        certificates.map(|certificate| certificate.left_s(now)).min_by_key(|left| (*left < 0, left.abs()))
    }
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ending(ends_s: i64) -> Certificate {
        Certificate {
            used_as: CertificateUse::ClientCa,
            is_first: true,
            file: PemFile { path: "ca.pem".into(), setting: "tls.client_ca_file" },
            subject: String::new(),
            begins_s: 0,
            ends_s,
            ends: String::new(),
            has_names: false,
        }
    }

    #[test]
    fn the_first_to_end_counts_and_one_that_has_ended_does_not() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let first = |ends: &[i64]| {
            let certificates: Vec<_> = ends.iter().map(|ends_s| ending(*ends_s)).collect();
            Certificate::first_left_s(certificates.iter(), now)
        };
        assert_eq!(first(&[]), None);
        assert_eq!(first(&[5_000, 2_000]), Some(1_000));
        assert_eq!(first(&[500, 5_000]), Some(4_000));
        assert_eq!(first(&[500, 900]), Some(-100));
    }
}
