//! Lists and counts of a partition's runs: each is read in slices, between which the partition goes on.

use std::sync::atomic::Ordering;

use everlog_engine::machine::schedule::Schedule;
use everlog_log::Log;
use everlog_schedules::state::ScheduleState;
use everlog_store::CommittedRows;
use everlog_visibility::attribute::{Attribute, AttributeSource, AttributeType, known};
use everlog_visibility::index::{
    CountRequest, CountScan, Error as IndexError, GroupValue, ListPage, ListPosition, ListRequest, ListScan,
    ListedRun, OrderKey, RunCounts,
};
use everlog_visibility::query::{Filter, SortOrder};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::admission::{AdmissionSlot, CallFailure, CallResult};
use crate::model::keys::WorkflowKey;
use crate::model::reply::send_reply;
use crate::model::visibility_messages::{
    LogPosition, VisibilityAnswer, VisibilityRead, VisibilityWant, VisibleCount, VisibleRun, VisibleSchedule,
    WantedCount, WantedPage,
};
use crate::partition::Partition;
use crate::state::run_index::RecordChange;

/// Rows that are read of one list or count in a turn, about: other calls wait meanwhile.
const SLICE_ROWS: usize = 1_000;
/// Rows that are visited for a page.
const VISITS_MAX: usize = 100_000;
/// Bytes of the records of a page.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Groups of a count, at most: of one partition, and of all together.
pub const COUNT_GROUPS_MAX: usize = 1_000;
/// Rows that are looked at in a turn while an index is made.
const BUILD_ROWS: usize = 200;

/// So many times this is done before a partition serves.
const BUILDS_AT_ONCE: usize = 10;

/// Where an answer goes.
type AnswerSender = oneshot::Sender<CallResult<VisibilityAnswer>>;

/// A list or a count under way.
struct RunningRead {
    namespace_id: String,
    work: Work,
    position: ListPosition,
    _slot: AdmissionSlot,
    reply: AnswerSender,
}

enum Work {
    List(Box<ListScan>),
    Count(Box<CountScan>),
}

/// What a slice has come to.
enum Finished {
    Page(ListPage),
    Counts(RunCounts),
    TooManyGroups,
}

/// Lists and counts under way.
#[derive(Default)]
pub(crate) struct VisibilityReads {
    under_way: Vec<RunningRead>,
}

impl VisibilityReads {
    /// Somebody waits for an answer.
    pub(crate) fn are_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    fn tell(&mut self, changes: &[RecordChange]) {
        for RecordChange { namespace_id, before, after } in changes {
            for reading in &mut self.under_way {
                match &mut reading.work {
                    Work::List(list) => list.changed(*namespace_id, after.as_ref()),
                    Work::Count(count) => count.changed(*namespace_id, before.as_ref(), after.as_ref()),
                }
            }
        }
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Begins a list or a count, and answers at once where a slice is enough.
    pub(crate) fn read_visibility(
        &mut self,
        read: &VisibilityRead,
        slot: AdmissionSlot,
        reply: AnswerSender,
    ) -> Result<(), Error> {
        if self.lacks_index() {
            let percent = self.runs.index().percent();
            send_reply(reply, Err(CallFailure::Indexing { percent }));
            return Ok(());
        }
        let position = ListPosition { offset: self.position.applied, ms: self.position.last_stamp_ms };
        let Some((work, position)) = work(read, position) else {
            send_reply(reply, Err(CallFailure::Internal));
            return Ok(());
        };
        self.catch_up()?;
        self.visibility.under_way.push(RunningRead {
            namespace_id: read.namespace_id.clone(),
            work,
            position,
            _slot: slot,
            reply,
        });
        self.runs.index_mut().read_by(true);
        self.read_on()
    }

    /// Reads a slice of each list and count under way; and where the index is not complete, makes a part of it.
    pub(crate) fn mind_index(&mut self) -> Result<(), Error> {
        if self.lacks_index() {
            self.refuse_readings();
            if !self.takes_no_work() {
                self.runs.build_index(BUILD_ROWS)?;
                self.commits.note_change();
            }
            let percent = self.runs.index().percent();
            let missing = 100_u64.saturating_sub(u64::from(percent));
            self.context.stats.index_missing_percent.store(missing, Ordering::Relaxed);
            return Ok(());
        }
        self.context.stats.index_missing_percent.store(0, Ordering::Relaxed);
        if self.visibility.are_under_way() {
            self.catch_up()?;
            self.read_on()?;
        }
        Ok(())
    }

    /// The index lacks runs.
    pub(crate) fn lacks_index(&self) -> bool {
        !self.runs.index().is_complete()
    }

    /// A part of the index can be made, or a list or count read on.
    pub(crate) fn has_index_work(&self) -> bool {
        self.visibility.are_under_way() || (self.lacks_index() && !self.takes_no_work())
    }

    /// The index as the restored rows have it. What is missing of it is made, unless it is much: the rest is made while the
    /// partition serves.
    pub(crate) fn open_index(&mut self) -> Result<(), Error> {
        self.runs.open_index()?;
        for _ in 0..BUILDS_AT_ONCE {
            if !self.lacks_index() {
                break;
            }
            self.runs.build_index(BUILD_ROWS)?;
            self.commits.note_change();
        }
        Ok(())
    }

    /// Every change up to here gets into the rows, and is told to those who read.
    fn catch_up(&mut self) -> Result<(), Error> {
        self.runs.flush()?;
        let changes = self.runs.index_mut().take_changes();
        self.visibility.tell(&changes);
        Ok(())
    }

    fn read_on(&mut self) -> Result<(), Error> {
        for mut reading in std::mem::take(&mut self.visibility.under_way) {
            if reading.reply.is_closed() {
                continue;
            }
            let slice = self.runs.read_index(|rows| match &mut reading.work {
                Work::List(list) => Ok(list.read(rows, SLICE_ROWS)?.map(Finished::Page)),
                Work::Count(count) => match count.read(rows, SLICE_ROWS) {
                    Err(IndexError::Groups(_)) => Ok(Some(Finished::TooManyGroups)),
                    read => Ok(read?.map(Finished::Counts)),
                },
            })?;
            match slice {
                Some(None) => self.visibility.under_way.push(reading),
                Some(Some(finished)) => {
                    let answer = self.visibility_answer(finished, reading.position, &reading.namespace_id)?;
                    send_reply(reading.reply, answer);
                }
                None => send_reply(reading.reply, Err(CallFailure::Indexing { percent: 0 })),
            }
        }
        if !self.visibility.are_under_way() {
            self.runs.index_mut().read_by(false);
        }
        Ok(())
    }

    fn refuse_readings(&mut self) {
        for reading in self.visibility.under_way.drain(..) {
            send_reply(reading.reply, Err(CallFailure::Indexing { percent: 0 }));
        }
        self.runs.index_mut().read_by(false);
    }

    fn visibility_answer(
        &self,
        finished: Finished,
        position: ListPosition,
        namespace_id: &str,
    ) -> Result<CallResult<VisibilityAnswer>, Error> {
        let position = Some(LogPosition { offset: position.offset, ms: position.ms });
        Ok(match finished {
            Finished::TooManyGroups => Err(CallFailure::TooManyGroups { groups: COUNT_GROUPS_MAX }),
            Finished::Page(ListPage { runs, reached }) => {
                let runs =
                    runs.into_iter().map(|run| self.visible(namespace_id, run)).collect::<Result<_, _>>()?;
                let reached = reached.map_or_else(Vec::new, |key| key.bytes().to_vec()).into();
                Ok(VisibilityAnswer { position, runs, reached, counts: Vec::new() })
            }
            Finished::Counts(RunCounts { count, groups }) => {
                let all = VisibleCount { count, ..VisibleCount::default() };
                let groups = groups.into_iter().map(|(value, count)| match value {
                    GroupValue::Missing => VisibleCount { count, ..VisibleCount::default() },
                    GroupValue::Int(number) => {
                        VisibleCount { number: Some(number), count, ..VisibleCount::default() }
                    }
                    GroupValue::Keyword(word) => {
                        VisibleCount { keyword: Some(word), count, ..VisibleCount::default() }
                    }
                });
                let counts = std::iter::once(all).chain(groups).collect();
                Ok(VisibilityAnswer { position, counts, ..VisibilityAnswer::default() })
            }
        })
    }

    /// A listed run with what its state tells besides.
    fn visible(&self, namespace_id: &str, ListedRun { key, record }: ListedRun) -> Result<VisibleRun, Error> {
        let run = WorkflowKey::new(namespace_id, &record.workflow_id).run(&record.run_id);
        let run = self.runs.look(&run)?;
        let mut visible =
            VisibleRun { key: key.bytes().to_vec().into(), record: Some(record), ..VisibleRun::default() };
        if let Some(run) = run {
            visible.memo.clone_from(&run.properties.memo);
            visible.history_length = run.head.next_event_id - 1;
            visible.history_bytes = run.head.history_bytes;
            visible.transitions = run.head.transitions;
            visible.schedule = run.schedule.as_deref().map(visible_schedule);
        }
        Ok(visible)
    }
}

fn visible_schedule(schedule: &Schedule) -> VisibleSchedule {
    let (definition, state) = (schedule.definition(), schedule.state());
    let shown = ScheduleState {
        buffer: Vec::new(),
        running: Vec::new(),
        backfills: Vec::new(),
        triggers: Vec::new(),
        ..state.clone()
    };
    VisibleSchedule {
        spec: definition.spec.clone(),
        policies: definition.policies.clone(),
        workflow_type: definition.action.workflow_type.clone(),
        state: shown,
    }
}

/// What a read asks for; none where it cannot be read. It comes from this node or another of the cluster.
fn work(read: &VisibilityRead, stands: ListPosition) -> Option<(Work, ListPosition)> {
    let namespace_id = Uuid::parse_str(&read.namespace_id).ok()?;
    let filter = Filter::decode(&read.filter).ok()?;
    match read.want.as_ref()? {
        VisibilityWant::Page(WantedPage { order_by, is_descending, position, after, rows_max }) => {
            let began = position.map(|position| ListPosition { offset: position.offset, ms: position.ms });
            let position = began.unwrap_or(stands);
            let order = match order_by.as_str() {
                "" => None,
                name => match known(name)?.source {
                    AttributeSource::System(by) => Some(SortOrder { by, is_descending: *is_descending }),
                    AttributeSource::Named(_) => return None,
                },
            };
            let after = match after.as_ref() {
                [] => None,
                key => Some(OrderKey::read(key)?),
            };
            let list = ListScan::new(ListRequest {
                namespace_id,
                filter,
                order,
                position,
                after,
                rows_max: usize::try_from(*rows_max).unwrap_or(usize::MAX),
                bytes_max: PAGE_BYTES_MAX,
                visits_max: VISITS_MAX,
            });
            Some((Work::List(Box::new(list)), position))
        }
        VisibilityWant::Count(WantedCount { group_by, is_system }) => {
            let group_by = match (group_by.as_str(), is_system) {
                ("", _) => None,
                (name, true) => Some(known(name)?),
                (name, false) => Some(Attribute {
                    source: AttributeSource::Named(name.to_owned()),
                    kind: AttributeType::Keyword,
                }),
            };
            let request = CountRequest { namespace_id, filter, group_by, groups_max: COUNT_GROUPS_MAX };
            Some((Work::Count(Box::new(CountScan::new(request))), stands))
        }
    }
}
