//! Callers between nodes: they travel with their call on the connection of the nodes, and are judged there again.

use std::sync::Arc;

use bytes::Bytes;
use everlog_auth::{Audit, AuthSettings, Authenticator, Grants, NewApiKey, Principal, PrincipalKind};
use everlog_partition::QueueKey;
use everlog_temporal::{Body, Broken, CallFuture, Forwarded, Guard, Limits, Location, Peers};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::workflowservice::*;
use http_body_util::Full;
use parking_lot::Mutex;
use prost::Name;
use tokio::sync::watch;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};

use crate::{Front, unknowing};

const HEADER: &str = "everlog-principal";

/// Another node, which owns everything and remembers the headers of what it is sent.
struct Owner {
    sent: Mutex<Vec<HeaderMap>>,
    changes: watch::Sender<u64>,
}

impl Peers for Owner {
    fn owner(&self, _partition: u32) -> Location {
        Location::There("b".into())
    }

    fn home(&self, _queue: &QueueKey) -> Location {
        Location::There("b".into())
    }

    fn calls_address(&self, _node: &str) -> Option<String> {
        None
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn others(&self) -> Vec<Arc<str>> {
        vec!["b".into()]
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn poll_lost(&self, _node: &str, _poll_id: String) {}

    fn call(&self, _node: Arc<str>, request: Request<Bytes>) -> CallFuture<Result<Response<Body>, Broken>> {
        self.sent.lock().push(request.headers().clone());
        Box::pin(async { Ok(Status::new(Code::DataLoss, "another node was reached").into_http()) })
    }
}

/// A guard that knows one key, and the key.
fn guard(grants: &[&str]) -> (Guard, String) {
    let grants: Vec<String> = grants.iter().map(|grant| (*grant).to_owned()).collect();
    let made = NewApiKey::generate("caller", &grants, None).expect("it can be made");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &made.line).expect("it can be written");
    let settings = AuthSettings { api_keys_file: Some(file.path().into()), ..AuthSettings::default() };
    let authenticator = Authenticator::open(&settings).expect("the file is good");
    (Guard { authenticator: Arc::new(authenticator), audit: Arc::new(Audit::default()) }, made.key)
}

fn describe(namespace: &str) -> DescribeWorkflowExecutionRequest {
    let execution = WorkflowExecution { workflow_id: "w".into(), run_id: String::new() };
    DescribeWorkflowExecutionRequest { namespace: namespace.into(), execution: Some(execution) }
}

fn with_key<R>(request: R, key: &str) -> tonic::Request<R> {
    let mut request = tonic::Request::new(request);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().expect("ASCII"));
    request
}

#[tokio::test]
async fn a_call_takes_its_caller_along_and_not_its_key() {
    let (guard, key) = guard(&["default:read"]);
    let owner = Arc::new(Owner { sent: Mutex::default(), changes: watch::Sender::new(0) });
    let peers: Arc<dyn Peers> = Arc::clone(&owner) as _;
    let mut front = Front::judged(Limits::default(), Arc::new(unknowing), Some(peers), Some(guard)).await;
    let mut request = with_key(describe("default"), &key);
    request.metadata_mut().insert(HEADER, "forged".parse().expect("ASCII"));
    let status = front.client.describe_workflow_execution(request).await.expect_err("it is refused");
    assert_eq!((status.code(), status.message()), (Code::DataLoss, "another node was reached"));
    let sent = owner.sent.lock().pop().expect("it was sent");
    let principal = sent.get(HEADER).and_then(|value| Principal::from_wire(value.to_str().ok()?));
    assert_eq!(principal.expect("it has one").name, "caller");
    assert_eq!(sent.get("authorization"), None);
    assert_eq!(sent.get_all(HEADER).iter().count(), 1);
    // What its caller may not do goes nowhere, whether or not there is such a namespace.
    let signal = SignalWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_execution: describe("").execution,
        signal_name: "go".into(),
        ..Default::default()
    };
    let status = front.client.signal_workflow_execution(with_key(signal, &key)).await;
    assert_eq!(status.expect_err("it is denied").code(), Code::PermissionDenied);
    let status = front.client.describe_workflow_execution(with_key(describe("nowhere"), &key)).await;
    assert_eq!(status.expect_err("it is denied").code(), Code::PermissionDenied);
    assert!(owner.sent.lock().is_empty());
}

/// A call as the node gets it from another one, or from its own process where `forwarded` is false.
async fn arrives(front: &Front, request: impl Name, principal: Option<&str>, forwarded: bool) -> Code {
    let message = request.encode_to_vec();
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).expect("it is short").to_be_bytes());
    frame.extend(message);
    let path = "/temporal.api.workflowservice.v1.WorkflowService/DescribeWorkflowExecution";
    let mut call = Request::post(path).header("content-type", "application/grpc");
    if let Some(principal) = principal {
        call = call.header(HEADER, principal);
    }
    let mut call = call.body(Body::new(Full::new(Bytes::from(frame)))).expect("it is a request");
    if forwarded {
        call.extensions_mut().insert(Forwarded);
    }
    let response = front.calls.clone().answer(call).await;
    let status = Status::from_header_map(response.headers()).expect("it is refused at once");
    status.code()
}

#[tokio::test]
async fn a_call_of_another_node_is_judged_by_the_caller_that_it_brings() {
    let (guard, _key) = guard(&["default:read"]);
    let front = Front::judged(Limits::default(), Arc::new(unknowing), None, Some(guard)).await;
    let of = |grant: &str| {
        let mut grants = Grants::default();
        grants.add_text(grant).expect(grant);
        Principal { kind: PrincipalKind::Jwt, name: "somebody".into(), grants }.to_wire()
    };
    let (reader, stranger) = (of("default:read"), of("elsewhere:admin"));
    let come = async |principal: Option<&str>, forwarded| {
        arrives(&front, describe("default"), principal, forwarded).await
    };
    assert_eq!(come(Some(&reader), true).await, Code::NotFound, "it may, and there is no such run");
    assert_eq!(come(Some(&stranger), true).await, Code::PermissionDenied);
    assert_eq!(come(Some("{}"), true).await, Code::PermissionDenied);
    assert_eq!(come(None, true).await, Code::PermissionDenied);
    assert_eq!(come(Some(&reader), false).await, Code::PermissionDenied, "nobody else brings callers");
}
