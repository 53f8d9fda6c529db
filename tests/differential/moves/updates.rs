//! Updates: brought to a run, alone or with its start, taken, refused, answered or ignored by its worker.

use serde_json::{Value, json};

use crate::generator::{
    CALL_WITHIN_S, End, Generator, QUEUE, Task, WORKFLOW, command, failure, payload, payloads,
};
use crate::program::Step;
use crate::servers::UPDATES_MAX;

pub const STAGES: &[&str] = &[
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED",
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED",
];
/// How long one waits in vain: a sticky queue that nobody polls for ten seconds gets no task more.
pub const WAITS_S: u64 = 3;
/// How long an update may take to arrive.
pub const ARRIVES_MS: u64 = 500;

fn asked(generator: &mut Generator, id: &str) -> Value {
    let mut input = json!({"name": "change", "args": payloads(&["by one"])});
    if generator.percent(30) {
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

pub fn response(generator: &mut Generator, id: &str) -> (Value, Value) {
    let outcome = match generator.percent(70) {
        true => json!({"success": payloads(&["changed"])}),
        false => json!({"failure": failure("Unchanged", true)}),
    };
    message(id, "Response", json!({"meta": {"update_id": id, "identity": "caller"}, "outcome": outcome}))
}

fn answer(generator: &mut Generator, said: Vec<(Value, Value)>, more: Vec<Value>) {
    let (messages, mut commands): (Vec<_>, Vec<_>) = said.into_iter().unzip();
    commands.extend(more);
    generator.complete_with(commands, json!({ "messages": messages }));
}

/// Asks what has become of an update.
pub fn poll(generator: &mut Generator, id: &str) {
    poll_within(generator, id, CALL_WITHIN_S);
}

/// The same, for so long.
pub fn poll_within(generator: &mut Generator, id: &str, within_s: u64) {
    let stage = generator.one_of(STAGES);
    let request = json!({
        "namespace": "default",
        "update_ref": {"workflow_execution": {"workflow_id": WORKFLOW}, "update_id": id},
        "identity": "caller",
        "wait_policy": {"lifecycle_stage": stage},
    });
    generator.step(Step::Call { method: "PollWorkflowExecutionUpdate", request, within_s });
}

/// An update to an open run whose worker has seen it before.
pub fn update(generator: &mut Generator) {
    let id = generator.fresh("update");
    let (asked, stage) = (asked(generator, &id), generator.one_of(STAGES));
    let name = generator.fresh("call");
    generator.stay();
    generator.begin(&name, "UpdateWorkflowExecution", request(&asked, stage));
    generator.step(Step::Pause { ms: ARRIVES_MS });
    if generator.task == Task::None {
        generator.task = Task::Scheduled;
    }
    generator.take();
    answered(generator, &id, &asked);
    generator.join(&name);
    poll(generator, &id);
    if generator.percent(30) {
        // The same once more: one that was refused begins anew.
        let request = request(&asked, stage);
        generator.step(Step::Call { method: "UpdateWorkflowExecution", request, within_s: WAITS_S });
        generator.wake();
        generator.turn(Vec::new());
    }
}

/// What the worker says of an update that came with its task.
fn answered(generator: &mut Generator, id: &str, asked: &Value) {
    match generator.dice.below(6) {
        0 | 1 => {
            let refused = rejection(id, asked);
            let more = if generator.percent(30) { vec![marker()] } else { Vec::new() };
            // A refusal needs no command.
            let (message, _) = refused;
            generator.complete_with(more, json!({"messages": [message]}));
        }
        2 => {
            let accepted = acceptance(id, asked);
            answer(generator, vec![accepted], Vec::new());
            generator.wake();
            generator.take();
            let responded = response(generator, id);
            answer(generator, vec![responded], Vec::new());
        }
        3 => {
            // It says nothing of it.
            generator.complete(Vec::new());
        }
        _ => {
            let said = vec![acceptance(id, asked), response(generator, id)];
            let more = if generator.percent(30) { vec![marker()] } else { Vec::new() };
            answer(generator, said, more);
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
pub fn with_start(generator: &mut Generator) {
    let (id, request_id, name) = (generator.fresh("update"), generator.fresh("r"), generator.fresh("call"));
    let asked = asked(generator, &id);
    let start = start(&request_id, "WORKFLOW_ID_CONFLICT_POLICY_FAIL");
    let stage = generator.one_of(STAGES);
    let operations = json!([{"start_workflow": start}, {"update_workflow": request(&asked, stage)}]);
    generator.begin(
        &name,
        "ExecuteMultiOperation",
        json!({"namespace": "default", "operations": operations}),
    );
    generator.step(Step::Pause { ms: ARRIVES_MS });
    generator.begun(&request_id);
    generator.take();
    answered(generator, &id, &asked);
    generator.join(&name);
    poll(generator, &id);
}

/// To nobody, to a run that is over, or of an id that no update has.
pub fn in_vain(generator: &mut Generator) {
    let id = generator.fresh("update");
    if generator.percent(50) || generator.is_open {
        return poll(generator, &id);
    }
    let asked = asked(generator, &id);
    let stage = generator.one_of(&[STAGES[0], "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED"]);
    generator.call("UpdateWorkflowExecution", request(&asked, stage));
}

/// Nobody waits for an update to be admitted.
pub fn for_its_admission(generator: &mut Generator) {
    let id = generator.fresh("update");
    let request = request(&asked_plainly(&id), "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED");
    generator.call("UpdateWorkflowExecution", request);
}

/// Brings an update to a run; its id, and the name of the call that waits.
pub fn sent(generator: &mut Generator) -> (String, String) {
    let (id, name) = (generator.fresh("update"), generator.fresh("call"));
    let (asked, stage) = (asked(generator, &id), generator.one_of(STAGES));
    let mut request = request(&asked, stage);
    if generator.percent(20) && !generator.has_reset {
        request["workflow_execution"]["run_id"] = format!("@run {WORKFLOW} last").into();
    }
    generator.stay();
    generator.begin(&name, "UpdateWorkflowExecution", request);
    generator.step(Step::Pause { ms: ARRIVES_MS });
    if generator.task == Task::None {
        generator.task = Task::Scheduled;
    }
    (id, name)
}

pub fn asked_plainly(id: &str) -> Value {
    json!({"meta": {"update_id": id, "identity": "caller"}, "input": {"name": "change", "args": payloads(&["by one"])}})
}

/// An update that its worker has accepted, and perhaps answered.
pub fn taken(generator: &mut Generator) -> String {
    // Whoever waits for more than is said is left waiting.
    let (id, _call) = sent(generator);
    generator.take();
    let mut said = vec![acceptance(&id, &asked_plainly(&id))];
    if generator.percent(60) {
        said.push(response(generator, &id));
    }
    answer(generator, said, Vec::new());
    generator.signal("behind");
    generator.turn(Vec::new());
    id
}

/// The worker's word on an update that came with its task, perhaps not for the first time.
pub fn answer_again(generator: &mut Generator, id: &str) {
    let asked = asked_plainly(id);
    match generator.percent(70) {
        true => {
            let said = vec![acceptance(id, &asked), response(generator, id)];
            answer(generator, said, Vec::new());
        }
        false => {
            let (message, _) = rejection(id, &asked);
            generator.complete_with(Vec::new(), json!({"messages": [message]}));
        }
    }
}

/// Several of them come with one task.
pub fn several(generator: &mut Generator) {
    let sent: Vec<_> = (0..generator.dice.span(2, 3)).map(|_| sent(generator)).collect();
    generator.take();
    let (mut messages, mut commands) = (Vec::new(), Vec::new());
    for (id, _) in &sent {
        let asked = asked_plainly(id);
        let said = match generator.dice.below(4) {
            0 => {
                messages.push(rejection(id, &asked).0);
                continue;
            }
            1 => vec![acceptance(id, &asked)],
            _ => vec![acceptance(id, &asked), response(generator, id)],
        };
        for (message, command) in said {
            messages.push(message);
            commands.push(command);
        }
    }
    if generator.percent(30) {
        messages.reverse();
        commands.reverse();
    }
    generator.complete_with(commands, json!({ "messages": messages }));
    sent.iter().for_each(|(_, name)| generator.join(name));
    sent.iter().for_each(|(id, _)| poll(generator, id));
}

/// An update to a run that waits for its time: one that is taken comes with its first task; a refusal leaves no trace, and the
/// first task comes when it is due. True of what was taken.
pub fn early(generator: &mut Generator) -> bool {
    let (id, name) = sent(generator);
    generator.take();
    let asked = asked_plainly(&id);
    let is_taken = generator.percent(50);
    if is_taken {
        let said = vec![acceptance(&id, &asked), response(generator, &id)];
        answer(generator, said, Vec::new());
    } else {
        let (message, _) = rejection(&id, &asked);
        generator.complete_with(Vec::new(), json!({"messages": [message]}));
        generator.ends.pop();
        (generator.completed, generator.task) = (0, Task::Scheduled);
    }
    generator.join(&name);
    is_taken
}

/// An update to a run that is about to close.
pub fn too_late(generator: &mut Generator) {
    let id = generator.fresh("update");
    let stage = generator.one_of(STAGES);
    let request = request(&asked_plainly(&id), stage);
    generator.step(Step::Call { method: "UpdateWorkflowExecution", request, within_s: WAITS_S });
}

/// More than may be under way; all that came are refused.
pub fn too_many(generator: &mut Generator) {
    let sent: Vec<_> = (0..=UPDATES_MAX).map(|_| sent(generator)).collect();
    generator.take();
    let refused = sent.iter().take(UPDATES_MAX).map(|(id, _)| rejection(id, &asked_plainly(id)).0);
    let messages: Vec<Value> = refused.collect();
    generator.complete_with(Vec::new(), json!({ "messages": messages }));
    sent.iter().for_each(|(_, name)| generator.join(name));
}

/// What a worker says of it makes no sense: the task fails, and the update comes again.
pub fn badly_answered(generator: &mut Generator) {
    let (id, name) = sent(generator);
    generator.take();
    let (accepted, accept) = acceptance(&id, &asked_plainly(&id));
    let (responded, respond) = response(generator, &id);
    let (messages, commands) = match generator.dice.below(5) {
        0 => (vec![responded], vec![respond]),
        1 => (vec![accepted.clone(), accepted], vec![accept.clone(), accept]),
        2 => (vec![], vec![command("PROTOCOL_MESSAGE", json!({"message_id": "~unknown"}))]),
        3 => (vec![], vec![command("PROTOCOL_MESSAGE", json!({}))]),
        _ => {
            let (unknown, command) = acceptance("~unknown", &asked_plainly("~unknown"));
            (vec![unknown], vec![command])
        }
    };
    let request = generator.completion(commands, json!({ "messages": messages }));
    generator.call("RespondWorkflowTaskCompleted", request);
    generator.task_lost(End::Failed);
    generator.take();
    answer_again(generator, &id);
    generator.join(&name);
    poll(generator, &id);
}

/// The run closes with the task that the update came with.
pub fn at_the_end(generator: &mut Generator) {
    let (id, name) = sent(generator);
    generator.take();
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])}));
    let said = match generator.dice.below(3) {
        0 => vec![],
        1 => vec![acceptance(&id, &asked_plainly(&id))],
        _ => vec![acceptance(&id, &asked_plainly(&id)), response(generator, &id)],
    };
    answer(generator, said, vec![last]);
    generator.ended(true);
    generator.join(&name);
    poll(generator, &id);
}

/// A start and an update for a run that is there already.
pub fn with_start_again(generator: &mut Generator) {
    let (id, request_id, name) = (generator.fresh("update"), generator.fresh("r"), generator.fresh("call"));
    let conflict = generator.one_of(&[
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
    let is_refused = conflict.ends_with("UNSPECIFIED") || generator.is_open && conflict.ends_with("FAIL");
    if is_refused {
        return generator.call("ExecuteMultiOperation", call);
    }
    generator.stay();
    generator.begin(&name, "ExecuteMultiOperation", call);
    generator.step(Step::Pause { ms: ARRIVES_MS });
    if !generator.is_open || conflict.ends_with("TERMINATE_EXISTING") {
        generator.begun(&request_id);
    } else if generator.task == Task::None {
        generator.task = Task::Scheduled;
    }
    generator.take();
    answer_again(generator, &id);
    generator.join(&name);
    poll(generator, &id);
}

/// A start and an update for a run that is there, open or closed, by a start that wants no other beside it.
pub fn with_start_refused(generator: &mut Generator) {
    let (id, request_id) = (generator.fresh("update"), generator.fresh("r"));
    let mut start = start(&request_id, "WORKFLOW_ID_CONFLICT_POLICY_FAIL");
    start["workflow_id_reuse_policy"] = "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE".into();
    let operations =
        json!([{"start_workflow": start}, {"update_workflow": request(&asked_plainly(&id), STAGES[0])}]);
    generator.call("ExecuteMultiOperation", json!({"namespace": "default", "operations": operations}));
}

/// Calls of a start and an update that do not fit together.
pub fn unfit(generator: &mut Generator) {
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
    let operations = generator.one_of(&[
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
    generator.call("ExecuteMultiOperation", json!({"namespace": "default", "operations": operations}));
}

/// The run closes over an update that it has not seen.
pub fn unseen(generator: &mut Generator) {
    generator.wake();
    generator.take();
    let (_id, name) = sent(generator);
    generator.complete(vec![command("COMPLETE_WORKFLOW_EXECUTION", json!({}))]);
    generator.ended(true);
    generator.join(&name);
}
