//! Queues that operators configure, the build ids of their workers, clusters, namespaces, and starts that want to call back.

use serde_json::{Value, json};

use super::{Move, always, row};
use crate::generator::{Generator, IDLE, QUEUE, WORKFLOW, merged};
use crate::program::Step;

/// How such a program begins.
pub const OPENINGS: &[Move] = &[row("administered: queue", 1, always, described_queue)];

/// What it does then. Each namespace costs a Temporal server workers of its own.
pub const MOVES: &[Move] = &[
    row("administered: configuration", 10, always, configuration),
    row("administered: bad configuration", 6, always, bad_configuration),
    row("administered: build ids", 10, always, build_ids),
    row("administered: bad build ids", 6, always, bad_build_ids),
    row("administered: too many sets", 1, always, too_many_sets),
    row("administered: reachability", 8, always, reachability),
    row("administered: bad reachability", 3, always, bad_reachability),
    row("administered: partitions", 4, always, partitions),
    row("administered: clusters", 3, always, clusters),
    row("administered: namespace", 1, always, namespace),
    row("administered: callbacks", 5, always, callbacks),
    row("administered: attach to an open run", 2, always, attached),
];

/// Queues of a program, which have no runs.
const QUEUES: &[&str] = &[QUEUE, "~q2"];
/// Build ids that its workers might have.
const BUILD_IDS: &[&str] = &["~1.0", "~1.1", "~1.2", "~2.0", "~2.1", "~3.0"];
const ACTIVITY: &str = "TASK_QUEUE_TYPE_ACTIVITY";
/// How long the type of a queue that is configured may take to hear of it, there.
const PROPAGATES_MS: u64 = 500;
/// Sets that a queue may have.
const SETS_MAX: usize = 10;
/// Callbacks that a start may have.
const CALLBACKS_MAX: usize = 32;

fn describe(generator: &mut Generator, queue: &str) {
    let request = json!({
        "namespace": "default", "task_queue": {"name": queue}, "task_queue_type": ACTIVITY, "report_config": true,
    });
    generator.call("DescribeTaskQueue", request);
}

fn described_queue(generator: &mut Generator) {
    describe(generator, QUEUE);
}

fn configure(generator: &mut Generator, queue: &str, more: Value) {
    let request = json!({
        "namespace": "default", "identity": "operator", "task_queue": queue, "task_queue_type": ACTIVITY,
    });
    generator.call("UpdateTaskQueueConfig", merged(request, more));
}

fn limit(per_second: f64, reason: &str) -> Value {
    json!({"rate_limit": {"requests_per_second": per_second}, "reason": reason})
}

fn configuration(generator: &mut Generator) {
    let queue = generator.one_of(QUEUES);
    // Who has not been asked for does not hear of it, there.
    describe(generator, queue);
    // None is more than a Temporal server gives by itself, which is 1,000.
    let rate = generator.one_of(&[0.0, 0.5, 7.0, 100.25]);
    let more = match generator.dice.below(6) {
        0 | 1 => json!({"update_queue_rate_limit": limit(rate, "busy")}),
        2 => json!({"update_queue_rate_limit": {"reason": "over"}}),
        3 => json!({"update_fairness_key_rate_limit_default": limit(rate, "")}),
        4 => json!({"update_fairness_key_rate_limit_default": {}}),
        _both => json!({
            "update_queue_rate_limit": limit(rate, "busy"),
            "update_fairness_key_rate_limit_default": limit(rate, "fair"),
        }),
    };
    configure(generator, queue, more);
    generator.step(Step::Pause { ms: PROPAGATES_MS });
    describe(generator, queue);
}

fn bad_configuration(generator: &mut Generator) {
    let of_queue = |update: Value| json!({"update_queue_rate_limit": update});
    let of_keys = |update: Value| json!({"update_fairness_key_rate_limit_default": update});
    let long = json!({"rate_limit": {"requests_per_second": 1.0}, "reason": "@long 1001"});
    let of_workflows = json!({"task_queue_type": "TASK_QUEUE_TYPE_WORKFLOW"});
    let more = match generator.dice.below(8) {
        0 => of_queue(limit(-1.0, "")),
        1 => of_keys(limit(-0.5, "")),
        2 => of_queue(long),
        3 => of_keys(long),
        4 => merged(of_queue(limit(1.0, "")), json!({"identity": "@long 1001"})),
        5 => merged(of_queue(limit(1.0, "")), of_workflows),
        6 => merged(of_keys(limit(1.0, "")), of_workflows),
        _nowhere => merged(of_queue(limit(1.0, "")), json!({"namespace": "unknown"})),
    };
    configure(generator, QUEUE, more);
}

fn change_build_ids(generator: &mut Generator, queue: &str, operation: Value) {
    let request = json!({"namespace": "default", "task_queue": queue});
    generator.call("UpdateWorkerBuildIdCompatibility", merged(request, operation));
}

fn get_build_ids(generator: &mut Generator, queue: &str) {
    let max_sets = generator.dice.below(3);
    let request = json!({"namespace": "default", "task_queue": queue, "max_sets": max_sets});
    generator.call("GetWorkerBuildIdCompatibility", request);
}

fn operation(generator: &mut Generator) -> Value {
    let (one, other) = (generator.one_of(BUILD_IDS), generator.one_of(BUILD_IDS));
    match generator.dice.below(8) {
        0..=2 => json!({"add_new_build_id_in_new_default_set": one}),
        3 | 4 => {
            let make_set_default = generator.percent(50);
            json!({"add_new_compatible_build_id": {
                "new_build_id": one, "existing_compatible_build_id": other, "make_set_default": make_set_default,
            }})
        }
        5 => json!({"promote_set_by_build_id": one}),
        6 => json!({"promote_build_id_within_set": one}),
        _merged => json!({"merge_sets": {"primary_set_build_id": one, "secondary_set_build_id": other}}),
    }
}

fn build_ids(generator: &mut Generator) {
    let queue = generator.one_of(QUEUES);
    for _change in 0..=generator.dice.below(4) {
        let operation = operation(generator);
        change_build_ids(generator, queue, operation);
    }
    generator.has_build_ids = true;
    get_build_ids(generator, queue);
}

fn bad_build_ids(generator: &mut Generator) {
    let add = |id: &str| json!({"add_new_build_id_in_new_default_set": id});
    let operation = match generator.dice.below(9) {
        0 => json!({}),
        1 => add(""),
        2 => add("@long 256"),
        3 => json!({"add_new_compatible_build_id": {"new_build_id": "~1.0"}}),
        4 => json!({"promote_set_by_build_id": "~unknown"}),
        5 => json!({"promote_build_id_within_set": "~unknown"}),
        6 => merged(add("~1.0"), json!({"task_queue": ""})),
        7 => merged(add("~1.0"), json!({"namespace": "unknown"})),
        _nothing => return get_build_ids(generator, ""),
    };
    change_build_ids(generator, QUEUE, operation);
}

/// A queue that is full of sets.
fn too_many_sets(generator: &mut Generator) {
    let queue = generator.fresh("full");
    for _set in 0..=SETS_MAX {
        let id = generator.fresh("build");
        change_build_ids(generator, &queue, json!({"add_new_build_id_in_new_default_set": id}));
    }
    generator.has_build_ids = true;
    get_build_ids(generator, &queue);
}

fn ask(generator: &mut Generator, build_ids: Value, task_queues: Value, kind: &str) {
    let reachability = format!("TASK_REACHABILITY_{kind}");
    let request = json!({
        "namespace": "default", "build_ids": build_ids, "task_queues": task_queues, "reachability": reachability,
    });
    generator.call("GetWorkerTaskReachability", request);
}

fn reachability(generator: &mut Generator) {
    const KINDS: &[&str] =
        &["UNSPECIFIED", "NEW_WORKFLOWS", "EXISTING_WORKFLOWS", "OPEN_WORKFLOWS", "CLOSED_WORKFLOWS"];
    let (one, other) = (generator.one_of(BUILD_IDS), generator.one_of(BUILD_IDS));
    let kind = generator.one_of(KINDS);
    match generator.dice.below(4) {
        // Here workers without a build id get tasks of any queue.
        0 if !generator.has_build_ids => ask(generator, json!(["", one]), json!([QUEUE]), kind),
        0 | 1 => ask(generator, json!([one]), json!([]), kind),
        2 => ask(generator, json!([one, other]), json!(QUEUES), kind),
        _queue => {
            let queue = generator.one_of(QUEUES);
            ask(generator, json!(BUILD_IDS[..5]), json!([queue]), kind);
        }
    }
}

fn bad_reachability(generator: &mut Generator) {
    match generator.dice.below(4) {
        0 => ask(generator, json!([]), json!([QUEUE]), "NEW_WORKFLOWS"),
        1 => ask(generator, json!(BUILD_IDS), json!([QUEUE]), "NEW_WORKFLOWS"),
        2 => ask(generator, json!(["~1.0", ""]), json!([]), "NEW_WORKFLOWS"),
        _nameless => ask(generator, json!(["~1.0"]), json!([""]), "NEW_WORKFLOWS"),
    }
}

fn partitions(generator: &mut Generator) {
    let task_queue = match generator.dice.below(6) {
        0 => json!(null),
        1 => json!({"name": ""}),
        2 => json!({"name": "/_sys/~q/1"}),
        _queue => json!({"name": generator.one_of(QUEUES)}),
    };
    let request = merged(json!({"namespace": "default"}), json!({"task_queue": task_queue}));
    generator.call("ListTaskQueuePartitions", request);
}

fn clusters(generator: &mut Generator) {
    let page_size = generator.one_of(&[0, 1, 100]);
    generator.call("ListClusters", json!({"page_size": page_size}));
}

fn namespace(generator: &mut Generator) {
    let name = generator.fresh("ns");
    let register =
        json!({"namespace": name, "workflow_execution_retention_period": "86400s", "description": "old"});
    generator.call("RegisterNamespace", register);
    let deprecated = match generator.dice.below(6) {
        0 => json!({"namespace": "unknown"}),
        1 => json!({}),
        _own => json!({"namespace": name}),
    };
    generator.call("DeprecateNamespace", deprecated.clone());
    if generator.percent(30) {
        generator.call("DeprecateNamespace", deprecated);
    }
    generator.call("DescribeNamespace", json!({"namespace": name}));
}

fn start(generator: &mut Generator, more: Value) {
    let request = json!({
        "namespace": "default",
        "workflow_id": WORKFLOW,
        "workflow_type": {"name": "order"},
        "task_queue": {"name": IDLE},
        "identity": "caller",
        "request_id": generator.fresh("r"),
    });
    generator.call("StartWorkflowExecution", merged(request, more));
}

/// A server calls no addresses that it was not told of.
fn callbacks(generator: &mut Generator) {
    let to = |url: &str| json!({"nexus": {"url": url, "header": {"key": "value"}}});
    let elsewhere = to("https://callback.example/done?run=1");
    let callbacks = match generator.dice.below(8) {
        0 | 1 => json!([elsewhere]),
        2 => json!([to("http://callback.example:7243/done")]),
        3 => json!([to("ftp://callback.example/done")]),
        4 => json!([to("@long 1001")]),
        5 => json!([to("")]),
        6 => json!([{}]),
        _many => json!(vec![elsewhere; CALLBACKS_MAX + 1]),
    };
    start(generator, json!({"completion_callbacks": callbacks}));
}

/// A start that finds an open run and attaches all it has to it, which is its request alone.
fn attached(generator: &mut Generator) {
    let used = "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING";
    let all = json!({"attach_request_id": true, "attach_completion_callbacks": true, "attach_links": true});
    start(generator, json!({"workflow_id_conflict_policy": used}));
    start(generator, json!({"workflow_id_conflict_policy": used, "on_conflict_options": all}));
}
