//! Tasks on their way to workers, as far as the partition keeps them.
//!
//! Ready tasks wait at the dispatcher, which all partitions of a node share. Here are those that are yet to be offered: of
//! the record that is being applied, of a partition that was just taken over, and those that wait for a commit.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use everlog_engine::machine::workflow_task;
use everlog_engine::{Run, Step};

use crate::TaskKind;
use crate::context::PartitionContext;
use crate::error::Error;
use crate::matching::dispatcher::Dispatcher;
use crate::model::keys::RunKey;
use crate::model::priority::TaskPriority;
use crate::model::task_types::{QueueKey, TaskRef, Waiting};
use crate::timers::timer_rows::TimerRows;

/// Tasks that are yet to be offered, and where to.
pub(crate) struct TaskOffers {
    pub(crate) dispatcher: Arc<Dispatcher>,
    /// What the record that is being applied has changed: its tasks are offered when it is answered.
    steps: VecDeque<(RunKey, Step)>,
    /// Where tasks wait that have not been offered since the partition was taken over.
    unoffered: Option<TimerRows>,
    /// Ready tasks that wait until less waits for a commit.
    held: Vec<(TaskRef, TaskKind)>,
    /// Why a task could not be looked up, from where that cannot be told; the next turn does.
    failure: Option<Error>,
}

impl TaskOffers {
    /// Nothing waits to be offered to this dispatcher.
    pub(crate) fn new(dispatcher: Arc<Dispatcher>) -> Self {
        Self { dispatcher, steps: VecDeque::new(), unoffered: None, held: Vec::new(), failure: None }
    }

    /// The tasks of a step are offered when its record is answered.
    pub(crate) fn note_step(&mut self, key: RunKey, step: Step) {
        self.steps.push_back((key, step));
    }

    /// The first step whose tasks have not been offered.
    pub(crate) fn take_step(&mut self) -> Option<(RunKey, Step)> {
        self.steps.pop_front()
    }

    /// Rows of runs whose tasks have not been offered.
    pub(crate) fn take_unoffered(&mut self) -> Option<TimerRows> {
        self.unoffered.take()
    }

    /// Rows of runs whose tasks are to be offered.
    pub(crate) fn set_unoffered(&mut self, rows: Option<TimerRows>) {
        self.unoffered = rows.filter(|rows| !rows.is_done());
    }

    /// Whether tasks have not been offered since the partition was taken over.
    pub(crate) fn has_unoffered(&self) -> bool {
        self.unoffered.is_some()
    }

    /// The task waits until less waits for a commit, the poll for another task.
    pub(crate) fn hold(&mut self, context: &PartitionContext, task: TaskRef, waiting: Waiting) {
        self.held.push((task, waiting.poll.kind));
        self.poll_again(context, waiting);
    }

    /// Tasks that wait until less waits for a commit.
    pub(crate) fn held(&self) -> impl Iterator<Item = &TaskRef> {
        self.held.iter().map(|(task, _)| task)
    }

    /// The first tasks that were held.
    pub(crate) fn take_held(&mut self, tasks_max: usize) -> Vec<(TaskRef, TaskKind)> {
        let later = self.held.split_off(self.held.len().min(tasks_max));
        std::mem::replace(&mut self.held, later)
    }

    /// The poll waits for another task.
    pub(crate) fn poll_again(&self, context: &PartitionContext, waiting: Waiting) {
        self.dispatcher.poll_again(waiting, &context.send);
    }

    /// A task could not be looked up: the first reason counts.
    pub(crate) fn note_failure(&mut self, failure: Error) {
        self.failure.get_or_insert(failure);
    }

    /// Why a task could not be looked up.
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// The workflow task of a run that a worker can have, and the queue where it is offered.
    pub(crate) fn workflow_task(
        &self,
        context: &PartitionContext,
        term: u64,
        key: &RunKey,
        run: &Run,
    ) -> Option<(QueueKey, TaskRef)> {
        let is_offered = |task: &&workflow_task::Task| !task.is_started() && !task.is_resting();
        let task = run.head.task.as_ref().filter(is_offered)?;
        let namespace_id = run.start.namespace_id.clone();
        let normal = QueueKey { namespace_id, name: run.start.task_queue.clone(), kind: TaskKind::Workflow };
        let sticky =
            run.head.sticky.as_ref().map(|sticky| QueueKey { name: sticky.queue.clone(), ..normal.clone() });
        let sticky = sticky.filter(|queue| self.dispatcher.may_be_live(queue, &normal.name));
        let reference = TaskRef {
            partition: context.id,
            run: key.clone(),
            scheduled_event_id: task.scheduled_event_id,
            attempt: task.attempt,
            stamp: task.stamp,
            normal_queue: sticky.is_some().then(|| normal.name.clone()),
            precedence: TaskPriority::of(None, run.priority()),
            offered_by: None,
            term: NonZeroU64::new(term + 1),
        };
        Some((sticky.unwrap_or(normal), reference))
    }
}

/// An activity of a run that a worker can have, and the queue where it is offered.
pub(crate) fn activity_task(
    context: &PartitionContext,
    term: u64,
    key: &RunKey,
    run: &Run,
    scheduled_event_id: i64,
) -> Option<(QueueKey, TaskRef)> {
    let activity = run.activities.get(&scheduled_event_id).filter(|activity| run.offers(activity))?;
    let queue = QueueKey {
        namespace_id: run.start.namespace_id.clone(),
        name: activity.task_queue.clone(),
        kind: TaskKind::Activity,
    };
    let reference = TaskRef {
        partition: context.id,
        run: key.clone(),
        scheduled_event_id,
        attempt: activity.attempt,
        stamp: activity.stamp,
        normal_queue: None,
        precedence: TaskPriority::of(activity.priority.as_ref(), run.priority()),
        offered_by: None,
        term: NonZeroU64::new(term + 1),
    };
    Some((queue, reference))
}
