//! What is exactly at a limit is taken, what is beyond it is refused before memory is spent on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_engine::api_types::MapEntry;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{marker, memo_and_search_attributes};
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::workflowservice::{
    PollWorkflowTaskQueueRequest, RegisterNamespaceRequest, RespondWorkflowTaskCompletedRequest,
    StartWorkflowExecutionRequest,
};
use everlog_tests::server::Server;
use everlog_tests::{page, patience, raw};
use prost::Message;
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::codegen::{Service, http};
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::ids::signal_for;
use crate::row::Observation;
use crate::sizes::BLOB_BYTES_MAX;
use crate::worker::{command, timer};
use crate::world::{Run, World, observation, path_of, payloads_of, queue, seconds, text};

/// The longest request.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How much memory a refusal may cost.
const GROWTH_KIB_MAX: u64 = 48 << 10;
const STREAMS: usize = 2_000;
/// How long a poll waits that is one of many.
const POLL: Duration = Duration::from_secs(4);
const ENTRIES: usize = 1_000_000;

struct Harness {
    server: Server,
    world: World,
    _dir: tempfile::TempDir,
}

async fn harness() -> anyhow::Result<Harness> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let world = World::new(server.connect().await?).await?;
    // On Kafka it serves before it reads commands.
    let is_ready = async || {
        page::get(server.metrics_address(), "/health/ready").await.is_ok_and(|(status, _)| status == 200)
    };
    patience::until("it is ready", is_ready).await?;
    Ok(Harness { server, world, _dir: dir })
}

impl Harness {
    /// The most memory that the server ever had, in KiB.
    fn peak_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
        Ok(kib.parse()?)
    }

    /// The server is there, and has not grown by more than a refusal may cost.
    async fn is_well(&mut self, before_kib: u64) -> anyhow::Result<()> {
        let growth_kib = self.peak_kib()?.saturating_sub(before_kib);
        assert!(growth_kib <= GROWTH_KIB_MAX, "the server grew by {growth_kib} KiB");
        let faults = crate::hurt(&mut self.server).await?;
        assert!(faults.is_empty(), "{faults:?}");
        Ok(())
    }
}

#[track_caller]
fn expect(observation: &Observation, code: Code, message: &str) {
    assert!(
        observation.code == Some(code) && observation.message.starts_with(message),
        "expected {code:?} {message:?}, got {observation}"
    );
}

#[tokio::test]
async fn names_of_a_thousand_bytes_are_taken_and_come_back_whole() -> anyhow::Result<()> {
    let Harness { world, server: _server, .. } = &harness().await?;
    let id = text(1_000);
    let mut start = world.start_of(&id);
    start.workflow_type = Some(WorkflowType { name: text(1_000) });
    start.task_queue = Some(queue(&text(1_000)));
    (start.identity, start.request_id) = (text(1_000), text(1_000));
    expect(&observation(world.send(start).await), Code::Ok, "");
    let run = Run { id: id.clone(), run_id: String::new(), queue: text(1_000) };
    let mut signal = signal_for(world, &id);
    (signal.signal_name, signal.request_id) = (text(1_000), text(1_000));
    expect(&observation(world.send(signal).await), Code::Ok, "");
    expect(&world.work(&run, Vec::new()).await?, Code::Ok, "");
    let transcript = world.transcript(&run).await?;
    assert!(transcript.contains("SIGNALED, WORKFLOW_TASK_STARTED, WORKFLOW_TASK_COMPLETED"), "{transcript}");
    Ok(())
}

#[tokio::test]
async fn payloads_of_two_mebibytes_are_taken_and_come_back_whole() -> anyhow::Result<()> {
    let Harness { world, server: _server, .. } = &harness().await?;
    let run = world.begin(|start| start.input = payloads_of(BLOB_BYTES_MAX)).await?;
    let mut signal = signal_for(world, &run.id);
    signal.input = payloads_of(BLOB_BYTES_MAX);
    expect(&observation(world.send(signal.clone()).await), Code::Ok, "");
    signal.input = payloads_of(BLOB_BYTES_MAX + 1);
    signal.request_id = world.fresh("request");
    expect(&observation(world.send(signal).await), Code::InvalidArgument, "Blob data size exceeds limit.");
    let mut bytes = Vec::new();
    for event in world.events(&run).await? {
        let input = match event.attributes {
            Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => started.input,
            Some(Attributes::WorkflowExecutionSignaledEventAttributes(signaled)) => signaled.input,
            _without_input => continue,
        };
        bytes.push(input.unwrap_or_default().encoded_len());
    }
    assert_eq!(bytes, [BLOB_BYTES_MAX, BLOB_BYTES_MAX]);
    Ok(())
}

/// A start whose encoding is exactly so long, padded with a field that no server knows.
fn start_of_bytes(world: &World, bytes: usize) -> Bytes {
    let mut start = world.start_of(&world.fresh("run")).encode_to_vec();
    // Field 1000, bytes; its length takes four bytes.
    let padding = bytes - start.len() - 6;
    prost::encoding::encode_key(1_000, prost::encoding::WireType::LengthDelimited, &mut start);
    prost::encoding::encode_varint(padding as u64, &mut start);
    start.resize(bytes, b'x');
    start.into()
}

#[tokio::test]
async fn a_request_of_four_mebibytes_is_taken_and_one_byte_more_is_not() -> anyhow::Result<()> {
    let Harness { world, server: _server, .. } = &harness().await?;
    let path = path_of::<StartWorkflowExecutionRequest>();
    let call = |bytes: usize| world.call(&path, Request::new(start_of_bytes(world, bytes)));
    expect(&observation(call(MESSAGE_BYTES_MAX).await), Code::Ok, "");
    let beyond = observation(call(MESSAGE_BYTES_MAX + 1).await);
    expect(&beyond, Code::ResourceExhausted, "grpc: received message larger than max (4194305 vs. 4194304)");
    Ok(())
}

/// Sends a gRPC message whose head and body are made by hand.
async fn call_by_hand(
    channel: &Channel,
    body: &'static str,
) -> anyhow::Result<http::Response<tonic::body::Body>> {
    let request = http::Request::post(path_of::<StartWorkflowExecutionRequest>())
        .header("content-type", "application/grpc")
        .header("grpc-encoding", "gzip")
        .header("te", "trailers")
        .body(tonic::body::Body::new(body.to_owned()))?;
    let mut channel = channel.clone();
    std::future::poll_fn(|context| Service::poll_ready(&mut channel, context)).await?;
    Ok(patience::answer("a call by hand", channel.call(request)).await??)
}

#[tokio::test]
async fn a_message_that_claims_to_be_huge_is_refused_before_it_is_read() -> anyhow::Result<()> {
    let mut harness = harness().await?;
    let before_kib = harness.peak_kib()?;
    // Not compressed, 2,139,062,143 bytes long; compressed and as long; compressed and garbage.
    for body in ["\0\x7f\x7f\x7f\x7fabc", "\x01\x7f\x7f\x7f\x7fabc", "\x01\0\0\0\x03abc"] {
        let answer = call_by_hand(&harness.world.channel, body).await?;
        let status =
            answer.headers().get("grpc-status").map(|status| status.to_str().unwrap_or_default().to_owned());
        // In the head of the answer, since there is nothing else to say.
        assert!(status.as_deref().is_some_and(|status| status != "0"), "{body:?}: {answer:?}");
    }
    harness.is_well(before_kib).await
}

#[tokio::test]
async fn a_small_body_that_expands_to_a_hundred_mebibytes_is_refused_before_it_does() -> anyhow::Result<()> {
    let mut harness = harness().await?;
    let path = path_of::<StartWorkflowExecutionRequest>().parse()?;
    let before_kib = harness.peak_kib()?;
    let zeros = Bytes::from(vec![0; 100 << 20]);
    let mut client = Grpc::new(harness.world.channel.clone()).send_compressed(CompressionEncoding::Gzip);
    client.ready().await?;
    let answer = client.unary(Request::new(zeros), path, raw::BytesCodec).await;
    let status = answer.map(|answer: tonic::Response<Bytes>| answer.into_inner()).err();
    let status = status.map(|status| (status.code(), status.message().to_owned()));
    assert!(
        matches!(&status, Some((Code::ResourceExhausted, message)) if message.starts_with("grpc: ") && message.contains("larger than max")),
        "{status:?}"
    );
    harness.is_well(before_kib).await
}

#[tokio::test]
async fn a_compressed_request_is_read_like_any_other() -> anyhow::Result<()> {
    let Harness { world, server: _server, .. } = &harness().await?;
    let run = Run { id: world.fresh("run"), run_id: String::new(), queue: String::new() };
    let start = Bytes::from(world.start_of(&run.id).encode_to_vec());
    let mut client = Grpc::new(world.channel.clone())
        .send_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Gzip);
    client.ready().await?;
    let path = path_of::<StartWorkflowExecutionRequest>().parse()?;
    let _answer: tonic::Response<Bytes> = client.unary(Request::new(start), path, raw::BytesCodec).await?;
    world.until(&run, EventType::WorkflowTaskScheduled).await
}

#[tokio::test]
async fn a_header_list_that_is_too_large_ends_its_own_call_only() -> anyhow::Result<()> {
    let mut harness = harness().await?;
    let before_kib = harness.peak_kib()?;
    for (headers, value_bytes) in [(1, 1 << 20), (2_000, 100), (20_000, 10)] {
        let channel = harness.server.connect().await?;
        let start = harness.world.start_of(&harness.world.fresh("refused"));
        let id = start.workflow_id.clone();
        let mut call = Request::new(Bytes::from(start.encode_to_vec()));
        for number in 0..headers {
            let name = format!("x-header-{number}").parse::<tonic::metadata::AsciiMetadataKey>()?;
            call.metadata_mut().insert(name, text(value_bytes).parse()?);
        }
        let path = path_of::<StartWorkflowExecutionRequest>();
        let answer = patience::answer(&path, raw::call(&channel, &path, call)).await?;
        assert!(answer.is_err(), "{headers} headers of {value_bytes} bytes were taken");
        expect(&observation(harness.world.send(harness.world.describe(&id)).await), Code::NotFound, "");
    }
    harness.is_well(before_kib).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_streams_wait_on_one_connection_while_others_are_served() -> anyhow::Result<()> {
    let mut harness = harness().await?;
    let before_kib = harness.peak_kib()?;
    let crowd = World { channel: harness.server.connect().await?, ..harness.world.clone() };
    let are_served = Arc::new(AtomicBool::new(false));
    let mut polls = JoinSet::new();
    for number in 0..STREAMS {
        polls.spawn(poll_until(crowd.clone(), format!("crowded-{}", number % 10), are_served.clone()));
    }
    for _ in 0..20 {
        harness.world.begin(|_fine| {}).await?;
    }
    are_served.store(true, Ordering::Relaxed);
    while let Some(observation) = polls.join_next().await {
        let observation = observation?;
        let fits =
            matches!(observation.code, Some(Code::Ok | Code::ResourceExhausted | Code::DeadlineExceeded));
        assert!(fits, "a poll got {observation}");
    }
    harness.is_well(before_kib).await
}

/// Polls again and again, until others have been served or it is refused: they are not served because the polls end.
async fn poll_until(world: World, name: String, are_served: Arc<AtomicBool>) -> Observation {
    let poll = PollWorkflowTaskQueueRequest {
        namespace: world.namespace.clone(),
        task_queue: Some(queue(&name)),
        ..PollWorkflowTaskQueueRequest::default()
    };
    loop {
        let mut call = Request::new(Bytes::from(poll.encode_to_vec()));
        call.set_timeout(POLL);
        let observation = observation(world.call(&path_of::<PollWorkflowTaskQueueRequest>(), call).await);
        let has_waited = matches!(observation.code, Some(Code::Ok | Code::DeadlineExceeded));
        if !has_waited || are_served.load(Ordering::Relaxed) {
            return observation;
        }
    }
}

/// So many empty entries of a map field: two bytes each.
fn entries(tag: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..ENTRIES {
        prost::encoding::encode_key(tag, prost::encoding::WireType::LengthDelimited, &mut bytes);
        bytes.push(0);
    }
    bytes
}

/// A million entries in every place where a client can send a map. Each is 2 MB of bytes on the wire.
fn crowds(world: &World, token: &Bytes) -> anyhow::Result<Vec<(&'static str, String, Vec<u8>)>> {
    let start = || world.start_of(&world.fresh("run"));
    let namespace = RegisterNamespaceRequest {
        namespace: "crowd".into(),
        workflow_execution_retention_period: Some(seconds(86_400)),
        ..RegisterNamespaceRequest::default()
    };
    let search_attributes =
        StartWorkflowExecutionRequest { search_attributes: Some(entries(1).into()), ..start() };
    let memo = StartWorkflowExecutionRequest { memo: Some(entries(1).into()), ..start() };
    let header = StartWorkflowExecutionRequest { header: Some(entries(1).into()), ..start() };
    let start_path = path_of::<StartWorkflowExecutionRequest>();
    let completion = world.completion(token, Vec::new()).encode_to_vec();
    let completion_path = path_of::<RespondWorkflowTaskCompletedRequest>();
    Ok(vec![
        (
            "data of a namespace",
            path_of::<RegisterNamespaceRequest>(),
            [namespace.encode_to_vec(), entries(7)].concat(),
        ),
        ("search attributes of a start", start_path.clone(), search_attributes.encode_to_vec()),
        ("memo of a start", start_path.clone(), memo.encode_to_vec()),
        ("header of a start", start_path, header.encode_to_vec()),
        ("results of queries", completion_path, [completion, entries(8)].concat()),
    ])
}

/// A million entries in every place where a worker can send a list, each as a completion of a task of its own.
fn crowded_commands() -> Vec<(&'static str, Vec<Command>)> {
    let memo = memo_and_search_attributes::Modify { upserted_memo: Some(entries(1).into()) };
    let marker = marker::Record {
        marker_name: "m".into(),
        details: vec![MapEntry::default(); ENTRIES],
        ..marker::Record::default()
    };
    let markers = Command { event_group_markers: vec![Bytes::new(); ENTRIES], ..timer("t", 1_000) };
    vec![
        ("memo of an upsert", vec![command(CommandAttributes::ModifyProperties(memo))]),
        ("details of a marker", vec![command(CommandAttributes::RecordMarker(Box::new(marker)))]),
        ("group markers of a command", vec![markers]),
        ("commands", vec![Command::default(); ENTRIES]),
    ]
}

#[tokio::test]
async fn a_map_of_a_million_entries_is_settled_in_little_memory() -> anyhow::Result<()> {
    let mut harness = harness().await?;
    let world = harness.world.clone();
    let run = world.begin(|_fine| {}).await?;
    let token = world.task(&run).await?.task_token;
    let mut faults = Vec::new();
    let mut crowds = crowds(&world, &token)?;
    for (what, commands) in crowded_commands() {
        let token = world.task(&world.begin(|_fine| {}).await?).await?.task_token;
        let path = path_of::<RespondWorkflowTaskCompletedRequest>();
        crowds.push((what, path, world.completion(&token, commands).encode_to_vec()));
    }
    for (what, path, bytes) in crowds {
        let (before_kib, begun) = (harness.peak_kib()?, Instant::now());
        let observation = observation(world.call(&path, Request::new(bytes.into())).await);
        let (took, growth_kib) = (begun.elapsed(), harness.peak_kib()?.saturating_sub(before_kib));
        println!("{what}: {observation} after {took:?}, {growth_kib} KiB");
        let settled =
            matches!(observation.code, Some(Code::Ok | Code::InvalidArgument | Code::ResourceExhausted));
        if !settled || growth_kib > GROWTH_KIB_MAX {
            faults.push(format!("{what}: {observation} after {took:?}, {growth_kib} KiB"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let well_kib = harness.peak_kib()?;
    harness.is_well(well_kib).await
}
