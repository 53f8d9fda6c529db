//! Claims in the journal of a former owner: it may have ended before it could hand out what they got, which waits for its timeout then.
//! Whoever has brought the poll has seen the way break, and says so; so does a partition that could not go on, of what it had sent. The
//! task goes back to its queue.
//!
//! Claims behind the last commit are met as they are replayed. One that was committed with what it did, a moment before its owner
//! ended, is looked for where somebody says that its poll has got nothing.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use everlog_engine::Run;
use everlog_engine::machine::{activity_attempt, workflow_task};
use everlog_engine::request::{Request, RequestRecord};
use everlog_log::{Log, Offset};
use everlog_store::CommittedRows;
use everlog_wire::{Body, Position, Record};

use crate::context::PartitionContext;
use crate::error::Error;
use crate::invariants::Rules;
use crate::model::inbox_message::InboxMessage;
use crate::model::keys::{RunKey, WorkflowKey};
use crate::model::pending::{PendingRecord, ReplyTo};
use crate::partition::Partition;

/// How long after a claim somebody may still say that its poll has got nothing.
const SAID_WITHIN_MS: i64 = 60_000;
/// So many records that a former owner had committed are looked through for what it had not handed out: it ends at once, in the
/// midst of what it does.
const LOOKED_THROUGH_MAX: u64 = 4_096;
/// Bytes of them that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// What polls have claimed of a former owner lately, and the polls that got nothing of it.
#[derive(Default)]
pub(crate) struct LostDeliveries {
    /// Claims by the ids of their polls.
    runs: HashMap<String, RunKey>,
    /// Oldest first, by the stamps of their records.
    order: VecDeque<(i64, String)>,
    /// Before this offset stands what a former owner had committed, until it was looked through for claims.
    look_back: Option<Offset>,
    /// Polls that have reached nobody, told of before the partition served, and the run that they have claimed something of.
    early: Vec<(Arc<[String]>, Option<RunKey>)>,
}

impl LostDeliveries {
    pub(crate) fn note(&mut self, stamp_ms: i64, poll_id: &str, run: &RunKey) {
        self.forget(stamp_ms);
        if self.runs.insert(poll_id.to_owned(), run.clone()).is_none() {
            self.order.push_back((stamp_ms, poll_id.to_owned()));
        }
    }

    /// Those of records that stand before all that are noted, in their order.
    fn note_earlier(&mut self, found: Vec<(i64, String, RunKey)>) {
        for (stamp_ms, poll_id, run) in found.into_iter().rev() {
            if let Entry::Vacant(vacant) = self.runs.entry(poll_id) {
                self.order.push_front((stamp_ms, vacant.key().clone()));
                vacant.insert(run);
            }
        }
    }

    fn has(&self, poll_id: &str) -> bool {
        self.runs.contains_key(poll_id)
    }

    /// Those of which nobody will say anything any more.
    pub(crate) fn forget(&mut self, now_ms: i64) {
        while let Some((_, poll_id)) = self.order.pop_front_if(|(at_ms, _)| now_ms - *at_ms > SAID_WITHIN_MS)
        {
            self.runs.remove(&poll_id);
        }
    }

    /// Before this offset stands what a former owner had committed.
    pub(crate) fn set_look_back(&mut self, before: Offset) {
        self.look_back = Some(before);
    }

    /// Polls have reached nobody, and what they have claimed may stand further on in the journal.
    fn note_early(&mut self, poll_ids: Arc<[String]>, run: Option<RunKey>) {
        self.early.push((poll_ids, run));
    }

    /// Polls that have reached nobody, told of before the partition served.
    fn take_early(&mut self) -> Vec<(Arc<[String]>, Option<RunKey>)> {
        std::mem::take(&mut self.early)
    }

    /// What a former owner had committed of its latest claims is read once, when somebody asks for what was not replayed.
    fn look_back<L: Log + ?Sized>(
        &mut self,
        log: &L,
        context: &PartitionContext,
        position: &Position,
        trimmed: Offset,
    ) {
        let Some(before) = self.look_back.take() else { return };
        if position.last_stamp_ms - position.owner_ms > SAID_WITHIN_MS {
            return;
        }
        let from = before.saturating_sub(LOOKED_THROUGH_MAX).max(trimmed);
        match claims_between(log, context.id, from..before) {
            Ok(found) => self.note_earlier(found),
            Err(error) => tracing::warn!(
                partition = context.id,
                %error,
                "the journal before the last commit could not be read: tasks that a former owner handed to nobody wait for their timeouts"
            ),
        }
    }

    fn take(&mut self, poll_id: &str) -> Option<RunKey> {
        self.runs.remove(poll_id)
    }
}

/// The poll of an order that claims something.
pub(crate) fn poll_of(input: &RequestRecord) -> Option<&str> {
    match &input.request {
        Some(Request::ClaimTask(claim)) => Some(&claim.poll_id),
        Some(Request::ClaimActivity(claim)) => Some(&claim.poll_id),
        Some(_) | None => None,
    }
}

/// The claims in a part of the journal, as far as they are still there.
fn claims_between<L: Log + ?Sized>(
    log: &L,
    partition: u32,
    offsets: Range<Offset>,
) -> Result<Vec<(i64, String, RunKey)>, Error> {
    let mut found = Vec::new();
    let mut next = offsets.start;
    while next < offsets.end {
        let records = log.read(partition, next, READ_BYTES)?;
        let Some(last) = records.last() else { break };
        next = last.offset + 1;
        for stored in records.into_iter().take_while(|stored| stored.offset < offsets.end) {
            // One that is none was skipped when it was applied.
            let Ok(Record { body: Some(Body::Input(input)), .. }) = Record::read(stored.bytes) else {
                continue;
            };
            if let Some(poll_id) = poll_of(&input) {
                let workflow = WorkflowKey::new(&input.namespace_id, &input.workflow_id);
                found.push((stored.stamp_ms, poll_id.to_owned(), workflow.run(&input.run_id)));
            }
        }
    }
    Ok(found)
}

/// That a task has reached nobody, where an entry says so: told twice it counts once.
pub(crate) fn given_back(entry: &PendingRecord) -> Option<InboxMessage> {
    match &entry.record.body {
        Some(Body::Input(input))
            if matches!(input.request, Some(Request::ReleaseTask(_) | Request::ReleaseActivity(_))) =>
        {
            Some(InboxMessage::Release { input: input.clone() })
        }
        _other => None,
    }
}

/// The order that takes back what a poll has of a run.
fn release(run: &Run, poll_id: &str) -> Option<Request> {
    if let Some(task) = run.started_task().filter(|task| task.request_id == poll_id) {
        return Some(Request::ReleaseTask(workflow_task::Release { token: Some(task.token()) }));
    }
    let mut started = run.activities.values().filter(|activity| activity.is_started());
    let activity = started.find(|activity| activity.request_id == poll_id)?;
    let target = activity_attempt::Target {
        scheduled_event_id: activity.scheduled_event_id,
        attempt: activity.attempt,
        claim: activity.claim,
        activity_id: String::new(),
    };
    Some(Request::ReleaseActivity(activity_attempt::Release { target: Some(target) }))
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Polls have reached nobody. `run`: the one that they have claimed something of, where that is known.
    pub(crate) fn polls_lost(
        &mut self,
        poll_ids: Arc<[String]>,
        run: Option<RunKey>,
        now_ms: i64,
    ) -> Result<(), Error> {
        if !self.ownership.is_serving() {
            // What they have claimed may stand further on in the journal.
            self.lost_deliveries.note_early(poll_ids, run);
            return Ok(());
        }
        if run.is_none() && poll_ids.iter().any(|poll_id| !self.lost_deliveries.has(poll_id)) {
            let trimmed = self.commits.trimmed();
            self.lost_deliveries.look_back(&*self.log, &self.context, &self.position, trimmed);
        }
        for poll_id in &*poll_ids {
            let claimed = self.lost_deliveries.take(poll_id);
            let Some(key) = run.clone().or(claimed) else { continue };
            let Some(run) = self.runs.get(&key)? else { continue };
            let order = release(&run, poll_id);
            tracing::debug!(
                poll_id,
                is_there = order.is_some(),
                "a poll has got nothing of what it has claimed"
            );
            if let (Some(order), Some(address)) = (order, key.address()) {
                self.dispatch(InboxMessage::Release { input: address.request(order) }, now_ms)?;
            }
        }
        Ok(())
    }

    /// Everything that a former owner may have claimed is here: lost polls that were told of before are looked at.
    pub(crate) fn look_at_lost_polls(&mut self) -> Result<(), Error> {
        let now_ms = self.timers.clock.now_ms();
        let lost = self.lost_deliveries.take_early();
        lost.into_iter().try_for_each(|(poll_ids, run)| self.polls_lost(poll_ids, run, now_ms))
    }

    /// Ends a partition that cannot go on, as far as it is here. Polls that were to get something of it wait on; their claims may be in
    /// the journal all the same. Returns what has to reach whoever has it next, on this node or another.
    pub fn abandon(self) -> Vec<InboxMessage> {
        let mut lost = Vec::new();
        let (in_flight, pending) = self.journal.abandon();
        for entry in in_flight {
            lost.extend(given_back(&entry));
            if let ReplyTo::Claim(task, waiting) = entry.waiter {
                let poll_ids = [waiting.poll.poll_id.clone()].into();
                tracing::debug!(?poll_ids, "a claim was under way as the partition ended");
                lost.push(InboxMessage::PollsLost { poll_ids, run: Some(task.run) });
                self.offers.poll_again(&self.context, *waiting);
            }
        }
        for entry in pending {
            lost.extend(given_back(&entry));
            if let ReplyTo::Claim(_, waiting) = entry.waiter {
                self.offers.poll_again(&self.context, *waiting);
            }
        }
        lost.extend(
            self.lost_deliveries
                .early
                .into_iter()
                .map(|(poll_ids, run)| InboxMessage::PollsLost { poll_ids, run }),
        );
        lost
    }
}
