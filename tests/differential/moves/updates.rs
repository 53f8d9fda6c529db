//! Updates: brought to a run, alone or with its start, taken, refused, answered or ignored by its worker.

use serde_json::{Value, json};

use crate::author::{Author, CALL_WITHIN_S, End, QUEUE, Task, WORKFLOW, command, failure, payload, payloads};
use crate::ground::UPDATES_MAX;
use crate::program::Step;

pub const STAGES: &[&str] = &[
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED",
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED",
];
/// How long one waits in vain: a sticky queue that nobody polls for ten seconds gets no task more.
pub const WAITS_S: u64 = 3;
/// How long an update may take to arrive.
pub const ARRIVES_MS: u64 = 500;

fn asked(author: &mut Author, id: &str) -> Value {
    let mut input = json!({"name": "change", "args": payloads(&["by one"])});
    if author.percent(30) {
        input["header"] = json!({"fields": {"trace": payload("header")}});
    }
    json!({"meta": {"update_id": id, "identity": "caller"}, "input": input})
}

pub fn request(asked: &Value, stage: &str) -> Value {
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

pub fn acceptance(id: &str, asked: &Value) -> (Value, Value) {
    let body = json!({
        "accepted_request_message_id": format!("@message {id}"),
        "accepted_request_sequencing_event_id": format!("@sequence {id}"),
        "accepted_request": asked,
    });
    message(id, "Acceptance", body)
}

pub fn rejection(id: &str, asked: &Value) -> (Value, Value) {
    let body = json!({
        "rejected_request_message_id": format!("@message {id}"),
        "rejected_request_sequencing_event_id": format!("@sequence {id}"),
        "rejected_request": asked,
        "failure": failure("Invalid", true),
    });
    message(id, "Rejection", body)
}

pub fn response(author: &mut Author, id: &str) -> (Value, Value) {
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

/// Asks what has become of an update.
pub fn poll(author: &mut Author, id: &str) {
    poll_within(author, id, CALL_WITHIN_S);
}

/// The same, for so long.
pub fn poll_within(author: &mut Author, id: &str, within_s: u64) {
    let stage = author.one_of(STAGES);
    let request = json!({
        "namespace": "default",
        "update_ref": {"workflow_execution": {"workflow_id": WORKFLOW}, "update_id": id},
        "identity": "caller",
        "wait_policy": {"lifecycle_stage": stage},
    });
    author.step(Step::Call { method: "PollWorkflowExecutionUpdate", request, within_s });
}

/// An update to an open run whose worker has seen it before.
pub fn update(author: &mut Author) {
    let id = author.fresh("update");
    let (asked, stage) = (asked(author, &id), author.one_of(STAGES));
    let name = author.fresh("call");
    author.stay();
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
        // The same once more: one that was refused begins anew.
        let request = request(&asked, stage);
        author.step(Step::Call { method: "UpdateWorkflowExecution", request, within_s: WAITS_S });
        author.wake();
        author.turn(Vec::new());
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

/// The start of a call that has an update too.
pub fn start(request_id: &str, conflict: &str) -> Value {
    json!({
        "namespace": "default",
        "workflow_id": WORKFLOW,
        "workflow_type": {"name": "order"},
        "task_queue": {"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "identity": "caller",
        "request_id": request_id,
        "workflow_id_conflict_policy": conflict,
    })
}

/// A start and an update in one call.
pub fn with_start(author: &mut Author) {
    let (id, request_id, name) = (author.fresh("update"), author.fresh("r"), author.fresh("call"));
    let asked = asked(author, &id);
    let start = start(&request_id, "WORKFLOW_ID_CONFLICT_POLICY_FAIL");
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
    let stage = author.one_of(&[STAGES[0], "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED"]);
    author.call("UpdateWorkflowExecution", request(&asked, stage));
}

/// Nobody waits for an update to be admitted.
pub fn for_its_admission(author: &mut Author) {
    let id = author.fresh("update");
    let request = request(&asked_plainly(&id), "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED");
    author.call("UpdateWorkflowExecution", request);
}

/// Brings an update to a run; its id, and the name of the call that waits.
pub fn sent(author: &mut Author) -> (String, String) {
    let (id, name) = (author.fresh("update"), author.fresh("call"));
    let (asked, stage) = (asked(author, &id), author.one_of(STAGES));
    let mut request = request(&asked, stage);
    if author.percent(20) && !author.has_reset {
        request["workflow_execution"]["run_id"] = format!("@run {WORKFLOW} last").into();
    }
    author.stay();
    author.begin(&name, "UpdateWorkflowExecution", request);
    author.step(Step::Pause { ms: ARRIVES_MS });
    if author.task == Task::None {
        author.task = Task::Scheduled;
    }
    (id, name)
}

pub fn asked_plainly(id: &str) -> Value {
    json!({"meta": {"update_id": id, "identity": "caller"}, "input": {"name": "change", "args": payloads(&["by one"])}})
}

/// An update that its worker has accepted, and perhaps answered.
pub fn taken(author: &mut Author) -> String {
    // Whoever waits for more than is said is left waiting.
    let (id, _call) = sent(author);
    author.take();
    let mut said = vec![acceptance(&id, &asked_plainly(&id))];
    if author.percent(60) {
        said.push(response(author, &id));
    }
    answer(author, said, Vec::new());
    author.signal("behind");
    author.turn(Vec::new());
    id
}

/// The worker's word on an update that came with its task, perhaps not for the first time.
pub fn answer_again(author: &mut Author, id: &str) {
    let asked = asked_plainly(id);
    match author.percent(70) {
        true => {
            let said = vec![acceptance(id, &asked), response(author, id)];
            answer(author, said, Vec::new());
        }
        false => {
            let (message, _) = rejection(id, &asked);
            author.complete_with(Vec::new(), json!({"messages": [message]}));
        }
    }
}

/// Several of them come with one task.
pub fn several(author: &mut Author) {
    let sent: Vec<_> = (0..author.dice.span(2, 3)).map(|_| sent(author)).collect();
    author.take();
    let (mut messages, mut commands) = (Vec::new(), Vec::new());
    for (id, _) in &sent {
        let asked = asked_plainly(id);
        let said = match author.dice.below(4) {
            0 => {
                messages.push(rejection(id, &asked).0);
                continue;
            }
            1 => vec![acceptance(id, &asked)],
            _ => vec![acceptance(id, &asked), response(author, id)],
        };
        for (message, command) in said {
            messages.push(message);
            commands.push(command);
        }
    }
    if author.percent(30) {
        messages.reverse();
        commands.reverse();
    }
    author.complete_with(commands, json!({ "messages": messages }));
    sent.iter().for_each(|(_, name)| author.join(name));
    sent.iter().for_each(|(id, _)| poll(author, id));
}

/// An update to a run that waits for its time: one that is taken comes with its first task; a refusal leaves no trace, and the
/// first task comes when it is due. True of what was taken.
pub fn early(author: &mut Author) -> bool {
    let (id, name) = sent(author);
    author.take();
    let asked = asked_plainly(&id);
    let is_taken = author.percent(50);
    if is_taken {
        let said = vec![acceptance(&id, &asked), response(author, &id)];
        answer(author, said, Vec::new());
    } else {
        let (message, _) = rejection(&id, &asked);
        author.complete_with(Vec::new(), json!({"messages": [message]}));
        author.ends.pop();
        (author.completed, author.task) = (0, Task::Scheduled);
    }
    author.join(&name);
    is_taken
}

/// An update to a run that is about to close.
pub fn too_late(author: &mut Author) {
    let id = author.fresh("update");
    let stage = author.one_of(STAGES);
    let request = request(&asked_plainly(&id), stage);
    author.step(Step::Call { method: "UpdateWorkflowExecution", request, within_s: WAITS_S });
}

/// More than may be under way; all that came are refused.
pub fn too_many(author: &mut Author) {
    let sent: Vec<_> = (0..=UPDATES_MAX).map(|_| sent(author)).collect();
    author.take();
    let refused = sent.iter().take(UPDATES_MAX).map(|(id, _)| rejection(id, &asked_plainly(id)).0);
    let messages: Vec<Value> = refused.collect();
    author.complete_with(Vec::new(), json!({ "messages": messages }));
    sent.iter().for_each(|(_, name)| author.join(name));
}

/// What a worker says of it makes no sense: the task fails, and the update comes again.
pub fn badly_answered(author: &mut Author) {
    let (id, name) = sent(author);
    author.take();
    let (accepted, accept) = acceptance(&id, &asked_plainly(&id));
    let (responded, respond) = response(author, &id);
    let (messages, commands) = match author.dice.below(5) {
        0 => (vec![responded], vec![respond]),
        1 => (vec![accepted.clone(), accepted], vec![accept.clone(), accept]),
        2 => (vec![], vec![command("PROTOCOL_MESSAGE", json!({"message_id": "~unknown"}))]),
        3 => (vec![], vec![command("PROTOCOL_MESSAGE", json!({}))]),
        _ => {
            let (unknown, command) = acceptance("~unknown", &asked_plainly("~unknown"));
            (vec![unknown], vec![command])
        }
    };
    let request = author.completion(commands, json!({ "messages": messages }));
    author.call("RespondWorkflowTaskCompleted", request);
    author.task_lost(End::Failed);
    author.take();
    answer_again(author, &id);
    author.join(&name);
    poll(author, &id);
}

/// The run closes with the task that the update came with.
pub fn at_the_end(author: &mut Author) {
    let (id, name) = sent(author);
    author.take();
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])}));
    let said = match author.dice.below(3) {
        0 => vec![],
        1 => vec![acceptance(&id, &asked_plainly(&id))],
        _ => vec![acceptance(&id, &asked_plainly(&id)), response(author, &id)],
    };
    answer(author, said, vec![last]);
    author.ended(true);
    author.join(&name);
    poll(author, &id);
}

/// A start and an update for a run that is there already.
pub fn with_start_again(author: &mut Author) {
    let (id, request_id, name) = (author.fresh("update"), author.fresh("r"), author.fresh("call"));
    let conflict = author.one_of(&[
        "WORKFLOW_ID_CONFLICT_POLICY_FAIL",
        "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
        "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
        "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
        "WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED",
    ]);
    let start = start(&request_id, conflict);
    let asked = asked_plainly(&id);
    let operations = json!([{"start_workflow": start}, {"update_workflow": request(&asked, STAGES[1])}]);
    let call = json!({"namespace": "default", "operations": operations});
    let is_refused = conflict.ends_with("UNSPECIFIED") || author.is_open && conflict.ends_with("FAIL");
    if is_refused {
        return author.call("ExecuteMultiOperation", call);
    }
    author.stay();
    author.begin(&name, "ExecuteMultiOperation", call);
    author.step(Step::Pause { ms: ARRIVES_MS });
    if !author.is_open || conflict.ends_with("TERMINATE_EXISTING") {
        author.begun(&request_id);
    } else if author.task == Task::None {
        author.task = Task::Scheduled;
    }
    author.take();
    answer_again(author, &id);
    author.join(&name);
    poll(author, &id);
}

/// A start and an update for a run that is there, open or closed, by a start that wants no other beside it.
pub fn with_start_refused(author: &mut Author) {
    let (id, request_id) = (author.fresh("update"), author.fresh("r"));
    let mut start = start(&request_id, "WORKFLOW_ID_CONFLICT_POLICY_FAIL");
    start["workflow_id_reuse_policy"] = "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE".into();
    let operations =
        json!([{"start_workflow": start}, {"update_workflow": request(&asked_plainly(&id), STAGES[0])}]);
    author.call("ExecuteMultiOperation", json!({"namespace": "default", "operations": operations}));
}

/// Calls of a start and an update that do not fit together.
pub fn unfit(author: &mut Author) {
    let start = json!({
        "namespace": "default", "workflow_id": WORKFLOW, "workflow_type": {"name": "order"},
        "task_queue": {"name": QUEUE}, "request_id": "~unfit",
        "workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
    });
    let update = request(&asked_plainly("~unfit"), STAGES[0]);
    let mut delayed = start.clone();
    delayed["workflow_start_delay"] = "10s".into();
    let mut cron = start.clone();
    cron["cron_schedule"] = "0 0 * * *".into();
    let mut other = update.clone();
    other["workflow_execution"] = json!({"workflow_id": "~other"});
    let mut of_run = update.clone();
    of_run["workflow_execution"]["run_id"] = format!("@run {WORKFLOW} 0").into();
    let operations = author.one_of(&[
        json!([]),
        json!([{"start_workflow": start}]),
        json!([{"update_workflow": update}, {"start_workflow": start}]),
        json!([{"start_workflow": start}, {"start_workflow": start}]),
        json!([{"start_workflow": start}, {"update_workflow": update}, {"update_workflow": update}]),
        json!([{"start_workflow": delayed}, {"update_workflow": update}]),
        json!([{"start_workflow": cron}, {"update_workflow": update}]),
        json!([{"start_workflow": start}, {"update_workflow": other}]),
        json!([{"start_workflow": start}, {"update_workflow": of_run}]),
        json!([{}, {"update_workflow": update}]),
    ]);
    author.call("ExecuteMultiOperation", json!({"namespace": "default", "operations": operations}));
}

/// The run closes over an update that it has not seen.
pub fn unseen(author: &mut Author) {
    author.wake();
    author.take();
    let (_id, name) = sent(author);
    author.complete(vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({}))]);
    author.ended(true);
    author.join(&name);
}
