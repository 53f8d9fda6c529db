//! Activities that operators pause, reset and change, and other options of their runs.

use serde_json::{Value, json};

use super::{Move, always, calm, clients, open, row, starts, tasks};
use crate::generator::{Generator, QUEUE, WORKFLOW, command, failure, merged, payloads};

/// How such a program begins.
pub const OPENINGS: &[Move] = &[
    row("operated: start", 10, always, starts::plain),
    row("operated: start, sticky", 4, always, starts::sticky),
];

/// What it does then.
pub const MOVES: &[Move] = &[
    row("operated: activity", 40, calm, activity),
    row("operated: options of the run", 12, always, run_options),
    row("operated: bad call", 12, open, bad),
    row("operated: signal", 4, calm, clients::signal),
    row("operated: turn", 6, calm, tasks::turn),
    row("operated: terminate", 1, open, clients::terminate),
];

type Course = fn(&mut Generator);

const COURSES: &[Course] = &[
    paused_while_it_waits,
    paused_in_hand,
    paused_for_good,
    paused_between_attempts,
    reset_in_hand,
    reset_between_attempts,
    reset_while_paused,
    other_options,
    restored_options,
    of_a_type,
    paused_at_the_end,
];

fn activity(generator: &mut Generator) {
    generator.one_of(COURSES)(generator);
}

/// Schedules an activity and gives its id. Its retries come as soon as they may, or never.
fn schedule(generator: &mut Generator, more: Value) -> String {
    let id = generator.fresh("a");
    generator.is_timely = true;
    generator.wake();
    let attributes = json!({
        "activity_id": id,
        "activity_type": {"name": "charge"},
        "task_queue": {"name": QUEUE},
        "input": payloads(&["7"]),
        "start_to_close_timeout": "60s",
        "heartbeat_timeout": "30s",
    });
    generator.turn(vec![command("SCHEDULE_ACTIVITY_TASK", merged(attributes, more))]);
    id
}

fn retries(initial_interval: &str, maximum_attempts: i64) -> Value {
    json!({"retry_policy": {
        "initial_interval": initial_interval, "backoff_coefficient": 1.0, "maximum_attempts": maximum_attempts,
    }})
}

fn operate(generator: &mut Generator, method: &'static str, id: &str, more: Value) {
    let request = json!({
        "namespace": "default", "execution": {"workflow_id": WORKFLOW}, "identity": "operator", "id": id,
    });
    generator.call(method, merged(request, more));
}

fn pause(generator: &mut Generator, id: &str) {
    operate(generator, "PauseActivity", id, json!({"reason": "why", "request_id": "pause"}));
}

fn unpause(generator: &mut Generator, id: &str) {
    let more = match generator.dice.below(4) {
        0 => json!({"reset_attempts": true}),
        1 => json!({"reset_heartbeat": true}),
        _ => json!({}),
    };
    operate(generator, "UnpauseActivity", id, more);
}

fn reset(generator: &mut Generator, id: &str, more: Value) {
    operate(generator, "ResetActivity", id, more);
}

fn by_token(generator: &mut Generator, method: &'static str, id: &str, more: Value) {
    let request = json!({"namespace": "default", "task_token": format!("@task {id}"), "identity": "worker"});
    generator.call(method, merged(request, more));
}

fn heartbeat(generator: &mut Generator, id: &str) {
    by_token(generator, "RecordActivityTaskHeartbeat", id, json!({"details": payloads(&["half"])}));
}

fn fail(generator: &mut Generator, id: &str) {
    by_token(generator, "RespondActivityTaskFailed", id, json!({"failure": failure("Busy", false)}));
}

fn describe(generator: &mut Generator) {
    let request = json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}});
    generator.call("DescribeWorkflowExecution", request);
}

/// A worker takes it and returns; the workflow hears of it, or is about to.
fn complete(generator: &mut Generator, id: &str) {
    generator.poll_activity();
    finish(generator, id);
}

fn finish(generator: &mut Generator, id: &str) {
    by_token(generator, "RespondActivityTaskCompleted", id, json!({"result": payloads(&["paid"])}));
    generator.happened();
    if generator.percent(50) {
        generator.turn(Vec::new());
    }
}

fn paused_while_it_waits(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    pause(generator, &id);
    if generator.percent(30) {
        pause(generator, &id);
    }
    describe(generator);
    unpause(generator, &id);
    describe(generator);
    complete(generator, &id);
}

fn paused_in_hand(generator: &mut Generator) {
    let attempts = generator.one_of(&[0, 1, 2]);
    let id = schedule(generator, retries("1s", attempts));
    generator.poll_activity();
    pause(generator, &id);
    describe(generator);
    heartbeat(generator, &id);
    if generator.percent(30) {
        return finish(generator, &id);
    }
    fail(generator, &id);
    describe(generator);
    unpause(generator, &id);
    complete(generator, &id);
}

/// What its policy does not try again fails, paused or not.
fn paused_for_good(generator: &mut Generator) {
    let id = schedule(generator, retries("1s", 3));
    generator.poll_activity();
    pause(generator, &id);
    by_token(generator, "RespondActivityTaskFailed", &id, json!({"failure": failure("Declined", true)}));
    generator.happened();
    describe(generator);
}

fn paused_between_attempts(generator: &mut Generator) {
    let id = schedule(generator, retries("600s", 5));
    generator.poll_activity();
    heartbeat(generator, &id);
    fail(generator, &id);
    pause(generator, &id);
    describe(generator);
    unpause(generator, &id);
    complete(generator, &id);
}

fn reset_in_hand(generator: &mut Generator) {
    let id = schedule(generator, retries("1s", 3));
    generator.poll_activity();
    if generator.percent(50) {
        heartbeat(generator, &id);
    }
    let forgets = generator.percent(40);
    reset(generator, &id, json!({"reset_heartbeat": forgets}));
    heartbeat(generator, &id);
    describe(generator);
    if generator.percent(40) {
        return finish(generator, &id);
    }
    fail(generator, &id);
    describe(generator);
    complete(generator, &id);
}

fn reset_between_attempts(generator: &mut Generator) {
    let id = schedule(generator, retries("600s", 5));
    generator.poll_activity();
    heartbeat(generator, &id);
    fail(generator, &id);
    let forgets = generator.percent(40);
    reset(generator, &id, json!({"reset_heartbeat": forgets}));
    describe(generator);
    complete(generator, &id);
}

fn reset_while_paused(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    pause(generator, &id);
    let keeps = generator.percent(50);
    reset(generator, &id, json!({"keep_paused": keeps}));
    describe(generator);
    if keeps {
        unpause(generator, &id);
    }
    complete(generator, &id);
}

/// Other options: each with the paths that name them.
fn options(generator: &mut Generator) -> Value {
    let all = [
        json!({"activity_options": {"start_to_close_timeout": "77s"}, "update_mask": "start_to_close_timeout"}),
        json!({"activity_options": {"heartbeat_timeout": "900s"}, "update_mask": "heartbeat_timeout"}),
        json!({"activity_options": {"schedule_to_close_timeout": "40s"}, "update_mask": "schedule_to_close_timeout"}),
        json!({
            "activity_options": {"retry_policy": {"maximum_attempts": 9, "initial_interval": "3s"}},
            "update_mask": "retry_policy.maximum_attempts,retry_policy.initial_interval",
        }),
        json!({
            "activity_options": {"schedule_to_start_timeout": "30s", "start_to_close_timeout": "20s"},
            "update_mask": "schedule_to_start_timeout,start_to_close_timeout",
        }),
    ];
    let mut chosen = all[generator.dice.below(all.len() as u64) as usize].clone();
    let paths = chosen["update_mask"].as_str().unwrap_or_default();
    chosen["update_mask"] = json!({"paths": paths.split(',').collect::<Vec<_>>()});
    chosen
}

fn other_options(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    let is_taken = generator.percent(40);
    if is_taken {
        generator.poll_activity();
    }
    let changed = options(generator);
    operate(generator, "UpdateActivityOptions", &id, changed);
    describe(generator);
    match is_taken {
        true => finish(generator, &id),
        false => complete(generator, &id),
    }
}

fn restored_options(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    let changed = options(generator);
    operate(generator, "UpdateActivityOptions", &id, changed);
    match generator.percent(50) {
        true => operate(generator, "UpdateActivityOptions", &id, json!({"restore_original": true})),
        false => reset(generator, &id, json!({"restore_original_options": true})),
    }
    describe(generator);
    complete(generator, &id);
}

fn of_a_type(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    let request = json!({
        "namespace": "default", "execution": {"workflow_id": WORKFLOW}, "identity": "operator", "type": "charge",
    });
    generator.call("PauseActivity", merged(request.clone(), json!({"reason": "why"})));
    describe(generator);
    generator.call("UnpauseActivity", request);
    complete(generator, &id);
}

/// A run is described with what was paused when it closed.
fn paused_at_the_end(generator: &mut Generator) {
    let id = schedule(generator, json!({}));
    pause(generator, &id);
    clients::terminate(generator);
    describe(generator);
    operate(generator, "UnpauseActivity", &id, json!({}));
}

/// The run goes along with what is current, or with a version for no longer than a moment: nobody polls for that.
fn run_options(generator: &mut Generator) {
    let pinned = json!({"behavior": "PINNED_OVERRIDE_BEHAVIOR_PINNED"});
    let version = json!({"version": {"build_id": "b", "deployment_name": "d"}});
    match generator.dice.below(4) {
        0 => override_with(generator, json!({})),
        1 => override_with(generator, json!({"versioning_override": {"auto_upgrade": true}})),
        2 => override_with(generator, json!({"versioning_override": {"pinned": pinned}})),
        _ => {
            let whole = merged(pinned, version);
            override_with(generator, json!({"versioning_override": {"pinned": whole}}));
            override_with(generator, json!({}));
        }
    }
}

fn override_with(generator: &mut Generator, options: Value) {
    let request = json!({
        "namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW},
        "update_mask": {"paths": ["versioning_override"]}, "workflow_execution_options": options,
    });
    generator.call("UpdateWorkflowExecutionOptions", request);
}

fn bad(generator: &mut Generator) {
    let run = json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}});
    let unknown = merged(run.clone(), json!({"id": "unknown"}));
    let method = generator.one_of(&["PauseActivity", "UnpauseActivity", "ResetActivity"]);
    match generator.dice.below(7) {
        0 => generator.call(method, json!({"namespace": "default", "id": "a"})),
        1 => generator.call(method, run),
        2 => generator.call(method, unknown),
        3 => generator.call(method, merged(run, json!({"type": "unknown"}))),
        4 => generator.call("UpdateActivityOptions", unknown),
        5 => {
            let more = json!({"restore_original": true, "update_mask": {"paths": ["heartbeat_timeout"]}});
            generator.call("UpdateActivityOptions", merged(unknown, more));
        }
        _ => {
            let more = json!({
                "activity_options": {"heartbeat_timeout": "5s"}, "update_mask": {"paths": ["heartbeat_timeout"]},
            });
            generator.call("UpdateActivityOptions", merged(unknown, more));
        }
    }
}
