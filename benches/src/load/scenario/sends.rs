//! Operation: send a signal or an update to one of the standing workflows, in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::standing_workflows;
use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;

/// How long the worker may take to end its last tasks.
const FOUND_WITHIN: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// A signal, which is over when the server has it.
    Signal,
    /// An update, which is over when the worker has answered it.
    Update,
}

pub struct Sends {
    session: Arc<Session>,
    sending: Sending,
    places: Vec<StandingWorkflow>,
    sent_per_run: u64,
    acknowledged: AtomicU64,
    refused: AtomicU64,
}

/// One standing workflow; a run that was sent enough is followed by the next one in its place.
#[derive(Default)]
struct StandingWorkflow {
    sent: AtomicU64,
    run: AtomicU64,
}

impl Sends {
    pub fn new(session: &Arc<Session>, sending: Sending, sent_per_run: u64) -> Self {
        let places = (0..session.load.workflows.max(1)).map(|_| StandingWorkflow::default()).collect();
        Self {
            session: session.clone(),
            sending,
            places,
            sent_per_run: sent_per_run.max(1),
            acknowledged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn workflow_id(&self, place: usize, run: u64) -> String {
        format!("{}-{place}-{run}", self.session.name)
    }

    /// All runs of all places.
    fn workflow_ids(&self) -> Vec<String> {
        let runs_of = |place: &StandingWorkflow| 0..=place.run.load(Ordering::Relaxed);
        let places = self.places.iter().enumerate();
        places
            .flat_map(|(index, place)| runs_of(place).map(move |run| self.workflow_id(index, run)))
            .collect()
    }

    /// How many of them are in the histories of all runs.
    async fn found(&self) -> u64 {
        let mut found = 0;
        for workflow_id in self.workflow_ids() {
            match self.session.calls.history(&workflow_id).await {
                Ok(run) if self.sending == Sending::Signal => found += run.signals,
                Ok(run) => found += run.updates,
                Err(failed) => self.session.tally.refused(failed.call, &failed.status),
            }
        }
        found
    }

    async fn renew(&self, place: usize) -> Result<(), Failed> {
        let run = self.places[place].run.load(Ordering::Relaxed) + 1;
        self.session.calls.start(&self.workflow_id(place, run)).await?;
        self.places[place].run.store(run, Ordering::Relaxed);
        Ok(())
    }
}

impl Operation for Sends {
    async fn prepare(&self) -> Result<(), Failed> {
        let workflow_ids: Vec<_> = (0..self.places.len()).map(|place| self.workflow_id(place, 0)).collect();
        standing_workflows::start(&self.session, &workflow_ids).await
    }

    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        let index = (number % self.places.len() as u64) as usize;
        let place = &self.places[index];
        let sent = place.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if sent.is_multiple_of(self.sent_per_run) {
            self.renew(index).await?;
        }
        let workflow_id = self.workflow_id(index, place.run.load(Ordering::Relaxed));
        let id = format!("{}-sent-{number}", self.session.name);
        let calls = &self.session.calls;
        let (call, answer) = match self.sending {
            Sending::Signal => ("SignalWorkflowExecution", calls.signal(&workflow_id, id).await),
            Sending::Update => ("UpdateWorkflowExecution", calls.update(&workflow_id, id).await),
        };
        let count = if answer.is_ok() { &self.acknowledged } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        answer?;
        self.session.tally.ended(call, intended);
        Ok(())
    }

    /// Everything that was acknowledged is in a history once; what was refused at most once.
    async fn check(&self) {
        let (acknowledged, began) = (self.acknowledged.load(Ordering::Relaxed), Instant::now());
        // What comes while a worker has a task stands in the history when that is over.
        let mut found = self.found().await;
        while found < acknowledged && began.elapsed() < FOUND_WITHIN {
            tokio::time::sleep(LOOK_AGAIN).await;
            found = self.found().await;
        }
        let most = acknowledged + self.refused.load(Ordering::Relaxed);
        let message = format!("{acknowledged} acknowledged, {found} in the histories");
        if found < acknowledged {
            self.session.tally.failed("sent", "Lost", &message);
        } else if found > most {
            self.session.tally.failed("sent", "Doubled", &message);
        }
    }

    async fn clean_up(&self) -> Result<(), Failed> {
        standing_workflows::end(&self.session, &self.workflow_ids()).await
    }
}
