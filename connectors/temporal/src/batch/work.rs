//! The activity of a job: goes through the runs page by page, some at a time, at the job's pace, and reports by heartbeats.
//!
//! A page is in a heartbeat before work at it begins. What this does not do: it knows no call and no connection; `BatchRuns` does.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep_until;
use tonic::{Code, Status};

use crate::batch::pace::Pace;
use crate::batch::progress::{BatchItem, BatchProgress};
use crate::batch::workflow::HEARTBEAT_WITHIN;

/// Operations at once. At 10 ms each they reach some thousand a second.
const AT_ONCE_MAX: usize = 32;
/// Runs on a page, and so in a heartbeat.
const PAGE_MAX: usize = 200;
/// How often there is a heartbeat.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// How often an operation is tried that may yet succeed, as on Temporal's server.
const TRIES_MAX: usize = 50;
/// The waits between the tries: doubled from the first to the second. All of them take some minutes.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Runs of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunPage {
    pub items: Vec<BatchItem>,
    /// The token of the next page, if there is one.
    pub next: Option<Bytes>,
}

/// The outside of a job.
pub(crate) trait BatchRuns: Send + Sync + 'static {
    /// How many runs there are to work at.
    fn total(&self) -> impl Future<Output = Result<i64, Status>> + Send;

    /// A page of them. It may be short, or even empty, with a token.
    fn page(&self, token: &Bytes, size: usize) -> impl Future<Output = Result<RunPage, Status>> + Send;

    /// The operation at a run. A repetition has no second effect.
    fn operate(&self, item: &BatchItem) -> impl Future<Output = Result<(), Status>> + Send;

    /// Keeps the details. True if the job is to stop. NOT_FOUND if it has ended, or is at another attempt.
    fn heartbeat(&self, details: Bytes) -> impl Future<Output = Result<bool, Status>> + Send;
}

/// How the work ended.
#[derive(Debug)]
pub(crate) enum WorkEnd {
    /// There is nothing left to do.
    Done(BatchProgress),
    /// As somebody asked for.
    Stopped(BatchProgress),
    /// It cannot go on.
    Failed(Status),
    /// Another attempt does it, or nobody any more.
    Abandoned,
}

/// Works until the end. `rate`: operations per second.
pub(crate) async fn work<W: BatchRuns>(world: Arc<W>, progress: Option<BatchProgress>, rate: f64) -> WorkEnd {
    let now = Instant::now();
    let is_first = progress.is_none();
    let mut work = JobWork {
        world,
        progress: progress.unwrap_or_default(),
        pace: Pace::new(rate, now),
        // About as many as there is time for in a second: a run is not to wait for its turn for long.
        page_size: if rate < PAGE_MAX as f64 { (rate.ceil() as usize).max(1) } else { PAGE_MAX },
        running: JoinSet::new(),
        heard: now,
        beat_at: now,
        stops: false,
    };
    match work.run(is_first).await {
        Ok(()) if work.stops => WorkEnd::Stopped(work.progress),
        Ok(()) => {
            work.progress.finish();
            WorkEnd::Done(work.progress)
        }
        Err(end) => end,
    }
}

type ItemOutcome = (BatchItem, Result<(), Status>);

struct JobWork<W> {
    world: Arc<W>,
    progress: BatchProgress,
    pace: Pace,
    page_size: usize,
    running: JoinSet<ItemOutcome>,
    /// When a heartbeat was last answered.
    heard: Instant,
    /// When the next one is due.
    beat_at: Instant,
    /// Somebody wants the job to stop.
    stops: bool,
}

impl<W: BatchRuns> JobWork<W> {
    async fn run(&mut self, is_first: bool) -> Result<(), WorkEnd> {
        if is_first {
            self.progress.report.total = self.patiently(|world| async move { world.total().await }).await?;
        }
        loop {
            self.keep().await?;
            self.work_at_page().await?;
            if self.stops || self.progress.cursor.is_last {
                return Ok(());
            }
            self.turn_page().await?;
        }
    }

    /// Reads the next page into the cursor.
    async fn turn_page(&mut self) -> Result<(), WorkEnd> {
        let (token, size) = (self.progress.cursor.next.clone(), self.page_size);
        let page = self.patiently(|world| {
            let token = token.clone();
            async move { world.page(&token, size).await }
        });
        let page = page.await?;
        let cursor = &mut self.progress.cursor;
        cursor.items = page.items;
        cursor.is_last = page.next.is_none();
        cursor.next = page.next.unwrap_or_default();
        Ok(())
    }

    /// Calls again and again what may yet succeed; meanwhile there are heartbeats.
    async fn patiently<T, F>(&mut self, call: impl Fn(Arc<W>) -> F) -> Result<T, WorkEnd>
    where
        F: Future<Output = Result<T, Status>>,
    {
        loop {
            match call(Arc::clone(&self.world)).await {
                Ok(answer) => return Ok(answer),
                Err(status) if !is_transient(&status) => return Err(WorkEnd::Failed(status)),
                Err(status) => tracing::warn!(%status, "a batch job waits"),
            }
            tokio::time::sleep(HEARTBEAT_EVERY).await;
            self.beat().await?;
        }
    }

    /// Works at the runs of the page until all are done, or the job is to stop. Then it waits for what is under way.
    async fn work_at_page(&mut self) -> Result<(), WorkEnd> {
        let mut waiting: VecDeque<BatchItem> = self.progress.cursor.items.clone().into();
        loop {
            if self.stops {
                waiting.clear();
            }
            let may_begin = !waiting.is_empty() && self.running.len() < AT_ONCE_MAX;
            if waiting.is_empty() && self.running.is_empty() {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some(outcome) = self.running.join_next() => self.note(outcome)?,
                () = sleep_until(self.beat_at.into()) => drop(self.beat().await?),
                () = sleep_until(self.pace.next().into()), if may_begin => {
                    let Some(item) = waiting.pop_front() else { continue };
                    self.pace.took(Instant::now());
                    self.running.spawn(attempt(Arc::clone(&self.world), item));
                }
            }
        }
    }

    fn note(&mut self, outcome: Result<ItemOutcome, JoinError>) -> Result<(), WorkEnd> {
        match outcome {
            Ok((item, outcome)) => {
                self.progress.done(item, outcome);
                Ok(())
            }
            Err(panicked) => Err(WorkEnd::Failed(Status::internal(panicked.to_string()))),
        }
    }

    /// A heartbeat that must be answered before the work goes on.
    async fn keep(&mut self) -> Result<(), WorkEnd> {
        while !self.beat().await? {
            tokio::time::sleep(PAUSES.0).await;
        }
        Ok(())
    }

    /// A heartbeat; false if it was not answered.
    async fn beat(&mut self) -> Result<bool, WorkEnd> {
        let beaten = self.world.heartbeat(self.progress.details()).await;
        let now = Instant::now();
        self.beat_at = now + HEARTBEAT_EVERY;
        match beaten {
            Ok(stops) => {
                self.heard = now;
                self.stops |= stops;
                Ok(true)
            }
            Err(status) if is_transient(&status) && now - self.heard < HEARTBEAT_WITHIN => Ok(false),
            Err(_gone) => Err(WorkEnd::Abandoned),
        }
    }
}

/// The operation, tried as often as it may yet succeed.
async fn attempt<W: BatchRuns>(world: Arc<W>, item: BatchItem) -> ItemOutcome {
    let mut pause = PAUSES.0;
    for _ in 1..TRIES_MAX {
        match world.operate(&item).await {
            Err(status) if is_transient(&status) => tokio::time::sleep(pause).await,
            outcome => return (item, outcome),
        }
        pause = PAUSES.1.min(pause * 2);
    }
    let last = world.operate(&item).await;
    (item, last)
}

/// True of a refusal that says nothing about the request.
pub(crate) fn is_transient(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Cancelled
            | Code::Internal
            | Code::Unknown
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::Mutex;

    use super::*;
    use crate::batch::progress::BatchReport;

    /// A rate at which no test waits.
    const FAST: f64 = 1e6;

    /// A world of numbered runs, whose list leaves out what is done.
    #[derive(Default)]
    struct Runs {
        count: u64,
        done: Mutex<BTreeMap<u64, usize>>,
        /// The last heartbeat.
        kept: Mutex<Bytes>,
        beats: AtomicUsize,
        /// What the operation at a run is answered with, one after another; then it succeeds.
        answers: Mutex<BTreeMap<u64, Vec<Status>>>,
        /// After so many heartbeats the job is to stop, or has ended.
        stops_after: Option<usize>,
        ends_after: Option<usize>,
        /// The process ends at so many operations: those never return.
        hangs_after: Option<usize>,
        refuses_list: Option<Status>,
    }

    fn run(number: u64) -> BatchItem {
        BatchItem { workflow_id: format!("order-{number}"), run_id: "run".into(), number }
    }

    impl BatchRuns for Runs {
        async fn total(&self) -> Result<i64, Status> {
            Ok(i64::try_from(self.count).expect("few"))
        }

        async fn page(&self, token: &Bytes, size: usize) -> Result<RunPage, Status> {
            if let Some(status) = &self.refuses_list {
                return Err(status.clone());
            }
            let begin = std::str::from_utf8(token).expect("a number").parse().unwrap_or(0);
            let end = self.count.min(begin + size as u64);
            let done = self.done.lock();
            let items = (begin..end).filter(|number| !done.contains_key(number)).map(run).collect();
            Ok(RunPage { items, next: (end < self.count).then(|| end.to_string().into()) })
        }

        async fn operate(&self, item: &BatchItem) -> Result<(), Status> {
            let refusal = self.answers.lock().get_mut(&item.number).and_then(Vec::pop);
            if let Some(status) = refusal {
                return Err(status);
            }
            let count = {
                let mut done = self.done.lock();
                *done.entry(item.number).or_default() += 1;
                done.len()
            };
            if self.hangs_after.is_some_and(|most| count > most) {
                std::future::pending::<()>().await;
            }
            Ok(())
        }

        async fn heartbeat(&self, details: Bytes) -> Result<bool, Status> {
            let count = self.beats.fetch_add(1, Ordering::Relaxed) + 1;
            if self.ends_after.is_some_and(|most| count > most) {
                return Err(Status::not_found("the job has ended"));
            }
            *self.kept.lock() = details;
            Ok(self.stops_after.is_some_and(|most| count >= most))
        }
    }

    fn done(end: WorkEnd) -> BatchReport {
        match end {
            WorkEnd::Done(progress) => progress.report,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn every_run_is_worked_at_once_and_counted_once() {
        let world = Arc::new(Runs { count: 1_234, ..Runs::default() });
        let report = done(work(Arc::clone(&world), None, FAST).await);
        assert_eq!((report.total, report.complete, report.failed), (1_234, 1_234, 0));
        assert!(world.done.lock().values().all(|times| *times == 1));
        assert_eq!(world.done.lock().len(), 1_234);
    }

    #[tokio::test]
    async fn a_job_without_runs_is_done() {
        let report = done(work(Arc::new(Runs::default()), None, FAST).await);
        assert_eq!(report, BatchReport::default());
    }

    #[tokio::test]
    async fn what_may_yet_succeed_is_tried_again_and_other_refusals_are_reported() {
        let unavailable = Status::unavailable("it moves");
        let refused = Status::invalid_argument("too many signals");
        let answers = BTreeMap::from([(3, vec![unavailable.clone(), unavailable]), (5, vec![refused])]);
        let world = Arc::new(Runs { count: 10, answers: Mutex::new(answers), ..Runs::default() });
        let report = done(work(Arc::clone(&world), None, FAST).await);
        assert_eq!((report.total, report.complete, report.failed), (10, 9, 1));
        let [failure] = &report.failures[..] else { panic!("{report:?}") };
        assert_eq!((failure.workflow_id.as_str(), failure.code.as_str()), ("order-5", "INVALID_ARGUMENT"));
        assert_eq!(failure.message, "too many signals");
    }

    #[tokio::test]
    async fn an_attempt_after_a_kill_goes_on_behind_the_last_heartbeat_and_counts_each_run_once() {
        let first = Arc::new(Runs { count: 500, hangs_after: Some(290), ..Runs::default() });
        let killed = tokio::spawn(work(Arc::clone(&first), None, FAST));
        everlog_patience::until("the process stands still", async || first.done.lock().len() > 300)
            .await
            .expect("it works");
        killed.abort();
        assert!(killed.await.is_err());
        let progress = BatchProgress::read(Some(&*first.kept.lock())).expect("there was a heartbeat");
        assert!((200..=290).contains(&progress.report.complete), "{progress:?}");
        // The list leaves out what is done already: the cursor has it.
        let done_before = first.done.lock().clone();
        let second = Arc::new(Runs { count: 500, done: Mutex::new(done_before), ..Runs::default() });
        let report = done(work(Arc::clone(&second), Some(progress), FAST).await);
        assert_eq!((report.total, report.complete, report.failed), (500, 500, 0));
        assert_eq!(second.done.lock().len(), 500);
        assert!(
            second.done.lock().values().all(|times| *times <= 2),
            "at most what came after the heartbeat"
        );
    }

    #[tokio::test]
    async fn a_job_that_is_to_stop_begins_nothing_more_and_keeps_its_counts() {
        let world = Arc::new(Runs { count: 1_000, stops_after: Some(3), ..Runs::default() });
        let WorkEnd::Stopped(progress) = work(Arc::clone(&world), None, FAST).await else {
            panic!("it stops")
        };
        let worked = world.done.lock().len();
        assert_eq!(usize::try_from(progress.report.complete), Ok(worked));
        assert!(worked < 1_000 && progress.report.total == 1_000, "{progress:?}");
    }

    #[tokio::test]
    async fn an_attempt_that_is_over_does_nothing_more() {
        let world = Arc::new(Runs { count: 1_000, ends_after: Some(2), ..Runs::default() });
        assert!(matches!(work(Arc::clone(&world), None, FAST).await, WorkEnd::Abandoned));
        assert!(world.done.lock().len() <= PAGE_MAX, "the page that was kept");
    }

    #[tokio::test]
    async fn a_list_that_is_refused_ends_the_job() {
        let refuses_list = Some(Status::invalid_argument("the attribute was removed"));
        let world = Arc::new(Runs { count: 3, refuses_list, ..Runs::default() });
        let WorkEnd::Failed(status) = work(world, None, FAST).await else { panic!("it fails") };
        assert_eq!(status.message(), "the attribute was removed");
    }
}
