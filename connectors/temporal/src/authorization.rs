//! Who calls, and whether it may: before anything of the call is looked up.
//!
//! A caller is identified once, where its call comes in, and travels among the extensions of the request; to another node in a
//! header of the connection between nodes. Every node that serves a call judges it, by the decoded request.

use std::sync::Arc;

use everlog_auth::{Access, Audit, AuthError, Authenticator, Caller, Credentials, Principal};
use everlog_listen::Connection;
use tonic::Status;
use tonic::codegen::http::{Extensions, HeaderMap, HeaderValue, header, request};

use crate::Gateway;
use crate::codec::status;
use crate::routing::peers::Forwarded;
use crate::routing::route::Route;
use crate::rpc::Rpc;
use crate::server::request_scope::Scope;
use crate::tasks::token::TaskToken;

/// The header with the principal of a forwarded call. From clients it is removed.
pub(crate) const PRINCIPAL_HEADER: &str = "everlog-principal";
/// The words of Temporal's server for every denial. They say nothing about what there is.
const DENIED: &str = "Request unauthorized.";
/// A call of the health service that needs no rights.
pub(crate) const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
/// The service whose other calls last as long as the client wants.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Judges callers. None of it is there where `auth.enabled` is false: then everybody may do everything.
#[derive(Clone)]
pub struct Guard {
    /// Knows callers.
    pub authenticator: Arc<Authenticator>,
    /// Writes down what it denies.
    pub audit: Arc<Audit>,
}

/// Finds out who calls, by the head of a request of a client.
pub(crate) async fn identify(
    gateway: &Gateway,
    head: &mut request::Parts,
    connection: &Connection,
) -> Result<(), Status> {
    head.headers.remove(PRINCIPAL_HEADER);
    head.extensions.remove::<Caller>();
    let Some(guard) = &gateway.guard else { return Ok(()) };
    let path = head.uri.path();
    // SDKs connect by such a call, and probes make one: neither waits for keys, nor is refused for a key that is no good.
    if access(path) == Access::Open {
        head.headers.remove(header::AUTHORIZATION);
        return Ok(());
    }
    let authorization: Vec<_> =
        head.headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes).collect();
    let certificate = connection.client_certificate();
    let credentials = Credentials { authorization: &authorization, certificate };
    let caller = match guard.authenticator.identify(credentials).await {
        Ok(caller) => caller,
        Err(AuthError::Denied(reason)) => {
            guard.audit.denied(None, path, "", &reason);
            return Err(status::denied(DENIED));
        }
        Err(AuthError::Unavailable(why)) => {
            guard.audit.unidentified(path, &why);
            return Err(Status::unavailable("callers cannot be identified at the moment"));
        }
    };
    let may = |caller: &Caller| caller.grants.allow_somewhere(access(path));
    if !caller.as_ref().is_some_and(may) {
        let reason = if caller.is_none() { "no credentials" } else { "no role for it anywhere" };
        guard.audit.denied(caller.as_deref(), path, "", reason);
        return Err(status::denied(DENIED));
    }
    // What the server does not need any more cannot get into a log line.
    head.headers.remove(header::AUTHORIZATION);
    if let Some(caller) = caller {
        head.extensions.insert(caller);
    }
    Ok(())
}

/// True where the caller has shown who it is, or need not.
pub(crate) fn is_known(gateway: &Gateway, head: &request::Parts) -> bool {
    gateway.guard.is_none() || head.extensions.get::<Caller>().is_some()
}

/// What a path needs.
fn access(path: &str) -> Access {
    match Rpc::of_path(path) {
        Some(rpc) => rpc.access(),
        None if path == HEALTH_CHECK => Access::Open,
        // An RPC that is not served answers UNIMPLEMENTED to those who are known.
        None if path.starts_with(HEALTH) || path.starts_with("/temporal.api.") => Access::Known,
        // Reflection, which is about all that there is.
        None => Access::SYSTEM_READ,
    }
}

/// Takes over the principal that another node has sent with a forwarded call. In any other call the header is none.
pub(crate) fn receive(headers: &mut HeaderMap, extensions: &mut Extensions) {
    let sent = headers.remove(PRINCIPAL_HEADER);
    if extensions.get::<Forwarded>().is_none() {
        return;
    }
    extensions.remove::<Caller>();
    let read = sent.and_then(|sent| Principal::from_wire(sent.to_str().ok()?));
    if let Some(principal) = read {
        extensions.insert::<Caller>(principal.into());
    }
}

/// Adds the principal of a call to the headers that go to another node.
pub(crate) fn send(headers: &mut HeaderMap, extensions: &Extensions) {
    headers.remove(PRINCIPAL_HEADER);
    let wire = extensions.get::<Caller>().map(|caller| caller.to_wire());
    if let Some(wire) = wire.and_then(|wire| HeaderValue::from_str(&wire).ok()) {
        headers.insert(PRINCIPAL_HEADER, wire);
    }
}

/// Refuses a call that its caller may not make. The answer is the same whether or not the namespace exists.
pub(crate) fn judge(
    gateway: &Gateway,
    rpc: Rpc,
    caller: Option<&Caller>,
    scope: &Scope<'_>,
) -> Result<(), Status> {
    if gateway.guard.is_none() {
        return Ok(());
    }
    match *scope {
        Scope::Nameless => judge_in(gateway, rpc, caller, ""),
        Scope::About(name) | Scope::Name(name) => judge_in(gateway, rpc, caller, name),
        Scope::Token { name, .. } if !name.is_empty() => judge_in(gateway, rpc, caller, name),
        // Only this server makes tokens, so looking for their namespace says nothing to anybody else.
        Scope::Token { token, .. } => {
            let opened = TaskToken::open(&gateway.token_signer, token).ok();
            let found = opened.and_then(|token| gateway.namespaces.find_id(&token.namespace_id).ok());
            judge_in(gateway, rpc, caller, found.as_ref().map_or("", |found| &found.record.name))
        }
    }
}

/// Judges a call before it is forwarded by its route, so that the answer does not depend on who owns what.
pub(crate) fn judge_route(
    gateway: &Gateway,
    rpc: Rpc,
    caller: Option<&Caller>,
    route: &Route,
) -> Result<(), Status> {
    if gateway.guard.is_none() {
        return Ok(());
    }
    let namespace_id = match route {
        Route::Owner(address) => &address.namespace_id,
        Route::MatchingNode(queue) => &queue.namespace_id,
        // The owner of this partition reads the request.
        Route::Partition(_) => return Ok(()),
    };
    let found = gateway.namespaces.find_id(namespace_id).ok();
    judge_in(gateway, rpc, caller, found.as_ref().map_or("", |found| &found.record.name))
}

fn judge_in(gateway: &Gateway, rpc: Rpc, caller: Option<&Caller>, namespace: &str) -> Result<(), Status> {
    let access = rpc.access();
    let is_allowed = match caller {
        Some(caller) => caller.may(access, namespace),
        None => access == Access::Open,
    };
    if is_allowed {
        return Ok(());
    }
    if let Some(guard) = &gateway.guard {
        guard.audit.denied(caller.map(|caller| &**caller), rpc.name(), namespace, "no role for it");
    }
    Err(status::denied(DENIED))
}
