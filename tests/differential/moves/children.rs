//! Children from their start to their end, and what they hear of the end of their parent.

use serde_json::{Value, json};

use crate::author::{Author, CHILD_QUEUE, IDLE, WORKFLOW, command, failure, merged, payload, payloads};
use crate::program::Step;

const POLICIES: &[&str] = &[
    "PARENT_CLOSE_POLICY_UNSPECIFIED",
    "PARENT_CLOSE_POLICY_TERMINATE",
    "PARENT_CLOSE_POLICY_REQUEST_CANCEL",
    "PARENT_CLOSE_POLICY_ABANDON",
];
/// How long it takes until what nobody is to see has not happened.
pub const NOTHING_MS: u64 = 700;

const COURSES: &[fn(&mut Author)] = &[
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
pub fn any(author: &mut Author) {
    author.one_of(COURSES)(author);
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

fn everything(author: &mut Author) -> Value {
    if author.percent(60) {
        return json!({"parent_close_policy": author.one_of(POLICIES)});
    }
    json!({
        "workflow_execution_timeout": "7200s",
        "workflow_run_timeout": "3600s",
        "workflow_task_timeout": "20s",
        "parent_close_policy": author.one_of(POLICIES),
        "control": "control",
        "workflow_id_reuse_policy": "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY",
        "header": {"fields": {"trace": payload("header")}},
        "memo": {"fields": {"note": payload("memo")}},
        "search_attributes": {"indexed_fields": {"CustomKeywordField": {
            "metadata": {"encoding": "json/plain", "type": "Keyword"}, "data": "\"red\"",
        }}},
        "priority": author.one_of(&[json!({"priority_key": 3}), json!({"fairness_key": "children"})]),
    })
}

/// A child that has begun; its parent may have heard of it.
pub fn begun(author: &mut Author, more: Value) -> String {
    let child = author.fresh("child");
    author.wake();
    author.turn(vec![start(&child, more)]);
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED");
    author.children.push(child.clone());
    child
}

/// All that have begun end, if they have not; their parent is told.
pub fn end_all(author: &mut Author) {
    let children = std::mem::take(&mut author.children);
    if !children.is_empty() && !author.is_open {
        // They may be about to end with their parent.
        author.step(Step::Pause { ms: NOTHING_MS });
    }
    for child in &children {
        author.call(
            "TerminateWorkflowExecution",
            json!({
                "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "all of them",
                "identity": "caller",
            }),
        );
    }
    if !children.is_empty() {
        author.step(Step::Pause { ms: NOTHING_MS });
        author.happened();
    }
}

/// The parent is told, and may look at it.
fn heard(author: &mut Author, event: &'static str) {
    author.wait_for(event);
    author.happened();
    if author.percent(50) {
        author.turn(Vec::new());
    }
}

/// The worker of a child takes its task and answers.
pub fn turn_of(author: &mut Author, child: &str, commands: Vec<Value>) {
    author.poll(json!({"name": CHILD_QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}));
    let request = json!({
        "namespace": "default", "task_token": format!("@task {child}"), "commands": commands, "identity": "worker",
    });
    author.call("RespondWorkflowTaskCompleted", request);
}

fn completed(author: &mut Author) {
    let more = everything(author);
    let child = begun(author, more);
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["sent"])}));
    turn_of(author, &child, vec![last]);
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED");
}

fn failed(author: &mut Author) {
    let child = begun(author, json!({}));
    let last = command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Lost", true)}));
    turn_of(author, &child, vec![last]);
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED");
}

/// Only the last run of a chain reports.
fn continued(author: &mut Author) {
    let child = begun(author, json!({}));
    let next = command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])}));
    turn_of(author, &child, vec![next]);
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({}));
    turn_of(author, &child, vec![last]);
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED");
}

fn cancelled(author: &mut Author) {
    let child = begun(author, json!({}));
    let attributes = json!({
        "namespace": "default", "workflow_id": child, "child_workflow_only": author.percent(50), "reason": "no more",
    });
    author.wake();
    author.turn(vec![command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", attributes)]);
    heard(author, "EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED");
    let last = command("CANCEL_WORKFLOW_EXECUTION", json!({"details": payloads(&["undone"])}));
    turn_of(author, &child, vec![last]);
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED");
}

fn terminated(author: &mut Author) {
    let child = begun(author, json!({}));
    author.call(
        "TerminateWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "enough", "identity": "caller",
        }),
    );
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED");
}

fn timed_out(author: &mut Author) {
    let child = author.fresh("child");
    author.wake();
    author.turn(vec![start(&child, json!({"workflow_run_timeout": "1s"}))]);
    author.wait_for("EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT");
    author.happened();
}

/// It begins again after each end, until somebody ends it.
fn repeated(author: &mut Author) {
    let child = begun(author, json!({"cron_schedule": "@every 1s"}));
    for _run in 0..2 {
        turn_of(
            author,
            &child,
            vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["so far"])}))],
        );
    }
    author.call(
        "TerminateWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": child}, "reason": "enough", "identity": "caller",
        }),
    );
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED");
}

/// The parent hears of the last attempt alone.
fn retried(author: &mut Author) {
    let policy = json!({"initial_interval": "1s", "backoff_coefficient": 1.0, "maximum_attempts": 2});
    let child = begun(author, json!({ "retry_policy": policy }));
    turn_of(
        author,
        &child,
        vec![command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Lost", false)}))],
    );
    if author.percent(50) {
        turn_of(author, &child, vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({}))]);
        return heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED");
    }
    turn_of(
        author,
        &child,
        vec![command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Lost", false)}))],
    );
    heard(author, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED");
}

/// A child that has a child, and ends before it or is ended.
fn with_its_own(author: &mut Author) {
    let policy = author.one_of(POLICIES);
    let (child, grandchild) = (begun(author, json!({})), author.fresh("grandchild"));
    let more = json!({"task_queue": {"name": IDLE}, "parent_close_policy": policy});
    turn_of(author, &child, vec![start(&grandchild, more)]);
    author.wait_for_of(&child, "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED");
    let end = match author.percent(60) {
        true => {
            turn_of(author, &child, vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({}))]);
            "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED"
        }
        false => {
            author.call(
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
    author.step(Step::Pause { ms: NOTHING_MS });
    heard(author, end);
}

/// A second child of the same id.
fn id_is_taken(author: &mut Author) {
    let child = begun(author, json!({}));
    author.wake();
    author.turn(vec![start(&child, json!({}))]);
    heard(author, "EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED");
}

pub fn signal(execution: Value, is_child: bool) -> Value {
    let attributes = json!({
        "namespace": "default", "execution": execution, "signal_name": "news", "input": payloads(&["external"]),
        "header": {"fields": {"trace": payload("header")}}, "child_workflow_only": is_child, "control": "control",
    });
    command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", attributes)
}

fn signalled(author: &mut Author) {
    let child = begun(author, json!({}));
    let is_child = author.percent(50);
    author.wake();
    author.turn(vec![signal(json!({ "workflow_id": child }), is_child)]);
    heard(author, "EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED");
    if author.percent(50) {
        turn_of(author, &child, Vec::new());
    }
}

/// The parent ends, or goes on in another run, and the child by its policy.
fn outlives(author: &mut Author) {
    let policy = author.one_of(POLICIES);
    let child = begun(author, json!({ "parent_close_policy": policy }));
    if author.percent(50) {
        turn_of(author, &child, Vec::new());
    }
    author.wake();
    author.take();
    let last = match author.dice.below(3) {
        0 => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", true)})),
        1 => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])})),
        _ => command("COMPLETE_WORKFLOW_EXECUTION", json!({})),
    };
    let is_continued = last["command_type"] == "COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION";
    let is_well = last["command_type"] == "COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION";
    author.complete(vec![last]);
    if is_continued {
        let request = author.started_by.clone();
        author.begun(&request);
    } else {
        author.ended(is_well);
    }
    match policy {
        "PARENT_CLOSE_POLICY_REQUEST_CANCEL" if !is_continued => {
            author.wait_for_of(&child, "EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED");
        }
        "PARENT_CLOSE_POLICY_ABANDON" | "PARENT_CLOSE_POLICY_REQUEST_CANCEL" => {
            author.step(Step::Pause { ms: NOTHING_MS });
        }
        _ if is_continued => author.step(Step::Pause { ms: NOTHING_MS }),
        _terminate => author.wait_for_of(&child, "EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED"),
    }
}

/// Signals and cancels to who is not there, to itself, or to a child that is none.
pub fn to_others(author: &mut Author) {
    let execution = author.one_of(&[
        json!({"workflow_id": "~unknown"}),
        json!({"workflow_id": "~unknown", "run_id": "00000000-0000-4000-8000-000000000000"}),
        // Nobody is another to itself.
        json!({"workflow_id": WORKFLOW}),
    ]);
    let is_child = author.percent(30);
    author.wake();
    if author.percent(50) {
        author.turn(vec![signal(execution, is_child)]);
        return heard(author, "EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED");
    }
    let attributes = json!({
        "namespace": "default", "workflow_id": execution["workflow_id"], "run_id": execution["run_id"],
        "child_workflow_only": is_child, "reason": "no more",
    });
    author.turn(vec![command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", attributes)]);
    heard(author, "EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED");
}
