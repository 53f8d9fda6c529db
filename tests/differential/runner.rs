//! Runs a program on one server and records the reply to each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use everlog_temporal_api::{errordetails, rpc};
use everlog_tests::fate::is_definite;
use everlog_tests::{patience, raw};
use prost::Message;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::plain::Names;
use crate::program::{Program, Step};
use crate::schema::{Schema, decode_unknown};

/// A run id that no server gives.
pub const NO_RUN: &str = "00000000-0000-4000-8000-000000000000";
/// What stands for an event that there is none of.
const NO_EVENT: i64 = 3;
/// Each look at a history reads all of it, and many programs look at a time.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// How long before the end of its time a call may be given up.
const TIME_IS_OVER: Duration = Duration::from_millis(500);
const PAGES_MAX: usize = 50;

/// What a server said to one step: the step's number, what it was, and the answer as it came.
#[derive(Clone, Debug)]
pub struct Noted {
    pub step: String,
    pub answer: Value,
}

/// One program at one server.
pub struct Runner {
    channel: Channel,
    schema: Arc<Schema>,
    own: String,
    names: Names,
    noted: Vec<Noted>,
    begun: BTreeMap<String, JoinHandle<Value>>,
    given: Given,
    /// How many events of each type a run had at its mark, by the workflow and the type.
    marks: BTreeMap<(String, String), usize>,
}

/// What the server has given so far, for references.
#[derive(Debug, Default)]
struct Given {
    /// By kind and name: tokens and ids of queries, the latest last.
    tokens: BTreeMap<String, Vec<String>>,
    /// The runs of each workflow, in order of appearance.
    runs: BTreeMap<String, Vec<String>>,
    /// The latest event that scheduled an activity.
    scheduled: BTreeMap<String, i64>,
    /// Behind which event an update came to its worker.
    sequences: BTreeMap<String, i64>,
    /// The events of each workflow's history that was read last from its beginning, with their types.
    events: BTreeMap<String, Vec<(i64, String)>>,
    /// The queries that came with the latest task of a workflow.
    queries: BTreeMap<String, Vec<String>>,
}

impl Runner {
    /// `own` is what no other run of a program has in its ids.
    pub fn new(channel: Channel, schema: Arc<Schema>, own: String) -> Self {
        let names = Names::new(&own);
        Self {
            channel,
            schema,
            own,
            names,
            noted: Vec::new(),
            begun: BTreeMap::new(),
            given: Given::default(),
            marks: BTreeMap::new(),
        }
    }

    /// Runs all steps, then reads whatever can be read of every run. The answers are plain: names instead of ids.
    pub async fn play(mut self, program: &Program) -> Result<Vec<Noted>> {
        for (number, step) in program.steps.iter().enumerate() {
            let answer = self.step(step).await?;
            if let Some(answer) = answer {
                self.note(format!("{number}"), answer);
            }
        }
        for (name, call) in std::mem::take(&mut self.begun) {
            let answer = call.await?;
            self.note(format!("end of {name}"), answer);
        }
        self.read_all().await?;
        self.noted.iter_mut().for_each(|noted| self.names.make_plain(&mut noted.answer));
        Ok(self.noted)
    }

    fn note(&mut self, step: String, answer: Value) {
        self.given.learn(&answer, &self.own);
        self.noted.push(Noted { step, answer });
    }

    async fn step(&mut self, step: &Step) -> Result<Option<Value>> {
        match step {
            Step::Call { method, request, within_s } => {
                let request = self.resolved(request);
                let call = call(self.channel.clone(), self.schema.clone(), method, request, *within_s);
                Ok(Some(call.await?))
            }
            Step::Begin { name, method, request, within_s } => {
                let request = self.resolved(request);
                let call = call(self.channel.clone(), self.schema.clone(), method, request, *within_s);
                let call = async move { call.await.unwrap_or_else(|error| error.to_string().into()) };
                self.begun.insert(name.clone(), tokio::spawn(call));
                Ok(None)
            }
            Step::Join { name } => match self.begun.remove(name) {
                Some(call) => Ok(Some(call.await?)),
                None => Ok(None),
            },
            Step::Await { workflow, event, count, is_marked } => {
                let had = self.marks.get(&(workflow.clone(), (*event).to_owned())).filter(|_had| *is_marked);
                let count = count + had.copied().unwrap_or_default();
                Ok(Some(self.wait_for(workflow, event, count).await?))
            }
            Step::Mark { workflow } => {
                self.mark(workflow).await?;
                Ok(None)
            }
            Step::Vanish { workflow } => Ok(Some(self.wait_until_gone(workflow).await?)),
            Step::Pause { ms } => {
                patience::pass(Duration::from_millis(*ms)).await;
                Ok(None)
            }
        }
    }

    async fn wait_for(&mut self, workflow: &str, event: &str, count: usize) -> Result<Value> {
        let deadline = patience::deadline();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let events = self.history(workflow, "", "GetWorkflowExecutionHistory").await?;
            let is_of_type = |one: &&Value| one["event_type"] == event;
            let seen = events.as_array().into_iter().flatten().filter(is_of_type).count();
            if seen >= count || deadline.is_over() {
                self.given.learn(&events, &self.own);
                return Ok(json!({ "has_come": seen >= count }));
            }
        }
    }

    async fn mark(&mut self, workflow: &str) -> Result<()> {
        let events = self.history(workflow, "", "GetWorkflowExecutionHistory").await?;
        self.marks.retain(|(marked, _), _| marked != workflow);
        for event in events.as_array().into_iter().flatten() {
            let kind = event["event_type"].as_str().unwrap_or_default().to_owned();
            *self.marks.entry((workflow.to_owned(), kind)).or_default() += 1;
        }
        Ok(())
    }

    async fn wait_until_gone(&self, workflow: &str) -> Result<Value> {
        let deadline = patience::deadline();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let events = self.history(workflow, "", "GetWorkflowExecutionHistory").await?;
            let has_vanished = events.pointer("/error/code").is_some_and(|code| code == "NotFound");
            if has_vanished || deadline.is_over() {
                return Ok(json!({ "has_vanished": has_vanished }));
            }
        }
    }

    /// All events of a run, or the refusal.
    async fn history(&self, workflow: &str, run: &str, method: &'static str) -> Result<Value> {
        let (mut events, mut token) = (Vec::new(), String::new());
        for _page in 0..PAGES_MAX {
            let request = json!({
                "namespace": "default",
                "execution": {"workflow_id": workflow.replace('~', &self.own), "run_id": run},
                "next_page_token": token,
            });
            let mut page = call(self.channel.clone(), self.schema.clone(), method, request, 10).await?;
            if page.get("error").is_some() {
                return Ok(page);
            }
            if let Some(Value::Array(more)) = page.pointer_mut("/history/events").map(Value::take) {
                events.extend(more);
            }
            token = page["next_page_token"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        Ok(Value::Array(events))
    }

    /// Histories, descriptions and closing events of all runs that were seen.
    async fn read_all(&mut self) -> Result<()> {
        let mut read = BTreeSet::new();
        // A history may name further runs.
        while let Some((workflow, run)) = self.given.unread(&read) {
            read.insert((workflow.clone(), run.clone()));
            let number = read.iter().filter(|(other, _)| *other == workflow).count();
            let events = self.history(&workflow, &run, "GetWorkflowExecutionHistory").await?;
            let reverse = self.history(&workflow, &run, "GetWorkflowExecutionHistoryReverse").await?;
            let mut forward = reverse.as_array().cloned().unwrap_or_default();
            forward.reverse();
            let is_mirrored = events.as_array() == Some(&forward);
            let is_over = forward.last().is_some_and(is_end);
            self.note(format!("history of {workflow} {number}"), events);
            self.note(format!("reverse of {workflow} {number}"), json!({ "is_mirrored": is_mirrored }));
            let execution = json!({"workflow_id": workflow.replace('~', &self.own), "run_id": run});
            let request = json!({
                "namespace": "default",
                "execution": execution,
                "history_event_filter_type": "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT",
            });
            let (channel, schema) = (self.channel.clone(), self.schema.clone());
            // A Temporal server makes whoever asks an open run for its end wait for a while.
            if is_over {
                let close =
                    call(channel.clone(), schema.clone(), "GetWorkflowExecutionHistory", request, 10).await?;
                self.note(format!("close of {workflow} {number}"), close);
            }
            let request = json!({"namespace": "default", "execution": execution});
            let description = call(channel, schema, "DescribeWorkflowExecution", request, 10).await?;
            self.note(format!("description of {workflow} {number}"), description);
        }
        Ok(())
    }

    /// A request with its references resolved.
    fn resolved(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.starts_with('@') => self.given.resolve(text),
            Value::String(text) => text.replace('~', &self.own).into(),
            Value::Array(values) => values.iter().map(|value| self.resolved(value)).collect(),
            Value::Object(tree) => {
                let mut resolved = Map::new();
                for (key, value) in tree {
                    let value = self.resolved(value);
                    match key.strip_prefix("@queries ") {
                        Some(workflow) => {
                            let ids = self.given.queries.get(workflow);
                            resolved.extend(ids.into_iter().flatten().map(|id| (id.clone(), value.clone())));
                        }
                        None => drop(resolved.insert(key.replace('~', &self.own), value)),
                    }
                }
                Value::Object(resolved)
            }
            other => other.clone(),
        }
    }
}

/// The last event of a run that is over.
fn is_end(event: &Value) -> bool {
    const ENDS: &[&str] = &["COMPLETED", "FAILED", "TIMED_OUT", "CANCELED", "TERMINATED", "CONTINUED_AS_NEW"];
    let end =
        event["event_type"].as_str().and_then(|kind| kind.strip_prefix("EVENT_TYPE_WORKFLOW_EXECUTION_"));
    end.is_some_and(|end| ENDS.contains(&end))
}

impl Given {
    /// What a reference stands for; what no server has given where there is nothing.
    fn resolve(&self, reference: &str) -> Value {
        let mut words = reference.split(' ');
        let (kind, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let third = words.next().unwrap_or_default();
        let number = third.parse::<usize>().unwrap_or_default();
        match kind {
            "@long" => "x".repeat(name.parse().unwrap_or_default()).into(),
            "@event" => self.event(name, third, words.next().unwrap_or_default()).into(),
            "@run" => {
                let runs = self.runs.get(name).map_or(&[][..], Vec::as_slice);
                let run = if third == "last" { runs.last() } else { runs.get(number) };
                run.map_or(NO_RUN, String::as_str).into()
            }
            "@sequence" => self.sequences.get(name).copied().unwrap_or_default().into(),
            "@scheduled" => self.scheduled.get(name).copied().unwrap_or(i64::MAX).into(),
            "@task" | "@former" | "@query" | "@message" => {
                let kind_of = if kind == "@former" { "@task" } else { kind };
                let tokens = self.tokens.get(&format!("{kind_of} {name}")).map_or(&[][..], Vec::as_slice);
                let index = tokens.len().wrapping_sub(if kind == "@former" { 2 } else { 1 });
                // What is no token of anybody is refused as such.
                tokens.get(index).cloned().unwrap_or_else(|| "no token".to_owned()).into()
            }
            // A schedule, say.
            _no_reference => reference.into(),
        }
    }

    /// An event of a type; the last of others that a run can go back to where there is none.
    fn event(&self, workflow: &str, kind: &str, which: &str) -> i64 {
        let events = self.events.get(workflow).map_or(&[][..], Vec::as_slice);
        for kind in [kind, "WORKFLOW_TASK_COMPLETED", "WORKFLOW_TASK_STARTED"] {
            let of_kind: Vec<i64> = events
                .iter()
                .filter(|(_, one)| one.strip_prefix("EVENT_TYPE_") == Some(kind))
                .map(|(id, _)| *id)
                .collect();
            let at = match which {
                "first" => 0,
                "middle" => of_kind.len() / 2,
                _last => of_kind.len().saturating_sub(1),
            };
            if let Some(id) = of_kind.get(at) {
                return *id;
            }
        }
        NO_EVENT
    }

    fn learn_events(&mut self, tree: &Map<String, Value>, own: &str) {
        let events = tree.get("events").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let begins = events.first().and_then(|first| {
            first.pointer("/workflow_execution_started_event_attributes/workflow_id")?.as_str()
        });
        let Some(workflow) = begins else { return };
        let event = |one: &Value| Some((one["event_id"].as_i64()?, one["event_type"].as_str()?.to_owned()));
        self.events.insert(workflow.replace(own, "~"), events.iter().filter_map(event).collect());
    }

    fn unread(&self, read: &BTreeSet<(String, String)>) -> Option<(String, String)> {
        let all = self.runs.iter().flat_map(|(id, runs)| runs.iter().map(|run| (id.clone(), run.clone())));
        all.into_iter().find(|one| !read.contains(one))
    }

    /// Takes from an answer what later steps may refer to.
    fn learn(&mut self, answer: &Value, own: &str) {
        match answer {
            Value::Array(values) => values.iter().for_each(|value| self.learn(value, own)),
            Value::Object(tree) => {
                self.learn_task(answer, own);
                self.learn_scheduled(tree, own);
                self.learn_run(tree, own);
                self.learn_events(tree, own);
                self.learn_message(tree, own);
                tree.values().for_each(|value| self.learn(value, own));
            }
            _leaf => {}
        }
    }

    fn learn_task(&mut self, task: &Value, own: &str) {
        let token = task.get("task_token").and_then(Value::as_str).unwrap_or_default();
        if token.is_empty() {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().replace(own, "~");
        let workflow = text(&task["workflow_execution"]["workflow_id"]);
        let name = match (task.get("activity_id"), task.get("query")) {
            (Some(activity), _) => format!("@task {}", text(activity)),
            (None, Some(_query)) => format!("@query {workflow}"),
            (None, None) => {
                let queries = task.get("queries").and_then(Value::as_object);
                let ids = queries.map(|queries| queries.keys().cloned().collect()).unwrap_or_default();
                self.queries.insert(workflow.clone(), ids);
                format!("@task {workflow}")
            }
        };
        self.tokens.entry(name).or_default().push(token.to_owned());
    }

    fn learn_scheduled(&mut self, event: &Map<String, Value>, own: &str) {
        if let Some(Value::Object(scheduled)) = event.get("activity_task_scheduled_event_attributes") {
            let activity = scheduled.get("activity_id").and_then(Value::as_str).unwrap_or_default();
            let id = event.get("event_id").and_then(Value::as_i64).unwrap_or_default();
            self.scheduled.insert(activity.replace(own, "~"), id);
        }
    }

    fn learn_message(&mut self, tree: &Map<String, Value>, own: &str) {
        let (Some(Value::String(update)), Some(Value::String(id))) =
            (tree.get("protocol_instance_id"), tree.get("id"))
        else {
            return;
        };
        let update = update.replace(own, "~");
        let sequence = tree.get("event_id").and_then(Value::as_i64).unwrap_or_default();
        self.sequences.insert(update.clone(), sequence);
        self.tokens.entry(format!("@message {update}")).or_default().push(id.clone());
    }

    fn learn_run(&mut self, tree: &Map<String, Value>, own: &str) {
        let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
        let (workflow, run) = (text("workflow_id").replace(own, "~"), text("run_id"));
        // Only what is the program's own: links may name anything.
        if !workflow.starts_with('~') || run.is_empty() {
            return;
        }
        let runs = self.runs.entry(workflow).or_default();
        if !runs.iter().any(|known| known == run) {
            runs.push(run.to_owned());
        }
    }
}

/// Makes a call; a refusal is an answer too.
pub async fn call(
    channel: Channel,
    schema: Arc<Schema>,
    method: &'static str,
    request: Value,
    within_s: u64,
) -> Result<Value> {
    let method = schema.method(method)?.clone();
    let bytes =
        schema.encode(&method.input, &request).with_context(|| format!("{} {request}", method.path))?;
    let mut wire = Request::new(Bytes::from(bytes));
    let begun = Instant::now();
    wire.set_timeout(Duration::from_secs(within_s));
    // As every SDK does: otherwise a Temporal server tells that a run with a next one was continued, whatever ended it.
    wire.metadata_mut().insert("supported-features", MetadataValue::from_static("follows-next-run-id"));
    let mut answer = match raw::call(&channel, &method.path, wire).await {
        Ok(answer) => schema.decode(&method.output, answer.get_ref())?,
        // Whether the server or the caller notices first is left to chance. What is refused is refused, however late.
        Err(late)
            if !is_definite(&late) && begun.elapsed() + TIME_IS_OVER > Duration::from_secs(within_s) =>
        {
            json!({ "error": {"code": "DeadlineExceeded", "message": "time is over", "details": []} })
        }
        Err(status) => json!({ "error": refusal(&schema, &status)? }),
    };
    // A start or a reset names its run and not its workflow; references want both.
    let id = request.get("workflow_id").or_else(|| request.pointer("/workflow_execution/workflow_id"));
    let named = answer.as_object_mut().filter(|answer| answer.contains_key("run_id"));
    if let (Some(id), Some(answer)) = (id, named) {
        answer.insert("workflow_id".to_owned(), id.clone());
    }
    Ok(answer)
}

fn refusal(schema: &Schema, status: &Status) -> Result<Value> {
    let details = rpc::Status::decode(status.details())?.details;
    let details = details.iter().map(|detail| {
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        let fields = match name.ends_with(".QueryFailedFailure") {
            true => {
                let failed = errordetails::QueryFailedFailure::decode(&*detail.value)?;
                let failure = failed.failure.unwrap_or_default();
                json!({ "failure": schema.decode(".temporal.api.failure.v1.Failure", &failure)? })
            }
            false => decode_unknown(&detail.value)?,
        };
        Ok(json!({ "type": name.rsplit('.').next(), "fields": fields }))
    });
    let details = details.collect::<Result<Vec<Value>>>()?;
    let code = format!("{:?}", status.code());
    Ok(json!({ "code": code, "message": status.message(), "details": details }))
}
