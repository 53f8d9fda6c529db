//! Watchers: callers that wait until a run's history grows, or until no start of a schedule is under way.

use std::collections::HashMap;

use everlog_engine::Run;
use tokio::sync::oneshot;

use crate::model::keys::RunKey;
use crate::model::reply::send_reply;

/// Callers that wait, by run.
#[derive(Default)]
pub struct HistoryWatchers {
    by_run: HashMap<RunKey, Vec<(i64, oneshot::Sender<()>)>>,
}

impl HistoryWatchers {
    /// Waits until the run has events after `known_event_id` or is closed; at a schedule, until none of its starts is under way.
    pub fn add(&mut self, key: RunKey, run: &Run, known_event_id: i64, reply: oneshot::Sender<()>) {
        if is_news(run, known_event_id) {
            // The caller may be gone: then nobody needs to be told.
            send_reply(reply, ());
            return;
        }
        let waiting = self.by_run.entry(key).or_default();
        waiting.retain(|(_, reply)| !reply.is_closed());
        waiting.push((known_event_id, reply));
    }

    /// Tells those for whom the run has news.
    pub fn tell(&mut self, key: &RunKey, run: &Run) {
        let Some(mut waiting) = self.by_run.remove(key) else { return };
        let mut left = Vec::new();
        for (known_event_id, reply) in waiting.drain(..) {
            if is_news(run, known_event_id) {
                send_reply(reply, ());
            } else if !reply.is_closed() {
                left.push((known_event_id, reply));
            }
        }
        if !left.is_empty() {
            self.by_run.insert(key.clone(), left);
        }
    }

    /// Tells all: the run is gone.
    pub fn tell_all(&mut self, key: &RunKey) {
        let waiting = self.by_run.remove(key).unwrap_or_default();
        waiting.into_iter().for_each(|(_, reply)| send_reply(reply, ()));
    }

    /// Forgets callers that have gone away.
    pub fn sweep(&mut self) {
        self.by_run.retain(|_, waiting| {
            waiting.retain(|(_, reply)| !reply.is_closed());
            !waiting.is_empty()
        });
    }
}

fn is_news(run: &Run, known_event_id: i64) -> bool {
    match &run.schedule {
        Some(schedule) => !schedule.state().is_starting(),
        None => run.head.next_event_id - 1 > known_event_id || !run.is_open(),
    }
}
