//! The progress of a restore: a bar on a terminal, log lines elsewhere, percentages in health checks.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use everlog_partition::Stats;

/// How often the bar is drawn, and after how many looks a line is logged.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOKS_PER_LINE: u32 = 40;
/// Cells of the bar.
const WIDTH: u64 = 30;

/// All partitions of a node.
pub struct Progress(Vec<Arc<Stats>>);

/// What is being restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What must be restored before the partitions serve.
    State(u64),
    /// What is restored while they serve.
    Histories(u64),
    /// What is made of the restored rows while they serve.
    Index(u64),
}

impl Progress {
    /// Of partitions with these counters.
    pub fn of(stats: Vec<Arc<Stats>>) -> Self {
        Self(stats)
    }

    /// Percent of the rows that decisions need; none while nothing is missing. Once a partition serves, only
    /// partitions that lack rows count.
    pub fn state_percent(&self) -> Option<u64> {
        let some_serve = self.sum(|stats| &stats.serving) > 0;
        let (mut all, mut left) = (0, 0);
        for stats in &self.0 {
            let lacks = stats.restore_left.load(Ordering::Relaxed);
            if !some_serve || lacks > 0 {
                all += stats.restore_all.load(Ordering::Relaxed);
                left += lacks;
            }
        }
        percent(all, left)
    }

    /// Percent of the histories; none where all are restored.
    pub fn histories_percent(&self) -> Option<u64> {
        let left = self.sum(|stats| &stats.history_left);
        if self.sum(|stats| &stats.behind) == 0 {
            return None;
        }
        Some(percent(self.sum(|stats| &stats.history_all), left).unwrap_or(0))
    }

    /// Percent of the index that is furthest behind; none where every index is complete.
    pub fn index_percent(&self) -> Option<u64> {
        let missing = self.0.iter().map(|stats| stats.index_missing_percent.load(Ordering::Relaxed)).max()?;
        (missing > 0).then(|| 100_u64.saturating_sub(missing))
    }

    fn sum(&self, of: impl Fn(&Stats) -> &AtomicU64) -> u64 {
        self.0.iter().map(|stats| of(stats).load(Ordering::Relaxed)).sum()
    }

    fn phase(&self) -> Option<Phase> {
        let state = self.state_percent().map(Phase::State);
        let histories = || self.histories_percent().map(Phase::Histories);
        state.or_else(histories).or_else(|| self.index_percent().map(Phase::Index))
    }
}

fn percent(all: u64, left: u64) -> Option<u64> {
    if left == 0 { None } else { Some(all.saturating_sub(left) * 100 / all.max(1)) }
}

impl Phase {
    fn text(self) -> String {
        match self {
            Self::State(percent) => format!("restoring {} {percent:>3} %", bar(percent)),
            Self::Histories(percent) => format!("restoring histories {} {percent:>3} %", bar(percent)),
            Self::Index(percent) => format!("indexing runs {} {percent:>3} %", bar(percent)),
        }
    }

    fn log(self, progress: &Progress) {
        let rows = progress.sum(|stats| &stats.restored_rows);
        let bytes = progress.sum(|stats| &stats.restored_bytes);
        match self {
            Self::State(percent) => tracing::info!(percent, rows, bytes, "restoring state"),
            Self::Histories(percent) => {
                tracing::info!(percent, rows, bytes, "restoring histories while serving")
            }
            Self::Index(percent) => tracing::info!(percent, "indexing runs while serving"),
        }
    }
}

fn bar(percent: u64) -> String {
    let full = (percent * WIDTH / 100).min(WIDTH);
    let cells = (0..WIDTH).map(|cell| if cell < full { '#' } else { '.' });
    format!("[{}]", cells.collect::<String>())
}

/// Shows the progress whenever something is restored: at the start, and when partitions come from other nodes. A
/// restore that ends within one look is not shown.
pub async fn tell(progress: Progress) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let is_terminal = std::io::stderr().is_terminal();
    let mut looked: u32 = 0;
    loop {
        looks.tick().await;
        let Some(phase) = progress.phase() else {
            if is_terminal && looked > 1 {
                draw("");
            }
            looked = 0;
            continue;
        };
        looked = looked.wrapping_add(1);
        if is_terminal && looked > 1 {
            draw(&phase.text());
        } else if !is_terminal && looked.is_multiple_of(LOOKS_PER_LINE) {
            phase.log(&progress);
        }
    }
}

/// Draws over the last bar. A closed standard error is no reason to stop.
fn draw(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decisions_need_comes_first_then_histories_then_nothing() {
        let stats: Vec<Arc<Stats>> = vec![Arc::default(), Arc::default()];
        let progress = Progress::of(stats.clone());
        let set = |value: &AtomicU64, number| value.store(number, Ordering::Relaxed);
        assert_eq!(progress.phase(), None);
        for one in &stats {
            set(&one.restore_all, 100);
            set(&one.behind, 1);
        }
        set(&stats[0].restore_left, 50);
        assert_eq!(progress.phase(), Some(Phase::State(75)));
        set(&stats[1].serving, 1);
        assert_eq!(progress.phase(), Some(Phase::State(50)), "what is done was brought for itself");
        set(&stats[0].restore_left, 0);
        assert_eq!(progress.phase(), Some(Phase::Histories(0)));
        set(&stats[0].history_all, 10);
        set(&stats[0].history_left, 5);
        assert_eq!(progress.histories_percent(), Some(50));
        for one in &stats {
            set(&one.behind, 0);
            set(&one.history_left, 0);
        }
        assert_eq!(progress.phase(), None);
    }

    #[test]
    fn a_bar_is_as_full_as_the_percent() {
        assert_eq!(bar(0), format!("[{}]", ".".repeat(30)));
        assert_eq!(bar(50), format!("[{}{}]", "#".repeat(15), ".".repeat(15)));
        assert_eq!(Phase::State(100).text(), format!("restoring [{}] 100 %", "#".repeat(30)));
    }
}
