//! The table of requests: a row for each kind says how urgent it is, and what answers it where its run is missing or closed.

use crate::outcome::{Outcome, Rejection, Reply};
use crate::request::Request;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Whether it is let in when a partition is overloaded.
    pub class: RequestClass,
    /// What answers it where the addressed run is not known.
    pub(crate) if_missing: IfMissing,
    /// What answers it where the addressed run is closed, unless the machine decides otherwise.
    pub(crate) if_closed: IfClosed,
}

/// How urgent a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Begins work, or adds to it.
    Ordinary,
    /// Ends work, or stops it: twice as many of these may wait.
    Urgent,
}

/// The answer to a request for a run that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// NOT_FOUND.
    Refuse,
    /// The task is gone: a worker gets nothing, and no error.
    Gone,
    /// NOT_FOUND: no such schedule.
    NoSchedule,
}

/// The answer to a request for a closed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfClosed {
    /// NOT_FOUND: the execution already completed.
    Refuse,
    /// NOT_FOUND: the workflow task does not exist.
    NoTask,
    /// NOT_FOUND: the execution does not exist.
    Unknown,
    /// Nothing is left to do.
    Done,
    /// As [`IfMissing::Gone`].
    Gone,
}

impl Request {
    /// The row of its kind.
    pub fn row(&self) -> RequestRow {
        use RequestClass::{Ordinary, Urgent};
        let row = |class, if_missing, if_closed| RequestRow { class, if_missing, if_closed };
        match self {
            Self::Start(_) => row(Ordinary, IfMissing::Refuse, IfClosed::Refuse),
            Self::Signal(_) => row(Ordinary, IfMissing::Refuse, IfClosed::Refuse),
            Self::Cancel(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::Terminate(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::ClaimTask(_) => row(Urgent, IfMissing::Gone, IfClosed::Gone),
            Self::CompleteTask(_) => row(Urgent, IfMissing::Refuse, IfClosed::NoTask),
            Self::FailTask(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::ReleaseTask(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::ClaimActivity(_) => row(Urgent, IfMissing::Gone, IfClosed::Gone),
            Self::CompleteActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::FailActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::CancelActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::HeartbeatActivity(_) => row(Ordinary, IfMissing::Refuse, IfClosed::Refuse),
            Self::ReleaseActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::FireTimers(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::ResetSticky(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::Update(_) => row(Ordinary, IfMissing::Refuse, IfClosed::Unknown),
            Self::Reset(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::ChildOpened(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::BeginChild(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::ChildClosed(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::ExternalAnswered(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::Delete(_) => row(Urgent, IfMissing::Refuse, IfClosed::Done),
            Self::CreateSchedule(_) => row(Ordinary, IfMissing::NoSchedule, IfClosed::Unknown),
            Self::UpdateSchedule(_) => row(Ordinary, IfMissing::NoSchedule, IfClosed::Unknown),
            Self::PatchSchedule(_) => row(Ordinary, IfMissing::NoSchedule, IfClosed::Unknown),
            Self::DeleteSchedule(_) => row(Urgent, IfMissing::NoSchedule, IfClosed::Unknown),
            Self::ScheduleActionOpened(_) => row(Urgent, IfMissing::NoSchedule, IfClosed::Done),
            Self::ScheduleActionClosed(_) => row(Urgent, IfMissing::NoSchedule, IfClosed::Done),
            Self::PauseActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::UnpauseActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::ResetActivity(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::UpdateActivityOptions(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::PauseRun(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::UnpauseRun(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
            Self::UpdateRunOptions(_) => row(Urgent, IfMissing::Refuse, IfClosed::Refuse),
        }
    }
}

impl IfMissing {
    /// The answer, for a run of these ids.
    pub(crate) fn answer(self, workflow_id: &str, run_id: &str) -> Outcome {
        match self {
            Self::Refuse => Outcome::refuse(Rejection::unknown_run(workflow_id, run_id)),
            Self::Gone => Outcome::answer(Reply::Gone),
            Self::NoSchedule => Outcome::refuse(Rejection::NotFound("schedule not found".into())),
        }
    }
}

impl IfClosed {
    pub(crate) fn answer(self) -> Outcome {
        match self {
            Self::Refuse => Outcome::refuse(Rejection::closed()),
            Self::NoTask => Outcome::refuse(Rejection::NotFound("Workflow task not found.".into())),
            Self::Unknown => Outcome::refuse(Rejection::unknown()),
            Self::Done => Outcome::answer(Reply::Done),
            Self::Gone => Outcome::answer(Reply::Gone),
        }
    }
}
