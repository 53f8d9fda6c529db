//! The state of an open connection: its budgets, its calls, its idle time, and the responses on it that may lapse.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::budget::Budget;
use crate::listener::ListenerBounds;

/// Calls of one connection that may make large responses at once. Further ones wait, so that one client cannot delay others.
const READERS: usize = 2;
/// A connection is closed after so many lapsed responses: it receives nothing any more.
const LAPSED_MAX: usize = 64;

/// Something that is dropped at its deadline.
pub trait Lapse: Send + Sync {
    /// The deadline has come. True if there was something left to drop.
    fn lapse(&self) -> bool;
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    /// The client's address.
    pub address: IpAddr,
    /// Bytes of its requests that are not answered yet.
    pub requests: Arc<Budget>,
    /// Bytes of responses that its client has not received yet.
    pub answers: Arc<Budget>,
    /// Permits for its calls that make large responses.
    pub readers: Arc<Semaphore>,
    began: Instant,
    /// The verified certificate that its client has shown over TLS.
    client_certificate: OnceLock<ClientCertificate>,
    /// The client has sent its first bytes.
    has_received: AtomicBool,
    calls: AtomicUsize,
    /// Since when it has been idle, or has had calls, in us since it was accepted.
    idle_since_us: AtomicU64,
    busy_since_us: AtomicU64,
    lapses: Mutex<Lapses>,
    lapsed: AtomicUsize,
    close: Notify,
}

/// The leaf of a chain that was verified in a handshake.
#[derive(Debug)]
struct ClientCertificate {
    der: Box<[u8]>,
    /// When it ends; none where it cannot be read, as far as that.
    ends: Option<SystemTime>,
}

/// By deadline and a serial number.
#[derive(Default)]
struct Lapses {
    waiting: BTreeMap<(Instant, u64), Weak<dyn Lapse>>,
    serial: u64,
}

impl std::fmt::Debug for Lapses {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} lapses", self.waiting.len())
    }
}

/// A connection, as found among the extensions of its requests. Cheap to clone.
pub type SharedConnection = Arc<Connection>;

/// A call in progress on a connection; it ends when this is dropped.
#[derive(Debug)]
pub struct CallInProgress(Arc<Connection>);

impl Connection {
    /// A connection that has just been accepted.
    pub fn new(address: IpAddr, bounds: &ListenerBounds) -> Arc<Self> {
        Arc::new(Self {
            address,
            requests: Budget::new(bounds.request_bytes_max),
            answers: Budget::new(bounds.answer_bytes_max),
            readers: Arc::new(Semaphore::new(READERS)),
            began: Instant::now(),
            client_certificate: OnceLock::new(),
            has_received: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            idle_since_us: AtomicU64::new(0),
            busy_since_us: AtomicU64::new(0),
            lapses: Mutex::default(),
            lapsed: AtomicUsize::new(0),
            close: Notify::new(),
        })
    }

    /// The client's certificate, in DER: the leaf of a chain that was verified in the handshake. None without TLS, and where the
    /// client has shown none.
    pub fn client_certificate(&self) -> Option<&[u8]> {
        self.client_certificate.get().map(|certificate| &*certificate.der)
    }

    /// Keeps the certificate that was verified in the handshake. A connection has one handshake, so a second certificate is
    /// ignored.
    pub fn note_client_certificate(&self, der: &[u8]) {
        self.client_certificate.get_or_init(|| ClientCertificate { der: der.into(), ends: end_of(der) });
    }

    /// Its client has shown a certificate that has ended since.
    pub(crate) fn has_outlived_its_certificate(&self, now: SystemTime) -> bool {
        self.client_certificate.get().and_then(|certificate| certificate.ends).is_some_and(|ends| ends < now)
    }

    /// A call begins.
    pub fn call(self: &Arc<Self>) -> CallInProgress {
        if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            self.busy_since_us.store(self.now_us(), Ordering::Relaxed);
        }
        CallInProgress(Arc::clone(self))
    }

    /// Registers something that is dropped at a deadline; returns its key.
    pub fn lapse_at(&self, at: Instant, what: Weak<dyn Lapse>) -> (Instant, u64) {
        let mut lapses = self.lapses.lock();
        lapses.serial += 1;
        let key = (at, lapses.serial);
        lapses.waiting.insert(key, what);
        key
    }

    /// Removes what was registered under the key.
    pub fn lapse_no_more(&self, key: &(Instant, u64)) {
        self.lapses.lock().waiting.remove(key);
    }

    /// Drops what is due; returns how many there were.
    pub fn lapse_due(&self, now: Instant) -> u64 {
        let due = {
            let mut lapses = self.lapses.lock();
            let later = lapses.waiting.split_off(&(now, u64::MAX));
            std::mem::replace(&mut lapses.waiting, later)
        };
        let gone = due.into_values().filter_map(|what| what.upgrade()).filter(|what| what.lapse()).count();
        self.lapsed.fetch_add(gone, Ordering::Relaxed);
        gone as u64
    }

    /// So many responses lapsed that the client is taken for one that receives nothing.
    pub(crate) fn takes_nothing(&self) -> bool {
        self.lapsed.load(Ordering::Relaxed) >= LAPSED_MAX
    }

    pub(crate) fn note_received(&self) {
        self.has_received.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_received(&self) -> bool {
        self.has_received.load(Ordering::Relaxed)
    }

    /// It has been silent or idle for as long as the bounds permit.
    pub(crate) fn is_silent(&self, bounds: &ListenerBounds, now: Instant) -> bool {
        let is_unheard =
            !self.has_received() && now.saturating_duration_since(self.began) >= bounds.hello_within;
        let is_idle = |since| now.saturating_duration_since(since) >= bounds.idle_within;
        is_unheard || self.idle_since().is_some_and(is_idle)
    }

    /// Since when it has been idle; none if it has a call.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let since_us = self.idle_since_us.load(Ordering::Relaxed);
        (self.calls.load(Ordering::Relaxed) == 0).then(|| self.began + Duration::from_micros(since_us))
    }

    /// Since when it has had calls; none if it is idle.
    pub(crate) fn busy_since(&self) -> Option<Instant> {
        let since_us = self.busy_since_us.load(Ordering::Relaxed);
        (self.calls.load(Ordering::Relaxed) > 0).then(|| self.began + Duration::from_micros(since_us))
    }

    /// Its age in us.
    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Requests its shutdown.
    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Completes when its shutdown is requested.
    pub async fn closed(&self) {
        self.close.notified().await;
    }
}

/// The last moment at which a certificate is valid.
fn end_of(der: &[u8]) -> Option<SystemTime> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let ends_s = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    UNIX_EPOCH.checked_add(Duration::from_secs(ends_s))
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        self.0.idle_since_us.store(self.0.now_us(), Ordering::Relaxed);
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    struct Thing(AtomicBool);

    impl Lapse for Thing {
        fn lapse(&self) -> bool {
            !self.0.swap(true, Ordering::Relaxed)
        }
    }

    #[test]
    fn what_is_due_is_let_go_once_and_nothing_else() {
        let connection = Connection::new(Ipv4Addr::LOCALHOST.into(), &ListenerBounds::default());
        let now = Instant::now();
        let things: Vec<Arc<Thing>> = (0..3).map(|_| Arc::new(Thing(AtomicBool::new(false)))).collect();
        let keys: Vec<_> = things
            .iter()
            .zip(1..)
            .map(|(thing, second)| {
                let thing: Weak<dyn Lapse> = Arc::downgrade(&(Arc::clone(thing) as Arc<dyn Lapse>));
                connection.lapse_at(now + Duration::from_secs(second), thing)
            })
            .collect();
        connection.lapse_no_more(&keys[0]);
        assert_eq!(connection.lapse_due(now + Duration::from_secs(2)), 1);
        assert_eq!(connection.lapse_due(now + Duration::from_secs(2)), 0);
        let gone = things.iter().map(|thing| thing.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!(gone, [false, true, false]);
    }

    #[test]
    fn a_connection_keeps_the_certificate_of_its_handshake() {
        let connection = Connection::new(Ipv4Addr::LOCALHOST.into(), &ListenerBounds::default());
        assert_eq!(connection.client_certificate(), None);
        connection.note_client_certificate(b"leaf");
        connection.note_client_certificate(b"another");
        assert_eq!(connection.client_certificate(), Some(b"leaf".as_slice()));
    }

    #[test]
    fn a_connection_is_idle_between_calls() {
        let connection = Connection::new(Ipv4Addr::LOCALHOST.into(), &ListenerBounds::default());
        assert!(connection.idle_since().is_some());
        let (one, other) = (connection.call(), connection.call());
        drop(one);
        assert_eq!(connection.idle_since(), None);
        drop(other);
        assert!(connection.idle_since().is_some());
    }
}
