//! The handshake of an accepted connection, in the connection's own task: a slow client delays nobody else.
//!
//! Until it is done, the connection counts as one that has sent nothing: it is closed first to make room, and when it is silent for
//! too long.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::listener::{CLOSED_WITHIN, Lease};
use crate::tls::failure::HandshakeFailure;
use crate::tls::plain_text::{HTTP2_BEGINS, refuse};
use crate::tls::refused::read_to_end;
use crate::tls::server::{Protocol, ServerTls};

/// The stream of a connection, in plain text or over TLS.
pub(crate) type ClientStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The type of the first record of every handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// Why a client is refused, and how it is told so, which may take a moment.
struct Refused {
    failure: HandshakeFailure,
    error: io::Error,
    farewell: Farewell,
}

/// The end of a connection whose client is refused.
enum Farewell {
    /// The connection has ended.
    None,
    /// The client may have been sent an alert.
    Alerted(TcpStream),
    /// The client speaks no TLS, and begins so.
    PlainText(TcpStream, Vec<u8>),
}

/// Opens the stream of an accepted connection. None where it has ended: the client does not speak TLS as it should, was too slow, or
/// had to make room.
pub(crate) async fn open(
    stream: TcpStream,
    lease: &Lease,
    protocol: Protocol,
    within: Duration,
) -> Option<ClientStream> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY not set");
    }
    let Some(tls) = &lease.tls else { return Some(Either::Left(stream)) };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(within, shake_hands(stream, tls, protocol)) => shaken,
        () = lease.connection.closed() => return None,
    };
    let Refused { failure, error, farewell } = match shaken {
        Ok(Ok(stream)) => {
            if let Some([leaf, ..]) = stream.get_ref().1.peer_certificates() {
                lease.connection.note_client_certificate(leaf);
            }
            return Some(Either::Right(Box::new(stream)));
        }
        Ok(Err(refused)) => refused,
        Err(_silent) => {
            lease.counts.silent.fetch_add(1, Ordering::Relaxed);
            Refused::without_word(HandshakeFailure::TimedOut, io::ErrorKind::TimedOut.into())
        }
    };
    tls.failures.count(failure);
    tracing::debug!(from = %lease.connection.address, reason = failure.name(), %error, "TLS handshake failed");
    tokio::select! {
        _ended = tokio::time::timeout(CLOSED_WITHIN, farewell.say()) => {}
        () = lease.connection.closed() => {}
    }
    None
}

async fn shake_hands(
    stream: TcpStream,
    tls: &ServerTls,
    protocol: Protocol,
) -> Result<TlsStream<TcpStream>, Refused> {
    let mut first = [0; HTTP2_BEGINS.len()];
    let first = match stream.peek(&mut first).await {
        Ok(bytes) => &first[..bytes],
        Err(error) => return Err(Refused::without_word(HandshakeFailure::Closed, error)),
    };
    match first {
        [HANDSHAKE, ..] => {}
        [] => {
            return Err(Refused::without_word(HandshakeFailure::Closed, io::ErrorKind::UnexpectedEof.into()));
        }
        _plain_text => {
            return Err(Refused {
                failure: HandshakeFailure::PlainText,
                error: io::ErrorKind::InvalidData.into(),
                farewell: Farewell::PlainText(stream, first.to_vec()),
            });
        }
    }
    let shaken = tls.acceptor(protocol).accept(stream).into_fallible().await;
    shaken.map_err(|(error, stream)| Refused {
        failure: HandshakeFailure::of(&error),
        error,
        farewell: Farewell::Alerted(stream),
    })
}

impl Refused {
    fn without_word(failure: HandshakeFailure, error: io::Error) -> Self {
        Self { failure, error, farewell: Farewell::None }
    }
}

impl Farewell {
    /// Says it, until the client ends the connection.
    async fn say(self) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Alerted(stream) => read_to_end(stream).await,
            Self::PlainText(stream, first) => refuse(stream, &first).await,
        }
    }
}
