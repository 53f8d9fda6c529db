//! Updates that stay under way from move to move: the tasks that bring them fail, take too long, are refused or begin anew, and the
//! same ids are asked for again, alone or with a start, while their run is open and when it is over.

use serde_json::{Value, json};

use super::updates::{
    ARRIVES_MS, STAGES, WAITS_S, acceptance, asked_plainly, poll_within, rejection, request, response, start,
};
use super::{Move, clients, row, starts};
use crate::generator::{End, Generator, Task, WORKFLOW, command, failure, payloads};
use crate::program::Step;

/// As long as a program may take: whoever waits is told what becomes of the update.
const CALL_WITHIN_S: u64 = 60;
/// Updates of a program.
const UPDATES_MAX: usize = 3;

/// What a worker says of a task that it cannot do.
const CAUSES: &[&str] = &[
    "WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE",
    "WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR",
    "WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE",
    "WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND",
    "WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND",
    "WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED",
];

/// How far an update is, as far as the generator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// No worker has it.
    Waiting,
    /// The worker that holds the task has been given it.
    Given,
    Accepted,
    Completed,
    /// It was refused, or ended with a task or a run.
    Gone,
}

/// One update.
#[derive(Clone, Debug)]
pub struct UnderWay {
    id: String,
    at: At,
}

/// How such a program begins.
pub const OPENINGS: &[Move] = &[
    row("update under way: start", 4, always, |generator| begun(generator, starts::plain)),
    row("update under way: start, sticky", 3, always, |generator| begun(generator, starts::sticky)),
    row("update under way: start, hasty", 5, always, |generator| begun(generator, starts::hasty)),
    row("update under way: start with it", 4, always, begin_with_start),
];

/// What it does then.
pub const MOVES: &[Move] = &[
    row("update under way: bring", 14, may_bring, bring),
    row(
        "update under way: take",
        24,
        |generator| generator.is_open && generator.task == Task::Scheduled,
        take,
    ),
    row("update under way: fail", 16, held, fail),
    row("update under way: time out", 20, |generator| held(generator) && generator.is_hasty, time_out),
    row("update under way: refused", 6, |generator| held(generator) && generator.attempt == 1, refused),
    row("update under way: refused for news", 8, held_without, refused_for_news),
    row("update under way: answer", 16, held, answer),
    row("update under way: heartbeat", 6, held, heartbeat),
    row("update under way: signal", 3, signalled, |generator| generator.signal("beside")),
    row("update under way: close", 5, |generator| held(generator) && !generator.has_news, close),
    row("update under way: again", 2, may_ask_again, again),
    row("update under way: with a start again", 14, may_start_again, start_again),
    row(
        "update under way: poll",
        2,
        |generator| !generator.under_way.is_empty() && !generator.is_hasty,
        poll,
    ),
    row("update under way: terminate", 1, |generator| generator.is_open, terminate),
];

fn always(_author: &Generator) -> bool {
    true
}

fn held(generator: &Generator) -> bool {
    generator.is_open && generator.task == Task::Held
}

/// A run that is about to close takes no signal while its worker has the next task.
fn signalled(generator: &Generator) -> bool {
    generator.is_open && !(generator.is_closing && generator.task == Task::Held)
}

/// What its worker has been given ends there with a completion that is refused for news; here it comes again.
fn held_without(generator: &Generator) -> bool {
    held(generator)
        && !generator.is_closing
        && generator.under_way.iter().all(|update| update.at != At::Given)
}

/// A run whose task has failed thrice takes no update, and one that is about to close none either.
fn may_bring(generator: &Generator) -> bool {
    generator.is_open
        && generator.attempt < 3
        && !generator.is_closing
        && generator.under_way.len() < UPDATES_MAX
}

/// The same holds for one that is there already, at a Temporal server; and there is no time to wait while a task may time out.
fn may_ask_again(generator: &Generator) -> bool {
    let is_in_time = !generator.is_hasty || generator.task != Task::Held;
    !generator.under_way.is_empty() && generator.attempt < 3 && !generator.is_closing && is_in_time
}

fn may_start_again(generator: &Generator) -> bool {
    !generator.is_open && generator.under_way.iter().any(|update| update.at != At::Gone)
}

fn begun(generator: &mut Generator, start: fn(&mut Generator)) {
    start(generator);
    if generator.percent(70) {
        generator.turn(Vec::new());
    }
}

fn begin_with_start(generator: &mut Generator) {
    generator.is_hasty = generator.percent(40);
    let (id, request_id) = (generator.fresh("update"), generator.fresh("r"));
    begin_operations(generator, &id, &request_id, json!({}));
    generator.begun(&request_id);
    generator.under_way.push(UnderWay { id, at: At::Waiting });
}

fn begin(generator: &mut Generator, method: &'static str, request: Value) {
    let name = generator.fresh("call");
    generator.step(Step::Begin { name, method, request, within_s: CALL_WITHIN_S });
    generator.step(Step::Pause { ms: ARRIVES_MS });
}

fn begin_operations(generator: &mut Generator, id: &str, request_id: &str, policies: Value) {
    let mut start = crate::generator::merged(start(request_id, "WORKFLOW_ID_CONFLICT_POLICY_FAIL"), policies);
    if generator.is_hasty {
        start["workflow_task_timeout"] = "3s".into();
    }
    let update = request(&asked_plainly(id), generator.one_of(STAGES));
    let operations = json!([{"start_workflow": start}, {"update_workflow": update}]);
    begin(generator, "ExecuteMultiOperation", json!({"namespace": "default", "operations": operations}));
}

fn bring(generator: &mut Generator) {
    let id = generator.fresh("update");
    generator.stay();
    let request = request(&asked_plainly(&id), generator.one_of(STAGES));
    begin(generator, "UpdateWorkflowExecution", request);
    generator.under_way.push(UnderWay { id, at: At::Waiting });
    if generator.task == Task::None {
        generator.task = Task::Scheduled;
    }
}

fn take(generator: &mut Generator) {
    generator.take();
    change(generator, At::Waiting, At::Given);
}

/// All that are so far are as far as that now.
fn change(generator: &mut Generator, from: At, to: At) {
    let all = generator.under_way.iter_mut().filter(|update| update.at == from);
    all.for_each(|update| update.at = to);
}

/// The worker does not finish the task that it holds: what it was given and has not lost comes again, with the next one.
fn lost(generator: &mut Generator, end: End) {
    generator.task_lost(end);
    generator.is_closing = false;
    change(generator, At::Given, At::Waiting);
}

/// Notes what a task that ends in this way finds.
fn meets(generator: &mut Generator, how: &'static str) {
    let found: Vec<_> = generator.under_way.iter().map(|update| (how, update.at)).collect();
    generator.met.extend(found);
}

fn fail(generator: &mut Generator) {
    meets(generator, "failed by its worker");
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
    lost(generator, End::Failed);
    generator.is_closing = cause.ends_with("UNHANDLED_COMMAND");
}

fn time_out(generator: &mut Generator) {
    meets(generator, "timed out");
    if generator.attempt == 1 {
        generator.wait_for("EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT");
    }
    lost(generator, End::TimedOut);
}

/// The server takes offence at what the worker says.
fn refused(generator: &mut Generator) {
    meets(generator, "refused");
    let commands = match generator.dice.below(3) {
        0 => vec![command("PROTOCOL_MESSAGE", json!({"message_id": "~unknown"}))],
        1 => vec![command("START_TIMER", json!({"start_to_fire_timeout": "3600s"}))],
        _ => vec![command("CANCEL_TIMER", json!({"timer_id": "~unknown"}))],
    };
    let (mut messages, mut said) = (Vec::new(), Vec::new());
    if generator.percent(50) {
        (messages, said) = words(generator);
    }
    said.extend(commands);
    let request = generator.completion(said, json!({ "messages": messages }));
    generator.call("RespondWorkflowTaskCompleted", request);
    change(generator, At::Given, At::Gone);
    forgotten(generator);
    lost(generator, End::Failed);
}

/// A Temporal server forgets with the task what no worker was given, until it has brought the callers' calls again by itself.
fn forgotten(generator: &mut Generator) {
    generator.step(Step::Pause { ms: ARRIVES_MS });
}

/// The run would close over what it has not seen.
fn refused_for_news(generator: &mut Generator) {
    meets(generator, "refused for news");
    generator.signal("unseen");
    let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({}));
    let (messages, mut commands) =
        if generator.percent(50) { words(generator) } else { (Vec::new(), Vec::new()) };
    commands.push(last);
    let request = generator.completion(commands, json!({ "messages": messages }));
    generator.call("RespondWorkflowTaskCompleted", request);
    forgotten(generator);
    lost(generator, End::Failed);
    generator.is_closing = true;
}

/// What a worker says of the updates that it has: messages, and commands.
fn words(generator: &mut Generator) -> (Vec<Value>, Vec<Value>) {
    let (mut messages, mut commands) = (Vec::new(), Vec::new());
    for update in generator.under_way.clone() {
        let asked = asked_plainly(&update.id);
        let said = match (update.at, generator.dice.below(5)) {
            (At::Given, 0) => vec![acceptance(&update.id, &asked)],
            (At::Given, 1) => {
                messages.push(rejection(&update.id, &asked).0);
                continue;
            }
            (At::Given, 2 | 3) => vec![acceptance(&update.id, &asked), response(generator, &update.id)],
            (At::Accepted, 0..3) => vec![response(generator, &update.id)],
            _nothing => continue,
        };
        for (message, command) in said {
            messages.push(message);
            commands.push(command);
        }
    }
    (messages, commands)
}

/// What has become of the updates of which a worker has said this; of those that it was given and said nothing of.
fn learn(generator: &mut Generator, messages: &[Value], ignored: At) {
    let says = |id: &str, what: &str| messages.iter().any(|message| message["id"] == format!("{id}-{what}"));
    for update in &mut generator.under_way {
        update.at = match update.at {
            At::Given | At::Accepted if says(&update.id, "Response") => At::Completed,
            At::Given if says(&update.id, "Acceptance") => At::Accepted,
            At::Given if says(&update.id, "Rejection") => At::Gone,
            At::Given => ignored,
            other => other,
        };
    }
}

fn answer(generator: &mut Generator) {
    let (messages, commands) = words(generator);
    generator.complete_with(commands, json!({ "messages": messages }));
    learn(generator, &messages, At::Gone);
    generator.is_closing = false;
    if generator.task == Task::None && generator.under_way.iter().any(|update| update.at == At::Waiting) {
        generator.task = Task::Scheduled;
    }
}

/// The worker needs more time. Where the next task comes with the answer it has its updates already.
fn heartbeat(generator: &mut Generator) {
    meets(generator, "heartbeat");
    let is_returned = generator.percent(60);
    let more = json!({"force_create_new_workflow_task": true, "return_new_workflow_task": is_returned});
    generator.complete_with(Vec::new(), more);
    generator.is_closing = false;
    generator.task = if is_returned { Task::Held } else { Task::Scheduled };
    match is_returned {
        true => change(generator, At::Waiting, At::Given),
        false => change(generator, At::Given, At::Waiting),
    }
}

/// The run ends with what its worker says of updates, or over them, or goes on in a new one.
fn close(generator: &mut Generator) {
    meets(generator, "last");
    let (messages, mut commands) = words(generator);
    // What nobody has accepted may be long on its way to the next run, there.
    let goes_over = generator.under_way.iter().any(|update| matches!(update.at, At::Waiting | At::Given));
    let kind = if goes_over { 2 + generator.dice.below(3) } else { generator.dice.below(5) };
    commands.push(match kind {
        0 => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", true)})),
        1 => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])})),
        _ => command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])})),
    });
    generator.complete_with(commands, json!({ "messages": messages }));
    learn(generator, &messages, At::Gone);
    generator.ended(kind != 0);
    generator.is_closing = false;
    if kind == 1 {
        let request_id = generator.started_by.clone();
        generator.under_way.clear();
        generator.begun(&request_id);
    }
    change(generator, At::Waiting, At::Gone);
}

fn terminate(generator: &mut Generator) {
    meets(generator, "terminated");
    clients::terminate_now(generator);
    generator.is_closing = false;
    change(generator, At::Given, At::Gone);
    change(generator, At::Waiting, At::Gone);
}

/// The id of one of them, other than those that would begin anew.
fn one(generator: &mut Generator) -> Option<UnderWay> {
    let is_open = generator.is_open;
    let known: Vec<_> =
        generator.under_way.iter().filter(|update| !is_open || update.at != At::Gone).cloned().collect();
    (!known.is_empty()).then(|| generator.one_of(&known))
}

/// The same id comes once more, alone.
fn again(generator: &mut Generator) {
    let Some(update) = one(generator) else { return poll(generator) };
    let request = request(&asked_plainly(&update.id), generator.one_of(STAGES));
    generator.step(Step::Call { method: "UpdateWorkflowExecution", request, within_s: WAITS_S });
}

/// The same id comes once more, with a start, to a run that is over: an update that it has completed is found again, any other one
/// begins anew.
fn start_again(generator: &mut Generator) {
    let Some(update) = one(generator) else { return };
    let request_id = generator.fresh("r");
    let (reuse, is_allowed) = generator.one_of(&[
        ("WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED", true),
        ("WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE", true),
        ("WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY", !generator.is_closed_well),
        ("WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE", false),
    ]);
    let conflict =
        generator.one_of(&["WORKFLOW_ID_CONFLICT_POLICY_FAIL", "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"]);
    let policies = json!({"workflow_id_conflict_policy": conflict, "workflow_id_reuse_policy": reuse});
    begin_operations(generator, &update.id, &request_id, policies);
    if update.at != At::Completed && is_allowed {
        generator.begun(&request_id);
        generator.under_way = vec![UnderWay { at: At::Waiting, ..update }];
    }
}

fn poll(generator: &mut Generator) {
    if let Some(update) = one(generator) {
        poll_within(generator, &update.id, WAITS_S);
    }
}

/// The run ends, and whoever waits is told what has become of the update; then everybody asks once more.
pub fn finish(generator: &mut Generator) {
    if generator.is_open {
        terminate(generator);
    }
    for update in generator.under_way.clone() {
        poll_within(generator, &update.id, WAITS_S);
        let request = request(&asked_plainly(&update.id), STAGES[0]);
        generator.step(Step::Call { method: "UpdateWorkflowExecution", request, within_s: WAITS_S });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{At, MOVES, OPENINGS};
    use crate::generator::{Generator, UNDER_WAY};

    #[test]
    fn every_end_of_a_task_meets_every_stage_of_an_update() {
        let mut met = BTreeSet::new();
        for seed in UNDER_WAY..UNDER_WAY + 1_500 {
            let mut generator = Generator::new(seed);
            generator.move_on(OPENINGS, MOVES);
            met.extend(generator.met);
        }
        let ends = [
            "failed by its worker",
            "timed out",
            "refused",
            "refused for news",
            "heartbeat",
            "last",
            "terminated",
        ];
        let stages = [At::Waiting, At::Given, At::Accepted, At::Completed];
        let pairs = ends.iter().flat_map(|end| stages.map(|stage| (*end, stage)));
        let differs = ("refused for news", At::Given);
        let missing: Vec<_> = pairs.filter(|pair| *pair != differs && !met.contains(pair)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
