//! Histories that are still being brought: decisions do not read them, so the partition serves meanwhile.
//!
//! A call that needs a history which is not there yet waits a moment, and is then told to come again; a task that cannot be
//! given without one waits.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::event::History;
use everlog_log::{Error as LogError, Log, Offset, RestoreChunk, Topic};
use everlog_store::{CommittedRows, Space, Store};
use prost::Message;

use crate::TaskKind;
use crate::config::HOLD_MS;
use crate::context::PartitionContext;
use crate::error::Error;
use crate::invariants::Rules;
use crate::model::inbox_message::InboxMessage;
use crate::model::keys::{RunKey, history_key};
use crate::model::task_types::TaskRef;
use crate::model::types::{PARKED_MAX, Want};
use crate::partition::Partition;
use crate::stats::Stats;

/// Bytes of rows that are written at a time: others wait for it.
const SLICE_BYTES: usize = 2 << 20;
/// Runs that are known to be whole.
const WHOLE_MAX: usize = 10_000;
/// How long a call waits for a history: less than clients give it, so that they hear what is the matter.
const CALL_WAITS_MS: i64 = 4_000;
/// Calls that wait: all are looked at whenever rows come.
const CALLS_MAX: usize = 100;

/// How far the histories are there.
#[derive(Default)]
pub(crate) struct HistoryBackfill {
    next: Offset,
    all: Option<u64>,
    /// Commits at the time of the question that is under way.
    asked_at: Option<u64>,
    rests_until_ms: i64,
    refused: bool,
    /// Runs whose history was found whole: it stays so.
    whole: HashSet<RunKey>,
    /// Ready tasks that wait for their histories; true = an activity's.
    parked: Vec<(TaskRef, TaskKind)>,
    /// Calls that wait for their histories, and until when.
    calls: Vec<(InboxMessage, i64)>,
}

impl HistoryBackfill {
    /// Nothing is there of what the topic has from an offset on.
    pub(crate) fn from(next: Offset) -> Self {
        Self { next, ..Self::default() }
    }

    /// Up to where rows were brought.
    pub(crate) fn next(&self) -> Offset {
        self.next
    }

    /// Rows up to an offset were brought otherwise.
    pub(crate) fn brought(&mut self, next: Offset) {
        self.next = next;
    }

    /// Asks for the next rows, if none are on their way.
    pub(crate) fn fetch<L: Log + ?Sized>(&mut self, log: &L, context: &PartitionContext, now_ms: i64) {
        self.rests_until_ms = self.rests_until_ms.min(now_ms + HOLD_MS);
        if self.asked_at.is_some() || now_ms < self.rests_until_ms {
            return;
        }
        self.asked_at = Some(context.stats.commits.load(Ordering::Relaxed));
        let (send, id) = (context.send.clone(), context.id);
        let done = Box::new(move |slice| {
            // A partition that is gone needs no rows.
            send(id, InboxMessage::Restored(slice));
        });
        log.restore_chunk(Topic::History, id, self.next, SLICE_BYTES, done);
    }

    /// When it asks again, where the log had no answer.
    pub(crate) fn next_fetch_ms(&self) -> Option<i64> {
        self.asked_at.is_none().then_some(self.rests_until_ms)
    }

    /// The log had no answer.
    fn refused(&mut self, partition: u32, error: &LogError, now_ms: i64) {
        self.rests_until_ms = now_ms + HOLD_MS;
        if !std::mem::replace(&mut self.refused, true) {
            tracing::warn!(partition, %error, "histories are asked for again until they come");
        }
    }

    /// Rows have come; how many records of the topic are left.
    fn arrived(&mut self, stats: &Stats, slice: &RestoreChunk) -> u64 {
        self.refused = false;
        let passed = slice.next.saturating_sub(self.next);
        let left = slice.end.saturating_sub(slice.next);
        let all = *self.all.get_or_insert(passed + left);
        self.next = slice.next;
        let bytes = |(key, value): &(Bytes, Option<Bytes>)| key.len() + value.as_ref().map_or(0, Bytes::len);
        stats.restored_rows.fetch_add(slice.rows.len() as u64, Ordering::Relaxed);
        stats.restored_bytes.fetch_add(slice.rows.iter().map(bytes).sum::<usize>() as u64, Ordering::Relaxed);
        stats.history_all.store(all.max(left), Ordering::Relaxed);
        stats.history_left.store(left, Ordering::Relaxed);
        left
    }

    /// Whether every event of a run from one on is here.
    fn has_history<B: CommittedRows>(
        &mut self,
        store: &Store<B>,
        key: &RunKey,
        run: &Run,
        from_event_id: i64,
    ) -> Result<bool, Error> {
        if self.whole.contains(key) {
            return Ok(true);
        }
        let (from, to) = (history_key(key, from_event_id), history_key(key, i64::MAX));
        let mut next_event_id = from_event_id.max(1);
        let mut has_hole = false;
        store.scan(Space::History, &from, &to, &mut |row, value| {
            let first = row.last_chunk::<8>().map_or(0, |id| i64::from_be_bytes(*id));
            match last_event_id(value) {
                Some(last) if first == next_event_id => next_event_id = last + 1,
                Some(_) | None => has_hole = true,
            }
            !has_hole
        })?;
        let is_here = !has_hole && next_event_id >= run.head.next_event_id;
        if is_here && from_event_id <= 1 && self.whole.len() < WHOLE_MAX {
            self.whole.insert(key.clone());
        }
        Ok(is_here)
    }

    /// The call waits for its history; given back where no more may wait.
    fn hold_call(&mut self, call: InboxMessage, now_ms: i64) -> Option<InboxMessage> {
        if self.calls.len() >= CALLS_MAX {
            return Some(call);
        }
        self.calls.push((call, now_ms + CALL_WAITS_MS));
        None
    }

    /// The first tasks that wait for their histories.
    fn take_parked(&mut self, tasks_max: usize) -> Vec<(TaskRef, TaskKind)> {
        let later = self.parked.split_off(self.parked.len().min(tasks_max));
        std::mem::replace(&mut self.parked, later)
    }

    /// Tasks that wait for their histories.
    pub(crate) fn parked(&self) -> impl Iterator<Item = &TaskRef> {
        self.parked.iter().map(|(task, _)| task)
    }

    /// The task waits for its history.
    pub(crate) fn park(&mut self, task: TaskRef, kind: TaskKind) {
        self.parked.push((task, kind));
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Rows have come.
    pub(crate) fn restored(
        &mut self,
        slice: Result<RestoreChunk, LogError>,
        now_ms: i64,
    ) -> Result<(), Error> {
        let Some(backfill) = &mut self.backfill else { return Ok(()) };
        let asked_at = backfill.asked_at.take();
        let slice = match slice {
            Ok(slice) => slice,
            Err(
                error @ (LogError::Io { .. }
                | LogError::Busy { .. }
                | LogError::Unknown { .. }
                | LogError::Denied { .. }),
            ) => {
                backfill.refused(self.context.id, &error, now_ms);
                return Ok(());
            }
            Err(error) => return Err(self.outside(Topic::History, error)),
        };
        let left = backfill.arrived(&self.context.stats, &slice);
        let mark = self.commits.histories_restored(slice.next);
        let mut rows = slice.rows.iter().map(|(key, value)| (Space::History, key.as_ref(), value.as_deref()));
        self.runs.store().base().write(&mut rows, Some(&mark))?;
        self.look_at_calls(now_ms)?;
        // A row that was deleted since the question may have come back with the answer: its tombstone comes next.
        if left == 0 && asked_at == Some(self.context.stats.commits.load(Ordering::Relaxed)) {
            self.caught_up(now_ms)?;
        }
        Ok(())
    }

    fn caught_up(&mut self, now_ms: i64) -> Result<(), Error> {
        let HistoryBackfill { parked, calls, .. } = self.backfill.take().unwrap_or_default();
        self.context.stats.behind.store(0, Ordering::Relaxed);
        self.context.stats.history_left.store(0, Ordering::Relaxed);
        tracing::info!(partition = self.context.id, "all histories are there");
        for (call, _until_ms) in calls {
            self.execute(call, now_ms)?;
        }
        self.offer_parked(parked)
    }

    /// Keeps a call back for as long as its history is missing; gives it back where it need not wait, or has waited.
    pub(crate) fn wait_for_history(
        &mut self,
        call: InboxMessage,
        now_ms: i64,
    ) -> Result<Option<InboxMessage>, Error> {
        if self.has_history_for(&call)? {
            return Ok(Some(call));
        }
        match &mut self.backfill {
            Some(backfill) => Ok(backfill.hold_call(call, now_ms)),
            None => Ok(Some(call)),
        }
    }

    /// Looks at the calls that wait for their histories: those that have them go on, those that waited too long are refused.
    pub(crate) fn look_at_calls(&mut self, now_ms: i64) -> Result<(), Error> {
        let calls =
            self.backfill.as_mut().map(|backfill| std::mem::take(&mut backfill.calls)).unwrap_or_default();
        for (call, until_ms) in calls {
            // A clock that was set back must not put it off.
            let until_ms = until_ms.min(now_ms + CALL_WAITS_MS);
            if until_ms <= now_ms || self.has_history_for(&call)? {
                self.execute(call, now_ms)?;
            } else if let Some(backfill) = &mut self.backfill {
                backfill.calls.push((call, until_ms));
            }
        }
        Ok(())
    }

    fn has_history_for(&mut self, call: &InboxMessage) -> Result<bool, Error> {
        if self.is_whole() {
            return Ok(true);
        }
        match call {
            InboxMessage::Request { input, .. } => self.has_past_of(input),
            InboxMessage::Read { address, want, .. } => {
                let Some((key, _)) = self.runs.resolve(address)? else { return Ok(true) };
                let Some(run) = self.runs.get(&key)? else { return Ok(true) };
                self.has_wanted(&key, &run, *want)
            }
            _needs_none => Ok(true),
        }
    }

    /// Whether what is wanted of a run is here.
    pub(crate) fn has_wanted(&mut self, key: &RunKey, run: &Run, want: Want) -> Result<bool, Error> {
        match want {
            Want::State => Ok(true),
            Want::History { from_event_id, .. } => self.has_history(key, run, from_event_id),
            Want::LastBatch | Want::Reverse { .. } => self.has_history(key, run, 1),
        }
    }

    /// Looks at tasks that wait for their histories; some at a time, all of them in turn.
    pub(crate) fn look_at_parked(&mut self) -> Result<(), Error> {
        let Some(backfill) = &mut self.backfill else { return Ok(()) };
        let parked = backfill.take_parked(PARKED_MAX);
        self.offer_parked(parked)
    }

    pub(crate) fn offer_parked(&mut self, parked: Vec<(TaskRef, TaskKind)>) -> Result<(), Error> {
        for (task, kind) in parked {
            let Some(run) = self.runs.get(&task.run)? else { continue };
            match kind {
                TaskKind::Activity => self.offer_activity(&task.run, &run, task.scheduled_event_id),
                TaskKind::Workflow => self.offer_workflow_task(&task.run, &run),
            }
        }
        Ok(())
    }

    /// Whether every event of a run from one on is here.
    pub(crate) fn has_history(&mut self, key: &RunKey, run: &Run, from_event_id: i64) -> Result<bool, Error> {
        match &mut self.backfill {
            Some(backfill) => backfill.has_history(self.runs.rows(), key, run, from_event_id),
            None => Ok(true),
        }
    }

    /// Whether a task can be given to a worker with all that belongs to it.
    pub(crate) fn has_all_of(&mut self, task: &TaskRef, kind: TaskKind, sticky: bool) -> Result<bool, Error> {
        if self.backfill.is_none() {
            return Ok(true);
        }
        let Some(run) = self.runs.get(&task.run)? else { return Ok(true) };
        if kind == TaskKind::Activity {
            let Some(activity) = run.activities.get(&task.scheduled_event_id) else { return Ok(true) };
            let row = history_key(&task.run, activity.batch_event_id);
            return Ok(self.runs.store().get(Space::History, &row)?.is_some());
        }
        let from_event_id = if sticky { run.head.previous_started_event_id + 1 } else { 1 };
        self.has_history(&task.run, &run, from_event_id)
    }
}

fn last_event_id(batch: &[u8]) -> Option<i64> {
    History::decode(batch).ok()?.events.last().map(|event| event.event_id)
}
