//! What makes no sense: calls that are refused, commands that fail their task.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::generator::{End, Generator, IDLE, QUEUE, WORKFLOW, command, payloads};

/// A refused call leaves nothing behind.
pub fn call(generator: &mut Generator) {
    let (method, request) = generator.one_of(&calls());
    generator.call(method, request);
}

type Call = (&'static str, Value);

fn start(field: &str, value: Value) -> Call {
    let mut request = json!({
        "namespace": "default", "workflow_id": "~bad", "workflow_type": {"name": "order"},
        "task_queue": {"name": IDLE}, "request_id": "~bad-start",
    });
    request[field] = value;
    ("StartWorkflowExecution", request)
}

fn calls() -> Vec<Call> {
    [starts(), schedules(), to_nobody(), incomplete()].concat()
}

/// Starts with one field that does not do.
fn starts() -> Vec<Call> {
    vec![
        start("workflow_id", json!("")),
        start("workflow_type", Value::Null),
        start("workflow_type", json!({"name": ""})),
        start("task_queue", Value::Null),
        start("task_queue", json!({"name": ""})),
        start("namespace", json!("")),
        start("namespace", json!("nowhere")),
        start("workflow_execution_timeout", json!("-1s")),
        start("workflow_run_timeout", json!("-1s")),
        start("workflow_task_timeout", json!("-1s")),
        start("workflow_start_delay", json!("-1s")),
        start("workflow_id", json!("x".repeat(1_001))),
        start("request_id", json!("x".repeat(1_001))),
        start("workflow_type", json!({"name": "x".repeat(1_001)})),
        start("task_queue", json!({"name": "x".repeat(1_001)})),
        start("identity", json!("x".repeat(1_001))),
        start("retry_policy", json!({"initial_interval": "-1s"})),
        start("retry_policy", json!({"backoff_coefficient": 0.5})),
        start("retry_policy", json!({"maximum_attempts": -1})),
        start("retry_policy", json!({"initial_interval": "10s", "maximum_interval": "1s"})),
        start("on_conflict_options", json!({"attach_completion_callbacks": true})),
        start("search_attributes", json!({"indexed_fields": {"NobodyKnows": {"data": "\"red\""}}})),
        start(
            "search_attributes",
            json!({"indexed_fields": {"CustomKeywordField": {
                "metadata": {"encoding": "json/plain", "type": "Int"}, "data": "7",
            }}}),
        ),
    ]
}

/// Schedules that nobody understands, or that do not go with the rest.
fn schedules() -> Vec<Call> {
    let bad = super::crons::BAD.iter().map(|schedule| start("cron_schedule", json!(schedule)));
    let (method, mut delayed) = start("cron_schedule", json!("0 0 * * *"));
    delayed["workflow_start_delay"] = "10s".into();
    bad.chain([(method, delayed)]).collect()
}

/// Calls to a run that is not there, or cannot be.
fn to_nobody() -> Vec<Call> {
    let unknown = json!({"workflow_id": "~unknown"});
    let other_run = json!({"workflow_id": WORKFLOW, "run_id": "@run ~unknown 0"});
    let not_a_run = json!({"workflow_id": WORKFLOW, "run_id": "not-a-run"});
    let nobody = json!({});
    let mut calls = Vec::new();
    for execution in [&unknown, &other_run, &not_a_run, &nobody] {
        calls.push(("SignalWorkflowExecution", json!({
            "namespace": "default", "workflow_execution": execution, "signal_name": "news", "request_id": "~bad",
        })));
        calls.push((
            "RequestCancelWorkflowExecution",
            json!({
                "namespace": "default", "workflow_execution": execution, "request_id": "~bad",
            }),
        ));
        calls.push((
            "TerminateWorkflowExecution",
            json!({"namespace": "default", "workflow_execution": execution}),
        ));
        calls.push(("DescribeWorkflowExecution", json!({"namespace": "default", "execution": execution})));
        calls.push(("GetWorkflowExecutionHistory", json!({"namespace": "default", "execution": execution})));
        calls.push((
            "GetWorkflowExecutionHistoryReverse",
            json!({"namespace": "default", "execution": execution}),
        ));
        calls.push(("ResetStickyTaskQueue", json!({"namespace": "default", "execution": execution})));
        calls.push((
            "QueryWorkflow",
            json!({
                "namespace": "default", "execution": execution, "query": {"query_type": "state"},
            }),
        ));
    }
    calls
}

/// Calls that lack something, or name what is unknown.
fn incomplete() -> Vec<Call> {
    vec![
        (
            "SignalWorkflowExecution",
            json!({"namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}}),
        ),
        ("QueryWorkflow", json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}})),
        (
            "SignalWithStartWorkflowExecution",
            json!({
                "namespace": "default", "workflow_id": "~bad", "workflow_type": {"name": "order"},
                "task_queue": {"name": IDLE},
            }),
        ),
        (
            "GetWorkflowExecutionHistory",
            json!({
                "namespace": "default", "execution": {"workflow_id": WORKFLOW}, "next_page_token": "no token",
            }),
        ),
        ("PollWorkflowTaskQueue", json!({"namespace": "default", "task_queue": {"name": ""}})),
        ("PollActivityTaskQueue", json!({"namespace": "default"})),
        ("PollWorkflowTaskQueue", json!({"namespace": "nowhere", "task_queue": {"name": IDLE}})),
        ("RespondWorkflowTaskCompleted", json!({"namespace": "default"})),
        ("RespondWorkflowTaskFailed", json!({"namespace": "default"})),
        ("RespondActivityTaskCompleted", json!({"namespace": "default"})),
        ("RespondActivityTaskCompleted", json!({"namespace": "default", "task_token": "no token"})),
        ("RespondActivityTaskFailed", json!({"namespace": "default"})),
        ("RecordActivityTaskHeartbeat", json!({"namespace": "default"})),
        ("RespondQueryTaskCompleted", json!({"namespace": "default"})),
        (
            "RespondActivityTaskCompletedById",
            json!({
                "namespace": "default", "workflow_id": WORKFLOW, "activity_id": "~unknown",
            }),
        ),
        ("RespondActivityTaskFailedById", json!({"namespace": "default", "workflow_id": WORKFLOW})),
        (
            "RecordActivityTaskHeartbeatById",
            json!({
                "namespace": "default", "workflow_id": "~unknown", "activity_id": "~unknown",
            }),
        ),
        ("DescribeNamespace", json!({"namespace": "nowhere"})),
    ]
}

/// Each fails the task, which is then made again.
pub fn in_task(generator: &mut Generator) {
    let mut commands = vec![command("RECORD_MARKER", json!({"marker_name": "before"}))];
    commands.extend(bad_commands(generator));
    generator.wake();
    generator.take();
    let request = generator.completion(commands, json!({}));
    generator.call("RespondWorkflowTaskCompleted", request);
    generator.task_lost(End::Failed);
    super::clients::describe(generator);
    if generator.percent(60) {
        generator.turn(Vec::new());
    }
}

/// One of a kind, each kind as often as any other.
fn bad_commands(generator: &mut Generator) -> Vec<Value> {
    let mut kinds: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for one in [incomplete_commands(), activities()].concat() {
        kinds.entry(one["command_type"].to_string()).or_default().push(one);
    }
    let kinds: Vec<Vec<Value>> = kinds.into_values().collect();
    match generator.dice.index(kinds.len() + 2) {
        0 => twice(generator.timers.last(), |id| {
            command("START_TIMER", json!({"timer_id": id, "start_to_fire_timeout": "3600s"}))
        }),
        1 => twice(generator.activities.last(), |id| {
            command(
                "SCHEDULE_ACTIVITY_TASK",
                json!({
                    "activity_id": id, "activity_type": {"name": "idle"}, "task_queue": {"name": IDLE},
                    "start_to_close_timeout": "100s",
                }),
            )
        }),
        kind => vec![generator.one_of(&kinds[kind - 2])],
    }
}

/// A command with an id that is under way; where none is, the command before it has the same.
fn twice(under_way: Option<&String>, make: impl Fn(&str) -> Value) -> Vec<Value> {
    match under_way {
        Some(id) => vec![make(id)],
        None => vec![make("~twice"), make("~twice")],
    }
}

/// Commands that lack something, or name what is unknown.
fn incomplete_commands() -> Vec<Value> {
    vec![
        command("START_TIMER", json!({"start_to_fire_timeout": "3600s"})),
        command("START_TIMER", json!({"timer_id": "~bad", "start_to_fire_timeout": "-1s"})),
        command("CANCEL_TIMER", json!({"timer_id": "~unknown"})),
        command("CANCEL_TIMER", json!({})),
        command("REQUEST_CANCEL_ACTIVITY_TASK", json!({"scheduled_event_id": 4711})),
        command("REQUEST_CANCEL_ACTIVITY_TASK", json!({})),
        command("RECORD_MARKER", json!({})),
        command("FAIL_WORKFLOW_EXECUTION", json!({})),
        command("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", json!({})),
        command("MODIFY_WORKFLOW_PROPERTIES", json!({})),
        command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", json!({"workflow_run_timeout": "-1s"})),
        command(
            "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
            json!({"search_attributes": {"indexed_fields": {
                "NobodyKnows": {"metadata": {"encoding": "json/plain"}, "data": "\"red\""},
            }}}),
        ),
        command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", json!({"namespace": "default"})),
        command(
            "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION",
            json!({"workflow_id": WORKFLOW, "run_id": "not-a-run"}),
        ),
        command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", json!({"namespace": "default", "signal_name": "news"})),
        command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", json!({"execution": {"workflow_id": WORKFLOW}})),
        command("START_CHILD_WORKFLOW_EXECUTION", json!({"workflow_type": {"name": "parcel"}})),
        command("START_CHILD_WORKFLOW_EXECUTION", json!({"workflow_id": "~bad"})),
        command(
            "START_CHILD_WORKFLOW_EXECUTION",
            json!({
                "workflow_id": "~bad", "workflow_type": {"name": "parcel"}, "cron_schedule": "every day",
            }),
        ),
        json!({"command_type": "COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION"}),
        json!({"command_type": "COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION"}),
        json!({"command_type": "COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION"}),
        json!({"command_type": "COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION"}),
        json!({"command_type": "COMMAND_TYPE_PROTOCOL_MESSAGE"}),
        json!({"command_type": "COMMAND_TYPE_START_TIMER"}),
        json!({"command_type": "COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK"}),
        json!({"command_type": "COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION"}),
    ]
}

/// Activities with one field that does not do.
fn activities() -> Vec<Value> {
    let fields = [
        ("activity_id", Value::Null),
        ("activity_type", Value::Null),
        ("start_to_close_timeout", Value::Null),
        ("start_to_close_timeout", json!("-1s")),
        ("task_queue", Value::Null),
        ("retry_policy", json!({"backoff_coefficient": 0.5})),
        ("retry_policy", json!({"maximum_attempts": -1})),
        ("activity_id", json!("x".repeat(1_001))),
    ];
    let with = |(field, value): (&str, Value)| {
        let mut attributes = json!({
            "activity_id": "~bad", "activity_type": {"name": "charge"}, "task_queue": {"name": QUEUE},
            "input": payloads(&["1"]), "start_to_close_timeout": "10s",
        });
        attributes[field] = value;
        command("SCHEDULE_ACTIVITY_TASK", attributes)
    };
    fields.into_iter().map(with).collect()
}
