//! When operations begin: as soon as another one has ended (closed loop), or at fixed moments (open loop).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::calls::Failed;
use super::session::Session;
use super::window::Window;

/// Moments of the open loop that wait for a free place, at most.
const TICKS_WAITING_MAX: usize = 65_536;

/// In the closed loop, so that a server that refuses everything is not hammered.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);

/// What is done again and again.
pub trait Operation: Send + Sync + 'static {
    /// Makes what it needs, before anything is measured.
    fn prepare(&self) -> impl Future<Output = Result<(), Failed>> + Send {
        std::future::ready(Ok(()))
    }

    /// Does it for the `number`-th time; `intended` is when it was meant to begin.
    fn perform(&self, number: u64, intended: Instant) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Looks, after the last one, whether what was acknowledged has had its effect; notes failures itself.
    fn check(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Leaves the server as it was, as far as the scenario has a mind to.
    fn clean_up(&self) -> impl Future<Output = Result<(), Failed>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Performs operations until the window closes or there were enough, and waits for the last ones.
pub async fn drive<O: Operation>(session: Arc<Session>, operation: Arc<O>, window: Window) {
    match session.load.rate {
        Some(rate) => open_loop(session, operation, window, rate).await,
        None => closed_loop(session, operation, window).await,
    }
}

async fn closed_loop<O: Operation>(session: Arc<Session>, operation: Arc<O>, window: Window) {
    let numbers = Arc::new(AtomicU64::new(0));
    let limit = session.load.operations.unwrap_or(u64::MAX);
    let mut loops = JoinSet::new();
    for _ in 0..session.load.concurrency.max(1) {
        let (session, operation, numbers) = (session.clone(), operation.clone(), numbers.clone());
        loops.spawn(async move {
            loop {
                let now = Instant::now();
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                if now >= window.until || number >= limit {
                    break;
                }
                if !perform_one(&session, &*operation, number, now).await {
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        });
    }
    loops.join_all().await;
}

async fn open_loop<O: Operation>(session: Arc<Session>, operation: Arc<O>, window: Window, rate: f64) {
    let (ticks, mut due) = mpsc::channel(TICKS_WAITING_MAX);
    let limit = session.load.operations.unwrap_or(u64::MAX);
    // A thread of its own: the runtime's timers are a millisecond coarse, which would count as latency.
    let clock = std::thread::spawn(move || tick(&ticks, rate, limit, window.until));
    let in_flight_max = u32::try_from(session.load.max_in_flight).unwrap_or(u32::MAX).max(1);
    let places = Arc::new(Semaphore::new(in_flight_max as usize));
    while let Some((number, intended)) = due.recv().await {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (session, operation) = (session.clone(), operation.clone());
        tokio::spawn(async move {
            perform_one(&session, &*operation, number, intended).await;
            drop(place);
        });
    }
    let _all_places = places.acquire_many(in_flight_max).await.expect("the semaphore is never closed");
    clock.join().expect("the clock does not panic");
}

/// Sends the number and the moment of every operation when the moment has come.
fn tick(ticks: &mpsc::Sender<(u64, Instant)>, rate: f64, limit: u64, until: Instant) {
    let began = Instant::now();
    for number in 0..limit {
        let intended = began + Duration::from_secs_f64(number as f64 / rate);
        if intended >= until {
            break;
        }
        std::thread::sleep(intended.saturating_duration_since(Instant::now()));
        if ticks.blocking_send((number, intended)).is_err() {
            break;
        }
    }
}

/// Whether the operation succeeded; what came of it is in the tally.
async fn perform_one<O: Operation>(session: &Session, operation: &O, number: u64, intended: Instant) -> bool {
    let timeout = session.load.timeout;
    let result = tokio::time::timeout(timeout, operation.perform(number, intended)).await;
    match &result {
        Ok(Ok(())) => session.tally.succeeded(),
        Ok(Err(failed)) => session.tally.refused(failed.call, &failed.status),
        Err(_) => session.tally.failed("operation", "Timeout", &format!("not finished after {timeout:?}")),
    }
    matches!(result, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_do_not_drift_when_nobody_takes_them() {
        let ((ticks, mut due), began) = (mpsc::channel(TICKS_WAITING_MAX), Instant::now());
        tick(&ticks, 20_000.0, 100, began + Duration::from_secs(3600));
        drop(ticks);
        let moments: Vec<_> = std::iter::from_fn(|| due.blocking_recv()).collect();
        assert_eq!(moments.len(), 100);
        let last = &moments[99];
        assert_eq!(last.0, 99);
        let off = (last.1 - moments[0].1).abs_diff(Duration::from_micros(99 * 50));
        assert!(off < Duration::from_micros(1), "{off:?}");
    }
}
