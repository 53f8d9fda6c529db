//! A call from its admission to its response: namespace, deadline, limits, metrics, panics.
//!
//! Handlers reach the partitions through it. It does not read bodies and does not forward.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use everlog_auth::{Access, Caller};
use everlog_engine::Reply;
use everlog_engine::request::{self, RequestRecord};
use everlog_listen::{Share, SharedConnection};
use everlog_partition::{Address, Receipt};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::enums::NamespaceState;
use everlog_traces::CallSpan;
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Request, Response, Status};

use crate::Gateway;
use crate::authorization;
use crate::codec::status::{self, invalid};
use crate::codec::validation::Checks;
use crate::codec::{grpc_timeout, random_ids};
use crate::namespaces::namespace::Namespace;
use crate::routing::delivery_receipt::ReceiptSlot;
use crate::routing::peers::{Forwarded, POLL_HEADER};
use crate::rpc::Rpc;
use crate::server::client_version;
use crate::server::request_scope::{RequestScope, Scope};
use crate::tasks::response::ResponseContext;
use crate::tasks::token::{Subject, TaskToken, unreadable};

/// An admitted call. Handlers take the namespace from it, never from the name in a request.
pub(crate) struct Call<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub namespace: Arc<Namespace>,
    /// The caller's deadline.
    pub deadline: Option<Instant>,
    /// The caller follows to the next run by itself.
    pub follows_next_run: bool,
    rpc: Rpc,
    began: Instant,
    token: Option<TaskToken>,
    receipt_slot: Option<ReceiptSlot>,
    /// The id of a forwarded poll, given by the node that forwarded it.
    forwarded_poll_id: Option<String>,
    peer: Option<SharedConnection>,
    /// Held until the response is made.
    history_permit: OnceLock<HistoryPermit>,
    /// Who calls; none where everybody may do everything, or needs no rights.
    caller: Option<Caller>,
    /// Of a call of an administrator: the namespace that it is about.
    audited: Option<String>,
    span: Option<CallSpan>,
    /// The workflow that it is for, where its span wants to know.
    workflow_id: OnceLock<String>,
    /// How it has ended; none while it goes on, and where its caller is gone before that.
    outcome: OnceLock<Code>,
    _shares: AdmissionShares,
}

/// Permits to read history: of the connection, and of the gateway. It travels among the extensions of the response.
#[derive(Clone)]
pub(crate) struct HistoryPermit {
    _permits: Arc<[Option<OwnedSemaphorePermit>; 2]>,
    /// Of `CallBudgets::reading`.
    _counted: Option<Arc<Share>>,
}

/// The span of a call, where traces are on. A call that another node has forwarded has the parent of the client's call.
fn span<R>(gateway: &Gateway, rpc: Rpc, namespace: &Namespace, request: &Request<R>) -> Option<CallSpan> {
    let header = |name: &str| request.metadata().get(name)?.to_str().ok().map(str::to_owned);
    let traces = gateway.traces.as_ref()?;
    Some(traces.call(rpc.service(), rpc.name(), &namespace.record.name, header))
}

/// True of codes that are the server's fault, by OpenTelemetry's conventions for gRPC.
fn is_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

fn forwarded_poll_id<R>(request: &Request<R>) -> Option<String> {
    request.extensions().get::<Forwarded>()?;
    request.metadata().get(POLL_HEADER)?.to_str().ok().map(str::to_owned)
}

impl<'a> Call<'a> {
    /// Admits a call, or refuses it.
    pub(crate) fn open<R: RequestScope>(
        gateway: &'a Arc<Gateway>,
        request: &Request<R>,
    ) -> Result<Self, Status> {
        let (rpc, began) = (R::RPC, Instant::now());
        let caller = request.extensions().get::<Caller>().cloned();
        let scope = request.get_ref().scope();
        let audited = audited(gateway, rpc, &scope);
        let resolved = authorization::judge(gateway, rpc, caller.as_ref(), &scope)
            .and_then(|()| client_version::check(request.metadata()))
            .and_then(|()| resolve(gateway, rpc, scope));
        let (namespace, token) =
            resolved.inspect_err(|status| refused(gateway.namespaces.nameless(), rpc, status, began))?;
        let is_long_poll = request.get_ref().is_long_poll();
        let places = admit(gateway, &namespace, caller.as_ref(), rpc, is_long_poll)
            .inspect_err(|status| refused(&namespace, rpc, status, began))?;
        namespace.usage.metrics.began(rpc);
        let span = span(gateway, rpc, &namespace, request);
        let deadline =
            grpc_timeout::of(request.metadata().as_ref()).and_then(|timeout| began.checked_add(timeout));
        let follows_next_run = client_version::follows_next_run(request.metadata());
        let receipt_slot = request.extensions().get::<ReceiptSlot>().cloned();
        let forwarded_poll_id = forwarded_poll_id(request);
        let peer = request.extensions().get::<SharedConnection>().cloned();
        Ok(Self {
            gateway,
            namespace,
            deadline,
            follows_next_run,
            rpc,
            began,
            token,
            receipt_slot,
            forwarded_poll_id,
            peer,
            history_permit: OnceLock::new(),
            caller,
            audited,
            span,
            workflow_id: OnceLock::new(),
            outcome: OnceLock::new(),
            _shares: places,
        })
    }

    /// Refuses what the caller may not do in another namespace.
    pub(crate) fn may_call(&self, rpc: Rpc, namespace: &str) -> Result<(), Status> {
        authorization::judge(self.gateway, rpc, self.caller.as_ref(), &Scope::Name(namespace))
    }

    /// True if the caller may read in a namespace. It is no denial where it may not.
    pub(crate) fn may_read(&self, namespace: &str) -> bool {
        let may = |caller: &Caller| caller.may(Access::READ, namespace);
        self.gateway.guard.is_none() || self.caller.as_ref().is_some_and(may)
    }

    /// The id of the poll.
    pub(crate) fn poll_id(&self) -> String {
        self.forwarded_poll_id.clone().unwrap_or_else(random_ids::id)
    }

    /// Runs the handler. A panic in it fails this call only.
    pub(crate) async fn answer<T: Message>(
        &self,
        handler: impl Future<Output = Result<T, Status>>,
    ) -> Result<Response<T>, Status> {
        let mut handler = pin!(handler);
        let answer =
            poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
                Ok(poll) => poll,
                Err(_panic) => Poll::Ready(Err(self.panicked())),
            });
        let answer = answer.await;
        let _ = self.outcome.set(answer.as_ref().err().map_or(Code::Ok, Status::code));
        match answer {
            Ok(message) => {
                let Some(reader) = self.history_permit.get() else { return Ok(Response::new(message)) };
                let leaves = self.gateway.history_pacing.next(message.encoded_len(), Instant::now());
                tokio::time::sleep_until(leaves.into()).await;
                let mut response = Response::new(message);
                response.extensions_mut().insert(reader.clone());
                Ok(response)
            }
            Err(status) => {
                self.namespace.usage.metrics.failed(self.rpc, &status);
                Err(status)
            }
        }
    }

    /// Writes a call of an administrator into the audit log.
    fn write_down(&self) {
        if let (Some(guard), Some(namespace)) = (&self.gateway.guard, &self.audited) {
            let outcome = match self.outcome.get() {
                Some(code) => format!("{code:?}"),
                None => "unknown: the caller is gone".to_owned(),
            };
            guard.audit.admin_call(self.caller.as_deref(), self.rpc.name(), namespace, &outcome);
        }
    }

    fn panicked(&self) -> Status {
        tracing::error!(operation = self.rpc.name(), "handler panicked");
        self.namespace.usage.metrics.panicked(self.rpc);
        Status::internal("internal error")
    }

    /// The time until the caller's deadline; none if it has none.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// How long a long poll may wait: its empty response has to arrive before the caller's deadline.
    pub(crate) fn patience(&self, longest_ms: u64) -> Duration {
        let longest = Duration::from_millis(longest_ms);
        let margin = Duration::from_millis(self.gateway.limits.deadline_margin_ms);
        self.remaining().map_or(longest, |remaining| remaining.saturating_sub(margin).min(longest))
    }

    /// The handler is about to respond with a task. Its receipt is accepted once the response has been handed over. No await may come
    /// between this and the response.
    pub(crate) fn respond_with(&self, receipt: Option<Receipt>) {
        match (receipt, &self.receipt_slot) {
            (Some(receipt), Some(receipt_slot)) => receipt_slot.put(receipt),
            (Some(receipt), None) => receipt.accept(),
            (None, _) => {}
        }
    }

    /// Waits for the permits to read history, and keeps them until the response is made. They bound the large pages that are made at
    /// once, because these delay small calls.
    pub(crate) async fn acquire_history_permit(&self) {
        if self.history_permit.get().is_some() {
            return;
        }
        let place = async |places: Option<&Arc<Semaphore>>| match places {
            // The semaphores are never closed.
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        let counted = self.gateway.budgets.reading.take(1).map(Arc::new);
        let own = place(self.peer.as_ref().map(|peer| &peer.readers)).await;
        let of_all = place(Some(&self.gateway.readers)).await;
        drop(self.history_permit.set(HistoryPermit { _permits: Arc::new([own, of_all]), _counted: counted }));
    }

    /// What a response with a task is made with.
    pub(crate) fn response_context(&self) -> ResponseContext<'_> {
        ResponseContext { token_signer: &self.gateway.token_signer, namespace: &self.namespace }
    }

    /// The limits that the request is checked against.
    pub(crate) fn checks(&self) -> Checks<'_> {
        self.gateway.checks()
    }

    /// The run that the request names.
    pub(crate) fn address(&self, execution: WorkflowExecution) -> Address {
        self.is_for(&execution.workflow_id);
        Address {
            namespace_id: self.namespace.record.id.clone(),
            workflow_id: execution.workflow_id,
            run_id: execution.run_id,
        }
    }

    /// A request record for the run that the request names.
    pub(crate) fn request_record(
        &self,
        execution: WorkflowExecution,
        order: request::Request,
    ) -> RequestRecord {
        RequestRecord {
            namespace_id: self.namespace.record.id.clone(),
            workflow_id: execution.workflow_id,
            run_id: execution.run_id,
            sender: None,
            request: Some(order),
        }
    }

    /// Sends a request to its partition; a rejection by the engine becomes a status.
    pub(crate) async fn send(&self, input: RequestRecord) -> Result<Reply, Status> {
        self.is_for(&input.workflow_id);
        match self.gateway.router.order(input).await {
            Ok(Reply::Rejected(rejection)) => Err(status::of_rejection(rejection)),
            Ok(reply) => Ok(reply),
            Err(failure) => Err(status::of_failure(failure)),
        }
    }

    /// Has a run do what is answered with nothing but that it is done.
    pub(crate) async fn carry_out(
        &self,
        execution: WorkflowExecution,
        order: request::Request,
    ) -> Result<(), Status> {
        match self.send(self.request_record(execution, order)).await? {
            Reply::Done => Ok(()),
            _other => Err(status::unexpected_reply()),
        }
    }

    /// Notes the workflow for the span of the call.
    pub(crate) fn is_for(&self, workflow_id: &str) {
        if self.span.is_some() {
            let _known = self.workflow_id.set(workflow_id.to_owned());
        }
    }

    /// The run and the task of the request's task token.
    pub(crate) fn task(&self) -> Result<(WorkflowExecution, Subject), Status> {
        let token = self.token.clone().ok_or_else(unreadable)?;
        let subject = token.subject.ok_or_else(unreadable)?;
        self.is_for(&token.workflow_id);
        Ok((WorkflowExecution { workflow_id: token.workflow_id, run_id: token.run_id }, subject))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.write_down();
        self.namespace.usage.metrics.ended(self.rpc, self.began.elapsed());
        let Some(span) = &mut self.span else { return };
        if let Some(workflow_id) = self.workflow_id.get() {
            span.is_for(workflow_id);
        }
        if let Some(code) = self.outcome.get() {
            span.answered(*code as i32, code.description(), is_fault(*code));
        }
    }
}

/// The namespace of a call that the audit log has a line of; none of any other call.
fn audited(gateway: &Gateway, rpc: Rpc, scope: &Scope<'_>) -> Option<String> {
    let is_audited = gateway.guard.is_some() && rpc.access().is_of_admins();
    is_audited.then(|| match scope {
        Scope::About(name) | Scope::Name(name) | Scope::Token { name, .. } => (*name).to_owned(),
        Scope::Nameless => String::new(),
    })
}

fn refused(namespace: &Namespace, rpc: Rpc, status: &Status, began: Instant) {
    let metrics = &namespace.usage.metrics;
    metrics.began(rpc);
    metrics.failed(rpc, status);
    metrics.ended(rpc, began.elapsed());
}

/// The share of the budget of calls or polls, and those of the polls of the namespace and of the identity where these are limited.
type AdmissionShares = (Share, [Option<Share>; 2]);

fn admit(
    gateway: &Gateway,
    namespace: &Namespace,
    caller: Option<&Caller>,
    rpc: Rpc,
    is_long_poll: bool,
) -> Result<AdmissionShares, Status> {
    let gate = if is_long_poll { &gateway.polls } else { &gateway.calls };
    let place = gate.take(1).ok_or_else(status::overloaded)?;
    let of_identity = caller.and_then(|caller| gateway.identity_limits.of(caller));
    let rate_limits = [of_identity.as_deref(), Some(&namespace.usage.rate_limit)];
    for rate_limit in rate_limits.iter().flatten() {
        rate_limit.take_call()?;
    }
    let mut polls = [None, None];
    for (poll, rate_limit) in polls.iter_mut().zip(rate_limits) {
        *poll =
            rate_limit.filter(|_| is_long_poll).map_or(Ok(None), |rate_limit| rate_limit.take_poll(rpc))?;
    }
    Ok((place, polls))
}

fn resolve(
    gateway: &Gateway,
    rpc: Rpc,
    scope: Scope<'_>,
) -> Result<(Arc<Namespace>, Option<TaskToken>), Status> {
    let named = |name| gateway.namespaces.find_any(name, gateway.id_bytes_max());
    match scope {
        Scope::Nameless | Scope::About(_) => Ok((gateway.namespaces.nameless().clone(), None)),
        Scope::Name(name) => Ok((in_use(named(name)?, rpc)?, None)),
        Scope::Token { name, token } => {
            let token = TaskToken::open(&gateway.token_signer, token)?;
            let namespace = match name {
                "" => gateway.namespaces.find_id(&token.namespace_id)?,
                name => named(name)?,
            };
            let namespace = in_use(namespace, rpc)?;
            if namespace.record.id != token.namespace_id {
                return Err(invalid("Operation requested with a token from a different namespace."));
            }
            Ok((namespace, Some(token)))
        }
    }
}

fn in_use(namespace: Arc<Namespace>, rpc: Rpc) -> Result<Arc<Namespace>, Status> {
    let starts = matches!(rpc, Rpc::StartWorkflowExecution | Rpc::SignalWithStartWorkflowExecution);
    match namespace.state() {
        NamespaceState::Registered => Ok(namespace),
        state if starts => Err(status::namespace_not_registered(&namespace.record.name, state)),
        NamespaceState::Deleted => Err(status::namespace_deleted(&namespace.record.name)),
        NamespaceState::Deprecated | NamespaceState::Unspecified => Ok(namespace),
    }
}
