//! A listener: it accepts connections up to its bounds, and closes idle ones for new ones.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use everlog_log::Outage;
use parking_lot::{Mutex, MutexGuard};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::connection::Connection;
use crate::tls::ServerTls;

/// The pause after a failed accept. Without it a process that has no descriptor left would loop.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often a connection checks whether it is silent and whether responses have lapsed.
pub(crate) const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long a connection may take to close once its shutdown has begun.
pub(crate) const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// The bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenerBounds {
    /// Open connections; further ones wait until one closes.
    pub connections_max: usize,
    /// Open connections from one address; further ones are closed.
    pub address_connections_max: usize,
    /// How long a client may take to send its first bytes, or the head of a request.
    pub hello_within: Duration,
    /// How long a connection may be idle, that is without a call.
    pub idle_within: Duration,
    /// Bytes of requests that one connection may have in progress.
    pub request_bytes_max: usize,
    /// Bytes of responses that one connection has not received yet.
    pub answer_bytes_max: usize,
}

impl Default for ListenerBounds {
    fn default() -> Self {
        Self {
            connections_max: 1_000,
            address_connections_max: 1_000,
            hello_within: Duration::from_secs(10),
            idle_within: Duration::from_secs(300),
            request_bytes_max: 64 << 20,
            answer_bytes_max: 32 << 20,
        }
    }
}

/// The counters of a listener. Cheap to read at any time.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that are open.
    pub open: AtomicU64,
    /// Connections that were accepted.
    pub taken: AtomicU64,
    /// Connections that were closed at once because their address has too many.
    pub refused: AtomicU64,
    /// Idle connections that were closed for new ones.
    pub made_room: AtomicU64,
    /// Connections that were closed because they were silent for too long.
    pub silent: AtomicU64,
    /// Accepts that failed, for example because no descriptor is left.
    pub failed: AtomicU64,
    /// Responses that were dropped because the client did not receive them in time.
    pub lapsed: AtomicU64,
}

/// Accepts connections.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    bounds: ListenerBounds,
    tls: Option<Arc<ServerTls>>,
    open: Arc<OpenConnections>,
}

/// Connections that are open.
#[derive(Debug, Default)]
struct OpenConnections {
    table: Mutex<ConnectionTable>,
    freed: Notify,
    counts: Arc<Counts>,
}

/// Open connections by the order in which they were accepted, and their number by address.
#[derive(Debug, Default)]
struct ConnectionTable {
    connections: HashMap<u64, Arc<Connection>>,
    of_addresses: HashMap<IpAddr, usize>,
}

/// An open connection's entry in the table; removed when dropped.
#[derive(Debug)]
pub struct Lease {
    /// The connection.
    pub connection: Arc<Connection>,
    pub(crate) counts: Arc<Counts>,
    /// Set where its listener speaks TLS only.
    pub(crate) tls: Option<Arc<ServerTls>>,
    serial: u64,
    open: Arc<OpenConnections>,
}

impl Listener {
    /// A listener on the socket.
    pub fn new(socket: TcpListener, bounds: ListenerBounds) -> Self {
        Self { socket, bounds, tls: None, open: Arc::default() }
    }

    /// The listener, with TLS and nothing else where it is given. The handshake is a matter of [`crate::http1`] and
    /// [`crate::http2`].
    pub fn over(self, tls: Option<Arc<ServerTls>>) -> Self {
        Self { tls, ..self }
    }

    /// Its counters.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.open.counts)
    }

    pub(crate) fn bounds(&self) -> &ListenerBounds {
        &self.bounds
    }

    /// The next connection within the bounds, for protocols other than [`crate::http1`] and [`crate::http2`].
    pub async fn accept(&self) -> (TcpStream, Lease) {
        let (mut outage, counts) = (Outage::default(), &self.open.counts);
        loop {
            match self.socket.accept().await {
                Ok((stream, from)) => {
                    outage.works(Instant::now());
                    if !self.has_room_for(from.ip()) {
                        counts.refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    self.make_room().await;
                    return (stream, self.lease(from.ip()));
                }
                Err(error) => {
                    counts.failed.fetch_add(1, Ordering::Relaxed);
                    if let Some(lasts) = outage.fails(Instant::now()) {
                        tracing::warn!(%error, for_s = lasts.as_secs(), "connection not accepted");
                    }
                    // An idle connection may hold the descriptor that is missing.
                    self.open.close_idlest(|_| true);
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }

    /// True if the address may have one more connection, where necessary because an idle one of its own was closed.
    fn has_room_for(&self, address: IpAddr) -> bool {
        let count = self.open.lock().of_addresses.get(&address).copied().unwrap_or(0);
        count < self.bounds.address_connections_max
            || self.open.close_idlest(|connection| connection.address == address)
    }

    /// Waits until the listener is below its bound, and closes idle connections for that.
    async fn make_room(&self) {
        loop {
            let freed = self.open.freed.notified();
            if self.open.lock().connections.len() < self.bounds.connections_max {
                return;
            }
            self.open.close_idlest(|_| true);
            // A connection that becomes idle later can be closed as well.
            let _ = tokio::time::timeout(CLOSED_WITHIN, freed).await;
        }
    }

    fn lease(&self, address: IpAddr) -> Lease {
        let connection = Connection::new(address, &self.bounds);
        let counts = self.counts();
        let serial = counts.taken.fetch_add(1, Ordering::Relaxed);
        counts.open.fetch_add(1, Ordering::Relaxed);
        self.open.lock().add(serial, &connection);
        Lease { connection, counts, tls: self.tls.clone(), serial, open: Arc::clone(&self.open) }
    }
}

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock()
    }

    /// Shuts down the connection that has been idle for the longest, and removes it from the table. Connections that never sent
    /// anything go first. False if all have calls.
    fn close_idlest(&self, may: impl Fn(&Connection) -> bool) -> bool {
        let mut table = self.lock();
        let idle = table.connections.iter().filter(|(_, connection)| may(connection));
        let idle = idle.filter_map(|(serial, connection)| {
            Some(((connection.has_received(), connection.idle_since()?), *serial))
        });
        let Some((_, serial)) = idle.min() else { return false };
        if let Some(connection) = table.remove(serial) {
            connection.close();
            self.counts.made_room.fetch_add(1, Ordering::Relaxed);
        }
        self.freed.notify_waiters();
        true
    }
}

impl ConnectionTable {
    fn add(&mut self, serial: u64, connection: &Arc<Connection>) {
        self.connections.insert(serial, Arc::clone(connection));
        *self.of_addresses.entry(connection.address).or_default() += 1;
    }

    fn remove(&mut self, serial: u64) -> Option<Arc<Connection>> {
        let connection = self.connections.remove(&serial)?;
        if let Some(count) = self.of_addresses.get_mut(&connection.address) {
            *count -= 1;
            if *count == 0 {
                self.of_addresses.remove(&connection.address);
            }
        }
        Some(connection)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.open.lock().remove(self.serial);
        self.open.freed.notify_waiters();
    }
}
