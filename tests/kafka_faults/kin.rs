//! Houses, repairs and rounds: workflows with children, with retries and with schedules, from start to end.

use anyhow::ensure;
use everlog_temporal_api::common::RetryPolicy;
use everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest;
use everlog_tests::fate::Fate;

use crate::client::{self, Client};
use crate::reader::Seen;
use crate::workflows::{ATTEMPTS_MAX, number, rooms};

/// Runs of a round that have begun when it is ended.
const ROUNDS: u64 = 3;

/// A start with what a workflow's kind asks for.
pub fn start(id: &str, identity: String) -> StartWorkflowExecutionRequest {
    let mut request = client::start(id, identity);
    match id.split('-').next() {
        Some("repair") => {
            let nanos = [50, 300][number(id) as usize % 2] * 1_000_000;
            request.retry_policy = Some(RetryPolicy {
                initial_interval: Some(prost_types::Duration { seconds: 0, nanos }),
                maximum_attempts: ATTEMPTS_MAX,
                ..RetryPolicy::default()
            });
        }
        Some("round") => request.cron_schedule = "@every 1s".into(),
        _most => {}
    }
    request
}

/// Ends a round that was started, when it has come often enough.
pub async fn end_round(client: &Client, seen: &Seen, id: &str) -> anyhow::Result<()> {
    seen.begun(id, ROUNDS).await;
    let fate = client.terminate(id).await?;
    ensure!(fate != Fate::Refused, "{id} cannot be ended");
    Ok(())
}

/// Waits for the children of a house that it does not wait for itself.
pub async fn empty_house(seen: &Seen, id: &str) {
    for room in rooms(id) {
        seen.closed(&room).await;
    }
}
