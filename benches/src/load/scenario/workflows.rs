//! Operation: start a workflow and see it complete.

use std::sync::Arc;
use std::time::Instant;

use tonic::Status;

use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;

pub struct Workflows {
    session: Arc<Session>,
}

impl Workflows {
    pub fn new(session: &Arc<Session>) -> Self {
        Self { session: session.clone() }
    }
}

impl Operation for Workflows {
    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        let session = &self.session;
        let workflow_id = session.workflow_id(number);
        if session.load.await_result {
            let run_id = session.calls.start(&workflow_id).await?;
            session.tally.ended("StartWorkflowExecution", intended);
            session.calls.result(&workflow_id, run_id).await?;
        } else {
            let finished = session.finished.register(&workflow_id);
            session.calls.start(&workflow_id).await?;
            session.tally.ended("StartWorkflowExecution", intended);
            let lost = |_| Failed { call: "workflow", status: Status::data_loss("the worker has lost it") };
            finished.await.map_err(lost)?;
        }
        session.tally.ended("workflow", intended);
        Ok(())
    }
}
