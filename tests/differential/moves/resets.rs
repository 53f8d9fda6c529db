//! Resets: of the current run or of an earlier one, to any of their workflow tasks, and what comes over to the new run.

use serde_json::{Value, json};

use super::{children, updates};
use crate::generator::{End, Generator, QUEUE, WORKFLOW, command, merged, payloads};
use crate::program::Step;

/// Where to: the events of the history that was read last.
const POINTS: &[&str] = &[
    "WORKFLOW_TASK_COMPLETED first",
    "WORKFLOW_TASK_COMPLETED middle",
    "WORKFLOW_TASK_COMPLETED last",
    "WORKFLOW_TASK_COMPLETED last",
    "WORKFLOW_TASK_STARTED first",
    "WORKFLOW_TASK_STARTED last",
    "WORKFLOW_TASK_FAILED last",
    "WORKFLOW_TASK_TIMED_OUT last",
];
const REAPPLY: &[&str] = &[
    "RESET_REAPPLY_TYPE_UNSPECIFIED",
    "RESET_REAPPLY_TYPE_SIGNAL",
    "RESET_REAPPLY_TYPE_NONE",
    "RESET_REAPPLY_TYPE_ALL_ELIGIBLE",
];
const EXCLUDED: &[&[&str]] = &[
    &["RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL"],
    &["RESET_REAPPLY_EXCLUDE_TYPE_UPDATE"],
    &["RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL", "RESET_REAPPLY_EXCLUDE_TYPE_UPDATE"],
    &["RESET_REAPPLY_EXCLUDE_TYPE_NEXUS", "RESET_REAPPLY_EXCLUDE_TYPE_CANCEL_REQUEST"],
];
/// How long it takes until timers that are due have fired in a new run as well.
const DUE_MS: u64 = 1_500;
/// A run that was made of one with a delay goes on at once, but there a run that continues it waits until the delay is over.
const DELAYED_MS: u64 = 3_000;

fn execution(is_first_run: bool) -> Value {
    match is_first_run {
        true => json!({"workflow_id": WORKFLOW, "run_id": format!("@run {WORKFLOW} 0")}),
        false => json!({"workflow_id": WORKFLOW}),
    }
}

fn request(generator: &mut Generator, execution: Value, point: &str) -> Value {
    let request_id = generator.fresh("reset");
    json!({
        "namespace": "default",
        "workflow_execution": execution,
        "reason": "once more",
        "request_id": request_id,
        "workflow_task_finish_event_id": format!("@event {WORKFLOW} {point}"),
    })
}

fn what_comes_over(generator: &mut Generator) -> Value {
    let mut more = json!({});
    if generator.percent(35) {
        more["reset_reapply_type"] = generator.one_of(REAPPLY).into();
    }
    if generator.percent(35) {
        more["reset_reapply_exclude_types"] = json!(generator.one_of(EXCLUDED));
    }
    more
}

fn read(generator: &mut Generator, execution: &Value) {
    generator.call("GetWorkflowExecutionHistory", json!({"namespace": "default", "execution": execution}));
}

/// One of these. The first task of an eager start is written with the start itself: only its end is a point.
fn point(generator: &mut Generator, is_first_run: bool) -> &'static str {
    if !is_first_run
        && generator.is_open
        && (generator.ends.is_empty() || generator.is_eager && generator.completed == 0)
    {
        generator.wake();
        generator.turn(Vec::new());
    }
    let ends = match &generator.first_ends {
        Some(ends) if is_first_run => ends,
        _the_current_one => &generator.ends,
    };
    let is_there = |point: &&str| match point.split(' ').next().unwrap_or_default() {
        "WORKFLOW_TASK_FAILED" => ends.contains(&End::Failed),
        "WORKFLOW_TASK_TIMED_OUT" => ends.contains(&End::TimedOut),
        "WORKFLOW_TASK_STARTED" => !generator.has_tried_again && !generator.is_eager,
        _completed => ends.contains(&End::Completed),
    };
    let points: Vec<_> = POINTS.iter().copied().filter(is_there).collect();
    generator.one_of(&points)
}

/// The first run or the current one; only one that has a point.
fn is_first(generator: &mut Generator, percent: u32) -> bool {
    let is_fit = !(generator.is_eager || generator.is_short || generator.has_deleted);
    let has_points = !generator.first_ends.as_ref().unwrap_or(&generator.ends).is_empty();
    generator.percent(percent) && is_fit && has_points
}

/// Goes back; whatever was due in the run that it goes back to comes first.
fn go_back(generator: &mut Generator, request: Value) {
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    generator.call("ResetWorkflowExecution", request);
    if generator.is_delayed {
        generator.step(Step::Pause { ms: DELAYED_MS });
    } else if generator.is_timely {
        generator.step(Step::Pause { ms: DUE_MS });
    }
    generator.begun_anew(&request_id);
}

/// No child stays: at a Temporal server those of a run do not end with the one that a reset has made of it.
fn to(generator: &mut Generator, is_first_run: bool, point: &str, more: Value) -> Value {
    children::end_all(generator);
    let execution = execution(is_first_run);
    read(generator, &execution);
    let request = merged(request(generator, execution, point), more);
    go_back(generator, request.clone());
    if is_first_run {
        generator.is_repeated = generator.is_repeated_first;
    }
    request
}

/// To any task, with whatever is open.
pub fn any(generator: &mut Generator) {
    let is_first_run = is_first(generator, 25);
    let point = point(generator, is_first_run);
    let more = what_comes_over(generator);
    let request = to(generator, is_first_run, point, more);
    look(generator);
    match generator.dice.below(5) {
        0 => generator.call("ResetWorkflowExecution", request),
        1 => {}
        _ => generator.turn(Vec::new()),
    }
}

fn look(generator: &mut Generator) {
    for is_first_run in [false, true] {
        if generator.percent(50) {
            let execution = execution(is_first_run);
            generator
                .call("DescribeWorkflowExecution", json!({"namespace": "default", "execution": execution}));
        }
    }
}

/// Work is under way before the task, and behind it.
pub fn over_work(generator: &mut Generator) {
    let (timer, activity, child) = (generator.fresh("timer"), generator.fresh("a"), generator.fresh("child"));
    let commands = vec![
        command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "3600s"})),
        command(
            "SCHEDULE_ACTIVITY_TASK",
            json!({
                "activity_id": activity, "activity_type": {"name": "charge"}, "task_queue": {"name": QUEUE},
                "start_to_close_timeout": "60s", "retry_policy": {"maximum_attempts": 2},
            }),
        ),
        children::start(&child, json!({})),
    ];
    children::end_all(generator);
    generator.wake();
    generator.turn(commands);
    generator.wait_for("EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED");
    generator.happened();
    let is_taken = generator.percent(60);
    if is_taken {
        generator.poll_activity();
    }
    let later = generator.fresh("timer");
    generator.turn(vec![
        command("RECORD_MARKER", json!({"marker_name": "behind"})),
        command("START_TIMER", json!({"timer_id": later, "start_to_fire_timeout": "3600s"})),
    ]);
    generator.signal("behind");
    if is_taken && generator.percent(50) {
        generator.call("RespondActivityTaskCompleted", of_activity(&activity));
        generator.happened();
    }
    let (point, more) = (point(generator, false), what_comes_over(generator));
    to(generator, false, point, more);
    look(generator);
    afterwards(generator, &activity, &child);
    generator.children.push(child);
    children::end_all(generator);
}

fn of_activity(activity: &str) -> Value {
    json!({
        "namespace": "default", "task_token": format!("@task {activity}"), "identity": "worker",
        "result": payloads(&["paid"]),
    })
}

fn afterwards(generator: &mut Generator, activity: &str, child: &str) {
    match generator.dice.below(4) {
        // Its answer belongs to the run that is over.
        0 => generator.call("RespondActivityTaskCompleted", of_activity(activity)),
        1 => {
            let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["sent"])}));
            children::turn_of(generator, child, vec![last]);
            generator.step(Step::Pause { ms: DUE_MS });
        }
        2 => {
            generator.turn(vec![children::start(child, json!({}))]);
            generator.step(Step::Pause { ms: DUE_MS });
        }
        _ => generator.turn(Vec::new()),
    }
}

/// An update behind the task comes again.
pub fn over_update(generator: &mut Generator) {
    let id = updates::taken(generator);
    let (point, more) = (point(generator, false), what_comes_over(generator));
    to(generator, false, point, more);
    generator.take();
    updates::answer_again(generator, &id);
    updates::poll(generator, &id);
}

/// A run that was made by a reset is reset again, or the base of both.
pub fn twice(generator: &mut Generator) {
    generator.wake();
    generator.turn(vec![command("RECORD_MARKER", json!({"marker_name": "once"}))]);
    generator.signal("behind");
    let more = what_comes_over(generator);
    to(generator, false, "WORKFLOW_TASK_COMPLETED last", more);
    generator.turn(vec![command("RECORD_MARKER", json!({"marker_name": "again"}))]);
    generator.signal("behind both");
    let is_first_run = is_first(generator, 50);
    let point = point(generator, is_first_run);
    let more = what_comes_over(generator);
    to(generator, is_first_run, point, more);
    look(generator);
    generator.turn(Vec::new());
}

/// What no reset can be.
pub fn badly(generator: &mut Generator) {
    let execution = execution(generator.percent(20));
    read(generator, &execution);
    let mut request = request(generator, execution, "WORKFLOW_TASK_COMPLETED last");
    let (field, value) = generator.one_of(&odd());
    request[field] = value;
    generator.call("ResetWorkflowExecution", request);
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

fn odd() -> Vec<(&'static str, Value)> {
    vec![
        ("workflow_task_finish_event_id", json!(0)),
        ("workflow_task_finish_event_id", json!(1)),
        ("workflow_task_finish_event_id", json!(-1)),
        ("workflow_task_finish_event_id", json!(1_000)),
        ("workflow_execution", json!({"workflow_id": "~unknown"})),
        ("workflow_execution", json!({"workflow_id": WORKFLOW, "run_id": "@run ~unknown 0"})),
        ("workflow_execution", json!({"workflow_id": WORKFLOW, "run_id": "not-a-run"})),
        ("workflow_execution", Value::Null),
        ("workflow_execution", json!({})),
        ("request_id", json!("")),
        ("namespace", json!("nowhere")),
        ("post_reset_operations", json!([{}])),
    ]
}
