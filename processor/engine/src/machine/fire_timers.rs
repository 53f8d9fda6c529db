//! A deadline of a run has come: whatever is due is settled, in order of time, a bounded slice per record.

use std::sync::Arc;

use crate::draft::{Change, Draft, Step};
use crate::machine::activity::Activity;
use crate::machine::timer::{self, Timer};
use crate::machine::{activity_attempt, close, workflow_task, workflow_task_started};

/// Order: look at the run's deadlines.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct FireTimers {}

enum Due {
    Activity(Arc<Activity>),
    Timer(Timer),
}

/// Settles what is due. Too early is harmless: nothing is due then, and the run's next deadline stands. What happened
/// while nobody looked comes before the next task, so that the workflow sees all of it at once. The first step of the run
/// that follows, where the run's time is over and one does.
pub(crate) fn wake(draft: &mut Draft<'_>) -> Option<Step> {
    let now_ms = draft.now_ms();
    let expires_ms = draft.run.start.run_expires_ms;
    if expires_ms > 0 && expires_ms <= now_ms {
        return close::time_out(draft);
    }
    let mut news = false;
    let backoff_ms = draft.run.head.backoff_until_ms;
    if backoff_ms > 0 && backoff_ms <= now_ms {
        // One that updates have brought before is the first one now.
        workflow_task::make_normal(draft);
        if draft.run.head.backoff_until_ms > 0 {
            draft.change(Change::BackoffOver);
        }
        news = true;
    }
    for due in due(draft) {
        news |= match due {
            Due::Activity(activity) => activity_attempt::wake(draft, &activity),
            Due::Timer(due) => {
                timer::fire(draft, &due);
                true
            }
        };
    }
    wake_task(draft);
    if news {
        workflow_task::settle(draft);
    }
    None
}

fn wake_task(draft: &mut Draft<'_>) {
    let head = &draft.run.head;
    let grace = draft.stamp.grace();
    let Some(pending) = &head.task else { return };
    if pending.deadline_ms(head.sticky.as_ref(), grace).is_none_or(|deadline_ms| deadline_ms > draft.now_ms())
    {
        return;
    }
    if pending.is_started() {
        workflow_task_started::time_out_started(draft);
    } else if pending.is_resting() {
        workflow_task::end_rest(draft);
    } else {
        workflow_task::time_out_scheduled(draft);
    }
}

/// Activities and timers that are due, the earliest first, at most a slice.
fn due(draft: &Draft<'_>) -> Vec<Due> {
    let now_ms = draft.now_ms();
    let grace = draft.stamp.grace();
    let activities = draft.run.activities.values().filter_map(|activity| {
        let deadline_ms = activity.deadline_ms(grace).filter(|deadline_ms| *deadline_ms <= now_ms)?;
        Some((deadline_ms, activity.scheduled_event_id, Due::Activity(activity.clone())))
    });
    let timers = draft.run.timers.values().filter(|timer| timer.fire_ms <= now_ms);
    let timers = timers.map(|timer| (timer.fire_ms, timer.started_event_id, Due::Timer(timer.clone())));
    let mut due: Vec<_> = activities.chain(timers).collect();
    due.sort_by_key(|(deadline_ms, event_id, _)| (*deadline_ms, *event_id));
    let slice = usize::try_from(draft.settings.wake_slice_max).unwrap_or(1).max(1);
    due.truncate(slice);
    due.into_iter().map(|(_, _, due)| due).collect()
}
