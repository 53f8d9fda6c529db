//! The worker's other half: polls activities and completes them at once.

use std::sync::Arc;
use std::time::Instant;

use everlog_temporal_api::workflowservice::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, RespondActivityTaskCompletedRequest,
};

use super::worker::{Worker, timed};

impl Worker {
    pub(super) async fn poll_activities(self: Arc<Self>) {
        let mut client = self.session.worker_connections.client();
        let request = PollActivityTaskQueueRequest {
            namespace: self.session.load.namespace.clone(),
            task_queue: Some(self.session.task_queue.clone()),
            identity: self.session.name.clone(),
            ..Default::default()
        };
        loop {
            let polled = client.poll_activity_task_queue(timed(request.clone())).await;
            let Some(task) = self.polled("PollActivityTaskQueue", polled).await else {
                continue;
            };
            if !task.task_token.is_empty() {
                self.complete_activity(task).await;
            }
        }
    }

    async fn complete_activity(&self, task: PollActivityTaskQueueResponse) {
        let run_id = task.workflow_execution.unwrap_or_default().run_id;
        let request = RespondActivityTaskCompletedRequest {
            task_token: task.task_token,
            result: Some(self.session.payloads.clone()),
            identity: self.session.name.clone(),
            namespace: self.session.load.namespace.clone(),
            ..Default::default()
        };
        if let Some(steps) = &self.steps {
            steps.activity_polled(&run_id, &self.session.tally);
            steps.activity_answered(&run_id);
        }
        let sent = Instant::now();
        let send = || async {
            self.session.worker_connections.client().respond_activity_task_completed(request.clone()).await
        };
        if self.insist("RespondActivityTaskCompleted", send).await.is_some() {
            self.session.tally.ended("RespondActivityTaskCompleted", sent);
        }
    }
}
