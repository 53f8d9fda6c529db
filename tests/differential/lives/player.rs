//! Plays a life at one server: a step, then looks until the schedule and its runs have come to rest.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use everlog_tests::patience;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::allowed::Allowed;
use crate::compare::{Uses, compare_by};
use crate::lives::life::{Life, LifeAct, LifeStep, RunFate, SOON, UpdateToken, WhichRun};
use crate::lives::view::{LifeView, RunChain, list, now_s, token_number};
use crate::lives::worker::LifeWorker;
use crate::runner::Noted;
use crate::schema::Schema;

/// A server whose answers nobody knows is at rest when it says the same so many times.
const SAME_LOOKS: usize = 12;
/// So many times where what was asked for shows nowhere, as an action that takes the place of another does not.
const SAME_LOOKS_UNSEEN: usize = 40;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Each look at a server whose answers are known costs it some calls.
const KNOWN_LOOK_EVERY: Duration = Duration::from_millis(50);
/// What is known to go another way says the same so often, before it is played again.
const KNOWN_SAME_LOOKS: usize = 200;
/// Longer than a busy server takes to take a request.
const SOON_S: i64 = 4;
/// Runs that follow each other by retries and continuations.
const CHAIN_MAX: usize = 20;

/// When a server has come to rest behind a step.
pub enum Rest<'a> {
    /// When it says the same for a while.
    Same,
    /// When its answers are as these are.
    Known {
        answers: &'a [Noted],
        allowed: &'a [&'static Allowed],
        /// It is given up when it says the same of a step for long.
        is_hurried: bool,
    },
}

/// Actions that a description counts.
fn actions(schedule: &Value) -> i64 {
    let counts = ["action_count", "overlap_skipped", "buffer_size", "buffer_dropped"];
    counts.iter().filter_map(|count| schedule["info"][count].as_i64()).sum()
}

/// A server that has too much to do describes nothing.
fn is_described(schedule: &Value) -> bool {
    schedule.is_object() || schedule == "NotFound"
}

/// A time comes soon.
fn is_due(schedule: &Value) -> bool {
    list(&schedule["info"]["future_action_times"]).any(|time| time == "now")
}

fn is_alike(allowed: &[&'static Allowed], known: &Noted, noted: &Noted) -> bool {
    let [known, noted] = [known, noted].map(std::slice::from_ref);
    compare_by(allowed, known, noted, &mut Uses::new()).is_empty()
}

/// One life at one server.
pub struct LifePlayer<'a> {
    worker: LifeWorker,
    life: &'a Life,
    view: LifeView,
    rest: Rest<'a>,
    /// Counts requests, so that each has an id of its own.
    requests: usize,
    /// Of the latest description.
    actions: i64,
    /// The latest conflict token that was seen.
    token: String,
    noted: Vec<Noted>,
}

impl<'a> LifePlayer<'a> {
    /// `own` is what no other run of a life has in its ids.
    pub fn new(channel: Channel, schema: Arc<Schema>, own: String, life: &'a Life, rest: Rest<'a>) -> Self {
        let view = LifeView::new(&own, life.keeps_id);
        let worker = LifeWorker { channel, schema, own };
        Self { worker, life, view, rest, requests: 0, actions: 0, token: String::new(), noted: Vec::new() }
    }

    /// Plays all steps, and reads how the runs began and ended. A server that does not come to rest is left there.
    pub async fn play(mut self) -> Result<Vec<Noted>> {
        let life = self.life;
        for (number, step) in life.steps.iter().enumerate() {
            let answer = self.act(step).await?;
            if !self.settle(number, step, answer).await? {
                return Ok(self.noted);
            }
        }
        self.read_runs().await?;
        Ok(self.noted)
    }

    async fn act(&mut self, step: &LifeStep) -> Result<Value> {
        let id = |own: &str| json!({ "schedule_id": format!("{own}s"), "identity": "planner" });
        let mut request = id(&self.worker.own);
        self.requests += 1;
        request["request_id"] = format!("{}{}", self.worker.own, self.requests).into();
        let method = match &step.act {
            LifeAct::Create { schedule, patch } => {
                request["schedule"] = self.resolved(schedule, now_s() + SOON_S);
                request["initial_patch"] = patch.clone();
                request["memo"] = json!({ "fields": {"of": {"data": "a schedule"}} });
                "CreateSchedule"
            }
            LifeAct::Patch { patch } => {
                request["patch"] = patch.clone();
                "PatchSchedule"
            }
            LifeAct::Update { schedule, token } => {
                request["schedule"] = self.resolved(schedule, now_s() + SOON_S);
                let wrong = || token_number(&self.token).map(|number| format!("hex:{:016x}", number + 7));
                match token {
                    UpdateToken::None => {}
                    UpdateToken::Latest => request["conflict_token"] = self.token.clone().into(),
                    UpdateToken::Wrong => request["conflict_token"] = wrong().into(),
                }
                "UpdateSchedule"
            }
            LifeAct::Delete => {
                request.as_object_mut().map(|request| request.remove("request_id"));
                "DeleteSchedule"
            }
            LifeAct::Run { which, fate } => return self.end_one(*which, *fate).await,
            LifeAct::Drain => return self.drain(step).await,
        };
        self.next_second(step).await;
        let mut answer = self.worker.call(method, request).await?;
        if let Some(token) = answer["conflict_token"].as_str().and_then(token_number) {
            answer["conflict_token"] = token.into();
        }
        Ok(self.view.plain(&answer))
    }

    /// A request with what is the life's own in place of `~`, and with a time in place of [`SOON`].
    fn resolved(&self, value: &Value, soon_s: i64) -> Value {
        let resolved = |value| self.resolved(value, soon_s);
        match value {
            Value::String(text) if text == SOON => soon_s.into(),
            Value::String(text) => text.replace('~', &self.worker.own).into(),
            Value::Array(values) => values.iter().map(resolved).collect(),
            Value::Object(tree) => {
                Value::Object(tree.iter().map(|(key, value)| (key.clone(), resolved(value))).collect())
            }
            other => other.clone(),
        }
    }

    /// A Temporal server loses the second of two triggers in one second; what is known of it needs no wait.
    async fn next_second(&self, step: &LifeStep) {
        let patch = match &step.act {
            LifeAct::Create { patch, .. } | LifeAct::Patch { patch } => patch,
            _no_patch => return,
        };
        let is_now = patch.get("trigger_immediately").is_some_and(|one| one.get("scheduled_time").is_none());
        if is_now && matches!(self.rest, Rest::Same) {
            patience::pass(Duration::from_secs(1)).await;
        }
    }

    async fn end_one(&self, which: WhichRun, fate: RunFate) -> Result<Value> {
        let mut open = self.view.chains.iter().filter(|chain| chain.is_open());
        let chosen = match which {
            WhichRun::Oldest => open.next(),
            WhichRun::Newest => open.next_back(),
        };
        let Some(chain) = chosen else { return Ok("no run is open".into()) };
        let answer = self.worker.end(&chain.workflow_id, chain.last_run_id(), fate).await?;
        let is_refused = answer.get("error").is_some();
        Ok(if is_refused { self.view.plain(&answer) } else { "done".into() })
    }

    /// Terminates what is open until nothing is, and nothing waits.
    async fn drain(&mut self, step: &LifeStep) -> Result<Value> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            let (view, schedule) = self.look(step.overlaps).await?;
            self.view = view;
            let open = self.view.chains.iter().filter(|chain| chain.is_open());
            let open: Vec<_> =
                open.map(|chain| (chain.workflow_id.clone(), chain.last_run_id().to_owned())).collect();
            for (workflow_id, run_id) in &open {
                self.worker.end(workflow_id, run_id, RunFate::IsTerminated).await?;
            }
            let waiting = schedule.pointer("/info/buffer_size").and_then(Value::as_i64).unwrap_or_default();
            if open.is_empty() && waiting == 0 {
                return Ok("done".into());
            }
            if deadline.is_over() {
                return Ok("it does not drain".into());
            }
            looks.tick().await;
        }
    }

    /// Looks until the server is at rest, and notes what it says then. False where it does not come to rest.
    async fn settle(&mut self, number: usize, step: &LifeStep, answer: Value) -> Result<bool> {
        let deadline = patience::deadline();
        let every = if matches!(self.rest, Rest::Same) { LOOK_EVERY } else { KNOWN_LOOK_EVERY };
        let mut looks = tokio::time::interval(every);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut before, mut same, mut had_a_time) = (Value::Null, 0, false);
        loop {
            looks.tick().await;
            let (view, schedule) = self.look(step.overlaps).await?;
            let token = schedule["conflict_token"].as_u64();
            let mut seen = json!({ "answer": answer, "runs": view.statuses(), "schedule": &schedule });
            seen["policies"] = step.policies().into_iter().collect();
            let noted = Noted { step: number.to_string(), answer: seen };
            same = if noted.answer == before { same + 1 } else { 0 };
            had_a_time |= is_due(&schedule);
            let (is_at_rest, is_left) = match &self.rest {
                Rest::Same => {
                    let is_open = view.chains.iter().any(RunChain::is_open);
                    let is_under_way = self.life.is_hasty && is_open || is_due(&schedule);
                    let is_awaited = step.asks_for_actions() || had_a_time;
                    let is_seen = !is_awaited || actions(&schedule) != self.actions;
                    let looks = if is_seen { SAME_LOOKS } else { SAME_LOOKS_UNSEEN };
                    (same >= looks && !is_under_way && is_described(&schedule), false)
                }
                Rest::Known { answers, allowed, is_hurried } => {
                    let known = answers.get(self.noted.len());
                    let is_alike = known.is_some_and(|known| is_alike(allowed, known, &noted));
                    (is_alike, *is_hurried && same >= KNOWN_SAME_LOOKS)
                }
            };
            before.clone_from(&noted.answer);
            if is_at_rest || is_left || deadline.is_over() {
                self.view = view;
                self.actions = actions(&schedule);
                self.token = token.map_or_else(String::new, |number| format!("hex:{number:016x}"));
                self.noted.push(noted);
                return Ok(is_at_rest);
            }
        }
    }

    /// The schedule and its runs as they are now.
    async fn look(&self, overlaps: bool) -> Result<(LifeView, Value)> {
        let request = json!({ "schedule_id": format!("{}s", self.worker.own) });
        let description = self.worker.call("DescribeSchedule", request).await?;
        let mut view = self.view.clone();
        view.learn(&description["info"], overlaps);
        for number in 0..view.chains.len() {
            while view.chains[number].is_open() && view.chains[number].run_ids.len() < CHAIN_MAX {
                let chain = &mut view.chains[number];
                let (workflow_id, run_id) = (chain.workflow_id.clone(), chain.last_run_id().to_owned());
                chain.status = self.status(&workflow_id, &run_id).await?;
                if chain.is_open() {
                    break;
                }
                if let Some(next) = self.next_run(&workflow_id, &run_id).await? {
                    chain.run_ids.push(next);
                    chain.status = "WORKFLOW_EXECUTION_STATUS_RUNNING".to_owned();
                }
            }
        }
        let schedule = view.schedule(description);
        Ok((view, schedule))
    }

    async fn status(&self, workflow_id: &str, run_id: &str) -> Result<String> {
        let execution = json!({"workflow_id": workflow_id, "run_id": run_id});
        let description =
            self.worker.call("DescribeWorkflowExecution", json!({ "execution": execution })).await?;
        let status = description.pointer("/workflow_execution_info/status").and_then(Value::as_str);
        Ok(status.unwrap_or("gone").to_owned())
    }

    /// The run that follows a closed one.
    async fn next_run(&self, workflow_id: &str, run_id: &str) -> Result<Option<String>> {
        let events = self.events(workflow_id, run_id).await?;
        let fields = events.as_array().and_then(|events| events.last()?.as_object());
        let mut attributes = fields.into_iter().flatten().filter_map(|(_, value)| value.as_object());
        let next = attributes.find_map(|attributes| attributes.get("new_execution_run_id"));
        Ok(next.and_then(Value::as_str).filter(|next| !next.is_empty()).map(str::to_owned))
    }

    async fn events(&self, workflow_id: &str, run_id: &str) -> Result<Value> {
        let request = json!({ "execution": {"workflow_id": workflow_id, "run_id": run_id} });
        let mut history = self.worker.call("GetWorkflowExecutionHistory", request).await?;
        Ok(history.pointer_mut("/history/events").map(Value::take).unwrap_or_default())
    }

    /// How each run began, and what has come to it.
    async fn read_runs(&mut self) -> Result<()> {
        for (number, chain) in self.view.chains.iter().enumerate() {
            for (later, run_id) in chain.run_ids.iter().enumerate() {
                let events = self.events(&chain.workflow_id, run_id).await?;
                let answer: Value = list(&events).filter_map(|event| self.shown(event)).collect();
                self.noted.push(Noted { step: format!("run {number}, {later} later"), answer });
            }
        }
        Ok(())
    }

    /// An event, but those of workflow tasks.
    fn shown(&self, event: &Value) -> Option<Value> {
        let kind = event["event_type"].as_str()?.strip_prefix("EVENT_TYPE_")?;
        let attributes = event.get(format!("{}_event_attributes", kind.to_lowercase())).cloned();
        let is_of_task = kind.starts_with("WORKFLOW_TASK_");
        (!is_of_task).then(|| self.view.plain(&json!({ "event": kind, "attributes": attributes })))
    }
}
