//! What clients do to a run, open or closed.

use serde_json::{Value, json};

use crate::author::{Author, QUEUE, WORKFLOW, payload, payloads};

/// The current run, named or not.
fn execution(author: &mut Author) -> Value {
    match author.dice.below(4) {
        0 => json!({"workflow_id": WORKFLOW, "run_id": format!("@run {WORKFLOW} 0")}),
        _ => json!({"workflow_id": WORKFLOW}),
    }
}

/// Whether the run that [`execution`] names is the current one.
fn is_current(author: &Author, execution: &Value) -> bool {
    execution.get("run_id").is_none() || author.is_first_run()
}

fn signal_request(author: &mut Author) -> Value {
    let request_id = author.fresh("r");
    let execution = execution(author);
    let mut request = json!({
        "namespace": "default",
        "workflow_execution": execution,
        "signal_name": "news",
        "input": payloads(&["one"]),
        "identity": "caller",
        "request_id": request_id,
    });
    if author.percent(30) {
        request["header"] = json!({"fields": {"trace": payload("header")}});
    }
    if author.percent(20) {
        request["input"] = Value::Null;
    }
    request
}

pub fn signal(author: &mut Author) {
    author.stay();
    let request = signal_request(author);
    if is_current(author, &request["workflow_execution"]) {
        author.happened();
    }
    author.call("SignalWorkflowExecution", request);
}

/// The same request id again: it is taken once.
pub fn signal_twice(author: &mut Author) {
    author.stay();
    let mut request = signal_request(author);
    request["workflow_execution"] = json!({"workflow_id": WORKFLOW});
    author.happened();
    author.call("SignalWorkflowExecution", request.clone());
    author.call("SignalWorkflowExecution", request);
}

pub fn cancel(author: &mut Author) {
    author.stay();
    let request_id = author.fresh("r");
    let execution = execution(author);
    if is_current(author, &execution) && author.is_open && !author.is_cancel_requested {
        author.is_cancel_requested = true;
        author.happened();
    }
    let mut request = json!({
        "namespace": "default",
        "workflow_execution": execution,
        "identity": "caller",
        "request_id": request_id,
        "reason": "changed my mind",
    });
    if author.percent(20) && !author.is_later_chain {
        request["first_execution_run_id"] = format!("@run {WORKFLOW} 0").into();
    }
    author.call("RequestCancelWorkflowExecution", request);
}

pub fn terminate(author: &mut Author) {
    let execution = execution(author);
    if is_current(author, &execution) && author.is_open {
        author.ended(false);
    }
    let mut request = json!({
        "namespace": "default",
        "workflow_execution": execution,
        "identity": "caller",
        "reason": "enough",
        "details": payloads(&["of this"]),
    });
    if author.percent(20) && !author.is_later_chain {
        request["first_execution_run_id"] = format!("@run {WORKFLOW} 0").into();
    }
    author.call("TerminateWorkflowExecution", request);
}

/// The current run, without conditions.
pub fn terminate_now(author: &mut Author) {
    author.call(
        "TerminateWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "identity": "caller",
            "reason": "enough",
        }),
    );
    author.ended(false);
}

/// The same, asked to end by itself.
pub fn cancel_now(author: &mut Author) {
    let request_id = author.fresh("r");
    author.call(
        "RequestCancelWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "identity": "caller",
            "request_id": request_id, "reason": "changed my mind",
        }),
    );
    author.is_cancel_requested = true;
}

pub fn describe(author: &mut Author) {
    let execution = execution(author);
    author.call("DescribeWorkflowExecution", json!({"namespace": "default", "execution": execution}));
}

pub fn read_history(author: &mut Author) {
    let method = author.one_of(&["GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse"]);
    let execution = execution(author);
    let mut request = json!({"namespace": "default", "execution": execution});
    if author.percent(50) && !author.has_reset {
        request["maximum_page_size"] = author.dice.span(1, 4).into();
    }
    // A Temporal server makes whoever asks an open run for its end wait for a while.
    let is_over = !author.is_open && !author.started_by.is_empty();
    if method == "GetWorkflowExecutionHistory" && is_over && author.percent(50) {
        request["history_event_filter_type"] = "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT".into();
    }
    author.call(method, request);
}

pub fn describe_queue(author: &mut Author) {
    let kind = author.one_of(&["TASK_QUEUE_TYPE_WORKFLOW", "TASK_QUEUE_TYPE_ACTIVITY"]);
    let request = json!({
        "namespace": "default",
        "task_queue": {"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "task_queue_type": kind,
    });
    author.call("DescribeTaskQueue", request);
}

pub fn reset_stickiness(author: &mut Author) {
    let execution = execution(author);
    if author.is_sticky && is_current(author, &execution) {
        // Its next task comes to the queue of everybody; so do those after it.
        author.is_sticky = false;
    }
    author.call("ResetStickyTaskQueue", json!({"namespace": "default", "execution": execution}));
}
