//! Calls within the process: the client of the node's own API, with the forwarding to other nodes and without a connection.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use everlog_auth::{Caller, Principal};
use everlog_temporal_api::workflowservice::workflow_service_client::WorkflowServiceClient;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Response, Status};
use tower::Service;

use crate::CallFuture;
use crate::routing::forward::Calls;

/// The client of the node's own API. Cheap to clone.
pub(crate) type ApiClient = WorkflowServiceClient<InProcess>;

/// How long a call may take. Longer than the wait for the owner of a partition.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// Bytes of an answer: those of a page of a list or of a history.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The services, as a client sees a connection.
#[derive(Clone)]
pub(crate) struct InProcess {
    calls: Calls,
    caller: Caller,
}

impl Service<http::Request<Body>> for InProcess {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = CallFuture<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let calls = self.calls.clone();
        request.extensions_mut().insert(Caller::clone(&self.caller));
        Box::pin(async move { Ok(calls.answer(request).await) })
    }
}

/// A client of these services, which may do in one namespace what a writer may.
pub(crate) fn client(calls: Calls, name: &str, namespace: &str) -> ApiClient {
    let caller = Caller::new(Principal::server(name, namespace));
    WorkflowServiceClient::new(InProcess { calls, caller }).max_decoding_message_size(ANSWER_BYTES_MAX)
}

/// The answer to a call, or DEADLINE_EXCEEDED.
///
/// # Errors
/// The status of the call.
pub(crate) async fn answer<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
    within(call).await.map(Response::into_inner)
}

/// What a call comes to, or DEADLINE_EXCEEDED.
///
/// # Errors
/// The status of the call.
pub(crate) async fn within<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_late| Status::deadline_exceeded("a call within the process has not been answered in time");
    tokio::time::timeout(ANSWERED_WITHIN, call).await.map_err(late)?
}
