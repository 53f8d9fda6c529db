//! Updates: brought to a run, alone or with its start, taken, refused, answered or ignored by its worker.

use serde_json::{Value, json};

use crate::author::{Author, QUEUE, Task, WORKFLOW, command, failure, payload, payloads};
use crate::program::Step;

const STAGES: &[&str] = &[
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED",
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED",
];
/// How long an update may take to arrive.
const ARRIVES_MS: u64 = 500;

fn asked(author: &mut Author, id: &str) -> Value {
    let mut input = json!({"name": "change", "args": payloads(&["by one"])});
    if author.percent(30) {
        input["header"] = json!({"fields": {"trace": payload("header")}});
    }
    json!({"meta": {"update_id": id, "identity": "caller"}, "input": input})
}

fn request(asked: &Value, stage: &str) -> Value {
    json!({
        "namespace": "default",
        "workflow_execution": {"workflow_id": WORKFLOW},
        "wait_policy": {"lifecycle_stage": stage},
        "request": asked,
    })
}

/// A message of the worker about an update, and the command that puts it in its place.
fn message(id: &str, what: &str, mut body: Value) -> (Value, Value) {
    body["@type"] = format!("temporal.api.update.v1.{what}").into();
    let name = format!("{id}-{what}");
    let command = command("PROTOCOL_MESSAGE", json!({ "message_id": name }));
    (json!({"id": name, "protocol_instance_id": id, "body": body}), command)
}

fn acceptance(id: &str, asked: &Value) -> (Value, Value) {
    let body = json!({
        "accepted_request_message_id": format!("@message {id}"),
        "accepted_request_sequencing_event_id": format!("@sequence {id}"),
        "accepted_request": asked,
    });
    message(id, "Acceptance", body)
}

fn rejection(id: &str, asked: &Value) -> (Value, Value) {
    let body = json!({
        "rejected_request_message_id": format!("@message {id}"),
        "rejected_request_sequencing_event_id": format!("@sequence {id}"),
        "rejected_request": asked,
        "failure": failure("Invalid", true),
    });
    message(id, "Rejection", body)
}

fn response(author: &mut Author, id: &str) -> (Value, Value) {
    let outcome = match author.percent(70) {
        true => json!({"success": payloads(&["changed"])}),
        false => json!({"failure": failure("Unchanged", true)}),
    };
    message(id, "Response", json!({"meta": {"update_id": id, "identity": "caller"}, "outcome": outcome}))
}

fn answer(author: &mut Author, said: Vec<(Value, Value)>, more: Vec<Value>) {
    let (messages, mut commands): (Vec<_>, Vec<_>) = said.into_iter().unzip();
    commands.extend(more);
    author.complete_with(commands, json!({ "messages": messages }));
}

fn poll(author: &mut Author, id: &str) {
    let stage = author.one_of(STAGES);
    let request = json!({
        "namespace": "default",
        "update_ref": {"workflow_execution": {"workflow_id": WORKFLOW}, "update_id": id},
        "identity": "caller",
        "wait_policy": {"lifecycle_stage": stage},
    });
    author.call("PollWorkflowExecutionUpdate", request);
}

/// An update to an open run whose worker has seen it before.
pub fn update(author: &mut Author) {
    let id = author.fresh("update");
    let (asked, stage) = (asked(author, &id), author.one_of(STAGES));
    let name = author.fresh("call");
    author.begin(&name, "UpdateWorkflowExecution", request(&asked, stage));
    author.step(Step::Pause { ms: ARRIVES_MS });
    if author.task == Task::None {
        author.task = Task::Scheduled;
    }
    author.take();
    answered(author, &id, &asked);
    author.join(&name);
    poll(author, &id);
    if author.percent(30) {
        // The same once more.
        author.call("UpdateWorkflowExecution", request(&asked, stage));
    }
}

/// What the worker says of an update that came with its task.
fn answered(author: &mut Author, id: &str, asked: &Value) {
    match author.dice.below(6) {
        0 | 1 => {
            let refused = rejection(id, asked);
            let more = if author.percent(30) { vec![marker()] } else { Vec::new() };
            // A refusal needs no command.
            let (message, _) = refused;
            author.complete_with(more, json!({"messages": [message]}));
        }
        2 => {
            let accepted = acceptance(id, asked);
            answer(author, vec![accepted], Vec::new());
            author.wake();
            author.take();
            let responded = response(author, id);
            answer(author, vec![responded], Vec::new());
        }
        3 => {
            // It says nothing of it.
            author.complete(Vec::new());
        }
        _ => {
            let said = vec![acceptance(id, asked), response(author, id)];
            let more = if author.percent(30) { vec![marker()] } else { Vec::new() };
            answer(author, said, more);
        }
    }
}

fn marker() -> Value {
    command("RECORD_MARKER", json!({"marker_name": "beside"}))
}

/// A start and an update in one call.
pub fn with_start(author: &mut Author) {
    let (id, request_id, name) = (author.fresh("update"), author.fresh("r"), author.fresh("call"));
    let asked = asked(author, &id);
    let start = json!({
        "namespace": "default",
        "workflow_id": WORKFLOW,
        "workflow_type": {"name": "order"},
        "task_queue": {"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "identity": "caller",
        "request_id": request_id,
        "workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_FAIL",
    });
    let stage = author.one_of(STAGES);
    let operations = json!([{"start_workflow": start}, {"update_workflow": request(&asked, stage)}]);
    author.begin(&name, "ExecuteMultiOperation", json!({"namespace": "default", "operations": operations}));
    author.step(Step::Pause { ms: ARRIVES_MS });
    author.begun(&request_id);
    author.take();
    answered(author, &id, &asked);
    author.join(&name);
    poll(author, &id);
}

/// To nobody, to a run that is over, or of an id that no update has.
pub fn in_vain(author: &mut Author) {
    let id = author.fresh("update");
    if author.percent(50) || author.is_open {
        return poll(author, &id);
    }
    let asked = asked(author, &id);
    author.call("UpdateWorkflowExecution", request(&asked, STAGES[0]));
}
