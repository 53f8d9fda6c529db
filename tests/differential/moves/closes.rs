//! How runs end by their own will, and what keeps them from it.

use serde_json::{Value, json};

use super::children;
use crate::generator::{End, Generator, QUEUE, command, failure, payload, payloads};
use crate::program::Step;

fn completion() -> Value {
    command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])}))
}

fn close(generator: &mut Generator, last: Value, is_well: bool) {
    generator.wake();
    generator.take();
    let mut commands = Vec::new();
    if generator.percent(30) {
        let timer = generator.fresh("timer");
        commands.push(command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "3600s"})));
    }
    commands.push(last);
    generator.complete(commands);
    generator.ended(is_well);
}

pub fn complete(generator: &mut Generator) {
    let last = match generator.percent(80) {
        true => completion(),
        false => command("COMPLETE_WORKFLOW_EXECUTION", json!({})),
    };
    close(generator, last, true);
}

pub fn fail(generator: &mut Generator) {
    let is_final = generator.percent(50) || generator.is_retried;
    let last = command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", is_final)}));
    close(generator, last, false);
}

pub fn cancel(generator: &mut Generator) {
    close(
        generator,
        command("CANCEL_WORKFLOW_EXECUTION", json!({"details": payloads(&["cleaned up"])})),
        false,
    );
}

pub fn continue_as_new(generator: &mut Generator) {
    let mut attributes = json!({"input": payloads(&["next"])});
    let more = [
        ("workflow_type", json!({"name": "order"})),
        ("task_queue", json!({"name": QUEUE})),
        ("workflow_run_timeout", json!("1800s")),
        ("workflow_task_timeout", json!("15s")),
        ("header", json!({"fields": {"trace": payload("next")}})),
        ("memo", json!({"fields": {"note": payload("next")}})),
        ("last_completion_result", payloads(&["so far"])),
        (
            "search_attributes",
            json!({"indexed_fields": {"CustomKeywordField": {
                "metadata": {"encoding": "json/plain", "type": "Keyword"}, "data": "\"next\"",
            }}}),
        ),
    ];
    for (field, value) in more {
        if generator.percent(40) {
            attributes[field] = value;
        }
    }
    // Else it goes on with the timeout that it has.
    generator.is_hasty &= attributes.get("workflow_task_timeout").is_none();
    generator.wake();
    generator.take();
    let command = command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", attributes);
    generator.complete(vec![command]);
    let request = generator.started_by.clone();
    generator.begun(&request);
    (generator.is_repeated, generator.is_retried) = (false, false);
    super::clients::describe(generator);
}

/// What a run asks of others in the very task that ends it is asked of nobody.
pub fn with_wishes(generator: &mut Generator) {
    let abandon = json!({"parent_close_policy": "PARENT_CLOSE_POLICY_ABANDON"});
    let child = children::begun(generator, abandon.clone());
    let late = generator.fresh("child");
    generator.wake();
    generator.take();
    let cancel =
        json!({"namespace": "default", "workflow_id": child, "child_workflow_only": generator.percent(50)});
    let mut commands = vec![
        children::start(&late, if generator.percent(50) { abandon } else { json!({}) }),
        children::signal(json!({ "workflow_id": child }), generator.percent(50)),
        command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", cancel),
    ];
    let is_well = generator.percent(60);
    commands.push(match is_well {
        true => completion(),
        false => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", true)})),
    });
    generator.complete(commands);
    generator.ended(is_well);
    generator.step(Step::Pause { ms: children::NOTHING_MS });
    for execution in [child, late] {
        generator.call(
            "DescribeWorkflowExecution",
            json!({"namespace": "default", "execution": {"workflow_id": execution}}),
        );
    }
}

/// The run would close over what it has not seen.
pub fn with_news(generator: &mut Generator) {
    generator.wake();
    generator.take();
    generator.signal("unseen");
    let last = match generator.dice.below(3) {
        0 => completion(),
        1 => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", false)})),
        _ => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])})),
    };
    let request = generator.completion(vec![last], json!({}));
    generator.call("RespondWorkflowTaskCompleted", request);
    generator.task_lost(End::Failed);
    generator.take();
    if generator.percent(50) {
        // The run is about to close: who comes now is told so.
        match generator.percent(50) {
            true => generator.signal("too late"),
            false => super::updates::too_late(generator),
        }
        generator.has_news = false;
    }
    let last = completion();
    generator.complete(vec![last]);
    generator.ended(true);
}

/// A command behind the one that closes.
pub fn not_last(generator: &mut Generator) {
    generator.wake();
    generator.take();
    let marker = command("RECORD_MARKER", json!({"marker_name": "behind"}));
    let second = match generator.percent(50) {
        true => marker,
        false => completion(),
    };
    let request = generator.completion(vec![completion(), second], json!({}));
    generator.call("RespondWorkflowTaskCompleted", request);
    super::clients::describe(generator);
    // The task is still held.
    generator.complete(Vec::new());
}
