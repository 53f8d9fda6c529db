//! A listener: it takes connections as long as there is room, and makes room.

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

/// The pause after a connection that could not be taken: there may be no descriptor left.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often a connection looks at itself.
pub(crate) const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long a connection that was told to end may take for that.
pub(crate) const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// How much a listener takes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once; further ones wait until there is room.
    pub connections_max: usize,
    /// Connections at once from one address; further ones are closed.
    pub address_connections_max: usize,
    /// How long a client may take to say what it speaks, or to send the head of a request.
    pub hello_within: Duration,
    /// How long a connection may be without a call.
    pub idle_within: Duration,
    /// Bytes of requests that one connection may have under way.
    pub request_bytes_max: usize,
    /// Bytes of answers that one connection has not taken yet.
    pub answer_bytes_max: usize,
}

impl Default for Bounds {
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

/// What a listener has counted. Cheap to read at any time.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that are open.
    pub open: AtomicU64,
    /// Connections that were taken.
    pub taken: AtomicU64,
    /// Connections that were closed at once: their address has too many.
    pub refused: AtomicU64,
    /// Connections without a call that were closed to make room for others.
    pub made_room: AtomicU64,
    /// Connections that were closed because they were silent for too long.
    pub silent: AtomicU64,
    /// Times at which none could be taken, such as for want of a descriptor.
    pub failed: AtomicU64,
    /// Answers that were let go because nobody took them in time.
    pub lapsed: AtomicU64,
}

/// Takes connections.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    bounds: Bounds,
    open: Arc<OpenConnections>,
}

/// Connections that are open.
#[derive(Debug, Default)]
struct OpenConnections {
    table: Mutex<ConnectionTable>,
    freed: Notify,
    counts: Arc<Counts>,
}

/// Connections that have a place, by the order in which they came, and how many each address has.
#[derive(Debug, Default)]
struct ConnectionTable {
    connections: HashMap<u64, Arc<Connection>>,
    of_addresses: HashMap<IpAddr, usize>,
}

/// An open connection's place; given back when dropped.
#[derive(Debug)]
pub struct Lease {
    /// Whose place it is.
    pub connection: Arc<Connection>,
    pub(crate) counts: Arc<Counts>,
    serial: u64,
    open: Arc<OpenConnections>,
}

impl Listener {
    /// A listener that takes what comes to the socket.
    pub fn new(socket: TcpListener, bounds: Bounds) -> Self {
        Self { socket, bounds, open: Arc::default() }
    }

    /// What it counts.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.open.counts)
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The next connection for which there is room, for whoever speaks neither [`crate::http1`] nor [`crate::http2`].
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
                        tracing::warn!(%error, for_s = lasts.as_secs(), "a connection could not be taken");
                    }
                    // One that says nothing holds what is missing.
                    self.open.close_idlest(|_| true);
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }

    /// Where an address has too many connections one of its own has to go.
    fn has_room_for(&self, address: IpAddr) -> bool {
        let count = self.open.lock().of_addresses.get(&address).copied().unwrap_or(0);
        count < self.bounds.address_connections_max
            || self.open.close_idlest(|connection| connection.address == address)
    }

    /// Waits until there is room, and closes connections for it on which nothing is done.
    async fn make_room(&self) {
        loop {
            let freed = self.open.freed.notified();
            if self.open.lock().connections.len() < self.bounds.connections_max {
                return;
            }
            self.open.close_idlest(|_| true);
            // What is idle later makes room as well.
            let _ = tokio::time::timeout(CLOSED_WITHIN, freed).await;
        }
    }

    fn lease(&self, address: IpAddr) -> Lease {
        let connection = Connection::new(address, &self.bounds);
        let counts = self.counts();
        let serial = counts.taken.fetch_add(1, Ordering::Relaxed);
        counts.open.fetch_add(1, Ordering::Relaxed);
        self.open.lock().add(serial, &connection);
        Lease { connection, counts, serial, open: Arc::clone(&self.open) }
    }
}

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock()
    }

    /// Tells the connection to end that has been without a call for the longest, one that was never heard before all others, and
    /// takes its place from it. False where all have calls.
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
