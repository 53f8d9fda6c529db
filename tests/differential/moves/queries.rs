//! Queries: sent straight to a worker, with a task, and to a run that is over.

use serde_json::{Value, json};

use crate::generator::{Generator, QUEUE, WORKFLOW, failure, payload, payloads};
use crate::program::Step;

const REJECT: &[&str] = &[
    "QUERY_REJECT_CONDITION_UNSPECIFIED",
    "QUERY_REJECT_CONDITION_NONE",
    "QUERY_REJECT_CONDITION_NOT_OPEN",
    "QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY",
];
/// How long one waits: in vain, not longer than a task that is held has time.
const WITHIN_S: u64 = 6;
/// How long a query may take to arrive.
const ARRIVES_MS: u64 = 500;

fn begin(generator: &mut Generator) -> (String, &'static str) {
    let name = generator.fresh("query");
    let reject = generator.one_of(REJECT);
    let mut query = json!({"query_type": "state", "query_args": payloads(&["how much"])});
    if generator.percent(30) {
        query["header"] = json!({"fields": {"trace": payload("header")}});
    }
    let request = json!({
        "namespace": "default",
        "execution": {"workflow_id": WORKFLOW},
        "query": query,
        "query_reject_condition": reject,
    });
    generator.step(Step::Begin { name: name.clone(), method: "QueryWorkflow", request, within_s: WITHIN_S });
    (name, reject)
}

fn answer(generator: &mut Generator) {
    let mut request = json!({
        "namespace": "default",
        "task_token": format!("@query {WORKFLOW}"),
        "completed_type": "QUERY_RESULT_TYPE_ANSWERED",
        "query_result": payloads(&["a lot"]),
    });
    if generator.percent(35) {
        request["completed_type"] = "QUERY_RESULT_TYPE_FAILED".into();
        request["query_result"] = Value::Null;
        request["error_message"] = "no such query".into();
        if generator.percent(50) {
            request["failure"] = failure("Unknown", true);
        }
    }
    generator.call("RespondQueryTaskCompleted", request.clone());
    if generator.percent(15) {
        generator.call("RespondQueryTaskCompleted", request);
    }
}

fn poll(generator: &mut Generator) {
    let request = json!({"namespace": "default", "task_queue": generator.queue(), "identity": "worker"});
    generator.step(Step::Call { method: "PollWorkflowTaskQueue", request, within_s: 4 });
}

pub fn direct(generator: &mut Generator) {
    generator.stay();
    let (name, _) = begin(generator);
    generator.step(Step::Pause { ms: ARRIVES_MS });
    poll(generator);
    answer(generator);
    generator.join(&name);
}

/// The run is over; it may never have had a worker.
pub fn closed(generator: &mut Generator) {
    if generator.started_by.is_empty() {
        return;
    }
    let (name, reject) = begin(generator);
    let is_rejected = reject == REJECT[2] || reject == REJECT[3] && !generator.is_closed_well;
    if !is_rejected && generator.completed > 0 {
        let request = json!({"namespace": "default", "task_queue": {"name": QUEUE}, "identity": "worker"});
        generator.step(Step::Call { method: "PollWorkflowTaskQueue", request, within_s: 4 });
        answer(generator);
    }
    generator.join(&name);
}

/// It comes with the next workflow task and is answered with its completion, or after it.
pub fn with_task(generator: &mut Generator) {
    let (name, _) = begin(generator);
    generator.step(Step::Pause { ms: ARRIVES_MS });
    generator.take();
    match generator.dice.below(4) {
        0 => {
            generator.complete(Vec::new());
            if generator.task == crate::generator::Task::None {
                poll(generator);
                answer(generator);
            }
        }
        1 => {
            let failed = json!({
                "result_type": "QUERY_RESULT_TYPE_FAILED", "error_message": "not now",
                "failure": failure("Unknown", true),
            });
            results(generator, failed);
        }
        _ => results(
            generator,
            json!({"result_type": "QUERY_RESULT_TYPE_ANSWERED", "answer": payloads(&["a lot"])}),
        ),
    }
    generator.join(&name);
}

fn results(generator: &mut Generator, result: Value) {
    let mut results = json!({});
    results[format!("@queries {WORKFLOW}")] = result;
    generator.complete_with(Vec::new(), json!({ "query_results": results }));
}
