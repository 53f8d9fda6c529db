//! The runs of a namespace: a number each, made of a seed, one after the other, so that no two have a moment in common.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use everlog_engine::api_types::WorkflowType as EngineType;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{close, memo_and_search_attributes};
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::IndexedValueType as Type;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, SearchAttributes};
use everlog_temporal_api::full::temporal::api::failure::v1::{
    ApplicationFailureInfo, Failure, failure::FailureInfo,
};
use everlog_temporal_api::operatorservice::AddSearchAttributesRequest;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflow::WorkflowExecutionInfo;
use everlog_temporal_api::workflowservice::{
    ListWorkflowExecutionsRequest, ListWorkflowExecutionsResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RegisterNamespaceRequest, RequestCancelWorkflowExecutionRequest,
    RespondWorkflowTaskCompletedRequest, StartWorkflowExecutionRequest, StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
};
use everlog_tests::dice::Dice;
use everlog_tests::{patience, raw};
use prost::Message;
use tonic::Request;
use tonic::transport::Channel;

/// Runs that are started; one of them has a second run, which is known by the number behind the last.
pub const RUNS: usize = 40;
/// The run that goes on in another one.
const CONTINUED: usize = 5;
/// The run that times out, as the first to close: when it does is not ours to say.
const TIMED_OUT: usize = 0;
const QUEUE: &str = "lists";

/// Values of keywords, of lists and of whole numbers.
pub const WORDS: &[&str] = &["red", "green", "rose", "100%", "a_b", "it's", "5", "z"];
pub const LISTED: &[&str] = &["red", "green", "x:y", "dark blue"];
pub const INTS: &[&str] = &["-7", "0", "1", "5", "42"];
const DOUBLES: &[&str] = &["-0.25", "0.5", "1.5", "2", "5"];
const TEXTS: &[&str] = &["a quick brown fox", "Order 4711 was shipped", "quick order", "fox"];

const CUSTOM: [(&str, Type); 8] = [
    ("SeekKeyword", Type::Keyword),
    ("Seek-Dash", Type::Keyword),
    ("SeekList", Type::KeywordList),
    ("SeekText", Type::Text),
    ("SeekInt", Type::Int),
    ("SeekDouble", Type::Double),
    ("SeekBool", Type::Bool),
    ("SeekTime", Type::Datetime),
];

/// What becomes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunCourse {
    Waits,
    /// Its first task sets other attributes.
    Upserts,
    Completes,
    Fails,
    IsCanceled,
    IsTerminated,
    TimesOut,
    Continues,
}

impl RunCourse {
    /// The number of the status that lists show in the end.
    fn status(self) -> i32 {
        match self {
            Self::Waits | Self::Upserts => 1,
            Self::Completes => 2,
            Self::Fails => 3,
            Self::IsCanceled => 4,
            Self::IsTerminated => 5,
            Self::Continues => 6,
            Self::TimesOut => 7,
        }
    }
}

/// A namespace with runs.
pub struct FilledNamespace {
    pub name: String,
    channel: Channel,
    /// By their numbers, as the server lists them.
    runs: Vec<WorkflowExecutionInfo>,
}

impl FilledNamespace {
    /// Makes one, with the runs of a seed, and waits until all are listed as they are.
    pub async fn fill(channel: &Channel, seed: u64) -> Result<Self> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let mut namespace =
            Self { name: format!("lists-{seed}-{nanos}"), channel: channel.clone(), runs: Vec::new() };
        namespace.register().await?;
        let mut dice = Dice::new(seed);
        let courses: Vec<_> = (0..RUNS).map(|number| course(&mut dice, number)).collect();
        for (number, course) in courses.iter().enumerate() {
            namespace.run(number, *course, &mut dice).await.with_context(|| format!("run {number}"))?;
        }
        namespace.settle(&courses).await?;
        Ok(namespace)
    }

    /// The number of a run.
    pub fn number_of(&self, run_id: &str) -> Result<usize> {
        let is_it =
            |run: &WorkflowExecutionInfo| run.execution.as_ref().is_some_and(|known| known.run_id == run_id);
        self.runs.iter().position(is_it).with_context(|| format!("{run_id} is no run of {}", self.name))
    }

    /// A query with the ids and moments of runs in the place of their numbers.
    pub fn filled_in(&self, query: &str) -> String {
        self.replaced(query, |text, mark, value| text.replace(mark, value))
    }

    /// An answer with the numbers of runs in the place of their ids and moments.
    pub fn numbered(&self, answer: &str) -> String {
        self.replaced(answer, |text, mark, value| text.replace(value, mark))
    }

    fn replaced(&self, text: &str, replace: impl Fn(&str, &str, &str) -> String) -> String {
        let mut text = text.to_owned();
        for (number, run) in self.runs.iter().enumerate() {
            let run_id = run.execution.as_ref().map_or("", |execution| &execution.run_id);
            text = replace(&text, &format!("<start {number}>"), &moment(run.start_time));
            text = replace(&text, &format!("<run {number}>"), run_id);
        }
        text
    }

    async fn register(&self) -> Result<()> {
        let request = RegisterNamespaceRequest {
            namespace: self.name.clone(),
            workflow_execution_retention_period: Some(prost_types::Duration { seconds: 86_400, nanos: 0 }),
            ..RegisterNamespaceRequest::default()
        };
        raw::send(&self.channel, request).await?;
        let search_attributes: BTreeMap<_, _> =
            CUSTOM.map(|(name, kind)| (name.to_owned(), kind.into())).into();
        let names = CUSTOM.map(|(name, _)| format!("`{name}` IS NULL")).join(" AND ");
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            let (namespace, search_attributes) = (self.name.clone(), search_attributes.clone());
            let add = AddSearchAttributesRequest { namespace, search_attributes };
            let added = raw::send(&self.channel, add).await;
            if added.is_ok() && self.listed(&names).await.is_ok() {
                return Ok(());
            }
            ensure!(!deadline.is_over(), "the namespace is not known: {added:?}");
            looks.tick().await;
        }
    }

    async fn run(&self, number: usize, course: RunCourse, dice: &mut Dice) -> Result<()> {
        let id = format!("run-{number}");
        let kind = if dice.permille(600) { "order" } else { "invoice" };
        let seconds = |seconds| prost_types::Duration { seconds, nanos: 0 };
        let request = StartWorkflowExecutionRequest {
            namespace: self.name.clone(),
            workflow_id: id.clone(),
            workflow_type: Some(WorkflowType { name: kind.into() }),
            task_queue: Some(queue(&id)),
            request_id: id.clone(),
            workflow_run_timeout: (course == RunCourse::TimesOut).then(|| seconds(1)),
            search_attributes: Some(attributes(dice)),
            ..StartWorkflowExecutionRequest::default()
        };
        let next = attributes(dice);
        StartWorkflowExecutionResponse::decode(raw::send(&self.channel, request).await?)?;
        let execution = Some(WorkflowExecution { workflow_id: id.clone(), run_id: String::new() });
        let namespace = self.name.clone();
        match course {
            RunCourse::Waits => {}
            RunCourse::TimesOut => self.until_closed(&id).await?,
            RunCourse::IsTerminated => {
                let request = TerminateWorkflowExecutionRequest {
                    namespace,
                    workflow_execution: execution,
                    ..TerminateWorkflowExecutionRequest::default()
                };
                raw::send(&self.channel, request).await?;
            }
            RunCourse::IsCanceled => {
                let request = RequestCancelWorkflowExecutionRequest {
                    namespace,
                    workflow_execution: execution,
                    ..RequestCancelWorkflowExecutionRequest::default()
                };
                raw::send(&self.channel, request).await?;
                self.work(&id, CommandAttributes::CancelWorkflow(close::Cancel::default())).await?;
            }
            RunCourse::Completes => {
                self.work(&id, CommandAttributes::CompleteWorkflow(close::Complete::default())).await?;
            }
            RunCourse::Fails => {
                let info = FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo::default());
                let failure =
                    Failure { message: "as asked".into(), failure_info: Some(info), ..Failure::default() };
                let failure = Some(failure.encode_to_vec().into());
                self.work(&id, CommandAttributes::FailWorkflow(close::Fail { failure })).await?;
            }
            RunCourse::Continues => {
                let workflow_type = Some(EngineType { name: kind.into() });
                let next = close::ContinueAsNew { workflow_type, ..close::ContinueAsNew::default() };
                self.work(&id, CommandAttributes::ContinueAsNew(Box::new(next))).await?;
            }
            RunCourse::Upserts => {
                let upsert =
                    memo_and_search_attributes::UpsertSearchAttributes { search_attributes: Some(next) };
                self.work(&id, CommandAttributes::UpsertSearchAttributes(upsert)).await?;
            }
        }
        // The next run begins in another millisecond.
        let now_ms = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let done_ms = now_ms();
        while now_ms() == done_ms {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Takes the workflow task of a run and completes it.
    async fn work(&self, id: &str, order: CommandAttributes) -> Result<()> {
        let poll = PollWorkflowTaskQueueRequest {
            namespace: self.name.clone(),
            task_queue: Some(queue(id)),
            identity: "lists".into(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let mut call = Request::new(Bytes::from(poll.encode_to_vec()));
        call.set_timeout(patience::most());
        let task = raw::call(&self.channel, &raw::path_of::<PollWorkflowTaskQueueRequest>(), call).await?;
        let task = PollWorkflowTaskQueueResponse::decode(task.into_inner())?;
        ensure!(!task.task_token.is_empty(), "no workflow task came");
        let command =
            Command { command_type: order.command_type(), order: Some(order), ..Command::default() };
        let request = RespondWorkflowTaskCompletedRequest {
            task_token: task.task_token,
            commands: vec![command],
            identity: "lists".into(),
            namespace: self.name.clone(),
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        raw::send(&self.channel, request).await?;
        Ok(())
    }

    async fn listed(&self, query: &str) -> Result<Vec<WorkflowExecutionInfo>> {
        let (namespace, query) = (self.name.clone(), query.to_owned());
        let request =
            ListWorkflowExecutionsRequest { namespace, query, ..ListWorkflowExecutionsRequest::default() };
        let answer = raw::send(&self.channel, request).await?;
        Ok(ListWorkflowExecutionsResponse::decode(answer)?.executions)
    }

    async fn until_closed(&self, id: &str) -> Result<()> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while self.listed(&format!("WorkflowId = '{id}' AND ExecutionStatus = 'TimedOut'")).await?.is_empty()
        {
            ensure!(!deadline.is_over(), "{id} has not timed out");
            looks.tick().await;
        }
        Ok(())
    }

    /// Waits until each run is listed with the status that it has: a Temporal server's lists are late.
    async fn settle(&mut self, courses: &[RunCourse]) -> Result<()> {
        let upserted = courses.iter().filter(|course| **course == RunCourse::Upserts).count();
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            let mut found = BTreeMap::new();
            for run in self.listed("").await? {
                let id = run.execution.as_ref().map_or("", |execution| &execution.workflow_id);
                let number: usize = id.strip_prefix("run-").context("a run of ours")?.parse()?;
                let is_second = number == CONTINUED && run.status == 1;
                found.insert(if is_second { RUNS } else { number }, run);
            }
            let status = |number: usize| found.get(&number).map(|run| run.status);
            let is_settled =
                courses.iter().enumerate().all(|(at, course)| status(at) == Some(course.status()));
            // Completed tasks and upserts of an open run are listed together.
            let open = self.listed("ExecutionStatus = 'Running' AND BuildIds IS NOT NULL").await?.len();
            if is_settled && found.len() == RUNS + 1 && open == upserted {
                self.runs = found.into_values().collect();
                return Ok(());
            }
            ensure!(!deadline.is_over(), "not listed as they are: {found:?}");
            looks.tick().await;
        }
    }
}

/// As long as any other: positions in messages count its bytes.
fn moment(time: Option<prost_types::Timestamp>) -> String {
    let prost_types::Timestamp { seconds, nanos } = time.unwrap_or_default();
    let whole = prost_types::Timestamp { seconds, nanos: 0 }.to_string();
    format!("{}.{nanos:09}Z", whole.trim_end_matches('Z'))
}

fn course(dice: &mut Dice, number: usize) -> RunCourse {
    const COURSES: [RunCourse; 6] = [
        RunCourse::Waits,
        RunCourse::Upserts,
        RunCourse::Completes,
        RunCourse::Fails,
        RunCourse::IsCanceled,
        RunCourse::IsTerminated,
    ];
    match number {
        TIMED_OUT => RunCourse::TimesOut,
        CONTINUED => RunCourse::Continues,
        _other => COURSES[dice.index(COURSES.len())],
    }
}

/// Of its own, so that a worker gets the task of this run.
fn queue(id: &str) -> TaskQueue {
    TaskQueue { name: format!("{QUEUE}-{id}"), kind: 1, ..TaskQueue::default() }
}

/// A value of each attribute, or none, encoded.
fn attributes(dice: &mut Dice) -> Bytes {
    let word = |dice: &mut Dice, words: &[&str]| words[dice.index(words.len())].to_owned();
    let text = |word: String| format!("\"{word}\"");
    let mut values = Vec::new();
    for (name, kind) in CUSTOM {
        let value = match kind {
            Type::Keyword => text(word(dice, WORDS)),
            Type::Text => text(word(dice, TEXTS)),
            Type::KeywordList => {
                let count = 1 + dice.index(3);
                let listed: Vec<_> = (0..count).map(|_| text(word(dice, LISTED))).collect();
                format!("[{}]", listed.join(","))
            }
            Type::Int => word(dice, INTS),
            Type::Double => word(dice, DOUBLES),
            Type::Bool => dice.permille(500).to_string(),
            _moment => format!("\"2026-01-0{}T03:04:05Z\"", 1 + dice.below(8)),
        };
        if dice.permille(500) {
            values.push((name, value));
        }
    }
    let payload = |(name, value): (&str, String)| {
        let metadata = [("encoding".to_owned(), Bytes::from_static(b"json/plain"))].into();
        (name.to_owned(), Payload { metadata, data: value.into(), ..Payload::default() })
    };
    SearchAttributes { indexed_fields: values.into_iter().map(payload).collect() }.encode_to_vec().into()
}
