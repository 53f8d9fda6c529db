//! Operation: ask about one of the standing workflows, in turn.

use std::sync::Arc;
use std::time::Instant;

use super::standing_workflows;
use crate::load::calls::Failed;
use crate::load::pace::Operation;
use crate::load::session::Session;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// A query, which the worker answers.
    Query,
    /// How the workflow stands, which the server answers.
    Describe,
}

pub struct Reads {
    session: Arc<Session>,
    question: Question,
    workflow_ids: Vec<String>,
}

impl Reads {
    pub fn new(session: &Arc<Session>, question: Question) -> Self {
        let count = session.load.workflows.max(1) as u64;
        let workflow_ids = (0..count).map(|number| session.workflow_id(number)).collect();
        Self { session: session.clone(), question, workflow_ids }
    }
}

impl Operation for Reads {
    async fn prepare(&self) -> Result<(), Failed> {
        standing_workflows::start(&self.session, &self.workflow_ids).await
    }

    async fn perform(&self, number: u64, intended: Instant) -> Result<(), Failed> {
        let place = (number % self.workflow_ids.len() as u64) as usize;
        let workflow_id = &self.workflow_ids[place];
        let call = match self.question {
            Question::Query => {
                self.session.calls.query(workflow_id).await?;
                "QueryWorkflow"
            }
            Question::Describe => {
                self.session.calls.describe(workflow_id).await?;
                "DescribeWorkflowExecution"
            }
        };
        self.session.tally.ended(call, intended);
        Ok(())
    }

    async fn clean_up(&self) -> Result<(), Failed> {
        standing_workflows::end(&self.session, &self.workflow_ids).await
    }
}
