//! The metrics of TLS: when certificates end, and handshakes that failed.

use std::time::SystemTime;

use everlog_listen::tls::{Certificate, CertificateUse, HandshakeFailure};

use super::*;
use crate::services::certificates::NodeCertificates;

pub(super) const CERTIFICATES: &[Row<i64>] = rows! {
    Stands "everlog_certificate_expires_seconds" "Seconds until the first of the certificates in use ends, negative once all have: the server's with its chain, the authorities of clients, the one that other nodes see." |left| {
        *left as f64
    };
};

pub(super) const HANDSHAKES: &[Row<u64>] = rows! {
    Counts "everlog_tls_handshakes_failed_total" "TLS handshakes with clients that failed, by reason." |n| *n as f64;
};

/// Adds the certificates of a node, and failed handshakes of its clients.
pub fn watch_certificates(registry: &Registry, certificates: &Arc<NodeCertificates>) {
    let listed = Arc::clone(certificates);
    add(registry, CERTIFICATES, Some("use"), move |visit| {
        let (all, now) = (listed.list(), SystemTime::now());
        for used_as in CertificateUse::ALL {
            let of_use = all.iter().filter(|certificate| certificate.used_as == used_as);
            if let Some(left_s) = Certificate::first_left_s(of_use, now) {
                visit(used_as.name(), &left_s);
            }
        }
    });
    let Some(tls) = certificates.server().cloned() else { return };
    add(registry, HANDSHAKES, Some("reason"), move |visit| {
        for failure in HandshakeFailure::ALL {
            visit(failure.name(), &tls.failures.get(failure));
        }
    });
}
