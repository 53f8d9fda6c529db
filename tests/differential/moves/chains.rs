//! Runs that follow one another by a policy.

use serde_json::json;

use crate::author::{Author, command, failure};

/// Fails and is tried again, until it succeeds or has no attempt left.
pub fn retried(author: &mut Author) {
    let attempts = author.dice.span(2, 3);
    let policy = json!({
        "initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": attempts,
        "non_retryable_error_types": ["Final"],
    });
    super::starts::with(author, json!({ "retry_policy": policy }));
    for attempt in 1..=attempts {
        let kind = if author.percent(15) { "Final" } else { "Busy" };
        let last = command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure(kind, false)}));
        author.take();
        author.complete(vec![last]);
        if kind == "Final" || attempt == attempts {
            return author.ended(false);
        }
        let request = author.started_by.clone();
        author.begun(&request);
        super::clients::describe(author);
        if author.percent(30) {
            author.take();
            return author.complete(Vec::new());
        }
    }
}
