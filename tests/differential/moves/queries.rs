//! Queries: sent straight to a worker, with a task, and to a run that is over.

use serde_json::{Value, json};

use crate::author::{Author, QUEUE, WORKFLOW, failure, payload, payloads};
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

fn begin(author: &mut Author) -> (String, &'static str) {
    let name = author.fresh("query");
    let reject = author.one_of(REJECT);
    let mut query = json!({"query_type": "state", "query_args": payloads(&["how much"])});
    if author.percent(30) {
        query["header"] = json!({"fields": {"trace": payload("header")}});
    }
    let request = json!({
        "namespace": "default",
        "execution": {"workflow_id": WORKFLOW},
        "query": query,
        "query_reject_condition": reject,
    });
    author.step(Step::Begin { name: name.clone(), method: "QueryWorkflow", request, within_s: WITHIN_S });
    (name, reject)
}

fn answer(author: &mut Author) {
    let mut request = json!({
        "namespace": "default",
        "task_token": format!("@query {WORKFLOW}"),
        "completed_type": "QUERY_RESULT_TYPE_ANSWERED",
        "query_result": payloads(&["a lot"]),
    });
    if author.percent(35) {
        request["completed_type"] = "QUERY_RESULT_TYPE_FAILED".into();
        request["query_result"] = Value::Null;
        request["error_message"] = "no such query".into();
        if author.percent(50) {
            request["failure"] = failure("Unknown", true);
        }
    }
    author.call("RespondQueryTaskCompleted", request.clone());
    if author.percent(15) {
        author.call("RespondQueryTaskCompleted", request);
    }
}

fn poll(author: &mut Author) {
    let request = json!({"namespace": "default", "task_queue": author.queue(), "identity": "worker"});
    author.step(Step::Call { method: "PollWorkflowTaskQueue", request, within_s: 4 });
}

pub fn direct(author: &mut Author) {
    author.stay();
    let (name, _) = begin(author);
    author.step(Step::Pause { ms: ARRIVES_MS });
    poll(author);
    answer(author);
    author.join(&name);
}

/// The run is over; it may never have had a worker.
pub fn closed(author: &mut Author) {
    if author.started_by.is_empty() {
        return;
    }
    let (name, reject) = begin(author);
    let is_rejected = reject == REJECT[2] || reject == REJECT[3] && !author.is_closed_well;
    if !is_rejected && author.completed > 0 {
        let request = json!({"namespace": "default", "task_queue": {"name": QUEUE}, "identity": "worker"});
        author.step(Step::Call { method: "PollWorkflowTaskQueue", request, within_s: 4 });
        answer(author);
    }
    author.join(&name);
}

/// It comes with the next workflow task and is answered with its completion, or after it.
pub fn with_task(author: &mut Author) {
    let (name, _) = begin(author);
    author.step(Step::Pause { ms: ARRIVES_MS });
    author.take();
    match author.dice.below(4) {
        0 => {
            author.complete(Vec::new());
            if author.task == crate::author::Task::None {
                poll(author);
                answer(author);
            }
        }
        1 => {
            let failed = json!({
                "result_type": "QUERY_RESULT_TYPE_FAILED", "error_message": "not now",
                "failure": failure("Unknown", true),
            });
            results(author, failed);
        }
        _ => results(
            author,
            json!({"result_type": "QUERY_RESULT_TYPE_ANSWERED", "answer": payloads(&["a lot"])}),
        ),
    }
    author.join(&name);
}

fn results(author: &mut Author, result: Value) {
    let mut results = json!({});
    results[format!("@queries {WORKFLOW}")] = result;
    author.complete_with(Vec::new(), json!({ "query_results": results }));
}
