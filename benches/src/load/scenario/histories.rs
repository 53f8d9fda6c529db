//! Operation: read one of some long histories, then query its workflow.

use std::sync::Arc;
use std::time::Instant;

use tonic::Status;

use super::standing_workflows;
use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;

pub struct Histories {
    session: Arc<Session>,
    markers: u32,
    workflow_ids: Vec<String>,
}

impl Histories {
    pub fn new(session: &Arc<Session>, markers: u32) -> Self {
        let count = session.load.workflows.max(1) as u64;
        let workflow_ids = (0..count).map(|number| session.workflow_id(number)).collect();
        Self { session: session.clone(), markers, workflow_ids }
    }
}

impl Operation for Histories {
    async fn prepare(&self) -> Result<(), Failed> {
        standing_workflows::start(&self.session, &self.workflow_ids).await
    }

    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        let place = (number % self.workflow_ids.len() as u64) as usize;
        let workflow_id = &self.workflow_ids[place];
        let run = self.session.calls.history(workflow_id).await?;
        self.session.tally.ended("a whole history", intended);
        if run.markers != self.markers {
            let status = Status::data_loss(format!("{} markers instead of {}", run.markers, self.markers));
            return Err(Failed { call: "GetWorkflowExecutionHistory", status });
        }
        let asked = Instant::now();
        self.session.calls.query(workflow_id).await?;
        self.session.tally.ended("QueryWorkflow", asked);
        Ok(())
    }

    async fn clean_up(&self) -> Result<(), Failed> {
        standing_workflows::end(&self.session, &self.workflow_ids).await
    }
}
