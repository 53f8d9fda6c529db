//! Metrics and health over HTTP, on an address of their own.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use everlog_config::node_file::INSTANCE_HEADER;
use everlog_listen::{Listener, http1};
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};

use crate::observe::health::Health;

/// What the pages are made from.
#[derive(Clone)]
pub struct Pages {
    /// All metrics.
    pub registry: Registry,
    /// Whether the node is alive and ready.
    pub health: Arc<Health>,
    /// Random, one for each start. A response that has it comes from the node that owns the data directory.
    pub instance: Arc<str>,
}

/// Serves `/metrics`, `/health/live` and `/health/ready` until the future is dropped.
pub async fn serve(listener: Listener, pages: Pages) {
    http1::serve(listener, router(pages)).await;
}

fn router(pages: Pages) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .with_state(pages)
}

async fn metrics(State(pages): State<Pages>) -> impl IntoResponse {
    match TextEncoder::new().encode_to_string(&pages.registry.gather()) {
        Ok(page) => (StatusCode::OK, [(header::CONTENT_TYPE, TEXT_FORMAT)], page),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, "text/plain")], error.to_string())
        }
    }
}

async fn live(State(pages): State<Pages>) -> impl IntoResponse {
    answer(&pages, "alive", pages.health.signs().lifeless(), &[])
}

async fn ready(State(pages): State<Pages>) -> impl IntoResponse {
    let signs = pages.health.signs();
    answer(&pages, "ready", signs.unready(), &signs.notes())
}

fn answer(pages: &Pages, good: &str, faults: Vec<String>, notes: &[String]) -> impl IntoResponse + use<> {
    let instance = [(HeaderName::from_static(INSTANCE_HEADER), pages.instance.to_string())];
    let (status, text) = verdict(good, faults, notes);
    (status, instance, text)
}

fn verdict(good: &str, faults: Vec<String>, notes: &[String]) -> (StatusCode, String) {
    if faults.is_empty() {
        let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
        (StatusCode::OK, format!("{good}\n{notes}"))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not {good}: {}\n", faults.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use everlog_listen::ListenerBounds;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn get(pages: &Pages, path: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let served = tokio::spawn(serve(Listener::new(listener, ListenerBounds::default()), pages.clone()));
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: everlog\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        served.abort();
        answer
    }

    #[tokio::test]
    async fn a_node_that_starts_is_alive_but_not_ready_and_shows_its_metrics() {
        let pages =
            Pages { registry: Registry::new(), health: Health::new(8, 60_000), instance: "one".into() };
        crate::observe::metrics::watch_node(&pages.registry, &pages.health);
        let live = get(&pages, "/health/live").await;
        assert!(live.starts_with("HTTP/1.1 200 ") && live.ends_with("alive\n"), "{live}");
        let ready = get(&pages, "/health/ready").await;
        assert!(
            ready.starts_with("HTTP/1.1 503 ") && ready.ends_with("not ready: 0 of 8 partitions serve\n"),
            "{ready}"
        );
        assert!(ready.contains("everlog-instance: one\r\n"), "{ready}");
        let metrics = get(&pages, "/metrics").await;
        assert!(metrics.contains("process_resident_memory_bytes "), "{metrics}");
        assert!(get(&pages, "/").await.starts_with("HTTP/1.1 404 "));
    }
}
