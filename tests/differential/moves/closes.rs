//! How runs end by their own will, and what keeps them from it.

use serde_json::{Value, json};

use super::children;
use crate::author::{Author, End, QUEUE, command, failure, payload, payloads};
use crate::program::Step;

fn completion() -> Value {
    command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["done"])}))
}

fn close(author: &mut Author, last: Value, is_well: bool) {
    author.wake();
    author.take();
    let mut commands = Vec::new();
    if author.percent(30) {
        let timer = author.fresh("timer");
        commands.push(command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "3600s"})));
    }
    commands.push(last);
    author.complete(commands);
    author.ended(is_well);
}

pub fn complete(author: &mut Author) {
    let last = match author.percent(80) {
        true => completion(),
        false => command("COMPLETE_WORKFLOW_EXECUTION", json!({})),
    };
    close(author, last, true);
}

pub fn fail(author: &mut Author) {
    let is_final = author.percent(50) || author.is_retried;
    let last = command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", is_final)}));
    close(author, last, false);
}

pub fn cancel(author: &mut Author) {
    close(author, command("CANCEL_WORKFLOW_EXECUTION", json!({"details": payloads(&["cleaned up"])})), false);
}

pub fn continue_as_new(author: &mut Author) {
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
        if author.percent(40) {
            attributes[field] = value;
        }
    }
    // Else it goes on with the timeout that it has.
    author.is_hasty &= attributes.get("workflow_task_timeout").is_none();
    author.wake();
    author.take();
    let command = command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", attributes);
    author.complete(vec![command]);
    let request = author.started_by.clone();
    author.begun(&request);
    (author.is_repeated, author.is_retried) = (false, false);
    super::clients::describe(author);
}

/// What a run asks of others in the very task that ends it is asked of nobody.
pub fn with_wishes(author: &mut Author) {
    let abandon = json!({"parent_close_policy": "PARENT_CLOSE_POLICY_ABANDON"});
    let child = children::begun(author, abandon.clone());
    let late = author.fresh("child");
    author.wake();
    author.take();
    let cancel =
        json!({"namespace": "default", "workflow_id": child, "child_workflow_only": author.percent(50)});
    let mut commands = vec![
        children::start(&late, if author.percent(50) { abandon } else { json!({}) }),
        children::signal(json!({ "workflow_id": child }), author.percent(50)),
        command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", cancel),
    ];
    let is_well = author.percent(60);
    commands.push(match is_well {
        true => completion(),
        false => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", true)})),
    });
    author.complete(commands);
    author.ended(is_well);
    author.step(Step::Pause { ms: children::NOTHING_MS });
    for execution in [child, late] {
        author.call(
            "DescribeWorkflowExecution",
            json!({"namespace": "default", "execution": {"workflow_id": execution}}),
        );
    }
}

/// The run would close over what it has not seen.
pub fn with_news(author: &mut Author) {
    author.wake();
    author.take();
    author.signal("unseen");
    let last = match author.dice.below(3) {
        0 => completion(),
        1 => command("FAIL_WORKFLOW_EXECUTION", json!({"failure": failure("Refused", false)})),
        _ => command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"input": payloads(&["next"])})),
    };
    let request = author.completion(vec![last], json!({}));
    author.call("RespondWorkflowTaskCompleted", request);
    author.task_lost(End::Failed);
    author.take();
    if author.percent(50) {
        // The run is about to close: who comes now is told so.
        match author.percent(50) {
            true => author.signal("too late"),
            false => super::updates::too_late(author),
        }
        author.has_news = false;
    }
    let last = completion();
    author.complete(vec![last]);
    author.ended(true);
}

/// A command behind the one that closes.
pub fn not_last(author: &mut Author) {
    author.wake();
    author.take();
    let marker = command("RECORD_MARKER", json!({"marker_name": "behind"}));
    let second = match author.percent(50) {
        true => marker,
        false => completion(),
    };
    let request = author.completion(vec![completion(), second], json!({}));
    author.call("RespondWorkflowTaskCompleted", request);
    super::clients::describe(author);
    // The task is still held.
    author.complete(Vec::new());
}
