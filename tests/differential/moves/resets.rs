//! Resets: of the current run or of an earlier one, to any of their workflow tasks, and what comes over to the new run.

use serde_json::{Value, json};

use super::{children, updates};
use crate::author::{Author, End, QUEUE, WORKFLOW, command, merged, payloads};
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

fn request(author: &mut Author, execution: Value, point: &str) -> Value {
    let request_id = author.fresh("reset");
    json!({
        "namespace": "default",
        "workflow_execution": execution,
        "reason": "once more",
        "request_id": request_id,
        "workflow_task_finish_event_id": format!("@event {WORKFLOW} {point}"),
    })
}

fn what_comes_over(author: &mut Author) -> Value {
    let mut more = json!({});
    if author.percent(35) {
        more["reset_reapply_type"] = author.one_of(REAPPLY).into();
    }
    if author.percent(35) {
        more["reset_reapply_exclude_types"] = json!(author.one_of(EXCLUDED));
    }
    more
}

fn read(author: &mut Author, execution: &Value) {
    author.call("GetWorkflowExecutionHistory", json!({"namespace": "default", "execution": execution}));
}

/// One of these. The first task of an eager start is written with the start itself: only its end is a point.
fn point(author: &mut Author, is_first_run: bool) -> &'static str {
    if !is_first_run && author.is_open && (author.ends.is_empty() || author.is_eager && author.completed == 0)
    {
        author.wake();
        author.turn(Vec::new());
    }
    let ends = match &author.first_ends {
        Some(ends) if is_first_run => ends,
        _the_current_one => &author.ends,
    };
    let is_there = |point: &&str| match point.split(' ').next().unwrap_or_default() {
        "WORKFLOW_TASK_FAILED" => ends.contains(&End::Failed),
        "WORKFLOW_TASK_TIMED_OUT" => ends.contains(&End::TimedOut),
        "WORKFLOW_TASK_STARTED" => !author.has_tried_again && !author.is_eager,
        _completed => ends.contains(&End::Completed),
    };
    let points: Vec<_> = POINTS.iter().copied().filter(is_there).collect();
    author.one_of(&points)
}

/// The first run or the current one; only one that has a point.
fn is_first(author: &mut Author, percent: u32) -> bool {
    let is_fit = !(author.is_eager || author.is_short || author.has_deleted);
    let has_points = !author.first_ends.as_ref().unwrap_or(&author.ends).is_empty();
    author.percent(percent) && is_fit && has_points
}

/// Goes back; whatever was due in the run that it goes back to comes first.
fn go_back(author: &mut Author, request: Value) {
    let request_id = request["request_id"].as_str().unwrap_or_default().to_owned();
    author.call("ResetWorkflowExecution", request);
    if author.is_delayed {
        author.step(Step::Pause { ms: DELAYED_MS });
    } else if author.is_timely {
        author.step(Step::Pause { ms: DUE_MS });
    }
    author.begun_anew(&request_id);
}

/// No child stays: at a Temporal server those of a run do not end with the one that a reset has made of it.
fn to(author: &mut Author, is_first_run: bool, point: &str, more: Value) -> Value {
    children::end_all(author);
    let execution = execution(is_first_run);
    read(author, &execution);
    let request = merged(request(author, execution, point), more);
    go_back(author, request.clone());
    if is_first_run {
        author.is_repeated = author.is_repeated_first;
    }
    request
}

/// To any task, with whatever is open.
pub fn any(author: &mut Author) {
    let is_first_run = is_first(author, 25);
    let point = point(author, is_first_run);
    let more = what_comes_over(author);
    let request = to(author, is_first_run, point, more);
    look(author);
    match author.dice.below(5) {
        0 => author.call("ResetWorkflowExecution", request),
        1 => {}
        _ => author.turn(Vec::new()),
    }
}

fn look(author: &mut Author) {
    for is_first_run in [false, true] {
        if author.percent(50) {
            let execution = execution(is_first_run);
            author.call("DescribeWorkflowExecution", json!({"namespace": "default", "execution": execution}));
        }
    }
}

/// Work is under way before the task, and behind it.
pub fn over_work(author: &mut Author) {
    let (timer, activity, child) = (author.fresh("timer"), author.fresh("a"), author.fresh("child"));
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
    children::end_all(author);
    author.wake();
    author.turn(commands);
    author.wait_for("EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED");
    author.happened();
    let is_taken = author.percent(60);
    if is_taken {
        author.poll_activity();
    }
    let later = author.fresh("timer");
    author.turn(vec![
        command("RECORD_MARKER", json!({"marker_name": "behind"})),
        command("START_TIMER", json!({"timer_id": later, "start_to_fire_timeout": "3600s"})),
    ]);
    author.signal("behind");
    if is_taken && author.percent(50) {
        author.call("RespondActivityTaskCompleted", of_activity(&activity));
        author.happened();
    }
    let (point, more) = (point(author, false), what_comes_over(author));
    to(author, false, point, more);
    look(author);
    afterwards(author, &activity, &child);
    author.children.push(child);
    children::end_all(author);
}

fn of_activity(activity: &str) -> Value {
    json!({
        "namespace": "default", "task_token": format!("@task {activity}"), "identity": "worker",
        "result": payloads(&["paid"]),
    })
}

fn afterwards(author: &mut Author, activity: &str, child: &str) {
    match author.dice.below(4) {
        // Its answer belongs to the run that is over.
        0 => author.call("RespondActivityTaskCompleted", of_activity(activity)),
        1 => {
            let last = command("COMPLETE_WORKFLOW_EXECUTION", json!({"result": payloads(&["sent"])}));
            children::turn_of(author, child, vec![last]);
            author.step(Step::Pause { ms: DUE_MS });
        }
        2 => {
            author.turn(vec![children::start(child, json!({}))]);
            author.step(Step::Pause { ms: DUE_MS });
        }
        _ => author.turn(Vec::new()),
    }
}

/// An update behind the task comes again.
pub fn over_update(author: &mut Author) {
    let id = updates::taken(author);
    let (point, more) = (point(author, false), what_comes_over(author));
    to(author, false, point, more);
    author.take();
    updates::answer_again(author, &id);
    updates::poll(author, &id);
}

/// A run that was made by a reset is reset again, or the base of both.
pub fn twice(author: &mut Author) {
    author.wake();
    author.turn(vec![command("RECORD_MARKER", json!({"marker_name": "once"}))]);
    author.signal("behind");
    let more = what_comes_over(author);
    to(author, false, "WORKFLOW_TASK_COMPLETED last", more);
    author.turn(vec![command("RECORD_MARKER", json!({"marker_name": "again"}))]);
    author.signal("behind both");
    let is_first_run = is_first(author, 50);
    let point = point(author, is_first_run);
    let more = what_comes_over(author);
    to(author, is_first_run, point, more);
    look(author);
    author.turn(Vec::new());
}

/// What no reset can be.
pub fn badly(author: &mut Author) {
    let execution = execution(author.percent(20));
    read(author, &execution);
    let mut request = request(author, execution, "WORKFLOW_TASK_COMPLETED last");
    let (field, value) = author.one_of(&odd());
    request[field] = value;
    author.call("ResetWorkflowExecution", request);
    author.call(
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
