//! Operation: start a workflow that nobody works on.

use std::sync::Arc;
use std::time::Instant;

use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;

pub struct Open {
    session: Arc<Session>,
}

impl Open {
    pub fn new(session: &Arc<Session>) -> Self {
        Self { session: session.clone() }
    }
}

impl Operation for Open {
    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        self.session.calls.start(&self.session.workflow_id(number)).await?;
        self.session.tally.ended("StartWorkflowExecution", intended);
        Ok(())
    }
}
