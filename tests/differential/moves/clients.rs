//! What clients do to a run, open or closed.

use serde_json::{Value, json};

use crate::generator::{Generator, QUEUE, WORKFLOW, payload, payloads};

/// The current run, named or not.
fn execution(generator: &mut Generator) -> Value {
    match generator.dice.below(4) {
        0 => json!({"workflow_id": WORKFLOW, "run_id": format!("@run {WORKFLOW} 0")}),
        _ => json!({"workflow_id": WORKFLOW}),
    }
}

/// Whether the run that [`execution`] names is the current one.
fn is_current(generator: &Generator, execution: &Value) -> bool {
    execution.get("run_id").is_none() || generator.is_first_run()
}

fn signal_request(generator: &mut Generator) -> Value {
    let request_id = generator.fresh("r");
    let execution = execution(generator);
    let mut request = json!({
        "namespace": "default",
        "workflow_execution": execution,
        "signal_name": "news",
        "input": payloads(&["one"]),
        "identity": "caller",
        "request_id": request_id,
    });
    if generator.percent(30) {
        request["header"] = json!({"fields": {"trace": payload("header")}});
    }
    if generator.percent(20) {
        request["input"] = Value::Null;
    }
    request
}

pub fn signal(generator: &mut Generator) {
    generator.stay();
    let request = signal_request(generator);
    if is_current(generator, &request["workflow_execution"]) {
        generator.happened();
    }
    generator.call("SignalWorkflowExecution", request);
}

/// The same request id again: it is taken once.
pub fn signal_twice(generator: &mut Generator) {
    generator.stay();
    let mut request = signal_request(generator);
    request["workflow_execution"] = json!({"workflow_id": WORKFLOW});
    generator.happened();
    generator.call("SignalWorkflowExecution", request.clone());
    generator.call("SignalWorkflowExecution", request);
}

pub fn cancel(generator: &mut Generator) {
    generator.stay();
    let request_id = generator.fresh("r");
    let execution = execution(generator);
    if is_current(generator, &execution) && generator.is_open && !generator.is_cancel_requested {
        generator.is_cancel_requested = true;
        generator.happened();
    }
    let mut request = json!({
        "namespace": "default",
        "workflow_execution": execution,
        "identity": "caller",
        "request_id": request_id,
        "reason": "changed my mind",
    });
    if generator.percent(20) && !generator.is_later_chain {
        request["first_execution_run_id"] = format!("@run {WORKFLOW} 0").into();
    }
    generator.call("RequestCancelWorkflowExecution", request);
}

pub fn terminate(generator: &mut Generator) {
    let execution = execution(generator);
    if is_current(generator, &execution) && generator.is_open {
        generator.ended(false);
    }
    let mut request = json!({
        "namespace": "default",
        "workflow_execution": execution,
        "identity": "caller",
        "reason": "enough",
        "details": payloads(&["of this"]),
    });
    if generator.percent(20) && !generator.is_later_chain {
        request["first_execution_run_id"] = format!("@run {WORKFLOW} 0").into();
    }
    generator.call("TerminateWorkflowExecution", request);
}

/// The current run, without conditions.
pub fn terminate_now(generator: &mut Generator) {
    generator.call(
        "TerminateWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "identity": "caller",
            "reason": "enough",
        }),
    );
    generator.ended(false);
}

/// The same, asked to end by itself.
pub fn cancel_now(generator: &mut Generator) {
    let request_id = generator.fresh("r");
    generator.call(
        "RequestCancelWorkflowExecution",
        json!({
            "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}, "identity": "caller",
            "request_id": request_id, "reason": "changed my mind",
        }),
    );
    generator.is_cancel_requested = true;
}

pub fn describe(generator: &mut Generator) {
    let execution = execution(generator);
    generator.call("DescribeWorkflowExecution", json!({"namespace": "default", "execution": execution}));
}

pub fn read_history(generator: &mut Generator) {
    let method = generator.one_of(&["GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse"]);
    let execution = execution(generator);
    let mut request = json!({"namespace": "default", "execution": execution});
    if generator.percent(50) && !generator.has_reset {
        request["maximum_page_size"] = generator.dice.span(1, 4).into();
    }
    // A Temporal server makes whoever asks an open run for its end wait for a while.
    let is_over = !generator.is_open && !generator.started_by.is_empty();
    if method == "GetWorkflowExecutionHistory" && is_over && generator.percent(50) {
        request["history_event_filter_type"] = "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT".into();
    }
    generator.call(method, request);
}

pub fn describe_queue(generator: &mut Generator) {
    let kind = generator.one_of(&["TASK_QUEUE_TYPE_WORKFLOW", "TASK_QUEUE_TYPE_ACTIVITY"]);
    let request = json!({
        "namespace": "default",
        "task_queue": {"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "task_queue_type": kind,
    });
    generator.call("DescribeTaskQueue", request);
}

pub fn reset_stickiness(generator: &mut Generator) {
    let execution = execution(generator);
    if generator.is_sticky && is_current(generator, &execution) {
        // Its next task comes to the queue of everybody; so do those after it.
        generator.is_sticky = false;
    }
    generator.call("ResetStickyTaskQueue", json!({"namespace": "default", "execution": execution}));
}
