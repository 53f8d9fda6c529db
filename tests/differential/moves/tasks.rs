//! Workflow tasks: taken, completed, failed, timed out, answered too late.

use serde_json::{Value, json};

use crate::generator::{
    End, Generator, IDLE, QUEUE, STICKY, Task, WORKFLOW, command, failure, merged, payload, payloads,
};

const CAUSES: &[&str] = &[
    "WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE",
    "WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR",
    "WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
    "WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED",
];

/// Something a workflow may ask for in any task; of its activities so many were there before the task.
fn harmless(generator: &mut Generator, activities: &mut usize) -> Value {
    let name = generator.fresh("n");
    let one = match generator.dice.below(8) {
        0 => marker(generator, &name),
        1 => {
            generator.timers.push(name.clone());
            command("START_TIMER", json!({"timer_id": name, "start_to_fire_timeout": "3600s"}))
        }
        2 | 3 if !generator.timers.is_empty() => {
            let at = generator.dice.index(generator.timers.len());
            command("CANCEL_TIMER", json!({"timer_id": generator.timers.remove(at)}))
        }
        4 if *activities > 0 => {
            let at = generator.dice.index(*activities);
            *activities -= 1;
            let id = format!("@scheduled {}", generator.activities.remove(at));
            // The workflow hears of it at once.
            generator.has_news = true;
            command("REQUEST_CANCEL_ACTIVITY_TASK", json!({"scheduled_event_id": id}))
        }
        5 => command("MODIFY_WORKFLOW_PROPERTIES", json!({"upserted_memo": memo(generator)})),
        6 => upsert(generator),
        _ => {
            generator.activities.push(name.clone());
            idle_activity(generator, &name)
        }
    };
    match generator.percent(15) {
        true => {
            merged(one, json!({"user_metadata": {"summary": payload("short"), "details": payload("long")}}))
        }
        false => one,
    }
}

fn marker(generator: &mut Generator, name: &str) -> Value {
    let mut attributes = json!({
        "marker_name": name,
        "details": {"data": payloads(&["1"]), "more": payloads(&["2", "3"])},
    });
    if generator.percent(30) {
        attributes["header"] = json!({"fields": {"trace": payload("header")}});
    }
    if generator.percent(30) {
        attributes["failure"] = failure("Marked", false);
    }
    command("RECORD_MARKER", attributes)
}

fn memo(generator: &mut Generator) -> Value {
    let mut fields = json!({"note": payload("changed")});
    match generator.dice.below(3) {
        0 => fields["more"] = payload("added"),
        1 => fields["note"] = json!({"metadata": {"encoding": "binary/null"}}),
        _ => {}
    }
    json!({ "fields": fields })
}

fn upsert(generator: &mut Generator) -> Value {
    let value = match generator.dice.below(4) {
        0 => json!({"metadata": {"encoding": "binary/null"}}),
        1 => json!({"metadata": {"encoding": "json/plain"}, "data": "[]"}),
        2 => json!({"metadata": {"encoding": "json/plain"}, "data": "\"blue\""}),
        _ => json!({"metadata": {"encoding": "json/plain", "type": "Keyword"}, "data": "\"green\""}),
    };
    let fields = json!({"indexed_fields": {"CustomKeywordField": value}});
    command("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", json!({ "search_attributes": fields }))
}

/// An activity that nobody takes, with timeouts of every kind.
fn idle_activity(generator: &mut Generator, id: &str) -> Value {
    let mut attributes = json!({
        "activity_id": id,
        "activity_type": {"name": "idle"},
        "task_queue": {"name": IDLE},
        "input": payloads(&["in"]),
    });
    let timeouts: &[(&str, &str)] = match generator.dice.below(5) {
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
    match generator.dice.below(4) {
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

fn some_harmless(generator: &mut Generator) -> Vec<Value> {
    let mut activities = generator.activities.len();
    (0..generator.dice.below(4)).map(|_| harmless(generator, &mut activities)).collect()
}

pub fn take(generator: &mut Generator) {
    generator.take();
}

pub fn complete(generator: &mut Generator) {
    let commands = some_harmless(generator);
    // A worker that keeps the run no longer.
    generator.is_sticky &= !generator.percent(10);
    let more = match generator.dice.below(6) {
        0 => json!({
            "sdk_metadata": {"core_used_flags": [1, 3], "sdk_name": "some", "sdk_version": "1.2.3"},
            "metering_metadata": {"nonfirst_local_activity_execution_attempts": 2},
        }),
        1 => json!({"binary_checksum": "build-1"}),
        2 => json!({"worker_version_stamp": {"build_id": "build-2"}}),
        _ => json!({}),
    };
    generator.complete_with(commands, more);
}

pub fn turn(generator: &mut Generator) {
    generator.wake();
    generator.take();
    complete(generator);
}

/// Something happens while the worker has the task.
pub fn turn_with_news(generator: &mut Generator) {
    generator.wake();
    generator.take();
    for _ in 0..=generator.dice.below(3) {
        generator.signal("meanwhile");
    }
    if generator.percent(30) {
        super::clients::describe(generator);
    }
    complete(generator);
}

/// Asks for another task at once, in the answer or in the queue.
pub fn heartbeat(generator: &mut Generator) {
    generator.wake();
    generator.take();
    let is_returned = generator.percent(60);
    let commands = if generator.percent(50) { Vec::new() } else { some_harmless(generator) };
    let more = json!({"force_create_new_workflow_task": true, "return_new_workflow_task": is_returned});
    generator.complete_with(commands, more);
    generator.task = if is_returned { Task::Held } else { Task::Scheduled };
}

pub fn fail(generator: &mut Generator) {
    generator.wake();
    generator.take();
    if generator.percent(25) {
        generator.signal("meanwhile");
    }
    let cause = generator.one_of(CAUSES);
    generator.call(
        "RespondWorkflowTaskFailed",
        json!({
            "namespace": "default",
            "task_token": format!("@task {WORKFLOW}"),
            "cause": cause,
            "failure": failure("Broken", false),
            "identity": "worker",
        }),
    );
    generator.task_lost(End::Failed);
    super::clients::describe(generator);
}

/// Nobody answers: the task is made again.
pub fn time_out(generator: &mut Generator) {
    generator.wake();
    generator.take();
    if generator.percent(40) {
        generator.signal("meanwhile");
    }
    if generator.attempt == 1 {
        generator.wait_for("EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT");
    }
    generator.task_lost(End::TimedOut);
    generator.take();
    super::clients::describe(generator);
}

/// The worker of the sticky queue is gone.
pub fn sticky_time_out(generator: &mut Generator) {
    generator.wake();
    generator.take();
    let request = generator.completion(
        Vec::new(),
        json!({
            "sticky_attributes": {
                "worker_task_queue": {"name": STICKY, "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": QUEUE},
                "schedule_to_start_timeout": "1s",
            },
        }),
    );
    generator.call("RespondWorkflowTaskCompleted", request);
    generator.task = Task::None;
    generator.signal("for nobody");
    generator.wait_for("EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT");
    generator.poll(json!({"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}));
    generator.task = Task::Held;
}

/// A token that has been answered, or that names a task of before.
pub fn stale(generator: &mut Generator) {
    generator.wake();
    generator.take();
    let token = match generator.dice.below(3) {
        0 => format!("@former {WORKFLOW}"),
        1 => "hex:0a0b".to_owned(),
        _ => {
            generator.complete(Vec::new());
            format!("@task {WORKFLOW}")
        }
    };
    let marker = command("RECORD_MARKER", json!({"marker_name": "late"}));
    // A worker that comes too late is asked no more, here.
    let more = json!({ "task_token": token, "sticky_attributes": null });
    let request = generator.completion(vec![marker], more);
    match generator.percent(70) {
        true => generator.call("RespondWorkflowTaskCompleted", request),
        false => {
            let request = json!({"namespace": "default", "task_token": token, "identity": "worker"});
            generator.call("RespondWorkflowTaskFailed", request);
        }
    }
}

pub fn empty_poll(generator: &mut Generator) {
    generator.poll(json!({"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}));
}
