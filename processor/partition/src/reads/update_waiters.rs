//! Updates: callers that wait until a worker has taken an update, or answered it. They live in memory only; whether
//! an update is there, and how far, is the run's state.

use std::collections::{BTreeMap, HashMap};

use everlog_engine::event::Attributes;
use everlog_engine::machine::update::{End, Stage, UpdateStanding, standing};
use everlog_engine::{Change, Reply, Step};
use everlog_log::Log;
use everlog_store::CommittedRows;
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::admission::{CallFailure, CallResult};
use crate::model::keys::{Address, RunKey, WorkflowKey};
use crate::model::reply::send_reply;
use crate::model::types::UpdateNews;
use crate::partition::Partition;

/// How often a caller can hear of an update behind the first answer: that it was accepted, and how it ended.
pub(crate) const NEWS_MAX: usize = 2;

/// Callers that wait, by run and update.
#[derive(Default)]
pub struct UpdateWaiters {
    by_run: HashMap<RunKey, BTreeMap<String, Vec<mpsc::Sender<UpdateNews>>>>,
}

impl UpdateWaiters {
    fn add(&mut self, key: RunKey, update_id: &str, news: mpsc::Sender<UpdateNews>) {
        self.by_run.entry(key).or_default().entry(update_id.to_owned()).or_default().push(news);
    }

    /// Tells callers what a step means for the updates of its run. Those of an update that goes over to another run wait
    /// for what becomes of it there.
    pub fn settle(&mut self, key: &RunKey, step: &Step) {
        let Some(waiting) = self.by_run.get_mut(key) else { return };
        let mut moved = Vec::new();
        for change in &step.changes {
            match change {
                Change::Event(event) => match &event.attributes {
                    // Of one that was answered in the same step callers hear the answer, and of one whose run closed the end.
                    Some(Attributes::UpdateAccepted(accepted))
                        if step.run.is_open()
                            && step.run.updates.contains_key(&accepted.protocol_instance_id) =>
                    {
                        let update_id = &accepted.protocol_instance_id;
                        let is_new = waiting.get(update_id).into_iter().flatten();
                        is_new.for_each(|news| send(news, stands(step, update_id, Stage::Accepted)));
                    }
                    Some(Attributes::UpdateCompleted(completed)) => {
                        let update_id = completed.meta.as_ref().map_or("", |meta| meta.update_id.as_str());
                        let outcome = completed.outcome.clone().unwrap_or_default();
                        let stage = Stage::Completed(outcome);
                        end(waiting, update_id, &stands(step, update_id, stage));
                    }
                    Some(_) | None => {}
                },
                Change::UpdateEnded(update_id, End::Moved(run_id)) => {
                    let callers = waiting.remove(update_id).unwrap_or_default();
                    moved.push((run_id, update_id, callers));
                }
                Change::UpdateEnded(update_id, End::Rejected(outcome)) => {
                    end(waiting, update_id, &stands(step, update_id, Stage::Completed(outcome.clone())));
                }
                Change::UpdateEnded(update_id, End::Closed) => end(waiting, update_id, &UpdateNews::Closed),
                Change::UpdateEnded(update_id, End::TaskFailed) => {
                    end(waiting, update_id, &UpdateNews::TaskFailed);
                }
                _no_update => {}
            }
        }
        if !step.run.is_open() {
            for update_id in step.run.updates.keys() {
                if let Some(standing) = standing(&step.run, update_id, None) {
                    end(waiting, update_id, &UpdateNews::UpdateStanding(standing));
                }
            }
        }
        if waiting.is_empty() {
            self.by_run.remove(key);
        }
        let start = &step.run.start;
        for (run_id, update_id, callers) in moved {
            let key = WorkflowKey::new(&start.namespace_id, &start.workflow_id).run(run_id);
            for news in callers {
                self.add(key.clone(), update_id, news);
            }
        }
    }

    /// Forgets callers that have gone away.
    pub fn sweep(&mut self) {
        self.by_run.retain(|_, waiting| {
            waiting.retain(|_, callers| {
                callers.retain(|news| !news.is_closed());
                !callers.is_empty()
            });
            !waiting.is_empty()
        });
    }
}

fn stands(step: &Step, update_id: &str, stage: Stage) -> UpdateNews {
    let (run_id, update_id) = (step.run.start.run_id.clone(), update_id.to_owned());
    UpdateNews::UpdateStanding(UpdateStanding { run_id, update_id, stage })
}

/// Whoever is gone needs not be told.
fn send(news: &mpsc::Sender<UpdateNews>, what: UpdateNews) {
    drop(news.try_send(what));
}

fn end(waiting: &mut BTreeMap<String, Vec<mpsc::Sender<UpdateNews>>>, update_id: &str, what: &UpdateNews) {
    waiting.remove(update_id).unwrap_or_default().iter().for_each(|news| send(news, what.clone()));
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Answers whoever brought an update, and notes that it wants to hear more.
    pub(crate) fn answer_update(
        &mut self,
        key: &RunKey,
        mut reply: Reply,
        caller: oneshot::Sender<CallResult<Reply>>,
        news: mpsc::Sender<UpdateNews>,
    ) -> Result<(), Error> {
        let standing = match &mut reply {
            Reply::Update(standing) => Some(standing),
            Reply::Started(started) => started.update.as_mut(),
            _no_update => None,
        };
        if let Some(standing) = standing
            && !self.tell_more(key, standing, news)?
        {
            send_reply(caller, Err(CallFailure::Unavailable));
            return Ok(());
        }
        send_reply(caller, Ok(reply));
        Ok(())
    }

    /// Answers how an update stands, and notes that the caller wants to hear more.
    pub(crate) fn await_update(
        &mut self,
        address: &Address,
        update_id: &str,
        caller: oneshot::Sender<CallResult<Option<UpdateStanding>>>,
        news: mpsc::Sender<UpdateNews>,
    ) -> Result<(), Error> {
        let Some((key, _)) = self.runs.resolve(address)? else {
            send_reply(caller, Ok(None));
            return Ok(());
        };
        let done = self.runs.done_update(&key, update_id)?;
        let run = self.runs.get(&key)?;
        let Some(mut standing) = run.and_then(|run| standing(&run, update_id, done.as_ref())) else {
            send_reply(caller, Ok(None));
            return Ok(());
        };
        let is_told = self.tell_more(&key, &mut standing, news)?;
        send_reply(caller, if is_told { Ok(Some(standing)) } else { Err(CallFailure::Unavailable) });
        Ok(())
    }

    /// What is to be told of an update: its outcome where it has one, else whatever comes. False where the outcome is among
    /// what is still being brought.
    fn tell_more(
        &mut self,
        key: &RunKey,
        standing: &mut UpdateStanding,
        news: mpsc::Sender<UpdateNews>,
    ) -> Result<bool, Error> {
        let Some(address) = key.address() else { return Ok(false) };
        let key = WorkflowKey::new(&address.namespace_id, &address.workflow_id).run(&standing.run_id);
        match standing.stage {
            Stage::Admitted | Stage::Accepted => self.waiters.updates.add(key, &standing.update_id, news),
            Stage::Completed(_) => {}
            Stage::Done(done) => match self.runs.update_outcome(&key, done)? {
                Some(outcome) => standing.stage = Stage::Completed(outcome),
                None => return Ok(false),
            },
        }
        Ok(true)
    }
}
