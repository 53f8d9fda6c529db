//! Activities from their schedule to their end, whichever it is.

use serde_json::{Value, json};

use crate::generator::{Generator, QUEUE, WORKFLOW, command, failure, merged, payload, payloads};

type Course = fn(&mut Generator);

const COURSES: &[Course] = &[
    completed,
    completed_by_id,
    failed,
    failed_by_id,
    retried,
    exhausted,
    not_retryable,
    next_delay,
    start_to_close,
    heartbeat_lost,
    schedule_to_start,
    schedule_to_close,
    schedule_to_close_between_attempts,
    cancelled,
    lost_when_cancelled,
    cancelled_at_the_end,
    cancelled_by_id,
    cancelled_between_attempts,
    not_asked_to_cancel,
    while_task_is_held,
    answered_twice,
    eager,
];

/// One of all courses; the workflow has heard of the end, or is about to.
pub fn any(generator: &mut Generator) {
    generator.one_of(COURSES)(generator);
}

/// Schedules an activity and gives its id.
fn schedule(generator: &mut Generator, more: Value) -> String {
    let id = generator.fresh("a");
    generator.is_timely = true;
    generator.wake();
    let one = activity(&id, more);
    generator.turn(vec![one]);
    id
}

fn activity(id: &str, more: Value) -> Value {
    let attributes = json!({
        "activity_id": id,
        "activity_type": {"name": "charge"},
        "task_queue": {"name": QUEUE},
        "input": payloads(&["7"]),
        "header": {"fields": {"trace": payload("header")}},
        "start_to_close_timeout": "60s",
    });
    command("SCHEDULE_ACTIVITY_TASK", merged(attributes, more))
}

fn once() -> Value {
    json!({"retry_policy": {"maximum_attempts": 1}})
}

fn by_token(id: &str, more: Value) -> Value {
    let request = json!({"namespace": "default", "task_token": format!("@task {id}"), "identity": "worker"});
    merged(request, more)
}

fn by_id(generator: &mut Generator, id: &str, more: Value) -> Value {
    let run = if generator.is_first_run() && generator.percent(50) {
        format!("@run {WORKFLOW} 0")
    } else {
        String::new()
    };
    let request = json!({
        "namespace": "default", "workflow_id": WORKFLOW, "run_id": run, "activity_id": id, "identity": "worker",
    });
    merged(request, more)
}

fn describe(generator: &mut Generator) {
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn heartbeat(generator: &mut Generator, id: &str) {
    generator.call("RecordActivityTaskHeartbeat", by_token(id, json!({"details": payloads(&["half"])})));
}

/// The end is told to the workflow.
fn heard(generator: &mut Generator) {
    generator.happened();
    if generator.percent(50) {
        generator.turn(Vec::new());
    }
}

fn completed(generator: &mut Generator) {
    let id = schedule(generator, json!({"heartbeat_timeout": "20s"}));
    generator.poll_activity();
    if generator.percent(50) {
        heartbeat(generator, &id);
        describe(generator);
    }
    generator.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})));
    heard(generator);
}

fn completed_by_id(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    // It may be completed by its id before anybody has taken it.
    if generator.percent(70) {
        generator.poll_activity();
        if generator.percent(50) {
            let request = by_id(generator, &id, json!({"details": payloads(&["half"])}));
            generator.call("RecordActivityTaskHeartbeatById", request);
        }
    }
    let request = by_id(generator, &id, json!({"result": payloads(&["paid"])}));
    generator.call("RespondActivityTaskCompletedById", request);
    heard(generator);
}

fn failed(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    generator.poll_activity();
    let more = json!({"failure": failure("Declined", true), "last_heartbeat_details": payloads(&["half"])});
    generator.call("RespondActivityTaskFailed", by_token(&id, more));
    heard(generator);
}

fn failed_by_id(generator: &mut Generator) {
    let id = schedule(generator, once());
    if generator.percent(70) {
        generator.poll_activity();
    }
    let request = by_id(generator, &id, json!({"failure": failure("Declined", false)}));
    generator.call("RespondActivityTaskFailedById", request);
    heard(generator);
}

fn quick(attempts: i64) -> Value {
    json!({"retry_policy": {"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": attempts}})
}

fn retried(generator: &mut Generator) {
    let id = schedule(generator, quick(3));
    generator.poll_activity();
    if generator.percent(50) {
        heartbeat(generator, &id);
    }
    generator.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    describe(generator);
    generator.poll_activity();
    describe(generator);
    generator.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})));
    heard(generator);
}

fn exhausted(generator: &mut Generator) {
    let id = schedule(generator, quick(2));
    for _attempt in 0..2 {
        generator.poll_activity();
        generator
            .call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    }
    heard(generator);
}

fn not_retryable(generator: &mut Generator) {
    let policy = json!({"maximum_attempts": 5, "non_retryable_error_types": ["Final", "Other"]});
    let id = schedule(generator, json!({ "retry_policy": policy }));
    generator.poll_activity();
    let failure = match generator.dice.below(3) {
        0 => json!({"message": "cancelled", "canceled_failure_info": {"details": payloads(&["so"])}}),
        1 => json!({"message": "terminated", "terminated_failure_info": {}}),
        _ => failure("Final", false),
    };
    generator.call("RespondActivityTaskFailed", by_token(&id, json!({ "failure": failure })));
    if failure.get("application_failure_info").is_none() {
        // No worker may say so of its own.
        generator.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    }
    heard(generator);
}

/// The failure says when to try again, or the time is not enough to try again.
fn next_delay(generator: &mut Generator) {
    let is_in_time = generator.percent(60);
    let id = schedule(generator, merged(quick(4), json!({"schedule_to_close_timeout": "30s"})));
    generator.poll_activity();
    let mut failure = failure("Later", false);
    let delay = if is_in_time { "1s" } else { "3600s" };
    failure["application_failure_info"]["next_retry_delay"] = delay.into();
    generator.call("RespondActivityTaskFailed", by_token(&id, json!({ "failure": failure })));
    describe(generator);
    if is_in_time {
        generator.poll_activity();
        generator.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    }
    heard(generator);
}

fn timed_out(generator: &mut Generator) {
    generator.wait_for("EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT");
    heard(generator);
}

fn start_to_close(generator: &mut Generator) {
    let id = schedule(generator, merged(once(), json!({"start_to_close_timeout": "1s"})));
    generator.poll_activity();
    timed_out(generator);
    if generator.percent(40) {
        generator.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    }
}

fn heartbeat_lost(generator: &mut Generator) {
    let id = schedule(generator, merged(once(), json!({"heartbeat_timeout": "1s"})));
    generator.poll_activity();
    heartbeat(generator, &id);
    timed_out(generator);
}

fn schedule_to_start(generator: &mut Generator) {
    schedule(generator, json!({"schedule_to_start_timeout": "1s"}));
    timed_out(generator);
}

fn schedule_to_close(generator: &mut Generator) {
    let id = schedule(generator, json!({"schedule_to_close_timeout": "2s", "start_to_close_timeout": null}));
    match generator.dice.below(3) {
        0 => {}
        1 => generator.poll_activity(),
        _ => {
            generator.poll_activity();
            generator
                .call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
            generator.poll_activity();
        }
    }
    timed_out(generator);
}

/// There is time for another attempt, and nobody takes it.
fn schedule_to_close_between_attempts(generator: &mut Generator) {
    let id = schedule(generator, merged(quick(5), json!({"schedule_to_close_timeout": "3s"})));
    generator.poll_activity();
    generator.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    timed_out(generator);
}

/// Has an activity cancelled that a worker has; what happens then is the worker's.
fn ask_to_cancel(generator: &mut Generator, id: &str) {
    generator.wake();
    generator.turn(vec![command(
        "REQUEST_CANCEL_ACTIVITY_TASK",
        json!({"scheduled_event_id": format!("@scheduled {id}")}),
    )]);
}

fn cancelled(generator: &mut Generator) {
    let id = schedule(generator, json!({"heartbeat_timeout": "30s"}));
    generator.poll_activity();
    ask_to_cancel(generator, &id);
    describe(generator);
    heartbeat(generator, &id);
    match generator.dice.below(3) {
        0 => generator
            .call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)}))),
        1 => generator
            .call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])}))),
        _ => generator
            .call("RespondActivityTaskCanceled", by_token(&id, json!({"details": payloads(&["undone"])}))),
    }
    heard(generator);
}

/// Its worker was told to cancel it: there is no other attempt, however this one ends.
fn lost_when_cancelled(generator: &mut Generator) {
    let is_late = generator.percent(40);
    let timeout = if is_late { "2s" } else { "60s" };
    let id = schedule(generator, json!({"start_to_close_timeout": timeout}));
    generator.poll_activity();
    ask_to_cancel(generator, &id);
    if is_late {
        return timed_out(generator);
    }
    let failed = json!({"failure": failure("Busy", false)});
    match generator.percent(50) {
        true => generator.call("RespondActivityTaskFailed", by_token(&id, failed)),
        false => {
            let request = by_id(generator, &id, failed);
            generator.call("RespondActivityTaskFailedById", request);
        }
    }
    heard(generator);
}

/// The run closes with the task that cancels it.
fn cancelled_at_the_end(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    if generator.percent(60) {
        generator.poll_activity();
    }
    generator.wake();
    generator.turn(vec![
        command("REQUEST_CANCEL_ACTIVITY_TASK", json!({"scheduled_event_id": format!("@scheduled {id}")})),
        command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])})),
    ]);
    generator.ended(true);
}

fn cancelled_by_id(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    generator.poll_activity();
    ask_to_cancel(generator, &id);
    let request = by_id(generator, &id, json!({"details": payloads(&["undone"])}));
    generator.call("RespondActivityTaskCanceledById", request);
    heard(generator);
}

fn cancelled_between_attempts(generator: &mut Generator) {
    let policy = json!({"initial_interval": "600s", "maximum_attempts": 3});
    let id = schedule(generator, json!({"retry_policy": policy, "start_to_close_timeout": "2000s"}));
    generator.poll_activity();
    generator.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    ask_to_cancel(generator, &id);
    heard(generator);
}

fn not_asked_to_cancel(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    generator.poll_activity();
    generator.call("RespondActivityTaskCanceled", by_token(&id, json!({"details": payloads(&["undone"])})));
    generator.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    heard(generator);
}

/// The worker of the workflow hears of it only with the next task.
fn while_task_is_held(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    generator.poll_activity();
    generator.wake();
    generator.take();
    generator.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})));
    generator.happened();
    generator.signal("behind");
    match generator.percent(30) {
        // Its end lies ready already.
        true => ask_to_cancel_held(generator, &id),
        false => generator.complete(Vec::new()),
    }
}

fn ask_to_cancel_held(generator: &mut Generator, id: &str) {
    generator.complete(vec![command(
        "REQUEST_CANCEL_ACTIVITY_TASK",
        json!({"scheduled_event_id": format!("@scheduled {id}")}),
    )]);
}

fn answered_twice(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    generator.poll_activity();
    generator.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    let method = generator.one_of(&[
        "RespondActivityTaskCompleted",
        "RespondActivityTaskFailed",
        "RespondActivityTaskCanceled",
        "RecordActivityTaskHeartbeat",
    ]);
    generator.call(method, by_token(&id, json!({})));
    heard(generator);
}

/// The worker would take it with the answer; a server may give it, or queue it.
fn eager(generator: &mut Generator) {
    let id = generator.fresh("a");
    generator.wake();
    generator.turn(vec![activity(&id, json!({"request_eager_execution": true}))]);
    generator.poll_activity();
    generator.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    heard(generator);
}
