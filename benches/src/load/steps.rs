//! One activity step in pieces: task answered, activity polled, activity answered, next task polled.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use super::tally::Tally;

/// The runs that are in the middle of a step.
#[derive(Default)]
pub struct Steps {
    open: Mutex<HashMap<String, Step>>,
}

#[derive(Clone, Copy)]
struct Step {
    /// When the answer that schedules the activity was sent.
    began: Instant,
    /// When the activity's answer was sent.
    activity_answered: Option<Instant>,
}

impl Steps {
    /// An answer that schedules an activity is about to be sent.
    pub fn begin(&self, run_id: &str, began: Instant) {
        self.locked().insert(run_id.to_string(), Step { began, activity_answered: None });
    }

    /// The activity has come.
    pub fn activity_polled(&self, run_id: &str, tally: &Tally) {
        if let Some(step) = self.locked().get(run_id) {
            tally.ended("step: task answered to activity polled", step.began);
        }
    }

    /// The activity's answer is about to be sent.
    pub fn activity_answered(&self, run_id: &str) {
        if let Some(step) = self.locked().get_mut(run_id) {
            step.activity_answered = Some(Instant::now());
        }
    }

    /// The run's next task has come.
    pub fn task_polled(&self, run_id: &str, tally: &Tally) {
        let Some(step) = self.locked().remove(run_id) else {
            return;
        };
        if let Some(answered) = step.activity_answered {
            tally.ended("step: activity answered to task polled", answered);
            tally.ended("step", step.began);
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Step>> {
        self.open.lock().expect("nobody panics while holding the steps")
    }
}
