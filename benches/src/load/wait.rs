//! Clients wait here for their workflows; the worker calls them.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::oneshot;

/// Workflow ids that somebody waits for.
#[derive(Default)]
pub struct Waiters {
    waiting: Mutex<HashMap<String, oneshot::Sender<()>>>,
}

impl Waiters {
    /// To be called before the workflow is started, so that its end cannot be missed.
    pub fn register(&self, workflow_id: &str) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().expect("the lock is held for one call").insert(workflow_id.to_string(), sender);
        receiver
    }

    /// Calls whoever waits for this workflow.
    pub fn call(&self, workflow_id: &str) {
        let waiting = self.waiting.lock().expect("the lock is held for one call").remove(workflow_id);
        if let Some(sender) = waiting {
            // Who has given up does not hear it.
            let _ = sender.send(());
        }
    }
}
