//! Starts of workflows, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest;
use everlog_tests::patience;
use everlog_tests::raw;
use tonic::transport::Channel;

/// Starts a workflow.
pub async fn start(channel: &Channel, workflow_id: &str) -> anyhow::Result<()> {
    let start = StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue { name: "orders".into(), ..TaskQueue::default() }),
        request_id: workflow_id.into(),
        ..StartWorkflowExecutionRequest::default()
    };
    raw::send(channel, start).await?;
    Ok(())
}

/// Starts workflows until it is ended. One that is not acknowledged is started again.
pub struct Load {
    acknowledged: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<BTreeSet<String>>,
}

impl Load {
    pub fn begin(channel: Channel) -> Self {
        let (acknowledged, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ends) = (Arc::clone(&acknowledged), Arc::clone(&is_over));
        let task = tokio::spawn(async move {
            let (mut started, mut looks) = (BTreeSet::new(), patience::looks());
            while !ends.load(Ordering::Relaxed) {
                let id = format!("load-{}", started.len());
                match start(&channel, &id).await {
                    Ok(()) => {
                        started.insert(id);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    // A node that is away refuses at once.
                    Err(_) => drop(looks.tick().await),
                }
            }
            started
        });
        Self { acknowledged, is_over, task }
    }

    /// Waits for so many acknowledgements more.
    pub async fn go_on(&self, more: usize) -> anyhow::Result<()> {
        let enough = self.acknowledged.load(Ordering::Relaxed) + more;
        patience::until("starts are acknowledged", async || {
            self.acknowledged.load(Ordering::Relaxed) >= enough
        })
        .await?;
        Ok(())
    }

    /// The Workflow Ids whose starts were acknowledged.
    pub async fn end(mut self) -> anyhow::Result<BTreeSet<String>> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok((&mut self.task).await?)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
