//! What the tests here ask of a caller: workflows are registers, their signals what was written.

use anyhow::{Context, ensure};
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_tests::caller::Caller;
use everlog_tests::patience;
use tonic::Code;

/// The histories of all, once they are there: until then each is unavailable, and never has a hole.
pub async fn histories(client: &Caller, ids: &[String]) -> anyhow::Result<Vec<Vec<HistoryEvent>>> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    let mut all = Vec::new();
    for id in ids {
        loop {
            match client.history(id).await {
                Ok(events) => {
                    let in_order = (1..).zip(&events).all(|(number, event)| event.event_id == number);
                    ensure!(in_order && !events.is_empty(), "{id}: its events are numbered without a gap");
                    all.push(events);
                    break;
                }
                Err(status) if status.code() == Code::Unavailable => {
                    ensure!(!deadline.is_over(), "{id}: {status}");
                    looks.tick().await;
                }
                Err(status) => return Err(status).with_context(|| format!("the history of {id}")),
            }
        }
    }
    Ok(all)
}

/// Takes a workflow task if there is one, and completes it without a command.
pub async fn work(client: &Caller) -> anyhow::Result<()> {
    let Some(task) = client.take().await? else { return Ok(()) };
    ensure!((1..).zip(&task.history).all(|(number, event)| event.event_id == number), "a task with a hole");
    Ok(client.complete(task, Vec::new()).await?)
}
