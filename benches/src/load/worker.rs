//! The worker: polls workflow tasks, lets the scenario's program decide, answers.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::enums::QueryResultType;
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::taskqueue::{StickyExecutionAttributes, TaskQueue};
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest, RespondWorkflowTaskCompletedResponse,
};
use prost::Message;
use tokio::task::JoinSet;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use super::orders::Completion;
use super::progress::{Event, Fired, History, Progress};
use super::session::Session;
use super::steps::Steps;
use super::updates::Updates;

/// The deadline that SDKs give their polls.
const POLL_TIMEOUT: Duration = Duration::from_secs(70);
/// After a failed poll, so that a dead server is not hammered.
const POLL_PAUSE: Duration = Duration::from_millis(200);
const STICKY_TIMEOUT_SECONDS: i64 = 10;
/// An answer that the server refuses for the moment is sent so often, with pauses that double.
const ANSWERS_MAX: u32 = 6;
const ANSWER_PAUSE: Duration = Duration::from_millis(25);
const COMPLETE_PATH: &str = "/temporal.api.workflowservice.v1.WorkflowService/RespondWorkflowTaskCompleted";

/// Decides what a run does next.
pub type Program = Box<dyn Fn(&Progress) -> Turn + Send + Sync>;

/// What a workflow task is answered with.
pub enum Turn {
    /// Encoded commands after which the run goes on.
    Go(Vec<Bytes>),
    /// Nothing to do, and whoever waits for the workflow may know that it stands.
    Ready,
    /// Encoded commands after which the run gets a task at once.
    Again(Vec<Bytes>),
    /// Encoded commands, the last of which ends the run.
    Close(Vec<Bytes>),
}

/// One worker process, as the server sees it.
pub struct Worker {
    pub(super) session: Arc<Session>,
    program: Program,
    runs: Mutex<HashMap<String, Progress>>,
    pub(super) steps: Option<Steps>,
}

impl Worker {
    /// A worker that does not poll yet; `stepwise`: runs have one activity at a time, and steps are timed.
    pub fn new(session: Arc<Session>, program: Program, stepwise: bool) -> Self {
        Self { session, program, runs: Mutex::default(), steps: stepwise.then(Steps::default) }
    }

    /// Polls all queues until the set is dropped.
    pub fn poll(self: &Arc<Self>) -> JoinSet<()> {
        let mut polls = JoinSet::new();
        for _ in 0..self.session.load.pollers.max(1) {
            polls.spawn(self.clone().poll_tasks(self.session.task_queue.clone()));
            polls.spawn(self.clone().poll_activities());
            if !self.session.load.no_sticky {
                polls.spawn(self.clone().poll_tasks(self.session.sticky_queue.clone()));
            }
        }
        polls
    }

    async fn poll_tasks(self: Arc<Self>, task_queue: TaskQueue) {
        let mut client = self.session.worker_connections.client();
        let request = PollWorkflowTaskQueueRequest {
            namespace: self.session.load.namespace.clone(),
            task_queue: Some(task_queue),
            identity: self.session.name.clone(),
            ..Default::default()
        };
        loop {
            let polled = client.poll_workflow_task_queue(timed(request.clone())).await;
            let Some(task) = self.polled("PollWorkflowTaskQueue", polled).await else {
                continue;
            };
            let mut next = Some(task).filter(|task| !task.task_token.is_empty());
            while let Some(task) = next {
                next = self.answer(task).await;
            }
        }
    }

    /// Answers a task; the run's next one, if the server has it already.
    async fn answer(&self, mut task: PollWorkflowTaskQueueResponse) -> Option<PollWorkflowTaskQueueResponse> {
        let execution = task.workflow_execution.take().unwrap_or_default();
        if task.query.is_some() {
            // A worker that keeps no workflow replays its history first.
            let events = self.events(&mut task, &execution).await?;
            self.turn(&execution.run_id, &events)?;
            self.answer_query(task).await;
            return None;
        }
        if let Some(steps) = &self.steps {
            steps.task_polled(&execution.run_id, &self.session.tally);
        }
        let events = self.events(&mut task, &execution).await?;
        let turn = self.turn(&execution.run_id, &events)?;
        let sent = Instant::now();
        let (mut again, mut closes, mut tells) = (false, false, false);
        let commands = match turn {
            Turn::Go(commands) => {
                let steps = self.steps.as_ref().filter(|_| !commands.is_empty());
                steps.inspect(|steps| steps.begin(&execution.run_id, sent));
                commands
            }
            Turn::Again(commands) => {
                again = true;
                commands
            }
            Turn::Ready => {
                tells = true;
                Vec::new()
            }
            Turn::Close(commands) => {
                (closes, tells) = (true, true);
                commands
            }
        };
        let mut completion = self.completion(task, commands);
        completion.force_create_new_workflow_task = again;
        let answer = self.complete(completion).await?;
        self.session.tally.ended("RespondWorkflowTaskCompleted", sent);
        if closes {
            self.runs().remove(&execution.run_id);
        }
        if tells {
            self.session.finished.call(&execution.workflow_id);
        }
        answer.workflow_task.filter(|task| !task.task_token.is_empty())
    }

    fn completion(&self, task: PollWorkflowTaskQueueResponse, commands: Vec<Bytes>) -> Completion {
        let updates = Updates::complete(&task.messages, &self.session);
        let answered = || WorkflowQueryResult {
            result_type: QueryResultType::Answered.into(),
            answer: Some(self.session.payloads.clone()),
            ..Default::default()
        };
        let sticky = || StickyExecutionAttributes {
            worker_task_queue: Some(self.session.sticky_queue.clone()),
            schedule_to_start_timeout: Some(prost_types::Duration {
                seconds: STICKY_TIMEOUT_SECONDS,
                nanos: 0,
            }),
        };
        Completion {
            task_token: task.task_token,
            commands: updates.commands.into_iter().chain(commands).collect(),
            identity: self.session.name.clone(),
            sticky_attributes: (!self.session.load.no_sticky).then(sticky),
            return_new_workflow_task: true,
            force_create_new_workflow_task: false,
            query_results: task.queries.into_keys().map(|id| (id, answered())).collect(),
            namespace: self.session.load.namespace.clone(),
            messages: updates.messages,
        }
    }

    async fn complete(&self, completion: Completion) -> Option<RespondWorkflowTaskCompletedResponse> {
        let send = || async {
            let mut grpc = self.session.worker_connections.grpc();
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let codec = ProstCodec::<Completion, RespondWorkflowTaskCompletedResponse>::default();
            let mut request = Request::new(completion.clone());
            request.set_timeout(self.session.load.timeout);
            grpc.unary(request, PathAndQuery::from_static(COMPLETE_PATH), codec).await
        };
        self.insist("RespondWorkflowTaskCompleted", send).await
    }

    async fn answer_query(&self, task: PollWorkflowTaskQueueResponse) {
        let request = RespondQueryTaskCompletedRequest {
            task_token: task.task_token,
            completed_type: QueryResultType::Answered.into(),
            query_result: Some(self.session.payloads.clone()),
            namespace: self.session.load.namespace.clone(),
            ..Default::default()
        };
        let send = || async {
            self.session.worker_connections.client().respond_query_task_completed(request.clone()).await
        };
        self.insist("RespondQueryTaskCompleted", send).await;
    }

    /// The task's events, with those on further pages.
    async fn events(
        &self,
        task: &mut PollWorkflowTaskQueueResponse,
        execution: &WorkflowExecution,
    ) -> Option<Vec<Event>> {
        let mut events = self.decoded(task.history.take())?;
        let mut request = GetWorkflowExecutionHistoryRequest {
            namespace: self.session.load.namespace.clone(),
            execution: Some(execution.clone()),
            next_page_token: std::mem::take(&mut task.next_page_token),
            ..Default::default()
        };
        while !request.next_page_token.is_empty() {
            let send = || async {
                self.session.worker_connections.client().get_workflow_execution_history(request.clone()).await
            };
            let page = self.insist("GetWorkflowExecutionHistory", send).await?;
            events.extend(self.decoded(page.history)?);
            request.next_page_token = page.next_page_token;
        }
        Some(events)
    }

    fn decoded(&self, history: Option<Bytes>) -> Option<Vec<Event>> {
        match History::decode(history.unwrap_or_default()) {
            Ok(history) => Some(history.events),
            Err(error) => {
                self.session.tally.failed("history", "Undecodable", &error.to_string());
                None
            }
        }
    }

    fn turn(&self, run_id: &str, events: &[Event]) -> Option<Turn> {
        let mut runs = self.runs();
        let progress = runs.entry(run_id.to_string()).or_default();
        match progress.absorb(events) {
            Ok(fired) => {
                fired.into_iter().for_each(|fired| self.note_lateness(fired));
                Some((self.program)(progress))
            }
            Err(gap) => {
                self.session.tally.failed("history", "Gap", &format!("run {run_id}: {gap:?}"));
                None
            }
        }
    }

    fn note_lateness(&self, fired: Fired) {
        let now = Instant::now();
        let now_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_nanos() as i64;
        for (name, at_ns) in
            [("timer lateness: event", fired.fired_ns), ("timer lateness: task polled", now_ns)]
        {
            match u64::try_from(at_ns - fired.due_ns) {
                Ok(late_ns) => self.session.tally.took(name, now, Duration::from_nanos(late_ns)),
                Err(_) => self.session.tally.failed("timer", "Early", &format!("{name}: {fired:?}")),
            }
        }
    }

    /// The task that a poll brought; after a failed one there is a pause.
    pub(super) async fn polled<T>(
        &self,
        call: &'static str,
        polled: Result<Response<T>, Status>,
    ) -> Option<T> {
        match polled {
            Ok(task) => Some(task.into_inner()),
            // Time is up and there was no task.
            Err(status) if matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled) => None,
            Err(status) => {
                self.session.tally.refused(call, &status);
                tokio::time::sleep(POLL_PAUSE).await;
                None
            }
        }
    }

    /// Sends an answer until the server takes it; every refusal counts as a failure.
    pub(super) async fn insist<T, F>(&self, call: &'static str, send: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        for attempt in 0..ANSWERS_MAX {
            let status = match send().await {
                Ok(answer) => return Some(answer.into_inner()),
                Err(status) => status,
            };
            self.session.tally.refused(call, &status);
            if !matches!(status.code(), Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded)
            {
                break;
            }
            tokio::time::sleep(ANSWER_PAUSE * 2_u32.pow(attempt)).await;
        }
        None
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Progress>> {
        self.runs.lock().expect("no program panics")
    }
}

/// A poll with its deadline.
pub(super) fn timed<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(POLL_TIMEOUT);
    request
}
