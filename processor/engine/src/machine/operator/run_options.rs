//! Options of an open run that a caller changes: which version of its workers it goes by, and its priority.
//!
//! open  --update options-->  open, with other options; what waits for workers is offered anew
//!
//! A change is an event, which no worker needs to know at once. Versions are kept and told; tasks are handed out without regard to them.

use bytes::Bytes;

use crate::draft::{Change, Draft};
use crate::event::HistoryEvent;
use crate::level;
use crate::machine::attached_requests::{self, Updated};
use crate::machine::memo_and_search_attributes::change;
use crate::machine::operator::run_pause::{bound_buffer, offer_activities_again};
use crate::machine::worker_versioning::{Override, Versioning};
use crate::machine::workflow_task::{self, Task};
use crate::outcome::{Rejection, Reply};
use crate::payload::{PriorityPatch, check_priority, patched_priority};
use crate::run::Run;

/// Request: other options from now on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpdateRunOptions {
    /// The override changes, to the next field or to none.
    #[prost(bool, tag = "1")]
    pub sets_override: bool,
    /// What overrides the version that workers say.
    #[prost(message, optional, tag = "2")]
    pub overriding: Option<Override>,
    /// The whole priority, opaque; empty = none.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub priority: Option<Bytes>,
    /// Parts of the priority.
    #[prost(message, optional, tag = "4")]
    pub priority_patch: Option<PriorityPatch>,
    /// Who asks.
    #[prost(string, tag = "5")]
    pub identity: String,
}

impl UpdateRunOptions {
    /// This change and then another one, as one.
    pub fn followed_by(self, next: Self) -> Self {
        let (whole, patch) = match next.priority {
            Some(whole) => (Some(whole), next.priority_patch),
            None => {
                let before = self.priority_patch.unwrap_or_default();
                let patch = next.priority_patch.unwrap_or_default();
                let both = PriorityPatch {
                    priority_key: patch.priority_key.or(before.priority_key),
                    fairness_key: patch.fairness_key.or(before.fairness_key),
                    fairness_weight: patch.fairness_weight.or(before.fairness_weight),
                };
                (self.priority, Some(both).filter(|both| *both != PriorityPatch::default()))
            }
        };
        Self {
            sets_override: self.sets_override || next.sets_override,
            overriding: if next.sets_override { next.overriding } else { self.overriding },
            priority: whole,
            priority_patch: patch,
            identity: next.identity,
        }
    }
}

/// Options in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// What overrides the version that workers say.
    pub overriding: Option<Override>,
    /// Priority, opaque.
    pub priority: Option<Bytes>,
}

impl Run {
    /// The priority in force: that of the start, or what it was changed to.
    pub fn priority(&self) -> Option<&Bytes> {
        match &self.properties.priority {
            Some(changed) => Some(changed).filter(|changed| !changed.is_empty()),
            None => self.start.priority.as_ref(),
        }
    }

    /// The options in force.
    pub fn options(&self) -> RunOptions {
        let versioning = self.properties.versioning.as_ref();
        let overriding = versioning.and_then(|versioning| versioning.overriding.clone());
        let priority = self.priority().filter(|given| !given.is_empty()).cloned();
        RunOptions { overriding, priority }
    }
}

pub(crate) fn update(draft: &mut Draft<'_>, order: &UpdateRunOptions) -> Result<Reply, Rejection> {
    if draft.stamp.level < level::OPERATOR_CALLS {
        return Err(level::below("Operator calls on runs", level::OPERATOR_CALLS, draft.stamp));
    }
    let options = change_options(draft, order)?;
    bound_buffer(draft);
    Ok(Reply::RunOptions(Box::new(options)))
}

/// Changes what is to be changed, and returns what is in force then.
pub(crate) fn change_options(
    draft: &mut Draft<'_>,
    order: &UpdateRunOptions,
) -> Result<RunOptions, Rejection> {
    let now = draft.run.options();
    let wanted = RunOptions {
        overriding: match order.sets_override {
            true => order.overriding.clone(),
            false => now.overriding.clone(),
        },
        priority: patched_priority(
            order.priority.as_ref(),
            order.priority_patch.as_ref(),
            now.priority.as_ref(),
        ),
    };
    check_priority(wanted.priority.as_ref(), draft.settings)
        .map_err(|why| Rejection::InvalidArgument(why.into()))?;
    if wanted == now {
        return Ok(now);
    }
    let (other_override, other_priority) =
        (wanted.overriding != now.overriding, wanted.priority != now.priority);
    draft.record(Updated {
        versioning_override: wanted.overriding.clone().filter(|_| other_override),
        unset_versioning_override: other_override && wanted.overriding.is_none(),
        attached_request_id: String::new(),
        identity: order.identity.clone(),
        priority: other_priority.then(|| wanted.priority.clone().unwrap_or_default()),
    });
    if other_override {
        workflow_task::reset_sticky(draft);
    }
    if other_priority {
        offer_again(draft);
    }
    Ok(wanted)
}

/// What waits takes its new turn.
fn offer_again(draft: &mut Draft<'_>) {
    if let Some(task) = draft.run.head.task.clone().filter(|task| !task.is_started() && !task.is_resting()) {
        let stamp = task.stamp.wrapping_add(1);
        draft.change(Change::Task(Some(Box::new(Task { stamp, ..task }))));
    }
    offer_activities_again(draft);
}

pub(crate) fn apply_updated(run: &mut Run, event: &HistoryEvent, updated: &Updated) {
    attached_requests::apply_updated(run, event, updated);
    if updated.versioning_override.is_some() || updated.unset_versioning_override {
        let before = run.properties.versioning.clone().unwrap_or_default();
        let versioning = Versioning { overriding: updated.versioning_override.clone(), ..before };
        let name = versioning.pinned().or(versioning.version.as_ref());
        let name = name.map(|version| version.deployment_name.clone()).unwrap_or_default();
        change(run, |properties| {
            properties.versioning =
                Some(versioning).filter(|versioning| *versioning != Versioning::default());
            properties.deployment_name = name;
        });
    }
    if let Some(priority) = &updated.priority {
        change(run, |properties| properties.priority = Some(priority.clone()));
    }
}
