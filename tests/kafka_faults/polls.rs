//! What workers asked for, and what they got: each poll has an identity of its own, which stands in the event of a task
//! that it started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use everlog_temporal_api::workflowservice::{PollActivityTaskQueueResponse, PollWorkflowTaskQueueResponse};
use prost::{Message, Name};
use prost_types::Timestamp;
use tonic::Status;

use crate::checker::deliveries::{Trouble, now_ms, overlaps};
use crate::client::Client;

/// What a poll came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    WorkflowTask {
        run_id: String,
    },
    Activity {
        run_id: String,
        activity_id: String,
        /// Counted from 1.
        attempt: i32,
    },
    /// A query, or the word of a node that there is nothing, or that it cannot say.
    Nothing,
    /// Nobody's word: the way to the node broke.
    Broke,
}

/// A poll that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    pub got: Got,
    /// When what it got could be had, in ms since 1970-01-01 UTC; of what got nothing, when it began.
    pub since_ms: i64,
    pub ended_ms: i64,
}

impl Poll {
    /// No answer came, and something was harmed that may be why.
    pub fn is_excused(&self, troubles: &[Trouble]) -> bool {
        self.got == Got::Broke && overlaps(troubles, self.since_ms, self.ended_ms)
    }
}

/// How many tasks workers got in each second after a moment, in ms since 1970-01-01 UTC.
pub fn flow(polls: &BTreeMap<String, Poll>, from_ms: i64, seconds: usize) -> Vec<usize> {
    let mut flow = vec![0; seconds];
    let is_task = |poll: &&Poll| matches!(poll.got, Got::WorkflowTask { .. } | Got::Activity { .. });
    for poll in polls.values().filter(is_task) {
        let second = usize::try_from((poll.ended_ms - from_ms).div_euclid(1_000)).ok();
        if let Some(count) = second.and_then(|second| flow.get_mut(second)) {
            *count += 1;
        }
    }
    flow
}

/// How long tasks that were got had waited, where nothing was harmed, in ms, from the shortest on.
pub fn waits(polls: &BTreeMap<String, Poll>, troubles: &[Trouble]) -> Vec<i64> {
    let is_task = |poll: &&Poll| matches!(poll.got, Got::WorkflowTask { .. } | Got::Activity { .. });
    let is_quiet = |poll: &&Poll| !overlaps(troubles, poll.since_ms, poll.ended_ms);
    let tasks = polls.values().filter(is_task).filter(is_quiet);
    let mut waits: Vec<i64> = tasks.map(|poll| poll.ended_ms - poll.since_ms).collect();
    waits.sort_unstable();
    waits
}

/// All polls that are over, by their identities. Cheap to clone.
#[derive(Clone, Default)]
pub struct Polls {
    begun: Arc<AtomicUsize>,
    over: Arc<Mutex<BTreeMap<String, Poll>>>,
}

impl Polls {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Poll>> {
        self.over.lock().expect("nobody panics while it is open")
    }

    pub fn all(&self) -> BTreeMap<String, Poll> {
        self.open().clone()
    }
}

/// What a worker may be answered.
pub trait Answer: Message + Default {
    /// What it is, and when it could be had; none of what is no task.
    fn got(&self) -> Option<(Got, i64)>;
}

impl Answer for PollWorkflowTaskQueueResponse {
    fn got(&self) -> Option<(Got, i64)> {
        let is_task = !self.task_token.is_empty() && self.query.is_none();
        let run_id = self.workflow_execution.as_ref()?.run_id.clone();
        is_task.then(|| (Got::WorkflowTask { run_id }, ms(self.scheduled_time)))
    }
}

impl Answer for PollActivityTaskQueueResponse {
    fn got(&self) -> Option<(Got, i64)> {
        let run_id = self.workflow_execution.as_ref()?.run_id.clone();
        let (activity_id, attempt) = (self.activity_id.clone(), self.attempt);
        let got = Got::Activity { run_id, activity_id, attempt };
        Some((got, ms(self.current_attempt_scheduled_time)))
    }
}

fn ms(time: Option<Timestamp>) -> i64 {
    let time = time.unwrap_or_default();
    time.seconds * 1_000 + i64::from(time.nanos) / 1_000_000
}

impl Client {
    /// Asks for a task under an identity of its own, and notes what came of it.
    pub async fn poll<M: Message + Name, A: Answer>(
        &self,
        make: impl FnOnce(String) -> M,
    ) -> anyhow::Result<A> {
        let identity = format!("poll-{}", self.polls.begun.fetch_add(1, Ordering::Relaxed));
        let began_ms = now_ms();
        let answer = self.ask(&make(identity.clone())).await;
        let ended_ms = now_ms();
        let note = |(got, since_ms)| self.polls.open().insert(identity, Poll { got, since_ms, ended_ms });
        match answer {
            Ok(bytes) => {
                let answer = A::decode(bytes)?;
                note(answer.got().unwrap_or((Got::Nothing, began_ms)));
                Ok(answer)
            }
            Err(status) => {
                let got = if is_word_of_a_node(&status) { Got::Nothing } else { Got::Broke };
                note((got, began_ms));
                Err(status.into())
            }
        }
    }
}

/// What a node says comes with headers; what our own side says of a broken way does not.
fn is_word_of_a_node(status: &Status) -> bool {
    !status.metadata().is_empty()
}
