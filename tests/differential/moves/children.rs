//! Children from their start to their end, and what they hear of the end of their parent.

use serde_json::{Value, json};

use crate::generator::{CHILD_QUEUE, Generator, IDLE, WORKFLOW, command, failure, merged, payload, payloads};
use crate::program::Step;

const POLICIES: &[&str] = &[
    "PARENT_CLOSE_POLICY_UNSPECIFIED",
    "PARENT_CLOSE_POLICY_TERMINATE",
    "PARENT_CLOSE_POLICY_REQUEST_CANCEL",
    "PARENT_CLOSE_POLICY_ABANDON",
];
/// How long it takes until what nobody is to see has not happened.
pub const NOTHING_MS: u64 = 700;

const COURSES: &[fn(&mut Generator)] = &[
    completed,
    failed,
    continued,
    // Its events come of nothing else.
    cancelled,
    cancelled,
    terminated,
    timed_out,
    id_is_taken,
    signalled,
    outlives,
    repeated,
    retried,
    with_its_own,
];

/// One of all courses.
pub fn any(generator: &mut Generator) {
    generator.one_of(COURSES)(generator);
}

pub fn start(child: &str, more: Value) -> Value {
    let attributes = json!({
        "namespace": "default",
        "workflow_id": child,
        "workflow_type": {"name": "parcel"},
        "task_queue": {"name": CHILD_QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "input": payloads(&["child"]),
    });
    command("START_CHILD_WORKFLOW_EXECUTION", merged(attributes, more))
}

fn everything(generator: &mut Generator) -> Value {
    if generator.percent(60) {
        return json!({"parent_close_policy": generator.one_of(POLICIES)});
    }
    json!({
        "workflow_execution_timeout": "7200s",
        "workflow_run_timeout": "3600s",
        "workflow_task_timeout": "20s",
        "parent_close_policy": generator.one_of(POLICIES),
        "control": "control",
        "workflow_id_reuse_policy": "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY",
        "header": {"fields": {"trace": payload("header")}},
        "memo": {"fields": {"note": payload("memo")}},
        "search_attributes": {"indexed_fields": {"CustomKeywordField": {
            "metadata": {"encoding": "json/plain", "type": "Keyword"}, "data": "\"red\"",
        }}},
        "priority": generator.one_of(&[json!({"priority_key": 3}), json!({"fairness_key": "children"})]),
    })
}

/// A child that has begun; its parent may have heard of it.
pub fn begun(generator: &mut Generator, more: Value) -> String {
    let child = generator.fresh("child");
    generator.wake();
    generator.turn(vec![start(&child, more)]);
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED");
    generator.children.push(child.clone());
    child
}

/// All that have begun end, if they have not; their parent is told.
pub fn end_all(generator: &mut Generator) {
    let children = std::mem::take(&mut generator.children);
    if !children.is_empty() && !generator.is_open {
        // They may be about to end with their parent.
        generator.step(Step::Pause { ms: NOTHING_MS });
    }
    for child in &children {
        generator.call(
            "TerminateWorkflowExecution",
            json!({
                "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "all of them",
                "identity": "caller",
            }),
        );
    }
    if !children.is_empty() {
        generator.step(Step::Pause { ms: NOTHING_MS });
        generator.happened();
    }
}

/// The parent is told, and may look at it.
fn heard(generator: &mut Generator, event: &'static str) {
    generator.wait_for(event);
    generator.happened();
    if generator.percent(50) {
        generator.turn(Vec::new());
    }
}

/// The worker of a child takes its task and answers.
pub fn turn_of(generator: &mut Generator, child: &str, commands: Vec<Value>) {
    generator.poll(json!({"name": CHILD_QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}));
    let request = json!({
        "namespace": "default", "task_token": format!("@task {child}"), "commands": commands, "identity": "worker",
    });
    generator.call("RespondWorkflowTaskCompleted", request);
}

fn completed(generator: &mut Generator) {
    let more = everything(generator);
    let child = begun(generator, more);
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["sent"])}));
    turn_of(generator, &child, vec![last]);
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED");
}

fn failed(generator: &mut Generator) {
    let child = begun(generator, json!({}));
    let last = command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Lost", true)}));
    turn_of(generator, &child, vec![last]);
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED");
}

/// Only the last run of a chain reports.
fn continued(generator: &mut Generator) {
    let child = begun(generator, json!({}));
    let next = command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])}));
    turn_of(generator, &child, vec![next]);
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({}));
    turn_of(generator, &child, vec![last]);
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED");
}

fn cancelled(generator: &mut Generator) {
    let child = begun(generator, json!({}));
    let attributes = json!({
        "namespace": "default", "workflow_id": child, "child_workflow_only": generator.percent(50), "reason": "no more",
    });
    generator.wake();
    generator.turn(vec![command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", attributes)]);
    heard(generator, "EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED");
    let last = command("CANCEL_WORKFLOW_EXECUTION", json!({"details": payloads(&["undone"])}));
    turn_of(generator, &child, vec![last]);
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED");
}

fn terminated(generator: &mut Generator) {
    let child = begun(generator, json!({}));
    generator.call(
        "TerminateWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "enough", "identity": "caller",
        }),
    );
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED");
}

fn timed_out(generator: &mut Generator) {
    let child = generator.fresh("child");
    generator.wake();
    generator.turn(vec![start(&child, json!({"workflow_run_timeout": "1s"}))]);
    generator.wait_for("EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT");
    generator.happened();
}

/// It begins again after each end, until somebody ends it.
fn repeated(generator: &mut Generator) {
    let child = begun(generator, json!({"cron_schedule": "@every 1s"}));
    for _run in 0..2 {
        turn_of(
            generator,
            &child,
            vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["so far"])}))],
        );
    }
    generator.call(
        "TerminateWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "enough", "identity": "caller",
        }),
    );
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED");
}

/// The parent hears of the last attempt alone.
fn retried(generator: &mut Generator) {
    let policy = json!({"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": 2});
    let child = begun(generator, json!({ "retry_policy": policy }));
    turn_of(
        generator,
        &child,
        vec![command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Lost", false)}))],
    );
    if generator.percent(50) {
        turn_of(generator, &child, vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({}))]);
        return heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED");
    }
    turn_of(
        generator,
        &child,
        vec![command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Lost", false)}))],
    );
    heard(generator, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED");
}

/// A child that has a child, and ends before it or is ended.
fn with_its_own(generator: &mut Generator) {
    let policy = generator.one_of(POLICIES);
    let (child, grandchild) = (begun(generator, json!({})), generator.fresh("grandchild"));
    let more = json!({"task_queue": {"name": IDLE}, "parent_close_policy": policy});
    turn_of(generator, &child, vec![start(&grandchild, more)]);
    generator.wait_for_of(&child, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED");
    let end = match generator.percent(60) {
        true => {
            turn_of(generator, &child, vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({}))]);
            "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED"
        }
        false => {
            generator.call(
                "TerminateWorkflowExecution",
                json!({
                    "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "enough",
                    "identity": "caller",
                }),
            );
            "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED"
        }
    };
    // What comes of the grandchild has come when its parent's parent looks.
    generator.step(Step::Pause { ms: NOTHING_MS });
    heard(generator, end);
}

/// A second child of the same id.
fn id_is_taken(generator: &mut Generator) {
    let child = begun(generator, json!({}));
    generator.wake();
    generator.turn(vec![start(&child, json!({}))]);
    heard(generator, "EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED");
}

pub fn signal(execution: Value, is_child: bool) -> Value {
    let attributes = json!({
        "namespace": "default", "execution": execution, "signal_name": "news", "input": payloads(&["external"]),
        "header": {"fields": {"trace": payload("header")}}, "child_workflow_only": is_child, "control": "control",
    });
    command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", attributes)
}

fn signalled(generator: &mut Generator) {
    let child = begun(generator, json!({}));
    let is_child = generator.percent(50);
    generator.wake();
    generator.turn(vec![signal(json!({ "workflow_id": child }), is_child)]);
    heard(generator, "EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED");
    if generator.percent(50) {
        turn_of(generator, &child, Vec::new());
    }
}

/// The parent ends, or goes on in another run, and the child by its policy.
fn outlives(generator: &mut Generator) {
    let policy = generator.one_of(POLICIES);
    let child = begun(generator, json!({ "parent_close_policy": policy }));
    if generator.percent(50) {
        turn_of(generator, &child, Vec::new());
    }
    generator.wake();
    generator.take();
    let last = match generator.dice.below(3) {
        0 => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", true)})),
        1 => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])})),
        _ => command("COMPLETE_WORKFLOW_EXECUTION", json!({})),
    };
    let is_continued = last["command_type"] == "COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION";
    let is_well = last["command_type"] == "COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION";
    generator.complete(vec![last]);
    if is_continued {
        let request = generator.started_by.clone();
        generator.begun(&request);
    } else {
        generator.ended(is_well);
    }
    match policy {
        "PARENT_CLOSE_POLICY_REQUEST_CANCEL" if !is_continued => {
            generator.wait_for_of(&child, "EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED");
        }
        "PARENT_CLOSE_POLICY_ABANDON" | "PARENT_CLOSE_POLICY_REQUEST_CANCEL" => {
            generator.step(Step::Pause { ms: NOTHING_MS });
        }
        _ if is_continued => generator.step(Step::Pause { ms: NOTHING_MS }),
        _terminate => generator.wait_for_of(&child, "EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED"),
    }
}

/// Signals and cancels to who is not there, to itself, or to a child that is none.
pub fn to_others(generator: &mut Generator) {
    let execution = generator.one_of(&[
        json!({"workflow_id": "~unknown"}),
        json!({"workflow_id": "~unknown", "run_id": "00000000-0000-4000-8000-000000000000"}),
        // Nobody is another to itself.
        json!({"workflow_id": WORKFLOW}),
    ]);
    let is_child = generator.percent(30);
    generator.wake();
    if generator.percent(50) {
        generator.turn(vec![signal(execution, is_child)]);
        return heard(generator, "EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED");
    }
    let attributes = json!({
        "namespace": "default", "workflow_id": execution["workflow_id"], "run_id": execution["run_id"],
        "child_workflow_only": is_child, "reason": "no more",
    });
    generator.turn(vec![command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", attributes)]);
    heard(generator, "EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED");
}
