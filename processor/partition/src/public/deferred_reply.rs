//! Promises: updates that came as public commands, and whose outcomes are told when a worker has answered them. Unlike a
//! caller's wait a promise is a row, and outlives every owner of the partition.

use bytes::{BufMut, Bytes};
use everlog_avro::command::Code;
use everlog_avro::outcome::Outcome;
use everlog_engine::event::Attributes;
use everlog_engine::machine::update::{End, Stage, UpdateStanding, standing};
use everlog_engine::request::RequestRecord;
use everlog_engine::{Change, Reply, Step};
use everlog_log::Log;
use everlog_store::{CommittedRows, Space, Store};
use everlog_wire::public_command::{PublicCommand, SourcePosition};
use everlog_wire::rows::promise_prefix;
use prost::Message;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::keys::{RunKey, WorkflowKey, state_key};
use crate::partition::Partition;
use crate::public::outputs::CommandOrigin;

/// What became of an update that no worker had taken when its run was closed.
const ABORTED: &str = "workflow update was aborted by closing workflow";

/// Commands to which the outcome of one update is promised at most.
const PROMISES_MAX: usize = 100;
/// Bytes behind the update's id in the suffix of a promise's row.
const SOURCE_BYTES: usize = 16 + 4 + 8;

/// What ended an update.
enum Ended {
    Answered(UpdateStanding),
    Aborted,
    MovedTo(String),
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Tells the outcome of a command, or promises it where it is an update's that is still to come.
    pub(crate) fn tell_or_promise(
        &mut self,
        key: &RunKey,
        source: &SourcePosition,
        forwarded: &PublicCommand,
        reply: &Reply,
    ) -> Result<(), Error> {
        let told = CommandOrigin::of_forwarded(source, forwarded);
        let standing = match reply {
            Reply::Update(standing) => Some(standing),
            Reply::Started(started) => started.update.as_ref(),
            _no_update => None,
        };
        let Some(standing) = standing else {
            self.publisher().outcome(&told, |outcome| outcome.decided(reply));
            return Ok(());
        };
        let key = sibling(key, &standing.run_id);
        match &standing.stage {
            Stage::Admitted | Stage::Accepted => {
                if promises(self.runs.rows(), &key, &standing.update_id)?.len() < PROMISES_MAX {
                    promise(self.runs.store(), &key, &standing.update_id, source, forwarded);
                } else {
                    let reason = format!("{PROMISES_MAX} commands wait for this update already");
                    self.publisher().refusal(&told, Code::Busy.name(), &reason);
                }
            }
            Stage::Completed(_) => self.publisher().outcome(&told, |outcome| outcome.decided(reply)),
            Stage::Done(done) => {
                let mut standing = standing.as_ref().clone();
                if let Some(outcome) = self.runs.update_outcome(&key, *done)? {
                    standing.stage = Stage::Completed(outcome);
                }
                self.publisher().outcome(&told, |outcome| outcome.decided(reply).updated(&standing));
            }
        }
        Ok(())
    }

    /// Keeps the promises about updates that a step has ended. Those about one that goes over to another run go with it.
    pub(crate) fn keep_promises(&mut self, key: &RunKey, step: &Step) -> Result<(), Error> {
        for (update_id, ended) in ended(step) {
            for (row, forwarded) in promises(self.runs.rows(), key, &update_id)? {
                self.runs.store().delete(Space::State, row);
                let Some(source) = forwarded.source.clone() else { continue };
                let told = CommandOrigin::of_forwarded(&source, &forwarded);
                match &ended {
                    Ended::Answered(standing) => {
                        self.publisher().outcome(&told, |outcome| outcome.updated(standing))
                    }
                    Ended::Aborted => {
                        let (run_id, code) = (step.run.start.run_id.clone(), Code::NotFound);
                        self.publisher().outcome(&told, |outcome| Outcome {
                            run_id: Some(run_id),
                            update_id: Some(update_id.clone()),
                            ..outcome.refused(code, ABORTED)
                        });
                        self.publisher().rejection(&told, code.name(), ABORTED);
                    }
                    Ended::MovedTo(run_id) => {
                        promise(self.runs.store(), &sibling(key, run_id), &update_id, &source, &forwarded);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The command hears the outcome of the update when it comes.
fn promise<B: CommittedRows>(
    store: &mut Store<B>,
    key: &RunKey,
    update_id: &str,
    source: &SourcePosition,
    forwarded: &PublicCommand,
) {
    let input = forwarded.input.as_ref();
    let ids = input
        .map(|input| RequestRecord { workflow_id: input.workflow_id.clone(), ..RequestRecord::default() });
    let promised = PublicCommand { input: ids, ..forwarded.clone() };
    store.put(Space::State, promise_row(key, update_id, source), promised.encode_to_vec().into());
}

/// The commands that are to hear the outcome of an update, with their rows.
fn promises<B: CommittedRows>(
    store: &Store<B>,
    key: &RunKey,
    update_id: &str,
) -> Result<Vec<(Bytes, PublicCommand)>, Error> {
    let mut rows = Vec::new();
    let from = promise_prefix(update_id);
    let mut to = from.clone();
    to.extend_from_slice(&[u8::MAX; SOURCE_BYTES + 1]);
    let (from, to) = (state_key(key, &from), state_key(key, &to));
    store.scan(Space::State, &from, &to, &mut |row, value| {
        if row.len() == from.len() + SOURCE_BYTES {
            rows.push((Bytes::copy_from_slice(row), PublicCommand::decode(value)));
        }
        true
    })?;
    let damaged = |error| Error::damaged("the promise of an update's outcome", &error);
    rows.into_iter().map(|(row, promised)| Ok((row, promised.map_err(damaged)?))).collect()
}

/// Updates that a step has ended, and how.
fn ended(step: &Step) -> Vec<(String, Ended)> {
    let run = &step.run;
    let answered = |update_id: &str, outcome: Bytes| {
        let (run_id, update_id) = (run.start.run_id.clone(), update_id.to_owned());
        (
            update_id.clone(),
            Ended::Answered(UpdateStanding { run_id, update_id, stage: Stage::Completed(outcome) }),
        )
    };
    let mut all: Vec<_> = step
        .changes
        .iter()
        .filter_map(|change| match change {
            Change::Event(event) => match &event.attributes {
                Some(Attributes::UpdateCompleted(completed)) => {
                    let meta = completed.meta.as_ref()?;
                    Some(answered(&meta.update_id, completed.outcome.clone().unwrap_or_default()))
                }
                Some(_) | None => None,
            },
            Change::UpdateEnded(update_id, End::Rejected(outcome)) => {
                Some(answered(update_id, outcome.clone()))
            }
            Change::UpdateEnded(update_id, End::Moved(run_id)) => {
                Some((update_id.clone(), Ended::MovedTo(run_id.clone())))
            }
            Change::UpdateEnded(update_id, End::Closed | End::TaskFailed) => {
                Some((update_id.clone(), Ended::Aborted))
            }
            _no_update => None,
        })
        .collect();
    if !run.is_open() {
        let unanswered = run.updates.keys().filter_map(|update_id| standing(run, update_id, None));
        all.extend(unanswered.map(|standing| (standing.update_id.clone(), Ended::Answered(standing))));
    }
    all
}

fn sibling(key: &RunKey, run_id: &str) -> RunKey {
    match key.address() {
        Some(address) => WorkflowKey::new(&address.namespace_id, &address.workflow_id).run(run_id),
        None => key.clone(),
    }
}

/// One row per update and command: its place tells it from every other.
fn promise_row(key: &RunKey, update_id: &str, source: &SourcePosition) -> Bytes {
    let mut suffix = promise_prefix(update_id);
    suffix.put_slice(&crate::model::keys::incarnation(source));
    suffix.put_u32(source.partition);
    suffix.put_u64(source.offset);
    state_key(key, &suffix)
}
