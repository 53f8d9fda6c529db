//! Queries: questions to a run's worker. They live in memory only and never enter a history.
//!
//! A question to a run in which nothing is pending goes to a worker directly; otherwise it waits for the run's next
//! workflow task and is answered with its completion, so that it sees whatever was acknowledged before it.

use std::collections::{BTreeMap, HashMap};

use everlog_engine::{Rejection, Run};
use tokio::sync::oneshot;

use crate::model::admission::{AdmissionSlot, CallResult};
use crate::model::keys::{Address, RunKey};
use crate::model::reply::send_reply;
use crate::model::types::{QueryAnswer, QueryOutcome, QueryRequest};

/// Attempts of a workflow task after which a run cannot be asked.
pub const FAILING_ATTEMPTS: i32 = 3;

/// A question that waits.
pub struct Question {
    /// Its id, unique in this process.
    pub id: String,
    /// What is asked.
    pub request: QueryRequest,
    /// Where the answer goes.
    pub reply: oneshot::Sender<CallResult<QueryOutcome>>,
    /// Its place among the waiting requests, given back with the question.
    pub _slot: AdmissionSlot,
}

/// Every question of a partition.
#[derive(Default)]
pub struct Queries {
    /// Wait for a workflow task.
    buffered: HashMap<RunKey, Vec<Question>>,
    /// Went along with a workflow task, by its claim.
    attached: HashMap<RunKey, (u64, Vec<Question>)>,
    /// Went, or are about to go, to a worker directly. In an order that is the same in every run under a seed.
    direct: BTreeMap<String, Direct>,
    /// Of the last id.
    serial: u64,
}

/// A question on its way to a worker.
pub struct Direct {
    /// The run.
    pub key: RunKey,
    /// The question.
    pub question: Question,
    /// It was offered on the sticky queue until this moment, in ms; 0 = not there.
    pub sticky_until_ms: i64,
    /// A worker has it, and has until this moment to answer, in ms; 0 = no worker has it.
    pub taken_until_ms: i64,
}

/// How a question is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To a worker at once.
    Direct,
    /// With the next workflow task.
    Buffered,
    /// Not now, and why.
    NotReady(&'static str),
}

/// How a question can be put to a run by somebody who waits for the answer until `until_ms`.
pub fn way(run: &Run, until_ms: i64) -> Way {
    let head = &run.head;
    if head.task.as_ref().is_some_and(|task| task.attempt >= FAILING_ATTEMPTS) {
        return Way::NotReady("Unable to query workflow due to Workflow Task in failed state.");
    }
    if head.backoff_until_ms > until_ms {
        return Way::NotReady("Workflow task is not scheduled yet.");
    }
    way_on(run)
}

/// How a question goes on that was taken: it waits for as long as its caller does, also while the run's task keeps failing.
pub fn way_on(run: &Run) -> Way {
    let head = &run.head;
    if !run.is_open() && head.previous_started_event_id == 0 {
        return Way::NotReady("Workflow execution closed before WorkflowTaskStarted event");
    }
    if head.previous_started_event_id > 0 && head.task.is_none() { Way::Direct } else { Way::Buffered }
}

impl Queries {
    /// The id of the next question to a partition under a term.
    pub fn next_id(&mut self, partition: u32, term: u64) -> String {
        self.serial += 1;
        format!("{partition}-{term}-{}", self.serial)
    }

    /// Questions that wait for a workflow task of the run.
    pub fn waiting(&self, key: &RunKey) -> usize {
        self.buffered.get(key).map_or(0, Vec::len)
            + self.attached.get(key).map_or(0, |(_, attached)| attached.len())
    }

    /// The question waits for the run's next workflow task.
    pub fn buffer(&mut self, key: &RunKey, question: Question) {
        self.buffered.entry(key.clone()).or_default().push(question);
    }

    /// The questions that go along with a task that is handed out now: id and query.
    pub fn attach(&mut self, key: &RunKey, claim: u64) -> Vec<(String, bytes::Bytes)> {
        let Some(mut questions) = self.buffered.remove(key) else { return Vec::new() };
        questions.retain(|question| !question.reply.is_closed());
        let told =
            questions.iter().map(|question| (question.id.clone(), question.request.query.clone())).collect();
        if !questions.is_empty() {
            self.attached.insert(key.clone(), (claim, questions));
        }
        told
    }

    /// The worker's answers that came with a completion.
    pub fn answer_attached(&mut self, key: &RunKey, answers: Vec<QueryAnswer>) {
        let Some((claim, mut questions)) = self.attached.remove(key) else { return };
        for answer in answers {
            if let Some(index) = questions.iter().position(|question| question.id == answer.query_id) {
                let question = questions.swap_remove(index);
                // The caller may be gone: then nobody needs to be told.
                send_reply(question.reply, Ok(QueryOutcome::Answered(answer)));
            }
        }
        if !questions.is_empty() {
            self.attached.insert(key.clone(), (claim, questions));
        }
    }

    /// After a step: questions whose task is over wait again, and those that need not wait any more are returned.
    pub fn settle(&mut self, key: &RunKey, run: &Run) -> Vec<Question> {
        let started = run.started_task().map_or(0, |task| task.claim);
        if self.attached.get(key).is_some_and(|(claim, _)| *claim != started)
            && let Some((_, questions)) = self.attached.remove(key)
        {
            self.buffered.entry(key.clone()).or_default().extend(questions);
        }
        if !self.buffered.contains_key(key) {
            return Vec::new();
        }
        match way_on(run) {
            Way::Buffered => Vec::new(),
            Way::Direct => self.buffered.remove(key).unwrap_or_default(),
            Way::NotReady(reason) => {
                for question in self.buffered.remove(key).unwrap_or_default() {
                    send_reply(question.reply, Ok(QueryOutcome::NotReady(reason.into())));
                }
                Vec::new()
            }
        }
    }

    /// The run is known no more: whoever asks about it is told so, wherever the question waits.
    pub fn refuse(&mut self, key: &RunKey) {
        let waiting = self.buffered.remove(key).unwrap_or_default();
        let attached = self.attached.remove(key).map(|(_, questions)| questions).unwrap_or_default();
        let direct = self.direct.extract_if(.., |_, direct| direct.key == *key);
        let direct: Vec<_> = direct.map(|(_, direct)| direct.question).collect();
        for Question { request, reply, .. } in waiting.into_iter().chain(attached).chain(direct) {
            let Address { workflow_id, run_id, .. } = &request.address;
            send_reply(reply, Ok(QueryOutcome::Refused(Rejection::unknown_run(workflow_id, run_id))));
        }
    }

    /// The question goes to a worker directly.
    pub fn put_direct(&mut self, direct: Direct) {
        self.direct.insert(direct.question.id.clone(), direct);
    }

    /// A question that is on its way to a worker.
    pub fn direct(&mut self, query_id: &str) -> Option<&mut Direct> {
        self.direct.get_mut(query_id)
    }

    /// The run has news that no worker has seen: a question on its way waits for the task that brings them.
    pub fn hold_back(&mut self, query_id: &str) {
        if let Some(direct) = self.direct.remove(query_id) {
            self.buffer(&direct.key, direct.question);
        }
    }

    /// The answer to a direct question; false where nobody waits for it.
    pub fn answer_direct(&mut self, answer: QueryAnswer) -> bool {
        match self.direct.remove(&answer.query_id) {
            Some(direct) => direct.question.reply.send(Ok(QueryOutcome::Answered(answer))).is_ok(),
            None => false,
        }
    }

    /// Questions that no worker has taken yet.
    pub fn untaken(&self) -> Vec<String> {
        let waits = |direct: &&Direct| direct.taken_until_ms == 0;
        self.direct.values().filter(waits).map(|direct| direct.question.id.clone()).collect()
    }

    /// Questions whose sticky worker did not come in time, or whose worker does not answer; their callers gone,
    /// questions are forgotten.
    pub fn sweep(&mut self, now_ms: i64) -> Vec<String> {
        self.direct.retain(|_, direct| !direct.question.reply.is_closed());
        self.buffered.retain(|_, questions| {
            questions.retain(|question| !question.reply.is_closed());
            !questions.is_empty()
        });
        let late = |direct: &&Direct| {
            let until_ms = match direct.taken_until_ms {
                0 => direct.sticky_until_ms,
                taken_until_ms => taken_until_ms,
            };
            until_ms > 0 && until_ms <= now_ms
        };
        self.direct.values().filter(late).map(|direct| direct.question.id.clone()).collect()
    }

    /// True where nothing waits.
    pub fn is_empty(&self) -> bool {
        self.buffered.is_empty() && self.attached.is_empty() && self.direct.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::Status;
    use everlog_engine::machine::workflow_task::Task;
    use everlog_engine::{ExecutionInfo, Start};

    use super::*;

    fn run(change: impl FnOnce(&mut ExecutionInfo)) -> Run {
        let mut run = Run::begin(Start::default());
        change(&mut run.head);
        run
    }

    #[test]
    fn a_task_that_is_put_off_is_waited_for_by_whoever_waits_for_so_long() {
        let put_off = run(|head| head.backoff_until_ms = 5_000);
        assert_eq!(way(&put_off, 5_000), Way::Buffered);
        assert_eq!(way(&put_off, 4_999), Way::NotReady("Workflow task is not scheduled yet."));
    }

    #[test]
    fn a_task_that_keeps_failing_turns_new_questions_away_and_no_old_ones() {
        let failing = |attempt| {
            run(|head| {
                head.previous_started_event_id = 3;
                head.task = Some(Task { attempt, ..Task::default() });
            })
        };
        assert_eq!(way(&failing(2), 0), Way::Buffered);
        let refused = Way::NotReady("Unable to query workflow due to Workflow Task in failed state.");
        assert_eq!(way(&failing(3), 0), refused);
        assert_eq!(way_on(&failing(3)), Way::Buffered);
    }

    #[test]
    fn a_run_that_is_over_is_asked_if_it_ever_had_a_worker() {
        let over = |previous_started_event_id| {
            run(|head| {
                head.status = Status::Terminated.into();
                head.previous_started_event_id = previous_started_event_id;
            })
        };
        assert_eq!(way(&over(3), 0), Way::Direct);
        let refused = Way::NotReady("Workflow execution closed before WorkflowTaskStarted event");
        assert_eq!((way(&over(0), 0), way_on(&over(0))), (refused, refused));
    }
}
