//! Headers of calls to a node that judges its callers.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_tests::server::Server;
use everlog_tests::{page, patience, raw};
use h2::client::SendRequest;
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tonic::codegen::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use crate::inputs::{BATCH, Inputs, batches};

/// What the corpus has, and the node knows.
const KEY: &str = "elk_root---------------------------------------";
/// A method that only roles of the cluster may call.
const PATH: &str = "/temporal.api.workflowservice.v1.WorkflowService/GetSearchAttributes";

/// A connection of HTTP/2 without the habits of a client of gRPC.
struct Connection {
    address: SocketAddr,
    open: Option<SendRequest<Bytes>>,
}

/// An answer: the status of HTTP, and that of gRPC if there is one.
#[derive(Debug)]
struct Answer {
    http: StatusCode,
    grpc: Option<HeaderValue>,
}

impl Connection {
    /// Calls with these headers. None where the client's own side refuses them, or the connection was closed on it.
    async fn call(&mut self, headers: &[(HeaderName, HeaderValue)]) -> anyhow::Result<Option<Answer>> {
        let mut request =
            Request::builder().method(Method::POST).uri(format!("http://{}{PATH}", self.address));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(())?;
        let ready = match self.open.take() {
            Some(open) => open.ready().await.ok(),
            None => None,
        };
        let mut open = match ready {
            Some(ready) => ready,
            None => {
                let stream = TcpStream::connect(self.address).await?;
                let (open, connection) = h2::client::handshake(stream).await?;
                tokio::spawn(connection);
                open.ready().await?
            }
        };
        let sent = open.send_request(request, false);
        self.open = Some(open);
        let Ok((response, mut body)) = sent else { return Ok(None) };
        // An empty message.
        let _closed = body.send_data(Bytes::from_static(&[0; 5]), true);
        match response.await {
            Ok(response) => Ok(Some(read(response).await)),
            Err(error) => {
                ensure!(error.is_reset() || error.is_go_away() || error.is_io(), "{error}");
                Ok(None)
            }
        }
    }
}

async fn read(response: Response<h2::RecvStream>) -> Answer {
    let (head, mut body) = response.into_parts();
    while let Some(Ok(data)) = body.data().await {
        let _released = body.flow_control().release_capacity(data.len());
    }
    let trailers = body.trailers().await.ok().flatten().unwrap_or_default();
    let grpc = head.headers.get("grpc-status").or(trailers.get("grpc-status")).cloned();
    Answer { http: head.status, grpc }
}

/// The lines of an input that are headers. What is none is left out: a client could not send it.
fn headers(input: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
    let header = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].trim_ascii();
        Some((HeaderName::from_bytes(&line[..colon]).ok()?, HeaderValue::from_bytes(value).ok()?))
    };
    input.split(|byte| *byte == b'\n').filter_map(header).collect()
}

/// The caller may know the key: it stands as a whole in one header.
fn has_the_key(headers: &[(HeaderName, HeaderValue)]) -> bool {
    let mut shown = headers.iter().filter(|(name, _)| name == "authorization");
    let ends_with_key = |value: &HeaderValue| value.as_bytes().ends_with(format!(" {KEY}").as_bytes());
    shown.next().is_some_and(|(_, value)| ends_with_key(value)) && shown.next().is_none()
}

#[tokio::test]
async fn headers_that_were_changed_are_no_identity() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let keys = dir.path().join("keys");
    let hash: String = Sha256::digest(KEY).iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(&keys, format!("root temporal-system:admin {hash}"))?;
    let keys = keys.to_str().context("the path is text")?;
    let variables = [("EVERLOG_AUTH__ENABLED", "true"), ("EVERLOG_AUTH__API_KEYS_FILE", keys)];
    let server = Server::start(&dir.path().join("data"), &variables).await?;
    let mut connection = Connection { address: server.address(), open: None };
    let right = headers(
        format!("content-type: application/grpc\nte: trailers\nauthorization: Bearer {KEY}").as_bytes(),
    );
    let corpus = include_str!("corpus/headers").split("\n\n").map(|all| all.as_bytes().to_vec()).collect();
    let mut inputs = Inputs::of(corpus);
    for batch in 0..batches() {
        for _ in 0..BATCH {
            let input = inputs.next();
            let shown = || String::from_utf8_lossy(&input).into_owned();
            let sent = headers(&input);
            let Some(answer) =
                patience::answer("an answer", connection.call(&sent)).await?.with_context(shown)?
            else {
                continue;
            };
            let is_ok = answer.grpc.as_ref().is_some_and(|status| status == "0");
            ensure!(!is_ok || has_the_key(&sent), "{:?}: {answer:?}", shown());
            ensure!(!answer.http.is_server_error(), "{:?}: {answer:?}", shown());
        }
        let fed = (batch + 1) * BATCH;
        let answer = connection.call(&right).await?.with_context(|| format!("behind {fed} inputs"))?;
        ensure!(answer.grpc.as_ref().is_some_and(|status| status == "0"), "behind {fed} inputs: {answer:?}");
        ensure!(raw::is_serving(server.address()).await, "behind {fed} inputs");
        let panics = page::metric(server.metrics_address(), "service_panics").await?.unwrap_or(0.0);
        ensure!(panics == 0.0, "{panics} panics within {fed} inputs");
    }
    Ok(())
}
