//! Runs that begin again by a schedule: chains of them, and a first one that is far away.

use serde_json::{Value, json};

use crate::generator::{Generator, WORKFLOW, command, failure, merged, payloads};

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

fn describe(generator: &mut Generator) {
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn end_of_run(generator: &mut Generator) -> Value {
    match generator.dice.below(6) {
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
pub fn chain(generator: &mut Generator) {
    generator.is_delayed = true;
    let mut more = json!({ "cron_schedule": CLOSELY });
    if generator.percent(25) {
        let policy = json!({"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": 2});
        more["retry_policy"] = policy;
    }
    if generator.percent(25) {
        more["last_completion_result"] = payloads(&["of before"]);
    }
    if generator.percent(30) {
        more = merged(more, json!({"memo": {"fields": {"note": {"data": "\"memo\""}}}}));
    }
    if generator.percent(70) {
        super::starts::with(generator, more);
    } else {
        super::starts::signalled_with(generator, merged(more, json!({"last_completion_result": null})));
    }
    (generator.is_repeated, generator.is_repeated_first) = (true, true);
    for _run in 0..generator.dice.span(2, 3) {
        generator.take();
        let last = end_of_run(generator);
        generator.complete(vec![last]);
        let request = generator.started_by.clone();
        generator.begun(&request);
    }
    finish(generator);
}

fn finish(generator: &mut Generator) {
    match generator.dice.below(4) {
        0 => super::clients::terminate_now(generator),
        1 => {
            generator.take();
            generator.complete(vec![command("CANCEL_WORKFLOW_EXECUTION", json!({}))]);
            generator.ended(false);
        }
        2 => {
            generator.signal("early");
            generator.take();
            generator.complete(Vec::new());
            super::clients::terminate_now(generator);
        }
        _ => {
            super::clients::cancel_now(generator);
            generator.take();
            generator.complete(vec![command(
                "CANCEL_WORKFLOW_EXECUTION",
                json!({"details": payloads(&["over"])}),
            )]);
            generator.ended(false);
        }
    }
}

/// Each run ends by its timeout.
pub fn timed_out(generator: &mut Generator) {
    (generator.is_delayed, generator.is_short) = (true, true);
    super::starts::with(generator, json!({"cron_schedule": CLOSELY, "workflow_run_timeout": "2s"}));
    (generator.is_repeated, generator.is_repeated_first) = (true, true);
    if generator.percent(50) {
        generator.turn(Vec::new());
    }
    // The first task of the second run.
    let request = generator.started_by.clone();
    generator.begun(&request);
    generator.take();
    generator
        .complete(vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["in time"])}))]);
    super::clients::terminate_now(generator);
}

/// Nothing happens for long, but for what clients do.
pub fn far_away(generator: &mut Generator) {
    let schedule = generator.one_of(FAR);
    let more = if generator.percent(30) { json!({"workflow_execution_timeout": "7200s"}) } else { json!({}) };
    super::starts::with(generator, merged(more, json!({ "cron_schedule": schedule })));
    describe(generator);
    if generator.percent(50) {
        let task = generator.task;
        generator.signal("early");
        generator.task = task;
    }
    if generator.percent(40) {
        super::clients::cancel_now(generator);
        describe(generator);
    }
    if generator.percent(30) {
        // There is no task yet to go back to.
        generator.call(
            "ResetWorkflowExecution",
            json!({
                "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "reason": "once more",
                "request_id": "~reset", "workflow_task_finish_event_id": 2,
            }),
        );
    }
    super::clients::terminate_now(generator);
}
