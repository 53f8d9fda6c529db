//! What is too much for a run: too large, too many at a time, too long a history. Both servers are set to few.

use serde_json::{Value, json};

use super::children;
use crate::author::{Author, End, IDLE, QUEUE, WORKFLOW, command, failure};
use crate::ground::{BUFFERED_MAX, HISTORY_MAX, PENDING_MAX, SIGNALS_MAX, TOO_LARGE};

/// A payload that is larger than any may be.
fn large() -> Value {
    let payload = json!({"metadata": {"encoding": "json/plain"}, "data": format!("@long {TOO_LARGE}")});
    json!({"payloads": [payload]})
}

fn at_run(field: &str, value: Value) -> Value {
    let mut request = json!({
        "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "identity": "caller",
    });
    request[field] = value;
    request
}

/// A call that carries too much; but for an end it leaves nothing behind.
pub fn large_call(author: &mut Author) {
    let (method, request) = match author.dice.below(5) {
        0 => ("StartWorkflowExecution", start(json!({"input": large()}))),
        1 => {
            let memo = json!({"fields": {"note": {"data": format!("@long {TOO_LARGE}")}}});
            ("StartWorkflowExecution", start(json!({ "memo": memo })))
        }
        2 => {
            let mut request = at_run("input", large());
            request["signal_name"] = "large".into();
            request["request_id"] = "~large".into();
            ("SignalWorkflowExecution", request)
        }
        3 => {
            // Nobody looks at these.
            if author.is_open {
                author.ended(false);
            }
            ("TerminateWorkflowExecution", at_run("details", large()))
        }
        _ => {
            let mut request = start(json!({"signal_name": "large"}));
            request["signal_input"] = large();
            ("SignalWithStartWorkflowExecution", request)
        }
    };
    author.call(method, request);
}

fn start(more: Value) -> Value {
    let request = json!({
        "namespace": "default", "workflow_id": "~large", "workflow_type": {"name": "order"},
        "task_queue": {"name": IDLE}, "request_id": "~large-start", "identity": "caller",
    });
    crate::author::merged(request, more)
}

/// A command that carries too much.
pub fn large_command(author: &mut Author) {
    let one = match author.dice.below(5) {
        0 => command("RECORD_MARKER", json!({"marker_name": "large", "details": {"data": large()}})),
        1 => command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": large()})),
        2 => command("CANCEL_WORKFLOW_EXECUTION", json!({"details": large()})),
        3 => activity("~large", json!({"input": large()})),
        _ => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": large()})),
    };
    author.wake();
    author.take();
    author.complete(vec![one]);
    author.ended(false);
    super::clients::describe(author);
}

fn activity(id: &str, more: Value) -> Value {
    let attributes = json!({
        "activity_id": id, "activity_type": {"name": "idle"}, "task_queue": {"name": IDLE},
        "start_to_close_timeout": "100s",
    });
    command("SCHEDULE_ACTIVITY_TASK", crate::author::merged(attributes, more))
}

/// An activity says too much.
pub fn large_report(author: &mut Author) {
    let id = author.fresh("a");
    author.wake();
    author.turn(vec![activity(
        &id,
        json!({"task_queue": {"name": QUEUE}, "retry_policy": {"maximum_attempts": 1}}),
    )]);
    author.poll_activity();
    let mut long = failure("Long", false);
    long["message"] = format!("@long {TOO_LARGE}").into();
    let (method, field, value) = match author.dice.below(4) {
        0 => ("RespondActivityTaskCompleted", "result", large()),
        1 => ("RespondActivityTaskCanceled", "details", large()),
        2 => ("RecordActivityTaskHeartbeat", "details", large()),
        _ => ("RespondActivityTaskFailed", "failure", long),
    };
    let mut request =
        json!({"namespace": "default", "task_token": format!("@task {id}"), "identity": "worker"});
    request[field] = value;
    author.call(method, request);
    super::clients::describe(author);
    author.happened();
}

/// More at a time than a run may have under way.
pub fn pending(author: &mut Author) {
    let kind = author.dice.below(4);
    let name = author.fresh("many");
    let one = |number: usize| match kind {
        0 => activity(&format!("{name}-{number}"), json!({})),
        1 => children::start(&format!("{name}-{number}"), json!({"task_queue": {"name": IDLE}})),
        2 => command(
            "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION",
            json!({
                "namespace": "default", "execution": {"workflow_id": "~unknown"}, "signal_name": "news",
            }),
        ),
        _ => command(
            "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION",
            json!({"namespace": "default", "workflow_id": "~unknown"}),
        ),
    };
    let commands: Vec<Value> = (0..=PENDING_MAX).map(one).collect();
    author.wake();
    author.take();
    let request = author.completion(commands, json!({}));
    author.call("RespondWorkflowTaskCompleted", request);
    author.task_lost(End::Failed);
    super::clients::describe(author);
    author.turn(Vec::new());
}

/// More happens during a task than waits for its end.
pub fn buffered(author: &mut Author) {
    author.wake();
    author.take();
    for _ in 0..=BUFFERED_MAX {
        author.signal("meanwhile");
    }
    author.task_lost(End::Failed);
    author.turn(Vec::new());
}

/// A history that is longer than any may be.
pub fn long_history(author: &mut Author) {
    let marker = command("RECORD_MARKER", json!({"marker_name": "one of many"}));
    author.wake();
    author.turn(vec![marker; HISTORY_MAX]);
    author.ended(false);
    super::clients::describe(author);
}

/// More signals than a run may get: of clients, or the last one of another workflow.
pub fn signals(author: &mut Author) {
    if author.percent(30) {
        author.wake();
        for _ in 0..=SIGNALS_MAX {
            author.signal("one of many");
        }
        author.turn(Vec::new());
        // Nothing wakes it any more.
        return super::clients::terminate_now(author);
    }
    let child = children::begun(author, json!({"task_queue": {"name": IDLE}}));
    for number in 0..SIGNALS_MAX {
        author.call(
            "SignalWorkflowExecution",
            json!({
                "namespace": "default", "workflow_execution": {"workflow_id": child},
                "signal_name": "one of many", "request_id": format!("{child}-{number}"),
            }),
        );
    }
    let attributes = json!({
        "namespace": "default", "execution": {"workflow_id": child}, "signal_name": "one too many",
    });
    author.wake();
    author.turn(vec![command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", attributes)]);
    author.wait_for("EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED");
    author.happened();
    author.turn(Vec::new());
}
