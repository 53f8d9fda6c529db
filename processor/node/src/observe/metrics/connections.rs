//! The metrics of connections, and of the bytes that calls hold.

use everlog_listen::{Budget, Counts as Connections};

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

pub(super) const HELD: &[Row<[Arc<Budget>; 2]>] = rows! {
    Stands "everlog_request_bytes" "Bytes of requests in progress." |h| h[0].held() as f64;
    Stands "everlog_answer_bytes" "Bytes of answers that clients have not read yet." |h| h[1].held() as f64;
};

/// Adds connections, by the purpose of their listeners.
pub fn watch_listeners(registry: &Registry, counts: Vec<(&'static str, Arc<Connections>)>) {
    add(registry, LISTENERS, Some("listener"), move |visit| {
        counts.iter().for_each(|(name, counts)| visit(name, counts));
    });
}

/// Adds the bytes that calls hold.
pub fn watch_held(registry: &Registry, held: [Arc<Budget>; 2]) {
    add(registry, HELD, None, move |visit| visit("", &held));
}
