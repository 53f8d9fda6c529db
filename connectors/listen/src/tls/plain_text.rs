//! The answer to a client that does not speak TLS, in the protocol that it speaks. A TLS alert would mean nothing to it, and SDKs
//! would try again until their connect timeout.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::tls::refused::read_to_end;

/// How a client of HTTP/2 begins.
pub(crate) const HTTP2_BEGINS: &[u8] = b"PRI";
/// Calls at once of a client that is refused, and bytes of a call's headers.
const STREAMS_MAX: u32 = 8;
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// The status FAILED_PRECONDITION, which no SDK tries again.
const FAILED_PRECONDITION: &str = "9";
const REASON: &str = "this port speaks TLS";
/// The answer over HTTP/1.1.
const HTTP1_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
    content-length: 32\r\nconnection: close\r\n\r\n{\"error\":\"this port speaks TLS\"}";

/// Tells the client that the port speaks TLS; `first`: how it begins. The caller ends it where the client does not.
///
/// # Errors
/// The connection is broken.
pub(crate) async fn refuse(mut stream: TcpStream, first: &[u8]) -> io::Result<()> {
    if first == HTTP2_BEGINS {
        return refuse_calls(stream).await.map_err(io::Error::other);
    }
    stream.write_all(HTTP1_ANSWER).await?;
    read_to_end(stream).await
}

/// Answers calls of gRPC with a status.
async fn refuse_calls(stream: TcpStream) -> hyper::Result<()> {
    let service = service_fn(|_call| async {
        let mut response = Response::new(Empty::<Bytes>::new());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", HeaderValue::from_static(FAILED_PRECONDITION));
        headers.insert("grpc-message", HeaderValue::from_static(REASON));
        Ok::<_, Infallible>(response)
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_concurrent_streams(STREAMS_MAX).max_header_list_size(HEADER_BYTES_MAX);
    builder.serve_connection(TokioIo::new(stream), service).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_over_http1_is_as_long_as_it_says() {
        let http1 = std::str::from_utf8(HTTP1_ANSWER).expect("it is text");
        let (head, body) = http1.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        assert!(body.contains(REASON), "{body}");
    }
}
