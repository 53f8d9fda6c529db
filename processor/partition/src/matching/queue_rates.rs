//! How much a queue may hand out: the rate of the whole queue, and that of each fairness key. An operator configures both, and
//! weights of fairness keys; a worker says the rate of the queue where no operator does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::matching::backlog::{OwnPriority, TurnRules};
use crate::model::priority::{TaskPriority, stride};
use crate::model::task_types::Ready;

/// What may go at once after a pause, in ms of the rate.
const BURST_MS: f64 = 1_000.0;
/// Fairness keys of a queue whose rate is counted at a time. What others hand out beyond that is not counted.
const KEYS_MAX: usize = 10_000;
/// How often keys are forgotten whose rate holds nothing back, at most, in ms.
const FORGET_EVERY_MS: f64 = 1_000.0;

/// What an operator has configured for a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueConfig {
    /// Tasks per second that the queue may hand out; none = as its workers say.
    pub rate_per_second: Option<f64>,
    /// Tasks per second of a fairness key of weight 1; another key may hand out that times its weight. What has no key counts as
    /// one. None = no limit.
    pub key_rate_per_second: Option<f64>,
    /// Weights of fairness keys, which count in place of those that tasks name.
    pub weights: BTreeMap<String, f32>,
}

/// A rate with room for [`BURST_MS`]: the moment at which the next one may go, in ms.
#[derive(Clone, Copy, Debug, Default)]
struct TokenBucket(f64);

impl TokenBucket {
    fn is_free(self, rate_per_second: f64, now_ms: i64) -> bool {
        rate_per_second > 0.0 && self.0 <= now_ms as f64
    }

    fn count(&mut self, rate_per_second: f64, now_ms: i64) {
        self.0 = self.0.max(now_ms as f64 - BURST_MS) + 1000.0 / rate_per_second;
    }

    /// What a former rate holds back waits no longer than the new one has it wait.
    fn change(&mut self, rate_per_second: f64, now_ms: i64) {
        if rate_per_second > 0.0 {
            self.0 = self.0.min(now_ms as f64 + 1000.0 / rate_per_second);
        }
    }
}

/// The rates of a queue.
#[derive(Default)]
pub(crate) struct QueueRates {
    config: Option<Arc<QueueConfig>>,
    /// What the poll that came last has said.
    of_workers: Option<f64>,
    bucket: TokenBucket,
    /// Of keys that have handed out something a short while ago; empty = what has no key.
    keys: HashMap<Box<str>, TokenBucket>,
    forgotten_ms: f64,
    /// The keys that wait, by the moment at which they may go.
    held: BTreeSet<(i64, Box<str>)>,
}

impl QueueRates {
    /// Of a queue that is made.
    pub(crate) fn new(config: Option<Arc<QueueConfig>>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Tasks per second that the queue may hand out; none = no limit.
    pub(crate) fn per_second(&self) -> Option<f64> {
        self.configured().or(self.of_workers)
    }

    /// The same, where an operator has said it.
    pub(crate) fn configured(&self) -> Option<f64> {
        self.config.as_ref()?.rate_per_second
    }

    /// The poll that comes last says how much may be handed out.
    pub(crate) fn limit(&mut self, of_workers: Option<f64>, now_ms: i64) {
        let before = self.per_second();
        self.of_workers = of_workers;
        self.changed(before, now_ms);
    }

    /// An operator says something else. All that a key's rate holds is to be released.
    pub(crate) fn configure(&mut self, config: Option<Arc<QueueConfig>>, now_ms: i64) {
        let before = self.per_second();
        self.config = config;
        self.changed(before, now_ms);
        self.keys.clear();
        self.held.clear();
    }

    fn changed(&mut self, before: Option<f64>, now_ms: i64) {
        let rate = self.per_second();
        if rate != before
            && let Some(rate) = rate
        {
            self.bucket.change(rate, now_ms);
        }
    }

    /// Nothing waits any more: all of it is offered once more.
    pub(crate) fn forget_held(&mut self) {
        self.held.clear();
    }

    /// The keys whose time has come, each once.
    pub(crate) fn released(&mut self, now_ms: i64) -> Vec<Box<str>> {
        let mut released = Vec::new();
        while self.held.first().is_some_and(|(free_ms, _)| *free_ms <= now_ms) {
            released.extend(self.held.pop_first().map(|(_, key)| key));
        }
        released
    }

    /// False where the queue's rate has everything wait. Without a limit always true, with one of 0 never.
    pub(crate) fn may_hand_out(&self, now_ms: i64) -> bool {
        self.per_second().is_none_or(|rate| self.bucket.is_free(rate, now_ms))
    }

    /// Something is handed out.
    pub(crate) fn count(&mut self, ready: &Ready, now_ms: i64) {
        if let Some(rate) = self.per_second() {
            self.bucket.count(rate, now_ms);
        }
        let Some(rate) = self.key_rate(ready) else { return };
        let key = ready.fairness_key().unwrap_or_default();
        if let Some(bucket) = self.keys.get_mut(key) {
            return bucket.count(rate, now_ms);
        }
        self.forget(now_ms as f64);
        if self.keys.len() < KEYS_MAX {
            self.keys.entry(key.into()).or_default().count(rate, now_ms);
        }
    }

    /// Keys that may hand out all that any may at once are forgotten.
    fn forget(&mut self, now_ms: f64) {
        if self.keys.len() >= KEYS_MAX && (now_ms - self.forgotten_ms).abs() >= FORGET_EVERY_MS {
            self.forgotten_ms = now_ms;
            self.keys.retain(|_, bucket| bucket.0 > now_ms - BURST_MS);
        }
    }

    /// Tasks per second of the key of what is ready; none = no limit.
    fn key_rate(&self, ready: &Ready) -> Option<f64> {
        let config = self.config.as_ref()?;
        let rate = config.key_rate_per_second?;
        let configured = ready.fairness_key().and_then(|key| config.weights.get(key));
        let own = ready.priority().map_or(1.0, TaskPriority::weight);
        Some(rate * configured.map_or(own, |weight| f64::from(*weight)))
    }

    /// What decides on the next one.
    pub(crate) fn at(&mut self, now_ms: i64) -> RatesNow<'_> {
        RatesNow { rates: self, now_ms }
    }
}

/// The rates at a moment.
pub(crate) struct RatesNow<'a> {
    rates: &'a mut QueueRates,
    now_ms: i64,
}

impl TurnRules for RatesNow<'_> {
    fn stride(&self, ready: &Ready) -> u32 {
        let weights = self.rates.config.as_ref().map(|config| &config.weights);
        let configured = weights.zip(ready.fairness_key()).and_then(|(weights, key)| weights.get(key));
        configured.map_or_else(|| OwnPriority.stride(ready), |weight| stride(*weight))
    }

    fn holds(&mut self, ready: &Ready) -> bool {
        let Some(rate) = self.rates.key_rate(ready) else { return false };
        let key = ready.fairness_key().unwrap_or_default();
        let bucket = self.rates.keys.get(key).copied().unwrap_or_default();
        if bucket.is_free(rate, self.now_ms) {
            return false;
        }
        // A rate of 0 ends with the next configuration.
        let free_ms = if rate > 0.0 { bucket.0.ceil() as i64 } else { i64::MAX };
        self.rates.held.insert((free_ms, key.into()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::dispatcher::tests::{bounded, brought, key, task, try_poll};
    use crate::matching::dispatcher::{Dispatcher, QueueLimits};

    const T: i64 = 1_700_000_000_000;

    fn of(key: &str, weight: f32) -> Ready {
        match task(1, 1) {
            Ready::Task(mut task) => {
                task.precedence =
                    TaskPriority { fairness_key: key.into(), ..TaskPriority::of_weight(weight) };
                Ready::Task(task)
            }
            query @ Ready::Query { .. } => query,
        }
    }

    fn rates(rate: Option<f64>, key_rate: Option<f64>, weights: &[(&str, f32)]) -> QueueRates {
        let weights = weights.iter().map(|(key, weight)| ((*key).to_owned(), *weight)).collect();
        let config = QueueConfig { rate_per_second: rate, key_rate_per_second: key_rate, weights };
        QueueRates::new(Some(Arc::new(config)))
    }

    /// How many of a key go within ten seconds, looked at once in a tenth of one.
    fn within_ten_seconds(rates: &mut QueueRates, ready: &Ready) -> usize {
        let mut count = 0;
        for now_ms in (T..T + 10_000).step_by(100) {
            while rates.may_hand_out(now_ms) && !rates.at(now_ms).holds(ready) {
                rates.count(ready, now_ms);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn an_operators_rate_counts_before_that_of_workers_and_none_without() {
        let mut rates = rates(Some(5.0), None, &[]);
        rates.limit(Some(50.0), T);
        assert_eq!((rates.per_second(), rates.configured()), (Some(5.0), Some(5.0)));
        rates.configure(None, T);
        assert_eq!((rates.per_second(), rates.configured()), (Some(50.0), None));
        rates.limit(None, T);
        assert_eq!(rates.per_second(), None);
        assert!(rates.may_hand_out(T));
        rates.configure(Some(Arc::new(QueueConfig { rate_per_second: Some(0.0), ..Default::default() })), T);
        rates.limit(Some(50.0), T);
        assert!(!rates.may_hand_out(T + 3_600_000), "0 hands out nothing");
    }

    #[test]
    fn a_key_has_the_rate_times_its_weight() {
        // A second's worth more goes at the beginning.
        let near = |count: usize, rate: f64| (count as f64 - 11.0 * rate).abs() <= 2.0;
        for (key, weight, expected) in
            [("a", 1.0, 2.0), ("a", 3.0, 6.0), ("heavy", 1.0, 20.0), ("", 1.0, 2.0)]
        {
            let mut rates = rates(None, Some(2.0), &[("heavy", 10.0)]);
            let count = within_ten_seconds(&mut rates, &of(key, weight));
            assert!(near(count, expected), "{key:?} of {weight}: {count}");
        }
        let mut both = rates(Some(1.0), Some(2.0), &[("heavy", 10.0)]);
        let count = within_ten_seconds(&mut both, &of("heavy", 1.0));
        assert!(near(count, 1.0), "the queue's own rate holds too: {count}");
    }

    #[test]
    fn a_configured_weight_counts_in_place_of_the_tasks() {
        let mut rates = rates(None, None, &[("heavy", 10.0)]);
        let now = rates.at(T);
        assert_eq!(now.stride(&of("heavy", 1.0)), stride(10.0));
        assert_eq!(now.stride(&of("other", 4.0)), stride(4.0));
        assert_eq!(now.stride(&of("", 1.0)), stride(1.0));
    }

    #[test]
    fn a_held_key_is_released_when_its_time_has_come() {
        let mut rates = rates(None, Some(1.0), &[]);
        let ready = of("a", 1.0);
        (0..3).for_each(|_| rates.count(&ready, T));
        assert!(rates.at(T).holds(&ready) && rates.at(T).holds(&ready));
        assert!(rates.released(T + 1_999).is_empty());
        assert_eq!(rates.released(T + 2_000), ["a".into()]);
        assert!(!rates.at(T + 2_000).holds(&ready));
        assert!(rates.released(T + 1_000_000).is_empty());
    }

    #[test]
    fn keys_that_are_counted_are_bounded_and_forgotten() {
        let mut rates = rates(None, Some(1.0), &[]);
        (0..2 * KEYS_MAX).for_each(|key| rates.count(&of(&key.to_string(), 1.0), T));
        assert_eq!(rates.keys.len(), KEYS_MAX);
        rates.count(&of("later", 1.0), T + 5_000);
        assert_eq!(rates.keys.len(), 1);
    }

    #[test]
    fn a_queue_is_configured_before_it_is_there_and_while_tasks_wait() {
        let (dispatcher, now_ms, send, sent) = bounded(QueueLimits::default());
        let config = |rate, key_rate| {
            let weights = BTreeMap::from([("heavy".to_owned(), 3.0)]);
            Some(QueueConfig { rate_per_second: rate, key_rate_per_second: key_rate, weights })
        };
        let keyed = |key: &str, partition: u32, id: i64| match of(key, 1.0) {
            Ready::Task(task) => Ready::Task(crate::TaskRef { partition, scheduled_event_id: id, ..task }),
            query @ Ready::Query { .. } => query,
        };
        dispatcher.configure(&key("q"), config(Some(0.0), None));
        let rate = |dispatcher: &Dispatcher| {
            let status = dispatcher.status(&key("q"));
            (status.rate_per_second, status.is_rate_configured)
        };
        assert_eq!(rate(&dispatcher), (Some(0.0), true), "also of a queue that nobody uses");
        for id in 0..400 {
            assert!(dispatcher.offer(&key("q"), keyed("heavy", 1, id), &send).is_none());
            assert!(dispatcher.offer(&key("q"), keyed("light", 2 + id as u32 % 3, -1 - id), &send).is_none());
        }
        let mut polls = Vec::new();
        let mut taken = |count: usize| {
            polls.extend(
                (0..count).map(|_| try_poll(&dispatcher, ("n", "q"), None, &send).expect("there is room")),
            );
            dispatcher.sweep(&send);
            let (heavy, light): (Vec<_>, Vec<_>) = brought(&sent).into_iter().partition(|(_, id)| *id >= 0);
            (heavy.len(), light.len())
        };
        assert_eq!(taken(100), (0, 0), "it is stopped");
        dispatcher.configure(&key("q"), config(None, None));
        assert_eq!(taken(0), (75, 25), "three times as much of the heavier key");
        dispatcher.configure(&key("q"), config(None, Some(10.0)));
        let near = |(heavy, light): (usize, usize)| heavy.abs_diff(30) <= 1 && light.abs_diff(10) <= 1;
        let (first, mut left) = (taken(100), 100);
        assert!(near(first), "what may go at once: {first:?}");
        left -= first.0 + first.1;
        now_ms.fetch_add(2_000, std::sync::atomic::Ordering::Relaxed);
        let second = taken(0);
        assert!(near(second), "a second's worth again: {second:?}");
        left -= second.0 + second.1;
        dispatcher.configure(&key("q"), None);
        let (heavy, light) = taken(0);
        assert_eq!(heavy + light, left, "as many polls as wait");
        assert_eq!(rate(&dispatcher), (None, false));
        dispatcher.configure(&key("q"), config(Some(1.0), None));
        dispatcher.forget_namespace("n");
        assert_eq!(rate(&dispatcher), (None, false), "nothing is left of a deleted namespace");
    }
}
