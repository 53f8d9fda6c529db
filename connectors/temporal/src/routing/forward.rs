//! Forwarding: a call for a partition or a task queue of another node is sent there as bytes, and the response comes back as bytes.
//!
//! It decides by the routing key of the RPC, waits for an owner while a partition moves, and repeats what may be repeated. It
//! never decodes a whole request. How a node is reached is the business of [`Peers`].

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use everlog_auth::Caller;
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response, request};
use tower::{Layer, Service};

use crate::authorization;
use crate::codec::body_buffer::{BodyBuffer, PREFIX_ROOM_BYTES};
use crate::codec::grpc_timeout;
use crate::codec::{random_ids, status};
use crate::routing::delivery_receipt::{ReceiptSlot, with_receipt};
use crate::routing::partition_reads;
use crate::routing::peers::{Broken, Forwarded, Location, POLL_HEADER, Peers};
use crate::routing::route::{self, Route};
use crate::rpc::{RoutingKey, Rpc};
use crate::{CallFuture, Gateway, Limits};

/// How long a call waits for an owner of its partition, before it is refused with UNAVAILABLE. A takeover takes less.
const OWNER_WITHIN: Duration = Duration::from_secs(3);
/// How long it waits for a change of ownership before it tries again.
const RETRY_AFTER: Duration = Duration::from_millis(25);

/// How long a request may take to arrive. Requests of clients are bounded before, by `request_within_ms`.
const BUFFERED_WITHIN: Duration = Duration::from_secs(60);
/// How long another node may take to answer an RPC that is no long poll, if the caller has no deadline.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// The longest deadline of a caller that is honored.
const PATIENCE_MAX: Duration = Duration::from_secs(3_600);

/// The layer that forwards calls before they reach the services.
#[derive(Clone)]
pub(crate) struct ForwardLayer {
    pub gateway: Arc<Gateway>,
}

impl<S> Layer<S> for ForwardLayer {
    type Service = ForwardService<S>;

    fn layer(&self, inner: S) -> ForwardService<S> {
        ForwardService { inner, gateway: Arc::clone(&self.gateway) }
    }
}

/// The services behind the forwarding.
#[derive(Clone)]
pub(crate) struct ForwardService<S> {
    inner: S,
    gateway: Arc<Gateway>,
}

impl<S> Service<Request<Body>> for ForwardService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = CallFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (mut headers, mut extensions) =
            (std::mem::take(request.headers_mut()), std::mem::take(request.extensions_mut()));
        authorization::receive(&mut headers, &mut extensions);
        (*request.headers_mut(), *request.extensions_mut()) = (headers, extensions);
        if request.uri().path() == partition_reads::PATH && request.extensions().get::<Forwarded>().is_some()
        {
            let gateway = Arc::clone(&self.gateway);
            return Box::pin(async move { Ok(partition_reads::answer_peer(&gateway, request).await) });
        }
        let mut inner = self.inner.clone();
        std::mem::swap(&mut inner, &mut self.inner);
        let routed =
            Rpc::of_path(request.uri().path()).filter(|rpc| rpc.routing_key() != RoutingKey::AnyNode);
        let Some(rpc) = routed else { return Box::pin(inner.call(request)) };
        let receipt_slot = (rpc.routing_key().is_poll()
            && request.extensions().get::<ReceiptSlot>().is_none())
        .then(ReceiptSlot::default);
        if let Some(receipt_slot) = &receipt_slot {
            request.extensions_mut().insert(receipt_slot.clone());
        }
        let gateway = Arc::clone(&self.gateway);
        Box::pin(async move {
            let response = match &gateway.peers {
                Some(peers) => forward_or_serve(&gateway, peers.as_ref(), rpc, request, inner).await,
                None => inner.call(request).await?,
            };
            Ok(match receipt_slot.and_then(|receipt_slot| receipt_slot.take()) {
                Some(receipt) => with_receipt(response, receipt),
                None => response,
            })
        })
    }
}

async fn forward_or_serve<S>(
    gateway: &Gateway,
    peers: &dyn Peers,
    rpc: Rpc,
    request: Request<Body>,
    inner: S,
) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let began = Instant::now();
    // A forwarded call has its share at the node that forwarded it.
    let is_forwarded = request.extensions().get::<Forwarded>().is_some();
    let place = (!is_forwarded).then(|| gateway.forwarded.take(1));
    if let Some(None) = place {
        return status::overloaded().into_http();
    }
    let (head, body) = request.into_parts();
    let body = tokio::time::timeout(BUFFERED_WITHIN, buffered(body, gateway.limits.message_bytes_max)).await;
    match body {
        Ok(Ok(body)) => BufferedCall { head, body, rpc, began }.answer(gateway, peers, inner).await,
        Ok(Err(status)) => status.into_http(),
        Err(_slow) => Status::deadline_exceeded("the request has not arrived in time").into_http(),
    }
}

/// A call with its whole body.
struct BufferedCall {
    head: request::Parts,
    body: Bytes,
    rpc: Rpc,
    began: Instant,
}

impl BufferedCall {
    async fn answer<S>(self, gateway: &Gateway, peers: &dyn Peers, mut inner: S) -> Response<Body>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let is_forwarded = self.head.extensions.get::<Forwarded>().is_some();
        if self.rpc.routing_key() == RoutingKey::EveryNode {
            if !is_forwarded {
                self.notify_others(peers);
            }
            return serve_here(&mut inner, self.request()).await;
        }
        if peers.is_alone() {
            let response = serve_here(&mut inner, self.request()).await;
            if !status::is_moved(response.headers()) {
                return response;
            }
        }
        let read = (&self.body, gateway.limits.message_bytes_max);
        let route =
            route::of_request(self.rpc.routing_key(), read, &gateway.namespaces, &gateway.token_signer);
        let Some(route) = route else { return serve_here(&mut inner, self.request()).await };
        if let Err(status) = authorization::judge_route(gateway, self.rpc, self.caller(), &route) {
            return status.into_http();
        }
        // Counted from the first time that no node owns the partition: a long poll may have waited before.
        let mut deadline = None;
        let answered_by = self.began + self.patience(gateway);
        let mut changes = peers.changes();
        loop {
            changes.mark_unchanged();
            match location(&route, is_forwarded, gateway, peers) {
                Location::Here => {
                    let response = serve_here(&mut inner, self.request()).await;
                    if !status::is_moved(response.headers()) {
                        return response;
                    }
                }
                // The node that forwarded it looks for the owner again.
                Location::There(_) if is_forwarded => return status::moved().into_http(),
                Location::There(node) => match self.forward_to(peers, &node, answered_by).await {
                    Ok(response) if !status::is_moved(response.headers()) => return response,
                    Ok(_) | Err(Broken::Unsent) => {}
                    Err(Broken::Unanswered) if Instant::now() >= answered_by => {
                        return Status::deadline_exceeded(
                            "the node that serves the partition has not answered in time: the call may have taken effect",
                        )
                        .into_http();
                    }
                    Err(Broken::Unanswered) if self.rpc.is_repeatable() => {}
                    Err(Broken::Unanswered) => {
                        return Status::unavailable(
                            "the node that serves the partition has gone: the call may have taken effect",
                        )
                        .into_http();
                    }
                },
                Location::Nowhere => {}
            }
            if Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + OWNER_WITHIN) {
                return match is_forwarded {
                    true => status::moved().into_http(),
                    false => Status::unavailable("no node serves the partition at the moment").into_http(),
                };
            }
            // Two nodes may disagree about the owner without a change to wait for.
            let _ = tokio::time::timeout(RETRY_AFTER, changes.changed()).await;
        }
    }

    /// How long another node may take to answer: the caller's timeout, or else longer than any long poll.
    fn patience(&self, gateway: &Gateway) -> Duration {
        let Limits { poll_wait_ms, history_wait_ms, query_wait_ms, .. } = gateway.limits;
        let longest = Duration::from_millis(poll_wait_ms.max(history_wait_ms).max(query_wait_ms));
        grpc_timeout::of(&self.head.headers).unwrap_or(longest + ANSWERED_WITHIN).min(PATIENCE_MAX)
    }

    async fn forward_to(
        &self,
        peers: &dyn Peers,
        node: &Arc<str>,
        by: Instant,
    ) -> Result<Response<Body>, Broken> {
        let mut request = self.copy();
        // A new id for each attempt: a task claimed for the last attempt must not count for this one.
        let poll_id = self.rpc.routing_key().is_poll().then(random_ids::id);
        if let Some(poll_id) = &poll_id {
            request.headers_mut().insert(POLL_HEADER, poll_id.parse().expect("a UUID is ASCII"));
        }
        let answered = tokio::time::timeout_at(by, peers.call(Arc::clone(node), request)).await;
        let answered = answered.unwrap_or(Err(Broken::Unanswered));
        if let (Err(Broken::Unanswered), Some(poll_id)) = (&answered, poll_id) {
            peers.poll_lost(node, poll_id);
        }
        answered
    }

    /// Sends the call to every other node. A node that is unreachable has nothing that the call concerns.
    fn notify_others(&self, peers: &dyn Peers) {
        for node in peers.others() {
            let told = peers.call(node, self.copy());
            tokio::spawn(tokio::time::timeout(ANSWERED_WITHIN, told));
        }
    }

    fn request(&self) -> Request<Body> {
        Request::from_parts(self.head.clone(), Body::new(Full::new(self.body.clone())))
    }

    /// The call as it goes to another node.
    fn copy(&self) -> Request<Bytes> {
        let mut head = self.head.clone();
        authorization::send(&mut head.headers, &head.extensions);
        Request::from_parts(head, self.body.clone())
    }

    fn caller(&self) -> Option<&Caller> {
        self.head.extensions.get()
    }
}

fn location(route: &Route, is_forwarded: bool, gateway: &Gateway, peers: &dyn Peers) -> Location {
    match route {
        Route::Owner(address) => peers.owner(address.partition(gateway.about.partitions)),
        Route::Partition(partition) => peers.owner(*partition),
        // The node that forwarded it takes this one for the matching node, and the two will agree soon.
        Route::MatchingNode(_) if is_forwarded => Location::Here,
        Route::MatchingNode(queue) => peers.home(queue),
    }
}

async fn serve_here<S>(inner: &mut S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let ready = std::future::poll_fn(|context| inner.poll_ready(context)).await;
    match ready {
        Ok(()) => inner.call(request).await.unwrap_or_else(|never| match never {}),
        Err(never) => match never {},
    }
}

/// The whole body, or a little more than the largest message: the service then refuses it.
async fn buffered(body: Body, message_bytes_max: usize) -> Result<Bytes, Status> {
    let (mut body, mut buffer) = (body, BodyBuffer::default());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::cancelled(format!("the call broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        buffer.add(data);
        if buffer.len() > message_bytes_max + PREFIX_ROOM_BYTES {
            break;
        }
    }
    Ok(buffer.into_bytes())
}

/// The services for forwarded calls of other nodes. Cheap to clone.
#[derive(Clone)]
pub struct Calls(tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>);

impl Calls {
    /// Answers a forwarded call. It has [`Forwarded`] among its extensions, so that it is not forwarded once more.
    pub async fn answer(mut self, request: Request<Body>) -> Response<Body> {
        serve_here(&mut self.0, request).await
    }
}

impl Gateway {
    /// The services for forwarded calls of other nodes.
    ///
    /// # Errors
    /// [`crate::Error`]: the descriptor.
    pub fn calls(self: &Arc<Self>) -> Result<Calls, crate::Error> {
        let routes = self.services()?.prepare();
        Ok(Calls(tower::util::BoxCloneSyncService::new(
            ForwardLayer { gateway: Arc::clone(self) }.layer(routes),
        )))
    }
}
