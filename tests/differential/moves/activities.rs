//! Activities from their schedule to their end, whichever it is.

use serde_json::{Value, json};

use crate::author::{Author, QUEUE, WORKFLOW, command, failure, merged, payload, payloads};

type Course = fn(&mut Author);

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
pub fn any(author: &mut Author) {
    author.one_of(COURSES)(author);
}

/// Schedules an activity and gives its id.
fn schedule(author: &mut Author, more: Value) -> String {
    let id = author.fresh("a");
    author.is_timely = true;
    author.wake();
    let one = activity(&id, more);
    author.turn(vec![one]);
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

fn by_id(author: &mut Author, id: &str, more: Value) -> Value {
    let run = if author.is_first_run() && author.percent(50) {
        format!("@run {WORKFLOW} 0")
    } else {
        String::new()
    };
    let request = json!({
        "namespace": "default", "workflow_id": WORKFLOW, "run_id": run, "activity_id": id, "identity": "worker",
    });
    merged(request, more)
}

fn describe(author: &mut Author) {
    author.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn heartbeat(author: &mut Author, id: &str) {
    author.call("RecordActivityTaskHeartbeat", by_token(id, json!({"details": payloads(&["half"])})));
}

/// The end is told to the workflow.
fn heard(author: &mut Author) {
    author.happened();
    if author.percent(50) {
        author.turn(Vec::new());
    }
}

fn completed(author: &mut Author) {
    let id = schedule(author, json!({"heartbeat_timeout": "20s"}));
    author.poll_activity();
    if author.percent(50) {
        heartbeat(author, &id);
        describe(author);
    }
    author.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})));
    heard(author);
}

fn completed_by_id(author: &mut Author) {
    let id = schedule(author, json!({}));
    // It may be completed by its id before anybody has taken it.
    if author.percent(70) {
        author.poll_activity();
        if author.percent(50) {
            let request = by_id(author, &id, json!({"details": payloads(&["half"])}));
            author.call("RecordActivityTaskHeartbeatById", request);
        }
    }
    let request = by_id(author, &id, json!({"result": payloads(&["paid"])}));
    author.call("RespondActivityTaskCompletedById", request);
    heard(author);
}

fn failed(author: &mut Author) {
    let id = schedule(author, json!({}));
    author.poll_activity();
    let more = json!({"failure": failure("Declined", true), "last_heartbeat_details": payloads(&["half"])});
    author.call("RespondActivityTaskFailed", by_token(&id, more));
    heard(author);
}

fn failed_by_id(author: &mut Author) {
    let id = schedule(author, once());
    if author.percent(70) {
        author.poll_activity();
    }
    let request = by_id(author, &id, json!({"failure": failure("Declined", false)}));
    author.call("RespondActivityTaskFailedById", request);
    heard(author);
}

fn quick(attempts: i64) -> Value {
    json!({"retry_policy": {"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": attempts}})
}

fn retried(author: &mut Author) {
    let id = schedule(author, quick(3));
    author.poll_activity();
    if author.percent(50) {
        heartbeat(author, &id);
    }
    author.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    describe(author);
    author.poll_activity();
    describe(author);
    author.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})));
    heard(author);
}

fn exhausted(author: &mut Author) {
    let id = schedule(author, quick(2));
    for _attempt in 0..2 {
        author.poll_activity();
        author.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    }
    heard(author);
}

fn not_retryable(author: &mut Author) {
    let policy = json!({"maximum_attempts": 5, "non_retryable_error_types": ["Final", "Other"]});
    let id = schedule(author, json!({ "retry_policy": policy }));
    author.poll_activity();
    let failure = match author.dice.below(3) {
        0 => json!({"message": "cancelled", "canceled_failure_info": {"details": payloads(&["so"])}}),
        1 => json!({"message": "terminated", "terminated_failure_info": {}}),
        _ => failure("Final", false),
    };
    author.call("RespondActivityTaskFailed", by_token(&id, json!({ "failure": failure })));
    if failure.get("application_failure_info").is_none() {
        // No worker may say so of its own.
        author.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    }
    heard(author);
}

/// The failure says when to try again, or the time is not enough to try again.
fn next_delay(author: &mut Author) {
    let is_in_time = author.percent(60);
    let id = schedule(author, merged(quick(4), json!({"schedule_to_close_timeout": "30s"})));
    author.poll_activity();
    let mut failure = failure("Later", false);
    let delay = if is_in_time { "1s" } else { "3600s" };
    failure["application_failure_info"]["next_retry_delay"] = delay.into();
    author.call("RespondActivityTaskFailed", by_token(&id, json!({ "failure": failure })));
    describe(author);
    if is_in_time {
        author.poll_activity();
        author.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    }
    heard(author);
}

fn timed_out(author: &mut Author) {
    author.wait_for("EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT");
    heard(author);
}

fn start_to_close(author: &mut Author) {
    let id = schedule(author, merged(once(), json!({"start_to_close_timeout": "1s"})));
    author.poll_activity();
    timed_out(author);
    if author.percent(40) {
        author.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    }
}

fn heartbeat_lost(author: &mut Author) {
    let id = schedule(author, merged(once(), json!({"heartbeat_timeout": "1s"})));
    author.poll_activity();
    heartbeat(author, &id);
    timed_out(author);
}

fn schedule_to_start(author: &mut Author) {
    schedule(author, json!({"schedule_to_start_timeout": "1s"}));
    timed_out(author);
}

fn schedule_to_close(author: &mut Author) {
    let id = schedule(author, json!({"schedule_to_close_timeout": "2s", "start_to_close_timeout": null}));
    match author.dice.below(3) {
        0 => {}
        1 => author.poll_activity(),
        _ => {
            author.poll_activity();
            author
                .call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
            author.poll_activity();
        }
    }
    timed_out(author);
}

/// There is time for another attempt, and nobody takes it.
fn schedule_to_close_between_attempts(author: &mut Author) {
    let id = schedule(author, merged(quick(5), json!({"schedule_to_close_timeout": "3s"})));
    author.poll_activity();
    author.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    timed_out(author);
}

/// Has an activity cancelled that a worker has; what happens then is the worker's.
fn ask_to_cancel(author: &mut Author, id: &str) {
    author.wake();
    author.turn(vec![command(
        "REQUEST_CANCEL_ACTIVITY_TASK",
        json!({"scheduled_event_id": format!("@scheduled {id}")}),
    )]);
}

fn cancelled(author: &mut Author) {
    let id = schedule(author, json!({"heartbeat_timeout": "30s"}));
    author.poll_activity();
    ask_to_cancel(author, &id);
    describe(author);
    heartbeat(author, &id);
    match author.dice.below(3) {
        0 => author
            .call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)}))),
        1 => {
            author.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})))
        }
        _ => author
            .call("RespondActivityTaskCanceled", by_token(&id, json!({"details": payloads(&["undone"])}))),
    }
    heard(author);
}

/// Its worker was told to cancel it: there is no other attempt, however this one ends.
fn lost_when_cancelled(author: &mut Author) {
    let is_late = author.percent(40);
    let timeout = if is_late { "2s" } else { "60s" };
    let id = schedule(author, json!({"start_to_close_timeout": timeout}));
    author.poll_activity();
    ask_to_cancel(author, &id);
    if is_late {
        return timed_out(author);
    }
    let failed = json!({"failure": failure("Busy", false)});
    match author.percent(50) {
        true => author.call("RespondActivityTaskFailed", by_token(&id, failed)),
        false => {
            let request = by_id(author, &id, failed);
            author.call("RespondActivityTaskFailedById", request);
        }
    }
    heard(author);
}

/// The run closes with the task that cancels it.
fn cancelled_at_the_end(author: &mut Author) {
    let id = schedule(author, json!({}));
    if author.percent(60) {
        author.poll_activity();
    }
    author.wake();
    author.turn(vec![
        command("REQUEST_CANCEL_ACTIVITY_TASK", json!({"scheduled_event_id": format!("@scheduled {id}")})),
        command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])})),
    ]);
    author.ended(true);
}

fn cancelled_by_id(author: &mut Author) {
    let id = schedule(author, json!({}));
    author.poll_activity();
    ask_to_cancel(author, &id);
    let request = by_id(author, &id, json!({"details": payloads(&["undone"])}));
    author.call("RespondActivityTaskCanceledById", request);
    heard(author);
}

fn cancelled_between_attempts(author: &mut Author) {
    let policy = json!({"initial_interval": "600s", "maximum_attempts": 3});
    let id = schedule(author, json!({"retry_policy": policy, "start_to_close_timeout": "2000s"}));
    author.poll_activity();
    author.call("RespondActivityTaskFailed", by_token(&id, json!({"failure": failure("Busy", false)})));
    ask_to_cancel(author, &id);
    heard(author);
}

fn not_asked_to_cancel(author: &mut Author) {
    let id = schedule(author, json!({}));
    author.poll_activity();
    author.call("RespondActivityTaskCanceled", by_token(&id, json!({"details": payloads(&["undone"])})));
    author.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    heard(author);
}

/// The worker of the workflow hears of it only with the next task.
fn while_task_is_held(author: &mut Author) {
    let id = schedule(author, json!({}));
    author.poll_activity();
    author.wake();
    author.take();
    author.call("RespondActivityTaskCompleted", by_token(&id, json!({"result": payloads(&["paid"])})));
    author.happened();
    author.signal("behind");
    match author.percent(30) {
        // Its end lies ready already.
        true => ask_to_cancel_held(author, &id),
        false => author.complete(Vec::new()),
    }
}

fn ask_to_cancel_held(author: &mut Author, id: &str) {
    author.complete(vec![command(
        "REQUEST_CANCEL_ACTIVITY_TASK",
        json!({"scheduled_event_id": format!("@scheduled {id}")}),
    )]);
}

fn answered_twice(author: &mut Author) {
    let id = schedule(author, json!({}));
    author.poll_activity();
    author.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    let method = author.one_of(&[
        "RespondActivityTaskCompleted",
        "RespondActivityTaskFailed",
        "RespondActivityTaskCanceled",
        "RecordActivityTaskHeartbeat",
    ]);
    author.call(method, by_token(&id, json!({})));
    heard(author);
}

/// The worker would take it with the answer; a server may give it, or queue it.
fn eager(author: &mut Author) {
    let id = author.fresh("a");
    author.wake();
    author.turn(vec![activity(&id, json!({"request_eager_execution": true}))]);
    author.poll_activity();
    author.call("RespondActivityTaskCompleted", by_token(&id, json!({})));
    heard(author);
}
