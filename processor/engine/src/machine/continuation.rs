//! A chain: runs that continue one another.
//!
//! open  --continues as new-->                            closed, then a run made by the workflow, attempt 1
//! open  --fails or times out, the policy allows more-->  closed, then a retry, the next attempt
//! open  --returns, fails or times out, has a schedule--> closed, then a run of the schedule, attempt 1
//! open  --is canceled or terminated, the chain's end-->  closed, and nothing follows
//!
//! The closing event and the new run's first one are written in the same step of the journal.

use std::sync::Arc;

use bytes::Bytes;

use crate::api_types::{Initiator, RetryPolicy, RetryState, TaskQueue, TimeoutType};
use crate::command::Command;
use crate::cron;
use crate::draft::{Change, Draft, Extras, Step};
use crate::event::{Attributes, HistoryEvent};
use crate::failure;
use crate::machine::close::{ContinueAsNew, ContinuedAsNew};
use crate::machine::start::{self, StartContext, Started};
use crate::machine::worker_versioning::{self, Versioning};
use crate::machine::workflow_task_completed::{TaskFailure, extras};
use crate::machine::{command_validation, update, workflow_task};
use crate::retry::{self, Attempt, Verdict};
use crate::run::{Run, Start};
use crate::time::{Duration, span_ms};

/// What a run hands on to the one that follows it by itself, as its Started event has it. Kept while the run is open,
/// and only of runs that are retried or repeated, are no first attempt, or began with links.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Chain {
    /// When a failed run is tried again, with its defaults filled in.
    #[prost(message, optional, tag = "1")]
    pub retry_policy: Option<RetryPolicy>,
    /// When the next run comes; empty = never.
    #[prost(string, tag = "2")]
    pub cron_schedule: String,
    /// This run's attempt, from 1.
    #[prost(int32, tag = "3")]
    pub attempt: i32,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub input: Option<Bytes>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub header: Option<Bytes>,
    /// An encoded map, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub memo: Option<Bytes>,
    /// An encoded map, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub search_attributes: Option<Bytes>,
    /// The last result of the chain, opaque.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub last_completion_result: Option<Bytes>,
    /// Links, opaque.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub links: Vec<Bytes>,
}

/// The run that follows, before it begins.
pub(crate) struct Next {
    start: Start,
    started: Started,
    links: Vec<Bytes>,
}

/// Refuses what no run can be started with: a retry policy that contradicts itself, a schedule that is none.
///
/// # Errors
/// What is wrong, in the words of Temporal's server.
pub fn check(policy: Option<&RetryPolicy>, cron_schedule: &str) -> Result<(), String> {
    retry::of_workflow(policy)?;
    cron::check(cron_schedule).map_err(str::to_owned)
}

/// Closes the run with an event that names the one which follows, and begins that.
pub(crate) fn close(
    draft: &mut Draft<'_>,
    next: Option<Next>,
    extras: Extras,
    closing: impl FnOnce(String) -> Attributes,
) -> Option<Step> {
    let run_id = next.as_ref().map(|next| next.start.run_id.clone()).unwrap_or_default();
    if next.is_some() {
        draft.change(Change::Successor(run_id.clone()));
    }
    draft.emit_at(draft.now_ms(), closing(run_id), extras);
    match next {
        Some(next) => Some(next.begin(draft)),
        None => {
            update::close(draft, None);
            None
        }
    }
}

/// What follows a run that returned.
pub(crate) fn after_result(draft: &Draft<'_>, result: Option<&Bytes>) -> Option<Next> {
    let chain = draft.run.chain.clone()?;
    let backoff_ms = cron_backoff_ms(draft, &chain)?;
    Some(follow(draft, &chain, Initiator::Cron, backoff_ms, None, result))
}

/// What follows a run that failed, and why it is, or is not, tried again.
pub(crate) fn after_failure(draft: &Draft<'_>, failure: &Bytes) -> (RetryState, Option<Next>) {
    after(draft, failure, None)
}

/// What follows a run that took too long, and why it is, or is not, tried again.
pub(crate) fn after_timeout(draft: &Draft<'_>) -> (RetryState, Option<Next>) {
    let chain_expires_ms = draft.run.start.execution_expires_ms;
    if chain_expires_ms > 0 && chain_expires_ms <= draft.now_ms() {
        return (RetryState::Timeout, None);
    }
    let failure = failure::timeout(TimeoutType::StartToClose, "workflow timeout", None, None);
    let result = draft.run.chain.as_ref().and_then(|chain| chain.last_completion_result.clone());
    after(draft, &failure, result.as_ref())
}

/// `retried_result` is the last result that a retry gets to see.
fn after(draft: &Draft<'_>, failure: &Bytes, retried_result: Option<&Bytes>) -> (RetryState, Option<Next>) {
    let Some(chain) = draft.run.chain.clone() else { return (RetryState::RetryPolicyNotSet, None) };
    let state = match retry_verdict(draft, &chain, failure) {
        Verdict::Again { delay_ms } => {
            let next = follow(draft, &chain, Initiator::Retry, delay_ms, Some(failure), retried_result);
            return (RetryState::InProgress, Some(next));
        }
        Verdict::Final(state) => state,
    };
    let result = chain.last_completion_result.as_ref();
    let again = |backoff_ms| follow(draft, &chain, Initiator::Cron, backoff_ms, Some(failure), result);
    (state, cron_backoff_ms(draft, &chain).map(again))
}

fn retry_verdict(draft: &Draft<'_>, chain: &Chain, failure: &Bytes) -> Verdict {
    let Some(policy) = &chain.retry_policy else { return Verdict::Final(RetryState::RetryPolicyNotSet) };
    retry::verdict(Attempt {
        policy,
        number: chain.attempt,
        now_ms: draft.now_ms(),
        expires_ms: draft.run.start.execution_expires_ms,
        failure: Some(failure),
        asked_within_policy: true,
    })
}

fn cron_backoff_ms(draft: &Draft<'_>, chain: &Chain) -> Option<i64> {
    let start = &draft.run.start;
    let nominal_ms = start.start_ms.saturating_add(start.first_task_backoff_ms);
    cron::backoff_ms(&chain.cron_schedule, nominal_ms, draft.now_ms())
}

/// A run that begins as this one did.
fn follow(
    draft: &Draft<'_>,
    chain: &Chain,
    initiator: Initiator,
    backoff_ms: i64,
    failure: Option<&Bytes>,
    result: Option<&Bytes>,
) -> Next {
    let start = start::bounded(start_after(draft, backoff_ms), draft.settings);
    let inherited = worker_versioning::retried(&draft.run).filter(|_| initiator == Initiator::Retry);
    let started = Started {
        input: chain.input.clone(),
        continued_execution_run_id: draft.run.start.run_id.clone(),
        initiator: initiator.into(),
        continued_failure: failure.cloned(),
        last_completion_result: result.cloned(),
        retry_policy: chain.retry_policy.clone(),
        attempt: if initiator == Initiator::Retry { chain.attempt.saturating_add(1) } else { 1 },
        cron_schedule: chain.cron_schedule.clone(),
        memo: chain.memo.clone(),
        search_attributes: chain.search_attributes.clone(),
        header: chain.header.clone(),
        prev_auto_reset_points: draft.run.points_for_next(draft.now_ms()),
        inherited_pinned_version: inherited.cloned(),
        ..start::started(&start)
    };
    Next { start, started, links: chain.links.clone() }
}

/// The start of a run that follows this one, with all that is the same.
fn start_after(draft: &Draft<'_>, backoff_ms: i64) -> Start {
    let old = &draft.run.start;
    let now_ms = draft.now_ms();
    let begun_ms = old.start_ms.saturating_add(old.first_task_backoff_ms).min(now_ms);
    let lived_ms = now_ms.saturating_sub(begun_ms);
    let spacing_ms = draft.settings.continue_interval_min_ms.saturating_sub(lived_ms).max(0);
    Start {
        run_id: draft.stamp.run_id(1),
        start_ms: now_ms,
        first_task_backoff_ms: backoff_ms.max(spacing_ms),
        request_id: draft.stamp.id(2),
        run_expires_ms: 0,
        user_metadata: None,
        continued_run_id: old.run_id.clone(),
        // No reset has made it, whatever has made the one before it.
        original_run_id: String::new(),
        former_run_id: String::new(),
        reset_ms: 0,
        priority: draft.run.priority().cloned(),
        ..old.as_ref().clone()
    }
}

/// Closes the run and makes the one that continues it as the workflow says.
pub(crate) fn continue_as_new(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &ContinueAsNew,
    completed: i64,
) -> Result<Option<Step>, TaskFailure> {
    let policy = command_validation::of_continuation(draft, order)?;
    let next = continued(draft, order, policy);
    let closing = ContinuedAsNew {
        new_execution_run_id: String::new(),
        workflow_type: next.start.workflow_type.clone(),
        task_queue: Some(TaskQueue::normal(&next.start.task_queue)),
        input: order.input.clone(),
        workflow_run_timeout: Some(Duration::from_ms(next.start.run_timeout_ms)),
        workflow_task_timeout: Some(Duration::from_ms(next.start.task_timeout_ms)),
        workflow_task_completed_event_id: completed,
        backoff_start_interval: order.backoff_start_interval,
        initiator: order.initiator,
        failure: order.failure.clone(),
        last_completion_result: order.last_completion_result.clone(),
        header: order.header.clone(),
        memo: order.memo.clone(),
        search_attributes: order.search_attributes.clone(),
        inherit_build_id: order.inherit_build_id,
    };
    Ok(close(draft, Some(next), extras(command), |new_execution_run_id| {
        ContinuedAsNew { new_execution_run_id, ..closing }.into()
    }))
}

/// What a run that was woken before its time leaves of that to the one that continues it, in ms.
fn unslept_ms(draft: &Draft<'_>) -> i64 {
    let old = &draft.run.start;
    let rest_ms = old.start_ms.saturating_add(old.first_task_backoff_ms).saturating_sub(draft.now_ms());
    if rest_ms > 0 { rest_ms.saturating_add(draft.settings.continue_interval_min_ms) } else { 0 }
}

/// A run as the workflow wants it: what the command leaves out of type, queue and timeouts is this run's, all else is
/// only there if the command has it.
fn continued(draft: &Draft<'_>, order: &ContinueAsNew, policy: Option<RetryPolicy>) -> Next {
    let like_old = start_after(draft, span_ms(order.backoff_start_interval).max(unslept_ms(draft)));
    let or_old = |span: Option<Duration>, old_ms: i64| match span_ms(span) {
        0 => old_ms,
        ms => ms,
    };
    let queue = order.task_queue.as_ref().map(|queue| queue.name.clone()).filter(|name| !name.is_empty());
    let workflow_type = order.workflow_type.clone().filter(|workflow_type| !workflow_type.name.is_empty());
    let start = Start {
        workflow_type: workflow_type.or_else(|| like_old.workflow_type.clone()),
        task_queue: queue.unwrap_or_else(|| like_old.task_queue.clone()),
        run_timeout_ms: or_old(order.workflow_run_timeout, like_old.run_timeout_ms),
        task_timeout_ms: or_old(order.workflow_task_timeout, like_old.task_timeout_ms),
        names_run_timeout: true,
        ..like_old
    };
    let start = start::bounded(start, draft.settings);
    let versioning = worker_versioning::handed_on(&draft.run, &start.task_queue);
    let is_retry = order.initiator == i32::from(Initiator::Retry);
    let attempt = draft.run.chain.as_ref().map_or(1, |chain| chain.attempt);
    let started = Started {
        input: order.input.clone(),
        continued_execution_run_id: draft.run.start.run_id.clone(),
        initiator: match order.initiator {
            0 => Initiator::Workflow.into(),
            given => given,
        },
        continued_failure: order.failure.clone(),
        last_completion_result: order.last_completion_result.clone(),
        retry_policy: policy,
        attempt: if is_retry { attempt.saturating_add(1) } else { 1 },
        cron_schedule: order.cron_schedule.clone(),
        header: order.header.clone(),
        memo: order.memo.clone(),
        search_attributes: order.search_attributes.clone(),
        prev_auto_reset_points: draft.run.points_for_next(draft.now_ms()),
        inherited_pinned_version: versioning.and_then(Versioning::pinned).cloned(),
        ..start::started(&start)
    };
    let links = draft.run.chain.as_ref().map(|chain| chain.links.clone()).unwrap_or_default();
    Next { start, started, links }
}

impl Next {
    fn begin(self, draft: &mut Draft<'_>) -> Step {
        let Self { start, started, links } = self;
        let (namespace_id, workflow_id) = (start.namespace_id.clone(), start.workflow_id.clone());
        let place = StartContext {
            namespace_id: &namespace_id,
            workflow_id: &workflow_id,
            stamp: draft.stamp,
            settings: draft.settings,
        };
        let mut fresh = start::open(start, started, Extras { links, ..Extras::default() }, place);
        update::close(draft, Some(&mut fresh));
        match fresh.run.head.backoff_until_ms {
            0 => workflow_task::schedule(&mut fresh, 1),
            _later => workflow_task::settle_updates(&mut fresh, false),
        }
        fresh.finish()
    }
}

pub(crate) fn apply_started(run: &mut Run, event: &HistoryEvent, started: &Started) {
    let is_kept = started.retry_policy.is_some()
        || !started.cron_schedule.is_empty()
        || !event.links.is_empty()
        || started.attempt > 1;
    if is_kept {
        run.chain = Some(Arc::new(Chain::of(event, started)));
    }
}

impl Chain {
    /// Without a policy and a schedule nothing follows by itself, so nothing is handed on but what a run made by the
    /// workflow gets too.
    fn of(event: &HistoryEvent, started: &Started) -> Self {
        let bare = Self { attempt: started.attempt, links: event.links.clone(), ..Self::default() };
        if started.retry_policy.is_none() && started.cron_schedule.is_empty() {
            return bare;
        }
        Self {
            retry_policy: started.retry_policy.clone(),
            cron_schedule: started.cron_schedule.clone(),
            input: started.input.clone(),
            header: started.header.clone(),
            memo: started.memo.clone(),
            search_attributes: started.search_attributes.clone(),
            last_completion_result: started.last_completion_result.clone(),
            ..bare
        }
    }
}
