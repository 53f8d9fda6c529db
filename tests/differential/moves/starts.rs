//! Starts of every kind, and what an id that is taken says to them.

use serde_json::{Value, json};

use crate::generator::{Generator, IDLE, QUEUE, STICKY, WORKFLOW, merged, payload, payloads};
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

fn request(generator: &mut Generator, more: Value) -> Value {
    let request_id = generator.fresh("r");
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
pub fn with(generator: &mut Generator, more: Value) {
    let request = request(generator, more);
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    generator.call("StartWorkflowExecution", request);
    generator.begun(&request_id);
}

pub fn plain(generator: &mut Generator) {
    with(generator, json!({}));
}

/// Nothing is there: what callers hear of it.
pub fn nothing(generator: &mut Generator) {
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

pub fn with_everything(generator: &mut Generator) {
    with(generator, everything());
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
pub fn sticky(generator: &mut Generator) {
    generator.is_sticky = true;
    generator.poll(json!({"name": STICKY, "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": QUEUE}));
    with(generator, json!({}));
}

pub fn hasty(generator: &mut Generator) {
    generator.is_hasty = true;
    with(generator, json!({"workflow_task_timeout": "3s"}));
}

/// The first task comes later.
pub fn delayed(generator: &mut Generator) {
    generator.is_delayed = true;
    with(generator, json!({"workflow_start_delay": format!("{}s", DELAY_MS / 1_000)}));
    let early = generator.dice.below(6);
    let has_its_task = match early {
        0 | 1 => {
            generator.signal("early");
            false
        }
        2 => {
            signal_with_start_early(generator);
            false
        }
        3 | 4 => super::updates::early(generator),
        _ => false,
    };
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
    if has_its_task {
        return;
    }
    generator.take();
    generator.complete(Vec::new());
    if early == 2 {
        // There a run that continues one before its time waits until then.
        generator.step(Step::Pause { ms: DELAY_MS });
    }
}

/// The run is there, and waits.
fn signal_with_start_early(generator: &mut Generator) {
    let conflict = json!({"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"});
    signal_with_start(generator, conflict);
    generator.happened();
}

pub fn eager(generator: &mut Generator) {
    with(generator, json!({"request_eager_execution": true}));
    generator.task = crate::generator::Task::Held;
    generator.is_eager = true;
}

/// Ends by its run timeout, with whatever is under way then.
pub fn short_run(generator: &mut Generator) {
    with(generator, json!({"workflow_run_timeout": "2s"}));
    time_out(generator);
}

pub fn short_execution(generator: &mut Generator) {
    with(generator, json!({"workflow_execution_timeout": "2s"}));
    time_out(generator);
}

fn time_out(generator: &mut Generator) {
    generator.is_short = true;
    match generator.dice.below(4) {
        0 => {}
        1 => generator.take(),
        2 => {
            generator.take();
            generator.signal("buffered");
        }
        _ => generator.turn(vec![json!({
            "command_type": "COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK",
            "schedule_activity_task_command_attributes": {
                "activity_id": "~idle", "activity_type": {"name": "idle"}, "task_queue": {"name": IDLE},
                "start_to_close_timeout": "100s",
            },
        })]),
    }
    generator.wait_for("EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT");
    generator.ended(false);
}

fn policies(generator: &mut Generator) -> (&'static str, &'static str) {
    (generator.one_of(REUSE), generator.one_of(CONFLICT))
}

/// A start of an id that has been used; how it ends is guessed, so that the program goes on sensibly.
pub fn again(generator: &mut Generator) {
    let (reuse, conflict) = policies(generator);
    let mut more = json!({"workflow_id_reuse_policy": reuse, "workflow_id_conflict_policy": conflict});
    let is_same = generator.percent(15) && !generator.started_by.is_empty() && !generator.is_continued;
    if is_same {
        more["request_id"] = generator.started_by.clone().into();
    }
    if generator.percent(20) {
        more = merged(everything(), more);
    }
    if generator.percent(30) {
        more["on_conflict_options"] = generator.one_of(ON_CONFLICT)();
        more["links"] = json!([link()]);
    }
    let request = request(generator, more);
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    generator.call("StartWorkflowExecution", request);
    guess(generator, &request_id, reuse, conflict, is_same);
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn guess(generator: &mut Generator, request_id: &str, reuse: &str, conflict: &str, is_same: bool) {
    let is_clash =
        reuse == REUSE[4] && conflict != CONFLICT[0] || reuse == REUSE[3] && conflict == CONFLICT[3];
    if is_same || is_clash {
        return;
    }
    let begins = match generator.is_open {
        true => reuse == REUSE[4] || conflict == CONFLICT[3],
        false => match reuse {
            "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY" => !generator.is_closed_well,
            "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE" => generator.started_by.is_empty(),
            _other => true,
        },
    };
    if begins {
        generator.begun(request_id);
    }
}

fn signal_with_start(generator: &mut Generator, more: Value) -> String {
    let signal = json!({"signal_name": "go", "signal_input": payloads(&["signal"])});
    let request = request(generator, merged(signal, more));
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    generator.call("SignalWithStartWorkflowExecution", request);
    request_id
}

/// A start with a signal, and further fields.
pub fn signalled_with(generator: &mut Generator, more: Value) {
    let request_id = signal_with_start(generator, more);
    generator.begun(&request_id);
}

pub fn signalled(generator: &mut Generator) {
    let more = if generator.percent(40) { everything() } else { json!({}) };
    let more = merged(more, json!({"priority": null, "links": null}));
    signalled_with(generator, more);
}

/// An open run is found twice by those who want to use it.
pub fn used(generator: &mut Generator) {
    let mut more = json!({"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"});
    more["on_conflict_options"] = generator.one_of(ON_CONFLICT)();
    if generator.percent(60) {
        more["links"] = json!([link()]);
    }
    let request = request(generator, more);
    generator.call("StartWorkflowExecution", request.clone());
    if generator.percent(40) {
        generator.call("StartWorkflowExecution", request);
    }
}

pub fn signal_again(generator: &mut Generator) {
    let (reuse, conflict) = policies(generator);
    let more = json!({"workflow_id_reuse_policy": reuse, "workflow_id_conflict_policy": conflict});
    let request_id = signal_with_start(generator, more);
    if generator.is_open && conflict != CONFLICT[1] && (reuse != REUSE[4] || conflict == CONFLICT[0]) {
        match reuse == REUSE[4] || conflict == CONFLICT[3] {
            true => generator.begun(&request_id),
            false => generator.happened(),
        }
    } else if conflict != CONFLICT[1] {
        guess(generator, &request_id, reuse, conflict, false);
    }
    if generator.percent(50) {
        generator.step(Step::Call {
            method: "DescribeWorkflowExecution",
            request: json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
            within_s: 10,
        });
    }
}
