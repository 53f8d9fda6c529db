//! Who asks over HTTP, and whether it may: by the identities and roles of the gateway.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use everlog_auth::{Access, AuthError, Caller, Credentials, Principal};
use everlog_engine::request;
use everlog_listen::SharedConnection;
use everlog_temporal::Guard;
use everlog_wire::Body;

use crate::public_http::{busy, refusal};

/// The scheme by which clients of schema registries send a name and a password. The password is then an API key.
const BASIC: &str = "basic ";

/// Refuses who is unknown, or may not ask for the path. A command is judged by its namespace once it is read.
pub async fn judge(State(guard): State<Option<Guard>>, mut request: Request, next: Next) -> Response {
    let Some(guard) = guard else { return next.run(request).await };
    let authorization: Vec<HeaderValue> =
        request.headers().get_all(header::AUTHORIZATION).iter().map(in_place_of_basic).collect();
    let authorization: Vec<_> = authorization.iter().map(HeaderValue::as_bytes).collect();
    let connection = request.extensions().get::<SharedConnection>().cloned();
    let certificate = connection.as_ref().and_then(|connection| connection.client_certificate());
    let credentials = Credentials { authorization: &authorization, certificate };
    let access = access(request.method(), request.uri().path());
    let path = format!("{} {}", request.method(), request.uri().path());
    let caller = match guard.authenticator.identify(credentials).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return unknown(&guard, &path, "no credentials"),
        Err(AuthError::Denied(reason)) => return unknown(&guard, &path, &reason),
        Err(AuthError::Unavailable(why)) => {
            guard.audit.unidentified(&path, &why);
            return busy("callers cannot be identified at the moment");
        }
    };
    if !caller.grants.allow_somewhere(access) {
        guard.audit.denied(Some(&caller), &path, "", "no role for it");
        return denied();
    }
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert(Caller::clone(&caller));
    let mut line = access.is_of_admins().then(|| AdminLine { guard, caller, path, outcome: None });
    let response = next.run(request).await;
    if let Some(line) = &mut line {
        line.outcome = Some(response.status());
    }
    response
}

/// The line of a request of an administrator. It is written when the request ends, also where its client is gone.
struct AdminLine {
    guard: Guard,
    caller: Caller,
    path: String,
    /// None where nobody waits for the answer any more: the request may have taken effect.
    outcome: Option<StatusCode>,
}

impl Drop for AdminLine {
    fn drop(&mut self) {
        let outcome = self.outcome.as_ref().map_or("unknown: the caller is gone", StatusCode::as_str);
        self.guard.audit.admin_call(Some(&self.caller), &self.path, "", outcome);
    }
}

/// The same value, or the bearer token that stands as the password of the Basic scheme.
fn in_place_of_basic(value: &HeaderValue) -> HeaderValue {
    let token = || {
        let text = value.to_str().ok()?;
        let (scheme, encoded) = text.split_at_checked(BASIC.len())?;
        let decoded = BASE64.decode(scheme.eq_ignore_ascii_case(BASIC).then_some(encoded)?.trim()).ok()?;
        let (_, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        HeaderValue::from_str(&format!("Bearer {password}")).ok()
    };
    token().unwrap_or_else(|| value.clone())
}

/// What a request needs, before its body is read. Records of all namespaces stand in the topics.
fn access(method: &Method, path: &str) -> Access {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    match path {
        "/commands" => Access::WORK,
        "/events" | "/replies" | "/rejections" => Access::SYSTEM_READ,
        _ if is_read => Access::Known,
        _ if *method == Method::POST && is_lookup(path) => Access::Known,
        _ => Access::SYSTEM_ADMIN,
    }
}

/// Looking a schema up, or comparing it: a POST that changes nothing.
fn is_lookup(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        ["subjects", subject] => !subject.is_empty(),
        ["compatibility", "subjects", ..] => true,
        _ => false,
    }
}

/// True if the caller may send what a record holds. Without a guard everybody may.
pub fn may_command(guard: Option<&Guard>, caller: Option<&Principal>, body: &Body) -> bool {
    let Some(guard) = guard else { return true };
    let (access, namespace) = match body {
        Body::PublicCommand(command) => {
            let request = command.input.as_ref().and_then(|input| input.request.as_ref());
            let is_of_worker = matches!(
                request,
                Some(request::Request::CompleteActivity(_) | request::Request::FailActivity(_))
            );
            (if is_of_worker { Access::WORK } else { Access::WRITE }, command.namespace.as_str())
        }
        // It becomes a rejection. What it was to do is not known, nor always where.
        Body::InvalidCommand(invalid) => (Access::WRITE, invalid.namespace.as_deref().unwrap_or_default()),
        _ => (Access::SYSTEM_ADMIN, ""),
    };
    let may = caller.is_some_and(|caller| match namespace {
        "" => caller.grants.allow_somewhere(access),
        namespace => caller.may(access, namespace),
    });
    if !may {
        guard.audit.denied(caller, "POST /commands", namespace, "no role for it");
    }
    may
}

fn unknown(guard: &Guard, path: &str, reason: &str) -> Response {
    guard.audit.denied(None, path, "", reason);
    let mut response = refusal(StatusCode::UNAUTHORIZED, "Request unauthorized.");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// The answer to who may not, whatever there is.
pub fn denied() -> Response {
    refusal(StatusCode::FORBIDDEN, "Request unauthorized.")
}
