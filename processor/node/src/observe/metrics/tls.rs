//! The metrics of TLS: when certificates end, and handshakes that failed.

use std::time::SystemTime;

use everlog_listen::tls::{Certificate, CertificateUse, HandshakeFailure, ServerTls};

use super::*;

pub(super) const CERTIFICATES: &[Row<i64>] = rows! {
    Stands "everlog_certificate_expires_seconds" "Seconds until the first of the certificates in use ends, negative once all have: the server's with its chain, the authorities of clients, the one that other nodes see." |left| {
        *left as f64
    };
};

pub(super) const HANDSHAKES: &[Row<u64>] = rows! {
    Counts "everlog_tls_handshakes_failed_total" "TLS handshakes with clients that failed, by reason." |n| *n as f64;
};

/// Adds the certificates that `list` returns.
pub fn watch_certificates(registry: &Registry, list: impl Fn() -> Vec<Certificate> + Send + Sync + 'static) {
    add(registry, CERTIFICATES, Some("use"), move |visit| {
        let (certificates, now) = (list(), SystemTime::now());
        for used_as in CertificateUse::ALL {
            let of_use = certificates.iter().filter(|certificate| certificate.used_as == used_as);
            if let Some(left_s) = Certificate::first_left_s(of_use, now) {
                visit(used_as.name(), &left_s);
            }
        }
    });
}

/// Adds failed handshakes.
pub fn watch_handshakes(registry: &Registry, tls: Arc<ServerTls>) {
    add(registry, HANDSHAKES, Some("reason"), move |visit| {
        for failure in HandshakeFailure::ALL {
            visit(failure.name(), &tls.failures.get(failure));
        }
    });
}
