//! The metrics of connections, and of the bytes that calls hold.

use everlog_config::Config;
use everlog_listen::{Budget, Counts as Connections};
use everlog_temporal::CallBudgets;
use everlog_traces::SpanCounts;

use super::spans::watch_spans;
use super::*;

pub(super) const LISTENERS: &[Row<Connections>] = rows! {
    Stands "everlog_connections" "Open connections." |c| load(&c.open);
    Counts "everlog_connections_total" "Connections accepted." |c| load(&c.taken);
    Counts "everlog_connections_refused_total" "Connections closed at once because their address had too many." |c| {
        load(&c.refused)
    };
    Counts "everlog_connections_made_room_total" "Connections without a call that were closed to make room for others." |c| {
        load(&c.made_room)
    };
    Counts "everlog_connections_silent_total" "Connections closed because they were silent." |c| load(&c.silent);
    Counts "everlog_connections_failed_total" "Connections that could not be accepted because no file descriptor was free." |c| {
        load(&c.failed)
    };
    Counts "everlog_answers_lapsed_total" "Answers dropped because the client did not read them in time." |c| {
        load(&c.lapsed)
    };
};

pub(super) const CALLS: &[Row<CallBudgets>] = rows! {
    Stands "everlog_request_bytes" "Bytes of requests in progress." |b| b.requests.held() as f64;
    Stands "everlog_answer_bytes" "Bytes of answers that clients have not read yet." |b| b.answers.held() as f64;
    Stands "everlog_requests_arriving" "Requests that have arrived in part." |b| b.arriving.held() as f64;
    Stands "everlog_history_reads" "Calls that read a page of history or wait to; `gateway.readers_max` of them read." |b| {
        b.reading.held() as f64
    };
    Stands "everlog_answers_in_compression" "Answers that are being compressed; at most half as many as there are cores." |b| {
        b.packing.held() as f64
    };
    Stands "everlog_streaming_calls" "Calls of health and reflection; at most 1,000." |b| b.streaming.held() as f64;
};

pub(super) const HTTP: &[Row<Budget>] = rows! {
    Stands "everlog_http_bytes" "Bytes of requests and answers over HTTP in progress; at most `http.bytes_max`." |b| {
        b.held() as f64
    };
};

/// Adds connections, by the purpose of their listeners.
pub fn watch_listeners(registry: &Registry, counts: Vec<(&'static str, Arc<Connections>)>) {
    add(registry, LISTENERS, Some("listener"), move |visit| {
        counts.iter().for_each(|(name, counts)| visit(name, counts));
    });
}

/// Adds what calls hold, and what becomes of their spans where traces are on.
pub fn watch_calls(registry: &Registry, (budgets, spans): (CallBudgets, Option<Arc<SpanCounts>>)) {
    add(registry, CALLS, None, move |visit| visit("", &budgets));
    if let Some(spans) = spans {
        watch_spans(registry, spans);
    }
}

/// The budget of bytes that requests and responses over HTTP hold, with its metric.
pub fn http_bytes(registry: &Registry, config: &Config) -> Arc<Budget> {
    let held = Budget::new(config.http.bytes_max);
    let shown = Arc::clone(&held);
    add(registry, HTTP, None, move |visit| visit("", &shown));
    held
}
