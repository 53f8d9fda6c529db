//! Whether the node is alive and ready. Read by health checks and by the node itself. Does not repair anything.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use everlog_partition::Stats;

use crate::observe::progress::Progress;
use crate::storage::log_backend::HealthSource;

/// What health is derived from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The node has been told to stop.
    pub stopping: bool,
    /// Why the log is closed for writes for good, if it is.
    pub log_failure: Option<String>,
    /// Why the log takes no writes at the moment, although it will again.
    pub log_trouble: Option<String>,
    /// The disk is full, and writes are refused.
    pub disk_full: bool,
    /// How many partitions there are.
    pub partitions: usize,
    /// How many of them serve.
    pub serving: usize,
    /// Percent of their rows that are restored; none where all are.
    pub restored_percent: Option<u64>,
    /// Percent of their histories that are restored, while they serve.
    pub histories_percent: Option<u64>,
    /// Percent of their indices that are made, while they serve.
    pub index_percent: Option<u64>,
    /// The first partition whose thread hangs, and for how many seconds.
    pub hung: Option<(usize, u64)>,
    /// Other reasons why the node is not ready.
    pub troubles: Vec<String>,
    /// What an operator should know of a node that is ready.
    pub remarks: Vec<String>,
}

impl Signs {
    /// Why the node is not ready; empty where it is.
    pub fn unready(&self) -> Vec<String> {
        let Self {
            stopping,
            log_failure,
            log_trouble,
            disk_full,
            partitions,
            serving,
            restored_percent,
            troubles,
            ..
        } = self;
        let mut reasons = Vec::new();
        if *stopping {
            reasons.push("the node is stopping".to_owned());
        }
        if let Some(failure) = log_failure {
            reasons.push(format!("the log has ended: {failure}"));
        }
        reasons.extend(log_trouble.clone());
        if *disk_full {
            reasons.push("the disk is full".to_owned());
        }
        if serving < partitions {
            reasons.push(format!("{serving} of {partitions} partitions serve"));
        }
        // Rows are restored before a take-over, while the other node serves.
        if serving < partitions || !troubles.is_empty() {
            reasons.extend(restored_percent.map(|percent| format!("restoring, {percent} %")));
        }
        reasons.extend(self.stuck());
        reasons.extend_from_slice(troubles);
        reasons
    }

    /// What goes on in the background of a ready node.
    pub fn notes(&self) -> Vec<String> {
        let rows = self.restored_percent.map(|percent| format!("restoring, {percent} %"));
        let histories = self.histories_percent;
        let histories = histories.map(|percent| format!("restoring histories, {percent} %"));
        let index = self.index_percent.map(|percent| format!("indexing runs, {percent} %"));
        rows.into_iter().chain(histories).chain(index).chain(self.remarks.iter().cloned()).collect()
    }

    /// Why the node should be restarted; empty where it should not. A full disk or a long recovery is no reason.
    pub fn lifeless(&self) -> Vec<String> {
        self.dead().into_iter().chain(self.stuck()).collect()
    }

    /// Why the node has to end by itself; none where it has not.
    pub fn dead(&self) -> Option<String> {
        self.log_failure.as_ref().map(|failure| format!("the log has ended: {failure}"))
    }

    fn stuck(&self) -> Option<String> {
        let hung = |(partition, seconds)| format!("partition {partition} has taken no turn for {seconds} s");
        self.hung.map(hung)
    }
}

/// Whether the threads of partitions run their loops. An idle thread sleeps, so before it counts as hung it is woken
/// up, and gets half of the time to show that it lives.
struct Pulses {
    stats: Vec<Arc<Stats>>,
    nudge: Box<dyn Fn(u32) + Send + Sync>,
    seen: Mutex<Vec<Pulse>>,
}

#[derive(Clone, Copy)]
struct Pulse {
    turns: u64,
    since: Instant,
    nudged: Option<Instant>,
}

impl Pulses {
    fn new(stats: Vec<Arc<Stats>>, nudge: impl Fn(u32) + Send + Sync + 'static, now: Instant) -> Self {
        let pulse = |stats: &Arc<Stats>| Pulse { turns: turns(stats), since: now, nudged: None };
        let seen = Mutex::new(stats.iter().map(pulse).collect());
        Self { stats, nudge: Box::new(nudge), seen }
    }

    /// The first partition whose thread has not run its loop for too long, and for how many seconds.
    fn hung(&self, after: Duration, now: Instant) -> Option<(usize, u64)> {
        let mut hung = None;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for ((partition, pulse), (stats, number)) in
            seen.iter_mut().enumerate().zip(self.stats.iter().zip(0..))
        {
            let turns = turns(stats);
            if turns != pulse.turns {
                *pulse = Pulse { turns, since: now, nudged: None };
                continue;
            }
            let still = now.saturating_duration_since(pulse.since);
            match pulse.nudged {
                None if still >= after / 2 => {
                    (self.nudge)(number);
                    pulse.nudged = Some(now);
                }
                Some(nudged) if still >= after && now.saturating_duration_since(nudged) >= after / 2 => {
                    hung = hung.or(Some((partition, still.as_secs())));
                }
                None | Some(_) => {}
            }
        }
        hung
    }
}

fn turns(stats: &Stats) -> u64 {
    stats.turns.load(Ordering::Relaxed)
}

/// A check that returns what is wrong, if something is.
type HealthCheck = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Collects the signs. More and more sources are added while the node starts; none is kept alive by it.
pub struct Health {
    partitions: AtomicUsize,
    hung_after: Duration,
    stopping: AtomicBool,
    log: OnceLock<HealthSource>,
    progress: OnceLock<Progress>,
    pulses: OnceLock<Pulses>,
    /// Other nodes own partitions too.
    is_shared: AtomicBool,
    minded: Mutex<Vec<HealthCheck>>,
    remarked: Mutex<Vec<HealthCheck>>,
}

impl Health {
    /// Of a node that starts. A thread that does not run its loop for `hung_after_ms` counts as hung.
    pub fn new(partitions: u32, hung_after_ms: u64) -> Arc<Self> {
        Arc::new(Self {
            partitions: AtomicUsize::new(partitions as usize),
            hung_after: Duration::from_millis(hung_after_ms),
            stopping: AtomicBool::new(false),
            log: OnceLock::new(),
            progress: OnceLock::new(),
            pulses: OnceLock::new(),
            is_shared: AtomicBool::new(false),
            minded: Mutex::default(),
            remarked: Mutex::default(),
        })
    }

    /// The log is open, and has so many partitions.
    pub fn log_is_open(&self, log: HealthSource, partitions: u32) {
        self.partitions.store(partitions as usize, Ordering::Relaxed);
        // Set once, by the only thread that starts the node.
        let _ = self.log.set(log);
    }

    /// The partitions are being recovered; `stats` has their progress.
    pub fn partitions_recover(&self, stats: Vec<Arc<Stats>>) {
        // As above.
        let _ = self.progress.set(Progress::of(stats));
    }

    /// The partitions are there; `stats` says which serve. `nudge` wakes the thread of one of them.
    pub fn partitions_are_there(&self, stats: Vec<Arc<Stats>>, nudge: impl Fn(u32) + Send + Sync + 'static) {
        // As above.
        let _ = self.pulses.set(Pulses::new(stats, nudge, Instant::now()));
    }

    /// The node is to serve those partitions that are wanted by `stats`, and no others.
    pub fn partitions_are_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// The node is ready only while this check finds nothing.
    pub fn mind(&self, look: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.minded.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(look));
    }

    /// Shown to whoever asks whether the node is ready.
    pub fn remark(&self, look: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.remarked.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(look));
    }

    /// From now on the node is not ready.
    pub fn is_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The present signs.
    pub fn signs(&self) -> Signs {
        let log = self.log.get();
        let pulses = self.pulses.get();
        let stats = pulses.map_or(&[][..], |pulses| pulses.stats.as_slice());
        let stopping = self.stopping.load(Ordering::Relaxed);
        let progress = self.progress.get();
        let pulses = pulses.filter(|_| !stopping);
        let minded = self.minded.lock().unwrap_or_else(PoisonError::into_inner);
        let remarked = self.remarked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |stats: &&Arc<Stats>| stats.is_wanted.load(Ordering::Relaxed) != 0;
        let partitions = match self.is_shared.load(Ordering::Relaxed) {
            true => stats.iter().filter(is_wanted).count(),
            false => self.partitions.load(Ordering::Relaxed),
        };
        Signs {
            stopping,
            log_failure: log.and_then(HealthSource::failure),
            log_trouble: log.and_then(HealthSource::trouble),
            disk_full: log.is_some_and(HealthSource::is_full),
            partitions,
            serving: stats.iter().filter(|stats| stats.serving.load(Ordering::Relaxed) != 0).count(),
            restored_percent: progress.and_then(Progress::state_percent),
            histories_percent: progress.and_then(Progress::histories_percent),
            index_percent: progress.and_then(Progress::index_percent),
            hung: pulses.and_then(|pulses| pulses.hung(self.hung_after, Instant::now())),
            troubles: minded.iter().filter_map(|look| look()).collect(),
            remarks: remarked.iter().filter_map(|look| look()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving() -> Signs {
        Signs { partitions: 8, serving: 8, ..Signs::default() }
    }

    #[test]
    fn a_node_is_ready_when_all_partitions_serve() {
        assert_eq!(serving().unready(), [] as [&str; 0]);
        assert_eq!(Signs { serving: 7, ..serving() }.unready(), ["7 of 8 partitions serve"]);
        let restoring = Signs { serving: 7, restored_percent: Some(43), ..serving() };
        assert_eq!(restoring.unready(), ["7 of 8 partitions serve", "restoring, 43 %"]);
        let drained =
            Signs { partitions: 0, serving: 0, remarks: vec!["drained".into()], ..Signs::default() };
        assert_eq!((drained.unready().len(), drained.notes()), (0, vec!["drained".into()]));
        let behind = Signs { histories_percent: Some(7), ..serving() };
        assert_eq!((behind.unready().len(), behind.notes()), (0, vec!["restoring histories, 7 %".into()]));
        let indexing = Signs { index_percent: Some(60), ..serving() };
        assert_eq!((indexing.unready().len(), indexing.notes()), (0, vec!["indexing runs, 60 %".into()]));
    }

    #[test]
    fn a_full_disk_ends_readiness_but_not_life() {
        let full = Signs { disk_full: true, ..serving() };
        assert_eq!(full.unready(), ["the disk is full"]);
        assert_eq!(full.dead(), None);
    }

    #[test]
    fn brokers_that_do_not_answer_end_readiness_but_not_life_and_come_first() {
        let trouble = "no broker of localhost:9092 answers, for 12 s";
        let silent = Signs { log_trouble: Some(trouble.into()), serving: 7, ..serving() };
        assert_eq!(silent.unready(), [trouble, "7 of 8 partitions serve"]);
        assert_eq!((silent.lifeless(), silent.dead()), (Vec::new(), None));
    }

    #[test]
    fn a_failed_log_ends_both() {
        let failed = Signs { log_failure: Some("sync: input/output error".into()), ..serving() };
        assert_eq!(failed.unready(), ["the log has ended: sync: input/output error"]);
        assert_eq!(failed.dead().as_deref(), Some("the log has ended: sync: input/output error"));
    }

    #[test]
    fn a_node_that_starts_or_stops_is_alive_and_not_ready() {
        let health = Health::new(8, 60_000);
        assert_eq!(health.signs().unready(), ["0 of 8 partitions serve"]);
        health.is_stopping();
        assert_eq!(health.signs().unready(), ["the node is stopping", "0 of 8 partitions serve"]);
        assert_eq!(health.signs().dead(), None);
    }

    #[test]
    fn trouble_ends_readiness_for_as_long_as_it_lasts_and_never_life() {
        let health = Health::new(0, 60_000);
        let trouble = Arc::new(Mutex::new(Some("commands are not read".to_owned())));
        let seen = Arc::clone(&trouble);
        health.mind(move || seen.lock().expect("nobody panics").clone());
        health.mind(|| None);
        assert_eq!(health.signs().unready(), ["commands are not read"]);
        assert_eq!((health.signs().lifeless(), health.signs().dead()), (Vec::new(), None));
        *trouble.lock().expect("nobody panics") = None;
        assert_eq!(health.signs().unready(), [] as [&str; 0]);
    }

    type Nudged = Arc<Mutex<Vec<u32>>>;

    /// Two partitions: the numbers of those that were woken up, and their counters.
    fn pulses(now: Instant) -> (Pulses, Nudged, Vec<Arc<Stats>>) {
        let (stats, nudged): (Vec<Arc<Stats>>, Nudged) =
            (vec![Arc::default(), Arc::default()], Arc::default());
        let list = Arc::clone(&nudged);
        let nudge = move |partition| list.lock().expect("nobody panics").push(partition);
        (Pulses::new(stats.clone(), nudge, now), nudged, stats)
    }

    #[test]
    fn a_thread_that_sleeps_is_nudged_and_lives() {
        let (begin, after) = (Instant::now(), Duration::from_secs(60));
        let (pulses, nudged, stats) = pulses(begin);
        for second in 1..=600 {
            assert_eq!(pulses.hung(after, begin + Duration::from_secs(second)), None);
            for partition in nudged.lock().expect("nobody panics").drain(..) {
                stats[partition as usize].turns.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert!(turns(&stats[0]) <= 20, "it was nudged {} times in 10 minutes", turns(&stats[0]));
    }

    #[test]
    fn a_thread_that_hangs_ends_life_and_readiness_until_it_moves() {
        let (begin, after) = (Instant::now(), Duration::from_secs(60));
        let (pulses, nudged, stats) = pulses(begin);
        let at = |second| {
            stats[0].turns.fetch_add(1, Ordering::Relaxed);
            pulses.hung(after, begin + Duration::from_secs(second))
        };
        assert_eq!([at(1), at(30), at(59)], [None; 3]);
        assert_eq!(*nudged.lock().expect("nobody panics"), [1]);
        let hung = at(61);
        assert_eq!(hung, Some((1, 61)));
        let reason = "partition 1 has taken no turn for 61 s";
        let signs = Signs { hung, ..serving() };
        assert_eq!((signs.lifeless(), signs.unready()), (vec![reason.into()], vec![reason.into()]));
        assert_eq!(signs.dead(), None, "it does not end by itself");
        stats[1].turns.fetch_add(1, Ordering::Relaxed);
        assert_eq!(at(62), None);
    }

    #[test]
    fn nobody_is_dead_because_nobody_looked_for_a_while() {
        let begin = Instant::now();
        let (pulses, nudged, _stats) = pulses(begin);
        assert_eq!(pulses.hung(Duration::from_secs(60), begin + Duration::from_secs(3_600)), None);
        assert_eq!(*nudged.lock().expect("nobody panics"), [0, 1]);
    }
}
