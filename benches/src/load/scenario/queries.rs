//! Operation: query one of the standing workflows, in turn.

use std::sync::Arc;
use std::time::Instant;

use super::standing;
use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;

pub struct Queries {
    session: Arc<Session>,
    workflow_ids: Vec<String>,
}

impl Queries {
    pub fn new(session: &Arc<Session>) -> Self {
        let count = session.load.workflows.max(1) as u64;
        let workflow_ids = (0..count).map(|number| session.workflow_id(number)).collect();
        Self { session: session.clone(), workflow_ids }
    }
}

impl Operation for Queries {
    async fn prepare(&self) -> Result<(), Failed> {
        standing::start(&self.session, &self.workflow_ids).await
    }

    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        let place = (number % self.workflow_ids.len() as u64) as usize;
        self.session.calls.query(&self.workflow_ids[place]).await?;
        self.session.tally.ended("QueryWorkflow", intended);
        Ok(())
    }

    async fn clean_up(&self) -> Result<(), Failed> {
        standing::end(&self.session, &self.workflow_ids).await
    }
}
