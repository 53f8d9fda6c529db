//! Starts of every kind, and what an id that is taken says to them.

use serde_json::{Value, json};

use crate::author::{Author, IDLE, QUEUE, STICKY, WORKFLOW, merged, payload, payloads};
use crate::program::Step;

const REUSE: &[&str] = &[
    "WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED",
    "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE",
    "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY",
    "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE",
    "WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING",
];
const CONFLICT: &[&str] = &[
    "WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED",
    "WORKFLOW_ID_CONFLICT_POLICY_FAIL",
    "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
    "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
];

/// What a start leaves with an open run that it finds.
const ON_CONFLICT: &[fn() -> Value] = &[
    || json!({"attach_request_id": true}),
    || json!({"attach_request_id": true, "attach_links": true}),
    || json!({"attach_links": true}),
    || json!({}),
];

fn request(author: &mut Author, more: Value) -> Value {
    let request_id = author.fresh("r");
    let request = json!({
        "namespace": "default",
        "workflow_id": WORKFLOW,
        "workflow_type": {"name": "order"},
        "task_queue": {"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "input": payloads(&["first", "second"]),
        "identity": "caller",
        "request_id": request_id,
    });
    merged(request, more)
}

/// A start with further fields.
pub fn with(author: &mut Author, more: Value) {
    let request = request(author, more);
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    author.call("StartWorkflowExecution", request);
    author.begun(&request_id);
}

pub fn plain(author: &mut Author) {
    with(author, json!({}));
}

/// Nothing is there: what callers hear of it.
pub fn nothing(author: &mut Author) {
    author.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

pub fn with_everything(author: &mut Author) {
    with(author, everything());
}

fn everything() -> Value {
    json!({
        "workflow_execution_timeout": "7200s",
        "workflow_run_timeout": "3600s",
        "workflow_task_timeout": "20s",
        "memo": {"fields": {"note": payload("memo")}},
        "search_attributes": {"indexed_fields": {"CustomKeywordField": {
            "metadata": {"encoding": "json/plain", "type": "Keyword"}, "data": "\"red\"",
        }}},
        "header": {"fields": {"trace": payload("header")}},
        "user_metadata": {"summary": payload("summary"), "details": payload("details")},
        "priority": {"priority_key": 2, "fairness_key": "parents", "fairness_weight": 2.5},
        "links": [link()],
    })
}

fn link() -> Value {
    json!({"workflow_event": {
        "namespace": "default", "workflow_id": "other", "run_id": "11111111-2222-4333-8444-555555555555",
        "event_ref": {"event_id": 1, "event_type": "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"},
    }})
}

/// How long a run waits before its first task.
const DELAY_MS: u64 = 2_000;

/// Workers that keep their runs: the sticky queue is polled once before anything goes there.
pub fn sticky(author: &mut Author) {
    author.is_sticky = true;
    author.poll(json!({"name": STICKY, "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": QUEUE}));
    with(author, json!({}));
}

pub fn hasty(author: &mut Author) {
    author.is_hasty = true;
    with(author, json!({"workflow_task_timeout": "3s"}));
}

/// The first task comes later.
pub fn delayed(author: &mut Author) {
    author.is_delayed = true;
    with(author, json!({"workflow_start_delay": format!("{}s", DELAY_MS / 1_000)}));
    let early = author.dice.below(6);
    let has_its_task = match early {
        0 | 1 => {
            author.signal("early");
            false
        }
        2 => {
            signal_with_start_early(author);
            false
        }
        3 | 4 => super::updates::early(author),
        _ => false,
    };
    author.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
    if has_its_task {
        return;
    }
    author.take();
    author.complete(Vec::new());
    if early == 2 {
        // There a run that continues one before its time waits until then.
        author.step(Step::Pause { ms: DELAY_MS });
    }
}

/// The run is there, and waits.
fn signal_with_start_early(author: &mut Author) {
    let conflict = json!({"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"});
    signal_with_start(author, conflict);
    author.happened();
}

pub fn eager(author: &mut Author) {
    with(author, json!({"request_eager_execution": true}));
    author.task = crate::author::Task::Held;
    author.is_eager = true;
}

/// Ends by its run timeout, with whatever is under way then.
pub fn short_run(author: &mut Author) {
    with(author, json!({"workflow_run_timeout": "2s"}));
    time_out(author);
}

pub fn short_execution(author: &mut Author) {
    with(author, json!({"workflow_execution_timeout": "2s"}));
    time_out(author);
}

fn time_out(author: &mut Author) {
    author.is_short = true;
    match author.dice.below(4) {
        0 => {}
        1 => author.take(),
        2 => {
            author.take();
            author.signal("buffered");
        }
        _ => author.turn(vec![json!({
            "command_type": "COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK",
            "schedule_activity_task_command_attributes": {
                "activity_id": "~idle", "activity_type": {"name": "idle"}, "task_queue": {"name": IDLE},
                "start_to_close_timeout": "100s",
            },
        })]),
    }
    author.wait_for("EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT");
    author.ended(false);
}

fn policies(author: &mut Author) -> (&'static str, &'static str) {
    (author.one_of(REUSE), author.one_of(CONFLICT))
}

/// A start of an id that has been used; how it ends is guessed, so that the program goes on sensibly.
pub fn again(author: &mut Author) {
    let (reuse, conflict) = policies(author);
    let mut more = json!({"workflow_id_reuse_policy": reuse, "workflow_id_conflict_policy": conflict});
    let is_same = author.percent(15) && !author.started_by.is_empty() && !author.is_continued;
    if is_same {
        more["request_id"] = author.started_by.clone().into();
    }
    if author.percent(20) {
        more = merged(everything(), more);
    }
    if author.percent(30) {
        more["on_conflict_options"] = author.one_of(ON_CONFLICT)();
        more["links"] = json!([link()]);
    }
    let request = request(author, more);
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    author.call("StartWorkflowExecution", request);
    guess(author, &request_id, reuse, conflict, is_same);
    author.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn guess(author: &mut Author, request_id: &str, reuse: &str, conflict: &str, is_same: bool) {
    let is_clash =
        reuse == REUSE[4] && conflict != CONFLICT[0] || reuse == REUSE[3] && conflict == CONFLICT[3];
    if is_same || is_clash {
        return;
    }
    let begins = match author.is_open {
        true => reuse == REUSE[4] || conflict == CONFLICT[3],
        false => match reuse {
            "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY" => !author.is_closed_well,
            "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE" => author.started_by.is_empty(),
            _other => true,
        },
    };
    if begins {
        author.begun(request_id);
    }
}

fn signal_with_start(author: &mut Author, more: Value) -> String {
    let signal = json!({"signal_name": "go", "signal_input": payloads(&["signal"])});
    let request = request(author, merged(signal, more));
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    author.call("SignalWithStartWorkflowExecution", request);
    request_id
}

/// A start with a signal, and further fields.
pub fn signalled_with(author: &mut Author, more: Value) {
    let request_id = signal_with_start(author, more);
    author.begun(&request_id);
}

pub fn signalled(author: &mut Author) {
    let more = if author.percent(40) { everything() } else { json!({}) };
    let more = merged(more, json!({"priority": null, "links": null}));
    signalled_with(author, more);
}

/// An open run is found twice by those who want to use it.
pub fn used(author: &mut Author) {
    let mut more = json!({"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"});
    more["on_conflict_options"] = author.one_of(ON_CONFLICT)();
    if author.percent(60) {
        more["links"] = json!([link()]);
    }
    let request = request(author, more);
    author.call("StartWorkflowExecution", request.clone());
    if author.percent(40) {
        author.call("StartWorkflowExecution", request);
    }
}

pub fn signal_again(author: &mut Author) {
    let (reuse, conflict) = policies(author);
    let more = json!({"workflow_id_reuse_policy": reuse, "workflow_id_conflict_policy": conflict});
    let request_id = signal_with_start(author, more);
    if author.is_open && conflict != CONFLICT[1] && (reuse != REUSE[4] || conflict == CONFLICT[0]) {
        match reuse == REUSE[4] || conflict == CONFLICT[3] {
            true => author.begun(&request_id),
            false => author.happened(),
        }
    } else if conflict != CONFLICT[1] {
        guess(author, &request_id, reuse, conflict, false);
    }
    if author.percent(50) {
        author.step(Step::Call {
            method: "DescribeWorkflowExecution",
            request: json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
            within_s: 10,
        });
    }
}
