//! Workflows that stand open while others signal or query them.

use std::sync::Arc;

use tokio::task::JoinSet;
use tonic::Status;

use crate::load::calls::Failed;
use crate::load::session::Session;

/// Workflows started or ended at once.
const AT_ONCE: usize = 32;

/// Starts workflows and waits until the worker has answered the first task of each.
pub async fn start(session: &Arc<Session>, workflow_ids: &[String]) -> Result<(), Failed> {
    for some in workflow_ids.chunks(AT_ONCE) {
        let mut starts = JoinSet::new();
        for workflow_id in some {
            let (session, workflow_id) = (session.clone(), workflow_id.clone());
            starts.spawn(async move {
                let ready = session.finished.register(&workflow_id);
                session.calls.start(&workflow_id).await?;
                let late =
                    |_| Failed { call: "workflow", status: Status::deadline_exceeded("no first task") };
                let lost =
                    |_| Failed { call: "workflow", status: Status::data_loss("the worker has lost it") };
                tokio::time::timeout(session.load.timeout, ready).await.map_err(late)?.map_err(lost)
            });
        }
        starts.join_all().await.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

/// Ends workflows, unless they are to be kept.
pub async fn end(session: &Arc<Session>, workflow_ids: &[String]) -> Result<(), Failed> {
    if session.load.keep {
        return Ok(());
    }
    for some in workflow_ids.chunks(AT_ONCE) {
        let mut ends = JoinSet::new();
        for workflow_id in some {
            let (session, workflow_id) = (session.clone(), workflow_id.clone());
            ends.spawn(async move { session.calls.terminate(&workflow_id).await });
        }
        ends.join_all().await.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}
