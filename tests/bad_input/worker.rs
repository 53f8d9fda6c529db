//! A worker without an SDK: polls, completes with given commands, and reads back what is left.

use bytes::Bytes;
use everlog_engine::api_types::MapEntry;
use everlog_engine::api_types::{ActivityType, TaskQueue};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{activity, close, marker, memo_and_search_attributes, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::enums::{EventType, WorkflowTaskFailedCause};
use everlog_temporal_api::full::temporal::api::failure::v1::{
    ApplicationFailureInfo, Failure, failure::FailureInfo,
};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse, PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse, PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
};
use everlog_tests::patience;
use prost::Message;
use tonic::{Code, Request};

use crate::row::{Action, Observation};
use crate::world::{Run, World, execution, observation, path_of, payloads, queue};

impl World {
    /// Gets the workflow task that waits in the run's queue.
    pub async fn task(&self, run: &Run) -> anyhow::Result<PollWorkflowTaskQueueResponse> {
        let request = PollWorkflowTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: Some(queue(&run.queue)),
            identity: "tests".into(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let task: PollWorkflowTaskQueueResponse = self.poll(request).await?;
        anyhow::ensure!(!task.task_token.is_empty(), "no workflow task came for {}", run.id);
        Ok(task)
    }

    /// Gets the activity task that waits in the run's queue.
    pub async fn activity_task(&self, run: &Run) -> anyhow::Result<PollActivityTaskQueueResponse> {
        let request = PollActivityTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: Some(queue(&run.queue)),
            identity: "tests".into(),
            ..PollActivityTaskQueueRequest::default()
        };
        let task: PollActivityTaskQueueResponse = self.poll(request).await?;
        anyhow::ensure!(!task.task_token.is_empty(), "no activity task came for {}", run.id);
        Ok(task)
    }

    async fn poll<M, A>(&self, request: M) -> anyhow::Result<A>
    where
        M: Message + prost::Name,
        A: Message + Default,
    {
        let mut call = Request::new(Bytes::from(request.encode_to_vec()));
        call.set_timeout(patience::most());
        Ok(A::decode(self.call(&path_of::<M>(), call).await?)?)
    }

    /// A completion of a workflow task.
    pub fn completion(&self, token: &Bytes, commands: Vec<Command>) -> RespondWorkflowTaskCompletedRequest {
        RespondWorkflowTaskCompletedRequest {
            task_token: token.clone(),
            commands,
            identity: "tests".into(),
            namespace: self.namespace.clone(),
            ..RespondWorkflowTaskCompletedRequest::default()
        }
    }

    /// Polls a workflow task and completes it.
    pub async fn work(&self, run: &Run, commands: Vec<Command>) -> anyhow::Result<Observation> {
        let task = self.task(run).await?;
        Ok(observation(self.send(self.completion(&task.task_token, commands)).await))
    }

    /// Starts a run whose one activity is in our hand.
    pub async fn run_with_activity(
        &self,
        mut order: activity::Schedule,
    ) -> anyhow::Result<(Run, PollActivityTaskQueueResponse)> {
        let run = self.begin(|_fine| {}).await?;
        order.task_queue = Some(TaskQueue::normal(&run.queue));
        let done =
            self.work(&run, vec![command(CommandAttributes::ScheduleActivity(Box::new(order)))]).await?;
        anyhow::ensure!(done.code == Some(Code::Ok), "the activity is not scheduled: {done}");
        let task = self.activity_task(&run).await?;
        Ok((run, task))
    }

    /// All events of a run.
    pub async fn events(&self, run: &Run) -> anyhow::Result<Vec<HistoryEvent>> {
        let mut events = Vec::new();
        let mut token = Bytes::new();
        loop {
            let page: GetWorkflowExecutionHistoryResponse = self.answer(self.history_of(run, token)).await?;
            events.extend(History::decode(page.history.unwrap_or_default())?.events);
            token = page.next_page_token;
            if token.is_empty() {
                return Ok(events);
            }
        }
    }

    pub fn history_of(&self, run: &Run, next_page_token: Bytes) -> GetWorkflowExecutionHistoryRequest {
        let mut execution = execution(&run.id);
        execution.run_id.clone_from(&run.run_id);
        GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace.clone(),
            execution: Some(execution),
            next_page_token,
            ..GetWorkflowExecutionHistoryRequest::default()
        }
    }

    /// The run's events in words.
    pub async fn transcript(&self, run: &Run) -> anyhow::Result<String> {
        let events = self.events(run).await?;
        Ok(format!("{}.", events.iter().map(words).collect::<Vec<_>>().join(", ")))
    }

    /// What came of a call, and the events of the run that it was about.
    pub async fn leaving(&self, run: &Run, observation: Observation) -> anyhow::Result<Observation> {
        Ok(Observation { left: self.transcript(run).await?, ..observation })
    }

    /// Waits until a run has an event of a type.
    pub async fn until(&self, run: &Run, event_type: EventType) -> anyhow::Result<()> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while self.events(run).await?.iter().all(|event| event.event_type != event_type as i32) {
            anyhow::ensure!(!deadline.is_over(), "{} has no {event_type:?}", run.id);
            looks.tick().await;
        }
        Ok(())
    }
}

/// A worker completes the first workflow task of a new run with these commands.
pub fn commands(make: impl Fn() -> Vec<Command> + Send + Sync + Copy + 'static) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let run = world.begin(|_fine| {}).await?;
            let observation = world.work(&run, make()).await?;
            world.leaving(&run, observation).await
        })
    })
}

fn words(event: &HistoryEvent) -> String {
    let name = EventType::try_from(event.event_type).unwrap_or_default().as_str_name();
    let name = name.trim_start_matches("EVENT_TYPE_").trim_start_matches("WORKFLOW_EXECUTION_");
    let more = match &event.attributes {
        Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) => {
            let cause = WorkflowTaskFailedCause::try_from(failed.cause).unwrap_or_default().as_str_name();
            cause.trim_start_matches("WORKFLOW_TASK_FAILED_CAUSE_").to_owned()
        }
        Some(Attributes::ActivityTaskFailedEventAttributes(failed)) => {
            failed.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default()
        }
        Some(Attributes::WorkflowExecutionTerminatedEventAttributes(terminated))
            if !terminated.reason.is_empty() =>
        {
            terminated.reason.clone()
        }
        _no_more => return name.into(),
    };
    format!("{name} ({more})")
}

/// A command with its type.
pub fn command(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

/// An activity that is fine and that nobody works on.
pub fn schedule() -> activity::Schedule {
    activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("nobody")),
        input: payloads(10),
        start_to_close_timeout: Some(Span::from_ms(60_000)),
        ..activity::Schedule::default()
    }
}

/// A command that schedules it, changed in one thing.
pub fn activity(edit: impl Fn(&mut activity::Schedule)) -> Command {
    let mut order = schedule();
    edit(&mut order);
    command(CommandAttributes::ScheduleActivity(Box::new(order)))
}

pub fn timer(id: &str, ms: i64) -> Command {
    let start_to_fire_timeout = Some(Span::from_ms(ms));
    command(CommandAttributes::StartTimer(timer::Start { timer_id: id.into(), start_to_fire_timeout }))
}

pub fn marker(details_bytes: usize) -> Command {
    let value = payloads(details_bytes).unwrap_or_default();
    let details = vec![MapEntry { key: "data".into(), value }];
    command(CommandAttributes::RecordMarker(Box::new(marker::Record {
        marker_name: "mark".into(),
        details,
        ..marker::Record::default()
    })))
}

pub fn complete(result_bytes: usize) -> Command {
    command(CommandAttributes::CompleteWorkflow(close::Complete { result: payloads(result_bytes) }))
}

pub fn upsert_memo(memo: Bytes) -> Command {
    command(CommandAttributes::ModifyProperties(memo_and_search_attributes::Modify {
        upserted_memo: Some(memo),
    }))
}

/// A failure as a worker reports it.
pub fn application_failure(message_bytes: usize) -> Failure {
    Failure {
        message: "x".repeat(message_bytes),
        failure_info: Some(FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo {
            non_retryable: true,
            ..ApplicationFailureInfo::default()
        })),
        ..Failure::default()
    }
}
