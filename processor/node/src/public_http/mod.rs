//! Public HTTP: the schema registry at the root, and on the embedded log commands and records of public topics.
//! Requests that a browser sends for a page of another site are refused.

mod authorization;
pub mod commands;
pub mod entries;
mod front_page;
pub mod host_check;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_listen::{Budget, Descriptors, HeldBody, ListenerBounds};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::services::schemas::Schemas;
use crate::storage::log_backend::LogBackend;

pub use crate::public_http::commands::HttpCommands;
use crate::public_http::host_check::Host;

/// Where commands go, once the partitions are there.
pub type Inbox = Arc<OnceLock<HttpCommands>>;

/// Bytes of a request with a command, besides the command.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

/// What every request is checked against.
#[derive(Clone)]
struct RequestBounds {
    /// Only this machine reaches the address. A foreign name in `Host` means that a page was led here by DNS.
    is_local: bool,
    within: Duration,
    /// Bytes of requests and responses in progress.
    held: Arc<Budget>,
    /// The largest request in bytes.
    body_bytes_max: usize,
}

/// The routes, for a listener at this address. `held` bounds the bytes of requests and responses in progress.
pub fn routes(
    config: &Config,
    address: SocketAddr,
    (backend, schemas): (&LogBackend, &Schemas),
    (inbox, held, guard): (&Inbox, Arc<Budget>, &Option<everlog_temporal::Guard>),
) -> Router {
    let within = Duration::from_millis(config.http.request_timeout_ms);
    let commands_bytes_max = config.ingress.record_bytes_max * 2 + ENVELOPE_BYTES_MAX;
    let bounds = RequestBounds {
        is_local: address.ip().is_loopback(),
        within,
        held,
        body_bytes_max: commands_bytes_max.max(config.registry.schema_bytes_max * 2),
    };
    let own = match backend {
        LogBackend::Embedded(log) => {
            let requests = Arc::new(Semaphore::new(config.http.requests_max));
            let shelf = |noun: PublicTopic, topic| {
                let (log, requests) = (Arc::downgrade(log), Arc::clone(&requests));
                let shelf = entries::EntriesEndpoint { log, topic, requests };
                Router::new().route(&format!("/{}", noun.topic()), get(entries::get)).with_state(shelf)
            };
            shelf(PublicTopic::Event, everlog_log::Topic::Events)
                .merge(shelf(PublicTopic::Outcome, everlog_log::Topic::Replies))
                .merge(shelf(PublicTopic::Rejection, everlog_log::Topic::Rejections))
                .merge(desk(config, inbox, guard.clone(), commands_bytes_max))
        }
        LogBackend::Kafka(_) => PublicTopic::ALL.into_iter().fold(Router::new(), |routes, noun| {
            let why = format!("the log is on Kafka: the topic is {}", config.topic(noun));
            routes
                .route(&format!("/{}", noun.topic()), any(async move || refusal(StatusCode::NOT_FOUND, &why)))
        }),
    };
    let links: &[_] = match backend {
        LogBackend::Embedded(_) => &[front_page::REGISTRY, front_page::TOPICS],
        LogBackend::Kafka(_) => &[front_page::REGISTRY],
    };
    let page: Arc<str> = front_page::render(links).into();
    own.fallback_service(schemas.routes())
        .layer(from_fn_with_state(page, front_page::for_browsers))
        .layer(from_fn_with_state(guard.clone(), authorization::judge))
        .layer(from_fn_with_state(bounds, bounded))
}

/// Base64 makes commands at most twice as long.
fn desk(
    config: &Config,
    inbox: &Inbox,
    guard: Option<everlog_temporal::Guard>,
    body_bytes_max: usize,
) -> Router {
    let requests = Arc::new(Semaphore::new(config.http.requests_max));
    let (inbox, is_open) = (Arc::clone(inbox), config.ingress.enabled);
    let desk = commands::CommandEndpoint { inbox, requests, guard, is_open };
    let limit = DefaultBodyLimit::max(body_bytes_max);
    Router::new().route("/commands", post(commands::post)).layer(limit).with_state(desk)
}

/// The bounds of the listener.
pub fn bounds(config: &Config, descriptors: Descriptors) -> ListenerBounds {
    let http = &config.http;
    ListenerBounds {
        connections_max: descriptors.share(2, http.connections_max),
        address_connections_max: http.address_connections_max,
        hello_within: Duration::from_millis(http.request_timeout_ms),
        ..ListenerBounds::default()
    }
}

/// Refuses what a browser sends for a page, and ends what takes too long.
async fn bounded(State(bounds): State<RequestBounds>, request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "pages in a browser are not served");
    }
    match Host::of(&request) {
        Err(why) => return refusal(StatusCode::BAD_REQUEST, why),
        Ok(Some(host)) if bounds.is_local && !host.is_of_this_machine() => {
            let why = "this address is served under its number and as localhost only";
            return refusal(StatusCode::FORBIDDEN, why);
        }
        Ok(_) => {}
    }
    let Some(share) = bounds.held.take(body_bytes(&request, bounds.body_bytes_max)) else {
        return busy("too much is being sent at once");
    };
    let Ok(response) = tokio::time::timeout(bounds.within, next.run(request)).await else {
        return refusal(StatusCode::GATEWAY_TIMEOUT, "it took too long; what was asked for may still happen");
    };
    drop(share);
    let bytes = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    match bounds.held.take(bytes) {
        Some(share) => response.map(|body| Body::new(HeldBody::new(body, share))),
        None => busy("too much is being read at once"),
    }
}

/// Bytes of a request's body: as it says, or the most that there may be.
fn body_bytes(request: &Request, most: usize) -> usize {
    let hint = request.body().size_hint();
    hint.upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(most).min(most)
}

/// A response for a client that may try again in a moment.
fn busy(why: &str) -> Response {
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    response
}

/// A response with the reason.
fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({"error": why}))).into_response()
}
