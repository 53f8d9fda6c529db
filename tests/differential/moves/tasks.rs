//! Workflow tasks: taken, completed, failed, timed out, answered too late.

use serde_json::{Value, json};

use crate::author::{
    Author, End, IDLE, QUEUE, STICKY, Task, WORKFLOW, command, failure, merged, payload, payloads,
};

const CAUSES: &[&str] = &[
    "WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE",
    "WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR",
    "WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
    "WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED",
];

/// Something a workflow may ask for in any task; of its activities so many were there before the task.
fn harmless(author: &mut Author, activities: &mut usize) -> Value {
    let name = author.fresh("n");
    let one = match author.dice.below(8) {
        0 => marker(author, &name),
        1 => {
            author.timers.push(name.clone());
            command("START_TIMER", json!({"timer_id": name, "start_to_fire_timeout": "3600s"}))
        }
        2 | 3 if !author.timers.is_empty() => {
            let at = author.dice.index(author.timers.len());
            command("CANCEL_TIMER", json!({"timer_id": author.timers.remove(at)}))
        }
        4 if *activities > 0 => {
            let at = author.dice.index(*activities);
            *activities -= 1;
            let id = format!("@scheduled {}", author.activities.remove(at));
            // The workflow hears of it at once.
            author.has_news = true;
            command("REQUEST_CANCEL_ACTIVITY_TASK", json!({"scheduled_event_id": id}))
        }
        5 => command("MODIFY_WORKFLOW_PROPERTIES", json!({"upserted_memo": memo(author)})),
        6 => upsert(author),
        _ => {
            author.activities.push(name.clone());
            idle_activity(author, &name)
        }
    };
    match author.percent(15) {
        true => {
            merged(one, json!({"user_metadata": {"summary": payload("short"), "details": payload("long")}}))
        }
        false => one,
    }
}

fn marker(author: &mut Author, name: &str) -> Value {
    let mut attributes = json!({
        "marker_name": name,
        "details": {"data": payloads(&["1"]), "more": payloads(&["2", "3"])},
    });
    if author.percent(30) {
        attributes["header"] = json!({"fields": {"trace": payload("header")}});
    }
    if author.percent(30) {
        attributes["failure"] = failure("Marked", false);
    }
    command("RECORD_MARKER", attributes)
}

fn memo(author: &mut Author) -> Value {
    let mut fields = json!({"note": payload("changed")});
    match author.dice.below(3) {
        0 => fields["more"] = payload("added"),
        1 => fields["note"] = json!({"metadata": {"encoding": "binary/null"}}),
        _ => {}
    }
    json!({ "fields": fields })
}

fn upsert(author: &mut Author) -> Value {
    let value = match author.dice.below(4) {
        0 => json!({"metadata": {"encoding": "binary/null"}}),
        1 => json!({"metadata": {"encoding": "json/plain"}, "data": "[]"}),
        2 => json!({"metadata": {"encoding": "json/plain"}, "data": "\"blue\""}),
        _ => json!({"metadata": {"encoding": "json/plain", "type": "Keyword"}, "data": "\"green\""}),
    };
    let fields = json!({"indexed_fields": {"CustomKeywordField": value}});
    command("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", json!({ "search_attributes": fields }))
}

/// An activity that nobody takes, with timeouts of every kind.
fn idle_activity(author: &mut Author, id: &str) -> Value {
    let mut attributes = json!({
        "activity_id": id,
        "activity_type": {"name": "idle"},
        "task_queue": {"name": IDLE},
        "input": payloads(&["in"]),
    });
    let timeouts: &[(&str, &str)] = match author.dice.below(5) {
        0 => &[("start_to_close_timeout", "100s")],
        1 => &[("schedule_to_close_timeout", "900s")],
        2 => &[("schedule_to_close_timeout", "900s"), ("start_to_close_timeout", "1000s")],
        3 => &[
            ("schedule_to_start_timeout", "800s"),
            ("start_to_close_timeout", "50s"),
            ("heartbeat_timeout", "60s"),
        ],
        _ => &[("schedule_to_close_timeout", "7200s"), ("heartbeat_timeout", "7s")],
    };
    for (field, timeout) in timeouts {
        attributes[*field] = (*timeout).into();
    }
    match author.dice.below(4) {
        0 => attributes["retry_policy"] = json!({"maximum_attempts": 3}),
        1 => {
            attributes["retry_policy"] = json!({
                "initial_interval": "2s", "backoff_coefficient": 1.5, "maximum_interval": "20s",
                "maximum_attempts": 4, "non_retryable_error_types": ["Final"],
            });
        }
        2 => attributes["header"] = json!({"fields": {"trace": payload("header")}}),
        _ => {}
    }
    command("SCHEDULE_ACTIVITY_TASK", attributes)
}

fn some_harmless(author: &mut Author) -> Vec<Value> {
    let mut activities = author.activities.len();
    (0..author.dice.below(4)).map(|_| harmless(author, &mut activities)).collect()
}

pub fn take(author: &mut Author) {
    author.take();
}

pub fn complete(author: &mut Author) {
    let commands = some_harmless(author);
    // A worker that keeps the run no longer.
    author.is_sticky &= !author.percent(10);
    let more = match author.dice.below(6) {
        0 => json!({
            "sdk_metadata": {"core_used_flags": [1, 3], "sdk_name": "some", "sdk_version": "1.2.3"},
            "metering_metadata": {"nonfirst_local_activity_execution_attempts": 2},
        }),
        1 => json!({"binary_checksum": "build-1"}),
        2 => json!({"worker_version_stamp": {"build_id": "build-2"}}),
        _ => json!({}),
    };
    author.complete_with(commands, more);
}

pub fn turn(author: &mut Author) {
    author.wake();
    author.take();
    complete(author);
}

/// Something happens while the worker has the task.
pub fn turn_with_news(author: &mut Author) {
    author.wake();
    author.take();
    for _ in 0..=author.dice.below(3) {
        author.signal("meanwhile");
    }
    if author.percent(30) {
        super::clients::describe(author);
    }
    complete(author);
}

/// Asks for another task at once, in the answer or in the queue.
pub fn heartbeat(author: &mut Author) {
    author.wake();
    author.take();
    let is_returned = author.percent(60);
    let commands = if author.percent(50) { Vec::new() } else { some_harmless(author) };
    let more = json!({"force_create_new_workflow_task": true, "return_new_workflow_task": is_returned});
    author.complete_with(commands, more);
    author.task = if is_returned { Task::Held } else { Task::Scheduled };
}

pub fn fail(author: &mut Author) {
    author.wake();
    author.take();
    if author.percent(25) {
        author.signal("meanwhile");
    }
    let cause = author.one_of(CAUSES);
    author.call(
        "RespondWorkflowTaskFailed",
        json!({
            "namespace": "default",
            "task_token": format!("@task {WORKFLOW}"),
            "cause": cause,
            "failure": failure("Broken", false),
            "identity": "worker",
        }),
    );
    author.task_lost(End::Failed);
    super::clients::describe(author);
}

/// Nobody answers: the task is made again.
pub fn time_out(author: &mut Author) {
    author.wake();
    author.take();
    if author.percent(40) {
        author.signal("meanwhile");
    }
    if author.attempt == 1 {
        author.wait_for("EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT");
    }
    author.task_lost(End::TimedOut);
    author.take();
    super::clients::describe(author);
}

/// The worker of the sticky queue is gone.
pub fn sticky_time_out(author: &mut Author) {
    author.wake();
    author.take();
    let request = author.completion(
        Vec::new(),
        json!({
            "sticky_attributes": {
                "worker_task_queue": {"name": STICKY, "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": QUEUE},
                "schedule_to_start_timeout": "1s",
            },
        }),
    );
    author.call("RespondWorkflowTaskCompleted", request);
    author.task = Task::None;
    author.signal("for nobody");
    author.wait_for("EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT");
    author.poll(json!({"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}));
    author.task = Task::Held;
}

/// A token that has been answered, or that names a task of before.
pub fn stale(author: &mut Author) {
    author.wake();
    author.take();
    let token = match author.dice.below(3) {
        0 => format!("@former {WORKFLOW}"),
        1 => "hex:0a0b".to_owned(),
        _ => {
            author.complete(Vec::new());
            format!("@task {WORKFLOW}")
        }
    };
    let marker = command("RECORD_MARKER", json!({"marker_name": "late"}));
    // A worker that comes too late is asked no more, here.
    let more = json!({ "task_token": token, "sticky_attributes": null });
    let request = author.completion(vec![marker], more);
    match author.percent(70) {
        true => author.call("RespondWorkflowTaskCompleted", request),
        false => {
            let request = json!({"namespace": "default", "task_token": token, "identity": "worker"});
            author.call("RespondWorkflowTaskFailed", request);
        }
    }
}

pub fn empty_poll(author: &mut Author) {
    author.poll(json!({"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}));
}
