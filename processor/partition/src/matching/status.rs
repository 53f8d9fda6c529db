//! What is known of a queue: who polls it, what waits there, and how much comes and goes.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::matching::dispatcher::{Dispatcher, FORGET_MS, Poller, Queue};
use crate::matching::remote::KeptBack;
use crate::model::task_types::QueueKey;

/// What is known of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueStatus {
    /// Who has polled within the last minutes, by identity.
    pub pollers: Vec<PollerStatus>,
    /// What waits, comes and goes, by level; only levels that are in use.
    pub levels: BTreeMap<u8, LevelStatus>,
    /// Tasks per second that the queue may hand out; none = no limit.
    pub rate_per_second: Option<f64>,
    /// An operator has said so, and not its workers.
    pub is_rate_configured: bool,
    /// The rate has held something back within the last half minute.
    pub is_held: bool,
}

/// A poller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollerStatus {
    /// Who it is.
    pub identity: String,
    /// Its last poll, in ms since 1970-01-01 UTC.
    pub last_ms: i64,
    /// Tasks per second that it wishes the queue to hand out; none = no limit.
    pub rate_per_second: Option<f64>,
    /// See [`crate::Poll::version`].
    pub version: Option<Bytes>,
}

/// One level of a queue, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelStatus {
    /// Tasks that wait.
    pub backlog: usize,
    /// How long the oldest of them waits, in ms.
    pub backlog_age_ms: i64,
    /// Tasks that came, per second of the last half minute.
    pub added_per_second: f32,
    /// Tasks that were handed out, likewise.
    pub handed_per_second: f32,
}

impl QueueStatus {
    /// All levels together.
    pub fn total(&self) -> LevelStatus {
        let add = |sum: LevelStatus, level: &LevelStatus| LevelStatus {
            backlog: sum.backlog + level.backlog,
            backlog_age_ms: sum.backlog_age_ms.max(level.backlog_age_ms),
            added_per_second: sum.added_per_second + level.added_per_second,
            handed_per_second: sum.handed_per_second + level.handed_per_second,
        };
        self.levels.values().fold(LevelStatus::default(), add)
    }

    fn add(&mut self, kept_back: KeptBack) {
        for (level, (count, age_ms)) in kept_back {
            let row = self.levels.entry(level).or_default();
            row.backlog += count;
            row.backlog_age_ms = row.backlog_age_ms.max(age_ms);
        }
    }
}

impl Dispatcher {
    /// What is known of a queue here.
    pub fn status(&self, key: &QueueKey) -> QueueStatus {
        let now_ms = self.now_ms();
        if let Some(queue) = self.shard(key).get(key) {
            return queue.status(now_ms);
        }
        let rate_per_second = self.config(key).and_then(|config| config.rate_per_second);
        QueueStatus { rate_per_second, is_rate_configured: rate_per_second.is_some(), ..Default::default() }
    }

    /// See [`crate::Router::queue_status`].
    pub async fn status_of_all(&self, key: QueueKey) -> QueueStatus {
        let Some(homes) = self.homes.get() else { return self.status(&key) };
        let (reply, kept_back) = oneshot::channel();
        homes.kept_back(key.clone(), reply);
        let kept_back = kept_back.await.unwrap_or_default();
        let mut status = self.status(&key);
        status.add(kept_back);
        status
    }
}

impl Queue {
    fn status(&self, now_ms: i64) -> QueueStatus {
        let polls = self.pollers.iter().filter(|(_, poller)| now_ms - poller.last_ms < FORGET_MS);
        let mut pollers: Vec<_> = polls.map(|(identity, poller)| poller.status(identity)).collect();
        pollers.sort_by(|one, other| one.identity.cmp(&other.identity));
        let mut levels = BTreeMap::<u8, LevelStatus>::new();
        for (level, added_per_second, handed_per_second) in self.flows.per_second(now_ms) {
            levels.insert(level, LevelStatus { added_per_second, handed_per_second, ..Default::default() });
        }
        for (level, backlog, oldest_ms) in self.ready.levels() {
            let row = levels.entry(level).or_default();
            row.backlog = backlog;
            row.backlog_age_ms = now_ms - oldest_ms;
        }
        let is_held = self.flows.is_held(now_ms);
        let (rate_per_second, configured) = (self.rates.per_second(), self.rates.configured());
        QueueStatus { pollers, levels, rate_per_second, is_rate_configured: configured.is_some(), is_held }
    }
}

impl Poller {
    fn status(&self, identity: &str) -> PollerStatus {
        PollerStatus {
            identity: identity.to_owned(),
            last_ms: self.last_ms,
            rate_per_second: self.rate_per_second,
            version: self.version.clone(),
        }
    }
}
