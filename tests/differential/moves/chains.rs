//! Runs that follow one another by a policy.

use serde_json::json;

use crate::generator::{Generator, command, failure, payload, payloads};

/// Fails and is tried again, until it succeeds or has no attempt left.
pub fn retried(generator: &mut Generator) {
    generator.is_delayed = true;
    let attempts = generator.dice.span(2, 3);
    let policy = json!({
        "initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": attempts,
        "non_retryable_error_types": ["Final"],
    });
    super::starts::with(generator, json!({ "retry_policy": policy }));
    generator.is_retried = true;
    for attempt in 1..=attempts {
        let kind = if generator.percent(15) { "Final" } else { "Busy" };
        let last = command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure(kind, false)}));
        generator.take();
        generator.complete(vec![last]);
        if kind == "Final" || attempt == attempts {
            return generator.ended(false);
        }
        let request = generator.started_by.clone();
        generator.begun(&request);
        super::clients::describe(generator);
        if generator.percent(30) {
            generator.take();
            return generator.complete(Vec::new());
        }
    }
}

/// Attempts that end by the timeout of their run, the last of them for good.
pub fn timed_out(generator: &mut Generator) {
    (generator.is_delayed, generator.is_short) = (true, true);
    let policy = json!({"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": 2});
    super::starts::with(generator, json!({"retry_policy": policy, "workflow_run_timeout": "2s"}));
    match generator.dice.below(3) {
        0 => {}
        1 => generator.take(),
        _ => generator.turn(Vec::new()),
    }
    // The next attempt has its first task.
    let request = generator.started_by.clone();
    generator.begun(&request);
    generator.take();
    if generator.percent(50) {
        generator.complete(vec![command(
            "COMPLETE_WORKFLOW_EXECUTION",
            json!({"result": payloads(&["in time"])}),
        )]);
        return generator.ended(true);
    }
    generator.wait_for("EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT");
    generator.ended(false);
}

/// All attempts together have so much time and no more.
pub fn out_of_time(generator: &mut Generator) {
    let policy = json!({"initial_interval": "7200s", "maximum_attempts": 5});
    super::starts::with(generator, json!({"retry_policy": policy, "workflow_execution_timeout": "3600s"}));
    generator.take();
    generator.complete(vec![command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Busy", false)}))]);
    generator.ended(false);
    super::clients::describe(generator);
}

/// The next run waits before its first task, and begins with all that a run can leave.
pub fn continued_later(generator: &mut Generator) {
    generator.is_delayed = true;
    let mut attributes = json!({"input": payloads(&["next"]), "backoff_start_interval": "2s"});
    if generator.percent(50) {
        attributes["failure"] = failure("Behind", false);
        attributes["last_completion_result"] = payloads(&["so far"]);
    }
    let is_retried = generator.percent(50);
    if is_retried {
        attributes["retry_policy"] = json!({"initial_interval": "2s", "maximum_attempts": 3});
        attributes["memo"] = json!({"fields": {"note": payload("next")}});
    }
    if generator.percent(30) {
        attributes["initiator"] = generator
            .one_of(&["CONTINUE_AS_NEW_INITIATOR_WORKFLOW", "CONTINUE_AS_NEW_INITIATOR_RETRY"])
            .into();
    }
    generator.wake();
    generator.take();
    generator.complete(vec![command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", attributes)]);
    let request = generator.started_by.clone();
    generator.begun(&request);
    (generator.is_repeated, generator.is_retried) = (false, is_retried);
    super::clients::describe(generator);
    if generator.percent(40) {
        generator.signal("early");
    }
    generator.take();
    generator.complete(Vec::new());
}
