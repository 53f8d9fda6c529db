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
const LOGGED_EVERY: Duration = Duration::from_secs(24 * 3_600);
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

    /// Logs what certificates there are, reads changed files, and logs daily which end soon, until the future is dropped.
    pub async fn look_after(self: Arc<Self>) {
        let mut logged = LoggedCertificates::default();
        let mut log_due = |certificates: &Self| {
            let now = SystemTime::now();
            logged.due(certificates.list(), Instant::now(), now).iter().for_each(|one| log(one, now));
        };
        log_due(&self);
        if self.server.is_none() && self.peers.is_none() {
            return;
        }
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let read = Arc::clone(&self);
            // Files may be on a disk that is slow, or away.
            let _reload = tokio::task::spawn_blocking(move || read.reload()).await;
            log_due(&self);
        }
    }

    /// Reads changed files.
    fn reload(&self) {
        if let Some(tls) = &self.peers {
            tls.reload();
        }
        match self.server.as_ref().map(|tls| tls.reload()) {
            Some(Ok(true)) => tracing::info!("certificates reloaded"),
            Some(Err(error)) => {
                tracing::warn!(%error, "changed certificates cannot be used: the former ones stay in use");
            }
            Some(Ok(false)) | None => {}
        }
    }
}

/// The certificates in use, with the time of each one's last log line.
#[derive(Default)]
struct LoggedCertificates(Vec<(Certificate, Instant)>);

impl LoggedCertificates {
    /// Which of those in use are to be logged: new ones at once, and daily those that end soon. A file that was read again with
    /// the same certificate has none.
    fn due(&mut self, in_use: Vec<Certificate>, at: Instant, now: SystemTime) -> Vec<Certificate> {
        let (mut due, mut logged) = (Vec::new(), Vec::new());
        for certificate in in_use {
            let last = self.0.iter().find(|(known, _)| *known == certificate).map(|(_, last)| *last);
            let is_due = last.is_none_or(|last| {
                certificate.left_s(now) < SOON_S && at.saturating_duration_since(last) >= LOGGED_EVERY
            });
            if is_due {
                due.push(certificate.clone());
            }
            logged.push((certificate, last.filter(|_| !is_due).unwrap_or(at)));
        }
        self.0 = logged;
        due
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

    fn certificate(begins_days: i64, ends_days: i64, has_names: bool) -> Certificate {
        Certificate {
            used_as: CertificateUse::Server,
            is_first: true,
            file: PemFile { path: "server.pem".into(), setting: "tls.certificate_file" },
            subject: "CN=everlog".into(),
            begins_s: begins_days * DAY_S,
            ends_s: ends_days * DAY_S,
            ends: String::new(),
            has_names,
        }
    }

    fn day(number: u32) -> SystemTime {
        UNIX_EPOCH + number * LOGGED_EVERY
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_remarked() {
        let remarked = |certificate: Certificate| remark(&certificate, day(100)).unwrap_or_default();
        assert_eq!(remarked(certificate(0, 131, true)), "");
        assert_eq!(remarked(certificate(0, 129, true)), "certificate ends soon");
        assert_eq!(remarked(certificate(0, 99, true)), "certificate has ended");
        assert_eq!(remarked(certificate(101, 200, true)), "certificate is not valid yet");
        assert!(remarked(certificate(0, 200, false)).contains("no alternative names"));
        let authority = Certificate { used_as: CertificateUse::ClientCa, ..certificate(0, 200, false) };
        assert_eq!(remarked(authority), "");
    }
    #[test]
    fn a_certificate_is_logged_when_it_is_new_and_daily_when_it_ends_soon() {
        let (mut logged, start) = (LoggedCertificates::default(), Instant::now());
        let (soon, late) = (certificate(0, 120, true), certificate(0, 900, true));
        let both = || vec![soon.clone(), late.clone()];
        let mut due = |in_use, days: u32, hours: u64| {
            let at = start + (days - 100) * LOGGED_EVERY + Duration::from_secs(hours * 3_600);
            logged.due(in_use, at, day(days))
        };
        assert_eq!(due(both(), 100, 0), both(), "both are new");
        assert_eq!(due(both(), 100, 0), [], "read again, the same");
        assert_eq!(due(both(), 100, 23), []);
        let first = std::slice::from_ref(&soon);
        assert_eq!(due(both(), 101, 0), first);
        assert_eq!(due(both(), 101, 23), [], "a day counts from the last line");
        let renewed = certificate(90, 210, true);
        assert_eq!(due(vec![renewed.clone(), late.clone()], 102, 0), [renewed]);
        assert_eq!(due(both(), 102, 1), first, "the former one is back");
        assert_eq!(due(both(), 871, 0), both(), "the other one ends soon now");
    }
}
