//! Operation: signal one of the standing workflows, in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::standing;
use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;
use crate::load::worker::Worker;

/// How long the worker may take to see the last signals.
const SEEN_WITHIN: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub struct Signals {
    session: Arc<Session>,
    places: Vec<Place>,
    signals_per_run: u64,
    acknowledged: AtomicU64,
    refused: AtomicU64,
}

/// One standing workflow; a run that has got enough signals is followed by the next one in its place.
#[derive(Default)]
struct Place {
    signals: AtomicU64,
    run: AtomicU64,
}

impl Signals {
    pub fn new(session: &Arc<Session>, signals_per_run: u64) -> Self {
        let places = (0..session.load.workflows.max(1)).map(|_| Place::default()).collect();
        Self {
            session: session.clone(),
            places,
            signals_per_run: signals_per_run.max(1),
            acknowledged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn workflow_id(&self, place: usize, run: u64) -> String {
        format!("{}-{place}-{run}", self.session.name)
    }

    async fn renew(&self, place: usize) -> Result<(), Failed> {
        let run = self.places[place].run.load(Ordering::Relaxed) + 1;
        self.session.calls.start(&self.workflow_id(place, run)).await?;
        self.places[place].run.store(run, Ordering::Relaxed);
        Ok(())
    }
}

impl Operation for Signals {
    async fn prepare(&self) -> Result<(), Failed> {
        let workflow_ids: Vec<_> = (0..self.places.len()).map(|place| self.workflow_id(place, 0)).collect();
        standing::start(&self.session, &workflow_ids).await
    }

    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        let index = (number % self.places.len() as u64) as usize;
        let place = &self.places[index];
        let signals = place.signals.fetch_add(1, Ordering::Relaxed) + 1;
        if signals.is_multiple_of(self.signals_per_run) {
            self.renew(index).await?;
        }
        let workflow_id = self.workflow_id(index, place.run.load(Ordering::Relaxed));
        let request_id = format!("{}-signal-{number}", self.session.name);
        let signalled = self.session.calls.signal(&workflow_id, request_id).await;
        let count = if signalled.is_ok() { &self.acknowledged } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        signalled?;
        self.session.tally.ended("SignalWorkflowExecution", intended);
        Ok(())
    }

    /// Every acknowledged signal is in a history once; a refused one at most once.
    async fn check(&self, worker: Option<&Worker>) {
        let Some(worker) = worker else { return };
        let acknowledged = self.acknowledged.load(Ordering::Relaxed);
        let most = acknowledged + self.refused.load(Ordering::Relaxed);
        let began = Instant::now();
        while worker.signals() < acknowledged && began.elapsed() < SEEN_WITHIN {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let seen = worker.signals();
        let message = format!("{acknowledged} acknowledged, {seen} in the histories");
        if seen < acknowledged {
            self.session.tally.failed("signals", "Lost", &message);
        } else if seen > most {
            self.session.tally.failed("signals", "Doubled", &message);
        }
    }

    async fn clean_up(&self) -> Result<(), Failed> {
        let runs_of = |place: &Place| 0..=place.run.load(Ordering::Relaxed);
        let places = self.places.iter().enumerate();
        let workflow_ids: Vec<_> = places
            .flat_map(|(index, place)| runs_of(place).map(move |run| self.workflow_id(index, run)))
            .collect();
        standing::end(&self.session, &workflow_ids).await
    }
}
