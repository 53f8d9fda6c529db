//! The handshake of an accepted connection, in the connection's own task: a slow client delays nobody else.
//!
//! Until it is done, the connection counts as one that has sent nothing: it is closed first to make room, and when it is silent for
//! too long.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::listener::{CLOSED_WITHIN, Lease};
use crate::tls::failure::HandshakeFailure;
use crate::tls::refused::read_to_end;
use crate::tls::server::{Protocol, ServerTls};

/// The stream of a connection, in plain text or over TLS.
pub(crate) type ClientStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The type of the first record of every handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// How a client of HTTP/2 begins.
const HTTP2_BEGINS: &[u8] = b"PRI";
/// The answers to a client that does not speak TLS, in the protocol that it speaks. In HTTP/2: empty SETTINGS, then GOAWAY with
/// INADEQUATE_SECURITY and the same words (RFC 9113, section 6.8).
const HTTP2_ANSWER: &[u8] =
    b"\0\0\0\x04\0\0\0\0\0\0\0\x1c\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0cthis port speaks TLS";
const HTTP1_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
    content-length: 32\r\nconnection: close\r\n\r\n{\"error\":\"this port speaks TLS\"}";

/// Why a client is refused, and its stream, which is still open.
type Refused = (HandshakeFailure, io::Error, Option<TcpStream>);

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
    let (failure, error, stream) = match shaken {
        Ok(Ok(stream)) => {
            if let Some([leaf, ..]) = stream.get_ref().1.peer_certificates() {
                lease.connection.note_client_certificate(leaf);
            }
            return Some(Either::Right(Box::new(stream)));
        }
        Ok(Err(refused)) => refused,
        Err(_silent) => {
            lease.counts.silent.fetch_add(1, Ordering::Relaxed);
            (HandshakeFailure::TimedOut, io::ErrorKind::TimedOut.into(), None)
        }
    };
    tls.failures.count(failure);
    tracing::debug!(from = %lease.connection.address, reason = failure.name(), %error, "TLS handshake failed");
    if let Some(stream) = stream {
        tokio::select! {
            _ended = tokio::time::timeout(CLOSED_WITHIN, read_to_end(stream)) => {}
            () = lease.connection.closed() => {}
        }
    }
    None
}

async fn shake_hands(
    mut stream: TcpStream,
    tls: &ServerTls,
    protocol: Protocol,
) -> Result<TlsStream<TcpStream>, Refused> {
    let mut first = [0; HTTP2_BEGINS.len()];
    let first = match stream.peek(&mut first).await {
        Ok(bytes) => &first[..bytes],
        Err(error) => return Err((HandshakeFailure::Closed, error, None)),
    };
    match first {
        [HANDSHAKE, ..] => {}
        [] => return Err((HandshakeFailure::Closed, io::ErrorKind::UnexpectedEof.into(), None)),
        _plain_text => {
            let answer = if first == HTTP2_BEGINS { HTTP2_ANSWER } else { HTTP1_ANSWER };
            let answered = stream.write_all(answer).await;
            let error = answered.err().unwrap_or_else(|| io::ErrorKind::InvalidData.into());
            return Err((HandshakeFailure::PlainText, error, Some(stream)));
        }
    }
    let shaken = tls.acceptor(protocol).accept(stream).into_fallible().await;
    shaken.map_err(|(error, stream)| (HandshakeFailure::of(&error), error, Some(stream)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_in_plain_text_are_as_long_as_they_say() {
        let http1 = std::str::from_utf8(HTTP1_ANSWER).expect("it is text");
        let (head, body) = http1.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        let goaway = &HTTP2_ANSWER[9..];
        assert_eq!(usize::from(goaway[2]), goaway.len() - 9);
    }
}
