//! How much comes into a queue and goes out of it, over the last half minute.

use std::collections::BTreeMap;

/// Seconds that are looked back upon.
const SECONDS: usize = 30;

/// What was added and handed out, by level.
#[derive(Default)]
pub struct Throughput {
    levels: BTreeMap<u8, (Flow, Flow)>,
    /// When a rate has last held something back, in ms.
    held_ms: Option<i64>,
}

/// Events per second.
struct Flow {
    began_ms: i64,
    /// The second that was counted last.
    second: i64,
    counts: [u32; SECONDS],
}

impl Throughput {
    /// Something has come.
    pub fn added(&mut self, level: u8, now_ms: i64) {
        self.level(level, now_ms).0.count(now_ms);
    }

    /// Something is to be handed out.
    pub fn handed(&mut self, level: u8, now_ms: i64) {
        self.level(level, now_ms).1.count(now_ms);
    }

    /// A poll waits for what the queue's rate does not let go.
    pub fn held(&mut self, now_ms: i64) {
        self.held_ms = Some(now_ms);
    }

    /// True where a rate has held something back within the window.
    pub fn is_held(&self, now_ms: i64) -> bool {
        self.held_ms.is_some_and(|held_ms| now_ms - held_ms < SECONDS as i64 * 1_000)
    }

    /// Added and handed out per second, by level.
    pub fn per_second(&self, now_ms: i64) -> impl Iterator<Item = (u8, f32, f32)> {
        let of = move |(level, (added, handed)): (&u8, &(Flow, Flow))| {
            (*level, added.per_second(now_ms), handed.per_second(now_ms))
        };
        self.levels.iter().map(of)
    }

    fn level(&mut self, level: u8, now_ms: i64) -> &mut (Flow, Flow) {
        self.levels.entry(level).or_insert_with(|| (Flow::new(now_ms), Flow::new(now_ms)))
    }
}

impl Flow {
    fn new(now_ms: i64) -> Self {
        Self { began_ms: now_ms, second: now_ms.div_euclid(1_000), counts: [0; SECONDS] }
    }

    fn count(&mut self, now_ms: i64) {
        let second = now_ms.div_euclid(1_000).max(self.second);
        let passed = second.saturating_sub(self.second).min(SECONDS as i64);
        for back in 0..passed {
            self.counts[Self::place(second - back)] = 0;
        }
        self.second = second;
        let count = &mut self.counts[Self::place(second)];
        *count = count.saturating_add(1);
    }

    fn per_second(&self, now_ms: i64) -> f32 {
        let second = now_ms.div_euclid(1_000).max(self.second);
        // Those that are still within the window.
        let kept = (SECONDS as i64).saturating_sub(second.saturating_sub(self.second)).max(0);
        let total: f32 = (0..kept).map(|back| self.counts[Self::place(self.second - back)] as f32).sum();
        let since_ms = now_ms.saturating_sub(self.began_ms).clamp(1_000, SECONDS as i64 * 1_000);
        total * 1_000.0 / since_ms as f32
    }

    fn place(second: i64) -> usize {
        usize::try_from(second.rem_euclid(SECONDS as i64)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_700_000_000_000;

    fn shown(flows: &Throughput, now_ms: i64) -> Vec<(u8, f32, f32)> {
        flows.per_second(now_ms).collect()
    }

    #[test]
    fn a_rate_is_what_came_by_the_time_that_it_took() {
        let mut flows = Throughput::default();
        assert!(shown(&flows, T).is_empty());
        (0..40).for_each(|_| flows.added(3, T));
        assert_eq!(shown(&flows, T), [(3, 40.0, 0.0)], "over a second at least");
        assert_eq!(shown(&flows, T + 10_000), [(3, 4.0, 0.0)]);
        flows.handed(3, T + 19_000);
        flows.handed(1, T + 19_000);
        assert_eq!(shown(&flows, T + 20_000), [(1, 0.0, 1.0), (3, 2.0, 0.05)]);
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut flows = Throughput::default();
        (0..60).for_each(|second| flows.added(3, T + second * 1_000));
        assert_eq!(shown(&flows, T + 59_000), [(3, 1.0, 0.0)], "one a second");
        assert_eq!(shown(&flows, T + 74_000), [(3, 0.5, 0.0)]);
        assert_eq!(shown(&flows, T + 3_600_000), [(3, 0.0, 0.0)]);
        flows.added(3, T + 3_600_000);
        assert_eq!(shown(&flows, T + 3_600_000), [(3, 1.0 / 30.0, 0.0)]);
    }

    #[test]
    fn a_clock_that_goes_back_does_no_harm() {
        let mut flows = Throughput::default();
        flows.added(3, T);
        flows.added(3, T - 90_000);
        flows.added(3, i64::MIN);
        assert_eq!(shown(&flows, T - 90_000), [(3, 3.0, 0.0)]);
        assert!(!flows.is_held(T));
        flows.held(T);
        assert!(flows.is_held(T + 29_999) && !flows.is_held(T + 30_000));
    }
}
