//! What is known of a queue: who polls it, what waits there, and how much comes and goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

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

/// How much waits in a queue, and how long the oldest of it does, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Tasks and queries that wait.
    pub count: usize,
    /// Since it was offered to the queue: a change of the nodes, and a restart, begin anew.
    pub age_ms: i64,
}

impl Dispatcher {
    /// What waits on this node, by queue: where the queue meets here what any node has offered, else what this node keeps back.
    /// Added up over the nodes each task counts once. What waits in a sticky queue counts for its normal queue.
    pub fn backlogs(&self) -> HashMap<QueueKey, QueueBacklog> {
        let now_ms = self.now_ms();
        let mut backlogs = HashMap::<QueueKey, QueueBacklog>::new();
        let mut add = |queue: QueueKey, count: usize, since_ms: i64| {
            let backlog = backlogs.entry(queue).or_default();
            backlog.count += count;
            backlog.age_ms = backlog.age_ms.max(now_ms - since_ms);
        };
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, queue) in shard.iter().filter(|(_, queue)| !queue.ready.is_empty()) {
                let name = queue.normal_queue.as_ref().unwrap_or(&key.name);
                for (_, count, since_ms) in queue.ready.levels() {
                    add(QueueKey { name: name.clone(), ..key.clone() }, count, since_ms);
                }
            }
        }
        let kept_back = self.homes.get().map(|homes| homes.own_kept_back()).unwrap_or_default();
        kept_back.into_iter().for_each(|(queue, count, since_ms)| add(queue, count, since_ms));
        backlogs
    }

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
