//! How long tests wait, so that none judges the machine's speed: a test fails for wrong behaviour only.
//!
//! * What must come is waited for with [`until`], [`answer`] or a [`Deadline`]. All of them wait for [`most`], which no machine
//!   needs that is merely slow. A test has no other bound on elapsed time.
//! * What must not come has a sentinel: something that is sent after it, and comes.
//! * What needs time to pass has a clock that the test moves. Where a process of somebody else has the clock, such as a
//!   broker, the test lets the time [`pass`].

use std::fmt;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior};

/// By what [`most`] is multiplied, a whole number; `./check` sets it where nobody waits for the end of a failure.
const FACTOR: &str = "EVERLOG_PATIENCE";
/// Twice what the slowest step took (the start of three brokers) on two cores beside two busy loops.
const MOST: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a test waits for what must come.
pub fn most() -> Duration {
    static FACTORED: LazyLock<Duration> = LazyLock::new(|| {
        let factor = std::env::var(FACTOR).map_or(1, |factor| factor.parse().expect("a whole number"));
        MOST * factor
    });
    *FACTORED
}

/// When a test gives up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

/// When a test gives up that begins to wait now.
pub fn deadline() -> Deadline {
    Deadline(Instant::now() + most())
}

impl Deadline {
    /// True once the test has waited for [`most`].
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// What is left of [`most`].
    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// What did not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late(String);

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: it did not come to pass within {:?}", self.0, most())
    }
}

impl std::error::Error for Late {}

/// Waits for what a future answers.
///
/// # Errors
/// It does not answer.
pub async fn answer<F: Future>(what: &str, future: F) -> Result<F::Output, Late> {
    tokio::time::timeout(most(), future).await.map_err(|_elapsed| Late(what.to_owned()))
}

/// Looks again and again until something holds.
///
/// # Errors
/// It does not come to hold.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Result<(), Late> {
    let deadline = deadline();
    let mut looks = looks();
    while !holds().await {
        if deadline.is_over() {
            return Err(Late(what.to_owned()));
        }
        looks.tick().await;
    }
    Ok(())
}

/// As [`until`], where nothing is async.
///
/// # Errors
/// It does not come to hold.
pub fn until_blocking(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Late> {
    let deadline = deadline();
    while !holds() {
        if deadline.is_over() {
            return Err(Late(what.to_owned()));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// The pace of looks at what changes outside the process: the first at once, the next each 20 ms.
pub fn looks() -> Interval {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// Lets time pass by which a process of somebody else goes, such as a broker's session timeout. Nothing may be concluded
/// from what has not happened meanwhile.
pub async fn pass(span: Duration) {
    tokio::time::sleep(span).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_is_not_late() {
        let mut looked = 0;
        let third = until("the third look", async || {
            looked += 1;
            looked == 3
        });
        assert_eq!(third.await, Ok(()));
        assert_eq!(until_blocking("now", || true), Ok(()));
        assert_eq!(answer("an answer", async { 7 }).await, Ok(7));
        assert!(!deadline().is_over());
    }

    #[test]
    fn what_is_late_says_for_how_long_it_was_waited_for() {
        let said = Late("a promise".into()).to_string();
        assert_eq!(said, format!("a promise: it did not come to pass within {:?}", most()));
    }
}
