//! The certificates of a node: they are read again when their files change, and their ends are known before they come.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use everlog_cluster::{PeerAuth, PeerTls};
use everlog_config::Config;
use everlog_listen::tls::{Certificate, CertificateUse, ServerTls};

/// How often files are looked at. A changed certificate is in use within this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the end of a certificate is logged that is near.
const TOLD_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// How long before its end that begins.
const SOON_S: i64 = 30 * DAY_S;
const DAY_S: i64 = 24 * 3_600;

/// The certificates of a node: for clients, and for other nodes.
pub struct NodeCertificates {
    server: Option<Arc<ServerTls>>,
    peers: Option<Arc<PeerTls>>,
}

/// How nodes know each other; there are no others on the embedded log.
///
/// # Errors
/// A file cannot be read or used; the error names it and its setting.
pub fn peer_auth(config: &Config) -> Result<PeerAuth> {
    let cluster = &config.cluster;
    match config.kafka.is_used() {
        true => PeerAuth::read(cluster.secret()?, cluster.tls_files(), &cluster.server_name),
        false => Ok(PeerAuth::default()),
    }
}

impl NodeCertificates {
    /// TLS for clients, if it is set, and that of connections between nodes.
    ///
    /// # Errors
    /// As [`peer_auth`].
    pub fn open(config: &Config, peers: &PeerAuth) -> Result<Arc<Self>> {
        let server = config.tls.options().map(ServerTls::new).transpose()?;
        Ok(Arc::new(Self { server, peers: peers.tls().cloned() }))
    }

    /// TLS for clients.
    pub fn server(&self) -> Option<&Arc<ServerTls>> {
        self.server.as_ref()
    }

    /// All certificates in use.
    pub fn list(&self) -> Vec<Certificate> {
        let server = self.server.iter().flat_map(|tls| tls.certificates());
        server.chain(self.peers.iter().flat_map(|tls| tls.certificates())).collect()
    }

    /// Logs what certificates there are, reads changed files, and logs which end soon, until the future is dropped.
    pub async fn look_after(self: Arc<Self>) {
        self.list().iter().for_each(|certificate| log(certificate, SystemTime::now()));
        if self.server.is_none() && self.peers.is_none() {
            return;
        }
        let (mut looks, mut told) = (tokio::time::interval(LOOK_EVERY), Instant::now());
        loop {
            looks.tick().await;
            let read = Arc::clone(&self);
            // Files may be on a disk that is slow, or away.
            let reloaded = tokio::task::spawn_blocking(move || read.reload()).await;
            let now = SystemTime::now();
            reloaded.unwrap_or_default().iter().for_each(|certificate| log(certificate, now));
            if told.elapsed() >= TOLD_EVERY {
                told = Instant::now();
                let ends_soon = |certificate: &Certificate| certificate.left_s(now) < SOON_S;
                self.list().iter().filter(|certificate| ends_soon(certificate)).for_each(|one| log(one, now));
            }
        }
    }

    /// Reads changed files; the certificates that were read again.
    fn reload(&self) -> Vec<Certificate> {
        let mut certificates = Vec::new();
        if let Some(tls) = self.peers.as_ref().filter(|tls| tls.reload()) {
            certificates.extend(tls.certificates());
        }
        let Some(tls) = &self.server else { return certificates };
        match tls.reload() {
            Ok(true) => {
                tracing::info!("certificates reloaded");
                certificates.extend(tls.certificates());
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "changed certificates cannot be used: the former ones stay in use");
            }
        }
        certificates
    }
}

fn log(certificate: &Certificate, now: SystemTime) {
    let Certificate { used_as, file, subject, ends, .. } = certificate;
    let (used_as, days_left) = (used_as.name(), certificate.left_s(now).div_euclid(DAY_S));
    match remark(certificate, now) {
        Some(remark) => tracing::warn!(used_as, %file, subject, ends, days_left, "{remark}"),
        None => tracing::info!(used_as, %file, subject, ends, days_left, "certificate in use"),
    }
}

/// What is wrong with a certificate, or will be soon.
fn remark(certificate: &Certificate, now: SystemTime) -> Option<&'static str> {
    let left_s = certificate.left_s(now);
    let is_leaf = certificate.used_as == CertificateUse::Server && certificate.is_first;
    match () {
        () if left_s < 0 => Some("certificate has ended"),
        () if certificate.is_early(now) => Some("certificate is not valid yet"),
        () if left_s < SOON_S => Some("certificate ends soon"),
        () if is_leaf && !certificate.has_names => Some(
            "certificate has no alternative names, and clients look at no others: they will not accept it",
        ),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use everlog_listen::tls::PemFile;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_certificate_is_remarked() {
        let certificate = |begins_days: i64, ends_days: i64, has_names| Certificate {
            used_as: CertificateUse::Server,
            is_first: true,
            file: PemFile { path: "server.pem".into(), setting: "tls.certificate_file" },
            subject: "CN=everlog".into(),
            begins_s: begins_days * DAY_S,
            ends_s: ends_days * DAY_S,
            ends: String::new(),
            has_names,
        };
        let now = UNIX_EPOCH + Duration::from_secs(100 * 24 * 3_600);
        let remarked = |certificate: Certificate| remark(&certificate, now).unwrap_or_default();
        assert_eq!(remarked(certificate(0, 131, true)), "");
        assert_eq!(remarked(certificate(0, 129, true)), "certificate ends soon");
        assert_eq!(remarked(certificate(0, 99, true)), "certificate has ended");
        assert_eq!(remarked(certificate(101, 200, true)), "certificate is not valid yet");
        assert!(remarked(certificate(0, 200, false)).contains("no alternative names"));
        let authority = Certificate { used_as: CertificateUse::ClientCa, ..certificate(0, 200, false) };
        assert_eq!(remarked(authority), "");
    }
}
