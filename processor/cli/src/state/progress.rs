//! How far an export or an import is, on standard error.

use std::time::{Duration, Instant};

/// How often a line is printed.
const EVERY: Duration = Duration::from_secs(5);

/// Prints how far it is.
pub struct TransferProgress {
    began: Instant,
    printed: Instant,
    rows: u64,
    bytes: u64,
}

impl TransferProgress {
    /// It begins now.
    pub fn begin() -> Self {
        let now = Instant::now();
        Self { began: now, printed: now, rows: 0, bytes: 0 }
    }

    /// A step of it, at once.
    pub fn step(&mut self, text: &str) {
        eprintln!("everlog: {text}");
        self.printed = Instant::now();
    }

    /// A row, and a line now and then, which says at what.
    pub fn row(&mut self, bytes: usize, at: impl FnOnce() -> String) {
        (self.rows, self.bytes) = (self.rows + 1, self.bytes + bytes as u64);
        if self.rows.is_multiple_of(1_000) && self.printed.elapsed() >= EVERY {
            let text = format!("{}: {} rows, {} MiB", at(), self.rows, self.bytes >> 20);
            self.step(&text);
        }
    }

    /// What it has come to.
    pub fn total(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        format!("{} rows, {} MiB in {seconds:.1} s", self.rows, self.bytes >> 20)
    }
}
