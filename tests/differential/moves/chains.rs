//! Runs that follow one another by a policy.

use serde_json::json;

use crate::author::{Author, command, failure, payload, payloads};

/// Fails and is tried again, until it succeeds or has no attempt left.
pub fn retried(author: &mut Author) {
    author.is_delayed = true;
    let attempts = author.dice.span(2, 3);
    let policy = json!({
        "initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": attempts,
        "non_retryable_error_types": ["Final"],
    });
    super::starts::with(author, json!({ "retry_policy": policy }));
    author.is_retried = true;
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

/// Attempts that end by the timeout of their run, the last of them for good.
pub fn timed_out(author: &mut Author) {
    (author.is_delayed, author.is_short) = (true, true);
    let policy = json!({"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": 2});
    super::starts::with(author, json!({"retry_policy": policy, "workflow_run_timeout": "2s"}));
    match author.dice.below(3) {
        0 => {}
        1 => author.take(),
        _ => author.turn(Vec::new()),
    }
    // The next attempt has its first task.
    let request = author.started_by.clone();
    author.begun(&request);
    author.take();
    if author.percent(50) {
        author.complete(vec![command(
            "COMPLETE_WORKFLOW_EXECUTION",
            json!({"result": payloads(&["in time"])}),
        )]);
        return author.ended(true);
    }
    author.wait_for("EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT");
    author.ended(false);
}

/// All attempts together have so much time and no more.
pub fn out_of_time(author: &mut Author) {
    let policy = json!({"initial_interval": "7200s", "maximum_attempts": 5});
    super::starts::with(author, json!({"retry_policy": policy, "workflow_execution_timeout": "3600s"}));
    author.take();
    author.complete(vec![command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Busy", false)}))]);
    author.ended(false);
    super::clients::describe(author);
}

/// The next run waits before its first task, and begins with all that a run can leave.
pub fn continued_later(author: &mut Author) {
    author.is_delayed = true;
    let mut attributes = json!({"input": payloads(&["next"]), "backoff_start_interval": "2s"});
    if author.percent(50) {
        attributes["failure"] = failure("Behind", false);
        attributes["last_completion_result"] = payloads(&["so far"]);
    }
    let is_retried = author.percent(50);
    if is_retried {
        attributes["retry_policy"] = json!({"initial_interval": "2s", "maximum_attempts": 3});
        attributes["memo"] = json!({"fields": {"note": payload("next")}});
    }
    if author.percent(30) {
        attributes["initiator"] =
            author.one_of(&["CONTINUE_AS_NEW_INITIATOR_WORKFLOW", "CONTINUE_AS_NEW_INITIATOR_RETRY"]).into();
    }
    author.wake();
    author.take();
    author.complete(vec![command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", attributes)]);
    let request = author.started_by.clone();
    author.begun(&request);
    (author.is_repeated, author.is_retried) = (false, is_retried);
    super::clients::describe(author);
    if author.percent(40) {
        author.signal("early");
    }
    author.take();
    author.complete(Vec::new());
}
