//! What is too much for a run: too large, too many at a time, too long a history. Both servers are set to few.

use serde_json::{Value, json};

use super::children;
use crate::generator::{End, Generator, IDLE, QUEUE, WORKFLOW, command, failure};
use crate::servers::{BUFFERED_MAX, HISTORY_MAX, PENDING_MAX, SIGNALS_MAX, TOO_LARGE};

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
pub fn large_call(generator: &mut Generator) {
    let (method, request) = match generator.dice.below(5) {
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
            if generator.is_open {
                generator.ended(false);
            }
            ("TerminateWorkflowExecution", at_run("details", large()))
        }
        _ => {
            let mut request = start(json!({"signal_name": "large"}));
            request["signal_input"] = large();
            ("SignalWithStartWorkflowExecution", request)
        }
    };
    generator.call(method, request);
}

fn start(more: Value) -> Value {
    let request = json!({
        "namespace": "default", "workflow_id": "~large", "workflow_type": {"name": "order"},
        "task_queue": {"name": IDLE}, "request_id": "~large-start", "identity": "caller",
    });
    crate::generator::merged(request, more)
}

/// A command that carries too much.
pub fn large_command(generator: &mut Generator) {
    let one = match generator.dice.below(5) {
        0 => command("RECORD_MARKER", json!({"marker_name": "large", "details": {"data": large()}})),
        1 => command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": large()})),
        2 => command("CANCEL_WORKFLOW_EXECUTION", json!({"details": large()})),
        3 => activity("~large", json!({"input": large()})),
        _ => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": large()})),
    };
    generator.wake();
    generator.take();
    generator.complete(vec![one]);
    generator.ended(false);
    super::clients::describe(generator);
}

fn activity(id: &str, more: Value) -> Value {
    let attributes = json!({
        "activity_id": id, "activity_type": {"name": "idle"}, "task_queue": {"name": IDLE},
        "start_to_close_timeout": "100s",
    });
    command("SCHEDULE_ACTIVITY_TASK", crate::generator::merged(attributes, more))
}

/// An activity says too much.
pub fn large_report(generator: &mut Generator) {
    let id = generator.fresh("a");
    generator.wake();
    generator.turn(vec![activity(
        &id,
        json!({"task_queue": {"name": QUEUE}, "retry_policy": {"maximum_attempts": 1}}),
    )]);
    generator.poll_activity();
    let mut long = failure("Long", false);
    long["message"] = format!("@long {TOO_LARGE}").into();
    let (method, field, value) = match generator.dice.below(4) {
        0 => ("RespondActivityTaskCompleted", "result", large()),
        1 => ("RespondActivityTaskCanceled", "details", large()),
        2 => ("RecordActivityTaskHeartbeat", "details", large()),
        _ => ("RespondActivityTaskFailed", "failure", long),
    };
    let mut request =
        json!({"namespace": "default", "task_token": format!("@task {id}"), "identity": "worker"});
    request[field] = value;
    generator.call(method, request);
    super::clients::describe(generator);
    generator.happened();
}

/// More at a time than a run may have under way.
pub fn pending(generator: &mut Generator) {
    let kind = generator.dice.below(4);
    let name = generator.fresh("many");
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
    generator.wake();
    generator.take();
    let request = generator.completion(commands, json!({}));
    generator.call("RespondWorkflowTaskCompleted", request);
    generator.task_lost(End::Failed);
    super::clients::describe(generator);
    generator.turn(Vec::new());
}

/// More happens during a task than waits for its end.
pub fn buffered(generator: &mut Generator) {
    generator.wake();
    generator.take();
    for _ in 0..=BUFFERED_MAX {
        generator.signal("meanwhile");
    }
    generator.task_lost(End::Failed);
    generator.turn(Vec::new());
}

/// A history that is longer than any may be.
pub fn long_history(generator: &mut Generator) {
    let marker = command("RECORD_MARKER", json!({"marker_name": "one of many"}));
    generator.wake();
    generator.turn(vec![marker; HISTORY_MAX]);
    generator.ended(false);
    super::clients::describe(generator);
}

/// More signals than a run may get: of clients, or the last one of another workflow.
pub fn signals(generator: &mut Generator) {
    if generator.percent(30) {
        generator.wake();
        for _ in 0..=SIGNALS_MAX {
            generator.signal("one of many");
        }
        generator.turn(Vec::new());
        // Nothing wakes it any more.
        return super::clients::terminate_now(generator);
    }
    let child = children::begun(generator, json!({"task_queue": {"name": IDLE}}));
    for number in 0..SIGNALS_MAX {
        generator.call(
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
    generator.wake();
    generator.turn(vec![command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", attributes)]);
    generator.wait_for("EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED");
    generator.happened();
    generator.turn(Vec::new());
}
