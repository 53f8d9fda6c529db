//! Runs that begin again by a schedule: chains of them, and a first one that is far away.

use serde_json::{Value, json};

use crate::author::{Author, WORKFLOW, command, failure, merged, payloads};

/// A day that comes once in four years, so that nobody plays in its hours.
const FAR: &[&str] = &["30 4 29 2 *", "CRON_TZ=Europe/Berlin 30 4 29 2 *", "TZ=America/New_York 30 4 29 2 *"];
const CLOSELY: &str = "@every 1s";

/// What no schedule is.
pub const BAD: &[&str] = &[
    "every day",
    "61 * * * *",
    "* * * *",
    "* * * * * * *",
    "@every",
    "@every day",
    "@sometimes",
    "CRON_TZ=Nowhere/City 0 0 * * *",
    "0 0 * * MOO",
];

fn describe(author: &mut Author) {
    author.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn end_of_run(author: &mut Author) -> Value {
    match author.dice.below(6) {
        0 | 1 => command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["so far"])})),
        2 => command("COMPLETE_WORKFLOW_EXECUTION", json!({})),
        3 => command(
            "CONTINUE_AS_NEW_WORKFLOW_EXECUTION",
            json!({
                "input": payloads(&["next"]), "cron_schedule": CLOSELY,
            }),
        ),
        _ => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Busy", false)})),
    }
}

/// Several runs, each with what the one before has left.
pub fn chain(author: &mut Author) {
    author.is_delayed = true;
    let mut more = json!({ "cron_schedule": CLOSELY });
    if author.percent(25) {
        let policy = json!({"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": 2});
        more["retry_policy"] = policy;
    }
    if author.percent(25) {
        more["last_completion_result"] = payloads(&["of before"]);
    }
    if author.percent(30) {
        more = merged(more, json!({"memo": {"fields": {"note": {"data": "\"memo\""}}}}));
    }
    if author.percent(70) {
        super::starts::with(author, more);
    } else {
        super::starts::signalled_with(author, merged(more, json!({"last_completion_result": null})));
    }
    (author.is_repeated, author.is_repeated_first) = (true, true);
    for _run in 0..author.dice.span(2, 3) {
        author.take();
        let last = end_of_run(author);
        author.complete(vec![last]);
        let request = author.started_by.clone();
        author.begun(&request);
    }
    finish(author);
}

fn finish(author: &mut Author) {
    match author.dice.below(4) {
        0 => super::clients::terminate_now(author),
        1 => {
            author.take();
            author.complete(vec![command("CANCEL_WORKFLOW_EXECUTION", json!({}))]);
            author.ended(false);
        }
        2 => {
            author.signal("early");
            author.take();
            author.complete(Vec::new());
            super::clients::terminate_now(author);
        }
        _ => {
            super::clients::cancel_now(author);
            author.take();
            author.complete(vec![command(
                "CANCEL_WORKFLOW_EXECUTION",
                json!({"details": payloads(&["over"])}),
            )]);
            author.ended(false);
        }
    }
}

/// Each run ends by its timeout.
pub fn timed_out(author: &mut Author) {
    (author.is_delayed, author.is_short) = (true, true);
    super::starts::with(author, json!({"cron_schedule": CLOSELY, "workflow_run_timeout": "2s"}));
    (author.is_repeated, author.is_repeated_first) = (true, true);
    if author.percent(50) {
        author.turn(Vec::new());
    }
    // The first task of the second run.
    let request = author.started_by.clone();
    author.begun(&request);
    author.take();
    author.complete(vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["in time"])}))]);
    super::clients::terminate_now(author);
}

/// Nothing happens for long, but for what clients do.
pub fn far_away(author: &mut Author) {
    let schedule = author.one_of(FAR);
    let more = if author.percent(30) { json!({"workflow_execution_timeout": "7200s"}) } else { json!({}) };
    super::starts::with(author, merged(more, json!({ "cron_schedule": schedule })));
    describe(author);
    if author.percent(50) {
        let task = author.task;
        author.signal("early");
        author.task = task;
    }
    if author.percent(40) {
        super::clients::cancel_now(author);
        describe(author);
    }
    if author.percent(30) {
        // There is no task yet to go back to.
        author.call(
            "ResetWorkflowExecution",
            json!({
                "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "reason": "once more",
                "request_id": "~reset", "workflow_task_finish_event_id": 2,
            }),
        );
    }
    super::clients::terminate_now(author);
}
