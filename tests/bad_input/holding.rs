//! Clients that make the server hold something for them: requests that never end, answers that nobody reads, connections on which
//! nothing is said. It holds so much and no more, for so long and no longer, and others are answered meanwhile.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest,
};
use everlog_tests::server::{DESCRIPTORS, LOG, Server, is_on_kafka};
use everlog_tests::{page, patience};
use h2::client::{ResponseFuture, SendRequest};
use prost::{Message, Name};
use tokio::net::TcpStream;
use tonic::codegen::http;

use crate::world::{World, path_of, payloads_of};

/// Calls at once of a client that means no good.
const CALLS: usize = 100;
const MIB: usize = 1 << 20;

/// A client that gives its answers so much of a window.
async fn raw(address: SocketAddr, window: u32) -> anyhow::Result<SendRequest<Bytes>> {
    let stream = TcpStream::connect(address).await?;
    let (client, connection) =
        h2::client::Builder::new().initial_window_size(window).handshake(stream).await?;
    tokio::spawn(connection);
    Ok(client.ready().await?)
}

/// Sends a message's prefix and the beginning of the message; the stream is kept, and open where the message is not whole.
async fn send<M: Message + Name>(
    client: &mut SendRequest<Bytes>,
    message: &M,
    bytes_left_out: usize,
) -> anyhow::Result<(ResponseFuture, h2::SendStream<Bytes>)> {
    *client = client.clone().ready().await?;
    let request = http::Request::post(format!("http://everlog{}", path_of::<M>()))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let (answer, mut stream) = client.send_request(request.body(())?, false)?;
    let encoded = message.encode_to_vec();
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(u32::try_from(encoded.len())?);
    body.put_slice(&encoded[..encoded.len() - bytes_left_out]);
    stream.send_data(body.freeze(), bytes_left_out == 0)?;
    Ok((answer, stream))
}

async fn metric(server: &Server, name: &str) -> f64 {
    page::metric(server.metrics_address(), name).await.ok().flatten().unwrap_or(f64::NAN)
}

/// Somebody else is answered.
async fn others_are_served(server: &Server) -> anyhow::Result<()> {
    let world = World {
        channel: server.connect().await?,
        namespace: "default".into(),
        other_namespace: "other".into(),
    };
    world.begin(|_fine| {}).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_never_end_are_bounded_and_let_go() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let bounds = [
        ("EVERLOG_GATEWAY__CONNECTION_REQUEST_BYTES_MAX", "50331648"),
        ("EVERLOG_GATEWAY__REQUEST_WITHIN_MS", "2000"),
    ];
    let server = Server::start(dir.path(), &bounds).await?;
    let world = World::new(server.connect().await?).await?;
    let signal = SignalWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_execution: Some(WorkflowExecution { workflow_id: "w".into(), ..Default::default() }),
        input: payloads_of(MIB),
        ..Default::default()
    };
    let mut client = raw(server.address(), 1 << 20).await?;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(send(&mut client, &signal, 1).await?);
    }
    let is_held = async || metric(&server, "everlog_request_bytes").await >= (8 * MIB) as f64;
    patience::until("it holds a part of them", is_held).await?;
    others_are_served(&server).await?;
    let held = metric(&server, "everlog_request_bytes").await;
    assert!(held <= (49 * MIB) as f64, "{held} bytes");
    let is_let_go = async || metric(&server, "everlog_request_bytes").await == 0.0;
    patience::until("they are let go", is_let_go).await?;
    // Each was told why: the one that there was no room, the other that its time was over.
    let mut codes = [0; 2];
    for (answer, _open) in calls {
        let answer = patience::answer("a refusal", answer).await??;
        let code = answer.headers().get("grpc-status").context("it has a code")?.to_str()?.to_owned();
        match code.as_str() {
            "4" => codes[0] += 1,
            "8" => codes[1] += 1,
            other => anyhow::bail!("code {other}"),
        }
    }
    assert!(codes[0] > 0 && codes[1] > 0, "{codes:?}");
    drop(world);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_bounded_and_let_go() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let bounds = [
        ("EVERLOG_GATEWAY__CONNECTION_ANSWER_BYTES_MAX", "16777216"),
        ("EVERLOG_GATEWAY__ANSWER_WITHIN_MS", "2000"),
    ];
    let server = Server::start(dir.path(), &bounds).await?;
    let world = World::new(server.connect().await?).await?;
    let run = world.begin(|start: &mut StartWorkflowExecutionRequest| start.input = payloads_of(MIB)).await?;
    let read = GetWorkflowExecutionHistoryRequest {
        namespace: "default".into(),
        execution: Some(WorkflowExecution { workflow_id: run.id, ..Default::default() }),
        ..Default::default()
    };
    let mut client = raw(server.address(), 0).await?;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(send(&mut client, &read, 0).await?);
    }
    let is_held = async || metric(&server, "everlog_answer_bytes").await >= (8 * MIB) as f64;
    patience::until("it holds a part of them", is_held).await?;
    others_are_served(&server).await?;
    let held = metric(&server, "everlog_answer_bytes").await;
    assert!(held <= (17 * MIB) as f64, "{held} bytes");
    // So much was let go that the connection went with it.
    let is_let_go = async || {
        metric(&server, "everlog_answer_bytes").await == 0.0
            && metric(&server, "everlog_answers_lapsed_total").await > 0.0
            && metric(&server, "everlog_history_reads").await == 0.0
    };
    patience::until("they are let go", is_let_go).await?;
    others_are_served(&server).await
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_leave_descriptors_to_others() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    // On Kafka each partition has a database of its own.
    let most = if is_on_kafka() { 1_024 } else { 256 };
    let server = Server::start(dir.path(), &[(DESCRIPTORS, &most.to_string())]).await?;
    let mut silent = Vec::new();
    for _ in 0..most / 4 + 16 {
        for address in [server.address(), server.http_address(), server.metrics_address()] {
            silent.push(TcpStream::connect(address).await?);
        }
    }
    // Calls, the pages, and the files of the database.
    let world = World::new(server.connect().await?).await?;
    world.begin(|start| start.input = payloads_of(MIB)).await?;
    let (status, page) = page::get(server.metrics_address(), "/health/ready").await?;
    assert_eq!(status, 200, "{page}");
    let (status, _) = page::get(server.http_address(), "/subjects").await?;
    assert_eq!(status, 200);
    let made_room = metric(&server, "everlog_connections_made_room_total").await;
    assert!(made_room > 0.0, "{made_room}");
    let open = metric(&server, "process_open_fds").await;
    assert!(open < f64::from(most), "{open} descriptors of {most}");
    Ok(())
}

/// Failed accepts of one listener while a client waits. One that does not pause makes hundreds of thousands in a second.
const ACCEPTS_FAILED_MAX: f64 = 1_000.0;

/// The server gets no descriptor whose number is as large as this.
fn limit_descriptors(server: &Server, most: u32) -> anyhow::Result<()> {
    let pid = server.pid().to_string();
    let set = Command::new("prlimit").args(["--pid", &pid]).arg(format!("--nofile={most}:")).status()?;
    ensure!(set.success(), "prlimit failed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_gets_no_descriptor_says_so_pauses_and_goes_on() -> anyhow::Result<()> {
    let (dir, log_dir) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let log = log_dir.path().join("log");
    let most = 1_024;
    let variables = [(DESCRIPTORS, "1024"), (LOG, log.to_str().context("a path is text")?)];
    let server = Server::start(dir.path(), &variables).await?;
    limit_descriptors(&server, 0)?;
    let addresses = [server.address(), server.http_address(), server.metrics_address()];
    let mut waiting = Vec::new();
    for address in addresses {
        waiting.push(TcpStream::connect(address).await?);
    }
    let all_say_so = async || {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        said.matches("connection not accepted").count() >= addresses.len()
    };
    patience::until("each listener says so", all_say_so).await?;
    limit_descriptors(&server, most)?;
    others_are_served(&server).await?;
    let failed = metric(&server, "everlog_connections_failed_total").await;
    assert!((3.0..ACCEPTS_FAILED_MAX).contains(&failed), "{failed} accepts failed");
    Ok(())
}
