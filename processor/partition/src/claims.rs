//! Claims in the journal of a former owner: it may have ended before it could hand out what they got, which waits for its timeout then.
//! Whoever has brought the poll has seen the way break, and says so; so does a partition that could not go on, of what it had sent. The
//! task goes back to its queue.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use everlog_engine::Run;
use everlog_engine::input::{Input, Order};
use everlog_engine::machine::{attempt, task};
use everlog_log::Log;
use everlog_store::Base;
use everlog_wire::Body;

use crate::address::RunKey;
use crate::error::Error;
use crate::event::Event;
use crate::partition::{Entry, Partition, Waiter, input};
use crate::rules::Rules;

/// How long after a claim somebody may still say that its poll has got nothing.
const SAID_WITHIN_MS: i64 = 60_000;

/// What polls have claimed of a former owner lately, by their ids.
#[derive(Default)]
pub(crate) struct Claims {
    runs: HashMap<String, RunKey>,
    /// Oldest first, by the stamps of their records.
    order: VecDeque<(i64, String)>,
}

impl Claims {
    pub(crate) fn note(&mut self, stamp_ms: i64, poll_id: &str, run: &RunKey) {
        self.forget(stamp_ms);
        if self.runs.insert(poll_id.to_owned(), run.clone()).is_none() {
            self.order.push_back((stamp_ms, poll_id.to_owned()));
        }
    }

    /// Those of which nobody will say anything any more.
    pub(crate) fn forget(&mut self, now_ms: i64) {
        while let Some((_, poll_id)) = self.order.pop_front_if(|(at_ms, _)| now_ms - *at_ms > SAID_WITHIN_MS)
        {
            self.runs.remove(&poll_id);
        }
    }

    fn take(&mut self, poll_id: &str) -> Option<RunKey> {
        self.runs.remove(poll_id)
    }
}

/// The poll of an order that claims something.
pub(crate) fn poll_of(input: &Input) -> Option<&str> {
    match &input.order {
        Some(Order::ClaimTask(claim)) => Some(&claim.poll_id),
        Some(Order::ClaimActivity(claim)) => Some(&claim.poll_id),
        Some(_) | None => None,
    }
}

/// That a task has reached nobody, where an entry says so: told twice it counts once.
fn given_back(entry: &Entry) -> Option<Event> {
    match &entry.record.body {
        Some(Body::Input(input))
            if matches!(input.order, Some(Order::ReleaseTask(_) | Order::ReleaseActivity(_))) =>
        {
            Some(Event::Release { input: input.clone() })
        }
        _other => None,
    }
}

/// The order that takes back what a poll has of a run.
fn release(run: &Run, poll_id: &str) -> Option<Order> {
    if let Some(task) = run.started_task().filter(|task| task.request_id == poll_id) {
        return Some(Order::ReleaseTask(task::Release { token: Some(task.token()) }));
    }
    let mut started = run.activities.values().filter(|activity| activity.is_started());
    let activity = started.find(|activity| activity.request_id == poll_id)?;
    let target = attempt::Target {
        scheduled_event_id: activity.scheduled_event_id,
        attempt: activity.attempt,
        claim: activity.claim,
        activity_id: String::new(),
    };
    Some(Order::ReleaseActivity(attempt::Release { target: Some(target) }))
}

impl<L: Log + ?Sized, B: Base, R: Rules> Partition<L, B, R> {
    /// Polls have reached nobody. `run`: the one that they have claimed something of, where that is known.
    pub(crate) fn polls_lost(
        &mut self,
        poll_ids: Arc<[String]>,
        run: Option<RunKey>,
        now_ms: i64,
    ) -> Result<(), Error> {
        if !self.serving {
            // What they have claimed may stand further on in the journal.
            self.lost_polls.push((poll_ids, run));
            return Ok(());
        }
        for poll_id in &*poll_ids {
            let claimed = self.claims.take(poll_id);
            let Some(key) = run.clone().or(claimed) else { continue };
            let Some(run) = self.runs.get(&key)? else { continue };
            let order = release(&run, poll_id);
            tracing::debug!(
                poll_id,
                is_there = order.is_some(),
                "a poll has got nothing of what it has claimed"
            );
            if let (Some(order), Some(address)) = (order, key.address()) {
                self.act(Event::Release { input: input(&address, order) }, now_ms)?;
            }
        }
        Ok(())
    }

    /// Everything that a former owner may have claimed is here: lost polls that were told of before are looked at.
    pub(crate) fn look_at_lost_polls(&mut self) -> Result<(), Error> {
        let now_ms = self.time.now_ms();
        let lost = std::mem::take(&mut self.lost_polls);
        lost.into_iter().try_for_each(|(poll_ids, run)| self.polls_lost(poll_ids, run, now_ms))
    }

    /// Ends a partition that cannot go on, as far as it is here. Polls that were to get something of it wait on; their claims may be in
    /// the journal all the same. Returns what has to reach whoever has it next, on this node or another.
    pub fn abandon(self) -> Vec<Event> {
        let mut lost = Vec::new();
        for entry in self.flights.abandon() {
            lost.extend(given_back(&entry));
            if let Waiter::Claim(task, waiting) = entry.waiter {
                let poll_ids = [waiting.poll.poll_id.clone()].into();
                tracing::debug!(?poll_ids, "a claim was under way as the partition ended");
                lost.push(Event::PollsLost { poll_ids, run: Some(task.run) });
                self.dispatcher.poll_again(*waiting, &self.send);
            }
        }
        for entry in self.pending {
            lost.extend(given_back(&entry));
            if let Waiter::Claim(_, waiting) = entry.waiter {
                self.dispatcher.poll_again(*waiting, &self.send);
            }
        }
        lost.extend(self.lost_polls.into_iter().map(|(poll_ids, run)| Event::PollsLost { poll_ids, run }));
        lost
    }
}
