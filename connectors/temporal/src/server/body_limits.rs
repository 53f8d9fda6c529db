//! The bounds of every call from outside: its request arrives in time or is refused, and its request and response hold a bounded
//! number of bytes, of each connection and of all, from the first byte to the last.
//!
//! Calls of other nodes do not pass here: their node has bounded them.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_listen::{Budget, Share, SharedConnection};
use everlog_temporal_api::codec;
use everlog_temporal_api::enums::{ResourceExhaustedCause, ResourceExhaustedScope};
use http_body_util::{BodyExt, Full, Limited};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Response};
use tower::Service;

use crate::authorization;
use crate::codec::body_buffer::BodyBuffer;
use crate::codec::body_buffer::PREFIX_ROOM_BYTES;
use crate::codec::grpc_timeout;
use crate::codec::status;
use crate::routing::delivery_receipt::ReceiptSlot;
use crate::server::call::HistoryPermit;
use crate::server::compression;
use crate::server::response_body::{ResponseBody, ResponseContent};
use crate::server::transport;
use crate::{CallFuture, Gateway, Limits};

/// The services whose calls have one request and one answer.
const UNARY: &str = "/temporal.api.";
/// The service whose calls have one request, and answers as long as the client wants.
const HEALTH: &str = "/grpc.health.v1.Health/";
/// Bytes that a call of another service (reflection, health) may send. Their requests have a name or two.
const STREAM_BYTES_MAX: usize = 64 << 10;
/// Calls of other services in progress, and health checks apart from them. Health watches last as long as their client.
const STREAMS_MAX: usize = 1_000;
/// How long the request of a health check may take to arrive. It has a name.
const CHECK_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of a request of a caller that has shown no identity, where callers need one. What it may call takes none.
const STRANGER_BYTES_MAX: usize = 4 << 10;
/// The share of a response beside its bytes: its head and trailers.
const ANSWER_BYTES: usize = 256;
/// How long after its deadline a response is still kept, because clocks differ and the network takes time.
const GRACE: Duration = Duration::from_secs(1);

/// The budgets that all calls share.
#[derive(Clone, Debug)]
pub struct CallBudgets {
    /// Bytes of requests.
    pub requests: Arc<Budget>,
    /// Bytes of responses that clients have not received yet.
    pub answers: Arc<Budget>,
    /// Calls of other services, which last as long as their client wants.
    pub streaming: Arc<Budget>,
    /// Health checks.
    pub checking: Arc<Budget>,
    /// Requests that arrive in more than one piece, and are waited for.
    pub arriving: Arc<Budget>,
    /// Responses that are being compressed.
    pub packing: Arc<Budget>,
    /// Calls that read a page of history, or wait until fewer others do. Unbounded: the permits to read are.
    pub reading: Arc<Budget>,
}

/// The services as clients reach them.
#[derive(Clone)]
pub(crate) struct BodyLimits<S> {
    pub inner: S,
    pub gateway: Arc<Gateway>,
}

impl CallBudgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            requests: Budget::new(limits.request_bytes_max),
            answers: Budget::new(limits.answer_bytes_max),
            streaming: Budget::new(STREAMS_MAX),
            checking: Budget::new(STREAMS_MAX),
            arriving: Budget::new(limits.calls_max),
            packing: Budget::new((cores / 2).max(1)),
            reading: Budget::new(usize::MAX),
        }
    }
}

impl<S, B> Service<Request<B>> for BodyLimits<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = CallFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut inner = self.inner.clone();
        std::mem::swap(&mut inner, &mut self.inner);
        let gateway = Arc::clone(&self.gateway);
        let peer = request
            .extensions()
            .get::<SharedConnection>()
            .cloned()
            .expect("a listener's requests know theirs");
        if !request.uri().path().starts_with(UNARY) {
            let is_check = request.uri().path() == authorization::HEALTH_CHECK;
            let budgets = &gateway.budgets;
            let budget = if is_check { &budgets.checking } else { &budgets.streaming };
            let Some(place) = budget.take(1) else {
                let refusal = status::overloaded();
                gateway.metrics.count_unread(&refusal);
                return Box::pin(async move { Ok(refusal.into_http()) });
            };
            let request = request.map(|body| Body::new(Limited::new(body, STREAM_BYTES_MAX)));
            return Box::pin(async move {
                let call = BoundedCall { gateway: &gateway, peer, began: Instant::now() };
                let request = match call.streaming(request).await {
                    Ok(request) => request,
                    Err(refusal) => {
                        gateway.metrics.count_unread(&refusal);
                        return Ok(refusal.into_http());
                    }
                };
                let response = gateway.guarded(inner.call(request).await?);
                Ok(response.map(|body| Body::new(everlog_listen::HeldBody::new(body, place))))
            });
        }
        let request = request.map(Body::new);
        Box::pin(async move {
            let call = BoundedCall { gateway: &gateway, peer, began: Instant::now() };
            Ok(call.answer(request, inner).await.unwrap_or_else(|refusal| {
                gateway.metrics.count_unread(&refusal);
                refusal.into_http()
            }))
        })
    }
}

/// One call within its bounds.
struct BoundedCall<'a> {
    gateway: &'a Gateway,
    peer: SharedConnection,
    began: Instant,
}

impl BoundedCall<'_> {
    async fn answer<S>(self, request: Request<Body>, mut inner: S) -> Result<Response<Body>, Status>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let told = grpc_timeout::of(request.headers());
        let takes_gzip = compression::is_taken(request.headers());
        let (mut head, body) = request.into_parts();
        authorization::identify(self.gateway, &mut head, &self.peer).await?;
        transport::served(head.uri.path())?;
        let bytes_max = match authorization::is_known(self.gateway, &head) {
            true => self.gateway.limits.message_bytes_max,
            false => STRANGER_BYTES_MAX,
        };
        let mut held = self.received(&head.headers, body, told, bytes_max).await?;
        let encoding = head.headers.remove("grpc-encoding");
        let encoding = encoding.as_ref().map(HeaderValue::as_bytes);
        let packed_bytes = held.body.len();
        held.body = compression::unpacked(held.body, encoding, self.gateway.limits.message_bytes_max)?;
        held.shares.grow(held.body.len().saturating_sub(packed_bytes), "requests")?;
        held.shares.grow(structure_bytes(head.uri.path(), &held.body), "requests")?;
        let request = Request::from_parts(head, Body::new(Full::new(held.body)));
        let response = match inner.call(request).await {
            Ok(response) => self.gateway.guarded(response),
            Err(never) => match never {},
        };
        drop(held.shares);
        let answer_within = Duration::from_millis(self.gateway.limits.answer_within_ms);
        let late = self.began.checked_add(told.unwrap_or(Duration::MAX).saturating_add(GRACE));
        let until = Instant::now() + answer_within;
        self.outward(response, late.map_or(until, |late| late.min(until)), takes_gzip).await
    }

    /// A call of another service. Java's SDK compresses its health check.
    async fn streaming(&self, request: Request<Body>) -> Result<Request<Body>, Status> {
        let (mut head, body) = request.into_parts();
        authorization::identify(self.gateway, &mut head, &self.peer).await?;
        if !head.uri.path().starts_with(HEALTH) {
            return Ok(Request::from_parts(head, body));
        }
        let told = grpc_timeout::of(&head.headers).unwrap_or(CHECK_WITHIN).min(CHECK_WITHIN);
        let held = self.received(&head.headers, body, Some(told), STREAM_BYTES_MAX).await?;
        let encoding = head.headers.remove("grpc-encoding");
        let encoding = encoding.as_ref().map(HeaderValue::as_bytes);
        let message = compression::unpacked(held.body, encoding, STREAM_BYTES_MAX)?;
        Ok(Request::from_parts(head, Body::new(Full::new(message))))
    }

    /// The whole body, or a little more than the largest message: the service then refuses it.
    async fn received(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        told: Option<Duration>,
        bytes_max: usize,
    ) -> Result<ReceivedRequest, Status> {
        let Limits { request_within_ms, .. } = self.gateway.limits;
        let within = Duration::from_millis(request_within_ms);
        let by = tokio::time::Instant::from_std(self.began + told.unwrap_or(within).min(within));
        let budgets = &self.gateway.budgets;
        let mut shares = BudgetShares::none(&self.peer.requests, &budgets.requests);
        let head_bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        shares.grow(head_bytes.sum(), "requests")?;
        let (mut buffer, mut arriving) = (BodyBuffer::default(), None);
        loop {
            let frame = match at_once(body.frame()).await {
                Some(frame) => frame,
                None => {
                    if arriving.is_none() {
                        arriving = Some(budgets.arriving.take(1).ok_or_else(status::overloaded)?);
                    }
                    let frame = tokio::time::timeout_at(by, body.frame()).await;
                    frame.map_err(|_late| Status::deadline_exceeded("the request has not arrived in time"))?
                }
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| Status::cancelled(format!("the call broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            shares.grow(data.len(), "requests")?;
            buffer.add(data);
            if buffer.len() > bytes_max + PREFIX_ROOM_BYTES {
                break;
            }
        }
        Ok(ReceivedRequest { body: buffer.into_bytes(), shares })
    }

    /// The response as it is sent, or its refusal where a budget is exhausted.
    async fn outward(
        self,
        response: Response<Body>,
        until: Instant,
        takes_gzip: bool,
    ) -> Result<Response<Body>, Status> {
        let (mut head, mut body) = response.into_parts();
        let receipt = head.extensions.remove::<ReceiptSlot>().and_then(|receipt_slot| receipt_slot.take());
        if http_body::Body::is_end_stream(&body) {
            return Ok(Response::from_parts(head, body));
        }
        let budgets = &self.gateway.budgets;
        let mut shares = BudgetShares::none(&self.peer.answers, &budgets.answers);
        shares.grow(ANSWER_BYTES, "answers")?;
        let (mut buffer, mut trailers) = (BodyBuffer::default(), None);
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(piece) => {
                    shares.grow(piece.len(), "answers")?;
                    buffer.add(piece);
                }
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        let mut data = buffer.into_bytes();
        drop(head.extensions.remove::<HistoryPermit>());
        if takes_gzip
            && data.len() >= self.gateway.limits.gzip_bytes_min
            && let Some(packed) = compression::packed(&budgets.packing, &data).await
        {
            head.headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
            data = packed;
        }
        let content = ResponseContent { data, trailers, receipt, _shares: shares };
        Ok(Response::from_parts(head, Body::new(ResponseBody::new(content, self.peer, until))))
    }
}

/// A request that has arrived, with its shares.
struct ReceivedRequest {
    body: Bytes,
    shares: BudgetShares,
}

/// Shares of the budget of a connection and of the budget of all connections.
pub(crate) struct BudgetShares {
    connection: Share,
    all: Share,
}

impl BudgetShares {
    pub(crate) fn none(connection: &Arc<Budget>, all: &Arc<Budget>) -> Self {
        let none = |budget: &Arc<Budget>| budget.take(0).expect("nothing is always left");
        Self { connection: none(connection), all: none(all) }
    }

    /// Makes both shares larger, or refuses the call.
    pub(crate) fn grow(&mut self, by: usize, what: &str) -> Result<(), Status> {
        let full = |where_: &str, budget: &Budget| {
            let (cause, scope) = (ResourceExhaustedCause::SystemOverloaded, ResourceExhaustedScope::System);
            let most = budget.most();
            status::exhausted(cause, scope, format!("{what} {where_} take more than {most} bytes at once"))
        };
        if !self.connection.grow(by) {
            return Err(full("of this connection", self.connection.budget()));
        }
        if !self.all.grow(by) {
            return Err(full("of all connections", self.all.budget()));
        }
        Ok(())
    }
}

/// The memory that a decoded request takes beside its bytes.
fn structure_bytes(path: &str, body: &[u8]) -> usize {
    let method = path.rsplit('/').next().unwrap_or_default();
    body.get(compression::PREFIX_BYTES..)
        .map_or(0, |message| codec::structure_bytes(&format!("{method}Request"), message))
}

/// The output of a future that is ready; none if it would wait.
async fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
