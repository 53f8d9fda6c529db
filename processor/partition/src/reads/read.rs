//! Reading: a partition's part in telling how a run stands, at once or when it has news.

use everlog_log::Log;
use everlog_store::CommittedRows;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::admission::{CallFailure, CallResult};
use crate::model::keys::Address;
use crate::model::reply::send_reply;
use crate::model::types::{Page, Reading, Want};
use crate::partition::Partition;
use crate::tasks::task_payload;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn read(
        &mut self,
        address: &Address,
        want: Want,
    ) -> Result<CallResult<Option<Reading>>, Error> {
        let Some((key, is_current)) = self.runs.resolve(address)? else { return Ok(Ok(None)) };
        let Some(run) = self.runs.get(&key)? else { return Ok(Ok(None)) };
        if !self.has_wanted(&key, &run, want)? {
            return Ok(Err(CallFailure::Unavailable));
        }
        let page = match want {
            Want::State => Page::default(),
            Want::History { from_event_id, batches_max } => {
                task_payload::page(&mut self.runs, &key, from_event_id, batches_max)?
            }
            Want::LastBatch => task_payload::page_before(&mut self.runs, &key, 0, 1)?,
            Want::Reverse { below_event_id, batches_max } => {
                task_payload::page_before(&mut self.runs, &key, below_event_id, batches_max)?
            }
        };
        Ok(Ok(Some(Reading { run, is_current, page })))
    }

    pub(crate) fn watch(
        &mut self,
        address: &Address,
        known_event_id: i64,
        reply: oneshot::Sender<()>,
    ) -> Result<(), Error> {
        let resolved = self.runs.resolve(address)?;
        let run = match &resolved {
            Some((key, _)) => self.runs.get(key)?,
            None => None,
        };
        match (resolved, run) {
            (Some((key, _)), Some(run)) => self.waiters.histories.add(key, &run, known_event_id, reply),
            (Some(_) | None, _) => send_reply(reply, ()),
        }
        Ok(())
    }
}
