//! The past of a run: the only histories that a decision reads, that of a reset.
//!
//! Histories are brought behind the take-over of a partition. So a reset is let into the journal only while its history is
//! there; and where one stands in a journal that is applied before the histories have come, they are brought at once.

use everlog_engine::Run;
use everlog_engine::event::{History, HistoryEvent};
use everlog_engine::machine::reset::{HistoryBatches, continued_by, is_kept};
use everlog_engine::request::{Request, RequestRecord};
use everlog_log::Log;
use everlog_store::{CommittedRows, Space};
use prost::Message;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::keys::{Address, RunKey, WorkflowKey, history_key};
use crate::partition::Partition;

/// Runs that went on as one another whose events a reset takes over.
const RUNS_MAX: usize = 1_000;
/// Bytes of all that is read for a reset; beyond that there is none.
const BYTES_MAX: usize = 128 << 20;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Whether a reset finds what it reads; other orders read nothing.
    pub(crate) fn has_past_of(&mut self, input: &RequestRecord) -> Result<bool, Error> {
        if !matches!(input.request, Some(Request::Reset(_))) || self.is_whole() {
            return Ok(true);
        }
        let Some((key, _)) = self.runs.resolve(&Address::of(input))? else { return Ok(true) };
        let Some(run) = self.runs.get(&key)? else { return Ok(true) };
        self.has_history(&key, &run, 1)
    }

    /// What is written of a run, and of those that it went on as; nothing where that is lost, or too much.
    pub(crate) fn past(&mut self, workflow: &WorkflowKey, run: &Run) -> Result<Vec<HistoryBatches>, Error> {
        if let Some(past) = self.read_past(workflow, run)? {
            return Ok(past);
        }
        self.bring_histories()?;
        Ok(self.read_past(workflow, run)?.unwrap_or_default())
    }

    fn read_past(&mut self, workflow: &WorkflowKey, run: &Run) -> Result<Option<Vec<HistoryBatches>>, Error> {
        let mut past = Vec::new();
        let mut bytes = 0;
        let mut next = Some(run.start.run_id.clone());
        while let Some(run_id) = next.take() {
            let key = workflow.run(&run_id);
            let Some(run) = self.runs.get(&key)? else { break };
            if past.len() == RUNS_MAX || !self.has_history(&key, &run, 1)? {
                return Ok(None);
            }
            let is_base = past.is_empty();
            let (batches, last) = self.read_history(&key, is_base, &mut bytes)?;
            if bytes > BYTES_MAX {
                return Ok(None);
            }
            next = last.as_ref().and_then(continued_by).map(str::to_owned);
            past.push(HistoryBatches { run_id, batches });
        }
        Ok(Some(past))
    }

    /// A history and its last event: all of it, or the batches that have something to be kept.
    fn read_history(
        &mut self,
        key: &RunKey,
        all: bool,
        bytes: &mut usize,
    ) -> Result<(Vec<History>, Option<HistoryEvent>), Error> {
        let (mut batches, mut last, mut damage) = (Vec::new(), None, None);
        let (from, to) = (history_key(key, 1), history_key(key, i64::MAX));
        self.runs.store().scan(Space::History, &from, &to, &mut |_row, value| {
            match History::decode(value) {
                Ok(batch) => {
                    last = batch.events.last().cloned();
                    if all || batch.events.iter().any(is_kept) {
                        *bytes += value.len();
                        batches.push(batch);
                    }
                }
                Err(error) => damage = Some(Error::damaged("a batch of events", &error)),
            }
            damage.is_none() && *bytes <= BYTES_MAX
        })?;
        damage.map_or(Ok((batches, last)), Err)
    }
}
