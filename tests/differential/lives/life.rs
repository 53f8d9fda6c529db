//! What the life of a schedule is: steps that are data, the same for every server.
//!
//! In texts of requests `~` stands for what is the life's own. The schedule is `~s`, its action starts `~w` on the queue `~q`.
//! For [`SOON`] stands a number of seconds.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// The second that comes some seconds after the request.
pub const SOON: &str = "soon";

/// Which of the open runs a step is about, counted in the order in which they were started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichRun {
    Oldest,
    Newest,
}

/// What becomes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFate {
    /// Its worker completes it, with this result.
    Completes(u64),
    CompletesWithoutResult,
    Fails,
    /// Its worker ends it as cancelled.
    EndsCancelled,
    ContinuesAsNew,
    IsTerminated,
    /// It is asked to cancel itself, and does not.
    IsAskedToCancel,
    IsDeleted,
}

/// The conflict token of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateToken {
    None,
    Latest,
    /// One that the schedule has not had yet.
    Wrong,
}

/// One step. Behind each the schedule and its runs are looked at, once they have come to rest.
#[derive(Clone, Debug, PartialEq)]
pub enum LifeAct {
    Create {
        schedule: Value,
        /// Null for none.
        patch: Value,
    },
    Patch {
        patch: Value,
    },
    Update {
        schedule: Value,
        token: UpdateToken,
    },
    Delete,
    Run {
        which: WhichRun,
        fate: RunFate,
    },
    /// Terminates what is open until nothing is, and nothing waits.
    Drain,
}

/// A step, and what is known of the runs that are first seen behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeStep {
    pub act: LifeAct,
    /// They were started whatever else was open.
    pub overlaps: bool,
}

/// A life, and what it is known by.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    pub seed: u64,
    pub steps: Vec<LifeStep>,
    /// Runs end by themselves, as their time is over soon.
    pub is_hasty: bool,
    /// Workflow Ids are to be without a time.
    pub keeps_id: bool,
}

impl Life {
    /// What tells two lives apart.
    pub fn mark(&self) -> String {
        let start = 0xcbf2_9ce4_8422_2325_u64;
        let text = self.to_string();
        let mark =
            text.bytes().fold(start, |mark, byte| (mark ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        format!("{mark:016x}")
    }
}

impl LifeStep {
    /// It triggers or backfills.
    pub fn asks_for_actions(&self) -> bool {
        let (LifeAct::Create { patch, .. } | LifeAct::Patch { patch }) = &self.act else { return false };
        patch.get("trigger_immediately").or_else(|| patch.get("backfill_request")).is_some()
    }

    /// The overlap policies that it names.
    pub fn policies(&self) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        match &self.act {
            LifeAct::Create { schedule, patch } => {
                add_policies(schedule, &mut named);
                add_policies(patch, &mut named);
            }
            LifeAct::Update { schedule: given, .. } | LifeAct::Patch { patch: given } => {
                add_policies(given, &mut named);
            }
            LifeAct::Delete | LifeAct::Run { .. } | LifeAct::Drain => {}
        }
        named
    }
}

fn add_policies(value: &Value, named: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| add_policies(value, named)),
        Value::Object(tree) => {
            named.extend(tree.get("overlap_policy").and_then(Value::as_str).map(str::to_owned));
            tree.values().for_each(|value| add_policies(value, named));
        }
        _leaf => {}
    }
}

impl fmt::Display for LifeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.act {
            LifeAct::Create { schedule, patch } => write!(f, "create {schedule}, patch {patch}"),
            LifeAct::Patch { patch } => write!(f, "patch {patch}"),
            LifeAct::Update { schedule, token } => write!(f, "update, token {token:?}: {schedule}"),
            LifeAct::Delete => f.write_str("delete"),
            LifeAct::Run { which, fate } => write!(f, "the {which:?} run: {fate:?}"),
            LifeAct::Drain => f.write_str("drain"),
        }?;
        if self.overlaps { f.write_str(" (overlapping)") } else { Ok(()) }
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [hasty, keeps_id] = [(self.is_hasty, ", hasty"), (self.keeps_id, ", keeps its id")]
            .map(|(is_it, word)| if is_it { word } else { "" });
        writeln!(f, "life {}{hasty}{keeps_id}", self.seed)?;
        self.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "  {number}: {step}"))
    }
}
