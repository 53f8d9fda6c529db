//! Overlap: what becomes of actions that wait, while others run.
//!
//! A pass looks at the waiting actions in their order and decides for each, by its policy:
//!
//! | policy | nothing runs, nothing chosen | something runs or is chosen |
//! |---|---|---|
//! | allow all | start | start |
//! | skip | start | skip |
//! | buffer one | start | keep the first, skip the others |
//! | buffer all | start | keep |
//! | cancel other, terminate other | start | runs: end them, and keep the newest; chosen: replace it |
//!
//! While runs are to end, nothing starts that would overlap. The newest action that waits for their end has the place of
//! the oldest that did: so none that came between is chosen before it, only to be replaced.

/// What becomes of an action while others run. The numbers are those of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum OverlapPolicy {
    /// That of the schedule; of a schedule it is [`Skip`](Self::Skip).
    Unspecified = 0,
    /// It is dropped.
    Skip = 1,
    /// It waits, if none waits yet.
    BufferOne = 2,
    /// It waits.
    BufferAll = 3,
    /// It starts when what runs has been cancelled.
    CancelOther = 4,
    /// It starts when what runs has been terminated.
    TerminateOther = 5,
    /// It starts.
    AllowAll = 6,
}

impl OverlapPolicy {
    /// The policy that holds where the schedule's is `default`.
    pub fn or(self, default: Self) -> Self {
        match (self, default) {
            (Self::Unspecified, Self::Unspecified) => Self::Skip,
            (Self::Unspecified, default) => default,
            (given, _default) => given,
        }
    }
}

/// How runs are asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunEnd {
    /// They are cancelled.
    Cancel,
    /// They are terminated, which wins over a cancellation.
    Terminate,
}

/// An action that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingAction {
    /// Its policy; unspecified is read as skip.
    pub policy: OverlapPolicy,
    /// It was asked for by a trigger or a backfill: neither pauses nor limits concern it.
    pub is_manual: bool,
    /// Its start is to be tried again later, so it counts as chosen.
    pub is_delayed: bool,
}

/// What else a pass depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlapInput {
    /// Something that the schedule has started runs, or its start is under way.
    pub is_running: bool,
    /// Scheduled actions that may start: 0 while paused, none without a limit.
    pub scheduled_max: Option<u64>,
    /// Actions of either kind that may start in this pass.
    pub starts_max: usize,
}

/// What a pass decides for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapDecision {
    /// It starts now.
    Start,
    /// It waits.
    Keep,
    /// Its policy drops it.
    Skip,
    /// It would start, but the schedule is paused or has no actions left: it is dropped.
    Drop,
}

/// What a pass decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlapPass {
    /// For each action, in their order.
    pub decisions: Vec<OverlapDecision>,
    /// What runs is to be asked to end.
    pub end_running: Option<RunEnd>,
    /// The action that waits for the end of what runs, and the older one, which was skipped, whose place it takes.
    pub takes_place: Option<(usize, usize)>,
}

impl OverlapPass {
    /// Decides for actions in the order in which they wait.
    pub fn of(waiting: &[WaitingAction], input: OverlapInput) -> Self {
        let end_running = if input.is_running { wanted_end(waiting) } else { None };
        let mut pass = PassUnderWay {
            decisions: Vec::with_capacity(waiting.len()),
            chosen: None,
            waits_for_end: None,
            waited_first: None,
            keeps_one: false,
            scheduled_left: input.scheduled_max,
            starts_left: input.starts_max,
            input,
            is_ending: end_running.is_some(),
        };
        for action in waiting {
            let decision = pass.decide(action, waiting);
            pass.decisions.push(decision);
        }
        let takes_place = pass.waits_for_end.zip(pass.waited_first).filter(|(newest, first)| newest != first);
        Self { decisions: pass.decisions, end_running, takes_place }
    }
}

/// The stronger end that any action asks for.
fn wanted_end(waiting: &[WaitingAction]) -> Option<RunEnd> {
    let ends = waiting.iter().filter(|action| !action.is_delayed).filter_map(|action| match action.policy {
        OverlapPolicy::CancelOther => Some(RunEnd::Cancel),
        OverlapPolicy::TerminateOther => Some(RunEnd::Terminate),
        OverlapPolicy::Unspecified
        | OverlapPolicy::Skip
        | OverlapPolicy::BufferOne
        | OverlapPolicy::BufferAll
        | OverlapPolicy::AllowAll => None,
    });
    ends.max()
}

/// A pass under way.
struct PassUnderWay {
    decisions: Vec<OverlapDecision>,
    /// The one action that may not overlap and starts.
    chosen: Option<usize>,
    /// The newest action that waits for the end of what runs.
    waits_for_end: Option<usize>,
    /// The oldest that did.
    waited_first: Option<usize>,
    /// Some action is kept for its policy.
    keeps_one: bool,
    scheduled_left: Option<u64>,
    starts_left: usize,
    input: OverlapInput,
    is_ending: bool,
}

impl PassUnderWay {
    fn decide(&mut self, action: &WaitingAction, waiting: &[WaitingAction]) -> OverlapDecision {
        let at = self.decisions.len();
        if action.policy == OverlapPolicy::AllowAll {
            return if self.is_ending || action.is_delayed {
                OverlapDecision::Keep
            } else {
                self.start(action)
            };
        }
        if !self.input.is_running && self.chosen.is_none() {
            if action.is_delayed {
                self.chosen = Some(at);
                return OverlapDecision::Keep;
            }
            let decision = self.start(action);
            if decision != OverlapDecision::Drop {
                self.chosen = Some(at);
            }
            return decision;
        }
        if action.is_delayed {
            return OverlapDecision::Keep;
        }
        match action.policy {
            OverlapPolicy::BufferOne if self.keeps_one => OverlapDecision::Skip,
            OverlapPolicy::BufferOne | OverlapPolicy::BufferAll => {
                self.keeps_one = true;
                OverlapDecision::Keep
            }
            OverlapPolicy::CancelOther | OverlapPolicy::TerminateOther => self.supersede(at, action, waiting),
            OverlapPolicy::Unspecified | OverlapPolicy::Skip | OverlapPolicy::AllowAll => {
                OverlapDecision::Skip
            }
        }
    }

    /// An action that ends others: it takes the place of the one that would start, or waits for the end of what runs.
    fn supersede(&mut self, at: usize, action: &WaitingAction, waiting: &[WaitingAction]) -> OverlapDecision {
        if self.input.is_running {
            self.keeps_one = true;
            self.waited_first.get_or_insert(at);
            if let Some(older) = self.waits_for_end.replace(at) {
                self.decisions[older] = OverlapDecision::Skip;
            }
            return OverlapDecision::Keep;
        }
        let Some(chosen) = self.chosen else { return OverlapDecision::Keep };
        if self.decisions[chosen] != OverlapDecision::Start {
            // Its start is tried again, or had no room: it is not taken back.
            self.keeps_one = true;
            return OverlapDecision::Keep;
        }
        if !action.is_manual && waiting[chosen].is_manual && self.scheduled_left == Some(0) {
            return OverlapDecision::Drop;
        }
        self.decisions[chosen] = OverlapDecision::Skip;
        self.starts_left += 1;
        if !waiting[chosen].is_manual {
            self.scheduled_left = self.scheduled_left.map(|left| left + 1);
        }
        self.chosen = Some(at);
        self.start(action)
    }

    fn start(&mut self, action: &WaitingAction) -> OverlapDecision {
        if !action.is_manual && self.scheduled_left == Some(0) {
            return OverlapDecision::Drop;
        }
        let Some(left) = self.starts_left.checked_sub(1) else { return OverlapDecision::Keep };
        self.starts_left = left;
        if !action.is_manual {
            self.scheduled_left = self.scheduled_left.map(|left| left - 1);
        }
        OverlapDecision::Start
    }
}
