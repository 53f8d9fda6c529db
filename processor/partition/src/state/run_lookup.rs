//! Which run an address means, which run has taken a request before, and what an update came to.
//!
//! It reads runs and rows, and writes none.

use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::update::Done;
use everlog_engine::request::RequestRecord;
use everlog_store::{CommittedRows, Space};
use prost::Message;

use crate::error::Error;
use crate::model::keys::{Address, RunKey, WorkflowKey, history_key};
use crate::state::run_store::RunStore;

/// A run that began so lately asks the one before it in its chain which signals that one has taken. Clients give up after this time
/// at the latest.
const ASKED_AGAIN_WITHIN_MS: i64 = 60_000;
/// So many runs of a chain are asked; they begin a second apart, or as a setting has it.
const CHAIN_LOOKS_MAX: usize = 64;

impl<B: CommittedRows> RunStore<B> {
    /// The key of an addressed run, and whether it is the current one. Runs before one that was deleted are there without a
    /// current one.
    pub(crate) fn resolve(&mut self, address: &Address) -> Result<Option<(RunKey, bool)>, Error> {
        let workflow = WorkflowKey::new(&address.namespace_id, &address.workflow_id);
        let current = self.current(&workflow)?;
        Ok(match address.run_id.as_str() {
            "" => current.map(|run_id| (workflow.run(&run_id), true)),
            run_id => Some((workflow.run(run_id), current.as_deref() == Some(run_id))),
        })
    }

    /// The run that has taken the input's request before.
    ///
    /// `now_ms`: the stamp of the record.
    pub(crate) fn taker(
        &mut self,
        now_ms: i64,
        workflow: &WorkflowKey,
        input: &RequestRecord,
        run: Option<&Arc<Run>>,
        current: Option<&Arc<Run>>,
    ) -> Result<Option<Arc<Run>>, Error> {
        if let (Some(request_id), Some(run)) = (input.signal_request_id(), run) {
            let has = |runs: &Self, run: &Run| runs.has_request(&workflow.run(&run.start.run_id), request_id);
            return match input.run_id.is_empty() {
                true => self.in_chain(now_ms, workflow, run, has),
                false => Ok(has(self, run)?.then(|| run.clone())),
            };
        }
        let (Some(request_id), Some(current)) = (input.creation_request_id(), current) else {
            return Ok(None);
        };
        self.in_chain(now_ms, workflow, current, |_, run| {
            Ok(run.start.request_id == request_id || run.attached.contains_key(request_id))
        })
    }

    /// The run that has taken a request: this one, or one before it in its chain that ended lately. Whoever asks again
    /// because it has heard nothing does not know that another run has begun meanwhile.
    fn in_chain(
        &mut self,
        now_ms: i64,
        workflow: &WorkflowKey,
        run: &Arc<Run>,
        has: impl Fn(&Self, &Run) -> Result<bool, Error>,
    ) -> Result<Option<Arc<Run>>, Error> {
        let mut run = run.clone();
        for _ in 0..CHAIN_LOOKS_MAX {
            if has(self, &run)? {
                return Ok(Some(run));
            }
            let start = &run.start;
            // A run that a reset has made has what another was sent that was current until then.
            let (before, began_ms) = match start.former_run_id.as_str() {
                "" => (start.continued_run_id.as_str(), start.start_ms),
                former_run_id => (former_run_id, start.reset_ms),
            };
            if before.is_empty() || now_ms - began_ms >= ASKED_AGAIN_WITHIN_MS {
                return Ok(None);
            }
            let Some(before) = self.get(&workflow.run(before))? else {
                return Ok(None);
            };
            run = before;
        }
        Ok(None)
    }

    /// The outcome of a completed update; none where the history that has it is still being brought.
    pub(crate) fn update_outcome(&self, key: &RunKey, done: Done) -> Result<Option<Bytes>, Error> {
        let row = self.rows().get(Space::History, &history_key(key, done.batch_event_id))?;
        let Some(history) = row.and_then(|row| History::decode(row).ok()) else { return Ok(None) };
        let event = history.events.into_iter().find(|event| event.event_id == done.event_id);
        Ok(match event.and_then(|event| event.attributes) {
            Some(Attributes::UpdateCompleted(completed)) => Some(completed.outcome.unwrap_or_default()),
            Some(_) | None => None,
        })
    }
}
